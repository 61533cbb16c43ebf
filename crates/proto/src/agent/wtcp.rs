//! WTCP: the base station repairs losses of the wireless link, and hides the time of the repair from the sender's round
//! trips (K. Ratnam and I. Matta, "WTCP: an efficient mechanism for improving TCP performance over wireless links", 1998).
//!
//! The text was not accessible. The abstracts of this paper, of "Effect of local retransmission at wireless access points
//! on the round trip time estimation of TCP" (1998) and of the journal's version (2003) specify:
//!
//! - the base station buffers data for the mobile host, and does not acknowledge it;
//! - local timeouts and duplicate ACKs show a loss. One loss is repaired at a time, until an ACK confirms the repair;
//! - errors come in bursts, so a local timeout restricts the base station to one packet until an ACK arrives;
//! - the timestamps of data are changed: the sender does not measure the time that a packet spends at the base station.
//!
//! Choices where these leave the details open:
//!
//! - The time in the buffer is added to the packet's TSval, in whole configured units of the sender's clock. The queue
//!   of the radio is behind the buffer, so waiting there remains part of the round trip.
//! - TSvals to the mobile host never decrease, since it would drop the older ones (PAWS).
//! - The link preserves the order. So the ACK for a retransmission shows the next earlier loss, which is repaired at
//!   once.
//! - Local timeouts are those of snoop in west97, without a backoff, and a limit bounds the attempts.
//! - Duplicate ACKs are hidden, except for losses before the base station and losses that the sender repairs itself.
//! - With a full buffer newer packets pass unbuffered. If the sender repeats a packet that waits, all of them are sent.

mod flow;

use core::mem::size_of;

use serde::Serialize;

use super::admit::admit;
use super::flows::{self, Flows};
use super::guard::{Guard, Standing};
use super::receiver::{WindowNews, is_partial};
use super::{AgentConfig, BaseStation, Config, Ends, Idle, Read, SnoopConfig, StoredSegment, note};
use crate::describe::{Descriptor, Keys, Kind, System};
use crate::event::{AgentNote, Cause};
use crate::machine::{Machine, Out, Side};
use crate::units::{Span, Time};
use crate::wake::WakeTree;
use crate::wire::{Damage, Flags, FlowKey, Packet, Seq};
use flow::{Entry, FIRST, Flow};

/// Local retransmission whose time the sender does not measure (Ratnam and Matta 1998).
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct WtcpAgent {
    /// Whether the time at the base station is added to timestamps.
    pub hide_delay: bool,
    /// Unit of the sender's timestamps.
    pub timestamp_unit: Span,
    /// Local timeout of a flow without a measured round trip.
    pub initial_timeout: Span,
    /// Minimum of the local timeout.
    pub min_timeout: Span,
    /// Limit of local retransmissions of one packet, after which it is left to the sender.
    pub max_retransmits: u32,
    /// Limit of buffered packets per flow.
    pub flow_packets: usize,
    /// Limit of tracked flows.
    pub flows: usize,
}

impl Default for WtcpAgent {
    fn default() -> WtcpAgent {
        let snoop = SnoopConfig::west97();
        WtcpAgent {
            hide_delay: true,
            timestamp_unit: Span::millis(1),
            initial_timeout: snoop.initial_timeout,
            min_timeout: snoop.min_timeout,
            max_retransmits: snoop.max_retransmits,
            flow_packets: snoop.flow_packets,
            flows: flows::WATCHED,
        }
    }
}

