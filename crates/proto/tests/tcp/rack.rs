//! RACK-TLP (RFC 8985), proportional rate reduction (RFC 6937) and reports of duplicates (RFC 2883), rule by rule.

use lasthop_proto::tcp::{GrowthRule, TcpConfig, Variant};
use lasthop_proto::units::Span;

use crate::script::check;
use crate::{fine, sender};

fn rack(segments: u32) -> TcpConfig {
    TcpConfig { sack: true, ..sender(Variant::Rack, segments) }
}

#[test]
fn a_hole_waits_for_a_quarter_of_the_round_trip_in_case_it_is_only_late() {
    //= rfc8985#section-6.2: xmit_ts + RACK.rtt + reo_wnd: 100 + 101 + 25 ms
    check(
        &rack(5),
        "
        100ms  established sackok
        100ms  > . 1+1000 x5 ack 1
        200ms  < . ack 1001
        200ms  > . 5001+1000 ack 1
        200ms  > . 6001+1000 ack 1
        201ms  < . ack 1001 sack 2001-3001
        201ms  > . 7001+1000 ack 1      # what is reported has left the network
        226ms  note FastRetransmit
        226ms  > . 1001+1000 ack 1 => fast-retransmit
        226ms  tcb ssthresh 3000
        300ms  end
        ",
    );
}

#[test]
fn data_within_the_reordering_window_is_not_retransmitted() {
    check(
        &rack(5),
        "
        100ms  established sackok
        100ms  > . 1+1000 x5 ack 1
        200ms  < . ack 1001
        200ms  > . 5001+1000 ack 1
        200ms  > . 6001+1000 ack 1
        201ms  < . ack 1001 sack 2001-3001
        201ms  > . 7001+1000 ack 1
        220ms  < . ack 3001              # it was late
        220ms  > . 8001+1000 ack 1
        220ms  > . 9001+1000 ack 1
        250ms  end
        ",
    );
}

#[test]
fn three_reports_are_enough_as_long_as_no_reordering_was_seen() {
    //= rfc8985#section-6.2: step 4: the reordering window is zero once three segments are reported
    check(
        &rack(5),
        "
        100ms  established sackok
        100ms  > . 1+1000 x5 ack 1
        200ms  < . ack 1 sack 1001-2001
        200ms  > . 5001+1000 ack 1
        201ms  < . ack 1 sack 1001-3001
        201ms  > . 6001+1000 ack 1
        202ms  < . ack 1 sack 1001-4001
        202ms  note FastRetransmit
        202ms  > . 1+1000 ack 1 => fast-retransmit
        202ms  tcb ssthresh 2000             # half of five: the two on reports do not count
        240ms  end
        ",
    );
}

#[test]
fn a_retransmission_that_is_lost_is_sent_again_without_a_time_out() {
    check(
        &rack(5),
        "
        100ms  established sackok
        100ms  > . 1+1000 x5 ack 1
        200ms  < . ack 1 sack 1001-4001      # ACKs were lost: three reports in one
        200ms  note FastRetransmit
        200ms  > . 1+1000 ack 1 => fast-retransmit
        201ms  < . ack 1 sack 1001-5001
        201ms  > . 5001+1000 ack 1           # the pipe is below ssthresh and filled up to it
        300ms  < . ack 1 sack 1001-6001      # this was sent after the retransmission
        300ms  > . 1+1000 ack 1 => fast-retransmit
        300ms  > . 6001+1000 ack 1
        300ms  tcb ssthresh 2000
        400ms  < . ack 7001
        400ms  note RecoveryEnded
        400ms  > . 7001+1000 ack 1
        400ms  > . 8001+1000 ack 1
        400ms  tcb cwnd 2000
        450ms  end
        ",
    );
}

#[test]
fn tail_probes_after_two_rtts_repair_without_timeout() {
    //= rfc8985#section-7: the last segment again; its report shows that the one before is lost
    check(
        &rack(5),
        "
        100ms  established 4000 sackok
        100ms  > . 1+1000 x3 ack 1
        100ms  > FP. 3001+1000 ack 1
        200ms  < . ack 2001                  # two round trips of 100 ms and 2 ms from here
        402ms  note TailLossProbe
        402ms  > FP. 3001+1000 ack 1 => tail-loss-probe
        502ms  < . ack 2001 sack 3001-4002
        502ms  note FastRetransmit
        502ms  > . 2001+1000 ack 1 => fast-retransmit
        602ms  < . ack 4002
        602ms  note RecoveryEnded
        602ms  note Complete
        700ms  end
        ",
    );
}

