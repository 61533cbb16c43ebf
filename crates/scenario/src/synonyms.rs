//! Words that mean the same as a key: `bandwidth` is `rate`, `latency` is `delay`.

use crate::error::nearest;

/// A name, and its common synonyms.
pub type Synonyms = [(&'static str, &'static [&'static str])];

/// Synonyms of scenario keys. The first name that is a key at the position in question wins.
pub const KEYS: &Synonyms = &[
    ("rate", RATE),
    ("peak-rate", RATE),
    ("delay", DELAY),
    ("queue", QUEUE),
    ("frame-loss", LOSS),
    ("loss", LOSS),
    ("p", LOSS),
    ("losses", LOSS),
    ("errors", &["loss-model", "error-model", "errors-model", "fading", "channel"]),
    ("jitter", &["delay-variation", "variation", "pdv", "ipdv"]),
    ("discipline", &["qdisc", "aqm", "queueing", "queue-discipline", "scheduler"]),
    (
        "tcp",
        &["cc", "congestion-control", "tcp-variant", "variant", "flavour", "flavor", "algorithm"],
    ),
    ("congestion", &["cc", "congestion-control", "algorithm"]),
    ("mss", &["segment-size", "maxseg", "max-segment"]),
    ("mtu", &["max-packet", "packet-size"]),
    ("bytes", &["size", "file-size", "length", "amount", "volume"]),
    ("transfer", &["flow", "flows", "download", "upload", "traffic"]),
    ("runs", &["seeds", "repetitions", "repeat", "iterations", "replications"]),
    ("horizon", &["duration", "time-limit", "max-time", "simulation-time"]),
    ("agent", &["proxy", "pep", "middlebox", "base-station"]),
    ("recv-buffer", &["rcvbuf", "rwnd", "receive-window", "receive-buffer", "window"]),
    ("send-buffer", &["sndbuf", "send-window"]),
    ("initial-window", &["iw", "initcwnd", "init-cwnd"]),
    ("rto-min", &["min-rto"]),
    ("rto-max", &["max-rto"]),
    ("duplex", &["half-duplex", "full-duplex"]),
];

const RATE: &[&str] = &[
    "bandwidth",
    "bw",
    "throughput",
    "speed",
    "capacity",
    "bitrate",
    "bit-rate",
    "datarate",
    "data-rate",
];
const DELAY: &[&str] = &[
    "latency",
    "lag",
    "rtt",
    "ping",
    "round-trip",
    "owd",
    "one-way-delay",
    "propagation",
    "propagation-delay",
];
const QUEUE: &[&str] = &[
    "buffer",
    "buffers",
    "buffer-size",
    "queue-size",
    "queue-limit",
    "queue-length",
    "backlog",
    "limit",
];
const LOSS: &[&str] = &[
    "packet-loss",
    "loss-rate",
    "loss-probability",
    "drop",
    "drops",
    "plr",
    "per",
    "error-rate",
    "loss",
];

/// Units that are often appended to a key instead of its value.
const UNITS: &[&str] = &[
    "ms", "us", "ns", "s", "sec", "secs", "seconds", "msec", "bps", "kbps", "mbps", "gbps", "bit",
    "kbit", "mbit", "gbit", "bytes", "kb", "mb", "percent", "pct", "packets", "pkts",
];

/// The candidate with the meaning of `word`: by `table`, without a unit at its end, or with a typing error.
pub fn meaning<'a>(word: &str, table: &Synonyms, candidates: &[&'a str]) -> Option<&'a str> {
    let folded = word.to_ascii_lowercase().replace('_', "-");
    let bare =
        folded.rsplit_once('-').filter(|(_, unit)| UNITS.contains(unit)).map(|(bare, _)| bare);
    let exact = |word: &str| {
        let named = |name: &str| candidates.iter().copied().find(|candidate| *candidate == name);
        table.iter().find_map(|(name, words)| words.contains(&word).then(|| named(name)).flatten())
    };
    exact(&folded)
        .or_else(|| {
            bare.and_then(|bare| candidates.iter().copied().find(|candidate| *candidate == bare))
        })
        .or_else(|| bare.and_then(exact))
        .or_else(|| nearest(&folded, candidates))
        .or_else(|| {
            // A typing error in a short word leaves too few letters.
            let known: Vec<&str> = table
                .iter()
                .flat_map(|(_, words)| words.iter().copied())
                .filter(|word| word.len() > 4)
                .collect();
            nearest(&folded, &known).and_then(exact)
        })
}

/// A hint on how the value of the intended key differs from that of `word`.
pub fn remark(word: &str, meant: &str) -> Option<&'static str> {
    let folded = word.to_ascii_lowercase().replace('_', "-");
    let bare = folded.rsplit_once('-').filter(|(_, unit)| UNITS.contains(unit));
    match (bare.map_or(folded.as_str(), |(bare, _)| bare), meant) {
        ("rtt" | "ping" | "round-trip", "delay") => {
            Some("a delay is one way: half of the round trip")
        }
        _ if bare.is_some() => Some("the unit is part of the value"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: &[&str] = &["rate", "delay", "queue", "jitter", "frame-loss", "discipline"];

    fn of(word: &str) -> Option<&'static str> {
        meaning(word, KEYS, LINK)
    }

    #[test]
    fn words_of_the_same_meaning_are_found() {
        assert_eq!(["bandwidth", "bw", "Speed", "data_rate"].map(of), [Some("rate"); 4]);
        assert_eq!(["latency", "rtt", "ping"].map(of), [Some("delay"); 3]);
        assert_eq!(["buffer", "queue_size", "limit"].map(of), [Some("queue"); 3]);
        assert_eq!(["packet-loss", "plr"].map(of), [Some("frame-loss"); 2]);
    }

    #[test]
    fn units_at_the_end_of_a_key_are_left_out() {
        assert_eq!(
            ["jitter_ms", "delay-us", "latency_ms", "rate_mbps"].map(of),
            [Some("jitter"), Some("delay"), Some("delay"), Some("rate")]
        );
        assert_eq!(remark("jitter_ms", "jitter"), Some("the unit is part of the value"));
        assert!(remark("rtt_ms", "delay").is_some_and(|text| text.contains("half")));
        assert_eq!(remark("latency", "delay"), None);
    }

    #[test]
    fn slips_of_the_keys_are_understood_in_both() {
        assert_eq!(of("dealy"), Some("delay"));
        assert_eq!(of("bandwith"), Some("rate"));
        assert_eq!(of("latancy"), Some("delay"));
        assert_eq!(["colour", "x", "", "-ms"].map(of), [None; 4]);
    }

    #[test]
    fn a_name_that_is_no_candidate_is_not_suggested() {
        assert_eq!(meaning("bandwidth", KEYS, &["delay"]), None);
        assert_eq!(meaning("loss", KEYS, &["p"]), Some("p"));
    }
}
