//! ACKs that snoop forwards to the sender, hides or changes, and its reaction to the receiver's window.

use lasthop_proto::agent::{DupAcks, SnoopConfig};

use crate::script::check;
use crate::snoop::{config, snoop};

/// A partial acknowledgement comes from a later base station, not from the receiver: it is no duplicate here.
#[test]
fn partial_acknowledgements_of_another_base_station_pass_and_say_nothing() {
    check(
        &snoop(config()),
        "
        0ms    fixed   1+1460
        1ms    fixed   1461+1460
        4ms    mobile  ack 1
        8ms    mobile  ack 1 partial
        9ms    mobile  ack 1 partial
        10ms   mobile  ack 1461 partial
        20ms   mobile  ack 2921
        5000ms end
        ",
    );
}

#[test]
fn blocks_behind_a_hole_that_it_repairs_are_hidden() {
    // A sender with SACK marks 2921 lost as soon as an ACK reports a later segment.
    check(
        &snoop(config()),
        "
        0ms    fixed   1+1460            # lost
        1ms    fixed   1461+1460
        2ms    fixed   2921+1460         # lost
        3ms    fixed   4381+1460
        4ms    mobile  ack 1
        16ms   mobile  ack 1 sack 1461-2921             => suppressed-dup-ack
        16ms   base    1+1460                           => local-dup-ack
        24ms   mobile  ack 1 sack 4381-5841 sack 1461-2921   => suppressed-dup-ack
        32ms   mobile  ack 2921 sack 4381-5841          => becomes ack 2921
        32ms   note    blocks-hidden
        33ms   fixed   7301+1460         # 5841 was lost before the base station
        33ms   note    congestion-hole
        40ms   mobile  ack 2921 sack 7301-8761 sack 4381-5841   => suppressed-dup-ack
        40ms   base    2921+1460                        => local-dup-ack
        48ms   mobile  ack 5841 sack 7301-8761          # the sender's matter
        50ms   mobile  ack 5841 sack 7301-8761
        60ms   fixed   5841+1460
        60ms   note    sender-retransmission
        70ms   mobile  ack 8761
        5000ms end
        ",
    );
}

#[test]
fn blocks_that_report_a_duplicate_stay() {
    check(
        &snoop(config()),
        "
        0ms    fixed   1+1460
        1ms    fixed   1461+1460         # lost
        2ms    fixed   2921+1460
        8ms    mobile  ack 1461
        9ms    mobile  ack 1461 sack 2921-4381          => suppressed-dup-ack
        9ms    base    1461+1460                        => local-dup-ack
        10ms   mobile  ack 1461 win 20000 sack 1-1461 sack 2921-4381  => becomes ack 1461 win 20000 sack 1-1461
        10ms   note    blocks-hidden
        20ms   mobile  ack 4381 win 20000
        5000ms end
        ",
    );
}

#[test]
fn with_duplicate_acks_let_through_blocks_stay() {
    check(
        &snoop(SnoopConfig { dup_acks: DupAcks::Pass, ..config() }),
        "
        0ms    fixed   1+1460            # lost
        1ms    fixed   1461+1460
        2ms    fixed   2921+1460         # lost
        3ms    fixed   4381+1460
        4ms    mobile  ack 1
        16ms   mobile  ack 1 sack 1461-2921
        16ms   base    1+1460                           => local-dup-ack
        32ms   mobile  ack 2921 sack 4381-5841
        33ms   mobile  ack 5841
        5000ms end
        ",
    );
}

#[test]
fn a_sender_that_missed_an_ack_gets_its_answer() {
    check(
        &snoop(config()),
        "
        0ms    fixed   1+1460
        8ms    mobile  ack 1461          # lost on its way to the sender
        20ms   fixed   1461+1460
        21ms   fixed   1+1460
        21ms   note    sender-retransmission
        28ms   mobile  ack 1461          # the receiver answers, not a sign of loss
        29ms   mobile  ack 2921
        5000ms end
        ",
    );
}

#[test]
fn old_acks_end_here_unless_they_carry_data() {
    check(
        &snoop(config()),
        "
        0ms    fixed   1+1460
        1ms    fixed   1461+1460
        8ms    mobile  ack 2921
        9ms    mobile  ack 1461          => spurious-ack
        10ms   mobile  1+100 ack 1461
        5000ms end
        ",
    );
}

#[test]
fn a_window_update_is_no_duplicate_ack() {
    check(
        &snoop(config()),
        "
        0ms    fixed   1+1460
        1ms    fixed   1461+1460
        8ms    mobile  ack 1461
        9ms    mobile  ack 1461 win 20000
        10ms   mobile  ack 2921 win 20000
        5000ms end
        ",
    );
}

/// ACKs can be reordered on a multiprocessor host. With equal numbers, the smaller window is the older one.
/// Linux counts such an ACK as a duplicate, but it does not indicate a loss.
#[test]
fn an_ack_that_was_overtaken_by_a_larger_window_is_hidden() {
    check(
        &snoop(config()),
        "
        0ms    fixed   1+1460
        1ms    fixed   1461+1460
        2ms    fixed   2921+1460
        3ms    fixed   4381+1460
        8ms    mobile  ack 1461
        9ms    mobile  ack 1461 win 20000
        10ms   mobile  ack 1461 win 18000   => suppressed-dup-ack
        10ms   mobile  ack 1461 win 20000   => suppressed-dup-ack
        10ms   base    1461+1460            => local-dup-ack
        11ms   mobile  ack 1461 win 20001
        12ms   mobile  ack 1461 win 20000   => suppressed-dup-ack
        13ms   mobile  ack 1461 win 0
        14ms   mobile  ack 1461 win 20000
        20ms   mobile  ack 5841 win 1000
        5000ms end
        ",
    );
}

#[test]
fn a_closed_window_stops_the_timers() {
    check(
        &snoop(config()),
        "
        0ms    fixed   1+1460
        8ms    mobile  ack 1461 win 0
        500ms  fixed   1461+1            # a window probe
        508ms  mobile  ack 1461 win 0
        3000ms mobile  ack 1461
        3100ms base    1461+1            => local-timeout
        3110ms mobile  ack 1462
        9000ms end
        ",
    );
}