#[test]
fn a_probe_repairing_a_loss_still_reduces_the_window() {
    //= rfc8985#section-7.4.2: the ACK exceeds the probe, and no duplicate is reported
    let script = |answer: &str, more: &str| {
        format!(
            "
        100ms  established sackok / sackok win 4000
        100ms  > . 1+1000 x4 ack 1
        200ms  < . ack 3001 win 1000         # no room for new data: the probe is the last segment again
        602ms  note TailLossProbe
        602ms  > . 3001+1000 ack 1 => tail-loss-probe
        {answer}
        800ms  < . ack 5001 win 4000
        800ms  > . 5001+1000 ack 1
        800ms  > . 6001+1000 ack 1
        {more}
        810ms  end
        "
        )
    };
    // The probe was needed: its ACK is the only one.
    let repaired = "700ms  < . ack 4001 win 1000
        700ms  > . 4001+1000 ack 1";
    check(&rack(4), &script(repaired, "800ms tcb ssthresh 2000 cwnd 2000"));
    // The probe was needless: the second ACK reports a duplicate.
    let needless = "620ms  < . ack 4001 win 1000
        620ms  > . 4001+1000 ack 1
        700ms  < . ack 4001 win 1000 sack 3001-4001";
    let open = "800ms  > . 7001+1000 ack 1
        800ms  > . 8001+1000 ack 1
        800ms  tcb ssthresh 4294967295";
    check(&rack(4), &script(needless, open));
}

#[test]
fn a_timeout_retains_sack_reports_and_sends_only_losses() {
    //= rfc8985#section-6.3
    check(
        &rack(5),
        "
        100ms  established 4000 sackok
        100ms  > . 1+1000 x3 ack 1
        100ms  > FP. 3001+1000 ack 1
        200ms  < . ack 1 sack 2001-3001
        225ms  note FastRetransmit
        225ms  > . 1+1000 ack 1 => fast-retransmit
        1225ms note Timeout
        1225ms > . 1+1000 ack 1 => timeout-retransmit
        1325ms < . ack 1001 sack 2001-3001
        1325ms > . 1001+1000 ack 1 => timeout-retransmit
        1425ms < . ack 3001
        1425ms > FP. 3001+1000 ack 1 => timeout-retransmit
        1525ms < . ack 4002
        1525ms note Complete
        1600ms end
        ",
    );
}

/// Reports without a new left edge do not postpone the retransmission timer.
#[test]
fn reports_do_not_put_a_time_out_off() {
    check(
        &rack(5),
        "
        100ms  established 4000 sackok
        100ms  > . 1+1000 x3 ack 1
        100ms  > FP. 3001+1000 ack 1
        200ms  < . ack 1 sack 2001-3001
        225ms  note FastRetransmit
        225ms  > . 1+1000 ack 1 => fast-retransmit
        1220ms < . ack 1 sack 2001-4002
        1220ms > . 1001+1000 ack 1 => fast-retransmit
        1225ms note Timeout
        1225ms > . 1+1000 ack 1 => timeout-retransmit
        1400ms end
        ",
    );
}

/// A timeout discards an earlier probe: an ACK beyond it does not indicate that the probe repaired a loss.
#[test]
fn a_time_out_forgets_the_probe_before_it() {
    check(
        &rack(5),
        "
        100ms  established 9000 sackok / sackok win 5000
        100ms  > . 1+1000 x5 ack 1
        302ms  note TailLossProbe
        302ms  > . 4001+1000 ack 1 => tail-loss-probe
        1302ms note Timeout
        1302ms > . 1+1000 ack 1 => timeout-retransmit
        1402ms < . ack 5001
        1402ms > . 5001+1000 ack 1
        1402ms > . 6001+1000 ack 1
        1502ms < . ack 7001
        1502ms > . 7001+1000 ack 1
        1502ms > FP. 8001+1000 ack 1
        1602ms < . ack 9002
        1602ms note Complete
        1700ms end
        ",
    );
}

