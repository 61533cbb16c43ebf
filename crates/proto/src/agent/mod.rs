//! Base-station agents. Each sits between the wired side and the wireless side of a path.
//!
//! The wired side, with the fixed host, is on the left; the wireless side, with the mobile host, on the
//! right. Most agents help data on its way from left to right; a split connection has an end on each side. Every
//! agent is an IP hop as well: it drops packets with a damaged IP header, and passes on packets with a damaged TCP
//! checksum without looking into them, unless they are for an end point of its own.

mod ackp;
mod ending;
pub mod flows;
pub mod guard;
pub mod i_tcp_handoff;
mod m_tcp;
mod none;
mod snoop_smart;
mod split_sack;

use core::fmt::Debug;

use serde::Serialize;

use crate::describe::{Descriptor, Keys};
use crate::machine::{Machine, Out, Side, Signal};
use crate::tcp::TcpConfig;
use crate::units::Time;
use crate::wire::{Addr, FlowKey, Packet, Seq};

pub use crate::describe::Needs;
pub use ack_reconstruction::AckReconstruction;
pub use ackp::AckpMode;
pub use ebsn::Notifier;
pub use ending::{Bypass, Ending};
pub use good_packet_size::PacketSize;
pub use i_tcp_handoff::Handover;
pub use m_tcp::MtcpConfig;
pub use none::Router;
pub use seq_cache::SeqCache;
pub use snoop::{DupAcks, Snoop, SnoopConfig, TimeoutRule};
pub use snoop_nack::SnoopNack;
pub use split::Split;

/// Goes over the keys of an agent.
pub type Read = fn(&mut Keys<'_>) -> AgentConfig;

/// Who sends data to whom past an agent: names and TCPs of both hosts.
#[derive(Clone, Copy, Debug)]
pub struct Ends<'a> {
    /// The sender.
    pub from: (&'a str, &'a TcpConfig),
    /// The receiver.
    pub to: (&'a str, &'a TcpConfig),
    /// Whether the data travels from the wired to the wireless side.
    pub rightwards: bool,
}

/// Why an agent does not do for somebody's data what it is there for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Idle {
    /// What is the case, in a sentence.
    pub message: String,
    /// What that amounts to, in a few words.
    pub label: &'static str,
    /// What would help.
    pub help: String,
}

/// The configuration of an agent, and what there is to know about it.
pub trait Config {
    /// The words that stand for it.
    const WORDS: &'static [Descriptor<Read>];
    /// The agent.
    type Agent: BaseStation;

    /// The agent, watching no flow yet.
    fn agent(&self) -> Self::Agent;

    /// Its word.
    fn word(&self) -> &'static str {
        Self::WORDS[0].word
    }

    /// What the line of a plan says of it.
    fn plan(&self) -> String {
        self.word().to_owned()
    }

    /// What it lacks to be of use for data between these hosts, if it is of none.
    fn idle(&self, ends: &Ends<'_>) -> Option<Idle> {
        let _ = ends;
        None
    }

    /// Whether it repairs what a radio on its right loses.
    fn needs_radio(&self) -> bool {
        true
    }

    /// Whether it helps data on its way to the left as well.
    fn helps_both_ways(&self) -> bool {
        false
    }
}

/// A packet that an agent keeps, to send it again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kept {
    /// Its flow.
    pub flow: FlowKey,
    /// The sequence number of its first byte.
    pub seq: Seq,
    /// Its payload in bytes.
    pub len: u32,
    /// How often it was retransmitted from here since the sender last sent it.
    pub attempts: u32,
}

/// An agent, and what it keeps of the flows that it watches.
pub trait BaseStation: Machine + Debug {
    /// Flows watched now.
    fn flows(&self) -> usize {
        0
    }

    /// Bytes of state held for the flows watched now, headers and payload of cached packets included.
    fn state_bytes(&self) -> usize {
        0
    }

    /// The most that [`BaseStation::state_bytes`] ever was.
    fn peak_state_bytes(&self) -> usize {
        0
    }

    /// Hands each packet that is kept for a retransmission to `each`, flow by flow, in the order of the bytes.
    fn kept(&self, each: &mut dyn FnMut(Kept)) {
        let _ = each;
    }

    /// Whether super-packets may be put in: nothing but the connections that end here is looked into.
    fn takes_bulk(&self) -> bool {
        false
    }

    /// Connections that end here: without the agent they are dead.
    fn endings(&self) -> usize {
        0
    }

    /// Gives up the connections that end here and tells their ends by a reset.
    fn reset_endings(&mut self, now: Time, out: &mut Out) {
        let _ = (now, out);
    }

