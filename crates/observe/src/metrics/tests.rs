//! Metrics of event lists with manually computed results.

use lasthop_proto::event::Cause;
use lasthop_proto::wire::FlowKey;

use super::*;
use crate::conservation::Conservation;
use crate::testing::*;

const MS: u64 = 1_000_000;

/// Two packets of 1000 bytes. The second is damaged on the radio and times out at 1 s; its second copy
/// arrives. A third copy, from the base station, arrives without effect.
fn story() -> Vec<Event> {
    vec![
        tcp_at_sender(0, TcpKind::Opening),
        syn(0, 1),
        transmitted(20 * MS, 1, 1, 1, 1000),
        transmitted(21 * MS, 1, 2, 1001, 1000),
        transmitted(24 * MS, 3, 1, 1, 1000),
        damaged(24 * MS, 2, 1001, 1000),
        transmitted_harmed(28 * MS, 2, 1001, 1000),
        tcp_at_receiver(30 * MS, TcpKind::Delivered { bytes: 1000 }),
        dropped(32 * MS, Cause::TcpChecksum, 2, 1001, 1000),
        packet_event(33 * MS, 3, Op::Transmitted, ack(3)),
        packet_event(34 * MS, 2, Op::Dropped(Cause::SuppressedDupAck), ack(3)),
        tcp_at_sender(40 * MS, TcpKind::DupAck),
        tcp_at_sender(1000 * MS, TcpKind::Timeout),
        originated(1000 * MS, Cause::TimeoutRetransmit, 4, 1001, 1000),
        transmitted(1000 * MS, 1, 4, 1001, 1000),
        transmitted(1004 * MS, 3, 4, 1001, 1000),
        tcp_at_receiver(1010 * MS, TcpKind::Delivered { bytes: 1000 }),
        originated(1011 * MS, Cause::LocalTimeout, 5, 1001, 1000),
        transmitted(1011 * MS, 3, 5, 1001, 1000),
        tcp_at_sender(2000 * MS, TcpKind::Complete),
    ]
}

fn measure(events: &[Event]) -> RunMetrics {
    let mut metrics = Metrics::new(layout());
    events.iter().for_each(|event| metrics.event(event));
    metrics.finish(Time(5_000 * MS))
}

fn close(a: f64, b: f64) {
    assert!((a - b).abs() < 1e-9, "{a} is not {b}");
}

/// The transfer time is the same if the opening is reported late, after its data, as for kernel senders.
#[test]
fn an_opening_that_is_reported_late_counts_from_its_time() {
    let mut events = story();
    let opening = events.remove(0);
    events.insert(5, opening);
    assert_eq!(events[2].at, Time(21 * MS), "data was seen");
    let flow = &measure(&events).flows[0];
    close(flow.opened_s.unwrap(), 0.0);
    close(flow.transfer_time_s, 2.0);
}

/// On a link of a few bits per second the FIN may have no answer in time, long after the data has arrived.
#[test]
fn a_flow_is_complete_or_aborted_and_never_both() {
    let mut events = story();
    events.push(tcp_at_sender(3000 * MS, TcpKind::Aborted));
    let run = measure(&events);
    assert!(run.flows[0].complete && !run.flows[0].aborted);
    // The receiver gives up on its own FIN.
    *events.last_mut().unwrap() = tcp_at_receiver(3000 * MS, TcpKind::Aborted);
    assert!(!measure(&events).flows[0].aborted);
    // Before completion an abort of the connection counts.
    events.retain(
        |event| !matches!(&event.kind, EventKind::Tcp(tcp) if tcp.kind == TcpKind::Complete),
    );
    let run = measure(&events);
    assert!(!run.flows[0].complete && run.flows[0].aborted);
}

