//! End of fast recovery in 4.4BSD, compared with Reno by RFC 5681.

use lasthop_proto::tcp::config::Deflation;
use lasthop_proto::tcp::{TcpConfig, Variant};

use crate::script::check;
use crate::sender;

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
