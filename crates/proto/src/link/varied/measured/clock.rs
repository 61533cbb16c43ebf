//! Times of measured tables: seconds, Unix times, and wall-clock times.

use super::super::Wrong;

/// A time as written.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Stamp {
    /// A bare number.
    Number(f64),
    /// Date and time of day: seconds since 1970.
    Date(f64),
    /// A time of day without a date, in seconds.
    Day(f64),
    /// Seconds, where the cell has the unit.
    Seconds(f64),
}

/// Days from 1970-01-01 to a date in the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || !(1900..=2200).contains(&year) {
        return None;
    }
    // Years start in March, so that the leap day is the last of a year.
    let year = if month <= 2 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    Some(year * 365 + year / 4 - year / 100 + year / 400 + of_year - 719_468)
}

/// Parses a date and time of 14 digits as iperf 2 writes it, perhaps with a `T` between and a fraction:
/// seconds since 1970.
fn digits_only(cell: &str) -> Option<f64> {
    let cell = cell.trim_end_matches(['z', 'Z']);
    // Later versions of iperf 2 write the time zone first: `+0200:20240527112328.1`.
    let cell = match cell.split_once(':') {
        Some((zone, rest)) if zone.len() == 5 && zone.starts_with(['+', '-']) => rest,
        _ => cell,
    };
    let (whole, fraction) = cell.split_once('.').unwrap_or((cell, ""));
    let digits = match whole.split_once(['T', 't']) {
        Some((date, time)) if date.len() == 8 && time.len() == 6 => format!("{date}{time}"),
        Some(_) => return None,
        None => whole.to_owned(),
    };
    if digits.len() != 14 || !digits.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit()) {
        return None;
    }
    let part = |range| digits.get::<core::ops::Range<usize>>(range)?.parse::<i64>().ok();
    let date = days(part(0..4)?, part(4..6)?, part(6..8)?)?;
    let (hours, minutes, seconds) = (part(8..10)?, part(10..12)?, part(12..14)?);
    if hours > 23 || minutes > 59 || seconds > 60 {
        return None;
    }
    let fraction: f64 = format!("0.{fraction}0").parse().ok()?;
    Some(date as f64 * 86_400.0 + (hours * 3600 + minutes * 60 + seconds) as f64 + fraction)
}

/// Parses a wall-clock time: year, month and day, or day, month and year, then hours, minutes and seconds, with any
/// separators. A time zone at the end is ignored, because it is the same in all rows.
pub(super) fn parse(cell: &str) -> Option<Stamp> {
    if let Some(at) = digits_only(cell) {
        return Some(Stamp::Date(at));
    }
    let small = cell.to_ascii_lowercase();
    let (body, later) = match small.strip_suffix("pm").or(small.strip_suffix("am")) {
        Some(body) => (body.trim_end(), small.ends_with("pm").then_some(true).or(Some(false))),
        None => (small.as_str(), None),
    };
    let mut groups: Vec<&str> = Vec::new();
    let mut between: Vec<char> = Vec::new();
    let mut rest = body;
    while groups.len() < 7 {
        let begin = rest.find(|c: char| c.is_ascii_digit());
        let Some(begin) = begin else { break };
        let gap = &rest[..begin];
        // Letters are not allowed, except the T between date and time.
        if gap.chars().any(|c| c.is_ascii_alphabetic() && c != 't') || gap.chars().count() > 2 {
            break;
        }
        if !groups.is_empty() {
            between.push(gap.chars().next()?);
        }
        let digits =
            rest[begin..].find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len() - begin);
        groups.push(&rest[begin..begin + digits]);
        rest = &rest[begin + digits..];
        let zone = rest.starts_with(['+', 'z']) || rest.starts_with('-') && groups.len() >= 6;
        if zone {
            break;
        }
    }
    let whole = |i: usize| groups.get(i).and_then(|group| group.parse::<i64>().ok());
    let day = |at: usize| {
        let (mut hours, minutes, seconds) = (whole(at)?, whole(at + 1)?, whole(at + 2)?);
        if let Some(later) = later {
            hours = hours % 12 + if later { 12 } else { 0 };
        }
        if !(0..24).contains(&hours) || !(0..60).contains(&minutes) || !(0..=60).contains(&seconds)
        {
            return None;
        }
        let fraction = match groups.get(at + 3) {
            Some(digits) if matches!(between.get(at + 2), Some('.' | ',' | ':')) => {
                format!("0.{digits}").parse().ok()?
            }
            _ => 0.0,
        };
        Some((hours * 3600 + minutes * 60 + seconds) as f64 + fraction)
    };
    match groups.len() {
        6 | 7 => {
            let [a, b, c] = [whole(0)?, whole(1)?, whole(2)?];
            let date = match (groups[0].len(), groups[2].len()) {
                (4, _) => days(a, b, c),
                // Day first, unless that is no date.
                (_, 4) => days(c, b, a).or_else(|| days(c, a, b)),
                _ => None,
            }?;
            Some(Stamp::Date(date as f64 * 86_400.0 + day(3)?))
        }
        3 | 4 if between.iter().take(2).all(|c| *c == ':') => Some(Stamp::Day(day(0)?)),
        _ => None,
    }
}

/// Seconds of the unit in the name of a column.
pub(super) fn unit_of_name(name: &str) -> Option<f64> {
    let small = name.to_ascii_lowercase();
    let mut parts = small.split(|c: char| !c.is_ascii_alphanumeric());
    parts.find_map(|part| match part {
        "ms" | "msec" | "millis" | "milliseconds" => Some(1e-3),
        "us" | "usec" | "micros" | "microseconds" => Some(1e-6),
        "ns" | "nsec" | "nanos" | "nanoseconds" => Some(1e-9),
        "s" | "sec" | "secs" | "seconds" | "second" => Some(1.0),
        "min" | "minutes" => Some(60.0),
        _ => None,
    })
}

