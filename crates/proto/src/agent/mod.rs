//! Base-station agents. Each is located between the wired side and the wireless side of a path.
//!
//! The wired side, with the fixed host, is on the left; the wireless side, with the mobile host, on the
//! right. Most agents help data from left to right; a split connection has an end on each side. Every agent
//! is an IP hop as well: it drops packets with a damaged IP header. It forwards packets with a damaged TCP
//! checksum without inspection, unless they are addressed to its own end point.

mod ackp;
mod admit;
mod ending;
pub mod flows;
pub mod guard;
pub mod i_tcp_handoff;
mod m_tcp;
mod none;
mod receiver;
mod snoop_smart;
mod split_sack;

use core::fmt::Debug;

use serde::Serialize;

use crate::describe::{Descriptor, Keys};
use crate::event::{AgentNote, EventKind, Interest};
use crate::machine::{Machine, Out, Side, Signal};
use crate::tcp::TcpConfig;
use crate::units::Time;
use crate::wire::{Addr, FlowKey, Packet, Seq};

pub use crate::describe::Needs;
pub use ack_reconstruction::{AckReconstruction, Reconstruction};
pub use ebsn::{Ebsn, Notifier};
pub use ending::{Bypass, Ending};
pub use good_packet_size::{PacketSize, PacketSizes};
pub use i_tcp_handoff::Handover;
pub use m_tcp::MtcpConfig;
pub use none::Router;
pub use seq_cache::{SeqCache, SeqCacheAgent};
pub use snoop::{AckpMode, DupAcks, Snoop, SnoopAgent, SnoopConfig, TimeoutRule};
pub use snoop_nack::{NackAgent, SnoopNack};
pub use source_quench::SourceQuench;
pub use split::{Split, SplitConfig};
pub use wtcp::WtcpAgent;

/// Reads the keys of an agent.
pub type Read = fn(&mut Keys<'_>) -> AgentConfig;

/// Sender and receiver of data that passes an agent: names and TCPs of both hosts.
#[derive(Clone, Copy, Debug)]
pub struct Ends<'a> {
    /// The sender.
    pub from: (&'a str, &'a TcpConfig),
    /// The receiver.
    pub to: (&'a str, &'a TcpConfig),
    /// Whether the data travels to the wireless side.
    pub rightwards: bool,
}

/// Reason why an agent does not help a flow of data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Idle {
    /// The reason in a sentence.
    pub message: String,
    /// The reason in a few words.
    pub label: &'static str,
    /// The remedy.
    pub help: String,
}

/// The configuration of an agent, with its descriptors.
pub trait Config {
    /// Descriptors of its names.
    const WORDS: &'static [Descriptor<Read>];
    /// The agent.
    type Agent: BaseStation;

    /// The agent without flows.
    fn agent(&self) -> Self::Agent;

    /// Its name.
    fn word(&self) -> &'static str {
        Self::WORDS[0].word
    }

    /// Its description in a plan.
    fn plan(&self) -> String {
        self.word().to_owned()
    }

    /// The missing requirement for data between these hosts, if the agent would be useless.
    fn idle(&self, ends: &Ends<'_>) -> Option<Idle> {
        let _ = ends;
        None
    }

    /// Whether it repairs losses of a radio on its right.
    fn needs_radio(&self) -> bool {
        true
    }

    /// Whether it also helps data to the left.
    fn helps_both_ways(&self) -> bool {
        false
    }
}

/// A packet that an agent stores for retransmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoredSegment {
    /// Its flow.
    pub flow: FlowKey,
    /// Sequence number of its first byte.
    pub seq: Seq,
    /// Length of its payload, bytes.
    pub len: u32,
    /// Retransmissions by the agent since the sender's last transmission.
    pub attempts: u32,
}

/// An agent with its per-flow state.
pub trait BaseStation: Machine + Debug {
    /// Number of tracked flows.
    fn flows(&self) -> usize {
        0
    }

    /// Bytes of state for the tracked flows, including headers and payload of cached packets.
    fn state_bytes(&self) -> usize {
        0
    }