#[test]
fn a_sample_trace_has_the_expected_metrics() {
    let run = measure(&story());
    assert_eq!(run.flows.len(), 1);
    let flow = &run.flows[0];
    assert!(flow.complete && !flow.aborted);
    assert_eq!((flow.delivered, flow.ideal_packets), (2000, 2));
    close(flow.transfer_time_s, 2.0);
    close(flow.throughput, 1000.0);
    close(run.aggregate_throughput, 1000.0);
    // Three data packets on the wired link, four on the radio hop, two needed.
    close(flow.wired_goodput.unwrap(), 2.0 / 3.0);
    close(flow.wireless_goodput.unwrap(), 0.5);
    assert_eq!((flow.timeouts, flow.dupacks, flow.redundant), (1, 1, 1));
    assert_eq!((flow.host_retransmissions(), flow.local_retransmissions()), (1, 1));
    assert_eq!(flow.new_packets, 2);
    assert_eq!(flow.dropped.get(Cause::TcpChecksum), 1);
    assert_eq!(flow.dropped_acks.get(Cause::SuppressedDupAck), 1);
    // 10 ms and 989 ms from the first offer to the delivery.
    assert_eq!(flow.delay.packets, 2);
    close(flow.delay.mean_s, (0.010 + 0.989) / 2.0);
    close(flow.delay.max_s, 0.989);
    close(flow.delay.sd_s, 0.979 / 2f64.sqrt());
    close(run.delay_sd_s(), flow.delay.sd_s);
    assert!((flow.delay.p50_s / 0.010 - 1.0).abs() < 0.12, "{}", flow.delay.p50_s);
    assert!((flow.delay.p99_s / 0.989 - 1.0).abs() < 0.12, "{}", flow.delay.p99_s);
    close(flow.srtt.last_s, 0.008);
    close(flow.rto.max_s, 1.0);
    assert_eq!(run.corrupted, 0);
    assert_eq!(run.events, 20);
}

#[test]
fn the_deviation_of_the_delay_is_that_of_all_packets() {
    let delays = [vec![0.1, 0.2, 0.3], vec![1.0, 1.4], vec![7.0]];
    let flow = |delays: &Vec<f64>| {
        let mut moments = crate::stats::Moments::default();
        delays.iter().for_each(|d| moments.add(*d));
        let (packets, mean_s, sd_s) = (moments.n(), moments.mean(), moments.sd());
        FlowMetrics {
            delay: Delay { packets, mean_s, sd_s, ..Delay::default() },
            ..measure(&story()).flows[0].clone()
        }
    };
    let run = RunMetrics { flows: delays.iter().map(flow).collect(), ..RunMetrics::default() };
    let all: Vec<f64> = delays.iter().flatten().copied().collect();
    let want = crate::stats::Summary::of(&all);
    close(run.delay_sd_s(), want.sd);
    close(run.mean_delay_s(), want.mean);
    assert_eq!(RunMetrics::default().delay_sd_s(), 0.0);
}

#[test]
fn silence_between_deliveries_is_a_stall() {
    let run = measure(&story());
    let flow = &run.flows[0];
    // Gaps of 30, 980 and 990 ms: 980 ms is in the median class, and the threshold is four times that.
    assert_eq!(flow.stalls, 0);
    let mut events = story();
    for i in 0..100 {
        let at = 1010 * MS + i * 5 * MS;
        events.insert(events.len() - 1, tcp_at_receiver(at, TcpKind::Delivered { bytes: 10 }));
    }
    let flow = &measure(&events).flows[0];
    assert_eq!(flow.stalls, 2);
    close(flow.stall_time_s, 0.98 + (2.0 - 1.505));
    close(flow.longest_stall_s, 0.98);
}

