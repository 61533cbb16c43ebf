//! Estimates the parameters of a link from the JSON of iperf3, flent or networkQuality.

use std::collections::BTreeMap;

use lasthop_observe::stats::quantile;
use lasthop_proto::units::{Probability, Rate, Span};
use serde::Deserialize;

use super::estimate::Estimate;
use super::link::Direction;
use crate::Error;

/// IP packet and payload of a full segment with timestamps, bytes.
const PACKET: f64 = 1500.0;
const PAYLOAD: f64 = 1448.0;

/// A shorter queue, in packets, is noise of the round trip.
const LEAST_QUEUE: f64 = 5.0;

/// Increase of the round trip, in seconds, up to which no full queue explains retransmissions.
const NO_QUEUE: f64 = 0.005;

/// Quantile of the round trips under load that counts as that of a full queue.
const FULL: f64 = 0.95;

const HELP: &str = "give what `iperf3 -c HOST --json`, flent or `networkQuality -c` wrote; docs/how-to/load.md shows how to measure";

/// A measurement, in bytes per second and seconds.
#[derive(Default)]
struct Measured {
    tool: &'static str,
    /// Payload rates towards the host that measured, and from it.
    down: Option<f64>,
    up: Option<f64>,
    /// The shortest round trip.
    shortest: Option<f64>,
    /// Nearly the longest round trips while data was sent, down and up.
    down_trip: Option<f64>,
    up_trip: Option<f64>,
    /// Retransmitted segments per segment, down and up.
    down_again: Option<f64>,
    up_again: Option<f64>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum File {
    Iperf3 { start: Start, end: End, error: Option<String> },
    Flent { results: BTreeMap<String, Vec<Option<f64>>> },
    NetworkQuality(NetworkQuality),
}

#[derive(Deserialize)]
struct Start {
    test_start: TestStart,
    tcp_mss: Option<f64>,
    tcp_mss_default: Option<f64>,
}

#[derive(Deserialize)]
struct TestStart {
    protocol: String,
    #[serde(default)]
    reverse: u32,
}

#[derive(Deserialize, Default)]
struct End {
    #[serde(default)]
    streams: Vec<Stream>,
    sum_sent: Option<Sum>,
    sum_received: Option<Sum>,
    sum_sent_bidir_reverse: Option<Sum>,
    sum_received_bidir_reverse: Option<Sum>,
}

#[derive(Deserialize)]
struct Sum {
    bits_per_second: f64,
    bytes: f64,
    retransmits: Option<f64>,
}

#[derive(Deserialize)]
struct Stream {
    sender: Option<Sender>,
}

/// Smoothed round trips of the sending kernel, microseconds; zero if it is the other host's.
#[derive(Deserialize)]
struct Sender {
    #[serde(default)]
    min_rtt: f64,
    #[serde(default)]
    max_rtt: f64,
}

/// Rates in bits per second, times in milliseconds.
#[derive(Deserialize)]
struct NetworkQuality {
    dl_throughput: Option<f64>,
    ul_throughput: Option<f64>,
    base_rtt: f64,
    #[serde(default)]
    lud_self_dl_h2: Vec<f64>,
    #[serde(default)]
    lud_self_ul_h2: Vec<f64>,
}

fn iperf3(start: &Start, end: &End) -> Result<Measured, String> {
    if start.test_start.protocol != "TCP" {
        return Err(
            "datagrams at a fixed rate show no rate of the link: measure with TCP".to_owned()
        );
    }
    let segment = start.tcp_mss.or(start.tcp_mss_default).unwrap_or(PAYLOAD);
    let rate = |sum: &Option<Sum>| sum.as_ref().map(|sum| sum.bits_per_second / 8.0);
    let again = |sum: &Option<Sum>| {
        let sum = sum.as_ref()?;
        Some(sum.retransmits? * segment / sum.bytes).filter(|share| share.is_finite())
    };
    let mut measured = Measured { tool: "iperf3", ..Measured::default() };
    let (first, again_first) = (rate(&end.sum_received), again(&end.sum_sent));
    if start.test_start.reverse == 0 {
        (measured.up, measured.up_again) = (first, again_first);
        measured.down = rate(&end.sum_received_bidir_reverse);
        measured.down_again = again(&end.sum_sent_bidir_reverse);
    } else {
        (measured.down, measured.down_again) = (first, again_first);
    }
    // Only the own kernel's round trips are known, so they are those of uploads.
    let own = end.streams.iter().filter_map(|stream| stream.sender.as_ref());
    let own: Vec<&Sender> = own.filter(|sender| sender.min_rtt > 0.0).collect();
    measured.shortest = own.iter().map(|sender| sender.min_rtt / 1e6).reduce(f64::min);
    measured.up_trip = own.iter().map(|sender| sender.max_rtt / 1e6).reduce(f64::max);
    Ok(measured)
}

fn flent(results: &BTreeMap<String, Vec<Option<f64>>>) -> Measured {
    let streams = |word: &'static str| {
        let sums = ["sum", "avg", "totals"];
        results.iter().filter(move |(name, _)| {
            name.starts_with("TCP")
                && name.contains(word)
                && !name.contains("::tcp_")
                && !sums.iter().any(|sum| name.ends_with(sum))
        })
    };
    let length = results.values().map(Vec::len).max().unwrap_or(0);
    let at = |series: &[Option<f64>], i: usize| series.get(i).copied().flatten();
    // The streams together, megabits per second, at each instant.
    let total = |word| -> Vec<f64> {
        let instant = |i| streams(word).filter_map(|(_, series)| at(series, i)).sum();
        (0..length).map(instant).collect()
    };
    let pings: Vec<f64> = (0..length)
        .map(|i| {
            let of = results
                .iter()
                .filter(|(name, _)| name.starts_with("Ping") && !name.ends_with("avg"));
            of.filter_map(|(_, series)| at(series, i)).fold(f64::NAN, f64::max) / 1e3
        })
        .collect();
    let rate = |total: &[f64]| {
        let loaded: Vec<f64> = total.iter().copied().filter(|rate| *rate > 0.0).collect();
        quantile(&loaded, 0.5).map(|megabits| megabits * 1e6 / 8.0)
    };
    let trip = |total: &[f64]| {
        let loaded =
            total.iter().zip(&pings).filter(|(rate, ping)| **rate > 0.0 && ping.is_finite());
        quantile(&loaded.map(|(_, ping)| *ping).collect::<Vec<_>>(), FULL)
    };
    let (down, up) = (total("download"), total("upload"));
    Measured {
        tool: "flent",
        down: rate(&down),
        up: rate(&up),
        shortest: pings.iter().copied().filter(|ping| ping.is_finite()).reduce(f64::min),
        down_trip: trip(&down),
        up_trip: trip(&up),
        ..Measured::default()
    }
}

