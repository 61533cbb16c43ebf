//! Snoop: local retransmission and its timers. `snoop_acks.rs` tests the ACKs for the sender, `snoop_flows.rs` the flows.

use lasthop_proto::agent::{AgentConfig, SnoopAgent, SnoopConfig, TimeoutRule};
use lasthop_proto::units::Span;

use crate::script::check;

/// Local timeout 100 ms without a round-trip measurement, persist timer one second.
pub(crate) fn config() -> SnoopConfig {
    SnoopConfig {
        initial_timeout: Span::millis(100),
        persist: Span::secs(1),
        ..SnoopConfig::west97()
    }
}

pub(crate) fn snoop(config: SnoopConfig) -> AgentConfig {
    AgentConfig::Snoop(SnoopAgent { snoop: config, ackp: None })
}

#[test]
fn without_losses_it_only_forwards() {
    check(
        &snoop(config()),
        "
        0ms    fixed   syn
        1ms    mobile  syn ack 1
        2ms    fixed   at 1
        3ms    fixed   1+1460
        4ms    fixed   1461+1460
        10ms   mobile  at 1 ack 1461
        12ms   fixed   2921+500
        18ms   mobile  at 1 ack 2921
        20ms   mobile  at 1 ack 3421
        5000ms end
        ",
    );
}

#[test]
fn one_duplicate_ack_brings_a_local_retransmission_and_is_hidden() {
    check(
        &snoop(config()),
        "
        0ms    fixed   1+1460
        1ms    fixed   1461+1460         # lost on the wireless link
        2ms    fixed   2921+1460
        3ms    fixed   4381+1460
        8ms    mobile  ack 1461
        16ms   mobile  ack 1461          => suppressed-dup-ack
        16ms   base    1461+1460         => local-dup-ack
        24ms   mobile  ack 1461          => suppressed-dup-ack
        32ms   mobile  ack 5841
        5000ms end
        ",
    );
}

#[test]
fn the_snoop_of_parsa98_waits_for_the_second_duplicate_ack() {
    check(
        &snoop(SnoopConfig { dupacks: 2, ..config() }),
        "
        0ms    fixed   1+1460
        1ms    fixed   1461+1460         # lost
        2ms    fixed   2921+1460
        3ms    fixed   4381+1460
        8ms    mobile  ack 1461
        16ms   mobile  ack 1461          => suppressed-dup-ack
        24ms   mobile  ack 1461          => suppressed-dup-ack
        24ms   base    1461+1460         => local-dup-ack
        32ms   mobile  ack 5841
        5000ms end
        ",
    );
}

#[test]
fn more_duplicate_acks_than_expected_show_that_the_retransmission_was_lost() {
    check(
        &snoop(config()),
        "
        0ms    fixed   1+1460            # lost
        1ms    fixed   1461+1460
        2ms    fixed   2921+1460
        3ms    mobile  ack 1             # the ACK before, delayed
        8ms    mobile  ack 1             => suppressed-dup-ack
        8ms    base    1+1460            => local-dup-ack
        9ms    fixed   4381+1460         # behind the retransmission
        10ms   fixed   5841+1460
        16ms   mobile  ack 1             => suppressed-dup-ack   # of 2921, still expected
        24ms   mobile  ack 1             => suppressed-dup-ack   # of 4381: one too many
        24ms   base    1+1460            => local-dup-ack
        32ms   mobile  ack 1             => suppressed-dup-ack   # of 5841, expected again
        40ms   mobile  ack 7301
        5000ms end
        ",
    );
}

#[test]
fn losses_in_one_window_are_repaired_one_by_one() {
    // The published snoop infers nothing about 1461 from the ACK after the repair of 1: it waits for a
    // duplicate ACK, which requires a new packet, or for its timer.
    check(
        &snoop(config()),
        "
        0ms    fixed   1+1460            # lost
        1ms    fixed   1461+1460         # lost
        2ms    fixed   2921+1460
        3ms    mobile  ack 1
        8ms    mobile  ack 1             => suppressed-dup-ack
        8ms    base    1+1460            => local-dup-ack
        16ms   mobile  ack 1461
        20ms   fixed   4381+1460
        28ms   mobile  ack 1461          => suppressed-dup-ack
        28ms   base    1461+1460         => local-dup-ack
        36ms   mobile  ack 5841
        5000ms end
        ",
    );
}

