//! SCPS-TP: SNACKs name the missing segments of a receiver.

use lasthop_proto::tcp::{LossCause, TcpConfig, Variant};

use crate::script::check;
use crate::{falls_back_without_consent, fine, sender};

/// A sender with a window of eight segments.
fn scps(loss_cause: LossCause) -> TcpConfig {
    TcpConfig { snack: true, loss_cause, ..sender(Variant::Snack, 8) }
}

const OPENING: &str = "
    10ms   established scps
    10ms   > . 1+1000 x8 ack 1
";

fn after_opening(loss_cause: LossCause, script: &str) {
    check(&scps(loss_cause), &format!("{OPENING}{script}"));
}

#[test]
fn two_corruption_losses_cost_one_rtt_and_no_window() {
    after_opening(
        LossCause::Corruption,
        "
        # 1 and 4001 are lost.
        20ms   < . ack 1 snack 0+1/1
        20ms   note FastRetransmit
        20ms   > . 1+1000 ack 1 => fast-retransmit
        20ms   > . 8001+1000 ack 1
        20ms   tcb cwnd 8000
        21ms   < . ack 1 snack 0+1/11
        21ms   > . 9001+1000 ack 1
        22ms   < . ack 1 snack 0+1/111
        22ms   > . 10001+1000 ack 1
        23ms   < . ack 1 snack 0+1/11101
        23ms   > . 4001+1000 ack 1 => fast-retransmit
        23ms   > . 11001+1000 ack 1
        24ms   < . ack 1 snack 0+1/111011
        24ms   > . 12001+1000 ack 1
        25ms   < . ack 1 snack 0+1/1110111
        25ms   > . 13001+1000 ack 1
        30ms   < . ack 4001 snack 0+1/111      # under way
        30ms   > . 14001+1000 ack 1
        30ms   > . 15001+1000 ack 1
        30ms   tcb cwnd 9000
        33ms   < . ack 8001
        33ms   note RecoveryEnded
        33ms   > . 16001+1000 ack 1
        33ms   > . 17001+1000 ack 1
        40ms   end
        ",
    );
}

#[test]
fn congestion_halves_the_window_once() {
    after_opening(
        LossCause::Congestion,
        "
        20ms   < . ack 1 snack 0+1/1
        20ms   note FastRetransmit
        20ms   > . 1+1000 ack 1 => fast-retransmit
        20ms   tcb cwnd 4000 ssthresh 4000
        21ms   < . ack 1 snack 0+1/11
        22ms   < . ack 1 snack 0+1/111
        23ms   < . ack 1 snack 0+1/11101
        23ms   > . 4001+1000 ack 1 => fast-retransmit
        24ms   < . ack 1 snack 0+1/111011
        24ms   > . 8001+1000 ack 1
        25ms   < . ack 1 snack 0+1/1110111
        25ms   > . 9001+1000 ack 1
        30ms   < . ack 4001 snack 0+1/111      # under way
        30ms   > . 10001+1000 ack 1
        33ms   < . ack 8001
        33ms   note RecoveryEnded
        33ms   > . 11001+1000 ack 1
        33ms   tcb cwnd 4000 ssthresh 4000
        40ms   end
        ",
    );
}

#[test]
fn one_report_names_several_holes() {
    after_opening(
        LossCause::Corruption,
        "
        # Only 3001 and 6001 have arrived; the hole at 7001 is not known yet.
        20ms   < . ack 1 snack 0+3/1001
        20ms   note FastRetransmit
        20ms   > . 1+1000 x3 ack 1 => fast-retransmit
        20ms   > . 4001+1000 ack 1 => fast-retransmit
        20ms   > . 5001+1000 ack 1 => fast-retransmit
        20ms   > . 8001+1000 ack 1
        20ms   > . 9001+1000 ack 1
        21ms   < . ack 1 snack 0+3/1001      # says nothing new
        # A hole that is not the first of all: nothing is said of what lies below.
        22ms   < . ack 1 snack 7+1/1
        22ms   > . 7001+1000 ack 1 => fast-retransmit
        22ms   > . 10001+1000 ack 1
        30ms   end
        ",
    );
}

#[test]
fn a_lost_retransmission_is_repaired_once_later_data_arrives() {
    after_opening(
        LossCause::Corruption,
        "
        20ms   < . ack 1 snack 0+1/1111111
        20ms   note FastRetransmit
        20ms   > . 1+1000 ack 1 => fast-retransmit      # lost again
        20ms   > . 8001+1000 x7 ack 1
        30ms   < . ack 1 snack 0+1/11111111
        30ms   > . 1+1000 ack 1 => fast-retransmit
        30ms   > . 15001+1000 ack 1
        31ms   < . ack 1 snack 0+1/111111111      # sent before the third time
        31ms   > . 16001+1000 ack 1
        40ms   end
        ",
    );
}

