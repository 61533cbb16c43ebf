//! Configuration of the snoop agent, and the published ones.

use serde::Serialize;

use super::super::flows;
use super::TimeoutRule;
use crate::describe::Keys;
use crate::units::{Bytes, Span};

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
    /// Whether SACK blocks of what lies behind a hole that is repaired here are taken out of ACKs that move on: a
    /// sender with SACK needs no duplicate ACK to take the hole for lost. The published agents knew no SACK.
    pub hide_blocks: bool,
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
    /// Whether flows are left alone whose sender does not slow down after losses; see `reaction.rs`.
    #[serde(skip_serializing_if = "is_false")]
    pub leave_loss_tolerant: bool,
    /// Whether losses in a full queue of the radio are left to the sender; see `depth.rs`.
    #[serde(skip_serializing_if = "is_false")]
    pub show_congestion: bool,
}

/// The published agents keep their names of runs.
fn is_false(flag: &bool) -> bool {
    !flag
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
            hide_blocks: true,
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
            leave_loss_tolerant: false,
            show_congestion: false,
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

    /// For modern hosts: as [`SnoopConfig::west97`], with local time-outs that leave room for several attempts within the
    /// 200 ms of Linux's least time-out. Flows are left alone whose sender does not slow down after losses.
    pub const fn linux() -> SnoopConfig {
        SnoopConfig {
            initial_timeout: Span::millis(200),
            min_timeout: Span::millis(40),
            leave_loss_tolerant: true,
            ..SnoopConfig::west97()
        }
    }

    /// The same with selective acknowledgements (balakrishnan97 3.1.1).
    pub fn selective(mut self) -> SnoopConfig {
        self.selective = true;
        self
    }

    /// Goes over the keys, beginning with the agent `c` or another known one.
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
            "the snoop agent that the other keys begin with: `linux` for modern hosts, or a published one",
        );
        let times = Span::millis(1)..=Span::secs(3600);
        let what = "duplicate ACKs that cause a local retransmission";
        k.count("dupacks", &mut c.dupacks, 1..=255, what);
        let dup_acks = [("suppress", DupAcks::Suppress), ("pass", DupAcks::Pass)];
        k.word(
            "dup-acks",
            &mut c.dup_acks,
            &dup_acks,
            "whether the sender sees duplicate ACKs of wireless losses",
        );
        let what = "whether SACK blocks of what lies behind a wireless loss are taken out of ACKs that move on; \
                    with `dup-acks = \"pass\"` they stay";
        k.flag("hide-blocks", &mut c.hide_blocks, what);
        k.word(
            "timeout-rule",
            &mut c.timeout,
            TimeoutRule::WORDS,
            "how the local time-out follows from local round trips",
        );
        let what = "the local time-out of a flow without a measured round trip";
        k.within("initial-timeout", &mut c.initial_timeout, times.clone(), what);
        k.within("min-timeout", &mut c.min_timeout, times.clone(), "the least local time-out");
        let what = "local retransmissions of a packet before it is left to the sender";
        k.count("max-retransmits", &mut c.max_retransmits, 1..=1_000_000, what);
        let what = "a flow that is idle for so long with data outstanding has its first packet retransmitted";
        k.within("persist", &mut c.persist, times, what);
        let what = "whether local round trips are measured over retransmitted packets too, the fault of parsa98 5.2.2";
        k.flag("rtt-fault", &mut c.rtt_fault, what);
        let what = "whether local retransmissions go before the packets that wait for the radio";
        k.flag("priority", &mut c.priority, what);
        let what = "whether packets are timed from when they leave the queue of the radio, which must be a hop";
        k.flag("from-departure", &mut c.from_departure, what);
        let what = "packets cached of a flow; newer ones pass uncached";
        k.count("flow-packets", &mut c.flow_packets, 1..=1_000_000, what);
        flows::watched(k, &mut c.flows);
        flows::cached(k, &mut c.cache);
        let what = "whether flows are left alone whose sender does not slow down after losses";
        k.flag("leave-loss-tolerant", &mut c.leave_loss_tolerant, what);
        let what = "whether losses in a full queue of the radio are left to the sender";
        k.flag("show-congestion", &mut c.show_congestion, what);
        c
    }
}
