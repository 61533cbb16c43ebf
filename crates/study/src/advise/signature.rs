//! Recognizes the kind of a link by the times of the ACKs in a capture at the sender.
//!
//! - Granted access sends in blocks: ACKs arrive at multiples of 1 ms (LTE) or 0.5 ms (NR) after each other.
//! - Wi-Fi sends many ACKs for one access: they arrive in bursts, milliseconds apart.
//! - Starlink changes the satellite every 15 s, with a silence.

use lasthop_analyze::{Direction, PointKind};

use super::kinds::LinkKind;

/// Minimum number of ACKs.
const FEWEST: usize = 300;
/// Minimum share of the times that agree with a block, as the length of their mean vector on a circle.
const AGREE: f64 = 0.7;
/// Maximum time between two ACKs of a burst, in seconds.
const TOGETHER: f64 = 200e-6;
/// Minimum length of the burst of a typical ACK. A sender of a paced or half-idle link has shorter ones.
const BURST: usize = 8;
/// Range of the usual time between two bursts, in seconds: an access with a full aggregate takes up to 5.484 ms.
const ACCESS: core::ops::Range<f64> = 0.7e-3..12e-3;
/// Silences of a change of satellite, in seconds: the gaps of the record, and the queue that follows.
const SILENCE: core::ops::Range<f64> = 0.05..0.4;
/// Time from one change of satellite to the next, in seconds.
const SATELLITE: f64 = 15.0;
/// Maximum deviation from it.
const ABOUT: f64 = 0.3;
/// Minimum share of the changes with a silence.
const MOST: f64 = 0.7;
/// Maximum number of silences per change: a link with others is not this one.
const OTHERS: usize = 3;

/// The kind of the link, and the evidence.
pub(super) fn recognized(data: &Direction) -> Option<(LinkKind, String)> {
    let is_ack = |kind| matches!(kind, PointKind::Ack | PointKind::DuplicateAck);
    let points = data.points.iter();
    let acks = points.filter(|point| is_ack(point.kind)).map(|point| point.at.0);
    let acks: Vec<u64> = acks.collect();
    // A clock of whole milliseconds shows no blocks.
    let fine = data.points.iter().any(|point| point.at.0 % 500_000 != 0);
    of(&acks, fine)
}

/// The kind by the times of ACKs in nanoseconds.
fn of(acks: &[u64], fine: bool) -> Option<(LinkKind, String)> {
    if acks.len() < FEWEST {
        return None;
    }
    if let Some(evidence) = satellites(acks) {
        return Some((LinkKind::Starlink, evidence));
    }
    for (kind, block) in [(LinkKind::Lte, 1_000_000), (LinkKind::Nr, 500_000)] {
        let agree = phases(acks, block);
        if fine && agree >= AGREE {
            let (percent, block) = (agree * 100.0, block as f64 / 1e6);
            let evidence = format!("ACKs arrive in blocks of {block} ms, by {percent:.0} %");
            return Some((kind, evidence));
        }
    }
    bursts(acks).map(|evidence| (LinkKind::Wifi6, evidence))
}

/// Length of the mean vector of the phases within `block`: 1 if all are equal.
fn phases(acks: &[u64], block: u64) -> f64 {
    let angle = |at: &u64| (at % block) as f64 / block as f64 * core::f64::consts::TAU;
    let (sin, cos) = acks
        .iter()
        .map(angle)
        .fold((0.0, 0.0), |(sin, cos), a| (sin + libm::sin(a), cos + libm::cos(a)));
    libm::sqrt(sin * sin + cos * cos) / acks.len() as f64
}

