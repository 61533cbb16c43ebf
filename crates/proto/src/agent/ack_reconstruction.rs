//! ACK reconstruction: behind a slow return link, ACKs that a filter removed are regenerated.
//!
//! A sender that counts ACKs opens its window slowly when few arrive, and sends a burst at each. This agent
//! is located between the return link and the sender (RFC 3449 5.3.1; H. Balakrishnan, V. Padmanabhan and R.
//! Katz, "The Effects of Asymmetry on TCP Performance", MOBICOM 1997). An ACK for more than `thresh` segments
//! is delayed. First the agent sends ACKs for `thresh` segments each, then the delayed ACK. All of them are
//! spread over the average time between two ACKs of the return link.
//!
//! **End to end.** A reconstructed ACK acknowledges less than an ACK of the receiver that has arrived here,
//! never more. It repeats that ACK's timestamps and window. It is made only while the window is constant, so
//! the receiver has advertised its right edge.
//!
//! **Unchanged**: duplicates, ACKs with SACK blocks, ECN marks, notifications or unknown options, window
//! updates, data, SYN, FIN, RST. Before such a segment the delayed ACK is sent immediately, so the order is
//! preserved. An ACK that would need more than a thousand others is not filled in: with tiny segments it
//! could be millions. A newer plain ACK replaces the delayed one (cause `superseded-ack`), since it repeats
//! all of its information.
//!
//! **State** is soft: the last ACK of each connection and at most one packet. Without it ACKs pass unchanged.
//! The segment size is that of the longest segment so far in the direction of the data. A connection is
//! removed after its sender has received the ACK of its FIN, or by a reset.

use serde::Serialize;

use super::admit::admit;
use super::flows::Flows;
use super::guard::{Guard, Standing};
use super::{AgentConfig, BaseStation, Config, Read, flows};
use crate::describe::{Descriptor, Kind, System};
use crate::event::{AgentNote, Cause, EventKind, Interest};
use crate::machine::{Machine, Out, Side};
use crate::queue::ack_filter::{clears, is_plain};
use crate::units::{Span, Time};
use crate::wake::WakeTree;
use crate::wire::{Body, Damage, Flags, FlowKey, Packet, Segment, Seq};

/// Weight of a new measurement in the average: 1/4. The specification leaves it open.
const SHARE: u64 = 4;
/// Maximum interval of ACKs that clock a sender; after a longer one the connection has paused.
const PAUSE: Span = Span::secs(1);

/// Limit of reconstructed ACKs per ACK of the receiver.
const FILLS_MAX: u32 = 1024;

/// Configuration of the agent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Reconstruction {
    /// Largest number of segments that one ACK to the sender acknowledges.
    //= rfc3449#section-5.3.1: ack_thresh is typically two segments
    pub thresh: u32,
    /// Time between reconstructed ACKs; measured if it is `None`.
    pub interval: Option<Span>,
    /// Limit of tracked connections; the least recently used is evicted.
    pub flows: usize,
}

impl Default for Reconstruction {
    fn default() -> Reconstruction {
        Reconstruction { thresh: 2, interval: None, flows: 1024 }
    }
}

impl Config for Reconstruction {
    const WORDS: &'static [Descriptor<Read>] = &[Descriptor {
        word: "ack-reconstruction",
        system: System::new(
            Kind::Agent,
            "ack-reconstruction",
            "path: agent = \"ack-reconstruction\", on the sender's side of a slow return link",
            "regenerates ACKs that are missing behind a slow return link",
            "RFC 3449 5.3.1",
        )
        .tier(0),
        read: |k| {
            let mut c = Reconstruction::default();
            let doc = "the maximum number of segments that one ACK to the sender acknowledges";
            k.count("ack-thresh", &mut c.thresh, 1..=1000, doc);
            let doc = "the time between regenerated ACKs; measured by default";
            k.maybe("ack-interval", &mut c.interval, Span::ZERO..=Span::secs(1), doc);
            flows::watched(k, &mut c.flows);
            AgentConfig::AckReconstruction(c)
        },
    }];
    type Agent = AckReconstruction;

    fn agent(&self) -> AckReconstruction {
        AckReconstruction::new(self)
    }

    fn needs_radio(&self) -> bool {
        false
    }
}

