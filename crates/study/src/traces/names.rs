//! Interprets the names of columns: units, rates, directions, times.

/// Bits per second of a unit, in its usual spellings.
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
        "bits/sec",
        "bytes/sec",
        "bits/s",
        "bytes/s",
        "bit/s",
        "byte/s",
        "bits",
        "bytes",
        "bit",
        "byte",
        "bps",
        "b/s",
    ]
    .iter()
    .find_map(|end| small.strip_suffix(end))?;
    let scale = match stem.trim_end_matches("per") {
        "" => 1.0,
        "k" | "kilo" => 1e3,
        "m" | "mega" => 1e6,
        "g" | "giga" => 1e9,
        _ => return None,
    };
    Some(scale * if bytes { 8.0 } else { 1.0 })
}

/// The unit in the name of a column, with its spelling there.
pub(super) fn unit_of_name(name: &str) -> Option<(f64, String)> {
    let parts =
        name.split(['(', ')', '[', ']', ' ', '_', '-', '.', ',']).filter(|part| !part.is_empty());
    let whole: Vec<&str> = parts.collect();
    let pairs = whole.windows(2).map(|pair| pair.concat());
    whole.iter().map(|part| (*part).to_owned()).chain(pairs).rev().find_map(|part| {
        // A bare `bit` or `b/s` within a name is rarely a unit.
        unit(&part)
            .filter(|_| part.len() > 3 || matches!(&*part, "bps" | "Bps"))
            .map(|bits| (bits, part))
    })
}

/// Names of rates.
const RATES: [&str; 6] = ["bitrate", "throughput", "bandwidth", "goodput", "datarate", "data_rate"];

/// How well the name of a column fits a rate; 0 is not at all.
pub(super) fn fits(name: &str, down: bool) -> u32 {
    let small = name.to_ascii_lowercase();
    let is_rate = RATES.iter().any(|word| small.contains(word))
        || small == "rate"
        || unit_of_name(name).is_some()
        || small.ends_with("_rate");
    if !is_rate {
        return 0;
    }
    match direction(&small) {
        Some(towards) if towards == down => 3,
        Some(_) => 1,
        None => 2,
    }
}

/// The direction in a name: true towards the device.
fn direction(small: &str) -> Option<bool> {
    let has = |words: &[&str]| {
        small.split(|c: char| !c.is_ascii_alphabetic()).any(|part| words.contains(&part))
            || words.iter().filter(|word| word.len() > 4).any(|word| small.contains(word))
    };
    if has(&["dl", "down", "downlink", "download", "rx", "received"]) {
        Some(true)
    } else if has(&["ul", "up", "uplink", "upload", "tx"]) {
        Some(false)
    } else {
        None
    }
}

pub(super) fn is_time(name: &str) -> bool {
    let small = name.to_ascii_lowercase();
    let begins = ["time", "date", "epoch", "second", "elapsed", "unix", "millis"];
    small == "t" || small == "ts" || begins.iter().any(|word| small.starts_with(word))
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
}
