//! Power saving of 802.11 in whole runs: effects on TCP and on a battery.

use lasthop_observe::metrics::RunMetrics;
use lasthop_scenario::example;

use crate::parsed::{metrics, scenario_with};

/// The first run of a built-in scenario with changes.
fn measured(name: &str, set: &[&str]) -> RunMetrics {
    let text = example(name).expect("it is built in").text;
    metrics(&scenario_with(text, set), 1)
}

fn scalar(metrics: &RunMetrics, name: &str) -> f64 {
    metrics.scalars().into_iter().find(|s| s.name == name).expect("it is measured").value
}

/// A reader of pages: each power saving mode saves energy and costs time, polls more of both than a timeout.
#[test]
fn sleeping_spares_energy_and_costs_time() {
    let of = |word: &str| measured("power-save", &[&format!("dcf.power-save={word}")]);
    let [off, polls, dynamic] = ["off", "ps-poll", "dynamic"].map(of);
    let time = |m: &RunMetrics| scalar(m, "short_time_mean");
    assert!(time(&off) < time(&dynamic) && time(&dynamic) < time(&polls));
    let radio = |m: &RunMetrics| m.energy[0].spent_j - m.energy[0].spent.base;
    assert!(radio(&polls) < radio(&dynamic) && radio(&dynamic) < 0.5 * radio(&off));
    assert_eq!(off.energy[0].doze_s, 0.0);
    assert!(polls.energy[0].doze_s > dynamic.energy[0].doze_s);
    // The same pages are read, one after the other, and none is lost.
    assert_eq!(scalar(&polls, "short_timeouts"), 0.0);
    assert!(polls.energy[0].received > 100_000);
}

/// A window per beacon: with polls a transfer advances with the beacons, and packets for the sleeping station wait for
/// them, as longer listen intervals show.
#[test]
fn a_transfer_goes_at_the_pace_of_the_beacons() {
    let of = |save: &str| {
        let save = format!("dcf.power-save={save}");
        let file = r#"transfer={from="server",to="laptop",bytes="500kB"}"#;
        measured("power-save", &[&save, file, "horizon=600s"])
    };
    let rate = |m: &RunMetrics| m.aggregate_throughput;
    let (off, one, five) = (of("off"), of("{beacon=\"100ms\"}"), of("{beacon=\"100ms\",listen=5}"));
    assert!(rate(&one) < 0.6 * rate(&off), "{} {}", rate(&one), rate(&off));
    assert!(rate(&five) < 0.6 * rate(&one), "{} {}", rate(&five), rate(&one));
    for metrics in [&off, &one, &five] {
        assert_eq!(metrics.energy[0].received, 500_000);
    }
}

/// A sender that sleeps between its ACKs receives them with the beacons.
#[test]
fn a_sender_waits_for_its_acks() {
    let of = |save: &str| {
        let file = r#"transfer={from="laptop",to="server",bytes="500kB"}"#;
        measured("power-save", &[&format!("dcf.power-save={save}"), file])
    };
    let (off, polls) = (of("off"), of("ps-poll"));
    assert!(polls.aggregate_throughput < 0.6 * off.aggregate_throughput);
    assert_eq!(polls.energy[0].sent, 500_000);
    let air = polls.stages.iter().find_map(|stage| stage.air.as_ref()).expect("a radio");
    assert!(air.sum(|counts| counts.missed as f64) == 0.0);
}
