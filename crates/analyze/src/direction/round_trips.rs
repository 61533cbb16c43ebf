//! Round trips, from segments and the ACKs that report them.

use lasthop_proto::units::{Span, Time};

use super::{Acked, SAMPLES, Tracker};
use crate::config::Config;
use crate::over_time::{MeasuredBy, RoundTrip};

/// Maximum delay of an ACK at the receiver.
//= rfc1122#section-4.2.3.2: the delay MUST be less than 0.5 seconds
const DELAYED_ACK: Span = Span::millis(500);

/// Assumed round trip of a path without a sample: a longer one would end the first timer (RFC 6298, 2.1).
const UNKNOWN_PATH: Span = Span::secs(1);

impl Tracker {
    /// Whether `wait` for an ACK is so long, on a path with the round trip `path`, that the ACK is missing from the
    /// capture: it has packets of the peer, and none that only acknowledges data. This is the case if a filter selects
    /// packets with payload.
    pub(super) fn lacks_acks(&self, wait: Span, path: Option<Span>) -> bool {
        let limit = DELAYED_ACK + path.unwrap_or(UNKNOWN_PATH);
        !self.plainly_acked && self.latest_ack.is_some() && wait > limit
    }

    /// Measures the round trip that ends with the ACK of new data up to `ack`.
    pub(super) fn measure(&mut self, config: &Config, acked: Acked, ack: i64) {
        let Acked { at, echo, plain, path, .. } = acked;
        let by_timestamp = echo.and_then(|echo| self.reading.over_time.echoed(at, echo));
        let newest = self.newest_acked(ack);
        self.plainly_acked |= plain && newest.is_some();
        let wait = newest.map(|(sent, _)| at.since(sent));
        if wait.is_some_and(|wait| !plain && self.lacks_acks(wait, path)) {
            return;
        }
        //= rfc6298#section-3: no sample from segments that were retransmitted
        if let Some((sent, false)) = newest {
            self.measured(config, at, ack, at.since(sent));
        } else if let Some(rtt) = by_timestamp {
            let sample = RoundTrip { at, rtt: rtt.as_secs_f64(), by: MeasuredBy::Timestamp };
            self.reading.over_time.round_trips.add(config.points, sample);
        }
    }

    /// Removes the segments that `ack` acknowledges. Returns when the newest was sent, and whether one of them gives no
    /// round-trip time.
    fn newest_acked(&mut self, ack: i64) -> Option<(Time, bool)> {
        let (mut newest, mut spent) = (None, false);
        while let Some(&sent) = self.outstanding.front()
            && sent.end <= ack
        {
            self.outstanding.pop_front();
            spent |= sent.spent;
            newest = Some(sent.at);
            if sent.segments > 0 {
                self.delivered = self.delivered.max(sent.at);
            }
            self.trials.arrived(sent.at, sent.label, sent.segments);
        }
        newest.map(|at| (at, spent))
    }

    pub(super) fn measured(&mut self, config: &Config, at: Time, end: i64, rtt: Span) {
        // Simple packet blocks of pcapng have no times.
        if at == Time::ZERO {
            return;
        }
        let rtt = rtt.as_secs_f64();
        let sample = RoundTrip { at, rtt, by: MeasuredBy::Segment };
        self.reading.over_time.round_trips.add(config.points, sample);
        if self.samples.len() >= SAMPLES {
            self.samples.pop_front();
        }
        let behind = self.samples.iter().rev().take_while(|(other, _)| *other > end).count();
        self.samples.insert(self.samples.len() - behind, (end, rtt));
        self.rtt.add(rtt);
        self.last_rtt = Some(rtt);
        self.trials.measured(at, rtt);
    }
}