/// State of a connection in the direction of its ACKs.
#[derive(Clone, Debug, Default)]
struct Flow {
    /// Longest payload of the acknowledged data.
    segment: u32,
    /// Acknowledgement and window of the last ACK sent to the sender.
    sent: Option<(Seq, u16)>,
    /// Arrival time of the receiver's last advancing ACK.
    last_advance: Option<Time>,
    /// Average time between advancing ACKs.
    interval: Option<Span>,
    /// The receiver's ACK that follows the reconstructed ones.
    held: Option<Packet>,
    /// One past the FIN of the data, after it has passed.
    fin: Option<Seq>,
    /// Time of the next ACK, and the time between them.
    due: Time,
    spacing: Span,
}

/// The agent. See the head of the file.
#[derive(Clone, Debug)]
pub struct AckReconstruction {
    config: Reconstruction,
    guard: Guard,
    flows: Flows<Flow>,
    wakes: WakeTree,
    holds: usize,
    peak: usize,
}

impl AckReconstruction {
    /// An agent without connections.
    pub fn new(config: &Reconstruction) -> AckReconstruction {
        AckReconstruction {
            config: config.clone(),
            guard: Guard::new(config.flows),
            flows: Flows::new(config.flows),
            wakes: WakeTree::new(1),
            holds: 0,
            peak: 0,
        }
    }

    /// Sends the delayed ACK immediately.
    fn flush(&mut self, i: usize, out: &mut Out) {
        if let Some(packet) = self.flows[i].held.take() {
            self.holds -= 1;
            self.wakes.set(i, None);
            if let Some(segment) = packet.segment() {
                self.flows[i].sent = Some((segment.ack, segment.window));
            }
            out.send(Side::Left, packet);
        }
    }

    /// Removes the connection if the last ACK sent to the sender covers its FIN.
    fn end(&mut self, i: usize, out: &mut Out) {
        let Flow { fin, sent, held, .. } = &self.flows[i];
        let covered = fin.is_some_and(|fin| sent.is_some_and(|(ack, _)| fin.le(ack)));
        if covered && held.is_none() {
            self.forget(i, out);
        }
    }

    fn forget(&mut self, i: usize, out: &mut Out) {
        self.flush(i, out);
        if out.accepts(Interest::RESULTS) {
            let (flow, note) = (self.flows.key(i), AgentNote::FlowForgotten);
            out.event(EventKind::Agent { flow, note });
        }
        self.flows[i] = Flow::default();
        self.flows.remove(i);
    }

    /// Learns from data towards the receiver; `key` is the flow of its ACKs.
    fn learn(&mut self, key: FlowKey, bytes: u32, out: &mut Out) {
        let i = match self.flows.find(key) {
            Some(i) => i,
            None => {
                if let Some(oldest) = self.flows.evictee() {
                    self.forget(oldest, out);
                }
                let i = self.flows.insert(key);
                self.wakes.grow(self.flows.slots());
                self.flows[i] = Flow::default();
                if out.accepts(Interest::RESULTS) {
                    out.event(EventKind::Agent { flow: key, note: AgentNote::FlowSeen });
                }
                i
            }
        };
        self.flows[i].segment = self.flows[i].segment.max(bytes);
        self.peak = self.peak.max(self.state_bytes());
    }

    /// Handles a packet of the sender; `old` means that the receiver has all of it.
    fn on_data_side(&mut self, packet: Packet, old: bool, out: &mut Out) {
        if let Some(key) = packet.flow().filter(|_| packet.damage == Damage::None) {
            let ends = packet.segment().is_some_and(|s| s.flags.any(Flags::SYN | Flags::RST));
            match self.flows.find(key.reversed()).filter(|_| ends && !old) {
                Some(i) => self.forget(i, out),
                None if !packet.body.is_empty() && !old => {
                    self.learn(key.reversed(), packet.body.len(), out)
                }
                None => {}
            }
            if let Some(segment) = packet.segment().filter(|s| s.flags.has(Flags::FIN))
                && let Some(i) = self.flows.find(key.reversed())
            {
                self.flows[i].fin = Some(segment.seq + segment.seq_len(packet.body.len()));
            }
        }
        out.send(Side::Right, packet);
    }