fn read(k: &mut Keys<'_>) -> AgentConfig {
    let mut c = WtcpAgent::default();
    let doc = "whether the time of a packet at the base station is added to its timestamp";
    k.flag("hide-delay", &mut c.hide_delay, doc);
    let times = Span::millis(1)..=Span::secs(3600);
    let doc = "the unit of the sender's timestamps: 1 ms in Linux";
    k.within("timestamp-unit", &mut c.timestamp_unit, times.clone(), doc);
    let doc = "the local timeout of a flow without a measured round trip";
    k.within("initial-timeout", &mut c.initial_timeout, times.clone(), doc);
    k.within("min-timeout", &mut c.min_timeout, times, "the minimum local timeout");
    let doc = "local retransmissions of a packet before it is left to the sender";
    k.count("max-retransmits", &mut c.max_retransmits, 1..=1_000_000, doc);
    let doc = "the maximum number of buffered packets of a flow; newer ones pass unbuffered";
    k.count("flow-packets", &mut c.flow_packets, 1..=1_000_000, doc);
    flows::watched(k, &mut c.flows);
    AgentConfig::Wtcp(c)
}

impl Config for WtcpAgent {
    const WORDS: &'static [Descriptor<Read>] = &[Descriptor {
        word: "wtcp",
        system: System::new(
            Kind::Agent,
            "wtcp",
            "path: agent = \"wtcp\"; host: timestamps = true, at both ends",
            "retransmits locally, one packet at a time after a timeout, and hides the delay from the sender by its timestamps",
            "Ratnam and Matta 1998",
        )
        .tier(0),
        read,
    }];
    type Agent = Wtcp;

    fn agent(&self) -> Wtcp {
        Wtcp::new(self.clone())
    }

    fn idle(&self, ends: &Ends<'_>) -> Option<Idle> {
        let ((from, sender), (to, receiver)) = (ends.from, ends.to);
        let measured = sender.timestamps && receiver.timestamps;
        (ends.rightwards && self.hide_delay && !measured).then(|| Idle {
            message: format!(
                "`wtcp` cannot hide delay from `{from}`: it needs timestamps at both ends"
            ),
            label: "local retransmissions alone",
            help: format!("write `timestamps = true` in `[host.{from}]` and `[host.{to}]`"),
        })
    }
}

/// The agent.
#[derive(Clone, Debug)]
pub struct Wtcp {
    config: WtcpAgent,
    /// The local timer is that of snoop.
    timers: SnoopConfig,
    guard: Guard,
    flows: Flows<Flow>,
    wakes: WakeTree,
    /// Packets that wait.
    waiting: usize,
    /// Buffered bytes of all flows.
    bytes: usize,
    peak: usize,
}

impl Wtcp {
    /// An agent without flows.
    pub fn new(config: WtcpAgent) -> Wtcp {
        let timers = SnoopConfig {
            initial_timeout: config.initial_timeout,
            min_timeout: config.min_timeout,
            ..SnoopConfig::west97()
        };
        let (guard, flows, wakes) =
            (Guard::new(config.flows), Flows::new(config.flows), WakeTree::new(1));
        Wtcp { config, timers, guard, flows, wakes, waiting: 0, bytes: 0, peak: 0 }
    }

    fn forget(&mut self, now: Time, i: usize, out: &mut Out) {
        self.release(now, i, out);
        note(out, self.flows.key(i), AgentNote::FlowForgotten);
        self.bytes -= self.flows[i].bytes;
        self.flows[i] = Flow::default();
        self.flows.remove(i);
        self.wakes.set(i, None);
    }

    fn watch(&mut self, now: Time, key: FlowKey, first: Seq, out: &mut Out) -> usize {
        if let Some(oldest) = self.flows.evictee() {
            self.forget(now, oldest, out);
        }
        let i = self.flows.insert(key);
        self.wakes.grow(self.flows.slots());
        self.flows[i] = Flow { origin: first, top: FIRST, ..Flow::default() };
        note(out, key, AgentNote::FlowSeen);
        i
    }

    fn set_wake(&mut self, i: usize) {
        let flow = &self.flows[i];
        let due = flow.timer.filter(|_| !flow.is_shut() && flow.own(&self.config).is_some());
        self.wakes.set(i, due);
        self.peak = self.peak.max(self.state_bytes());
    }

    fn restart(&mut self, now: Time, i: usize) {
        self.flows[i].timer = Some(now + self.flows[i].rtt.timeout(&self.timers));
    }

