//! Ayanoglu et al. 1995: AIRMAIL.

use lasthop_observe::metrics::RunMetrics;
use lasthop_proto::machine::Side;
use lasthop_report::number;

use super::setup::{built_in, rate};
use crate::table::table;
use crate::{Bench, Finding, Interrupted, Runs};

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
const TULIP: usize = 3;
const CODED: usize = 4;
const UNCODED: usize = 6;

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

/// Frames of the mobile host per frame of the base station; NaN without a link layer.
fn answers(m: &RunMetrics) -> f64 {
    let sent = |side: Side| -> f64 {
        let there = m.stages.iter().filter(|stage| stage.towards == Some(side));
        there.filter_map(|stage| stage.air).map(|air| air.sum(|count| count.frames as f64)).sum()
    };
    sent(Side::Left) / sent(Side::Right)
}

/// The runs of each link layer on a channel.
fn layers(bench: &mut Bench<'_>, channel: &str) -> Result<Vec<Runs>, Interrupted> {
    let text = built_in("tulip");
    // Keys of bit errors are removed for another model.
    let text = match channel.contains("model=") {
        true => text.replace("errors = { model = \"bit-errors\", ber = 1e-5 }\n", ""),
        false => text.to_owned(),
    };
    let set = |layer: &str| {
        // TULIP needs a setting on a full-duplex hop.
        let full_duplex = match layer == LAYERS[TULIP].1 && channel.contains("duplex=full") {
            true => " tulip.pacing=full-duplex tulip.window=32",
            false => "",
        };
        let all = format!("{layer}{full_duplex} {channel} horizon=120s");
        all.split(' ').map(str::to_owned).collect::<Vec<_>>()
    };
    let sets = LAYERS.map(|(_, layer)| set(layer));
    bench.each(&text, &sets, bench.seeds)
}

pub(super) fn airmail(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let head: String = CHANNELS.map(|(name, _)| format!(" | <{name}")).concat();
    let mut rows = table(
        "Mbit/s, and frames of the mobile host for each of the base station",
        &format!("<link layer{head}"),
    );
    rows.rows = LAYERS.map(|(name, _)| vec![name.to_owned()]).into();
    let mut all = Vec::new();
    for (channel, set) in CHANNELS {
        let of_channel = layers(bench, set)?;
        for ((cells, runs), (layer, _)) in rows.rows.iter_mut().zip(&of_channel).zip(LAYERS) {
            let (rate, frames) = (runs.summary(rate), runs.mean(answers));
            finding.measure(format!("{channel}, {layer}"), rate, "Mbit/s");
            let frames = if frames.is_nan() { String::new() } else { format!(", {frames:.2}") };
            cells.push(number::summary(&rate) + &frames);
        }
        all.push(of_channel);
    }
    finding.tables.push(rows);
    for channel in [0, 1] {
        let [tulip, own] = [TULIP, CODED].map(|layer| all[channel][layer].mean(answers));
        let quantity = format!(
            "{}: frames of the mobile host for each of the base station",
            CHANNELS[channel].0
        );
        finding.below(quantity, own, tulip);
    }
    let gain = |channel: usize, over: usize| {
        let of = |layer: usize| all[channel][layer].mean(rate);
        of(CODED) / of(over)
    };
    finding.above("BER 1e-6: rate with adaptive codes against none", gain(0, UNCODED), 0.98);
    finding.above("BER 2e-4: the same", gain(3, UNCODED), 2.0);
    finding.above("BER 2e-4: rate against TULIP, which has no codes", gain(3, TULIP), 2.0);
    finding.below(
        "1e-5, 250 ms: rate against TULIP, which does not wait for a window",
        gain(5, TULIP),
        1.0,
    );
    Ok(())
}
