//! The receiver: times of its ACKs, and the contents of its SACK blocks.

use lasthop_proto::tcp::config::MaxSeg;
use lasthop_proto::tcp::{DelayedAck, TcpConfig};
use lasthop_proto::units::Span;

use crate::script::check;
use crate::{bsd, fine};

#[test]
fn every_second_segment_is_acknowledged_at_once() {
    //= rfc5681#section-4.2
    check(
        &fine(),
        "
        10ms   accepted
        20ms   < . 1+1000 ack 1
        20ms   note Delivered { bytes: 1000 }
        21ms   < . 1001+1000 ack 1
        21ms   note Delivered { bytes: 1000 }
        21ms   > . ack 2001
        22ms   < . 2001+1000 ack 1      # alone: after 200 ms
        22ms   note Delivered { bytes: 1000 }
        222ms  > . ack 3001
        500ms  end
        ",
    );
}

#[test]
fn bsd_sends_delayed_acks_on_the_fast_tick() {
    // At 70, 270, 470 ms and so on.
    check(
        &bsd(),
        "
        10ms   accepted
        60ms   < . 1+1000 ack 1
        60ms   note Delivered { bytes: 1000 }
        70ms   > . ack 1001
        71ms   < . 1001+1000 ack 1
        71ms   note Delivered { bytes: 1000 }
        270ms  > . ack 2001
        500ms  end
        ",
    );
}

#[test]
fn a_receiver_may_acknowledge_each_segment() {
    check(
        &TcpConfig { delayed_ack: DelayedAck { every: 1, timeout: Span::ZERO }, ..fine() },
        "
        10ms   accepted
        20ms   < . 1+1000 ack 1
        20ms   note Delivered { bytes: 1000 }
        20ms   > . ack 1001
        21ms   < . 1001+1000 ack 1
        21ms   note Delivered { bytes: 1000 }
        21ms   > . ack 2001
        500ms  end
        ",
    );
}

#[test]
fn disorder_and_the_end_of_it_are_acknowledged_at_once() {
    check(
        &fine(),
        "
        10ms   accepted
        20ms   < . 1001+1000 ack 1
        20ms   > . ack 1
        21ms   < . 3001+1000 ack 1
        21ms   > . ack 1
        22ms   < . 1+1000 ack 1      # fills a hole
        22ms   note Delivered { bytes: 2000 }
        22ms   > . ack 2001
        23ms   < . 1+1000 ack 1      # seen before
        23ms   > . ack 2001
        24ms   < . 1501+1500 ack 1      # half of it seen before; fills the other hole
        24ms   note Delivered { bytes: 2000 }
        24ms   > . ack 4001
        500ms  end
        ",
    );
}

#[test]
fn sack_blocks_are_newest_first_and_sent_three_times() {
    //= rfc2018#section-4
    check(
        &TcpConfig { sack: true, ..fine() },
        "
        10ms   accepted sackok
        20ms   < . 1001+1000 ack 1
        20ms   > . ack 1 sack 1001-2001
        21ms   < . 3001+1000 ack 1
        21ms   > . ack 1 sack 3001-4001 sack 1001-2001
        22ms   < . 5001+1000 ack 1
        22ms   > . ack 1 sack 5001-6001 sack 3001-4001 sack 1001-2001
        23ms   < . 7001+1000 ack 1
        23ms   > . ack 1 sack 7001-8001 sack 5001-6001 sack 3001-4001 sack 1001-2001
        24ms   < . 9001+1000 ack 1      # five blocks, and room for four
        24ms   > . ack 1 sack 9001-10001 sack 7001-8001 sack 5001-6001 sack 3001-4001
        25ms   < . 2001+1000 ack 1      # joins two
        25ms   > . ack 1 sack 1001-4001 sack 9001-10001 sack 7001-8001 sack 5001-6001
        26ms   < . 1+1000 ack 1
        26ms   note Delivered { bytes: 4000 }
        26ms   > . ack 4001 sack 9001-10001 sack 7001-8001 sack 5001-6001
        100ms  end
        ",
    );
}

#[test]
fn timestamps_leave_room_for_three_blocks() {
    check(
        &TcpConfig { sack: true, timestamps: true, ..fine() },
        "
        0ms    < S mss 1000 sackok ts 100 0
        0ms    > S. ack 1 mss 1000 sackok ts 0 100
        10ms   < . ack 1 ts 110 0
        10ms   note Established
        20ms   < . 1001+900 ack 1 ts 120 0
        20ms   > . ack 1 ts 20 110 sack 1001-1901
        21ms   < . 3001+900 ack 1 ts 121 0
        21ms   > . ack 1 ts 21 110 sack 3001-3901 sack 1001-1901
        22ms   < . 5001+900 ack 1 ts 122 0
        22ms   > . ack 1 ts 22 110 sack 5001-5901 sack 3001-3901 sack 1001-1901
        23ms   < . 7001+900 ack 1 ts 123 0
        23ms   > . ack 1 ts 23 110 sack 7001-7901 sack 5001-5901 sack 3001-3901
        100ms  end
        ",
    );
}

