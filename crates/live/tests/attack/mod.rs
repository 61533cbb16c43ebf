//! Attacks on connections of two kernels through a station. A third party on either side knows addresses and
//! ports, and sends arbitrary packets. `crates/proto/tests/agents/attacks.rs` has the same for all agents in
//! virtual time.

mod syns;

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use crate::common::flood::{frame_of, mac};
use crate::common::losses::Losses;
use crate::common::*;
use lasthop_live::header::VNET;
use lasthop_live::owner;
use lasthop_live::sys::packet_socket::Inbox;
use lasthop_observe::Nothing;
use lasthop_path::Stage;
use lasthop_proto::agent::{Agent, AgentConfig, SnoopAgent, SnoopConfig};
use lasthop_proto::rng::Stream;
use lasthop_proto::wire::parse::parse;
use lasthop_proto::wire::{Body, Flags, FlowKey, Packet, Segment, Seq, Timestamps};

/// Time to live of forged packets; the hosts send with 64.
const FORGED: u8 = 99;

/// Minimum number of packets from each side.
fn packets() -> u32 {
    std::env::var("ATTACK_PACKETS").ok().and_then(|n| n.parse().ok()).unwrap_or(20_000)
}

/// A segment of `flow` with random numbers.
///
/// No SYN without ACK reaches a connection that is not `open`. In SYN-SENT it would be a simultaneous open
/// (RFC 9293, 3.5). The client would take its number for the server's, and the server would answer the next
/// segment with a valid RST. Two hosts without a station have no protection from that either.
fn forged(rng: &mut Stream, flow: FlowKey, open: bool) -> Packet {
    let flags = match rng.below(12) {
        0 => Flags::RST,
        1 => Flags::RST | Flags::ACK,
        2 if open => Flags::SYN,
        3 => Flags::SYN | Flags::ACK,
        4 => Flags::FIN | Flags::ACK,
        _ => Flags::ACK,
    };
    let len = if rng.below(4) == 0 { rng.below(1000) as usize } else { 0 };
    let mut number = || Seq(rng.next_u64() as u32);
    let mut segment = Segment::new(flow.src_port, flow.dst_port, number(), number(), flags);
    segment.window = rng.below(1 << 16) as u16;
    if rng.below(2) == 0 {
        let [value, echo] = [0, 1].map(|_| rng.next_u64() as u32);
        segment.timestamps = Some(Timestamps { value, echo });
    }
    let mut packet = Packet::tcp(flow.src, flow.dst, segment, Body::copy_of(&vec![9; len]));
    packet.ttl = FORGED;
    packet
}

/// The attacked connection, as the segments of one host show it.
#[derive(Clone, Copy)]
struct Observed {
    flow: FlowKey,
    /// The acknowledgement number of its first segment without SYN.
    first_ack: Option<Seq>,
    /// Whether data has passed. Resets and the first ACKs may be answers to forged segments before that.
    open: bool,
}

impl Observed {
    fn update(last: &mut Option<Observed>, packet: &Packet) {
        let (Some(flow), Some(segment)) = (packet.flow(), packet.segment()) else { return };
        let begins = last.is_none_or(|it| it.flow != flow) || segment.flags.has(Flags::SYN);
        if begins {
            *last = Some(Observed { flow, first_ack: None, open: false });
        }
        let Some(it) = last.as_mut().filter(|_| !segment.flags.any(Flags::SYN | Flags::RST)) else {
            return;
        };
        let first_ack = *it.first_ack.get_or_insert(segment.ack);
        it.open |= !packet.body.is_empty() || segment.ack != first_ack;
    }
}

/// Makes sequential transfers while both sides are flooded with segments of their connections.
fn spoofed(by: By, stage: fn() -> Stage) {
    for attempt in 1.. {
        let (whole, stalled) = spoofed_once(by, stage);
        if whole {
            return;
        }
        assert!(stalled && attempt < ATTEMPTS, "a connection was broken");
    }
}

