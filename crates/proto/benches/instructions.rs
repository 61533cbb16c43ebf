//! Counts the instructions of a stack's operations for a segment, and prints them as the table of
//! `energy::costs`.
//!
//! Each case repeats its work; the difference between two runs with different counts is the cost of the work
//! itself. `callgrind` counts, so the figures do not depend on the load of the machine. Bytes are moved as by
//! a machine with 32-bit words and a card with 16-bit registers: the words are atomic cells, which a compiler
//! never widens.
//!
//! ```text
//! make instructions
//! ```

use std::hint::black_box;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering::Relaxed};

use lasthop_proto::energy::Operation;
use lasthop_proto::event::Interest;
use lasthop_proto::machine::{Out, Side};
use lasthop_proto::tcp::lookup::Lookup;
use lasthop_proto::tcp::rtt::Beat;
use lasthop_proto::tcp::settings::{Beats, Settings};
use lasthop_proto::tcp::{Connection, DelayedAck, Prediction, TcpConfig, Variant};
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::checksum::{Sum, checksum};
use lasthop_proto::wire::parse::{Mode, view};
use lasthop_proto::wire::{
    Addr, Body, Flags, FlowKey, Packet, Segment, Seq, Timestamps, emit::emit_prefix,
};

const MSS: u32 = 1460;
const FLOW: FlowKey =
    FlowKey { src: Addr::v4(10, 0, 0, 1), dst: Addr::v4(10, 1, 0, 1), src_port: 1024, dst_port: 9 };
const OURS: Seq = Seq(1000);
const THEIRS: Seq = Seq(5000);
/// Repetitions of each case: two runs, of which the difference counts.
const TIMES: [u32; 2] = [200, 1400];
/// Bytes moved by each repetition of a byte case.
const BUFFER: usize = 1440;
/// ACKs that report the same hole.
const DUPLICATES: u32 = 40;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    if let [_, mark, case, times] = &args[..]
        && mark == "count"
    {
        let times = times.parse().expect("a number");
        let (_, run) = CASES.iter().find(|(name, _)| name == case).expect("a case");
        run(times);
        return ExitCode::SUCCESS;
    }
    match table() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