    fn on_ack_side(&mut self, now: Time, packet: Packet, out: &mut Out) {
        let key = packet.flow();
        self.pass_ack(now, packet, out);
        if let Some(i) = key.and_then(|key| self.flows.find(key)) {
            self.end(i, out);
        }
    }

    fn pass_ack(&mut self, now: Time, packet: Packet, out: &mut Out) {
        let known = packet.flow().and_then(|key| self.flows.find(key));
        let (Some(i), Some(segment)) = (known, packet.segment()) else {
            return out.send(Side::Left, packet);
        };
        if packet.damage != Damage::None {
            // The receiver will drop a damaged packet.
            return out.send(Side::Left, packet);
        }
        if segment.flags.any(Flags::SYN | Flags::RST) {
            self.forget(i, out);
            return out.send(Side::Left, packet);
        }
        let (ack, window) = (segment.ack, segment.window);
        let last = self.flows[i].held.as_ref().and_then(Packet::segment).map(|held| held.ack);
        let last = last.or(self.flows[i].sent.map(|(ack, _)| ack));
        let has_number = segment.flags.has(Flags::ACK);
        let advances = has_number && last.is_none_or(|last| last.lt(ack));
        if advances {
            self.measure(now, i);
        }
        if !advances || !is_plain(&packet) {
            self.flush(i, out);
            if advances {
                self.flows[i].sent = Some((ack, window));
            }
            return out.send(Side::Left, packet);
        }
        if let Some(held) = self.flows[i].held.take_if(|old| {
            old.segment().is_some_and(|old| clears(segment, old) && old.window == window)
        }) {
            self.holds -= 1;
            out.discard(Side::Left, held, Cause::SupersededAck);
        }
        self.flush(i, out);
        self.hold(now, i, packet, (ack, window), out);
    }

    /// Handles a plain ACK that acknowledges more than all earlier ones.
    fn hold(&mut self, now: Time, i: usize, packet: Packet, fields: (Seq, u16), out: &mut Out) {
        let (ack, window) = fields;
        let flow = &mut self.flows[i];
        let step = flow.segment.saturating_mul(self.config.thresh);
        let more = match flow.sent {
            Some((last, before)) if before == window => u32::try_from(ack - last).unwrap_or(0),
            _ => 0,
        };
        //= rfc3449#section-5.3.1: it intersperses ACKs where delta_a exceeds ack_thresh
        let fills = more.saturating_sub(1).checked_div(step).unwrap_or(0);
        let spread = match self.config.interval {
            Some(interval) => Some(Span(interval.0.saturating_mul(fills.into()))),
            None => flow.interval,
        };
        let (Some(spread), 1..=FILLS_MAX) = (spread, fills) else {
            flow.sent = Some(fields);
            self.wakes.set(i, None);
            return out.send(Side::Left, packet);
        };
        // ACKs that were due when this one arrived are not delayed by it.
        let begun = flow.due > now && flow.spacing > Span::ZERO;
        flow.spacing = Span(spread.min(PAUSE).0 / u64::from(fills + 1));
        if !begun || flow.due.since(now) > flow.spacing {
            flow.due = now;
        }
        flow.held = Some(packet);
        self.holds += 1;
        self.wakes.set(i, Some(flow.due));
        self.peak = self.peak.max(self.state_bytes());
        self.send_due(now, i, out);
    }

