//! What kind of TCP an end point speaks. A variant is its configuration; a preset is a known system's.

use serde::Serialize;

use crate::units::Span;

pub use super::prediction::Prediction;

/// How a sender detects and repairs losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Variant {
    /// Fast retransmit, then slow start (west97 2.2.1).
    Tahoe,
    /// Fast recovery with window inflation (west97 2.2.2, RFC 5681 section 3.2).
    Reno,
    /// Partial ACKs keep fast recovery alive (west97 2.3.1, RFC 6582).
    NewReno,
    /// Scoreboard and pipe (west97 2.3.2, RFC 2018, RFC 6675).
    Sack,
    /// ACKs name what caused them; holes are inferred at once (balakrishnan97 3.1.2).
    Smart,
    /// The receiver names the holes, which are sent again at once (SCPS-TP, CCSDS 714.0-B).
    Snack,
    /// Loss detection by time, tail loss probes, proportional rate reduction (RFC 8985, RFC 6937).
    Rack,
}

/// What a TCP's timers and round-trip measurements are driven by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// BSD: one slow and one fast tick for the whole host; round trips are counted in slow ticks with the
    /// integer arithmetic of 4.4BSD, time-outs expire on slow ticks, delayed ACKs on fast ones.
    Ticks {
        /// Period of the retransmission clock (500 ms in BSD).
        slow: Span,
        /// Period of the delayed-ACK clock (200 ms in BSD).
        fast: Span,
    },
    /// RFC 6298: measurements and timers at a granularity, each timer on its own.
    Fine {
        /// Clock granularity G of RFC 6298.
        granularity: Span,
    },
}

/// How the time-out follows from the estimate, with [`Clock::Fine`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RtoRule {
    /// `srtt + max(G, 4 rttvar)` (RFC 6298).
    Rfc6298,
    /// `srtt + 4 rttvar` (Jacobson 1988, appendix A): where round trips never vary in units of G, the time-out
    /// comes down to one unit.
    Jacobson,
    /// `srtt + max(rto-min, 4 rttvar)`, as Linux: the least time-out is counted from the round trip.
    Linux,
}

/// When a receiver acknowledges data that arrives in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct DelayedAck {
    /// Acknowledge at the latest every so many full segments; 1 acknowledges each segment at once, and
    /// [`DelayedAck::BY_TIME`] is no number of them.
    pub every: u32,
    /// Acknowledge at the latest so long after an unacknowledged segment. With [`Clock::Ticks`] this is the
    /// fast tick and the delay is until its next beat.
    pub timeout: Span,
}

impl DelayedAck {
    /// [`DelayedAck::every`] where time alone counts (agarwal00 4.5), and the window: an ACK goes as well when the one
    /// that it offers is twice what the peer still has.
    pub const BY_TIME: u32 = u32::MAX;
}

/// What a sender does with a partial acknowledgement of a base station (west97 3.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AckpReaction {
    /// The option is not offered; partial acknowledgements are ignored.
    Off,
    /// The retransmission timer starts again with the time-out in force.
    Rearm,
    /// The timer is set to a constant: twice the time-out in force before any back-off (west97 4.2).
    Constant,
    /// Each partial acknowledgement in a row doubles the time-out, up to the maximum.
    Exponential,
}

/// What a loss halves to give the slow-start threshold. The result is rounded down to whole segments and is
/// at least two of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Halving {
    /// BSD: the smaller of congestion window and peer's window, at each time-out anew, so that a second
    /// time-out leaves two segments.
    Window,
    /// RFC 5681 equation 4: the data in flight, and only at the first time-out for a segment.
    Flight,
}

/// How a measured round trip becomes a whole number of the clock's granularity.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rounding {
    /// Up, so that no time-out is too short.
    Up,
    /// To the nearest, and at least one: the network simulators of LBNL (bakshi96 3.3).
    Nearest,
}

/// What opens the congestion window, and how far a loss closes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Congestion {
    /// Slow start and congestion avoidance; a loss halves the window (RFC 5681).
    Reno,
    /// Round trips tell how much waits in queues on the way (Brakmo and Peterson 1995).
    Vegas,
    /// A cubic function of the time since the last loss (RFC 9438).
    Cubic,
    /// A model of the path from samples of the delivery rate (BBR, version 1). Needs [`Variant::Rack`].
    Bbr,
}

