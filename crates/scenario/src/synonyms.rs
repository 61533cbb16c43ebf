//! Words that mean the same as a key or keyword: `bandwidth` is `rate`, `latency` is `delay`.

/// A name, and its common synonyms, separated by spaces.
pub type Synonyms = [(&'static str, &'static str)];

/// Synonyms of scenario keys and keywords. The first name that is possible at the position in question wins.
pub const KEYS: &Synonyms = &[
    ("rate", "bandwidth bw throughput speed capacity bitrate datarate data-rate"),
    ("delay", "latency rtt ping owd propagation"),
    ("queue", "buffer buffers buffer-size queue-size queue-limit limit backlog txqueuelen"),
    ("frame-loss", LOSS),
    ("loss", LOSS),
    ("p", LOSS),
    ("p", "rate probability"),
    ("errors", LOSS),
    ("losses", LOSS),
    ("errors", "loss-model error-model channel fading ber"),
    ("jitter", "delay-variation"),
    ("discipline", "qdisc aqm scheduler"),
    ("tcp", "cc congestion congestion-control variant algorithm sender"),
    ("congestion", "cc congestion-control"),
    ("mss", "mtu segment-size maxseg"),
    ("mtu", "packet-size"),
    ("bytes", "size file-size"),
    ("count", "flows connections"),
    ("runs", "seeds repetitions"),
    ("horizon", "duration time timeout"),
    ("agent", "pep proxy base-station snoop"),
    ("recv-buffer", "rcvbuf rwnd rmem rmem-max receive-window"),
    ("send-buffer", "sndbuf wmem wmem-max"),
    ("initial-window", "iw initcwnd cwnd"),
    ("delayed-ack", "delack"),
    ("testbed", "kernel real"),
    ("fifo", "droptail drop-tail pfifo bfifo"),
    ("fq-codel", "cake fq sfq"),
    ("full", "full-duplex fullduplex"),
    ("half", "half-duplex halfduplex"),
    ("split", "pep proxy"),
    ("packet-loss", "bernoulli uniform random"),
    ("two-state", "gilbert gilbert-elliott markov"),
];

const LOSS: &str = "packet-loss loss-rate drop plr per loss";

/// Whether a word is a name of losses.
pub fn is_loss(word: &str) -> bool {
    LOSS.split(' ').any(|loss| loss == word)
}

/// Units that are often appended to a key instead of its value.
const UNITS: &str =
    "ms us s sec seconds bps kbps mbps gbps kbit mbit gbit bytes kb mb percent packets";

/// The candidate with the meaning of `word`. The word is its name or a synonym by `table`, possibly with a unit at its end,
/// or with the prefix of a sysctl or a class of ns-3.
pub fn same<'a>(word: &str, table: &Synonyms, candidates: &[&'a str]) -> Option<&'a str> {
    let named = |name: &str| candidates.iter().copied().find(|candidate| *candidate == name);
    let is_synonym = |words: &str, word: &str| words.split(' ').any(|synonym| synonym == word);
    let synonym = |word: &str| {
        table
            .iter()
            .find_map(|(name, words)| is_synonym(words, word).then(|| named(name)).flatten())
    };
    let whole = folded(word);
    let last = whole.rsplit([':', '/', '.']).next().unwrap_or(&whole);
    let last = if last.starts_with(|c: char| c.is_ascii_digit()) { &whole } else { last };
    let bare = last
        .strip_prefix("tcp")
        .filter(|rest| rest.len() > 2)
        .unwrap_or(last)
        .trim_start_matches('-');
    let unversioned =
        bare.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').trim_end_matches('-');
    let forms =
        [Some(whole.as_str()), without_unit(&whole), Some(last), Some(bare), Some(unversioned)];
    forms
        .into_iter()
        .flatten()
        .filter(|form| form.len() > 1 || *form == whole)
        .find_map(|form| named(form).or_else(|| synonym(form)))
}

/// [`same`], or the candidate that is meant by `word` with a typing error.
pub fn meaning<'a>(word: &str, table: &Synonyms, candidates: &[&'a str]) -> Option<&'a str> {
    same(word, table, candidates).or_else(|| nearest(&folded(word), candidates))
}

fn folded(word: &str) -> String {
    word.to_ascii_lowercase().replace('_', "-")
}

/// A word without the unit at its end.
fn without_unit(folded: &str) -> Option<&str> {
    folded
        .rsplit_once('-')
        .filter(|(_, unit)| UNITS.split(' ').any(|known| known == *unit))
        .map(|(bare, _)| bare)
}

/// A hint at the difference between the value of the intended key and that of `word`.
pub fn remark(word: &str, meant: &str) -> Option<&'static str> {
    let folded = folded(word);
    let bare = without_unit(&folded);
    match (bare.unwrap_or(&folded), meant) {
        ("rtt" | "ping", "delay") => Some("a delay is one way: half of the round trip"),
        ("mtu", "mss") => Some("a segment is the MTU less 40 bytes of headers"),
        (loss, "errors") if is_loss(loss) => {
            Some("write `errors = { model = \"packet-loss\", p = \"1%\" }`")
        }
        (loss, "losses") if is_loss(loss) => {
            Some("these vary over time; for constant ones write `errors` next to `radio = ...`")
        }
        (loss, "p") if loss == "rate" || is_loss(loss) => {
            Some("it belongs to `errors = { model = \"packet-loss\", p = \"1%\" }`")
        }
        ("cake" | "fq" | "sfq", "fq-codel") => {
            Some("it is the most similar of the modelled disciplines")
        }
        _ if bare.is_some() => Some("the unit is part of the value"),
        _ => None,
    }
}

/// The candidate that differs from `word` by a typing error.
pub(crate) fn nearest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let folded = word.to_ascii_lowercase().replace('_', "-");
    // At most a third of the letters may be wrong, and one letter of very short words.
    let budget = (folded.chars().count() / 3).max(1);
    candidates
        .iter()
        .map(|candidate| (strsim::damerau_levenshtein(&folded, candidate), *candidate))
        .filter(|(distance, candidate)| *distance <= budget && *distance < candidate.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
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
        assert_eq!(["colour", "x", "", "-ms"].map(of), [None; 4]);
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
