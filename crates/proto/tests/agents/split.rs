//! Split connections, packet by packet.

use lasthop_proto::agent::SplitConfig;
use lasthop_proto::units::Bytes;

use crate::split_script::{BUFFER, after_opening, check, config};

#[test]
fn the_opener_is_answered_when_the_far_end_has_answered() {
    check(
        &config(),
        "
        0ms fixed S 0 mss 1000 => split-taken
        0ms right S 0 => split-control
        500ms fixed S 0 mss 1000 => split-taken     # again: it has to wait
        1000ms right S 0 => split-control           # the base station's own timer
        1010ms mobile S. 0 ack 1 mss 1000 => split-taken
        1010ms left S. 0 ack 1 => split-control     # under the mobile host's number
        1011ms fixed S 0 mss 1000 => split-taken    # crossed the answer
        1011ms left S. 0 ack 1 => split-control
        1012ms fixed . 1 ack 1 => split-taken
        1012ms right . 1 ack 1 => split-ack
        60s end
        ",
    );
}

#[test]
fn a_connection_may_be_opened_from_the_air() {
    check(
        &config(),
        "
        0ms mobile S 0 mss 1000 => split-taken
        0ms left S 0 => split-control
        10ms fixed S. 0 ack 1 mss 1000 => split-taken
        10ms right S. 0 ack 1 => split-control
        12ms mobile . 1 ack 1 => split-taken
        12ms left . 1 ack 1 => split-ack
        13ms mobile P. 1+100 ack 1 => split-taken
        13ms right . 1 ack 101 win 3900 => split-ack
        13ms left P. 1+100 ack 1 => split-data
        15ms fixed . 1 ack 101 => split-taken
        60s end
        ",
    );
}

/// Both directions at once: data acknowledged to one end, and not acknowledged by the other, in segments.
#[test]
fn data_is_buffered_until_the_far_end_acknowledges_it() {
    check(
        &config(),
        &after_opening(
            "
        19ms kept
        20ms fixed . 1+1000 ack 1 => split-taken
        20ms left . 1 ack 1001 win 3000 => split-ack
        20ms right P. 1+1000 ack 1 => split-data
        21ms fixed P. 1001+200 ack 1 => split-taken
        21ms left . 1 ack 1201 win 2800 => split-ack
        21ms right P. 1001+200 ack 1 => split-data
        22ms mobile P. 1+300 ack 1 => split-taken
        22ms right . 1201 ack 301 win 3700 => split-ack
        22ms left P. 1+300 ack 1201 win 2800 => split-data
        23ms kept mobile 1+300 fixed 1+1000 fixed 1001+200
        30ms mobile . 301 ack 1001 => split-taken
        31ms kept mobile 1+300 fixed 1001+200
        32ms fixed . 1201 ack 301 => split-taken
        33ms kept fixed 1001+200
        40ms mobile . 301 ack 1201 => split-taken
        41ms kept
        60s end
        ",
        ),
    );
}

//= rfc3168#section-6.1.3: ECE goes with every ACK until CWR comes
#[test]
fn a_mark_is_echoed_by_the_half_that_it_came_to() {
    let mut config = config();
    config.wired.ecn = true;
    let script = |mark: &str, echo: &str| {
        format!(
            "
        0ms fixed SEW 0 mss 1000 => split-taken
        0ms right SEW 0 => split-control            # offered over the air as well
        10ms mobile S. 0 ack 1 mss 1000 => split-taken
        10ms left S.E 0 ack 1 => split-control
        12ms fixed . 1 ack 1 => split-taken
        12ms right . 1 ack 1 => split-ack
        20ms fixed P. 1+100 ack 1 {mark} => split-taken
        20ms left .{echo} 1 ack 101 win 3900 => split-ack
        20ms right P. 1+100 ack 1 => split-data
        22ms mobile . 1 ack 101 => split-taken
        30ms fixed P. 101+100 ack 1 => split-taken
        30ms left .{echo} 1 ack 201 win 3800 => split-ack
        30ms right P. 101+100 ack 1 => split-data
        32ms mobile . 1 ack 201 => split-taken
        40ms fixed P.W 201+100 ack 1 => split-taken
        40ms left . 1 ack 301 win 3700 => split-ack
        40ms right P. 201+100 ack 1 => split-data
        42ms mobile . 1 ack 301 => split-taken
        60s end
        "
        )
    };
    check(&config, &script("ce", "E"));
    check(&config, &script("", ""));
}

