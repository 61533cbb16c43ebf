//! Transfers by QUIC in the simulator: they complete, repeat exactly, and have correct events.

use crate::common::{CompletedRun, lossy, run, scenario};
use lasthop_proto::event::{Cause, EventKind, Op, TcpKind};
use lasthop_sim::Reason;

#[test]
fn a_transfer_delivers_all_its_data() {
    let CompletedRun { end, metrics, .. } = run(&lossy(0.0, "", "bytes = \"2MB\""), 1);
    assert_eq!(end.reason, Reason::Finished);
    let transfer = end.transfers[0];
    assert_eq!((transfer.delivered, transfer.acknowledged), (2_000_000, 2_000_000));
    assert!(transfer.complete && !transfer.aborted);
    let flow = &metrics.flows[0];
    assert_eq!((flow.delivered, flow.complete, metrics.corrupted), (2_000_000, true, 0));
    // 10 Mb/s with 28 bytes of UDP and IP, 32 of QUIC and the rest for each 1452; and slow start.
    assert!((1.0e6..1.25e6).contains(&flow.throughput), "{}", flow.throughput);
    // The first slow start fills the queue; no other losses.
    assert_eq!(flow.dropped.total_of(|cause| cause != Cause::QueueFull), 0);
    assert!(flow.timeouts <= 1, "{}", flow.timeouts);
    assert!(flow.srtt.last_s > 0.02, "{:?}", flow.srtt);
}

#[test]
fn lost_data_is_retransmitted_and_reported() {
    let CompletedRun { end, metrics, record } = run(&lossy(0.01, "", "bytes = \"2MB\""), 1);
    assert_eq!((end.reason, end.transfers[0].delivered), (Reason::Finished, 2_000_000));
    assert_eq!(end.transfers[0].acknowledged, 2_000_000);
    let flow = &metrics.flows[0];
    let lost = flow.dropped.total();
    assert!((5..40).contains(&lost), "{:?}", flow.dropped);
    assert!(flow.fast_retransmits > 0 && flow.fast_retransmits <= lost, "{flow:?}");
    // Each loss causes at least one packet with its bytes; a frame may be split over two.
    let again = flow.host_retransmissions();
    assert!((lost - 2..=2 * lost).contains(&again), "{again} for {lost}");
    assert!(flow.throughput < 1.1e6, "{}", flow.throughput);
    let acked = record.events().filter_map(|event| match &event.kind {
        EventKind::Tcp(tcp) if tcp.kind == TcpKind::Acked => Some(tcp.tcb),
        _ => None,
    });
    let mut una = 0;
    for tcb in acked {
        assert!(tcb.snd_una > una && tcb.snd_una <= tcb.snd_max && tcb.cwnd > 0, "{tcb:?}");
        una = tcb.snd_una;
    }
    assert_eq!(una, 2_000_001);
}

#[test]
fn a_run_repeats_to_the_last_byte_and_its_seed_matters() {
    let all = ["", "streams = 7", "congestion = \"newreno\"", "ack-threshold = 9, streams = 3"];
    for quic in all {
        let scenario = lossy(0.02, "", &format!("bytes = \"300kB\", quic = {{ {quic} }}"));
        let trace =
            |seed| format!("{:?}", run(&scenario, seed).record.events().collect::<Vec<_>>());
        let first = trace(3);
        assert!(first == trace(3), "{quic}: not the same twice");
        assert!(first != trace(4), "{quic}: the seed does not matter");
    }
}

#[test]
fn each_quic_key_has_its_effect() {
    let rate = |quic: &str, loss, bytes: &str| {
        let keys = format!("bytes = \"{bytes}\", quic = {{ {quic} }}");
        run(&lossy(loss, "", &keys), 2)
    };
    let plain = rate("", 0.01, "2MB");
    let acks = |run: &CompletedRun| {
        let acks = run.record.events().filter(|event| {
            matches!(event.kind, EventKind::Packet { op: Op::Originated(Cause::Ack), .. })
        });
        acks.count()
    };
    let rare = rate("ack-threshold = 9", 0.0, "2MB");
    assert!(acks(&rare) * 3 < acks(&rate("", 0.0, "2MB")), "{}", acks(&rare));
    let newreno = rate("congestion = \"newreno\"", 0.01, "2MB");
    assert_ne!(newreno.end.at, plain.end.at);
    let narrow = rate("window = \"6000B\"", 0.0, "200kB");
    // 6000 bytes for each 20 ms and a little.
    let rate = narrow.metrics.flows[0].throughput;
    assert!((150_000.0..300_000.0).contains(&rate), "{rate}");
}

