//! SMART: ACKs identify the segment that caused them.

use lasthop_proto::tcp::{TcpConfig, Variant};

use crate::script::check;
use crate::{falls_back_without_consent, fine, sender};

fn smart(segments: u32) -> TcpConfig {
    TcpConfig { smart: true, ..sender(Variant::Smart, segments) }
}

const OPENING: &str = "
    10ms   established smart
    10ms   > . 1+1000 x8 ack 1
";

fn after_opening(config: &TcpConfig, script: &str) {
    check(config, &format!("{OPENING}{script}"));
}

#[test]
fn the_first_report_above_a_hole_repairs_it() {
    after_opening(
        &smart(8),
        "
        20ms   < . ack 1 caused 1001
        20ms   note FastRetransmit
        20ms   > . 1+1000 ack 1 => fast-retransmit
        20ms   tcb cwnd 4000 ssthresh 4000
        # In the network: six and the retransmission. Each report takes one out.
        21ms   < . ack 1 caused 2001
        22ms   < . ack 1 caused 3001
        23ms   < . ack 1 caused 4001
        24ms   < . ack 1 caused 5001
        24ms   > . 8001+1000 ack 1      # the clock goes on
        25ms   < . ack 1 caused 6001
        25ms   > . 9001+1000 ack 1
        26ms   < . ack 1 caused 7001
        26ms   > . 10001+1000 ack 1
        30ms   < . ack 8001 caused 1
        30ms   note RecoveryEnded
        30ms   > . 11001+1000 ack 1
        30ms   tcb cwnd 4000
        40ms   end
        ",
    );
}

#[test]
fn every_hole_of_a_window_is_repaired_once_and_the_window_halved_once() {
    after_opening(
        &smart(8),
        "
        20ms   < . ack 1 caused 1001
        20ms   note FastRetransmit
        20ms   > . 1+1000 ack 1 => fast-retransmit
        # 2001, 4001 and 5001 are lost as well.
        21ms   < . ack 1 caused 3001
        22ms   < . ack 1 caused 6001
        22ms   > . 2001+1000 ack 1 => fast-retransmit
        22ms   > . 4001+1000 ack 1 => fast-retransmit
        23ms   < . ack 1 caused 7001
        23ms   > . 5001+1000 ack 1 => fast-retransmit
        24ms   < . ack 1 caused 7001      # says nothing new
        30ms   < . ack 2001 caused 1
        30ms   > . 8001+1000 ack 1
        32ms   < . ack 4001 caused 2001
        32ms   > . 9001+1000 ack 1
        32ms   tcb cwnd 4000 ssthresh 4000
        34ms   < . ack 5001 caused 4001
        34ms   > . 10001+1000 ack 1
        35ms   < . ack 8001 caused 5001
        35ms   note RecoveryEnded
        35ms   > . 11001+1000 ack 1
        35ms   tcb cwnd 4000 ssthresh 4000
        40ms   end
        ",
    );
}

/// Both times the retransmission of the first segment is lost.
fn lost_again(repeat: bool, end: &str) {
    let script = "
        20ms   < . ack 1 caused 1001
        20ms   note FastRetransmit
        20ms   > . 1+1000 ack 1 => fast-retransmit
        21ms   < . ack 1 caused 2001
        22ms   < . ack 1 caused 3001
        23ms   < . ack 1 caused 4001
        24ms   < . ack 1 caused 5001
        24ms   > . 8001+1000 ack 1
        25ms   < . ack 1 caused 6001
        25ms   > . 9001+1000 ack 1
        26ms   < . ack 1 caused 7001
        26ms   > . 10001+1000 ack 1
        34ms   < . ack 1 caused 8001
    ";
    after_opening(&TcpConfig { smart_repeat: repeat, ..smart(8) }, &format!("{script}{end}"));
}

#[test]
fn a_lost_retransmission_needs_the_timer() {
    //= balakrishnan97#3.2: both the original and the first retransmission get lost: coarse timeouts
    lost_again(
        false,
        "
        34ms   > . 11001+1000 ack 1
        1020ms note Timeout
        1020ms > . 1+1000 ack 1 => timeout-retransmit
        1100ms end
        ",
    );
}