#[test]
fn each_direction_is_closed_by_itself() {
    check(
        &config(),
        &after_opening(
            "
        20ms fixed FP. 1+100 ack 1 => split-taken
        20ms left . 1 ack 102 win 3899 => split-ack
        20ms right P. 1+100 ack 1 => split-data
        20ms right F. 101 ack 1 => split-control
        30ms mobile . 1 ack 102 => split-taken
        40ms mobile P. 1+500 ack 102 => split-taken     # the other direction is still open
        40ms right . 102 ack 501 win 3500 => split-ack
        40ms left P. 1+500 ack 102 win 3899 => split-data
        50ms fixed . 102 ack 501 => split-taken
        60ms mobile F. 501 ack 102 => split-taken
        60ms right . 102 ack 502 win 3499 => split-ack
        60ms left F. 501 ack 102 win 3899 => split-control
        70ms fixed . 102 ack 502 => split-taken         # both are done: nothing is remembered
        70ms note forgotten
        80ms mobile F. 501 ack 102                      # its ACK was lost: the fixed host is in TIME-WAIT,
        81ms fixed . 102 ack 502                        # under the same numbers, and answers
        1000s end
        ",
        ),
    );
}

/// Acknowledgements of the mobile host for small pieces open the window in large steps, relative to the value
/// announced to the fixed host. A window of at most one segment must be followed by another update.
//= rfc9293#section-3.8.6.2.2
#[test]
fn a_window_update_goes_when_the_buffer_has_drained_by_two_segments() {
    check(
        &config(),
        &after_opening(
            "
        20ms fixed . 1+1000 ack 1 => split-taken
        20ms left . 1 ack 1001 win 3000 => split-ack
        20ms right P. 1+1000 ack 1 => split-data
        21ms fixed . 1001+1000 ack 1 => split-taken
        21ms left . 1 ack 2001 win 2000 => split-ack
        21ms right P. 1001+1000 ack 1 => split-data
        22ms fixed . 2001+1000 ack 1 => split-taken
        22ms left . 1 ack 3001 win 1000 => split-ack
        22ms right P. 2001+1000 ack 1 => split-data
        23ms fixed P. 3001+800 ack 1 => split-taken
        23ms left . 1 ack 3801 win 200 => split-ack
        23ms right P. 3001+800 ack 1 => split-data
        30ms mobile . 1 ack 1001 => split-taken         # room for 1200: not yet worth a packet
        31ms mobile . 1 ack 2001 => split-taken
        31ms left . 1 ack 3801 win 2200 => split-ack    # for 2200: told at once
        32ms mobile . 1 ack 3001 => split-taken
        33ms mobile . 1 ack 3801 => split-taken
        60s end
        ",
        ),
    );
}

/// Urgent data remains out of band: the pointer is announced before the data, and on retransmissions.
#[test]
fn the_urgent_pointer_crosses_the_base_station() {
    check(
        &config(),
        &after_opening(
            "
        20ms fixed P. 1+100 ack 1 urg 101 => split-taken
        20ms left . 1 ack 101 win 3900 => split-ack
        20ms right P. 1+100 ack 1 urg 101 => split-data
        21ms fixed P. 101+1 ack 1 urg 1 => split-taken
        21ms left . 1 ack 102 win 3899 => split-ack
        21ms right P. 101+1 ack 1 urg 1 => split-data
        22ms fixed P. 102+50 ack 1 => split-taken
        22ms left . 1 ack 152 win 3849 => split-ack
        22ms right P. 102+50 ack 1 => split-data
        30ms mobile . 1 ack 101 => split-taken
        1030ms right P. 101+51 ack 1 urg 1 => local-timeout
        1040ms mobile . 1 ack 152 => split-taken
        60s end
        ",
        ),
    );
}

#[test]
fn a_reset_travels_on_from_either_end() {
    check(
        &config(),
        &after_opening(
            "
        20ms fixed R. 1 ack 1 => split-taken
        20ms right R. 1 ack 1 => split-control
        20ms note forgotten
        100s end
        ",
        ),
    );
    check(
        &config(),
        &after_opening(
            "
        20ms fixed P. 1+100 ack 1 => split-taken
        20ms left . 1 ack 101 win 3900 => split-ack
        20ms right P. 1+100 ack 1 => split-data
        30ms mobile R 1 => split-taken
        30ms left R. 1 ack 101 win 3900 => split-control
        30ms note forgotten
        100s end
        ",
        ),
    );
}

