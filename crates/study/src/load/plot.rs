//! Rates and round trips over time.

use lasthop_report::number::Units;
use lasthop_report::plot::{Curve, Panel, Panels, Pen, Plot};

use super::{Measurement, Phase, Transfer};

/// Minimum interval of the drawn rates, in seconds: rates of single samples mostly show rounding errors.
const INTERVAL: f64 = 0.5;

/// The figure of a measurement: rates of both directions, and below them the round trips. Phases follow each other with
/// their gaps.
pub fn figure(measured: &Measurement, units: Units) -> Plot {
    let start = measured.phases.first().map_or(0.0, |phase| phase.began_s);
    let offset = |phase: &Phase| phase.began_s - start;
    let end_s = measured.phases.last().map_or(1.0, |last| offset(last) + last.seconds);
    let curve = |name: &str, of: fn(&Phase) -> Option<&Transfer>| {
        let points = measured.phases.iter().flat_map(|phase| {
            let series = of(phase).map(|transfer| transfer.series.as_slice());
            rates(series.unwrap_or_default(), offset(phase), units)
        });
        Curve { name: name.to_owned(), pen: Pen::Line, points: points.collect() }
    };
    let dots = |name: &str, of: fn(&Phase) -> Vec<(f64, f64)>| {
        let points = measured.phases.iter().flat_map(|phase| {
            let all = of(phase).into_iter();
            all.map(move |(at, rtt)| (offset(phase) + at, rtt * 1e3, 0.0))
        });
        Curve { name: name.to_owned(), pen: Pen::Dots, points: points.collect() }
    };
    let round_trips = vec![
        dots("in loaded connections", |phase| {
            let loaded = phase.up.iter().chain(&phase.down);
            loaded.flat_map(|transfer| transfer.round_trips_s.iter().copied()).collect()
        }),
        dots("on a separate connection", |phase| phase.round_trips_s.clone()),
        dots("handshakes", |phase| {
            phase.connections.times_s.iter().map(|(at, handshake, _)| (*at, *handshake)).collect()
        }),
    ];
    let up = curve("up", |phase| phase.up.as_ref());
    let down = curve("down", |phase| phase.down.as_ref());
    Panels {
        title: format!("Latency under load: {}", measured.to),
        end_s,
        panels: vec![
            Panel { y_label: format!("rate ({})", units.name()), curves: vec![up, down] },
            Panel { y_label: "round trip (ms)".to_owned(), curves: round_trips },
        ],
    }
    .plot()
}

/// Rates between samples at least [`INTERVAL`] apart, with zero before and after, so that phases are separate.
fn rates(series: &[(f64, u64)], offset: f64, units: Units) -> Vec<(f64, f64, f64)> {
    let (Some(first), Some(last)) = (series.first(), series.last()) else { return Vec::new() };
    let mut points = vec![(offset + first.0, 0.0, 0.0)];
    let mut from = *first;
    for to in series.iter().filter(|to| to.0 > first.0) {
        if to.0 - from.0 >= INTERVAL || to == last {
            let seconds = to.0 - from.0;
            if seconds > 0.0 {
                let rate = to.1.saturating_sub(from.1) as f64 / seconds / units.size();
                points.push((offset + (from.0 + to.0) / 2.0, rate, 0.0));
            }
            from = *to;
        }
    }
    points.push((offset + last.0, 0.0, 0.0));
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_of_a_steady_transfer_is_constant() {
        let series: Vec<(f64, u64)> =
            (0..=20_u32).map(|n| (f64::from(n) * 0.1, u64::from(n) * 12_500)).collect();
        let points = rates(&series, 5.0, Units::Mbit);
        assert_eq!((points[0], points[points.len() - 1]), ((5.0, 0.0, 0.0), (7.0, 0.0, 0.0)));
        let inner = &points[1..points.len() - 1];
        assert!(inner.len() >= 3 && inner.iter().all(|p| (p.1 - 1.0).abs() < 1e-9), "{points:?}");
        assert!(rates(&[], 0.0, Units::Mbit).is_empty());
    }
}
