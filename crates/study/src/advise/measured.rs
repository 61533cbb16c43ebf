//! Estimates the parameters of a link from a measurement of `lasthop load`.

use lasthop_observe::stats::quantile;
use lasthop_proto::units::{Probability, Rate, Span};
use serde::Deserialize;

use super::estimate::Estimate;
use super::link::Direction;
use crate::Error;
use crate::load::{FORMAT, Measurement, Phase, Stream, Transfer, VERSION};

/// IP packet and payload of a full segment with timestamps, bytes.
const PACKET: f64 = 1500.0;
const PAYLOAD: f64 = 1448.0;

/// A shorter queue, in packets, is noise of the round trip.
const LEAST_QUEUE: f64 = 5.0;

/// Increase of the median round trip, in seconds, up to which no full queue explains retransmissions.
const NO_QUEUE: f64 = 0.005;

/// The remedy for a file that is no measurement.
const HELP: &str = "give what `lasthop load HOST --json` printed, or the load.json of its -o";

/// First members of every answer.
#[derive(Deserialize)]
struct Head {
    format: Option<String>,
    format_version: Option<u32>,
}

impl Estimate {
    /// Estimates from the JSON of `lasthop load`, which ran on the host behind the link; `name` is that of the file.
    ///
    /// # Errors
    ///
    /// The text is no measurement, or has no phase with load in `direction`.
    pub fn of_measurement(text: &str, name: &str, direction: Direction) -> Result<Estimate, Error> {
        let wrong = |message: String| Error::input(format!("{name}: {message}"), HELP);
        let head: Head = serde_json::from_str(text)
            .map_err(|error| wrong(format!("not JSON of lasthop: {error}")))?;
        match (head.format.as_deref(), head.format_version) {
            (Some(FORMAT), Some(VERSION)) => {}
            (Some(FORMAT), version) => {
                let version =
                    version.map_or_else(|| "none".to_owned(), |version| version.to_string());
                return Err(wrong(format!(
                    "version {version} of the format; this program reads {VERSION}"
                )));
            }
            (Some(other), _) => return Err(wrong(format!("it is `{other}`, not `{FORMAT}`"))),
            (None, _) => return Err(wrong("no measurement of lasthop".to_owned())),
        }
        let measured: Measurement =
            serde_json::from_str(text).map_err(|error| wrong(format!("damaged: {error}")))?;
        of(&measured, direction).map_err(wrong)
    }
}