    /// Sends all packets of flow `i` that wait.
    fn release(&mut self, now: Time, i: usize, out: &mut Out) {
        let config = &self.config;
        let flow = &mut self.flows[i];
        flow.restricted = false;
        let first = flow.buffer.partition_point(|entry| entry.sent);
        for n in first..flow.buffer.len() {
            let entry = &mut flow.buffer[n];
            entry.sent = true;
            self.waiting -= 1;
            let (packet, waited) = (entry.packet.clone(), now.since(entry.arrived));
            out.send(Side::Right, flow.stamped(packet, waited, config));
        }
    }

    /// Retransmits the oldest packet of flow `i`.
    fn retransmit(&mut self, now: Time, i: usize, cause: Cause, out: &mut Out) {
        let config = &self.config;
        let flow = &mut self.flows[i];
        let last = flow.buffer.iter().rev().find(|entry| entry.sent).map(|entry| entry.end);
        (flow.recover, flow.repeated) = (last.unwrap_or(0), now);
        let Some(first) = flow.buffer.front_mut() else { return };
        first.attempts += 1;
        let (packet, waited, end) = (first.packet.clone(), now.since(first.arrived), first.end);
        flow.rtt.retransmitted(end, false);
        out.originate(Side::Right, flow.stamped(packet, waited, config), cause);
        self.restart(now, i);
    }

    /// Handles a TCP packet from the fixed host; `old` if the mobile host has its data. Returns it unless it has to wait.
    fn on_data(&mut self, now: Time, packet: Packet, old: bool, out: &mut Out) -> Option<Packet> {
        let (Some(segment), Some(key)) = (packet.segment(), packet.flow()) else {
            return Some(packet);
        };
        let (seq, flags) = (segment.seq, segment.flags);
        let len = u64::from(segment.seq_len(packet.body.len()));
        let known = self.flows.find(key);
        if flags.any(Flags::RST | Flags::SYN) {
            let again = known.is_some_and(|i| self.flows[i].origin == seq);
            if flags.has(Flags::RST) || !again {
                known.into_iter().for_each(|i| self.forget(now, i, out));
            }
            if flags.has(Flags::SYN) && !again {
                let i = self.watch(now, key, seq, out);
                self.flows[i].top = FIRST + len;
            }
            return Some(packet);
        }
        let i = match known {
            Some(i) => i,
            None if len == 0 => return Some(packet),
            None => self.watch(now, key, seq, out),
        };
        if self.flows[i].predates(segment, old) {
            return Some(packet);
        }
        self.flows[i].receiver.expected(segment);
        let start = self.flows[i].position(seq).filter(|_| len > 0);
        let packet = match start {
            Some(start) => self.store(now, i, [start, start + len], packet, out),
            None => Some(packet),
        };
        self.set_wake(i);
        let packet = packet?;
        Some(if old { packet } else { self.flows[i].stamped(packet, Span::ZERO, &self.config) })
    }

