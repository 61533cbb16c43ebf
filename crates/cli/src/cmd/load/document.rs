//! The document of a measurement.

use lasthop_live::endpoint::{Bulk, LoadReport, PhaseReport, StreamReport};
use lasthop_proto::units::Span;
use lasthop_study::load::{
    Connections, Measurement, Phase, ProbeCounts, Stream, Transfer, round_trips,
};

use super::Args;

/// The document of `report`.
pub fn of(to: &str, args: &Args, report: &LoadReport) -> Measurement {
    let mut document = Measurement {
        to: to.to_owned(),
        streams: args.streams.into(),
        seconds: args.seconds.into(),
        interval_s: args.every.as_secs_f64(),
        congestion: args.congestion.clone(),
        complete: report.complete,
        failed: report.failed.clone(),
        grade: None,
        phases: report.phases.iter().map(phase).collect(),
    };
    document.judge();
    document
}

fn phase(report: &PhaseReport) -> Phase {
    let samples = &report.probes.samples;
    let answered = samples
        .iter()
        .filter_map(|sample| sample.rtt.map(|rtt| (sample.at.as_secs_f64(), rtt.as_secs_f64())));
    let steady_trips: Vec<f64> = report.round_trips().into_iter().map(Span::as_secs_f64).collect();
    Phase {
        phase: report.phase.to_string(),
        began_s: report.began.as_secs_f64(),
        seconds: report.seconds.as_secs_f64(),
        steady_from_s: report.steady_from.as_secs_f64(),
        up: report.up.as_ref().map(|bulk| transfer(bulk, report)),
        down: report.down.as_ref().map(|bulk| transfer(bulk, report)),
        round_trip: round_trips(&steady_trips),
        increase_s: None,
        grade: None,
        responsiveness_rpm: None,
        connections: connections(report),
        probes: ProbeCounts {
            sent: samples.len() as u64,
            unanswered: report.probes.unanswered(),
            late: report.probes.late,
            skipped: report.probes.skipped,
            retransmissions: report.probes.retransmissions,
            answer_retransmissions: report.probes.answer_retransmissions,
        },
        round_trips_s: answered.collect(),
    }
}

fn connections(report: &PhaseReport) -> Connections {
    let mut times_s = Vec::new();
    let (mut handshakes, mut requests) = (Vec::new(), Vec::new());
    for sample in &report.connections {
        let Ok((handshake, request)) = sample.result else { continue };
        let (handshake, request) = (handshake.as_secs_f64(), request.as_secs_f64());
        times_s.push((sample.at.as_secs_f64(), handshake, request));
        if report.is_steady(sample.at) {
            handshakes.push(handshake);
            requests.push(request);
        }
    }
    let mut errors = report.connections.iter().filter_map(|sample| sample.result.as_ref().err());
    Connections {
        handshake: round_trips(&handshakes),
        request: round_trips(&requests),
        failures: errors.clone().count() as u64,
        error: errors.next().cloned(),
        times_s,
    }
}

fn transfer(bulk: &Bulk, phase: &PhaseReport) -> Transfer {
    let streams = bulk.streams.iter().map(|one| stream(one, phase.steady())).collect();
    let series = bulk.series.iter().map(|(at, bytes)| (at.as_secs_f64(), *bytes)).collect();
    let answered = bulk.probes.iter().filter_map(|sample| Some((sample.at, sample.rtt?)));
    let steady = answered.clone().filter(|(at, _)| phase.is_steady(*at));
    let steady: Vec<f64> = steady.map(|(_, rtt)| rtt.as_secs_f64()).collect();
    Transfer {
        round_trip: round_trips(&steady),
        round_trips_s: answered.map(|(at, rtt)| (at.as_secs_f64(), rtt.as_secs_f64())).collect(),
        ..Transfer::new(streams, series)
    }
}

fn stream(report: &StreamReport, steady: Span) -> Stream {
    let sender = report.sender.as_ref();
    let goodput = report.steady_bytes as f64 / steady.as_secs_f64();
    let seconds = |span: Option<Span>| span.map(Span::as_secs_f64);
    Stream {
        goodput: (steady != Span::ZERO).then_some(goodput),
        bytes: report.bytes,
        congestion: report.congestion.clone(),
        failed: report.failed.clone(),
        retransmissions: sender.and_then(|sender| sender.retransmissions),
        bytes_sent: sender.and_then(|sender| sender.bytes_sent),
        bytes_retransmitted: sender.and_then(|sender| sender.bytes_retransmitted),
        timeouts: sender.and_then(|sender| sender.timeouts),
        srtt_s: seconds(sender.and_then(|sender| sender.srtt)),
        min_rtt_s: seconds(sender.and_then(|sender| sender.min_rtt)),
    }
}
