//! What changes while a connection lasts.

use crate::common::Script;
use lasthop_analyze::{Config, MeasuredBy, StallCause, analyze_capture};
use lasthop_proto::units::Span;
use lasthop_proto::wire::Flags;

fn milliseconds(rtt: f64) -> i64 {
    (rtt * 1e3).round() as i64
}

#[test]
fn timestamps_measure_where_karns_rule_forbids_it() {
    for stamped in [false, true] {
        let mut s = Script::new();
        s.handshake(0.0, 40.0);
        let stamp = |s: &mut Script, value, echo| s.stamps = stamped.then_some((value, echo));
        stamp(&mut s, 100, 0);
        s.data(50.0, 1, 1000);
        stamp(&mut s, 900, 100);
        s.ack(90.0, 1001);
        stamp(&mut s, 200, 900);
        s.data(91.0, 1001, 1000);
        // Retransmitted after a timeout, and answered 45 ms later.
        stamp(&mut s, 400, 900);
        s.data(400.0, 1001, 1000);
        stamp(&mut s, 901, 400);
        s.ack(445.0, 2001);
        let sent = &s.analyze().connections[0].to_server;
        let trips = sent.over_time.round_trips.kept.iter();
        let trips: Vec<_> = trips.map(|trip| (milliseconds(trip.rtt), trip.by)).collect();
        let mut expected = vec![(40, MeasuredBy::Segment)];
        if stamped {
            expected.push((45, MeasuredBy::Timestamp));
        }
        assert_eq!(trips, expected);
        assert_eq!(sent.rtt.unwrap().samples, 1, "the mean is by Karn's rule alone");
    }
}

#[test]
fn outstanding_data_and_the_window_follow_every_packet() {
    let mut s = Script::new();
    s.scale = [Some(3), Some(7)];
    s.window = [1000, 100];
    s.handshake(0.0, 40.0);
    s.data(50.0, 1, 1000);
    s.data(51.0, 1001, 500);
    s.window[1] = 90;
    s.ack(90.0, 1001);
    let analysis = s.analyze();
    let connection = &analysis.connections[0];
    let sent = &connection.to_server.over_time;
    let seen: Vec<_> = sent.in_flight.kept.iter().map(|f| (f.outstanding, f.window)).collect();
    // Only the window of the SYN-ACK, which is not scaled, precedes the first ACK.
    assert_eq!(seen, [(1000, Some(100)), (1500, Some(100)), (500, Some(90 << 7))]);
    assert_eq!(connection.to_client.window_max, Some(90 << 7));
    assert_eq!(connection.to_server.window_max, Some(1000 << 3));
    assert_eq!(sent.volumes.interval, Span::millis(1));
    let volumes: Vec<_> = sent.volumes.iter().collect();
    assert_eq!((volumes.len(), volumes[50].bytes, volumes[51].fresh), (52, 1000, 500));
}

#[test]
fn a_window_of_unknown_scale_is_not_reported() {
    let mut s = Script::new();
    s.data(50.0, 1, 1000);
    s.ack(90.0, 1001);
    let analysis = s.analyze();
    let connection = &analysis.connections[0];
    assert!(connection.to_server.over_time.in_flight.kept.iter().all(|f| f.window.is_none()));
    assert_eq!(connection.to_client.window_max, None);
}

#[test]
fn a_pause_between_question_and_answer_is_idle() {
    let mut s = Script::new();
    s.handshake(0.0, 10.0);
    s.data(20.0, 1, 10);
    s.ack(30.0, 11);
    s.data(40.0, 11, 10);
    // The answer comes with the ACK, 600 ms later, and the next question at once.
    s.send(640.0, 1, Flags::ACK, 1, 50, 21);
    s.send(641.0, 0, Flags::ACK, 21, 10, 51);
    let sent = &s.analyze().connections[0].to_server;
    let causes: Vec<_> = sent.stalls.iter().map(|stall| stall.cause).collect();
    assert_eq!(causes, [StallCause::ApplicationIdle]);
}

#[test]
fn the_samples_of_a_real_transfer_agree_with_its_sums() {
    let analysis = analyze_capture(include_bytes!("data/real.pcap"), Config::default()).unwrap();
    let sent = &analysis.connections[0].to_server;
    let over = &sent.over_time;
    let volumes = &over.volumes;
    assert_eq!(volumes.iter().map(|v| v.bytes).sum::<u64>(), sent.bytes);
    assert_eq!(volumes.iter().map(|v| v.fresh).sum::<u64>(), sent.unique_bytes);
    let by_segment = || {
        let trips = over.round_trips.kept.iter();
        trips.filter(|trip| trip.by == MeasuredBy::Segment).map(|trip| trip.rtt)
    };
    let spread = sent.rtt.unwrap();
    assert_eq!(by_segment().count() as u64, spread.samples);
    assert_eq!(by_segment().fold(0.0, f64::max), spread.max);
    // What timestamps add lies where the others do.
    let by_timestamp: Vec<f64> = over
        .round_trips
        .kept
        .iter()
        .filter(|trip| trip.by == MeasuredBy::Timestamp)
        .map(|trip| trip.rtt)
        .collect();
    assert!(by_timestamp.iter().all(|rtt| *rtt > 0.020 && *rtt < 0.2), "{by_timestamp:?}");
    // The link lets 30 packets wait and takes 20 ms; nothing is outstanding after the last ACK.
    let most = over.in_flight.kept.iter().map(|f| f.outstanding).max().unwrap();
    assert!((20_000..200_000).contains(&most), "{most}");
    assert_eq!(over.in_flight.kept.last().unwrap().outstanding, 0);
}

#[test]
fn bounds_hold_for_samples() {
    let config = Config { points: 10, ..Config::default() };
    let analysis = analyze_capture(include_bytes!("data/real.pcap"), config).unwrap();
    let over = &analysis.connections[0].to_server.over_time;
    assert!(over.in_flight.kept.len() <= 10 && over.in_flight.every > 1);
    let last = over.in_flight.kept.last().unwrap().at;
    let (began, ended) = (analysis.connections[0].began, analysis.connections[0].ended);
    assert!(last.since(began).0 * 2 > ended.since(began).0, "they reach into the second half");
}
