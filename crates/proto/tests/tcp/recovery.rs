//! Growth of the congestion window, and the reaction of each variant to lost segments.

use lasthop_proto::tcp::{GrowthRule, Halving, TcpConfig, Variant};

use crate::script::check;
use crate::{fine, sender};

#[test]
fn slow_start_adds_a_segment_for_each_ack_and_avoidance_one_for_each_window() {
    check(
        &TcpConfig { initial_ssthresh: 3000, ..fine() },
        "
        10ms   established
        10ms   > . 1+1000 ack 1
        20ms   < . ack 1001
        20ms   > . 1001+1000 ack 1
        20ms   > . 2001+1000 ack 1
        30ms   < . ack 2001
        30ms   > . 3001+1000 ack 1
        30ms   > . 4001+1000 ack 1
        30ms   tcb cwnd 3000 ssthresh 3000
        31ms   < . ack 3001      # at the threshold still slow start
        31ms   > . 5001+1000 ack 1
        31ms   > . 6001+1000 ack 1
        31ms   tcb cwnd 4000
        40ms   < . ack 4001      # above it 1000 * 1000 / cwnd
        40ms   > . 7001+1000 ack 1
        40ms   tcb cwnd 4250
        41ms   < . ack 5001
        41ms   > . 8001+1000 ack 1
        41ms   tcb cwnd 4485
        60ms   end
        ",
    );
}

#[test]
fn the_growth_of_bsd_is_faster_by_an_eighth_of_a_segment() {
    check(
        &TcpConfig { initial_ssthresh: 1000, growth: GrowthRule::Bsd, initial_window: 2, ..fine() },
        "
        10ms   established
        10ms   > . 1+1000 ack 1
        10ms   > . 1001+1000 ack 1
        20ms   < . ack 1001
        20ms   > . 2001+1000 ack 1
        20ms   tcb cwnd 2625
        60ms   end
        ",
    );
}

#[test]
fn reno_repairs_one_loss_and_continues_at_half_window() {
    check(
        &sender(Variant::Reno, 8),
        "
        10ms   established
        # 1 is lost
        10ms   > . 1+1000 x8 ack 1
        21ms   < . ack 1
        22ms   < . ack 1
        23ms   < . ack 1
        23ms   note FastRetransmit
        23ms   > . 1+1000 ack 1 => fast-retransmit
        23ms   tcb cwnd 7000 ssthresh 4000
        24ms   < . ack 1
        25ms   < . ack 1
        25ms   > . 8001+1000 ack 1
        26ms   < . ack 1
        26ms   > . 9001+1000 ack 1
        27ms   < . ack 1
        27ms   > . 10001+1000 ack 1
        27ms   tcb cwnd 11000
        33ms   < . ack 8001
        33ms   note RecoveryEnded
        33ms   > . 11001+1000 ack 1
        33ms   tcb cwnd 4000 ssthresh 4000
        40ms   end
        ",
    );
}

#[test]
fn reno_leaves_recovery_at_the_partial_ack_of_two_losses() {
    check(
        &TcpConfig { halving: Halving::Window, ..sender(Variant::Reno, 8) },
        "
        10ms   established
        # 1 and 2001 are lost
        10ms   > . 1+1000 x8 ack 1
        21ms   < . ack 1
        22ms   < . ack 1
        23ms   < . ack 1
        23ms   note FastRetransmit
        23ms   > . 1+1000 ack 1 => fast-retransmit
        24ms   < . ack 1
        25ms   < . ack 1
        25ms   > . 8001+1000 ack 1
        26ms   < . ack 1
        26ms   > . 9001+1000 ack 1
        33ms   < . ack 2001      # the second loss; Reno knows nothing of it
        33ms   note RecoveryEnded
        33ms   tcb cwnd 4000 ssthresh 4000
        35ms   < . ack 2001
        36ms   < . ack 2001
        37ms   < . ack 2001      # of data sent in recovery: halves a second time
        37ms   note FastRetransmit
        37ms   > . 2001+1000 ack 1 => fast-retransmit
        37ms   tcb cwnd 5000 ssthresh 2000
        60ms   end
        ",
    );
}

