//! Quantities in the spelling of other programs: `10M`, `20 milliseconds`, `0,5ms`, `20packets`.
//!
//! They are errors, since some have several readings. The error suggests the most likely one.

use lasthop_proto::units::{Rate, Span};

/// The most likely rate, in the notation of `tc`. A bare number from 1000 on is in bits per second.
pub fn rate(word: &str) -> Option<String> {
    let (number, unit) = parts(word)?;
    // A capital letter means bytes.
    if word.contains('B') && !unit.contains("bit") {
        return None;
    }
    let unit = unit.strip_suffix("/sec").or(unit.strip_suffix("/s")).unwrap_or(&unit);
    let bits = match unit {
        "" if number >= 1e3 => 1.0,
        "bit" | "bits" => 1.0,
        "k" | "kb" | "kbit" | "kbits" | "kilobit" | "kilobits" => 1e3,
        "m" | "mb" | "mbit" | "mbits" | "megabit" | "megabits" => 1e6,
        "g" | "gb" | "gbit" | "gbits" | "gigabit" | "gigabits" => 1e9,
        "t" | "tb" | "tbit" | "tbits" => 1e12,
        "kibit" => 1024.0,
        "mibit" => 1024.0 * 1024.0,
        "gibit" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    Rate::from_bps((number * bits).round() as u64).map(|rate| rate.to_string())
}

/// The most likely time.
pub fn time(word: &str) -> Option<String> {
    let (number, unit) = parts(word)?;
    let nanos = match unit.as_str() {
        "ns" | "nsec" | "nanosecond" | "nanoseconds" => 1.0,
        "us" | "usec" | "\u{b5}s" | "\u{3bc}s" | "micros" | "microsecond" | "microseconds" => 1e3,
        "ms" | "msec" | "millis" | "millisecond" | "milliseconds" => 1e6,
        "s" | "sec" | "secs" | "second" | "seconds" => 1e9,
        "min" | "mins" | "minute" | "minutes" => 60e9,
        "h" | "hour" | "hours" => 3600e9,
        "d" | "day" | "days" => 86_400e9,
        _ => return None,
    };
    Some(Span((number * nanos).round() as u64).to_string())
}

/// The most likely size. `64K` is 64 KiB, as in `tc`.
pub fn size(word: &str) -> Option<String> {
    let (number, unit) = parts(word)?;
    let bytes = match unit.as_str() {
        "" | "b" | "byte" | "bytes" | "octets" => 1.0,
        "kb" | "kbyte" | "kbytes" | "kilobyte" | "kilobytes" => 1e3,
        "mb" | "mbyte" | "mbytes" | "megabyte" | "megabytes" => 1e6,
        "gb" | "gbyte" | "gbytes" | "gigabyte" | "gigabytes" => 1e9,
        "k" | "kib" => 1024.0,
        "m" | "mib" => 1024.0 * 1024.0,
        "g" | "gib" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    let bytes = (number * bytes).round() as u64;
    let units: [(u64, &str); 6] = [
        (1 << 30, "GiB"),
        (1_000_000_000, "GB"),
        (1 << 20, "MiB"),
        (1_000_000, "MB"),
        (1 << 10, "KiB"),
        (1_000, "kB"),
    ];
    let whole = units.iter().find(|(scale, _)| bytes >= *scale && bytes.is_multiple_of(*scale));
    Some(whole.map_or(format!("{bytes}B"), |(scale, unit)| format!("{}{unit}", bytes / scale)))
}

/// The most likely length of a queue. A bare number may be packets or bytes.
pub fn queue(word: &str) -> Option<String> {
    let (number, unit) = parts(word)?;
    match unit.as_str() {
        "" => None,
        "p" | "packet" | "packets" | "pkt" | "pkts" | "frame" | "frames" | "segments" => {
            Some(format!("{}p", number.round()))
        }
        _ => size(word),
    }
}

/// The most likely probability, as a percentage.
pub fn probability(word: &str) -> Option<String> {
    let percent = match word.split_once('/') {
        Some((part, whole)) => {
            100.0 * part.trim().parse::<f64>().ok()? / whole.trim().parse::<f64>().ok()?
        }
        None => {
            let (number, unit) = parts(word)?;
            match unit.as_str() {
                "%" | "%%" | "pct" | "percent" | "per cent" => number,
                "\u{2030}" | "permille" => number / 10.0,
                _ => return None,
            }
        }
    };
    (0.0..=100.0).contains(&percent).then(|| format!("{percent}%"))
}

/// The most likely whole number: of `10p` and `1e3`.
pub fn count(word: &str) -> Option<String> {
    let (number, unit) = parts(word)?;
    let is_whole = number.fract() == 0.0 && number < 1e15;
    let is_unit = unit.chars().all(char::is_alphabetic);
    (is_whole && is_unit).then(|| format!("{number}"))
}

/// The number of a word, and its unit in lower case.
fn parts(word: &str) -> Option<(f64, String)> {
    let word = word.trim();
    let end = word.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ',' | '_')));
    let (number, rest) = word.split_at(end.unwrap_or(word.len()));
    let (exponent, unit) = rest.split_at(exponent(rest));
    let number: f64 = format!("{}{exponent}", decimal(number)?).parse().ok()?;
    number.is_finite().then(|| (number, unit.trim().to_lowercase()))
}

