//! Radio or queue? A queue loses packets only while it is full, a radio at any time.
//!
//! Every new segment is one trial. Its label is the latest round-trip time that was known when it was sent, so the
//! segment's own fate cannot have changed the label. If losses do not depend on the queue, each part of the labels
//! has losses in proportion to its segments. Only the first loss of a flight counts, because the next ones depend on
//! it. Segments sent between a loss and its repair are no trials, lost or not.

use std::collections::BTreeMap;

use lasthop_proto::units::{Span, Time};

use crate::reading::{Cause, Verdict};

/// Share of the segments with the longest round trips, where a full queue would lose packets.
const LONG: f64 = 0.25;
/// Share of the segments with short round trips.
const SHORT: f64 = 0.5;
/// Minimum variation of the round trip, from the first to the last decile, for a conclusion about a queue.
const VARIED: f64 = 1.2;
/// Maximum probability of the result by chance for which losses count as concentrated at long round trips.
const CONCENTRATED: f64 = 0.005;
/// The same where other losses exclude a queue: a radio alone explains all of them better.
const CONCENTRATED_TOO: f64 = 0.001;
/// Minimum probability of the result by chance for which losses count as independent of round trips.
const SPREAD: f64 = 0.05;
/// Maximum probability of the result if a queue were the cause of half of the losses, or of all, to exclude this.
const EXCLUDED: f64 = 0.05;
/// Maximum share of a queue's losses at short round trips: a queue may fill within one round trip.
const GRANTED: f64 = 0.1;
/// Minimum number of losses for a verdict.
const FEWEST: u64 = 5;
/// Maximum number of losses of one flight that are no run ...
const RUN: u64 = 2;
/// ... and maximum share of all losses in runs, up to which single losses represent all.
const IN_RUNS: f64 = 0.25;

/// Packets and losses by the latest round-trip time known when they were sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trials {
    /// By round-trip time in steps of 1/64 of an octave: bounded, however long the connection is.
    classes: BTreeMap<u32, Class>,
    /// The latest round-trip time and when it was measured; none from a retransmission to the next measurement.
    latest: Option<(f64, Time)>,
    /// Transmission of a lost segment, and of its repair.
    hole: Option<(Time, Time)>,
    /// Losses of the flight of the hole.
    run: u64,
    /// Losses in long runs.
    in_runs: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Class {
    segments: u64,
    losses: u64,
}

/// The label of a segment.
pub(crate) type Label = Option<u32>;

/// Drops the lowest bits of the mantissa: the classes are alike on every platform.
fn class(rtt: f64) -> u32 {
    (rtt.max(1e-9).to_bits() >> (52 - 6)) as u32
}

/// The lower bound of a class in seconds.
fn bound(class: u32) -> f64 {
    f64::from_bits(u64::from(class) << (52 - 6))
}

impl Trials {
    /// A round trip was measured.
    pub(crate) fn measured(&mut self, at: Time, rtt: f64) {
        self.latest = Some((rtt, at));
    }

    /// The label of a segment that is sent for the first time. After a pause of two round trips, the latest one
    /// does not describe the queue any more.
    pub(crate) fn label(&self, at: Time) -> Label {
        let (rtt, measured) = self.latest?;
        (at.since(measured) <= Span::from_secs_f64(2.0 * rtt)).then(|| class(rtt))
    }

    fn is_in_hole(&self, sent: Time) -> bool {
        self.hole.is_some_and(|(from, to)| sent > from && sent <= to)
    }

    /// Segments that were sent once have arrived.
    pub(crate) fn arrived(&mut self, sent: Time, label: Label, segments: u64) {
        if !self.is_in_hole(sent) {
            self.count(label, segments, 0);
        }
    }

    /// Records the retransmission at `at` of a segment that was sent at `sent`. Returns whether its loss counts as a
    /// trial.
    pub(crate) fn repaired(&mut self, sent: Time, at: Time) -> bool {
        self.latest = None;
        let first = !self.is_in_hole(sent);
        if first {
            self.hole = Some((sent, at));
            self.run = 0;
        }
        first
    }

    /// Records the loss of `segments` that were sent at `sent`.
    pub(crate) fn lost(&mut self, sent: Time, segments: u64) {
        if !self.is_in_hole(sent) && self.hole.is_none_or(|(from, _)| from != sent) {
            return;
        }
        let before = self.run;
        self.run += segments;
        self.in_runs += match (before > RUN, self.run > RUN) {
            (true, _) => segments,
            (false, true) => self.run,
            (false, false) => 0,
        };
    }

    /// Counts segments as trials with `losses` losses.
    pub(crate) fn count(&mut self, label: Label, segments: u64, losses: u64) {
        if let Some(label) = label.filter(|_| segments > 0) {
            let class = self.classes.entry(label).or_default();
            class.segments += segments;
            class.losses += losses;
        }
    }

