//! Decision whether a packet that fills a gap was reordered or retransmitted, from its time of sending.

use lasthop_proto::units::{Span, Time};

use super::gaps::Behind;

/// Without a round trip, maximum age of a gap for reordering: Wireshark's limit.
const WITHOUT_ROUND_TRIP: Span = Span::millis(3);

/// Without a report of its peer, no sender retransmits sooner: common retransmission timers are at least 200 ms
/// (Linux). This value has some slack for the clock of the capture.
pub(super) const SHORTEST_TIMEOUT: Span = Span::millis(180);

/// A counter moves by at most this much from packet to packet of one direction.
const STEP: u16 = 256;

/// Steps that show a counter: chance makes two such steps in 1 of 16,000 cases.
const STEPS: u32 = 2;

/// Minimum share of steps in the size of a counter, in tenths.
const MOSTLY: u32 = 9;

/// Evidence of a decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Evidence {
    /// TCP timestamps (RFC 7323).
    Timestamps,
    /// IP identifications, which this sender counts.
    IpIds,
    /// The peer, whose ACKs are captured, has sent none since the gap opened, so the sender cannot have detected a
    /// loss.
    Unreported,
    /// The age of the gap compared with a round trip: no sender retransmits sooner.
    RoundTrip,
    /// Only the age of the gap, without a round trip to compare it with.
    Age,
}

/// Whether a sender counts its IP identifications, in either byte order.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ids {
    last: Option<u16>,
    seen: u32,
    same: u32,
    /// Steps from or to a packet without identification.
    none: u32,
    steps: [u32; 2],
}

impl Ids {
    pub(crate) fn add(&mut self, id: u16) {
        if let Some(last) = self.last {
            let step = |last: u16, id: u16| {
                let moved = (id.wrapping_sub(last) as i16).unsigned_abs();
                u32::from((1..=STEP).contains(&moved))
            };
            if self.seen >= u32::MAX / 10 {
                self.seen /= 2;
                self.same /= 2;
                self.none /= 2;
                self.steps = self.steps.map(|steps| steps / 2);
            }
            self.seen += 1;
            self.same += u32::from(id == last);
            if id == 0 || last == 0 {
                // SYN-ACKs and resets of Linux have no identification, even if its other packets have a counter.
                self.none += 1;
            } else {
                self.steps[0] += step(last, id);
                self.steps[1] += step(last.swap_bytes(), id.swap_bytes());
            }
        }
        self.last = Some(id);
    }

    /// Whether packets have different identifications.
    pub(crate) fn vary(&self) -> bool {
        self.seen > 0 && self.same * 2 <= self.seen
    }

    /// Whether `id` was given later than `other`, if the sender counts.
    fn later(&self, id: u16, other: u16) -> Option<bool> {
        if id == 0 || other == 0 {
            return None;
        }
        let seen = self.seen.saturating_sub(self.none);
        let counts = |steps: u32| steps >= STEPS && steps * 10 >= seen * MOSTLY;
        let moved = if counts(self.steps[0]) {
            id.wrapping_sub(other)
        } else if counts(self.steps[1]) {
            id.swap_bytes().wrapping_sub(other.swap_bytes())
        } else {
            return None;
        };
        (moved != 0).then_some((moved as i16) > 0)
    }
}

/// Whether a packet that fills a gap was sent after the packet `behind` the gap, with the evidence. `latest_ack` is the
/// time of the peer's latest ACK.
pub(super) fn sent_later(
    at: Time,
    ip_id: Option<u16>,
    timestamp: Option<u32>,
    behind: Option<Behind>,
    ids: &Ids,
    latest_ack: Option<Time>,
    round_trip: Option<Span>,
) -> (bool, Evidence) {
    let Some(behind) = behind else { return (true, Evidence::Age) };
    //= rfc7323#section-4: the timestamp clock of a sender never runs backwards
    if let (Some(own), Some(other)) = (timestamp, behind.timestamp)
        && own != other
    {
        return ((own.wrapping_sub(other) as i32) > 0, Evidence::Timestamps);
    }
    if let (Some(own), Some(other)) = (ip_id, behind.ip_id)
        && let Some(later) = ids.later(own, other)
    {
        return (later, Evidence::IpIds);
    }
    let age = at.since(behind.at);
    if age < SHORTEST_TIMEOUT && latest_ack.is_some_and(|latest_ack| latest_ack < behind.at) {
        return (false, Evidence::Unreported);
    }
    match round_trip {
        Some(round_trip) => (age >= round_trip, Evidence::RoundTrip),
        None => (age >= WITHOUT_ROUND_TRIP, Evidence::Age),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(all: &[u16]) -> Ids {
        let mut ids = Ids::default();
        all.iter().for_each(|id| ids.add(*id));
        ids
    }

    #[test]
    fn counters_are_recognized_across_their_wrap_and_in_either_byte_order() {
        let up = ids(&[65_530, 65_534, 2, 5]);
        assert_eq!((up.later(5, 65_534), up.later(65_534, 5)), (Some(true), Some(false)));
        let swapped = ids(&[0x0001, 0x0101, 0x0201, 0x0301]);
        assert_eq!(swapped.later(0x0301, 0x0101), Some(true));
        let accepted = ids(&[0, 40_000, 40_001, 40_002]);
        assert_eq!(accepted.later(40_001, 40_002), Some(false));
        assert_eq!(accepted.later(40_001, 0), None);
        for none in [&[7, 7, 7, 7][..], &[5, 40_000, 300, 61_000], &[1, 2], &[0, 0, 0, 0]] {
            assert_eq!(ids(none).later(9, 7), None, "{none:?}");
        }
    }
}