    /// Buffers the packet with data at the positions of `span`. Returns it unless it has to wait.
    fn store(
        &mut self,
        now: Time,
        i: usize,
        span: [u64; 2],
        packet: Packet,
        out: &mut Out,
    ) -> Option<Packet> {
        let [start, end] = span;
        let key = self.flows.key(i);
        let flow = &mut self.flows[i];
        if packet.segment().is_some_and(|segment| segment.flags.has(Flags::FIN)) {
            flow.fin = Some(end);
        }
        if flow.acked.is_some_and(|acked| end <= acked) {
            note(out, key, AgentNote::SenderRetransmission);
            flow.answers = flow.answers.saturating_add(1);
            return Some(packet);
        }
        let repeated = start < flow.top;
        if repeated {
            note(out, key, AgentNote::SenderRetransmission);
            flow.rtt.retransmitted(end, false);
        } else if start > flow.top {
            note(out, key, AgentNote::CongestionHole);
        }
        flow.top = flow.top.max(end);
        let at = flow.buffer.partition_point(|entry| entry.start < start);
        let held = flow.buffer.get(at).filter(|entry| entry.start == start);
        if let Some((there, waits)) = held.map(|entry| (entry.end, !entry.sent)) {
            if waits {
                self.release(now, i, out);
            }
            let flow = &mut self.flows[i];
            let entry = &mut flow.buffer[at];
            entry.by_sender = true;
            if there == end {
                let before = entry.packet.wire_len() as usize;
                *entry = Entry { by_sender: true, ..Entry::new(span, &packet, now) };
                flow.bytes = flow.bytes + packet.wire_len() as usize - before;
                self.bytes = self.bytes + packet.wire_len() as usize - before;
            }
            return Some(packet);
        }
        if flow.buffer.len() >= self.config.flow_packets {
            note(out, key, AgentNote::CacheEvicted);
            return Some(packet);
        }
        // A packet below a sent one does not wait, so the waiting packets are the last ones.
        let waits = flow.restricted && flow.buffer.get(at).is_none_or(|next| !next.sent);
        let bytes = packet.wire_len() as usize;
        let entry = Entry::new(span, &packet, now);
        flow.buffer.insert(at, Entry { sent: !waits, by_sender: repeated, ..entry });
        flow.bytes += bytes;
        self.bytes += bytes;
        if waits {
            self.waiting += 1;
            return None;
        }
        if !repeated {
            flow.rtt.sent(end, now);
        }
        if self.flows[i].timer.is_none() {
            self.restart(now, i);
        }
        Some(packet)
    }

    /// Handles a TCP packet from the mobile host. Returns the cause if it must not reach the sender.
    fn on_ack(&mut self, now: Time, packet: &Packet, out: &mut Out) -> Option<Cause> {
        let segment = packet.segment()?;
        let i = self.flows.find(packet.flow()?.reversed())?;
        if segment.flags.has(Flags::RST) {
            self.forget(now, i, out);
            return None;
        }
        let flow = &mut self.flows[i];
        let ack = flow.position(segment.ack)?;
        if !segment.flags.has(Flags::ACK) || ack > flow.top {
            return None;
        }
        let pure = segment.seq_len(packet.body.len()) == 0;
        let acked = flow.acked.unwrap_or(0);
        if ack < acked {
            return pure.then_some(Cause::SpuriousAck);
        }
        let same = flow.receiver.compare_window(segment) == WindowNews::Same;
        let was_shut = flow.is_shut();
        flow.receiver.sent(segment, packet.body.len());
        if ack > acked {
            self.advance(now, i, ack, out);
            if self.flows[i].fin.is_some_and(|fin| fin <= ack) {
                self.forget(now, i, out);
                return None;
            }
        } else if was_shut && !flow.is_shut() {
            self.release(now, i, out);
            self.restart(now, i);
        }
        let repeats = ack == acked && pure && same && !was_shut;
        let hidden = repeats.then(|| self.on_duplicate(now, i, out)).flatten();
        self.set_wake(i);
        hidden
    }

    /// Handles an ACK of new data.
    fn advance(&mut self, now: Time, i: usize, ack: u64, out: &mut Out) {
        let flow = &mut self.flows[i];
        flow.acked = Some(ack);
        flow.answers = 0;
        if flow.buffer.iter().any(|entry| !entry.sent && entry.end <= ack) {
            // Data that waits has arrived by another way.
            self.release(now, i, out);
        }
        let flow = &mut self.flows[i];
        self.bytes -= flow.free(ack);
        if let Some(rtt) = flow.rtt.acked(ack, now) {
            note(out, self.flows.key(i), AgentNote::LocalRtt { rtt });
        }
        let flow = &mut self.flows[i];
        flow.timer = None;
        // An ACK that arrives too soon for the retransmission is for the first transmission, which was not lost.
        let confirms = now.since(flow.repeated) >= flow.rtt.usual() / 2;
        let next_lost = confirms && ack < flow.recover && flow.own(&self.config).is_some();
        let outstanding = !flow.buffer.is_empty();
        if next_lost {
            self.retransmit(now, i, Cause::LocalDupAck, out);
        } else if outstanding {
            self.restart(now, i);
        }
        self.release(now, i, out);
    }

