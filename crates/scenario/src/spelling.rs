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
    let bits = match unit.as_str() {
        "" if number >= 1e3 => 1.0,
        unit => bits(unit)?,
    };
    Rate::from_bps(rounded(number * bits)?).map(|rate| rate.to_string())
}

/// Bits per second of a unit of rates.
fn bits(unit: &str) -> Option<f64> {
    let unit = unit.strip_suffix("/sec").or(unit.strip_suffix("/s")).unwrap_or(unit);
    Some(match unit {
        "bit" | "bits" => 1.0,
        "k" | "kb" | "kbit" | "kbits" | "kilobit" | "kilobits" => 1e3,
        "m" | "mb" | "mbit" | "mbits" | "megabit" | "megabits" => 1e6,
        "g" | "gb" | "gbit" | "gbits" | "gigabit" | "gigabits" => 1e9,
        "t" | "tb" | "tbit" | "tbits" => 1e12,
        "kibit" => 1024.0,
        "mibit" => 1024.0 * 1024.0,
        "gibit" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    })
}

/// The most likely time: also of a clock, `00:01:30`, and of several units, `1h 30min`.
pub fn time(word: &str) -> Option<String> {
    let word = plain(word);
    let nanos = single_time(&word).or_else(|| clock(&word)).or_else(|| times(&word))?;
    Some(Span(rounded(nanos)?).to_string())
}

/// Nanoseconds of a number with a unit.
fn single_time(word: &str) -> Option<f64> {
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
    Some(number * nanos)
}

/// Nanoseconds of `HH:MM:SS`. Two parts could be hours and minutes, or minutes and seconds.
fn clock(word: &str) -> Option<f64> {
    let parts: Vec<&str> = word.split(':').collect();
    let [hours, minutes, seconds] = parts.as_slice() else { return None };
    let whole = |text: &str| text.parse::<u32>().ok().map(f64::from);
    let seconds: f64 = seconds.parse().ok().filter(|seconds| (0.0..60.0).contains(seconds))?;
    Some((whole(hours)? * 3600.0 + whole(minutes)? * 60.0 + seconds) * 1e9)
}

/// Nanoseconds of several numbers, each with a unit.
fn times(word: &str) -> Option<f64> {
    let compact: String = word.split_whitespace().collect();
    let (mut sum, mut rest) = (0.0, compact.as_str());
    while !rest.is_empty() {
        let unit = rest.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
        let end = rest[unit..].find(|c: char| c.is_ascii_digit()).map_or(rest.len(), |n| unit + n);
        // In a sum `m` is minutes, as in `1m30s`.
        let part = &rest[..end];
        sum += match part.strip_suffix('m') {
            Some(minutes) => minutes.parse::<f64>().ok()? * 60e9,
            None => single_time(part)?,
        };
        rest = &rest[end..];
    }
    // A single `20m` is rejected: it could be minutes, metres or milliseconds.
    (compact.matches(char::is_alphabetic).count() > 1).then_some(sum)
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
        "t" | "tib" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        "tb" | "tbyte" | "tbytes" | "terabyte" | "terabytes" => 1e12,
        "bit" | "bits" => 1.0 / 8.0,
        "kbit" | "kbits" => 1e3 / 8.0,
        "mbit" | "mbits" => 1e6 / 8.0,
        "gbit" | "gbits" => 1e9 / 8.0,
        _ => return None,
    };
    let bytes = rounded(number * bytes)?;
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
                "ppm" => number / 1e4,
                _ => return None,
            }
        }
    };
    // Rounded to six digits, since a division gives more.
    let percent: f64 = format!("{percent:.6e}").parse().ok()?;
    (0.0..=100.0).contains(&percent).then(|| format!("{percent}%"))
}

/// Both readings of a word with a comma that may separate decimals or thousands, as in `10,000kbit`.
pub fn readings(word: &str) -> Option<[String; 2]> {
    let (before, after) = word.split_once(',')?;
    let digits = after.bytes().take_while(u8::is_ascii_digit).count();
    let is_one = digits == 3 && !after.contains(',') && before.bytes().all(|b| b.is_ascii_digit());
    is_one.then(|| [format!("{before}.{after}"), format!("{before}{after}")])
}

