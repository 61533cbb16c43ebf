//! Which connections are split, and what routers say of their paths.

use super::Split;
use super::pair::Pair;
use super::passed::is_splittable;
use crate::agent::BaseStation as _;
use crate::event::{AgentNote, Cause};
use crate::machine::{Out, Side};
use crate::units::Time;
use crate::wire::{Damage, FlowKey, Packet};

impl Split {
    /// Two SYNs with different numbers came for the pair in slot `i`, and the far end has answered neither: the later one
    /// counts until the far end answers the first. Where the pair of the connection is then, if it is split still.
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
        let (opener, syn, rival) = if pair.is_stale(from, segment) {
            (from, packet.clone(), pair.take_first())
        } else if let Some(first) = pair.take_answered(from, segment) {
            (from.other(), first, None)
        } else {
            return Some(i);
        };
        self.forget(i, out);
        self.split(now, opener, key, &syn, out);
        let i = self.pairs.find(key)?;
        self.pairs[i].as_deref_mut()?.set_rival(rival);
        Some(i)
    }

    /// A SYN for no connection that is split: splits it, or lets it pass.
    pub(super) fn on_syn(
        &mut self,
        now: Time,
        from: Side,
        key: FlowKey,
        packet: Packet,
        out: &mut Out,
    ) {
        let Some(syn) = packet.segment() else { return };
        if self.passed.has(key, syn.seq) || !is_splittable(syn) {
            self.passed.note(key, syn.seq);
            out.send(from.other(), packet);
            return;
        }
        if !self.has_room(now, 2 * u64::from(self.ends.buffer), out) {
            self.note(key, AgentNote::NoRoom, out);
            self.passed.note(key, syn.seq);
            out.send(from.other(), packet);
            return;
        }
        out.end(from.other(), &packet, Cause::SplitTaken);
        self.split(now, from, key, &packet, out);
    }

    /// Begins to split the connection that `packet` from `from` opens. There is room.
    fn split(&mut self, now: Time, from: Side, key: FlowKey, packet: &Packet, out: &mut Out) {
        let Some(flow) = packet.flow() else { return };
        let i = self.pairs.insert(key);
        self.log(key, false);
        self.wakes.grow(self.pairs.slots());
        self.note(key, AgentNote::FlowSeen, out);
        let pair = Pair::open(now, from, flow, packet, &self.ends, out);
        self.memory.promised += 2 * u64::from(self.ends.buffer);
        self.wakes.set(i, pair.next_wake());
        self.pairs[i] = Some(Box::new(pair));
        self.peak = self.peak.max(self.state_bytes());
    }

    /// A router beyond `from` may report that a packet of ours was too large. The message goes on to the host in whose
    /// name the packet was: what it quotes may be the host's own as well.
    pub(super) fn hear_of_path(&mut self, now: Time, from: Side, packet: &Packet, out: &mut Out) {
        let Some(report) = packet.too_big().filter(|_| packet.damage == Damage::None) else {
            return;
        };
        let flow = report.quote.flow;
        // What was too large had gone that way.
        let key = if from == Side::Right { flow } else { flow.reversed() };
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
