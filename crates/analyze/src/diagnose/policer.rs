//! Policer: it drops packets that exceed a rate and a burst, and delays none.
//!
//! The method is that of Flach et al. (SIGCOMM 2016). A token bucket is filled at the rate between the first and
//! the last loss. Three signs together show a policer: the bucket is empty when a packet is lost; it is not empty
//! when a packet passes; and round trips before losses are not longer than others. Comparisons replace two
//! thresholds of the paper:
//!
//! - A queue of the burst's size loses the same packets, but delays the packets before them. So round trips at losses
//!   are compared with the time in which such a queue drains.
//! - Random losses happen at any level of the bucket. So the evidence is the binomial probability that at least this
//!   number of losses meets an empty bucket, given the share of all packets that do.

use std::collections::{BTreeMap, VecDeque};

use lasthop_observe::stats::quantile;

use crate::finding::{Confidence, Diagnosis, Finding};
use crate::reading::{Cause, Direction, LossLocation, PointKind};
use crate::verdict::{binomial, upper_tail};

/// Minimum number of losses, and of flights with losses, that show a rate (15 and 3, as in the paper).
const LOSSES: usize = 15;
const EVENTS: usize = 3;
/// Bytes of IP and TCP headers without options, and of timestamps.
const HEADERS: u32 = 40;
const STAMPS: u32 = 12;
/// Tolerance of the bucket's level in packets: the order at the policer differs from that at the capture.
const SLACK_PACKETS: f64 = 3.0;
/// The same tolerance in round trips, since gaps between packets change on their way.
const SLACK_TRIPS: f64 = 0.1;
/// Minimum share of losses at which the bucket is empty.
const EMPTY: f64 = 0.9;
/// A search continues only around a bucket that is better than this difference of both shares.
const NEARLY: f64 = 0.5;
/// Maximum share of packets that pass although the bucket lacks tokens for them.
const AGAINST: f64 = 0.03;
/// Maximum probability that as many losses meet an empty bucket by chance.
const CHANCE: f64 = 1e-4;
/// Packets that pass one after another at the rate of a link cannot exceed it: of ten gaps one is shorter than the time of a
/// packet at the policer's rate, by this factor.
const EXCEEDS: f64 = 0.9;
const SOME: f64 = 0.1;
/// Round trips at losses may be longer by this share of the shortest one ...
const LONGER: f64 = 0.1;
/// ... or by this number of packets in a queue ...
const QUEUED_PACKETS: f64 = 3.0;
/// ... and by this share of the time in which a queue of the burst's size drains.
const DRAINED: f64 = 0.1;
/// The quantile of the round trips at losses that counts.
const QUARTILE: f64 = 0.25;
/// Compared rates: first `LOWER` below and `HIGHER` above the mean, by this factor ...
const COARSE: f64 = 1.06;
const LOWER: i32 = 4;
const HIGHER: i32 = 20;
/// ... then around the best.
const FINE: f64 = 1.01;
const STEPS: i32 = 5;
/// A rate of twice the mean or half of it must explain this share of the losses more. The policer's rate is usually near the
/// mean, since TCP uses most tokens.
const FARTHER: f64 = 0.05;
/// Compared depths of the bucket, in addition to the burst before the first loss: powers of two from this number of
/// packets on.
const LEAST_DEPTH: f64 = 4.0;
const DEPTHS: u32 = 10;

const REMEDY: &str = "replace the policer by a shaper with a short queue (Linux: CAKE or fq_codel at that rate), or pace the sender \
    below that rate (Linux: `tc qdisc replace dev IF root fq maxrate RATE`)";

/// Number of packets in a bucket up to which its rate is unknown.
const FEW_PACKETS: f64 = 8.0;
/// Maximum number of evaluated transmissions.
const MOST: usize = 200_000;
/// Minimum payload of the packets into which super-segments are divided.
const LEAST_FULL: u32 = 500;

/// One transmission of a packet.
#[derive(Clone, Copy, Debug)]
struct Transmission {
    /// Seconds.
    at: f64,
    /// Bytes of the IP packet.
    bytes: f64,
    lost: bool,
    /// The first loss of a flight, and the round trip known then.
    event: bool,
    rtt: Option<f64>,
}

/// How well a token bucket explains the losses.
#[derive(Clone, Copy, Debug, Default)]
struct Fit {
    rate: f64,
    depth: f64,
    events: u64,
    empty: u64,
    passed: u64,
    /// Packets that passed at an empty bucket, and those of them for which the tokens did not suffice.
    passed_empty: u64,
    against: u64,
}

impl Fit {
    fn explains(&self) -> f64 {
        Fit::explained(self.empty, self.against, self.events, self.passed)
    }

