//! The opening of split connections, packet by packet: refusals, contending SYNs, and SYNs that pass unsplit.

use lasthop_proto::agent::SplitConfig;

use crate::split_script::{after_opening, check, config};

#[test]
fn a_refused_connection_is_refused() {
    check(
        &config(),
        "
        0ms fixed S 0 => split-taken
        0ms right S 0 => split-control
        10ms mobile R. 0 ack 1 => split-taken
        10ms left R. 0 ack 1 => split-control
        10ms note forgotten
        11ms fixed . 1 ack 1                        # nobody's connection: it passes
        100s end
        ",
    );
}

#[test]
fn an_unanswered_syn_is_given_up_without_a_reply() {
    check(
        &config(),
        "
        0ms fixed S 0 => split-taken
        0ms right S 0 => split-control
        1000ms right S 0 => split-control
        3000ms right S 0 => split-control
        7000ms right S 0 => split-control
        15000ms right S 0 => split-control
        31000ms right S 0 => split-control
        63000ms right S 0 => split-control
        75000ms note forgotten
        100s end
        ",
    );
}

#[test]
fn a_reset_from_the_opener_removes_the_connection() {
    check(
        &config(),
        "
        0ms fixed S 0 => split-taken
        0ms right S 0 => split-control
        5ms fixed R 1 => split-taken
        5ms note forgotten
        10ms mobile S. 0 ack 1                      # the opener itself says that it knows of nothing
        10s end
        ",
    );
}

#[test]
fn a_new_syn_for_a_waiting_connection_begins_another_one() {
    check(
        &config(),
        "
        0ms fixed S 0 => split-taken
        0ms right S 0 => split-control
        50ms fixed S 300000 => split-taken
        50ms note forgotten
        50ms right S 300000 => split-control
        60ms mobile S. 0 ack 300001 mss 1000 => split-taken
        60ms left S. 0 ack 300001 => split-control
        61ms fixed . 300001 ack 1 => split-taken
        61ms right . 300001 ack 1 => split-ack
        10s end
        ",
    );
}

/// A third party's SYN does not replace one that the far end answers.
#[test]
fn the_answered_one_of_two_syns_opens_the_connection() {
    check(
        &config(),
        "
        0ms fixed S 0 => split-taken
        0ms right S 0 => split-control
        5ms fixed S 300000 => split-taken
        5ms note forgotten
        5ms right S 300000 => split-control
        6ms fixed S 700000 => split-taken
        6ms note forgotten
        6ms right S 700000 => split-control
        10ms mobile S. 0 ack 1 mss 1000 => split-taken
        10ms note forgotten
        10ms right S 0 => split-control
        10ms left S. 0 ack 1 => split-control
        11ms fixed . 1 ack 1 => split-taken
        11ms right . 1 ack 1 => split-ack
        12ms mobile . 1 ack 1 => split-taken
        10s end
        ",
    );
}

/// A SYN from the far end before its answer, or one that claims this source: only the SYN-ACK defines the
/// initial number.
#[test]
fn a_syn_of_the_far_end_is_no_answer() {
    check(
        &config(),
        "
        0ms fixed S 0 => split-taken
        0ms right S 0 => split-control
        4ms mobile S 90000 => split-taken
        5ms mobile S 0 => split-taken                   # both ends open at once
        10ms mobile S. 0 ack 1 mss 1000 => split-taken
        10ms left S. 0 ack 1 => split-control
        11ms fixed . 1 ack 1 => split-taken
        11ms right . 1 ack 1 => split-ack
        10s end
        ",
    );
}

/// A third party sends a SYN in the name of the far end, which drops the SYN of the base station. The far end
/// then opens the connection itself: its second SYN counts.
#[test]
fn a_repeated_syn_of_the_far_end_opens_the_connection() {
    check(
        &config(),
        "
        0ms mobile S 90000 => split-taken               # not from the host
        0ms left S 90000 => split-control
        100ms fixed S 0 mss 1000 => split-taken
        600ms mobile S 50000 => split-taken             # the third party again
        600ms note forgotten
        600ms left S 50000 => split-control
        1100ms fixed S 0 mss 1000 => split-taken
        1100ms note forgotten
        1100ms right S 0 => split-control
        1105ms mobile S 70000 => split-taken            # now the mobile host is the far end
        1110ms mobile S. 0 ack 1 mss 1000 => split-taken
        1110ms left S. 0 ack 1 => split-control
        1112ms fixed . 1 ack 1 => split-taken
        1112ms right . 1 ack 1 => split-ack
        10s end
        ",
    );
}

