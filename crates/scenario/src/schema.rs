//! Every key and every word that a scenario file knows, in one place: they are what unknown keys are
//! checked against, what suggestions are drawn from, and what dotted keys of the command line resolve to.

use lasthop_proto::agent::AckpMode;
use lasthop_proto::channel::Modulation;
use lasthop_proto::link::header_compression::Recovery;
use lasthop_proto::queue::{Discipline, RedConfig};
use lasthop_proto::tcp::config::AckpReaction;

use crate::model::World;

/// Keys of the file itself.
pub(crate) const TOP: &[&str] = &[
    "name",
    "world",
    "runs",
    "testbed-runs",
    "seed",
    "horizon",
    "transfer",
    "host",
    "path",
    "vary",
    "schemes",
];

/// Keys of a station's file.
pub(crate) const STATION: &[&str] =
    &["left", "right", "seed", "path", "control", "metrics", "capture", "limits"];

/// Keys of the control socket of a station.
pub(crate) const CONTROL: &[&str] = &["socket"];

/// Keys of the metrics of a station.
pub(crate) const METRICS: &[&str] = &["listen"];

/// Keys of the captures of a station.
pub(crate) const CAPTURE: &[&str] = &["dir", "payload", "file-size", "files"];

/// Keys of the limits of a station.
pub(crate) const LIMITS: &[&str] = &["flows", "cache"];

/// Keys of a tunnel's file.
pub(crate) const TUNNEL: &[&str] = &[
    "tun",
    "addresses",
    "listen",
    "peer",
    "key-file",
    "key-env",
    "window",
    "rate",
    "delay",
    "reliable",
    "keep-alive",
    "dead-after",
    "queue",
    "mtu",
    "control",
    "metrics",
];

/// Keys of a transfer.
pub(crate) const TRANSFER: &[&str] =
    &["from", "to", "bytes", "start", "every", "count", "stop", "on-off", "web", "cross"];

/// Keys of `on-off`.
pub(crate) const ON_OFF: &[&str] = &["on", "off", "shape"];

/// Keys of `web`.
pub(crate) const WEB: &[&str] = &["sessions", "think", "size"];

/// Keys of the sizes of `web`.
pub(crate) const SIZE: &[&str] = &["mean", "max", "shape"];

/// Keys of a host.
pub(crate) const HOST: &[&str] = &[
    "preset",
    "tcp",
    "side",
    "addr",
    "stack",
    "kernel",
    "mss",
    "send-buffer",
    "recv-buffer",
    "rto-rule",
    "rto-min",
    "rto-max",
    "rto-initial",
    "max-retries",
    "initial-window",
    "loss-window",
    "initial-ssthresh",
    "growth",
    "pacing",
    "burst",
    "byte-counting",
    "sender-adaptation",
    "ecn",
    "acc",
    "halving",
    "dupthresh",
    "delayed-ack",
    "timestamps",
    "window-scale",
    "prediction",
    "sack",
    "smart",
    "smart-repeat",
    "snack",
    "loss-cause",
    "dsack",
    "ackp",
    "ackp-karn",
    "eln",
    "nack",
    "eln-reaction",
    "ebsn",
    "quench",
    "rtt-rounding",
    "rtt-from-syn",
    "limited-transmit",
    "vegas",
    "time-wait",
    "ticks",
    "granularity",
    "battery",
];

/// Keys of `battery`, where it is a table.
pub(crate) const BATTERY: &[&str] =
    &["preset", "capacity", "supply", "base", "doze", "idle", "receive", "transmit", "segment"];

/// What a stage of the path can be: exactly one of these keys.
pub(crate) const STAGES: &[&str] = &["link", "agent", "radio", "cross"];

/// Keys that stand beside `radio` in its stage.
pub(crate) const ERRORS: &[&str] =
    &["errors", "errors-data", "errors-ack", "errors-right", "errors-left"];

/// Keys of medium access and of the link layer, which stand beside `radio` as well.
pub(crate) const HOP: &[&str] = &[
    "mac",
    "link-layer",
    "fragment",
    "coding",
    "fama",
    "dcf",
    "half-duplex-hops",
    "ll",
    "local-recovery",
    "tulip",
];

/// Keys of `coding`, where it is a block code.
pub(crate) const CODING: &[&str] = &["block", "data", "corrects", "interleaved"];

/// Keys of `ll`.
pub(crate) const LL: &[&str] = &["window", "min-timeout", "initial-timeout"];

/// Keys of `local-recovery`.
pub(crate) const LOCAL_RECOVERY: &[&str] =
    &["max-retransmits", "backoff", "backoff-max", "timeout", "ack"];

/// Keys of `tulip`.
pub(crate) const TULIP: &[&str] = &[
    "window",
    "acceleration",
    "pacing",
    "reliable",
    "encrypted",
    "ack-size",
    "lack-every",
    "lack-delay",
];

