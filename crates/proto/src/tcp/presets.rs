//! The TCPs of known systems: base configurations.

use crate::units::Span;

use super::accurate::AccurateEcn;
use super::config::{
    AckpReaction, Arithmetic, Clock, Congestion, Deflation, DelayedAck, ElnMode, ElnReaction,
    GivingUp, GrowthRule, Halves, Halving, IdleRestart, LossCause, MaxSeg, Prediction, Rounding,
    RtoRule, SlowStart, StaleRtt, TcpConfig, TimerOrder, Variant, VegasRule,
};

type Row = (&'static str, &'static str, fn() -> TcpConfig);

/// Every preset: its name, its description, and its constructor.
const ROWS: [Row; 8] = [
    (
        "freebsd-2.1",
        "FreeBSD 2.1 (1995): 500 ms and 200 ms ticks, RTO 1 s to 64 s, 16 KiB buffers",
        TcpConfig::freebsd_2_1,
    ),
    (
        "ns",
        "the TCP of ns-2: 1000 B segments, 20-segment window, every segment acknowledged, a clock of 100 ms",
        TcpConfig::ns,
    ),
    (
        "ns-1996",
        "the TCP of ns as of 1996: no handshake, a round trip from each new ACK, backoff from the second timeout on",
        TcpConfig::ns_1996,
    ),
    (
        "real",
        "the Reno of the REAL simulator (parsa98): round trips in units of 500 ms, RTO of srtt + 4 rttvar",
        TcpConfig::real,
    ),
    (
        "bakshi96",
        "the Tahoe of bakshi96 3.3: 576 B packets, 4 KB window, round trips to the nearest 100 ms",
        TcpConfig::bakshi96,
    ),
    (
        "rfc",
        "RFC 5681 and RFC 6298 as written: 1 s minimum RTO, fine timers, 64 KiB buffers",
        TcpConfig::rfc,
    ),
    (
        "linux",
        "a current Linux: 10-segment initial window, 200 ms minimum RTO, timestamps, scaling, SACK",
        TcpConfig::linux,
    ),
    (
        "linux-2.2",
        "Linux 2.2 (1999): windows of 32 KB, 200 ms minimum RTO, timestamps, scaling, SACK",
        TcpConfig::linux_2_2,
    ),
];

/// Names and descriptions of the presets, for `lasthop list presets` and error messages.
pub const PRESETS: [(&str, &str); ROWS.len()] = {
    let mut named = [("", ""); ROWS.len()];
    let mut i = 0;
    while i < ROWS.len() {
        named[i] = (ROWS[i].0, ROWS[i].1);
        i += 1;
    }
    named
};

impl TcpConfig {
    /// The preset of this name; see [`PRESETS`].
    pub fn preset(name: &str) -> Option<TcpConfig> {
        ROWS.iter().find(|row| row.0 == name).map(|row| (row.2)())
    }

    /// FreeBSD 2.1 on a LAN, as on the hosts of west97 4.0.
    pub fn freebsd_2_1() -> TcpConfig {
        TcpConfig {
            variant: Variant::Reno,
            clock: Clock::Ticks { slow: Span::millis(500), fast: Span::millis(200) },
            rto_rule: RtoRule::Rfc6298,
            rtt_rounding: Rounding::Up,
            rtt_arithmetic: Arithmetic::Exact,
            stale_rtt: StaleRtt::ToVariation,
            stamps: false,
            timer_order: TimerOrder::Last,
            fast_backoff: false,
            handshake: true,
            rtt_from_syn: true,
            rto_min: Span::secs(1),
            rto_max: Span::secs(64),
            rto_initial: Span::secs(6),
            backoff_max: 64,
            max_retries: 12,
            giving_up: GivingUp::Count,
            syn_retries: None,
            syn_ack_retries: None,
            opening_limit: Some(Span::secs(75)),
            syn_linear: 0,
            mss: 1460,
            send_buffer: 16 * 1024,
            recv_buffer: 16 * 1024,
            recv_memory: None,
            quick_acks: false,
            initial_window: 1,
            loss_window: 1,
            initial_ssthresh: u32::MAX,
            halving: Halving::Window,
            halves: Halves::Whole,
            whole_segments: false,
            ssthresh_min: 2,
            slow_start: SlowStart::Up,
            once_per_window: false,
            congestion: Congestion::Reno,
            custom: None,
            growth: GrowthRule::Rfc5681,
            byte_counting: 0,
            window_validation: false,
            slow_start_after_idle: IdleRestart::OneSegment,
            vegas: VegasRule { alpha: 1, beta: 3, gamma: 1 },
            pacing: false,
            burst: 1,
            dupthresh: 3,
            delayed_ack: DelayedAck { every: 2, timeout: Span::millis(200) },
            maxseg: MaxSeg::None,
            deflation: Deflation::Always,
            exit_growth: false,
            ecn: false,
            accurate_ecn: AccurateEcn::Off,
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
            fast_rtx_handoff: false,
            limited_transmit: false,
            integrated: false,
            t_tcp: false,
            fast_open: false,
            time_wait: Span::secs(60),
        }
    }

    /// RFC 9293, 5681 and 6298 without deviations.
    pub fn rfc() -> TcpConfig {
        TcpConfig {
            clock: Clock::Fine { granularity: Span::millis(1) },
            rto_max: Span::secs(60),
            rto_initial: Span::secs(1),
            backoff_max: 0,
            opening_limit: None,
            send_buffer: 64 * 1024 - 1,
            recv_buffer: 64 * 1024 - 1,
            initial_window: 3,
            halving: Halving::Flight,
            window_validation: true,
            slow_start_after_idle: IdleRestart::InitialWindow,
            ..TcpConfig::freebsd_2_1()
        }
    }

