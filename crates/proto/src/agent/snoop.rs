//! Snoop: the base station caches data on its way to the mobile host, retransmits losses of the wireless
//! link, and hides them from the sender (balakrishnan97 2; west97 2.6; parsa98 4).
//!
//! Modelled as published, for data from the fixed to the mobile host:
//!
//! - data: cached and forwarded. A packet beyond a hole shows a loss before the base station. A
//!   retransmission by the sender is recognised, and the ACKs that it causes are not hidden from the sender;
//! - ACKs: a new one frees the cache and may complete a round-trip sample; an old one is dropped. If the
//!   packet is cached, a duplicate is suppressed and causes a local retransmission; otherwise it is
//!   forwarded;
//! - a local retransmission timer, and a persist timer for a silent flow.
//!
//! Choices where descriptions of snoop differ: acknowledged bytes that the sender repeats are forwarded, and
//! so is the receiver's answer (the first description forges that ACK instead). With a full cache, newer
//! packets pass uncached, since the oldest packet is the next one that may have to be retransmitted. Data
//! may fill a hole before the sender can have detected the hole. This data was overtaken on its way and is
//! no retransmission, so its loss is repaired here. While the receiver's window is closed, timers stop and
//! duplicate ACKs pass, since they answer the sender's window probes.
//!
//! With partial acknowledgements (west97 3) the agent also notifies the sender of delays of the link; see
//! `ackp.rs`. With selective acknowledgements it has a list of the missing packets; see `snoop_smart.rs`.
//! Without suppression of duplicate ACKs it is the LL of balakrishnan97 3.1.1, a link layer that uses TCP's
//! acknowledgements without their semantics.

mod acks;
mod blocks;
pub(super) mod cache;
pub(super) mod config;
mod data;
mod depth;
pub(super) mod flow;
mod moving;
mod reaction;
pub(super) mod rtt;
mod timeout;

use core::mem::size_of;

use super::admit::admit;
use super::flows::Flows;
use super::guard::{Guard, Standing};
use super::receiver::is_partial;
use super::{
    AgentConfig, BaseStation, Config, Ends, Idle, Read, StoredSegment, ackp, note, snoop_smart,
};
use crate::describe::{Descriptor, Kind, Needs, System};
use crate::event::{AgentNote, Cause};
use crate::machine::{Machine, Out, Side, Signal};
use crate::units::Time;
use crate::wake::WakeTree;
use crate::wire::{Damage, FlowKey, Packet, Seq};
use cache::Entry;
pub use config::{AckpMode, DupAcks, SnoopAgent, SnoopConfig};
use flow::Flow;
pub use timeout::TimeoutRule;

impl Config for SnoopAgent {
    const WORDS: &'static [Descriptor<Read>] = &[
        Descriptor {
            word: "snoop",
            system: System::new(
                Kind::Agent,
                "snoop",
                "path: agent = \"snoop\"",
                "caches data, retransmits locally on duplicate ACKs and short timeouts, \
                 and hides them from the sender",
                "balakrishnan97 2, west97 2.6, parsa98 4",
            )
            .needs(Needs::Duplicates),
            read: |k| {
                let snoop = SnoopConfig::keys(k, SnoopConfig::west97());
                AgentConfig::Snoop(SnoopAgent { snoop, ackp: None })
            },
        },
        ackp::WORD,
        snoop_smart::WORD,
    ];
    type Agent = Snoop;

    fn agent(&self) -> Snoop {
        Snoop::new(self.snoop.clone(), self.ackp)
    }

    fn word(&self) -> &'static str {
        match self.ackp {
            _ if self.snoop.selective => "snoop-smart",
            Some(_) => "snoop+ackp",
            None => "snoop",
        }
    }

    fn idle(&self, ends: &Ends<'_>) -> Option<Idle> {
        match self.ackp {
            _ if self.snoop.selective => snoop_smart::idle(ends),
            Some(_) => ackp::idle(ends),
            None => None,
        }
    }
}

