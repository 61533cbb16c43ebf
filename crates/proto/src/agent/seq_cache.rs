//! A base station that stores sequence numbers instead of packets, as west97 7.0 proposes and leaves open.
//!
//! It records which bytes have passed. So it can distinguish a wireless loss from a congestive one like snoop
//! does, by a duplicate ACK or by a local timeout. It suppresses the duplicate ACKs and notifies the sender
//! once per loss of the lost segment; the sender retransmits it without congestion control. Duplicate ACKs
//! for bytes that never passed are forwarded. Only flows whose sender put the option on its SYN are tracked.
//!
//! Choices where the paper is open:
//!
//! - After a notification the sender's retransmission takes a round trip over the wired side. Until it
//!   passes, all duplicate ACKs are suppressed and no timer runs; a lost notification is left to the sender's
//!   own timer.
//! - The loss of a retransmission shows as more duplicate ACKs than packets were ahead of it, or by the local
//!   timer. It counts as a new loss with a separate notification.
//! - A retransmission without a notification is the sender's own decision, and the duplicate ACKs that belong
//!   to it are forwarded.

mod runs;
mod travel;

use core::mem::size_of;

use serde::Serialize;

use super::admit::admit;
use super::flows::Flows;
use super::guard::{Guard, Standing};
use super::receiver::{Receiver, WindowNews, is_partial};
use super::snoop::config::SnoopConfig;
use super::snoop::rtt::Rtt;
use super::{AgentConfig, BaseStation, Config, Ends, Idle, Read, flows, note};
use crate::describe::{Descriptor, Kind, Needs, System};
use crate::event::{AgentNote, Cause};
use crate::machine::{Machine, Out, Side};
use crate::tcp::{ElnMode, ElnReaction};
use crate::units::Time;
use crate::wake::WakeTree;
use crate::wire::{Damage, Eln, Flags, FlowKey, Packet, Seq};
use runs::Runs;

/// Sequence numbers only; the sender retransmits after a loss notification (west97 7.0).
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SeqCacheAgent {
    /// Limit of tracked flows.
    pub flows: usize,
}

impl Config for SeqCacheAgent {
    const WORDS: &'static [Descriptor<Read>] = &[Descriptor {
        word: "seq-cache",
        system: System::new(
            Kind::Agent,
            "seq-cache",
            "path: agent = \"seq-cache\"; host: eln = \"checksum\", at both ends",
            "stores sequence numbers only; notifies the sender of losses on the radio, and the sender retransmits",
            "west97 7.0",
        )
        .needs(Needs::Heads),
        read: |k| {
            let mut flows = flows::WATCHED;
            flows::watched(k, &mut flows);
            AgentConfig::SeqCache(SeqCacheAgent { flows })
        },
    }];
    type Agent = SeqCache;

    fn agent(&self) -> SeqCache {
        SeqCache::new(self.flows)
    }

    /// Notifications are sent to senders whose connections agreed on explicit loss notification.
    fn idle(&self, ends: &Ends<'_>) -> Option<Idle> {
        let ((from, sender), (to, receiver)) = (ends.from, ends.to);
        let agreed = sender.eln != ElnMode::Off
            && sender.eln_reaction == ElnReaction::Named
            && receiver.eln != ElnMode::Off;
        (ends.rightwards && !agreed).then(|| Idle {
            message: format!(
                "`seq-cache` sends no loss notifications to `{from}`: both ends must agree on them"
            ),
            label: "the same as `none` for this sender",
            help: format!(
                "write `eln = \"checksum\"` in `[host.{from}]` and `[host.{to}]`, without `eln-reaction`"
            ),
        })
    }
}