/// Whether all transfers were complete, and whether the kernel has reset connections by itself: those that end at a station that
/// the machine does not run for half a second.
fn spoofed_once(by: By, stage: fn() -> Stage) -> (bool, bool) {
    let station = station_by(by, Nothing, move || vec![stage()]);
    let stop = Arc::new(AtomicBool::new(false));
    let ends = [mac("fh", "fl"), mac("mh", "mr")];
    let (left, right) = (socket("fh", "fl"), socket("mh", "mr"));
    let watched = socket("bs", "bl");
    let done = stop.clone();
    let legit = thread::spawn(move || {
        // Connections during the whole attack, so that each state of a connection is attacked.
        let mut count = 0;
        while !done.load(Ordering::Relaxed) || count < 3 {
            transfer("fh", "mh", "10.9.0.2", 2_000_000);
            transfer("mh", "fh", "10.9.0.1", 500_000);
            count += 1;
        }
        count
    });
    let (mut inbox, mut rng, mut sent) = (Inbox::new(), Stream::new(3, "spoofed"), 0);
    let mut last: Option<Observed> = None;
    while sent < packets() && !legit.is_finished() {
        inbox.receive(&watched).unwrap();
        for frame in inbox.frames() {
            let Ok(packet) = parse(&frame.get(VNET + 14..).unwrap_or_default().into(), 0, false)
            else {
                continue;
            };
            if packet.ttl != FORGED && packet.src.ip().to_string() == "10.9.0.1" {
                Observed::update(&mut last, &packet);
            }
        }
        let Some(Observed { flow, open, .. }) = last else {
            pause(1);
            continue;
        };
        let mut batch = |flow, [dst, src]: [[u8; 6]; 2]| -> Vec<Vec<u8>> {
            (0..20).map(|_| frame_of(&forged(&mut rng, flow, open), dst, src)).collect()
        };
        send_all(&left, &batch(flow, [ends[1], ends[0]]));
        send_all(&right, &batch(flow.reversed(), ends));
        sent += 20;
    }
    stop.store(true, Ordering::Relaxed);
    let transfers = legit.join();
    let plane = station.stop().1.plane;
    println!(
        "{sent} packets from each side; {plane:?}; transfers each way: {:?}",
        transfers.as_ref().ok()
    );
    (transfers.is_ok(), plane.is_some_and(|counts| counts.resets > 0))
}

#[test]
fn spoofed_segments_end_no_connection() {
    alone("spoofed_segments_end_no_connection", || {
        wire(Wires::default());
        for stage in STAGES {
            spoofed(By::Sockets, stage);
        }
    });
}

#[test]
fn spoofed_segments_end_no_connection_where_the_kernel_forwards() {
    alone_as_root("spoofed_segments_end_no_connection_where_the_kernel_forwards", || {
        wire(Wires::default());
        for stage in STAGES {
            spoofed(By::Kernel, stage);
        }
    });
}

/// The agent in a station's example file.
fn smart() -> Stage {
    let snoop = SnoopConfig::linux().selective();
    Stage::Agent(Box::new(Agent::new(&AgentConfig::Snoop(SnoopAgent { snoop, ackp: None }))))
}

const STAGES: [fn() -> Stage; 4] = [none, snoop, smart, split];

/// Tests all agents on both data planes.
fn all_of(mut test: impl FnMut(By, fn() -> Stage)) {
    for by in [By::Sockets, By::Kernel] {
        for stage in STAGES {
            test(by, stage);
        }
    }
}

