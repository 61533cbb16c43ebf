//! A measurement of latency under load on a real link: its document, and the judgement.
//!
//! `lasthop load --json` writes the document, and `lasthop advise --measured` reads it. Times are in seconds and
//! rates in bytes per second, as in the other answers.

mod judge;
mod plot;

use serde::{Deserialize, Serialize};

pub use judge::round_trips;
pub use lasthop_observe::grade::Grade;
pub use plot::figure;

/// The name of the document's format.
pub const FORMAT: &str = "lasthop-load";

/// Version of the document's format.
pub const VERSION: u32 = 1;

/// A measurement.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Measurement {
    /// Address and port of the receiver.
    pub to: String,
    /// Bulk connections of each direction.
    pub streams: u32,
    /// Requested duration of a phase.
    pub seconds: f64,
    /// Interval of the probes.
    pub interval_s: f64,
    /// Requested congestion control; `None` for the defaults of the two ends.
    pub congestion: Option<String>,
    /// Whether all phases are complete, and no bulk connection failed.
    pub complete: bool,
    /// Error that ended the measurement.
    pub failed: Option<String>,
    /// The worst grade of the phases; `None` without an idle phase or a loaded one.
    pub grade: Option<Grade>,
    /// Phases in their order.
    pub phases: Vec<Phase>,
}

/// A phase.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Phase {
    /// `idle`, `up`, `down` or `both`.
    pub phase: String,
    /// Start since the start of the program's clock.
    pub began_s: f64,
    /// Duration.
    pub seconds: f64,
    /// Start of the steady part since the start of the phase; it lasts until the end.
    pub steady_from_s: f64,
    /// Uploads.
    pub up: Option<Transfer>,
    /// Downloads.
    pub down: Option<Transfer>,
    /// Round trips of the steady part; of the whole phase without load. `None` if no probe was answered.
    pub round_trip: Option<RoundTrips>,
    /// Median round trip less that of the idle phase.
    pub increase_s: Option<f64>,
    /// Grade of this increase.
    pub grade: Option<Grade>,
    /// Round trips per minute under load, of new and of loaded connections (draft-ietf-ippm-responsiveness, without
    /// TLS); `None` without load.
    pub responsiveness_rpm: Option<f64>,
    /// Probes on new connections.
    pub connections: Connections,
    /// Counters of the probes.
    pub probes: ProbeCounts,
    /// Departure of each answered probe since the start of the phase, and its round trip.
    pub round_trips_s: Vec<(f64, f64)>,
}

/// New connections, one probe each.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Connections {
    /// Time from the SYN to the end of the handshake.
    pub handshake: Option<RoundTrips>,
    /// Time from the first request to its answer.
    pub request: Option<RoundTrips>,
    /// Number of connections that failed.
    pub failures: u64,
    /// The first error.
    pub error: Option<String>,
    /// Time of the SYN since the start of the phase, handshake and request of each connection.
    pub times_s: Vec<(f64, f64, f64)>,
}

/// Statistics of round trips, in seconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct RoundTrips {
    /// Number of round trips.
    pub n: u64,
    pub min_s: f64,
    pub median_s: f64,
    pub p95_s: f64,
    pub max_s: f64,
    /// Round trips per minute: 60 s divided by the mean of the round trips up to the 95th percentile.
    pub rpm: f64,
}

/// Counters of the probes of a phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ProbeCounts {
    pub sent: u64,
    /// Probes without an answer until one second after the phase.
    pub unanswered: u64,
    /// Round trips above one second.
    pub late: u64,
    /// Probes that were due but not sent, because 512 had no answer.
    pub skipped: u64,
    /// Segments with probes that this end's kernel retransmitted.
    pub retransmissions: Option<u64>,
    /// Segments with answers that the other end's kernel retransmitted.
    pub answer_retransmissions: Option<u64>,
}

/// Bulk connections of one direction.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Transfer {
    /// Payload of the steady part divided by its duration, all connections; bytes per second.
    pub goodput: Option<f64>,
    /// Payload bytes of the whole phase.
    pub bytes: u64,
    /// Segments that the sending kernels retransmitted; `None` if one of them is unknown.
    pub retransmissions: Option<u64>,
    /// Retransmitted payload divided by sent payload.
    pub retransmitted: Option<f64>,
    /// Round trips of probes in the data of these connections, of the steady part.
    pub round_trip: Option<RoundTrips>,
    pub streams: Vec<Stream>,
    /// Time since the start of the phase, and payload bytes of all connections until then.
    pub series: Vec<(f64, u64)>,
    /// Departure of each answered probe in the data since the start of the phase, and its round trip.
    pub round_trips_s: Vec<(f64, f64)>,
}

