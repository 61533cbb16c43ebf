//! Converts measurements to traces, and traces to CSV.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use lasthop_observe::capture;
use lasthop_proto::link::varied::{Course, OPPORTUNITY, Trace};
use lasthop_proto::units::{Rate, Span, Time, UnitError};

use super::iperf3;
use super::make::{ended, from_course};
use super::rattan::Replay;
use super::table::{self, Hints, wrong};
use crate::Error;

/// The content of a file.
#[derive(Clone, Debug)]
pub struct ConvertedTrace {
    pub trace: Trace,
    /// A CSV file for `rates` of a link, if the file has rates itself.
    pub csv: Option<String>,
    /// The interpretation of the file, one line each; empty where the format is unambiguous.
    pub understood: Vec<String>,
}

impl From<Trace> for ConvertedTrace {
    fn from(trace: Trace) -> ConvertedTrace {
        ConvertedTrace { trace, csv: None, understood: Vec::new() }
    }
}

/// Reads a trace, or converts a capture, an iperf3 result, a JSON trace of Rattan, or a table of times and rates. The
/// first bytes identify the format. A table lasts for `duration`, or else until its period or the end of its last row.
///
/// # Errors
///
/// The fault, with its line number where the format has lines.
pub fn read(bytes: &[u8], duration: Option<Span>, hints: &Hints) -> Result<ConvertedTrace, Error> {
    if capture::open(bytes).is_ok() {
        return from_capture(bytes).map(ConvertedTrace::from);
    }
    let text = core::str::from_utf8(bytes).map_err(|error| {
        let before = bytes.iter().take(error.valid_up_to());
        let line = 1 + before.filter(|byte| **byte == b'\n').count();
        wrong(
            format!("line {line} is not text"),
            "it is no capture, and everything else is text in UTF-8",
        )
    })?;
    // A byte order mark would make a heading of the first line.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim_start().starts_with('{') {
        let value: Option<serde_json::Value> = serde_json::from_str(text).ok();
        return match value.map(|value| Replay::read(&value)).transpose()?.flatten() {
            Some(replay) => replay.trace(duration).map(ConvertedTrace::from),
            None => {
                let (trace, understood) = iperf3::read(text, hints)?;
                Ok(ConvertedTrace { trace, csv: None, understood })
            }
        };
    }
    let first = text.lines().find(|line| !line.starts_with('#')).unwrap_or_default().trim();
    if !first.contains([',', ';', '\t', ' ']) {
        let trace = Trace::parse(text).map_err(|error| {
            let help = "a trace has a time in milliseconds on each line, a table a time and a rate";
            wrong(error.to_string(), help)
        });
        return trace.map(ConvertedTrace::from);
    }
    let course = Course::<Option<Rate>>::parse_csv(text);
    match course {
        Ok(course) => {
            let last = course.points().last().map_or(Span::ZERO, |(at, ..)| at);
            let end = duration.or(course.period()).unwrap_or(last);
            if end == Span::ZERO {
                return Err(wrong(
                    "its rates have a single time, so they have no duration",
                    "add a line with the end, for example `10s,again`",
                ));
            }
            let trace = from_course(&course, end)?;
            Ok(ConvertedTrace::from(trace))
        }
        Err(error) if has_own_units(text) => {
            let line = error.line.map_or(String::new(), |line| format!("line {line}: "));
            Err(wrong(format!("{line}{}", error.message), error.help))
        }
        Err(_) => of_table(table::read(text, hints)?, duration),
    }
}

/// The file is meant for `rates`: its values have units, or two columns have units in brackets.
fn has_own_units(text: &str) -> bool {
    text.lines().filter(|line| !line.starts_with('#')).take(2).any(|line| {
        let Some((time, value)) = line.split_once([',', ';', '\t']) else { return false };
        let value = value.trim();
        // The message about `12 Mbps` is that of rates with units.
        let with_unit = matches!(
            value.parse::<Rate>(),
            Ok(_) | Err(UnitError::Ambiguous(..) | UnitError::Octets(..))
        );
        let headings = [time.trim_end(), value].iter().all(|heading| heading.ends_with(')'));
        with_unit || headings && !value.contains([',', ';', '\t'])
    })
}