/// How many segments of a window [`Congestion::Vegas`] wants to wait in queues on the way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct VegasRule {
    /// Below this the window grows.
    pub alpha: u32,
    /// Above this it shrinks.
    pub beta: u32,
    /// Above this slow start ends.
    pub gamma: u32,
}

/// How the congestion window opens in congestion avoidance.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GrowthRule {
    /// One segment per window (RFC 5681).
    Rfc5681,
    /// 4.4BSD: one segment per window plus an eighth of a segment per ACK, which RFC 2525 section 2.3 lists
    /// among the known faults of the TCPs that descend from it.
    Bsd,
}

/// What a loss is taken for where nothing tells: the default assumption of SCPS-TP, which leaves it to the configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossCause {
    /// A full queue: the window shrinks.
    Congestion,
    /// Noise on a link: the window stays.
    Corruption,
}

/// Explicit loss notification (west97 2.3.3): which damaged segments a receiver tells the sender of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ElnMode {
    /// None; notifications are neither offered nor obeyed.
    Off,
    /// Those whose IP checksum holds and whose TCP checksum fails: errors in the IP header stay unseen.
    Checksum,
    /// Every one, as if told by an oracle: the bound that the paper compares with.
    Ideal,
}

/// What a sender obeys of explicit loss notifications, and asks for on its SYN.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ElnReaction {
    /// Notifications that name a segment: it is sent again at once (west97 2.3.3).
    Named,
    /// Marks on the ACKs that wait for a lost segment: the third duplicate ACK sends it again, and the window stays
    /// (E2E-ELN of balakrishnan97 3.1.2).
    ThirdDuplicate,
    /// The same marks: the first marked ACK sends it again (E2E-ELN-RXMT).
    FirstAck,
}

/// Congestion control of acknowledgements (balakrishnan97 4.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct AccConfig {
    /// The most segments that share an ACK, whatever the sender's window bears.
    pub most: u32,
    /// An ACK waits no longer than this (the paper: 200 ms). With [`Clock::Ticks`] it is the fast tick.
    pub timeout: Span,
}

impl Default for AccConfig {
    fn default() -> AccConfig {
        AccConfig { most: u32::MAX, timeout: Span::millis(200) }
    }
}

