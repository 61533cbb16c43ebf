//! Recognizes the congestion control of a sender, with a confidence.
//!
//! The evidence is the flight (bytes sent and not acknowledged) at the times when data is sent:
//!
//! - **the response to a loss**: the ratio of the windows after and before a recovery. Reno halves (RFC 5681 section
//!   3.1), CUBIC reduces to 0.7 (RFC 9438 section 4.6), BBR returns to its previous window;
//! - **the growth until the next loss**: Reno grows by a segment per round trip. CUBIC grows by a cubic function of
//!   time, but at least by its Reno-friendly 0.53 segments per round trip (sections 4.2 and 4.3). BBR does not grow;
//! - **pacing**: without it data is sent immediately when an ACK arrives. BBR requires pacing, others may have it;
//! - **the flight without losses**: Reno and CUBIC never reduce it. BBR fills a queue when it starts, drains it, and
//!   does not reach that flight again.
//!
//! Each loss is evidence for or against each candidate, and against an unknown control, which predicts no values. The
//! confidence is the posterior probability with equal priors. Only one constant is fitted to captures: the spread of
//! a window measured in whole segments.

use core::iter;

use lasthop_analyze::{EcnState, Finding, Loss, LossLocation, Point, PointKind, Retransmission};
use lasthop_proto::units::{Span, Time};
use lasthop_report::number::plural;
use serde::Serialize;

use super::Transfer;

/// CUBIC's multiplicative decrease (RFC 9438 section 4.6).
const BETA: f64 = 0.7;
/// CUBIC's C, in segments per second cubed (section 5).
const C: f64 = 0.4;
/// Segments a round trip of CUBIC's Reno-friendly region: `3 (1 - BETA) / (1 + BETA)` (section 4.3).
const FRIENDLY: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// Probability of an outlier: a second loss, an idle application, a lost ACK.
const OUTLIER: f64 = 0.15;
/// Evidence beyond this many losses is scaled down, because they share the errors of a model.
const ENOUGH: f64 = 12.0;
/// Minimum time over which the growth of a window is evaluated, in round trips.
const ROUND_TRIPS: f64 = 4.0;
/// Minimum confidence for a result.
const CONFIDENT: f64 = 0.6;
/// Minimum delay between ACK and data of a paced sender, as a share of the time between two ACKs.
const PACED: f64 = 0.2;
/// Minimum number of losses for a result: any other limit may explain a single window.
const LOSSES: usize = 3;
/// Maximum ratio of the windows after and before a loss.
const RATIOS: f64 = 1.5;
/// Minimum number of transmissions for an estimate of pacing.
const FEWEST: usize = 50;
/// Maximum delay between ACK and data without pacing, in seconds.
const SOON: f64 = 0.002;
/// Standard deviation of the ratio of two flights of BBR. In one of eight round trips the flight is a quarter above the
/// path's capacity, in one a quarter below (BBR version 1: the gain cycle of ProbeBW).
const SWING: f64 = 0.177;
/// Range of BBR's flight without losses, as a share of the largest one, at its start: that is 2.89 times the path's
/// capacity, the gain of Startup in version 1. Others reach their largest flight last.
const REMAINS: core::ops::Range<f64> = 1.0 / 2.89..1.0;
/// Round trips of a gain cycle of ProbeBW.
const CYCLE: f64 = 8.0;
/// Minimum share of the time in which the congestion window limits the sender, where its flight shows its control.
const LIMITED: f64 = 0.9;
/// Maximum number of round trips of slow start after a recovery, until the window is back at ssthresh (RFC 6937 section
/// 3: after many losses the flight is below ssthresh at the end of the recovery).
const CLIMB: f64 = 2.5;
/// A window that grows in this time by more than this share and [`ROOM`] segments is in slow start.
const STEEP: f64 = 0.25;
/// Segments.
const ROOM: f64 = 2.0;
/// Maximum relative distance to the largest flight for which a flight counts as equal.
const LEVEL: f64 = 0.05;

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
    /// All controls that can be recognized.
    pub const ALL: [Control; 3] = [Control::Reno, Control::Cubic, Control::Bbr];

    /// The name in scenario files of a modern sender with it. Linux' Reno detects losses by time, as its CUBIC does.
    pub fn word(self) -> &'static str {
        match self {
            Control::Reno => "rack",
            Control::Cubic => "cubic",
            Control::Bbr => "bbr",
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Control::Reno => "Reno",
            Control::Cubic => "CUBIC",
            Control::Bbr => "BBR",
        }
    }

    /// The ratio of the windows after and before a loss.
    fn decrease(self) -> f64 {
        match self {
            Control::Reno => 0.5,
            Control::Cubic => BETA,
            Control::Bbr => 1.0,
        }
    }

    /// The predicted window after `grown`, where a recovery left `after` of `before` segments.
    fn expects(self, before: f64, after: f64, grown: WindowGrowth) -> f64 {
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

/// The windows around a loss, in segments.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct LossResponse {
    /// Whether there is no loss before the last few round trips: slow start, or BBR's equivalent, may have ended here.
    pub first: bool,
    /// Before the loss was detected.
    pub before: f64,
    /// After the recovery.
    pub after: f64,
    /// The growth afterwards, if the next loss was late enough.
    pub grown: Option<WindowGrowth>,
}