/// Keys of `fama`, the options of medium access by FAMA-NCS.
pub(crate) const FAMA: &[&str] = &["acceleration", "short-answer", "backoff"];

/// Keys of `dcf`, the options of medium access by 802.11's DCF.
pub(crate) const DCF: &[&str] = &[
    "rts-threshold",
    "cw-min",
    "cw-max",
    "short-retries",
    "long-retries",
    "control-rate",
    "power-save",
];

/// Keys of `power-save` in `dcf`.
pub(crate) const POWER_SAVE: &[&str] = &["beacon", "listen", "buffer", "timeout"];

/// Keys of `half-duplex-hops`, the options of packet radio over several hops.
pub(crate) const HALF_DUPLEX_HOPS: &[&str] = &["hops", "turnaround", "backoff", "poll"];

/// The words for medium access, each with what it is.
pub const MACS: [(&str, &str); 4] = [
    ("ideal", "stations with frames waiting take turns, nothing collides"),
    ("fama-ncs", "the channel is acquired by RTS and CTS; a link layer may answer at once"),
    ("dcf", "802.11: listen, back off, acknowledge, retry"),
    (
        "half-duplex-hops",
        "packet radio over several hops: a poll and a turn-around for each packet",
    ),
];

/// The words for a link layer, each with what it is.
pub const LINK_LAYERS: [(&str, &str); 5] = [
    ("none", "each packet is sent once"),
    ("ll", "cumulative ACKs and timers, no order kept"),
    ("ll-sack", "the same with selective ACKs"),
    ("local-recovery", "each frame is acknowledged, and sent again a bounded number of times"),
    (
        "tulip",
        "TCP data in order and once, by a sliding window with bit vectors; all else is sent once",
    ),
];

/// Keys that stand beside `agent` in its stage.
pub(crate) const AGENT_OPTIONS: &[&str] = &[
    "agent-preset",
    "dupacks",
    "dup-acks",
    "timeout-rule",
    "initial-timeout",
    "min-timeout",
    "max-retransmits",
    "persist",
    "rtt-fault",
    "priority",
    "from-departure",
    "flows",
    "cache",
    "flow-packets",
    "ackp-mode",
    "split-preset",
    "split-sack",
    "buffer",
    "spacing",
    "packet-size",
    "bad-period",
    "packet-sizes",
    "ack-thresh",
    "ack-interval",
];

/// The words for when a base station sends partial acknowledgements.
pub(crate) const ACKP_MODES: [(&str, AckpMode); 2] =
    [("full", AckpMode::Full), ("every-packet", AckpMode::EveryPacket)];

/// Keys of `link`.
pub(crate) const LINK: &[&str] = &[
    "rate",
    "rate-right",
    "rate-left",
    "delay",
    "queue",
    "framing",
    "discipline",
    "discipline-right",
    "discipline-left",
    "red",
    "header-compression",
    "compression-slots",
    "frame-loss",
    "loss-noticed",
];

/// Keys of `radio`.
pub(crate) const RADIO: &[&str] = &[
    "rate",
    "delay",
    "duplex",
    "overhead",
    "queue",
    "discipline",
    "discipline-right",
    "discipline-left",
    "red",
];

/// Keys of `red`, the options of random early detection.
pub(crate) const RED: &[&str] = &["min", "max", "max-p", "weight", "typical", "mark"];

/// Keys of `acc`, where it is a table.
pub(crate) const ACC: &[&str] = &["most", "timeout"];

/// Keys of `cross`.
pub(crate) const CROSS: &[&str] = &["loss", "jitter"];

/// The words for a world, each with what it is.
pub(crate) const WORLDS: [(&str, World); 2] = [("sim", World::Sim), ("testbed", World::Testbed)];

/// The words for how a host's kernel is set up in the testbed, each with what it stands for.
pub const KERNELS: [(&str, &str); 4] = [
    (
        "linux-1997",
        "the kernel's Reno without SACK, timestamps, scaling or probes, 1 s minimum RTO",
    ),
    ("linux-reno", "today's kernel with Reno"),
    ("linux-cubic", "today's kernel with CUBIC, its default"),
    ("linux-bbr", "today's kernel with BBR"),
];

/// The words for what a sender does with partial acknowledgements.
pub(crate) const ACKP: [(&str, AckpReaction); 4] = [
    ("off", AckpReaction::Off),
    ("rearm", AckpReaction::Rearm),
    ("constant", AckpReaction::Constant),
    ("exponential", AckpReaction::Exponential),
];

/// The words for what a queue does with its packets.
pub const DISCIPLINES: [(&str, Discipline); 6] = [
    ("fifo", Discipline::Fifo),
    ("ack-filter", Discipline::AckFilter),
    ("acks-first", Discipline::AcksFirst),
    ("ack-filter+acks-first", Discipline::AckFilterAcksFirst),
    ("red", Discipline::Red(RedConfig::FLOYD93)),
    ("red+acks-first", Discipline::RedAcksFirst(RedConfig::FLOYD93)),
];

