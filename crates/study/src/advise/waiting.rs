//! How long data waits in queues, and what would shorten that without costing throughput: where a sender fills the
//! link this is what is left to gain, for everything that shares the queue with it.

use lasthop_proto::units::Span;
use lasthop_scenario::AS_IS;
use serde::Serialize;

use super::link::{Duplex, FRAME, Link};
use crate::compare::Place;

/// A standing queue that is not worth a word, in seconds: the usual target of FQ-CoDel (RFC 8290 section 5.2.2).
const SHORT: f64 = 0.005;
/// The share of the waiting that must go.
const LESS: f64 = 0.5;
/// Schemes that are named, at most.
const NAMED: usize = 4;
/// The first retransmission time-out, before a round trip is known (RFC 6298 section 2.1).
const FIRST_TIMEOUT: Span = Span::secs(1);

/// Data that waits longer than it travels.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Waiting {
    /// What packets with data take from end to end with the sender as it is, at the median, in seconds.
    pub delay: f64,
    /// The same without queues.
    pub empty: f64,
    /// Schemes that take at least half of the waiting away, and less than the threshold of the throughput; the shortest
    /// first.
    pub shorter: Vec<Shorter>,
}

/// A scheme under which data waits less.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Shorter {
    /// The scheme.
    pub name: String,
    /// What packets with data take then, in seconds.
    pub delay: f64,
    /// How often the throughput of the sender as it is it has.
    pub times: f64,
}

impl Link {
    /// What a full packet with data takes from end to end without queues, in seconds.
    fn empty(&self) -> f64 {
        let frame = match self.duplex {
            Duplex::Tdd => FRAME.as_secs_f64() / 2.0,
            Duplex::Full | Duplex::Half => 0.0,
        };
        let packet = f64::from(self.mtu) * 8.0 / self.rate.bps() as f64;
        let travels = self.delay.as_secs_f64() + self.wired_delay.as_secs_f64();
        travels + frame + packet + self.overhead.as_secs_f64()
    }

    /// The least round trip, where the first time-out of a sender is shorter than that.
    pub fn beyond_first_timeout(&self) -> Option<Span> {
        let ack = 40.0 * 8.0 / self.rate_back.bps() as f64;
        let travels = self.delay.as_secs_f64() + self.wired_delay.as_secs_f64();
        let whole = Span::from_secs_f64(self.empty() + travels + ack);
        (whole > FIRST_TIMEOUT).then_some(whole)
    }
}

/// Whether data waits longer on `link` than it travels, and what would help; `gain` is the share of the throughput that
/// this may cost.
pub(super) fn waiting(link: &Link, place: &Place, gain: f64) -> Option<Waiting> {
    let empty = link.empty();
    let delay = place.scheme(AS_IS)?.measured.delay_p50.as_ref()?.mean;
    let waits = delay - empty;
    if waits < SHORT.max(empty) {
        return None;
    }
    let rows = place.schemes.iter().filter(|row| row.name() != AS_IS);
    let mut shorter: Vec<Shorter> = rows
        .filter_map(|row| {
            let times = row.standing.ratio?.mean;
            let delay = row.measured.delay_p50.as_ref()?.mean;
            let enough = times >= 1.0 - gain && delay - empty <= (1.0 - LESS) * waits;
            enough.then(|| Shorter { name: row.name().to_owned(), delay, times })
        })
        .collect();
    shorter.sort_by(|a, b| a.delay.total_cmp(&b.delay));
    shorter.truncate(NAMED);
    Some(Waiting { delay, empty, shorter })
}