/// A SYN that is never split passes as well if a third party's SYN waits for its answer. A later copy without
/// the unknown option belongs to the same connection.
#[test]
fn a_syn_that_is_not_split_passes_during_a_handshake_of_a_third_party() {
    check(
        &config(),
        "
        0ms fixed S 5000 => split-taken                 # not from the host
        0ms right S 5000 => split-control
        1ms fixed S 0 option 30 12 mss 1000
        2ms fixed SF 300
        3ms fixed S 0 mss 1000
        4ms mobile S. 0 ack 1 option 30 12 mss 1000
        5ms fixed . 1 ack 1
        6ms mobile P. 1+100 ack 1
        1000ms right S 5000 => split-control
        2s end
        ",
    );
}

/// An end that offers segments of a few bytes gets segments of 48 bytes, as from Linux.
#[test]
fn a_tiny_segment_size_is_raised() {
    let script = |fixed: u16, mobile: u16, data: &str| {
        format!(
            "
        0ms fixed S 0 mss {fixed} => split-taken
        0ms right S 0 => split-control
        10ms mobile S. 0 ack 1 mss {mobile} => split-taken
        10ms left S. 0 ack 1 => split-control
        12ms fixed . 1 ack 1 => split-taken
        12ms right . 1 ack 1 => split-ack
        {data}
        60s end
        "
        )
    };
    for mss in [0, 1, 47, 48] {
        check(
            &config(),
            &script(
                mss,
                1000,
                "
        20ms mobile P. 1+100 ack 1 => split-taken
        20ms right . 1 ack 101 win 3900 => split-ack
        20ms left . 1+48 ack 1 => split-data
        20ms left . 49+48 ack 1 => split-data
        20ms left P. 97+4 ack 1 => split-data
        22ms fixed . 1 ack 101 => split-taken",
            ),
        );
        check(
            &config(),
            &script(
                1000,
                mss,
                "
        20ms fixed P. 1+100 ack 1 => split-taken
        20ms left . 1 ack 101 win 3900 => split-ack
        20ms right . 1+48 ack 1 => split-data
        20ms right . 49+48 ack 1 => split-data
        20ms right P. 97+4 ack 1 => split-data
        22ms mobile . 1 ack 101 => split-taken",
            ),
        );
    }
}

/// The ends have an unsplit connection, and a third party repeats the SYN: their packets continue to pass
/// between them.
#[test]
fn a_syn_for_a_connection_that_passes_diverts_nothing() {
    check(
        &config(),
        "
        0ms fixed S 5000 => split-taken                 # not from the host
        0ms right S 5000 => split-control
        1ms mobile . 1 ack 900                          # the far end challenges it
        2ms fixed P. 900+100 ack 1
        3ms mobile . 1 ack 1000
        4ms fixed R 1000                                # with another number than that of the SYN
        5ms mobile R 1
        1000ms right S 5000 => split-control
        2s end
        ",
    );
}

/// Signatures, MPTCP, unknown options; and flags that no host sends.
#[test]
fn syns_with_unsplittable_options_or_flags_pass_unsplit() {
    check(
        &config(),
        "
        0ms fixed S 0 option 19 18 mss 1000
        1ms mobile S. 0 ack 1 option 19 18
        2ms fixed . 1 ack 1 option 19 18
        3ms fixed S 0 port 2 option 29 16
        4ms fixed S 0 port 3 option 30 12
        5ms fixed S 0 port 4 option 77 4
        6ms fixed SF 0 port 5
        7ms fixed SFP 0 port 6
        10s end
        ",
    );
}

/// The SYN-ACK of an unsplit connection is lost: the SYN is repeated when there is room.
#[test]
fn a_connection_whose_first_syn_passed_stays_unsplit() {
    let one = SplitConfig { flows: 1, ..config() };
    check(
        &one,
        &after_opening(
            "
        20ms fixed S 0 port 2
        20ms note no-room
        30ms fixed R. 1 ack 1 => split-taken
        30ms right R. 1 ack 1 => split-control
        30ms note forgotten
        1020ms fixed S 0 port 2
        1030ms mobile S. 0 ack 1 port 2
        2s fixed S 7000 port 2 => split-taken           # another connection
        2000ms right S 7000 port 2 => split-control
        3000ms right S 7000 port 2 => split-control
        4s end
        ",
        ),
    );
}