/// Most of a hundred packets take 10 ms, seven take 100 ms and three take 1 s.
#[test]
fn delay_quantiles_match_the_distribution() {
    let mut events = vec![tcp_at_sender(0, TcpKind::Opening), syn(0, 1)];
    for i in 0..100u32 {
        let (at, id) = (u64::from(i) * 2_000 * MS, u64::from(i) + 1);
        let delay = match i {
            0..90 => 10,
            90..97 => 100,
            _ => 1000,
        };
        events.push(transmitted(at, 1, id, 1 + i * 10, 10));
        events.push(tcp_at_receiver(at + delay * MS, TcpKind::Delivered { bytes: 10 }));
    }
    let delay = measure(&events).flows[0].delay;
    assert_eq!(delay.packets, 100);
    for (name, got, want) in [
        ("median", delay.p50_s, 0.010),
        ("95th percentile", delay.p95_s, 0.100),
        ("99th percentile", delay.p99_s, 1.0),
    ] {
        assert!((got / want - 1.0).abs() < 0.125, "the {name} is {got} s instead of {want} s");
    }
}

/// A timeout before the peer's answer belongs to the opening; a later one does not.
#[test]
fn timeouts_of_the_opening_are_counted_separately() {
    let mut events = story();
    for at in [3, 9] {
        let mut unanswered = tcp_at_sender(at * MS, TcpKind::Timeout);
        if let EventKind::Tcp(tcp) = &mut unanswered.kind {
            tcp.tcb.snd_una = 0;
        }
        events.insert(1, unanswered);
    }
    let flow = &measure(&events).flows[0];
    assert_eq!((flow.timeouts, flow.opening_timeouts), (3, 2), "one more came during the transfer");
}

#[test]
fn time_outs_are_counted_by_cause() {
    let event = |at: u64, kind, snd_una, dupacks| {
        let mut event = tcp_at_sender(at * MS, kind);
        if let EventKind::Tcp(tcp) = &mut event.kind {
            tcp.tcb = Tcb { snd_una, dupacks, snd_max: snd_una + 3000, ..tcp.tcb };
        }
        event
    };
    let mut events = story();
    events.extend([
        event(2000, TcpKind::DupAck, 5001, 1),
        event(2001, TcpKind::DupAck, 5001, 2),
        event(3000, TcpKind::Timeout, 5001, 0),
        event(5000, TcpKind::Timeout, 5001, 0),
        event(6000, TcpKind::Timeout, 6001, 0),
        event(7000, TcpKind::FastRetransmit, 7001, 3),
        event(8000, TcpKind::Timeout, 7001, 0),
        // A timeout of a handshake.
        event(9000, TcpKind::Timeout, 0, 0),
    ]);
    let before = measure(&story()).timeout_causes.map_or(0, |causes| causes.total());
    let causes = measure(&events).timeout_causes.unwrap();
    assert_eq!((causes.few_duplicate_acks, causes.repeated, causes.in_recovery), (1, 1, 1));
    assert_eq!((causes.total() - before, causes.avoided_by_sack), (4, 1));
}

/// Before the first measurement there is no sample, not even one of zero.
#[test]
fn a_round_trip_that_was_not_measured_is_no_sample() {
    let before = measure(&story()).flows[0].srtt;
    let mut events = story();
    for place in [events.len(), 1] {
        let mut unmeasured = tcp_at_sender(MS, TcpKind::DupAck);
        if let EventKind::Tcp(tcp) = &mut unmeasured.kind {
            tcp.tcb.srtt = lasthop_proto::units::Span::ZERO;
        }
        events.insert(place, unmeasured);
    }
    let flow = &measure(&events).flows[0];
    assert_eq!(flow.dupacks, 3);
    assert_eq!(flow.srtt, before, "neither the mean nor the last one changes");
    assert!(flow.srtt.samples > 0);
}

#[test]
fn stages_are_counted_by_direction() {
    let run = measure(&story());
    let radio =
        |towards| run.stages.iter().find(|s| s.name == "radio" && s.towards == Some(towards));
    let right = radio(Side::Right).unwrap();
    assert_eq!((right.packets, right.data_packets, right.damaged_data), (4, 4, 1));
    assert_eq!((right.bytes, right.data_bytes), (4 * 1040, 4000));
    close(right.goodput.unwrap(), 0.5);
    close(right.delivery_ratio().unwrap(), 0.75);
    let left = radio(Side::Left).unwrap();
    assert_eq!((left.packets, left.data_packets, left.goodput), (1, 0, None));
    let agent: Vec<_> = run.stages.iter().filter(|s| s.role == Role::Agent).collect();
    assert_eq!(agent[0].originated.get(Cause::LocalTimeout), 1);
    assert_eq!(agent[1].dropped.get(Cause::SuppressedDupAck), 1);
}

