//! Congestion control of acknowledgements (balakrishnan97 4.2.1): d over time, its bounds, and a sender's
//! reports.

use lasthop_proto::tcp::{AccConfig, DelayedAck, TcpConfig, Variant};
use lasthop_proto::units::Span;

use crate::script::check;
use crate::{fine, sender};

fn acc(config: TcpConfig) -> TcpConfig {
    TcpConfig {
        acc: Some(AccConfig::default()),
        delayed_ack: DelayedAck { every: 1, timeout: Span::ZERO },
        ..config
    }
}

/// A receiver and its incoming data: each line has a time, the number of segments acknowledged at the sender,
/// its window, and its count of marked ACKs. The output is the acknowledged segments.
#[test]
fn d_doubles_with_a_mark_and_falls_by_one_in_each_round_trip_without() {
    check(
        &acc(fine()),
        "
        10ms   accepted acc
        20ms   < . 1+1000 ack 1 told 20 0 1
        20ms   note Delivered { bytes: 1000 }
        20ms   > . ack 1001 ect
        30ms   < . 1001+1000 ack 1 told 20 1 1001      # a mark: d = 2
        30ms   note AckFactor { every: 2 }
        30ms   note Delivered { bytes: 1000 }
        31ms   < . 2001+1000 ack 1 told 20 2 1001      # another one of the same round trip
        31ms   note Delivered { bytes: 1000 }
        31ms   > . ack 3001 ect
        40ms   < . 3001+1000 ack 1 told 20 3 3001      # a mark of the next one: d = 4
        40ms   note AckFactor { every: 4 }
        40ms   note Delivered { bytes: 1000 }
        41ms   < . 4001+1000 ack 1 told 20 3 3001
        41ms   note Delivered { bytes: 1000 }
        42ms   < . 5001+1000 ack 1 told 20 3 3001
        42ms   note Delivered { bytes: 1000 }
        43ms   < . 6001+1000 ack 1 told 20 3 3001
        43ms   note Delivered { bytes: 1000 }
        43ms   > . ack 7001 ect
        50ms   < . 7001+1000 ack 1 told 20 3 7001      # a round trip without a mark: d = 3
        50ms   note AckFactor { every: 3 }
        50ms   note Delivered { bytes: 1000 }
        51ms   < . 8001+1000 ack 1 told 20 3 7001
        51ms   note Delivered { bytes: 1000 }
        52ms   < . 9001+1000 ack 1 told 20 3 7001
        52ms   note Delivered { bytes: 1000 }
        52ms   > . ack 10001 ect
        60ms   end
        ",
    );
}

//= balakrishnan97#4.2.1: the maximum of d is determined by the sender's window
#[test]
fn the_senders_window_bounds_d_and_the_timer_is_the_backstop() {
    check(
        &acc(fine()),
        "
        10ms   accepted acc
        20ms   < . 1+1000 ack 1 told 6 0 1
        20ms   note Delivered { bytes: 1000 }
        20ms   > . ack 1001 ect
        30ms   < . 1001+1000 ack 1 told 6 1 1001
        30ms   note AckFactor { every: 2 }
        30ms   note Delivered { bytes: 1000 }
        31ms   < . 2001+1000 ack 1 told 6 1 1001
        31ms   note Delivered { bytes: 1000 }
        31ms   > . ack 3001 ect
        40ms   < . 3001+1000 ack 1 told 6 2 3001       # not 4: half of a window of six
        40ms   note AckFactor { every: 3 }
        40ms   note Delivered { bytes: 1000 }
        41ms   < . 4001+1000 ack 1 told 2 2 3001       # the window has become small
        41ms   note AckFactor { every: 1 }
        41ms   note Delivered { bytes: 1000 }
        41ms   > . ack 5001 ect
        42ms   < . 5001+1000 ack 1 told 20 2 3001      # and large again: d is what it was
        42ms   note AckFactor { every: 3 }
        42ms   note Delivered { bytes: 1000 }
        242ms  > . ack 6001 ect
        500ms  end
        ",
    );
}

//= balakrishnan97#4.2.1: round trips are determined by the timestamp option
#[test]
fn timestamp_echoes_measure_the_round_trips() {
    check(
        &TcpConfig { timestamps: true, ..acc(fine()) },
        "
        0ms    < S mss 1000 ts 500 0 acc
        0ms    > S. ack 1 mss 1000 ts 0 500 acc
        10ms   < . ack 1 ts 510 0
        10ms   note Established
        20ms   < . 1+988 ack 1 ts 520 0 told 20 1 1    # the first segment only begins to count
        20ms   note Delivered { bytes: 988 }
        20ms   > . ack 989 ts 20 520 ect
        30ms   < . 989+988 ack 1 ts 530 10 told 20 2 989
        30ms   note Delivered { bytes: 988 }
        30ms   > . ack 1977 ts 30 530 ect
        40ms   < . 1977+988 ack 1 ts 540 20 told 20 3 989
        40ms   note AckFactor { every: 2 }
        40ms   note Delivered { bytes: 988 }
        41ms   < . 2965+988 ack 1 ts 541 30 told 20 3 989
        41ms   note Delivered { bytes: 988 }
        41ms   > . ack 3953 ts 41 540 ect
        50ms   < . 3953+988 ack 1 ts 551 41 told 20 3 989
        50ms   note AckFactor { every: 1 }
        50ms   note Delivered { bytes: 988 }
        50ms   > . ack 4941 ts 50 551 ect
        60ms   end
        ",
    );
}

//= balakrishnan97#4.2.1: the notification is reflected to the sender of the packet by the receiver
#[test]
fn a_sender_reports_marked_acks_without_reducing_its_window() {
    check(
        &acc(sender(Variant::Reno, 2)),
        "
        10ms   established 5000 acc
        10ms   > . 1+1000 ack 1 told 2 0 1
        10ms   > . 1001+1000 ack 1 told 2 0 1
        20ms   < . ack 1001 ce
        20ms   > . 2001+1000 ack 1 told 3 1 1001
        20ms   > . 3001+1000 ack 1 told 3 1 1001
        21ms   < . ack 2001 ce
        21ms   > FP. 4001+1000 ack 1 told 4 2 2001
        21ms   tcb cwnd 4000
        30ms   end
        ",
    );
}

#[test]
fn without_agreement_reports_are_ignored_and_acks_not_ect() {
    check(
        &acc(fine()),
        "
        10ms   accepted
        20ms   < . 1+1000 ack 1 told 20 1 1
        20ms   note Delivered { bytes: 1000 }
        20ms   > . ack 1001
        30ms   end
        ",
    );
}