/// The trace of a table, and its CSV file.
fn of_table(table: table::Table, duration: Option<Span>) -> Result<ConvertedTrace, Error> {
    let table::Table { rates, end_s, understood } = table;
    let steps =
        rates.iter().map(|(at, bps)| (Span::from_secs_f64(*at), Rate::from_bps(*bps as u64)));
    let help = "times must lie apart by a nanosecond";
    let course = Course::steps(steps, None).map_err(|error| wrong(error.message, help))?;
    let mut csv = "time (s),rate (bit)\n".to_owned();
    for (at, bps) in &rates {
        let _ = writeln!(csv, "{at:.6},{}", *bps as u64);
    }
    let _ = writeln!(csv, "{end_s:.6},again");
    let trace = from_course(&course, duration.unwrap_or(Span::from_secs_f64(end_s + 1e-9)))?;
    Ok(ConvertedTrace { trace, csv: Some(csv), understood })
}

/// The trace of a capture: opportunities that carry exactly the traffic of the address with most bytes. While the
/// sender has data to send, the trace shows the capacity of the link, and less at other times.
///
/// # Errors
///
/// There are no IP packets.
pub fn from_capture(bytes: &[u8]) -> Result<Trace, Error> {
    let help = "give a capture in pcap or pcapng form with IP packets in it";
    let frames = || {
        let capture = capture::open(bytes).map_err(|error| wrong(error.to_string(), help))?;
        Ok::<_, Error>(capture.map_while(Result::ok).filter_map(|frame| {
            let (_, bytes) = frame.ip()?;
            let view = frame.view(false)?.ok()?;
            // The header of a TUN device counts.
            Some((frame.at, [(view.src, false), (view.dst, true)], bytes as u64 + 4))
        }))
    };
    let mut sums = BTreeMap::new();
    for (_, ends, bytes) in frames()? {
        ends.into_iter().for_each(|end| *sums.entry(end).or_insert(0_u64) += bytes);
    }
    let most = sums.iter().max_by_key(|(_, bytes)| **bytes);
    let (most, _) = most.ok_or_else(|| wrong("there are no IP packets in it", help))?;
    let mut per_ms: BTreeMap<u64, u64> = BTreeMap::new();
    let mut begin: Option<Time> = None;
    for (at, ends, bytes) in frames()? {
        let zero = begin.map_or(at, |begin| begin.min(at));
        begin = Some(zero);
        if ends.contains(most) {
            *per_ms.entry(at.0).or_default() += bytes;
        }
    }
    let zero = begin.unwrap_or(Time::ZERO);
    let (mut times, mut carried, mut end) = (Vec::new(), 0_u64, 1);
    for (at, bytes) in per_ms {
        let ms = Time(at).since(zero).0 / 1_000_000 + 1;
        end = u32::try_from(ms).map_err(|_| wrong("it lasts for more than 49 days", help))?;
        carried += bytes;
        while carried >= u64::from(OPPORTUNITY) {
            times.push(end);
            carried -= u64::from(OPPORTUNITY);
        }
    }
    ended(times, end)
}

/// The rate in each window of `window_ms`, as a CSV file of a scenario.
pub fn to_csv(trace: &Trace, window_ms: u32) -> String {
    let found = super::statistics(trace, window_ms);
    let mut text = "time (s),rate (bit)\n".to_owned();
    let mut last = None;
    for (i, bps) in found.windows_bps.iter().enumerate() {
        let bps = libm::round(*bps) as u64;
        // An unchanged rate needs no line.
        if last.replace(bps) != Some(bps) {
            let ms = i as u64 * u64::from(window_ms.clamp(1, trace.period()));
            let _ = writeln!(text, "{},{bps}", ms as f64 / 1000.0);
        }
    }
    let _ = writeln!(text, "{},again", found.period_s);
    text
}
