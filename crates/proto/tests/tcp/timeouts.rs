//! The retransmission timer: when it expires, Karn's rule, back-off, and giving up.

use lasthop_proto::tcp::config::TimerOrder;
use lasthop_proto::tcp::{TcpConfig, Variant};
use lasthop_proto::units::Span;

use crate::script::check;
use crate::{bsd, fine};

/// Some TCPs set the timer before they take the round trip in, so that it runs by the estimate of before; with all
/// acknowledged it does not run. Those back off from the second time-out on.
#[test]
fn the_timer_goes_by_the_estimate_of_before_or_of_after() {
    // The handshake gives 100 ms and 50 ms: 300 ms. The first segment makes 100 ms and 37.5 ms of that: 250 ms.
    for (timer_order, at, next) in
        [(TimerOrder::Last, "450ms", "950ms"), (TimerOrder::First, "500ms", "750ms")]
    {
        let config = TcpConfig {
            timer_order,
            rto_min: Span::millis(100),
            initial_window: 2,
            variant: Variant::Reno,
            ..fine()
        };
        check(
            &config,
            &format!(
                "
                100ms  established 2000
                100ms  > . 1+1000 ack 1
                100ms  > P. 1001+1000 ack 1
                200ms  < . ack 1001
                200ms  > F. at 2001 ack 1
                {at}  note Timeout
                {at}  > P. 1001+1000 ack 1 => timeout-retransmit
                {next}  note Timeout
                {next}  > P. 1001+1000 ack 1 => timeout-retransmit
                1100ms  < . ack 2002
                1100ms  note Complete
                9000ms  end
                "
            ),
        );
    }
}

#[test]
fn each_time_out_doubles_the_next_up_to_the_maximum() {
    //= rfc6298#section-5.5
    check(
        &TcpConfig { rto_max: Span::secs(5), ..fine() },
        "
        100ms  established
        100ms  > . 1+1000 ack 1
        100ms  tcb rto 1s      # 100 + 4 * 50 ms is below the minimum
        1100ms note Timeout
        1100ms > . 1+1000 ack 1 => timeout-retransmit
        3100ms note Timeout
        3100ms > . 1+1000 ack 1 => timeout-retransmit
        7100ms note Timeout
        7100ms > . 1+1000 ack 1 => timeout-retransmit
        12100ms note Timeout
        12100ms > . 1+1000 ack 1 => timeout-retransmit
        15200ms end
        ",
    );
}

#[test]
fn karn_a_retransmitted_segment_is_not_measured_and_keeps_the_back_off() {
    check(
        &fine(),
        "
        100ms  established
        100ms  > . 1+1000 ack 1
        1100ms note Timeout
        1100ms > . 1+1000 ack 1 => timeout-retransmit
        1500ms < . ack 1001      # of which transmission?
        1500ms > . 1001+1000 ack 1
        1500ms > . 2001+1000 ack 1
        1500ms tcb rto 2s backoff 1
        1600ms < . ack 2001      # sent once: measured, and the back-off ends
        1600ms > . 3001+1000 ack 1
        1600ms > . 4001+1000 ack 1
        1600ms tcb rto 1s backoff 0
        1700ms end
        ",
    );
}

#[test]
fn timestamps_measure_every_segment() {
    check(
        &TcpConfig { timestamps: true, ..fine() },
        "
        100ms  established ts 0 0 / ts 5000 0
        100ms  > . 1+988 ack 1 ts 100 5000
        1100ms note Timeout
        1100ms > . 1+988 ack 1 ts 1100 5000 => timeout-retransmit
        1500ms < . ack 989 ts 6000 1100      # the echo tells: it was the second transmission
        1500ms > . 989+988 ack 1 ts 1500 6000
        1500ms > . 1977+988 ack 1 ts 1500 6000
        1500ms tcb rto 1s backoff 0
        1600ms end
        ",
    );
}

