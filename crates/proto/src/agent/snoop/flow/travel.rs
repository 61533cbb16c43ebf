//! Hand-off of a flow's state: export and import.

use super::super::cache::Entry;
use super::super::config::SnoopConfig;
use super::Flow;
use crate::travel::travels;
use crate::units::Time;
use crate::wire::Packet;

travels!(Flow {
    origin,
    complete,
    top,
    acked,
    fin,
    receiver,
    partial,
    cache,
    rtt,
    reports,
    sent,
    settled,
    dups,
    answers,
});

impl Flow {
    /// Removes packets that cannot be moved.
    pub(in super::super) fn packed(mut self) -> Flow {
        self.cache.pack();
        self.rtt.moved();
        (self.timer, self.busy, self.repeated) = (None, Time::ZERO, Time::ZERO);
        self
    }

    /// Whether this is a later connection with the same ports than `moved`.
    pub(in super::super) fn began_after(&self, moved: &Flow) -> bool {
        self.complete && self.origin != moved.origin
    }

    /// Continues at another base station: restarts timers and counts of attempts.
    pub(in super::super) fn resume(&mut self, now: Time, config: &SnoopConfig) {
        (self.busy, self.repeated) = (now, now);
        self.cache.entries_mut().for_each(|entry| entry.attempts = 0);
        if !self.cache.is_empty() {
            self.restart(now, config);
        }
    }

    /// Records that all cached data was sent over the radio of the old base station.
    pub(in super::super) fn has_moved(&mut self) {
        self.moved = self.top;
    }

    /// The first packet that was sent over the old radio, and not retransmitted since. No duplicate ACK may
    /// show its loss: later packets were lost as well.
    pub(in super::super) fn left_behind(
        &mut self,
        now: Time,
        config: &SnoopConfig,
    ) -> Option<Packet> {
        let moved = self.moved;
        if self.last_ack() >= moved {
            return None;
        }
        let lost = |e: &Entry| e.end <= moved && e.attempts == 0 && !e.reported;
        let i = self.cache.position(lost).filter(|_| !self.is_shut())?;
        self.resend(i, now, config)
    }