/// Position of the SYN, with room below, as in snoop.
const FIRST: u64 = 1 << 32;
/// State of the segment that the receiver waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Loss {
    /// No known loss.
    #[default]
    None,
    /// Lost. The sender was notified, and its retransmission has not passed.
    Notified,
    /// The retransmission passed. `ahead` packets before it and `after` packets behind it may still cause
    /// duplicate ACKs.
    Resent { ahead: u32, after: u32 },
    /// The sender retransmitted it without a notification.
    BySender,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Flow {
    origin: Seq,
    top: u64,
    acked: u64,
    fin: Option<u64>,
    receiver: Receiver,
    runs: Runs,
    loss: Loss,
    /// After a notification: packets on the wireless link that may still cause duplicate ACKs.
    ahead: u32,
    /// Size of the last passed segment, bytes.
    segment: u32,
    /// Duplicate ACKs caused by retransmissions of bytes acknowledged long ago.
    answers: u32,
    rtt: Rtt,
    timer: Option<Time>,
    backoff: u32,
}

impl Flow {
    fn position(&self, seq: Seq) -> Option<u64> {
        seq.unwrap_near(self.origin, self.top)
    }

    /// Records that the wireless link has lost the passed segment that the receiver waits for.
    fn lose(&mut self, ahead: u32) {
        self.loss = Loss::Notified;
        self.ahead = ahead;
        self.timer = None;
        // Round trips now include the sender's.
        self.rtt.retransmitted(0, false);
    }

    fn restart(&mut self, now: Time) {
        self.timer = Some(now + self.rtt.timeout(&TIMERS) * (1 << self.backoff.min(6)));
    }

    fn is_shut(&self) -> bool {
        self.receiver.window() == Some(0)
    }
}

/// The local timer is that of snoop in the same testbed.
const TIMERS: SnoopConfig = SnoopConfig::west97();

/// The agent that caches sequence numbers only (west97 7.0).
#[derive(Clone, Debug)]
pub struct SeqCache {
    guard: Guard,
    flows: Flows<Flow>,
    wakes: WakeTree,
    peak: usize,
}

impl SeqCache {
    /// An agent without flows, for at most `flows`.
    pub fn new(flows: usize) -> SeqCache {
        let (guard, flows) = (Guard::new(flows), Flows::new(flows));
        SeqCache { guard, flows, wakes: WakeTree::new(1), peak: 0 }
    }

    fn forget(&mut self, i: usize, out: &mut Out) {
        note(out, self.flows.key(i), AgentNote::FlowForgotten);
        self.flows.remove(i);
        self.wakes.set(i, None);
    }

    fn set_wake(&mut self, i: usize) {
        let flow = &self.flows[i];
        self.wakes.set(i, flow.timer.filter(|_| !flow.is_shut()));
    }

    fn notify(&mut self, i: usize, out: &mut Out) {
        let key = self.flows.key(i);
        let flow = &self.flows[i];
        let lost = flow.origin + flow.acked as u32;
        let packet = flow.receiver.loss_notification(key, lost);
        out.originate(Side::Left, packet, Cause::LossNotification);
    }

    fn on_syn(&mut self, key: FlowKey, packet: &Packet, out: &mut Out) {
        let Some(segment) = packet.segment() else { return };
        let known = self.flows.find(key);
        if known.is_some_and(|i| self.flows[i].origin == segment.seq) {
            return;
        }
        if let Some(i) = known {
            self.forget(i, out);
        }
        if segment.options().eln != Some(Eln::Permitted) {
            return;
        }
        let i = self.watch(key, out);
        let top = FIRST + u64::from(segment.seq_len(packet.body.len()));
        self.flows[i] = Flow { origin: segment.seq, top, acked: FIRST, ..Flow::default() };
    }

    /// A slot for the flow of `key`.
    fn watch(&mut self, key: FlowKey, out: &mut Out) -> usize {
        if let Some(oldest) = self.flows.evictee() {
            self.forget(oldest, out);
        }
        let i = self.flows.insert(key);
        self.wakes.grow(self.flows.slots());
        self.peak = self.peak.max(self.state_bytes());
        note(out, key, AgentNote::FlowSeen);
        i
    }

