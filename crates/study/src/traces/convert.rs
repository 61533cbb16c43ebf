//! Traces from what was measured, and back.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use lasthop_proto::link::varied::{Course, OPPORTUNITY, Trace};
use lasthop_proto::units::{Rate, Span, Time};
use lasthop_trace::capture;
use serde::Deserialize;

use super::make::{ended, from_course};
use super::rattan::Replay;
use crate::Error;

/// What an iperf3 result says.
#[derive(Deserialize)]
struct Iperf3 {
    intervals: Vec<Interval>,
}

#[derive(Deserialize)]
struct Interval {
    sum: Sum,
}

#[derive(Deserialize)]
struct Sum {
    start: f64,
    end: f64,
    bits_per_second: f64,
    #[serde(default)]
    omitted: bool,
}

fn wrong(message: impl Into<String>, help: &str) -> Error {
    Error::Input { message: message.into(), help: help.to_owned() }
}

/// Reads a trace, or makes one of a capture, an iperf3 result or a trace of Rattan's in JSON, or a CSV file of times and
/// rates: what it is, its first bytes say. A CSV file lasts for `duration`, or else until its period or its last line.
///
/// # Errors
/// What is wrong with it, with its line where it has lines.
pub fn read(bytes: &[u8], duration: Option<Span>) -> Result<Trace, Error> {
    if capture::open(bytes).is_ok() {
        return from_capture(bytes);
    }
    let text = core::str::from_utf8(bytes).map_err(|error| {
        let before = bytes.iter().take(error.valid_up_to());
        let line = 1 + before.filter(|byte| **byte == b'\n').count();
        wrong(
            format!("line {line} is not text"),
            "it is no capture, and everything else is text in UTF-8",
        )
    })?;
    if text.trim_start().starts_with('{') {
        let value: Option<serde_json::Value> = serde_json::from_str(text).ok();
        return match value.map(|value| Replay::read(&value)).transpose()?.flatten() {
            Some(replay) => replay.trace(duration),
            None => from_iperf3(text),
        };
    }
    let first = text.lines().find(|line| !line.starts_with('#')).unwrap_or_default();
    if !first.contains([',', ';', '\t']) {
        return Trace::parse(text).map_err(|error| {
            let help =
                "a trace has a time in milliseconds on each line, a CSV file a time and a rate";
            wrong(error.to_string(), help)
        });
    }
    let course = Course::<Option<Rate>>::parse_csv(text).map_err(|error| {
        let line = error.line.map_or(String::new(), |line| format!("line {line}: "));
        wrong(format!("{line}{}", error.message), &error.help)
    })?;
    let last = course.points().last().map_or(Span::ZERO, |(at, ..)| at);
    from_course(&course, duration.or(course.period()).unwrap_or(last))
}

/// The trace of an iperf3 result (`iperf3 --json`), by its intervals; those that it omits are left out.
///
/// # Errors
/// When it has no intervals.
pub fn from_iperf3(text: &str) -> Result<Trace, Error> {
    let help = "give what `iperf3 --json` prints, with its intervals";
    let result: Iperf3 =
        serde_json::from_str(text).map_err(|error| wrong(error.to_string(), help))?;
    let sums = || result.intervals.iter().map(|interval| &interval.sum).filter(|sum| !sum.omitted);
    let begin = sums().map(|sum| sum.start).fold(f64::INFINITY, f64::min);
    let steps = sums().map(|sum| {
        (
            Span::from_secs_f64(sum.start - begin),
            Rate::from_bps(sum.bits_per_second.max(0.0) as u64),
        )
    });
    let course = Course::steps(steps, None).map_err(|error| wrong(error.message, help))?;
    let end = sums().map(|sum| sum.end).fold(0.0, f64::max);
    from_course(&course, Span::from_secs_f64(end - begin + 1e-9))
}

/// The trace of a capture: what went to or came from the one address with which most bytes went or came, as opportunities
/// that would have carried just that. It is the link's where the sender had always more to send, and less elsewhere.
///
/// # Errors
/// When it holds no IP packets.
pub fn from_capture(bytes: &[u8]) -> Result<Trace, Error> {
    let help = "give a capture in pcap or pcapng form with IP packets in it";
    let frames = || {
        let capture = capture::open(bytes).map_err(|error| wrong(error.to_string(), help))?;
        Ok::<_, Error>(capture.map_while(Result::ok).filter_map(|frame| {
            let (_, bytes) = frame.ip()?;
            let view = frame.view(false)?.ok()?;
            // What a TUN device would put before it counts.
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

/// The rate in each window of so many milliseconds, as a CSV file of a scenario.
pub fn to_csv(trace: &Trace, window_ms: u32) -> String {
    let found = super::statistics(trace, window_ms);
    let mut text = "time (s),rate (bit)\n".to_owned();
    let mut last = None;
    for (i, bps) in found.windows_bps.iter().enumerate() {
        let bps = libm::round(*bps) as u64;
        // What goes on needs no line.
        if last.replace(bps) != Some(bps) {
            let ms = i as u64 * u64::from(window_ms.clamp(1, trace.period()));
            let _ = writeln!(text, "{},{bps}", ms as f64 / 1000.0);
        }
    }
    let _ = writeln!(text, "{},again", found.period_s);
    text
}
