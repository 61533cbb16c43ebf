//! TCP-INT, right-edge recovery, and intermittent traffic: the effect of each, and its absence without it.

use lasthop_observe::metrics::{Metrics, RunMetrics};
use lasthop_proto::units::Span;
use lasthop_sim::{Reason, layout, run};

use crate::parsed::{metrics, scenario_with};

const ROUTER: &str = r#"
horizon = "20s"
transfer = [
    { from = "s", to = "r1", stop = "20s" },
    { from = "s", to = "r1", stop = "20s", start = "2s" },
    { from = "s", to = "r1", stop = "20s", start = "4s" },
    { from = "s", to = "r1", stop = "20s", start = "6s" },
]
[host.s]
preset = "ns"
side = "left"
[host.r1]
preset = "ns"
sack = true
[host.r2]
preset = "ns"
sack = true
side = "right"
[[path]]
link = { rate = "10mbit", delay = "10ms", queue = "50p" }
[[path]]
cross = { loss = "0%", jitter = "5ms" }
[[path]]
name = "router"
link = { rate = "1.5mbit", delay = "50ms", queue = "3p" }
"#;

/// The mean over five seeds of a number of the router's runs.
fn mean(changes: &[&str], of: impl Fn(&RunMetrics) -> f64) -> f64 {
    let scenario = scenario_with(ROUTER, changes);
    (1..=5).map(|seed| of(&metrics(&scenario, seed))).sum::<f64>() / 5.0
}

fn timeouts(m: &RunMetrics) -> f64 {
    m.sum(|f| f.timeouts) as f64
}

#[test]
fn integrated_connections_rarely_time_out() {
    let reno = mean(&["host.s.tcp=reno"], timeouts);
    let integrated = mean(&["host.s.tcp=tcp-int"], timeouts);
    assert!(integrated * 4.0 < reno, "{integrated} against {reno}");
}

#[test]
fn a_connection_gets_as_much_as_the_others_of_its_host() {
    let jain = |m: &RunMetrics| m.jain_index;
    let apart = mean(&["host.s.tcp=reno"], jain);
    let integrated = mean(&["host.s.tcp=tcp-int"], jain);
    assert!(integrated > 0.95 && integrated > apart, "{integrated} against {apart}");
}

#[test]
fn without_integration_the_shares_go_by_connection() {
    let three = concat!(
        r#"transfer=[{ from = "s", to = "r1", stop = "60s" }, "#,
        r#"{ from = "s", to = "r2", count = 2, stop = "60s" }]"#
    );
    let share = |m: &RunMetrics| {
        let bytes: Vec<f64> = m.flows.iter().map(|f| f.delivered as f64).collect();
        (bytes[1] + bytes[2]) / bytes[0]
    };
    let of = |tcp| mean(&[three, tcp, "horizon=60s", "path.router.link.queue=6p"], share);
    let (apart, integrated) = (of("host.s.tcp=reno"), of("host.s.tcp=tcp-int"));
    assert!(apart > 1.5, "{apart}");
    assert!((0.7..1.3).contains(&integrated), "{integrated}");
}

#[test]
fn a_connection_builds_on_the_window_of_the_others() {
    // The second transfer finds an open window: it is shorter than one with slow start.
    let late = concat!(
        r#"transfer=[{ from = "s", to = "r1", stop = "6s" }, "#,
        r#"{ from = "s", to = "r1", bytes = 10000, start = "5s" }]"#
    );
    let time = |m: &RunMetrics| m.flows[1].transfer_time_s;
    let of = |tcp| mean(&[late, tcp, "path.router.link.queue=50p"], time);
    let (apart, integrated) = (of("host.s.tcp=reno"), of("host.s.tcp=tcp-int"));
    assert!(integrated < 0.8 * apart, "{integrated} against {apart}");
}

#[test]
fn without_the_right_edge_the_time_outs_come_back() {
    let crowd = r#"transfer=[{ from = "s", to = "r1", count = 8, stop = "20s" }]"#;
    let of = |edge| mean(&[crowd, "host.s.tcp=reno", edge], timeouts);
    let (without, with) = (of("host.s.limited-transmit=false"), of("host.s.limited-transmit=true"));
    assert!(with < 0.9 * without, "{with} against {without}");
}

#[test]
fn a_stopped_transfer_delivers_all_sent_data_and_closes() {
    let one = r#"transfer={ from = "s", to = "r1", stop = "3s" }"#;
    for tcp in ["reno", "sack", "tcp-int"] {
        let scenario = scenario_with(ROUTER, &[one, &format!("host.s.tcp={tcp}")]);
        let mut metrics = Metrics::new(layout(&scenario));
        let end = run(&scenario, 1, &mut metrics);
        assert_eq!(end.reason, Reason::Finished, "{tcp}");
        let flow = &metrics.finish(end.at).flows[0];
        assert!(flow.complete && flow.delivered > 50_000, "{tcp}: {}", flow.delivered);
        let completed = flow.completed_s.unwrap();
        assert!((3.0..8.0).contains(&completed), "{tcp}: {completed}");
        assert_eq!(end.transfers[0].wanted.map(|b| b.0), Some(flow.delivered));
    }
}

