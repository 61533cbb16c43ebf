//! A connection has the same numbers in whatever its packets are wrapped.

use std::process::Command;

use crate::can_run::can_run;
use crate::common::Script;
use crate::links::{LINKS, link_type};
use crate::wrap::{Choices, TUNNELS, Tunnel, Wrapper};
use lasthop_analyze::{Analysis, Config, analyze_capture};
use lasthop_observe::capture::{Reason, open};
use proptest::prelude::*;

/// A transfer with a loss, a repair and an ACK with SACK, as raw IP packets and their times.
fn transfer(v6: bool) -> (Analysis, Vec<(u64, Vec<u8>)>) {
    let mut s = Script::new();
    s.v6 = v6;
    s.handshake(1.0, 20.0);
    let mut at = 30.0;
    for i in 0..12 {
        s.data(at, 1 + 1000 * i, 1000);
        at += 2.0;
        s.ack(at, 1001 + 1000 * i.min(5));
        at += 2.0;
    }
    s.data(at, 6001, 1000);
    s.ack(at + 20.0, 12_001);
    let file = s.finish();
    let frames = open(&file).unwrap().map(Result::unwrap);
    let packets = frames.map(|frame| {
        let mut packet = frame.bytes.to_vec();
        // The script writes headers only.
        packet.resize(frame.wire_len as usize, 0x5a);
        crate::wrap::set_tcp_checksum(&mut packet);
        (frame.at.0, packet)
    });
    let packets = packets.collect();
    (analyze_capture(&file, Config::default()).unwrap(), packets)
}

/// Properties that all packets of a generated capture share.
#[derive(Clone, Debug)]
struct Plan {
    v6: bool,
    tunnels: Vec<(usize, bool)>,
    link: u32,
    fragmented: bool,
    big: bool,
    seed: u64,
}

fn capture(plan: &Plan, packets: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut choices = Choices(plan.seed);
    let tags = choices.below(4);
    let mut wrapper = Wrapper { choices, id: plan.seed as u32, tags };
    let long = |v: u32| if plan.big { v.to_be_bytes() } else { v.to_le_bytes() };
    let version = if plan.big { [0, 2, 0, 4] } else { [2, 0, 4, 0] };
    let mut file = [long(0xa1b2_3c4d), version, long(0), long(0), long(65_535)].concat();
    file.extend(long(link_type(plan.link)));
    for (at, packet) in packets {
        let mut ip = wrapper.extended(packet);
        for &(tunnel, v6) in &plan.tunnels {
            ip = wrapper.through(TUNNELS[tunnel], v6, &ip);
        }
        let pieces = if plan.fragmented { wrapper.fragments(&ip) } else { vec![ip] };
        for piece in pieces {
            let frame = wrapper.frame(plan.link, &piece);
            let (secs, nanos) = (at / 1_000_000_000, at % 1_000_000_000);
            for field in [secs as u32, nanos as u32, frame.len() as u32, frame.len() as u32] {
                file.extend(long(field));
            }
            file.extend(frame);
        }
    }
    file
}

fn plan() -> impl Strategy<Value = Plan> {
    let tunnel = (0..TUNNELS.len(), any::<bool>());
    // Three tunnels with tags, labels and extension headers in each may exceed the reader's limit.
    let tunnels = prop::collection::vec(tunnel, 0..3);
    (any::<bool>(), tunnels, 0..LINKS, any::<bool>(), any::<bool>(), any::<u64>()).prop_map(
        |(v6, tunnels, link, fragmented, big, seed)| Plan {
            v6,
            tunnels,
            link,
            fragmented,
            big,
            seed,
        },
    )
}

fn check(plan: &Plan) {
    let (plain, packets) = transfer(plan.v6);
    let file = capture(plan, &packets);
    let got = analyze_capture(&file, Config { verify: true, ..Config::default() }).unwrap();
    assert_eq!((got.unread_packets, &got.unread), (0, &vec![]), "{plan:?}");
    assert_eq!(got.tcp_packets, plain.tcp_packets, "{plan:?}");
    assert_eq!(got.connections, plain.connections, "{plan:?}");
    assert_eq!(got.packets, got.tcp_packets + got.fragments, "{plan:?}");
}