#[test]
fn with_repeat_later_data_reveals_a_lost_retransmission() {
    lost_again(
        true,
        "
        34ms   > . 1+1000 ack 1 => fast-retransmit
        34ms   > . 11001+1000 ack 1
        35ms   < . ack 1 caused 9001      # sent before the second retransmission
        35ms   > . 12001+1000 ack 1
        100ms  end
        ",
    );
}

#[test]
fn losses_of_the_next_window_halve_the_window_again() {
    after_opening(
        &smart(8),
        "
        20ms   < . ack 1 caused 1001
        20ms   note FastRetransmit
        20ms   > . 1+1000 ack 1 => fast-retransmit
        24ms   < . ack 1 caused 5001
        # 2001 to 4001 seem lost: their ACKs are. Needless, but nobody can know.
        24ms   > . 2001+1000 ack 1 => fast-retransmit
        26ms   < . ack 1 caused 7001
        26ms   > . 3001+1000 ack 1 => fast-retransmit
        26ms   > . 4001+1000 ack 1 => fast-retransmit
        30ms   < . ack 6001 caused 1
        30ms   > . 6001+1000 ack 1 => fast-retransmit
        30ms   > . 8001+1000 x3 ack 1
        40ms   < . ack 6001 caused 9001      # 8001 is lost
        40ms   > . 8001+1000 ack 1 => fast-retransmit
        40ms   > . 11001+1000 ack 1
        41ms   < . ack 8001 caused 6001
        41ms   note FastRetransmit      # the hole is under way already
        41ms   tcb cwnd 2000 ssthresh 2000
        50ms   end
        ",
    );
}

#[test]
fn a_time_out_forgets_the_reports() {
    after_opening(
        &smart(8),
        "
        20ms   < . ack 1 caused 1001
        20ms   note FastRetransmit
        20ms   > . 1+1000 ack 1 => fast-retransmit
        1020ms note Timeout
        1020ms > . 1+1000 ack 1 => timeout-retransmit
        1030ms < . ack 2001 caused 1
        1030ms > . 2001+1000 ack 1 => timeout-retransmit
        1030ms > . 3001+1000 ack 1 => timeout-retransmit
        1040ms < . ack 2001 caused 3001      # belongs to the window that timed out
        1100ms end
        ",
    );
}

#[test]
fn hostile_reports_do_no_harm() {
    after_opening(
        &smart(8),
        "
        20ms   < . ack 1 caused 500      # the beginning of no segment
        21ms   < . ack 1 caused 90001      # never sent
        22ms   < . ack 1 caused 0
        23ms   < . ack 2001 caused 4294967295
        23ms   > . 8001+1000 x3 ack 1
        24ms   < . ack 2001 caused 1001      # acknowledged
        30ms   end
        ",
    );
}

#[test]
fn a_receiver_reports_the_segment_that_caused_each_ack() {
    check(
        &TcpConfig { smart: true, ..fine() },
        "
        10ms   accepted smart
        20ms   < . 1+1000 ack 1
        20ms   note Delivered { bytes: 1000 }
        21ms   < . 1001+1000 ack 1
        21ms   note Delivered { bytes: 1000 }
        21ms   > . ack 2001 caused 1001
        30ms   < . 3001+1000 ack 1
        30ms   > . ack 2001 caused 3001
        40ms   < . 4001+1000 ack 1
        40ms   > . ack 2001 caused 4001
        50ms   < . 2001+1000 ack 1
        50ms   note Delivered { bytes: 3000 }
        50ms   > . ack 5001 caused 2001
        60ms   < . 1+1000 ack 1      # was here already
        60ms   > . ack 5001 caused 1
        100ms  end
        ",
    );
}

#[test]
fn without_consent_it_falls_back() {
    let reports = ["caused 1001", "caused 2001", "caused 3001"];
    falls_back_without_consent(&smart(4), "smart", reports);
}
