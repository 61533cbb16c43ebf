//! Which congestion control a sender looks like, with a confidence.
//!
//! Three things are looked at, all by the flight (bytes sent and not acknowledged) at the moments when data leaves:
//!
//! - **the answer to a loss**: the window after a recovery by that before it. Reno halves (RFC 5681 section 3.1), CUBIC
//!   keeps 0.7 (RFC 9438 section 4.6), BBR goes back to what it had;
//! - **the growth until the next loss**: Reno's is a segment a round trip, CUBIC's a cubic function of the time, but no
//!   less than its Reno-friendly 0.53 of a segment a round trip (sections 4.2 and 4.3), BBR has none;
//! - **pacing**: without it data leaves at once when an ACK comes, with it at times of its own. BBR needs it, others may
//!   have it.
//!
//! Each loss is evidence for all candidates, and for "another one", of which nothing is expected. The probabilities
//! that follow, all equal before, are the confidence. No constant here was fitted to captures but the spread that a
//! measurement of a window in whole segments has.

use core::iter;

use lasthop_analyze::{Direction, PointKind, Retransmission};
use lasthop_report::number::plural;
use serde::Serialize;

/// CUBIC's multiplicative decrease (RFC 9438 section 4.6).
const BETA: f64 = 0.7;
/// CUBIC's C, in segments per second cubed (section 5).
const C: f64 = 0.4;
/// Segments a round trip of CUBIC's Reno-friendly region: `3 (1 - BETA) / (1 + BETA)` (section 4.3).
const FRIENDLY: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// How probable it is that a measurement is none: a second loss, an idle application, a lost ACK.
const OUTLIER: f64 = 0.15;
/// Evidence beyond so many losses is scaled down: they share what is wrong with a model.
const ENOUGH: f64 = 12.0;
/// Round trips that a window must grow for, to be looked at.
const ROUND_TRIPS: f64 = 4.0;
/// Less confidence names nothing.
const CONFIDENT: f64 = 0.6;
/// A sender whose data leaves later behind an ACK than this share of the time between two ACKs is paced.
const PACED: f64 = 0.2;
/// Windows up to so many times that before a loss may follow it.
const RATIOS: f64 = 1.5;
/// Fewer moments of sending tell nothing of pacing.
const FEWEST: usize = 50;
/// What an ACK lets out leaves within so many seconds, if nothing paces it.
const SOON: f64 = 0.002;
/// How far two flights of BBR lie apart, by the standard deviation of their ratio: in one of eight round trips each is a
/// quarter above the path's capacity, in one a quarter below (BBR, version 1: the gain cycle of ProbeBW).
const SWING: f64 = 0.177;
/// Round trips within which slow start brings a window from where a recovery left it to ssthresh (RFC 6937 section 3:
/// where much was lost, less than ssthresh is under way at its end).
const CLIMB: f64 = 2.5;
/// A window that grows by more than this share, and [`ROOM`] segments, in that time, is in slow start.
const STEEP: f64 = 0.25;
/// Segments.
const ROOM: f64 = 2.0;
/// Heights of the flight within this share of the largest one are one height.
const LEVEL: f64 = 0.05;

/// A congestion control.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Control {
    /// RFC 5681.
    Reno,
    /// RFC 9438.
    Cubic,
    /// Version 1, as in Linux.
    Bbr,
}

impl Control {
    /// All that are told apart.
    pub const ALL: [Control; 3] = [Control::Reno, Control::Cubic, Control::Bbr];

    /// The word of scenario files for a sender of today that has it. Linux' Reno finds losses by time as its CUBIC does.
    pub fn word(self) -> &'static str {
        match self {
            Control::Reno => "rack",
            Control::Cubic => "cubic",
            Control::Bbr => "bbr",
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Control::Reno => "Reno",
            Control::Cubic => "CUBIC",
            Control::Bbr => "BBR",
        }
    }

    /// The window after a loss, by that before it.
    fn keeps(self) -> f64 {
        match self {
            Control::Reno => 0.5,
            Control::Cubic => BETA,
            Control::Bbr => 1.0,
        }
    }

    /// The window that `grown` leads to, where a recovery left `after` of `before` segments.
    fn expects(self, before: f64, after: f64, grown: Grown) -> f64 {
        match self {
            Control::Reno => after + grown.round_trips,
            Control::Cubic => {
                let t = grown.seconds - libm::cbrt((before - after).max(0.0) / C);
                (C * t * t * t + before).max(after + FRIENDLY * grown.round_trips)
            }
            Control::Bbr => after,
        }
    }
}

