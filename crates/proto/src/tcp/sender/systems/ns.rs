//! The TCPs of the simulator ns, as of 1996 and as ns-2: presets, keys, and the rules that no kernel has.
//!
//! Windows are counted in packets (`Packets`). In 1996 the retransmission timer was set before the timeout changed,
//! packets carried their send time, and a fast retransmit doubled the timeout (`TimerRules`).

use serde::Serialize;

use crate::describe::Keys;
use crate::tcp::config::{
    Arithmetic, Clock, Deflation, DelayedAck, Halving, IdleRestart, Rounding, SlowStart, StaleRtt,
    TcpConfig,
};
use crate::tcp::sender::congestion_control::Loss;
use crate::tcp::sender::{Purpose, Timers};
use crate::units::{Due, Span, Time};

/// Rounding of half a window that is not a whole number of segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Halves {
    /// Whole segments.
    #[default]
    Whole,
    /// The exact half in fast recovery; slow start still ends at whole segments.
    Exact,
}

/// Order of the restart of the retransmission timer and a simultaneous change of the timeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimerOrder {
    /// The timer restarts after a round-trip time or a backoff has changed the timeout (RFC 6298).
    #[default]
    Last,
    /// The timer restarts before: the first retransmission waits for an undoubled timeout, and an ACK
    /// restarts the timer with the timeout before its round-trip time.
    First,
}

impl TcpConfig {
    /// The TCP of ns-2, with the settings before its clock became finer: segments as packets, a fixed window,
    /// no delayed ACKs.
    ///
    /// The following is known, and was compared with the program packet for packet
    /// (`docs/explanation/fidelity.md`). Round trips are counted in beats of 100 ms and averaged in whole
    /// eighths and quarters, so that the minimum timeout is 0.3 s. A loss halves the window, and half of an
    /// odd window is not rounded. Congestion avoidance begins at the threshold. The window also opens on the
    /// ACK that ends fast recovery. Reno repairs a window of data once.
    pub fn ns() -> TcpConfig {
        TcpConfig {
            clock: Clock::Fine { granularity: Span::millis(100) },
            rtt_rounding: Rounding::Beats,
            rtt_arithmetic: Arithmetic::Integer,
            rto_min: Span::millis(200),
            rto_initial: Span::secs(3),
            backoff_max: 64,
            mss: 1000,
            send_buffer: 20_000,
            recv_buffer: 20_000,
            initial_window: 1,
            halving: Halving::Window,
            halves: Halves::Exact,
            whole_segments: true,
            slow_start: SlowStart::Below,
            exit_growth: true,
            deflation: Deflation::Ns,
            once_per_window: true,
            window_validation: false,
            slow_start_after_idle: IdleRestart::Off,
            delayed_ack: DelayedAck { every: 1, timeout: Span::ZERO },
            ..TcpConfig::rfc()
        }
    }

    /// The TCP of ns in December 1996, with the Tahoe, packets and window of bakshi96 3.3.
    ///
    /// Known: packets carry their send time without a byte in the header. So each ACK of new data gives a
    /// round-trip time, to the nearest beat of 100 ms. The averages are whole eighths and quarters. The first
    /// timeout is 3 s, the minimum two beats. The retransmission timer starts before the backoff doubles, so
    /// that the first retransmission waits for an undoubled timeout. An ACK starts it before its round-trip
    /// time is counted. A fast retransmit doubles the timeout as well; a backoff ends with the ACK of a
    /// packet that was sent once. Slow start opens the window below the threshold, which may be less than two
    /// packets. There is no handshake. Only the factor 64 of the backoff bounds a timeout; the simulator
    /// stops above 2000 s. After the fourth timeout in a row the smoothed round trip is dropped.
    ///
    /// Assumed: a source never aborts (255 retries here).
    pub fn ns_1996() -> TcpConfig {
        TcpConfig {
            rtt_arithmetic: Arithmetic::Integer,
            stale_rtt: StaleRtt::Dropped,
            stamps: true,
            timer_order: TimerOrder::First,
            fast_backoff: true,
            handshake: false,
            rto_max: Span::secs(2000),
            rto_initial: Span::secs(3),
            whole_segments: true,
            ssthresh_min: 0,
            slow_start: SlowStart::Below,
            ..TcpConfig::bakshi96()
        }
    }

