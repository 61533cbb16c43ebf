//! Metrics of simulated runs compared with the simulator's own counts and with plain arithmetic.

use lasthop_observe::Sink;
use lasthop_observe::conservation::Conservation;
use lasthop_observe::csv::EventCsv;
use lasthop_observe::metrics::{Metrics, RunMetrics};
use lasthop_observe::sequence::{Sequence, Watch};
use lasthop_observe::stats::regression;
use lasthop_proto::event::Cause;
use lasthop_scenario::{Scenario, parse};
use lasthop_sim::RunEnd;

const LAN: &str = include_str!("../../../scenarios/west97-lan.toml");

/// Every agent of the scenario, by name.
fn cells() -> Vec<(String, Scenario)> {
    let (plan, _) = parse(LAN, "lan", &[]).unwrap();
    plan.cells.iter().map(|cell| (cell.title(&plan.axes), cell.scenario.clone())).collect()
}

fn measure(scenario: &Scenario, seed: u64) -> (RunMetrics, RunEnd) {
    let mut metrics = Metrics::new(lasthop_sim::layout(scenario));
    let end = lasthop_sim::run(scenario, seed, &mut metrics);
    (metrics.finish(end.at), end)
}

#[test]
fn metrics_match_the_counts_of_the_simulator() {
    for (name, scenario) in cells() {
        for seed in 1..=5 {
            let (run, end) = measure(&scenario, seed);
            let flow = &run.flows[0];
            assert_eq!(run.flows.len(), end.transfers.len(), "{name}");
            assert_eq!(
                (flow.wanted, flow.delivered),
                (Some(2_000_000), end.transfers[0].delivered)
            );
            assert_eq!(flow.complete, end.transfers[0].complete);
            assert_eq!((run.corrupted, flow.ideal_packets), (0, 1370), "{name}");
            // Every packet with new data was delivered once, with a measured delay.
            assert_eq!(flow.delay.packets, flow.new_packets);
            let sent = flow.originated.get(Cause::Data) + flow.host_retransmissions();
            assert_eq!(flow.wired_packets, sent, "no data is lost before the base station");
            let local = flow.local_retransmissions();
            assert_eq!(flow.wireless_packets, sent + local);
            // The radio carried damaged, new or redundant packets.
            let radio =
                run.stages.iter().find(|s| s.name == "wavelan" && s.data_packets > 0).unwrap();
            let arrived = radio.data_packets - radio.damaged_data;
            assert_eq!(arrived, flow.new_packets + flow.redundant, "{name} seed {seed}");
            assert!(flow.stall_time_s <= flow.transfer_time_s);
        }
    }
}

#[test]
fn every_packet_is_accounted_for() {
    for (name, scenario) in cells() {
        let mut books = Conservation::default();
        let end = lasthop_sim::run(&scenario, 3, &mut books);
        let held: u64 = end.stages.iter().map(|(_, count)| count.held).sum();
        assert_eq!(books.check(held), Ok(()), "{name}");
    }
}

#[test]
fn tracing_does_not_change_the_metrics() {
    let (_, scenario) = &cells()[1];
    let trace = || {
        let mut sink = (
            Metrics::new(lasthop_sim::layout(scenario)),
            EventCsv::new(&lasthop_sim::layout(scenario), Vec::new()),
        );
        let end = lasthop_sim::run(scenario, 2, &mut sink);
        (sink.0.finish(end.at), sink.1.finish().unwrap())
    };
    let (first, second) = (trace(), trace());
    assert!(first == second, "the same seed gives the same bytes");
    assert_eq!(first.0, measure(scenario, 2).0, "a full trace changes no number");
}

/// west97's Figure 9: without errors, sequence against time is a straight line.
#[test]
fn an_error_free_transfer_is_a_straight_line() {
    let (_, mut scenario) = cells().swap_remove(0);
    for stage in &mut scenario.path {
        if let lasthop_scenario::StageKind::Radio(radio) = &mut stage.kind {
            radio.errors_left = None;
            radio.errors_right = None;
        }
    }
    let flow = lasthop_sim::layout(&scenario).flows[0].key;
    let mut sink =
        (Metrics::new(lasthop_sim::layout(&scenario)), Sequence::new(flow, Watch::EndPoints));
    assert!(sink.interest().has(lasthop_proto::event::Interest::EVERYTHING));
    let end = lasthop_sim::run(&scenario, 1, &mut sink);
    let (run, series) = (sink.0.finish(end.at), sink.1.finish(end.at));
    let points: Vec<_> = series.sent.iter().map(|s| (s.at_s, s.start as f64)).collect();
    let line = regression(&points).unwrap();
    assert!(line.r2 > 0.999, "{line:?}");
    assert!((line.slope / run.aggregate_throughput - 1.0).abs() < 0.03, "{line:?}");
    assert!(series.lost.is_empty() && series.stalls.is_empty());
    assert_eq!((run.flows[0].wired_goodput, run.flows[0].wireless_goodput), (Some(1.0), Some(1.0)));
}
