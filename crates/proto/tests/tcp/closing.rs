//! FIN, RST, TIME-WAIT, and segments that try to end a connection.

use lasthop_proto::tcp::{GrowthRule, TcpConfig};
use lasthop_proto::units::Span;

use crate::fine;
use crate::script::check;

#[test]
fn the_side_that_closes_first_waits() {
    check(
        &TcpConfig { time_wait: Span::secs(2), ..fine() },
        "
        10ms   established 500
        10ms   > FP. 1+500 ack 1
        20ms   < . ack 502
        20ms   note Complete
        20ms   tcb state FinWait2
        30ms   < F. ack 502
        30ms   > . at 502 ack 2 win 31999
        30ms   tcb state TimeWait
        1030ms < F. ack 502      # our ACK was lost: answered, and the wait starts anew
        1030ms > . at 502 ack 2 win 31999
        3030ms note Closed
        9000ms end
        9000ms tcb state Closed
        ",
    );
}

/// The pacer would release the next segment at 135 ms, when neither a segment nor a connection exists.
#[test]
fn nothing_wakes_a_connection_whose_wait_is_over() {
    check(
        &TcpConfig { pacing: true, time_wait: Span::millis(2), ..fine() },
        "
        10ms   established 1500
        10ms   > . 1+1000 ack 1
        110ms  < . ack 1001
        110ms  > FP. 1001+500 ack 1
        111ms  < F. ack 1502
        111ms  note Complete
        111ms  > . at 1502 ack 2 win 31999
        111ms  tcb state TimeWait
        113ms  note Closed
        1000ms end
        ",
    );
}

#[test]
fn the_side_that_closes_second_does_not() {
    check(
        &fine(),
        "
        10ms   accepted
        20ms   < F. 1+500 ack 1
        20ms   note Delivered { bytes: 500 }
        20ms   > F. ack 502 win 31499
        20ms   tcb state LastAck
        1020ms note Timeout
        1020ms > F. ack 502 win 31499 => timeout-retransmit
        1030ms < . at 502 ack 2
        1030ms note Complete
        1030ms note Closed
        1030ms tcb state Closed
        60s    end
        ",
    );
}

#[test]
fn a_fin_ack_that_acknowledges_ours_ends_it_at_once() {
    check(
        &fine(),
        "
        10ms   established 500
        10ms   > FP. 1+500 ack 1
        20ms   < F. ack 502
        20ms   note Complete
        20ms   > . at 502 ack 2 win 31999
        20ms   tcb state TimeWait
        100ms  end
        ",
    );
}

#[test]
fn both_may_close_at_once() {
    check(
        &fine(),
        "
        10ms   established 500
        10ms   > FP. 1+500 ack 1
        15ms   < F. ack 1
        15ms   > . at 502 ack 2 win 31999
        15ms   tcb state Closing
        20ms   < . at 2 ack 502
        20ms   note Complete
        20ms   tcb state TimeWait
        100ms  end
        ",
    );
}

#[test]
fn a_fin_before_its_data_waits_for_it() {
    check(
        &fine(),
        "
        10ms   accepted
        20ms   < F. at 1001 ack 1
        20ms   > . ack 1
        30ms   < . 1+1000 ack 1
        30ms   note Delivered { bytes: 1000 }
        30ms   > F. ack 1002
        30ms   tcb state LastAck
        40ms   end
        ",
    );
}

#[test]
fn a_lost_fin_is_sent_again_with_its_data() {
    check(
        &fine(),
        "
        10ms   established 500
        10ms   > FP. 1+500 ack 1
        1010ms note Timeout
        1010ms > FP. 1+500 ack 1 => timeout-retransmit
        1020ms < . ack 501      # the data without its FIN
        1020ms note Complete
        1100ms < . ack 502
        60s    end
        ",
    );
}

#[test]
fn only_an_exact_reset_is_believed() {
    //= rfc5961#section-3.2
    check(
        &fine(),
        "
        10ms   established
        10ms   > . 1+1000 ack 1
        20ms   < R at 0      # outside the window: nothing
        21ms   < R at 33000
        22ms   < R at 2      # in the window: challenged
        22ms   > . at 1001 ack 1
        23ms   < R at 1
        23ms   note Aborted
        60s    end
        ",
    );
}

