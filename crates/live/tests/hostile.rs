//! Packets of attackers use no more memory than the configuration allows, and break no connection.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};

use crate::common::flood::{flood, frame_of, garbage, mac, spoofed_connections, spoofed_data};
use crate::common::rerun::only;
use crate::common::*;
use lasthop_live::header::VNET;
use lasthop_live::sys::packet_socket::Inbox;
use lasthop_observe::Nothing;
use lasthop_path::Stage;
use lasthop_proto::wire::parse::parse;
use lasthop_proto::wire::{Body, Flags, Packet, Segment, Seq};

/// Memory limit of the stages between two interfaces, bytes. Snoop's cache has 16 MiB and as much again for
/// metadata; the rest is for batches of the largest frames at both interfaces, and tables of flows and
/// addresses.
const BOUND: u64 = 64 << 20;

/// Time to live of forged packets; the hosts send with 64.
const FORGED: u8 = 99;

/// Resident memory of this process, bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

/// A station without a sink.
fn unwatched(by: By, stage: fn() -> Stage) -> Running<Nothing> {
    station_by(by, Nothing, move || vec![stage()])
}

fn spoofed(by: By, connections: u32) {
    wire(Wires::default());
    let ends = [mac("mh", "mr"), mac("fh", "fl")];
    let station = unwatched(by, snoop);
    transfer("fh", "mh", "10.9.0.2", 1_000_000);
    let left = socket("fh", "fl");
    let before = resident();
    let legit = std::thread::spawn(|| transfer("fh", "mh", "10.9.0.2", 3_000_000));
    flood(&left, connections, spoofed_connections(ends, 1));
    // Full segments of enough flows to fill the cache many times over.
    flood(&left, connections / 10, spoofed_data(ends, 1400, 4, 0));
    // One byte each, in frames with the longest permitted trailer.
    flood(&left, connections / 5, spoofed_data(ends, 1, 128, 64));
    legit.join().unwrap();
    let grown = resident().saturating_sub(before);
    println!("memory grew by {} KiB", grown / 1024);
    assert!(grown < BOUND, "{grown} bytes");
    transfer("fh", "mh", "10.9.0.2", 1_000_000);
    // A station with little processor time sees little of a flood, so the flood continues until it has seen
    // enough.
    let mut more = spoofed_connections(ends, 2);
    let mut sent = u64::from(connections) * 13 / 10;
    until("a tenth of the flood is seen", || {
        let seen = station.ended().port("bl").received * 10 > connections.into();
        if !seen {
            flood(&left, 10_000, &mut more);
            sent += 10_000;
        }
        seen
    });
    until("all of it is counted", || {
        let port = station.ended().port("bl");
        port.received + port.overrun >= sent
    });
    println!("{:?}", station.stop().1);
}

#[test]
fn a_million_spoofed_connections_take_no_memory_and_break_no_transfer() {
    alone("a_million_spoofed_connections_take_no_memory_and_break_no_transfer", || {
        spoofed(By::Sockets, 1_000_000);
    });
}

#[test]
fn spoofed_connections_break_no_transfer_where_the_kernel_forwards() {
    alone_as_root("spoofed_connections_break_no_transfer_where_the_kernel_forwards", || {
        spoofed(By::Kernel, 500_000);
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
            // Forged packets pass here too. Their time to live identifies them.
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
                // At most the receiver's window: the receiver would drop data beyond it, and a later ACK
                // would still acknowledge that data.
                segment.window = real.window;
                let mut packet = Packet::tcp(seen.src, seen.dst, segment, Body::EMPTY);
                packet.ttl = FORGED;
                frame_of(&packet, dst, src)
            };
            let mut batch = vec![ack(real.ack); 5];
            // All numbers are outside the transfer: a forged ACK for data under way is indistinguishable from
            // a real one.
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

fn garbled(by: By) {
    wire(Wires::default());
    let ends = [mac("mh", "mr"), mac("fh", "fl")];
    for stage in [none, snoop, link] {
        let station = unwatched(by, stage);
        transfer("fh", "mh", "10.9.0.2", 1_000_000);
        let sockets = [socket("fh", "fl"), socket("mh", "mr")];
        let before = resident();
        let legit = std::thread::spawn(|| transfer("fh", "mh", "10.9.0.2", 2_000_000));
        for socket in &sockets {
            flood(socket, 50_000, garbage(ends));
        }
        legit.join().unwrap();
        assert!(resident().saturating_sub(before) < BOUND);
        transfer("fh", "mh", "10.9.0.2", 1_000_000);
        station.stop();
    }
}

#[test]
fn garbage_frames_break_no_transfer() {
    alone("garbage_frames_break_no_transfer", || garbled(By::Sockets));
}

#[test]
fn garbage_frames_break_no_transfer_where_the_kernel_forwards() {
    alone_as_root("garbage_frames_break_no_transfer_where_the_kernel_forwards", || {
        garbled(By::Kernel)
    });
}

#[test]
fn interfaces_go_down_and_up_and_change_their_names() {
    alone_as_root("interfaces_go_down_and_up_and_change_their_names", || {
        wire(Wires::default());
        for by in [By::Kernel, By::Sockets] {
            for stage in [none, snoop, link] {
                let station = unwatched(by, stage);
                let legit = std::thread::spawn(|| transfer("fh", "mh", "10.9.0.2", 30_000_000));
                for (dev, name) in
                    [("bl", "other"), ("other", "bl"), ("br", "other"), ("other", "br")]
                {
                    pause(30);
                    sh(&format!(
                        "ip -n bs link set dev {dev} down; ip -n bs link set dev {dev} name {name}
                         ip -n bs link set dev {name} up"
                    ));
                }
                legit.join().unwrap();
                transfer("mh", "fh", "10.9.0.1", 1_000_000);
                station.stop();
            }
        }
    });
}

const CONNECTIONS: usize = 10_000;
const NAME: &str = "ten_thousand_connections_at_once_all_work";

/// The far end in a separate process, since both ends together would exceed the limit of descriptors.
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
    // The parent process ends this one.
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
            .args(only(NAME))
            .args(["--nocapture", "--test-threads=1"])
            .env("LASTHOP_TEST_SERVE", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = Vec::new();
        let mut out = server.stdout.take().unwrap();
        while !String::from_utf8_lossy(&output).contains("ready") {
            let mut buffer = [0; 100];
            let count = out.read(&mut buffer).unwrap();
            assert!(count > 0, "the far end ended");
            output.extend(&buffer[..count]);
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
