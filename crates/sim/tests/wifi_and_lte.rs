//! Current radio links, compared with figures of ns-3 3.44: one download over Wi-Fi with aggregates and over LTE, and the
//! shares of stations behind an access point.

use lasthop_observe::metrics::RunMetrics;

use crate::parsed::{metrics, scenario_and_warnings};

fn measured(text: &str, set: &[&str]) -> RunMetrics {
    let (scenario, warnings) = scenario_and_warnings(text, set);
    assert_eq!(warnings, []);
    metrics(&scenario, 1)
}

/// Datagrams for each station at more than its rate.
fn saturated(stations: &[&str], (aggregate, more): (&str, &str), discipline: &str) -> Vec<f64> {
    const SECONDS: f64 = 4.0;
    let mut text = format!("horizon = \"{SECONDS}s\"\n[host.server]\nside = \"left\"\n");
    for name in stations {
        text += &format!(
            "[host.{name}]\n[[transfer]]\nfrom = \"server\"\nto = \"{name}\"\n\
             udp = {{ rate = \"100mbit\", size = \"1500B\", arrivals = \"poisson\" }}\n"
        );
    }
    text += &format!(
        "[[path]]\nlink = {{ rate = \"1gbit\", delay = \"1ms\", queue = \"1000p\" }}\n[[path]]\nagent = \"none\"\n[[path]]\n\
         radio = {{ rate = \"144.4mbit\", delay = \"1us\", queue = \"500p\", discipline-right = \"{discipline}\" }}\n\
         mac = \"dcf\"\ndcf = {{ phy = \"n\", streams = 2, mcs = 7, aggregate = \"{aggregate}\", window = 64{more} }}\n"
    );
    let found = measured(&text, &[]);
    found.datagrams.iter().map(|to| to.delivered as f64 * 8e-6 / SECONDS).collect()
}

/// Two stations with leftovers of their aggregates once kept all others from the medium.
#[test]
fn stations_behind_an_access_point_have_equal_shares() {
    let found = saturated(&["a", "b", "c", "d"], ("64KiB", ""), "fifo");
    let mean = found.iter().sum::<f64>() / 4.0;
    assert!(mean > 25.0, "{found:?}");
    assert!(found.iter().all(|each| (each / mean - 1.0).abs() < 0.1), "{found:?}");
}

const DOWNLOAD: &str = "horizon = \"9s\"\ntransfer = { from = \"server\", to = \"laptop\", bytes = \"unlimited\" }\n\
    [host.server]\npreset = \"linux\"\ntcp = \"cubic\"\nside = \"left\"\n[host.laptop]\npreset = \"linux\"\n\
    [[path]]\nlink = { rate = \"1gbit\", delay = \"10ms\", queue = \"20000p\" }\n[[path]]\nagent = \"none\"\n[[path]]\n\
    name = \"air\"\n";

/// ns-3, 802.11ax with 20 MHz: CUBIC has 108.6 Mb/s at MCS 11, where data without ACKs has 131.3, and 52.5 at MCS 5.
#[test]
fn a_download_over_wi_fi_has_the_rate_of_ns_3() {
    for (mcs, expected) in [(11, 108.635), (5, 52.53)] {
        let radio = format!(
            "radio = {{ rate = \"130mbit\", delay = \"1us\", queue = \"1000p\" }}\nmac = \"dcf\"\n\
             dcf = {{ phy = \"ax\", mcs = {mcs}, aggregate = \"1MiB\" }}\n"
        );
        let found = measured(&format!("{DOWNLOAD}{radio}"), &[]).flows[0].delivered;
        let mbps = found as f64 * 8e-6 / 9.0;
        println!("MCS {mcs}: {mbps:.1} Mb/s, ns-3 {expected}");
        assert!((mbps / expected - 1.0).abs() < 0.06, "MCS {mcs}: {mbps} of {expected}");
    }
}

/// ns-3's lena, 50 resource blocks at 20 dB, RLC UM with a buffer of 1 MB: CUBIC has 32.97 Mb/s and a median round trip of
/// 223 ms. The capacity for packets of 1228 bytes is 34.06 Mb/s, after 2.55 % of failed blocks.
#[test]
fn a_download_over_lte_has_the_rate_and_round_trip_of_ns_3() {
    let radio = "radio = { rate = \"34.95mbit\", delay = \"2.2ms\", duplex = \"full\", queue = \"1000000B\" }\n\
        mac = \"granted\"\ngranted = { errors = \"2.55%\", repeat = \"7ms\" }\nlink-layer = \"rlc\"\n\
        rlc = { mode = \"um\", reorder = \"100ms\" }\n";
    let text = format!("{DOWNLOAD}{radio}");
    // The first four seconds do not count, as in ns-3.
    let [before, after] = ["horizon=4s", "horizon=16s"].map(|horizon| {
        let found = measured(&text, &["host.server.mss=1412", "host.laptop.mss=1412", horizon]);
        let flow = &found.flows[0];
        (flow.delivered as f64, flow.delay.mean_s * flow.delay.packets as f64, flow.delay.packets)
    });
    let mbps = (after.0 - before.0) * 8e-6 / 12.0;
    // A packet, and the way of its ACK: two blocks, processing and the wire.
    let rtt = (after.1 - before.1) / (after.2 - before.2) as f64 * 1e3 + 14.0;
    println!("{mbps:.2} Mb/s, {rtt:.0} ms; ns-3 32.97 and 223");
    assert!((mbps / 32.967 - 1.0).abs() < 0.1, "{mbps}");
    assert!((rtt / 223.1 - 1.0).abs() < 0.1, "{rtt}");
}

/// "Ending the Anomaly" (USENIX ATC 2017): in turns all stations have the throughput of a slow one, by airtime only this
/// one. With aggregates in both cases fast stations have a third of the time, and ten times the rate.
#[test]
fn airtime_ends_the_anomaly() {
    let stations = ["fast1", "fast2", "slow"];
    let slow = ", stations = [{ host = \"slow\", mcs = 0 }]";
    let [turns, by_airtime] =
        ["fifo", "airtime"].map(|word| saturated(&stations, ("none", slow), word));
    println!("in turns {turns:?}, by airtime {by_airtime:?}");
    assert!(turns.iter().all(|each| (each / turns[2] - 1.0).abs() < 0.1), "{turns:?}");
    assert!(by_airtime[0] > 1.5 * turns[0] && by_airtime[2] < turns[2], "{by_airtime:?}");
    let aggregates = saturated(&stations, ("64KiB", slow), "airtime");
    println!("with aggregates {aggregates:?}");
    let fast = aggregates[0].min(aggregates[1]);
    assert!((8.5..11.5).contains(&(fast / aggregates[2])), "{aggregates:?}");
    assert!((aggregates[0] / aggregates[1] - 1.0).abs() < 0.05, "{aggregates:?}");
}
