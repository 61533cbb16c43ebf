//! Queueing delay, and schemes that reduce it without loss of throughput. If a sender fills the link, a shorter
//! delay is the only possible gain, for all traffic that shares the queue.

use lasthop_proto::units::Span;
use lasthop_scenario::AS_IS;
use serde::Serialize;

use super::kinds::LinkKind;
use super::link::Link;
use crate::compare::PointRanking;

/// Maximum queueing delay that is not reported, in seconds: the default target of FQ-CoDel (RFC 8290 section 5.2.2).
const SHORT: f64 = 0.005;
/// Minimum reduction of the queueing delay.
const LESS: f64 = 0.5;
/// Maximum number of schemes listed.
pub(super) const NAMED: usize = 4;
/// Maximum number of schemes that are compared on other kinds of links.
const CHECKED: usize = 8;
/// The first retransmission timeout, before a round trip is known (RFC 6298 section 2.1).
const FIRST_TIMEOUT: Span = Span::secs(1);

/// Queueing delay above the propagation delay.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Waiting {
    /// Median end-to-end delay of data packets with the unchanged sender, in seconds.
    pub delay: f64,
    /// The same without queues.
    pub empty: f64,
    /// Schemes that remove at least half of the queueing delay and cost less throughput than the threshold; the
    /// shortest delay first.
    pub shorter: Vec<Shorter>,
    /// Schemes that are not listed, because they lose throughput on another kind of link of the same rate.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub elsewhere: Vec<Elsewhere>,
}

/// A scheme on another kind of link.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Elsewhere {
    pub name: String,
    /// The kind of link, by its name in `--link`.
    pub link: &'static str,
    /// The period in which a device there may request grants: the longest of its standard.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<String>,
    /// Throughput divided by that of the unchanged sender there.
    pub times: f64,
}

impl Waiting {
    /// Removes schemes that cost more than `gain` of the throughput on links of `kind`.
    pub(super) fn check(&mut self, kind: LinkKind, there: &PointRanking, gain: f64) {
        let Waiting { shorter, elsewhere, .. } = self;
        shorter.retain(|scheme| {
            let ratio = there.scheme(&scheme.name).and_then(|row| row.standing.ratio);
            let times = ratio.map_or(1.0, |ratio| ratio.mean);
            if times < 1.0 - gain {
                let requests = kind.has_grants().then(|| kind.request(true).to_string());
                let (name, link) = (scheme.name.clone(), kind.word());
                elsewhere.push(Elsewhere { name, link, requests, times });
            }
            times >= 1.0 - gain
        });
    }
}

/// A scheme with a lower queueing delay.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Shorter {
    pub name: String,
    /// Median end-to-end delay of data packets, in seconds.
    pub delay: f64,
    /// Throughput divided by that of the unchanged sender.
    pub times: f64,
}

impl Link {
    /// End-to-end delay of a full data packet without queues, in seconds.
    fn empty(&self) -> f64 {
        let packet = f64::from(self.mtu) * 8.0 / self.rate.bps() as f64;
        let travels = self.delay.as_secs_f64() + self.wired_delay.as_secs_f64();
        travels + packet + self.overhead.as_secs_f64()
    }

    /// The minimum round trip, if it exceeds a sender's first timeout.
    pub fn beyond_first_timeout(&self) -> Option<Span> {
        let ack = 40.0 * 8.0 / self.rate_back.bps() as f64;
        let travels = self.delay.as_secs_f64() + self.wired_delay.as_secs_f64();
        let whole = Span::from_secs_f64(self.empty() + travels + ack);
        (whole > FIRST_TIMEOUT).then_some(whole)
    }
}

/// The queueing delay on `link` if it exceeds the propagation delay, with schemes that reduce it; `gain` is the share
/// of the throughput that they may cost.
pub(super) fn waiting(link: &Link, place: &PointRanking, gain: f64) -> Option<Waiting> {
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
    shorter.truncate(CHECKED);
    Some(Waiting { delay, empty, shorter, elsewhere: Vec::new() })
}