    /// Measurement and timing of simulators, where they differ from kernels.
    pub(in crate::tcp) fn simulators(&mut self, k: &mut Keys<'_>) {
        let tcp = self;
        let roundings =
            [("up", Rounding::Up), ("nearest", Rounding::Nearest), ("beats", Rounding::Beats)];
        let doc = "how fine timers round a measured round trip to the granularity; `beats` counts the beats of the clock";
        k.word("rtt-rounding", &mut tcp.rtt_rounding, &roundings, doc);
        let arithmetics = [("exact", Arithmetic::Exact), ("integer", Arithmetic::Integer)];
        let doc = "how fine timers average round trips: exactly, or in whole eighths and quarters of the granularity";
        k.word("rtt-arithmetic", &mut tcp.rtt_arithmetic, &arithmetics, doc);
        if tcp.rtt_rounding == Rounding::Beats && tcp.rtt_arithmetic == Arithmetic::Exact {
            let key = if k.has("rtt-rounding") { "rtt-rounding" } else { "rtt-arithmetic" };
            k.out_of_range(key, "beats are counted with `rtt-arithmetic = \"integer\"`");
        }
        let stale = [("to-variation", StaleRtt::ToVariation), ("dropped", StaleRtt::Dropped)];
        let doc =
            "what integer averages do with the smoothed round trip after four timeouts in a row";
        k.word("stale-rtt", &mut tcp.stale_rtt, &stale, doc);
        let doc = "packets carry their time of sending outside the header and ACKs echo it, as in simulators; needs \
                    fine timers";
        k.flag("stamps", &mut tcp.stamps, doc);
        let orders = [("last", TimerOrder::Last), ("first", TimerOrder::First)];
        let doc = "whether the timer restarts after a backoff and a round trip have changed the \
                    timeout, or before";
        k.word("timer-order", &mut tcp.timer_order, &orders, doc);
        let doc = "a fast retransmit doubles the timeout as well";
        k.flag("fast-backoff", &mut tcp.fast_backoff, doc);
        let doc = "connections begin with a handshake; where both hosts have none, they are open from the start";
        k.flag("handshake", &mut tcp.handshake, doc);
        let halves = [("whole", Halves::Whole), ("exact", Halves::Exact)];
        let doc = "half of a window in fast recovery: whole segments, or exact";
        k.word("halves", &mut tcp.halves, &halves, doc);
        let doc = "the congestion window permits whole segments only, also for retransmissions";
        k.flag("whole-segments", &mut tcp.whole_segments, doc);
        let doc = "the minimum slow-start threshold in segments";
        k.count("ssthresh-min", &mut tcp.ssthresh_min, 0..=10_000, doc);
        let starts = [("up", SlowStart::Up), ("below", SlowStart::Below)];
        let doc = "whether slow start opens the window up to the threshold, or only below it";
        k.word("slow-start", &mut tcp.slow_start, &starts, doc);
        let doc = "Reno starts no second fast retransmit for the same window of data";
        k.flag("once-per-window", &mut tcp.once_per_window, doc);
    }
}

/// Rules of windows that are counted in packets.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp::sender) struct Packets {
    halves: Halves,
    pub whole_segments: bool,
    ssthresh_min: u32,
}

impl Packets {
    pub fn new(config: &TcpConfig) -> Packets {
        let TcpConfig { halves, whole_segments, ssthresh_min, .. } = *config;
        Packets { halves, whole_segments, ssthresh_min }
    }

    /// The slow-start threshold after a loss in a window of `bytes`.
    pub fn half(self, bytes: u32, mss: u32, loss: Loss) -> u32 {
        let exact = self.halves == Halves::Exact && loss == Loss::Detected;
        let half = if exact { bytes / 2 } else { bytes / 2 / mss * mss };
        half.max(self.ssthresh_min.saturating_mul(mss))
    }

    /// The part of a window of `bytes` that permits segments.
    #[inline]
    pub fn usable(self, bytes: u32, mss: u32) -> u32 {
        if self.whole_segments { bytes / mss * mss } else { bytes }
    }
}

/// Rules for the retransmission timer.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp::sender) struct TimerRules {
    order: TimerOrder,
    stamps: bool,
    fast_backoff: bool,
}

impl TimerRules {
    pub fn new(config: &TcpConfig) -> TimerRules {
        let TcpConfig { timer_order: order, stamps, fast_backoff, .. } = *config;
        TimerRules { order, stamps, fast_backoff }
    }
}

impl Timers {
    /// Doubles the timeout and restarts the retransmission timer.
    pub fn back_off(&mut self, now: Time) {
        if self.rules.order == TimerOrder::First {
            self.rearm(now);
            return self.rtt.back_off();
        }
        self.rtt.back_off();
        self.rearm(now);
    }

    /// Sets the timer at a fast retransmit; `restarts` is whether it restarts if the timeout is unchanged.
    pub(in crate::tcp::sender) fn fast_retransmitted(&mut self, now: Time, restarts: bool) {
        if self.rules.fast_backoff {
            self.back_off(now);
        } else if restarts {
            self.rearm(now);
        }
    }

    /// Expiry of the retransmission timer after an ACK, if that does not depend on the round trip of the ACK;
    /// `outstanding` is whether unacknowledged data remains before the next position to send.
    #[inline]
    pub(in crate::tcp::sender) fn early_expiry(&self, now: Time, outstanding: bool) -> Option<Due> {
        if self.rules.order == TimerOrder::Last {
            return None;
        }
        Some(if outstanding { Due::at(self.rtt.deadline(now, 1)) } else { Due::NEVER })
    }

    /// Sets a running retransmission timer to its early expiry, if there is one.
    #[inline]
    pub(in crate::tcp::sender) fn set_early(&mut self, expiry: Option<Due>) {
        if let Some(expiry) = expiry.filter(|_| self.is_for(Purpose::Timeout)) {
            self.rexmt = expiry;
        }
    }

    /// Adds the round trip of a stamped packet that may be a retransmission, so that the backoff continues. Returns
    /// false if packets have no stamps.
    #[inline]
    pub(in crate::tcp::sender) fn estimate_stamped(
        &mut self,
        sent: Option<Time>,
        now: Time,
        edges: (u64, u64),
    ) -> bool {
        if let Some(sent) = sent.filter(|_| self.rules.stamps) {
            self.rtt.estimate(sent, now, edges);
        }
        self.rules.stamps
    }
}
