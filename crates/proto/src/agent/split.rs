//! Split connections (I-TCP; balakrishnan97 3.2; west97 2.5): the connection ends at the base station, which runs a
//! second one over the air.
//!
//! Each of the two is a whole TCP of its own, [`crate::tcp::Connection`], under the addresses and ports of the
//! real ends, which notice nothing. Data, FIN and RST pass from one to the other in both directions.
//!
//! - A SYN is opened onward first and answered when the far end has answered, so that a refusal or silence of the
//!   far end is one for the opener as well.
//! - Each half takes the initial sequence number of the end that it stands for. So the numbers agree on both
//!   sides, and what has no part in the splitting, a capture or an end that outlives the base station, sees one
//!   stream. What was acknowledged and is lost with the base station is a hole in it.
//! - What came in from one end and was not acknowledged by the other is bounded by the buffer; the window
//!   advertised is what is left of it. A buffer that may grow follows the path, see [`SplitConfig::largest`].
//! - A pair is forgotten when both halves are done. There is no TIME-WAIT to fill the table with: the end that
//!   closed first has its own, under the same numbers, and answers what comes late. A handshake lasts 75 s at
//!   most. If the table is full, a pair silent for long is reset to make room; otherwise a new connection passes
//!   untouched, as does one whose SYN was not seen. What has passed once stays unsplit.
//! - A SYN with an option that this code does not know, or with flags that do not open a connection, passes untouched:
//!   signatures (RFC 2385, RFC 5925) and MPTCP would not survive a split. See `passed.rs`.
//!
//! As an end point the base station drops packets of its connections whose TCP checksum fails. The urgent pointer
//! crosses as it is. No single packet of a third party ends, resets, or diverts a connection: see `pair/doubt.rs`.

mod bypass;
mod opening;
mod pair;
mod passed;
mod travel;

use core::mem::size_of;
use std::sync::Arc;

use serde::Serialize;

use super::flows::Flows;
use super::i_tcp_handoff::Handover;
use super::none::admit;
use super::{
    Agent, AgentConfig, BaseStation, Bypass, Config, Ending, Kept, MtcpConfig, Read, flows, m_tcp,
    split_sack,
};
use crate::describe::{Descriptor, Form, Keys, Kind, Need, System, Value};
use crate::event::{AgentNote, Cause, Wants, What};
use crate::machine::{Machine, Out, Side, Signal};
use crate::tcp::config::PRESETS;
use crate::tcp::rtt::Beat;
use crate::tcp::sender::integrated;
use crate::tcp::settings::Beats;
use crate::tcp::words::TCPS;
use crate::tcp::{Settings, TcpConfig};
use crate::units::{Bytes, Span, Time};
use crate::wake::WakeTree;
use crate::wire::{Addr, Body, Damage, Flags, FlowKey, Packet};
pub(super) use pair::Moved;
use pair::{Claim, Ends, Fate, Memory, Pair, Shared};
use passed::Passed;