#[test]
fn reno_waits_for_its_timer_after_three_losses() {
    check(
        &sender(Variant::Reno, 6),
        "
        10ms   established
        # 1, 1001 and 2001 are lost
        10ms   > . 1+1000 x6 ack 1
        23ms   < . ack 1
        24ms   < . ack 1
        25ms   < . ack 1
        25ms   note FastRetransmit
        25ms   > . 1+1000 ack 1 => fast-retransmit
        35ms   < . ack 1001      # six segments are in flight and three allowed
        35ms   note RecoveryEnded
        35ms   tcb cwnd 3000 ssthresh 3000
        1035ms note Timeout
        1035ms > . 1001+1000 ack 1 => timeout-retransmit
        1040ms tcb cwnd 1000 ssthresh 2000
        1045ms < . ack 2001
        1045ms > . 2001+1000 ack 1 => timeout-retransmit
        1045ms > . 3001+1000 ack 1 => timeout-retransmit
        1055ms < . ack 6001
        1055ms > . 6001+1000 x3 ack 1
        1060ms end
        ",
    );
}

#[test]
fn tahoe_starts_over_from_the_lost_segment() {
    check(
        &sender(Variant::Tahoe, 8),
        "
        10ms   established
        # 1 is lost
        10ms   > . 1+1000 x8 ack 1
        21ms   < . ack 1
        22ms   < . ack 1
        23ms   < . ack 1
        23ms   note FastRetransmit
        23ms   > . 1+1000 ack 1 => fast-retransmit
        23ms   tcb cwnd 1000 ssthresh 4000
        24ms   < . ack 1
        25ms   < . ack 1
        26ms   < . ack 1
        27ms   < . ack 1
        33ms   < . ack 8001
        33ms   > . 8001+1000 ack 1
        33ms   > . 9001+1000 ack 1
        33ms   tcb cwnd 2000 ssthresh 4000
        40ms   end
        ",
    );
}

#[test]
fn tahoe_does_not_take_the_echo_of_its_own_retransmissions_for_a_loss() {
    check(
        &sender(Variant::Tahoe, 8),
        "
        10ms   established
        # 1 and 1001 are lost
        10ms   > . 1+1000 x8 ack 1
        22ms   < . ack 1
        23ms   < . ack 1
        24ms   < . ack 1
        24ms   note FastRetransmit
        24ms   > . 1+1000 ack 1 => fast-retransmit
        34ms   < . ack 1001
        34ms   > . 1001+1000 ack 1 => fast-retransmit
        34ms   > . 2001+1000 ack 1 => fast-retransmit
        44ms   < . ack 8001      # 2001 had arrived
        44ms   > . 8001+1000 x3 ack 1
        45ms   < . ack 8001
        46ms   < . ack 8001
        47ms   < . ack 8001      # only an ACK above 8001 makes duplicates count again
        47ms   tcb cwnd 3000 ssthresh 4000
        60ms   end
        ",
    );
}

#[test]
fn newreno_stays_in_recovery_at_a_partial_ack() {
    check(
        &sender(Variant::NewReno, 8),
        "
        10ms   established
        # 1, 2001 and 4001 are lost
        10ms   > . 1+1000 x8 ack 1
        21ms   < . ack 1
        22ms   < . ack 1
        23ms   < . ack 1
        23ms   note FastRetransmit
        23ms   > . 1+1000 ack 1 => fast-retransmit
        24ms   < . ack 1
        25ms   < . ack 1
        25ms   > . 8001+1000 ack 1
        25ms   tcb cwnd 9000 ssthresh 4000
        33ms   < . ack 2001
        33ms   > . 2001+1000 ack 1 => fast-retransmit
        33ms   > . 9001+1000 ack 1
        33ms   tcb cwnd 8000      # less the 2000 acknowledged, plus one segment
        43ms   < . ack 4001
        43ms   > . 4001+1000 ack 1 => fast-retransmit
        43ms   > . 10001+1000 ack 1
        43ms   tcb cwnd 7000
        44ms   < . ack 4001
        44ms   > . 11001+1000 ack 1
        53ms   < . ack 8001      # everything sent before the loss
        53ms   note RecoveryEnded
        53ms   tcb cwnd 4000 ssthresh 4000
        60ms   end
        ",
    );
}

