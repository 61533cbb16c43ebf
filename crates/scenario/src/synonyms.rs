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
    ("p", &["rate", "probability", "prob", "percent"]),
    // A radio loses packets by its errors; its `losses` vary over time.
    ("errors", LOSS),
    ("losses", LOSS),
    (
        "errors",
        &[
            "loss-model",
            "error-model",
            "errors-model",
            "fading",
            "channel",
            "ber",
            "bit-error-rate",
        ],
    ),
    ("jitter", &["delay-variation", "variation", "pdv", "ipdv"]),
    ("reorder", &["reordering"]),
    ("duplicate", &["dup", "duplication"]),
    ("corrupt", &["corruption"]),
    ("discipline", &["qdisc", "default-qdisc", "aqm", "queueing", "queue-discipline", "scheduler"]),
    (
        "tcp",
        &[
            "cc",
            "congestion",
            "congestion-control",
            "tcp-variant",
            "variant",
            "flavour",
            "flavor",
            "algorithm",
            "sender",
            "congestion-algorithm",
        ],
    ),
    ("congestion", &["cc", "congestion-control", "algorithm"]),
    ("mss", &["segment-size", "maxseg", "max-segment", "mtu"]),
    ("mtu", &["max-packet", "packet-size"]),
    ("bytes", &["size", "file-size", "length", "amount", "volume"]),
    ("count", &["flows", "connections", "parallel"]),
    ("transfer", &["flow", "flows", "download", "upload", "traffic"]),
    ("runs", &["seeds", "repetitions", "repeat", "iterations", "replications"]),
    ("seed", &["random-seed", "rng-seed", "first-seed"]),
    (
        "horizon",
        &[
            "duration",
            "time",
            "timeout",
            "time-limit",
            "max-time",
            "simulation-time",
            "simtime",
            "sim-time",
        ],
    ),
    ("agent", &["proxy", "pep", "middlebox", "base-station", "snoop"]),
    ("addr", &["ip", "address", "ip-address"]),
    (
        "recv-buffer",
        &[
            "rcvbuf",
            "rwnd",
            "rmem",
            "rmem-max",
            "rmem-default",
            "receive-window",
            "receive-buffer",
            "window",
        ],
    ),
    ("send-buffer", &["sndbuf", "wmem", "wmem-max", "wmem-default", "send-window"]),
    ("initial-window", &["iw", "initcwnd", "init-cwnd", "cwnd", "initial-cwnd"]),
    ("initial-ssthresh", &["ssthresh"]),
    ("window-scale", &["window-scaling", "wscale"]),
    ("delayed-ack", &["delack", "delayed-acks", "delack-timeout", "ack-delay"]),
    ("fast-open", &["fastopen", "tfo"]),
    ("dupthresh", &["reordering", "dupack-threshold"]),
    ("max-retries", &["retries"]),
    ("rto-min", &["min-rto"]),
    ("rto-max", &["max-rto"]),
    ("link", &["wire", "cable", "ethernet", "wired"]),
    ("radio", &["wifi", "wi-fi", "wireless", "wlan", "air", "lte"]),
    ("cross", &["cross-traffic", "background"]),
    ("tbf", &["shaper", "htb", "token-bucket"]),
    ("police", &["policer"]),
    ("duplex", &["half-duplex", "full-duplex"]),
    // Keywords.
    ("testbed", &["kernel", "real", "live"]),
    ("sim", &["simulator", "simulation"]),
    ("none", &["off", "no", "false", "disabled"]),
    ("full", &["full-duplex", "fullduplex", "fdx"]),
    ("half", &["half-duplex", "halfduplex", "hdx"]),
    ("fifo", &["droptail", "drop-tail", "pfifo", "bfifo", "tail-drop"]),
    ("fq-codel", &["cake", "fq", "sfq", "fq-pie"]),
    ("split", &["pep", "proxy", "split-tcp", "tcp-split"]),
    ("packet-loss", &["bernoulli", "uniform", "random", "iid", "independent", "loss"]),
    ("two-state", &["gilbert", "gilbert-elliott", "gilbert-elliot", "markov", "ge"]),
    ("packet-bursts", &["bursty", "burst", "bursts"]),
    ("bbr3", &["bbrv3", "bbr-v3"]),
    ("bbr", &["bbr1", "bbrv1", "bbr2", "bbrv2"]),
    ("westwood", &["westwood+", "westwoodplus"]),
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
    "txqueuelen",
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

