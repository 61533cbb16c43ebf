//! Split connections (I-TCP; balakrishnan97 3.2; west97 2.5): the connection ends at the base station, which
//! runs a second one over the air.
//!
//! Each of the two is a separate TCP, [`crate::tcp::Connection`], with the addresses and ports of the real
//! ends, which do not notice. Data, FIN and RST pass from one to the other in both directions.
//!
//! - A SYN is forwarded first, and answered after the far end has answered. So a refusal or silence of the far
//!   end also reaches the opener. The far end's answer is acknowledged after the opener has acknowledged the
//!   base station's answer. So the far end accepts no connection of a forged source (RFC 4987).
//! - Each half uses the initial sequence number of the end that it represents. So the numbers agree on both
//!   sides: in a capture, or at an end that outlives the base station, there is one stream. Data that was
//!   acknowledged and lost with the base station is a hole in this stream.
//! - The buffer has room for data received from one end that the other end has not acknowledged; the
//!   advertised window is its free space. A buffer that may grow follows the path, see
//!   [`SplitConfig::largest`].
//! - A pair is removed when both halves have finished. No TIME-WAIT fills the table: the end that closed first
//!   has its own, with the same numbers, and answers late segments. A handshake lasts at most 75 s. If the
//!   table is full, an old half-open pair is removed to make room (`half_open.rs`), or a pair that was silent
//!   for long is reset. Otherwise a new connection passes unchanged. A connection whose SYN did not pass here
//!   is not split, and a connection that has passed remains unsplit.
//! - A keep-alive, or a probe of a closed window, is passed to the other end, and answered after that end has answered. So an
//!   end finds that the other one has vanished. Data that was acknowledged here is not covered: its loss shows only when the
//!   base station gives up.
//! - Packets have the DSCP and the flow label of the latest packet of the host that they represent. Each half uses ECN if
//!   both hosts do.
//! - A SYN with an unknown option, or with flags that do not open a connection, passes unchanged: signatures
//!   (RFC 2385, RFC 5925) and MPTCP would not survive a split. See `passed.rs`.
//!
//! As an end point the base station drops packets of its connections with a wrong TCP checksum. The urgent
//! pointer crosses unchanged. No single packet of a third party ends, resets, or diverts a connection: see
//! `pair/claim.rs`.

mod bypass;
mod half_open;
mod opening;
pub(super) mod pair;
mod passed;
mod reassembly;
mod travel;

use core::mem::size_of;
use std::sync::Arc;

use serde::Serialize;

use super::admit::admit;
use super::flows::Flows;
use super::{
    Agent, AgentConfig, BaseStation, Bypass, Config, Ending, MtcpConfig, Read, StoredSegment,
    flows, m_tcp, note, split_sack,
};
use crate::describe::{Descriptor, Form, Keys, Kind, Need, System, Value};
use crate::event::{AgentNote, Cause};
use crate::machine::{Machine, Out, Side, Signal};
use crate::tcp::config::PRESETS;
use crate::tcp::rtt::Beat;
use crate::tcp::sender::systems::{bbr, integrated};
use crate::tcp::settings::Beats;
use crate::tcp::words::TCPS;
use crate::tcp::{Settings, TcpConfig};
use crate::units::{Bytes, Span, Time};
use crate::wake::WakeTree;
use crate::wire::{Addr, Body, Damage, Flags, FlowKey, Packet};
use half_open::HalfOpen;
use pair::{Claim, Ends, Fate, Memory, Pair, Shared};
use passed::Passed;
use reassembly::Reassembly;

