//! Snoop for both directions: local retransmission towards the mobile host, and negative acknowledgements for
//! data from the mobile host (balakrishnan97 2; west97 2.6).
//!
//! The base station cannot retransmit data that it never received. It records which bytes of the mobile host
//! have arrived over the air. At the first packet behind a hole it reports the hole to the mobile host: an
//! ACK in the receiver's name, with the missing ranges in an option. A mobile host that offered the option on
//! its SYN retransmits them at once without reducing its window ([`crate::tcp::sender::Sender::on_nack`]).
//! The acknowledgement number is the receiver's last one, so the message acknowledges only data that has
//! arrived there.
//!
//! The papers name the mechanism and its basis in selective acknowledgements. The choices here:
//!
//! - The mobile host sends in order, and the air preserves the order. A hole is reported again after later
//!   requested data has arrived, or after a local timeout. The timeout follows snoop's rule, with the time
//!   from a report to the arrival of the data.
//! - A hole is left to TCP if its first byte passed before the base station saw the connection, or if it
//!   cannot be stored. So is one that was reported `max_retransmits` times.
//! - Duplicate ACKs of the fixed host pass, since the sender has a record of the requested segments.

mod travel;

use core::mem::size_of;

use serde::Serialize;

use super::admit::admit;
use super::flows::Flows;
use super::guard::Standing;
use super::receiver::Receiver;
use super::snoop::rtt::Rtt;
use super::{AgentConfig, BaseStation, Config, Ends, Idle, Read, Snoop, SnoopConfig, note};
use crate::describe::{Descriptor, Kind, System};
use crate::event::{AgentNote, Cause};
use crate::machine::{Machine, Out, Side, Signal};
use crate::tcp::Variant;
use crate::units::{Span, Time};
use crate::wake::WakeTree;
use crate::wire::{Flags, FlowKey, Nack, Packet, SackBlocks, Seq};

/// Snoop with negative acknowledgements for data from the mobile host.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct NackAgent {
    /// Caching and retransmission; timers and limits of both directions.
    pub snoop: SnoopConfig,
}

impl Config for NackAgent {
    const WORDS: &'static [Descriptor<Read>] = &[Descriptor {
        word: "snoop-nack",
        system: System::new(
            Kind::Agent,
            "snoop-nack",
            "path: agent = \"snoop-nack\"; host: nack",
            "for data from the mobile host: the base station requests packets that the radio lost",
            "balakrishnan97 2, west97 2.6",
        ),
        read: |k| {
            AgentConfig::SnoopNack(NackAgent { snoop: SnoopConfig::keys(k, SnoopConfig::west97()) })
        },
    }];
    type Agent = SnoopNack;

    fn agent(&self) -> SnoopNack {
        SnoopNack::new(self.snoop.clone())
    }

    /// Negative acknowledgements need a sender on the wireless side that offers and processes them.
    fn idle(&self, ends: &Ends<'_>) -> Option<Idle> {
        let (name, sender) = ends.from;
        let label = "the same as `snoop` for this sender";
        if ends.rightwards {
            None
        } else if !sender.nack {
            let message = format!(
                "`snoop-nack` sends no negative acknowledgements to `{name}`, which does not offer them"
            );
            let help = format!("write `nack = true` in `[host.{name}]`");
            Some(Idle { message, label, help })
        } else if sender.variant == Variant::Rack {
            let message = format!(
                "`{name}` finds losses by time (RACK) and does not act on negative acknowledgements"
            );
            let help = format!("choose `tcp = \"sack\"` in `[host.{name}]`, for example");
            Some(Idle { message, label, help })
        } else {
            None
        }
    }

    fn helps_both_ways(&self) -> bool {
        true
    }
}

/// Position of the SYN, with room below, as in snoop.
const FIRST: u64 = 1 << 32;
/// Limit of stored holes per flow; more are left to the sender's own mechanisms.
const HOLES: usize = 32;
/// Limit of holes per message, by the option space with timestamps.
const NAMED: usize = 3;

