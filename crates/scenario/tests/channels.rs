//! Channels that scenario files can ask for.

use lasthop_proto::channel::{
    ErrorModel, Kinds, Modulation, Rayleigh, Traffic, TwoState, TwoStateBits,
};
use lasthop_scenario::{ErrorSpec, StageKind, parse};

/// The errors towards the right and towards the left of a radio of 1 Mbit/s.
fn errors(table: &str) -> [Option<ErrorSpec>; 2] {
    let text = format!(
        "transfer = {{ from = \"fixed\", to = \"mobile\", bytes = \"1MB\" }}\n[host.fixed]\n[host.mobile]\n[[path]]\n\
         radio = {{ rate = \"1mbit\" }}\nerrors = {{ {table} }}\n"
    );
    let plan = parse(&text, "test", &[]).expect("no fault").0;
    match &plan.cells[0].scenario.path[0].kind {
        StageKind::Radio(radio) => [radio.errors_right.clone(), radio.errors_left.clone()],
        _ => panic!("a radio"),
    }
}

const WALK: &str = "model = \"two-state\", speed = \"2km/h\", carrier = \"2.4GHz\", margin = \"10dB\", \
                    ber-good = 1e-6, ber-bad = \"50%\"";

#[test]
fn a_walker_has_the_periods_of_the_formulas() {
    let [right, left] = errors(WALK);
    assert_eq!(right, left);
    let spec = right.unwrap();
    assert!(spec.reciprocal && !spec.tell_turns && spec.only.is_all());
    let ErrorModel::TwoState(TwoState { good, bad, ber_bad, deterministic: false, .. }) =
        spec.model
    else {
        panic!("{spec:?}");
    };
    // fd = 4.4475 Hz, rho = 10^-0.5: see the formulas in the channel's own test.
    assert_eq!((good.0 / 100_000, bad.0 / 100_000), (2836, 298));
    assert_eq!(ber_bad.get(), 0.5);
}

#[test]
fn a_bit_clocked_channel_uses_the_radio_rate() {
    let spec = errors(&format!("{WALK}, clock = \"bits\"")).map(Option::unwrap)[0].clone();
    assert!(!spec.reciprocal);
    let ErrorModel::TwoStateBits(TwoStateBits { good_bits, bad_bits, .. }) = spec.model else {
        panic!("{spec:?}");
    };
    assert_eq!((good_bits / 100, bad_bits / 100), (2836, 298));
}

#[test]
fn rayleigh_has_its_defaults() {
    let [right, _] =
        errors("model = \"rayleigh\", speed = \"1m/s\", carrier = \"900MHz\", snr = \"20dB\"");
    let spec = right.unwrap();
    assert!(spec.reciprocal);
    assert!(matches!(
        spec.model,
        ErrorModel::Rayleigh(Rayleigh { modulation: Modulation::Dbpsk, .. })
    ));
}

#[test]
fn traffic_kinds_restrict_the_losses_of_a_direction() {
    let bursts = "model = \"packet-bursts\", packets = 4, mean = \"64KiB\", spacing = \"uniform\"";
    let [right, left] = errors(&format!("{bursts}, on = \"data\", only = \"data\""));
    assert_eq!(right.unwrap().only, Kinds::NONE.with(Traffic::Data));
    assert!(left.is_none());
    let [right, left] = errors(&format!("{bursts}, only = [\"data\", \"control\", \"link-ack\"]"));
    assert_eq!(right, left);
    assert!(!right.unwrap().only.has(Traffic::Ack));
}

#[test]
fn default_error_options_are_not_serialized() {
    let [right, _] = errors("model = \"bit-errors\", ber = 1e-5");
    let written = serde_json::to_string(&right).unwrap();
    assert_eq!(written, r#"{"model":{"model":"bit-errors","ber":0.00001}}"#);
    let [right, _] = errors(&format!("{WALK}, tell-turns = true, only = \"data\""));
    let written = serde_json::to_string(&right).unwrap();
    for word in [r#""tell_turns":true"#, r#""reciprocal":true"#, r#""only":["data"]"#] {
        assert!(written.contains(word), "{written}");
    }
}
