//! M-TCP, packet by packet.

use lasthop_proto::agent::{MtcpConfig, SplitConfig};
use lasthop_proto::units::Span;

use crate::split_script::{self, after_opening, check};

fn config() -> SplitConfig {
    let mtcp = MtcpConfig { knock: Span::millis(200), channel_signals: true };
    SplitConfig { mtcp: Some(mtcp), ..split_script::config() }
}

#[test]
fn delivered_data_is_acknowledged_less_one_byte() {
    check(
        &config(),
        &after_opening(
            "
        20ms fixed . 1+1000 ack 1 => split-taken        # no ACK: the mobile host does not have it
        20ms right P. 1+1000 ack 1 => split-data
        21ms fixed P. 1001+1000 ack 1 => split-taken
        21ms right P. 1001+1000 ack 1 => split-data
        30ms mobile . 1 ack 1001 => split-taken
        30ms left . 1 ack 1000 win 4001 => split-ack    # more is under way
        40ms mobile . 1 ack 2001 => split-taken
        40ms left . 1 ack 2001 => split-ack             # that is all
        60s end
        ",
        ),
    );
}

#[test]
fn acks_to_the_mobile_host_await_the_fixed_host() {
    check(
        &config(),
        &after_opening(
            "
        20ms mobile P. 1+500 ack 1 => split-taken
        20ms left P. 1+500 ack 1 => split-data
        30ms fixed . 1 ack 501 => split-taken
        30ms right . 1 ack 501 win 3500 => split-ack
        40ms mobile F. 501 ack 1 => split-taken         # a FIN is acknowledged when it has arrived
        40ms left F. 501 ack 1 => split-control
        50ms fixed . 1 ack 502 => split-taken
        50ms right . 1 ack 502 win 3499 => split-ack
        60s end
        ",
        ),
    );
}

/// The fixed host may retransmit data that is not acknowledged to it, and data that it has received counts.
#[test]
fn the_ack_number_of_a_retransmission_counts() {
    check(
        &config(),
        &after_opening(
            "
        20ms fixed . 1+1000 ack 1 => split-taken
        20ms right P. 1+1000 ack 1 => split-data
        20ms mobile P. 1+500 ack 1 => split-taken
        20ms left P. 1+500 ack 1 => split-data
        300ms fixed . 1+1000 ack 501 => split-taken     # its timer
        300ms right . 1001 ack 501 win 3500 => split-ack
        310ms mobile . 501 ack 1001 => split-taken
        310ms left . 501 ack 1001 => split-ack
        60s end
        ",
        ),
    );
}

/// The mobile host's retransmission acknowledges the data in flight, so more may follow.
#[test]
fn the_ack_number_of_a_retransmission_permits_data() {
    check(
        &config(),
        &after_opening(
            "
        20ms fixed . 1+1000 ack 1 => split-taken
        20ms right P. 1+1000 ack 1 => split-data
        20ms mobile P. 1+500 ack 1 win 1000 => split-taken
        20ms left P. 1+500 ack 1 => split-data
        21ms fixed P. 1001+1000 ack 1 => split-taken    # the mobile host's window is full
        300ms mobile P. 1+500 ack 1001 win 1000 => split-taken
        300ms right P. 1001+1000 ack 1 => split-data
        300ms left . 501 ack 1000 win 4001 => split-ack
        310ms mobile . 501 ack 2001 => split-taken
        310ms left . 501 ack 2001 => split-ack
        310ms fixed . 2001 ack 501 => split-taken
        310ms right . 2001 ack 501 win 3500 => split-ack
        60s end
        ",
        ),
    );
}

/// The host was away for a while and has returned: the ends have continued without this base station.
#[test]
fn a_lasting_hole_triggers_a_query_to_the_host() {
    check(
        &config(),
        &after_opening(
            "
        20ms fixed P. 1001+1000 ack 1 => split-taken    # the mobile host has what is before it from elsewhere
        20ms left . 1 ack 1 => split-ack
        40ms fixed P. 1001+1000 ack 1 => split-taken
        40ms right . 1 ack 1 => split-ack               # does it?
        40ms left . 1 ack 1 => split-ack
        50ms mobile . 1 ack 1001
        50ms note bypassed
        50ms note forgotten
        60s end
        ",
        ),
    );
}

