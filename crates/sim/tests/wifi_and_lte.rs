//! Current radio links, compared with figures of ns-3 3.44: one download over Wi-Fi with aggregates and over LTE, and the
//! shares of stations behind an access point.

use lasthop_observe::Sink;
use lasthop_observe::metrics::RunMetrics;
use lasthop_proto::event::{Event, EventKind, Interest, Op};
use lasthop_proto::machine::{Side, StageId};
use lasthop_proto::units::Time;
use lasthop_sim::run;

use crate::parsed::{metrics, scenario_and_warnings, scenario_with};

fn measured(text: &str, set: &[&str]) -> RunMetrics {
    let (scenario, warnings) = scenario_and_warnings(text, set);
    assert_eq!(warnings, []);
    metrics(&scenario, 1)
}

/// Datagrams for each station at more than its rate.
fn saturated(stations: &[&str], (aggregate, more): (&str, &str), queue: &str) -> Vec<f64> {
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
         radio = {{ rate = \"144.4mbit\", delay = \"1us\", queue = \"500p\", {queue} }}\n\
         mac = \"dcf\"\ndcf = {{ phy = \"n\", streams = 2, mcs = 7, aggregate = \"{aggregate}\", window = 64{more} }}\n"
    );
    let found = measured(&text, &[]);
    found.datagrams.iter().map(|to| to.delivered as f64 * 8e-6 / SECONDS).collect()
}

/// A queue for each station: they are served in turn.
const TURNS: &str = "discipline-right = \"fifo\"";
/// One queue for all.
const SHARED: &str =
    "discipline-right = \"csdp\", csdp = { policy = \"fifo\", channel = \"none\" }";
/// A queue for each station, in turns of airtime.
const AIRTIME: &str = "discipline-right = \"airtime\"";

/// Two stations with leftovers of their aggregates once kept all others from the medium.
#[test]
fn stations_behind_an_access_point_have_equal_shares() {
    let found = saturated(&["a", "b", "c", "d"], ("64KiB", ""), TURNS);
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

/// Times at which the server's link delivers ACKs.
#[derive(Default)]
struct Acks(Vec<Time>);

impl Sink for Acks {
    fn interest(&self) -> Interest {
        Interest::METRICS
    }
    fn event(&mut self, event: &Event) {
        let delivers =
            matches!(event.kind, EventKind::Packet { op: Op::Transmitted, side: Side::Left, .. });
        if delivers && event.stage == StageId(1) {
            self.0.push(event.at);
        }
    }
}

/// An aggregate brings a burst of ACKs. ns-3's CUBIC at MCS 11: 52 ACKs less than 50 us apart at the mean, without
/// aggregates one.
#[test]
fn an_aggregate_brings_a_burst_of_acks() {
    let bursts = ["1MiB", "none"].map(|aggregate| {
        let radio = format!(
            "radio = {{ rate = \"130mbit\", delay = \"1us\", queue = \"1000p\" }}\nmac = \"dcf\"\n\
             dcf = {{ phy = \"ax\", mcs = 11, aggregate = \"{aggregate}\" }}\n"
        );
        let scenario = scenario_with(&format!("{DOWNLOAD}{radio}"), &["horizon=4s"]);
        let mut acks = Acks::default();
        run(&scenario, 1, &mut acks);
        let times = acks.0.iter().filter(|at| at.0 > 1_000_000_000);
        let times: Vec<u64> = times.map(|at| at.0).collect();
        let apart = times.windows(2).filter(|pair| pair[1] - pair[0] >= 50_000).count();
        times.len() as f64 / (apart + 1) as f64
    });
    println!("ACKs of a burst: {bursts:?}");
    assert!((40.0..=60.0).contains(&bursts[0]) && bursts[1] < 1.5, "{bursts:?}");
}

/// ns-3's lena, 50 resource blocks at 20 dB, RLC UM: throughput and median round trip of CUBIC, after 2.55 % of failed
/// blocks. The capacity for packets of 1228 bytes is 34.06 Mb/s. ns-3's phones report their buffer in each block at
/// no cost, so ACKs that follow others need no request. If they report it every 10 ms, ACKs wait for the next
/// report together, and their bursts overflow a short queue.
#[test]
fn a_download_over_lte_has_the_rate_and_round_trip_of_ns_3() {
    let cases = [
        ("1000000B", 0, 32.967, 223.1),
        ("100000B", 0, 32.276, 43.3),
        ("100000B", 10, 27.217, 41.1),
    ];
    for (queue, request, rate, round_trip) in cases {
        let radio = format!(
            "radio = {{ rate = \"34.95mbit\", delay = \"2.2ms\", duplex = \"full\", queue = \"{queue}\" }}\n\
             mac = \"granted\"\ngranted = {{ errors = \"2.55%\", repeat = \"7ms\", request = \"{request}ms\" }}\n\
             link-layer = \"rlc\"\nrlc = {{ mode = \"um\", reorder = \"100ms\" }}\n"
        );
        let text = format!("{DOWNLOAD}{radio}");
        // The first four seconds do not count, as in ns-3.
        let ends = ["horizon=4s", "horizon=16s"].map(|horizon| {
            let set = ["host.server.mss=1412", "host.laptop.mss=1412", horizon];
            let (scenario, _) = scenario_and_warnings(&text, &set);
            let sums = (1..=3).map(|seed| {
                let flow = &metrics(&scenario, seed).flows[0];
                let delays = flow.delay.mean_s * flow.delay.packets as f64;
                [flow.delivered as f64, delays, flow.delay.packets as f64]
            });
            sums.reduce(|a, b| core::array::from_fn(|i| a[i] + b[i])).unwrap()
        });
        let [bytes, delays, packets] = core::array::from_fn(|i| ends[1][i] - ends[0][i]);
        let mbps = bytes * 8e-6 / 36.0;
        // A packet, and the way of its ACK: half of a request, two blocks, processing and the wire.
        let rtt = delays / packets * 1e3 + 14.0 + f64::from(request) / 2.0;
        println!("{queue} {request}: {mbps:.2} Mb/s, {rtt:.0} ms; ns-3 {rate} and {round_trip}");
        assert!((mbps / rate - 1.0).abs() < 0.1, "{queue} {request}: {mbps}");
        assert!((rtt / round_trip - 1.0).abs() < 0.1, "{queue} {request}: {rtt}");
    }
}

/// "Ending the Anomaly" (USENIX ATC 2017): with one queue for all, as in Linux before, all stations have the throughput of
/// a slow one. Queues for each station remove this only with aggregates. By airtime fast stations have a third of the
/// time, and ten times the rate.
#[test]
fn airtime_ends_the_anomaly() {
    let stations = ["fast1", "fast2", "slow"];
    let slow = ", stations = [{ host = \"slow\", mcs = 0 }]";
    let alone = [TURNS, AIRTIME].map(|queue| saturated(&stations, ("none", slow), queue));
    let aggregates = [SHARED, AIRTIME].map(|queue| saturated(&stations, ("64KiB", slow), queue));
    println!("alone {alone:?}, aggregates {aggregates:?}");
    for equal in [&alone[0], &aggregates[0]] {
        assert!(equal.iter().all(|each| (each / equal[2] - 1.0).abs() < 0.15), "{equal:?}");
    }
    assert!(alone[1][0] > 1.5 * alone[0][0] && alone[1][2] < alone[0][2], "{alone:?}");
    let [shared, fair] = &aggregates;
    let fast = fair[0].min(fair[1]);
    assert!((8.5..11.5).contains(&(fast / fair[2])), "{fair:?}");
    assert!((fair[0] / fair[1] - 1.0).abs() < 0.05, "{fair:?}");
    assert!(fast > 3.0 * shared[0] && fair[2] < shared[2], "{aggregates:?}");
}
