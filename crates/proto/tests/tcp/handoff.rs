//! Fast retransmission after a hand-off (Caceres and Iftode 1995).

use std::sync::Arc;

use lasthop_proto::event::{Cause, EventKind, Interest, Op};
use lasthop_proto::machine::{Machine, Out, Side};
use lasthop_proto::tcp::{Host, HostConfig, TcpConfig, Variant};
use lasthop_proto::units::{Bytes, Time};
use lasthop_proto::wire::{Addr, Body, Flags, Packet, Segment, Seq};

use crate::script::check;
use crate::{fine, sender};

#[test]
fn a_sender_goes_back_to_the_oldest_segment_at_once() {
    for variant in [Variant::Tahoe, Variant::Reno, Variant::NewReno, Variant::Sack] {
        let offer = if variant == Variant::Sack { "sackok" } else { "" };
        let script = format!(
            "
            10ms   established {offer} / {offer}
            10ms   > . 1+1000 x4 ack 1
            # All are lost; without the hand-off the timer would expire at 1010 ms.
            300ms  handoff
            300ms  note FastRetransmit
            300ms  > . 1+1000 ack 1 => fast-retransmit
            300ms  tcb cwnd 1000 ssthresh 2000 rto 1s backoff 0
            310ms  < . ack 1001
            310ms  > . 1001+1000 ack 1 => fast-retransmit
            310ms  > . 2001+1000 ack 1 => fast-retransmit
            # The timer has begun anew.
            1200ms end
            ",
        );
        check(&sender(variant, 4), &script);
    }
}

#[test]
fn after_a_time_out_the_threshold_and_the_back_off_stay() {
    check(
        &sender(Variant::Reno, 8),
        "
        10ms   established
        10ms   > . 1+1000 x8 ack 1
        1010ms note Timeout
        1010ms > . 1+1000 ack 1 => timeout-retransmit
        1010ms tcb cwnd 1000 ssthresh 4000 backoff 1
        # That one was lost as well; the next would go at 3010 ms.
        1500ms handoff
        1500ms note FastRetransmit
        1500ms > . 1+1000 ack 1 => fast-retransmit
        1500ms tcb cwnd 1000 ssthresh 4000 rto 2s backoff 1
        1510ms < . ack 1001
        1510ms > . 1001+1000 ack 1 => fast-retransmit
        1510ms > . 2001+1000 ack 1 => fast-retransmit
        1600ms end
        ",
    );
}

#[test]
fn with_nothing_in_flight_a_hand_off_sends_nothing() {
    check(
        &sender(Variant::Reno, 4),
        "
        5ms    handoff                  # before there is a connection
        10ms   established 1000
        10ms   > FP. 1+1000 ack 1
        20ms   < . ack 1002
        20ms   note Complete
        30ms   handoff
        40ms   end
        ",
    );
}

#[test]
fn a_receiver_repeats_its_ack_until_the_peer_must_act() {
    //= rfc5681#section-3.2: three of the four are duplicates even if the first one is news
    check(
        &fine(),
        "
        10ms   accepted
        20ms   < . 1+1000 ack 1
        20ms   note Delivered { bytes: 1000 }
        # The delayed ACK need not wait any longer.
        100ms  handoff
        100ms  > . ack 1001
        100ms  > . ack 1001
        100ms  > . ack 1001
        100ms  > . ack 1001
        900ms  end
        ",
    );
}

#[test]
fn a_host_retransmits_on_hand_off_only_if_configured() {
    for configured in [false, true] {
        let (own, peer) = (Addr::v4(10, 1, 0, 1), Addr::v4(10, 0, 0, 1));
        let tcp = TcpConfig { fast_rtx_handoff: configured, initial_window: 2, ..fine() };
        let config =
            HostConfig { name: "mobile".into(), addr: own, side: Side::Left, tcp: Arc::new(tcp) };
        let mut host = Host::new(config, 1);
        let mut out = Out::new(Interest::METRICS);
        host.open(peer, 9, Time::ZERO, Some(Bytes(100_000)), 1);
        host.on_wake(Time::ZERO, &mut out);
        let syn = out.sends.pop().unwrap().1;
        let ours = syn.segment().unwrap();
        let flags = Flags::SYN | Flags::ACK;
        let mut answer = Segment::new(ours.dst_port, ours.src_port, Seq(7), ours.seq + 1, flags);
        answer.window = 32_000;
        let answer = Packet::tcp(peer, own, answer, Body::EMPTY);
        host.on_packet(Time(1), Side::Left, answer, &mut out);
        out.events.clear();
        host.on_handoff(Time(2), &mut out);
        let again = |event: &lasthop_proto::event::Event| {
            let op = Op::Originated(Cause::FastRetransmit);
            matches!(&event.kind, EventKind::Packet { op: found, .. } if *found == op)
        };
        assert_eq!(out.events.iter().filter(|event| again(event)).count(), usize::from(configured));
    }
}