#[test]
fn without_a_further_report_the_timer_repairs_and_the_window_closes() {
    after_opening(
        LossCause::Corruption,
        "
        20ms   < . ack 1 snack 0+8
        20ms   note FastRetransmit
        20ms   > . 1+1000 x8 ack 1 => fast-retransmit
        1020ms note Timeout
        1020ms > . 1+1000 ack 1 => timeout-retransmit
        1020ms tcb cwnd 1000
        1100ms end
        ",
    );
}

#[test]
fn a_report_on_an_ack_for_new_data_counts_as_well() {
    after_opening(
        LossCause::Congestion,
        "
        20ms   < . ack 2001 snack 0+1/1
        20ms   note FastRetransmit
        20ms   > . 2001+1000 ack 1 => fast-retransmit
        20ms   tcb cwnd 3000 ssthresh 3000
        30ms   end
        ",
    );
}

#[test]
fn hostile_reports_do_no_harm() {
    after_opening(
        LossCause::Corruption,
        "
        20ms   < . ack 1 snack 8+1/1      # never sent
        21ms   < . ack 1 snack 65535+65535/1111111111111111
        22ms   < . ack 1 snack 0+0
        23ms   < . ack 1 snack 65535+0/01
        24ms   < . ack 1 snack 0+0/00000000      # nothing but padding
        # Everything is missing, and more than was sent.
        25ms   < . ack 7001 snack 0+65535/01
        25ms   note FastRetransmit
        25ms   > . 7001+1000 ack 1 => fast-retransmit
        25ms   > . 8001+1000 x8 ack 1
        26ms   < . ack 5001 snack 0+65535      # older than the left edge
        30ms   end
        ",
    );
}

#[test]
fn a_receiver_names_its_holes() {
    check(
        &TcpConfig { snack: true, ..fine() },
        "
        10ms   accepted scps
        20ms   < . 1001+1000 ack 1
        20ms   > . ack 1 snack 0+1/1
        21ms   < . 2001+1000 ack 1
        21ms   > . ack 1 snack 0+1/11
        22ms   < . 5001+1000 ack 1
        22ms   > . ack 1 snack 0+1/11001
        23ms   < . 7001+500 ack 1      # no whole unit
        23ms   > . ack 1 snack 0+1/11001
        24ms   < . 7501+700 ack 1      # a whole one and a part
        24ms   > . ack 1 snack 0+1/1100101
        30ms   < . 1+1000 ack 1
        30ms   note Delivered { bytes: 3000 }
        30ms   > . ack 3001 snack 0+2/101
        31ms   < . 3501+1500 ack 1
        31ms   > . ack 3001 snack 0+1/1101
        32ms   < . 3001+500 ack 1
        32ms   note Delivered { bytes: 3000 }
        32ms   > . ack 6001 snack 0+1/1
        40ms   end
        ",
    );
}

#[test]
fn the_bit_vector_ends_where_the_header_does() {
    let config = TcpConfig { snack: true, sack: true, timestamps: true, ..fine() };
    // Timestamps, two SACK blocks and the hole leave four bytes: 32 segments after it.
    check(
        &TcpConfig { recv_buffer: 64_000, ..config },
        "
        0ms    < S mss 1012 sackok ts 5 0 scps
        0ms    > S. ack 1 mss 1000 sackok ts 0 5 scps
        10ms   < . ack 1 ts 6 0
        10ms   note Established
        20ms   < . 989+988 ack 1 ts 7 0
        20ms   > . ack 1 ts 20 6 sack 989-1977 snack 0+1/1
        21ms   < . 32605+988 ack 1 ts 8 0      # the 33rd
        21ms   > . ack 1 ts 21 6 sack 32605-33593 sack 989-1977 snack 0+1/1
        22ms   < . 31617+988 ack 1 ts 9 0      # the 32nd
        22ms   > . ack 1 ts 22 6 sack 31617-33593 sack 989-1977 snack 0+1/10000000000000000000000000000001
        30ms   end
        ",
    );
}

#[test]
fn without_consent_it_falls_back() {
    let reports = ["snack 0+1/1", "snack 0+1/11", "snack 0+1/111"];
    falls_back_without_consent(
        &TcpConfig { initial_window: 4, ..scps(LossCause::Corruption) },
        "scps",
        reports,
    );
}
