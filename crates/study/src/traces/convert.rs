//! Converts measurements to traces, and traces to CSV.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use lasthop_observe::capture;
use lasthop_proto::link::varied::measured::{Hints, Measured};
use lasthop_proto::link::varied::{OPPORTUNITY, Trace, Wrong};
use lasthop_proto::units::{Rate, Span, Time, UnitError};

use super::make::{ended, from_course};
use super::{iperf3, wrong};
use crate::Error;

/// The content of a file.
#[derive(Clone, Debug)]
pub struct ConvertedTrace {
    pub content: Content,
    /// The interpretation of the file, one line each; empty where the format is unambiguous.
    pub understood: Vec<String>,
}

/// Opportunities, or measured values.
#[derive(Clone, Debug)]
pub enum Content {
    Trace(Trace),
    Measured(Box<Measured>),
}

impl From<Trace> for ConvertedTrace {
    fn from(trace: Trace) -> ConvertedTrace {
        ConvertedTrace { content: Content::Trace(trace), understood: Vec::new() }
    }
}

impl From<Measured> for ConvertedTrace {
    fn from(mut measured: Measured) -> ConvertedTrace {
        let understood = core::mem::take(&mut measured.understood);
        ConvertedTrace { content: Content::Measured(Box::new(measured)), understood }
    }
}

impl ConvertedTrace {
    /// Whether it has rates, so that it has a trace.
    pub fn has_rates(&self) -> bool {
        match &self.content {
            Content::Trace(_) => true,
            Content::Measured(measured) => measured.rate.is_some(),
        }
    }

    /// The trace, which lasts for `duration`, or else until the end of the file's values.
    ///
    /// # Errors
    ///
    /// There are no rates, or too many opportunities.
    pub fn trace(&self, duration: Option<Span>) -> Result<Trace, Error> {
        match &self.content {
            Content::Trace(trace) => Ok(trace.clone()),
            Content::Measured(measured) => match &measured.rate {
                Some(rate) => from_course(rate, duration.unwrap_or(measured.end)),
                None => Err(wrong(
                    "it has no rates, and a trace of mm-link has nothing else",
                    "`lasthop trace convert --to csv` makes a file for `delays` or `measured` of it",
                )),
            },
        }
    }

    /// A CSV file for `rates`, `delays`, `losses` or `measured`; the rates of a trace are those of its windows.
    pub fn csv(&self, window_ms: u32) -> String {
        match &self.content {
            Content::Trace(trace) => to_csv(trace, window_ms),
            Content::Measured(measured) => measured.csv(),
        }
    }
}

/// The error with its line.
fn refused(Wrong { line, message, help }: Wrong) -> Error {
    let line = line.map_or(String::new(), |line| format!("line {line}: "));
    Error::Input { message: format!("{line}{message}"), help }
}

/// Reads a trace, a capture, an iperf3 result, or a table of times and values. The first bytes identify the format.
///
/// # Errors
///
/// The fault, with its line number where the format has lines.
pub fn read(bytes: &[u8], hints: &Hints) -> Result<ConvertedTrace, Error> {
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
        return iperf3::read(text, hints).map(ConvertedTrace::from);
    }
    let first = text.lines().find(|line| !line.starts_with('#')).unwrap_or_default().trim();
    let single = !first.contains([',', ';', '\t', ' ']) && hints.step.is_none();
    if single && (first.is_empty() || first.starts_with(|c: char| !c.is_alphabetic())) {
        let trace = Trace::parse(text).map_err(|error| {
            let help = "a trace has a time in milliseconds on each line, a table a time and a rate; `--step 10ms` reads \
                        one value per line";
            wrong(error.to_string(), help)
        });
        return trace.map(ConvertedTrace::from);
    }
    let mut measured = Measured::read(text, hints).map_err(refused)?;
    if let Some(rate) = measured.rate.as_ref().filter(|rate| rate.period().is_none())
        && has_own_units(text)
        && let Some((last, ..)) = rate.points().last()
    {
        // In a file made for `rates` the last line is the end.
        measured.end = last;
    }
    Ok(measured.into())
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
