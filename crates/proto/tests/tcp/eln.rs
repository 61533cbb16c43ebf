//! Marked ACKs: explicit loss notification in the two forms of balakrishnan97 3.1.2.

use lasthop_proto::tcp::{ElnMode, ElnReaction, TcpConfig, Variant};

use crate::script::check;
use crate::{fine, sender};

fn marks(eln_reaction: ElnReaction) -> TcpConfig {
    TcpConfig { eln: ElnMode::Checksum, eln_reaction, ..sender(Variant::Reno, 6) }
}

const OPENING: &str = "
    10ms   established marks / eln
    10ms   > . 1+1000 x6 ack 1
";

fn after_opening(reaction: ElnReaction, script: &str) {
    check(&marks(reaction), &format!("{OPENING}{script}"));
}

#[test]
fn the_third_marked_duplicate_repairs_and_the_window_stays() {
    after_opening(
        ElnReaction::ThirdDuplicate,
        "
        20ms   < . ack 1 marked
        21ms   < . ack 1 marked
        22ms   < . ack 1 marked
        22ms   note LossNotified
        22ms   > . 1+1000 ack 1 => eln-retransmit
        22ms   > . 6001+1000 x3 ack 1
        23ms   < . ack 1 marked
        23ms   > . 9001+1000 ack 1
        24ms   < . ack 1 marked
        24ms   > . 10001+1000 ack 1
        24ms   tcb cwnd 6000 ssthresh 4294967295
        30ms   < . ack 6001
        30ms   > . 11001+1000 ack 1
        30ms   > . 12001+1000 ack 1
        30ms   tcb cwnd 7000
        40ms   end
        ",
    );
}

#[test]
fn the_first_marked_duplicate_repairs() {
    after_opening(
        ElnReaction::FirstAck,
        "
        20ms   < . ack 1 marked
        20ms   note LossNotified
        20ms   > . 1+1000 ack 1 => eln-retransmit
        20ms   > . 6001+1000 ack 1
        21ms   < . ack 1 marked
        21ms   > . 7001+1000 ack 1
        22ms   < . ack 1 marked
        22ms   > . 8001+1000 ack 1
        22ms   tcb cwnd 6000 ssthresh 4294967295
        30ms   end
        ",
    );
}

#[test]
fn a_marked_ack_that_moves_the_left_edge_repairs() {
    after_opening(
        ElnReaction::FirstAck,
        "
        20ms   < . ack 1001 marked
        20ms   note LossNotified
        20ms   > . 1001+1000 ack 1 => eln-retransmit
        20ms   > . 6001+1000 ack 1
        20ms   > . 7001+1000 ack 1
        30ms   end
        ",
    );
}

#[test]
fn an_unmarked_loss_halves_the_window_as_ever() {
    for reaction in [ElnReaction::ThirdDuplicate, ElnReaction::FirstAck] {
        after_opening(
            reaction,
            "
            20ms   < . ack 1
            21ms   < . ack 1
            22ms   < . ack 1
            22ms   note FastRetransmit
            22ms   > . 1+1000 ack 1 => fast-retransmit
            22ms   tcb cwnd 6000 ssthresh 3000
            30ms   end
            ",
        );
    }
}

#[test]
fn a_lost_retransmission_needs_the_timer() {
    after_opening(
        ElnReaction::FirstAck,
        "
        20ms   < . ack 1 marked
        20ms   note LossNotified
        20ms   > . 1+1000 ack 1 => eln-retransmit
        20ms   > . 6001+1000 ack 1
        30ms   < . ack 1 marked
        30ms   > . 7001+1000 ack 1
        1020ms note Timeout
        1020ms > . 1+1000 ack 1 => timeout-retransmit
        1100ms end
        ",
    );
}

#[test]
fn marks_mode_ignores_named_losses_and_vice_versa() {
    after_opening(
        ElnReaction::FirstAck,
        "
        20ms   < . ack 1 lost 1
        30ms   end
        ",
    );
    check(
        &marks(ElnReaction::Named),
        "
        10ms   established 1000 eln
        10ms   > FP. 1+1000 ack 1
        20ms   < . ack 1 marked
        30ms   end
        ",
    );
}

#[test]
fn a_receiver_marks_acks_that_wait_for_damaged_segments() {
    check(
        &TcpConfig { eln: ElnMode::Checksum, ..fine() },
        "
        10ms   accepted eln / marks
        20ms   < . 1+1000 ack 1 damaged      # reports nothing by itself
        30ms   < . 1001+1000 ack 1
        30ms   > . ack 1 marked
        31ms   < . 2001+1000 ack 1 damaged
        32ms   < . 3001+1000 ack 1
        32ms   > . ack 1 marked
        # 4001 got lost on the way and never came.
        33ms   < . 5001+1000 ack 1
        33ms   > . ack 1 marked
        40ms   < . 1+1000 ack 1
        40ms   note Delivered { bytes: 2000 }
        40ms   > . ack 2001 marked
        50ms   < . 2001+1000 ack 1
        50ms   note Delivered { bytes: 2000 }
        50ms   > . ack 4001
        60ms   < . 90001+1000 ack 1 damaged      # not believed: outside the window
        61ms   < . 6001+1000 ack 1
        61ms   > . ack 4001
        100ms  end
        ",
    );
}