/// A router behind the station has a next link with an MTU of 1300 bytes. Its messages are addressed to the
/// server, but a split connection terminates the server's segments.
#[test]
fn a_narrow_link_behind_the_station_is_found() {
    alone_as_root("a_narrow_link_behind_the_station_is_found", || {
        wire(Wires::default());
        sh("ip netns add nh; ip -n nh link set dev lo up
            ip link add name mn netns mh type veth peer name nm netns nh
            ip -n mh link set dev mn mtu 1300; ip -n mh addr add 10.8.0.1/24 dev mn; ip -n mh link set dev mn up
            ip -n nh addr add 10.8.0.2/24 dev nm; ip -n nh link set dev nm up
            ip netns exec mh sysctl -qw net.ipv4.ip_forward=1
            ip -n fh route add 10.8.0.0/24 via 10.9.0.2
            ip -n nh route add 10.9.0.0/24 via 10.8.0.1
            for end in 'mh mn' 'nh nm'; do set -- $end; ip netns exec $1 ethtool -K $2 tso off gso off gro off tx off; done");
        wait_up(&[("mh", "mn"), ("nh", "nm")]);
        all_of(|by, stage| {
            let station = station_by(by, Nothing, move || vec![stage()]);
            sh("ip -n fh route flush cache; ip -n mh route flush cache");
            transfer("fh", "nh", "10.8.0.2", 2_000_000);
            station.stop();
        });
        assert!(counter("mh", "Ip", "FragFails") > 0, "no segment was too large");
    });
}

/// Both ends of a connection with signed segments (RFC 2385). Arguments: the mode, and the server's address.
const SIGNED: &str = r#"
import socket, struct, sys
mode, own, peer = sys.argv[1:4]
def sign(s, addr):
    key = b"a key of both ends"
    s.setsockopt(socket.IPPROTO_TCP, 14, struct.pack("<HH4s120xBBHi80s", socket.AF_INET, 0, socket.inet_aton(addr), 0, 0, len(key), 0, key))
total = 3_000_000
data = bytes((i * 31 + (i >> 8)) & 255 for i in range(total))
s = socket.socket()
s.settimeout(90)
sign(s, peer)
if mode == "server":
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((own, 7788)); s.listen(); print("ready", flush=True)
    c, _ = s.accept(); c.settimeout(90); c.sendall(data); c.shutdown(socket.SHUT_WR); c.recv(1)
else:
    s.connect((peer, 7788))
    got = bytearray()
    while len(got) < total:
        piece = s.recv(1 << 16)
        if not piece: break
        got += piece
    assert got == data, len(got)
"#;

#[test]
fn signed_connections_pass_a_lossy_hop() {
    alone_as_root("signed_connections_pass_a_lossy_hop", || {
        let python = Command::new("python3").arg("--version").output().is_ok();
        if !can_run::can_run(python, "python3") {
            return;
        }
        wire(Wires::default());
        all_of(|by, stage| {
            let losses = Losses::start("mh", "mr");
            let station = station_by(by, Nothing, move || vec![stage()]);
            let python = |namespace: &str, mode: &str, own: &str, peer: &str| {
                let mut command = Command::new("ip");
                command
                    .args(["netns", "exec", namespace, "python3", "-c", SIGNED, mode, own, peer]);
                command
            };
            let server =
                python("fh", "server", "10.9.0.1", "10.9.0.2").stdout(Stdio::piped()).spawn();
            let mut server = server.unwrap();
            server.stdout.as_mut().unwrap().read_exact(&mut [0; 6]).unwrap();
            let client = python("mh", "client", "10.9.0.2", "10.9.0.1").status().unwrap();
            assert!(client.success(), "{by:?}");
            assert!(server.wait().unwrap().success(), "{by:?}");
            station.stop();
            drop(losses);
        });
        for host in ["fh", "mh"] {
            for name in ["TCPMD5NotFound", "TCPMD5Unexpected", "TCPMD5Failure"] {
                assert_eq!(counter(host, "TcpExt", name), 0, "{host} {name}");
            }
        }
    });
}

const READERS: usize = 60;
const EACH: usize = 2_000_000;

/// Those bytes. They are compared as a whole, since one by one would take most of the test's time.
static SENT: [u8; EACH] = [7; EACH];

/// Clients that pause their reads do not delay others, and receive every byte in the end. Returns the first
/// error of an end.
fn slow_readers() -> io::Result<()> {
    let (sender, addresses) = channel();
    let server = within("fh", move || {
        let listener = TcpListener::bind("10.9.0.1:0").unwrap();
        sender.send(listener.local_addr().unwrap()).unwrap();
        let streams = listener.incoming().take(READERS).collect::<io::Result<Vec<_>>>()?;
        let write = |mut stream: TcpStream| move || stream.write_all(&SENT);
        let writers: Vec<_> = streams.into_iter().map(|s| thread::spawn(write(s))).collect();
        let results: Vec<_> = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
        results.into_iter().collect()
    });
    let address = addresses.recv().unwrap();
    let connect = move || (0..READERS).map(|_| TcpStream::connect(address)).collect();
    let streams: io::Result<Vec<TcpStream>> = inside("mh", connect);
    // Their windows are closed by now, or soon.
    let mut result = streams.and_then(|streams| {
        let ignored = Arc::default();
        for _ in 0..3 {
            try_transfer("fh", "mh", "10.9.0.2", 2_000_000, &ignored)?;
            try_transfer("mh", "fh", "10.9.0.1", 2_000_000, &ignored)?;
        }
        for mut stream in streams {
            let mut all = Vec::new();
            stream.read_to_end(&mut all)?;
            assert!(all == SENT, "{}", all.len());
        }
        Ok(())
    });
    if result.is_ok() {
        result = server.join().unwrap();
    }
    result
}

/// Counters of the hosts about resets and aborted connections.
fn resets() -> Vec<(&'static str, &'static str, u64)> {
    let names = [
        ("Tcp", "OutRsts"),
        ("Tcp", "EstabResets"),
        ("TcpExt", "TCPAbortOnClose"),
        ("TcpExt", "TCPAbortOnData"),
        ("TcpExt", "TCPAbortOnMemory"),
        ("TcpExt", "TCPAbortOnTimeout"),
    ];
    let of = |host| names.map(|(group, name)| (host, name, counter(host, group, name)));
    ["fh", "mh"].into_iter().flat_map(of).collect()
}

#[test]
fn slow_readers_delay_no_other_transfer() {
    alone_as_root("slow_readers_delay_no_other_transfer", || {
        wire(Wires::default());
        all_of(|by, stage| {
            for attempt in 1.. {
                let station = station_by(by, Nothing, move || vec![stage()]);
                let lateness = Lateness::new();
                let result = slow_readers();
                let (late, plane) = (lateness.worst(), station.stop().1.plane);
                let Err(error) = result else { break };
                // The kernel resets connections that end at a station if the machine does not run it for half
                // a second.
                let stalled = plane.is_some_and(|counts| counts.resets > 0);
                let all = resets();
                println!("{by:?}: {error}; the longest sleep {late:?}; {plane:?}; {all:?}");
                assert!(stalled && attempt < ATTEMPTS, "{by:?}: {error}, see above");
            }
        });
    });
}

/// Attempts on a machine that does not run the station for half a second.
const ATTEMPTS: u32 = 5;

/// Each network namespace has its own interfaces and owners.
#[test]
fn an_interface_has_an_owner_in_its_own_namespace_only() {
    alone("an_interface_has_an_owner_in_its_own_namespace_only", || {
        wire(Wires::default());
        let claims = inside("bs", || [1, 2].map(|n| owner::claim(n).unwrap().expect("it is free")));
        assert_eq!(
            inside("bs", || owner::owner(1).unwrap()).map(|o| o.pid),
            Some(std::process::id() as i32)
        );
        assert_eq!(inside("fh", || owner::owner(1).unwrap()), None);
        drop(claims);
        assert_eq!(inside("bs", || owner::owner(1).unwrap()), None);
    });
}