/// Configuration of split connections (balakrishnan97 3.2; west97 2.5).
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SplitConfig {
    /// The base station's TCP towards the fixed host.
    pub wired: TcpConfig,
    /// The base station's TCP towards the mobile host.
    pub wireless: TcpConfig,
    /// Buffer size for each direction of a connection, bytes: received from one end, and unacknowledged by
    /// the other. The advertised window is its free space.
    pub buffer: Bytes,
    /// Limit of the buffer's growth, if it may grow. It grows to twice the data that one end sends in a round
    /// trip, plus twice the congestion window towards the other, as Linux sizes socket buffers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest: Option<Bytes>,
    /// Limit of split connections.
    pub flows: usize,
    /// Memory limit of the buffers of all connections, bytes.
    pub memory: Bytes,
    /// Configuration of M-TCP; `None` for an ordinary split connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtcp: Option<MtcpConfig>,
    /// Whether two successive timeouts of full segments reduce the segment size (RFC 4821). On for stations, and for
    /// scenarios with scripted fates. Off for others: their links have no MTU, so timeouts have other causes.
    #[serde(skip)]
    pub suspects_size: bool,
}

impl SplitConfig {
    /// Two connections of `tcp` with 64 KiB for each direction, as in balakrishnan97 3.2.
    pub fn new(tcp: TcpConfig) -> SplitConfig {
        SplitConfig {
            wired: tcp.clone(),
            wireless: tcp,
            buffer: Bytes(64 << 10),
            largest: None,
            flows: 1024,
            memory: Bytes(128 << 20),
            mtcp: None,
            suspects_size: false,
        }
    }

    /// Whether only the half towards the mobile host uses selective acknowledgements.
    pub fn is_selective(&self) -> bool {
        self.wireless.sack && !self.wired.sack
    }

    /// Reads the keys.
    pub fn keys(k: &mut Keys<'_>) -> SplitConfig {
        let presets = PRESETS.map(|(name, _)| (name, name));
        let doc = "the base station's own TCP; by default `linux` with the sender BBR";
        let preset = k.maybe_word("split-preset", &presets, doc);
        let mut tcp = preset.and_then(TcpConfig::preset).unwrap_or_else(TcpConfig::linux);
        // TCP-INT needs a host whose connections share a window.
        let senders = TCPS.iter().filter(|word| word.key != integrated::WORD.key);
        let senders: Vec<_> = senders.map(|word| (word.key, word.apply)).collect();
        let doc = "its sender, as `tcp` of a host; by default that of the preset";
        let sender = k.maybe_word("split-tcp", &senders, doc);
        // The losses of a radio do not slow BBR down.
        let default = preset.is_none().then_some(bbr::WORD.apply);
        if let Some(apply) = sender.or(default) {
            apply(&mut tcp);
        }
        let mut c = SplitConfig::new(tcp);
        let form = Form::or(vec!["auto"], Bytes(1)..=Bytes(1 << 30));
        let doc = "the buffer for each direction of a connection; `auto` grows with the path from 64 KiB to 4 MiB";
        match k.value("buffer", form, Need::Default, Value::Keyword("auto"), doc) {
            Value::Size(bytes) => c.buffer = bytes,
            _ => c.largest = Some(LARGEST),
        }
        flows::watched(k, &mut c.flows);
        flows::cached(k, &mut c.memory);
        c
    }
}

impl Config for SplitConfig {
    const WORDS: &'static [Descriptor<Read>] = &[
        Descriptor {
            word: "split",
            system: System::new(
                Kind::Agent,
                "split",
                "path: agent = \"split\"",
                "ends the connection at the base station and runs a second one over the air (I-TCP)",
                "balakrishnan97 3.2, west97 2.5",
            ),
            read: |k| AgentConfig::Split(SplitConfig::keys(k)),
        },
        split_sack::WORD,
        m_tcp::WORD,
    ];
    type Agent = Split;

    fn agent(&self) -> Split {
        Split::new(self)
    }

    fn word(&self) -> &'static str {
        match self.mtcp {
            Some(_) => "m-tcp",
            None if self.is_selective() => "split-sack",
            None => "split",
        }
    }

    fn helps_both_ways(&self) -> bool {
        true
    }
}

/// Default limit of a buffer's growth: the largest send buffer that Linux gives a socket by default.
const LARGEST: Bytes = Bytes(4 << 20);

