//! Labels of axes as numbers.

/// A number with a unit, in the format of scenarios.
#[derive(Clone, PartialEq, Debug)]
pub struct Amount {
    /// In units of `unit`.
    pub value: f64,
    /// In base units: seconds, bits per second, bytes, packets, or 1.
    pub unit: f64,
    /// The unit as written.
    pub name: String,
    /// `s`, `r` for a rate, `b` for bytes, `p` for packets, `%`, or `1` for a bare number.
    pub kind: char,
}

/// The amount that a label is; `None` for other words.
pub fn amount(label: &str) -> Option<Amount> {
    let digits = |c: char| c.is_ascii_digit() || ".+-_".contains(c);
    let mut end = label.find(|c| !digits(c)).unwrap_or(label.len());
    // An exponent belongs to the number.
    if let Some(rest) = label[end..].strip_prefix(['e', 'E'])
        && rest.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '+')
    {
        end += 1 + rest.find(|c| !digits(c)).unwrap_or(rest.len());
    }
    let value: f64 = label[..end].replace('_', "").parse().ok()?;
    let name = label[end..].trim();
    let (kind, unit) = match name {
        "" => ('1', 1.0),
        "%" => ('%', 0.01),
        "p" => ('p', 1.0),
        "ns" => ('s', 1e-9),
        "us" => ('s', 1e-6),
        "ms" => ('s', 1e-3),
        "s" => ('s', 1.0),
        "bit" => ('r', 1.0),
        "kbit" => ('r', 1e3),
        "mbit" => ('r', 1e6),
        "gbit" => ('r', 1e9),
        "B" => ('b', 1.0),
        "KB" => ('b', 1e3),
        "MB" => ('b', 1e6),
        "GB" => ('b', 1e9),
        "KiB" => ('b', 1024.0),
        "MiB" => ('b', 1048576.0),
        "GiB" => ('b', 1073741824.0),
        _ => return None,
    };
    Some(Amount { value, unit, name: name.to_owned(), kind })
}

/// Labels as numbers in one unit: `B`, `B/s`, `s`, `packets`, or `1` for shares and bare numbers. `None` if a label is
/// no amount or the kinds differ; a bare zero fits every unit.
pub fn numbers(labels: &[String]) -> Option<(&'static str, Vec<f64>)> {
    let amounts: Vec<Amount> = labels.iter().map(|label| amount(label)).collect::<Option<_>>()?;
    let is_zero = |a: &Amount| a.kind == '1' && a.value == 0.0;
    let kind = amounts.iter().find(|a| !is_zero(a)).or(amounts.first())?.kind;
    if amounts.iter().any(|a| a.kind != kind && !is_zero(a)) {
        return None;
    }
    let (unit, scale) = match kind {
        's' => ("s", 1.0),
        'r' => ("B/s", 0.125),
        'b' => ("B", 1.0),
        'p' => ("packets", 1.0),
        _ => ("1", 1.0),
    };
    Some((unit, amounts.iter().map(|a| exact(a) * scale).collect()))
}

/// In base units. A unit below 1 is a whole part of the base unit, and dividing by that rounds once: `5ms` is 0.005.
fn exact(amount: &Amount) -> f64 {
    if amount.unit < 1.0 {
        amount.value / (1.0 / amount.unit).round()
    } else {
        amount.value * amount.unit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_one_kind_are_numbers_with_a_unit() {
        let of = |labels: &[&str]| {
            numbers(&labels.iter().map(|label| (*label).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(of(&["16KiB", "128KiB", "1MB"]), Some(("B", vec![16384.0, 131072.0, 1e6])));
        assert_eq!(of(&["2mbit", "500kbit"]), Some(("B/s", vec![250_000.0, 62_500.0])));
        assert_eq!(of(&["5ms", "0.3s", "20us"]), Some(("s", vec![0.005, 0.3, 0.00002])));
        assert_eq!(of(&["0", "0.1%", "5%"]), Some(("1", vec![0.0, 0.001, 0.05])));
        assert_eq!(of(&["0", "5ms"]), Some(("s", vec![0.0, 0.005])));
        assert_eq!(of(&["50p", "100p"]), Some(("packets", vec![50.0, 100.0])));
        assert_eq!(of(&["536", "1460"]), Some(("1", vec![536.0, 1460.0])));
        for words in
            [&["none", "16KiB"][..], &["1s", "1MiB"], &["5", "5ms"], &["nan"], &["1e"], &[]]
        {
            assert_eq!(of(words), None, "{words:?}");
        }
    }
}