/// The growth of a window until the next loss was detected or the capture ended.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct WindowGrowth {
    pub seconds: f64,
    pub round_trips: f64,
    /// The window at the end, in segments.
    pub window: f64,
}

/// The recognized congestion control with its evidence.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Recognition {
    /// `None` if no candidate is likely enough.
    pub control: Option<Control>,
    /// Posterior probability of the likeliest candidate.
    pub confidence: f64,
    /// The evidence in one sentence.
    pub evidence: String,
    /// The windows around each usable loss.
    pub answers: Vec<LossResponse>,
    /// Median delay between ACK and data, as a share of the median time between two ACKs; `None` with too few.
    pub waits: Option<f64>,
    /// Mean flight at the times of transmission, in segments.
    pub flight: f64,
    /// The largest flight in bytes.
    pub most: f64,
    /// Share of the transmissions at the largest flight.
    pub level: f64,
}

/// Examines the sender of a transfer.
pub fn congestion(transfer: &Transfer<'_>) -> Recognition {
    let seen = Windows::of(transfer);
    let answers = seen.answers();
    // Behind a part of the path, the capture shows the pace of that part.
    let waits = seen.waits().filter(|_| transfer.near() == Some(0.0));
    let scale = (ENOUGH / answers.len().max(1) as f64).min(1.0);
    let free = waits.is_some_and(|waits| waits > PACED) && is_free(transfer);
    let remaining = seen.final_flight().filter(|_| free);
    let flight = |control| remaining.map_or(0.0, |remaining| of_flight(control, remaining));
    let logs = Control::ALL.map(|control| {
        let windows: f64 = answers.iter().map(|answer| of_answer(control, answer, seen.cap)).sum();
        windows * scale + of_pacing(control, waits) + flight(Some(control))
    });
    let other = answers.iter().map(of_anything).sum::<f64>() * scale;
    let other = other + libm::log(0.5) + flight(None);
    let top = logs.iter().copied().fold(other, f64::max);
    let weights = logs.map(|log| libm::exp(log - top));
    let all = weights.iter().sum::<f64>() + libm::exp(other - top);
    let likeliest = Control::ALL.into_iter().zip(weights).max_by(|a, b| a.1.total_cmp(&b.1));
    let confidence = likeliest.map_or(0.0, |(_, weight)| weight / all);
    let enough = |control: &Control| {
        answers.len() >= LOSSES || remaining.is_some() && *control == Control::Bbr
    };
    Recognition {
        control: likeliest
            .map(|(control, _)| control)
            .filter(|control| confidence >= CONFIDENT && enough(control)),
        confidence,
        evidence: evidence(&answers, remaining, waits),
        waits,
        flight: seen.mean(),
        most: seen.most() * seen.segment,
        level: seen.level(),
        answers,
    }
}

/// Whether only the congestion window limited the sender, and neither a retransmission nor a mark reduced it.
fn is_free(transfer: &Transfer<'_>) -> bool {
    let mut findings = transfer.data.diagnoses.iter().map(|diagnosis| &diagnosis.finding);
    let limited = findings.clone().any(|finding| {
        matches!(finding, Finding::Limits { congestion_window, send_buffer, .. }
            if congestion_window - send_buffer >= LIMITED)
    });
    let repaired = transfer.data.retransmissions.total() > 0;
    limited
        && !repaired
        && !findings.any(|f| matches!(f, Finding::Ecn { state: EcnState::Marked, .. }))
}

/// The evidence as text.
fn evidence(answers: &[LossResponse], remaining: Option<f64>, waits: Option<f64>) -> String {
    let mut ratios: Vec<f64> = answers.iter().map(|answer| answer.after / answer.before).collect();
    let mut text = match (median(&mut ratios), remaining) {
        (Some(ratio), _) => {
            format!(
                "after {} it continued with {:.0} % of its window",
                plural(answers.len() as u64, "loss"),
                ratio * 100.0
            )
        }
        (None, Some(remaining)) if remaining < 1.0 => format!(
            "without a loss it reduced its flight to {:.0} % of the largest one",
            remaining * 100.0
        ),
        _ => "there was no loss that shows its reaction".to_owned(),
    };
    text += match waits {
        Some(waits) if waits > PACED => "; it paces its segments",
        Some(_) => "; it sends when ACKs arrive",
        None => "",
    };
    text
}

