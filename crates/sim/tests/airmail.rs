//! TCP over AIRMAIL compared with other link layers, on channels with scattered errors and with bursts.

use lasthop_observe::Sink;
use lasthop_proto::event::{Event, EventKind, Interest};
use lasthop_scenario::example;
use lasthop_sim::run;

use crate::parsed::scenario_with;

/// Link layers with their settings.
const LAYERS: [(&str, &str); 7] = [
    ("none", "link-layer=none"),
    ("ll", "link-layer=ll"),
    ("ll-sack", "link-layer=ll-sack"),
    ("tulip", "link-layer=tulip"),
    ("airmail", "link-layer=airmail"),
    ("airmail, bytes coded", "link-layer=airmail airmail.packet-fec=0"),
    ("airmail, no code", "link-layer=airmail airmail.packet-fec=0 airmail.byte-fec=none"),
];

const CHANNELS: [(&str, &str); 7] = [
    ("BER 1e-6", "errors.ber=1e-6"),
    ("1e-5", "errors.ber=1e-5"),
    ("5e-5", "errors.ber=5e-5"),
    ("2e-4", "errors.ber=2e-4"),
    ("fades", "errors.model=two-state errors.good=500ms errors.bad=100ms errors.ber-bad=1e-2"),
    ("1e-5, 250 ms", "errors.ber=1e-5 radio.delay=250ms radio.duplex=full"),
    (
        "5 % lost, 250 ms",
        "errors.model=packet-loss errors.p=0.05 radio.delay=250ms radio.duplex=full",
    ),
];

/// Frames of the stations.
#[derive(Default)]
struct FrameCounts {
    frames: [u64; 2],
}

impl Sink for FrameCounts {
    fn interest(&self) -> Interest {
        Interest::METRICS
    }
    fn event(&mut self, event: &Event) {
        if let EventKind::Air(air) = &event.kind {
            self.frames[air.station.index()] += 1;
        }
    }
}

/// For each seed: throughput in KB/s, and the frames of the mobile host per frame of the base station.
fn runs(layer: &str, channel: &str, seeds: u64) -> Vec<(f64, f64)> {
    let text = example("tulip").unwrap().text;
    let text = text.split("[vary]").next().unwrap();
    // Keys of bit errors are removed for another model.
    let text = match channel.contains("model=") {
        true => text.replace("errors = { model = \"bit-errors\", ber = 1e-5 }\n", ""),
        false => text.to_owned(),
    };
    // TULIP needs a setting on a full-duplex hop.
    let full_duplex = match (layer, channel.contains("duplex=full")) {
        ("link-layer=tulip", true) => " tulip.pacing=full-duplex tulip.window=32",
        _ => "",
    };
    let set = format!("{layer}{full_duplex} {channel} horizon=120s");
    let set: Vec<&str> = set.split(' ').collect();
    let scenario = scenario_with(&text, &set);
    let one = |seed| {
        let mut seen = FrameCounts::default();
        let end = run(&scenario, seed, &mut seen);
        let bytes: u64 = end.transfers.iter().map(|transfer| transfer.delivered).sum();
        let [base, mobile] = seen.frames.map(|frames| frames as f64);
        (bytes as f64 / end.at.as_secs_f64() / 1024.0, mobile / base)
    };
    (1..=seeds).map(one).collect()
}

fn means(runs: &[(f64, f64)]) -> (f64, f64) {
    let mean = |of: fn(&(f64, f64)) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
    (mean(|run| run.0), mean(|run| run.1))
}

#[test]
fn codes_carry_airmail_where_retransmission_alone_does_not() {
    let rate =
        |layer: usize, channel: usize| means(&runs(LAYERS[layer].1, CHANNELS[channel].1, 3)).0;
    // One in ten frames of 1,400 bytes arrives at 2e-4.
    let [ll, tulip, airmail, uncoded] = [1, 3, 4, 6].map(|layer| rate(layer, 3));
    assert!(airmail > 2.0 * ll.max(tulip), "{airmail} {ll} {tulip}");
    assert!(airmail > 2.0 * uncoded, "{airmail} {uncoded}");
    // Over a long hop with a window per round trip, parity packets save rounds.
    let [airmail, bytes] = [4, 5].map(|layer| rate(layer, 6));
    assert!(airmail > 1.1 * bytes, "{airmail} {bytes}");
}

#[test]
fn the_mobile_host_acknowledges_less_often_than_under_tulip() {
    let frames = |layer: usize| means(&runs(LAYERS[layer].1, CHANNELS[0].1, 2)).1;
    let (tulip, airmail) = (frames(3), frames(4));
    assert!(airmail < tulip, "{airmail} {tulip}");
}