    /// Handles a TCP packet from the fixed host, before it is forwarded.
    fn on_data(&mut self, now: Time, packet: &Packet, out: &mut Out) {
        let (Some(segment), Some(key)) = (packet.segment(), packet.flow()) else { return };
        let len = segment.seq_len(packet.body.len());
        if segment.flags.has(Flags::SYN) {
            return self.on_syn(key, packet, out);
        }
        if len == 0 && !segment.flags.has(Flags::RST) {
            return;
        }
        let Some(i) = self.flows.find(key) else { return };
        if segment.flags.has(Flags::RST) {
            return self.forget(i, out);
        }
        let flow = &mut self.flows[i];
        let Some(start) = flow.position(segment.seq) else { return };
        let end = start + u64::from(len);
        flow.receiver.expected(segment);
        if segment.flags.has(Flags::FIN) {
            flow.fin = Some(end);
        }
        if end <= flow.acked {
            flow.answers = flow.answers.saturating_add(1);
            return note(out, key, AgentNote::SenderRetransmission);
        }
        let pieces = packet.pieces();
        flow.segment = if pieces > 1 { packet.piece.into() } else { len };
        match &mut flow.loss {
            Loss::None | Loss::BySender => {}
            Loss::Notified => flow.ahead = flow.ahead.saturating_add(pieces),
            Loss::Resent { after, .. } => *after = after.saturating_add(pieces),
        }
        if start >= flow.top {
            if start > flow.top {
                note(out, key, AgentNote::CongestionHole);
            }
            flow.rtt.sent(end, now);
        } else {
            note(out, key, AgentNote::SenderRetransmission);
            flow.rtt.retransmitted(0, false);
            if start <= flow.acked {
                flow.loss = match flow.loss {
                    // The count of packets ahead includes this one, which is not ahead.
                    Loss::Notified => {
                        Loss::Resent { ahead: flow.ahead.saturating_sub(pieces), after: 0 }
                    }
                    _ => Loss::BySender,
                };
                flow.restart(now);
            }
        }
        flow.top = flow.top.max(end);
        if !flow.runs.add(start.max(flow.acked), end) {
            note(out, key, AgentNote::CacheEvicted);
        }
        if flow.timer.is_none() && flow.loss != Loss::Notified {
            flow.restart(now);
        }
        self.set_wake(i);
    }

    /// Handles a TCP packet from the mobile host. Returns the cause if it must not reach the sender.
    fn on_ack(&mut self, now: Time, packet: &Packet, out: &mut Out) -> Option<Cause> {
        let segment = packet.segment()?;
        let i = self.flows.find(packet.flow()?.reversed())?;
        if segment.flags.has(Flags::RST) {
            self.forget(i, out);
            return None;
        }
        let flow = &mut self.flows[i];
        let ack = flow.position(segment.ack)?;
        if !segment.flags.has(Flags::ACK) || ack > flow.top {
            return None;
        }
        let pure = segment.seq_len(packet.body.len()) == 0;
        if ack < flow.acked {
            return pure.then_some(Cause::SpuriousAck);
        }
        let window = flow.receiver.compare_window(segment);
        let was_shut = flow.is_shut();
        flow.receiver.sent(segment, packet.body.len());
        let mut hidden = None;
        if ack > flow.acked {
            flow.acked = ack;
            flow.runs.release(ack);
            (flow.loss, flow.answers, flow.backoff) = (Loss::None, 0, 0);
            let sample = flow.rtt.acked(ack, now);
            flow.timer = None;
            if flow.top > ack {
                flow.restart(now);
            }
            let ended = flow.fin.is_some_and(|fin| fin <= ack);
            if let Some(rtt) = sample {
                note(out, self.flows.key(i), AgentNote::LocalRtt { rtt });
            }
            if ended {
                self.forget(i, out);
                return None;
            }
        } else if pure && window == WindowNews::Overtaken && !flow.is_shut() {
            let own = flow.answers == 0 && flow.loss != Loss::BySender && flow.runs.has(ack);
            hidden = own.then_some(Cause::SuppressedDupAck);
        } else if pure && window == WindowNews::Same && !flow.is_shut() {
            hidden = self.on_duplicate(i, out);
        } else if was_shut && flow.timer.is_some() {
            flow.restart(now);
        }
        self.set_wake(i);
        hidden
    }