/// Configuration of split connections (balakrishnan97 3.2; west97 2.5).
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SplitConfig {
    /// The base station's TCP towards the fixed host.
    pub wired: TcpConfig,
    /// The base station's TCP towards the mobile host.
    pub wireless: TcpConfig,
    /// Bytes that the base station holds for each direction of a connection: taken in from one end, not yet
    /// acknowledged by the other. The window that it advertises is what is left of it.
    pub buffer: Bytes,
    /// How far the buffer may grow with the path, if it may: to twice what the one end sends in a round trip and twice
    /// the congestion window towards the other, as Linux sizes the buffers of a socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest: Option<Bytes>,
    /// Connections split at once.
    pub flows: usize,
    /// Bytes set aside for the buffers of all connections together.
    pub memory: Bytes,
    /// What makes it M-TCP, if it is that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtcp: Option<MtcpConfig>,
    /// Whether two timeouts of full segments in a row make them smaller (RFC 4821). On for stations. Off for
    /// scenarios: no link of theirs has an MTU, so their timeouts mean other things.
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

    /// Goes over the keys.
    pub fn keys(k: &mut Keys<'_>) -> SplitConfig {
        let presets = PRESETS.map(|(name, _)| (name, name));
        let mut preset = "linux";
        k.word("split-preset", &mut preset, &presets, "the base station's own TCP");
        let mut tcp = TcpConfig::preset(preset).unwrap_or_else(TcpConfig::linux);
        // TCP-INT needs a host whose connections share a window.
        let senders = TCPS.iter().filter(|word| word.key != integrated::WORD.key);
        let senders: Vec<_> = senders.map(|word| (word.key, word.apply)).collect();
        let what = "its sender, as `tcp` of a host; without it that of the preset";
        if let Some(apply) = k.maybe_word("split-tcp", &senders, what) {
            apply(&mut tcp);
        }
        let mut c = SplitConfig::new(tcp);
        let form = Form::Or(vec!["auto"], Box::new(Form::Size(Bytes(1), Bytes(1 << 30))));
        let what = "what is held for each direction of a connection; `auto` grows with the path from 64 KiB to 4 MiB";
        match k.value("buffer", form, Need::Default, Value::Word("auto"), what) {
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

/// How far a buffer grows by itself: the largest send buffer that Linux gives a socket by itself.
const LARGEST: Bytes = Bytes(4 << 20);

/// A pair that was silent for so long makes room for a new one when there is none.
//= rfc5382#section-5: an established connection may be forgotten after 2 hours and 4 minutes, not before
const SILENT: Span = Span::secs(7440);

/// The agent that splits connections.
#[derive(Clone, Debug)]
pub struct Split {
    ends: Ends,
    /// By the flow from left to right.
    pairs: Flows<Option<Box<Pair>>>,
    wakes: WakeTree,
    /// Pairs at once.
    most: usize,
    memory: Memory,
    /// Bytes held by all pairs.
    held: u64,
    peak: usize,
    scratch: Vec<Body>,
    /// SYNs that were not split.
    passed: Passed,
    /// Hosts whose connections are on their way here.
    awaited: Vec<Addr>,
    /// Who has everything but the pairs that there are, if this agent is to go.
    successor: Option<Box<Agent>>,
    /// Pairs that were added or removed since the last report, if a data plane asks for reports.
    changes: Option<Vec<Ending>>,
}

/// A TCP whose windows are the largest buffer, and its clocks. They beat from time zero: nothing is random here.
fn end(tcp: &TcpConfig, largest: u32, deputy: bool) -> Arc<Settings> {
    // The ends of M-TCP must be able to go on with each other, and each would take the other's clock for an old one.
    let timestamps = tcp.timestamps && !deputy;
    let tcp = TcpConfig { send_buffer: largest, recv_buffer: largest, timestamps, ..tcp.clone() };
    let beats = Beats::new(&tcp, |period| Beat::new(period, Span::ZERO));
    Settings::new(tcp, beats)
}

impl Split {
    /// An agent that has split no connection yet.
    pub fn new(config: &SplitConfig) -> Split {
        let bytes = |bytes: Bytes| bytes.0.clamp(1, u64::from(u32::MAX / 2)) as u32;
        let buffer = bytes(config.buffer);
        let largest = config.largest.map_or(buffer, |largest| bytes(largest).max(buffer));
        let deputy = config.mtcp.is_some();
        let tcp = [&config.wired, &config.wireless].map(|tcp| end(tcp, largest, deputy));
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
            most: config.flows,
            memory: Memory { all: config.memory.0, promised: 0, grown: 0 },
            held: 0,
            peak: 0,
            scratch: Vec::new(),
            passed: Passed::new(config.flows),
            awaited: Vec::new(),
            successor: None,
            changes: None,
        }
    }

    /// Bytes taken in from one end and not acknowledged by the other.
    pub fn held_bytes(&self) -> u64 {
        self.held
    }

    fn note(&self, key: FlowKey, note: AgentNote, out: &mut Out) {
        if out.wants(Wants::METRICS) {
            out.event(What::Agent { flow: key, note });
        }
    }

    /// Calls `action` on the pair in slot `i`, keeps the books, and forgets it if it is over.
    fn act(
        &mut self,
        i: usize,
        out: &mut Out,
        action: impl FnOnce(&mut Pair, &mut Shared<'_>, &mut Out) -> Fate,
    ) {
        let Some(pair) = self.pairs[i].as_deref_mut() else { return };
        let before = pair.held();
        let mut shared = Shared {
            scratch: &mut self.scratch,
            memory: self.ends.grows.then_some(&mut self.memory),
        };
        let fate = action(pair, &mut shared, out);
        let wake = pair.next_wake();
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
            self.memory.take_back(&pair, self.ends.buffer);
        }
        self.log(self.pairs.key(i), true);
        self.note(self.pairs.key(i), AgentNote::FlowForgotten, out);
        self.pairs.remove(i);
        self.wakes.set(i, None);
    }

    /// Whether another pair with buffers of `bytes` fits, if need be in place of one that has been silent for long.
    fn has_room(&mut self, now: Time, bytes: u64, out: &mut Out) -> bool {
        if self.pairs.len() < self.most && self.memory.promised + bytes <= self.memory.all {
            return true;
        }
        let Some(oldest) = self.pairs.oldest() else { return false };
        let silent = |pair: &Pair| now.since(pair.heard()) >= SILENT;
        if !self.pairs[oldest].as_deref().is_some_and(silent) {
            return false;
        }
        self.reset(oldest, now, out);
        self.memory.promised + bytes <= self.memory.all
    }

    /// Gives up the pair in slot `i` and tells both ends.
    fn reset(&mut self, i: usize, now: Time, out: &mut Out) {
        self.act(i, out, |pair, _, out| {
            pair.reset(now, out);
            Fate::Over
        });
    }

    /// A packet that belongs to no pair.
    fn pass(&mut self, now: Time, from: Side, packet: Packet, out: &mut Out) {
        match &mut self.successor {
            Some(next) => next.on_packet(now, from, packet, out),
            // What the ends say to each other would be unknown to the connection that comes.
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

    /// Bytes of state: two control blocks per connection, and the data held.
    fn state_bytes(&self) -> usize {
        let next = self.successor.as_ref().map_or(0, |next| next.state_bytes());
        self.pairs.len() * size_of::<Pair>() + self.held as usize + next
    }

    /// The most that [`Split::state_bytes`] ever was.
    fn peak_state_bytes(&self) -> usize {
        self.peak
    }

    /// What one end has written and the other has not acknowledged, cut as the wireless segments are.
    fn kept(&self, each: &mut dyn FnMut(Kept)) {
        for i in self.pairs.watched() {
            self.pairs[i].iter().for_each(|pair| pair.kept(each));
        }
        self.successor.iter().for_each(|next| next.kept(each));
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
        self.hear_of_bypass(now, flow, bypass, out);
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

    fn give_away(&mut self, now: Time, host: Addr, out: &mut Out) -> Option<Handover> {
        let own = self.release(now, host, out);
        own.or_else(|| self.successor.as_mut()?.give_away(now, host, out))
    }

    fn await_state(&mut self, host: Addr, coming: bool) {
        self.awaited.retain(|awaited| *awaited != host);
        self.awaited.extend(coming.then_some(host));
    }

    fn take_over(&mut self, now: Time, state: Handover, out: &mut Out) -> Result<(), Handover> {
        self.await_state(state.host(), false);
        match &mut self.successor {
            Some(next) => next.take_over(now, state, out),
            None => self.adopt(now, state, out),
        }
    }

    fn successor(&mut self) -> Option<Agent> {
        if self.pairs.len() > 0 {
            return None;
        }
        self.successor.take().map(|next| *next)
    }
}

impl Machine for Split {
    fn on_packet(&mut self, now: Time, from: Side, packet: Packet, out: &mut Out) {
        let Some(packet) = admit(from, packet, out) else { return };
        let (Some(flow), Some(segment)) = (packet.flow(), packet.segment()) else {
            self.hear_of_path(now, from, &packet, out);
            self.pass(now, from, packet, out);
            return;
        };
        let key = match from {
            Side::Left => flow,
            Side::Right => flow.reversed(),
        };
        let damaged = packet.damage != Damage::None;
        let opens = !damaged
            && segment.flags.has(Flags::SYN)
            && !segment.flags.any(Flags::ACK | Flags::RST);
        let mut found = self.pairs.find(key);
        if let Some(i) = found.filter(|_| !damaged) {
            found = self.contend(now, i, from, &packet, out);
        }
        if let Some(i) = found.filter(|_| !damaged)
            && let Some(pair) = self.pairs[i].as_deref_mut()
        {
            // Connections with signatures are never split, so this is a third party's.
            let claim = match segment.is_signed() {
                true => Claim::Foreign,
                false => pair.judge(now, from, &packet, out),
            };
            match claim {
                Claim::Own => {}
                Claim::Foreign => return self.pass(now, from, packet, out),
                Claim::Void => return out.end(from.other(), &packet, Cause::SplitTaken),
                Claim::Bypassed => {
                    self.note(key, AgentNote::Bypassed, out);
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
                    pair.hear_of_channel(now, good, out);
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
        }
        if let Some(next) = &mut self.successor {
            next.on_wake(now, out);
        }
    }

    fn next_wake(&self) -> Option<Time> {
        let next = self.successor.as_ref().and_then(|next| next.next_wake());
        self.wakes.first().map(|(at, _)| at).into_iter().chain(next).min()
    }

    fn holds(&self) -> usize {
        self.successor.as_ref().map_or(0, |next| next.holds())
    }
}