    /// Reports the connections that end here: with `all` each of them, and otherwise those that were added or removed since the
    /// last call. Without a first call with `all` nothing is recorded.
    fn report_endings(&mut self, all: bool, each: &mut dyn FnMut(Ending)) {
        let _ = (all, each);
    }

    /// The data plane reports what it did to a connection without the agent. `flow` is from left to right.
    fn bypass(&mut self, now: Time, flow: FlowKey, bypass: Bypass, out: &mut Out) {
        let _ = (now, flow, bypass, out);
    }

    /// From now on everything is for `next` but the connections that end here.
    ///
    /// # Errors
    /// Gives it back if none does.
    fn drain(&mut self, next: Agent) -> Result<(), Agent> {
        Err(next)
    }

    /// The agent of [`BaseStation::drain`], once the last connection is over.
    fn successor(&mut self) -> Option<Agent> {
        None
    }

    /// Takes what it knows of the connections of the mobile host `host` out, to be taken over by another agent. It knows
    /// nothing of them afterwards. `None` if there is nothing that could move.
    fn give_away(&mut self, now: Time, host: Addr, out: &mut Out) -> Option<Handover> {
        let _ = (now, host, out);
        None
    }

    /// What another agent knows of `host` is on its way here (`coming`), or is not coming after all. Who must not let
    /// packets pass that belong to connections which he is about to take over drops them until then.
    fn await_state(&mut self, host: Addr, coming: bool) {
        let _ = (host, coming);
    }

    /// Goes on with what another agent has given away.
    ///
    /// # Errors
    /// Gives it back if it is of another kind of agent. Then this one begins afresh.
    fn take_over(&mut self, now: Time, state: Handover, out: &mut Out) -> Result<(), Handover> {
        let _ = (now, out);
        Err(state)
    }

    /// What was originated so far of the data of `flow` has left at `now`, behind all packets that were shown by then.
    /// Only data planes report that which show packets after they have passed. Without it an agent's packets leave when
    /// they are originated.
    fn overtaken(&mut self, now: Time, flow: FlowKey) {
        let _ = (now, flow);
    }

    /// The data plane gives back what it has of bytes before `place` ([`Body::held_at`](crate::wire::Body::held_at)):
    /// nothing of it can be sent any more. How many cached bytes that concerns.
    fn forget_held(&mut self, place: u64, out: &mut Out) -> u64 {
        let _ = (place, out);
        0
    }
}

/// Makes the enums of all agents from the list of their files. Beside them stands a router without an agent.
macro_rules! agents {
    ($($Name:ident: $file:ident::$Config:ident,)*) => {
        $(mod $file;
        pub use $file::$Config;)*

        /// The agent at a base station.
        #[derive(Clone, PartialEq, Debug, Serialize)]
        #[serde(rename_all = "kebab-case", tag = "agent")]
        #[expect(missing_docs, reason = "each is described by its configuration")]
        #[expect(clippy::large_enum_variant, reason = "a scenario has one for each base station")]
        pub enum AgentConfig {
            /// Packets are only forwarded.
            None,
            $($Name($Config),)*
        }

        /// The agent at a base station.
        #[derive(Clone, Debug)]
        #[expect(missing_docs, reason = "each is described by its configuration")]
        pub enum Agent {
            None(Router),
            $($Name(Box<<$Config as Config>::Agent>),)*
        }

        /// The words for an agent, in the order of the manual.
        pub fn words() -> impl Iterator<Item = &'static Descriptor<Read>> {
            [core::slice::from_ref(&none::WORD), $($Config::WORDS),*].into_iter().flatten()
        }

        impl AgentConfig {
            /// Its word.
            pub fn word(&self) -> &'static str {
                match self {
                    AgentConfig::None => "none",
                    $(AgentConfig::$Name(config) => config.word(),)*
                }
            }

            /// What the line of a plan says of it.
            pub fn plan(&self) -> String {
                match self {
                    AgentConfig::None => "no agent".to_owned(),
                    $(AgentConfig::$Name(config) => config.plan(),)*
                }
            }

            /// What it lacks to be of use for data between these hosts, if it is of none.
            pub fn idle(&self, ends: &Ends<'_>) -> Option<Idle> {
                match self {
                    AgentConfig::None => None,
                    $(AgentConfig::$Name(config) => config.idle(ends),)*
                }
            }

            /// Whether it repairs what a radio on its right loses.
            pub fn needs_radio(&self) -> bool {
                match self {
                    AgentConfig::None => false,
                    $(AgentConfig::$Name(config) => config.needs_radio(),)*
                }
            }

            /// Whether it helps data on its way to the left, or has nothing to help.
            pub fn helps_both_ways(&self) -> bool {
                match self {
                    AgentConfig::None => true,
                    $(AgentConfig::$Name(config) => config.helps_both_ways(),)*
                }
            }
        }

        impl Agent {
            /// What it must be shown. All words for a machine need the same.
            pub fn needs(&self) -> Needs {
                match self {
                    Agent::None(_) => none::WORD.system.needs,
                    $(Agent::$Name(_) => <$Config as Config>::WORDS[0].system.needs,)*
                }
            }

            /// The agent of `config`, watching no flow yet.
            pub fn new(config: &AgentConfig) -> Agent {
                match config {
                    AgentConfig::None => Agent::None(Router),
                    $(AgentConfig::$Name(config) => Agent::$Name(Box::new(config.agent())),)*
                }
            }

            #[inline]
            fn inner(&self) -> &dyn BaseStation {
                match self {
                    Agent::None(agent) => agent,
                    $(Agent::$Name(agent) => &**agent,)*
                }
            }

            #[inline]
            fn inner_mut(&mut self) -> &mut dyn BaseStation {
                match self {
                    Agent::None(agent) => agent,
                    $(Agent::$Name(agent) => &mut **agent,)*
                }
            }
        }
    };
}