    /// Merges `seen`, the new base station's state of the same connection from before the import.
    pub(in super::super) fn absorb(&mut self, mut seen: Flow) {
        let seq = |position: u64| seen.origin + position as u32;
        if let Some(acked) = seen.acked.and_then(|acked| self.position(seq(acked)))
            && acked > self.last_ack()
        {
            self.acked = Some(acked);
            self.cache.release(acked, false);
        }
        if let Some(fin) = seen.fin.and_then(|fin| self.position(seq(fin))) {
            self.fin = Some(fin);
        }
        if seen.receiver.window().is_some() {
            self.receiver = seen.receiver;
        }
        let origin = seen.origin;
        for entry in seen.cache.entries_mut() {
            let Some(start) = self.position(origin + entry.start as u32) else { continue };
            let end = start + (entry.end - entry.start);
            if self.acked.is_some_and(|acked| end <= acked) {
                continue;
            }
            let sent_as = self.transmitted(entry.packet.pieces());
            let repeated = start < self.top;
            self.top = self.top.max(end);
            if !(repeated && self.store_again([start, end], &entry.packet, sent_as)) {
                self.store([start, end], &entry.packet, sent_as, repeated);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::FIRST;
    use super::*;
    use crate::wire::{Addr, Body, Flags, Segment, Seq};

    fn packet(seq: u32, len: u32) -> Packet {
        let segment = Segment::new(1, 2, Seq(seq), Seq(0), Flags::ACK);
        let body = Body::Pattern { stream: 1, len, offset: seq.into() };
        Packet::tcp(Addr::v4(1, 1, 1, 1), Addr::v4(2, 2, 2, 2), segment, body)
    }

    /// The position `bytes` behind the first one.
    fn at(bytes: u64) -> u64 {
        FIRST + bytes
    }

    /// A flow that began at `origin` and caches these segments of 100 bytes.
    fn caching(origin: u32, acked: Option<u64>, starts: &[u64]) -> Flow {
        let mut flow = Flow::default();
        flow.open(Seq(origin), true);
        flow.acked = acked.map(at);
        for &start in starts {
            let packet = packet(origin + start as u32, 100);
            let sent_as = flow.transmitted(1);
            flow.store([at(start), at(start + 100)], &packet, sent_as, false);
            flow.top = at(start + 100);
        }
        flow
    }

    fn starts(flow: &Flow) -> Vec<u64> {
        flow.cache.entries().map(|entry| entry.start - FIRST).collect()
    }

    /// State of the old base station, and packets that passed the next one before the import.
    #[test]
    fn packets_seen_before_the_import_are_merged_in() {
        let old = [1, 101, 201];
        for (acked, seen_acked, seen, after, left) in [
            (None, None, &[301][..], None, &[1, 101, 201, 301][..]),
            (Some(1), Some(201), &[301], Some(201), &[201, 301]),
            (Some(201), Some(101), &[301], Some(201), &[1, 101, 201, 301]),
            (Some(201), Some(201), &[301], Some(201), &[1, 101, 201, 301]),
            (Some(201), None, &[101, 301], Some(201), &[1, 101, 201, 301]),
            (Some(1), Some(301), &[201], Some(301), &[]),
            (Some(1), Some(401), &[301, 401], Some(401), &[401]),
        ] {
            let mut flow = caching(1000, acked, &old);
            flow.absorb(caching(1000, seen_acked, seen));
            assert_eq!(
                (flow.acked, starts(&flow)),
                (after.map(at), left.to_vec()),
                "{acked:?} {seen:?}"
            );
            assert_eq!(flow.top, at(seen.last().unwrap().max(&201) + 100));
        }
    }

    #[test]
    fn absorbed_packets_get_old_origin_and_new_send_numbers() {
        let mut flow = caching(1000, Some(1), &[1]);
        let mut seen = caching(1100, Some(51), &[101]);
        (seen.fin, flow.fin) = (Some(at(301)), None);
        flow.absorb(seen);
        assert_eq!((flow.acked, flow.fin, flow.top), (Some(at(151)), Some(at(401)), at(301)));
        assert_eq!(starts(&flow), [201]);
        // A retransmitted packet has a new place in the order of transmissions.
        let mut flow = caching(1000, Some(1), &[1, 101]);
        flow.absorb(caching(1000, None, &[1]));
        let sent: Vec<u64> = flow.cache.entries().map(|entry| entry.sent_as).collect();
        assert_eq!((starts(&flow), flow.sent), (vec![1, 101], 3));
        assert!(sent[0] > sent[1], "{sent:?}");
    }

    #[test]
    fn a_flow_began_later_if_complete_with_another_origin() {
        for (complete, origin, later) in
            [(true, 1000, false), (true, 1001, true), (false, 1001, false)]
        {
            let mut flow = caching(origin, None, &[]);
            flow.complete = complete;
            assert_eq!(flow.began_after(&caching(1000, None, &[])), later, "{complete} {origin}");
        }
    }

    /// Unacknowledged data that was sent over the old radio, and that was not retransmitted or reported
    /// since.
    #[test]
    fn left_behind_is_the_first_unrepeated_unreported_packet() {
        let config = SnoopConfig::parsa98();
        for (acked, attempts, reported, found) in [
            (Some(1), [0, 0], [false; 2], Some(1)),
            (None, [0, 0], [false; 2], Some(1)),
            (Some(1), [1, 0], [false; 2], Some(101)),
            (Some(1), [0, 0], [true, false], Some(101)),
            (Some(1), [1, 1], [false; 2], None),
            (Some(200), [0, 0], [false; 2], Some(1)),
            (Some(201), [0, 0], [false; 2], None),
        ] {
            let mut flow = caching(1000, acked, &[1, 101]);
            assert!(flow.left_behind(Time(5), &config).is_none(), "no radio was left");
            flow.has_moved();
            let later = packet(1201, 100);
            let sent_as = flow.transmitted(1);
            flow.store([at(201), at(301)], &later, sent_as, false);
            flow.top = at(301);
            for (i, entry) in flow.cache.entries_mut().take(2).enumerate() {
                (entry.attempts, entry.reported) = (attempts[i], reported[i]);
            }
            let seq = flow.left_behind(Time(5), &config).map(|p| p.segment().unwrap().seq.0);
            assert_eq!(seq, found.map(|at| 1000 + at), "{acked:?} {attempts:?} {reported:?}");
        }
    }
}