    fn explained(empty: u64, against: u64, events: u64, passed: u64) -> f64 {
        empty as f64 / events.max(1) as f64 - against as f64 / passed.max(1) as f64
    }

    /// Probability of this number of losses at an empty bucket if losses were independent of its level.
    fn chance(&self) -> f64 {
        let share = self.passed_empty as f64 / self.passed.max(1) as f64;
        upper_tail(binomial(self.events, share), self.empty)
    }
}

/// All transmissions of `data` in packets of at most `full` bytes; lost ones are marked.
fn transmissions(data: &Direction, full: u32) -> Vec<Transmission> {
    let headers = HEADERS + if data.timestamps { STAMPS } else { 0 };
    let mut all: Vec<Transmission> = Vec::new();
    // The latest transmission by its first byte: its end, and its index.
    let mut latest: BTreeMap<i64, (i64, usize)> = BTreeMap::new();
    let mut losses: VecDeque<_> = data.losses.iter().collect();
    let full = full.max(LEAST_FULL);
    for point in &data.points {
        if all.len() >= MOST {
            break;
        }
        if matches!(point.kind, PointKind::Ack | PointKind::DuplicateAck) || point.len == 0 {
            continue;
        }
        let end = point.offset + i64::from(point.len);
        while let Some(loss) = losses.front().copied().filter(|loss| loss.at <= point.at) {
            let overlaps = loss.offset < end && point.offset < loss.offset + i64::from(loss.len);
            if loss.at == point.at && !overlaps {
                break;
            }
            losses.pop_front();
            let before = latest.range(..=loss.offset).next_back();
            if let Some((_, &(_, index))) = before.filter(|(_, (end, _))| *end > loss.offset) {
                all[index].lost = true;
                all[index].rtt = loss.rtt_before;
            }
        }
        let mut start = point.offset;
        while start < end {
            let next = end.min(start + i64::from(full));
            let bytes = f64::from((next - start) as u32 + headers);
            latest.insert(start, (next, all.len()));
            let at = point.at.as_secs_f64();
            all.push(Transmission { at, bytes, lost: false, event: false, rtt: None });
            start = next;
        }
    }
    all
}

/// Marks each loss that follows the previous one by more than a round trip of `rtt` seconds, and returns their number.
fn mark_events(all: &mut [Transmission], rtt: f64) -> usize {
    let (mut count, mut last) = (0, f64::NEG_INFINITY);
    for sent in all.iter_mut().filter(|sent| sent.lost) {
        sent.event = sent.at - last > rtt;
        count += usize::from(sent.event);
        last = sent.at;
    }
    count
}

/// Simulates a token bucket, which is empty at the first loss, over all later transmissions. `None` if it explains them no
/// better than `floor`; `events` and `passed` are numbers of all of them.
fn follow(
    all: &[Transmission],
    [rate, depth, slack]: [f64; 3],
    (events, passed): (u64, u64),
    floor: f64,
) -> Option<Fit> {
    let mut fit = Fit { rate, depth, ..Fit::default() };
    let (mut level, mut at) = (0.0, all.first().map_or(0.0, |sent| sent.at));
    for sent in all {
        level = (level + (sent.at - at) * rate).min(depth);
        at = sent.at;
        let empty = level <= slack;
        if sent.lost {
            fit.events += u64::from(sent.event);
            fit.empty += u64::from(sent.event && empty);
            let missed = fit.events - fit.empty;
            if Fit::explained(events - missed, fit.against, events, passed) <= floor {
                return None;
            }
            // After a loss the level is less than a packet.
            level = level.min(sent.bytes);
            continue;
        }
        fit.passed += 1;
        fit.passed_empty += u64::from(empty);
        fit.against += u64::from(level < sent.bytes - slack);
        level = (level - sent.bytes).max(-slack);
    }
    Some(fit).filter(|fit| fit.explains() > floor)
}

