//! Lines and numbers for each interval of a transfer.

use std::sync::{Mutex, PoisonError};

use lasthop_live::clock::Clock;
use lasthop_proto::units::{Span, Time};
use lasthop_report::number::{Units, plural};
use serde_json::{Value, json};

use crate::output;
use crate::progress::Progress;

/// Bytes of an interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Interval {
    from: Span,
    to: Span,
    bytes: u64,
    /// Retransmitted segments; `None` if the kernel of this end does not send or count them.
    retransmissions: Option<u64>,
}

impl Interval {
    /// Bytes per second; `None` for zero time.
    fn throughput(self) -> Option<f64> {
        let seconds = self.to.saturating_sub(self.from).as_secs_f64();
        (seconds > 0.0).then(|| self.bytes as f64 / seconds)
    }
}

/// Counts the bytes of all simultaneous transfers. An interval ends with the first progress after its time, so its end is
/// accurate to a twentieth of a second; the rate is that of its true duration.
#[derive(Debug)]
pub struct Intervals {
    every: Span,
    clock: Clock,
    began: Time,
    /// Units of printed lines; `None` prints none.
    units: Option<Units>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    from: Span,
    /// Time of the latest bytes.
    moved: Span,
    bytes: u64,
    retransmissions: Option<u64>,
    done: Vec<Interval>,
}

impl Intervals {
    /// Intervals of `every`, from now on. Lines are printed in `units`.
    pub fn new(every: Span, clock: Clock, units: Option<Units>) -> Intervals {
        Intervals { every, clock, began: clock.now(), units, state: Mutex::default() }
    }

    /// Counts more bytes and retransmissions.
    pub fn count(&self, bytes: u64, retransmissions: Option<u64>, progress: &Progress) {
        let now = self.clock.now().since(self.began);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.bytes += bytes;
        if bytes > 0 {
            state.moved = now;
        }
        if let Some(more) = retransmissions {
            *state.retransmissions.get_or_insert(0) += more;
        }
        if now.saturating_sub(state.from) >= self.every {
            let done = state.close(now);
            drop(state);
            progress.suspend(|| self.print(done));
        }
    }

    /// Ends the last interval, which may be shorter, and returns all as JSON.
    pub fn finish(self) -> Value {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.bytes > 0 {
            // Not the wait for the report of the other end.
            let moved = state.moved;
            let last = state.close(moved);
            self.print(last);
        }
        let row = |interval: &Interval| {
            json!({
                "from_s": interval.from.as_secs_f64(),
                "to_s": interval.to.as_secs_f64(),
                "bytes": interval.bytes,
                "throughput": interval.throughput(),
                "retransmissions": interval.retransmissions,
            })
        };
        Value::Array(state.done.iter().map(row).collect())
    }

    fn print(&self, interval: Interval) {
        let Some(units) = self.units else { return };
        let rate = interval.throughput().map_or_else(|| "–".to_owned(), |rate| units.rate(rate));
        let (from, to) = (interval.from.as_secs_f64(), interval.to.as_secs_f64());
        // A closed pipe is noticed when the result is printed.
        let again = interval.retransmissions.map(|count| plural(count, "retransmission"));
        let again = again.map(|again| format!("  {again}")).unwrap_or_default();
        let bytes = interval.bytes;
        let _ = output::print(&format!("{from:6.1} to {to:.1} s  {bytes} B  {rate}{again}\n"));
    }
}

impl State {
    fn close(&mut self, now: Span) -> Interval {
        let retransmissions = self.retransmissions;
        let done = Interval { from: self.from, to: now, bytes: self.bytes, retransmissions };
        (self.from, self.bytes) = (now, 0);
        self.retransmissions = retransmissions.map(|_| 0);
        self.done.push(done);
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However bytes and retransmissions are distributed over intervals, none is lost.
    #[test]
    fn all_bytes_belong_to_an_interval() {
        let intervals = Intervals::new(Span(1), Clock::start(), None);
        let progress = Progress::of_bytes(None, true);
        (1..=10).for_each(|bytes| intervals.count(bytes, Some(bytes * 2), &progress));
        let rows = intervals.finish();
        let rows = rows.as_array().expect("a list");
        let bytes: u64 = rows.iter().filter_map(|row| row["bytes"].as_u64()).sum();
        let again: u64 = rows.iter().filter_map(|row| row["retransmissions"].as_u64()).sum();
        assert_eq!((bytes, again), (55, 110));
        assert!(rows.windows(2).all(|pair| pair[0]["to_s"] == pair[1]["from_s"]), "{rows:?}");
    }
}
