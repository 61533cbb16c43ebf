//! Comparison of our counts with those of `tshark`, an independent implementation.
//!
//! Without tshark these tests cannot run.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::can_run::can_run;
use crate::common::Script;
use lasthop_analyze::{Analysis, Config, Endpoint, analyze_capture};
use lasthop_observe::Sink as _;
use lasthop_observe::pcapng::{CapturePoint, CaptureSink};
use lasthop_proto::event::{Event, EventKind, Op};
use lasthop_proto::machine::{Side, StageId};
use lasthop_proto::units::Time;
use lasthop_proto::wire::{Addr, Flags, FlowKey, Notice, Packet, Quote, Seq};
use lasthop_scenario::{Argument, parse};

/// Packets of each direction, copies included.
type Counts = BTreeMap<(u32, Endpoint), u64>;

fn ours(analysis: &Analysis) -> Counts {
    let mut counts = Counts::new();
    for c in &analysis.connections {
        for (end, direction) in [(c.client, &c.to_server), (c.server, &c.to_client)] {
            if direction.packets > 0 {
                counts.insert((c.number, end), direction.packets + direction.copies);
            }
        }
    }
    counts
}

fn have_tshark() -> bool {
    let version = Command::new("tshark").arg("--version").output();
    can_run(version.is_ok_and(|out| out.status.success()), "tshark")
}

fn tshark(file: &Path) -> Counts {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(file).args([
        "-n",
        "-Y",
        "tcp and not icmp and not icmpv6",
        "-T",
        "fields",
        "-E",
        "occurrence=f",
    ]);
    // Another user's preferences must not change what we compare with.
    command.env("WIRESHARK_CONFIG_DIR", env!("CARGO_TARGET_TMPDIR"));
    for field in ["tcp.stream", "ip.src", "ipv6.src", "tcp.srcport"] {
        command.args(["-e", field]);
    }
    let out = command.output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let mut counts = Counts::new();
    for line in String::from_utf8(out.stdout).unwrap().lines() {
        let cells: Vec<&str> = line.split('\t').collect();
        let addr: IpAddr = format!("{}{}", cells[1], cells[2]).parse().unwrap();
        let end = Endpoint { addr, port: cells[3].parse().unwrap() };
        *counts.entry((cells[0].parse().unwrap(), end)).or_default() += 1;
    }
    counts
}

fn compare(name: &str, capture: &[u8]) -> Counts {
    let analysis = analyze_capture(capture, Config::default()).unwrap();
    let mine = ours(&analysis);
    if !have_tshark() {
        return mine;
    }
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.pcapng"));
    std::fs::write(&file, capture).unwrap();
    let theirs = tshark(&file);
    assert_eq!(mine, theirs, "{name}: packets of each direction");
    mine
}

#[test]
fn captures_that_begin_in_the_middle_or_see_one_side() {
    let mut s = Script::new();
    s.data(0.0, 5001, 1000);
    s.data(1.0, 6001, 1000);
    s.ack(20.0, 6001);
    s.data(21.0, 4001, 1000);
    s.data(300.0, 6001, 1000);
    s.port = 4001;
    (0..10).for_each(|i| s.data(400.0 + f64::from(i), 1 + 1000 * i, 1000));
    s.data(700.0, 3001, 1000);
    s.data(701.0, 12_001, 1000);
    s.port = 4002;
    (0..10).for_each(|i| s.ack(800.0 + f64::from(i), 1 + 1000 * (i / 4)));
    compare("middle", &s.finish());
}

#[test]
fn ports_that_are_used_again() {
    let mut s = Script::new();
    for round in 0..3u32 {
        let at = f64::from(round) * 1000.0;
        s.isn = [1000 + round * 77_777, 90_000 + round * 55_555];
        s.handshake(at, 10.0);
        s.data(at + 20.0, 1, 1000);
        s.ack(at + 30.0, 1001);
        s.send(at + 40.0, 0, Flags::FIN | Flags::ACK, 1001, 0, 1);
        s.send(at + 50.0, 1, Flags::FIN | Flags::ACK, 1, 0, 1002);
        s.send(at + 60.0, 0, Flags::ACK, 1002, 0, 2);
    }
    // A SYN that is retransmitted is the same connection.
    s.port = 4001;
    s.send(5000.0, 0, Flags::SYN, 0, 0, 0);
    s.handshake(6000.0, 10.0);
    let counts = compare("reuse", &s.finish());
    assert_eq!(counts.len(), 8);
}

