//! The keys of a TCP: a preset, a keyword for the sender, and changes to both.

use super::accurate::AccurateEcn;
use super::config::{
    AccConfig, AckpReaction, Clock, Deflation, DelayedAck, ElnMode, ElnReaction, GivingUp,
    GrowthRule, Halving, IdleRestart, LossCause, MaxSeg, PRESETS, Prediction, RtoRule, TcpConfig,
    Variant,
};
use super::keyword::Keyword;
use super::sender::systems::cubic;
use super::words::TCPS;
use crate::describe::{Form, Keys, Need, Value};
use crate::units::{Bytes, Span};

/// Maximum of all timers of a TCP.
const DAY: Span = Span::secs(86_400);
/// Maximum size of a socket buffer in bytes.
const BUFFER: u64 = 1 << 30;

/// The default sender of a host, where its operating system differs from the configuration of the preset.
/// Linux has had CUBIC since 2.6.19.
fn usual_sender(preset: &str) -> Option<&'static Keyword> {
    (preset == "linux").then_some(&cubic::WORD)
}

impl TcpConfig {
    /// Reads the keys. Each one modifies the result of those before it.
    pub fn keys(k: &mut Keys<'_>) -> TcpConfig {
        let mut preset = "linux";
        let presets = PRESETS.map(|(name, _)| (name, name));
        k.word("preset", &mut preset, &presets, "the TCP that the other keys modify");
        let mut tcp = TcpConfig::preset(preset).expect("a preset of the list");
        let words: Vec<_> = TCPS.iter().map(|word| (word.key, word)).collect();
        let doc = "the sender; by default `cubic` with `linux`, and `reno` with most other presets";
        let word = k.maybe_word("tcp", &words, doc).or_else(|| usual_sender(preset));
        if let Some(word) = word {
            (word.apply)(&mut tcp);
        }
        let word = word.map_or("sack", |word| word.key);
        tcp.options(k, word);
        tcp.openings(k);
        tcp.timers(k);
        tcp.sizes(k);
        tcp.windows(k);
        tcp.feedback(k);
        tcp.simulators(k);
        tcp.vegas(k);
        tcp.ticks(k);
        tcp.acknowledgements(k);
        tcp
    }

    /// Options between the ends; some senders need them.
    fn options(&mut self, k: &mut Keys<'_>, word: &str) {
        let tcp = self;
        k.flag(
            "sack",
            &mut tcp.sack,
            "selective acknowledgements are permitted and sent (RFC 2018)",
        );
        k.flag(
            "dsack",
            &mut tcp.dsack,
            "segments that arrive twice are reported (RFC 2883), where both ends have `sack`",
        );
        let message = |key| format!("`tcp = \"{word}\"` and `{key} = false` contradict each other");
        const LABEL: &str = "contradicts `tcp`";
        if matches!(tcp.variant, Variant::Sack | Variant::Rack) && !tcp.sack {
            let help = "leave out `sack = false`, or choose `tcp = \"newreno\"`, which needs no SACK blocks";
            k.refuse("sack", message("sack"), LABEL, help);
        }
        k.flag(
            "smart",
            &mut tcp.smart,
            "ACKs name the segment that caused them, if both ends have it (SMART)",
        );
        k.flag(
            "smart-repeat",
            &mut tcp.smart_repeat,
            "with SMART, a lost retransmission is repaired without the timer",
        );
        if tcp.variant == Variant::Smart && !tcp.smart {
            let help =
                "leave out `smart = false`, or choose `tcp = \"newreno\"`, which needs no reports";
            k.refuse("smart", message("smart"), LABEL, help);
        }
        k.flag(
            "snack",
            &mut tcp.snack,
            "SNACKs name missing segments, if both ends have it (SCPS-TP)",
        );
        let causes = [("congestion", LossCause::Congestion), ("corruption", LossCause::Corruption)];
        k.word(
            "loss-cause",
            &mut tcp.loss_cause,
            &causes,
            "the cause of losses that `scps-tp` assumes: the window shrinks, or stays",
        );
        if tcp.variant == Variant::Snack && !tcp.snack {
            let help =
                "leave out `snack = false`, or choose `tcp = \"vegas\"`, which needs no SNACKs";
            k.refuse("snack", message("snack"), LABEL, help);
        }
    }