/// The snoop agent, optionally with partial acknowledgements.
#[derive(Clone, Debug)]
pub struct Snoop {
    config: SnoopConfig,
    ackp: Option<AckpMode>,
    guard: Guard,
    flows: Flows<Flow>,
    wakes: WakeTree,
    /// Cached bytes of all flows.
    cached: u64,
    peak: usize,
}

impl Snoop {
    /// An agent without flows.
    pub fn new(config: SnoopConfig, ackp: Option<AckpMode>) -> Snoop {
        let (flows, guard) = (Flows::new(config.flows), Guard::new(config.flows));
        Snoop { config, ackp, guard, flows, wakes: WakeTree::new(1), cached: 0, peak: 0 }
    }

    /// Cached bytes: headers and payload.
    pub fn cached_bytes(&self) -> u64 {
        self.cached
    }

    fn forget(&mut self, i: usize, out: &mut Out) {
        note(out, self.flows.key(i), AgentNote::FlowForgotten);
        self.cached -= self.flows[i].cache.bytes();
        self.flows[i].open(Seq(0), false);
        self.flows.remove(i);
        self.wakes.set(i, None);
    }

    fn watch(&mut self, key: FlowKey, first: Seq, syn: bool, out: &mut Out) -> usize {
        if let Some(oldest) = self.flows.evictee() {
            self.forget(oldest, out);
        }
        let i = self.flows.insert(key);
        self.wakes.grow(self.flows.slots());
        self.flows[i].open(first, syn);
        note(out, key, AgentNote::FlowSeen);
        i
    }

    /// Makes room for `bytes` bytes of flow `i` by evicting less recently used flows.
    fn make_room(&mut self, i: usize, bytes: u64, out: &mut Out) -> bool {
        if bytes > self.config.cache.0 {
            return false;
        }
        while self.cached + bytes > self.config.cache.0 {
            match self.flows.oldest() {
                Some(oldest) if oldest != i => self.forget(oldest, out),
                _ => return false,
            }
        }
        true
    }

    fn set_wake(&mut self, i: usize) {
        self.wakes.set(i, self.flows[i].wake(&self.config));
    }

    /// Relation of a packet to its connection.
    pub(super) fn standing(&mut self, now: Time, from: Side, packet: &Packet) -> Standing {
        let is_partial = from == Side::Right && is_partial(packet);
        match packet.damage == Damage::Tcp || is_partial {
            true => Standing::Doubtful,
            false => self.guard.judge(now, from, packet),
        }
    }

    /// Handles a packet with an intact IP header and the given relation to its connection.
    pub(super) fn on_judged(
        &mut self,
        now: Time,
        from: Side,
        packet: Packet,
        standing: Standing,
        out: &mut Out,
    ) {
        match (standing, from) {
            (Standing::Good | Standing::Old, Side::Left) => return self.on_data(now, packet, out),
            (Standing::Good, Side::Right) => return self.on_ack(now, packet, out),
            (Standing::Doubtful | Standing::Old, _) => {}
            (Standing::Lost, _) => self.renew(now, from, &packet, None, out),
            (Standing::Reopened(syn), _) => {
                self.renew(now, from, &packet, Some(&syn), out);
                return self.on_judged(now, from, packet, Standing::Good, out);
            }
        }
        out.send(from.other(), packet);
    }

    /// Restarts the state of the connection of `packet`: it was wrong, or `syn` has begun another connection.
    fn renew(
        &mut self,
        now: Time,
        from: Side,
        packet: &Packet,
        syn: Option<&Packet>,
        out: &mut Out,
    ) {
        let Some(flow) = packet.flow() else { return };
        let key = flow.rightward(from);
        if let Some(i) = self.flows.find(key) {
            self.forget(i, out);
        }
        if let Some(syn) = syn.filter(|syn| syn.flow() == Some(key)) {
            self.on_syn(now, key, syn, out);
        }
    }

    fn retransmit(&mut self, now: Time, i: usize, cause: Cause, out: &mut Out) {
        if let Some(packet) = self.flows[i].retransmit(now, &self.config) {
            out.originate(Side::Right, packet, cause);
        }
    }

