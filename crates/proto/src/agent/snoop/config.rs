//! Configuration of the snoop agent, with the published configurations.

use serde::Serialize;

use super::super::flows;
use super::timeout::TimeoutRule;
use crate::describe::Keys;
use crate::units::{Bytes, Span};

/// Treatment of duplicate ACKs for losses on the wireless link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DupAcks {
    /// They are suppressed: the link layer is aware of TCP (balakrishnan97 3.1.1).
    Suppress,
    /// They are forwarded to the sender, as by a link layer that is not aware of TCP.
    Pass,
}

/// Rule for the times at which a base station forges partial acknowledgements.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AckpMode {
    /// The algorithm of west97 3.3: delayed-ACK timer, `lastackp`, only to senders that offered the option.
    Full,
    /// The first implementation, west97 4.2: one for every data packet.
    EveryPacket,
}

/// Local retransmission, optionally with partial acknowledgements.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SnoopAgent {
    /// Caching and retransmission.
    pub snoop: SnoopConfig,
    /// Partial acknowledgements.
    pub ackp: Option<AckpMode>,
}

/// Configuration of the snoop agent (balakrishnan97 2; west97 2.6; parsa98 4).
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SnoopConfig {
    /// Duplicate ACKs that cause a local retransmission: 1 (west97) or 2 (parsa98).
    pub dupacks: u32,
    /// Whether selective acknowledgements identify the missing packets; see `snoop_smart.rs`.
    pub selective: bool,
    /// Whether duplicate ACKs of wireless losses reach the sender.
    pub dup_acks: DupAcks,
    /// Whether SACK blocks behind a locally repaired hole are removed from advancing ACKs. A sender with SACK
    /// needs no duplicate ACK to detect the hole as a loss. The published agents did not support SACK.
    pub hide_blocks: bool,
    /// Rule of the local timeout.
    pub timeout: TimeoutRule,
    /// Local timeout of a flow without a round-trip measurement.
    pub initial_timeout: Span,
    /// Minimum of the local timeout.
    pub min_timeout: Span,
    /// Limit of local retransmissions of one packet, after which it is left to the sender. A retransmission
    /// by the sender resets the count.
    pub max_retransmits: u32,
    /// Idle time after which the first unacknowledged packet of a flow is retransmitted; at least the local
    /// timeout once there is a measurement. With `rtt_fault` the timeout is ignored.
    pub persist: Span,
    /// Whether local round trips are also measured over retransmitted packets (the fault of parsa98 5.2.2).
    pub rtt_fault: bool,
    /// Whether a new ACK for exactly one locally retransmitted packet causes the retransmission of the next one, if
    /// that was not repeated: a burst of errors destroys successive packets. In the code of the authors, as ported
    /// in `elements/tcpudp/snooptcp.cc` of the Click router (1999).
    #[serde(skip_serializing_if = "is_false")]
    pub burst_check: bool,
    /// Whether local retransmissions precede packets that wait for the radio.
    pub priority: bool,
    /// Whether a packet is timed from its departure from the radio's queue, and not from its arrival at the
    /// agent. The agent then measures as if it were behind the queue. Only a radio hop with medium access
    /// or a link layer signals the departure.
    pub from_departure: bool,
    /// Limit of cached packets per flow; newer ones pass uncached.
    pub flow_packets: usize,
    /// Limit of tracked flows; the least recently used is evicted.
    pub flows: usize,
    /// Limit of cached bytes (headers and payload) over all flows; the least recently used flow is evicted.
    pub cache: Bytes,
    /// Whether flows are ignored if their sender does not slow down after losses; see `reaction.rs`.
    #[serde(skip_serializing_if = "is_false")]
    pub leave_loss_tolerant: bool,
    /// Whether losses in a full queue of the radio are left to the sender; see `depth.rs`.
    #[serde(skip_serializing_if = "is_false")]
    pub show_congestion: bool,
}

/// Omitted if false, so that runs of the published agents keep their names.
fn is_false(flag: &bool) -> bool {
    !flag
}

impl SnoopConfig {
    /// The snoop of the testbed of west97: the Berkeley implementation, one duplicate ACK (2.6).
    ///
    /// The paper specifies no timer. The timer here is that of the ns-2 snoop by the authors of the
    /// implementation: its rule, a minimum of 100 ms, a first timeout of 0.1 s plus four times 0.25 s,
    /// and no backoff. The minimum of the persist timer is that of parsa98 4.
    pub const fn west97() -> SnoopConfig {
        SnoopConfig {
            dupacks: 1,
            selective: false,
            dup_acks: DupAcks::Suppress,
            hide_blocks: true,
            timeout: TimeoutRule::SrttPlusVar,
            initial_timeout: Span::millis(1100),
            min_timeout: Span::millis(100),
            max_retransmits: 100,
            persist: Span::millis(200),
            rtt_fault: false,
            burst_check: false,
            priority: false,
            from_departure: false,
            flow_packets: 128,
            flows: 1024,
            cache: Bytes(16 << 20),
            leave_loss_tolerant: false,
            show_congestion: false,
        }
    }