    /// Measures the time between the receiver's advancing ACKs.
    fn measure(&mut self, now: Time, i: usize) {
        let flow = &mut self.flows[i];
        let gap = flow.last_advance.replace(now).map(|before| now.since(before));
        if let Some(gap) = gap.filter(|gap| *gap <= PAUSE) {
            let average = flow.interval.unwrap_or(gap);
            flow.interval = Some(Span((average.0 * (SHARE - 1) + gap.0) / SHARE));
        }
    }

    /// Sends the ACKs of connection `i` that are due by `now`.
    fn send_due(&mut self, now: Time, i: usize, out: &mut Out) {
        while self.flows[i].due <= now {
            let flow = &mut self.flows[i];
            let step = flow.segment.saturating_mul(self.config.thresh);
            let Some(held) = &flow.held else { return };
            let (Some((last, window)), Some(real)) = (flow.sent, held.segment()) else { return };
            if real.ack - last <= step as i32 {
                return self.flush(i, out);
            }
            let ack = last + step;
            let forged = forge(held, real, ack);
            flow.sent = Some((ack, window));
            flow.due += flow.spacing;
            self.wakes.set(i, Some(flow.due));
            out.originate(Side::Left, forged, Cause::ReconstructedAck);
        }
    }
}

/// An ACK up to `ack`, with the fields of the receiver's later ACK `real`.
//= rfc3449#section-5.3.1: the semantics of end-to-end ACKs are kept
fn forge(held: &Packet, real: &Segment, ack: Seq) -> Packet {
    let mut segment = Segment::new(real.src_port, real.dst_port, real.seq, ack, Flags::ACK);
    segment.window = real.window;
    segment.timestamps = real.timestamps;
    let mut packet = Packet::tcp(held.src, held.dst, segment, Body::EMPTY);
    packet.tos = held.tos;
    packet
}

impl BaseStation for AckReconstruction {
    /// Connections watched now.
    fn flows(&self) -> usize {
        self.flows.len()
    }

    /// Bytes of state: a record for each connection, and the headers of delayed ACKs.
    fn state_bytes(&self) -> usize {
        self.flows.len() * size_of::<Flow>() + self.holds * size_of::<Segment>()
    }

    /// Maximum of [`AckReconstruction::state_bytes`] so far.
    fn peak_state_bytes(&self) -> usize {
        self.peak
    }
}

impl Machine for AckReconstruction {
    fn check(&self) {
        self.flows.check();
        self.guard.check();
        debug_assert!(self.holds <= self.flows.len(), "one ACK waits for each connection");
        let Some(newest) = self.flows.newest() else { return };
        let flow = &self.flows[newest];
        debug_assert!(
            flow.held.as_ref().is_none_or(|packet| packet.segment().is_some()),
            "a waiting ACK is a segment"
        );
    }

    fn on_packet(&mut self, now: Time, from: Side, packet: Packet, out: &mut Out) {
        let Some(packet) = admit(from, packet, out) else { return };
        let standing = match packet.damage {
            Damage::None => self.guard.judge(now, from, &packet),
            _ => Standing::Doubtful,
        };
        match (&standing, from) {
            (Standing::Good | Standing::Old, Side::Left) => {
                return self.on_data_side(packet, standing == Standing::Old, out);
            }
            (Standing::Good, Side::Right) => return self.on_ack_side(now, packet, out),
            (Standing::Doubtful | Standing::Old, _) => {}
            (Standing::Lost | Standing::Reopened(_), _) => {
                let flow = packet.flow();
                let key = if from == Side::Right { flow } else { flow.map(FlowKey::reversed) };
                if let Some(i) = key.and_then(|key| self.flows.find(key)) {
                    self.forget(i, out);
                }
            }
        }
        out.send(from.other(), packet);
    }

    fn on_wake(&mut self, now: Time, out: &mut Out) {
        while let Some((_, i)) = self.wakes.first().filter(|(at, _)| *at <= now) {
            self.wakes.set(i, None);
            self.send_due(now, i, out);
            self.end(i, out);
        }
    }

    fn next_wake(&self) -> Option<Time> {
        self.wakes.first().map(|(at, _)| at)
    }

    fn holds(&self) -> usize {
        self.holds
    }
}