fn bursts(acks: &[u64]) -> Option<String> {
    let seconds = |pair: &[u64]| pair[1].saturating_sub(pair[0]) as f64 / 1e9;
    let mut lengths = Vec::new();
    let mut gaps = Vec::new();
    let mut length = 1;
    for gap in acks.windows(2).map(seconds) {
        if gap <= TOGETHER {
            length += 1;
        } else {
            gaps.push(gap);
            lengths.push(core::mem::replace(&mut length, 1));
        }
    }
    lengths.push(length);
    // The burst of the middle ACK, not the middle burst: single ACKs are many bursts.
    lengths.sort_unstable();
    let mut before = 0;
    let typical = lengths.iter().copied().find(|length| {
        before += length;
        2 * before >= acks.len()
    })?;
    gaps.sort_by(f64::total_cmp);
    let gap = *gaps.get(gaps.len() / 2)?;
    (typical >= BURST && ACCESS.contains(&gap)).then(|| {
        format!("ACKs arrive in bursts of {typical}, {:.1} ms apart: aggregates", gap * 1e3)
    })
}

fn satellites(acks: &[u64]) -> Option<String> {
    let at = |i: usize| acks[i] as f64 / 1e9;
    let silences: Vec<f64> =
        (1..acks.len()).filter(|i| SILENCE.contains(&(at(*i) - at(*i - 1)))).map(at).collect();
    let end = at(acks.len() - 1);
    // Any silence may be the first change.
    silences.iter().take(OTHERS * 4).find_map(|first| {
        let changes = ((end - first) / SATELLITE) as usize + 1;
        let is_near = |change: usize| {
            let due = first + change as f64 * SATELLITE;
            silences.iter().any(|silence| (silence - due).abs() <= ABOUT)
        };
        let found = (0..changes).filter(|change| is_near(*change)).count();
        let enough = changes >= 3 && found as f64 >= MOST * changes as f64;
        (enough && silences.len() <= OTHERS * changes)
            .then(|| format!("{found} of {changes} times of 15 s begin with a silence"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_proto::rng::Stream;

    fn kind(acks: &[u64]) -> Option<LinkKind> {
        of(acks, true).map(|(kind, _)| kind)
    }

    #[test]
    fn blocks_bursts_and_silences_are_recognized() {
        let mut rng = Stream::new(1, "acks");
        let jitter = |rng: &mut Stream, most: f64| (rng.unit() * most) as u64;
        // Blocks of 1 ms that are used at random, with a tenth of a millisecond of jitter behind the radio.
        let mut at = 0;
        let blocks = |rng: &mut Stream, at: &mut u64, block: u64| {
            *at += block * (1 + rng.below(3));
            *at + jitter(rng, 1e5)
        };
        let lte: Vec<u64> = (0..500).map(|_| blocks(&mut rng, &mut at, 1_000_000)).collect();
        assert_eq!(kind(&lte), Some(LinkKind::Lte));
        at = 0;
        let nr: Vec<u64> = (0..500).map(|_| blocks(&mut rng, &mut at, 500_000)).collect();
        assert_eq!(kind(&nr), Some(LinkKind::Nr));
        // A coarse clock shows the same.
        assert_eq!(of(&lte, false), None);
        let wifi: Vec<u64> = (0..50)
            .flat_map(|access| (0..40).map(move |i| access * 5_800_000 + i * 1000))
            .map(|at| at + jitter(&mut rng, 300.0))
            .collect();
        assert_eq!(kind(&wifi), Some(LinkKind::Wifi6));
        // A line, and one whose ACKs a network card delivers in small groups.
        let line: Vec<u64> = (0..2000).map(|i| i * 410_000 + jitter(&mut rng, 4e5)).collect();
        assert_eq!(kind(&line), None);
        let card: Vec<u64> = (0..2000).map(|i| i / 4 * 437_000 + i % 4 * 1000).collect();
        assert_eq!(kind(&card), None);
        // Starlink: an ACK per 10 ms, and none for 100 ms each 15 s.
        let gap = |at: &u64| (at + 6_000_000_000) % 15_000_000_000 > 100_000_000;
        let sky: Vec<u64> = (0..6000).map(|i| i * 10_007_000).filter(gap).collect();
        assert_eq!(kind(&sky), Some(LinkKind::Starlink));
        let short: Vec<u64> = sky.iter().copied().take_while(|at| *at < 20_000_000_000).collect();
        assert_eq!(kind(&short), None, "one or two silences may be anything");
        assert_eq!(kind(&lte[..200]), None);
    }
}