#[test]
fn the_burst_check_repeats_the_packet_after_a_repaired_one() {
    let config = SnoopConfig { burst_check: true, ..config() };
    check(
        &snoop(config.clone()),
        "
        0ms    fixed   1+1460            # lost
        1ms    fixed   1461+1460         # lost
        2ms    fixed   2921+1460
        3ms    mobile  ack 1
        8ms    mobile  ack 1             => suppressed-dup-ack
        8ms    base    1+1460            => local-dup-ack
        16ms   mobile  ack 1461
        16ms   base    1461+1460         => local-burst-check
        24ms   mobile  ack 4381
        5000ms end
        ",
    );
    // An ACK of more than the repaired packet shows that the next one arrived: the losses are not successive.
    check(
        &snoop(config),
        "
        0ms    fixed   1+1460            # lost
        1ms    fixed   1461+1460
        2ms    fixed   2921+1460         # lost
        3ms    fixed   4381+1460
        4ms    mobile  ack 1
        8ms    mobile  ack 1             => suppressed-dup-ack
        8ms    base    1+1460            => local-dup-ack
        16ms   mobile  ack 2921
        24ms   fixed   5841+1460
        32ms   mobile  ack 2921          => suppressed-dup-ack
        32ms   base    2921+1460         => local-dup-ack
        40ms   mobile  ack 7301
        5000ms end
        ",
    );
}

#[test]
fn the_local_timer_retransmits_until_an_ack_comes() {
    check(
        &snoop(config()),
        "
        0ms    fixed   1+1460
        100ms  base    1+1460            => local-timeout
        200ms  base    1+1460            => local-timeout
        300ms  base    1+1460            => local-timeout
        310ms  mobile  ack 1461
        9000ms end
        ",
    );
}

#[test]
fn the_left_edge_restarts_the_local_timer() {
    check(
        &snoop(config()),
        "
        0ms    fixed   1+1460
        1ms    fixed   1461+1460         # lost
        20ms   mobile  ack 1461          # round trip 20 ms, so the floor of 100 ms holds
        120ms  base    1461+1460         => local-timeout
        130ms  mobile  ack 2921
        5000ms end
        ",
    );
}

#[test]
fn with_the_rtt_fault_a_recovery_counts_as_a_round_trip() {
    // The second timed packet is 4381; its ACK waits 290 ms until the hole before it is filled. parsa98 5.2:
    // with many such losses the estimate grows until only the persist timer retransmits.
    let script = "
        0ms    fixed   1+1460
        1ms    fixed   1461+1460         # lost
        2ms    fixed   2921+1460
        20ms   mobile  ack 1461
        21ms   fixed   4381+1460
        120ms  base    1461+1460         => local-timeout
        220ms  base    1461+1460         => local-timeout
        311ms  mobile  ack 5841
        312ms  fixed   5841+1460         # lost
        ";
    let config = SnoopConfig { timeout: TimeoutRule::TwiceSrtt, ..config() };
    let repaired = "
        412ms  base    5841+1460         => local-timeout
        430ms  mobile  ack 7301
        5000ms end
        ";
    check(&snoop(config.clone()), &format!("{script}{repaired}"));
    // Twice (7/8 of 20 ms + 1/8 of 290 ms) is more than the floor of 100 ms.
    let faulty = "
        419500us base  5841+1460         => local-timeout
        430ms  mobile  ack 7301
        5000ms end
        ";
    check(&snoop(SnoopConfig { rtt_fault: true, ..config }), &format!("{script}{faulty}"));
}

#[test]
fn the_persist_timer_waits_for_a_round_trip() {
    // The first round trip is longer than the persist timer, so later 200 ms of silence do not trigger it.
    let config = SnoopConfig { timeout: TimeoutRule::TwiceSrtt, ..SnoopConfig::west97() };
    check(
        &snoop(config),
        "
        0ms    fixed   1+1460
        200ms  base    1+1460            => local-persist
        300ms  mobile  ack 1461          # no sample, but a bound of 300 ms
        301ms  fixed   1461+1460
        600ms  mobile  ack 2921
        5000ms end
        ",
    );
}

#[test]
fn a_silent_flow_is_prodded_by_the_persist_timer() {
    check(
        &snoop(SnoopConfig { initial_timeout: Span::secs(10), max_retransmits: 3, ..config() }),
        "
        0ms    fixed   1+1460
        1000ms base    1+1460            => local-persist
        2000ms base    1+1460            => local-persist
        3000ms base    1+1460            => local-persist
        60000ms end                      # then it is up to the sender
        60000ms fixed  1+1460
        60000ms note   sender-retransmission
        61000ms base   1+1460            => local-persist
        61001ms mobile ack 1461
        90000ms end
        ",
    );
}

/// The limit is that of the packet that is retransmitted, not of one before it that a SACK block has reported.
#[test]
fn a_packet_behind_a_reported_one_has_a_limit_too() {
    let limits = SnoopConfig { initial_timeout: Span::secs(10), max_retransmits: 2, ..config() };
    check(
        &snoop(SnoopConfig { selective: true, hide_blocks: false, ..limits }),
        "
        0ms    fixed   1+1460
        0ms    fixed   1461+1460
        10ms   mobile  ack 1 sack 1-1461
        1010ms base    1461+1460         => local-persist
        2010ms base    1461+1460         => local-persist
        60000ms end
        ",
    );
}