/// Bytes of the exponent at the beginning of `text`: none in `kbit`, three in `e-3s`.
fn exponent(text: &str) -> usize {
    let Some(rest) = text.strip_prefix(['e', 'E']) else { return 0 };
    let digits = rest.strip_prefix(['-', '+']).unwrap_or(rest);
    let count = digits.bytes().take_while(u8::is_ascii_digit).count();
    if count == 0 { 0 } else { text.len() - digits.len() + count }
}

/// A number with a decimal point. A comma before three digits may separate thousands, as in `1,000`.
fn decimal(number: &str) -> Option<String> {
    let plain = number.replace('_', "");
    let Some((whole, fraction)) = plain.split_once(',') else { return Some(plain) };
    let is_decimal = whole == "0" || fraction.len() != 3;
    (is_decimal && !fraction.contains(',')).then(|| format!("{whole}.{fraction}"))
}

#[cfg(test)]
mod tests {
    use lasthop_proto::units::Probability;

    use super::*;

    fn same(words: &[&str], go: fn(&str) -> Option<String>, meant: &str) {
        for word in words {
            assert_eq!(go(word).as_deref(), Some(meant), "{word}");
        }
    }

    #[test]
    fn spellings_of_other_programs_are_understood() {
        same(
            &["10M", "10Mb", "10 Mbits/sec", "10megabit", "1e7bit", "10000000", "10,0mbit"],
            rate,
            "10mbit",
        );
        same(&["1mibit"], rate, "1.048576mbit");
        same(&["20 milliseconds", "20msec", "2e-2s", "0,02s", "20000\u{b5}s"], time, "20ms");
        same(&["1min", "60 seconds"], time, "60s");
        same(&["64K", "64kib", "65536 bytes"], size, "64KiB");
        same(&["1e6", "1 megabyte"], size, "1MB");
        same(&["20packets", "20 pkts"], queue, "20p");
        same(&["1000", "1e3", "1000 runs"], count, "1000");
        same(&["64k"], queue, "64KiB");
        same(&["0.5pct", "0,5%", "0.5 percent", "0.5%%", "1/200"], probability, "0.5%");
    }

    #[test]
    fn suggestions_are_valid() {
        assert!(rate("2.5G").is_some_and(|rate| rate.parse::<Rate>().is_ok()));
        assert!(time("3 min").is_some_and(|time| time.parse::<Span>().is_ok()));
        assert!(probability("1/3").is_some_and(|p| p.parse::<Probability>().is_ok()));
    }

    #[test]
    fn unclear_quantities_have_no_suggestion() {
        assert_eq!(
            ["20", "10mbps", "2ms", "-1mbit", "", "1,000mbit", "10MB"].map(rate),
            [const { None }; 7]
        );
        assert_eq!(["20", "5x", "1.2.3s", "20m"].map(time), [const { None }; 4]);
        assert_eq!(["20", "1BDP"].map(queue), [const { None }; 2]);
        assert_eq!(["1.5", "many"].map(count), [const { None }; 2]);
        assert_eq!(["5", "101%", "1/0", "one"].map(probability), [const { None }; 4]);
    }
}
