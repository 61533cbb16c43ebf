//! Bufferbloat: the sender's own data waits long in a queue.

use lasthop_observe::stats::quantile;

use crate::finding::{Confidence, Diagnosis, Finding};
use crate::over_time::{InFlight, MeasuredBy};
use crate::reading::Direction;

/// Minimum number of samples for a correlation.
const FEWEST: usize = 50;
/// Minimum wait that users notice, in seconds.
const NOTICED: f64 = 0.1;
/// Minimum ratio of the long round trips to the shortest one.
const LONGER: f64 = 2.0;
/// Minimum correlation of round trips and outstanding data: it is lower for other causes of delay.
const RELATED: f64 = 0.7;
/// Quantile of the round trips that counts as long.
const LONG: f64 = 0.9;

const REMEDY: &str = "put a shaper with CAKE or fq_codel in front of the slowest link, at a little less than its rate";

pub(super) fn diagnose(data: &Direction) -> Option<Diagnosis> {
    let trips = data.over_time.round_trips.kept.iter();
    let trips: Vec<_> = trips.filter(|trip| trip.by == MeasuredBy::Segment).collect();
    if trips.len() < FEWEST {
        return None;
    }
    let times: Vec<f64> = trips.iter().map(|trip| trip.rtt).collect();
    let (least, long) = (quantile(&times, 0.0)?, quantile(&times, LONG)?);
    if long - least < NOTICED || long < LONGER * least {
        return None;
    }
    let flights = &data.over_time.in_flight.kept;
    let pairs: Vec<(f64, f64)> = trips
        .iter()
        .filter_map(|trip| {
            Some((outstanding(flights, trip.at.as_secs_f64() - trip.rtt)?, trip.rtt))
        })
        .collect();
    let correlation = correlation(&pairs)?;
    if correlation < RELATED {
        return None;
    }
    let evidence = format!(
        "bufferbloat: one of ten round trips is {:.0} ms or longer, the shortest {:.0} ms, and they grow with the sender's \
         outstanding data (correlation {correlation:.2})",
        long * 1e3,
        least * 1e3
    );
    let finding = Finding::Bufferbloat { shortest: least, long, correlation };
    Some(Diagnosis::new(finding, Confidence::Likely, evidence, REMEDY))
}

/// Outstanding bytes at `at` seconds.
fn outstanding(flights: &[InFlight], at: f64) -> Option<f64> {
    let after = flights.partition_point(|flight| flight.at.as_secs_f64() <= at + 1e-9);
    flights.get(after.checked_sub(1)?).map(|flight| flight.outstanding as f64)
}

fn correlation(pairs: &[(f64, f64)]) -> Option<f64> {
    let n = pairs.len() as f64;
    let (x, y) = pairs.iter().fold((0.0, 0.0), |(x, y), pair| (x + pair.0 / n, y + pair.1 / n));
    let (mut xx, mut yy, mut xy) = (0.0, 0.0, 0.0);
    for pair in pairs {
        let (dx, dy) = (pair.0 - x, pair.1 - y);
        (xx, yy, xy) = (xx + dx * dx, yy + dy * dy, xy + dx * dy);
    }
    (xx > 0.0 && yy > 0.0).then(|| xy / (xx * yy).sqrt())
}