/// The kind of quantity that a word is, with an article.
pub fn kind(word: &str) -> Option<&'static str> {
    let (_, unit) = parts(word)?;
    let is_packets = |word: &str| queue(word).is_some_and(|queue| queue.ends_with('p'));
    match unit.as_str() {
        "" => None,
        "mbps" | "kbps" | "gbps" | "bps" => Some("a rate"),
        unit if bits(unit).is_some() && (unit.contains("bit") || unit.contains("/s")) => {
            Some("a rate")
        }
        _ if single_time(word).is_some() => Some("a time"),
        "p" => Some("a number of packets"),
        _ if is_packets(word) => Some("a number of packets"),
        _ if size(word).is_some() => Some("a size"),
        _ if probability(word).is_some() => Some("a percentage"),
        "db" => Some("a ratio in decibels"),
        "hz" | "khz" | "mhz" | "ghz" => Some("a frequency"),
        "w" | "mw" => Some("a power"),
        _ => None,
    }
}

/// A whole number of units. `None` beyond 64 bits, and for a fraction that would become zero.
fn rounded(value: f64) -> Option<u64> {
    let is_lost = value > 0.0 && value < 0.5;
    (value < 1e18 && !is_lost).then(|| value.round() as u64)
}

/// A word as typed on a plain keyboard: without invisible characters, and with ASCII digits and minus signs.
fn plain(word: &str) -> String {
    let typed = |c: char| match c {
        '\u{2212}' | '\u{2010}'..='\u{2013}' => '-',
        '\u{a0}' | '\u{202f}' | '\u{2009}' => ' ',
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(c as u32 - 0xfee0).unwrap_or(c),
        _ => c,
    };
    let is_visible = |c: &char| !matches!(c, '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}');
    word.trim().chars().filter(is_visible).map(typed).collect()
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
    let word = plain(word);
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

/// A number with a decimal point. A single comma before three digits may separate decimals or thousands, as in
/// `1,000`; several separate thousands.
fn decimal(number: &str) -> Option<String> {
    let plain = number.replace('_', "");
    let is_group = |group: &str| group.len() == 3 && group.bytes().all(|b| b.is_ascii_digit());
    if plain.matches(',').count() > 1 && plain.split(',').skip(1).all(is_group) {
        return Some(plain.replace(',', ""));
    }
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
        same(&["1min", "60 seconds", "00:01:00", "1m0s", "0h 1min"], time, "60s");
        same(&["1s 500ms", "\u{ff11}500ms", "1500\u{200b}ms", "1\u{a0}500ms"], time, "1.5s");
        same(&["10,000,000bit"], rate, "10mbit");
        same(&["1mbit"], size, "125kB");
        same(&["5000ppm"], probability, "0.5%");
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
    fn a_comma_before_three_digits_has_two_readings() {
        assert_eq!(readings("10,000kbit"), Some(["10.000kbit".into(), "10000kbit".into()]));
        assert_eq!(["10,5kbit", "1,000,000bit", "a,000"].map(readings), [const { None }; 3]);
    }

    #[test]
    fn quantities_of_another_kind_are_recognised() {
        let kinds = ["10ms", "10mbit", "64KiB", "20packets", "1%", "10mbps", "3dB"].map(kind);
        let expected = [
            "a time",
            "a rate",
            "a size",
            "a number of packets",
            "a percentage",
            "a rate",
            "a ratio in decibels",
        ];
        assert_eq!(kinds, expected.map(Some));
        assert_eq!(["10", "many", "5x", "0x10mbit"].map(kind), [None; 4]);
    }

    #[test]
    fn unclear_quantities_have_no_suggestion() {
        assert_eq!(["1e30mbit", "0.1bit"].map(rate), [const { None }; 2]);
        assert_eq!(["1e300s", "1:30", "25:61:99"].map(time), [const { None }; 3]);
        assert_eq!(size("1e-5"), None);
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