#[test]
fn every_link_and_every_tunnel_alone() {
    for v6 in [false, true] {
        let plan =
            |link| Plan { v6, tunnels: vec![], link, fragmented: false, big: false, seed: 7 };
        (0..LINKS).for_each(|link| (0..8).for_each(|seed| check(&Plan { seed, ..plan(link) })));
        for (tunnel, outer) in (0..TUNNELS.len()).flat_map(|t| [(t, false), (t, true)]) {
            let tunnels = vec![(tunnel, outer)];
            (0..8).for_each(|seed| check(&Plan { seed, tunnels: tunnels.clone(), ..plan(0) }));
        }
    }
}

proptest! {
    #[test]
    fn a_wrapped_connection_has_the_numbers_of_the_plain_one(plan in plan()) {
        check(&plan);
    }

    #[test]
    fn packets_cut_by_snap_length_are_read_or_reported(plan in plan(), snap in 1_usize..400) {
        check_cut(&Plan { fragmented: false, ..plan }, [snap]);
    }
}

#[test]
fn every_snap_length_of_every_tunnel() {
    for (tunnel, v6) in (0..TUNNELS.len()).flat_map(|t| [(t, false), (t, true)]) {
        for seed in 1..=3 {
            let tunnels = vec![(tunnel, v6)];
            let plan = Plan { v6, tunnels, link: 0, fragmented: false, big: false, seed };
            check_cut(&plan, 1..200);
        }
    }
}

#[test]
fn every_snap_length_of_every_link() {
    for (link, v6) in (0..LINKS).flat_map(|link| [(link, false), (link, true)]) {
        for seed in 1..=3 {
            let tunnels = Vec::new();
            let plan = Plan { v6, tunnels, link, fragmented: false, big: false, seed };
            check_cut(&plan, 1..120);
        }
    }
}

/// A snap length may hide headers, and is then reported; no packet disappears.
fn check_cut(plan: &Plan, snaps: impl IntoIterator<Item = usize>) {
    let (plain, packets) = transfer(plan.v6);
    let whole = capture(plan, &packets);
    snaps.into_iter().for_each(|snap| check_cut_at(plan, &plain, &whole, snap));
}

fn check_cut_at(plan: &Plan, plain: &Analysis, whole: &[u8], snap: usize) {
    let mut cut = whole[..24].to_vec();
    let mut frames = 0;
    for frame in open(whole).unwrap().map(Result::unwrap) {
        let long = |v: u32| if plan.big { v.to_be_bytes() } else { v.to_le_bytes() };
        let keep = frame.bytes.len().min(snap);
        let (secs, nanos) = (frame.at.0 / 1_000_000_000, frame.at.0 % 1_000_000_000);
        cut.extend([secs as u32, nanos as u32, keep as u32, frame.wire_len].map(long).concat());
        cut.extend(&frame.bytes[..keep]);
        frames += 1;
    }
    let got = analyze_capture(&cut, Config::default()).unwrap();
    assert_eq!(got.packets, frames, "{plan:?}");
    assert_eq!(got.tcp_packets + got.unread_packets, frames, "{plan:?}, {snap}: {:?}", got.other);
    for unread in &got.unread {
        assert_eq!(unread.reason, Reason::CutOff, "{plan:?}, {snap}");
    }
    if got.unread_packets == 0 && snap >= 300 {
        assert_eq!(got.connections, plain.connections, "{plan:?}");
    }
}

