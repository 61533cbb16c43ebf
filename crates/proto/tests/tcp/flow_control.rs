//! The windows of the peer and of this end: closed, small, and opening.

use lasthop_proto::tcp::config::GivingUp;
use lasthop_proto::tcp::{Clock, GrowthRule, IdleRestart, TcpConfig};
use lasthop_proto::units::Span;

use crate::fine;
use crate::script::check;

#[test]
fn a_closed_window_is_probed_ever_more_slowly_and_without_congestion() {
    //= rfc9293#section-3.8.6.1
    check(
        &TcpConfig { rto_max: Span::secs(5), initial_window: 2, ..fine() },
        "
        10ms   established / win 2000
        10ms   > . 1+1000 ack 1
        10ms   > . 1001+1000 ack 1
        20ms   < . ack 2001 win 0
        1020ms note WindowProbe
        1020ms > . 2001+1 ack 1 => window-probe
        1030ms < . ack 2001 win 0
        3020ms note WindowProbe
        3020ms > . 2001+1 ack 1 => window-probe
        3030ms < . ack 2001 win 0
        7020ms note WindowProbe
        7020ms > . 2001+1 ack 1 => window-probe
        7030ms < . ack 2001 win 0      # four answers alike are no sign of loss
        12020ms note WindowProbe
        12020ms > . 2001+1 ack 1 => window-probe
        12030ms < . ack 2001 win 0
        17020ms note WindowProbe
        17020ms > . 2001+1 ack 1 => window-probe
        17030ms < . ack 2002 win 2000      # this one found room
        17030ms > . 2002+1000 ack 1
        17030ms > . 3002+1000 ack 1
        17030ms tcb cwnd 2000 ssthresh 4294967295   # the initial window, after a second of silence
        17050ms end
        ",
    );
}

#[test]
fn the_update_of_the_window_ends_the_probing() {
    check(
        &fine(),
        "
        10ms   established 2000 / win 1000
        10ms   > . 1+1000 ack 1
        20ms   < . ack 1001 win 0
        30ms   < . ack 1001 win 1000
        30ms   > P. 1001+1000 ack 1
        40ms   < . ack 2001 win 0
        40ms   note Complete
        1040ms note WindowProbe
        1040ms > F. at 2001 ack 1 => window-probe
        1050ms < . ack 2002 win 0      # the probe was the FIN
        90s    end
        ",
    );
}

#[test]
fn a_sender_sends_no_silly_segments() {
    //= rfc9293#section-3.8.6.2.1
    check(
        &TcpConfig { initial_window: 4, ..fine() },
        "
        10ms   established 9000 / win 2500
        10ms   > . 1+1000 ack 1
        10ms   > . 1001+1000 ack 1
        20ms   < . ack 1001 win 1900      # 900 bytes: less than a segment and than half the window
        30ms   < . ack 2001 win 1250
        30ms   > . 2001+1000 ack 1
        40ms   < . ack 3001 win 200      # until the override timeout
        1040ms note WindowProbe
        1040ms > . 3001+200 ack 1
        1300ms end
        ",
    );
}

#[test]
fn half_of_the_largest_window_is_worth_a_segment() {
    check(
        &TcpConfig { initial_window: 4, ..fine() },
        "
        10ms   established 9000 / win 1200
        10ms   > . 1+1000 ack 1
        20ms   < . ack 1001 win 700
        20ms   > . 1001+700 ack 1
        30ms   < . ack 1701 win 599
        100ms  end
        ",
    );
}

#[test]
fn the_last_bytes_need_no_full_segment() {
    check(
        &TcpConfig { initial_window: 4, ..fine() },
        "
        10ms   established 1300
        10ms   > . 1+1000 ack 1
        10ms   > FP. 1001+300 ack 1
        20ms   end
        ",
    );
}

#[test]
fn a_receiver_opens_its_window_by_worthwhile_steps() {
    //= rfc9293#section-3.8.6.2.2
    check(
        &TcpConfig { recv_buffer: 4000, ..fine() },
        "
        10ms   accepted
        10ms   stop-reading
        20ms   < . 1+1000 ack 1
        20ms   note Delivered { bytes: 1000 }
        21ms   < . 1001+1000 ack 1
        21ms   note Delivered { bytes: 1000 }
        21ms   > . ack 2001 win 2000
        22ms   < . 2001+1000 ack 1
        22ms   note Delivered { bytes: 1000 }
        23ms   < . 3001+1000 ack 1
        23ms   note Delivered { bytes: 1000 }
        23ms   > . ack 4001 win 0
        30ms   < . 4001+1 ack 1      # a probe: refused, answered
        30ms   > . ack 4001 win 0
        40ms   read 500      # less than a segment
        41ms   < . 4001+1 ack 1
        41ms   > . ack 4001 win 0
        50ms   read 500
        50ms   > . ack 4001 win 1000
        51ms   < . 4001+1 ack 1
        51ms   note Delivered { bytes: 1 }
        60ms   read 2000
        60ms   > . ack 4002 win 2999
        100ms  end
        ",
    );
}