/// The token bucket that explains the losses best. `mean` is the rate between the first and the last loss in bytes
/// per second, `before` has the bytes and seconds before the first loss.
fn best_fit(
    all: &[Transmission],
    mean: f64,
    before: (f64, f64),
    packet: f64,
    rtt: f64,
) -> Option<Fit> {
    let lost = all.iter().filter(|sent| sent.lost).count();
    let events = all.iter().filter(|sent| sent.event).count();
    let counts = (events as u64, (all.len() - lost) as u64);
    // Two buckets may explain nearly the same: a small one with a high rate is empty after each burst.
    let far = |rate: f64| FARTHER * ((rate / mean).max(mean / rate) - 1.0);
    let score = |fit: &Fit| fit.explains() - far(fit.rate);
    let mut best: Option<Fit> = None;
    let mut search =
        |around: f64, step: f64, steps: core::ops::RangeInclusive<i32>, depths: &[f64]| {
            let mut rate = around;
            for _ in steps.clone().filter(|n| *n < 0) {
                rate /= step;
            }
            for _ in steps {
                let burst = before.0 - rate * before.1;
                for depth in depths.iter().copied().chain([burst, 2.0 * burst]) {
                    let slack =
                        (SLACK_PACKETS * packet + SLACK_TRIPS * rate * rtt).min(depth / 2.0);
                    if slack >= packet {
                        let floor = best.as_ref().map_or(NEARLY, |best| score(best) + far(rate));
                        best = follow(all, [rate, depth, slack], counts, floor).or(best);
                    }
                }
                rate *= step;
            }
            best
        };
    let mut depths: Vec<f64> =
        (0..DEPTHS).map(|n| LEAST_DEPTH * packet * f64::from(1 << n)).collect();
    depths.push(f64::INFINITY);
    let coarse = search(mean, COARSE, -LOWER..=HIGHER, &depths)?;
    search(coarse.rate, FINE, -STEPS..=STEPS, &[coarse.depth])
}

/// The policer that explains the losses of `data`, sent in packets of at most `full` bytes.
pub(super) fn diagnose(data: &Direction, full: u32) -> Option<Diagnosis> {
    let after_capture = data.losses.iter().filter(|loss| loss.seen == LossLocation::Before).count();
    if after_capture < LOSSES
        || after_capture < data.losses.len()
        || matches!(data.verdict.cause, Cause::Queue | Cause::Both)
    {
        return None;
    }
    let shortest = data.rtt?.min;
    let mut all = transmissions(data, full);
    if mark_events(&mut all, shortest) < EVENTS {
        return None;
    }
    let first = all.iter().position(|sent| sent.lost)?;
    let last = all.iter().rposition(|sent| sent.lost)?;
    let seconds = all[last].at - all[first].at;
    let passed = |part: &[Transmission]| -> f64 {
        part.iter().filter(|sent| !sent.lost).map(|sent| sent.bytes).sum()
    };
    let mean = passed(&all[first..last]) / seconds;
    if !(mean.is_finite() && mean > 0.0) {
        return None;
    }
    let before = (passed(&all[..first]), all[first].at - all[0].at);
    let packet = f64::from(full + HEADERS);
    let fit = best_fit(&all[first..], mean, before, packet, shortest)?;
    let at_losses: Vec<f64> =
        all.iter().filter(|sent| sent.event).filter_map(|sent| sent.rtt).collect();
    // Delayed ACKs increase some of these round trips, an overflowing queue increases all.
    let longer = quantile(&at_losses, QUARTILE)? - shortest;
    // The search tries small buckets first, so this is the smallest of equal ones.
    let depth = if fit.depth.is_finite() { fit.depth } else { 0.0 };
    let burst = (before.0 - fit.rate * before.1).max(depth);
    let gaps: Vec<f64> = all.windows(2).map(|two| two[1].at - two[0].at).collect();
    let exceeds = quantile(&gaps, SOME)? < EXCEEDS * packet / fit.rate;
    let explained = exceeds
        && fit.empty as f64 >= EMPTY * fit.events as f64
        && fit.against as f64 <= AGAINST * fit.passed as f64
        && fit.chance() < CHANCE;
    let waits = longer > (LONGER * shortest).max(QUEUED_PACKETS * packet / fit.rate)
        || longer > DRAINED * burst / fit.rate;
    if !explained || waits {
        return None;
    }
    let (rate, losses, events) =
        (fit.rate * 8.0, data.losses.len() as u64 + data.losses_omitted, fit.events);
    // A bucket of a few packets overflows between the sender's bursts, so its rate is unknown.
    let few = burst <= FEW_PACKETS * packet;
    let burst = burst as u64;
    let evidence = format!(
        "policer: what exceeds {}{:.2} Mbit/s is dropped after a burst of {:.0} KB: at {} of {events} losses with a round trip \
         between them the bucket is empty, and round trips are {:.0} ms longer there, where a queue of that size takes {:.0} ms",
        if few { "a rate of at least " } else { "" },
        rate / 1e6,
        burst as f64 / 1e3,
        fit.empty,
        longer * 1e3,
        burst as f64 / fit.rate * 1e3
    );
    let finding = Finding::Policer { rate, burst, losses, events, empty: fit.empty, longer };
    let confidence = if few { Confidence::Possible } else { Confidence::Likely };
    Some(Diagnosis::new(finding, confidence, evidence, REMEDY))
}
