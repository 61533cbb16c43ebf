//! Opening, and the options agreed on by the SYNs.

use lasthop_proto::tcp::{AckpReaction, ElnMode, TcpConfig};

use crate::fine;
use crate::script::check;

#[test]
fn the_smaller_segment_size_counts() {
    check(
        &fine(),
        "
        0ms    open 3000
        0ms    > S mss 1000
        10ms   < S. ack 1 mss 700
        10ms   note Established
        10ms   > . 1+700 ack 1
        500ms  end
        ",
    );
}

#[test]
fn without_the_option_the_peer_takes_536_bytes() {
    //= rfc9293#section-3.7.1
    check(
        &fine(),
        "
        0ms    open 3000
        0ms    > S mss 1000
        10ms   < S. ack 1
        10ms   note Established
        10ms   > . 1+536 ack 1
        500ms  end
        ",
    );
}

#[test]
fn options_not_offered_by_the_peer_are_not_used() {
    let config = TcpConfig {
        mss: 1000,
        initial_window: 1,
        ackp: AckpReaction::Rearm,
        eln: ElnMode::Checksum,
        quick_acks: false,
        ..TcpConfig::linux()
    };
    check(
        &config,
        "
        0ms    open 1000
        0ms    > S mss 1000 wscale 7 sackok ts 0 0 ackp eln
        10ms   < S. ack 1 mss 1000
        10ms   note Established
        10ms   > P. 1+1000 ack 1
        20ms   < . ack 1001
        20ms   note Complete
        20ms   > F. at 1001 ack 1
        20ms   < . 5000+100 ack 1002      # out of order: no SACK block in the answer
        20ms   > . at 1002 ack 1
        90ms   end
        ",
    );
}

#[test]
fn options_offered_by_both_ends_are_used() {
    let config = TcpConfig {
        mss: 1000,
        initial_window: 1,
        ackp: AckpReaction::Rearm,
        eln: ElnMode::Checksum,
        quick_acks: false,
        ..TcpConfig::linux()
    };
    check(
        &config,
        "
        0ms    open 3000
        0ms    > S mss 1000 wscale 7 sackok ts 0 0 ackp eln
        10ms   < S. ack 1 win 40000 mss 1000 wscale 3 sackok ts 500 0 eln
        # Timestamps take twelve bytes of each segment; windows after the SYN are scaled by 7.
        10ms   note Established
        10ms   > . 1+988 ack 1 win 49152 ts 10 500
        20ms   < . ack 989 win 100 ts 510 10      # 800 bytes: less than a segment
        30ms   < . 5000+100 ack 989 win 1000 ts 520 10
        # A SACK block takes another twelve.
        30ms   > . 989+976 ack 1 win 49152 ts 30 510 sack 5000-5100
        30ms   > . 1965+976 ack 1 win 49152 ts 30 510 sack 5000-5100
        100ms  end
        ",
    );
}

#[test]
fn a_passive_open_answers_only_offered_options() {
    let config = TcpConfig {
        mss: 1000,
        eln: ElnMode::Checksum,
        ackp: AckpReaction::Rearm,
        ..TcpConfig::linux()
    };
    check(
        &config,
        "
        0ms    < S mss 1460 wscale 2 sackok eln
        0ms    > S. ack 1 win 65000 mss 1000 wscale 7 sackok eln
        10ms   < . ack 1
        10ms   note Established
        11ms   < . 1+100 ack 1
        11ms   note Delivered { bytes: 100 }
        # As Linux: the first segments are acknowledged at once, and one of less than 128 bytes does not grow the window.
        11ms   > . ack 101 win 508
        100ms  end
        ",
    );
    check(
        &config,
        "
        0ms    < S mss 1460
        0ms    > S. ack 1 win 65000 mss 1000
        10ms   < . ack 1
        10ms   note Established
        11ms   < . 101+100 ack 1
        11ms   > . ack 1 win 65000
        100ms  end
        ",
    );
}