#[test]
fn data_beyond_the_window_is_trimmed() {
    check(
        &TcpConfig { recv_buffer: 4000, ..fine() },
        "
        10ms   accepted
        10ms   stop-reading
        20ms   < F. 1+5000 ack 1      # 4000 fit; the FIN does not
        20ms   note Delivered { bytes: 4000 }
        20ms   > . ack 4001 win 0
        30ms   < . 4001+1000 ack 1
        30ms   > . ack 4001 win 0
        100ms  end
        ",
    );
}

#[test]
fn a_window_that_was_taken_back_is_probed_after_the_time_out() {
    check(
        &TcpConfig { initial_window: 2, max_retries: 3, ..fine() },
        "
        10ms   established 4000
        10ms   > . 1+1000 ack 1
        10ms   > . 1001+1000 ack 1
        20ms   < . ack 1 win 0
        1010ms note Timeout
        1020ms < . ack 1 win 0
        2020ms < . ack 1 win 0
        3010ms note WindowProbe
        3010ms > . 1+1 ack 1 => window-probe
        3030ms < . ack 1 win 4000
        3030ms > . 1+1000 ack 1 => timeout-retransmit
        3100ms end
        ",
    );
}

/// 4.4BSD stops its timer when the window shrinks to zero, and leaves its congestion window unchanged.
#[test]
fn with_the_timers_of_bsd_a_window_that_was_taken_back_is_probed_without_a_time_out() {
    let clock = Clock::Ticks { slow: Span::millis(500), fast: Span::millis(200) };
    check(
        &TcpConfig { clock, initial_window: 2, max_retries: 3, ..fine() },
        "
        10ms   established 4000
        10ms   > . 1+1000 ack 1
        10ms   > . 1001+1000 ack 1
        20ms   < . ack 1 win 0
        1130ms note WindowProbe
        1130ms > . 1+1 ack 1 => window-probe
        1140ms < . ack 1 win 0
        1600ms < . ack 1 win 4000
        1600ms > . 1+1000 ack 1 => timeout-retransmit
        1600ms > . 1001+1000 ack 1 => timeout-retransmit
        1610ms < . ack 2001 win 4000
        1610ms > . 2001+1000 ack 1
        1610ms > FP. 3001+1000 ack 1
        1620ms < . ack 4001 win 4000
        1620ms note Complete
        1700ms end
        ",
    );
}

#[test]
fn an_old_ack_does_not_change_the_window() {
    check(
        &TcpConfig { initial_window: 2, ..fine() },
        "
        10ms   established / win 2000
        10ms   > . 1+1000 ack 1
        10ms   > . 1001+1000 ack 1
        20ms   < . ack 2001 win 2000
        20ms   > . 2001+1000 ack 1
        20ms   > . 3001+1000 ack 1
        21ms   < . ack 1001 win 9000
        22ms   < . ack 2001 win 2000
        30ms   end
        ",
    );
}

/// Window probes back off as timeouts do. With the rule of Linux a peer that answers none of them ends the
/// connection; one that answers is probed without limit.
#[test]
fn linux_gives_up_a_peer_that_answers_no_window_probe() {
    let config = TcpConfig {
        rto_min: Span::millis(200),
        rto_max: Span::secs(20),
        backoff_max: 0,
        max_retries: 8,
        giving_up: GivingUp::Time,
        ..fine()
    };
    let probes = |times: &[u32], answers: bool| {
        let mut script = "100ms established / win 0\n100ms > . ack 1\n".to_owned();
        for at in times {
            script += &format!("{at}ms note WindowProbe\n{at}ms > . 1+1 ack 1 => window-probe\n");
            if answers {
                script += &format!("{at}ms < . ack 1 win 0\n");
            }
        }
        script
    };
    // 300 ms, doubled up to 20 s.
    let times = [400, 1000, 2200, 4600, 9400, 19_000, 38_200, 58_200];
    let given_up = "78200ms note WindowProbe\n78200ms note Aborted\n300s end";
    check(&config, &(probes(&times, false) + given_up));
    let more = [&times[..], &[78_200, 98_200, 118_200]].concat();
    check(&config, &(probes(&more, true) + "138s end"));
    let count = TcpConfig { giving_up: GivingUp::Count, ..config };
    check(&count, &(probes(&more, false) + "138s end"));
}

/// Linux probes a closed window by a segment without data below the window.
#[test]
fn linux_probes_a_closed_window_without_data() {
    // The window is unchanged during the silence.
    let slow_start_after_idle = IdleRestart::Off;
    let rto_min = Span::millis(200);
    check(
        &TcpConfig { growth: GrowthRule::Linux, rto_min, slow_start_after_idle, ..fine() },
        "
        100ms  established
        100ms  > . 1+1000 ack 1
        200ms  < . ack 1001 win 0
        450ms  note WindowProbe
        450ms  > . at 1000 ack 1 => window-probe
        600ms  < . ack 1001 win 4000
        600ms  > . 1001+1000 x2 ack 1
        650ms  end
        ",
    );
}