    /// The Reno of the REAL simulator, as parsa98 describes it. The timeout is the estimate plus four times
    /// its deviation, with a granularity of 500 ms (5.1.4). Every packet is acknowledged.
    ///
    /// A first round trip of less than 500 ms counts as 500 ms, and gives a timeout of 0.5 s + 4 x 0.25 s =
    /// 1.5 s. In Figure 12(a), the timer expires after this time from the last ACK.
    //= parsa98#5.1.4: estimated round-trip time plus four times its deviation, with a granularity of 500 ms
    pub fn real() -> TcpConfig {
        TcpConfig {
            clock: Clock::Fine { granularity: Span::millis(500) },
            rto_rule: RtoRule::Jacobson,
            rto_min: Span::millis(500),
            rto_max: Span::secs(64),
            rto_initial: Span::secs(3),
            backoff_max: 64,
            mss: 1400,
            initial_window: 1,
            halving: Halving::Window,
            window_validation: false,
            slow_start_after_idle: IdleRestart::Off,
            delayed_ack: DelayedAck { every: 1, timeout: Span::ZERO },
            ..TcpConfig::rfc()
        }
    }

    /// The TCP of bakshi96 3.3, which is the Tahoe of the network simulator of LBNL in 1996.
    ///
    /// From the paper: Tahoe with fast retransmit, a window of 4 KB, packets of 576 bytes with headers of 40
    /// bytes. The clock has beats of 100 ms, and round trips are measured to the nearest beat. The backoff
    /// ends with an ACK for a packet that was not retransmitted. From the simulator (ns, later ns-2 before
    /// its defaults changed in 2004): the third duplicate ACK causes a retransmission, each packet is
    /// acknowledged, and one packet is timed at a time. The first timeout is 6 s, the minimum two beats of
    /// the clock. The window begins with one packet, the slow-start threshold with the whole window, and a
    /// loss halves the smaller of congestion window and window.
    ///
    /// Assumed: the maximum timeout of 64 s, as in BSD, and that a source never aborts (255 retries here).
    /// The simulator counted its window in packets. Here the window is 4096 bytes of payload, which is seven
    /// packets of 576 bytes as in the paper's figure 3. These connections begin with a handshake, which the
    /// simulator did not have. Its round trip is not measured; it is short compared with the round trip of a
    /// data packet at these rates.
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
            opening_limit: None,
            mss: 536,
            send_buffer: 4096,
            recv_buffer: 4096,
            initial_window: 1,
            initial_ssthresh: 4096,
            halving: Halving::Window,
            slow_start_after_idle: IdleRestart::Off,
            delayed_ack: DelayedAck { every: 1, timeout: Span::ZERO },
            ..TcpConfig::freebsd_2_1()
        }
    }

    /// Linux 2.2 in Red Hat 6.1 (agarwal00 5).
    ///
    /// Known: SACK, timestamps and window scaling are on. A SYN offers the whole segments that fit into
    /// 32,767 bytes (32,120 on Ethernet, which identifies it in fingerprints) and a scale of 0. The clock has
    /// 10 ms, the minimum timeout is 200 ms, the maximum 120 s. The window begins with two segments; every
    /// second full segment is acknowledged. Assumed: without SACK it repairs losses as NewReno, the variant
    /// closest to its code; RFC 6675 replaces its forward acknowledgement for SACK blocks.
    pub fn linux_2_2() -> TcpConfig {
        TcpConfig {
            clock: Clock::Fine { granularity: Span::millis(10) },
            rto_rule: RtoRule::Rfc6298,
            rto_initial: Span::secs(3),
            giving_up: GivingUp::Count,
            syn_retries: None,
            syn_ack_retries: None,
            syn_linear: 0,
            send_buffer: 64 * 1024 - 1,
            recv_buffer: 32_767,
            recv_memory: None,
            quick_acks: false,
            initial_window: 2,
            delayed_ack: DelayedAck { every: 2, timeout: Span::millis(200) },
            limited_transmit: false,
            dsack: false,
            growth: GrowthRule::Rfc5681,
            window_validation: false,
            slow_start_after_idle: IdleRestart::Off,
            prediction: Prediction::AfterPaws,
            ..TcpConfig::linux()
        }
    }

    /// A current Linux with its congestion control set to Reno.
    pub fn linux() -> TcpConfig {
        TcpConfig {
            variant: Variant::Sack,
            rto_rule: RtoRule::Linux,
            rto_min: Span::millis(200),
            rto_max: Span::secs(120),
            max_retries: 15,
            giving_up: GivingUp::Time,
            // `tcp_syn_retries` counts only the retransmissions whose timeout doubles.
            syn_retries: Some(10),
            syn_ack_retries: Some(5),
            syn_linear: 4,
            send_buffer: 4 << 20,
            recv_buffer: 6 << 20,
            quick_acks: true,
            initial_window: 10,
            delayed_ack: DelayedAck { every: 2, timeout: Span::millis(40) },
            timestamps: true,
            window_scale: true,
            sack: true,
            dsack: true,
            growth: GrowthRule::Linux,
            slow_start_after_idle: IdleRestart::Decay,
            limited_transmit: true,
            ..TcpConfig::rfc()
        }
    }
}