/// Silence after which a pair may be reset to make room for a new one.
//= rfc5382#section-5: an established connection may be forgotten after 2 hours and 4 minutes, not before
const SILENT: Span = Span::secs(7440);

/// The agent that splits connections.
#[derive(Clone, Debug)]
pub struct Split {
    ends: Ends,
    /// By the flow from left to right.
    pairs: Flows<Option<Box<Pair>>>,
    wakes: WakeTree,
    half_open: HalfOpen,
    /// Limit of pairs.
    most: usize,
    memory: Memory,
    /// Buffered bytes of all pairs.
    held: u64,
    peak: usize,
    scratch: Vec<Body>,
    /// SYNs that were not split.
    passed: Passed,
    reassembly: Reassembly,
    /// Hosts whose connections are on their way here.
    awaited: Vec<Addr>,
    /// The agent that handles everything except the existing pairs, if this one is being replaced.
    successor: Option<Box<Agent>>,
    /// Pairs that were added or removed since the last report, if a data plane requested reports.
    changes: Option<Vec<Ending>>,
}

/// A TCP with the largest buffer as its windows. Clocks start at time zero: there is no randomness here.
fn end(tcp: &TcpConfig, largest: u32, end_to_end: bool) -> Arc<Settings> {
    // The ends of M-TCP must be able to continue without the base station. With timestamps of two
    // base-station TCPs, each end would reject the other end's timestamps as old.
    let timestamps = tcp.timestamps && !end_to_end;
    let tcp = TcpConfig { send_buffer: largest, recv_buffer: largest, timestamps, ..tcp.clone() };
    let beats = Beats::new(&tcp, |period| Beat::new(period, Span::ZERO));
    Settings::new(tcp, beats)
}

impl Split {
    /// An agent without connections.
    pub fn new(config: &SplitConfig) -> Split {
        let bytes = |bytes: Bytes| bytes.0.clamp(1, u64::from(u32::MAX / 2)) as u32;
        let buffer = bytes(config.buffer);
        let largest = config.largest.map_or(buffer, |largest| bytes(largest).max(buffer));
        let end_to_end = config.mtcp.is_some();
        let tcp = [&config.wired, &config.wireless].map(|tcp| end(tcp, largest, end_to_end));
        Split {
            ends: Ends {
                tcp,
                buffer,
                grows: largest > buffer,
                mtcp: config.mtcp,
                suspects_size: config.suspects_size,
            },
            pairs: Flows::new(config.flows),
            wakes: WakeTree::new(1),
            half_open: HalfOpen::default(),
            most: config.flows,
            memory: Memory { all: config.memory.0, promised: 0, grown: 0 },
            held: 0,
            peak: 0,
            scratch: Vec::new(),
            passed: Passed::new(config.flows),
            reassembly: Reassembly::default(),
            awaited: Vec::new(),
            successor: None,
            changes: None,
        }
    }

    /// Bytes received from one end and unacknowledged by the other.
    pub fn held_bytes(&self) -> u64 {
        self.held
    }

