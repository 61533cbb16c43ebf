//! Opening of split connections, and router messages about their paths.

use super::pair::Pair;
use super::passed::is_splittable;
use super::{Split, note};
use crate::agent::BaseStation as _;
use crate::event::{AgentNote, Cause};
use crate::machine::{Out, Side};
use crate::units::Time;
use crate::wire::{Damage, FlowKey, Packet, Segment};

impl Split {
    /// Whether the connection that `syn` opens remains unsplit. `key` is its flow from left to right.
    pub(super) fn is_unsplit(&self, key: FlowKey, syn: &Segment) -> bool {
        self.passed.has(key, syn.seq) || !is_splittable(syn)
    }

    /// Handles two SYNs with different numbers for the pair in slot `i`, without an answer of the far end.
    /// The later one is used until the far end answers the first. A SYN of the far end replaces both if it is
    /// repeated. Returns the slot of the connection's pair, if it is still split.
    pub(super) fn contend(
        &mut self,
        now: Time,
        i: usize,
        from: Side,
        packet: &Packet,
        out: &mut Out,
    ) -> Option<usize> {
        let key = self.pairs.key(i);
        let (pair, segment) = (self.pairs[i].as_deref_mut()?, packet.segment()?);
        let (opener, syn, rival, crossed) = if pair.is_stale(from, segment) {
            let crossed = pair.crossed();
            (from, packet.clone(), pair.take_first(), crossed)
        } else if pair.is_crossed(now, from, segment) {
            (from, packet.clone(), None, None)
        } else if let Some(first) = pair.take_answered(from, segment) {
            (from.other(), first, None, None)
        } else {
            return Some(i);
        };
        self.forget(i, out);
        self.split(now, opener, key, &syn, out);
        let i = self.pairs.find(key)?;
        let pair = self.pairs[i].as_deref_mut()?;
        pair.set_rival(rival);
        pair.set_crossed(crossed);
        Some(i)
    }

    /// Handles a SYN without a split connection: splits it, or lets it pass.
    pub(super) fn on_syn(
        &mut self,
        now: Time,
        from: Side,
        key: FlowKey,
        packet: Packet,
        out: &mut Out,
    ) {
        let Some(syn) = packet.segment() else { return };
        if self.is_unsplit(key, syn) {
            self.passed.note(key, syn.seq);
            out.send(from.other(), packet);
            return;
        }
        if let Err(limit) = self.admit_syn(now, out) {
            note(out, key, limit);
            self.passed.note(key, syn.seq);
            out.send(from.other(), packet);
            return;
        }
        out.end(from.other(), &packet, Cause::SplitTaken);
        self.split(now, from, key, &packet, out);
    }

    /// Splits the connection that `packet` from `from` opens. There must be room.
    fn split(&mut self, now: Time, from: Side, key: FlowKey, packet: &Packet, out: &mut Out) {
        let Some(flow) = packet.flow() else { return };
        let i = self.pairs.insert(key);
        self.log(key, false);
        self.wakes.grow(self.pairs.slots());
        note(out, key, AgentNote::FlowSeen);
        let pair = Pair::open(now, from, flow, packet, &self.ends, out);
        self.memory.promised += self.initial_bytes();
        self.half_open.update(i, None, pair.half_open_until());
        self.wakes.set(i, pair.next_wake());
        self.pairs[i] = Some(Box::new(pair));
        self.peak = self.peak.max(self.state_bytes());
    }

    /// Handles a report of a router beyond `from` that a packet was too large. The message is also forwarded
    /// to the host in whose name the packet was sent, since it may quote the host's own packet.
    pub(super) fn on_path_report(&mut self, now: Time, from: Side, packet: &Packet, out: &mut Out) {
        let Some(report) = packet.too_big().filter(|_| packet.damage == Damage::None) else {
            return;
        };
        let flow = report.quote.flow;
        // The large packet had travelled in that direction.
        let key = flow.rightward(from.other());
        if packet.dst != flow.src {
            return;
        }
        if let Some(i) = self.pairs.find(key) {
            self.act(i, out, |pair, shared, out| {
                pair.shrink(now, from, &report, out);
                pair.settle(now, shared, out)
            });
        }
    }
}