/// Missing bytes with later bytes received.
#[derive(Clone, Copy, Debug)]
struct Hole {
    start: u64,
    end: u64,
    /// Number of the flow's request that reported it last, from 1; 0 if none has.
    last_request: u64,
    /// Number of reports.
    reports: u32,
}

/// A flow of data from the mobile host, whose SYN permitted negative acknowledgements.
#[derive(Clone, Debug, Default)]
pub(super) struct Flow {
    origin: Seq,
    /// Position past the highest received byte.
    top: u64,
    /// Position of the receiver's last ACK.
    acked: Option<u64>,
    fin: Option<u64>,
    receiver: Receiver,
    /// Ordered and disjoint.
    holes: Vec<Hole>,
    requests: u64,
    rtt: Rtt,
    due: Option<Time>,
}

impl Flow {
    fn open(&mut self, first: Seq) {
        let mut holes = core::mem::take(&mut self.holes);
        holes.clear();
        *self = Flow { origin: first, top: FIRST + 1, holes, ..Flow::default() };
    }

    fn position(&self, seq: Seq) -> Option<u64> {
        seq.unwrap_near(self.origin, self.top)
    }

    /// Records the arrival of the bytes from `start` to `end`. Returns the latest request that they answer.
    fn came(&mut self, start: u64, end: u64) -> u64 {
        let mut answered = 0;
        if start > self.top && self.holes.len() < HOLES {
            self.holes.push(Hole { start: self.top, end: start, last_request: 0, reports: 0 });
        }
        self.top = self.top.max(end);
        let mut i = 0;
        while i < self.holes.len() {
            let hole = self.holes[i];
            if hole.end <= start || end <= hole.start {
                i += 1;
                continue;
            }
            answered = answered.max(hole.last_request);
            let before = (hole.start < start).then_some(Hole { end: start, ..hole });
            let after = (end < hole.end).then_some(Hole { start: end, ..hole });
            let left = before.into_iter().chain(after);
            let count = usize::from(before.is_some()) + usize::from(after.is_some());
            self.holes.splice(i..=i, left);
            i += count;
        }
        self.holes.truncate(HOLES);
        answered
    }

    /// Reports the holes for which `selected` is true. Returns the message to the mobile host.
    fn build_request(
        &mut self,
        now: Time,
        key: FlowKey,
        config: &SnoopConfig,
        selected: impl Fn(&Hole) -> bool,
    ) -> Option<Packet> {
        let acked = self.acked?;
        let (mut named, mut again) = (SackBlocks::default(), false);
        let number = self.requests + 1;
        let (origin, most) = (self.origin, config.max_retransmits);
        let seq = |position: u64| origin + position as u32;
        for hole in self.holes.iter_mut().filter(|h| h.reports <= most && selected(h)).take(NAMED) {
            again |= hole.reports > 0;
            hole.reports += 1;
            hole.last_request = number;
            named.push(seq(hole.start), seq(hole.end));
        }
        if named.is_empty() {
            return None;
        }
        self.requests = number;
        match again {
            true => self.rtt.retransmitted(number, false),
            false => self.rtt.sent(number, now),
        }
        self.due = Some(now + self.rtt.timeout(config).max(Span::millis(1)));
        Some(self.receiver.negative_ack(key, seq(acked), named))
    }
}

/// The agent for both directions.
#[derive(Clone, Debug)]
pub struct SnoopNack {
    pub(super) snoop: Snoop,
    config: SnoopConfig,
    /// By the flow from the mobile host to the fixed host.
    flows: Flows<Flow>,
    wakes: WakeTree,
    peak: usize,
}

impl SnoopNack {
    /// An agent without flows. Timers, limits and tables are snoop's, for each direction.
    pub fn new(config: SnoopConfig) -> SnoopNack {
        SnoopNack {
            flows: Flows::new(config.flows),
            snoop: Snoop::new(config.clone(), None),
            config,
            wakes: WakeTree::new(1),
            peak: 0,
        }
    }