    /// The snoop of parsa98 4: two duplicate ACKs, a timeout of 2 srtt but at least 40 ms, a persist timer of
    /// 200 ms. Its first experiments ran with `rtt_fault` (5.2.2).
    ///
    /// Local retransmissions are sent first, as in the published description that the paper followed. Packets
    /// are timed from their departure. In Figure 18(b) the local timeout is 60 ms while a window of packets
    /// waits, so the paper's round trips exclude that queue.
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

    /// The snoop of balakrishnan97 2 and 3; without suppression of duplicate ACKs it is the paper's LL.
    ///
    /// It is the implementation of [`SnoopConfig::west97`], which was ported from it, with details from the
    /// publication that section 2 summarises. The timeout is twice the smoothed round trip, and local
    /// retransmissions are sent first. Timeouts are at least 200 ms, to limit the cost of timers.
    pub const fn daedalus() -> SnoopConfig {
        SnoopConfig {
            timeout: TimeoutRule::TwiceSrtt,
            min_timeout: Span::millis(200),
            priority: true,
            ..SnoopConfig::west97()
        }
    }

    /// For modern hosts: as [`SnoopConfig::west97`], with local timeouts that permit several attempts within
    /// Linux's minimum RTO of 200 ms. Flows are ignored if their sender does not slow down after losses.
    ///
    /// The cache has room for the windows of long paths. Then most losses at a full queue would be hidden too,
    /// so they are left to the sender. Local retransmissions are sent first, because the sender receives no ACK
    /// until a hole is filled, and then sends its whole window at once.
    pub const fn linux() -> SnoopConfig {
        SnoopConfig {
            initial_timeout: Span::millis(200),
            min_timeout: Span::millis(40),
            priority: true,
            flow_packets: 4096,
            leave_loss_tolerant: true,
            show_congestion: true,
            ..SnoopConfig::west97()
        }
    }

    /// Enables selective acknowledgements (balakrishnan97 3.1.1).
    pub fn selective(mut self) -> SnoopConfig {
        self.selective = true;
        self
    }

    /// Reads the keys, with the agent `c` or another published one as the base.
    pub fn keys(k: &mut Keys<'_>, mut c: SnoopConfig) -> SnoopConfig {
        let published = [
            ("linux", SnoopConfig::linux()),
            ("west97", SnoopConfig::west97()),
            ("parsa98", SnoopConfig::parsa98()),
            ("daedalus", SnoopConfig::daedalus()),
        ];
        k.word(
            "agent-preset",
            &mut c,
            &published,
            "the settings that the other keys modify: `linux` for modern hosts, or a published snoop agent",
        );
        let times = Span::millis(1)..=Span::secs(3600);
        let doc = "duplicate ACKs that cause a local retransmission";
        k.count("dupacks", &mut c.dupacks, 1..=255, doc);
        let dup_acks = [("suppress", DupAcks::Suppress), ("pass", DupAcks::Pass)];
        k.word(
            "dup-acks",
            &mut c.dup_acks,
            &dup_acks,
            "whether the sender sees duplicate ACKs of wireless losses",
        );
        let doc = "whether SACK blocks of data after a wireless loss are removed from ACKs that advance; \
                    with `dup-acks = \"pass\"` they stay";
        k.flag("hide-blocks", &mut c.hide_blocks, doc);
        k.word(
            "timeout-rule",
            &mut c.timeout,
            TimeoutRule::WORDS,
            "how the local timeout is computed from local round trips",
        );
        let doc = "the local timeout of a flow without a measured round trip";
        k.within("initial-timeout", &mut c.initial_timeout, times.clone(), doc);
        k.within("min-timeout", &mut c.min_timeout, times.clone(), "the minimum local timeout");
        let doc = "local retransmissions of a packet before it is left to the sender";
        k.count("max-retransmits", &mut c.max_retransmits, 1..=1_000_000, doc);
        let doc =
            "the idle time of a flow after which its first unacknowledged packet is retransmitted";
        k.within("persist", &mut c.persist, times, doc);
        let doc = "whether local round trips are measured over retransmitted packets too, the fault of parsa98 5.2.2";
        k.flag("rtt-fault", &mut c.rtt_fault, doc);
        let doc =
            "whether a new ACK of one repeated packet causes the retransmission of the next packet";
        k.flag("burst-check", &mut c.burst_check, doc);
        let doc = "whether local retransmissions go before the packets that wait for the radio";
        k.flag("priority", &mut c.priority, doc);
        let doc = "whether packets are timed from when they leave the queue of the radio, which must be a hop";
        k.flag("from-departure", &mut c.from_departure, doc);
        let doc = "the maximum number of cached packets of a flow; newer ones pass uncached";
        k.count("flow-packets", &mut c.flow_packets, 1..=1_000_000, doc);
        flows::watched(k, &mut c.flows);
        flows::cached(k, &mut c.cache);
        let doc = "whether flows are ignored if their sender does not slow down after losses";
        k.flag("leave-loss-tolerant", &mut c.leave_loss_tolerant, doc);
        let doc = "whether losses in a full queue of the radio are left to the sender";
        k.flag("show-congestion", &mut c.show_congestion, doc);
        c
    }
}