/// What the window did around a loss, in segments.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Answer {
    /// None before it tells, or only such that follow each other within a few round trips: slow start, or what BBR has for
    /// it, may have ended here.
    pub first: bool,
    /// Before the loss was noticed.
    pub before: f64,
    /// Behind the recovery.
    pub after: f64,
    /// What became of it, if the next loss was long enough in coming.
    pub grown: Option<Grown>,
}

/// How a window went on until the next loss was noticed or the capture ended.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Grown {
    /// For so long.
    pub seconds: f64,
    /// The same in round trips.
    pub round_trips: f64,
    /// The window then, in segments.
    pub window: f64,
}

/// Which congestion control it looks like, and why.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Likeness {
    /// The one, if any is likely enough.
    pub control: Option<Control>,
    /// How probable the likeliest is, from 0 to 1.
    pub confidence: f64,
    /// What was seen, in a sentence.
    pub evidence: String,
    /// The windows around each loss that tells.
    pub answers: Vec<Answer>,
    /// How long data waits behind an ACK, by the time between two ACKs: medians. `None` for too few of them.
    pub waits: Option<f64>,
    /// The mean flight when data leaves, in segments.
    pub flight: f64,
    /// The largest flight in bytes.
    pub most: f64,
    /// The share of the moments of sending at which the flight was as large as that.
    pub level: f64,
}

/// Looks at `data`, which `back` acknowledges.
pub fn congestion(data: &Direction, back: &Direction) -> Likeness {
    let seen = Windows::of(data, back);
    let answers = seen.answers();
    let waits = seen.waits();
    let scale = (ENOUGH / answers.len().max(1) as f64).min(1.0);
    let logs = Control::ALL.map(|control| {
        let windows: f64 = answers.iter().map(|answer| of_answer(control, answer)).sum();
        windows * scale + of_pacing(control, waits)
    });
    let other = answers.iter().map(of_anything).sum::<f64>() * scale + libm::log(0.5);
    let top = logs.iter().copied().fold(other, f64::max);
    let weights = logs.map(|log| libm::exp(log - top));
    let all = weights.iter().sum::<f64>() + libm::exp(other - top);
    let likeliest = Control::ALL.into_iter().zip(weights).max_by(|a, b| a.1.total_cmp(&b.1));
    let confidence = likeliest.map_or(0.0, |(_, weight)| weight / all);
    Likeness {
        control: likeliest.map(|(control, _)| control).filter(|_| confidence >= CONFIDENT),
        confidence,
        evidence: evidence(&answers, waits),
        waits,
        flight: seen.mean(),
        most: seen.most() * seen.segment,
        level: seen.level(),
        answers,
    }
}

/// What was seen, for a reader.
fn evidence(answers: &[Answer], waits: Option<f64>) -> String {
    let mut kept: Vec<f64> = answers.iter().map(|answer| answer.after / answer.before).collect();
    let mut text = match median(&mut kept) {
        Some(kept) => {
            format!(
                "after {} it went on with {:.0} % of its window",
                plural(answers.len() as u64, "loss"),
                kept * 100.0
            )
        }
        None => "no loss shows how it answers one".to_owned(),
    };
    text += match waits {
        Some(waits) if waits > PACED => "; what it sends is paced",
        Some(_) => "; what it sends leaves as ACKs come",
        None => "",
    };
    text
}

/// The logarithm of how likely `control` sends as seen.
fn of_pacing(control: Control, waits: Option<f64>) -> f64 {
    libm::log(match (waits.map(|waits| waits > PACED), control) {
        (None, _) => 0.5,
        (Some(true), Control::Bbr) => 0.95,
        // A kernel with BBR paces always; hardware that cuts segments may hide it.
        (Some(false), Control::Bbr) => 0.002,
        // `fq` paces others as well, but is seldom there.
        (Some(true), _) => 0.2,
        (Some(false), _) => 0.8,
    })
}

