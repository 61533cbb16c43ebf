//! Hosts, and connections of two ends.

use std::sync::Arc;

use lasthop_proto::event::{Cause, EventKind, Interest, Op, TcpKind};
use lasthop_proto::machine::{Machine, Out, Side};
use lasthop_proto::tcp::rtt::Beat;
use lasthop_proto::tcp::settings::{Beats, Settings};
use lasthop_proto::tcp::state::State;
use lasthop_proto::tcp::{Connection, Host, HostConfig, TcpConfig};
use lasthop_proto::units::{Bytes, Span, Time};
use lasthop_proto::wire::{Addr, Body, Flags, FlowKey, Packet, Segment, Seq};

use crate::fine;

const HERE: Addr = Addr::v4(10, 1, 0, 1);
const THERE: Addr = Addr::v4(10, 0, 0, 1);

fn host() -> Host {
    let tcp = Arc::new(fine());
    Host::new(HostConfig { name: "mobile".into(), addr: HERE, side: Side::Left, tcp }, 1)
}

/// The host's answer to a segment from the peer: flags, seq, ack.
fn answer(host: &mut Host, flags: Flags, seq: u32, ack: u32, len: u32) -> Vec<(Flags, u32, u32)> {
    let mut out = Out::new(Interest::NOTHING);
    let segment = Segment::new(1024, 9, Seq(seq), Seq(ack), flags);
    let body = Body::Pattern { stream: 1, len, offset: 0 };
    host.on_packet(Time::ZERO, Side::Left, Packet::tcp(THERE, HERE, segment, body), &mut out);
    let parts = |p: &Packet| p.segment().map(|s| (s.flags, s.seq.0, s.ack.0)).unwrap();
    out.sends.iter().map(|(_, packet)| parts(packet)).collect()
}

#[test]
fn a_segment_for_no_connection_is_answered_with_a_reset() {
    //= rfc9293#section-3.10.7.1
    let mut host = host();
    let reset_ack = Flags::RST | Flags::ACK;
    assert_eq!(answer(&mut host, Flags::ACK, 50, 700, 100), [(Flags::RST, 700, 0)]);
    assert_eq!(answer(&mut host, Flags::NONE, 50, 0, 100), [(reset_ack, 0, 150)]);
    assert_eq!(answer(&mut host, Flags::FIN, 50, 0, 0), [(reset_ack, 0, 51)]);
    assert_eq!(answer(&mut host, Flags::RST, 50, 0, 0), []);
    assert_eq!(host.connections().len(), 0);
}

#[test]
fn a_connection_that_was_reset_is_none() {
    let mut host = host();
    let syn_ack = answer(&mut host, Flags::SYN, 50, 0, 0);
    let iss = syn_ack[0].1;
    answer(&mut host, Flags::ACK, 51, iss + 1, 0);
    assert_eq!(answer(&mut host, Flags::RST, 51, 0, 0), []);
    assert_eq!(host.connections()[0].state(), State::Closed);
    assert_eq!(answer(&mut host, Flags::ACK, 51, iss + 1, 100), [(Flags::RST, iss + 1, 0)]);
    // The same ports may be used again.
    assert_eq!(answer(&mut host, Flags::SYN, 9000, 0, 0)[0].0, Flags::SYN | Flags::ACK);
    assert_eq!(host.connections().len(), 2);
}