/// A small generator, so that the captures are the same everywhere.
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

#[test]
fn two_hundred_chaotic_connections() {
    let mut s = Script::new();
    let mut draw = Draw(0x9e37_79b9);
    let mut at = 0.0;
    for connection in 0..200u16 {
        s.port = 10_000 + connection;
        s.v6 = connection % 5 == 0;
        s.isn = [draw.below(1 << 32) as u32, draw.below(1 << 32) as u32];
        if connection % 3 > 0 {
            s.handshake(at, 1.0 + draw.below(60) as f64);
            at += 61.0;
        }
        let (mut next, mut acked) = (1u32, 1u32);
        for _ in 0..60 {
            at += [0.1, 1.0, 5.0, 25.0, 250.0][draw.below(5) as usize];
            match draw.below(16) {
                0..6 => {
                    s.data(at, next, 1000);
                    next += 1000;
                }
                6 => next += 1000, // lost before the capture
                7 | 8 if next > 1 => {
                    s.data(at, 1 + 1000 * draw.below(u64::from(next / 1000)) as u32, 1000)
                }
                9 => s.data(at, acked, 1000),
                10 => s.data(at, next.saturating_sub(1), draw.below(2) as u32),
                11 => {
                    acked += 1000 * draw.below(u64::from((next - acked) / 1000 + 1)) as u32;
                    s.ack(at, acked);
                }
                12 => s.ack_sack(at, acked, &[(acked + 1000, acked + 2000)]),
                13 => s.ack(at, acked),
                14 => {
                    s.window[1] = [0, 0, 8000, 9000][draw.below(4) as usize];
                    s.ack(at, acked);
                }
                _ => {
                    for _ in 0..3 {
                        s.ack(at, acked);
                        at += 0.5;
                    }
                }
            }
            next = next.max(acked);
        }
        s.window[1] = 8000;
        at += 1000.0;
    }
    compare("chaos", &s.finish());
}

/// Resets with and without ACK, other initial numbers, FINs: all segments that can change the reference of the next one.
#[test]
fn three_hundred_connections_that_are_reset() {
    let mut s = Script::new();
    let mut draw = Draw(0x2545_f491);
    let mut at = 0.0;
    for connection in 0..300u16 {
        s.port = 20_000 + connection;
        s.isn = [draw.below(1 << 32) as u32, draw.below(1 << 32) as u32];
        if connection % 4 > 0 {
            s.handshake(at, 1.0 + draw.below(60) as f64);
            at += 61.0;
        }
        let mut next = [1u32; 2];
        for _ in 0..24 {
            at += [0.1, 1.0, 25.0][draw.below(3) as usize];
            let from = draw.below(2) as usize;
            let (own, peer) = (next[from], next[1 - from]);
            let any = draw.below(1 << 32) as u32;
            match draw.below(13) {
                0..5 => {
                    s.send(at, from, Flags::ACK, own, 500, peer);
                    next[from] += 500;
                }
                5 | 6 => s.send(at, from, Flags::ACK, own, 0, peer),
                7 => s.send(at, from, Flags::RST, own, 0, 0),
                8 => s.send(at, from, Flags::RST, any, 0, 0),
                9 => s.send(at, from, Flags::RST | Flags::ACK, own, 0, peer),
                10 => s.send(at, from, Flags::FIN | Flags::ACK, own, 0, peer),
                11 if connection % 4 > 0 => s.send(at, 0, Flags::SYN, 0, 0, 0),
                _ => {
                    s.isn[1] = any;
                    s.send(at, 1, Flags::SYN | Flags::ACK, 0, 0, next[0]);
                    next[1] = 1;
                }
            }
        }
        at += 1000.0;
    }
    compare("resets", &s.finish());
}

#[test]
fn a_transfer_between_two_linux_hosts() {
    let capture = include_bytes!("data/real.pcap");
    let analysis = analyze_capture(capture, Config::default()).unwrap();
    assert_eq!(analysis.connections.len(), 1);
    assert_eq!(analysis.malformed_packets, 0);
    compare("real", capture);
}

