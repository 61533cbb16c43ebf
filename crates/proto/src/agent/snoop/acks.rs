//! ACKs of the mobile host: local retransmission, and suppression of duplicate ACKs (`snoop_ack`).

use super::flow::Verdict;
use super::{DupAcks, Snoop, note};
use crate::agent::receiver::WindowNews;
use crate::event::{AgentNote, Cause};
use crate::machine::{Out, Side};
use crate::units::Time;
use crate::wire::{Flags, Packet};

impl Snoop {
    /// Handles a TCP packet from the mobile host. Forwards it unless `snoop_ack` suppresses it.
    pub(super) fn on_ack(&mut self, now: Time, packet: Packet, out: &mut Out) {
        let (Some(segment), Some(key)) = (packet.segment(), packet.flow()) else { return };
        let key = key.reversed();
        let mut verdict = None;
        if let Some(i) = self.flows.find(key) {
            if segment.flags.has(Flags::RST) {
                self.forget(i, out);
            } else if segment.flags.has(Flags::ACK) {
                verdict = self.judge(now, i, &packet, out);
            }
        }
        match verdict {
            None => {
                let packet = self.without_blocks(key, packet, out);
                out.send(Side::Left, packet);
            }
            Some(cause) => out.discard(Side::Left, packet, cause),
        }
    }

    /// `snoop_ack`: handles an ACK for flow `i`. Returns the cause if it must not reach the sender.
    fn judge(&mut self, now: Time, i: usize, packet: &Packet, out: &mut Out) -> Option<Cause> {
        let segment = packet.segment()?;
        let key = self.flows.key(i);
        let flow = &mut self.flows[i];
        let ack = flow.position(segment.ack)?;
        if flow.complete && ack > flow.top {
            // The acknowledged data has not passed here, so this packet is not from the receiver.
            return None;
        }
        flow.touch(now);
        let pure = segment.seq_len(packet.body.len()) == 0;
        let acked = flow.last_ack();
        if segment.flags.has(Flags::ECE) {
            flow.loss_visible();
        }
        if ack < acked {
            return (pure && !flow.leaves()).then_some(Cause::SpuriousAck);
        }
        if flow.cache.has_supers() && (self.config.selective || pure && ack == acked) {
            self.cached -= flow.cache.bytes();
            flow.cut(self.config.selective);
            self.cached += flow.cache.bytes();
        }
        let reported = self.config.selective && flow.record_sack(now, segment);
        let window = flow.receiver.compare_window(segment);
        let was_shut = flow.is_shut();
        flow.receiver.sent(segment, packet.body.len());
        let repeats = ack == acked && pure && window == WindowNews::Same;
        let shows_loss = !was_shut && (reported || repeats);
        if shows_loss && self.config.show_congestion && flow.meets_congestion(reported) {
            note(out, key, AgentNote::LossLeft);
        }
        let mut hidden = None;
        if ack > acked {
            let before = flow.cache.bytes();
            let repaired = flow.repaired().filter(|_| self.config.burst_check);
            if let Some(rtt) = flow.advance(ack, now, &self.config) {
                note(out, self.flows.key(i), AgentNote::LocalRtt { rtt });
            }
            let flow = &self.flows[i];
            self.cached -= before - flow.cache.bytes();
            if flow.fin.is_some_and(|fin| fin <= ack) {
                self.forget(i, out);
                return None;
            }
            self.repeat_moved(now, i, out);
            let flow = &self.flows[i];
            if flow.exposes_burst(repaired) && !flow.is_shut() && !flow.leaves() {
                self.retransmit(now, i, Cause::LocalBurstCheck, out);
            }
        } else if flow.leaves() {
            // Losses are left to the sender.
        } else if pure && window != WindowNews::Changed && !flow.is_shut() {
            // A window update is not a duplicate ACK.
            let verdict = match window {
                WindowNews::Overtaken if flow.repairs(&self.config) => Verdict::Suppress,
                WindowNews::Overtaken => Verdict::Forward,
                _ => flow.duplicate(now, reported, &self.config),
            };
            if verdict == Verdict::Retransmit {
                self.retransmit(now, i, Cause::LocalDupAck, out);
            }
            let hides = self.config.dup_acks == DupAcks::Suppress;
            if !hides || verdict == Verdict::Forward {
                self.flows[i].loss_visible();
            }
            hidden = (hides && verdict != Verdict::Forward).then_some(Cause::SuppressedDupAck);
        } else if was_shut {
            // The timers were stopped. Segments sent into the closed window may have been dropped.
            flow.restart(now, &self.config);
        }
        if reported && !self.flows[i].is_shut() && !self.flows[i].leaves() {
            while let Some(packet) = self.flows[i].repair(now, &self.config) {
                out.originate(Side::Right, packet, Cause::LocalDupAck);
            }
        }
        self.set_wake(i);
        hidden
    }
}