#[test]
fn newreno_gets_no_segment_back_for_a_partial_ack_of_less_than_one() {
    //= rfc6582#section-3.2: add back SMSS bytes if the partial ACK acknowledges at least one SMSS
    check(
        &sender(Variant::NewReno, 8),
        "
        10ms   established
        # 1 and 2001 are lost
        10ms   > . 1+1000 x8 ack 1
        21ms   < . ack 1
        22ms   < . ack 1
        23ms   < . ack 1
        23ms   note FastRetransmit
        23ms   > . 1+1000 ack 1 => fast-retransmit
        24ms   < . ack 1
        25ms   < . ack 1
        25ms   > . 8001+1000 ack 1
        25ms   tcb cwnd 9000 ssthresh 4000
        33ms   < . ack 501       # half a segment: deflated by that, and nothing new goes
        33ms   > . 501+1000 ack 1 => fast-retransmit
        33ms   tcb cwnd 8500
        34ms   end
        ",
    );
}

#[test]
fn newreno_after_a_time_out_waits_for_news_above_the_old_data() {
    //= rfc6582#section-4
    check(
        &sender(Variant::NewReno, 6),
        "
        10ms   established
        # 1, 1001 and the ACKs are lost
        10ms   > . 1+1000 x6 ack 1
        1010ms note Timeout
        1010ms > . 1+1000 ack 1 => timeout-retransmit
        1020ms < . ack 1001
        1020ms > . 1001+1000 ack 1 => timeout-retransmit
        1020ms > . 2001+1000 ack 1 => timeout-retransmit
        1030ms < . ack 6001
        1030ms > . 6001+1000 x3 ack 1
        1031ms < . ack 6001      # 2001 had arrived
        1032ms < . ack 6001
        1033ms < . ack 6001
        1034ms < . ack 7001
        1034ms > . 9001+1000 ack 1
        1034ms > . 10001+1000 ack 1
        1035ms < . ack 7001
        1036ms < . ack 7001
        1037ms < . ack 7001
        1037ms note FastRetransmit
        1037ms > . 7001+1000 ack 1 => fast-retransmit
        1037ms > . 11001+1000 ack 1
        1037ms tcb cwnd 5000 ssthresh 2000
        1040ms end
        ",
    );
}

#[test]
fn sack_fills_the_holes_that_are_reported() {
    check(
        &sender(Variant::Sack, 10),
        "
        10ms   established sackok
        # 1, 2001 and 4001 are lost
        10ms   > . 1+1000 x10 ack 1
        21ms   < . ack 1 sack 1001-2001
        23ms   < . ack 1 sack 3001-4001 sack 1001-2001
        25ms   < . ack 1 sack 5001-6001 sack 3001-4001 sack 1001-2001
        25ms   note FastRetransmit
        25ms   > . 1+1000 ack 1 => fast-retransmit
        25ms   tcb cwnd 5000 ssthresh 5000
        26ms   < . ack 1 sack 5001-7001 sack 3001-4001 sack 1001-2001
        27ms   < . ack 1 sack 5001-8001 sack 3001-4001 sack 1001-2001
        27ms   > . 2001+1000 ack 1 => fast-retransmit
        27ms   > . 4001+1000 ack 1 => fast-retransmit
        28ms   < . ack 1 sack 5001-9001 sack 3001-4001 sack 1001-2001
        28ms   > . 10001+1000 ack 1
        29ms   < . ack 1 sack 5001-10001 sack 3001-4001 sack 1001-2001
        29ms   > . 11001+1000 ack 1
        35ms   < . ack 2001 sack 5001-10001 sack 3001-4001
        35ms   > . 12001+1000 ack 1
        36ms   < . ack 4001 sack 5001-10001
        36ms   > . 13001+1000 ack 1
        37ms   < . ack 10001
        37ms   note RecoveryEnded
        37ms   > . 14001+1000 ack 1
        37ms   tcb cwnd 5000 ssthresh 5000
        45ms   end
        ",
    );
}