type Case = (&'static str, fn(u32));

const CASES: [Case; 24] = [
    ("send", |n| send(n, false)),
    ("send with timestamps", |n| send(n, true)),
    ("header sums", |n| header_sums(n, 20)),
    ("header sums with timestamps", |n| header_sums(n, 32)),
    ("data", |n| data(n, Prediction::Off, false)),
    ("data predicted", |n| data(n, Prediction::AfterPaws, false)),
    ("data predicted with timestamps", |n| data(n, Prediction::AfterPaws, true)),
    ("data predicted before PAWS", |n| data(n, Prediction::BeforePaws, true)),
    ("ack", |n| acks(n, Prediction::Off, false)),
    ("ack predicted", |n| acks(n, Prediction::AfterPaws, false)),
    ("ack predicted with timestamps", |n| acks(n, Prediction::AfterPaws, true)),
    ("ack predicted before PAWS", |n| acks(n, Prediction::BeforePaws, true)),
    ("gap", |n| gaps(n, false)),
    ("gap with a block", |n| gaps(n, true)),
    ("duplicate", |n| duplicates(n, false)),
    ("duplicate with a block", |n| duplicates(n, true)),
    ("lookup in turn", |n| lookups(n, 64)),
    ("lookup of one", |n| lookups(n, 1)),
    ("copy", |n| moved(n, copy)),
    ("sum", |n| {
        moved(n, |from, _| {
            black_box(sum(from));
        });
    }),
    ("copy and sum", |n| {
        moved(n, |from, to| {
            black_box(copy_and_sum(from, to));
        });
    }),
    ("card", |n| {
        moved(n, |from, _| {
            card(from, black_box(&AtomicU16::new(0)));
        });
    }),
    ("window", |n| windows(n, false)),
    ("window scaled", |n| windows(n, true)),
];

/// Measures and prints.
fn table() -> Result<(), String> {
    let cost = |case: &str| count(case);
    let each = |case: &str| Ok::<f64, String>(count(case)? / BUFFER as f64);
    // Headers are charged by the byte, so the sums computed while they are written are subtracted here.
    let (sums, longer) = (cost("header sums")?, cost("header sums with timestamps")?);
    let send = cost("send")? - sums;
    let (data, ack) = (cost("data predicted")?, cost("ack predicted")?);
    let stamped = [cost("data predicted before PAWS")?, cost("ack predicted before PAWS")?];
    let paws = [
        cost("data predicted with timestamps")? - stamped[0],
        cost("ack predicted with timestamps")? - stamped[1],
    ];
    let written = cost("send with timestamps")? - longer - send;
    let read = mean(stamped[0] - data, stamped[1] - ack);
    // A block is as long as the timestamps option.
    let block_written = cost("gap with a block")? - longer - (cost("gap")? - sums);
    let block_read = (cost("duplicate with a block")? - cost("duplicate")?) / f64::from(DUPLICATES);
    let looked = cost("lookup of one")?;
    let hashed = cost("lookup in turn")?;
    println!(
        "// Received: data {data:.0}, ACK {ack:.0}. Timestamps: written {written:.0}, read {read:.0}."
    );
    println!(
        "// PAWS: on data {:.0}, on an ACK {:.0}. A block: written {block_written:.0}, \
         read {block_read:.0}.",
        paws[0], paws[1]
    );
    let rows = [
        (Operation::Send, send),
        (Operation::Predicted, mean(data, ack)),
        (Operation::Processed, mean(cost("data")?, cost("ack")?)),
        (Operation::LookupCached, looked),
        (Operation::LookupHashed, hashed),
        (Operation::Paws, mean(paws[0], paws[1])),
        (Operation::Timestamps, mean(written, read)),
        (Operation::SackBlock, mean(block_written, block_read)),
        (Operation::WindowScale, cost("window scaled")? - cost("window")?),
        (Operation::CopiedByte, each("copy")?),
        (Operation::SummedByte, each("sum")?),
        (Operation::CopiedSummedByte, each("copy and sum")?),
        (Operation::CardByte, each("card")?),
    ];
    for (operation, instructions) in rows {
        println!("(Operation::{operation:?}, {instructions:.2}),");
    }
    Ok(())
}

fn mean(a: f64, b: f64) -> f64 {
    (a + b) / 2.0
}

/// Instructions of one repetition of `case`.
fn count(case: &str) -> Result<f64, String> {
    let total = |times: u32| -> Result<f64, String> {
        let program = std::env::current_exe().map_err(|e| e.to_string())?;
        let run = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(program)
            .args(["count", case, &times.to_string()])
            .output()
            .map_err(|e| {
                format!(
                    "instructions are counted by valgrind, which cannot be run: {e}\n\
                     Install it, for example with `apt-get install valgrind`, and run `make instructions` again."
                )
            })?;
        let output = String::from_utf8_lossy(&run.stderr);
        let counted = output.lines().find_map(|line| line.split("Collected : ").nth(1));
        counted
            .and_then(|n| n.trim().parse().ok())
            .ok_or_else(|| format!("valgrind did not count `{case}`:\n{output}"))
    };
    Ok((total(TIMES[1])? - total(TIMES[0])?) / f64::from(TIMES[1] - TIMES[0]))
}

fn config(timestamps: bool, prediction: Prediction) -> TcpConfig {
    TcpConfig {
        variant: Variant::Reno,
        mss: MSS,
        initial_window: 1 << 14,
        send_buffer: 1 << 30,
        recv_buffer: 1 << 30,
        window_scale: true,
        timestamps,
        prediction,
        delayed_ack: DelayedAck { every: u32::MAX, timeout: Span::millis(200) },
        ..TcpConfig::rfc()
    }
}

fn connection(config: TcpConfig) -> Connection {
    let beat = Beat::new(Span::millis(500), Span::ZERO);
    let beats = Beats { slow: beat, fast: beat };
    Connection::new(Settings::new(config, beats), FLOW, Side::Right, OURS, 1)
}

fn out(sends: u32) -> Out {
    let mut out = Out::new(Interest::NOTHING);
    out.sends.reserve(sends as usize + 16);
    out
}

fn stamp(segment: &mut Segment, timestamps: bool) {
    segment.timestamps = timestamps.then_some(Timestamps { value: 77, echo: OURS.0 });
}

/// A segment of the peer.
fn theirs(seq: Seq, ack: u32, timestamps: bool) -> Segment {
    let mut segment = Segment::new(9, 1024, seq, OURS + ack, Flags::ACK);
    segment.window = 0xffff;
    stamp(&mut segment, timestamps);
    segment
}

fn syn(flags: Flags, config: &TcpConfig) -> Segment {
    let mut syn = Segment::new(9, 1024, THEIRS, OURS + 1, flags);
    syn.window = 0xffff;
    stamp(&mut syn, config.timestamps);
    let options = syn.options_mut();
    (options.mss, options.window_scale) = (Some(MSS as u16), Some(14));
    options.sack_permitted = config.sack;
    syn
}

/// An end opened actively, with an application that has written `bytes`.
fn sender(config: TcpConfig, bytes: u32, out: &mut Out) -> Connection {
    let answer = syn(Flags::SYN | Flags::ACK, &config);
    let mut sender = connection(config);
    sender.attach(1 << 30);
    sender.connect(Time::ZERO);
    sender.on_wake(Time::ZERO, out);
    sender.write(Time::ZERO, Body::Pattern { stream: 1, len: bytes, offset: 0 }, out);
    sender.on_segment(Time::ZERO, &answer, Body::EMPTY, out);
    // All that it sends may be acknowledged: data above the unscaled window of the SYN-ACK is sent now.
    let opens = theirs(THEIRS + 1, 1, sender_stamps(&answer));
    sender.on_segment(Time::ZERO, &opens, Body::EMPTY, out);
    sender
}

fn sender_stamps(answer: &Segment) -> bool {
    answer.timestamps.is_some()
}

/// An end opened by its peer.
fn receiver(config: TcpConfig, out: &mut Out) -> Connection {
    let mut request = syn(Flags::SYN, &config);
    request.ack = Seq(0);
    let timestamps = config.timestamps;
    let mut receiver = connection(config);
    receiver.on_segment(Time::ZERO, &request, Body::EMPTY, out);
    receiver.on_segment(Time::ZERO, &theirs(THEIRS + 1, 1, timestamps), Body::EMPTY, out);
    receiver
}

fn payload(timestamps: bool) -> u32 {
    MSS - if timestamps { 12 } else { 0 }
}

/// Writes the headers of the output.
fn write_headers(out: &mut Out) {
    let mut bytes = Vec::with_capacity(128);
    for (_, packet) in &out.sends {
        bytes.clear();
        let _ = black_box(emit_prefix(black_box(packet), 0, &mut bytes));
        black_box(&bytes);
    }
    out.sends.clear();
}

/// Sends `n` full segments.
fn send(n: u32, timestamps: bool) {
    let mut out = out(n);
    let config = config(timestamps, Prediction::Off);
    black_box(sender(config, n * payload(timestamps), &mut out));
    assert!(out.sends.len() as u32 >= n, "{}", out.sends.len());
    write_headers(&mut out);
}

/// Sums an IP header and a TCP header with `len` bytes in total, as the code that writes headers does.
fn header_sums(n: u32, len: usize) {
    let bytes = [7; 60];
    for _ in 0..n {
        black_box(checksum(black_box(&bytes[..20])));
        let mut sum = Sum::default();
        sum.bytes(black_box(&bytes[..len]));
        black_box(sum.checksum());
    }
}

/// Reads the header of `segment` and forwards it with `len` bytes of payload.
struct Arrivals {
    bytes: Vec<u8>,
    mode: Mode,
}

impl Arrivals {
    fn new(like: &Segment, len: u32) -> Arrivals {
        let body = Body::Pattern { stream: 7, len, offset: 0 };
        let packet = Packet::tcp(FLOW.dst, FLOW.src, like.clone(), body);
        let mut bytes = Vec::new();
        emit_prefix(&packet, 0, &mut bytes).expect("a header");
        Arrivals { bytes, mode: Mode { verify: false, wire_len: Some(packet.wire_len() as usize) } }
    }

    fn come(&self, to: &mut Connection, segment: &Segment, body: Body, out: &mut Out) {
        let _ = black_box(view(black_box(&self.bytes), self.mode));
        to.on_segment(Time::ZERO, black_box(segment), body, out);
    }
}

/// Processes `n` full segments in order.
fn data(n: u32, prediction: Prediction, timestamps: bool) {
    let mut out = out(n);
    let mut receiver = receiver(config(timestamps, prediction), &mut out);
    let len = payload(timestamps);
    let mut segment = theirs(THEIRS + 1, 1, timestamps);
    let arrivals = Arrivals::new(&segment, len);
    for i in 0..n {
        let body = Body::Pattern { stream: 7, len, offset: u64::from(i * len) };
        arrivals.come(&mut receiver, &segment, body, &mut out);
        segment.seq = segment.seq + len;
    }
    assert_eq!(receiver.delivered(), u64::from(n * len));
    assert_eq!(receiver.steps().predicted, prediction != Prediction::Off);
}

/// Processes `n` ACKs of a segment each.
fn acks(n: u32, prediction: Prediction, timestamps: bool) {
    let mut out = out(2 * TIMES[1]);
    let len = payload(timestamps);
    // The amount in flight is the same for every acknowledged part.
    let mut sender = sender(config(timestamps, prediction), 2 * TIMES[1] * len, &mut out);
    let mut segment = theirs(THEIRS + 1, 1, timestamps);
    let arrivals = Arrivals::new(&segment, 0);
    for _ in 0..n {
        segment.ack = segment.ack + len;
        arrivals.come(&mut sender, &segment, Body::EMPTY, &mut out);
    }
    assert_eq!(sender.acknowledged(), u64::from(n * len));
    assert_eq!(sender.steps().predicted, prediction != Prediction::Off);
}

/// Processes `n` segments after a hole and answers each, with a SACK block or without.
fn gaps(n: u32, sack: bool) {
    let mut out = out(n);
    let config = TcpConfig { sack, ..config(false, Prediction::Off) };
    let mut receiver = receiver(config, &mut out);
    let mut segment = theirs(THEIRS + 1 + MSS, 1, false);
    for i in 1..=n {
        let body = Body::Pattern { stream: 7, len: MSS, offset: u64::from(i * MSS) };
        receiver.on_segment(Time::ZERO, black_box(&segment), body, &mut out);
        segment.seq = segment.seq + MSS;
    }
    assert!(out.sends.len() as u32 >= n);
    write_headers(&mut out);
}

/// Processes the ACKs that a hole causes in a window of 64 KiB, `n` times, with a SACK block or without.
fn duplicates(n: u32, blocks: bool) {
    let mut out = out(64);
    let config = TcpConfig { variant: Variant::Sack, sack: true, ..config(false, Prediction::Off) };
    let sender = sender(config, 45 * MSS, &mut out);
    let mut segment = theirs(THEIRS + 1, 1, false);
    if blocks {
        segment.options_mut().sack.push(OURS + 1 + MSS, OURS + 1 + 2 * MSS);
    }
    let arrivals = Arrivals::new(&segment, 0);
    for _ in 0..n {
        let mut sender = sender.clone();
        for i in 0..DUPLICATES {
            if blocks {
                let mut sack = lasthop_proto::wire::SackBlocks::default();
                sack.push(OURS + 1 + MSS, OURS + 1 + (2 + i) * MSS);
                segment.options_mut().sack = sack;
            }
            arrivals.come(&mut sender, &segment, Body::EMPTY, &mut out);
        }
        out.sends.clear();
    }
}

/// Looks up `n` segments of `connections` connections in turn.
fn lookups(n: u32, connections: u16) {
    let mut lookup = Lookup::default();
    let flow = |i: u16| FlowKey { src_port: 1024 + i, ..FLOW };
    (0..connections).for_each(|i| lookup.insert(flow(i), i.into()));
    for i in 0..n {
        black_box(lookup.find(black_box(flow(i as u16 % connections))));
    }
}

/// Reads `n` windows.
fn windows(n: u32, scaled: bool) {
    for _ in 0..n {
        let window = black_box(0x1234u32);
        if scaled {
            black_box(window << black_box(3u8));
        } else {
            black_box(window);
        }
    }
}

/// Moves a buffer `n` times.
fn moved(n: u32, how: fn(&[AtomicU32], &[AtomicU32])) {
    let cells = || -> Vec<AtomicU32> { (0..BUFFER as u32 / 4).map(AtomicU32::new).collect() };
    let (from, to) = (cells(), cells());
    for _ in 0..n {
        how(black_box(&from), black_box(&to));
    }
}

/// Copies words.
#[inline(never)]
fn copy(from: &[AtomicU32], to: &[AtomicU32]) {
    for (from, to) in from.chunks_exact(8).zip(to.chunks_exact(8)) {
        for (from, to) in from.iter().zip(to) {
            to.store(from.load(Relaxed), Relaxed);
        }
    }
}

/// Adds with end-around carry.
#[inline(always)]
fn add(sum: u32, word: u32) -> u32 {
    let (sum, carry) = sum.overflowing_add(word);
    sum.wrapping_add(carry.into())
}

/// Sums words.
#[inline(never)]
fn sum(from: &[AtomicU32]) -> u32 {
    let mut total = 0;
    for eight in from.chunks_exact(8) {
        for word in eight {
            total = add(total, word.load(Relaxed));
        }
    }
    total
}

/// Copies and sums words.
#[inline(never)]
fn copy_and_sum(from: &[AtomicU32], to: &[AtomicU32]) -> u32 {
    let mut total = 0;
    for (from, to) in from.chunks_exact(8).zip(to.chunks_exact(8)) {
        for (from, to) in from.iter().zip(to) {
            let word = from.load(Relaxed);
            total = add(total, word);
            to.store(word, Relaxed);
        }
    }
    total
}

/// Writes words to a 16-bit register, half by half.
#[inline(never)]
fn card(from: &[AtomicU32], register: &AtomicU16) {
    for word in from {
        let word = word.load(Relaxed);
        register.store(word as u16, Relaxed);
        register.store((word >> 16) as u16, Relaxed);
    }
}
