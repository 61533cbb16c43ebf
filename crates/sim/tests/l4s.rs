//! L4S: Prague and classic senders through DualPI2, and Prague without accurate ECN counts.

use lasthop_observe::Sink;
use lasthop_observe::metrics::{Metrics, RunMetrics};
use lasthop_proto::event::{Event, EventKind, Op};
use lasthop_sim::{layout, run};

use crate::parsed::{self, metrics, scenario_and_warnings};

/// Two downloads of a minute through one queue of 40 Mb/s, 10 ms there and back, and a probe of each kind.
fn scenario(hosts: &str, queue: &str) -> String {
    let transfer = |from| {
        format!(
            "[[transfer]]\nfrom = \"{from}\"\nto = \"home\"\nbytes = \"unlimited\"\nstart = \"5s\"\n"
        )
    };
    let probe = |to, l4s| {
        format!(
            "[[transfer]]\nfrom = \"home\"\nto = \"{to}\"\nudp = {{ probe = \"20ms\", l4s = {l4s} }}\n"
        )
    };
    format!(
        "horizon = \"65s\"\n{}{}{}{}{hosts}
        [[path]]
        link = {{ rate = \"40mbit\", delay = \"5ms\", queue = \"200p\", {queue} }}
        ",
        transfer("one"),
        transfer("two"),
        probe("one", true),
        probe("two", false),
    )
}

fn hosts(one: &str, two: &str, home: &str) -> String {
    let host = |name, side, more| {
        format!("[host.{name}]\npreset = \"linux\"\nside = \"{side}\"\n{more}\n")
    };
    [host("one", "left", one), host("two", "left", two), host("home", "right", home)].concat()
}

fn measured(text: &str, seed: u64) -> RunMetrics {
    let (scenario, warnings) = scenario_and_warnings::<&str>(text, &[]);
    assert_eq!(warnings, []);
    metrics(&scenario, seed)
}

/// Throughput of both, in Mb/s.
fn rates(metrics: &RunMetrics) -> [f64; 2] {
    [0, 1].map(|i| metrics.flows[i].throughput * 8.0 / 1e6)
}

const DUALPI2: &str = "discipline-right = \"dualpi2\"";
const COUNTS: &str = "accurate-ecn = \"ace\"";

#[test]
fn prague_and_cubic_share_dualpi2_and_each_waits_as_its_queue_promises() {
    let of = hosts("tcp = \"prague\"", "tcp = \"cubic\"", COUNTS);
    let metrics = measured(&scenario(&of, DUALPI2), 1);
    let [prague, cubic] = rates(&metrics);
    println!("prague {prague} cubic {cubic}");
    let waits: Vec<f64> = metrics.datagrams.iter().map(|d| (d.delay_p50_s - 0.010) * 1e3).collect();
    println!("waits {waits:?}");
    assert!(prague + cubic > 34.0, "{prague} {cubic}");
    assert!((0.4..2.5).contains(&(prague / cubic)), "{prague} {cubic}");
    assert!(waits[0] < 1.5 && (8.0..25.0).contains(&waits[1]), "{waits:?}");
}

/// Of flows with 10 and 50 ms, that with 10 counts as one with 25: by the formula twice the rate, not five times.
/// Measured are three times.
#[test]
fn prague_depends_on_round_trips_as_if_none_was_below_25_ms() {
    let of = hosts("tcp = \"prague\"", "tcp = \"prague\"\naccess = { delay = \"20ms\" }", COUNTS);
    let metrics = measured(&scenario(&of, DUALPI2), 1);
    let [short, long] = rates(&metrics);
    println!("short {short} long {long}");
    assert!(short + long > 30.0, "{short} {long}");
    assert!((1.3..3.2).contains(&(short / long)), "{short} {long}");
}

/// The ECN bits in the data of the first flow, and whether a count of marks was ever reported.
#[derive(Default)]
struct Bits([bool; 4]);

impl Sink for Bits {
    fn event(&mut self, event: &Event) {
        if let EventKind::Packet { op: Op::Originated(_), packet, .. } = &event.kind
            && packet.is_data()
        {
            self.0[usize::from(packet.ecn())] = true;
        }
    }
}

/// With a peer that supports only RFC 3168, or no ECN, Prague is RACK with Reno's window.
#[test]
fn without_counts_prague_is_reno() {
    for (home, bits) in
        [("ecn = true", [true, false, true, false]), ("", [true, false, false, false])]
    {
        let text = |tcp: &str| {
            let of = hosts(tcp, "tcp = \"cubic\"", home);
            scenario(&of, "discipline-right = \"codel\"")
        };
        let [prague, reno] =
            ["tcp = \"prague\"", "tcp = \"rack\"\npacing = true\nrto-rule = \"linux\"\necn = true"]
                .map(|tcp| {
                    let cell = &parsed::scenario(&text(tcp));
                    let mut sinks = (Metrics::new(layout(cell)), Bits::default());
                    let end = run(cell, 1, &mut sinks);
                    (rates(&sinks.0.finish(end.at)), sinks.1.0)
                });
        assert_eq!(prague.1, bits, "{home}");
        assert_eq!(prague, reno, "{home}");
    }
}

/// A base station that splits connections may use Prague towards the radio. Its queue is then that of Prague, although
/// the server's sender is CUBIC without ECN.
#[test]
fn prague_at_a_base_station_shortens_the_radio_queue() {
    let of = |agent: &str| {
        let text = format!(
            "horizon = \"35s\"
            [[transfer]]
            from = \"server\"
            to = \"home\"
            bytes = \"unlimited\"
            start = \"5s\"
            [host.server]
            preset = \"linux\"
            side = \"left\"
            [host.home]
            preset = \"linux\"
            side = \"right\"
            ecn = true
            accurate-ecn = \"ace\"
            [[path]]
            link = {{ rate = \"100mbit\", delay = \"5ms\" }}
            [[path]]
            {agent}
            [[path]]
            radio = {{ rate = \"40mbit\", delay = \"2ms\", duplex = \"full\", queue = \"200p\", {DUALPI2} }}
            "
        );
        let metrics = measured(&text, 1);
        (metrics.flows[0].throughput * 8.0 / 1e6, metrics.flows[0].delay.mean_s)
    };
    let of_split = |tcp: &str| of(&format!("agent = \"split\"\nsplit-tcp = \"{tcp}\""));
    let (cubic, prague) = (of_split("cubic"), of_split("prague"));
    assert!(prague.0 > 0.97 * cubic.0, "{prague:?} Mb/s and s, {cubic:?}");
    assert!(prague.1 < 0.4 * cubic.1, "{prague:?} Mb/s and s, {cubic:?}");
}
