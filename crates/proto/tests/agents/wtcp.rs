//! WTCP: local repairs one at a time, and timestamps without the time at the base station.

use lasthop_proto::agent::{AgentConfig, WtcpAgent};
use lasthop_proto::units::Span;

use crate::script::check;

fn wtcp(config: WtcpAgent) -> AgentConfig {
    AgentConfig::Wtcp(config)
}

fn config() -> WtcpAgent {
    WtcpAgent {
        initial_timeout: Span::millis(100),
        min_timeout: Span::millis(50),
        ..WtcpAgent::default()
    }
}

/// The ACK for each retransmission shows the next loss.
#[test]
fn lost_packets_are_repaired_one_after_the_other() {
    check(
        &wtcp(config()),
        "
        0ms    fixed   1+1000            # lost
        1ms    fixed   1001+1000
        2ms    fixed   2001+1000         # lost
        3ms    fixed   3001+1000
        8ms    mobile  ack 1
        9ms    mobile  ack 1             => suppressed-dup-ack
        9ms    base    1+1000            => local-dup-ack
        10ms   mobile  ack 1             => suppressed-dup-ack
        18ms   mobile  ack 2001
        18ms   base    2001+1000         => local-dup-ack
        27ms   mobile  ack 4001
        5000ms end
        ",
    );
}

/// While the radio is silent one packet is tried; the others wait until an ACK arrives.
#[test]
fn after_a_local_timeout_packets_wait_for_an_ack() {
    check(
        &wtcp(WtcpAgent { hide_delay: false, ..config() }),
        "
        0ms    fixed   1+1000
        8ms    mobile  ack 1001
        10ms   fixed   1001+1000         # lost
        60ms   base    1001+1000         => local-timeout
        70ms   fixed   2001+1000         => waits
        80ms   fixed   3001+1000         => waits
        110ms  base    1001+1000         => local-timeout
        118ms  mobile  ack 2001
        118ms  base    2001+1000         => sent
        118ms  base    3001+1000         => sent
        120ms  fixed   4001+1000
        130ms  mobile  ack 5001
        5000ms end
        ",
    );
}

/// The ACK is too early for the retransmission, so the timeout was needless and no later packet is lost.
#[test]
fn a_needless_local_timeout_repeats_one_packet() {
    check(
        &wtcp(config()),
        "
        0ms    fixed   1+1000
        40ms   mobile  ack 1001          # 40 ms
        50ms   fixed   1001+1000
        51ms   fixed   2001+1000
        52ms   fixed   3001+1000
        170ms  base    1001+1000         => local-timeout
        175ms  mobile  ack 2001
        176ms  mobile  ack 3001
        177ms  mobile  ack 4001
        215ms  mobile  ack 4001
        5000ms end
        ",
    );
}

/// A packet that fills a gap between two that wait is sent between them.
#[test]
fn packets_wait_in_their_order() {
    check(
        &wtcp(config()),
        "
        0ms    fixed   1+1000
        8ms    mobile  ack 1001
        10ms   fixed   1001+1000         # lost
        60ms   base    1001+1000         => local-timeout
        70ms   fixed   2001+1000         => waits
        71ms   fixed   4001+1000         => waits
        71ms   note    congestion-hole
        72ms   fixed   3001+1000         => waits
        72ms   note    sender-retransmission
        80ms   mobile  ack 2001
        80ms   base    2001+1000         => sent
        80ms   base    3001+1000         => sent
        80ms   base    4001+1000         => sent
        90ms   mobile  ack 5001
        5000ms end
        ",
    );
}

/// The sender sees the round trip of a path without the loss. TSvals never decrease.
#[test]
fn the_time_at_the_base_station_is_added_to_timestamps() {
    check(
        &wtcp(config()),
        "
        0ms    fixed   1+1000 stamp 500
        8ms    mobile  ack 1001
        10ms   fixed   1001+1000 stamp 510   # lost
        60ms   base    1001+1000 stamp 560   => local-timeout
        62ms   fixed   2001+1000 stamp 562   => waits
        68ms   mobile  ack 2001
        68ms   base    2001+1000 stamp 568   => sent
        68ms   fixed   3001+1000 stamp 566   => becomes 3001+1000 stamp 568
        72ms   fixed   4001+1000 stamp 572
        90ms   mobile  ack 5001
        5000ms end
        ",
    );
}

#[test]
fn a_coarse_clock_gets_whole_units() {
    let timestamp_unit = Span::millis(40);
    check(
        &wtcp(WtcpAgent { timestamp_unit, ..config() }),
        "
        0ms    fixed   1+1000 stamp 7
        8ms    mobile  ack 1001
        10ms   fixed   1001+1000 stamp 7     # lost
        60ms   base    1001+1000 stamp 8     => local-timeout
        110ms  base    1001+1000 stamp 9     => local-timeout
        118ms  mobile  ack 2001
        5000ms end
        ",
    );
}

/// Losses before the base station, and losses that the sender repairs.
#[test]
fn other_losses_are_left_to_the_sender() {
    check(
        &wtcp(config()),
        "
        0ms    fixed   1+1000
        8ms    mobile  ack 1001
        11ms   fixed   2001+1000         # 1001 was lost before the base station
        11ms   note    congestion-hole
        19ms   mobile  ack 1001
        20ms   mobile  ack 1001
        40ms   fixed   1001+1000
        40ms   note    sender-retransmission
        41ms   mobile  ack 1001
        48ms   mobile  ack 3001
        50ms   fixed   1001+1000         # the ACK was lost
        50ms   note    sender-retransmission
        58ms   mobile  ack 3001
        5000ms end
        ",
    );
}

/// The sender retransmits a packet that waits: it does not wait any more.
#[test]
fn the_sender_can_take_over_and_attempts_are_bounded() {
    check(
        &wtcp(WtcpAgent { max_retransmits: 2, ..config() }),
        "
        0ms    fixed   1+1000
        8ms    mobile  ack 1001
        10ms   fixed   1001+1000
        60ms   base    1001+1000         => local-timeout
        70ms   fixed   2001+1000         => waits
        80ms   fixed   2001+1000
        80ms   note    sender-retransmission
        80ms   base    2001+1000         => sent
        110ms  base    1001+1000         => local-timeout
        5000ms mobile  ack 1001
        5001ms mobile  ack 3001
        9000ms end
        ",
    );
}