    fn timers(&mut self, k: &mut Keys<'_>) {
        let timers = Span(1)..=DAY;
        let rules = [
            ("rfc6298", RtoRule::Rfc6298),
            ("jacobson", RtoRule::Jacobson),
            ("linux", RtoRule::Linux),
        ];
        let doc = "with fine timers, the formula of the timeout: srtt + max(G, 4 rttvar), srtt + 4 rttvar, or \
                    srtt + max(rto-min, 4 rttvar)";
        k.word("rto-rule", &mut self.rto_rule, &rules, doc);
        k.within(
            "rto-min",
            &mut self.rto_min,
            timers.clone(),
            "the minimum retransmission timeout",
        );
        k.within(
            "rto-max",
            &mut self.rto_max,
            timers.clone(),
            "the maximum retransmission timeout",
        );
        k.within(
            "rto-initial",
            &mut self.rto_initial,
            timers,
            "the timeout before the first measurement",
        );
        if self.rto_min > self.rto_max {
            let key = if k.has("rto-min") { "rto-min" } else { "rto-max" };
            let (least, most) = (self.rto_min, self.rto_max);
            k.out_of_range(key, format!("rto-min ({least}) must not exceed rto-max ({most})"));
        }
        k.within("time-wait", &mut self.time_wait, Span::ZERO..=DAY, "how long TIME-WAIT lasts");
        let doc = "the largest factor by which timeouts in a row lengthen the timeout, and that of window probes; \
                    0: only `rto-max` bounds them";
        k.count("backoff-max", &mut self.backoff_max, 0..=u32::MAX.into(), doc);
        let doc = "consecutive timeouts after which a connection is given up";
        k.count("max-retries", &mut self.max_retries, 0..=255, doc);
        let ends = [("count", GivingUp::Count), ("time", GivingUp::Time)];
        let doc = "when a connection is given up: after `max-retries` timeouts, or as Linux after the time that these \
                    take from `rto-min` on, and after as many window probes without an answer";
        k.word("give-up", &mut self.giving_up, &ends, doc);
        let doc = "SYNs that are retransmitted before the connection is given up; `max-retries` if it is left out";
        k.maybe_count("syn-retries", &mut self.syn_retries, 0..=255, doc);
        let doc = "SYN-ACKs that are retransmitted before the connection is given up; `max-retries` if it is left out";
        k.maybe_count("syn-ack-retries", &mut self.syn_ack_retries, 0..=255, doc);
        let doc = "the longest duration of a handshake, after which the connection is dropped; no limit if it is left out";
        k.maybe("opening-limit", &mut self.opening_limit, Span::millis(1)..=DAY, doc);
        let doc = "timeouts of a SYN that do not double the next one";
        k.count("syn-linear", &mut self.syn_linear, 0..=255, doc);
    }

    fn sizes(&mut self, k: &mut Keys<'_>) {
        k.bytes(
            "mss",
            &mut self.mss,
            1..=65_495,
            "the largest payload of a segment, as offered to the peer",
        );
        k.bytes(
            "send-buffer",
            &mut self.send_buffer,
            1..=BUFFER,
            "the send buffer, which bounds the data in flight",
        );
        k.bytes(
            "recv-buffer",
            &mut self.recv_buffer,
            1..=BUFFER,
            "the receive buffer: the largest window advertised",
        );
        let doc = "ACKs as Linux sends them: at once at the start and while the window may grow, and those after \
                    a hole together; the window grows as in Linux";
        k.flag("quick-acks", &mut self.quick_acks, doc);
        if self.quick_acks && k.has("recv-buffer") {
            // The kernel of the testbed gets this memory, of which full segments leave three fifths for data.
            let memory = (u64::from(self.recv_buffer) * 5 / 3).min(u32::MAX.into()) as u32;
            self.recv_memory = Some([memory; 2]);
        }
        for (key, buffer) in [("send-buffer", self.send_buffer), ("recv-buffer", self.recv_buffer)]
        {
            if buffer < self.mss {
                let blamed = if k.has(key) { key } else { "mss" };
                let mss = self.mss;
                k.out_of_range(
                    blamed,
                    format!("a buffer must hold a segment: mss is {mss}, {key} {buffer}"),
                );
            }
        }
    }