#[test]
fn a_time_out_sends_everything_again_from_a_window_of_one() {
    check(
        &TcpConfig { initial_window: 4, ..fine() },
        "
        10ms   established
        10ms   > . 1+1000 x4 ack 1
        1010ms note Timeout
        1010ms > . 1+1000 ack 1 => timeout-retransmit
        1015ms tcb cwnd 1000 ssthresh 2000 backoff 1
        1020ms < . ack 1001
        1020ms > . 1001+1000 ack 1 => timeout-retransmit
        1020ms > . 2001+1000 ack 1 => timeout-retransmit
        1030ms < . ack 4001      # the rest had arrived
        1030ms > . 4001+1000 x3 ack 1
        1040ms end
        ",
    );
}

#[test]
fn the_threshold_is_held_while_the_same_segment_times_out() {
    //= rfc5681#section-3.1: but BSD halves at each time-out, down to two segments
    check(
        &TcpConfig { initial_window: 8, ..fine() },
        "
        10ms   established
        10ms   > . 1+1000 x8 ack 1
        1010ms note Timeout
        1010ms > . 1+1000 ack 1 => timeout-retransmit
        1010ms tcb ssthresh 4000
        3010ms note Timeout
        3010ms > . 1+1000 ack 1 => timeout-retransmit
        3010ms tcb ssthresh 4000
        3020ms end
        ",
    );
    check(
        &TcpConfig { initial_window: 8, ..bsd() },
        "
        10ms   established
        10ms   > . 1+1000 x8 ack 1
        1130ms note Timeout
        1130ms > . 1+1000 ack 1 => timeout-retransmit
        1200ms tcb ssthresh 4000
        4130ms note Timeout
        4130ms > . 1+1000 ack 1 => timeout-retransmit
        5000ms tcb ssthresh 2000
        5000ms end
        ",
    );
}

#[test]
fn bsd_timers_expire_on_ticks() {
    // The host's slow ticks come at 130, 630, 1130 ms and so on.
    check(
        &bsd(),
        "
        10ms   established
        10ms   > . 1+1000 ack 1
        10ms   tcb rto 1.5s      # a round trip without a tick: srtt 1, rttvar 0.5 ticks
        1130ms note Timeout
        1130ms > . 1+1000 ack 1 => timeout-retransmit
        4130ms note Timeout
        4130ms > . 1+1000 ack 1 => timeout-retransmit
        5000ms end
        ",
    );
}

#[test]
fn bsd_sends_the_second_syn_after_six_seconds_and_the_third_24_later() {
    check(
        &bsd(),
        "
        0ms    open
        0ms    > S mss 1000
        5630ms note Timeout
        5630ms > S mss 1000
        29630ms note Timeout
        29630ms > S mss 1000
        40s    end
        ",
    );
}

#[test]
fn an_ack_of_everything_stops_the_timer_and_another_restarts_it() {
    //= rfc6298#section-5.2: off when all is acknowledged
    //= rfc6298#section-5.3: anew when something is
    check(
        &TcpConfig { initial_window: 2, ..fine() },
        "
        10ms   established 2000
        10ms   > . 1+1000 ack 1
        10ms   > P. 1001+1000 ack 1
        510ms  < . ack 1001      # expires a second after this
        510ms  > F. at 2001 ack 1
        1510ms note Timeout
        1510ms > P. 1001+1000 ack 1 => timeout-retransmit
        1520ms < . ack 2002
        1520ms note Complete
        60s    end
        ",
    );
}

#[test]
fn a_connection_is_given_up_after_too_many_time_outs_in_a_row() {
    check(
        &TcpConfig { max_retries: 2, ..fine() },
        "
        10ms   established
        10ms   > . 1+1000 ack 1
        1010ms note Timeout
        1010ms > . 1+1000 ack 1 => timeout-retransmit
        1020ms < . ack 1001      # progress: counted anew, although Karn keeps the back-off
        1020ms > . 1001+1000 ack 1
        1020ms > . 2001+1000 ack 1
        3020ms note Timeout
        3020ms > . 1001+1000 ack 1 => timeout-retransmit
        7020ms note Timeout
        7020ms > . 1001+1000 ack 1 => timeout-retransmit
        15020ms note Timeout
        15020ms > R. at 3001 ack 1
        15020ms note Aborted
        60s    end
        60s    < . ack 3001      # it is no more
        61s    end
        ",
    );
}
