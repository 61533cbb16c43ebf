//! Interprets the names of columns: quantities, units, directions, times.

use super::{cells, clock};

/// The quantity in a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Quantity {
    /// A rate.
    Rate,
    /// Transferred bits or bytes of each row, or a counter of them.
    Amount,
    /// A delay in one direction.
    Delay,
    /// A round-trip time.
    RoundTrip,
    /// A share of lost packets.
    Loss,
}

/// Words of names that describe a property other than the transferred amount.
const NO_AMOUNT: [&str; 9] =
    ["cwnd", "window", "flight", "buffer", "queue", "mss", "size", "header", "retrans"];

/// Whether the name of a column of transferred data says that it is a counter.
pub(super) fn is_counter(name: &str) -> bool {
    let small = name.to_ascii_lowercase();
    ["total", "cumul", "counter", "accum"].iter().any(|word| small.contains(word))
}

/// The quantity that the name of a column describes.
pub(super) fn quantity(name: &str) -> Option<Quantity> {
    let small = name.to_ascii_lowercase();
    let parts =
        || small.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
    let has = |words: &[&str]| words.iter().any(|word| small.contains(word));
    if has(&["jitter", "mdev", "stddev", "deviation", "variance"]) {
        return None;
    }
    if has(&["rtt", "latency", "round trip", "round-trip", "round_trip", "roundtrip"])
        || parts().any(|part| part == "ping")
    {
        return Some(Quantity::RoundTrip);
    }
    if has(&["delay", "owd", "one-way", "one_way"]) {
        return Some(Quantity::Delay);
    }
    if has(&["loss", "plr"]) {
        return Some(Quantity::Loss);
    }
    if has(&NO_AMOUNT) {
        return None;
    }
    if amount(name).is_some() {
        return Some(Quantity::Amount);
    }
    (fits(name, true) > 0).then_some(Quantity::Rate)
}

/// Bits in the unit of transferred data in a name, if it names no time.
pub(super) fn amount(name: &str) -> Option<f64> {
    if unit_of_name(name).is_some_and(|(_, unit)| !is_bit(&unit)) {
        return None;
    }
    let small = name.to_ascii_lowercase();
    let transferred =
        ["transfer", "volume", "total", "payload"].iter().any(|word| small.contains(word));
    words(name).into_iter().rev().find_map(|part| {
        let small = part.to_ascii_lowercase();
        let (stem, bits) = match () {
            () if small.ends_with("bytes") => (&small[..small.len() - 5], 8.0),
            () if small.ends_with("byte") => (&small[..small.len() - 4], 8.0),
            () if small.ends_with("octets") => (&small[..small.len() - 6], 8.0),
            () if ["kB", "KB", "MB", "GB"].contains(&part.as_str()) => (&small[..1], 8.0),
            () if transferred && small.ends_with("bits") => (&small[..small.len() - 4], 1.0),
            () if transferred && small.ends_with("bit") => (&small[..small.len() - 3], 1.0),
            () => return None,
        };
        scale(stem).map(|scale| scale * bits)
    })
}

/// A unit of bits without a time, which counts as bits per second: `mbit`.
fn is_bit(unit: &str) -> bool {
    let small = unit.to_ascii_lowercase();
    small.ends_with("bit") || small.ends_with("bits")
}

fn scale(prefix: &str) -> Option<f64> {
    match prefix {
        "" => Some(1.0),
        "k" | "kilo" => Some(1e3),
        "m" | "mega" => Some(1e6),
        "g" | "giga" => Some(1e9),
        _ => None,
    }
}

/// Bits per second of a unit, in its usual spellings. Bytes alone are no rate.
pub(super) fn unit(word: &str) -> Option<f64> {
    let plain = word.replace([' ', '_'], "");
    let small = plain.to_ascii_lowercase();
    // In a single letter only the capital distinguishes bytes from bits.
    let bytes = small.contains("byte")
        || ["B/s", "Bps", "BPS"]
            .iter()
            .any(|end| plain.ends_with(end) && !small.ends_with("bit/s"));
    let bytes = bytes && !small.contains("bit");
    let stem = [
        "bitspersecond",
        "bytespersecond",
        "bits/second",
        "bytes/second",
        "bits/sec",
        "bytes/sec",
        "bit/sec",
        "byte/sec",
        "bits/s",
        "bytes/s",
        "bit/s",
        "byte/s",
        "bits",
        "bit",
        "bps",
        "b/s",
    ]
    .iter()
    .find_map(|end| small.strip_suffix(end))?;
    Some(scale(stem.trim_end_matches("per"))? * if bytes { 8.0 } else { 1.0 })
}

/// The words of a name, and its neighbouring words together.
fn words(name: &str) -> Vec<String> {
    let parts =
        name.split(['(', ')', '[', ']', ' ', '_', '-', '.', ',']).filter(|part| !part.is_empty());
    let whole: Vec<&str> = parts.collect();
    let pairs: Vec<String> = whole.windows(2).map(|pair| pair.concat()).collect();
    whole.iter().map(|part| (*part).to_owned()).chain(pairs).collect()
}

/// The unit of a rate in the name of a column, with its spelling there.
pub(super) fn unit_of_name(name: &str) -> Option<(f64, String)> {
    let inner = name.split_once(['(', '[']).and_then(|(_, rest)| rest.split_once([')', ']']));
    if let Some((inner, _)) = inner
        && let Some(bits) = unit(inner.trim())
    {
        return Some((bits, inner.trim().to_owned()));
    }
    words(name).into_iter().rev().find_map(|part| {
        // A bare `bit` or `b/s` within a name is rarely a unit.
        unit(&part)
            .filter(|_| part.len() > 3 || matches!(&*part, "bps" | "Bps") || part == name)
            .map(|bits| (bits, part))
    })
}