/// Configuration of a TCP end point, sender and receiver side.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TcpConfig {
    /// Loss detection and recovery.
    pub variant: Variant,
    /// Timers.
    pub clock: Clock,
    /// How the time-out follows from the estimate.
    pub rto_rule: RtoRule,
    /// How round trips are rounded; of [`Clock::Fine`] only.
    pub rtt_rounding: Rounding,
    /// Whether the handshake's round trip is a measurement. Simulators of one-way TCP had no handshake.
    pub rtt_from_syn: bool,
    /// Smallest retransmission time-out.
    pub rto_min: Span,
    /// Largest retransmission time-out.
    pub rto_max: Span,
    /// Time-out before the first measurement.
    pub rto_initial: Span,
    /// A connection is given up after this many time-outs in a row.
    pub max_retries: u32,
    /// Largest payload of a segment in bytes, as offered to the peer.
    pub mss: u32,
    /// Socket send buffer in bytes: bounds data in flight.
    pub send_buffer: u32,
    /// Socket receive buffer in bytes: the largest advertised window.
    pub recv_buffer: u32,
    /// Initial congestion window in segments.
    pub initial_window: u32,
    /// Congestion window after a time-out, in segments.
    pub loss_window: u32,
    /// Initial slow-start threshold in bytes.
    pub initial_ssthresh: u32,
    /// What a loss halves.
    pub halving: Halving,
    /// What opens the congestion window, and how far a loss closes it.
    pub congestion: Congestion,
    /// How it opens, with [`Congestion::Reno`].
    pub growth: GrowthRule,
    /// The window opens by the bytes that an ACK acknowledges, of at most so many segments (the limit L of RFC 3465);
    /// 0 counts ACKs instead.
    pub byte_counting: u32,
    /// What it aims at, with [`Congestion::Vegas`].
    pub vegas: VegasRule,
    /// Segments leave at a rate, not in the bursts in which the windows open.
    pub pacing: bool,
    /// Segments that may leave back to back when they are paced.
    pub burst: u32,
    /// Duplicate ACKs that trigger fast retransmit.
    pub dupthresh: u32,
    /// Receiver: when to acknowledge.
    pub delayed_ack: DelayedAck,
    /// Offer explicit congestion notification (RFC 3168).
    pub ecn: bool,
    /// Offer congestion control of acknowledgements.
    pub acc: Option<AccConfig>,
    /// Offer timestamps and PAWS (RFC 7323).
    pub timestamps: bool,
    /// Offer window scaling (RFC 7323).
    pub window_scale: bool,
    /// Predict headers. What is sent and delivered does not depend on it, only what that costs.
    #[serde(skip_serializing_if = "Prediction::is_off")]
    pub prediction: Prediction,
    /// Send SACK blocks when the peer permits them. The `sack` variant needs it on both sides.
    pub sack: bool,
    /// Name what caused an ACK when the peer understands it. The `smart` variant needs it on both sides.
    pub smart: bool,
    /// Send a segment again as often as SMART shows its loss, not only once.
    pub smart_repeat: bool,
    /// Name what is missing when the peer understands it. The `snack` variant needs it on both sides.
    pub snack: bool,
    /// What the `snack` variant takes the losses for that its peer names.
    pub loss_cause: LossCause,
    /// Report segments that arrive twice (RFC 2883), where SACK blocks are sent.
    pub dsack: bool,
    /// Offer and obey partial acknowledgements.
    pub ackp: AckpReaction,
    /// Take no round-trip sample from a segment that a partial acknowledgement covered (west97 3.4).
    pub ackp_karn: bool,
    /// Offer and obey explicit loss notifications, and which losses a receiver notices.
    pub eln: ElnMode,
    /// Offer and obey negative acknowledgements of a base station (balakrishnan97 2.1).
    pub nack: bool,
    /// What a sender does upon loss notifications.
    pub eln_reaction: ElnReaction,
    /// Obey explicit bad state notifications of a base station (bakshi96 4.2.3).
    pub ebsn: bool,
    /// Obey ICMP source quench, as 4.4BSD did and RFC 6633 forbids.
    pub quench: bool,
    /// New data on the first and second duplicate ACK (RFC 3042).
    pub limited_transmit: bool,
    /// Connections to one host share a congestion window and find losses together (balakrishnan97 5.2).
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub integrated: bool,
    /// How long TIME-WAIT lasts.
    pub time_wait: Span,
}

/// Names of the presets, for `lasthop list presets` and error messages, each with what it stands for.
pub const PRESETS: [(&str, &str); 7] = [
    ("freebsd-2.1", "FreeBSD 2.1 (1995): 500 ms and 200 ms ticks, RTO 1 s to 64 s, 16 KiB buffers"),
    (
        "ns",
        "a network simulator's TCP: 1000 B segments, 20-segment window, every segment acknowledged",
    ),
    (
        "real",
        "the Reno of the REAL simulator (parsa98): round trips in units of 500 ms, RTO of srtt + 4 rttvar",
    ),
    (
        "bakshi96",
        "the Tahoe of bakshi96 3.3: 576 B packets, 4 KB window, round trips to the nearest 100 ms",
    ),
    ("rfc", "RFC 5681 and RFC 6298 as written: 1 s minimum RTO, fine timers, 64 KiB buffers"),
    (
        "linux",
        "a current Linux: 10-segment initial window, 200 ms minimum RTO, timestamps, scaling, SACK",
    ),
    (
        "linux-2.2",
        "Linux 2.2 (1999): windows of 32 KB, 200 ms minimum RTO, timestamps, scaling, SACK",
    ),
];

