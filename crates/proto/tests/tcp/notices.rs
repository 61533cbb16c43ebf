//! Reaction of a sender to a base station's notification of a bad wireless link (bakshi96 4.2).

use std::sync::Arc;

use lasthop_proto::event::{Cause, EventKind, Interest, Op, TcpKind};
use lasthop_proto::machine::{Machine, Out, Side};
use lasthop_proto::tcp::{Host, HostConfig, TcpConfig};
use lasthop_proto::units::{Bytes, Time};
use lasthop_proto::wire::{Addr, FlowKey, Notice, Packet, Quote, Seq};

use crate::fine;
use crate::script::check;

fn notified() -> TcpConfig {
    TcpConfig { ebsn: true, quench: true, initial_window: 2, ..fine() }
}

#[test]
fn a_bad_state_starts_the_timer_again_and_does_nothing_else() {
    //= bakshi96#4.2.3
    check(
        &notified(),
        "
        10ms   established
        10ms   > . 1+1000 ack 1
        10ms   > . 1001+1000 ack 1
        900ms  ! bad-state 1
        900ms  note BadStateNotified
        900ms  tcb cwnd 2000 ssthresh 4294967295 una 1 rto 1s backoff 0
        # Without it the timeout would be at 1010 ms.
        1800ms ! bad-state 1001          # any segment in flight will do
        1800ms note BadStateNotified
        2800ms note Timeout
        2800ms > . 1+1000 ack 1 => timeout-retransmit
        # The timeout in force, backoff included.
        3000ms ! bad-state 1
        3000ms note BadStateNotified
        3000ms tcb cwnd 1000 rto 2s backoff 1
        5000ms note Timeout
        5000ms > . 1+1000 ack 1 => timeout-retransmit
        5100ms end
        ",
    );
}

#[test]
fn a_round_trip_is_still_measured() {
    //= bakshi96#4.2.3: the estimate is adjusted by the first new acknowledgement after it, large delay and all
    check(
        &notified(),
        "
        10ms   established
        10ms   > . 1+1000 ack 1
        10ms   > . 1001+1000 ack 1
        900ms  ! bad-state 1
        900ms  note BadStateNotified
        1510ms < . ack 1001
        1510ms > . 2001+1000 ack 1
        1510ms > . 3001+1000 ack 1
        1510ms tcb cwnd 3000 rto 1.70125s
        1600ms end
        ",
    );
}

#[test]
fn notices_about_data_not_in_flight_are_ignored() {
    //= rfc5927#section-4.1
    check(
        &notified(),
        "
        0ms    ! bad-state 0 => stale-notice   # nothing was sent
        0ms    open
        0ms    > S mss 1000
        5ms    ! bad-state 0
        5ms    note BadStateNotified           # the SYN is in flight
        10ms   < S. ack 1 mss 1000
        10ms   note Established
        10ms   > . 1+1000 ack 1
        10ms   > . 1001+1000 ack 1
        20ms   < . ack 1001
        20ms   > . 2001+1000 ack 1
        20ms   > . 3001+1000 ack 1
        500ms  ! bad-state 1000 => stale-notice
        500ms  ! bad-state 4001 => stale-notice
        500ms  ! quench 0 => stale-notice
        500ms  ! bad-state 2000000000 => stale-notice
        1020ms note Timeout
        1020ms > . 1001+1000 ack 1 => timeout-retransmit
        1100ms end
        ",
    );
}

#[test]
fn without_a_running_timer_there_is_none_to_start() {
    check(
        &notified(),
        "
        10ms   established
        10ms   > . 1+1000 ack 1
        10ms   > . 1001+1000 ack 1
        20ms   < . ack 2001 win 0
        20ms   ! bad-state 1 => stale-notice
        1020ms note WindowProbe
        1020ms > . 2001+1 ack 1 => window-probe
        1100ms ! bad-state 2001                # the probe is in flight, but the timer is that of probes
        3020ms note WindowProbe
        3020ms > . 2001+1 ack 1 => window-probe
        3100ms end
        ",
    );
}

#[test]
fn a_quench_closes_the_window_and_leaves_the_threshold() {
    //= bakshi96#4.2.2: it stems the flow of further packets, but prevents no timeout
    check(
        &TcpConfig { initial_window: 4, initial_ssthresh: 9000, ..notified() },
        "
        10ms   established
        10ms   > . 1+1000 x4 ack 1
        20ms   ! quench 1001
        20ms   note Quenched
        20ms   tcb cwnd 1000 ssthresh 9000
        30ms   < . ack 1001
        30ms   tcb cwnd 2000 ssthresh 9000
        1030ms note Timeout
        1030ms > . 1001+1000 ack 1 => timeout-retransmit
        1100ms end
        ",
    );
}