/// Contents that cannot be read may be TCP, so they are reported with the reason; handshakes of tunnels cannot.
#[test]
fn contents_of_compressed_and_encrypted_packets_are_unread() {
    let mut wrapper = Wrapper { choices: Choices(3), id: 1, tags: 3 };
    let openvpn = |operation: u8| [&[operation << 3 | 1][..], &[0x5a; 99]].concat();
    let wireguard = |kind: u8, len: usize| [&[kind, 0, 0, 0][..], &vec![0x5a; len - 4]].concat();
    for (packet, reason) in [
        (wrapper.outer(false, 108, &[6, 0, 0, 2, 9, 9, 9, 9]), Some(Reason::Compressed)),
        (wrapper.udp(false, 51_820, &wireguard(4, 96)), Some(Reason::EncryptedTunnel)),
        (wrapper.udp(true, 51_820, &wireguard(4, 32)), None),
        (wrapper.udp(false, 51_820, &wireguard(1, 148)), None),
        (wrapper.udp(true, 1194, &openvpn(9)), Some(Reason::EncryptedTunnel)),
        (wrapper.udp(false, 1194, &openvpn(6)), Some(Reason::EncryptedTunnel)),
        (wrapper.udp(false, 1194, &openvpn(7)), None),
    ] {
        let plan =
            Plan { v6: false, tunnels: vec![], link: 1, fragmented: false, big: false, seed: 1 };
        let got = analyze_capture(&capture(&plan, &[(0, packet)]), Config::default()).unwrap();
        assert_eq!(got.unread.first().map(|unread| unread.reason), reason);
        assert_eq!(got.other_packets, u64::from(reason.is_none()));
    }
}

/// The reader's limit of nesting, and below it.
#[test]
fn deep_nesting_is_reported() {
    let (_, packets) = transfer(false);
    let nested = |depth| {
        let ip = TUNNELS.iter().position(|tunnel| *tunnel == Tunnel::Ip).unwrap();
        let tunnels = vec![(ip, false); depth];
        let plan = Plan { v6: false, tunnels, link: 1, fragmented: false, big: false, seed: 1 };
        analyze_capture(&capture(&plan, &packets), Config::default()).unwrap()
    };
    assert_eq!(nested(31).tcp_packets, packets.len() as u64);
    let deep = nested(32);
    assert_eq!((deep.tcp_packets, deep.unread_packets), (0, packets.len() as u64));
    assert_eq!(deep.unread[0].reason, Reason::TooDeep);
}

/// Tunnels and links as `tshark` reads them: the same number of TCP packets.
#[test]
fn tshark_finds_the_same_packets() {
    let version = Command::new("tshark").arg("--version").output();
    if !can_run(version.is_ok_and(|out| out.status.success()), "tshark") {
        return;
    }
    let dir = std::env::temp_dir().join(format!("lasthop-encapsulated-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let mut choices = Choices(2026);
    /// tshark 4.0 does not read these link types, nor the pseudowire.
    const REFUSED: [u32; 6] = [27, 31, 32, 33, 34, 39];
    // The last one is CAPWAP, in which tshark takes the bytes of all frames' fields for swapped.
    let tunnel = TUNNELS.len() as u32 - 1;
    for i in (0..40).filter(|i| !REFUSED.contains(i)) {
        let tunnels = (0..choices.below(3))
            .map(|_| (choices.below(tunnel) as usize, choices.flip()))
            .collect();
        let plan = Plan {
            v6: choices.flip(),
            tunnels,
            link: i % LINKS,
            fragmented: choices.flip(),
            big: choices.flip(),
            seed: i.into(),
        };
        let (plain, packets) = transfer(plan.v6);
        let path = dir.join(format!("{i}.pcap"));
        std::fs::write(&path, capture(&plan, &packets)).unwrap();
        let mut command = Command::new("tshark");
        command.arg("-r").arg(&path).args([
            "-n",
            "-Y",
            "tcp",
            "-T",
            "fields",
            "-e",
            "frame.number",
        ]);
        let out = command.output().unwrap();
        let lines = String::from_utf8_lossy(&out.stdout).lines().count() as u64;
        assert_eq!(lines, plain.tcp_packets, "{plan:?} in {}", path.display());
    }
    let _ = std::fs::remove_dir_all(dir);
}