impl TcpConfig {
    /// The preset of this name; see [`PRESETS`].
    pub fn preset(name: &str) -> Option<TcpConfig> {
        Some(match name {
            "freebsd-2.1" => TcpConfig::freebsd_2_1(),
            "ns" => TcpConfig::ns(),
            "real" => TcpConfig::real(),
            "bakshi96" => TcpConfig::bakshi96(),
            "rfc" => TcpConfig::rfc(),
            "linux" => TcpConfig::linux(),
            "linux-2.2" => TcpConfig::linux_2_2(),
            _ => return None,
        })
    }

    /// The sender adaptation of balakrishnan97 4.2 and 4.3: the window opens by bytes acknowledged, however many an
    /// ACK acknowledges, and of what an ACK releases three segments leave back to back and the rest at the rate of a
    /// window in a round trip.
    ///
    /// The paper names the techniques and gives no numbers. Three segments are what the authors' simulation scripts
    /// had as their largest burst.
    pub fn adapt_to_sparse_acks(&mut self) {
        self.byte_counting = u32::MAX;
        self.pacing = true;
        self.burst = 3;
    }

    /// FreeBSD 2.1 on a LAN, as on the hosts of west97 4.0.
    pub fn freebsd_2_1() -> TcpConfig {
        TcpConfig {
            variant: Variant::Reno,
            clock: Clock::Ticks { slow: Span::millis(500), fast: Span::millis(200) },
            rto_rule: RtoRule::Rfc6298,
            rtt_rounding: Rounding::Up,
            rtt_from_syn: true,
            rto_min: Span::secs(1),
            rto_max: Span::secs(64),
            rto_initial: Span::secs(6),
            max_retries: 12,
            mss: 1460,
            send_buffer: 16 * 1024,
            recv_buffer: 16 * 1024,
            initial_window: 1,
            loss_window: 1,
            initial_ssthresh: u32::MAX,
            halving: Halving::Window,
            congestion: Congestion::Reno,
            growth: GrowthRule::Rfc5681,
            byte_counting: 0,
            vegas: VegasRule { alpha: 1, beta: 3, gamma: 1 },
            pacing: false,
            burst: 1,
            dupthresh: 3,
            delayed_ack: DelayedAck { every: 2, timeout: Span::millis(200) },
            ecn: false,
            acc: None,
            timestamps: false,
            window_scale: false,
            prediction: Prediction::Off,
            sack: false,
            smart: false,
            smart_repeat: false,
            snack: false,
            loss_cause: LossCause::Congestion,
            dsack: false,
            ackp: AckpReaction::Off,
            ackp_karn: false,
            eln: ElnMode::Off,
            nack: false,
            eln_reaction: ElnReaction::Named,
            ebsn: false,
            quench: false,
            limited_transmit: false,
            integrated: false,
            time_wait: Span::secs(60),
        }
    }

    /// RFC 9293, 5681 and 6298 as written.
    pub fn rfc() -> TcpConfig {
        TcpConfig {
            clock: Clock::Fine { granularity: Span::millis(1) },
            rto_max: Span::secs(60),
            rto_initial: Span::secs(1),
            send_buffer: 64 * 1024 - 1,
            recv_buffer: 64 * 1024 - 1,
            initial_window: 3,
            halving: Halving::Flight,
            ..TcpConfig::freebsd_2_1()
        }
    }

    /// The TCP of a network simulator: segments as packets, a fixed window, no delayed ACKs.
    pub fn ns() -> TcpConfig {
        TcpConfig {
            clock: Clock::Fine { granularity: Span::millis(100) },
            rto_min: Span::millis(200),
            rto_initial: Span::secs(3),
            mss: 1000,
            send_buffer: 20_000,
            recv_buffer: 20_000,
            initial_window: 1,
            delayed_ack: DelayedAck { every: 1, timeout: Span::ZERO },
            ..TcpConfig::rfc()
        }
    }