    /// Maximum of [`BaseStation::state_bytes`] so far.
    fn peak_state_bytes(&self) -> usize {
        0
    }

    /// Calls `each` with each packet stored for retransmission, flow by flow, in the order of the bytes.
    fn stored_segments(&self, each: &mut dyn FnMut(StoredSegment)) {
        let _ = each;
    }

    /// Whether it accepts super-packets: it inspects only packets of connections that end here.
    fn takes_bulk(&self) -> bool {
        false
    }

    /// Number of connections that end here, which would fail without the agent.
    fn endings(&self) -> usize {
        0
    }

    /// Aborts the connections that end here, with a reset to both ends.
    fn reset_endings(&mut self, now: Time, out: &mut Out) {
        let _ = (now, out);
    }

    /// Reports the connections that end here: with `all` each of them, otherwise only changes since the last call.
    /// Before the first call with `all` no change is recorded.
    fn report_endings(&mut self, all: bool, each: &mut dyn FnMut(Ending)) {
        let _ = (all, each);
    }

    /// Handles the report of an action of the data plane on a connection without the agent. `flow` is from left to
    /// right.
    fn bypass(&mut self, now: Time, flow: FlowKey, bypass: Bypass, out: &mut Out) {
        let _ = (now, flow, bypass, out);
    }

    /// Passes everything to `next` except for connections that end here.
    ///
    /// # Errors
    /// Returns `next` if there is no such connection.
    fn drain(&mut self, next: Agent) -> Result<(), Agent> {
        Err(next)
    }

    /// The agent of [`BaseStation::drain`], after the last connection has ended.
    fn successor(&mut self) -> Option<Agent> {
        None
    }

    /// Announces that another agent's state of `host` is on its way (`coming`), or is cancelled. An agent
    /// that will continue connections drops their packets until then.
    fn await_state(&mut self, host: Addr, coming: bool) {
        let _ = (host, coming);
    }

    /// Reports that originated packets with data of `flow` have left at `now`, after all packets received
    /// until then. Only data planes that forward packets before the agent inspects them report this.
    /// Otherwise an agent's packets leave at their origination.
    fn overtaken(&mut self, now: Time, flow: FlowKey) {
        let _ = (now, flow);
    }

    /// Releases the data plane's bytes before `place` ([`Body::held_at`](crate::wire::Body::held_at)), which
    /// cannot be sent any more. Returns the number of affected cached bytes.
    fn forget_held(&mut self, place: u64, out: &mut Out) -> u64 {
        let _ = (place, out);
        0
    }
}

family! {
    $ each;

    /// Configuration of the agent at a base station.
    #[derive(Clone, PartialEq, Debug, Serialize)]
    #[serde(rename_all = "kebab-case", tag = "agent")]
    #[expect(clippy::large_enum_variant, reason = "a scenario has one for each base station")]
    config AgentConfig;

    /// The agent at a base station.
    #[derive(Clone, Debug)]
    pub machine Agent();

    /// Descriptors of the agents, in the order of the manual.
    words Read;

    /// Packets are only forwarded.
    None(config: Router) => Router = *config, Router::WORDS;
    [snoop] Snoop(config: SnoopAgent) => Box<<SnoopAgent as Config>::Agent> = Box::new(config.agent()), SnoopAgent::WORDS;
    [snoop_nack] SnoopNack(config: NackAgent) => Box<<NackAgent as Config>::Agent> = Box::new(config.agent()), NackAgent::WORDS;
    [seq_cache] SeqCache(config: SeqCacheAgent) => Box<<SeqCacheAgent as Config>::Agent> = Box::new(config.agent()), SeqCacheAgent::WORDS;
    [split] Split(config: SplitConfig) => Box<<SplitConfig as Config>::Agent> = Box::new(config.agent()), SplitConfig::WORDS;
    [ebsn] Ebsn(config: Ebsn) => Box<<Ebsn as Config>::Agent> = Box::new(config.agent()), Ebsn::WORDS;
    [source_quench] SourceQuench(config: SourceQuench) => Box<<SourceQuench as Config>::Agent> = Box::new(config.agent()), SourceQuench::WORDS;
    [good_packet_size] GoodPacketSize(config: PacketSizes) => Box<<PacketSizes as Config>::Agent> = Box::new(config.agent()), PacketSizes::WORDS;
    [ack_reconstruction] AckReconstruction(config: Reconstruction) => Box<<Reconstruction as Config>::Agent> = Box::new(config.agent()), Reconstruction::WORDS;
    [wtcp] Wtcp(config: WtcpAgent) => Box<<WtcpAgent as Config>::Agent> = Box::new(config.agent()), WtcpAgent::WORDS;
}