/// One of the two numbers of a segment may exceed this base station's state, but not both.
#[test]
fn guessed_numbers_do_not_bypass_the_base_station() {
    check(
        &config(),
        &after_opening(
            "
        20ms mobile . 9000 ack 1001 => split-taken
        20ms right . 1 ack 1 => split-ack
        30ms mobile P. 9000+100 ack 70000 => split-taken
        40ms mobile P. 9000+100 ack 1                   # as it would be if they had gone on
        40ms note bypassed
        40ms note forgotten
        60s end
        ",
        ),
    );
}

/// The last byte is acknowledged with a closed window. The return of the host opens it, and data in flight is
/// retransmitted at once.
#[test]
fn silence_closes_the_window_and_an_answer_opens_it() {
    check(
        &config(),
        &after_opening(
            "
        20ms fixed . 1+1000 ack 1 => split-taken
        20ms right P. 1+1000 ack 1 => split-data
        21ms fixed P. 1001+1000 ack 1 => split-taken
        21ms right P. 1001+1000 ack 1 => split-data
        30ms mobile . 1 ack 1001 => split-taken
        30ms left . 1 ack 1000 win 4001 => split-ack
        31ms fixed P. 2001+1000 ack 1 => split-taken
        31ms right P. 2001+1000 ack 1 => split-data
        1030ms note gone
        1030ms left . 1 ack 1001 win 0 => split-ack
        1030ms right . 1001+1000 ack 1 => local-timeout
        1100ms fixed . 1001+1 ack 1 => split-taken      # a probe of the closed window
        1100ms left . 1 ack 1001 win 0 => split-ack
        1230ms right . 1001+1000 ack 1 => local-timeout
        1240ms mobile . 1 ack 2001 => split-taken
        1240ms note back
        1240ms left . 1 ack 1001 => split-ack
        1240ms right P. 2001+1000 ack 1 => local-timeout
        1240ms left . 1 ack 2000 win 4001 => split-ack
        1250ms mobile . 1 ack 3001 => split-taken
        1250ms left . 1 ack 3001 => split-ack
        60s end
        ",
        ),
    );
}

#[test]
fn a_bad_channel_report_marks_the_mobile_host_gone() {
    check(
        &config(),
        &after_opening(
            "
        20ms fixed P. 1+1000 ack 1 => split-taken
        20ms right P. 1+1000 ack 1 => split-data
        25ms channel bad
        25ms note gone
        25ms left . 1 ack 1 win 0 => split-ack
        25ms right P. 1+1000 ack 1 => local-timeout
        30ms fixed P. 1001+1000 ack 1 => split-taken    # it was under way
        90ms channel good
        90ms note back
        90ms left . 1 ack 1 => split-ack
        90ms right . 1+1000 ack 1 => local-timeout
        90ms right P. 1001+1000 ack 1 => split-data
        99ms mobile . 1 ack 2001 => split-taken
        99ms left . 1 ack 2001 => split-ack
        60s end
        ",
        ),
    );
}

/// The mobile host was at another base station and has returned: its connection has continued without this
/// one.
#[test]
fn a_connection_continued_elsewhere_is_bypassed() {
    check(
        &config(),
        &after_opening(
            "
        20ms fixed P. 1+1000 ack 1 => split-taken
        20ms right P. 1+1000 ack 1 => split-data
        30ms mobile . 1 ack 1001 => split-taken
        30ms left . 1 ack 1001 => split-ack
        5s fixed P. 90001+1000 ack 1                    # beyond any window of ours
        5000ms note bypassed
        5000ms note forgotten
        5010ms mobile . 1 ack 91001
        60s end
        ",
        ),
    );
}

