//! Base-station agents. Each sits between the wired side and the wireless side of a path.
//!
//! The wired side, with the fixed host, is on the left; the wireless side, with the mobile host, on the
//! right. Most agents help data on its way from left to right; a split connection has an end on each side. Every
//! agent is an IP hop as well: it drops packets with a damaged IP header, and passes on packets with a damaged TCP
//! checksum without looking into them, unless they are for an end point of its own.

mod ack_reconstruction;
mod ackp;
mod ebsn;
pub mod flows;
mod good_packet_size;
mod none;
mod seq_cache;
mod snoop;
mod snoop_nack;
mod snoop_smart;
mod split;

use serde::Serialize;

use crate::machine::{Machine, Out, Side, Signal};
use crate::tcp::{TcpConfig, Variant};
use crate::units::{Bytes, Span, Time};
use crate::wire::{Notice, Packet};

pub use ack_reconstruction::{AckReconstruction, Reconstruction};
pub use ebsn::Notifier;
pub use good_packet_size::{PacketSize, PacketSizes};
pub use none::Router;
pub use seq_cache::SeqCache;
pub use snoop::Snoop;
pub use snoop_nack::SnoopNack;
pub use split::Split;

/// How the local time-out follows from the round trips measured over the wireless link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimeoutRule {
    /// Twice the smoothed round trip (parsa98 4, after the published description of snoop).
    TwiceSrtt,
    /// The smoothed round trip plus four times its variation, as TCP has it (the Berkeley implementation).
    SrttPlusVar,
}

/// What becomes of duplicate ACKs that tell of losses on the wireless link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DupAcks {
    /// They are hidden from the sender: the link layer is aware of TCP (balakrishnan97 3.1.1).
    Suppress,
    /// They go on to the sender, as if the link layer knew nothing of it.
    Pass,
}

/// Configuration of the snoop agent (balakrishnan97 2; west97 2.6; parsa98 4).
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SnoopConfig {
    /// Duplicate ACKs that cause a local retransmission: 1 (west97) or 2 (parsa98).
    pub dupacks: u32,
    /// Whether selective acknowledgements tell which packets are missing; see `snoop_smart.rs`.
    pub selective: bool,
    /// Whether the sender sees duplicate ACKs of wireless losses.
    pub dup_acks: DupAcks,
    /// How the local time-out is computed.
    pub timeout: TimeoutRule,
    /// Local time-out of a flow without a round-trip measurement.
    pub initial_timeout: Span,
    /// Smallest local time-out.
    pub min_timeout: Span,
    /// Local retransmissions of one packet before it is left to the sender; a retransmission by the sender
    /// makes it count anew.
    pub max_retransmits: u32,
    /// A flow with unacknowledged data that is idle for so long, and no shorter than the local time-out once
    /// there is a measurement, has its first packet retransmitted. With `rtt_fault` the time-out does not count.
    pub persist: Span,
    /// Whether local round trips are also measured over retransmitted packets (the fault of parsa98 5.2.2).
    pub rtt_fault: bool,
    /// Whether local retransmissions go before the packets that wait for the radio.
    pub priority: bool,
    /// Whether a packet is timed from when it leaves the radio's queue, as if the agent stood behind that, and not
    /// from when it comes to the agent. Only a radio hop with medium access or a link layer tells that moment.
    pub from_departure: bool,
    /// Packets cached per flow; when they are used up, newer ones pass uncached.
    pub flow_packets: usize,
    /// Flows watched at once; the least recently used is forgotten first.
    pub flows: usize,
    /// Bytes (headers and payload) cached over all flows; the least recently used flow makes room.
    pub cache: Bytes,
}