/// The candidate with the meaning of `word`. The word is its name or a synonym by `table`, possibly with a unit or a
/// version at its end, or with the prefix of another program.
pub fn same<'a>(word: &str, table: &Synonyms, candidates: &[&'a str]) -> Option<&'a str> {
    let named = |name: &str| candidates.iter().copied().find(|candidate| *candidate == name);
    let synonym = |word: &str| {
        table.iter().find_map(|(name, words)| words.contains(&word).then(|| named(name)).flatten())
    };
    forms(word).iter().find_map(|form| named(form).or_else(|| synonym(form)))
}

/// A word as it is, and without its unit, version and prefix, in order of likelihood.
fn forms(word: &str) -> Vec<String> {
    let whole = folded(word);
    let mut all = vec![whole.clone()];
    all.extend(without_unit(&whole).map(str::to_owned));
    // Class names of ns-3 and ns-2, and names of sysctls: `ns3::TcpCubic`, `Agent/TCP/Sack1`, `net.ipv4.tcp_sack`.
    let last = whole.rsplit([':', '/', '.']).next().unwrap_or(&whole);
    let last = if last.starts_with(|c: char| c.is_ascii_digit()) { &whole } else { last };
    let bare = last.strip_prefix("tcp").filter(|rest| rest.len() > 2).unwrap_or(last);
    let bare = bare.trim_start_matches('-');
    for form in [last, bare] {
        let unversioned = form.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        let unversioned = unversioned.trim_end_matches("-v").trim_end_matches('-');
        for form in [form, unversioned] {
            if form.len() > 1 && !all.iter().any(|other| other == form) {
                all.push(form.to_owned());
            }
        }
    }
    all
}

/// The only candidate that is `word` with a version, as `freebsd-2.1` is.
fn with_version<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let is_version = |rest: &str| {
        rest.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let mut found = candidates.iter().filter(|c| c.strip_prefix(word).is_some_and(is_version));
    found.next().copied().filter(|_| found.next().is_none())
}

/// [`same`], or the candidate that is meant by `word` with a typing error.
pub fn meaning<'a>(word: &str, table: &Synonyms, candidates: &[&'a str]) -> Option<&'a str> {
    let folded = folded(word);
    let found = same(word, table, candidates).or_else(|| with_version(&folded, candidates));
    found.or_else(|| nearest(&folded, candidates)).or_else(|| {
        // Short words allow no typing error, since too few letters remain: `report` is not `repeat`.
        let known: Vec<&str> = table
            .iter()
            .flat_map(|(_, words)| words.iter().copied())
            .filter(|word| word.len() > 4)
            .collect();
        let near = nearest(&folded, &known)?;
        let errors = strsim::damerau_levenshtein(&folded, near);
        if errors * 5 > folded.chars().count() { None } else { same(near, table, candidates) }
    })
}

fn folded(word: &str) -> String {
    word.to_ascii_lowercase().replace('_', "-")
}

/// A word without the unit at its end.
fn without_unit(folded: &str) -> Option<&str> {
    folded.rsplit_once('-').filter(|(_, unit)| UNITS.contains(unit)).map(|(bare, _)| bare)
}