    /// Calls `action` on the pair in slot `i`, updates the counts, and removes the pair if it is over.
    fn act(
        &mut self,
        i: usize,
        out: &mut Out,
        action: impl FnOnce(&mut Pair, &mut Shared<'_>, &mut Out) -> Fate,
    ) {
        let Some(pair) = self.pairs[i].as_deref_mut() else { return };
        let (before, opening) = (pair.held(), pair.half_open_until());
        let mut shared = Shared {
            scratch: &mut self.scratch,
            memory: self.ends.grows.then_some(&mut self.memory),
        };
        let fate = action(pair, &mut shared, out);
        let wake = pair.next_wake();
        self.half_open.update(i, opening, pair.half_open_until());
        self.held = self.held - before + pair.held();
        self.peak = self.peak.max(self.state_bytes());
        match fate {
            Fate::Alive => self.wakes.set(i, wake),
            Fate::Over => self.forget(i, out),
        }
    }

    fn forget(&mut self, i: usize, out: &mut Out) {
        if let Some(pair) = self.pairs[i].take() {
            self.held -= pair.held();
            self.half_open.update(i, pair.half_open_until(), None);
            self.memory.take_back(&pair, self.ends.buffer);
        }
        self.log(self.pairs.key(i), true);
        note(out, self.pairs.key(i), AgentNote::FlowForgotten);
        self.pairs.remove(i);
        self.wakes.set(i, None);
    }

    /// Handles a packet that belongs to no pair.
    fn pass(&mut self, now: Time, from: Side, packet: Packet, out: &mut Out) {
        match &mut self.successor {
            Some(next) => next.on_packet(now, from, packet, out),
            // Packets of a connection that will be imported must not pass between its ends.
            None if self.awaited.iter().any(|host| [packet.src, packet.dst].contains(host)) => {
                out.discard(from.other(), packet, Cause::NoSuchConnection);
            }
            None => out.send(from.other(), packet),
        }
    }
}

impl BaseStation for Split {
    /// Connections split now.
    fn flows(&self) -> usize {
        self.pairs.len() + self.successor.as_ref().map_or(0, |next| next.flows())
    }

    /// Bytes of state: two control blocks per connection, and the buffered data.
    fn state_bytes(&self) -> usize {
        let next = self.successor.as_ref().map_or(0, |next| next.state_bytes());
        self.pairs.len() * size_of::<Pair>() + self.held as usize + next
    }

    /// Maximum of [`Split::state_bytes`] so far.
    fn peak_state_bytes(&self) -> usize {
        self.peak
    }

    /// Data written by one end and unacknowledged by the other, divided like the wireless segments.
    fn stored_segments(&self, each: &mut dyn FnMut(StoredSegment)) {
        for i in self.pairs.watched() {
            self.pairs[i].iter().for_each(|pair| pair.stored_segments(each));
        }
        self.successor.iter().for_each(|next| next.stored_segments(each));
    }

    fn takes_bulk(&self) -> bool {
        self.successor.as_ref().is_none_or(|next| next.takes_bulk())
    }

    fn endings(&self) -> usize {
        self.pairs.len() + self.successor.as_ref().map_or(0, |next| next.endings())
    }

    fn reset_endings(&mut self, now: Time, out: &mut Out) {
        while let Some(i) = self.pairs.oldest() {
            self.act(i, out, |pair, _, out| {
                pair.give_up(now, out);
                Fate::Over
            });
        }
        if let Some(next) = &mut self.successor {
            next.reset_endings(now, out);
        }
    }

    fn report_endings(&mut self, all: bool, each: &mut dyn FnMut(Ending)) {
        self.report(all, each);
    }

    fn bypass(&mut self, now: Time, flow: FlowKey, bypass: Bypass, out: &mut Out) {
        self.on_bypass(now, flow, bypass, out);
    }

    fn drain(&mut self, next: Agent) -> Result<(), Agent> {
        if self.pairs.len() == 0 {
            return Err(next);
        }
        let next = match &mut self.successor {
            Some(successor) => match successor.drain(next) {
                Ok(()) => return Ok(()),
                Err(next) => next,
            },
            None => next,
        };
        self.successor = Some(Box::new(next));
        Ok(())
    }

    fn await_state(&mut self, host: Addr, coming: bool) {
        self.awaited.retain(|awaited| *awaited != host);
        self.awaited.extend(coming.then_some(host));
    }

    fn successor(&mut self) -> Option<Agent> {
        if self.pairs.len() > 0 {
            return None;
        }
        self.successor.take().map(|next| *next)
    }
}

impl Machine for Split {
    fn check(&self) {
        self.pairs.check();
        debug_assert!(
            self.memory.grown <= self.memory.promised,
            "grown buffers are promised: {:?}",
            self.memory
        );
        let Some(newest) = self.pairs.newest() else { return };
        if let Some(pair) = &self.pairs[newest] {
            pair.check();
            debug_assert!(pair.held() <= self.held, "bytes of a pair");
        }
    }