    fn on_duplicate(&mut self, i: usize, out: &mut Out) -> Option<Cause> {
        let flow = &mut self.flows[i];
        if flow.answers > 0 {
            flow.answers -= 1;
            return None;
        }
        if !flow.runs.has(flow.acked) {
            // Without outstanding data, or after a congestive loss, the sender must react normally.
            return None;
        }
        match &mut flow.loss {
            Loss::BySender => return None,
            Loss::Notified => flow.ahead = flow.ahead.saturating_sub(1),
            Loss::Resent { ahead, .. } if *ahead > 0 => *ahead -= 1,
            Loss::Resent { after, .. } => {
                // All packets ahead are accounted for, so a later packet caused this one.
                let ahead = after.saturating_sub(1);
                flow.lose(ahead);
                self.notify(i, out);
            }
            Loss::None => {
                // One for each packet behind the lost one; this is the first.
                let behind = (flow.top - flow.acked).div_ceil(flow.segment.max(1).into());
                flow.lose(u32::try_from(behind.saturating_sub(2)).unwrap_or(u32::MAX));
                self.notify(i, out);
            }
        }
        Some(Cause::SuppressedDupAck)
    }

    fn expire(&mut self, now: Time, i: usize, out: &mut Out) {
        let flow = &mut self.flows[i];
        if flow.timer.is_none_or(|at| at > now) {
            return self.set_wake(i);
        }
        flow.timer = None;
        if flow.runs.has(flow.acked) && flow.loss != Loss::Notified {
            flow.backoff = flow.backoff.saturating_add(1);
            let behind = (flow.top - flow.acked).div_ceil(flow.segment.max(1).into());
            flow.lose(u32::try_from(behind.saturating_sub(1)).unwrap_or(u32::MAX));
            self.notify(i, out);
        }
        self.set_wake(i);
    }
}

impl BaseStation for SeqCache {
    /// Flows watched now.
    fn flows(&self) -> usize {
        self.flows.len()
    }

    /// Bytes of state: one control block per flow.
    fn state_bytes(&self) -> usize {
        self.flows.len() * size_of::<Flow>()
    }

    /// Maximum of [`SeqCache::state_bytes`] so far.
    fn peak_state_bytes(&self) -> usize {
        self.peak
    }
}

impl Machine for SeqCache {
    fn check(&self) {
        self.flows.check();
        self.guard.check();
        let Some(newest) = self.flows.newest() else { return };
        let flow = &self.flows[newest];
        debug_assert!(flow.acked <= flow.top, "acknowledged data has passed");
    }

    fn on_packet(&mut self, now: Time, from: Side, packet: Packet, out: &mut Out) {
        let Some(packet) = admit(from, packet, out) else { return };
        let mut hidden = None;
        // Data and numbers of a damaged segment are unreliable.
        if packet.damage != Damage::Tcp && !(from == Side::Right && is_partial(&packet)) {
            let standing = self.guard.judge(now, from, &packet);
            let flow = packet.flow();
            let key = if from == Side::Left { flow } else { flow.map(FlowKey::reversed) };
            if matches!(standing, Standing::Lost | Standing::Reopened(_))
                && let Some(i) = key.and_then(|key| self.flows.find(key))
            {
                self.forget(i, out);
            }
            if let Standing::Reopened(syn) = &standing
                && let Some(key) = key.filter(|key| syn.flow() == Some(*key))
            {
                self.on_syn(key, syn, out);
            }
            match (standing, from) {
                (Standing::Good | Standing::Old | Standing::Reopened(_), Side::Left) => {
                    self.on_data(now, &packet, out);
                }
                (Standing::Good | Standing::Reopened(_), Side::Right) => {
                    hidden = self.on_ack(now, &packet, out);
                }
                (Standing::Doubtful | Standing::Old | Standing::Lost, _) => {}
            }
        }
        match hidden {
            None => out.send(from.other(), packet),
            Some(cause) => out.discard(from.other(), packet, cause),
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
}
