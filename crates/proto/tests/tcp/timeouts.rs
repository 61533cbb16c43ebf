//! The retransmission timer: its expiry, Karn's rule, backoff, and aborts.

use lasthop_proto::tcp::config::{GivingUp, TimerOrder};
use lasthop_proto::tcp::{GrowthRule, TcpConfig, Variant};
use lasthop_proto::units::Span;

use crate::script::check;
use crate::{bsd, fine};

/// Some TCPs set the timer before they process the round-trip time, so it uses the previous estimate; with
/// all data acknowledged it does not run. Such TCPs back off from the second timeout on.
#[test]
fn timers_use_the_estimate_before_or_after_the_sample() {
    // The handshake gives 100 ms and 50 ms: 300 ms. With the first segment they become 100 ms and 37.5 ms:
    // 250 ms.
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
fn karn_a_retransmission_is_not_measured_and_backoff_stays() {
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
        1600ms < . ack 2001      # sent once: measured, and the backoff ends
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
    //= rfc5681#section-3.1: but BSD halves at each timeout, down to two segments
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
        1020ms < . ack 1001      # progress: counted anew, although Karn keeps the backoff
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

/// The timeout doubles beyond 64 times the first one, up to the maximum: only BSD stops earlier.
#[test]
fn backoff_is_bounded_by_the_largest_timeout_alone_except_in_bsd() {
    let config = TcpConfig {
        rto_min: Span::millis(200),
        rto_max: Span::secs(120),
        max_retries: 11,
        ..fine()
    };
    let script = |times: &[&str]| {
        let mut script = "100ms established\n100ms > . 1+1000 ack 1\n".to_owned();
        for at in times {
            script += &format!("{at} note Timeout\n{at} > . 1+1000 ack 1 => timeout-retransmit\n");
        }
        script
    };
    // 300 ms, doubled nine times, and twice the maximum.
    let times = ["400ms", "1000ms", "2200ms", "4600ms", "9400ms", "19000ms", "38200ms", "76600ms"];
    let all = [&times[..], &["153400ms", "273400ms", "393400ms"]].concat();
    check(&config, &format!("{}\n500s end", script(&all)));
    let bsd = TcpConfig { backoff_max: 64, ..config };
    let times = [&times[..7], &["57400ms", "76600ms", "95800ms", "115000ms"]].concat();
    check(&bsd, &format!("{}\n134s end", script(&times)));
}

/// Linux measures the silence: 3 timeouts mean 0.2, 0.4, 0.8 and 1.6 s, for any round-trip time.
#[test]
fn linux_gives_up_by_time_and_without_a_reset() {
    let config = TcpConfig {
        max_retries: 3,
        giving_up: GivingUp::Time,
        rto_min: Span::millis(200),
        ..fine()
    };
    check(
        &config,
        "
        100ms  established
        100ms  > . 1+1000 ack 1
        400ms  note Timeout
        400ms  > . 1+1000 ack 1 => timeout-retransmit
        1000ms note Timeout
        1000ms > . 1+1000 ack 1 => timeout-retransmit
        2200ms note Timeout
        2200ms > . 1+1000 ack 1 => timeout-retransmit
        4600ms note Timeout                   # 4.2 s after the first one
        4600ms note Aborted
        9000ms end
        ",
    );
}

/// A SYN whose timer has expired gives no round-trip time. RFC 6298 then uses three seconds until there is
/// one.
#[test]
fn after_a_lost_syn_the_timeout_is_three_seconds_until_a_round_trip_is_measured() {
    //= rfc6298#section-5.7
    for (growth, cwnd) in [(GrowthRule::Rfc5681, 1), (GrowthRule::Linux, 4)] {
        let push = |n| if n % 2 == 1 { "P" } else { "" };
        let more = (1..cwnd)
            .map(|n| format!("1100ms > {}. {n}001+1000 ack 1\n", push(n)))
            .collect::<String>();
        check(
            &TcpConfig { growth, initial_window: 4, ..fine() },
            &format!(
                "
                0ms    open
                0ms    > S mss 1000
                1000ms note Timeout
                1000ms > S mss 1000
                1100ms < S. ack 1 mss 1000
                1100ms note Established
                1100ms > . 1+1000 ack 1
                {more}
                1100ms tcb cwnd {cwnd}000 rto 3s backoff 0
                4100ms note Timeout
                4100ms > . 1+1000 ack 1 => timeout-retransmit
                4200ms end
                "
            ),
        );
    }
}

/// The echo identifies the SYN that was answered, which gives a round-trip time.
#[test]
fn with_timestamps_a_lost_syn_leaves_a_round_trip() {
    check(
        &TcpConfig { timestamps: true, ..fine() },
        "
        0ms    open
        0ms    > S mss 1000 ts 0 0
        1000ms note Timeout
        1000ms > S mss 1000 ts 1000 0
        1400ms < S. ack 1 mss 1000 ts 500 1000
        1400ms note Established
        1400ms > . 1+988 ack 1 ts 1400 500
        1400ms tcb rto 1.2s backoff 0
        1500ms end
        ",
    );
}

/// Linux sends the first SYNs at equal intervals, and has separate limits for retransmissions of SYN and
/// SYN-ACK.
#[test]
fn syns_of_linux_go_four_times_before_their_timeout_doubles() {
    let config =
        TcpConfig { syn_retries: Some(7), syn_linear: 4, syn_ack_retries: Some(2), ..fine() };
    let mut script = "0ms open\n0ms > S mss 1000\n".to_owned();
    for at in [1, 2, 3, 4, 5, 7, 11] {
        script += &format!("{at}000ms note Timeout\n{at}000ms > S mss 1000\n");
    }
    check(&config, &(script + "19000ms note Timeout\n19000ms note Aborted\n60s end\n"));
    check(
        &config,
        "
        0ms    < S mss 1000
        0ms    > S. ack 1 mss 1000
        1000ms note Timeout
        1000ms > S. ack 1 mss 1000
        3000ms note Timeout
        3000ms > S. ack 1 mss 1000
        7000ms note Timeout
        7000ms > R. ack 1
        7000ms note Aborted
        60s    end
        ",
    );
}
