//! SYNs that no host has sent: between those of a client, and a flood of them.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use lasthop_observe::Nothing;
use lasthop_proto::rng::Stream;
use lasthop_proto::wire::{Addr, Body, Flags, Packet, Segment, Seq};

use super::{FORGED, all_of, packets};
use crate::common::flood::{flood, frame_of, mac};
use crate::common::*;

/// Ports that a client has at most, so that a third party hits one of them.
const PORTS: std::ops::Range<u16> = 40_000..40_016;

/// A third party on the client's side repeats each SYN with other numbers, before it and after it: every connection opens in the
/// end, and carries its bytes.
#[test]
fn syn_races_break_no_connection() {
    alone_as_root("syns::syn_races_break_no_connection", || {
        wire(Wires::default());
        let (first, last) = (PORTS.start, PORTS.end - 1);
        sh(&format!("ip netns exec fh sysctl -qw net.ipv4.ip_local_port_range='{first} {last}'"));
        let (dst, src) = (mac("mh", "mr"), mac("fh", "fl"));
        let attacker = socket("fh", "fl");
        let mut rng = Stream::new(5, "races");
        all_of(|by, stage| {
            let station = station_by(by, Nothing, move || vec![stage()]);
            let (sender, addresses) = channel();
            let (arrived, arrivals) = channel();
            within("mh", move || {
                let listener = TcpListener::bind("10.9.0.2:0").unwrap();
                sender.send(listener.local_addr().unwrap()).unwrap();
                // A forged SYN opens a connection at the far end of a split. It is reset when the alleged sender receives the
                // SYN-ACK.
                for mut stream in listener.incoming().map_while(Result::ok) {
                    let arrived = arrived.clone();
                    thread::spawn(move || {
                        let mut all = Vec::new();
                        if stream.read_to_end(&mut all).is_ok() || !all.is_empty() {
                            // The test may be over.
                            let _ = arrived.send(all);
                        }
                    });
                }
            });
            let address = addresses.recv().unwrap();
            let mut forge = || {
                let syns: Vec<Vec<u8>> = PORTS
                    .map(|port| {
                        let seq = Seq(rng.next_u64() as u32);
                        let mut syn = Segment::new(port, address.port(), seq, Seq(0), Flags::SYN);
                        syn.window = 60_000;
                        let hosts = [1, 2].map(|n| Addr::v4(10, 9, 0, n));
                        let mut packet = Packet::tcp(hosts[0], hosts[1], syn, Body::EMPTY);
                        packet.ttl = FORGED;
                        frame_of(&packet, dst, src)
                    })
                    .collect();
                send_all(&attacker, &syns);
            };
            for race in 0..RACES {
                if race % 2 == 0 {
                    forge();
                }
                let client = within("fh", move || {
                    let mut stream = TcpStream::connect(address).unwrap();
                    stream.write_all(&[7; 10_000]).unwrap();
                });
                // Some hit the handshake, some an open connection, some neither.
                for _ in 0..race % 4 {
                    forge();
                }
                client.join().unwrap();
            }
            for _ in 0..RACES {
                let all = arrivals.recv_timeout(PATIENCE).expect("a connection is stuck");
                assert!(all.len() == 10_000 && all.iter().all(|byte| *byte == 7), "{by:?}");
            }
            station.stop();
        });
    });
}

const RACES: u32 = 12;
const PATIENCE: Duration = Duration::from_secs(120);

/// A server whose queue of half-open connections is full answers SYNs with cookies. A station opens the other half of a
/// split connection only after the opener has acknowledged the SYN-ACK, so that forged sources open none. Clients of
/// the same server can connect, at the latest after the flood.
#[test]
fn a_syn_flood_opens_no_connection_at_a_server_with_cookies() {
    alone_as_root("syns::a_syn_flood_opens_no_connection_at_a_server_with_cookies", || {
        wire(Wires::default());
        // Forged sources do not answer. Answers to them reach the client's host, which drops them.
        sh("ip -n mh route add 11.0.0.0/8 via 10.9.0.1
            ip netns exec mh sysctl -qw net.ipv4.tcp_syncookies=1 net.core.somaxconn=16
            ip netns exec mh sysctl -qw net.ipv4.tcp_max_syn_backlog=16");
        let ends = [mac("mh", "mr"), mac("fh", "fl")];
        let attacker = socket("fh", "fl");
        let forged = Arc::new(AtomicU32::new(0));
        let counted = forged.clone();
        within("mh", move || {
            let listener = TcpListener::bind("10.9.0.2:9").unwrap();
            loop {
                let Ok((mut stream, from)) = listener.accept() else { continue };
                counted.fetch_add(u32::from(!is_client(from)), Ordering::Relaxed);
                thread::spawn(move || {
                    let mut byte = [0];
                    stream.read_exact(&mut byte).and_then(|()| stream.write_all(&byte))
                });
            }
        });
        all_of(|by, stage| {
            let station = station_by(by, Nothing, move || vec![stage()]);
            let (over, cookies) = (Arc::new(AtomicBool::new(false)), sent_cookies());
            let ends_with = over.clone();
            let clients = within("fh", move || {
                let mut opened = 0;
                while !ends_with.load(Ordering::Relaxed) || opened < 20 {
                    let mut stream = TcpStream::connect("10.9.0.2:9").unwrap();
                    stream.set_read_timeout(Some(PATIENCE)).unwrap();
                    stream.write_all(&[7]).unwrap();
                    stream.read_exact(&mut [0]).unwrap();
                    opened += 1;
                }
                opened
            });
            // In parts, for pauses in which the machine runs the others.
            let mut make = forged_syns(ends);
            for _ in 0..20 {
                flood(&attacker, packets() / 20, &mut make);
                pause(20);
            }
            over.store(true, Ordering::Relaxed);
            let opened = clients.join().unwrap();
            let cookies = sent_cookies() - cookies;
            println!("{by:?}: {opened} connections of clients, {cookies} cookies");
            assert!(cookies > 0, "{by:?}: the queue of the server was never full");
            assert_eq!(forged.load(Ordering::Relaxed), 0, "{by:?}: connections of nobody");
            station.stop();
        });
    });
}

/// SYNs from random addresses and ports, with checksums that the server's kernel accepts.
fn forged_syns(ends: [[u8; 6]; 2]) -> impl FnMut(u32, &mut Vec<u8>) {
    let mut rng = Stream::new(3, "syns");
    move |_, frame| {
        let [a, b, c, d, e] = core::array::from_fn(|_| rng.below(256) as u8);
        let seq = Seq(rng.next_u64() as u32);
        let port = u16::from_be_bytes([d, e]).max(1);
        let mut syn = Segment::new(port, 9, seq, Seq(0), Flags::SYN);
        syn.window = 60_000;
        let mut packet =
            Packet::tcp(Addr::v4(11, a, b, c), Addr::v4(10, 9, 0, 2), syn, Body::EMPTY);
        packet.ttl = FORGED;
        *frame = frame_of(&packet, ends[0], ends[1]);
    }
}

fn is_client(from: SocketAddr) -> bool {
    from.ip() == Ipv4Addr::new(10, 9, 0, 1)
}

fn sent_cookies() -> u64 {
    counter("mh", "TcpExt", "SyncookiesSent")
}
