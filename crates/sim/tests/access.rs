//! Hosts with access links: different round trips on one path.

use lasthop_observe::metrics::RunMetrics;

use crate::parsed::{metrics, scenario};

fn measured(text: &str, seed: u64) -> RunMetrics {
    metrics(&scenario(text), seed)
}

#[test]
fn packets_of_a_host_cross_its_own_link_both_ways() {
    let text = |from: &str, to: &str| {
        format!(
            "horizon = \"10s\"\n\
             transfer = {{ from = \"{from}\", to = \"{to}\", udp = {{ rate = \"80kbit\", size = 1000 }} }}\n\
             [host.fixed]\npreset = \"rfc\"\n[host.fixed2]\npreset = \"rfc\"\naccess = {{ rate = \"1mbit\", delay = \"50ms\" }}\n\
             [host.mobile]\npreset = \"rfc\"\n[host.mobile2]\npreset = \"rfc\"\naccess = {{ delay = \"7ms\" }}\n\
             [[path]]\nlink = {{ rate = \"8mbit\", delay = \"10ms\" }}\n"
        )
    };
    // 1 ms on the path, 8 ms on the link of fixed2.
    for (left, right, delay) in [
        ("fixed", "mobile", 11.0),
        ("fixed2", "mobile", 69.0),
        ("fixed", "mobile2", 18.0),
        ("fixed2", "mobile2", 76.0),
    ] {
        for (from, to) in [(left, right), (right, left)] {
            let seen = &measured(&text(from, to), 1).datagrams[0];
            let [mean, max] = [seen.delay_mean_s, seen.delay_max_s].map(|s| s * 1000.0);
            assert!(
                (mean - delay).abs() < 1e-6 && (max - delay).abs() < 1e-6,
                "{from} {to}: {mean} {max}"
            );
            assert!(seen.arrived >= 98, "{seen:?}");
        }
    }
}

#[test]
fn drops_of_its_queue_are_reported() {
    let text = "horizon = \"20s\"\n\
                transfer = { from = \"fixed\", to = \"mobile\", bytes = \"2MB\" }\n\
                [host.fixed]\npreset = \"linux\"\naccess = { rate = \"2mbit\", delay = \"20ms\", queue = \"10p\" }\n\
                [host.mobile]\npreset = \"linux\"\n\
                [[path]]\nlink = { rate = \"100mbit\", delay = \"5ms\" }\n";
    let run = measured(text, 1);
    assert!(run.complete());
    let access = run.stages.iter().filter(|stage| stage.name == "fixed-access");
    let drops: u64 = access.map(|stage| stage.dropped.total()).sum();
    assert!(drops > 0, "{:?}", run.stages);
    // At most the rate of the link without headers.
    assert!(
        (200_000.0..250_000.0).contains(&run.aggregate_throughput),
        "{}",
        run.aggregate_throughput
    );
}

/// The ratio of the throughputs of two Reno senders with round trips of 20 ms and 80 ms, on a path with this link, over
/// some runs.
fn bias(link: &str, runs: u64) -> f64 {
    let text = format!(
        "horizon = \"120s\"\n\
         transfer = [\n  {{ from = \"near\", to = \"mobile\", bytes = \"unlimited\" }},\n  \
         {{ from = \"far\", to = \"mobile2\", bytes = \"unlimited\" }},\n]\n\
         [host.near]\nside = \"left\"\npreset = \"linux\"\ntcp = \"rack\"\n\
         [host.far]\nside = \"left\"\npreset = \"linux\"\ntcp = \"rack\"\naccess = {{ delay = \"30ms\" }}\n\
         [host.mobile]\npreset = \"linux\"\ntcp = \"rack\"\n[host.mobile2]\npreset = \"linux\"\ntcp = \"rack\"\n\
         [[path]]\nlink = {{ {link} }}\n"
    );
    let runs: Vec<RunMetrics> = (1..=runs).map(|seed| measured(&text, seed)).collect();
    let sum = |flow: usize| runs.iter().map(|run| run.flows[flow].throughput).sum::<f64>();
    sum(0) / sum(1)
}

#[test]
fn reno_sends_in_inverse_proportion_to_its_round_trip() {
    // Equal losses give equal windows, and the rate is a window per round trip (Mathis et al. 1997).
    let lossy = "rate = \"1gbit\", delay = \"10ms\", loss = \"0.5%\", impaired = \"right\"";
    let ratio = bias(lossy, 8);
    assert!((3.5..4.5).contains(&ratio), "{ratio}");
    // At a full queue both lose together, and the near one recovers sooner: the ratio of round trips to a power between
    // 1 and 2 (Lakshman and Madhow 1997). Queueing delay up to 12 ms reduces the ratio to at least 92/32.
    let full = "rate = \"20mbit\", delay = \"10ms\", queue = \"20p\"";
    let ratio = bias(full, 8);
    assert!((2.6..16.0).contains(&ratio), "{ratio}");
}