#[test]
fn a_receiver_that_reneged_gets_everything_again() {
    //= rfc2018#section-8: the first segment was reported and is not acknowledged: reports are forgotten
    check(
        &rack(4),
        "
        100ms  established 3000 sackok
        100ms  > . 1+1000 ack 1
        100ms  > . 1001+1000 ack 1
        100ms  > FP. 2001+1000 ack 1
        200ms  < . ack 1 sack 1001-3002
        225ms  note FastRetransmit
        225ms  > . 1+1000 ack 1 => fast-retransmit
        300ms  < . ack 1001                  # the rest has been discarded
        1300ms note Timeout
        1300ms > . 1001+1000 ack 1 => timeout-retransmit
        1400ms < . ack 2001
        1400ms > FP. 2001+1000 ack 1 => timeout-retransmit
        1500ms < . ack 3002
        1500ms note Complete
        1600ms end
        ",
    );
}

#[test]
fn a_reported_duplicate_widens_the_reordering_window() {
    //= rfc8985#section-6.2: step 4: one more quarter of the shortest round trip for each round trip with a report
    check(
        &rack(4),
        "
        100ms  established sackok
        100ms  > . 1+1000 x4 ack 1
        200ms  < . ack 4001 sack 1-1001      # the first one came twice
        200ms  > . 4001+1000 x5 ack 1
        300ms  < . ack 4001 sack 5001-6001
        300ms  > . 9001+1000 ack 1
        350ms  note FastRetransmit           # 100 + 2 * 25 ms after it was sent
        350ms  > . 4001+1000 ack 1 => fast-retransmit
        390ms  end
        ",
    );
}

#[test]
fn a_duplicate_is_reported_once_in_the_first_block() {
    //= rfc2883#section-4
    let script = |inside: &str, outside: &str| {
        format!(
            "
        10ms   accepted sackok
        20ms   < . 1+100 ack 1
        20ms   note Delivered {{ bytes: 100 }}
        30ms   < . 1+100 ack 1
        30ms   > . ack 101 win 31900{inside}
        40ms   < . 301+100 ack 1
        40ms   > . ack 101 win 31900 sack 301-401
        50ms   < . 301+100 ack 1
        50ms   > . ack 101 win 31900{outside} sack 301-401
        60ms   < . 501+100 ack 1
        60ms   > . ack 101 win 31900 sack 501-601 sack 301-401
        70ms   end
        "
        )
    };
    let config = TcpConfig { sack: true, dsack: true, ..fine() };
    check(&config, &script(" sack 1-101", " sack 301-401"));
    check(&TcpConfig { dsack: false, ..config }, &script("", ""));
}

#[test]
fn of_two_parts_that_came_twice_the_first_is_reported() {
    //= rfc2883#section-4
    check(
        &TcpConfig { sack: true, dsack: true, ..fine() },
        "
        10ms   accepted sackok
        20ms   < . 301+100 ack 1
        20ms   > . ack 1 sack 301-401
        30ms   < . 501+100 ack 1
        30ms   > . ack 1 sack 501-601 sack 301-401
        40ms   < . 301+300 ack 1        # 301 and 501 again, and what lies between
        40ms   > . ack 1 sack 301-401 sack 301-601
        50ms   end
        ",
    );
}

#[test]
fn closed_windows_are_probed_before_lost_data_is_sent() {
    check(
        &rack(3),
        "
        100ms  established 2000 sackok
        100ms  > . 1+1000 ack 1
        100ms  > FP. 1001+1000 ack 1
        200ms  < . ack 1001 win 0            # the window shrinks to nothing
        602ms  note TailLossProbe
        602ms  > FP. 1001+1000 ack 1 => tail-loss-probe
        1602ms note Timeout
        3602ms note WindowProbe
        3602ms > . 1001+1 ack 1 => window-probe
        3700ms < . ack 1001 win 5000
        3700ms > FP. 1001+1000 ack 1 => timeout-retransmit
        3800ms < . ack 2002
        3800ms note Complete
        3900ms end
        ",
    );
}

/// RACK.rtt is updated by each segment that arrives, so an unusually short round trip does not mark later
/// segments lost.
#[test]
fn the_rtt_follows_the_segment_that_arrived_last() {
    //= rfc8985#section-6.2: step 2
    check(
        &rack(4),
        "
        100ms  established sackok
        100ms  > . 1+1000 x4 ack 1
        200ms  < . ack 1001
        200ms  > . 4001+1000 x2 ack 1
        202ms  < . ack 2001
        202ms  > . 6001+1000 x2 ack 1
        204ms  < . ack 3001
        204ms  > . 8001+1000 x2 ack 1
        206ms  < . ack 4001
        206ms  > . 10001+1000 x2 ack 1
        280ms  < . ack 4001 sack 11001-12001   # 74 ms for what left at 206 ms
        280ms  > . 12001+1000 ack 1
        285ms  < . ack 5001 sack 11001-12001   # 85 ms for what left at 200 ms
        285ms  > . 13001+1000 x2 ack 1
        309.500ms note FastRetransmit          # 206 + 85 + 74 / 4 ms
        309.500ms > . 5001+1000 ack 1 => fast-retransmit
        400ms  end
        ",
    );
}

