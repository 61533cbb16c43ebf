//! A run ends when nothing is in flight, however its transfers stop.

use lasthop_observe::metrics::{Metrics, RunMetrics};
use lasthop_scenario::Scenario;
use lasthop_sim::{Reason, RunEnd, layout, run};

use crate::parsed;

/// Transfers that stop after a moment, over a slow path with half a second of delay: all their data is still in flight
/// then.
fn scenario(transfer: &str, rest: &str) -> Scenario {
    let text = format!(
        "horizon = \"300s\"\n\
         [[transfer]]\nfrom = \"server\"\nto = \"client\"\n{transfer}\n\
         [host.server]\npreset = \"rfc\"\nside = \"left\"\n[host.client]\npreset = \"rfc\"\n\
         [[path]]\nlink = {{ rate = \"1mbit\", delay = \"500ms\", queue = \"2000p\" }}\n{rest}"
    );
    parsed::scenario(&text)
}

fn measured(scenario: &Scenario) -> (RunEnd, RunMetrics) {
    let mut metrics = Metrics::new(layout(scenario));
    let end = run(scenario, 1, &mut metrics);
    assert!(end.stages.iter().all(|(_, count)| count.is_conserved()), "{:?}", end.stages);
    let metrics = metrics.finish(end.at);
    (end, metrics)
}

#[test]
fn the_last_datagram_arrives_before_the_run_ends() {
    for transfer in [
        "udp = { rate = \"100mbit\", size = 1000 }\nstop = \"10ms\"",
        "udp = { rate = \"50mbit\", size = 500, arrivals = \"poisson\" }\nstop = \"20ms\"",
        "udp = { rate = \"2mbit\", sizes = \"exponential\" }\nstop = \"2s\"",
        "udp = { voice = \"g711\" }\nstop = \"1s\"",
        "udp = { probe = \"20ms\" }\nstop = \"1s\"",
    ] {
        for rest in ["", "[[path]]\ncross = { loss = \"10%\", jitter = \"100ms\" }\n"] {
            let (end, metrics) = measured(&scenario(transfer, rest));
            assert_eq!(end.reason, Reason::Finished, "{transfer}");
            let held: u64 = end.stages.iter().map(|(_, count)| count.held).sum();
            let sent: u64 = end.stages.iter().map(|(_, count)| count.originated).sum();
            assert!(held == 0 && sent > 0, "{transfer}{rest}: {held} of {sent} are under way");
            let all = &metrics.datagrams[0];
            assert!(all.arrived > 0 && end.at.as_secs_f64() > 0.5, "{transfer}: {all:?}");
            assert!(!rest.is_empty() || all.lost == 0, "{transfer}: {all:?}");
        }
    }
}

/// 125 packets of 8 ms each, and the delay.
#[test]
fn a_train_of_datagrams_arrives_whole() {
    let transfer = "udp = { rate = \"100mbit\", size = 1000 }\nstop = \"10ms\"";
    let (end, metrics) = measured(&scenario(transfer, ""));
    assert_eq!((metrics.datagrams[0].arrived, metrics.datagrams[0].lost), (125, 0));
    assert!((1.5..1.51).contains(&end.at.as_secs_f64()), "{}", end.at);
}

/// Data sent by TCP before a stop arrives, whatever the application.
#[test]
fn transfers_by_tcp_end_when_all_that_they_sent_is_acknowledged() {
    for transfer in [
        "bytes = \"unlimited\"\nstop = \"4s\"",
        "on-off = { on = \"200ms\", off = \"100ms\" }\nstop = \"5s\"",
        "web = { sessions = 2, think = \"100ms\", size = { mean = \"5kB\" } }\nstop = \"5s\"",
        "request = \"300B\"\nresponse = \"20kB\"\nevery = \"700ms\"\npersistent = true\nstop = \"3s\"",
        "request = \"300B\"\nresponse = \"20kB\"\nthink = \"10ms\"\nstop = \"3s\"",
    ] {
        let (end, metrics) = measured(&scenario(transfer, ""));
        assert_eq!(end.reason, Reason::Finished, "{transfer}");
        assert!(!end.transfers.is_empty() || !metrics.exchanges.is_empty());
        for done in &end.transfers {
            assert!(done.complete && !done.aborted, "{transfer}: {done:?}");
            assert_eq!(Some(done.delivered), done.wanted.map(|bytes| bytes.0), "{transfer}");
        }
        assert!(metrics.exchanges.iter().all(|e| e.complete()), "{:?}", metrics.exchanges);
    }
}

/// A TCP transfer next to them has no effect on this.
#[test]
fn datagrams_arrive_alongside_tcp_transfers() {
    let others = "[[transfer]]\nfrom = \"client\"\nto = \"server\"\nbytes = \"30kB\"\n";
    let transfer = format!("udp = {{ rate = \"10mbit\", size = 1000 }}\nstop = \"50ms\"\n{others}");
    let (end, metrics) = measured(&scenario(&transfer, ""));
    assert_eq!((end.reason, metrics.datagrams[0].lost), (Reason::Finished, 0));
    assert!(metrics.flows.iter().all(|flow| flow.complete));
}