    /// Handles a repetition of the last ACK.
    fn on_duplicate(&mut self, now: Time, i: usize, out: &mut Out) -> Option<Cause> {
        let flow = &mut self.flows[i];
        if flow.answers > 0 {
            flow.answers -= 1;
            return None;
        }
        let first = flow.own(&self.config)?;
        if first.attempts == 0 {
            self.retransmit(now, i, Cause::LocalDupAck, out);
        }
        Some(Cause::SuppressedDupAck)
    }

    fn expire(&mut self, now: Time, i: usize, out: &mut Out) {
        if self.flows[i].timer.is_some_and(|at| at <= now) {
            self.flows[i].timer = None;
            if self.flows[i].own(&self.config).is_some() {
                self.retransmit(now, i, Cause::LocalTimeout, out);
                self.flows[i].restricted = true;
            }
            if self.flows[i].own(&self.config).is_none() {
                self.release(now, i, out);
            }
        }
        self.set_wake(i);
    }
}

impl BaseStation for Wtcp {
    fn flows(&self) -> usize {
        self.flows.len()
    }

    fn state_bytes(&self) -> usize {
        self.flows.len() * size_of::<Flow>() + self.bytes
    }

    fn peak_state_bytes(&self) -> usize {
        self.peak
    }

    fn stored_segments(&self, each: &mut dyn FnMut(StoredSegment)) {
        for i in self.flows.watched() {
            let flow = self.flows.key(i);
            for entry in self.flows[i].buffer.iter().filter(|entry| entry.sent) {
                let Some(segment) = entry.packet.segment() else { continue };
                let (seq, len, attempts) = (segment.seq, entry.packet.body.len(), entry.attempts);
                each(StoredSegment { flow, seq, len, attempts });
            }
        }
    }
}

impl Machine for Wtcp {
    fn check(&self) {
        self.flows.check();
        self.guard.check();
        debug_assert!(self.bytes >= self.waiting, "a packet has bytes");
    }

    fn on_packet(&mut self, now: Time, from: Side, packet: Packet, out: &mut Out) {
        let Some(packet) = admit(from, packet, out) else { return };
        // Data and numbers of a damaged segment are unreliable.
        if packet.damage == Damage::Tcp || from == Side::Right && is_partial(&packet) {
            return out.send(from.other(), packet);
        }
        let standing = self.guard.judge(now, from, &packet);
        let flow = packet.flow();
        let key = if from == Side::Left { flow } else { flow.map(FlowKey::reversed) };
        if matches!(standing, Standing::Lost | Standing::Reopened(_))
            && let Some(i) = key.and_then(|key| self.flows.find(key))
        {
            self.forget(now, i, out);
        }
        if let Standing::Reopened(syn) = &standing
            && let (Some(key), Some(segment)) =
                (key.filter(|key| syn.flow() == Some(*key)), syn.segment())
        {
            let i = self.watch(now, key, segment.seq, out);
            self.flows[i].top = FIRST + u64::from(segment.seq_len(syn.body.len()));
        }
        let old = matches!(standing, Standing::Old);
        match (standing, from) {
            (Standing::Good | Standing::Old | Standing::Reopened(_), Side::Left) => {
                if let Some(packet) = self.on_data(now, packet, old, out) {
                    out.send(Side::Right, packet);
                }
            }
            (Standing::Good | Standing::Reopened(_), Side::Right) => {
                match self.on_ack(now, &packet, out) {
                    None => out.send(Side::Left, packet),
                    Some(cause) => out.discard(Side::Left, packet, cause),
                }
            }
            _ => out.send(from.other(), packet),
        }
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

    fn holds(&self) -> usize {
        self.waiting
    }
}
