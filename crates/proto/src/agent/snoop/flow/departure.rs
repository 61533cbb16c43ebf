//! Departure of local retransmissions: their timestamps, and their order among the flow's transmissions.

use super::super::config::SnoopConfig;
use super::Flow;
use crate::units::Time;
use crate::wire::{Packet, Segment, Timestamps, Transport};

impl Flow {
    /// Learns the sender's clock from its `segment`.
    #[inline]
    pub(in super::super) fn learn_clock(&mut self, segment: &Segment) {
        if let Some(now) = segment.timestamps
            && self.clock.is_none_or(|clock| Timestamps::is_older(clock, now.value))
        {
            self.clock = Some(now.value);
        }
    }

    /// A cached packet with a timestamp that the receiver accepts. After it was cached, the sender may have
    /// retransmitted earlier bytes with a later timestamp. The receiver would then drop the older one and
    /// repeat its ACK.
    //= rfc7323#section-5.3: a segment whose timestamp is older than TS.Recent is not acceptable (PAWS)
    pub(super) fn stamped(&self, packet: Packet) -> Packet {
        let Some(clock) = self.clock else { return packet };
        // The receiver echoes TS.Recent. The echo counts only if the sender has reached it: a forged echo
        // would make the receiver drop the sender's own packets.
        let recent = self.receiver.echo().filter(|echo| !Timestamps::is_older(clock, *echo));
        let Some(recent) = recent else { return packet };
        packet.with(|packet| {
            if let Transport::Tcp(segment) = &mut packet.transport
                && let Some(own) = &mut segment.timestamps
                && Timestamps::is_older(own.value, recent)
            {
                own.value = recent;
            }
        })
    }

    /// Records that the retransmissions since the last call left at `now`, after all packets received until then.
    pub(in super::super) fn overtaken(&mut self, now: Time, config: &SnoopConfig) {
        let Some(first) = self.unsettled.take() else { return };
        let mut again: Vec<u64> = Vec::new();
        for entry in self.cache.entries() {
            if entry.attempts > 0 && entry.sent_as >= first {
                again.push(entry.sent_as);
            }
        }
        again.sort_unstable();
        let left = self.sent - again.len() as u64;
        for entry in self.cache.entries_mut() {
            let earlier = again.partition_point(|number| *number < entry.sent_as);
            let is_again = again.get(earlier) == Some(&entry.sent_as) && entry.attempts > 0;
            entry.sent_as = match is_again {
                true => left + 1 + earlier as u64,
                false => entry.sent_as - earlier as u64,
            };
        }
        self.repeated = self.repeated.max(now);
        if self.cache.front().is_some_and(|first| first.attempts > 0) {
            self.restart(now, config);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Span;
    use crate::wire::{Addr, Body, Flags, Seq, Timestamps};

    fn packet(start: u32, value: u32) -> Packet {
        let mut segment = Segment::new(1, 2, Seq(start), Seq(0), Flags::ACK);
        segment.timestamps = Some(Timestamps { value, echo: 7 });
        let body = Body::Pattern { stream: 1, len: 100, offset: start.into() };
        Packet::tcp(Addr::v4(1, 1, 1, 1), Addr::v4(2, 2, 2, 2), segment, body)
    }

    /// A flow with successive packets of 100 bytes.
    fn caching(count: u32, value: u32) -> Flow {
        let mut flow = Flow::default();
        flow.open(Seq(0), true);
        for i in 0..count {
            let packet = packet(i * 100, value);
            flow.learn_clock(packet.segment().unwrap());
            let start = super::super::FIRST + u64::from(i) * 100;
            let sent_as = flow.transmitted(1);
            flow.store([start, start + 100], &packet, sent_as, false);
        }
        flow
    }

    /// The receiver echoes `echo`.
    fn record_echo(flow: &mut Flow, echo: u32) {
        let mut segment = Segment::new(2, 1, Seq(0), Seq(0), Flags::ACK);
        segment.timestamps = Some(Timestamps { value: 1, echo });
        flow.receiver.sent(&segment, 0);
    }

    /// A packet that the receiver would drop for its age gets the receiver's last timestamp, and is otherwise
    /// unchanged.
    #[test]
    fn retransmission_timestamps_are_not_below_the_last_valid_echo() {
        let config = SnoopConfig::west97();
        for base in [0, 1, i32::MAX as u32, 1 << 31, u32::MAX, u32::MAX - 3] {
            for (cached, latest, echo, sent) in [
                (0, 0, 0, 0),
                (0, 5, 0, 0),
                (0, 5, 5, 5),
                (0, 5, 3, 3),
                (4, 5, 3, 4),
                // The sender has never reached this timestamp.
                (0, 5, 6, 0),
                (0, 0, 1 << 30, 0),
            ] {
                let mut flow = caching(3, base.wrapping_add(cached));
                flow.learn_clock(packet(0, base.wrapping_add(latest)).segment().unwrap());
                record_echo(&mut flow, base.wrapping_add(echo));
                let again = flow.retransmit(Time(1), &config).unwrap();
                let stamps = again.segment().unwrap().timestamps.unwrap();
                let expected = Timestamps { value: base.wrapping_add(sent), echo: 7 };
                assert_eq!(stamps, expected, "{base} {cached} {latest} {echo}");
                assert_eq!(again.body, packet(0, 0).body);
            }
        }
    }

    #[test]
    fn without_timestamps_nothing_is_stamped() {
        let mut flow = caching(2, 5);
        record_echo(&mut flow, 6);
        flow.learn_clock(packet(0, 9).segment().unwrap());
        let plain = packet(0, 5).with(|packet| {
            if let Transport::Tcp(segment) = &mut packet.transport {
                segment.timestamps = None;
            }
        });
        assert_eq!(flow.stamped(plain.clone()), plain);
        let mut silent = caching(2, 5);
        silent.learn_clock(packet(0, 9).segment().unwrap());
        assert_eq!(silent.stamped(packet(0, 5)), packet(0, 5), "the receiver has said nothing");
    }

    #[test]
    fn an_overtaken_retransmission_is_renumbered_as_the_latest() {
        let config = SnoopConfig::west97();
        let mut flow = caching(3, 1);
        let numbers = |flow: &Flow| flow.cache.entries().map(|e| e.sent_as).collect::<Vec<u64>>();
        flow.overtaken(Time(5), &config);
        assert_eq!(numbers(&flow), [1, 2, 3], "nothing was retransmitted");
        flow.retransmit(Time(10), &config);
        for i in 3..6 {
            let start = super::super::FIRST + i * 100;
            let sent_as = flow.transmitted(1);
            flow.store([start, start + 100], &packet(i as u32 * 100, 1), sent_as, false);
        }
        assert_eq!(numbers(&flow), [4, 2, 3, 5, 6, 7]);
        flow.overtaken(Time(20), &config);
        assert_eq!(numbers(&flow), [7, 2, 3, 4, 5, 6]);
        assert_eq!((flow.sent, flow.repeated), (7, Time(20)));
        assert_eq!(flow.timer, Some(Time(20) + flow.rtt.timeout(&config)));
        flow.overtaken(Time(30), &config);
        assert_eq!((flow.repeated, numbers(&flow)[0]), (Time(20), 7), "said once");
        // The number of an earlier retransmission does not change.
        flow.retransmit(Time(40), &config);
        let sent_as = flow.transmitted(1);
        let start = super::super::FIRST + 600;
        flow.store([start, start + 100], &packet(600, 1), sent_as, false);
        flow.overtaken(Time(40) + Span(2), &config);
        assert_eq!(numbers(&flow), [9, 2, 3, 4, 5, 6, 8]);
    }
}