/// Non-decreasing seconds of each row; adds the interpretation of the format.
pub(super) fn seconds(
    rows: &[(usize, Stamp)],
    tick_s: Option<f64>,
    name: &str,
    understood: &mut Vec<String>,
) -> Result<Vec<f64>, Wrong> {
    let Some((_, first)) = rows.first() else { return Ok(Vec::new()) };
    let tick = match (first, tick_s) {
        (Stamp::Number(_), Some(tick)) => tick,
        // Unix time, by its size.
        (Stamp::Number(n), None) if *n > 1e17 => 1e-9,
        (Stamp::Number(n), None) if *n > 1e14 => 1e-6,
        (Stamp::Number(n), None) if *n > 1e11 => 1e-3,
        _ => 1.0,
    };
    let zero = match first {
        Stamp::Number(n) => *n,
        Stamp::Date(at) | Stamp::Day(at) | Stamp::Seconds(at) => *at,
    };
    let kind = match first {
        Stamp::Number(_) if tick_s.is_none() && zero * tick > 1e8 => "Unix time",
        Stamp::Number(_) => "numbers",
        Stamp::Seconds(_) => "with their units",
        Stamp::Date(_) => "the wall clock, with a date",
        Stamp::Day(_) => "the wall clock, without a date",
    };
    let unit = match tick {
        1e-3 => "milliseconds",
        1e-6 => "microseconds",
        1e-9 => "nanoseconds",
        60.0 => "minutes",
        _ => "seconds",
    };
    if !name.is_empty() {
        understood.push(format!("times: `{name}`, {kind} in {unit}"));
    }
    let (mut midnights, mut last) = (0.0, 0.0);
    // A double of a current Unix time is exact to a quarter of a microsecond.
    let exact = |at: f64| if zero * tick > 1e8 { libm::round(at * 1e6) / 1e6 } else { at };
    let mut times = Vec::with_capacity(rows.len());
    for (line, stamp) in rows {
        let at = match (first, stamp) {
            // The difference of large numbers is exact, their product would not be.
            (Stamp::Number(_), Stamp::Number(n)) => exact((n - zero) * tick),
            (Stamp::Date(_), Stamp::Date(at)) => exact(at - zero),
            (Stamp::Seconds(_), Stamp::Seconds(at)) => at - zero,
            (Stamp::Day(_), Stamp::Day(at)) => {
                let mut at = at - zero + midnights;
                if last - at > 43_200.0 {
                    midnights += 86_400.0;
                    at += 86_400.0;
                }
                at
            }
            _ => {
                let message = "its time is written in another way than the first one";
                return Err(Wrong::at(*line, message, "write all times in the same way"));
            }
        };
        if at < last {
            let message = format!("its time lies {:.3} s before that of the row above", last - at);
            return Err(Wrong::at(
                *line,
                message,
                "sort the rows by time, or cut the file where another measurement begins",
            ));
        }
        times.push(at);
        last = at;
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(days(1970, 1, 1), Some(0));
        assert_eq!(days(2000, 2, 29), Some(11_016));
        assert_eq!(days(2024, 3, 1), Some(19_783));
        assert_eq!([days(2024, 13, 1), days(2024, 0, 1), days(99, 1, 1)], [None; 3]);
    }

    #[test]
    fn the_wall_clock_is_read_in_the_ways_it_is_written() {
        let at = 1_709_546_461.0;
        for text in [
            "2024.03.04_10.01.01",
            "2024-03-04T10:01:01Z",
            "2024-03-04 10:01:01",
            "2024/03/04 10:01:01+02:00",
            "2024-03-04T10:01:01-0500",
            "04/03/2024 10:01:01",
            "04.03.2024, 10:01:01",
            "2024-03-04 10:01:01 am",
            "20240304100101",
            "20240304T100101Z",
            "+0200:20240304100101.0",
        ] {
            assert_eq!(parse(text), Some(Stamp::Date(at)), "{text}");
        }
        assert_eq!(parse("2024-03-04T10:01:01.250Z"), Some(Stamp::Date(at + 0.25)));
        assert_eq!(
            parse("3/14/2024 10:01:01 PM"),
            Some(Stamp::Date(at + 10.0 * 86_400.0 + 43_200.0))
        );
        assert_eq!(parse("10:01:01.5"), Some(Stamp::Day(36_061.5)));
        for text in ["12.5", "D", "", "2024-03-04", "99:01:01", "10:01", "5G", "op 1", "-94"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn current_dates_are_exact_to_a_microsecond() {
        let texts =
            ["2024-05-27T11:23:28.0", "2024-05-27T11:23:28.2", "2024-05-27T11:23:28.400001"];
        let rows = texts.map(|text| (1, parse(text).unwrap()));
        assert_eq!(seconds(&rows, None, "t", &mut Vec::new()).unwrap(), [0.0, 0.2, 0.400001]);
        let rows = [1_716_810_000.0, 1_716_810_000.2].map(|at| (1, Stamp::Number(at)));
        assert_eq!(seconds(&rows, None, "t", &mut Vec::new()).unwrap(), [0.0, 0.2]);
    }

    #[test]
    fn a_day_ends_at_midnight() {
        let rows =
            ["23:59:59", "00:00:01", "13:00:00", "00:00:00"].map(|text| (1, parse(text).unwrap()));
        let times = seconds(&rows, None, "t", &mut Vec::new()).unwrap();
        assert_eq!(times, [0.0, 2.0, 46_801.0, 86_401.0]);
    }
}