    fn windows(&mut self, k: &mut Keys<'_>) {
        let tcp = self;
        k.count(
            "initial-window",
            &mut tcp.initial_window,
            1..=10_000,
            "the initial congestion window in segments",
        );
        k.count(
            "loss-window",
            &mut tcp.loss_window,
            1..=10_000,
            "the congestion window after a timeout in segments",
        );
        k.bytes(
            "initial-ssthresh",
            &mut tcp.initial_ssthresh,
            1..=u32::MAX.into(),
            "the initial slow-start threshold",
        );
        let growths = [
            ("rfc5681", GrowthRule::Rfc5681),
            ("bsd", GrowthRule::Bsd),
            ("linux", GrowthRule::Linux),
        ];
        let doc = "how the window opens above the threshold; `bsd` adds the constant of 4.4BSD, \
                    `linux` counts segments as Linux does and has its CUBIC, its PRR and its bursts";
        k.word("growth", &mut tcp.growth, &growths, doc);
        let doc = "a window that is not used does not grow (RFC 7661)";
        k.flag("window-validation", &mut tcp.window_validation, doc);
        let restarts = [
            ("off", IdleRestart::Off),
            ("one-segment", IdleRestart::OneSegment),
            ("initial-window", IdleRestart::InitialWindow),
            ("decay", IdleRestart::Decay),
        ];
        let doc = "the window after silence longer than the timeout: unchanged, one segment (4.4BSD), at most the \
                    initial window (RFC 5681), or half for each timeout (Linux)";
        k.word("slow-start-after-idle", &mut tcp.slow_start_after_idle, &restarts, doc);
        k.flag(
            "exit-growth",
            &mut tcp.exit_growth,
            "the window also grows on the ACK that ends fast recovery of Reno or NewReno (4.4BSD)",
        );
        let deflations = [
            ("always", Deflation::Always),
            ("ns", Deflation::Ns),
            ("past-threshold", Deflation::PastThreshold),
        ];
        let doc = "when the inflated window of fast recovery shrinks: at partial ACKs and at its end, so that no burst \
                    follows; as NewReno of ns-2, whose window at the end does not depend on the data in flight; \
                    or at the end if more duplicate ACKs arrived than `dupthresh` (4.4BSD, Reno only)";
        k.word("deflation", &mut tcp.deflation, &deflations, doc);
        let mut adapts = false;
        let doc = "settings for sparse ACKs: byte counting without limit and paced bursts of three";
        k.flag("sender-adaptation", &mut adapts, doc);
        if adapts {
            tcp.adapt_to_sparse_acks();
        }
        let doc = "the window opens by acknowledged bytes, at most this number of segments per ACK \
                    (L of RFC 3465); 0 counts ACKs";
        k.count("byte-counting", &mut tcp.byte_counting, 0..=u32::MAX.into(), doc);
        k.flag(
            "pacing",
            &mut tcp.pacing,
            "segments leave at the rate of a window in a round trip, not in bursts",
        );
        k.count(
            "burst",
            &mut tcp.burst,
            1..=10_000,
            "segments that may leave back to back when they are paced; BBR sends the data of 1/1024 s together if that is \
             more, Prague that of 1/4096 s",
        );
        let halvings = [("window", Halving::Window), ("flight", Halving::Flight)];
        k.word(
            "halving",
            &mut tcp.halving,
            &halvings,
            "whether a loss halves the window (BSD), or the data in flight (RFC 5681)",
        );
        k.count(
            "dupthresh",
            &mut tcp.dupthresh,
            1..=255,
            "duplicate ACKs that start a fast retransmit",
        );
        tcp.acc(k);
        k.flag("ecn", &mut tcp.ecn, "explicit congestion notification is offered (RFC 3168)");
        tcp.accurate_ecn(k);
        k.flag("timestamps", &mut tcp.timestamps, "timestamps and PAWS are offered (RFC 7323)");
        k.flag("window-scale", &mut tcp.window_scale, "window scaling is offered (RFC 7323)");
        let predictions = [
            ("off", Prediction::Off),
            ("after-paws", Prediction::AfterPaws),
            ("before-paws", Prediction::BeforePaws),
        ];
        let doc = "header prediction: none, after the check of the timestamp, or before it";
        k.word("prediction", &mut tcp.prediction, &predictions, doc);
        k.flag(
            "limited-transmit",
            &mut tcp.limited_transmit,
            "new data on the first two duplicate ACKs (RFC 3042)",
        );
    }