/// The logarithm of how likely `control` answers a loss so: the window after it, and how that grew.
fn of_answer(control: Control, answer: &Answer) -> f64 {
    let &Answer { first, before, after, grown } = answer;
    // BBR's opening fills a queue, which it then drains, whatever was lost.
    if first && control == Control::Bbr {
        return of_anything(answer);
    }
    // Windows are of whole segments, and the flight may be one short. BBR's goes up and down with its gain.
    let swing = if control == Control::Bbr { SWING } else { 0.02 };
    let spread = libm::hypot(swing, 1.0 / before);
    let kept = mixture(after / before, control.keeps(), spread, 1.0 / RATIOS);
    kept + grown.map_or(0.0, |grown| {
        let expected = control.expects(before, after, grown);
        let spread = 1.0 + 0.2 * (expected - after).abs() + swing * after;
        mixture(grown.window, expected, spread, 1.0 / (before + grown.round_trips))
    })
}

/// The same where nothing is expected.
fn of_anything(answer: &Answer) -> f64 {
    let grown = answer.grown.map_or(0.0, |g| -libm::log(answer.before + g.round_trips));
    grown - libm::log(RATIOS)
}

/// The logarithm of a density: normal about `mean`, or, for an outlier, `flat`.
fn mixture(value: f64, mean: f64, spread: f64, flat: f64) -> f64 {
    let off = (value - mean) / spread;
    let root = (2.0 * core::f64::consts::PI).sqrt();
    let normal = libm::exp(-0.5 * off * off) / (spread * root);
    libm::log((1.0 - OUTLIER) * normal + OUTLIER * flat)
}

fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// From the first retransmission to the ACK of all that was sent then, in seconds.
#[derive(Clone, Copy, Debug)]
struct Recovery {
    /// When the ACKs stopped.
    stopped: f64,
    began: f64,
    ended: f64,
    /// A time-out was among its causes, which every sender answers alike.
    timeout: bool,
}

/// Flights and recoveries over time.
struct Windows {
    rtt: f64,
    /// Bytes of a segment.
    segment: f64,
    /// When data left, in seconds, and the flight then, in segments.
    flights: Vec<(f64, f64)>,
    /// When the cumulative ACK moved.
    acks: Vec<f64>,
    recoveries: Vec<Recovery>,
}

impl Windows {
    fn of(data: &Direction, back: &Direction) -> Windows {
        let options = if data.timestamps { 12 } else { 0 };
        let largest = data.points.iter().map(|point| point.len).max().unwrap_or(1);
        // A capture at the sender may have what its hardware cuts into segments.
        let told = back.mss.map_or(largest, |mss| u32::from(mss).saturating_sub(options));
        let segment = f64::from(largest.min(told).max(1));
        let timeouts: Vec<u64> = data
            .losses
            .iter()
            .filter(|loss| loss.repair == Retransmission::Timeout)
            .map(|loss| loss.at.0)
            .collect();
        let rtt = data.rtt.map_or(0.0, |rtt| rtt.mean);
        let (flights, acks, recoveries) = (Vec::new(), Vec::new(), Vec::new());
        let mut all = Windows { rtt, segment, flights, acks, recoveries };
        let (mut next, mut una) = (1, 1);
        let mut open: Option<(Recovery, i64)> = None;
        for point in &data.points {
            let at = point.at.as_secs_f64();
            match point.kind {
                PointKind::Data => {
                    next = next.max(point.offset + i64::from(point.len));
                    all.flights.push((at, (next - una) as f64 / segment));
                }
                PointKind::Ack => {
                    una = point.offset;
                    next = next.max(una);
                    all.acks.push(at);
                    if let Some((recovery, _)) = open.filter(|(_, recover)| una >= *recover) {
                        all.recoveries.push(Recovery { ended: at, ..recovery });
                        open = None;
                    }
                }
                PointKind::Retransmission => {
                    let stopped = all.acks.last().copied().unwrap_or(at);
                    let first = Recovery { stopped, began: at, ended: at, timeout: false };
                    let (recovery, _) = open.get_or_insert((first, next));
                    recovery.timeout |= timeouts.binary_search(&point.at.0).is_ok();
                }
                PointKind::OutOfOrder | PointKind::DuplicateAck => {}
            }
        }
        all
    }