/// A capture of every link of one simulated run.
fn simulated(file: &str, set: &[&str], seed: u64) -> Vec<(String, Vec<u8>)> {
    let set: Vec<Argument> = set.iter().map(|s| Argument::Set((*s).to_owned())).collect();
    let (plan, _) = parse(file, "test", &set).unwrap();
    let scenario = &plan.cells[0].scenario;
    let layout = lasthop_sim::layout(scenario);
    let places: Vec<CapturePoint> = (0..layout.stages.len())
        .map(|i| StageId(i as u16))
        .map(|stage| CapturePoint {
            stage,
            name: layout.name(stage).to_owned(),
            is_link: layout.stages[usize::from(stage.0)].role.is_link(),
        })
        .collect();
    let mut sink = CaptureSink::new(&places, 0, |_| io::Result::Ok(Vec::new())).unwrap();
    lasthop_sim::run(scenario, seed, &mut sink);
    let links = sink.finish().unwrap().links.into_iter();
    links.map(|(stage, capture)| (layout.name(stage).to_owned(), capture)).collect()
}

/// Messages of a base station to a source, as an implementation that we did not write reads them.
#[test]
fn messages_to_sources() {
    if !have_tshark() {
        return;
    }
    let places = [CapturePoint { stage: StageId(0), name: "air".to_owned(), is_link: true }];
    let mut sink = CaptureSink::new(&places, 0, |_| io::Result::Ok(Vec::new())).unwrap();
    for (src, dst) in [("10.0.0.1", "10.1.0.1"), ("fd00::1", "fd00:1::1")] {
        let addr = |text: &str| Addr::from(text.parse::<IpAddr>().unwrap());
        let flow = FlowKey { src: addr(src), dst: addr(dst), src_port: 1024, dst_port: 9 };
        for notice in Notice::ALL {
            let packet = Packet::notice(notice, &Quote { flow, seq: Seq(3_000_000_001), len: 576 });
            let kind = EventKind::Packet { op: Op::Transmitted, side: Side::Left, packet };
            sink.event(&Event { at: Time::ZERO, stage: StageId(0), kind });
        }
    }
    let capture = sink.finish().unwrap().links.remove(0).1;
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("notices.pcapng");
    std::fs::write(&file, capture).unwrap();
    let fields = "icmp.type icmp.checksum.status icmpv6.type icmpv6.checksum.status tcp.srcport tcp.dstport \
                  tcp.seq ip.checksum.status _ws.malformed";
    let mut command = Command::new("tshark");
    command.arg("-r").arg(&file).args(["-n", "-o", "ip.check_checksum:TRUE", "-T", "fields"]);
    command.env("WIRESHARK_CONFIG_DIR", env!("CARGO_TARGET_TMPDIR"));
    for field in fields.split_whitespace() {
        command.args(["-e", field]);
    }
    let out = command.output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).unwrap();
    let rows: Vec<String> = text.lines().map(|line| line.replace('\t', "|")).collect();
    // Outer and quoted header checksum: both good (1). It does not decode experimental options.
    let expected =
        ["4|1|||1024|9|3000000001|1,1|", "253|1||||||1|", "||101|1|||||", "||100|1|||||"];
    assert_eq!(rows, expected);
}

#[test]
fn simulated_captures_have_the_packets_of_tshark() {
    let lan = include_str!("../../../scenarios/west97-lan.toml");
    for agent in ["none", "snoop"] {
        let set = [&format!("agent={agent}"), "transfer.bytes=500KB"];
        for (link, capture) in simulated(lan, &set, 1) {
            compare(&format!("sim-{agent}-{link}"), &capture);
        }
    }
}

/// Captures of the field: restarts, resets without ACK, copies, windows, errors that quote segments.
#[test]
fn captures_of_the_field() {
    for name in [
        "ack-before-data",
        "half-open-a",
        "icmp-quotes",
        "mac-window",
        "mirror-twice",
        "mtu-black-hole",
        "one-way-acks",
        "repair-at-receiver",
        "rst-high",
        "rst-low",
        "syn-again",
        "syn-unanswered",
    ] {
        let path = format!("{}/tests/data/field/{name}.pcap", env!("CARGO_MANIFEST_DIR"));
        compare(name, &std::fs::read(path).unwrap());
    }
}
