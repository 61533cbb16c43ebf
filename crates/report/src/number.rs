//! Numbers formatted for readers.

use lasthop_observe::stats::Summary;

/// Bytes of a KiB.
pub const KIB: f64 = 1024.0;

/// Bytes per second of 1 Mbit/s.
pub const MBIT: f64 = 125e3;

/// The unit of rates in tables and pictures.
pub const RATE_UNIT: &str = "Mbit/s";

/// A rate in bytes per second, formatted with its unit.
pub fn in_mbit(bytes: f64) -> String {
    let mbit = bytes / MBIT;
    let decimals = match mbit {
        m if m >= 100.0 => 0,
        m if m >= 10.0 => 1,
        m if m >= 1.0 => 2,
        _ => 3,
    };
    format!("{} {RATE_UNIT}", grouped(&format!("{mbit:.decimals$}")))
}

/// A count with its noun: `1 run`, `2 runs`, `2 losses`.
pub fn plural(n: u64, noun: &str) -> String {
    counted(n.to_string(), noun)
}

/// The same for a mean: `1 timeout`, `1.20 timeouts`.
pub fn plural_of(n: f64, noun: &str) -> String {
    counted(short(n), noun)
}

/// Singular or plural is decided by the rounded number that is shown.
fn counted(number: String, noun: &str) -> String {
    let sibilant = noun.ends_with('s') || noun.ends_with("ch");
    let ending = match number.as_str() {
        "1" => "",
        _ if sibilant => "es",
        _ => "s",
    };
    format!("{number} {noun}{ending}")
}

/// `value` rounded to about three significant digits. Integers keep all digits.
pub fn short(value: f64) -> String {
    let size = value.abs();
    let decimals = match size {
        _ if !value.is_finite() => return "–".to_owned(),
        _ if value == value.trunc() && size < 1e15 => 0,
        s if s >= 1000.0 => 0,
        s if s >= 100.0 => 1,
        s if s >= 1.0 => 2,
        s if s >= 0.1 => 3,
        s if s >= 0.001 => 4,
        _ => return format!("{value:.2e}"),
    };
    grouped(&format!("{value:.decimals$}"))
}

/// `mean ± half-width` with as many decimals as the interval warrants; the mean alone without an interval.
pub fn with_interval(mean: f64, ci95: f64) -> String {
    // A relative interval below 1e-9 is rounding noise of equal runs.
    if !mean.is_finite() || !ci95.is_finite() || ci95 <= mean.abs() * 1e-9 {
        return short(mean);
    }
    // Two significant digits of the interval; the mean with the same number of decimals.
    let decimals = (1 - libm::log10(ci95).floor() as i32).clamp(0, 9) as usize;
    format!(
        "{} ± {}",
        grouped(&format!("{mean:.decimals$}")),
        grouped(&format!("{ci95:.decimals$}"))
    )
}

/// `mean ± half-width`.
pub fn summary(s: &Summary) -> String {
    if s.n == 0 { "–".to_owned() } else { with_interval(s.mean, s.ci95) }
}

/// Inserts thin spaces between groups of three digits from ten thousand on, and uses a true minus sign.
pub(crate) fn grouped(number: &str) -> String {
    let (sign, digits) = match number.strip_prefix('-') {
        Some(rest) if rest.trim_matches(['0', '.']).is_empty() => ("", rest),
        Some(rest) => ("\u{2212}", rest),
        None => ("", number),
    };
    let (whole, rest) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    let mut out = sign.to_owned();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && whole.len() > 4 && (whole.len() - i) % 3 == 0 {
            out.push('\u{2009}');
        }
        out.push(digit);
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_in_megabits() {
        let of = [2.5e6, 128e3, 1250.0].map(in_mbit);
        assert_eq!(of, ["20.0 Mbit/s", "1.02 Mbit/s", "0.010 Mbit/s"]);
    }

    #[test]
    fn only_a_count_of_one_is_singular() {
        assert_eq!(plural(0, "run"), "0 runs");
        assert_eq!(plural(1, "run"), "1 run");
        assert_eq!(plural(20, "batch"), "20 batches");
        assert_eq!(plural_of(1.0, "timeout"), "1 timeout");
        assert_eq!(plural_of(1.2, "timeout"), "1.20 timeouts");
        assert_eq!(plural_of(0.5, "timeout"), "0.500 timeouts");
    }

    #[test]
    fn numbers_are_rounded_to_significant_digits() {
        assert_eq!(short(199.917), "199.9");
        assert_eq!(short(7.5), "7.50");
        assert_eq!(short(20.0), "20");
        assert_eq!(short(0.9735), "0.974");
        assert_eq!(short(0.000_003_9), "3.90e-6");
        assert_eq!(short(-1_234_567.8), "\u{2212}1\u{2009}234\u{2009}568");
        assert_eq!(short(f64::NAN), "–");
        assert_eq!(with_interval(98.361, 10.82), "98 ± 11");
        assert_eq!(with_interval(98.361, 1.082), "98.4 ± 1.1");
        assert_eq!(with_interval(0.97351, 0.00042), "0.97351 ± 0.00042");
        assert_eq!(with_interval(12.0, 0.0), "12");
        assert_eq!(grouped("-0.00"), "0.00");
    }
}