    /// Handles a timer of flow `i` that has expired, unless a later packet has moved it.
    fn expire(&mut self, now: Time, i: usize, out: &mut Out) {
        if self.flows[i].wake(&self.config).is_none_or(|at| at > now) {
            self.set_wake(i);
            return;
        }
        let flow = &mut self.flows[i];
        if flow.cache.has_supers() {
            self.cached -= flow.cache.bytes();
            flow.cut(false);
            self.cached += flow.cache.bytes();
        }
        let cause =
            if self.flows[i].timed_out(now) { Cause::LocalTimeout } else { Cause::LocalPersist };
        self.retransmit(now, i, cause, out);
        if self.ackp == Some(AckpMode::Full) {
            let key = self.flows.key(i);
            let flow = &mut self.flows[i];
            if let Some(acked) = flow.unacknowledged()
                && let Some(ack) = flow.partial.due(acked, flow.cache.contiguous(acked))
            {
                let partial = flow.receiver.partial_ack(key, flow.seq(ack));
                out.originate(Side::Left, partial, Cause::PartialAck);
            }
        }
        self.set_wake(i);
    }
}

impl BaseStation for Snoop {
    /// Flows watched now.
    fn flows(&self) -> usize {
        self.flows.len()
    }

    /// Bytes of state: a control block per flow, and headers and payload of each cached packet.
    fn state_bytes(&self) -> usize {
        self.flows.len() * size_of::<Flow>() + self.cached as usize
    }

    /// Maximum of [`Snoop::state_bytes`] so far.
    fn peak_state_bytes(&self) -> usize {
        self.peak
    }

    fn stored_segments(&self, each: &mut dyn FnMut(StoredSegment)) {
        for i in self.flows.watched() {
            self.flows[i].cache.entries().filter_map(Entry::stored_segment).for_each(&mut *each);
        }
    }

    fn overtaken(&mut self, now: Time, flow: FlowKey) {
        if let Some(i) = self.flows.find(flow) {
            self.flows[i].overtaken(now, &self.config);
            self.set_wake(i);
        }
    }

    fn forget_held(&mut self, place: u64, out: &mut Out) -> u64 {
        let mut gone = 0;
        for i in 0..self.flows.slots() {
            let bytes = self.flows[i].cache.forget_held(place);
            if bytes > 0 {
                gone += bytes;
                note(out, self.flows.key(i), AgentNote::CacheEvicted);
                self.set_wake(i);
            }
        }
        self.cached -= gone;
        gone
    }
}

impl Machine for Snoop {
    fn check(&self) {
        self.flows.check();
        self.guard.check();
        debug_assert!(
            self.cached <= self.config.cache.0,
            "cached {} of {} bytes",
            self.cached,
            self.config.cache
        );
        if let Some(newest) = self.flows.newest() {
            let flow = &self.flows[newest];
            flow.check();
            debug_assert!(flow.cache.bytes() <= self.cached, "bytes of a flow");
            debug_assert!(
                flow.cache.len() <= self.config.flow_packets,
                "limit of cached packets of a flow"
            );
        }
    }

    fn on_packet(&mut self, now: Time, from: Side, packet: Packet, out: &mut Out) {
        let Some(packet) = admit(from, packet, out) else { return };
        let standing = self.standing(now, from, &packet);
        self.on_judged(now, from, packet, standing, out);
    }

    fn on_signal(&mut self, now: Time, from: Side, signal: Signal, out: &mut Out) {
        if let (Signal::Departing { flow, end }, Side::Right, true) =
            (signal, from, self.config.from_departure)
            && let Some(i) = self.flows.find(flow)
            && let Some(end) = self.flows[i].position(end)
        {
            self.flows[i].departs(end, now, &self.config);
            self.set_wake(i);
        }
        out.signal(from.other(), signal);
    }

    fn on_wake(&mut self, now: Time, out: &mut Out) {
        while let Some((_, i)) = self.wakes.first().filter(|(at, _)| *at <= now) {
            self.expire(now, i, out);
            out.require_later(&mut self.wakes, i, now);
        }
    }

    fn next_wake(&self) -> Option<Time> {
        self.wakes.first().map(|(at, _)| at)
    }
}