fn network_quality(found: &NetworkQuality) -> Measured {
    let rate = |bits: Option<f64>| bits.map(|bits| bits / 8.0);
    let trip = |trips: &[f64]| quantile(trips, FULL).map(|trip| trip / 1e3);
    Measured {
        tool: "networkQuality",
        down: rate(found.dl_throughput),
        up: rate(found.ul_throughput),
        shortest: Some(found.base_rtt / 1e3),
        down_trip: trip(&found.lud_self_dl_h2),
        up_trip: trip(&found.lud_self_ul_h2),
        ..Measured::default()
    }
}

impl Estimate {
    /// Estimates from a measurement on the host behind the link; `name` is that of the file.
    ///
    /// # Errors
    ///
    /// The text is no measurement, or has no data in `direction`.
    pub fn of_measurement(text: &str, name: &str, direction: Direction) -> Result<Estimate, Error> {
        let wrong = |message: String| Error::input(format!("{name}: {message}"), HELP);
        let file: File = serde_json::from_str(text).map_err(|error| {
            let json = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
            wrong(if json {
                "no result of iperf3, flent or networkQuality".to_owned()
            } else {
                format!("no JSON: {error}")
            })
        })?;
        let measured = match file {
            File::Iperf3 { error: Some(error), .. } => Err(format!("iperf3 failed: {error}")),
            File::Iperf3 { start, end, .. } => iperf3(&start, &end),
            File::Flent { results } => Ok(flent(&results)),
            File::NetworkQuality(found) => Ok(network_quality(&found)),
        };
        of(&measured.map_err(wrong)?, direction).map_err(wrong)
    }
}