#[test]
fn a_bounded_transfer_may_be_over_before_it_is_stopped() {
    let one = r#"transfer={ from = "s", to = "r1", bytes = "50kB", stop = "15s" }"#;
    let m = metrics(&scenario_with(ROUTER, &[one]), 1);
    assert_eq!(m.flows[0].delivered, 50_000);
    assert!(m.flows[0].completed_s.unwrap() < 14.0);
}

const WEB: &str = concat!(
    r#"transfer=[{ from = "s", to = "r1", web = { sessions = 4, think = "300ms", "#,
    r#"size = { mean = "10kB", shape = 1.3 } }, stop = "60s" }]"#
);

#[test]
fn users_fetch_the_same_sizes_on_any_network() {
    let sizes = |changes: &[&str]| {
        let changes = [changes, &["horizon=200s", WEB]].concat();
        let end = run(&scenario_with(ROUTER, &changes), 3, &mut lasthop_observe::Nothing);
        assert_eq!(end.reason, Reason::Finished);
        assert!(end.transfers.iter().all(|t| t.complete));
        let mut sizes: Vec<u64> = end.transfers.iter().map(|t| t.wanted.unwrap().0).collect();
        sizes.sort_unstable();
        sizes
    };
    let (fast, slow) = (sizes(&[]), sizes(&["path.router.link.rate=200kbit"]));
    assert!(slow.len() > 50 && fast.len() > slow.len() + 50, "{} and {}", slow.len(), fast.len());
    // Fast users fetch everything that slow users had time to fetch.
    let mut rest = fast.iter();
    assert!(slow.iter().all(|size| rest.any(|other| other == size)));
}

#[test]
fn short_transfers_are_reported_together() {
    let scenario = scenario_with(ROUTER, &["horizon=60s", WEB]);
    let m = metrics(&scenario, 1);
    assert!(m.flows.is_empty());
    let [short] = &m.short[..] else { panic!("{:?}", m.short) };
    assert!(short.begun > 200 && short.begun - short.complete <= 4, "{short:?}");
    assert!(short.time_p50_s < short.time_mean_s && short.time_mean_s < short.time_p95_s);
    let names: Vec<&str> = m.scalars().iter().map(|s| s.name).collect();
    assert!(names.contains(&"short_time_p95"));
}

#[test]
fn a_source_is_on_and_off() {
    let of = |periods: &str| {
        let one = format!(
            r#"transfer={{ from = "s", to = "r1", on-off = {{ {periods} }}, stop = "100s" }}"#
        );
        let changes = [&one[..], "horizon=120s", "path.router.link.queue=50p"];
        let m = metrics(&scenario_with(ROUTER, &changes), 1);
        assert!(m.complete());
        m.flows[0].delivered as f64
    };
    let always = of(r#"on = "1000s", off = "1ms""#);
    let half = of(r#"on = "1s", off = "1s""#);
    let rarely = of(r#"on = "1s", off = "9s", shape = 1.5"#);
    assert!((0.3..0.75).contains(&(half / always)), "{half} of {always}");
    assert!(rarely < 0.5 * half, "{rarely} against {half}");
}

#[test]
fn cross_traffic_is_measured_separately() {
    let transfers = concat!(
        r#"transfer=[{ from = "s", to = "r1", bytes = "500kB" }, "#,
        r#"{ from = "s", to = "r2", count = 3, stop = "20s", cross = true }]"#
    );
    let m = metrics(&scenario_with(ROUTER, &[transfers, "horizon=60s"]), 1);
    assert_eq!(m.flows.len(), 4);
    assert_eq!(m.ours().count(), 1);
    assert_eq!(m.jain_index, 1.0);
    let ours = m.flows.iter().find(|f| !f.cross).unwrap();
    assert!((m.aggregate_throughput - ours.throughput).abs() < 1e-6);
    let cross = m.scalars().into_iter().find(|s| s.name == "cross_throughput").unwrap();
    let delivered: u64 = m.flows.iter().filter(|f| f.cross).map(|f| f.delivered).sum();
    assert!((cross.value - delivered as f64 / m.end_s).abs() < 1e-6);
}

#[test]
fn all_connections_to_an_unreachable_peer_are_aborted() {
    // The bottleneck loses everything: each connection is aborted, and no run hangs.
    let four = r#"transfer=[{ from = "s", to = "r1", bytes = "100kB", count = 4 }]"#;
    let changes = [four, "host.s.tcp=tcp-int", "host.s.max-retries=4", "horizon=100000s"];
    let mut scenario = scenario_with(ROUTER, &changes);
    let dead = scenario.path[1].clone();
    scenario.path.push(dead);
    let last = scenario.path.last_mut().unwrap();
    last.name = "grave".into();
    if let lasthop_scenario::StageKind::Cross(cross) = &mut last.kind {
        cross.loss = lasthop_proto::units::Probability::new(0.999).unwrap();
    }
    let end = run(&scenario, 1, &mut lasthop_observe::Nothing);
    assert_eq!(end.reason, Reason::Finished);
    assert!(end.transfers.iter().all(|t| t.aborted));
    assert!(end.at < lasthop_proto::units::Time::ZERO + Span::secs(10_000), "{}", end.at);
}
