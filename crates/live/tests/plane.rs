//! The kernel as data plane: the same bytes pass, agents have the same effects, and packets still flow when
//! the station does not run.

use std::process::Command;

use crate::common::far::{self, Far};
use crate::common::losses::{Losses, losses_of};
use crate::common::*;
use lasthop_live::header::VNET;
use lasthop_live::plane::base;
use lasthop_live::sys::flags::promiscuous;
use lasthop_observe::Nothing;
use lasthop_path::Stage;
use lasthop_proto::agent::{Agent, AgentConfig, SnoopAgent, SnoopConfig};
use lasthop_proto::units::Span;
use nix::sys::signal::Signal;

const V4: [&str; 2] = ["10.9.0.1", "10.9.0.2"];
const V6: [&str; 2] = ["fd00:9::1", "fd00:9::2"];

fn by_kernel(stage: fn() -> Stage) -> Running<Nothing> {
    station_by(By::Kernel, Nothing, move || vec![stage()])
}

fn unwire() {
    sh("ip netns del fh; ip netns del bs; ip netns del mh");
}

fn index(name: &str) -> u32 {
    nix::net::if_::if_nametoindex(name).unwrap()
}

/// Whether the base filter is attached to both inner interfaces; panics if only to one.
fn is_base_attached() -> bool {
    let found = inside("bs", || ["bl", "br"].map(|name| base::is_there(index(name))));
    assert_eq!(found[0], found[1]);
    found[0]
}

#[test]
fn every_byte_arrives_with_offloads_on_and_off() {
    alone_as_root("every_byte_arrives_with_offloads_on_and_off", || {
        for offload in [true, false] {
            wire(Wires { offload, ipv6: true, ..Wires::default() });
            for (stage, cuts) in [(none as fn() -> Stage, false), (snoop, false), (link, true)] {
                let station = by_kernel(stage);
                for addrs in [V4, V6] {
                    transfer("fh", "mh", addrs[1], 3_000_000);
                    transfer("mh", "fh", addrs[0], 3_000_000);
                }
                let (_, ended) = station.stop();
                assert_eq!(ended.unroutable, 0);
                // Each frame leaves once: it is not forwarded by both the kernel and sockets.
                let (left, right) = (ended.port("bl"), ended.port("br"));
                let once = |sent, received: u64| cuts || sent <= received + received / 4;
                assert!(once(right.sent, left.received), "{ended:?}");
                assert!(once(left.sent, right.received), "{ended:?}");
                for host in ["fh", "mh"] {
                    assert_eq!(counter(host, "Tcp", "InCsumErrors"), 0);
                }
            }
            unwire();
        }
    });
}

#[test]
fn jumbo_frames_and_fragments_pass() {
    alone_as_root("jumbo_frames_and_fragments_pass", || {
        wire(Wires { mtu: 9000, ipv6: true, ..Wires::default() });
        for stage in [none, snoop, link] {
            let station = by_kernel(stage);
            transfer("fh", "mh", V4[1], 2_000_000);
            for (host, addr) in [("fh", V4[1]), ("mh", V4[0]), ("fh", V6[1])] {
                // In seven fragments.
                sh(&format!("ip netns exec {host} ping -q -i 0.01 -c 3 -W 30 -s 60000 {addr}"));
            }
            station.stop();
        }
    });
}

/// Asserts that no part of a station remains.
fn assert_nothing_left() {
    assert!(!is_base_attached());
    let promiscuous = inside("bs", || ["bl", "br"].map(|name| promiscuous(name, None).unwrap()));
    assert_eq!(promiscuous, [false; 2]);
    for dev in ["bl", "br"] {
        let discs = sh(&format!("tc -n bs qdisc show dev {dev}"));
        assert!(!discs.contains("clsact"), "{discs}");
    }
}