impl SnoopConfig {
    /// The snoop of the testbed of west97: the Berkeley implementation, one duplicate ACK (2.6).
    ///
    /// The paper names no timer. The rule, its floor of 100 ms, the first time-out (0.1 s plus four times
    /// 0.25 s) and that nothing is backed off are those of the ns-2 snoop by the authors of the implementation;
    /// the floor of the persist timer is that of parsa98 4.
    pub const fn west97() -> SnoopConfig {
        SnoopConfig {
            dupacks: 1,
            selective: false,
            dup_acks: DupAcks::Suppress,
            timeout: TimeoutRule::SrttPlusVar,
            initial_timeout: Span::millis(1100),
            min_timeout: Span::millis(100),
            max_retransmits: 100,
            persist: Span::millis(200),
            rtt_fault: false,
            priority: false,
            from_departure: false,
            flow_packets: 128,
            flows: 1024,
            cache: Bytes(16 << 20),
        }
    }

    /// The snoop of parsa98 4: two duplicate ACKs, 2 srtt but at least 40 ms, persist timer 200 ms.
    /// Its first experiments ran with `rtt_fault` (5.2.2).
    ///
    /// Local retransmissions go first, as the published description has it that the paper matched its code with. And
    /// packets are timed from when they leave for the air: in Figure 18(b) the local time-out is 60 ms with a window
    /// of packets waiting, so the paper's round trips do not hold that queue.
    pub const fn parsa98() -> SnoopConfig {
        SnoopConfig {
            dupacks: 2,
            timeout: TimeoutRule::TwiceSrtt,
            initial_timeout: Span::millis(200),
            min_timeout: Span::millis(40),
            priority: true,
            from_departure: true,
            ..SnoopConfig::west97()
        }
    }

    /// The snoop of balakrishnan97 2 and 3, and with duplicate ACKs let through its LL.
    ///
    /// The same implementation as in [`SnoopConfig::west97`], which was ported from it, with what its authors describe
    /// in the publication that section 2 sums up: twice the smoothed round trip as time-out, and local retransmissions
    /// go first. Time-outs are of 200 ms at least, so that timers take little time.
    pub const fn daedalus() -> SnoopConfig {
        SnoopConfig {
            timeout: TimeoutRule::TwiceSrtt,
            min_timeout: Span::millis(200),
            priority: true,
            ..SnoopConfig::west97()
        }
    }

    /// The same with selective acknowledgements (balakrishnan97 3.1.1).
    pub fn selective(mut self) -> SnoopConfig {
        self.selective = true;
        self
    }
}

/// When a base station forges partial acknowledgements.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AckpMode {
    /// The algorithm of west97 3.3: delayed-ACK timer, `lastackp`, only to senders that offered the option.
    Full,
    /// The first implementation of west97 4.2: one for every data packet.
    EveryPacket,
}

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
    /// Connections split at once.
    pub flows: usize,
    /// Bytes set aside for the buffers of all connections together.
    pub memory: Bytes,
}

impl SplitConfig {
    /// Two connections of `tcp` with 64 KiB for each direction, as in balakrishnan97 3.2.
    pub fn new(tcp: TcpConfig) -> SplitConfig {
        SplitConfig {
            wired: tcp.clone(),
            wireless: tcp,
            buffer: Bytes(64 << 10),
            flows: 1024,
            memory: Bytes(128 << 20),
        }
    }

    /// The same with selective acknowledgements towards the mobile host.
    //= balakrishnan97#3.2: the wireless connection uses TCP Reno enhanced with selective acknowledgments
    pub fn selective(mut self) -> SplitConfig {
        self.wireless.variant = Variant::Sack;
        self.wireless.sack = true;
        self
    }

    /// The same with SMART towards a mobile host that speaks it, and otherwise with the blocks of RFC 2018.
    //= balakrishnan97#3.2: the SMART-based selective acknowledgment scheme operating over the wireless link
    pub fn smart(self) -> SplitConfig {
        let mut split = self.selective();
        split.wireless.variant = Variant::Smart;
        split.wireless.smart = true;
        split
    }

    /// Whether only the half towards the mobile host uses selective acknowledgements.
    pub fn is_selective(&self) -> bool {
        self.wireless.sack && !self.wired.sack
    }
}