/// Names of rates.
const RATES: [&str; 6] = ["bitrate", "throughput", "bandwidth", "goodput", "datarate", "data_rate"];

/// Names of the directions, which speed tests use for rates.
const TESTS: [&str; 4] = ["download", "upload", "downlink", "uplink"];

/// How well the name of a column fits a rate; 0 is not at all.
pub(super) fn fits(name: &str, down: bool) -> u32 {
    let small = name.to_ascii_lowercase();
    let is_rate = RATES.iter().any(|word| small.contains(word))
        || small == "rate"
        || TESTS.contains(&small.as_str())
        || unit_of_name(name).is_some()
        || small.split(|c: char| !c.is_ascii_alphanumeric()).any(|part| part == "rate");
    if !is_rate {
        return 0;
    }
    match direction(name) {
        Some(towards) if towards == down => 3,
        Some(_) => 1,
        None => 2,
    }
}

/// The direction in a name: true towards the device.
pub(super) fn direction(name: &str) -> Option<bool> {
    let small = name.to_ascii_lowercase();
    let has = |words: &[&str]| {
        small.split(|c: char| !c.is_ascii_alphabetic()).any(|part| words.contains(&part))
            || words.iter().filter(|word| word.len() > 4).any(|word| small.contains(word))
    };
    if has(&["dl", "down", "downlink", "download", "rx", "receive", "recv"]) {
        Some(true)
    } else if has(&["ul", "up", "uplink", "upload", "tx", "send", "sent", "back"]) {
        Some(false)
    } else {
        None
    }
}

/// Nanoseconds of a unit of time in a name.
pub(super) fn nanos(name: &str) -> Option<f64> {
    clock::unit_of_name(name).map(|seconds| seconds * 1e9)
}

pub(super) fn is_time(name: &str) -> bool {
    let small = name.to_ascii_lowercase();
    let begins = ["time", "date", "epoch", "second", "elapsed", "unix", "millis"];
    let words = ["timestamp", "wall", "datetime", "clock"];
    small == "t"
        || small == "ts"
        || begins.iter().any(|word| small.starts_with(word))
        || quantity(name).is_none()
            && (words.iter().any(|word| small.contains(word)) || small.ends_with("_time"))
}

/// Whether a column numbers its rows.
pub(super) fn is_count(name: &str) -> bool {
    let small = name.to_ascii_lowercase();
    ["seq", "icmp_seq", "seqno", "index", "n", "no", "id", "#"].contains(&small.as_str())
}

/// Index of the stream in a row of iperf 2.
pub(super) const IPERF_ID: usize = 5;

/// The names of the columns of `iperf -y C` (iperf 2), whose first row is `row`.
pub(super) fn iperf2(row: &[String]) -> Option<Vec<String>> {
    const NAMES: [&str; 9] = [
        "timestamp",
        "source",
        "source port",
        "destination",
        "destination port",
        "id",
        "interval",
        "transferred bytes",
        "bits_per_second",
    ];
    let is_date = row.first()?.len() >= 14 && clock::parse(row.first()?).is_some();
    let others = (10..=row.len()).map(|i| format!("column {i}"));
    (is_date && row.len() >= NAMES.len() && cells::interval(&row[6]).is_some())
        .then(|| NAMES.into_iter().map(str::to_owned).chain(others).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read_as_people_write_them() {
        for (word, bits) in [
            ("Mbps", 1e6),
            ("mbit", 1e6),
            ("Mbit/s", 1e6),
            ("kbit/s", 1e3),
            ("kbps", 1e3),
            ("bps", 1.0),
            ("bits_per_second", 1.0),
            ("Gbps", 1e9),
            ("MBps", 8e6),
            ("kB/s", 8e3),
            ("bytes/s", 8.0),
            ("Bps", 8.0),
        ] {
            assert_eq!(unit(word), Some(bits), "{word}");
        }
        assert_eq!(["fast", "dBm", "", "parsec"].map(unit), [None; 4]);
        assert_eq!(["bytes", "MBytes", "rx_bytes"].map(unit), [None; 3], "bytes alone are no rate");
        for (name, bits) in [
            ("throughput_Mbps", 1e6),
            ("rate (kbit/s)", 1e3),
            ("bps", 1.0),
            ("rx_Bps", 8.0),
            ("DL [Mbit/s]", 1e6),
            ("bits_per_second", 1.0),
        ] {
            assert_eq!(unit_of_name(name).map(|(bits, _)| bits), Some(bits), "{name}");
        }
        assert_eq!(
            ["DL_bitrate", "RSRP", "Speed", "CellID"].map(|name| unit_of_name(name).is_some()),
            [false; 4]
        );
    }

    #[test]
    fn a_column_of_bytes_is_an_amount() {
        use Quantity::*;
        for (name, expected) in [
            ("rx_bytes", Some(Amount)),
            ("transfer_MBytes", Some(Amount)),
            ("Transfer (MB)", Some(Amount)),
            ("transferred_bits", Some(Amount)),
            ("bytes/s", Some(Rate)),
            ("throughput_MBps", Some(Rate)),
            ("rate (mbit)", Some(Rate)),
            ("download", Some(Rate)),
            ("rtt_ms", Some(RoundTrip)),
            ("Ping", Some(RoundTrip)),
            ("delay (ms)", Some(Delay)),
            ("packet loss", Some(Loss)),
            ("jitter_ms", None),
            ("cwnd_bytes", None),
            ("lost", None),
            ("operator", None),
        ] {
            assert_eq!(quantity(name), expected, "{name}");
        }
        assert_eq!(amount("transfer_MBytes"), Some(8e6));
        assert_eq!(amount("rx_bytes"), Some(8.0));
    }
}