#[test]
fn an_ack_echoes_the_timestamp_of_the_first_segment_it_answers() {
    //= rfc7323#section-4.3
    check(
        &TcpConfig { timestamps: true, ..fine() },
        "
        0ms    < S mss 1000 ts 100 0
        0ms    > S. ack 1 mss 1000 ts 0 100
        10ms   < . ack 1 ts 110 0
        10ms   note Established
        20ms   < . 1+900 ack 1 ts 120 0
        20ms   note Delivered { bytes: 900 }
        30ms   < . 901+900 ack 1 ts 130 0
        30ms   note Delivered { bytes: 900 }
        30ms   > . ack 1801 ts 30 120
        40ms   < . 2701+900 ack 1 ts 140 0      # beyond a hole: the echo stays
        40ms   > . ack 1801 ts 40 120
        100ms  end
        ",
    );
}

#[test]
fn paws_rejects_an_old_segment_by_its_timestamp() {
    //= rfc7323#section-5.3
    check(
        &TcpConfig { timestamps: true, ..fine() },
        "
        0ms    < S mss 1000 ts 100 0
        0ms    > S. ack 1 mss 1000 ts 0 100
        10ms   < . ack 1 ts 110 0
        10ms   note Established
        20ms   < . 1+900 ack 1 ts 120 0
        20ms   note Delivered { bytes: 900 }
        30ms   < . 901+900 ack 1 ts 119 0      # PAWS: not taken
        30ms   > . ack 901 win 31100 ts 30 120
        40ms   < R at 901 ts 50 0      # a reset needs no timestamp
        40ms   note Aborted
        100ms  end
        ",
    );
}

/// The peer's clock may have wrapped around meanwhile.
#[test]
fn a_timestamp_older_than_24_days_rejects_nothing() {
    //= rfc7323#section-5.5
    check(
        &TcpConfig { timestamps: true, ..fine() },
        "
        0ms           < S mss 1000 ts 100 0
        0ms           > S. ack 1 mss 1000 ts 0 100
        10ms          < . ack 1 ts 110 0
        10ms          note Established
        2073600009ms  < . 1+900 ack 1 ts 109 0      # PAWS: rejected
        2073600009ms  > . ack 1 ts 2073600009 110
        2073600011ms  < . 1+900 ack 1 ts 109 0
        2073600011ms  note Delivered { bytes: 900 }
        2073600012ms  < . 901+900 ack 1 ts 108 0    # PAWS: rejected
        2073600012ms  > . ack 901 win 31100 ts 2073600012 109
        2073600013ms  end
        ",
    );
}

/// Acknowledges by time alone, as agarwal00 4.5 proposes, with a window of eight segments.
fn by_time() -> TcpConfig {
    let delayed_ack = DelayedAck { every: DelayedAck::BY_TIME, timeout: Span::millis(500) };
    TcpConfig { delayed_ack, recv_buffer: 8000, ..fine() }
}

#[test]
fn by_time_alone_segments_wait_together() {
    //= agarwal00#4.5: delayed ACKs, say every 500 ms, instead of one for every two full segments
    check(
        &by_time(),
        "
        10ms   accepted
        20ms   < . 1+1000 ack 1
        20ms   note Delivered { bytes: 1000 }
        21ms   < . 1001+1000 ack 1
        21ms   note Delivered { bytes: 1000 }
        30ms   < . 2001+1000 ack 1
        30ms   note Delivered { bytes: 1000 }
        520ms  > . ack 3001
        530ms  < . 3001+1000 ack 1      # what comes next waits anew
        530ms  note Delivered { bytes: 1000 }
        1030ms > . ack 4001
        2s     end
        ",
    );
}

#[test]
fn by_time_alone_a_window_that_is_half_used_up_is_opened_at_once() {
    check(
        &by_time(),
        "
        10ms   accepted
        20ms   < . 1+1000 ack 1
        20ms   note Delivered { bytes: 1000 }
        21ms   < . 1001+1000 ack 1
        21ms   note Delivered { bytes: 1000 }
        22ms   < . 2001+1000 ack 1
        22ms   note Delivered { bytes: 1000 }
        23ms   < . 3001+1000 ack 1
        23ms   note Delivered { bytes: 1000 }
        23ms   > . ack 4001
        2s     end
        ",
    );
    // An application that reads no data: the window cannot be opened, and the time limit applies.
    check(
        &by_time(),
        "
        0ms    < S mss 1000
        0ms    > S. ack 1 mss 1000
        0ms    stop-reading
        10ms   < . ack 1
        10ms   note Established
        20ms   < . 1+4000 ack 1
        20ms   note Delivered { bytes: 4000 }
        520ms  > . ack 4001 win 4000
        2s     end
        ",
    );
}

#[test]
fn by_time_alone_disorder_and_the_last_segment_do_not_wait() {
    check(
        &by_time(),
        "
        10ms   accepted
        20ms   < . 1001+1000 ack 1
        20ms   > . ack 1
        30ms   < . 1+1000 ack 1
        30ms   note Delivered { bytes: 2000 }
        30ms   > . ack 2001
        40ms   < F. 2001+500 ack 1      # a short transfer need not wait for its ACK (agarwal00 4.5)
        40ms   note Delivered { bytes: 500 }
        40ms   > F. ack 2502 win 7499
        41ms   end
        ",
    );
}