    /// Withdraws the loss of a segment that had arrived.
    pub(crate) fn withdraw(&mut self, label: Label) {
        if let Some(class) = label.and_then(|label| self.classes.get_mut(&label)) {
            class.losses = class.losses.saturating_sub(1);
        }
    }

    /// The class from which on the share of the segments is closest to `share`, with the sums from this class on.
    fn above(&self, share: f64) -> (u32, Class) {
        let all = self.sum(0).segments as f64;
        let error = |class: &Class| (class.segments as f64 / all - share).abs();
        let mut best = (0, self.sum(0));
        let mut sum = Class::default();
        for (&label, class) in self.classes.iter().rev() {
            sum = Class {
                segments: sum.segments + class.segments,
                losses: sum.losses + class.losses,
            };
            if error(&sum) < error(&best.1) {
                best = (label, sum);
            }
        }
        best
    }

    fn sum(&self, from: u32) -> Class {
        self.classes.range(from..).fold(Class::default(), |sum, (_, class)| Class {
            segments: sum.segments + class.segments,
            losses: sum.losses + class.losses,
        })
    }

    /// The lowest class, in seconds, up to which at least this share of the segments lies.
    fn quantile(&self, share: f64) -> f64 {
        let all = self.sum(0).segments as f64;
        let mut sum = 0;
        for (&label, class) in &self.classes {
            sum += class.segments;
            if sum as f64 >= share * all {
                return bound(label);
            }
        }
        0.0
    }

    /// The verdict on `losses`, of which `unseen` were lost before the point of capture.
    pub(crate) fn verdict(&self, losses: u64, unseen: u64) -> Verdict {
        let all = self.sum(0);
        let mut verdict =
            Verdict { segments: all.segments, losses: all.losses, ..Verdict::default() };
        let unclear = |verdict: Verdict, evidence: String| Verdict {
            cause: Cause::Unclear,
            evidence,
            ..verdict
        };
        if losses == 0 {
            verdict.evidence = "no packet was lost".to_owned();
            return verdict;
        }
        if unseen * 2 > losses {
            let text = format!(
                "{unseen} of {losses} losses happened before the point of capture, where the length of the queue \
                 is unknown"
            );
            return unclear(verdict, text);
        }
        if all.losses < FEWEST {
            let text = match all.losses {
                0 => "no loss came at a known round trip".to_owned(),
                n => format!("{n} independent {} at known round trips: too few", noun(n)),
            };
            return unclear(verdict, text);
        }
        let (low, high) = (self.quantile(0.1), self.quantile(0.9));
        (verdict.rtt_short, verdict.rtt_long) = (Some(low), Some(high));
        if high < low * VARIED {
            let text = format!(
                "the round trip hardly varied, {:.1} to {:.1} ms for most packets",
                low * 1e3,
                high * 1e3
            );
            return unclear(verdict, text);
        }
        let (_, long) = self.above(LONG);
        let (_, rest) = self.above(1.0 - SHORT);
        verdict.long_segments = long.segments;
        verdict.long_losses = long.losses;
        verdict.short_segments = all.segments - rest.segments;
        verdict.short_losses = all.losses - rest.losses;
        let share = long.segments as f64 / all.segments as f64;
        let chance =
            upper_tail(hypergeometric(all.segments, long.segments, all.losses), long.losses);
        verdict.chance = Some(chance);
        // If a queue, full only during the longest round trips, had caused half of the losses.
        let half = 0.5 + 0.5 * share;
        let expected = share * all.losses as f64;
        let figures = format!(
            "{} of {} losses fell on the {:.0} % of packets with the longest round trips; chance alone: {:.0}",
            long.losses,
            all.losses,
            share * 100.0,
            expected
        );
        let not_half = lower_tail(binomial(all.losses, half), long.losses) < EXCLUDED;
        let not_all = upper_tail(binomial(all.losses, GRANTED), verdict.short_losses) < EXCLUDED;
        let concentrated = chance < CONCENTRATED;
        let short = format!("; {} fell on the shorter half", verdict.short_losses);
        let runs = self.in_runs as f64 > IN_RUNS * losses as f64;
        (verdict.cause, verdict.evidence) = if chance < CONCENTRATED_TOO && not_all {
            (Cause::Both, figures + &short)
        } else if concentrated && !not_all && long.losses as f64 >= half * all.losses as f64 {
            (Cause::Queue, figures)
        } else if chance >= SPREAD && not_half && verdict.short_losses > 0 {
            if runs {
                let text = format!(
                    "; but {} of all {losses} came in runs, as a full queue or a fading radio makes them",
                    self.in_runs
                );
                (Cause::Unclear, figures + &text)
            } else {
                (Cause::Radio, figures)
            }
        } else {
            (Cause::Unclear, figures)
        };
        verdict
    }
}

fn noun(n: u64) -> &'static str {
    if n == 1 { "loss" } else { "losses" }
}

