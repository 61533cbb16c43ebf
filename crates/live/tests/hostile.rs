//! What comes from attackers takes no more memory than the configuration allows, and breaks nobody's connection.

mod common;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};

use common::*;
use lasthop_live::header::VNET;
use lasthop_live::sys::packet_socket::{BATCH, Inbox, PacketSocket};
use lasthop_proto::rng::Stream;
use lasthop_proto::wire::emit::emit;
use lasthop_proto::wire::parse::parse;
use lasthop_proto::wire::{Addr, Body, Flags, Packet, Segment, Seq};

/// What the stages between two interfaces may keep: snoop's cache of 16 MiB and as much again for what stands
/// around its packets, buffers for a batch of the largest frames at both interfaces, tables of flows and addresses.
const BOUND: u64 = 64 << 20;

/// Time to live of the forged packets: the hosts send with 64.
const FORGED: u8 = 99;

/// Memory of this process, in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

fn mac(namespace: &str, dev: &str) -> [u8; 6] {
    let text = sh(&format!(
        "ip netns exec {namespace} cat /sys/class/net/{dev}/address 2>/dev/null || \
         ip -n {namespace} -o link show dev {dev}"
    ));
    let word = text.split_whitespace().rev().find(|word| word.matches(':').count() == 5);
    let all: Vec<&str> = text.split_whitespace().collect();
    let at = all.iter().position(|word| *word == "link/ether");
    let word = at.map(|at| all[at + 1]).or(word).unwrap();
    let bytes: Vec<u8> =
        word.split(':').map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
    bytes.try_into().unwrap()
}

/// A frame for the socket with this packet.
fn frame_of(packet: &Packet, dst: [u8; 6], src: [u8; 6]) -> Vec<u8> {
    let mut frame = vec![0; VNET];
    frame.extend([&dst[..], &src, &[8, 0]].concat());
    emit(packet, &mut frame).unwrap();
    frame
}

/// Sends `count` frames that `make` writes, in batches.
fn flood(socket: &PacketSocket, count: u32, mut make: impl FnMut(u32, &mut Vec<u8>)) {
    let mut batch: Vec<Vec<u8>> = vec![Vec::new(); BATCH];
    let mut i = 0;
    while i < count {
        for frame in &mut batch {
            make(i, frame);
            i += 1;
        }
        send_all(socket, &batch);
    }
}

#[test]
fn a_million_spoofed_connections_take_no_memory_and_break_no_transfer() {
    alone("a_million_spoofed_connections_take_no_memory_and_break_no_transfer", || {
        wire(Wires::default());
        let (dst, src) = (mac("mh", "mr"), mac("fh", "fl"));
        let station = quiet(snoop);
        transfer("fh", "mh", "10.9.0.2", 1_000_000);
        let left = socket("fh", "fl");
        let before = resident();
        let legit = std::thread::spawn(|| transfer("fh", "mh", "10.9.0.2", 3_000_000));
        let mut chance = Stream::new(1, "flood");
        let server = Addr::v4(10, 9, 0, 2);
        let mut syn = frame_of(
            &Packet::tcp(
                Addr::v4(11, 0, 0, 0),
                server,
                Segment::new(1, 9, Seq(0), Seq(0), Flags::SYN),
                Body::EMPTY,
            ),
            dst,
            src,
        );
        let (addr_at, port_at) = (VNET + 14 + 12, VNET + 14 + 20);
        flood(&left, 1_000_000, |_, frame| {
            // Neither sum is right, and the virtio header says that both are.
            syn[0] = 2;
            let x = chance.below(1 << 40).to_be_bytes();
            syn[addr_at + 1..addr_at + 4].copy_from_slice(&x[3..6]);
            syn[port_at..port_at + 2].copy_from_slice(&x[6..8]);
            let ip = VNET + 14;
            syn[ip + 10..ip + 12].fill(0);
            let sum = lasthop_proto::wire::checksum::checksum(&syn[ip..ip + 20]);
            syn[ip + 10..ip + 12].copy_from_slice(&sum.to_be_bytes());
            frame.clone_from(&syn);
        });
        // Full segments of as many flows as fill the cache many times over.
        let body = Body::copy_of(&[7; 1400]);
        flood(&left, 100_000, |i, frame| {
            let [_, b, c, d] = (i / 4).to_be_bytes();
            let segment = Segment::new(2, 9, Seq(i * 1400), Seq(1), Flags::ACK);
            *frame = frame_of(
                &Packet::tcp(Addr::v4(12, b, c, d), server, segment, body.clone()),
                dst,
                src,
            );
        });
        // A byte each, in frames with all the trailer that passes.
        flood(&left, 200_000, |i, frame| {
            let [_, b, c, d] = (i / 128).to_be_bytes();
            let segment = Segment::new(2, 9, Seq(i), Seq(1), Flags::ACK);
            *frame = frame_of(
                &Packet::tcp(Addr::v4(13, b, c, d), server, segment, Body::copy_of(&[1])),
                dst,
                src,
            );
            frame.extend([0; 64]);
        });
        legit.join().unwrap();
        let grown = resident().saturating_sub(before);
        println!("memory grew by {} KiB", grown / 1024);
        assert!(grown < BOUND, "{grown} bytes");
        transfer("fh", "mh", "10.9.0.2", 1_000_000);
        let (_, ended) = station.stop();
        let port = ended.port("bl");
        println!("{port:?}");
        assert!(port.received + port.overrun >= 1_300_000);
        assert!(port.received > 300_000, "most were seen: {port:?}");
    });
}

