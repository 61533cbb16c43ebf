//! Radios whose rate, delay, losses and outages vary, from frame to frame.

use lasthop_observe::metrics::{Datagrams, RunMetrics};
use lasthop_proto::event::Cause;
use lasthop_scenario::{Argument, parse};

use crate::parsed::{self, scenario};

/// A datagram of 1000 bytes each tenth of a second until `stop`, over a radio of 1 Mbit/s: 8 ms each. The run ends when
/// the last one has arrived.
fn metrics(radio: &str, stop: &str) -> RunMetrics {
    let text = format!(
        "horizon = \"10s\"\n[[transfer]]\nfrom = \"fixed\"\nto = \"mobile\"\nstop = \"{stop}\"\n\
         udp = {{ rate = \"80kbit\", size = 1000 }}\n[host.fixed]\npreset = \"rfc\"\n[host.mobile]\npreset = \"rfc\"\n\
         [[path]]\nradio = {{ rate = \"1mbit\", {radio} }}\n"
    );
    parsed::metrics(&scenario(&text), 1)
}

fn datagrams(radio: &str, stop: &str) -> Datagrams {
    metrics(radio, stop).datagrams[0].clone()
}

#[track_caller]
fn same(measured_s: f64, ms: f64) {
    assert!((measured_s * 1e3 - ms).abs() < 1e-6, "{} ms and not {ms}", measured_s * 1e3);
}

const DUPLEX: [&str; 2] = ["duplex = \"half\"", "duplex = \"full\""];

#[test]
fn a_frame_has_the_rate_at_its_beginning_and_the_delay_at_its_end() {
    for duplex in DUPLEX {
        let radio =
            format!("{duplex}, rates = \"0s 1mbit, 1s 500kbit\", delays = \"0s 5ms, 1s 1ms\"");
        // Ten of 8 ms and 5 ms, ten of 16 ms and 1 ms.
        let found = datagrams(&radio, "1.95s");
        assert_eq!((found.arrived, found.lost), (20, 0));
        same(found.delay_p50_s, 13.0);
        same(found.delay_max_s, 17.0);
        same(found.delay_mean_s, 15.0);
    }
    let one = "rates-right = \"0s 500kbit\", rates-left = \"0s 2mbit\"";
    same(datagrams(one, "1.95s").delay_p50_s, 16.0);
    same(datagrams(one, "1.95s").delay_max_s, 16.0);
}

#[test]
fn at_rate_zero_no_frame_begins() {
    let found = datagrams("rates = \"0s 1mbit, 1.05s 0bit, 1.35s 1mbit\"", "1.95s");
    // Packets of 1.1, 1.2 and 1.3 s wait until 1.35 s, and for each other.
    assert_eq!((found.arrived, found.lost), (20, 0));
    same(found.delay_max_s, 258.0);
    same(found.delay_mean_s, (17.0 * 8.0 + 258.0 + 166.0 + 74.0) / 20.0);
}

#[test]
fn outages_hold_or_drop_packets() {
    for duplex in DUPLEX {
        let outages = format!("{duplex}, outages = \"1.05s-1.35s\"");
        let held = metrics(&outages, "1.95s");
        assert_eq!((held.datagrams[0].arrived, held.datagrams[0].lost), (20, 0));
        same(held.datagrams[0].delay_max_s, 258.0);
        let radio = held.stages.iter().find(|stage| stage.name == "radio").unwrap();
        assert_eq!(radio.redirected.get(Cause::Outage), 3, "those that come meanwhile");
        let lost = metrics(&format!("{outages}, outage-packets = \"drop\""), "1.95s");
        assert_eq!((lost.datagrams[0].arrived, lost.datagrams[0].lost), (17, 3));
        same(lost.datagrams[0].delay_max_s, 8.0);
        let radio = lost.stages.iter().find(|stage| stage.name == "radio").unwrap();
        assert_eq!(radio.dropped.get(Cause::Outage), 3);
    }
    // A frame on the air at the start of an outage is delivered, or lost.
    let begun = "outages = \"1.004s-1.01s\"";
    assert_eq!(datagrams(begun, "1.95s").lost, 0);
    assert_eq!(datagrams(&format!("{begun}, outage-packets = \"drop\""), "1.95s").lost, 1);
}

#[test]
fn losses_follow_their_schedule() {
    let lost = metrics("losses = \"0s 0%, 1s 100%, 1.5s 0%\"", "1.95s");
    assert_eq!((lost.datagrams[0].arrived, lost.datagrams[0].lost), (15, 5));
    let radio = lost.stages.iter().find(|stage| stage.name == "radio").unwrap();
    assert_eq!(radio.dropped.get(Cause::FrameLost), 5);
}

#[test]
fn packets_do_not_overtake_when_the_delay_falls() {
    // The last packet before the delay falls arrives at 1.008 + 0.5 s; later ones do not overtake it.
    let found = datagrams("delays = \"0s 500ms, 1.05s 1ms\"", "1.95s");
    assert_eq!((found.arrived, found.late, found.lost), (20, 0, 0));
    same(found.delay_max_s, 508.0);
}

#[test]
fn tcp_completes_over_a_varying_radio() {
    let text = "runs = 1\ntransfer = { from = \"fixed\", to = \"mobile\", bytes = \"2MB\" }\n[host.fixed]\npreset = \"rfc\"\n[host.mobile]\npreset = \"rfc\"\n\
                [[path]]\nradio = { rate = \"2mbit\", delay = \"2ms\", \
                rates = \"0s 4mbit, 2s to 0bit, 3s 4mbit, 4s again\", losses = \"0s 0%, 1s 2%, 2s again\", \
                outages = \"1.5s-1.7s, 4s again\" }\nerrors = { model = \"exponential\", mean = \"1MiB\" }\n";
    let scenario = &scenario(text);
    for seed in 1..=20 {
        let metrics = parsed::metrics(scenario, seed);
        assert!(metrics.complete() && metrics.corrupted == 0, "seed {seed}: {metrics:?}");
    }
}

#[test]
fn variation_is_refused_for_packet_radio_over_several_hops() {
    let text = "transfer = { from = \"fixed\", to = \"mobile\", bytes = \"2MB\" }\n[host.fixed]\npreset = \"rfc\"\n[host.mobile]\npreset = \"rfc\"\n\
         [[path]]\nradio = { rate = \"2mbit\", outages = \"1s-2s\" }\nmac = \"half-duplex-hops\"\n";
    let error = parse(text, "test", &[] as &[Argument]).unwrap_err();
    assert!(error.message.contains("packet radio over several hops does not vary"), "{error}");
}
