//! Header prediction: lower cost, and identical behaviour.

use lasthop_proto::energy::Operation;
use lasthop_proto::event::Interest;
use lasthop_proto::tcp::{Host, Prediction, TcpConfig, Variant};
use lasthop_proto::wire::Damage;
use proptest::prelude::*;

use crate::fine;
use crate::script::check;
use crate::work::{Exchange, RECEIVER, SENDER, exchange, exchange_between, unharmed};

fn stamped(prediction: Prediction) -> TcpConfig {
    TcpConfig { prediction, timestamps: true, ..fine() }
}

fn bulk(tcp: &TcpConfig) -> Exchange {
    exchange([tcp, tcp], (1, 200_000), Interest::EVERYTHING.union(Interest::WORK), unharmed)
}

#[test]
fn nearly_all_of_a_bulk_transfer_is_predicted_at_both_ends() {
    for prediction in [Prediction::AfterPaws, Prediction::BeforePaws] {
        let x = bulk(&stamped(prediction));
        for host in [RECEIVER, SENDER] {
            let predicted = x.count(host, Operation::Predicted);
            // Only the handshake, the FINs, and the acknowledgement of the last window, which has the FIN,
            // remain.
            let most = if host == SENDER { 20 } else { 4 };
            let processed = x.count(host, Operation::Processed);
            assert!(processed <= most, "{host} {prediction:?} {processed} {predicted}");
            assert!(predicted > 80, "{predicted}");
        }
        let off = bulk(&stamped(Prediction::Off));
        assert_eq!(off.count(RECEIVER, Operation::Predicted), 0);
        assert_eq!(off.events, x.events);
    }
}

#[test]
fn predicting_before_paws_checks_only_unpredicted_segments() {
    let checks = |prediction| bulk(&stamped(prediction)).count(RECEIVER, Operation::Paws);
    assert!(checks(Prediction::AfterPaws) > 200);
    assert!(checks(Prediction::BeforePaws) <= 4, "{}", checks(Prediction::BeforePaws));
}

/// The receiver of two segments and of a third one with an older timestamp.
const OLD_DUPLICATE: &str = "
    0ms   < S mss 1000 ts 50 0
    0ms   > S. ack 1 mss 1000 ts 0 ECHO1
    10ms  < . ack 1 ts 60 0
    10ms  note Established
    20ms  < . 1+988 ack 1 ts 100 0
    20ms  note Delivered { bytes: 988 }
    21ms  < . 989+988 ack 1 ts 101 0
    21ms  note Delivered { bytes: 988 }
    21ms  > . ack 1977 ts 21 100
    30ms  < . 1977+988 ack 1 ts 7 0
";

fn script(tail: &str) -> String {
    format!("{}{tail}", OLD_DUPLICATE.replace("ECHO1", "50"))
}

#[test]
fn predicting_before_paws_accepts_an_old_left_edge_duplicate() {
    //= agarwal00#4.4: a segment from the past might arrive at exactly the wrong time
    let refused = script("30ms > . ack 1977 ts 30 100\n100ms end");
    check(&stamped(Prediction::Off), &refused);
    check(&stamped(Prediction::AfterPaws), &refused);
    let accepted = script("30ms note Delivered { bytes: 988 }\n100ms end");
    check(&stamped(Prediction::BeforePaws), &accepted);
}

#[test]
fn unpredicted_segments_are_still_checked_by_paws() {
    // The same old timestamp on a segment past the left edge, and on a segment with a FIN.
    for late in ["30ms < . 2965+988 ack 1 ts 7 0", "30ms < F. 1977+988 ack 1 ts 7 0"] {
        let script = script("").replace("    30ms  < . 1977+988 ack 1 ts 7 0", late);
        let refused = format!("{script}\n30ms > . ack 1977 ts 30 100\n100ms end");
        for prediction in [Prediction::Off, Prediction::AfterPaws, Prediction::BeforePaws] {
            check(&stamped(prediction), &refused);
        }
    }
}

/// A TCP of any variant.
fn tcps() -> impl Strategy<Value = TcpConfig> {
    let variants = [
        Variant::Tahoe,
        Variant::Reno,
        Variant::NewReno,
        Variant::Sack,
        Variant::Rack,
        Variant::Smart,
        Variant::Snack,
    ];
    let flags = prop::array::uniform5(any::<bool>());
    (prop::sample::select(variants.to_vec()), flags, 1u32..12, 1u32..4, any::<bool>()).prop_map(
        |(variant, [timestamps, ecn, dsack, limited_transmit, acc], initial_window, every, bsd)| {
            let base = if bsd { crate::bsd() } else { fine() };
            let mut tcp = TcpConfig {
                variant,
                timestamps,
                ecn,
                dsack,
                limited_transmit,
                initial_window,
                sack: matches!(variant, Variant::Sack | Variant::Rack),
                smart: variant == Variant::Smart,
                snack: variant == Variant::Snack,
                acc: acc.then(Default::default),
                ..base
            };
            tcp.delayed_ack.every = every;
            tcp
        },
    )
}

proptest! {
    #[test]
    fn prediction_changes_nothing(
        tcp in tcps(),
        streams in 1u32..4,
        bytes in 1u64..60_000,
        loss in 2u64..40,
        damage in any::<bool>(),
    ) {
        let run_between = |prediction, prepare: fn(&mut Host)| {
            let tcp = TcpConfig { prediction, ..tcp.clone() };
            let fate = |n: u64| match n % loss {
                0 if damage => Some(Damage::Tcp),
                0 => None,
                _ => Some(Damage::None),
            };
            let interest = Interest::EVERYTHING.union(Interest::WORK);
            exchange_between([&tcp, &tcp], prepare, (streams, bytes), interest, fate)
        };
        let run = |prediction| run_between(prediction, |_| ());
        let off = run_between(Prediction::Off, Host::take_no_short_cuts);
        let short = run(Prediction::Off);
        prop_assert_eq!(&off.events, &short.events);
        prop_assert_eq!(&off.work, &short.work);
        for prediction in [Prediction::AfterPaws, Prediction::BeforePaws] {
            let on = run(prediction);
            let differ = off.events.iter().zip(&on.events).find(|(a, b)| a != b);
            prop_assert!(differ.is_none(), "{:?}", differ);
            prop_assert_eq!(off.events.len(), on.events.len());
        }
    }
}