    /// Accurate ECN. With congestion control of ACKs the peer's counters would mix marks of data and of ACKs.
    fn accurate_ecn(&mut self, k: &mut Keys<'_>) {
        let doc = "accurate ECN is offered (RFC 9768), which falls back to `ecn`: a receiver reports marked packets \
                    (`ace`), or bytes as well (`option`)";
        k.word("accurate-ecn", &mut self.accurate_ecn, &AccurateEcn::WORDS, doc);
        if self.accurate_ecn.is_on() && self.acc.is_some() {
            let message = "`acc` and `accurate-ecn` exclude each other".to_owned();
            let help =
                "leave out one of them: the counters include all marked packets, data and ACKs";
            k.refuse("accurate-ecn", message, "does not go with `acc`", help);
        }
    }

    /// Congestion control of acknowledgements; with it both data and ACKs may be marked, unless the file says
    /// otherwise.
    fn acc(&mut self, k: &mut Keys<'_>) {
        let mut acc = AccConfig::default();
        let mut is_table = false;
        let doc = "congestion control of ACKs, if the peer has it too";
        let value = k.table_or("acc", Form::Flag, doc, |k| {
            is_table = true;
            k.count(
                "most",
                &mut acc.most,
                1..=u32::MAX.into(),
                "the maximum number of segments that share an ACK",
            );
            let times = Span(1)..=Span::secs(60);
            k.within("timeout", &mut acc.timeout, times, "an ACK waits no longer than this");
        });
        if k.has("acc") {
            self.acc =
                (is_table && value == Value::Absent || value == Value::Flag(true)).then_some(acc);
        }
        self.ecn |= self.acc.is_some();
    }

    /// Loss feedback of a base station or of the peer.
    fn feedback(&mut self, k: &mut Keys<'_>) {
        let ackps = [
            ("off", AckpReaction::Off),
            ("rearm", AckpReaction::Rearm),
            ("constant", AckpReaction::Constant),
            ("exponential", AckpReaction::Exponential),
        ];
        k.word(
            "ackp",
            &mut self.ackp,
            &ackps,
            "the sender's reaction to partial acknowledgements of a base station",
        );
        k.flag(
            "ackp-karn",
            &mut self.ackp_karn,
            "no round-trip sample from a segment with a partial acknowledgement",
        );
        let elns =
            [("off", ElnMode::Off), ("checksum", ElnMode::Checksum), ("ideal", ElnMode::Ideal)];
        let doc = "explicit loss notification: none, of segments whose TCP checksum fails, \
                    or of every damaged segment";
        k.word("eln", &mut self.eln, &elns, doc);
        k.flag(
            "nack",
            &mut self.nack,
            "negative acknowledgements of a base station are offered and obeyed",
        );
        let reactions = [
            ("named", ElnReaction::Named),
            ("third-duplicate", ElnReaction::ThirdDuplicate),
            ("first-ack", ElnReaction::FirstAck),
        ];
        let doc = "the form that a sender with `eln` requests: a notification of the lost segment, or marked ACKs";
        k.word("eln-reaction", &mut self.eln_reaction, &reactions, doc);
        k.flag(
            "ebsn",
            &mut self.ebsn,
            "explicit bad state notifications of a base station are obeyed",
        );
        k.flag("quench", &mut self.quench, "ICMP source quench is obeyed, as 4.4BSD did");
        let doc = "when the host has arrived in another cell, it retransmits the data in flight at once, and duplicate \
                    ACKs make its peers do the same";
        k.flag("fast-rtx-handoff", &mut self.fast_rtx_handoff, doc);
        let doc =
            "whether the handshake's round trip is measured; simulators of one-way TCP had none";
        k.flag("rtt-from-syn", &mut self.rtt_from_syn, doc);
    }

