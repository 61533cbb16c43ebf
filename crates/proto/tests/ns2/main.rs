//! The preset `ns` compared with ns-2: the order in which a source sends 100 packets, of which some are lost.
//!
//! `orders.txt` has the orders of ns-2 2.35. `orders.sh` regenerates it with `orders.tcl`; these tests need
//! neither.

use lasthop_proto::event::Interest;
use lasthop_proto::machine::{Out, Side};
use lasthop_proto::tcp::rtt::Beat;
use lasthop_proto::tcp::settings::{Beats, Settings};
use lasthop_proto::tcp::{Connection, TcpConfig, Variant};
use lasthop_proto::units::{Bytes, Rate, Span, Time};
use lasthop_proto::wire::{Addr, Flags, FlowKey, Packet, Seq};
use std::collections::VecDeque;

const ORDERS: &str = include_str!("orders.txt");

/// A line: its rate, its delay, and the time at which it becomes free.
struct Line(Rate, Span, Time);

impl Line {
    fn new(bits_per_second: u64, delay_ms: u64) -> Line {
        Line(Rate::from_bps(bits_per_second).unwrap(), Span::millis(delay_ms), Time::ZERO)
    }

    /// Time at which a packet that arrives at `at` leaves the line.
    fn carry(&mut self, at: Time, packet: &Packet) -> Time {
        self.2 = self.2.max(at) + self.0.transmit(packet.wire_len().into());
        self.2 + self.1
    }
}

/// The number of a data packet in ns-2, where the SYN is packet 0.
fn number(packet: &Packet) -> Option<u64> {
    let segment = packet.segment()?;
    if packet.body.is_empty() {
        return segment.flags.has(Flags::SYN).then_some(0);
    }
    Some(u64::from(segment.seq.0 / 1000) + 1)
}

/// The packets of a transfer in transmission order; `lost` are those that the second line loses, by their
/// order on it.
fn order(variant: Variant, lost: &[u64]) -> Vec<u64> {
    let sack = variant == Variant::Sack;
    let config = TcpConfig { variant, sack, ..TcpConfig::ns() };
    // The phase that ns-2 draws with its own seed.
    let beat = Beat::new(Span::millis(100), Span::millis(45));
    let config = Settings::new(config, Beats { slow: beat, fast: beat });
    let [here, there] = [Addr::v4(10, 0, 0, 1), Addr::v4(10, 1, 0, 1)];
    let flow = FlowKey { src: here, dst: there, src_port: 1024, dst_port: 9 };
    let mut ends = [
        Connection::new(config.clone(), flow, Side::Right, Seq(0), 1),
        Connection::new(config, flow.reversed(), Side::Left, Seq(0), 0),
    ];
    ends[0].open(Time::ZERO, Some(Bytes(100_000)));
    let mut out = Out::new(Interest::NOTHING);
    let mut lines = [[Line::new(10_000_000, 2), Line::new(800_000, 50)], {
        [Line::new(800_000, 50), Line::new(10_000_000, 2)]
    }];
    let mut wires: [VecDeque<(Time, Packet)>; 2] = Default::default();
    let (mut sent, mut passed) = (Vec::new(), 0);
    while !ends[0].is_complete() {
        // Packets that arrive at ends[i], and its timers.
        let arrivals = [1, 0].map(|from: usize| wires[from].front().map(|(at, _)| *at));
        let wakes = [arrivals[0], arrivals[1], ends[0].next_wake(), ends[1].next_wake()];
        let now = wakes.into_iter().flatten().min().unwrap();
        out.begin(Default::default(), now);
        let which = wakes.iter().position(|at| *at == Some(now)).unwrap();
        let end = which % 2;
        match (which < 2).then(|| wires[1 - end].pop_front()).flatten() {
            Some((_, packet)) => {
                let segment = packet.segment().unwrap();
                ends[end].on_segment(now, segment, packet.body.clone(), &mut out);
            }
            None => ends[end].on_wake(now, &mut out),
        }
        for (_, packet) in out.sends.drain(..) {
            let number = number(&packet).filter(|_| end == 0);
            sent.extend(number);
            let at = lines[end][0].carry(now, &packet);
            let is_lost = number.is_some() && lost.contains(&passed);
            passed += u64::from(number.is_some());
            if !is_lost {
                let at = lines[end][1].carry(at, &packet);
                wires[end].push_back((at, packet));
            }
        }
        out.events.clear();
    }
    sent
}

/// `0-39 20 40-100` as numbers.
fn numbers(text: &str) -> Vec<u64> {
    let runs = text.split_whitespace().map(|run| {
        let (from, to) = run.split_once('-').unwrap_or((run, run));
        from.parse::<u64>().unwrap()..=to.parse::<u64>().unwrap()
    });
    runs.flatten().collect()
}

/// Numbers as `0-39 20 40-100`.
fn runs(numbers: &[u64]) -> String {
    let rows = numbers.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [one] => one.to_string(),
        run => format!("{}-{}", run[0], run[run.len() - 1]),
    });
    rows.collect::<Vec<_>>().join(" ")
}

/// The patterns in which `variant` differs from `agent`, each with both orders.
fn differing(agent: &str, variant: Variant, patterns: usize) -> Vec<String> {
    let rows = ORDERS.lines().filter_map(|line| line.strip_prefix(agent)?.strip_prefix(" | "));
    let rows = rows.map(|row| row.split_once(" | ").unwrap());
    let all: Vec<_> = rows.collect();
    assert_eq!(all.len(), patterns, "{agent}");
    let differing = all.into_iter().filter_map(|(lost, theirs)| {
        let ours = order(variant, &numbers(lost));
        (ours != numbers(theirs)).then(|| format!("{lost}: {theirs}, ours {}", runs(&ours)))
    });
    differing.collect()
}

#[test]
fn tahoe_matches_the_ns_2_send_order() {
    assert_eq!(differing("TCP", Variant::Tahoe, 15), [""; 0]);
}

#[test]
fn reno_matches_the_ns_2_send_order() {
    assert_eq!(differing("TCP/Reno", Variant::Reno, 16), [""; 0]);
}

#[test]
fn newreno_matches_the_ns_2_send_order() {
    assert_eq!(differing("TCP/Newreno", Variant::NewReno, 24), [""; 0]);
}

#[test]
fn sack_matches_the_ns_2_send_order() {
    assert_eq!(differing("TCP/Sack1", Variant::Sack, 15), [""; 0]);
}