/// Log-likelihood of the observed pacing.
fn of_pacing(control: Control, waits: Option<f64>) -> f64 {
    libm::log(match (waits.map(|waits| waits > PACED), control) {
        (None, _) => 0.5,
        (Some(true), Control::Bbr) => 0.95,
        // A kernel with BBR always paces; segmentation in hardware may hide it.
        (Some(false), Control::Bbr) => 0.002,
        // `fq` paces other senders too, but is rare.
        (Some(true), _) => 0.2,
        (Some(false), _) => 0.8,
    })
}

/// Log-likelihood of the response to a loss: the window after it, and its growth.
/// No window exceeds `cap`, that of the receiver.
fn of_answer(control: Control, answer: &LossResponse, cap: f64) -> f64 {
    let &LossResponse { first, before, after, grown } = answer;
    // BBR's startup fills a queue and drains it, independent of losses.
    if first && control == Control::Bbr {
        return of_anything(answer);
    }
    // Windows are whole segments, and the flight may be one segment short. BBR's flight follows its gain cycle.
    let swing = if control == Control::Bbr { SWING } else { 0.02 };
    let spread = libm::hypot(swing, 1.0 / before);
    let likelihood = mixture(after / before, control.decrease(), spread, 1.0 / RATIOS);
    likelihood
        + grown.map_or(0.0, |grown| {
            let expected = control.expects(before, after, grown).min(cap);
            let spread = 1.0 + 0.2 * (expected - after).abs() + swing * after;
            mixture(grown.window, expected, spread, 1.0 / (before + grown.round_trips))
        })
}

/// Log-likelihood of the flight at the end of a transfer without losses, as a share of the largest one before.
fn of_flight(control: Option<Control>, remaining: f64) -> f64 {
    let Some(control) = control else { return libm::log(0.5) };
    let expected = (control == Control::Bbr) == REMAINS.contains(&remaining);
    libm::log(if expected { 1.0 - OUTLIER } else { OUTLIER })
}

/// Log-likelihood without a prediction.
fn of_anything(answer: &LossResponse) -> f64 {
    let grown = answer.grown.map_or(0.0, |g| -libm::log(answer.before + g.round_trips));
    grown - libm::log(RATIOS)
}

/// Log-density: normal around `mean`, or `flat` for an outlier.
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

/// From the first retransmission to the ACK of all data sent by then, in seconds.
#[derive(Clone, Copy, Debug)]
struct Recovery {
    /// Time of the last ACK before the recovery.
    stopped: f64,
    began: f64,
    ended: f64,
    /// The recovery has a loss, no timeout, to which all senders respond alike, and no loss before the point of capture:
    /// then data waits in a queue before that point, so that the flight here is smaller than the sender's.
    usable: Option<bool>,
}

/// Flights and recoveries over time.
struct Windows {
    rtt: f64,
    /// Bytes of a segment.
    segment: f64,
    /// The receiver's largest window, in segments.
    cap: f64,
    /// Time of each transmission in seconds, with the flight in segments.
    flights: Vec<(f64, f64)>,
    /// Times at which the cumulative ACK advanced.
    acks: Vec<f64>,
    recoveries: Vec<Recovery>,
}