#[test]
fn forged_acknowledgements_do_not_break_a_transfer() {
    alone("forged_acknowledgements_do_not_break_a_transfer", || {
        wire(Wires::default());
        let (dst, src) = (mac("fh", "fl"), mac("mh", "mr"));
        let station = quiet(snoop);
        let (right, watched) = (socket("mh", "mr"), socket("bs", "br"));
        let legit = std::thread::spawn(|| transfer("fh", "mh", "10.9.0.2", 8_000_000));
        let mut inbox = Inbox::new();
        let mut forged = 0u32;
        while !legit.is_finished() {
            inbox.receive(&watched).unwrap();
            // Forged ones pass here too: told by their time to live.
            let real = inbox.frames().filter_map(|frame| {
                let seen = parse(&frame[VNET + 14..].into(), 0, false).ok()?;
                (seen.ttl != FORGED && seen.segment()?.flags.has(Flags::ACK)).then_some(seen)
            });
            let Some(seen) = real.last() else {
                pause(1);
                continue;
            };
            let real = seen.segment().unwrap();
            let ack = |ack: Seq| {
                let mut segment =
                    Segment::new(real.src_port, real.dst_port, real.seq, ack, Flags::ACK);
                // No more than the receiver offers: what it then has to drop would be acknowledged by the next one.
                segment.window = real.window;
                let mut packet = Packet::tcp(seen.src, seen.dst, segment, Body::EMPTY);
                packet.ttl = FORGED;
                frame_of(&packet, dst, src)
            };
            let mut batch = vec![ack(real.ack); 5];
            // All beyond the transfer or before it: what acknowledges data under way cannot be told from a real ACK.
            let far = [1 << 24, 1 << 30, 0x7fff_ffff, 0x8000_0000, 0xc000_0000, u32::MAX - 5000];
            batch.extend(far.map(|far| ack(real.ack + far)));
            forged += batch.len() as u32;
            send_all(&right, &batch);
        }
        legit.join().unwrap();
        println!("{forged} forged");
        assert!(forged > 0);
        station.stop();
    });
}