    /// Backlog that Vegas aims at.
    fn vegas(&mut self, k: &mut Keys<'_>) {
        let vegas = &mut self.vegas;
        k.table("vegas", "segments of `tcp = \"vegas\"` in the queues of the path", |k| {
            k.count("alpha", &mut vegas.alpha, 0..=10_000, "below this the window grows");
            k.count("beta", &mut vegas.beta, 0..=10_000, "above this the window shrinks");
            k.count("gamma", &mut vegas.gamma, 0..=10_000, "above this slow start ends");
            if vegas.alpha > vegas.beta {
                let blamed = if k.has("alpha") { "alpha" } else { "beta" };
                let help =
                    "alpha must not exceed beta, for example `vegas = { alpha = 1, beta = 3 }`";
                k.out_of_range(blamed, help);
            }
        });
    }

    /// Ticks or a granularity; either one excludes the other.
    fn ticks(&mut self, k: &mut Keys<'_>) {
        let range = Span::micros(1)..=Span::secs(60);
        let (mut slow, mut fast) = (Span::millis(500), Span::millis(200));
        k.table("ticks", "BSD's clock", |k| {
            k.within("slow", &mut slow, range.clone(), "the period of the retransmission clock");
            k.within(
                "fast",
                &mut fast,
                range.clone(),
                "the period of the delayed-ACK clock, which is also the delay of ACKs",
            );
        });
        let mut granularity = None;
        k.maybe("granularity", &mut granularity, range, "fine timers of this granularity");
        if k.has("ticks") {
            if granularity.is_some() {
                let help = "a TCP counts BSD `ticks`, or has fine timers with a `granularity`";
                let message = "`ticks` and `granularity` exclude each other";
                k.refuse("ticks", message, "two clocks", help);
            }
            self.clock = Clock::Ticks { slow, fast };
            self.delayed_ack.timeout = fast;
        } else if let Some(granularity) = granularity {
            self.clock = Clock::Fine { granularity };
        }
    }

    /// When a receiver acknowledges.
    fn acknowledgements(&mut self, k: &mut Keys<'_>) {
        let ticks = k.has("ticks");
        let TcpConfig { delayed_ack, clock, .. } = self;
        let doc = "when data that arrives in order is acknowledged; \"off\" acknowledges each segment at once";
        let value = k.table_or("delayed-ack", Form::Keyword(vec!["off"]), doc, |k| {
            let count = Form::or(vec!["none"], 1..=1_000_000_u64);
            let doc = "full segments that share an ACK, or \"none\": time alone counts, and half of the window";
            let every = Value::Count(delayed_ack.every.into());
            match k.value("every", count, Need::Default, every, doc) {
                Value::Count(every) => delayed_ack.every = every as u32,
                _ => delayed_ack.every = DelayedAck::BY_TIME,
            }
            let doc = "the maximum delay of an ACK; with ticks this is the fast tick";
            k.within("timeout", &mut delayed_ack.timeout, Span::ZERO..=Span::secs(60), doc);
            if let Clock::Ticks { fast, .. } = clock
                && *fast != delayed_ack.timeout
            {
                // With ticks the delay and the fast tick are the same.
                if ticks {
                    let help = format!("with ticks a delayed ACK waits for the fast tick, which is {fast}");
                    k.out_of_range("timeout", help);
                } else if delayed_ack.timeout == Span::ZERO {
                    k.out_of_range("timeout", "write `delayed-ack = \"off\"` for no delay");
                }
                *fast = delayed_ack.timeout;
            }
        });
        if value == Value::Keyword("off") {
            // The fast tick is unchanged: it belongs to the clock.
            self.delayed_ack.every = 1;
        }
        let form = Form::or(vec!["none", "mss"], Bytes(1)..=Bytes(65_495));
        let default = match self.maxseg {
            MaxSeg::None => Value::Keyword("none"),
            MaxSeg::Mss => Value::Keyword("mss"),
            MaxSeg::Bytes(bytes) => Value::Size(Bytes(bytes.into())),
        };
        let doc = "the segment size by which a receiver counts bytes: an ACK when the window has moved by `every` \
                    of them (4.4BSD); \"mss\" is each connection's own, \"none\" counts segments";
        match k.value("maxseg", form, Need::Default, default, doc) {
            Value::Size(bytes) => self.maxseg = MaxSeg::Bytes(bytes.0 as u32),
            Value::Keyword("mss") => self.maxseg = MaxSeg::Mss,
            Value::Keyword("none") => self.maxseg = MaxSeg::None,
            _ => {}
        }
    }
}
