//! Explicit congestion notification (RFC 3168): agreement, echo, reaction.

use lasthop_proto::tcp::{DelayedAck, TcpConfig, Variant};
use lasthop_proto::units::Span;

use crate::script::check;
use crate::{fine, sender};

fn ecn(config: TcpConfig) -> TcpConfig {
    TcpConfig { ecn: true, delayed_ack: DelayedAck { every: 1, timeout: Span::ZERO }, ..config }
}

//= rfc3168#section-6.1.2: the window is halved once for the marks of a window, and the peer is notified
#[test]
fn an_echo_halves_the_window_once_and_sets_cwr() {
    check(
        &ecn(sender(Variant::Reno, 8)),
        "
        0ms    open
        0ms    > SEW mss 1000
        10ms   < S.E ack 1 mss 1000
        10ms   note Established
        10ms   > . 1+1000 x8 ack 1 ect
        20ms   < .E ack 1001
        20ms   note CongestionEchoed
        20ms   tcb cwnd 3000 ssthresh 3000
        21ms   < .E ack 2001               # of the same window
        21ms   tcb cwnd 4000 ssthresh 3000
        22ms   < .E ack 5001
        22ms   > .W 8001+1000 ack 1 ect
        23ms   < . ack 6001                # the peer has seen CWR
        23ms   > . 9001+1000 ack 1 ect
        23ms   tcb ssthresh 3000
        30ms   end
        ",
    );
}

//= rfc3168#section-6.1.3: ECE goes with every ACK until CWR comes
#[test]
fn a_mark_is_echoed_until_the_sender_has_reduced_its_window() {
    check(
        &ecn(fine()),
        "
        0ms    < SEW mss 1000
        0ms    > S.E ack 1 mss 1000
        10ms   < . ack 1
        10ms   note Established
        20ms   < . 1+1000 ack 1
        20ms   note Delivered { bytes: 1000 }
        20ms   > . ack 1001
        21ms   < . 1001+1000 ack 1 ce
        21ms   note Delivered { bytes: 1000 }
        21ms   > .E ack 2001
        22ms   < . 2001+1000 ack 1
        22ms   note Delivered { bytes: 1000 }
        22ms   > .E ack 3001
        23ms   < .W 3001+1000 ack 1
        23ms   note Delivered { bytes: 1000 }
        23ms   > . ack 4001
        24ms   < .W 4001+1000 ack 1 ce     # marked again
        24ms   note Delivered { bytes: 1000 }
        24ms   > .E ack 5001
        30ms   end
        ",
    );
}

//= rfc3168#section-6.1.1: both ends must want it
#[test]
fn ecn_is_not_used_with_a_peer_without_it() {
    // The second one reflects unknown flags.
    for answer in ["S.", "S.EW"] {
        check(
            &ecn(fine()),
            &format!(
                "
                0ms    open 1000
                0ms    > SEW mss 1000
                10ms   < {answer} ack 1 mss 1000
                10ms   note Established
                10ms   > P. 1+1000 ack 1
                20ms   < .E ack 1001
                20ms   note Complete
                20ms   > F. at 1001 ack 1
                30ms   end
                "
            ),
        );
    }
}

//= rfc3168#section-6.1.1.1: a host may send the SYN again without ECN
#[test]
fn an_unanswered_syn_is_retransmitted_without_ecn() {
    check(
        &ecn(fine()),
        "
        0ms    open 1000
        0ms    > SEW mss 1000
        1000ms note Timeout
        1000ms > S mss 1000
        1010ms < S. ack 1 mss 1000
        1010ms note Established
        1010ms > P. 1+1000 ack 1
        1020ms end
        ",
    );
}

//= rfc3168#section-6.1.5: retransmitted data is not ECN-capable
#[test]
fn retransmissions_are_not_ecn_capable() {
    check(
        &ecn(sender(Variant::Reno, 1)),
        "
        0ms    open
        0ms    > SEW mss 1000
        10ms   < S.E ack 1 mss 1000
        10ms   note Established
        10ms   > . 1+1000 ack 1 ect
        1010ms note Timeout
        1010ms > . 1+1000 ack 1 => timeout-retransmit
        1020ms < . ack 1001
        1020ms > .W 1001+1000 ack 1 ect
        1020ms > . 2001+1000 ack 1 ect
        1030ms end
        ",
    );
}