    /// Cached bytes of data to the mobile host.
    pub fn cached_bytes(&self) -> u64 {
        self.snoop.cached_bytes()
    }

    fn forget(&mut self, i: usize, out: &mut Out) {
        note(out, self.flows.key(i), AgentNote::FlowForgotten);
        self.flows.remove(i);
        self.wakes.set(i, None);
    }

    /// Handles a SYN of the mobile host, with or without ACK.
    fn on_syn(&mut self, key: FlowKey, seq: Seq, permitted: bool, out: &mut Out) {
        if let Some(i) = self.flows.find(key) {
            if self.flows[i].origin == seq && permitted {
                return;
            }
            self.forget(i, out);
        }
        if !permitted {
            return;
        }
        let i = self.watch(key, out);
        self.flows[i].open(seq);
    }

    /// A slot for the flow of `key`.
    fn watch(&mut self, key: FlowKey, out: &mut Out) -> usize {
        if let Some(oldest) = self.flows.evictee() {
            self.forget(oldest, out);
        }
        let i = self.flows.insert(key);
        self.wakes.grow(self.flows.slots());
        note(out, key, AgentNote::FlowSeen);
        i
    }

    /// Learns about the mobile host's data from a packet.
    fn see(&mut self, now: Time, from: Side, packet: &Packet, standing: &Standing, out: &mut Out) {
        let from_mobile = from == Side::Right;
        match standing {
            Standing::Doubtful => return,
            Standing::Old if !from_mobile => return,
            Standing::Good | Standing::Old => {}
            Standing::Lost | Standing::Reopened(_) => {
                let key =
                    packet.flow().map(|flow| if from_mobile { flow } else { flow.reversed() });
                if let Some(i) = key.and_then(|key| self.flows.find(key)) {
                    self.forget(i, out);
                }
                match standing {
                    Standing::Reopened(syn) if !from_mobile => self.see_data(now, syn, out),
                    Standing::Reopened(_) => {}
                    _ => return,
                }
            }
        }
        match from_mobile {
            true => self.see_data(now, packet, out),
            false => self.see_ack(packet, out),
        }
    }

    /// Handles an undamaged packet of the mobile host.
    fn see_data(&mut self, now: Time, packet: &Packet, out: &mut Out) {
        let (Some(segment), Some(key)) = (packet.segment(), packet.flow()) else { return };
        if segment.flags.has(Flags::SYN) && !segment.flags.has(Flags::RST) {
            let permitted = segment.options().nack == Some(Nack::Permitted);
            self.on_syn(key, segment.seq, permitted, out);
            return;
        }
        let Some(i) = self.flows.find(key) else { return };
        if segment.flags.has(Flags::RST) {
            self.forget(i, out);
            return;
        }
        let len = u64::from(segment.seq_len(packet.body.len()));
        let flow = &mut self.flows[i];
        flow.receiver.expected(segment);
        let Some(start) = flow.position(segment.seq).filter(|_| len > 0) else { return };
        if segment.flags.has(Flags::FIN) {
            flow.fin = Some(start + len);
        }
        let answered = flow.came(start, start + len);
        if answered > 0
            && let Some(rtt) = flow.rtt.acked(answered, now)
        {
            note(out, key, AgentNote::LocalRtt { rtt });
        }
        // New holes, and holes that were requested before the newly arrived data.
        self.send_request(now, i, |hole| hole.last_request < answered || hole.reports == 0, out);
        let flow = &mut self.flows[i];
        if flow.holes.is_empty() {
            flow.due = None;
        }
        self.wakes.set(i, flow.due);
    }