#[test]
fn streams_share_a_connection() {
    let keys = "bytes = \"1MB\", quic = { streams = 13 }";
    let CompletedRun { end, metrics, .. } = run(&lossy(0.01, "", keys), 5);
    assert_eq!((end.transfers.len(), end.transfers[0].delivered), (1, 1_000_000));
    assert_eq!((metrics.flows.len(), metrics.corrupted), (1, 0));
}

#[test]
fn connections_share_a_path_and_end_at_their_stop() {
    let keys = "count = 5, bytes = \"unlimited\", stop = \"20s\"";
    let CompletedRun { end, metrics, .. } = run(&lossy(0.001, "", keys), 1);
    assert_eq!(end.transfers.len(), 5);
    assert!(end.transfers.iter().all(|t| t.complete && t.delivered == t.acknowledged));
    assert!(end.at.as_secs_f64() < 25.0, "{}", end.at);
    assert!(metrics.jain_index > 0.7, "{}", metrics.jain_index);
    let rate = metrics.aggregate_throughput;
    assert!((0.9e6..1.25e6).contains(&rate), "{rate}");
}

#[test]
fn a_stopped_transfer_delivers_the_written_data() {
    for (stop, some) in [("1s", true), ("5ms", false)] {
        let keys = format!("bytes = \"1GB\", stop = \"{stop}\"");
        let CompletedRun { end, .. } = run(&lossy(0.001, "", &keys), 1);
        let transfer = end.transfers[0];
        assert_eq!(
            (transfer.complete, transfer.delivered > 0),
            (true, some),
            "{stop}: {transfer:?}"
        );
        let size = transfer.wanted.map(|bytes| bytes.0);
        assert_eq!(size, Some(transfer.delivered), "{stop}: {transfer:?}");
        assert_eq!(transfer.acknowledged, transfer.delivered, "{stop}: {transfer:?}");
        // Regression: a sender stopped during the handshake sent all its data.
        assert!(end.at.as_secs_f64() < 3.0, "{stop}: {}", end.at);
    }
}

#[test]
fn a_transfer_completes_with_a_tiny_round_trip() {
    let text = "transfer = { from = \"a\", to = \"b\", bytes = \"20MB\", protocol = \"quic\", quic.ack-threshold = 1 }\n\
         [host.a]\npreset = \"rfc\"\n[host.b]\npreset = \"rfc\"\n[[path]]\nlink = { delay = \"1ns\" }\n";
    let CompletedRun { end, .. } = run(&scenario(text), 1);
    assert_eq!((end.reason, end.transfers[0].delivered), (Reason::Finished, 20_000_000));
}

#[test]
fn an_outage_makes_the_timer_expire() {
    let text = "horizon = \"600s\"\n\
         transfer = { from = \"fixed\", to = \"mobile\", bytes = \"3MB\", protocol = \"quic\" }\n\
         [host.fixed]\npreset = \"rfc\"\n[host.mobile]\npreset = \"rfc\"\n\
         [[path]]\nlink = { rate = \"10mbit\", delay = \"10ms\", outages = \"1s-3s\" }\n";
    let CompletedRun { end, metrics, .. } = run(&scenario(text), 1);
    assert_eq!(end.transfers[0].delivered, 3_000_000);
    assert!(metrics.flows[0].timeouts > 0, "{:?}", metrics.flows[0]);
}

#[test]
fn without_a_host_factory_no_transfer_starts() {
    let scenario = lossy(0.0, "", "bytes = \"1MB\"");
    let end = lasthop_sim::run(&scenario, 1, &mut lasthop_observe::Nothing);
    assert_eq!((end.reason, end.transfers.len()), (Reason::Idle, 0));
}