/// smoltcp's PR 1153 shows a metric table that did not react to a change.
#[test]
fn removing_an_event_changes_the_metrics() {
    let before = measure(&story());
    for skip in 0..story().len() {
        let mut events = story();
        let gone = events.remove(skip);
        let mut after = measure(&events);
        assert_ne!(before.events, after.events);
        after.events = before.events;
        // The first SYN repeats information of the opening event.
        if !matches!(&gone.kind, EventKind::Packet { packet, .. } if packet.id.0 == 0) {
            assert_ne!(before, after, "without {gone:?} nothing changes");
        }
    }
}

#[test]
fn a_fuller_trace_gives_the_same_numbers() {
    let mut events = story();
    events.insert(7, packet_event(30 * MS, 4, Op::Received, data(FLOW, 1, 1, 1000)));
    events.insert(8, packet_event(30 * MS, 4, Op::Originated(Cause::Ack), ack(3)));
    events.insert(9, tcp_at_sender(31 * MS, TcpKind::Acked));
    assert_eq!(measure(&events), measure(&story()));
}

#[test]
fn a_truncated_flow_is_incomplete_and_still_measured() {
    let mut events = story();
    events.pop();
    let flow = &measure(&events).flows[0];
    assert!(!flow.complete);
    close(flow.transfer_time_s, 5.0);
    assert_eq!(flow.stalls, 2, "the gap still open is judged like the others");
    close(flow.longest_stall_s, 3.99);
    close(flow.throughput, 400.0);
}

#[test]
fn delay_counts_from_origination_at_the_sender() {
    let mut events = story();
    events.insert(2, originated(16 * MS, Cause::Data, 1, 1, 1000));
    events.insert(3, originated(16 * MS, Cause::Data, 2, 1001, 1000));
    let flow = &measure(&events).flows[0];
    assert_eq!((flow.delay.packets, flow.new_packets), (2, 2), "a packet is offered once");
    close(flow.delay.max_s, 0.994);
    assert_eq!(flow.originated.get(Cause::Data), 2);
}

#[test]
fn losses_behind_the_last_link_are_not_arrivals() {
    let lost = |id| {
        packet_event(1012 * MS, 4, Op::Dropped(Cause::NoSuchConnection), data(FLOW, id, 1001, 1000))
    };
    let mut events = story();
    events.push(lost(5));
    assert_eq!(measure(&events).flows[0].redundant, 0, "the redundant copy was lost");
    let mut events = story();
    events.insert(16, lost(4));
    assert_eq!(measure(&events).flows[0].redundant, 0, "the copy before it was, so it is none");
    // Damage is reported before the far end, and does not change what crossed before.
    let mut events = story();
    events.insert(18, damaged(1011 * MS, 6, 1001, 1000));
    assert_eq!(measure(&events).flows[0].redundant, 1);
}

#[test]
fn two_uneven_flows_have_the_expected_jain_index() {
    let other = FlowKey { src_port: 2048, ..FLOW };
    let mut metrics = Metrics::new(layout());
    for (flow, bytes) in [(FLOW, 3000), (other, 1000)] {
        metrics.event(&packet_event(0, 1, Op::Transmitted, data(flow, 1, 1, 1000)));
        let mut event = tcp_at_receiver(500 * MS, TcpKind::Delivered { bytes });
        if let EventKind::Tcp(tcp) = &mut event.kind {
            tcp.flow = flow.reversed();
        }
        metrics.event(&event);
    }
    let run = metrics.finish(Time(1000 * MS));
    assert_eq!(run.flows.len(), 2);
    assert_eq!(run.flows[1].flow, "10.0.0.1:2048>10.0.1.1:9");
    close(run.jain_index, 16.0 / (2.0 * 10.0));
    close(run.aggregate_throughput, 4000.0);
}

