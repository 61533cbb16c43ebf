//! The testbed in every variant, and each change compared with its absence.

use lasthop_observe::metrics::RunMetrics;
use lasthop_proto::tcp::config::{Prediction, Variant};

use super::cases::{
    BY_TIME, Case, Changes, FROM_TWO, MTUS, PREDICTED, RTS, SACK_OFF, SCALE_OFF, STAMPS_OFF, STOCK,
    USUAL, kbps, node,
};
use super::setup::TESTBED;
use crate::scenario;

/// Two simulated seconds of a case.
fn metrics(mtu: u32, parts: &[Changes]) -> RunMetrics {
    let case = Case::new(mtu, parts).with(&["horizon=2s"]);
    lasthop_sim::runs::measure(&scenario(TESTBED, case.changes()), 1).metrics
}

fn instructions(m: &RunMetrics, host: &str) -> f64 {
    node(m, host).unwrap().instructions
}

#[test]
fn the_testbed_is_a_scenario_in_every_variant() {
    for mtu in MTUS {
        for part in [STOCK, SACK_OFF, SCALE_OFF, STAMPS_OFF, PREDICTED, BY_TIME, RTS, FROM_TWO] {
            let scenario = scenario(TESTBED, Case::new(mtu, &[part]).changes());
            assert!(scenario.hosts.iter().all(|host| host.tcp.mss == mtu - 40));
            let sender = scenario.hosts.iter().find(|host| host.name == "sender").unwrap();
            assert_eq!(sender.tcp.variant == Variant::NewReno, part == SACK_OFF);
            assert_eq!(sender.tcp.timestamps, part != STAMPS_OFF);
            assert_eq!(sender.tcp.window_scale, part != SCALE_OFF);
            let before = sender.tcp.prediction == Prediction::BeforePaws;
            assert_eq!(before, part == PREDICTED);
            let window = sender.tcp.initial_window * (mtu - 52);
            assert_eq!(window < 32_767, part == FROM_TWO, "{mtu}: {window}");
        }
    }
}

#[test]
fn every_row_of_table_5_1_is_a_scenario_of_its_own() {
    let cases = super::interference::cases();
    for (i, case) in cases.iter().enumerate() {
        let transfers = scenario(TESTBED, case.changes()).transfers;
        assert_eq!(transfers.len(), 2);
        assert!(transfers[1].cross && !transfers[0].cross);
        assert!(cases[..i].iter().all(|other| other.changes() != case.changes()));
    }
}

/// Each change against its absence, same testbed and seed.
#[test]
fn each_change_has_its_claimed_effect() {
    let stock = metrics(USUAL, &[STOCK]);
    let work = |m: &RunMetrics| instructions(m, "sender") / m.sum(|f| f.delivered) as f64;
    // A disabled option costs no instructions per segment.
    let stamps_off = metrics(USUAL, &[STAMPS_OFF]);
    assert!(work(&stamps_off) < 0.99 * work(&stock));
    let predicted = metrics(USUAL, &[PREDICTED]);
    assert!(instructions(&predicted, "sender") < instructions(&stock, "sender"));
    assert_eq!(kbps(&predicted), kbps(&stock), "what is sent is the same");
    // A scale of 0 needs no shift, so only the option on the SYN differs.
    let unscaled = metrics(USUAL, &[SCALE_OFF]);
    assert!((work(&unscaled) / work(&stock) - 1.0).abs() < 1e-3);
    // Fewer ACKs leave more air time to the data.
    let by_time = metrics(USUAL, &[BY_TIME]);
    let acks = |m: &RunMetrics| {
        m.stages.iter().filter_map(|s| s.air).map(|air| air.acks.frames).sum::<u64>()
    };
    assert!(acks(&by_time) * 4 < acks(&stock));
    assert!(kbps(&by_time) > 1.1 * kbps(&stock));
    // RTS and CTS precede data, but not ACKs.
    let rts = metrics(USUAL, &[RTS]);
    let count = |m: &RunMetrics| {
        let air = m.stages.iter().filter_map(|s| s.air);
        air.fold((0, 0), |sum, air| (sum.0 + air.rts.frames, sum.1 + air.data.frames))
    };
    assert_eq!(count(&stock).0, 0);
    assert!(count(&rts).0 >= count(&rts).1 && count(&rts).0 * 10 < count(&rts).1 * 11);
    assert!(kbps(&rts) < kbps(&stock));
}

/// Without losses SACK is two options on the SYN; with losses it sends blocks.
#[test]
fn sack_costs_instructions_only_with_losses() {
    const LOSSY: Changes =
        &[r#"errors={ model = "two-state", good = "500ms", bad = "60ms", ber-bad = 0.01 }"#];
    let same = |parts: [&[Changes]; 2]| {
        let [on, off] = parts.map(|parts| metrics(USUAL, parts));
        assert_eq!(on.sum(|f| f.host_retransmissions()) > 0, parts[0].len() > 1);
        (instructions(&on, "receiver") - instructions(&off, "receiver")).abs() < 100.0
    };
    assert!(same([&[STOCK], &[SACK_OFF]]));
    assert!(!same([&[STOCK, LOSSY], &[SACK_OFF, LOSSY]]));
}

/// 5.8: at 10 m a packet is 33 ns later, without a measurable effect on the battery.
#[test]
fn distance_has_no_measurable_effect_on_throughput() {
    let (near, far) = (metrics(USUAL, &[STOCK]), metrics(USUAL, &[&["radio.delay=33ns"]]));
    assert!((kbps(&far) / kbps(&near) - 1.0).abs() < 0.01);
}