/// Two connections joined by a wire with `delay`; `drop` selects the lost packets of the active end. Returns
/// both, and the number of bytes delivered.
fn transfer(
    config: TcpConfig,
    bytes: u64,
    delay: Span,
    mut drop: impl FnMut(u64) -> bool,
) -> ([Connection; 2], u64) {
    let beat = Beat::new(Span::millis(500), Span::ZERO);
    let config = Settings::new(config, Beats { slow: beat, fast: beat });
    let flow = FlowKey { src: THERE, dst: HERE, src_port: 1024, dst_port: 9 };
    let near_wrap = Seq(u32::MAX - 5000);
    let mut ends = [
        Connection::new(config.clone(), flow, Side::Right, near_wrap, 1),
        Connection::new(config, flow.reversed(), Side::Left, Seq(3), 0),
    ];
    ends[0].open(Time::ZERO, Some(Bytes(bytes)));
    let mut out = Out::new(Interest::METRICS);
    let mut wire: std::collections::VecDeque<(Time, usize, Packet)> = Default::default();
    let (mut now, mut sent) = (Time::ZERO, 0);
    while !ends[0].is_over() && now < Time::ZERO + Span::secs(100_000) {
        let arrival = wire.front().map(|w| w.0);
        let wakes = [ends[0].next_wake(), ends[1].next_wake(), arrival];
        let Some(next) = wakes.into_iter().flatten().min() else {
            break;
        };
        now = now.max(next);
        out.begin(Default::default(), now);
        let mut acted = 0;
        if arrival == Some(next) {
            let (_, to, packet) = wire.pop_front().unwrap();
            ends[to].on_segment(now, packet.segment().unwrap(), packet.body.clone(), &mut out);
            acted = to;
        } else {
            acted += usize::from(wakes[0] != Some(next));
            ends[acted].on_wake(now, &mut out);
        }
        for (_, packet) in out.sends.drain(..) {
            sent += u64::from(acted == 0);
            if acted == 1 || !drop(sent) {
                wire.push_back((now + delay, 1 - acted, packet));
            }
        }
        for event in out.events.drain(..) {
            let corrupted = matches!(event.kind, EventKind::Tcp(t) if t.kind == TcpKind::Corrupted);
            assert!(!corrupted, "at {now}");
        }
    }
    let delivered = ends[1].delivered();
    (ends, delivered)
}

#[test]
fn more_than_four_gigabytes_cross_the_wrap_twice() {
    let bytes = (2 << 32) + 12_345;
    let config = TcpConfig { mss: 65_000, ..TcpConfig::linux() };
    let mut lost = 0;
    let (ends, delivered) = transfer(config, bytes, Span::millis(1), |n| {
        lost += u64::from(n % 9_973 == 0);
        n % 9_973 == 0
    });
    assert!(lost > 10);
    assert!(ends[0].is_complete());
    assert_eq!((delivered, ends[0].acknowledged()), (bytes, bytes));
}

#[test]
fn a_loss_before_thousands_of_segments_in_flight_is_repaired() {
    // An earlier receiver stored at most 1024 pieces and then rejected even the missing one.
    let config = TcpConfig { mss: 1000, initial_window: 3000, ..TcpConfig::linux() };
    let (ends, delivered) = transfer(config, 4_000_000, Span::millis(50), |n| n == 2);
    assert!(ends[0].is_complete());
    assert_eq!(delivered, 4_000_000);
}

#[test]
fn a_host_counts_the_connections_that_are_not_over() {
    let mut host = host();
    host.open(THERE, 9, Time::ZERO, Some(Bytes(0)), 1);
    assert_eq!(host.unfinished(), 1);
    let mut out = Out::new(Interest::EVERYTHING);
    host.on_wake(Time::ZERO, &mut out);
    let syn = out.sends.remove(0).1.segment().unwrap().clone();
    let originated =
        |e: &EventKind| matches!(e, EventKind::Packet { op: Op::Originated(Cause::Control), .. });
    assert!(out.events.iter().any(|e| originated(&e.kind)));
    let reset = Segment::new(9, syn.src_port, Seq(0), syn.seq + 1, Flags::RST | Flags::ACK);
    host.on_packet(Time(5), Side::Left, Packet::tcp(THERE, HERE, reset, Body::EMPTY), &mut out);
    assert_eq!(host.unfinished(), 0);
    assert!(host.opened().next().unwrap().is_aborted());
}
