//! Difference of two clocks, from the packets in both captures.
//!
//! The difference of the two times of a packet is the offset of the clocks plus the packet's delay. If the packet
//! passed the second capture first, it is the offset minus the delay. Queues only increase the delay, so packets
//! without queueing lie on a line below all others (above, in the other direction). The slope of the line is the
//! relative speed of the clocks (after Moon, Skelly, Towsley, "Estimation and removal of clock skew from network
//! delay measurements", INFOCOM 1999). Its position is unknown, unless the minimum delays of both directions are
//! assumed to be equal.

use serde::Serialize;

/// Minimum duration of a capture for the speed of clocks, in nanoseconds.
const SHORTEST: i64 = 10_000_000_000;

/// Minimum number of packets over the whole time.
const FEWEST: usize = 50;

/// Maximum difference of clocks in parts per million; a larger one is a change of the path.
const WORST_PPM: f64 = 500.0;

/// Difference of the second capture's clock from the first one's.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Clocks {
    /// How far it is ahead at the first packet of both captures, in seconds. This assumes equal minimum delays of both
    /// directions, or a minimum delay of zero with packets of one direction only.
    pub ahead: f64,
    /// Whether there are packets in both directions.
    pub both_ways: bool,
    /// How much faster it runs, in parts per million; `None` if unknown, without a correction.
    pub faster_ppm: Option<f64>,
    #[serde(skip)]
    begin: i64,
    #[serde(skip)]
    ahead_ns: i64,
}

impl Clocks {
    /// From times by the first clock, and differences from there to the second, of both directions.
    pub(super) fn of(forth: Vec<(i64, i64)>, back: Vec<(i64, i64)>) -> Option<Clocks> {
        let begin = forth.iter().chain(&back).map(|(at, _)| *at).min()?;
        // Backward delays are subtracted. With the opposite sign, all points are above their line.
        let back: Vec<(i64, i64)> = back.into_iter().map(|(at, d)| (at, -d)).collect();
        let lines = [lower_line(forth.clone(), begin), lower_line(back.clone(), begin)];
        let [down, up] = lines;
        let up = up.map(|line| Line { slope: -line.slope, ..line });
        // The line of the direction with shorter queues is more exact.
        let line =
            [down, up].into_iter().flatten().min_by(|a, b| a.distance.total_cmp(&b.distance));
        let slope = line.map(|line| line.slope).filter(|slope| slope.abs() * 1e6 <= WORST_PPM);
        let rate = slope.unwrap_or(0.0);
        let least = |points: &[(i64, i64)], rate: f64| {
            let level = |(at, d): &(i64, i64)| d - (rate * (at - begin) as f64) as i64;
            points.iter().map(level).min()
        };
        let (forth, back) = (least(&forth, rate), least(&back, -rate).map(|d| -d));
        let ahead_ns = match (forth, back) {
            (Some(forth), Some(back)) => forth.midpoint(back),
            (one, other) => one.or(other)?,
        };
        Some(Clocks {
            ahead: ahead_ns as f64 / 1e9,
            both_ways: forth.is_some() && back.is_some(),
            faster_ppm: slope.map(|slope| slope * 1e6),
            begin,
            ahead_ns,
        })
    }

    /// A time of the second clock by the first.
    pub(super) fn to_first(self, at: i64) -> i64 {
        let level = at - self.ahead_ns;
        let rate = self.faster_ppm.unwrap_or(0.0) * 1e-6;
        level - (rate / (1.0 + rate) * (level - self.begin) as f64) as i64
    }
}

#[derive(Clone, Copy, Debug)]
struct Line {
    slope: f64,
    /// Mean distance of the points above the line.
    distance: f64,
}

/// The line below all points with the least mean distance from them: the edge of their lower hull at their mean
/// time.
fn lower_line(mut points: Vec<(i64, i64)>, begin: i64) -> Option<Line> {
    points.sort_unstable();
    let (first, last) = (points.first()?.0, points.last()?.0);
    if points.len() < FEWEST || last - first < SHORTEST {
        return None;
    }
    let points: Vec<(f64, f64)> =
        points.into_iter().map(|(at, d)| ((at - begin) as f64, d as f64)).collect();
    let mut hull: Vec<(f64, f64)> = Vec::new();
    for &p in &points {
        while let [.., a, b] = hull[..]
            && (b.1 - a.1) * (p.0 - a.0) >= (p.1 - a.1) * (b.0 - a.0)
        {
            hull.pop();
        }
        hull.push(p);
    }
    let count = points.len() as f64;
    let mean = points.iter().map(|p| p.0).sum::<f64>() / count;
    let edge = hull.windows(2).find(|edge| edge[1].0 >= mean && edge[1].0 > edge[0].0)?;
    let slope = (edge[1].1 - edge[0].1) / (edge[1].0 - edge[0].0);
    let above = |p: &(f64, f64)| p.1 - edge[0].1 - slope * (p.0 - edge[0].0);
    Some(Line { slope, distance: points.iter().map(above).sum::<f64>() / count })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets each 20 ms for a minute. The second clock is 3 s ahead and runs 40 ppm fast. In the forward
    /// direction a queue that fills and empties delays the packets.
    fn points(back: bool) -> Vec<(i64, i64)> {
        (0..3000i64)
            .map(|i| {
                let at = i * 20_000_000;
                let queue = if back { (i % 3) * 100_000 } else { (i % 200) * 300_000 };
                let delay = 5_000_000 + queue;
                let ahead = 3_000_000_000 + at / 25_000;
                (at, if back { ahead - delay } else { ahead + delay })
            })
            .collect()
    }

    #[test]
    fn offset_and_speed_are_found_again() {
        let clocks = Clocks::of(points(false), points(true)).unwrap();
        assert!((clocks.faster_ppm.unwrap() - 40.0).abs() < 0.1, "{clocks:?}");
        assert!((clocks.ahead - 3.0).abs() < 1e-6 && clocks.both_ways, "{clocks:?}");
        let (at, ahead) = (50_000_000_000, 3_000_000_000 + 2_000_000);
        assert!((clocks.to_first(at + ahead) - at).abs() < 10_000);
        let alone = Clocks::of(points(false), Vec::new()).unwrap();
        assert!((alone.faster_ppm.unwrap() - 40.0).abs() < 0.1 && !alone.both_ways);
        assert!((alone.ahead - 3.005).abs() < 1e-6, "its least delay is in it: {alone:?}");
    }

    #[test]
    fn short_or_too_fast_clock_samples_are_not_corrected() {
        let short: Vec<_> = points(false).into_iter().take(400).collect();
        assert_eq!(Clocks::of(short, Vec::new()).unwrap().faster_ppm, None);
        let slow: Vec<_> = (0..3000i64).map(|i| (i * 20_000_000, i * 20_000)).collect();
        assert_eq!(Clocks::of(slow, Vec::new()).unwrap().faster_ppm, None);
        assert_eq!(Clocks::of(Vec::new(), Vec::new()), None);
    }
}