/// The words for header compression, each with what becomes of a connection after a loss.
pub const HEADER_COMPRESSION: [(&str, Option<Recovery>); 4] = [
    ("none", None),
    ("vj", Some(Recovery::Retransmission)),
    ("vj+twice", Some(Recovery::Twice)),
    ("vj+feedback", Some(Recovery::Feedback)),
];

/// The words for an agent, each with what it is.
pub const AGENTS: [(&str, &str); 12] = [
    ("none", "packets are only forwarded"),
    ("snoop", "packets are cached and lost ones retransmitted locally"),
    ("snoop+ackp", "snoop, and partial acknowledgements to senders that offer them"),
    ("snoop-smart", "snoop that learns from selective acknowledgements which packets are missing"),
    ("snoop-nack", "snoop, and negative acknowledgements for what the mobile host sends"),
    ("seq-cache", "sequence numbers only; the sender retransmits on a loss notification"),
    ("split", "the connection ends at the base station, a second one runs over the air"),
    ("split-sack", "split, with selective acknowledgements over the air"),
    ("ebsn", "the source is told of each failed attempt of the link layer"),
    ("source-quench", "the source is told to slow down at each failed attempt of the link layer"),
    ("good-packet-size", "segments are kept to what is good for the state of the channel"),
    ("ack-reconstruction", "ACKs that are missing behind a slow return link are filled in again"),
];

/// Keys that every error model has.
pub(crate) const ERROR_OPTIONS: &[&str] = &["model", "on", "only"];

/// The words for an error model, each with its keys beside those that all models have.
pub const ERROR_MODELS: [(&str, &[&str]); 6] = [
    ("exponential", &["mean"]),
    ("bit-errors", &["ber"]),
    ("packet-bursts", &["packets", "mean", "spacing"]),
    (
        "two-state",
        &[
            "good",
            "bad",
            "good-bits",
            "bad-bits",
            "ber-good",
            "ber-bad",
            "deterministic",
            "speed",
            "carrier",
            "margin",
            "clock",
            "reciprocal",
            "tell-turns",
        ],
    ),
    ("packet-loss", &["p"]),
    ("rayleigh", &["speed", "carrier", "snr", "modulation", "reciprocal"]),
];

/// The words for the modulation of a fading channel.
pub const MODULATIONS: [(&str, Modulation); 3] =
    [("dbpsk", Modulation::Dbpsk), ("bpsk", Modulation::Bpsk), ("fsk", Modulation::Fsk)];

/// The words alone.
pub(crate) fn words<T, const N: usize>(table: &[(&'static str, T); N]) -> [&'static str; N] {
    core::array::from_fn(|i| table[i].0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_explains_every_key() {
        let manual = include_str!("../../../docs/scenario-files.md");
        let tables: [&[&str]; 23] = [
            TOP,
            TRANSFER,
            ON_OFF,
            WEB,
            SIZE,
            HOST,
            STAGES,
            ERRORS,
            HOP,
            LOCAL_RECOVERY,
            TULIP,
            CODING,
            FAMA,
            DCF,
            POWER_SAVE,
            HALF_DUPLEX_HOPS,
            AGENT_OPTIONS,
            LINK,
            RADIO,
            CROSS,
            RED,
            ACC,
            BATTERY,
        ];
        let errors = ERROR_MODELS
            .iter()
            .flat_map(|(model, keys)| [*model].into_iter().chain(keys.iter().copied()));
        let keys = tables
            .into_iter()
            .flatten()
            .copied()
            .chain(ERROR_OPTIONS.iter().copied())
            .chain(errors);
        for key in keys {
            let told = ["`KEY`", "`KEY =", "`[KEY", "`[[KEY"]
                .iter()
                .any(|form| manual.contains(&form.replace("KEY", key)));
            assert!(told, "the manual lacks `{key}`");
        }
    }

    #[test]
    fn the_manual_of_the_tunnel_explains_every_key() {
        let manual = include_str!("../../../docs/link.md");
        for key in TUNNEL {
            assert!(
                manual.contains(&format!("| `{key}` |"))
                    || manual.contains(&format!("| `[{key}]` |")),
                "{key}"
            );
        }
    }

    #[test]
    fn the_manual_of_the_station_explains_every_key() {
        let manual = include_str!("../../../docs/station.md");
        let tables: [&[&str]; 5] = [STATION, CONTROL, METRICS, CAPTURE, LIMITS];
        for key in tables.into_iter().flatten() {
            let told = ["`KEY`", "`[KEY", "`[[KEY"]
                .iter()
                .any(|form| manual.contains(&form.replace("KEY", key)));
            assert!(told, "the manual lacks `{key}`");
        }
    }
}
