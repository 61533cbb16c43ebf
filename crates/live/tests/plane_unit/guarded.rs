//! Comparison of the two checks of segments: `agent/guard.rs` of `lasthop_proto`, and the program in the kernel, which
//! cannot call it. Both process the same random segments, and must have the same state afterwards. The kernel runs its
//! program on a frame without sending it (BPF_PROG_TEST_RUN).
//!
//! The segments exclude two intended differences:
//!
//! - an agent does not receive segments of the right end without news, so it accepts an ACK from the left within the
//!   window. The program processes all segments, and does not accept this ACK;
//! - an agent forwards signed segments unread. The program passes them to the agent.

use lasthop_proto::agent::guard::{End, Guard, Standing};
use lasthop_proto::rng::Stream;
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::emit::emit;
use lasthop_proto::wire::{Addr, Body, Flags, FlowKey, Packet, Segment, Seq};

use super::*;
use crate::can_run::can_run;
use crate::clock::Clock;
use crate::sys::bpf::tests::{lookup, test_run};

const SIDES: [Side; 2] = [Side::Left, Side::Right];
const CASES: u16 = 600;
const SEGMENTS: usize = 50;
/// Both remove a connection after 3 s without an acceptable segment, but their clocks differ.
const IN_TIME: Span = Span::secs(2);

/// The flow of a case from left to right.
fn flow(case: u16) -> FlowKey {
    let [src, dst] = [1, 2].map(|i| Addr::v4(10, 0, 0, i));
    FlowKey { src, dst, src_port: 1024 + case, dst_port: 80 }
}

/// `struct flow` of the program, which is the flow from right to left.
fn key(flow: FlowKey) -> [u8; 36] {
    let mut key = [0; 36];
    for (at, addr) in [(0, flow.dst), (16, flow.src)] {
        let core::net::IpAddr::V4(ip) = addr.ip() else { unreachable!() };
        key[at..at + 4].copy_from_slice(&ip.octets());
    }
    key[32..34].copy_from_slice(&flow.dst_port.to_be_bytes());
    key[34..36].copy_from_slice(&flow.src_port.to_be_bytes());
    key
}

/// The ends in `struct track`.
fn ends(track: &[u8; 72]) -> [End; 2] {
    [0, 24].map(|at| {
        let word = |n: usize| {
            let from = at + 4 * n;
            u32::from_ne_bytes([track[from], track[from + 1], track[from + 2], track[from + 3]])
        };
        let known = track[at + 20];
        let seq = |n: usize, bit: u8| (known & bit != 0).then_some(Seq(word(n)));
        End {
            iss: seq(0, 1),
            next: seq(1, 2),
            acked: seq(2, 4),
            edge: Seq(if known & 4 != 0 { word(3) } else { 0 }),
            widest: word(4),
            shift: (known & 8 != 0).then_some(track[at + 21]),
        }
    })
}

/// `None` also for two ends without known numbers, which is equivalent to no record.
fn some(ends: Option<[End; 2]>) -> Option<[End; 2]> {
    ends.filter(|ends| *ends != [End::default(); 2])
}

/// A sequence number near a known one of `end`, or any number.
fn number(rng: &mut Stream, end: &End) -> Seq {
    let any = Seq(rng.next_u64() as u32);
    let known = [end.iss, end.next, end.acked, end.acked.map(|_| end.edge)];
    let base = known[rng.below(4) as usize].or(end.next).unwrap_or(any);
    let off = match rng.below(8) {
        0..=2 => 0,
        3 => 1,
        4 => u32::MAX,
        5 => rng.below(3000) as u32,
        6 => 0_u32.wrapping_sub(rng.below(3000) as u32),
        _ => return if rng.below(4) == 0 { any } else { base + (rng.below(9 << 20) as u32) },
    };
    base + off
}

/// A segment of one end with numbers near the known ones of both ends.
fn segment(rng: &mut Stream, from: Side, flow: FlowKey, ends: &[End; 2]) -> Packet {
    let (own, peer) = (&ends[from.index()], &ends[from.other().index()]);
    let flags = match rng.below(20) {
        0..=1 => Flags::SYN,
        2..=4 => Flags::SYN | Flags::ACK,
        5 => Flags::RST,
        6 => Flags::RST | Flags::ACK,
        7 => Flags::FIN | Flags::ACK,
        _ => Flags::ACK,
    };
    let (seq, ack) = (number(rng, own), number(rng, peer));
    let flow = if from == Side::Left { flow } else { flow.reversed() };
    let ack = if flags.has(Flags::ACK) { ack } else { Seq(0) };
    let mut segment = Segment::new(flow.src_port, flow.dst_port, seq, ack, flags);
    segment.window = [0, 1, 500, 20_000, u16::MAX][rng.below(5) as usize];
    if flags.has(Flags::SYN) && rng.below(3) > 0 {
        let shift = [0, 1, 7, 14, 15, 255][rng.below(6) as usize];
        segment.options_mut().window_scale = Some(shift);
    }
    let plain = !flags.any(Flags::SYN | Flags::RST);
    let len = if plain { [0, 0, 1, 100, 1400][rng.below(5) as usize] } else { 0 };
    Packet::tcp(flow.src, flow.dst, segment, Body::copy_of(&vec![7; len]))
}