/// A hint at the difference between the value of the intended key and that of `word`.
pub fn remark(word: &str, meant: &str) -> Option<&'static str> {
    let folded = folded(word);
    let bare = without_unit(&folded);
    match (bare.unwrap_or(&folded), meant) {
        ("rtt" | "ping" | "round-trip", "delay") => {
            Some("a delay is one way: half of the round trip")
        }
        ("mtu", "mss") => Some("a segment is the MTU less 40 bytes of headers"),
        (loss, "errors") if LOSS.contains(&loss) => {
            Some("write `errors = { model = \"packet-loss\", p = \"1%\" }`")
        }
        (loss, "losses") if LOSS.contains(&loss) => {
            Some("these vary over time; for constant ones write `errors` next to `radio = ...`")
        }
        (loss, "p") if loss == "rate" || LOSS.contains(&loss) => {
            Some("it belongs to `errors = { model = \"packet-loss\", p = \"1%\" }`")
        }
        ("cake" | "fq" | "sfq" | "fq-pie", "fq-codel") => {
            Some("it is the most similar of the modelled disciplines")
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
    fn a_synonym_with_two_typing_errors_is_another_word() {
        assert_eq!(meaning("report", &[("seeds", &["repeat"])], &["seeds"]), None);
        assert_eq!(meaning("repaet", &[("seeds", &["repeat"])], &["seeds"]), Some("seeds"));
        assert_eq!(same("bandwith", KEYS, LINK), None);
        assert_eq!(same("Queue", KEYS, LINK), Some("queue"));
    }

    #[test]
    fn keywords_have_synonyms() {
        assert_eq!(meaning("pep", KEYS, &["none", "snoop", "split"]), Some("split"));
        assert_eq!(meaning("Gilbert", KEYS, &["bit-errors", "two-state"]), Some("two-state"));
        assert_eq!(meaning("kernel", KEYS, &["sim", "testbed"]), Some("testbed"));
        assert_eq!(meaning("fullduplex", KEYS, &["half", "full"]), Some("full"));
    }

    #[test]
    fn names_of_other_programs_lead_to_keys_and_keywords() {
        let host = ["sack", "ecn", "tcp", "recv-buffer", "send-buffer", "delayed-ack", "dsack"];
        for (word, meant) in [
            ("net.ipv4.tcp_congestion_control", "tcp"),
            ("tcp_sack", "sack"),
            ("net.ipv4.tcp_ecn", "ecn"),
            ("tcp_rmem", "recv-buffer"),
            ("net.core.wmem_max", "send-buffer"),
            ("delack", "delayed-ack"),
        ] {
            assert_eq!(meaning(word, KEYS, &host), Some(meant), "{word}");
        }
        let senders = ["reno", "newreno", "sack", "cubic", "bbr", "bbr3"];
        for (word, meant) in [
            ("ns3::TcpCubic", "cubic"),
            ("TcpNewReno", "newreno"),
            ("Agent/TCP/Sack1", "sack"),
            ("bbr9", "bbr"),
            ("bbr3", "bbr3"),
            ("bbr-v3", "bbr3"),
        ] {
            assert_eq!(meaning(word, KEYS, &senders), Some(meant), "{word}");
        }
        assert_eq!(meaning("illinois", KEYS, &senders), None);
    }

    #[test]
    fn another_version_is_no_typing_error() {
        let presets = ["freebsd-2.1", "linux", "linux-2.2"];
        assert_eq!(meaning("linux-6.1", KEYS, &presets), Some("linux"));
        assert_eq!(meaning("freebsd", KEYS, &presets), Some("freebsd-2.1"));
        assert_eq!(meaning("windows", KEYS, &presets), None);
    }

    #[test]
    fn a_radio_loses_packets_by_its_errors() {
        assert_eq!(meaning("loss", KEYS, &["rate", "losses", "errors"]), Some("errors"));
        assert!(remark("plr", "errors").is_some_and(|text| text.contains("packet-loss")));
    }

    #[test]
    fn a_name_that_is_no_candidate_is_not_suggested() {
        assert_eq!(meaning("bandwidth", KEYS, &["delay"]), None);
        assert_eq!(meaning("loss", KEYS, &["p"]), Some("p"));
    }
}
