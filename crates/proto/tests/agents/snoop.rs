//! Snoop, mechanism by mechanism.

use lasthop_proto::agent::{AgentConfig, DupAcks, SnoopAgent, SnoopConfig, TimeoutRule};
use lasthop_proto::units::{Bytes, Span};

use crate::script::check;

/// Local timeout 100 ms without a round-trip measurement, persist timer one second.
fn config() -> SnoopConfig {
    SnoopConfig {
        initial_timeout: Span::millis(100),
        persist: Span::secs(1),
        ..SnoopConfig::west97()
    }
}

fn snoop(config: SnoopConfig) -> AgentConfig {
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
fn losses_in_one_window_are_mended_one_by_one() {
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
    let mended = "
        412ms  base    5841+1460         => local-timeout
        430ms  mobile  ack 7301
        5000ms end
        ";
    check(&snoop(config.clone()), &format!("{script}{mended}"));
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

#[test]
fn damaged_segments_are_not_believed() {
    check(
        &snoop(config()),
        "
        0ms    fixed   1+1460 tcp-damage     # forwarded, but neither cached nor counted
        1ms    fixed   1461+1460 ip-damage   => ip-checksum
        2ms    mobile  ack 1 tcp-damage
        3ms    mobile  ack 1 ip-damage       => ip-checksum
        5000ms end
        ",
    );
}

#[test]
fn a_fin_is_mended_like_data_and_ends_the_flow() {
    check(
        &snoop(config()),
        "
        0ms    fixed   1+1460
        1ms    fixed   fin at 1461           # lost
        8ms    mobile  ack 1461
        108ms  base    fin at 1461           => local-timeout
        116ms  mobile  ack 1462
        116ms  note    flow-forgotten
        117ms  mobile  fin ack 1462
        5000ms end
        ",
    );
}

#[test]
fn a_reset_ends_the_flow_at_once() {
    for side in ["fixed ", "mobile ack 0"] {
        let (who, rest) = side.split_once(' ').unwrap();
        check(
            &snoop(config()),
            &format!(
                "
                0ms    fixed   1+1460
                1ms    {who}   rst {rest}
                1ms    note    flow-forgotten
                5000ms end
                "
            ),
        );
    }
}

#[test]
fn a_new_connection_on_the_same_ports_starts_afresh() {
    check(
        &snoop(config()),
        "
        0ms    fixed   syn
        1ms    fixed   syn                   # the same SYN again
        2ms    fixed   1+1460
        3ms    fixed   syn at 500000
        3ms    note    flow-forgotten
        4ms    mobile  syn ack 500001
        5000ms end
        ",
    );
}

#[test]
fn what_was_never_sent_cannot_be_acknowledged() {
    check(
        &snoop(config()),
        "
        0ms    fixed   syn
        1ms    mobile  syn ack 1
        2ms    fixed   1+1460
        3ms    mobile  at 1 ack 900000       # not believed, and not ours to judge
        8ms    mobile  at 1 ack 1461
        5000ms end
        ",
    );
}

#[test]
fn a_full_cache_keeps_the_oldest_packets() {
    check(
        &snoop(SnoopConfig { flow_packets: 2, ..config() }),
        "
        0ms    fixed   1+1460                # lost
        1ms    fixed   1461+1460
        2ms    fixed   2921+1460
        2ms    note    cache-evicted
        3ms    mobile  ack 1
        8ms    mobile  ack 1                 => suppressed-dup-ack
        8ms    base    1+1460                => local-dup-ack
        9ms    mobile  ack 2921
        16ms   mobile  ack 2921              # not cached: the sender's matter
        24ms   mobile  ack 4381
        5000ms end
        ",
    );
}

#[test]
fn the_least_recently_used_flow_makes_room() {
    let notes = "
        0ms    fixed   1+1460
        1ms    fixed   1+1460 port 6000
        2ms    fixed   1461+1460
        3ms    fixed   1+1460 port 7000
        3ms    note    flow-forgotten
        8ms    mobile  ack 2921
        9ms    mobile  ack 1461 port 6000
        10ms   mobile  ack 1461 port 7000
        5000ms end
        ";
    check(&snoop(SnoopConfig { flows: 2, ..config() }), notes);
    // Four packets of 1500 bytes exceed 5,999 bytes of cache.
    check(&snoop(SnoopConfig { cache: Bytes(5_999), ..config() }), notes);
}

#[test]
fn other_directions_and_protocols_pass() {
    check(
        &snoop(config()),
        "
        0ms    mobile  1+1460 ack 1
        1ms    fixed   at 1
        2ms    mobile  1461+1460 ack 1
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
fn no_timer_repeats_what_lies_behind_a_hole_before_the_base_station() {
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
fn no_timer_repeats_what_lies_behind_a_first_segment_lost_before_the_base_station() {
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