/// Whether the agent accepts an ACK from the left because it may not have received the acknowledged data.
fn is_lenient(from: Side, packet: &Packet, ends: &[End; 2]) -> bool {
    let Some(segment) = packet.segment() else { return false };
    let beyond = ends[1].next.is_some_and(|next| next.lt(segment.ack));
    from == Side::Left && ends[1].iss.is_some() && segment.flags.has(Flags::ACK) && beyond
}

/// The programs, with their counts of packets for the station.
struct Program {
    programs: Programs,
    processors: usize,
}

impl Program {
    fn run(&self, from: Side, packet: &Packet) -> u64 {
        let shown = || {
            let sums: [u64; 10] = bpf::sums(self.programs.map("counts"), self.processors).unwrap();
            sums[4] + sums[5] + sums[6] + sums[7]
        };
        let mut frame = [[1; 12].as_slice(), &[8, 0]].concat();
        emit(packet, &mut frame).unwrap();
        let before = shown();
        test_run(&self.programs.code[from.index()], &frame).unwrap();
        shown() - before
    }

    fn ends(&self, flow: FlowKey) -> Option<[End; 2]> {
        lookup::<72>(self.programs.map("flows"), &key(flow)).map(|track| ends(&track))
    }
}

#[test]
fn the_kernel_and_the_agent_believe_the_same_segments() {
    let programs = Programs::load();
    if !can_run(programs.is_ok(), "CAP_BPF") {
        return;
    }
    let program = Program { programs: programs.unwrap(), processors: processors().unwrap() };
    let control = SharedControl::new(program.programs.map("control")).unwrap();
    control.mode.store(JUDGE, Relaxed);
    control.limit.store(LIMIT_DUPLICATES.0, Relaxed);
    let mut standings = [0; 5];
    for case in 0..CASES {
        let (mut rng, began) = (Stream::new(case.into(), "guarded"), Clock::start());
        let (mut guard, flow, mut history) = (Guard::new(4), flow(case), Vec::new());
        for _ in 0..SEGMENTS {
            let known = guard.ends(flow).unwrap_or_default();
            let from = SIDES[rng.below(2) as usize];
            let packet = segment(&mut rng, from, flow, &known);
            if is_lenient(from, &packet, &known) {
                continue;
            }
            let standing = guard.judge(Time(1), from, &packet);
            let shown = program.run(from, &packet);
            if began.now() > Time::ZERO + IN_TIME {
                break;
            }
            let parts = packet.segment().unwrap();
            let (plain, len) =
                (!parts.flags.any(Flags::SYN | Flags::FIN | Flags::RST), packet.body.len());
            history.push(format!(
                "{from:?} {:?} {:?} {:?} +{len} win {} scale {:?}: {standing:?}, shown {shown}",
                parts.flags,
                parts.seq,
                parts.ack,
                parts.window,
                parts.options().window_scale
            ));
            let all = || format!("case {case}:\n{}", history.join("\n"));
            assert_eq!(some(program.ends(flow)), some(guard.ends(flow)), "{}", all());
            let believed = match from {
                Side::Left => [Standing::Good, Standing::Old].contains(&standing),
                Side::Right => standing == Standing::Good,
            };
            assert!(believed || !plain || shown == 0, "shown and not believed; {}", all());
            assert!(
                !(believed && plain && len > 0 && from == Side::Left) || shown > 0,
                "{}",
                all()
            );
            standings[match standing {
                Standing::Good => 0,
                Standing::Old => 1,
                Standing::Doubtful => 2,
                Standing::Lost => 3,
                Standing::Reopened(_) => 4,
            }] += 1;
        }
    }
    println!("good, old, doubtful, lost, reopened: {standings:?}");
    let [good, old, doubtful, _, reopened] = standings;
    assert!(good > 1000 && old > 100 && doubtful > 1000 && reopened > 10, "{standings:?}");
}