#[test]
fn a_sender_that_is_not_set_up_to_obey_does_not() {
    check(
        &TcpConfig { ebsn: false, quench: false, ..notified() },
        "
        10ms   established
        10ms   > . 1+1000 ack 1
        10ms   > . 1001+1000 ack 1
        500ms  ! bad-state 1 => unheeded-notice
        500ms  ! quench 1 => unheeded-notice
        500ms  tcb cwnd 2000
        1010ms note Timeout
        1010ms > . 1+1000 ack 1 => timeout-retransmit
        1100ms end
        ",
    );
}

#[test]
fn tahoe_of_the_paper_fills_its_window_and_retransmits_at_the_third_duplicate() {
    //= bakshi96#3.3
    let mut script = "
        0ms    open
        0ms    > S mss 536
        10ms   < S. ack 1 mss 536 win 4096
        10ms   note Established
        10ms   > . 1+536 ack 1
        "
    .to_owned();
    // At least one round trip of 100 ms for each window: slow start up to seven segments.
    let (mut sent, mut at) = (2, 10);
    for acked in 1..=6 {
        at += 100;
        script += &format!("{at}ms < . ack {} win 4096\n", acked * 536 + 1);
        for _ in 0..2 {
            script += &format!("{at}ms > . {}+536 ack 1\n", (sent - 1) * 536 + 1);
            sent += 1;
        }
    }
    script += &format!("{at}ms tcb cwnd {} ssthresh 4096\n", 7 * 536);
    // Seven in flight: the eighth does not fit 4096 bytes.
    for _ in 0..2 {
        at += 10;
        script += &format!("{at}ms < . ack {} win 4096\n", 6 * 536 + 1);
    }
    at += 10;
    script += &format!(
        "{at}ms < . ack {0} win 4096\n{at}ms note FastRetransmit\n\
         {at}ms > . {0}+536 ack 1 => fast-retransmit\n{at}ms tcb cwnd 536 ssthresh 1608\n{1}ms end\n",
        6 * 536 + 1,
        at + 100
    );
    check(&TcpConfig::bakshi96(), &script);
}

/// A host accepts messages for its own connections, and drops each other one with a cause.
#[test]
fn a_host_matches_a_notice_to_its_connection() {
    let (own, peer) = (Addr::v4(10, 0, 0, 1), Addr::v4(10, 1, 0, 1));
    let tcp = Arc::new(TcpConfig { ebsn: true, ..fine() });
    let config = HostConfig { name: "fixed".to_owned(), addr: own, side: Side::Right, tcp };
    let mut host = Host::new(config, 1);
    host.open(peer, 9, Time::ZERO, Some(Bytes(5000)), 1);
    let mut out = Out::new(Interest::METRICS);
    host.on_wake(Time::ZERO, &mut out);
    let syn = out.sends.pop().expect("a SYN").1;
    out.events.clear();
    let quote = Quote::of(&syn).unwrap();
    let other = FlowKey { src_port: 1, ..quote.flow };
    for (quote, notice, damage, expected) in [
        (quote, Notice::BadState, false, Ok(TcpKind::BadStateNotified)),
        (quote, Notice::SourceQuench, false, Err(Cause::UnheededNotice)),
        (Quote { seq: quote.seq + 1, ..quote }, Notice::BadState, false, Err(Cause::StaleNotice)),
        (
            Quote { seq: Seq(!quote.seq.0), ..quote },
            Notice::BadState,
            false,
            Err(Cause::StaleNotice),
        ),
        (Quote { flow: other, ..quote }, Notice::BadState, false, Err(Cause::NoSuchConnection)),
        (quote, Notice::BadState, true, Err(Cause::TcpChecksum)),
    ] {
        let mut packet = Packet::notice(notice, &quote);
        if damage {
            packet.damage = lasthop_proto::wire::Damage::Tcp;
        }
        out.begin(Default::default(), Time(500_000_000));
        host.on_packet(Time(500_000_000), Side::Right, packet, &mut out);
        let got = out.events.drain(..).find_map(|event| match event.kind {
            EventKind::Tcp(tcp) => Some(Ok(tcp.kind)),
            EventKind::Packet { op: Op::Dropped(cause), .. } => Some(Err(cause)),
            _ => None,
        });
        assert_eq!(got, Some(expected));
        assert!(out.sends.is_empty(), "an ICMP error is never answered");
    }
    // 500 ms later than without: the timeout is counted from the notification.
    assert_eq!(host.next_wake(), Some(Time(1_500_000_000)));
}
