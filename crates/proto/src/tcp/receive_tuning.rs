//! A receive window that follows what the application takes (dynamic right-sizing, Fisk and Feng 2001; as Linux does
//! it): it begins small, and each round trip it makes room for twice what came in the last one, and for more while that
//! grows.

use crate::units::{Span, Time};

/// The window that Linux offers before it knows anything of the connection: half of its default buffer of 128 KiB.
const FIRST: u32 = 65_535;
/// Segments that are expected in the first round trip: the initial window of RFC 6928.
const FIRST_SEGMENTS: u32 = 10;

/// How far the window may open.
#[derive(Clone, Debug)]
pub(super) struct Tuning {
    /// The window may open to this by now.
    clamp: u64,
    /// The most that it ever may.
    most: u64,
    mss: u64,
    /// What the application took in the last round trip that took more than those before.
    space: u64,
    /// Where and when this round trip began.
    round: (u64, Time),
    rtt: Option<Span>,
    /// When the segment was sent that the peer echoed last.
    echoed: Option<Time>,
}

impl Tuning {
    /// The connection begins with segments of `mss` bytes; the window never gets larger than `most`.
    pub(super) fn new(mss: u32, most: u32) -> Tuning {
        let mss = mss.max(1);
        let clamp = u64::from(Self::first(most));
        let space = u64::from(FIRST_SEGMENTS * mss);
        let round = (1, Time::ZERO);
        Tuning { clamp, most: most.into(), mss: mss.into(), space, round, rtt: None, echoed: None }
    }

    /// The first window, which is also that of the SYN.
    pub(super) fn first(most: u32) -> u32 {
        FIRST.min(most)
    }

    /// The peer echoes in new data that a segment of `sent` has reached it.
    pub(super) fn echo(&mut self, now: Time, sent: Time) {
        if self.echoed.replace(sent) != Some(sent) {
            let rtt = now.since(sent);
            self.rtt = Some(self.rtt.map_or(rtt, |old| Span((7 * old.0 + rtt.0) / 8)));
        }
    }

    /// A segment came, and the application has taken everything below `taken`; `ahead` bytes wait above a
    /// hole. The window that may be offered after one of `window`.
    pub(super) fn take(&mut self, now: Time, taken: u64, ahead: u64, window: u32) -> u32 {
        if self.round.1 == Time::ZERO {
            self.round = (taken, now);
        }
        if self.rtt.is_some_and(|rtt| now.since(self.round.1) >= rtt) {
            let came = taken - self.round.0;
            if came > self.space {
                // It is known a round trip late, and in slow start the sender doubles its rate in each.
                let twice = 2 * came;
                let growth = u128::from(twice) * u128::from(came - self.space) * 2;
                let more = (growth / u128::from(self.space.max(1))).min(u128::from(self.most));
                self.clamp = self.clamp.max((twice + more as u64 + ahead).min(self.most));
                self.space = came;
            }
            self.round = (taken, now);
        }
        // Never faster than two segments for one that came, so that small segments do not fill a large window.
        u64::from(window).max(self.clamp.min(u64::from(window) + 2 * self.mss)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows at the end of each round trip of 100 ms in which `segments` come, evenly.
    fn course(segments: &[u64]) -> Vec<u32> {
        let mut tuning = Tuning::new(1000, 1 << 30);
        let mut window = Tuning::first(1 << 30);
        let (mut taken, mut seen) = (1, Vec::new());
        for (round, count) in segments.iter().enumerate() {
            for i in 0..*count {
                let now = Time((round as u64 + 1) * 100_000_000 + i * 100_000_000 / count);
                tuning.echo(now, Time(now.0 - 100_000_000));
                taken += 1000;
                window = tuning.take(now, taken, 0, window);
            }
            seen.push(window);
        }
        seen
    }

    #[test]
    fn it_begins_small_and_stays_ahead_of_slow_start() {
        let seen = course(&[10, 20, 40, 80, 160, 320, 640]);
        assert_eq!(seen[0], 65_535);
        for (window, next) in seen.iter().zip([20, 40, 80, 160, 320, 640]) {
            assert!(*window >= next * 1000, "{seen:?}");
        }
    }

    #[test]
    fn a_steady_sender_does_not_open_it() {
        let seen = course(&[20; 30]);
        assert!(seen[29] < 200_000 && seen[29] == seen[10], "{seen:?}");
    }

    #[test]
    fn it_never_shrinks_and_has_a_bound() {
        let mut tuning = Tuning::new(1000, 100_000);
        assert_eq!(tuning.take(Time(1), 1001, 0, 100_000), 100_000);
        let mut window = Tuning::first(100_000);
        for i in 1..10_000 {
            let now = Time(i * 1_000_000);
            tuning.echo(now, Time((i - 1) * 1_000_000));
            window = tuning.take(now, 1 + 1000 * i * i, 0, window);
        }
        assert_eq!(window, 100_000);
    }
}