/// Linux also accepts a reset at the end of the last SACK block, and one at the position of the peer's FIN.
#[test]
fn linux_accepts_two_other_resets() {
    let config = TcpConfig { growth: GrowthRule::Linux, sack: true, ..fine() };
    check(
        &config,
        "
        10ms   accepted sackok
        20ms   < . 1001+1000 ack 1
        20ms   > . ack 1 sack 1001-2001
        21ms   < R at 2001
        21ms   note Aborted
        60s    end
        ",
    );
    check(
        &config,
        "
        10ms   accepted
        20ms   < F. 1+500 ack 1
        20ms   note Delivered { bytes: 500 }
        20ms   > F. ack 502 win 31499
        30ms   < R at 501
        30ms   note Closed
        60s    end
        ",
    );
}

#[test]
fn a_syn_in_a_connection_is_challenged_wherever_it_points() {
    //= rfc5961#section-4.2
    check(
        &fine(),
        "
        10ms   accepted
        20ms   < S at 0
        20ms   > . ack 1
        21ms   < S at 100
        21ms   > . ack 1
        22ms   < S at 1000000
        22ms   > . ack 1
        23ms   < S at 3000000000
        23ms   > . ack 1
        24ms   < R at 1      # the answer of a peer that knows of no such connection
        24ms   note Aborted
        60s    end
        ",
    );
}

#[test]
fn acks_of_unsent_or_very_old_data_are_challenged() {
    //= rfc5961#section-5.2
    check(
        &fine(),
        "
        10ms   established / win 1500
        10ms   > . 1+1000 ack 1
        20ms   < . ack 90000
        20ms   > . at 1001 ack 1
        30ms   < . ack 1001 win 1500
        30ms   > . 1001+1000 ack 1
        40ms   < . ack 2001 win 1500
        40ms   > . 2001+1000 ack 1
        41ms   < . ack 501 win 1500      # within the largest window: merely old
        42ms   < . ack 500 win 1500      # so is this, but there was an answer 22 ms ago
        43ms   < . ack 3001 win 1500
        43ms   > . 3001+1000 ack 1
        44ms   < . ack 4001 win 1500
        44ms   > . 4001+1000 ack 1
        520ms  < . ack 2500 win 1500
        520ms  > . at 5001 ack 1
        1s     end
        ",
    );
}

#[test]
fn segments_without_data_are_answered_twice_a_second() {
    //= rfc5961#section-7
    check(
        &fine(),
        "
        10ms   accepted
        20ms   < . at 3000000000 ack 1   # from a peer that is elsewhere, which answers our answer
        20ms   > . ack 1
        21ms   < . at 3000000000 ack 1
        22ms   < . ack 90000
        23ms   < R at 2
        519ms  < . at 3000000000 ack 1
        520ms  < . ack 90000
        520ms  > . ack 1
        521ms  < . at 3000000000 ack 1
        522ms  < . 3000000000+10 ack 1   # data are sent for an answer
        522ms  > . ack 1
        523ms  < S at 0
        523ms  > . ack 1
        524ms  < F. at 0 ack 1
        524ms  > . ack 1
        60s    end
        ",
    );
}

#[test]
fn a_reset_after_the_end_is_no_failure() {
    check(
        &fine(),
        "
        10ms   established 500
        10ms   > FP. 1+500 ack 1
        20ms   < F. ack 502
        20ms   note Complete
        20ms   > . at 502 ack 2 win 31999
        30ms   < R at 2
        30ms   note Closed
        30ms   tcb state Closed
        60s    end
        ",
    );
}

#[test]
fn a_reset_in_the_middle_aborts() {
    check(
        &fine(),
        "
        10ms   established 5000
        10ms   > . 1+1000 ack 1
        20ms   < . ack 1001
        20ms   > . 1001+1000 ack 1
        20ms   > . 2001+1000 ack 1
        30ms   < R. ack 1001
        30ms   note Aborted
        60s    end
        ",
    );
}

#[test]
fn data_after_the_peers_fin_is_not_taken() {
    check(
        &fine(),
        "
        10ms   accepted
        20ms   < F. 1+500 ack 1
        20ms   note Delivered { bytes: 500 }
        20ms   > F. ack 502 win 31499
        30ms   < . 502+100 ack 1
        30ms   note Complete
        30ms   > . at 2 ack 502 win 31499
        40ms   end
        ",
    );
}

#[test]
fn a_transfer_of_nothing_is_a_syn_and_a_fin() {
    check(
        &fine(),
        "
        10ms   established 0
        10ms   > F. ack 1
        20ms   < F. ack 2
        20ms   note Complete
        20ms   > . at 2 ack 2 win 31999
        100ms  end
        ",
    );
}