/// Reports of a late ACK count as well.
#[test]
fn linux_heeds_the_reports_of_an_ack_that_came_late() {
    check(
        &TcpConfig { growth: GrowthRule::Linux, rto_min: Span::millis(200), ..rack(10) },
        "
        100ms  established 10000 sackok
        100ms  > . 1+1000 x9 pairs ack 1
        100ms  > P. 9001+1000 ack 1
        200ms  < . ack 3001
        200ms  > F. at 10001 ack 1
        200ms  < . ack 2001 sack 5001-9001
        200ms  note FastRetransmit
        200ms  > . 3001+1000 ack 1 => fast-retransmit
        200ms  > . 4001+1000 ack 1 => fast-retransmit
        300ms  end
        ",
    );
}

/// A report of half a segment does not mean that the segment has arrived.
#[test]
fn a_report_of_half_a_segment_leaves_the_probe_of_the_tail() {
    check(
        &TcpConfig { growth: GrowthRule::Linux, rto_min: Span::millis(200), ..rack(10) },
        "
        100ms  established 1000 sackok
        100ms  > P. 1+1000 ack 1
        100ms  > F. at 1001 ack 1
        150ms  < . ack 1 sack 501-1001
        308ms  note TailLossProbe
        308ms  > F. at 1001 ack 1 => tail-loss-probe
        500ms  end
        ",
    );
}

/// While reports arrive for segments sent before the oldest segment's last transmission, that segment may
/// still arrive.
#[test]
fn with_linux_reports_of_older_segments_start_the_timer_again() {
    let config = TcpConfig { growth: GrowthRule::Linux, rto_min: Span::millis(200), ..rack(8) };
    check(
        &config,
        "
        100ms  established 8000 sackok
        100ms  > . 1+1000 x7 pairs ack 1
        100ms  > P. 7001+1000 ack 1
        200ms  < . ack 1 sack 1001-4001
        200ms  note FastRetransmit
        200ms  > . 1+1000 ack 1 => fast-retransmit
        400ms  < . ack 1 sack 1001-5001        # 300 ms for what left before that
        600ms  < . ack 1 sack 1001-6001
        600ms  > F. at 8001 ack 1
        1381.250ms note Timeout                # the timeout after the last report
        1381.250ms > . 1+1000 ack 1 => timeout-retransmit
        1500ms end
        ",
    );
}

/// If the peer does not permit SACK, the first two duplicate ACKs send new data. The first ACK behind a SYN-ACK updates the
/// window, so it is none.
#[test]
fn without_sack_linux_transmits_on_duplicate_acks() {
    //= rfc3042#section-2
    check(
        &TcpConfig { growth: GrowthRule::Linux, ..rack(4) },
        "
        100ms  established sackok /
        100ms  > . 1+1000 x4 pairs ack 1
        190ms  < . ack 1
        200ms  < . ack 1
        200ms  > . 4001+1000 ack 1
        205ms  < . ack 1
        205ms  > . 5001+1000 ack 1
        210ms  < . ack 1
        210ms  note FastRetransmit
        210ms  > . 1+1000 ack 1 => fast-retransmit
        300ms  end
        ",
    );
}

/// The application of Linux writes before it closes. So the FIN is a separate segment, unless data waits for the window.
#[test]
fn the_fin_is_part_of_the_last_segment_only_if_that_waits() {
    let linux = |segments| TcpConfig {
        growth: GrowthRule::Linux,
        rto_min: Span::millis(200),
        ..rack(segments)
    };
    check(
        &linux(10),
        "
        100ms  established 2000 sackok
        100ms  > . 1+1000 ack 1
        100ms  > P. 1001+1000 ack 1
        100ms  > F. at 2001 ack 1
        150ms  end
        ",
    );
    check(
        &linux(1),
        "
        100ms  established 2000 sackok
        100ms  > . 1+1000 ack 1
        200ms  < . ack 1001
        200ms  > FP. 1001+1000 ack 1
        250ms  end
        ",
    );
}