    /// Handles a packet of the fixed host: acknowledged data needs no further tracking.
    fn see_ack(&mut self, packet: &Packet, out: &mut Out) {
        let (Some(segment), Some(key)) = (packet.segment(), packet.flow()) else { return };
        let Some(i) = self.flows.find(key.reversed()) else { return };
        if segment.flags.has(Flags::RST) {
            self.forget(i, out);
            return;
        }
        if !segment.flags.has(Flags::ACK) {
            return;
        }
        let flow = &mut self.flows[i];
        flow.receiver.sent(segment, packet.body.len());
        let ack = flow.position(segment.ack);
        let Some(ack) = ack.filter(|ack| *ack > flow.acked.unwrap_or(0)) else { return };
        flow.acked = Some(ack);
        flow.top = flow.top.max(ack);
        flow.holes.retain(|hole| hole.end > ack);
        if let Some(first) = flow.holes.first_mut() {
            first.start = first.start.max(ack);
        }
        if flow.holes.is_empty() {
            flow.due = None;
        }
        self.wakes.set(i, flow.due);
        if self.flows[i].fin.is_some_and(|fin| fin <= ack) {
            self.forget(i, out);
        }
    }

    fn send_request(
        &mut self,
        now: Time,
        i: usize,
        selected: impl Fn(&Hole) -> bool,
        out: &mut Out,
    ) -> bool {
        let key = self.flows.key(i);
        let message = self.flows[i].build_request(now, key, &self.config, selected);
        let sent = message.is_some();
        if let Some(message) = message {
            out.originate(Side::Right, message, Cause::LossNotification);
        }
        sent
    }
}

impl BaseStation for SnoopNack {
    /// Number of tracked flows in the direction with more of them.
    fn flows(&self) -> usize {
        self.snoop.flows().max(self.flows.len())
    }

    /// Bytes of state: those of snoop, and a control block with its holes for each flow from the mobile host.
    fn state_bytes(&self) -> usize {
        self.snoop.state_bytes()
            + self.flows.len() * (size_of::<Flow>() + HOLES * size_of::<Hole>())
    }

    /// Maximum of [`SnoopNack::state_bytes`] so far.
    fn peak_state_bytes(&self) -> usize {
        self.peak.max(self.snoop.peak_state_bytes())
    }

    fn overtaken(&mut self, now: Time, flow: FlowKey) {
        self.snoop.overtaken(now, flow);
    }
}

impl Machine for SnoopNack {
    fn check(&self) {
        self.snoop.check();
        self.flows.check();
        let Some(newest) = self.flows.newest() else { return };
        let flow = &self.flows[newest];
        debug_assert!(flow.holes.iter().all(|hole| hole.start < hole.end), "an empty hole");
        debug_assert!(
            flow.holes.is_sorted_by(|a, b| a.end <= b.start),
            "holes are ordered and disjoint"
        );
        debug_assert!(
            flow.holes.last().is_none_or(|hole| hole.end <= flow.top),
            "a hole above the received data"
        );
        debug_assert!(
            flow.holes.iter().all(|hole| hole.last_request <= flow.requests),
            "a request that was never sent"
        );
    }

    fn on_packet(&mut self, now: Time, from: Side, packet: Packet, out: &mut Out) {
        let Some(packet) = admit(from, packet, out) else { return };
        let standing = self.snoop.standing(now, from, &packet);
        self.see(now, from, &packet, &standing, out);
        self.snoop.on_judged(now, from, packet, standing, out);
        self.peak = self.peak.max(self.state_bytes());
    }

    fn on_signal(&mut self, now: Time, from: Side, signal: Signal, out: &mut Out) {
        self.snoop.on_signal(now, from, signal, out);
    }

    fn on_wake(&mut self, now: Time, out: &mut Out) {
        while let Some((_, i)) = self.wakes.first().filter(|(at, _)| *at <= now) {
            self.flows[i].due = None;
            self.send_request(now, i, |_| true, out);
            let due = self.flows[i].due;
            self.wakes.set(i, due);
            out.require_later(&mut self.wakes, i, now);
        }
        self.snoop.on_wake(now, out);
    }

    fn next_wake(&self) -> Option<Time> {
        let own = self.wakes.first().map(|(at, _)| at);
        [own, self.snoop.next_wake()].into_iter().flatten().min()
    }
}