#[test]
fn sack_enters_recovery_on_reported_bytes_when_acks_are_lost() {
    //= rfc6675#section-4
    check(
        &sender(Variant::Sack, 6),
        "
        10ms   established sackok
        10ms   > . 1+1000 x6 ack 1
        25ms   < . ack 1 sack 1001-4001      # three segments in one report
        25ms   note FastRetransmit
        25ms   > . 1+1000 ack 1 => fast-retransmit
        40ms   end
        ",
    );
}

#[test]
fn with_sack_an_ack_without_news_is_no_duplicate() {
    check(
        &sender(Variant::Sack, 6),
        "
        10ms   established sackok
        10ms   > . 1+1000 x6 ack 1
        21ms   < . ack 1 sack 1001-2001
        22ms   < . ack 1 sack 1001-2001
        23ms   < . ack 1 sack 1001-2001
        24ms   < . ack 1
        40ms   end
        ",
    );
}

#[test]
fn sack_without_the_peers_consent_is_newreno() {
    check(
        &sender(Variant::Sack, 6),
        "
        10ms   established sackok /
        # 1 and 2001 are lost
        10ms   > . 1+1000 x6 ack 1
        21ms   < . ack 1
        22ms   < . ack 1
        23ms   < . ack 1
        23ms   note FastRetransmit
        23ms   > . 1+1000 ack 1 => fast-retransmit
        33ms   < . ack 2001
        33ms   > . 2001+1000 ack 1 => fast-retransmit
        33ms   > . 6001+1000 ack 1
        43ms   < . ack 6001
        43ms   note RecoveryEnded
        43ms   > . 7001+1000 ack 1
        60ms   end
        ",
    );
}

#[test]
fn limited_transmit_sends_new_data_for_two_duplicates() {
    //= rfc3042#section-2: a segment for each of them
    //= rfc5681#section-3.2: that data is not counted when the window is halved
    check(
        &TcpConfig { limited_transmit: true, ..sender(Variant::Reno, 4) },
        "
        10ms   established
        10ms   > . 1+1000 x4 ack 1
        21ms   < . ack 1
        21ms   > . 4001+1000 ack 1
        22ms   < . ack 1
        22ms   > . 5001+1000 ack 1
        23ms   < . ack 1
        23ms   note FastRetransmit
        23ms   > . 1+1000 ack 1 => fast-retransmit
        23ms   tcb cwnd 5000 ssthresh 2000
        33ms   < . ack 4001
        33ms   note RecoveryEnded
        60ms   end
        ",
    );
}

#[test]
fn bsd_halves_the_window_and_the_rfc_the_flight() {
    // Five of eight allowed segments are in flight.
    for (halving, ssthresh) in [(Halving::Window, 4000), (Halving::Flight, 2000)] {
        let config = TcpConfig { halving, ..sender(Variant::Reno, 8) };
        let script = format!(
            "
            10ms   established 5000
            10ms   > . 1+1000 x4 ack 1
            10ms   > FP. 4001+1000 ack 1
            21ms   < . ack 1
            22ms   < . ack 1
            23ms   < . ack 1
            23ms   note FastRetransmit
            23ms   > . 1+1000 ack 1 => fast-retransmit
            23ms   tcb ssthresh {ssthresh}
            60ms   end
            "
        );
        check(&config, &script);
    }
}

#[test]
fn other_acks_are_no_duplicates() {
    check(
        &sender(Variant::Reno, 6),
        "
        10ms   established
        10ms   > . 1+1000 x6 ack 1
        20ms   < . ack 1 win 31000      # another window
        21ms   < . ack 1 win 30000
        22ms   < . ack 1 win 29000
        23ms   < P. 1+100 ack 1 win 29000      # data
        23ms   note Delivered { bytes: 100 }
        24ms   < P. 101+100 ack 1 win 29000
        24ms   note Delivered { bytes: 100 }
        24ms   > . at 6001 ack 201 win 31800
        25ms   < P. 201+100 ack 1 win 29000
        25ms   note Delivered { bytes: 100 }
        60ms   end
        ",
    );
}
