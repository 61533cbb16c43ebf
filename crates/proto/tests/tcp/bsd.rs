//! Traits of 4.4BSD and FreeBSD 2.1: the end of fast recovery, timestamps in ticks, and the limit of a handshake.

use lasthop_proto::tcp::config::Deflation;
use lasthop_proto::tcp::{TcpConfig, Variant};

use crate::script::check;
use crate::{bsd, sender};

/// `tcp_input` takes a round trip from each new ACK with an echo, of a retransmission too, and ends the backoff.
#[test]
fn an_echo_in_ticks_is_a_round_trip_and_ends_the_backoff() {
    check(
        &TcpConfig { timestamps: true, ..bsd() },
        "
        100ms  established ts 0 0 / ts 5000 0
        100ms  > . 1+988 ack 1 ts 0 5000
        1130ms note Timeout
        1130ms > . 1+988 ack 1 ts 3 5000 => timeout-retransmit    # ticks at 130, 630 and 1130 ms
        1500ms < . ack 989 ts 6000 3
        1500ms > . 989+988 ack 1 ts 3 6000
        1500ms > . 1977+988 ack 1 ts 3 6000
        1500ms tcb rto 1.5s backoff 0
        1600ms end
        ",
    );
}

/// `TCPTV_KEEP_INIT`, on the slow tick.
#[test]
fn a_connection_that_is_not_established_within_75_s_is_dropped() {
    let lost = |syn: &str| {
        format!(
            "
            5630ms note Timeout
            5630ms > {syn} mss 1000
            29630ms note Timeout
            29630ms > {syn} mss 1000
            "
        )
    };
    let active = "0ms open\n0ms > S mss 1000\n".to_owned() + &lost("S");
    check(&bsd(), &(active + "74630ms note Aborted\n300s end\n"));
    let passive = "0ms < S mss 1000\n0ms > S. ack 1 mss 1000\n".to_owned() + &lost("S. ack 1");
    check(&bsd(), &(passive + "74630ms > R. ack 1\n74630ms note Aborted\n300s end\n"));
    check(&bsd(), "10ms accepted\n300s end\n");
}

#[test]
fn the_window_may_grow_on_the_ack_that_ends_recovery() {
    check(
        &TcpConfig { exit_growth: true, ..sender(Variant::Reno, 8) },
        "
        10ms   established
        # 1 is lost
        10ms   > . 1+1000 x8 ack 1
        21ms   < . ack 1
        22ms   < . ack 1
        23ms   < . ack 1
        23ms   note FastRetransmit
        23ms   > . 1+1000 ack 1 => fast-retransmit
        24ms   < . ack 1
        33ms   < . ack 8001
        33ms   note RecoveryEnded
        33ms   > . 8001+1000 x5 ack 1
        33ms   tcb cwnd 5000 ssthresh 4000      # at the threshold slow start still adds a whole segment
        40ms   end
        ",
    );
}

#[test]
fn the_window_stays_inflated_where_three_duplicates_came_and_no_more() {
    let config = TcpConfig { deflation: Deflation::PastThreshold, ..sender(Variant::Reno, 8) };
    check(
        &config,
        "
        10ms   established
        10ms   > . 1+1000 x8 ack 1
        21ms   < . ack 1
        22ms   < . ack 1
        23ms   < . ack 1
        23ms   note FastRetransmit
        23ms   > . 1+1000 ack 1 => fast-retransmit
        33ms   < . ack 8001
        33ms   note RecoveryEnded
        33ms   > . 8001+1000 x7 ack 1
        33ms   tcb cwnd 7000 ssthresh 4000
        40ms   end
        ",
    );
    check(
        &config,
        "
        10ms   established
        10ms   > . 1+1000 x8 ack 1
        21ms   < . ack 1
        22ms   < . ack 1
        23ms   < . ack 1
        23ms   note FastRetransmit
        23ms   > . 1+1000 ack 1 => fast-retransmit
        24ms   < . ack 1      # a fourth one
        33ms   < . ack 8001
        33ms   note RecoveryEnded
        33ms   > . 8001+1000 x4 ack 1
        33ms   tcb cwnd 4000 ssthresh 4000
        40ms   end
        ",
    );
}