agents! {
    Snoop: snoop::SnoopAgent,
    SnoopNack: snoop_nack::NackAgent,
    SeqCache: seq_cache::SeqCacheAgent,
    Split: split::SplitConfig,
    Ebsn: ebsn::Ebsn,
    SourceQuench: source_quench::SourceQuench,
    GoodPacketSize: good_packet_size::PacketSizes,
    AckReconstruction: ack_reconstruction::Reconstruction,
}

impl BaseStation for Agent {
    fn flows(&self) -> usize {
        self.inner().flows()
    }

    fn state_bytes(&self) -> usize {
        self.inner().state_bytes()
    }

    fn peak_state_bytes(&self) -> usize {
        self.inner().peak_state_bytes()
    }

    fn kept(&self, each: &mut dyn FnMut(Kept)) {
        self.inner().kept(each);
    }

    fn takes_bulk(&self) -> bool {
        self.inner().takes_bulk()
    }

    fn endings(&self) -> usize {
        self.inner().endings()
    }

    fn reset_endings(&mut self, now: Time, out: &mut Out) {
        self.inner_mut().reset_endings(now, out);
    }

    fn report_endings(&mut self, all: bool, each: &mut dyn FnMut(Ending)) {
        self.inner_mut().report_endings(all, each);
    }

    fn bypass(&mut self, now: Time, flow: FlowKey, bypass: Bypass, out: &mut Out) {
        self.inner_mut().bypass(now, flow, bypass, out);
    }

    fn drain(&mut self, next: Agent) -> Result<(), Agent> {
        self.inner_mut().drain(next)
    }

    fn successor(&mut self) -> Option<Agent> {
        self.inner_mut().successor()
    }

    fn give_away(&mut self, now: Time, host: Addr, out: &mut Out) -> Option<Handover> {
        self.inner_mut().give_away(now, host, out)
    }

    fn await_state(&mut self, host: Addr, coming: bool) {
        self.inner_mut().await_state(host, coming);
    }

    fn take_over(&mut self, now: Time, state: Handover, out: &mut Out) -> Result<(), Handover> {
        self.inner_mut().take_over(now, state, out)
    }

    fn overtaken(&mut self, now: Time, flow: FlowKey) {
        self.inner_mut().overtaken(now, flow);
    }

    fn forget_held(&mut self, place: u64, out: &mut Out) -> u64 {
        self.inner_mut().forget_held(place, out)
    }
}

impl Machine for Agent {
    #[inline]
    fn on_packet(&mut self, now: Time, from: Side, packet: Packet, out: &mut Out) {
        self.inner_mut().on_packet(now, from, packet, out);
    }

    fn on_signal(&mut self, now: Time, from: Side, signal: Signal, out: &mut Out) {
        self.inner_mut().on_signal(now, from, signal, out);
    }

    #[inline]
    fn on_wake(&mut self, now: Time, out: &mut Out) {
        self.inner_mut().on_wake(now, out);
    }

    #[inline]
    fn next_wake(&self) -> Option<Time> {
        self.inner().next_wake()
    }

    fn holds(&self) -> usize {
        self.inner().holds()
    }
}
