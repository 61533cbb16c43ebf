//! Reactions to spurious losses are undone (DSACK, Eifel, F-RTO), as in Linux.

use lasthop_proto::tcp::{GrowthRule, TcpConfig, Variant};
use lasthop_proto::units::Span;

use crate::script::check;
use crate::sender;

/// A Linux sender with a window of `segments`, and without the tail loss probe.
fn linux(segments: u32) -> TcpConfig {
    TcpConfig {
        sack: true,
        growth: GrowthRule::Linux,
        rto_min: Span::millis(200),
        ..sender(Variant::Rack, segments)
    }
}

#[test]
fn a_time_out_is_taken_back_when_data_arrives_that_was_not_sent_again() {
    //= rfc5682#section-3.1: new data for the first ACK, and the second one decides
    check(
        &linux(4),
        "
        100ms  established sackok
        100ms  > . 1+1000 x4 pairs ack 1
        200ms  < . ack 1001              # then the path holds everything back
        200ms  > . 4001+1000 ack 1
        200ms  > P. 5001+1000 ack 1
        350ms  note TailLossProbe
        350ms  > . 6001+1000 ack 1
        600ms  note Timeout
        600ms  > . 1001+1000 ack 1 => timeout-retransmit
        600ms  tcb cwnd 1000 ssthresh 2000
        660ms  < . ack 2001
        660ms  > . 7001+1000 ack 1
        660ms  > . 8001+1000 ack 1
        670ms  < . ack 3001
        670ms  note Undone
        670ms  tcb cwnd 6000 ssthresh 4294967295
        900ms  end
        ",
    );
}

#[test]
fn a_genuine_timeout_resumes_after_the_f_rto_test() {
    //= rfc5682#section-3.1: step 3a: duplicate ACKs for the new data
    check(
        &linux(4),
        "
        100ms  established sackok
        100ms  > . 1+1000 x4 pairs ack 1       # 1001 to 4001 are lost
        200ms  < . ack 1001
        200ms  > . 4001+1000 ack 1       # lost, too
        200ms  > P. 5001+1000 ack 1
        350ms  note TailLossProbe
        350ms  > . 6001+1000 ack 1
        600ms  note Timeout
        600ms  > . 1001+1000 ack 1 => timeout-retransmit
        752ms  < . ack 2001
        752ms  > . 7001+1000 ack 1
        752ms  > . 8001+1000 ack 1
        852ms  < . ack 2001 sack 7001-8001
        852ms  > . 2001+1000 ack 1 => timeout-retransmit
        900ms  end
        ",
    );
}

#[test]
fn an_echo_from_before_the_retransmission_takes_a_time_out_back_at_once() {
    //= rfc3522#section-3.2: the first ACK answers the original
    check(
        &TcpConfig { timestamps: true, ..linux(4) },
        "
        100ms  established sackok ts 0 0
        100ms  > . 1+988 x4 pairs ack 1 ts 100 0
        308ms  note TailLossProbe
        308ms  > . 3953+988 ack 1 ts 308 0
        608ms  note Timeout
        608ms  > . 1+988 ack 1 ts 608 0 => timeout-retransmit
        620ms  < . ack 989 ts 600 100
        620ms  note Undone
        620ms  > . 4941+988 ack 1 ts 620 600
        620ms  tcb cwnd 4940 ssthresh 4294967295
        800ms  end
        ",
    );
}

#[test]
fn duplicates_that_are_reported_for_all_retransmissions_take_a_recovery_back() {
    check(
        &linux(5),
        "
        100ms  established sackok
        100ms  > . 1+1000 x5 pairs ack 1
        200ms  < . ack 1 sack 1001-4001
        200ms  note FastRetransmit
        200ms  > . 1+1000 ack 1 => fast-retransmit
        220ms  < . ack 5001                  # the first one was late
        220ms  note RecoveryEnded
        220ms  > . 5001+1000 ack 1
        220ms  > . 6001+1000 ack 1
        220ms  > . 7001+1000 ack 1
        220ms  tcb cwnd 3000 ssthresh 2000
        300ms  < . ack 5001 sack 1-1001      # and came twice
        300ms  note Undone
        300ms  > . 8001+1000 ack 1
        300ms  > P. 9001+1000 ack 1
        300ms  tcb cwnd 5000 ssthresh 4294967295
        400ms  end
        ",
    );
}

/// A hole filled by a delayed segment indicates further delayed segments: that ACK marks no segment lost and
/// retransmits none.
#[test]
fn an_ack_of_a_delayed_segment_marks_none_lost() {
    check(
        &TcpConfig { timestamps: true, ..linux(8) },
        "
        100ms  established 7904 sackok ts 0 0
        100ms  > . 1+988 x7 pairs ack 1 ts 100 0
        100ms  > P. 6917+988 ack 1 ts 100 0
        180ms  < . ack 1 ts 160 100 sack 6917-7905     # 20 ms ahead of the others
        180ms  > F. at 7905 ack 1 ts 180 160
        208ms  note FastRetransmit
        208ms  > . 1+988 ack 1 ts 208 160 => fast-retransmit
        220ms  < . ack 989 ts 205 100 sack 6917-7905   # the first transmission, after 120 ms
        220ms  note Undone
        221ms  < . ack 1977 ts 206 100 sack 6917-7905
        400ms  end
        ",
    );
}