#[test]
fn a_clean_stop_leaves_nothing_behind() {
    alone_as_root("a_clean_stop_leaves_nothing_behind", || {
        wire(Wires::default());
        for stage in [none, snoop, link] {
            let station = by_kernel(stage);
            sh("ip netns exec fh ping -q -c 1 -W 30 10.9.0.2");
            assert!(is_base_attached());
            station.stop();
            assert_nothing_left();
        }
        // Settings of other programs remain.
        sh("tc -n bs qdisc add dev bl clsact; ip -n bs link set dev bl promisc on
            tc -n bs filter add dev bl ingress pref 7 protocol arp u32 match u8 0 0 flowid 1:1");
        by_kernel(snoop).stop();
        assert!(sh("tc -n bs filter show dev bl ingress").contains("pref 7"));
        assert!(inside("bs", || promiscuous("bl", None).unwrap()));
    });
}

/// Snoop for senders of Linux: a cache for their windows, and a local timeout that permits several retries
/// within their minimum RTO of 200 ms. With west97's 100 ms there is time for one, and the second races with
/// the sender.
fn roomy_snoop() -> Stage {
    let parsa98 = SnoopConfig::parsa98();
    let snoop = SnoopConfig {
        flow_packets: 4096,
        initial_timeout: parsa98.initial_timeout,
        min_timeout: parsa98.min_timeout,
        ..SnoopConfig::west97()
    };
    Stage::Agent(Box::new(Agent::new(&AgentConfig::Snoop(SnoopAgent { snoop, ackp: None }))))
}

/// A thread that sleeps 1 ms never overslept this long: the machine ran the station in time.
const CALM: Span = Span::millis(20);
/// Runs on a busy machine before the last one is judged whatever its lateness.
const CALM_TRIES: usize = 20;

/// Counters of the sender: its reasons for retransmissions.
fn reasons() -> [(&'static str, u64); 4] {
    ["TCPTimeouts", "TCPFastRetrans", "TCPSlowStartRetrans", "TCPSpuriousRTOs"]
        .map(|name| (name, counter("fh", "TcpExt", name)))
}

#[test]
fn snoop_repairs_losses_of_the_last_hop() {
    const LEN: usize = 20_000_000;
    alone_as_root("snoop_repairs_losses_of_the_last_hop", || {
        for offload in [false, true] {
            wire(Wires { offload, ..Wires::default() });
            // Super-packets of eleven segments. With larger ones too few cross, and each lost one costs a
            // timeout.
            sh("ip -n fh link set dev fl gso_max_size 16384");
            // Plain snoop hides losses from senders that count duplicate ACKs. A sender with SACK learns of
            // losses from new ACKs, and retransmits more on every data plane.
            for host in ["fh", "mh"] {
                sh(&format!("ip netns exec {host} sysctl -qw net.ipv4.tcp_sack=0"));
            }
            let retransmissions = |stage| {
                let losses = Losses::start("mh", "mr");
                let station = by_kernel(stage);
                let (before, lateness) = (counter("fh", "Tcp", "RetransSegs"), Lateness::new());
                transfer("fh", "mh", V4[1], LEN);
                let worst = lateness.worst();
                let again = counter("fh", "Tcp", "RetransSegs") - before;
                drop(losses);
                println!(
                    "{again} retransmissions, the longest sleep {worst:?}; in total {:?}",
                    reasons()
                );
                (again, station.stop().1, worst)
            };
            let (alone, ..) = &retransmissions(none);
            // A super-packet is lost if its first segment is.
            let lost = if offload { 20 } else { losses_of(LEN) };
            let repaired = |with: u64| with * 10 <= *alone && (offload || with * 10 <= lost);
            // Snoop repairs within the sender's minimum RTO of 200 ms if the machine lets it run in time. A late
            // run that repairs too little shows nothing.
            let mut tries = (0..CALM_TRIES).map(|_| retransmissions(roomy_snoop));
            let shows = tries.find(|(with, _, worst)| repaired(*with) || *worst < CALM);
            let again @ (with, ended, _) = &shows.unwrap_or_else(|| retransmissions(roomy_snoop));
            assert!(*alone >= lost, "{alone} of {lost}: {again:?}");
            assert!(repaired(*with), "{with} of {lost}, alone {alone}: {ended:?}");
            assert_eq!(counter("mh", "Tcp", "InCsumErrors"), 0);
            unwire();
        }
    });
}

/// Local retransmissions are sent so ([`SnoopConfig::priority`]).
#[test]
fn frames_with_priority_precede_those_that_wait() {
    const WAITING: usize = 64;
    alone_as_root("frames_with_priority_precede_those_that_wait", || {
        wire(Wires::default());
        // 64 frames of 1,000 bytes wait half a second.
        sh("tc -n bs qdisc add dev br root handle 1: htb default 1
            tc -n bs class add dev br parent 1: classid 1:1 htb rate 1mbit
            tc -n bs qdisc add dev br parent 1:1 pfifo_fast");
        let [station, host] = [socket("bs", "br"), socket("mh", "mr")];
        let frame = |number: u8| {
            [&[0xff; 6][..], &[2, 0, 0, 0, 0, 9], &[0x88, 0xb5], &[number; 986]].concat()
        };
        for priority in [true, false] {
            send_plain(&station, &vec![frame(1); WAITING]);
            station.prioritize(priority).unwrap();
            send_plain(&station, &[frame(2)]);
            station.prioritize(false).unwrap();
            send_plain(&station, &[frame(3)]);
            let own: Vec<Vec<u8>> = receive(&host, WAITING + 2)
                .into_iter()
                .filter(|frame| frame[VNET + 12..VNET + 14] == [0x88, 0xb5])
                .collect();
            let order: Vec<u8> = own.iter().map(|frame| frame[VNET + 14]).collect();
            let place = order.iter().position(|number| *number == 2).unwrap();
            // Those that the driver has taken are on their way.
            assert_eq!(place < WAITING / 2, priority, "{order:?}");
            assert_eq!(order.last(), Some(&3));
        }
    });
}

/// No test: the station for tests that kill it, in a separate process.
#[test]
fn a_station_in_a_process_of_its_own() {
    far::run();
}

#[test]
fn packets_flow_when_the_station_dies_hangs_and_comes_back() {
    alone_as_root("packets_flow_when_the_station_dies_hangs_and_comes_back", || {
        wire(Wires::default());
        for stage in ["none", "snoop", "link"] {
            let station = Far::start(stage);
            let other = std::thread::spawn(|| transfer("fh", "mh", V4[1], 40_000_000));
            pause(30);
            station.kill();
            other.join().unwrap();
            assert!(is_base_attached());
            transfer("mh", "fh", V4[0], 1_000_000);

            let station = Far::start(stage);
            transfer("fh", "mh", V4[1], 1_000_000);
            station.signal(Signal::SIGSTOP);
            transfer("fh", "mh", V4[1], 5_000_000);
            transfer("mh", "fh", V4[0], 5_000_000);
            let other = std::thread::spawn(|| transfer("fh", "mh", V4[1], 40_000_000));
            pause(30);
            station.signal(Signal::SIGCONT);
            other.join().unwrap();
            transfer("fh", "mh", V4[1], 1_000_000);
            station.kill();
        }
        inside("bs", || ["bl", "br"].map(|name| assert!(base::clear(index(name)).unwrap())));
        assert_nothing_left();
    });
}

#[test]
fn agents_are_changed_under_load() {
    alone_as_root("agents_are_changed_under_load", || {
        wire(Wires { offload: true, ..Wires::default() });
        let station = by_kernel(none);
        let load = std::thread::spawn(|| transfer("fh", "mh", V4[1], 200_000_000));
        for stage in [snoop, link, none, link, snoop, none].iter().cycle().take(30) {
            let stage = *stage;
            station
                .handle
                .ask(move |station| {
                    station.path_mut().replace_stage(1, stage());
                })
                .unwrap();
            pause(10);
        }
        load.join().unwrap();
        station.stop();
    });
}

/// An Ethernet frame with a tag, and IPv4 with this protocol from 10.8.0.`from` to the other host.
fn tagged(from: u8, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 3 - from, 2, 0, 0, 0, 0, from, 0x81, 0, 0, 7, 8, 0];
    let len = (20 + payload.len()) as u16;
    let mut ip = vec![0x45, 0, (len >> 8) as u8, len as u8, 0, 1, 0, 0, 64, protocol, 0, 0];
    ip.extend([10, 8, 0, from, 10, 8, 0, 3 - from]);
    let sum = lasthop_proto::wire::checksum::checksum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    frame.extend(ip);
    frame.extend(payload);
    frame
}

/// A TCP segment with these numbers.
fn tcp(from: u8, seq: u32, ack: u32, payload: &[u8]) -> Vec<u8> {
    let ports = if from == 1 { [4, 1, 4, 2] } else { [4, 2, 4, 1] };
    let mut tcp = [&ports[..], &seq.to_be_bytes(), &ack.to_be_bytes()].concat();
    tcp.extend([0x50, 0x10, 1, 0, 0, 0, 0, 0]);
    tcp.extend(payload);
    let mut sum = lasthop_proto::wire::checksum::Sum::default();
    let host = |n| lasthop_proto::wire::Addr::v4(10, 8, 0, n);
    sum.pseudo_header(host(from), host(3 - from), 6, tcp.len() as u32);
    tcp[16..18].copy_from_slice(&sum.fold().to_be_bytes());
    let sum = lasthop_proto::wire::checksum::checksum(&tcp);
    tcp[16..18].copy_from_slice(&sum.to_be_bytes());
    tcp
}

#[test]
fn forwarded_and_diverted_frames_retain_their_vlan_tags() {
    alone_as_root("forwarded_and_diverted_frames_retain_their_vlan_tags", || {
        wire(Wires::default());
        let station = by_kernel(snoop);
        let (left, right) = (socket("fh", "fl"), socket("mh", "mr"));
        let data: Vec<Vec<u8>> =
            (0..5).map(|i| tagged(1, 6, &tcp(1, 1000 + i * 100, 1, &[i as u8; 100]))).collect();
        send_plain(&left, &data);
        let ours = |frames: Vec<Vec<u8>>| -> Vec<Vec<u8>> {
            let plain = frames.into_iter().map(|f| f[VNET..].to_vec());
            plain.filter(|frame| frame[12..14] == [0x81, 0]).collect()
        };
        assert_eq!(ours(receive(&right, 5)), data);
        // The second ACK repeats the first: the agent ignores it and forwards it. The others are an ACK with
        // another window, unknown protocols, and a fragment.
        let ack = |window: u8| {
            let mut frame = tagged(2, 6, &tcp(2, 1, 1500, &[]));
            if window != 0 {
                let at = frame.len() - 6;
                frame[at] = window;
            }
            frame
        };
        let mut piece = tagged(2, 17, &[9; 64]);
        piece[18 + 6] = 0x20;
        let frames = [ack(0), ack(0), ack(5), tagged(2, 47, &[7; 90]), piece];
        send_plain(&right, &frames);
        let came = ours(receive(&left, 5));
        assert_eq!(came.len(), 5, "{came:?}");
        assert!(frames.iter().all(|frame| came.contains(frame)), "{came:?}");
        let counts = station.stop().1.plane.unwrap();
        assert_eq!(counts.diverted, 1, "{counts:?}");
    });
}

/// A TCP segment over IPv6 with a chain of extension headers.
fn extended(from: u8, chain: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 3 - from, 2, 0, 0, 0, 0, from, 0x86, 0xdd];
    let segment = tcp(from, 1, 1, &[7; 100]);
    let following = |i: usize| chain.get(i).copied().unwrap_or(6);
    let len = (8 * chain.len() + segment.len()) as u16;
    frame.extend([0x60, 0, 0, 0, (len >> 8) as u8, len as u8, following(0), 64]);
    let address = |n| [0xfd, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, n];
    frame.extend([address(from), address(3 - from)].concat());
    for (i, kind) in chain.iter().enumerate() {
        let header = match kind {
            // A routing header without segments left, and the first of several fragments.
            43 => [0, 2, 0, 0, 0, 0, 0],
            44 => [0, 0, 1, 0, 0, 0, 9],
            // Options: padding.
            _ => [0, 1, 4, 0, 0, 0, 0],
        };
        frame.push(following(i + 1));
        frame.extend(header);
    }
    frame.extend(segment);
    frame
}

#[test]
fn extension_headers_of_ipv6_pass() {
    alone_as_root("extension_headers_of_ipv6_pass", || {
        wire(Wires { ipv6: true, ..Wires::default() });
        let (left, right) = (socket("fh", "fl"), socket("mh", "mr"));
        // Hop-by-hop, routing, fragment, destination options, authentication, and an unknown header.
        let chains: [&[u8]; 7] = [&[0], &[43], &[44], &[60], &[0, 60, 43, 44, 60], &[51], &[253]];
        for (by, stage) in [By::Kernel, By::Sockets]
            .into_iter()
            .flat_map(|by| [none as fn() -> Stage, snoop, link].map(|stage| (by, stage)))
        {
            let station = station_by(by, Nothing, move || vec![stage()]);
            for (from, to, sender) in [(&left, &right, 1), (&right, &left, 2)] {
                let sent: Vec<_> = chains.iter().map(|chain| extended(sender, chain)).collect();
                send_plain(from, &sent);
                let mut came = Vec::new();
                while came.len() < sent.len() {
                    let frames = receive(to, 1);
                    assert!(!frames.is_empty(), "{by:?}: {} of {}", came.len(), sent.len());
                    let plain = frames.iter().map(|f| f[VNET..].to_vec());
                    came.extend(plain.filter(|f| f[..14] == sent[0][..14]));
                }
                assert_eq!(came, sent, "{by:?}");
            }
            station.stop();
        }
    });
}

#[test]
fn super_packets_in_tunnels_pass() {
    alone_as_root("super_packets_in_tunnels_pass", || {
        wire(Wires { offload: true, ..Wires::default() });
        for (host, own, other) in [("fh", 1, 2), ("mh", 2, 1)] {
            let dev = if host == "fh" { "fl" } else { "mr" };
            sh(&format!(
                "ip -n {host} link add name vx type vxlan id 5 remote 10.9.0.{other} dstport 4789 dev {dev}
                 ip -n {host} addr add 10.7.0.{own}/24 dev vx; ip -n {host} link set dev vx up"
            ));
        }
        for stage in [none, snoop, link] {
            let station = by_kernel(stage);
            transfer("fh", "mh", "10.7.0.2", 3_000_000);
            transfer("mh", "fh", "10.7.0.1", 3_000_000);
            let (_, ended) = station.stop();
            assert_eq!(ended.unroutable, 0, "{ended:?}");
        }
    });
}

#[test]
fn the_checked_in_bpf_object_matches_its_source() {
    const CLANG: &str = "clang version 14";
    let clang = Command::new("clang").arg("--version").output();
    let there = clang.is_ok_and(|out| String::from_utf8_lossy(&out.stdout).contains(CLANG));
    if !can_run::can_run(there, "clang 14 and libbpf's headers") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/bpf");
    let made = dir.path().join("station.bpf.o");
    sh(&format!("cd {source} && ./build {}", made.display()));
    let checked_in = std::fs::read(format!("{source}/station.bpf.o")).unwrap();
    assert!(std::fs::read(made).unwrap() == checked_in, "run `make bpf`");
}