/// After a hole duplicate ACKs notify the sender, once their number is that of the hole.
#[test]
fn wired_losses_are_reported_after_all_earlier_data_arrives() {
    check(
        &config(),
        &after_opening(
            "
        20ms fixed P. 1+1000 ack 1 => split-taken
        20ms right P. 1+1000 ack 1 => split-data
        22ms fixed P. 2001+1000 ack 1 => split-taken    # 1001 is lost
        23ms fixed P. 3001+1000 ack 1 => split-taken
        30ms mobile . 1 ack 1001 => split-taken
        30ms left . 1 ack 1001 => split-ack
        30ms left . 1 ack 1001 => split-ack
        30ms left . 1 ack 1001 => split-ack
        31ms fixed P. 4001+1000 ack 1 => split-taken
        31ms left . 1 ack 1001 => split-ack
        40ms fixed P. 1001+1000 ack 1 => split-taken
        40ms right . 1001+1000 ack 1 => split-data
        40ms right . 2001+1000 ack 1 => split-data
        40ms right . 3001+1000 ack 1 => split-data
        40ms right P. 4001+1000 ack 1 => split-data
        50ms mobile . 1 ack 5001 => split-taken
        50ms left . 1 ack 5001 => split-ack
        60s end
        ",
        ),
    );
}

/// Retransmissions during the wait for the mobile host are not acknowledged, except for the byte held back.
#[test]
fn sender_retransmissions_are_not_forwarded_as_duplicates() {
    check(
        &config(),
        &after_opening(
            "
        20ms fixed P. 1+1000 ack 1 => split-taken
        20ms right P. 1+1000 ack 1 => split-data
        21ms fixed P. 1001+1000 ack 1 => split-taken
        21ms right P. 1001+1000 ack 1 => split-data
        25ms fixed P. 1+1000 ack 1 => split-taken       # its timer is short
        30ms mobile . 1 ack 1001 => split-taken
        30ms left . 1 ack 1000 win 4001 => split-ack
        35ms fixed P. 1000+1000 ack 1 => split-taken    # it waits for that byte
        35ms left . 1 ack 1001 => split-ack
        36ms fixed P. 1+1000 ack 1 => split-taken       # our ACK was lost
        36ms left . 1 ack 1001 => split-ack
        40ms mobile . 1 ack 2001 => split-taken
        40ms left . 1 ack 2001 => split-ack
        60s end
        ",
        ),
    );
}

/// The next base station searches for the mobile host at once.
#[test]
fn a_host_that_is_gone_may_come_back_elsewhere() {
    check(
        &config(),
        &after_opening(
            "
        20ms fixed P. 1+1000 ack 1 => split-taken
        20ms right P. 1+1000 ack 1 => split-data
        1020ms note gone
        1020ms left . 1 ack 1 win 0 => split-ack
        1020ms right P. 1+1000 ack 1 => local-timeout
        1100ms move
        1100ms note forgotten
        1100ms right P. 1+1000 ack 1 => local-timeout
        1110ms mobile . 1 ack 1001 => split-taken
        1110ms note back
        1110ms left . 1 ack 1 => split-ack
        1110ms left . 1 ack 1001 => split-ack
        60s end
        ",
        ),
    );
}

/// A host without the connection answers with a reset. Its number is the acknowledged one, not that of all the data at
/// the base station.
#[test]
fn a_reset_with_the_acknowledged_number_is_accepted() {
    check(
        &config(),
        &after_opening(
            "
        20ms mobile P. 1+500 ack 1 => split-taken       # not acknowledged: the fixed host does not have it
        20ms left P. 1+500 ack 1 => split-data
        25ms fixed P. 1+100 ack 1 => split-taken
        25ms right P. 1+100 ack 1 => split-data
        30ms mobile R 1 => split-taken
        30ms left R. 501 ack 1 => split-control
        30ms note forgotten
        60s end
        ",
        ),
    );
}

/// A host that closes, and then resets instead of acknowledging the other one's FIN, leaves nothing behind.
#[test]
fn a_reset_after_both_have_closed_is_forwarded() {
    check(
        &config(),
        &after_opening(
            "
        20ms mobile F. 1 ack 1 => split-taken
        20ms left F. 1 ack 1 => split-control
        25ms fixed F. 1 ack 1 => split-taken
        30ms fixed R 2 => split-taken
        30ms right R. 1 ack 1 => split-control
        30ms note forgotten
        60s end
        ",
        ),
    );
}
