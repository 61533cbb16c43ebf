//! Vegas: round-trip times open and close the window, and the clock detects losses.

use lasthop_proto::tcp::{Congestion, TcpConfig, Variant};

use crate::script::check;
use crate::sender;

fn vegas(segments: u32) -> TcpConfig {
    TcpConfig { congestion: Congestion::Vegas, ..sender(Variant::Reno, segments) }
}

#[test]
fn slow_start_doubles_every_other_round_trip() {
    check(
        &vegas(2),
        "
        10ms   established
        10ms   > . 1+1000 ack 1
        10ms   > . 1001+1000 ack 1
        20ms   < . ack 1001
        20ms   > . 2001+1000 ack 1
        20ms   > . 3001+1000 ack 1
        20ms   tcb cwnd 3000
        20ms   < . ack 2001
        20ms   > . 4001+1000 ack 1
        20ms   tcb cwnd 3000
        30ms   < . ack 3001
        30ms   > . 5001+1000 ack 1
        30ms   < . ack 4001
        30ms   > . 6001+1000 ack 1
        30ms   > . 7001+1000 ack 1
        30ms   < . ack 5001
        30ms   > . 8001+1000 ack 1
        30ms   > . 9001+1000 ack 1
        30ms   tcb cwnd 5000
        40ms   < . ack 6001
        40ms   > . 10001+1000 ack 1
        40ms   > . 11001+1000 ack 1
        40ms   < . ack 7001
        40ms   > . 12001+1000 ack 1
        40ms   < . ack 8001
        40ms   > . 13001+1000 ack 1
        40ms   tcb cwnd 6000
        50ms   end
        ",
    );
}

#[test]
fn longer_round_trips_end_slow_start_and_then_close_the_window() {
    check(
        &vegas(4),
        "
        10ms   established 14000
        10ms   > . 1+1000 x4 ack 1
        20ms   < . ack 4001
        20ms   > . 4001+1000 x5 ack 1
        # 20 ms instead of 10: of five segments half wait, which is more than gamma.
        40ms   < . ack 9001
        40ms   > . 9001+1000 x4 ack 1
        40ms   > P. 13001+1000 ack 1
        40ms   tcb cwnd 5000 ssthresh 5000
        # 50 ms: four fifths of five wait, more than beta.
        90ms   < . ack 14001
        90ms   note Complete
        90ms   > F. at 14001 ack 1
        90ms   tcb cwnd 4000
        100ms  end
        ",
    );
}

#[test]
fn first_duplicate_ack_repairs_data_past_the_fine_timeout() {
    for (at, repaired) in [("39ms", false), ("41ms", true)] {
        let end = if repaired {
            "
            41ms   note FastRetransmit
            41ms   > . 1001+1000 ack 1 => fast-retransmit
            41ms   tcb ssthresh 2000
            # The next one was lost as well: the first ACK after the repair shows it by the clock.
            51ms   < . ack 2001
            51ms   note RecoveryEnded
            51ms   > . 2001+1000 ack 1 => fast-retransmit
            60ms   end
            "
        } else {
            "
            60ms   end
            "
        };
        check(
            &vegas(3),
            &format!(
                "
            10ms   established
            10ms   > . 1+1000 x3 ack 1
            20ms   < . ack 1001      # 10 ms: the fine timeout is 30 ms
            20ms   > . 3001+1000 ack 1
            20ms   > . 4001+1000 ack 1
            {at}   < . ack 1001
            {end}
            "
            ),
        );
    }
}

#[test]
fn losses_from_before_the_window_shrank_do_not_shrink_it_again() {
    check(
        &vegas(8),
        "
        10ms   established 8000
        10ms   > . 1+1000 x7 ack 1
        10ms   > P. 7001+1000 ack 1
        15ms   < . ack 1
        16ms   < . ack 1
        17ms   < . ack 1
        17ms   note FastRetransmit
        17ms   > . 1+1000 ack 1 => fast-retransmit
        17ms   tcb ssthresh 4000
        25ms   < . ack 1001
        25ms   note RecoveryEnded
        26ms   < . ack 1001
        27ms   < . ack 1001
        28ms   < . ack 1001
        28ms   note FastRetransmit
        28ms   > . 1001+1000 ack 1 => fast-retransmit
        28ms   tcb ssthresh 4000
        30ms   end
        ",
    );
}
