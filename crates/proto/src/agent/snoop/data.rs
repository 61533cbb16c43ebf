//! Data of the fixed host: caching, and detection of retransmissions and holes (`snoop_data`).

use super::reaction::Change;
use super::{AckpMode, BaseStation as _, Snoop, note};
use crate::event::{AgentNote, Cause};
use crate::machine::{Out, Side};
use crate::units::Time;
use crate::wire::{Ackp, Flags, FlowKey, Packet};

impl Snoop {
    /// Handles a TCP packet from the fixed host.
    pub(super) fn on_data(&mut self, now: Time, packet: Packet, out: &mut Out) {
        let (Some(segment), Some(key)) = (packet.segment(), packet.flow()) else { return };
        let (seq, flags) = (segment.seq, segment.flags);
        let len = segment.seq_len(packet.body.len());
        if flags.has(Flags::RST) {
            if let Some(i) = self.flows.find(key) {
                self.forget(i, out);
            }
        } else if flags.has(Flags::SYN) {
            self.on_syn(now, key, &packet, out);
        } else if len > 0 {
            let i = match self.flows.find(key) {
                Some(i) => i,
                None => self.watch(key, seq, false, out),
            };
            self.flows[i].receiver.expected(segment);
            self.flows[i].learn_clock(segment);
            if let Some(start) = self.flows[i].position(seq) {
                self.keep(now, i, [start, start + u64::from(len)], &packet, out);
            }
            let mimic = (self.ackp == Some(AckpMode::EveryPacket) && !packet.body.is_empty())
                .then(|| self.flows[i].receiver.partial_ack(key, seq + len));
            out.send(Side::Right, packet);
            //= west97#4.2: the first implementation sends one for every packet received, without negotiation
            if let Some(partial) = mimic {
                out.originate(Side::Left, partial, Cause::PartialAck);
            }
            return;
        }
        out.send(Side::Right, packet);
    }

    /// Handles a SYN, with or without ACK, from the fixed host: its data follows this sequence number.
    pub(super) fn on_syn(&mut self, now: Time, key: FlowKey, packet: &Packet, out: &mut Out) {
        let Some(segment) = packet.segment() else { return };
        let i = match self.flows.find(key) {
            // A retransmitted SYN does not restart the flow.
            Some(i) if self.flows[i].is_syn_of(segment.seq) => i,
            Some(i) => {
                self.forget(i, out);
                self.watch(key, segment.seq, true, out)
            }
            None => self.watch(key, segment.seq, true, out),
        };
        let flow = &mut self.flows[i];
        flow.touch(now);
        let past = flow.position(segment.seq + segment.seq_len(packet.body.len()));
        flow.top = flow.top.max(past.unwrap_or(0));
        //= west97#3.2: the option on the sender's SYN permits the base station to send partial ACKs
        flow.partial.permitted = segment.options().ackp == Some(Ackp::Permitted);
        self.peak = self.peak.max(self.state_bytes());
    }

    /// `snoop_data`: caches data at the positions of `span` that is sent over the wireless link.
    fn keep(&mut self, now: Time, i: usize, span: [u64; 2], packet: &Packet, out: &mut Out) {
        let [start, end] = span;
        let key = self.flows.key(i);
        self.observe(now, i, span, packet, out);
        let config = &self.config;
        let flow = &mut self.flows[i];
        flow.touch(now);
        let sent_as = flow.transmitted(packet.pieces());
        if packet.segment().is_some_and(|s| s.flags.has(Flags::FIN)) {
            flow.fin = Some(end);
        }
        if flow.acked.is_some_and(|acked| end <= acked) {
            // The receiver has the data, so its ACK was lost on the way to the sender; it will answer again.
            note(out, key, AgentNote::SenderRetransmission);
            flow.expect_answer();
            self.set_wake(i);
            return;
        }
        let repeated = start < flow.top;
        let by_network = |segment| flow.is_overtaken(start, now, segment, config);
        let overtaken = repeated && packet.segment().is_some_and(by_network);
        if overtaken {
            // Until the link has delivered this packet, duplicate ACKs have other causes.
            flow.rtt.retransmitted(end, config.rtt_fault);
        } else if repeated {
            note(out, key, AgentNote::SenderRetransmission);
            flow.rtt.retransmitted(end, config.rtt_fault);
        } else {
            if start > flow.top {
                note(out, key, AgentNote::CongestionHole);
                if let Some(segment) = packet.segment() {
                    flow.misses(start, now, segment);
                }
            }
            flow.rtt.sent(end, now);
            flow.depth.sent(now, end);
        }
        flow.top = flow.top.max(end);

        let before = flow.cache.bytes();
        if repeated && flow.store_again(span, packet, sent_as) {
            // Already cached; the copy's headers were updated.
        } else if flow.is_alone() {
            // The flow is ignored, so its packets are not cached.
        } else if flow.cache.len() >= config.flow_packets
            || !self.make_room(i, packet.wire_len().into(), out)
        {
            note(out, key, AgentNote::CacheEvicted);
        } else {
            // The sender expects the duplicate ACKs of its retransmission.
            self.flows[i].store(span, packet, sent_as, repeated && !overtaken);
        }
        let flow = &mut self.flows[i];
        self.cached = self.cached + flow.cache.bytes() - before;
        if repeated && flow.cache.front().is_some_and(|first| first.start == start) {
            flow.restart(now, &self.config);
        } else if !flow.cache.is_empty() {
            flow.arm(now, &self.config);
        }
        self.set_wake(i);
        self.peak = self.peak.max(self.state_bytes());
    }

    /// Observes the sender's reaction to losses in the data at the positions of `span`.
    fn observe(&mut self, now: Time, i: usize, span: [u64; 2], packet: &Packet, out: &mut Out) {
        if !self.config.leave_loss_tolerant && !self.config.show_congestion {
            return;
        }
        let change = self.flows[i].observe(now, span, packet, &self.config);
        let Some(change) = change else { return };
        let flow = &mut self.flows[i];
        let news = match change {
            Change::Tests => AgentNote::LossLeft,
            Change::LeavesAlone => {
                self.cached -= flow.cache.bytes();
                flow.cache.clear();
                AgentNote::FlowLeftAlone
            }
            Change::Repairs => AgentNote::FlowRepaired,
        };
        note(out, self.flows.key(i), news);
    }
}