/// The agent at a base station.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case", tag = "agent")]
pub enum AgentConfig {
    /// Packets are only forwarded.
    None,
    /// Local retransmission, with partial acknowledgements or without.
    Snoop {
        /// Caching and retransmission.
        snoop: SnoopConfig,
        /// Partial acknowledgements.
        ackp: Option<AckpMode>,
    },
    /// Snoop, and negative acknowledgements for what the mobile host sends.
    SnoopNack {
        /// Caching and retransmission; timers and bounds of both directions.
        snoop: SnoopConfig,
    },
    /// Sequence numbers only; the sender retransmits on a loss notification (west97 7.0).
    SeqCache {
        /// Flows watched at once.
        flows: usize,
    },
    /// The connection ends at the base station, and a second one runs over the air.
    Split(Box<SplitConfig>),
    /// The source is told of each failed attempt of the link layer (bakshi96 4.2.3).
    Ebsn {
        /// No message follows another one sooner; zero sends each.
        spacing: Span,
    },
    /// The source is told to slow down at each failed attempt of the link layer (bakshi96 4.2.2).
    SourceQuench {
        /// No message follows another one sooner; zero sends each.
        spacing: Span,
    },
    /// Segments are kept to what is good for the state of the channel (bakshi96 4.1).
    GoodPacketSize(PacketSizes),
    /// ACKs that are missing behind a slow return link are filled in again (RFC 3449 5.3.1).
    AckReconstruction(Reconstruction),
}

/// The agent at a base station.
#[derive(Debug)]
pub enum Agent {
    /// See [`AgentConfig::None`].
    None(Router),
    /// See [`AgentConfig::Snoop`].
    Snoop(Box<Snoop>),
    /// See [`AgentConfig::SnoopNack`].
    SnoopNack(Box<SnoopNack>),
    /// See [`AgentConfig::SeqCache`].
    SeqCache(Box<SeqCache>),
    /// See [`AgentConfig::Split`].
    Split(Box<Split>),
    /// See [`AgentConfig::Ebsn`] and [`AgentConfig::SourceQuench`].
    Notifier(Notifier),
    /// See [`AgentConfig::GoodPacketSize`].
    PacketSize(PacketSize),
    /// See [`AgentConfig::AckReconstruction`].
    AckReconstruction(Box<AckReconstruction>),
}

impl Agent {
    /// The agent of `config`, watching no flow yet.
    pub fn new(config: &AgentConfig) -> Agent {
        match config {
            AgentConfig::None => Agent::None(Router),
            AgentConfig::Snoop { snoop, ackp } => {
                Agent::Snoop(Box::new(Snoop::new(snoop.clone(), *ackp)))
            }
            AgentConfig::SnoopNack { snoop } => {
                Agent::SnoopNack(Box::new(SnoopNack::new(snoop.clone())))
            }
            AgentConfig::SeqCache { flows } => Agent::SeqCache(Box::new(SeqCache::new(*flows))),
            AgentConfig::Split(config) => Agent::Split(Box::new(Split::new(config))),
            AgentConfig::Ebsn { spacing } => {
                Agent::Notifier(Notifier::new(Notice::BadState, *spacing))
            }
            AgentConfig::SourceQuench { spacing } => {
                Agent::Notifier(Notifier::new(Notice::SourceQuench, *spacing))
            }
            AgentConfig::GoodPacketSize(sizes) => Agent::PacketSize(PacketSize::new(sizes)),
            AgentConfig::AckReconstruction(config) => {
                Agent::AckReconstruction(Box::new(AckReconstruction::new(config)))
            }
        }
    }

    /// Flows watched now.
    pub fn flows(&self) -> usize {
        match self {
            Agent::None(_) | Agent::Notifier(_) | Agent::PacketSize(_) => 0,
            Agent::Snoop(agent) => agent.flows(),
            Agent::SnoopNack(agent) => agent.flows(),
            Agent::SeqCache(agent) => agent.flows(),
            Agent::Split(agent) => agent.flows(),
            Agent::AckReconstruction(agent) => agent.flows(),
        }
    }