#[test]
fn a_congestive_loss_is_left_to_the_sender() {
    check(
        &snoop(config()),
        "
        0ms    fixed   1+1460
        2ms    fixed   2921+1460         # 1461 was lost before the base station
        2ms    note    congestion-hole
        3ms    fixed   4381+1460
        8ms    mobile  ack 1461
        16ms   mobile  ack 1461
        24ms   mobile  ack 1461
        30ms   fixed   1461+1460         # the sender's fast retransmission
        30ms   note    sender-retransmission
        31ms   mobile  ack 1461          # expected by the sender
        38ms   mobile  ack 5841
        5000ms end
        ",
    );
}

#[test]
fn a_retransmission_of_the_sender_is_not_hidden_from_it() {
    check(
        &snoop(config()),
        "
        0ms    fixed   1+1460            # lost
        1ms    fixed   1461+1460
        3ms    mobile  ack 1
        50ms   fixed   1+1460
        50ms   note    sender-retransmission
        51ms   mobile  ack 1
        # The timer started anew with the retransmission.
        150ms  base    1+1460            => local-timeout
        160ms  mobile  ack 2921
        5000ms end
        ",
    );
}

#[test]
fn with_priority_a_lost_retransmission_is_left_to_the_timer() {
    // Six duplicate ACKs, one for each packet after the hole: the retransmission has overtaken some of them.
    let script = |last: &str| {
        format!(
            "
            0ms    fixed   1+1460
            1ms    fixed   1461+1460         # lost
            2ms    fixed   2921+1460
            3ms    fixed   4381+1460
            8ms    mobile  ack 1461
            16ms   mobile  ack 1461          => suppressed-dup-ack
            16ms   base    1461+1460         => local-dup-ack
            24ms   mobile  ack 1461          => suppressed-dup-ack
            32ms   mobile  ack 1461          => suppressed-dup-ack
            {last}
            "
        )
    };
    let at_once = "32ms base 1461+1460 => local-dup-ack\n 40ms mobile ack 5841\n 5000ms end";
    check(&snoop(config()), &script(at_once));
    let by_timer = "116ms base 1461+1460 => local-timeout\n 124ms mobile ack 5841\n 5000ms end";
    check(&snoop(SnoopConfig { priority: true, ..config() }), &script(by_timer));
}

/// The sender fills two holes before the base station: later segments have arrived and are not retransmitted,
/// neither by the local timer nor by the persist timer.
#[test]
fn timers_do_not_repeat_segments_behind_an_upstream_hole() {
    check(
        &snoop(config()),
        "
        0ms    fixed   1+1460
        1ms    fixed   2921+1460         # 1461 was lost before the base station
        1ms    note    congestion-hole
        2ms    fixed   4381+1460
        8ms    mobile  ack 1461
        9ms    mobile  ack 1461
        10ms   mobile  ack 1461
        5000ms fixed   1461+1460
        5000ms note    sender-retransmission
        5100ms base    1461+1460         => local-timeout
        5110ms mobile  ack 5841
        9000ms end
        ",
    );
}

/// Before any ACK the receiver expects the first byte, if the SYN was seen.
#[test]
fn losing_the_first_segment_upstream_repeats_no_data() {
    check(
        &snoop(config()),
        "
        0ms    fixed   syn
        1ms    mobile  syn ack 1
        2ms    fixed   1461+1460
        2ms    note    congestion-hole
        5000ms end
        ",
    );
}

/// Data that others overtook on the way to the base station is no retransmission: its loss is repaired here.
#[test]
fn data_that_was_overtaken_before_the_base_station_is_repaired() {
    let script = |arrives: &str| {
        format!(
            "
        0ms    fixed   1+1460
        2ms    fixed   2921+1460         # has overtaken 1461
        2ms    note    congestion-hole
        3ms    fixed   4381+1460
        4ms    fixed   1461+1460
        5ms    fixed   5841+1460
        8ms    mobile  ack 1461
        16ms   mobile  ack 1461          => suppressed-dup-ack
        17ms   mobile  ack 1461          => suppressed-dup-ack
        {arrives}
        5000ms end
        "
        )
    };
    check(&snoop(config()), &script("18ms mobile ack 5841\n 19ms mobile ack 7301"));
    // The third duplicate was caused by data that followed it.
    let lost = "18ms mobile ack 1461 => suppressed-dup-ack
        18ms base 1461+1460 => local-dup-ack
        28ms mobile ack 7301";
    check(&snoop(config()), &script(lost));
}