fn of(measured: &Measured, direction: Direction) -> Result<Estimate, String> {
    let Measured { tool, .. } = *measured;
    let (down, up) = (
        (measured.down, measured.down_trip, measured.down_again),
        (measured.up, measured.up_trip, measured.up_again),
    );
    let ((goodput, trip, again), (back, ..), word, option) = match direction {
        Direction::Download => (down, up, "download", " -R"),
        Direction::Upload => (up, down, "upload", ""),
    };
    let goodput = goodput.filter(|goodput| *goodput > 0.0).ok_or_else(|| {
        format!("no data of a {word}; measure it, for example with iperf3 -c HOST{option} --json, or change --direction")
    })?;
    let rate = link_rate(goodput).ok_or_else(|| format!("a rate of {goodput} B/s"))?;
    let how = |word: &str| format!("payload of the {word} by {tool}, with headers");
    let mut estimate = Estimate { rate: Some((rate, how(word))), ..Estimate::default() };
    let other = if word == "upload" { "download" } else { "upload" };
    estimate.rate_back = back.and_then(link_rate).map(|rate| (rate, how(other)));
    let shortest = measured.shortest.filter(|shortest| *shortest > 0.0 && shortest.is_finite());
    estimate.delay = shortest.map(|shortest| {
        (Span::from_secs_f64(shortest / 2.0), "half of the shortest round trip".to_owned())
    });
    let waited = shortest.zip(trip).map(|(shortest, trip)| (trip - shortest).max(0.0));
    let notes = &mut estimate.notes;
    if let Some(waited) = waited {
        let packets = (waited * goodput / PAYLOAD).ceil();
        if packets >= LEAST_QUEUE && waited > NO_QUEUE {
            let how = format!("round trips under load are up to {:.0} ms longer", waited * 1e3);
            estimate.queue = Some((format!("{packets:.0}p"), how));
        } else {
            notes.push("no queue builds up under load: it is short, managed, or separate for each connection".to_owned());
        }
    } else {
        notes.push(format!(
            "{tool} has no round trips of the {word}, so the queue is not known: give --queue"
        ));
    }
    match again {
        Some(share) if share <= 0.0 || waited.is_some_and(|waited| waited <= NO_QUEUE) => {
            let how = format!("{:.2} % of the segments were retransmitted", share * 100.0);
            estimate.loss = Probability::new(share).map(|p| (p, how));
        }
        Some(share) => notes.push(format!(
            "{:.2} % of the segments were retransmitted: drops of a full queue and losses of the radio look alike, so no loss \
             is assumed. If you know the loss, give --loss",
            share * 100.0
        )),
        None => notes.push(format!("{tool} has no retransmissions: give --loss")),
    }
    notes.push(
        "not known from it: bursts of losses, the discipline of the queue, link layers, and the share of the delay on the link itself"
            .to_owned(),
    );
    Ok(estimate)
}