#[test]
fn a_lost_syn_is_sent_again_and_leaves_one_segment_of_window() {
    check(
        &TcpConfig { initial_window: 4, ..fine() },
        "
        0ms    open 9000
        0ms    > S mss 1000
        1000ms note Timeout
        1000ms > S mss 1000
        3000ms note Timeout
        3000ms > S mss 1000
        3010ms < S. ack 1 mss 1000
        3010ms note Established
        3010ms > . 1+1000 ack 1
        3010ms tcb cwnd 1000 ssthresh 4294967295
        3100ms end
        ",
    );
}

#[test]
fn a_lost_syn_ack_is_sent_again() {
    check(
        &fine(),
        "
        0ms    < S mss 1000
        0ms    > S. ack 1 mss 1000
        500ms  < S mss 1000      # the peer's timer was faster
        500ms  > S. ack 1 mss 1000
        1500ms note Timeout
        1500ms > S. ack 1 mss 1000
        2000ms < . ack 1
        2000ms note Established
        9000ms end
        ",
    );
}

#[test]
fn an_unanswered_syn_is_abandoned_without_a_reset() {
    check(
        &TcpConfig { max_retries: 2, ..fine() },
        "
        0ms    open 9000
        0ms    > S mss 1000
        1000ms note Timeout
        1000ms > S mss 1000
        3000ms note Timeout
        3000ms > S mss 1000
        7000ms note Timeout
        7000ms note Aborted
        60s    end
        ",
    );
}

#[test]
fn both_may_open_at_once() {
    //= rfc9293#section-3.5: figure 8
    check(
        &fine(),
        "
        0ms    open 1000
        0ms    > S mss 1000
        5ms    < S mss 1000
        5ms    > S. ack 1 mss 1000
        10ms   < S. ack 1 mss 1000
        10ms   > . ack 1
        15ms   < . ack 1
        15ms   note Established
        15ms   > P. 1+1000 ack 1
        25ms   < . ack 1001
        25ms   note Complete
        25ms   > F. at 1001 ack 1
        100ms  end
        ",
    );
}

#[test]
fn an_answer_to_another_syn_is_reset() {
    //= rfc9293#section-3.5.1: recovery from old duplicate SYNs, and half-open connections
    check(
        &fine(),
        "
        0ms    open 1000
        0ms    > S mss 1000
        5ms    < . ack 900
        5ms    > R at 900
        6ms    < R. ack 900      # not ours: no word about this SYN
        7ms    < S. ack 777 mss 1000
        7ms    > R at 777
        10ms   < S. ack 1 mss 1000
        10ms   note Established
        10ms   > P. 1+1000 ack 1
        100ms  end
        ",
    );
}

#[test]
fn a_refused_syn_ends_the_connection() {
    check(
        &fine(),
        "
        0ms    open 1000
        0ms    > S mss 1000
        5ms    < R ack 0      # without ACK it may be anybody's
        10ms   < R. ack 1
        10ms   note Aborted
        60s    end
        ",
    );
}

#[test]
fn the_ack_of_an_old_syn_ack_is_reset_before_the_handshake_is_done() {
    check(
        &fine(),
        "
        0ms    < S mss 1000
        0ms    > S. ack 1 mss 1000
        5ms    < . ack 400
        5ms    > R at 400
        # As one answers who has had a connection with these ports before, to which the SYN belongs.
        6ms    < . ack 3000000000
        6ms    > R at -1294967296
        10ms   < . ack 1
        10ms   note Established
        100ms  end
        ",
    );
}

#[test]
fn a_lost_last_ack_of_the_handshake_is_repeated_for_the_second_syn_ack() {
    check(
        &fine(),
        "
        0ms    open
        0ms    > S mss 1000
        10ms   < S. ack 1 mss 1000
        10ms   note Established
        10ms   > . 1+1000 ack 1
        500ms  < S. ack 1 mss 1000
        500ms  > . at 1001 ack 1
        900ms  end
        ",
    );
}