#[test]
fn garbage_passes_and_harms_nobody() {
    alone("garbage_passes_and_harms_nobody", || {
        wire(Wires::default());
        let (dst, src) = (mac("mh", "mr"), mac("fh", "fl"));
        for stage in [none, snoop, link] {
            let station = quiet(stage);
            transfer("fh", "mh", "10.9.0.2", 1_000_000);
            let (left, right) = (socket("fh", "fl"), socket("mh", "mr"));
            let before = resident();
            let legit = std::thread::spawn(|| transfer("fh", "mh", "10.9.0.2", 2_000_000));
            let mut chance = Stream::new(7, "garbage");
            let mut segment = Segment::new(1, 9, Seq(5), Seq(6), Flags::ACK);
            segment.options_mut().unknown = [253u8, 2].repeat(20);
            let bomb = frame_of(
                &Packet::tcp(
                    Addr::v4(10, 9, 0, 7),
                    Addr::v4(10, 9, 0, 2),
                    segment,
                    Body::copy_of(&[1; 100]),
                ),
                dst,
                src,
            );
            for socket in [&left, &right] {
                flood(socket, 50_000, |i, frame| {
                    frame.clone_from(&bomb);
                    // Cut anywhere, with a few bytes changed anywhere: headers, lengths, options, tags.
                    frame.truncate(VNET + 14 + i as usize % (bomb.len() - VNET - 13));
                    for _ in 0..i % 4 {
                        let at =
                            VNET + 12 + chance.below((frame.len() - VNET - 12) as u64) as usize;
                        frame[at] = chance.below(256) as u8;
                    }
                });
            }
            legit.join().unwrap();
            assert!(resident().saturating_sub(before) < BOUND);
            transfer("fh", "mh", "10.9.0.2", 1_000_000);
            station.stop();
        }
    });
}

const CONNECTIONS: usize = 10_000;
const NAME: &str = "ten_thousand_connections_at_once_all_work";

/// The far end, a process of its own, since both ends together have more descriptors than one may have.
fn serve() {
    let listener = TcpListener::bind("10.9.0.2:7777").unwrap();
    println!("ready");
    let mut streams: Vec<TcpStream> =
        listener.incoming().take(CONNECTIONS).map(|s| s.unwrap()).collect();
    let mut word = [0; 4];
    for stream in &mut streams {
        stream.read_exact(&mut word).unwrap();
        stream.write_all(&word).unwrap();
    }
    // Whoever started this ends it.
    let _ = std::io::stdin().read(&mut word);
}

#[test]
fn ten_thousand_connections_at_once_all_work() {
    if std::env::var_os("LASTHOP_TEST_SERVE").is_some() {
        raise_limit();
        serve();
        return;
    }
    alone(NAME, || {
        raise_limit();
        wire(Wires::default());
        let station = quiet(snoop);
        let mut server = Command::new("ip")
            .args(["netns", "exec", "mh"])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", NAME, "--nocapture", "--test-threads=1"])
            .env("LASTHOP_TEST_SERVE", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = Vec::new();
        let mut out = server.stdout.take().unwrap();
        while !String::from_utf8_lossy(&said).contains("ready") {
            let mut buffer = [0; 100];
            let count = out.read(&mut buffer).unwrap();
            assert!(count > 0, "the far end ended");
            said.extend(&buffer[..count]);
        }
        let before = resident();
        inside("fh", || {
            let connect = |_| TcpStream::connect("10.9.0.2:7777").unwrap();
            let mut streams: Vec<TcpStream> = (0..CONNECTIONS).map(connect).collect();
            for (i, stream) in streams.iter_mut().enumerate() {
                stream.write_all(&(i as u32).to_be_bytes()).unwrap();
            }
            for (i, stream) in streams.iter_mut().enumerate() {
                let mut word = [0; 4];
                stream.read_exact(&mut word).unwrap();
                assert_eq!(u32::from_be_bytes(word), i as u32);
            }
        });
        let grown = resident().saturating_sub(before);
        println!("memory grew by {} KiB", grown / 1024);
        assert!(grown < BOUND, "{grown}");
        drop(server.stdin.take());
        assert!(server.wait().unwrap().success());
        let (_, ended) = station.stop();
        assert_eq!(ended.unroutable, 0);
    });
}

fn raise_limit() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    let need = CONNECTIONS as u64 + 100;
    assert!(hard >= need, "needs {need} open files, the limit is {hard}: ulimit -Hn {need}");
    setrlimit(Resource::RLIMIT_NOFILE, need, hard).unwrap();
}
