//! Statistics of round trips.

use lasthop_observe::stats::quantile;

use super::{Phase, RoundTrips};

/// Quantile above which round trips are left out of the mean (draft-ietf-ippm-responsiveness: trimmed mean).
const TRIMMED: f64 = 0.95;

/// Statistics of round trips in seconds; `None` without any.
pub fn round_trips(all: &[f64]) -> Option<RoundTrips> {
    let min_s = all.iter().copied().reduce(f64::min)?;
    let max_s = all.iter().copied().reduce(f64::max)?;
    let p95_s = quantile(all, TRIMMED)?;
    let trimmed: Vec<f64> = all.iter().copied().filter(|rtt| *rtt <= p95_s).collect();
    let mean = trimmed.iter().sum::<f64>() / trimmed.len().max(1) as f64;
    let rpm = 60.0 / mean.max(1e-9);
    Some(RoundTrips {
        n: all.len() as u64,
        min_s,
        median_s: quantile(all, 0.5)?,
        p95_s,
        max_s,
        rpm,
    })
}

/// Round trips per minute under load for connections without TLS (draft-ietf-ippm-responsiveness): the mean of two
/// values, those of new connections and of loaded ones. With load in both directions, the mean round trip of loaded
/// connections is that of the two directions.
pub(super) fn responsiveness(phase: &Phase) -> Option<f64> {
    let handshake = phase.connections.handshake?.mean_s();
    let request = phase.connections.request?.mean_s();
    let loaded: Vec<f64> = phase
        .up
        .iter()
        .chain(&phase.down)
        .map(|transfer| transfer.round_trip.map(|trips| trips.mean_s()))
        .collect::<Option<_>>()?;
    if loaded.is_empty() {
        return None;
    }
    let new = 60.0 / ((handshake + request) / 2.0);
    let loaded = 60.0 / (loaded.iter().sum::<f64>() / loaded.len() as f64);
    Some((new + loaded) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::super::{Connections, ProbeCounts, Transfer};
    use super::*;

    /// One outlier among twenty is above the 95th percentile, so it does not change the responsiveness.
    #[test]
    fn the_mean_is_trimmed() {
        let mut all = vec![0.1; 39];
        let even = round_trips(&all).unwrap();
        assert!((even.rpm - 600.0).abs() < 1e-6, "{even:?}");
        all.push(10.0);
        let outlier = round_trips(&all).unwrap();
        assert!((outlier.rpm - 600.0).abs() < 1e-6, "{outlier:?}");
        assert_eq!((outlier.max_s, outlier.n), (10.0, 40));
        assert_eq!(round_trips(&[]), None);
    }

    /// 20 ms and 40 ms on new connections are 2000 RPM, 60 ms on loaded ones 1000 RPM.
    #[test]
    fn responsiveness_is_the_mean_of_new_and_loaded_connections() {
        let trips = |ms: f64| round_trips(&[ms / 1e3; 10]);
        let mut phase = Phase {
            phase: "up".to_owned(),
            began_s: 0.0,
            seconds: 1.0,
            steady_from_s: 0.25,
            up: Some(Transfer::new(Vec::new(), Vec::new())),
            down: None,
            round_trip: trips(20.0),
            increase_s: None,
            grade: None,
            responsiveness_rpm: None,
            connections: Connections {
                handshake: trips(20.0),
                request: trips(40.0),
                ..Connections::default()
            },
            probes: ProbeCounts::default(),
            round_trips_s: Vec::new(),
        };
        assert_eq!(responsiveness(&phase), None, "no probe on a loaded connection was answered");
        phase.up.as_mut().unwrap().round_trip = trips(60.0);
        assert!((responsiveness(&phase).unwrap() - 1500.0).abs() < 1e-6);
        phase.up = None;
        assert_eq!(responsiveness(&phase), None, "no load");
    }
}