/// The rate of a link whose full packets carry `goodput` bytes per second.
fn link_rate(goodput: f64) -> Option<Rate> {
    Rate::from_bps((goodput * 8.0 * PACKET / PAYLOAD) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(text: &str, direction: Direction) -> Estimate {
        Estimate::of_measurement(text, "file", direction).unwrap()
    }

    /// 10 Mbit/s of payload, and a queue of 100 ms over 40 ms.
    const IPERF3: &str = r#"{"start": {"tcp_mss": 1448, "test_start": {"protocol": "TCP", "reverse": 0}},
        "intervals": [], "end": {"streams": [{"sender": {"min_rtt": 40000, "max_rtt": 140000}}],
        "sum_sent": {"bits_per_second": 1.1e7, "bytes": 1448000, "retransmits": 20},
        "sum_received": {"bits_per_second": 1e7, "bytes": 1448000}}}"#;

    #[test]
    fn iperf3_gives_rate_delay_and_queue() {
        let found = estimate(IPERF3, Direction::Upload);
        assert_eq!(found.rate.unwrap().0.bps(), 10_359_116);
        assert_eq!(found.delay.unwrap().0, Span::millis(20));
        assert_eq!(found.queue.unwrap().0, "87p");
        // 2 % with a full queue are no loss of the link.
        assert!(found.loss.is_none() && found.notes.iter().any(|note| note.contains("2.00 %")));
        let short = IPERF3.replace("140000", "41000");
        assert_eq!(estimate(&short, Direction::Upload).loss.unwrap().0.get(), 0.02);
    }

    #[test]
    fn a_direction_without_data_is_named() {
        let error = Estimate::of_measurement(IPERF3, "file", Direction::Download).unwrap_err();
        assert!(error.to_string().contains("-R"), "{error}");
        let reverse = IPERF3.replace("\"reverse\": 0", "\"reverse\": 1").replace("40000", "0");
        let found = estimate(&reverse, Direction::Download);
        assert!(found.rate.is_some() && found.delay.is_none() && found.queue.is_none());
        let both = IPERF3.replace("\"sum_sent\"", "\"sum_received_bidir_reverse\": {\"bits_per_second\": 2e6, \"bytes\": 1}, \"sum_sent\"");
        assert_eq!(estimate(&both, Direction::Download).rate.unwrap().0.bps(), 2_071_823);
        assert_eq!(estimate(&both, Direction::Upload).rate_back.unwrap().0.bps(), 2_071_823);
    }

    /// Sums and averages of streams are not streams; `null` is an instant without a value.
    #[test]
    fn flent_gives_the_sum_of_streams() {
        let text = r#"{"version": 4, "metadata": {}, "x_values": [0, 1, 2], "results": {
            "TCP download BE": [null, 4.0, 4.0], "TCP download BK": [null, 4.0, 4.0], "TCP download sum": [null, 8.0, 8.0],
            "TCP totals": [null, 9.0, 9.0], "TCP upload::1": [null, 1.0, 1.0], "Ping (ms) ICMP": [20.0, 70.0, 70.0],
            "Ping (ms) avg": [1.0, 1.0, 1.0], "TCP upload::1::tcp_cwnd": [null, 900.0, 900.0]}}"#;
        let found = estimate(text, Direction::Download);
        assert_eq!(found.rate.unwrap().0.bps(), 8_287_292);
        assert_eq!(found.rate_back.unwrap().0.bps(), 1_035_911);
        assert_eq!(found.delay.unwrap().0, Span::millis(10));
        assert_eq!(found.queue.unwrap().0, "35p");
        assert!(found.loss.is_none());
    }

    #[test]
    fn network_quality_gives_both_rates() {
        let text = r#"{"base_rtt": 30.0, "dl_throughput": 80000000, "ul_throughput": 8000000, "responsiveness": 300,
            "lud_self_dl_h2": [130.0, 130.0]}"#;
        let found = estimate(text, Direction::Download);
        assert_eq!(found.rate.unwrap().0.bps(), 82_872_928);
        assert_eq!(found.delay.unwrap().0, Span::millis(15));
        assert_eq!(found.queue.unwrap().0, "691p");
        assert!(estimate(text, Direction::Upload).queue.is_none());
    }

    #[test]
    fn other_files_are_refused() {
        let udp = IPERF3.replace("\"TCP\"", "\"UDP\"");
        let failed = IPERF3.replace("\"intervals\"", "\"error\": \"refused\", \"intervals\"");
        for (text, part) in [
            ("", "no JSON"),
            ("[]", "no result"),
            ("{}", "no result"),
            (r#"{"format":"lasthop-run","format_version":1}"#, "no result"),
            (r#"{"results": {}}"#, "no data"),
            (&udp, "datagrams"),
            (&failed, "refused"),
        ] {
            let error = Estimate::of_measurement(text, "x", Direction::Download).unwrap_err();
            assert!(error.to_string().contains(part), "{text}: {error}");
        }
    }
}