/// A bulk connection.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Stream {
    /// Payload of the steady part divided by its duration, bytes per second.
    pub goodput: Option<f64>,
    pub bytes: u64,
    pub congestion: Option<String>,
    pub failed: Option<String>,
    /// Counters of the sending kernel; `None` for a counter that this kernel lacks.
    pub retransmissions: Option<u64>,
    pub bytes_sent: Option<u64>,
    pub bytes_retransmitted: Option<u64>,
    pub timeouts: Option<u64>,
    pub srtt_s: Option<f64>,
    pub min_rtt_s: Option<f64>,
}

impl RoundTrips {
    /// Mean of the round trips up to the 95th percentile, in seconds.
    pub fn mean_s(&self) -> f64 {
        60.0 / self.rpm
    }
}

impl Transfer {
    /// The sums over `streams`, without round trips.
    pub fn new(streams: Vec<Stream>, series: Vec<(f64, u64)>) -> Transfer {
        let sum = |of: fn(&Stream) -> Option<u64>| streams.iter().map(of).sum::<Option<u64>>();
        let goodputs: Vec<f64> = streams.iter().filter_map(|stream| stream.goodput).collect();
        let sent = sum(|stream| stream.bytes_sent);
        let again = sum(|stream| stream.bytes_retransmitted);
        let retransmitted = sent.zip(again).filter(|(sent, _)| *sent > 0);
        Transfer {
            goodput: (!goodputs.is_empty()).then(|| goodputs.iter().sum()),
            bytes: streams.iter().map(|stream| stream.bytes).sum(),
            retransmissions: sum(|stream| stream.retransmissions),
            retransmitted: retransmitted.map(|(sent, again)| again as f64 / sent as f64),
            round_trip: None,
            streams,
            series,
            round_trips_s: Vec::new(),
        }
    }
}

impl Measurement {
    /// Sets increases and grades from the idle phase, and the responsiveness of each loaded phase.
    pub fn judge(&mut self) {
        let median = |phase: &Phase| phase.round_trip.map(|all| all.median_s);
        let idle = self.phases.iter().find(|phase| phase.phase == "idle").and_then(median);
        for phase in self.phases.iter_mut().filter(|phase| phase.phase != "idle") {
            let loaded = median(phase);
            phase.increase_s = loaded.zip(idle).map(|(loaded, idle)| (loaded - idle).max(0.0));
            phase.grade = phase.increase_s.map(Grade::of);
            phase.responsiveness_rpm = judge::responsiveness(phase);
        }
        self.grade = self.phases.iter().filter_map(|phase| phase.grade).max();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(name: &str, ms: f64) -> Phase {
        let samples = vec![(0.0, ms / 1e3); 10];
        Phase {
            phase: name.to_owned(),
            began_s: 0.0,
            seconds: 1.0,
            steady_from_s: 0.25,
            up: None,
            down: None,
            round_trip: round_trips(&[ms / 1e3; 10]),
            increase_s: None,
            grade: None,
            responsiveness_rpm: None,
            connections: Connections::default(),
            probes: ProbeCounts::default(),
            round_trips_s: samples,
        }
    }

    #[test]
    fn the_worst_phase_decides_the_grade() {
        let mut measured = Measurement {
            to: "192.0.2.1:9009".to_owned(),
            streams: 4,
            seconds: 10.0,
            interval_s: 0.02,
            congestion: None,
            complete: true,
            failed: None,
            grade: None,
            phases: vec![phase("idle", 20.0), phase("up", 120.0), phase("down", 22.0)],
        };
        measured.judge();
        let grades: Vec<_> = measured.phases.iter().map(|phase| phase.grade).collect();
        assert_eq!(grades, [None, Some(Grade::C), Some(Grade::APlus)]);
        assert_eq!(measured.grade, Some(Grade::C));
        let text = serde_json::to_string(&measured).unwrap();
        assert_eq!(serde_json::from_str::<Measurement>(&text).unwrap(), measured);
        measured.phases.remove(0);
        measured.phases[0].grade = None;
        measured.judge();
        assert_eq!(measured.grade, None, "there is nothing to compare with");
    }

    #[test]
    fn a_missing_counter_leaves_the_sum_open() {
        let stream = |retransmissions| Stream {
            goodput: Some(10.0),
            bytes: 100,
            congestion: None,
            failed: None,
            retransmissions,
            bytes_sent: Some(1000),
            bytes_retransmitted: Some(10),
            timeouts: None,
            srtt_s: None,
            min_rtt_s: None,
        };
        let all = Transfer::new(vec![stream(Some(1)), stream(Some(2))], Vec::new());
        assert_eq!((all.goodput, all.bytes, all.retransmissions), (Some(20.0), 200, Some(3)));
        assert_eq!(all.retransmitted, Some(0.01));
        let some = Transfer::new(vec![stream(Some(1)), stream(None)], Vec::new());
        assert_eq!(some.retransmissions, None);
    }
}
