//! Reports between the agent and a data plane about the connections that end here. If the agent is absent for too long, a
//! data plane resets their ends, and forwards the SYNs of other connections.

use super::{Fate, Split, note};
use crate::agent::{BaseStation as _, Bypass, Ending};
use crate::event::AgentNote;
use crate::machine::Out;
use crate::units::Time;
use crate::wire::FlowKey;

impl Split {
    fn ending(&self, flow: FlowKey, is_over: bool) -> Ending {
        Ending { flow, is_over, resumes: self.ends.mtcp.is_some() }
    }

    /// Records a change for the next report, if there are reports.
    pub(super) fn log(&mut self, flow: FlowKey, is_over: bool) {
        let ending = self.ending(flow, is_over);
        if let Some(changes) = &mut self.changes {
            changes.push(ending);
        }
    }

    /// See [`BaseStation::report_endings`](crate::agent::BaseStation::report_endings).
    pub(super) fn report(&mut self, all: bool, each: &mut dyn FnMut(Ending)) {
        if all {
            self.changes = Some(Vec::new());
            for i in self.pairs.watched() {
                each(self.ending(self.pairs.key(i), false));
            }
        } else if let Some(changes) = &mut self.changes {
            changes.drain(..).for_each(&mut *each);
        }
        if let Some(next) = &mut self.successor {
            next.report_endings(all, each);
        }
    }

    /// See [`BaseStation::bypass`](crate::agent::BaseStation::bypass).
    pub(super) fn on_bypass(&mut self, now: Time, flow: FlowKey, bypass: Bypass, out: &mut Out) {
        let found = self.pairs.find(flow);
        match (bypass, found) {
            (Bypass::Passed(seq), _) => self.passed.note(flow, seq),
            (Bypass::Lost, Some(i)) => {
                note(out, flow, AgentNote::Bypassed);
                self.act(i, out, |pair, _, out| {
                    pair.give_up(now, out);
                    Fate::Over
                });
            }
            // A reset from here could end the other connection, which may have the same numbers.
            (Bypass::Reopened, Some(i)) => {
                note(out, flow, AgentNote::Bypassed);
                self.forget(i, out);
            }
            (_, None) => {}
        }
        if let Some(next) = &mut self.successor {
            next.bypass(now, flow, bypass, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::SplitConfig;
    use crate::event::Interest;
    use crate::machine::{Machine as _, Side};
    use crate::tcp::TcpConfig;
    use crate::units::Span;
    use crate::wire::{Addr, Body, Flags, Packet, Segment, Seq};

    fn flow(src_port: u16) -> FlowKey {
        let [src, dst] = [1, 2].map(|n| Addr::v4(10, 0, 0, n));
        FlowKey { src, dst, src_port, dst_port: 80 }
    }

    /// An agent with its inputs and outputs.
    struct Script {
        agent: Split,
        out: Out,
        now: Time,
    }

    impl Script {
        fn new(agent: Split) -> Script {
            Script { agent, out: Out::new(Interest::NOTHING), now: Time::ZERO }
        }

        /// Passes a segment from `from` to the agent. Returns the packets that it sends, with their sides.
        fn put(
            &mut self,
            from: Side,
            flow: FlowKey,
            seq: u32,
            ack: u32,
            flags: Flags,
        ) -> Vec<(Side, Flags, u32)> {
            self.now += Span::millis(1);
            let FlowKey { src, dst, src_port, dst_port } = flow.rightward(from);
            let mut segment = Segment::new(src_port, dst_port, Seq(seq), Seq(ack), flags);
            segment.window = 60_000;
            let packet = Packet::tcp(src, dst, segment, Body::EMPTY);
            self.agent.on_packet(self.now, from, packet, &mut self.out);
            self.sent()
        }

        fn sent(&mut self) -> Vec<(Side, Flags, u32)> {
            let sends = core::mem::take(&mut self.out.sends);
            let read =
                |(side, packet): (Side, Packet)| packet.segment().map(|s| (side, s.flags, s.seq.0));
            sends.into_iter().filter_map(read).collect()
        }

        fn open(&mut self, flow: FlowKey) {
            self.put(Side::Left, flow, 100, 0, Flags::SYN);
            self.put(Side::Right, flow, 700, 101, Flags::SYN | Flags::ACK);
            self.put(Side::Left, flow, 101, 701, Flags::ACK);
        }

        fn bypass(&mut self, flow: FlowKey, bypass: Bypass) -> Vec<(Side, Flags, u32)> {
            self.agent.bypass(self.now, flow, bypass, &mut self.out);
            self.sent()
        }

        fn report(&mut self, all: bool) -> Vec<(u16, bool)> {
            let mut endings = Vec::new();
            self.agent.report_endings(all, &mut |e| endings.push((e.flow.src_port, e.is_over)));
            endings
        }
    }

    fn script() -> Script {
        Script::new(Split::new(&SplitConfig::new(TcpConfig::linux())))
    }

    #[test]
    fn connections_are_reported_when_they_begin_and_when_they_are_over() {
        let mut script = script();
        script.open(flow(1));
        assert_eq!(script.report(false), [], "reports are off");
        assert_eq!(script.report(true), [(1, false)]);
        assert_eq!(script.report(false), []);
        script.put(Side::Right, flow(2), 5, 0, Flags::SYN);
        script.open(flow(3));
        assert_eq!(script.report(false), [(2, false), (3, false)]);
        script.put(Side::Left, flow(1), 101, 701, Flags::RST);
        assert_eq!(script.report(false), [(1, true)]);
        let (now, out) = (script.now, &mut script.out);
        script.agent.reset_endings(now, out);
        assert_eq!(script.report(false), [(2, true), (3, true)]);
        assert_eq!(script.report(true), []);
    }

    #[test]
    fn a_bypassed_syn_is_not_split_when_retransmitted() {
        let mut script = script();
        assert_eq!(script.bypass(flow(1), Bypass::Passed(Seq(100))), []);
        let again = script.put(Side::Left, flow(1), 100, 0, Flags::SYN);
        assert_eq!((again, script.agent.endings()), (vec![(Side::Right, Flags::SYN, 100)], 0));
        // Another number is another connection.
        script.put(Side::Left, flow(1), 101, 0, Flags::SYN);
        assert_eq!(script.agent.endings(), 1);
    }

    #[test]
    fn lost_connections_are_reset_and_reopened_ones_are_not() {
        let mut script = script();
        let resets = |sent: Vec<(Side, Flags, u32)>| -> Vec<Side> {
            let reset = |flags: Flags| flags.has(Flags::RST);
            sent.into_iter().filter(|(_, flags, _)| reset(*flags)).map(|(side, ..)| side).collect()
        };
        for port in 1..=3 {
            script.open(flow(port));
        }
        let sent = script.bypass(flow(1), Bypass::Lost);
        assert_eq!(resets(sent), [Side::Left, Side::Right]);
        assert_eq!(script.bypass(flow(2), Bypass::Reopened), []);
        assert_eq!(script.bypass(flow(9), Bypass::Lost), []);
        assert_eq!((script.agent.endings(), script.report(true)), (1, vec![(3, false)]));
        // Segments between the ends pass.
        let passed = script.put(Side::Left, flow(2), 500, 900, Flags::ACK);
        assert_eq!(passed, [(Side::Right, Flags::ACK, 500)]);
    }
}