impl AgentConfig {
    forward! { [each config]
        /// Its name.
        pub fn word(&self) -> &'static str;
        /// Its description in a plan.
        pub fn plan(&self) -> String;
        /// The missing requirement for data between these hosts, if the agent would be useless.
        pub fn idle(&self, ends: &Ends<'_>) -> Option<Idle>;
        /// Whether it repairs losses of a radio on its right.
        pub fn needs_radio(&self) -> bool;
        /// Whether it helps data to the left, or has no effect at all.
        pub fn helps_both_ways(&self) -> bool;
    }

    /// Whether TCP connections end at the base station: each side has its own connection.
    pub fn splits_connections(&self) -> bool {
        matches!(self, AgentConfig::Split(_))
    }

    /// Limit of packets that it sends by its own timer for each packet of a host, while the other host is silent: local
    /// retransmissions of one packet, probes of an absent host within hours, or notifications that request a
    /// retransmission, before the host's own timeout of at most two minutes.
    pub fn repeats(&self) -> u32 {
        match self {
            AgentConfig::Split(SplitConfig { mtcp: Some(_), .. }) => 128,
            AgentConfig::SeqCache(_) => 16,
            AgentConfig::Snoop(config) => config.snoop.max_retransmits,
            AgentConfig::SnoopNack(config) => config.snoop.max_retransmits,
            AgentConfig::Wtcp(config) => config.max_retransmits,
            _ => 0,
        }
    }
}

impl Agent {
    /// The packets that it must inspect. All names of a machine need the same.
    pub fn needs(&self) -> Needs {
        each!(words self)[0].system.needs
    }
}

impl BaseStation for Agent {
    forward! { [each]
        fn flows(&self) -> usize;
        fn state_bytes(&self) -> usize;
        fn peak_state_bytes(&self) -> usize;
        fn stored_segments(&self, each: &mut dyn FnMut(StoredSegment));
        fn takes_bulk(&self) -> bool;
        fn endings(&self) -> usize;
        fn reset_endings(&mut self, now: Time, out: &mut Out);
        fn report_endings(&mut self, all: bool, each: &mut dyn FnMut(Ending));
        fn bypass(&mut self, now: Time, flow: FlowKey, bypass: Bypass, out: &mut Out);
        fn drain(&mut self, next: Agent) -> Result<(), Agent>;
        fn successor(&mut self) -> Option<Agent>;
        fn await_state(&mut self, host: Addr, coming: bool);
        fn overtaken(&mut self, now: Time, flow: FlowKey);
        fn forget_held(&mut self, place: u64, out: &mut Out) -> u64;
    }
}

impl Machine for Agent {
    forward! { [each]
        fn check(&self);
        #[inline]
        fn on_packet(&mut self, now: Time, from: Side, packet: Packet, out: &mut Out);
        fn on_signal(&mut self, now: Time, from: Side, signal: Signal, out: &mut Out);
        #[inline]
        fn on_wake(&mut self, now: Time, out: &mut Out);
        #[inline]
        fn next_wake(&self) -> Option<Time>;
        fn holds(&self) -> usize;
    }
}

/// Emits an event of an agent for the flow of `key`.
fn note(out: &mut Out, key: FlowKey, note: AgentNote) {
    if out.accepts(Interest::RESULTS) {
        out.event(EventKind::Agent { flow: key, note });
    }
}
