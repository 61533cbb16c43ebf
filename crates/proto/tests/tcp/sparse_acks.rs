//! A sender with sparse ACKs: the window grows by bytes, and the segments that an ACK releases leave in small
//! bursts.

use lasthop_proto::tcp::{TcpConfig, Variant};

use crate::script::check;
use crate::sender;

/// Four segments in flight, all of them acknowledged by one ACK.
const BEGIN: &str = "
        100ms  established
        100ms  > . 1+1000 x4 ack 1
        200ms  < . ack 4001
";

fn four() -> TcpConfig {
    TcpConfig { initial_ssthresh: 64_000, ..sender(Variant::Reno, 4) }
}

//= rfc3465#section-2.2: in slow start the window opens by the bytes acknowledged
#[test]
fn the_window_opens_by_bytes_in_slow_start() {
    // One ACK for four segments: 4000 bytes with no limit, 2000 with RFC 3465's, 1000 when ACKs are counted.
    for (byte_counting, cwnd) in [(u32::MAX, 8000), (2, 6000), (0, 5000)] {
        let released: String = (4..4 + cwnd / 1000)
            .map(|i| format!("200ms > . {}+1000 ack 1\n", i * 1000 + 1))
            .collect();
        check(
            &TcpConfig { byte_counting, ..four() },
            &format!("{BEGIN}\n{released}\n200ms tcb cwnd {cwnd}\n210ms end"),
        );
    }
}

//= rfc3465#section-2.1: above the threshold by one segment for each window of bytes
#[test]
fn the_window_opens_by_a_segment_a_window_in_avoidance() {
    for (byte_counting, cwnd) in [(u32::MAX, 5000), (0, 4250)] {
        let released: String = (4..4 + cwnd / 1000)
            .map(|i| format!("200ms > . {}+1000 ack 1\n", i * 1000 + 1))
            .collect();
        check(
            &TcpConfig { byte_counting, initial_ssthresh: 3000, ..four() },
            &format!("{BEGIN}\n{released}\n200ms tcb cwnd {cwnd}\n210ms end"),
        );
    }
}

#[test]
fn adapted_three_segments_leave_at_once_and_the_rest_at_the_rate_of_a_window_in_a_round_trip() {
    let mut config = four();
    config.adapt_to_sparse_acks();
    // Eight segments in a round trip of 100 ms are one in 12.5 ms; three may be ahead of that.
    check(
        &config,
        &format!(
            "{BEGIN}
            200ms  > . 4001+1000 x3 ack 1
            212.500ms > . 7001+1000 ack 1
            225ms  > . 8001+1000 ack 1
            237.500ms > . 9001+1000 ack 1
            250ms  > . 10001+1000 ack 1
            262.500ms > . 11001+1000 ack 1
            262.500ms end
            "
        ),
    );
}