#[test]
fn metrics_survive_json() {
    let run = measure(&story());
    let json = serde_json::to_string(&run).unwrap();
    assert_eq!(serde_json::from_str::<RunMetrics>(&json).unwrap(), run);
}

/// Rare counts are omitted if they are zero, and only then.
#[test]
fn rare_counts_are_written_where_they_are_not_zero() {
    let names = ["opening_timeouts", "congestion_echoes", "marked", "marked_acks"];
    let mut flow = measure(&story()).flows.remove(0);
    let without = serde_json::to_value(&flow).unwrap();
    assert!(names.iter().all(|name| without.get(name).is_none()), "{without}");
    (flow.opening_timeouts, flow.congestion_echoes) = (1, 2);
    (flow.marked, flow.marked_acks) = (3, 4);
    let with = serde_json::to_value(&flow).unwrap();
    for (count, name) in names.iter().enumerate() {
        assert_eq!(with[name], count as u64 + 1, "{name} is lost");
    }
    assert_eq!(serde_json::from_value::<FlowMetrics>(with).unwrap(), flow);
}

#[test]
fn a_flow_joined_midway_and_an_unknown_stage_are_measured() {
    let mut metrics = Metrics::new(Layout { flows: Vec::new(), ..layout() });
    metrics.event(&transmitted(0, 1, 1, 900_001, 1000));
    metrics.event(&transmitted(1, 3, 1, 900_001, 1000));
    metrics.event(&transmitted(2, 17, 1, 900_001, 1000));
    metrics.event(&tcp_at_receiver(MS, TcpKind::Delivered { bytes: 1000 }));
    let run = metrics.finish(Time(MS));
    close(run.flows[0].wired_goodput.unwrap(), 1.0);
    assert_eq!(run.flows[0].delay.packets, 1);
    assert_eq!(run.stages.last().unwrap().name, "stage17");
}

#[test]
fn unbalanced_packet_counts_are_explained() {
    let mut books = Conservation::default();
    books.event(&originated(0, Cause::Data, 1, 1, 1000));
    books.event(&originated(0, Cause::Data, 2, 1001, 1000));
    books.event(&transmitted(1, 1, 1, 1, 1000));
    books.event(&dropped(2, Cause::TcpChecksum, 2, 1001, 1000));
    assert_eq!((books.in_flight(), books.check(1)), (1, Ok(())));
    assert!(books.check(0).unwrap_err().contains("tcp-checksum"));
    books.event(&packet_event(3, 4, Op::Received, data(FLOW, 1, 1, 1000)));
    assert_eq!(books.check(0), Ok(()));
    books.event(&packet_event(4, 4, Op::Received, data(FLOW, 1, 1, 1000)));
    assert!(books.check(0).unwrap_err().contains("do not exist"), "received twice");
}

/// An undo ends a recovery as an ACK of all data does. It counts no recovery for the repair after a timeout.
#[test]
fn an_undone_recovery_counts_as_a_recovery() {
    use TcpKind::{FastRetransmit, RecoveryEnded, Timeout, Undone};
    for (kinds, recoveries, undone) in [
        (&[FastRetransmit, RecoveryEnded][..], 1, 0),
        (&[FastRetransmit, Undone], 1, 1),
        (&[FastRetransmit, Timeout, Undone], 0, 1),
        (&[FastRetransmit, Undone, Undone], 1, 2),
        (&[Timeout, Undone], 0, 1),
        (&[FastRetransmit, Undone, FastRetransmit, RecoveryEnded], 2, 1),
    ] {
        let mut events = story();
        events.pop();
        let at = |i: usize| (1100 + i as u64) * MS;
        events.extend(kinds.iter().enumerate().map(|(i, kind)| tcp_at_sender(at(i), *kind)));
        let flow = &measure(&events).flows[0];
        assert_eq!((flow.recoveries, flow.undone), (recoveries, undone), "{kinds:?}");
    }
}