/// The word of a phase, and its transfers, for one direction.
type Way = (&'static str, fn(&Phase) -> Option<&Transfer>);

const UP: Way = ("up", |phase| phase.up.as_ref());
const DOWN: Way = ("down", |phase| phase.down.as_ref());

fn of(measured: &Measurement, direction: Direction) -> Result<Estimate, String> {
    let (data, back) = match direction {
        Direction::Download => (DOWN, UP),
        Direction::Upload => (UP, DOWN),
    };
    let named = |name: &str| measured.phases.iter().find(|phase| phase.phase == name);
    let loaded = named(data.0).ok_or_else(|| {
        format!("no phase `{0}`; measure it: lasthop load HOST --{0} --json", data.0)
    })?;
    let transfer =
        (data.1)(loaded).ok_or_else(|| format!("no transfers in the phase `{}`", data.0))?;
    let goodput = transfer.goodput.filter(|goodput| *goodput > 0.0);
    let goodput = goodput.ok_or_else(|| format!("nothing arrived in the phase `{}`", data.0))?;
    let rate = link_rate(goodput).ok_or_else(|| format!("a rate of {goodput} B/s"))?;
    let how = |phase: &str, transfer: &Transfer| {
        format!(
            "payload of {} streams in the phase `{phase}`, with headers",
            transfer.streams.len()
        )
    };
    let mut estimate =
        Estimate { rate: Some((rate, how(data.0, transfer))), ..Estimate::default() };
    if let Some(transfer) = named(back.0).and_then(back.1) {
        let rate = transfer.goodput.and_then(link_rate);
        estimate.rate_back = rate.map(|rate| (rate, how(back.0, transfer)));
    }
    let idle = named("idle").and_then(|phase| phase.round_trip);
    if let Some(idle) = idle {
        let delay = Span::from_secs_f64(idle.min_s / 2.0);
        estimate.delay = Some((delay, "half of the shortest round trip without load".to_owned()));
    }
    queue(loaded, transfer, idle.map(|idle| idle.min_s), &mut estimate);
    loss(loaded, transfer, &mut estimate);
    let notes = &mut estimate.notes;
    notes.push(format!("measured from the host behind the link, to {}", measured.to));
    notes.push(
        "not known from it: bursts of losses, the discipline of the queue, link layers, and the share of the delay on the \
         link itself"
            .to_owned(),
    );
    if !measured.complete {
        notes.push("the measurement is not complete".to_owned());
    }
    Ok(estimate)
}

/// The rate of a link whose full packets carry `goodput` bytes per second.
fn link_rate(goodput: f64) -> Option<Rate> {
    Rate::from_bps((goodput * 8.0 * PACKET / PAYLOAD) as u64)
}

/// The queue: the 95th percentile of round trips under load, less the shortest without load.
fn queue(loaded: &Phase, transfer: &Transfer, shortest: Option<f64>, estimate: &mut Estimate) {
    let Some((shortest, trips)) = shortest.zip(loaded.round_trip) else {
        estimate.notes.push("no round trips, so the queue is not known".to_owned());
        return;
    };
    let waited = (trips.p95_s - shortest).max(0.0);
    let packets = (waited * transfer.goodput.unwrap_or(0.0) / PAYLOAD).ceil();
    if packets >= LEAST_QUEUE && loaded.increase_s.is_none_or(|increase| increase > NO_QUEUE) {
        let how =
            format!("95 % of the round trips under load are at most {:.0} ms longer", waited * 1e3);
        estimate.queue = Some((format!("{packets:.0}p"), how));
        return;
    }
    estimate.notes.push(match waiting(transfer) {
        Some(longer) if longer > NO_QUEUE => format!(
            "data waits {:.0} ms in a queue, and probes on another connection do not: the queue serves each connection \
             separately. Name it, for example --discipline fq-codel",
            longer * 1e3
        ),
        Some(_) => "no queue builds up under load: it is short or managed".to_owned(),
        None => "no queue builds up under load: it is short, managed, or separate for each connection".to_owned(),
    });
}

/// Time of the data in queues, in seconds: the median of the smoothed round trips of the sending kernels, less the shortest.
fn waiting(transfer: &Transfer) -> Option<f64> {
    let of = |stream: &Stream| Some(stream.srtt_s? - stream.min_rtt_s?);
    let all: Vec<f64> = transfer.streams.iter().filter_map(of).collect();
    quantile(&all, 0.5)
}

/// Losses, where no full queue explains the retransmissions.
fn loss(loaded: &Phase, transfer: &Transfer, estimate: &mut Estimate) {
    let Some(share) = transfer.retransmitted else {
        estimate
            .notes
            .push("the senders' kernels did not report retransmissions: give --loss".to_owned());
        return;
    };
    let percent = share * 100.0;
    let queues = loaded.increase_s.is_none_or(|increase| increase > NO_QUEUE)
        || waiting(transfer).is_some_and(|waiting| waiting > NO_QUEUE);
    if share > 0.0 && queues {
        estimate.notes.push(format!(
            "{percent:.2} % of the bytes were retransmitted while data waited in a queue: its drops and the losses of the radio look \
             alike, so no loss is assumed. If you know the loss, give --loss"
        ));
        return;
    }
    let how = format!("{percent:.2} % of the bytes were retransmitted, without a standing queue");
    estimate.loss = Probability::new(share).map(|p| (p, how));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Connections, ProbeCounts, RoundTrips};

    fn trips(ms: f64) -> Option<RoundTrips> {
        let s = ms / 1e3;
        Some(RoundTrips { n: 100, min_s: s, median_s: s, p95_s: s, max_s: s, rpm: 60.0 / s })
    }

    fn transfer(goodput: f64, again: u64) -> Option<Transfer> {
        let stream = Stream {
            goodput: Some(goodput),
            bytes: 1000,
            congestion: None,
            failed: None,
            retransmissions: Some(again),
            bytes_sent: Some(1000),
            bytes_retransmitted: Some(again),
            timeouts: None,
            srtt_s: None,
            min_rtt_s: None,
        };
        Some(Transfer::new(vec![stream], Vec::new()))
    }

    fn phase(name: &str, ms: f64, up: Option<Transfer>, down: Option<Transfer>) -> Phase {
        Phase {
            phase: name.to_owned(),
            began_s: 0.0,
            seconds: 10.0,
            steady_from_s: 2.5,
            up,
            down,
            round_trip: trips(ms),
            increase_s: None,
            grade: None,
            responsiveness_rpm: None,
            connections: Connections::default(),
            probes: ProbeCounts::default(),
            round_trips_s: Vec::new(),
        }
    }

    fn measured(ms: f64, again: u64) -> Measurement {
        let mut measured = Measurement {
            to: "192.0.2.1:9009".to_owned(),
            streams: 1,
            seconds: 10.0,
            interval_s: 0.02,
            congestion: None,
            complete: true,
            failed: None,
            grade: None,
            phases: vec![
                phase("idle", 40.0, None, None),
                phase("up", 50.0, transfer(125e3, 0), None),
                phase("down", ms, None, transfer(1.25e6, again)),
            ],
        };
        measured.judge();
        measured
    }

    fn text(measured: &Measurement) -> String {
        let mut value = serde_json::to_value(measured).unwrap();
        value["format"] = FORMAT.into();
        value["format_version"] = VERSION.into();
        value["a_later_member"] = true.into();
        value.to_string()
    }

    #[test]
    fn rates_delay_and_queue() {
        let text = text(&measured(140.0, 0));
        let estimate = Estimate::of_measurement(&text, "load.json", Direction::Download).unwrap();
        let (rate, back) = (estimate.rate.unwrap().0, estimate.rate_back.unwrap().0);
        assert_eq!((rate.bps(), back.bps()), (10_359_116, 1_035_911));
        assert_eq!(estimate.delay.unwrap().0, Span::millis(20));
        // 100 ms at 1.25 MB/s.
        assert_eq!(estimate.queue.unwrap().0, "87p");
        assert_eq!(estimate.loss.unwrap().0, Probability::ZERO);
        let estimate = Estimate::of_measurement(&text, "load.json", Direction::Upload).unwrap();
        assert_eq!(estimate.rate.unwrap().0.bps(), 1_035_911);
    }

    /// Probes on another connection do not see the queue of a bulk connection, whose drops are no losses of the link.
    #[test]
    fn a_queue_for_each_connection_is_recognised() {
        let estimate = |srtt_s: f64| {
            let mut measured = measured(41.0, 20);
            let stream = &mut measured.phases[2].down.as_mut().unwrap().streams[0];
            (stream.srtt_s, stream.min_rtt_s) = (Some(srtt_s), Some(0.04));
            let text = text(&measured);
            Estimate::of_measurement(&text, "x", Direction::Download).unwrap()
        };
        let fair = estimate(0.06);
        assert!(fair.queue.is_none() && fair.loss.is_none());
        let notes = fair.notes.join("\n");
        assert!(notes.contains("data waits 20 ms") && notes.contains("--loss"), "{notes}");
        let lossy = estimate(0.041);
        assert!(lossy.notes.iter().any(|note| note.contains("short or managed")));
        assert_eq!(lossy.loss.unwrap().0.get(), 0.02);
    }

    #[test]
    fn losses_are_known_without_a_queue_only() {
        let of = |ms, again| {
            Estimate::of_measurement(&text(&measured(ms, again)), "x", Direction::Download).unwrap()
        };
        assert_eq!(of(41.0, 20).loss.unwrap().0.get(), 0.02);
        let full = of(140.0, 20);
        assert!(full.loss.is_none());
        assert!(full.notes.iter().any(|note| note.contains("--loss")), "{:?}", full.notes);
    }

    #[test]
    fn other_files_are_refused() {
        let good = text(&measured(140.0, 0));
        for (text, part) in [
            ("", "not JSON"),
            ("[]", "not JSON"),
            ("{}", "no measurement"),
            (r#"{"format":"lasthop-run","format_version":1}"#, "`lasthop-run`"),
            (r#"{"format":"lasthop-load","format_version":9}"#, "version 9"),
            (r#"{"format":"lasthop-load","format_version":1}"#, "damaged"),
        ] {
            let error = Estimate::of_measurement(text, "x", Direction::Download).unwrap_err();
            assert!(error.to_string().contains(part), "{text}: {error}");
        }
        let without = good.replace("\"down\"", "\"later\"");
        let error = Estimate::of_measurement(&without, "x", Direction::Download).unwrap_err();
        assert!(error.to_string().contains("--down"), "{error}");
    }
}