/// A 4.4BSD receiver of 1460-byte segments whose peer sends 1400 bytes each.
fn by_bytes() -> TcpConfig {
    TcpConfig { maxseg: MaxSeg::Bytes(1460), ..fine() }
}

#[test]
fn bsd_acknowledges_two_of_its_own_segments_however_many_those_of_the_peer_are() {
    check(
        &by_bytes(),
        "
        10ms   accepted / mss 1400
        20ms   < . 1+1400 ack 1
        20ms   note Delivered { bytes: 1400 }
        21ms   < . 1401+1400 ack 1      # 2800 bytes are less than 2920
        21ms   note Delivered { bytes: 1400 }
        22ms   < . 2801+1400 ack 1
        22ms   note Delivered { bytes: 1400 }
        22ms   > . ack 4201
        30ms   < . 4201+1400 ack 1      # alone: after 200 ms
        30ms   note Delivered { bytes: 1400 }
        230ms  > . ack 5601
        500ms  end
        ",
    );
}

#[test]
fn bsd_acknowledges_half_of_its_buffer_however_large_its_segments_are() {
    check(
        &TcpConfig { recv_buffer: 4000, ..by_bytes() },
        "
        10ms   accepted / mss 1400
        20ms   < . 1+1400 ack 1
        20ms   note Delivered { bytes: 1400 }
        21ms   < . 1401+1400 ack 1
        21ms   note Delivered { bytes: 1400 }
        21ms   > . ack 2801
        500ms  end
        ",
    );
}

#[test]
fn the_segment_size_that_bytes_are_counted_by_is_that_of_each_connection() {
    // Timestamps shorten the segments to 988 bytes, but not the unit of counting.
    check(
        &TcpConfig { maxseg: MaxSeg::Mss, timestamps: true, ..fine() },
        "
        0ms    < S mss 1000 ts 100 0
        0ms    > S. ack 1 mss 1000 ts 0 100
        10ms   < . ack 1 ts 110 0
        10ms   note Established
        20ms   < . 1+988 ack 1 ts 120 0
        20ms   note Delivered { bytes: 988 }
        21ms   < . 989+988 ack 1 ts 121 0
        21ms   note Delivered { bytes: 988 }
        22ms   < . 1977+988 ack 1 ts 122 0
        22ms   note Delivered { bytes: 988 }
        22ms   > . ack 2965 ts 22 120
        500ms  end
        ",
    );
    check(
        &TcpConfig { maxseg: MaxSeg::Mss, ..fine() },
        "
        10ms   accepted / mss 512
        20ms   < . 1+512 ack 1
        20ms   note Delivered { bytes: 512 }
        21ms   < . 513+512 ack 1
        21ms   note Delivered { bytes: 512 }
        21ms   > . ack 1025
        500ms  end
        ",
    );
}

/// In Linux' interactive mode an ACK waits for the reply that will carry it. A missing reply ends the mode.
#[test]
fn after_a_reply_acks_wait_for_the_next_one() {
    let delayed_ack = DelayedAck { every: 2, timeout: Span::millis(40) };
    check(
        &TcpConfig { quick_acks: true, delayed_ack, ..fine() },
        "
        100ms  established
        100ms  > . 1+1000 ack 1
        110ms  < . 1+100 ack 1                 # the first data is acknowledged at once
        110ms  note Delivered { bytes: 100 }
        110ms  > . at 1001 ack 101
        120ms  < . at 101 ack 1001             # and data of ours follows within 40 ms
        120ms  > . 1001+1000 x2 ack 101
        200ms  < . 101+100 ack 1001
        200ms  note Delivered { bytes: 100 }
        220ms  < . at 201 ack 2001
        220ms  > . 3001+1000 x2 ack 201        # which carries the ACK
        300ms  < . 201+100 ack 2001            # no reply comes
        300ms  note Delivered { bytes: 100 }
        340ms  > . at 5001 ack 301
        400ms  < . 301+100 ack 2001
        400ms  note Delivered { bytes: 100 }
        400ms  > . at 5001 ack 401
        500ms  end
        ",
    );
}

/// Data buffered after a hole that arrives again with the segment filling the hole is a duplicate, too.
#[test]
fn data_overlapping_buffered_data_is_reported_as_duplicate() {
    //= rfc2883#section-4
    check(
        &TcpConfig { sack: true, dsack: true, ..fine() },
        "
        10ms   accepted sackok
        20ms   < . 1001+1000 ack 1
        20ms   > . ack 1 sack 1001-2001
        30ms   < . 1+1500 ack 1
        30ms   note Delivered { bytes: 2000 }
        30ms   > . ack 2001 sack 1001-1501
        40ms   < . 2001+100 ack 1
        40ms   note Delivered { bytes: 100 }
        240ms  > . ack 2101 win 31900
        500ms  end
        ",
    );
}