/// Probabilities of 0, 1, ... losses, each from the ratio to the previous one, without factorials and logarithms.
fn distribution(from: u64, to: u64, mode: u64, ratio: impl Fn(u64) -> f64) -> BTreeMap<u64, f64> {
    let mut weights = BTreeMap::from([(mode, 1.0)]);
    let mut weight = 1.0;
    for x in mode + 1..=to {
        weight *= ratio(x);
        if weight < 1e-300 {
            break;
        }
        weights.insert(x, weight);
    }
    weight = 1.0;
    for x in (from + 1..=mode).rev() {
        weight /= ratio(x);
        if weight < 1e-300 {
            break;
        }
        weights.insert(x - 1, weight);
    }
    let all: f64 = weights.values().sum();
    weights.values_mut().for_each(|weight| *weight /= all);
    weights
}

/// How many of `marked` among `all` are found in `drawn`: Fisher's exact test.
fn hypergeometric(all: u64, marked: u64, drawn: u64) -> BTreeMap<u64, f64> {
    let (from, to) = ((marked + drawn).saturating_sub(all), marked.min(drawn));
    let (n, k, d) = (all as f64, marked as f64, drawn as f64);
    let mode = (((k + 1.0) * (d + 1.0) / (n + 2.0)) as u64).clamp(from, to);
    distribution(from, to, mode, |x| {
        let x = x as f64;
        (k - x + 1.0) * (d - x + 1.0) / (x * (n - k - d + x))
    })
}

/// How many of `n` happen, each with probability `p`.
pub(crate) fn binomial(n: u64, p: f64) -> BTreeMap<u64, f64> {
    if p >= 1.0 {
        return BTreeMap::from([(n, 1.0)]);
    }
    let mode = (((n + 1) as f64 * p) as u64).min(n);
    distribution(0, n, mode, |x| (n - x + 1) as f64 / x as f64 * p / (1.0 - p))
}

pub(crate) fn upper_tail(of: BTreeMap<u64, f64>, from: u64) -> f64 {
    of.range(from..).map(|(_, p)| p).sum()
}

fn lower_tail(of: BTreeMap<u64, f64>, to: u64) -> f64 {
    of.range(..=to).map(|(_, p)| p).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_those_of_the_tables() {
        // Fisher's tea: eight cups, four of each; all four right by chance in 1 of 70 cases.
        assert!((upper_tail(hypergeometric(8, 4, 4), 4) - 1.0 / 70.0).abs() < 1e-12);
        assert!((upper_tail(hypergeometric(8, 4, 4), 3) - 17.0 / 70.0).abs() < 1e-12);
        assert!((upper_tail(hypergeometric(8, 6, 6), 4) - 1.0).abs() < 1e-12);
        assert!((upper_tail(binomial(10, 0.5), 8) - 56.0 / 1024.0).abs() < 1e-12);
        assert!((lower_tail(binomial(10, 0.5), 0) - 1.0 / 1024.0).abs() < 1e-12);
        assert!((lower_tail(binomial(5, 1.0), 4)).abs() < 1e-12);
        let large = upper_tail(hypergeometric(50_000_000, 12_500_000, 10_000), 2500);
        assert!((0.45..0.55).contains(&large), "{large}");
    }

    #[test]
    fn classes_are_narrow() {
        for rtt in [1e-6, 0.003, 0.1, 2.7, 60.0] {
            let low = bound(class(rtt));
            assert!(low <= rtt && rtt < low * (1.0 + 1.0 / 63.0), "{rtt}");
        }
    }

    fn trials(losses: &[(f64, u64, u64)]) -> Verdict {
        let mut trials = Trials::default();
        for &(rtt, segments, losses) in losses {
            (0..segments).for_each(|i| trials.count(Some(class(rtt)), 1, u64::from(i < losses)));
        }
        trials.verdict(trials.sum(0).losses, 0)
    }

    #[test]
    fn the_four_verdicts() {
        let causes = [
            (trials(&[(0.1, 500, 0), (0.2, 250, 1), (0.3, 250, 12)]), Cause::Queue),
            (trials(&[(0.1, 500, 10), (0.2, 250, 5), (0.3, 250, 5)]), Cause::Radio),
            (trials(&[(0.1, 500, 10), (0.2, 250, 5), (0.3, 250, 20)]), Cause::Both),
            (trials(&[(0.1, 500, 2), (0.2, 250, 1), (0.3, 250, 3)]), Cause::Unclear),
            (trials(&[(0.1, 500, 20), (0.11, 500, 20)]), Cause::Unclear),
            (trials(&[(0.1, 500, 0), (0.3, 500, 3)]), Cause::Unclear),
            (trials(&[(0.1, 500, 0)]), Cause::NoLoss),
        ];
        for (verdict, cause) in causes {
            assert_eq!(verdict.cause, cause, "{verdict:?}");
        }
    }
}