    /// The largest flight from `from` to `to`.
    fn largest(&self, from: f64, to: f64) -> Option<f64> {
        let first = self.flights.partition_point(|(at, _)| *at < from);
        let within = self.flights[first..].iter().take_while(|(at, _)| *at <= to);
        within.map(|(_, flight)| *flight).reduce(f64::max)
    }

    /// The answers to losses that nothing else disturbed.
    fn answers(&self) -> Vec<Answer> {
        let end = self.acks.last().copied().unwrap_or(0.0);
        let next = self.recoveries.iter().skip(1).map(|next| (next.began, next.stopped));
        let last = iter::once(0.0).chain(self.recoveries.iter().map(|recovery| recovery.ended));
        let all = self.recoveries.iter().zip(last).zip(next.chain([(end, end)]));
        let mut answers: Vec<Answer> =
            all.filter_map(|((recovery, last), next)| self.answer(recovery, last, next)).collect();
        let mut opening = true;
        for answer in &mut answers {
            answer.first = opening;
            opening &= answer.grown.is_none();
        }
        answers
    }

    /// The answer to the loss that `recovery` repairs, where the one before ended at `last`, the next one was noticed at
    /// `noticed`, and the ACKs stopped for it at `until`. While they have stopped the flight counts what has arrived.
    fn answer(
        &self,
        recovery: &Recovery,
        last: f64,
        (noticed, until): (f64, f64),
    ) -> Option<Answer> {
        let Recovery { stopped, began, ended, timeout } = *recovery;
        if timeout || noticed < ended + self.rtt || ended - began > 3.0 * self.rtt {
            return None;
        }
        // What the last ACK let out was sent at once, or by a paced sender within half of a round trip.
        let half = self.rtt / 2.0;
        let before = self.largest((stopped - half).max(last), stopped + SOON)?;
        let mut after = self.largest(ended, (ended + half).min(until + SOON))?;
        let mut from = ended;
        let climbed = (ended + CLIMB * self.rtt).min(until);
        if let Some(later) = self.largest(from + half, climbed + SOON)
            && later > after * (1.0 + STEEP) + ROOM
        {
            (after, from) = (later, climbed);
        }
        let (seconds, round_trips) = (until - from, (until - from) / self.rtt);
        let window = self.largest((until - half).max(from), until + SOON);
        let grown = window.filter(|_| round_trips >= ROUND_TRIPS);
        let grown = grown.map(|window| Grown { seconds, round_trips, window });
        (before > 0.0).then_some(Answer { first: false, before, after, grown })
    }

    /// How long data waits behind an ACK, by the time between two: medians.
    fn waits(&self) -> Option<f64> {
        let mut between: Vec<f64> = self.acks.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mut waits: Vec<f64> = self
            .flights
            .iter()
            .filter_map(|(at, _)| {
                let before = self.acks.partition_point(|ack| ack <= at).checked_sub(1)?;
                Some(at - self.acks[before])
            })
            .collect();
        if waits.len() < FEWEST || between.len() < FEWEST {
            return None;
        }
        let (wait, between) = (median(&mut waits)?, median(&mut between)?);
        (between > 0.0).then(|| wait / between)
    }

    /// The mean flight.
    fn mean(&self) -> f64 {
        let sum: f64 = self.flights.iter().map(|(_, flight)| flight).sum();
        sum / self.flights.len().max(1) as f64
    }

    /// The largest flight.
    fn most(&self) -> f64 {
        self.flights.iter().map(|(_, flight)| *flight).fold(0.0, f64::max)
    }

    /// The share of the moments at which the flight was as large as it ever became.
    fn level(&self) -> f64 {
        let most = self.most();
        let there = self.flights.iter().filter(|(_, flight)| *flight > most * (1.0 - LEVEL));
        there.count() as f64 / self.flights.len().max(1) as f64
    }
}