    /// The Reno of the REAL simulator, as parsa98 describes it: the time-out is the estimate plus four times its
    /// deviation, with a granularity of 500 ms (5.1.4), and every packet is acknowledged.
    ///
    /// A first round trip of less than 500 ms counts as 500 ms and gives 0.5 s + 4 x 0.25 s = 1.5 s: that is how long
    /// after the last ACK the timer of Figure 12(a) expires.
    //= parsa98#5.1.4: estimated round-trip time plus four times its deviation, with a granularity of 500 ms
    pub fn real() -> TcpConfig {
        TcpConfig {
            clock: Clock::Fine { granularity: Span::millis(500) },
            rto_rule: RtoRule::Jacobson,
            rto_min: Span::millis(500),
            rto_max: Span::secs(64),
            rto_initial: Span::secs(3),
            mss: 1400,
            initial_window: 1,
            halving: Halving::Window,
            delayed_ack: DelayedAck { every: 1, timeout: Span::ZERO },
            ..TcpConfig::rfc()
        }
    }

    /// The TCP of bakshi96 3.3, which is the Tahoe of the network simulator of LBNL as of 1996.
    ///
    /// The paper says: Tahoe with fast retransmit, a window of 4 KB, packets of 576 bytes with headers of 40, a
    /// clock of 100 ms and round trips measured to the nearest of its beats, back-off that ends with an ACK for a
    /// packet that was not retransmitted. Known of the simulator (ns, later ns-2 before its defaults changed in
    /// 2004): the third duplicate ACK retransmits, each packet is acknowledged, one packet is timed at a time, the
    /// first time-out is 6 s, the smallest one two beats of the clock, the window begins with one packet, the
    /// slow-start threshold with the whole window, and a loss halves the smaller of congestion window and window.
    ///
    /// Assumed: the largest time-out of 64 s, as in BSD, and that a source never gives up (255 tries here). The
    /// simulator counted its window in packets; here it is 4096 bytes of payload, which is seven packets of 576
    /// bytes as in the paper's figure 3. Unlike the simulator's, these connections begin with a handshake; its
    /// round trip, short beside that of a packet at these rates, is not measured.
    pub fn bakshi96() -> TcpConfig {
        TcpConfig {
            variant: Variant::Tahoe,
            clock: Clock::Fine { granularity: Span::millis(100) },
            rtt_rounding: Rounding::Nearest,
            rtt_from_syn: false,
            rto_min: Span::millis(200),
            rto_max: Span::secs(64),
            rto_initial: Span::secs(6),
            max_retries: 255,
            mss: 536,
            send_buffer: 4096,
            recv_buffer: 4096,
            initial_window: 1,
            initial_ssthresh: 4096,
            halving: Halving::Window,
            delayed_ack: DelayedAck { every: 1, timeout: Span::ZERO },
            ..TcpConfig::freebsd_2_1()
        }
    }

    /// Linux 2.2, as Red Hat 6.1 brought it (agarwal00 5).
    ///
    /// Known of it: SACK, timestamps and window scaling are on; a SYN offers as many whole segments as fit into 32,767
    /// bytes (32,120 on Ethernet, by which fingerprints know it) and a scale of 0; the clock has 10 ms, the least time-out
    /// is 200 ms, the largest 120 s; the window begins with two segments; every second full segment is acknowledged.
    /// Assumed: without SACK it repairs losses as NewReno, which its code is nearest to; RFC 6675 stands for the forward
    /// acknowledgement by which it read SACK blocks.
    pub fn linux_2_2() -> TcpConfig {
        TcpConfig {
            clock: Clock::Fine { granularity: Span::millis(10) },
            rto_initial: Span::secs(3),
            send_buffer: 64 * 1024 - 1,
            recv_buffer: 32_767,
            initial_window: 2,
            delayed_ack: DelayedAck { every: 2, timeout: Span::millis(200) },
            limited_transmit: false,
            prediction: Prediction::AfterPaws,
            ..TcpConfig::linux()
        }
    }

    /// A current Linux with its congestion control set to Reno.
    pub fn linux() -> TcpConfig {
        TcpConfig {
            variant: Variant::Sack,
            rto_min: Span::millis(200),
            rto_max: Span::secs(120),
            max_retries: 15,
            send_buffer: 4 << 20,
            recv_buffer: 6 << 20,
            initial_window: 10,
            delayed_ack: DelayedAck { every: 2, timeout: Span::millis(40) },
            timestamps: true,
            window_scale: true,
            sack: true,
            limited_transmit: true,
            ..TcpConfig::rfc()
        }
    }
}