#[test]
fn a_full_buffer_closes_the_window_of_the_fixed_host() {
    check(
        &config(),
        &after_opening(
            "
        20ms mobile . 1 ack 1 win 0 => split-taken      # the mobile host takes nothing
        21ms fixed . 1+1000 ack 1 => split-taken
        21ms left . 1 ack 1001 win 3000 => split-ack
        22ms fixed . 1001+1000 ack 1 => split-taken
        22ms left . 1 ack 2001 win 2000 => split-ack
        23ms fixed . 2001+1000 ack 1 => split-taken
        23ms left . 1 ack 3001 win 1000 => split-ack
        24ms fixed . 3001+1000 ack 1 => split-taken
        24ms left . 1 ack 4001 win 0 => split-ack
        25ms fixed . 4001+1 ack 1 => split-taken        # a probe beyond the window
        25ms left . 1 ack 4001 win 0 => split-ack
        100ms mobile . 1 ack 1 => split-taken           # it reads again
        100ms right . 1+1000 ack 1 => split-data
        100ms right . 1001+1000 ack 1 => split-data
        100ms right . 2001+1000 ack 1 => split-data
        100ms right P. 3001+1000 ack 1 => split-data
        110ms mobile . 1 ack 2001 => split-taken        # room for as much as it has acknowledged
        110ms left . 1 ack 4001 win 2000 => split-ack
        111ms mobile . 1 ack 4001 => split-taken
        111ms left . 1 ack 4001 => split-ack
        60s end
        ",
        ),
    );
}

#[test]
fn damaged_packets_end_here_and_are_repaired_over_the_air() {
    check(
        &config(),
        &after_opening(
            "
        20ms fixed P. 1+100 ack 1 tcp-damage => tcp-checksum
        21ms mobile . 1 ack 1 ip-damage => ip-checksum
        22ms fixed P. 1+100 ack 1 port 77 tcp-damage    # not a connection of ours: a router passes it
        30ms fixed P. 1+100 ack 1 => split-taken
        30ms left . 1 ack 101 win 3900 => split-ack
        30ms right P. 1+100 ack 1 => split-data
        1030ms right P. 1+100 ack 1 => local-timeout    # lost on the air: the fixed host knows nothing of it
        1040ms mobile . 1 ack 101 => split-taken
        60s end
        ",
        ),
    );
}

#[test]
fn more_connections_than_allowed_pass_unsplit() {
    check(
        &config(),
        &after_opening(
            "
        20ms fixed S 0 port 1 mss 1000 => split-taken
        20ms right S 0 port 1 => split-control
        20ms mobile S. 0 ack 1 port 1 mss 1000 => split-taken
        20ms left S. 0 ack 1 port 1 => split-control
        20ms fixed . 1 ack 1 port 1 => split-taken
        20ms right . 1 ack 1 port 1 => split-ack
        21ms fixed S 0 port 2
        21ms note no-room
        30ms fixed R. 1 ack 1 => split-taken
        30ms right R. 1 ack 1 => split-control
        30ms note forgotten
        31ms fixed S 0 port 3 mss 1000 => split-taken   # there is room again
        31ms right S 0 port 3 => split-control
        ",
        ),
    );
    // The memory limit bounds them as well.
    let poor = SplitConfig { memory: Bytes(2 * BUFFER - 1), ..config() };
    check(&poor, "0ms fixed S 0\n 0ms note no-room\n 10ms mobile S. 0 ack 1\n 10s end");
}

#[test]
fn a_connection_silent_for_hours_makes_room_and_a_live_one_does_not() {
    let one = SplitConfig { flows: 1, ..config() };
    check(
        &one,
        &after_opening(
            "
        7440s fixed S 0 port 2
        7440000ms note no-room                  # not silent for long enough
        7441s fixed S 0 port 2                  # it has passed once
        7441s fixed S 0 port 3 => split-taken
        7441000ms left R. 1 ack 1 => split-control
        7441000ms right R. 1 ack 1 => split-control
        7441000ms note forgotten
        7441000ms right S 0 port 3 => split-control
        ",
        ),
    );
}

#[test]
fn a_connection_whose_syn_was_not_seen_passes_untouched() {
    check(
        &config(),
        "
        0ms mobile S. 0 ack 1
        1ms fixed P. 1+100 ack 1
        2ms mobile . 1 ack 101
        3ms fixed S. 0 ack 1
        4ms fixed R 1
        100s end
        ",
    );
}

#[test]
fn selective_acknowledgements_are_offered_over_the_air_only() {
    check(
        &config().selective(),
        "
        0ms fixed S 0 mss 1000 sackok => split-taken
        0ms right S 0 sackok => split-control
        10ms mobile S. 0 ack 1 mss 1000 sackok => split-taken
        10ms left S. 0 ack 1 => split-control
        12ms fixed . 1 ack 1 => split-taken
        12ms right . 1 ack 1 => split-ack
        ",
    );
}
