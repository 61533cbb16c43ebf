//! Negative acknowledgements of a base station, at the mobile sender (west97 2.6).

use lasthop_proto::tcp::{TcpConfig, Variant};

use crate::script::check;
use crate::sender;

const OPENING: &str = "
    10ms   established nack /
    10ms   > . 1+1000 x6 ack 1
";

fn after_opening(script: &str) {
    let tcp = TcpConfig { nack: true, ..sender(Variant::Reno, 6) };
    check(&tcp, &format!("{OPENING}{script}"));
}

#[test]
fn every_named_range_is_sent_again_and_the_window_stays() {
    after_opening(
        "
        20ms   < . ack 1 missing 1-1001 missing 2001-4001
        20ms   note LossNotified
        20ms   > . 1+1000 ack 1 => eln-retransmit
        20ms   > . 2001+1000 ack 1 => eln-retransmit
        20ms   > . 3001+1000 ack 1 => eln-retransmit
        20ms   tcb cwnd 6000 ssthresh 4294967295
        30ms   end
        ",
    );
}

#[test]
fn duplicate_acks_for_a_reported_range_start_no_recovery() {
    after_opening(
        "
        20ms   < . ack 1 missing 1-1001
        20ms   note LossNotified
        20ms   > . 1+1000 ack 1 => eln-retransmit
        21ms   < . ack 1
        21ms   > . 6001+1000 ack 1
        22ms   < . ack 1
        22ms   > . 7001+1000 ack 1
        23ms   < . ack 1
        23ms   > . 8001+1000 ack 1
        23ms   tcb cwnd 6000 ssthresh 4294967295
        30ms   end
        ",
    );
}

#[test]
fn reported_ranges_that_are_not_outstanding_are_ignored() {
    after_opening(
        "
        20ms   < . ack 3001
        20ms   > . 6001+1000 x4 ack 1
        21ms   < . ack 3001 missing 1-1001 missing 20001-21001 missing 5001-4001
        30ms   end
        ",
    );
}

#[test]
fn a_sender_that_did_not_offer_nacks_ignores_them() {
    check(
        &sender(Variant::Reno, 6),
        &format!(
            "{}
            20ms   < . ack 1 missing 1-1001
            30ms   end
            ",
            OPENING.replace(" nack", "")
        ),
    );
}

/// A sender with its own loss detection does not offer them, and unrequested ones do not postpone its timer.
#[test]
fn rack_senders_neither_offer_nacks_nor_delay_their_timer() {
    let tcp = TcpConfig { nack: true, sack: true, ..sender(Variant::Rack, 2) };
    for message in ["", "500ms  < . ack 1 missing 1-1001"] {
        check(
            &tcp,
            &format!(
                "
                10ms   established sackok
                10ms   > . 1+1000 x2 ack 1
                32ms   note TailLossProbe
                32ms   > . 2001+1000 ack 1
                {message}
                1032ms note Timeout
                1032ms > . 1+1000 ack 1 => timeout-retransmit
                1040ms end
                "
            ),
        );
    }
}
