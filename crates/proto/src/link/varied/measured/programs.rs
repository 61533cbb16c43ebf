//! Formats of programs other than tables with named columns: iperf 2, ping, CellReplay.

use super::super::Wrong;
use super::clock::Stamp;
use super::columns::Column;
use super::hints::{Hints, MILLIS, MOST, Role};
use super::names::Quantity;
use super::rows::Rows;
use crate::units::Span;

/// Milliseconds of an answer of ping, in any language, or of fping.
fn answer(text: &str) -> Option<f64> {
    let small = text.to_ascii_lowercase();
    if !["ttl=", "seq=", "seq:", "bytes, "].iter().any(|word| small.contains(word)) {
        return None;
    }
    text.match_indices("ms").find_map(|(end, _)| {
        let before = text[..end].trim_end();
        let number =
            before.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | ','));
        let is_time = number.ends_with(['=', '<']) || number.ends_with("bytes, ");
        let digits = before[number.len()..].replace(',', ".");
        digits.parse().ok().filter(|_| is_time)
    })
}

impl Rows {
    /// Rows of delays with times.
    fn of_delays(stamps: Vec<(usize, Stamp)>, values: Vec<(u32, f64, bool)>, text: String) -> Rows {
        let quantity = Quantity::RoundTrip;
        let column = Column {
            role: Role::Delay,
            index: 0,
            name: String::new(),
            quantity,
            scale: Some(1.0),
            bare: 0,
            values,
        };
        Rows {
            columns: vec![column],
            stamps,
            at: Vec::new(),
            end_s: 0.0,
            again: None,
            period_s: None,
            tick_s: None,
            time_name: "time".to_owned(),
            missing: 0,
            understood: vec![text],
        }
    }

    /// The output of `ping`: its round-trip times, and its times with `-D`.
    pub fn of_ping<'t>(
        lines: impl Iterator<Item = (usize, &'t str)> + Clone,
        hints: &Hints,
    ) -> Result<Option<Rows>, Wrong> {
        let head = |(_, line): (usize, &str)| answer(line).is_some();
        if hints.role.is_some_and(|role| role != Role::Delay) || !lines.clone().take(20).any(head) {
            return Ok(None);
        }
        let step = hints.step.unwrap_or(Span::secs(1));
        let (mut stamps, mut values, mut clocked) = (Vec::new(), Vec::new(), true);
        let answers = lines.filter(|(_, text)| !text.contains("DUP!"));
        for (line, rtt, text) in answers.filter_map(|(n, text)| Some((n, answer(text)?, text))) {
            let at = text.strip_prefix('[').and_then(|rest| rest.split_once(']'));
            let at = at.and_then(|(at, _)| at.parse().ok()).map(Stamp::Number);
            let seq = ["seq=", "seq:", ": ["].iter().find_map(|word| text.split_once(word));
            let digits =
                |rest: &str| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok();
            let seq = seq.and_then(|(_, rest)| digits(rest));
            clocked &= at.is_some();
            let seq: u64 = seq.unwrap_or(stamps.len() as u64);
            let counted = Stamp::Seconds(seq as f64 * step.as_secs_f64());
            if stamps.len() == MOST {
                return Err(Wrong::at(
                    line,
                    format!("more than {MOST} rows"),
                    "cut it by `head -n`",
                ));
            }
            values.push((stamps.len() as u32, rtt * MILLIS, false));
            stamps.push((line, at.unwrap_or(counted)));
        }
        let times = match clocked {
            true => "its times".to_owned(),
            false => format!("{step} from one to the next (`--step` sets another time)"),
        };
        let text = format!("ping: half of the round-trip times are delays, with {times}");
        Ok(Some(Rows::of_delays(stamps, values, text)))
    }

    /// The trains of CellReplay for a lightly loaded link: a time, the delay of a first packet, and the
    /// opportunities after it, in milliseconds. Delays between two lines are interpolated.
    pub fn of_trains<'t>(
        lines: impl Iterator<Item = (usize, &'t str)> + Clone,
        hints: &Hints,
    ) -> Result<Option<Rows>, Wrong> {
        if hints.role.is_some_and(|role| role != Role::Delay) || hints.column.is_some() {
            return Ok(None);
        }
        let is_train = |text: &str| {
            let mut last = 0;
            let mut cells = text.split(' ').map(|cell| cell.parse::<u32>());
            cells.by_ref().take(2).all(|cell| cell.is_ok())
                && cells.all(|cell| cell.is_ok_and(|at| core::mem::replace(&mut last, at) <= at))
        };
        let long = |(_, text): (usize, &str)| text.split(' ').count() > 3;
        if !lines.clone().take(20).all(|(_, text)| is_train(text)) || !lines.clone().any(long) {
            return Ok(None);
        }
        let (mut stamps, mut values) = (Vec::new(), Vec::new());
        for (line, text) in lines {
            let help = "a line has a time, a delay and opportunities in milliseconds";
            let mut cells = text.split(' ').map(|cell| cell.parse::<u32>().ok()).fuse();
            let (Some(Some(at)), Some(Some(delay))) = (cells.next(), cells.next()) else {
                return Err(Wrong::at(line, format!("`{text}` is no train"), help));
            };
            if stamps.len() == MOST {
                return Err(Wrong::at(
                    line,
                    format!("more than {MOST} rows"),
                    "cut it by `head -n`",
                ));
            }
            values.push((stamps.len() as u32, f64::from(delay) * MILLIS, !stamps.is_empty()));
            stamps.push((line, Stamp::Seconds(f64::from(at) / 1e3)));
        }
        let text = "CellReplay: delays of the first packets of trains".to_owned();
        let mut rows = Rows::of_delays(stamps, values, text);
        rows.columns[0].quantity = Quantity::Delay;
        // The last line only ends the period.
        if let Some((_, Stamp::Seconds(end))) = rows.stamps.last_mut()
            && *end > 0.0
        {
            let period = *end;
            *end -= 1e-6;
            rows.again = Some(rows.stamps.len());
            rows.stamps.push((0, Stamp::Seconds(period)));
        }
        Ok(Some(rows))
    }
}
