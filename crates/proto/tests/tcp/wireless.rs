//! Partial acknowledgements and explicit loss notifications at the end points.

use lasthop_proto::tcp::{AckpReaction, ElnMode, TcpConfig, Variant};

use crate::script::check;
use crate::{fine, sender};

fn ackp(ackp: AckpReaction) -> TcpConfig {
    TcpConfig { ackp, initial_window: 2, ..fine() }
}

#[test]
fn a_partial_ack_starts_the_timer_again() {
    //= west97#3.4
    check(
        &ackp(AckpReaction::Rearm),
        "
        10ms   established ackp /
        10ms   > . 1+1000 ack 1
        10ms   > . 1001+1000 ack 1
        500ms  < . ack 1001 partial
        500ms  note PartialAck
        500ms  tcb cwnd 2000 una 1      # nothing else is done
        1500ms note Timeout
        1500ms > . 1+1000 ack 1 => timeout-retransmit
        1600ms end
        ",
    );
}

#[test]
fn with_reaction_off_partial_acks_are_ignored() {
    check(
        &ackp(AckpReaction::Off),
        "
        10ms   established
        10ms   > . 1+1000 ack 1
        10ms   > . 1001+1000 ack 1
        500ms  < . ack 1001 partial
        1010ms note Timeout
        1010ms > . 1+1000 ack 1 => timeout-retransmit
        1100ms end
        ",
    );
}

#[test]
fn the_constant_reaction_is_twice_the_time_out_without_back_off() {
    //= west97#4.2
    check(
        &ackp(AckpReaction::Constant),
        "
        10ms   established ackp /
        # The first timeout is at 1010 ms and the next would be at 3010 ms.
        10ms   > . 1+1000 ack 1
        10ms   > . 1001+1000 ack 1
        1010ms note Timeout
        1010ms > . 1+1000 ack 1 => timeout-retransmit
        1500ms < . ack 1001 partial
        1500ms note PartialAck
        1600ms < . ack 1001 partial
        1600ms note PartialAck
        3600ms note Timeout
        3600ms > . 1+1000 ack 1 => timeout-retransmit
        3700ms end
        ",
    );
}

#[test]
fn the_exponential_reaction_doubles_for_each_in_a_row() {
    check(
        &ackp(AckpReaction::Exponential),
        "
        10ms   established ackp /
        10ms   > . 1+1000 ack 1
        10ms   > . 1001+1000 ack 1
        20ms   < . ack 1001 partial      # 2 s
        20ms   note PartialAck
        30ms   < . ack 2001 partial      # 4 s
        30ms   note PartialAck
        100ms  < . ack 1001      # a complete one starts the row anew
        100ms  > . 2001+1000 ack 1
        100ms  > . 3001+1000 ack 1
        200ms  < . ack 2001 partial      # 2 s
        200ms  note PartialAck
        2200ms note Timeout
        2200ms > . 1001+1000 ack 1 => timeout-retransmit
        2300ms end
        ",
    );
}

#[test]
fn no_round_trip_is_measured_over_a_local_retransmission() {
    // The ACK takes 1.79 s, which would be a sample without the rule.
    let script = |rto: &str| {
        format!(
            "
        10ms   established 2000 ackp /
        10ms   > . 1+1000 ack 1
        10ms   > P. 1001+1000 ack 1
        900ms  < . ack 1001 partial
        900ms  note PartialAck
        1800ms < . ack 1001
        1800ms > F. at 2001 ack 1
        1800ms tcb rto {rto}
        1900ms end
        "
        )
    };
    check(&TcpConfig { ackp_karn: true, ..ackp(AckpReaction::Rearm) }, &script("1s"));
    check(&ackp(AckpReaction::Rearm), &script("2.0275s"));
}

#[test]
fn a_partial_ack_of_nothing_outstanding_is_ignored() {
    check(
        &ackp(AckpReaction::Rearm),
        "
        10ms   established ackp /
        10ms   > . 1+1000 ack 1
        10ms   > . 1001+1000 ack 1
        500ms  < . ack 1 partial
        510ms  < . ack 9001 partial
        1010ms note Timeout
        1010ms > . 1+1000 ack 1 => timeout-retransmit
        1100ms end
        ",
    );
}

#[test]
fn a_loss_notification_is_answered_without_congestion_measures() {
    //= west97#2.3.3
    check(
        &TcpConfig { eln: ElnMode::Checksum, ..sender(Variant::Reno, 6) },
        "
        10ms   established eln
        10ms   > . 1+1000 x6 ack 1
        20ms   < . ack 1001
        20ms   > . 6001+1000 ack 1
        20ms   > . 7001+1000 ack 1
        21ms   < . ack 1001 lost 1001
        21ms   note LossNotified
        21ms   > . 1001+1000 ack 1 => eln-retransmit
        22ms   < . ack 1001      # of 2001 and so on: they tell of the same loss
        22ms   > . 8001+1000 ack 1
        23ms   < . ack 1001
        23ms   > . 9001+1000 ack 1
        24ms   < . ack 1001
        24ms   > . 10001+1000 ack 1
        24ms   tcb cwnd 7000 ssthresh 4294967295
        31ms   < . ack 6001
        31ms   > . 11001+1000 x3 ack 1
        31ms   tcb cwnd 8000
        40ms   end
        ",
    );
}

#[test]
fn without_consent_a_notification_is_a_duplicate_ack() {
    check(
        &TcpConfig { eln: ElnMode::Checksum, ..sender(Variant::Reno, 4) },
        "
        10ms   established eln /
        10ms   > . 1+1000 x4 ack 1
        21ms   < . ack 1 lost 1
        22ms   < . ack 1 lost 1
        23ms   < . ack 1 lost 1
        23ms   note FastRetransmit
        23ms   > . 1+1000 ack 1 => fast-retransmit
        23ms   > . 4001+1000 ack 1
        40ms   end
        ",
    );
}

#[test]
fn a_receiver_reports_damaged_segments() {
    check(
        &TcpConfig { eln: ElnMode::Checksum, ..fine() },
        "
        10ms   accepted eln
        20ms   < . 1+1000 ack 1 damaged
        20ms   > . ack 1 lost 1 => loss-notification
        30ms   < . 1001+1000 ack 1
        30ms   > . ack 1
        40ms   < . 2001+1000 ack 1 damaged
        40ms   > . ack 1 lost 2001 => loss-notification
        41ms   < . 90001+1000 ack 1 damaged      # not believed: outside the window
        42ms   < . at 2001 ack 1 damaged      # no data, no notification
        50ms   < . 1+1000 ack 1
        50ms   note Delivered { bytes: 2000 }
        50ms   > . ack 2001
        51ms   < . 1+1000 ack 1 damaged      # it is here already
        100ms  end
        ",
    );
}

#[test]
fn without_consent_a_damaged_segment_is_dropped_in_silence() {
    check(
        &TcpConfig { eln: ElnMode::Checksum, ..fine() },
        "
        10ms   accepted
        20ms   < . 1+1000 ack 1 damaged
        100ms  end
        ",
    );
}