    /// Bytes of state held for the flows watched now, headers and payload of cached packets included.
    pub fn state_bytes(&self) -> usize {
        match self {
            Agent::None(_) | Agent::Notifier(_) | Agent::PacketSize(_) => 0,
            Agent::Snoop(agent) => agent.state_bytes(),
            Agent::SnoopNack(agent) => agent.state_bytes(),
            Agent::SeqCache(agent) => agent.state_bytes(),
            Agent::Split(agent) => agent.state_bytes(),
            Agent::AckReconstruction(agent) => agent.state_bytes(),
        }
    }

    /// The most that [`Agent::state_bytes`] ever was.
    pub fn peak_state_bytes(&self) -> usize {
        match self {
            Agent::None(_) | Agent::Notifier(_) | Agent::PacketSize(_) => 0,
            Agent::Snoop(agent) => agent.peak_state_bytes(),
            Agent::SnoopNack(agent) => agent.peak_state_bytes(),
            Agent::SeqCache(agent) => agent.peak_state_bytes(),
            Agent::Split(agent) => agent.peak_state_bytes(),
            Agent::AckReconstruction(agent) => agent.peak_state_bytes(),
        }
    }
}

impl Machine for Agent {
    fn on_packet(&mut self, now: Time, from: Side, packet: Packet, out: &mut Out) {
        match self {
            Agent::None(agent) => agent.on_packet(now, from, packet, out),
            Agent::Snoop(agent) => agent.on_packet(now, from, packet, out),
            Agent::SnoopNack(agent) => agent.on_packet(now, from, packet, out),
            Agent::SeqCache(agent) => agent.on_packet(now, from, packet, out),
            Agent::Split(agent) => agent.on_packet(now, from, packet, out),
            Agent::Notifier(agent) => agent.on_packet(now, from, packet, out),
            Agent::PacketSize(agent) => agent.on_packet(now, from, packet, out),
            Agent::AckReconstruction(agent) => agent.on_packet(now, from, packet, out),
        }
    }

    fn on_signal(&mut self, now: Time, from: Side, signal: Signal, out: &mut Out) {
        match self {
            Agent::None(agent) => agent.on_signal(now, from, signal, out),
            Agent::Snoop(agent) => agent.on_signal(now, from, signal, out),
            Agent::SnoopNack(agent) => agent.on_signal(now, from, signal, out),
            Agent::SeqCache(agent) => agent.on_signal(now, from, signal, out),
            Agent::Split(agent) => agent.on_signal(now, from, signal, out),
            Agent::Notifier(agent) => agent.on_signal(now, from, signal, out),
            Agent::PacketSize(agent) => agent.on_signal(now, from, signal, out),
            Agent::AckReconstruction(agent) => agent.on_signal(now, from, signal, out),
        }
    }

    fn on_wake(&mut self, now: Time, out: &mut Out) {
        match self {
            Agent::None(agent) => agent.on_wake(now, out),
            Agent::Snoop(agent) => agent.on_wake(now, out),
            Agent::SnoopNack(agent) => agent.on_wake(now, out),
            Agent::SeqCache(agent) => agent.on_wake(now, out),
            Agent::Split(agent) => agent.on_wake(now, out),
            Agent::Notifier(agent) => agent.on_wake(now, out),
            Agent::PacketSize(agent) => agent.on_wake(now, out),
            Agent::AckReconstruction(agent) => agent.on_wake(now, out),
        }
    }

    fn next_wake(&self) -> Option<Time> {
        match self {
            Agent::None(agent) => agent.next_wake(),
            Agent::Snoop(agent) => agent.next_wake(),
            Agent::SnoopNack(agent) => agent.next_wake(),
            Agent::SeqCache(agent) => agent.next_wake(),
            Agent::Split(agent) => agent.next_wake(),
            Agent::Notifier(agent) => agent.next_wake(),
            Agent::PacketSize(agent) => agent.next_wake(),
            Agent::AckReconstruction(agent) => agent.next_wake(),
        }
    }

    fn holds(&self) -> usize {
        match self {
            Agent::AckReconstruction(agent) => agent.holds(),
            _ => 0,
        }
    }
}