impl Windows {
    fn of(transfer: &Transfer<'_>) -> Windows {
        let Transfer { data, back, .. } = transfer;
        // The sender receives an ACK later than the point of capture.
        let near = Span::from_secs_f64(transfer.near().unwrap_or(0.0));
        let options = if data.timestamps { 12 } else { 0 };
        let largest = data.points.iter().map(|point| point.len).max().unwrap_or(1);
        // A capture at the sender may show packets before segmentation in hardware.
        let negotiated = back.mss.map_or(largest, |mss| u32::from(mss).saturating_sub(options));
        let segment = f64::from(largest.min(negotiated).max(1));
        // A retransmission without a listed loss was needless.
        let is_usable = |point: &Point| {
            let loss = data.losses.binary_search_by_key(&point.at, |loss| loss.at).ok()?;
            let Loss { repair, seen, .. } = data.losses[loss];
            Some(repair != Retransmission::Timeout && seen != LossLocation::Never)
        };
        let rtt = data.rtt.map_or(0.0, |rtt| rtt.mean) + near.as_secs_f64();
        let cap = back.window_max.map_or(f64::INFINITY, |window| window as f64 / segment);
        let (flights, acks, recoveries) = (Vec::new(), Vec::new(), Vec::new());
        let mut all = Windows { rtt, segment, cap, flights, acks, recoveries };
        let at_sender = |point: &Point| match point.kind {
            PointKind::Ack | PointKind::DuplicateAck => Time(point.at.0.saturating_add(near.0)),
            _ => point.at,
        };
        let mut points: Vec<(Time, &Point)> =
            data.points.iter().map(|point| (at_sender(point), point)).collect();
        if near > Span::ZERO {
            points.sort_by_key(|(at, _)| *at);
        }
        let (mut next, mut una) = (1, 1);
        let mut open: Option<(Recovery, i64)> = None;
        // Each duplicate ACK reports a segment that has arrived.
        let mut duplicates = 0.0;
        for (at, point) in points {
            let at = at.as_secs_f64();
            match point.kind {
                PointKind::Data => {
                    next = next.max(point.offset + i64::from(point.len));
                    all.flights.push((at, (next - una) as f64 / segment - duplicates));
                }
                PointKind::Ack => {
                    una = point.offset;
                    next = next.max(una);
                    all.acks.push(at);
                    duplicates = 0.0;
                    if let Some((recovery, _)) = open.filter(|(_, recover)| una >= *recover) {
                        all.recoveries.push(Recovery { ended: at, ..recovery });
                        open = None;
                    }
                }
                PointKind::Retransmission => {
                    let stopped = all.acks.last().copied().unwrap_or(at);
                    let first = Recovery { stopped, began: at, ended: at, usable: None };
                    let (recovery, _) = open.get_or_insert((first, next));
                    let usable =
                        is_usable(point).map(|usable| usable && recovery.usable != Some(false));
                    recovery.usable = usable.or(recovery.usable);
                }
                PointKind::DuplicateAck => duplicates += 1.0,
                PointKind::OutOfOrder => {}
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

    /// The responses to undisturbed losses.
    fn answers(&self) -> Vec<LossResponse> {
        let end = self.acks.last().copied().unwrap_or(0.0);
        let next = self.recoveries.iter().skip(1).map(|next| (next.began, next.stopped));
        let last = iter::once(0.0).chain(self.recoveries.iter().map(|recovery| recovery.ended));
        let all = self.recoveries.iter().zip(last).zip(next.chain([(end, end)]));
        let mut answers: Vec<LossResponse> =
            all.filter_map(|((recovery, last), next)| self.answer(recovery, last, next)).collect();
        let mut opening = true;
        for answer in &mut answers {
            answer.first = opening;
            opening &= answer.grown.is_none();
        }
        answers
    }

    /// The response to the loss that `recovery` repairs. The previous recovery ended at `last`; the next loss was
    /// detected at `noticed`, and ACKs stopped for it at `until`.
    fn answer(
        &self,
        recovery: &Recovery,
        last: f64,
        (noticed, until): (f64, f64),
    ) -> Option<LossResponse> {
        let Recovery { stopped, began, ended, usable } = *recovery;
        if usable != Some(true) || noticed < ended + self.rtt || ended - began > 3.0 * self.rtt {
            return None;
        }
        // A sender transmits the data released by the last ACK at once, a paced sender within half a round trip.
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
        let grown = grown.map(|window| WindowGrowth { seconds, round_trips, window });
        // At the receiver's window the flight does not show the congestion window.
        let shown = before > 0.0 && before + 1.0 < self.cap;
        shown.then_some(LossResponse { first: false, before, after, grown })
    }

    /// The largest flight in the last gain cycle, as a share of the largest one before.
    fn final_flight(&self) -> Option<f64> {
        let (begin, end) = (self.flights.first()?.0, *self.acks.last()?);
        let last = end - CYCLE * self.rtt;
        let before = self.largest(begin, last)?;
        Some(self.largest(last, end)? / before).filter(|_| last - begin > CYCLE * self.rtt)
    }

    /// Median delay between ACK and data, as a share of the time between two ACKs: half of the time passes in longer gaps,
    /// so ACKs that arrive in bunches hardly count. An idle sender waits longer than a round trip.
    fn waits(&self) -> Option<f64> {
        let between = self.acks.windows(2).map(|pair| pair[1] - pair[0]);
        let mut between: Vec<f64> =
            between.filter(|between| *between > 0.0 && *between < self.rtt).collect();
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
        between.sort_by(f64::total_cmp);
        let mut half = between.iter().sum::<f64>() / 2.0;
        let longer = |gap: &&f64| {
            half -= **gap;
            half <= 0.0
        };
        let (wait, between) = (median(&mut waits)?, *between.iter().find(longer)?);
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

    /// Share of the transmissions at the largest flight.
    fn level(&self) -> f64 {
        let most = self.most();
        let there = self.flights.iter().filter(|(_, flight)| *flight > most * (1.0 - LEVEL));
        there.count() as f64 / self.flights.len().max(1) as f64
    }
}