    fn on_packet(&mut self, now: Time, from: Side, packet: Packet, out: &mut Out) {
        let Some(packet) = admit(from, packet, out) else { return };
        let (Some(flow), Some(segment)) = (packet.flow(), packet.segment()) else {
            if self.reassembles(&packet) {
                return self.on_fragment(now, from, packet, out);
            }
            self.on_path_report(now, from, &packet, out);
            self.pass(now, from, packet, out);
            return;
        };
        let key = flow.rightward(from);
        let damaged = packet.damage != Damage::None;
        let opens = !damaged
            && segment.flags.has(Flags::SYN)
            && !segment.flags.any(Flags::ACK | Flags::RST);
        let seq = segment.seq;
        let passes = opens && self.is_unsplit(key, segment);
        let mut found = self.pairs.find(key);
        if let Some(i) = found.filter(|_| !damaged && !passes) {
            found = self.contend(now, i, from, &packet, out);
        }
        if let Some(i) = found.filter(|_| !damaged)
            && let Some(pair) = self.pairs[i].as_deref_mut()
        {
            // Connections with signatures are never split, so the pair is a third party's. It may also be
            // one if a SYN that must pass arrives during its handshake.
            let claim = match segment.is_signed() || passes && pair.is_of_another(from, segment) {
                true => Claim::Foreign,
                false => pair.judge(now, from, &packet, out),
            };
            match claim {
                Claim::Own => {}
                Claim::Foreign => {
                    if passes {
                        self.passed.note(key, seq);
                    }
                    return self.pass(now, from, packet, out);
                }
                Claim::Void => return out.end(from.other(), &packet, Cause::SplitTaken),
                Claim::Bypassed => {
                    note(out, key, AgentNote::Bypassed);
                    self.forget(i, out);
                    found = None;
                }
            }
        }
        match found {
            Some(_) if damaged => out.discard(from.other(), packet, Cause::TcpChecksum),
            Some(i) => {
                out.end(from.other(), &packet, Cause::SplitTaken);
                self.act(i, out, |pair, shared, out| pair.take(now, from, packet, shared, out));
            }
            None if opens && self.successor.is_none() => self.on_syn(now, from, key, packet, out),
            None => self.pass(now, from, packet, out),
        }
    }

    fn on_signal(&mut self, now: Time, from: Side, signal: Signal, out: &mut Out) {
        if let (Signal::ChannelGood(good), Side::Right) = (signal, from)
            && self.ends.mtcp.is_some_and(|mtcp| mtcp.channel_signals)
        {
            for i in 0..self.pairs.slots() {
                self.act(i, out, |pair, shared, out| {
                    pair.on_channel_change(now, good, out);
                    pair.settle(now, shared, out)
                });
            }
        }
        match &mut self.successor {
            Some(next) => next.on_signal(now, from, signal, out),
            None => out.signal(from.other(), signal),
        }
    }

    fn on_wake(&mut self, now: Time, out: &mut Out) {
        while let Some((_, i)) = self.wakes.first().filter(|(at, _)| *at <= now) {
            self.act(i, out, |pair, shared, out| pair.on_wake(now, shared, out));
            out.require_later(&mut self.wakes, i, now);
        }
        self.reassembly.on_wake(now, out);
        if let Some(next) = &mut self.successor {
            next.on_wake(now, out);
        }
    }

    fn next_wake(&self) -> Option<Time> {
        let next = self.successor.as_ref().and_then(|next| next.next_wake());
        let pairs = self.wakes.first().map(|(at, _)| at);
        [pairs, self.reassembly.next_wake(), next].into_iter().flatten().min()
    }

    fn holds(&self) -> usize {
        self.reassembly.len() + self.successor.as_ref().map_or(0, |next| next.holds())
    }
}
