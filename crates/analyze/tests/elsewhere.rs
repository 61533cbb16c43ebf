//! A capture of two interfaces, VLANs or sides of a router has packets twice: MAC addresses and tags show it where IP
//! identifications do not.

use crate::common::Script;
use lasthop_analyze::{Analysis, Config, analyze_capture};
use lasthop_observe::capture::open;
use lasthop_proto::wire::Flags;
use proptest::prelude::*;

/// Where the second copy of a packet is captured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Second {
    /// Behind a router: other MAC addresses, one hop less.
    Routed,
    /// Another VLAN of a bridge that changes tags: the same addresses.
    Tagged,
    /// Linux cooked capture of all interfaces.
    Cooked,
}

fn frame(ip: &[u8], from: usize, second: bool, kind: Second) -> Vec<u8> {
    let ethertype: [u8; 2] = if ip[0] >> 4 == 6 { [0x86, 0xdd] } else { [8, 0] };
    let mut frame = Vec::new();
    if kind == Second::Cooked {
        // To this machine, or from it.
        frame.extend([0, if second { 4 } else { 0 }, 0, 1, 0, 6]);
        frame.extend([2, 0, 0, u8::from(second), 0, from as u8, 0, 0]);
        frame.extend(ethertype);
    } else {
        let router = u8::from(second && kind == Second::Routed);
        for end in [1 - from, from] {
            frame.extend([2, 0, 0, router, 0, end as u8]);
        }
        if kind == Second::Tagged {
            frame.extend([0x81, 0, 0x60, if second { 20 } else { 10 }]);
        }
        frame.extend(ethertype);
    }
    frame.extend(ip);
    frame
}

/// A pcap file of `packets` (nanoseconds, sender, IP packet), each copied `after` nanoseconds later if that is given.
fn capture(packets: &[(u64, usize, Vec<u8>)], kind: Second, after: Option<u64>) -> Vec<u8> {
    let mut all: Vec<(u64, Vec<u8>)> = Vec::new();
    for (at, from, ip) in packets {
        all.push((*at, frame(ip, *from, false, kind)));
        let Some(after) = after else { continue };
        let mut copy = ip.clone();
        if kind != Second::Tagged {
            // Hops left; checksums are not compared.
            copy[if ip[0] >> 4 == 6 { 7 } else { 8 }] -= 1;
        }
        all.push((at + after, frame(&copy, *from, true, kind)));
    }
    all.sort_by_key(|(at, _)| *at);
    let link: u32 = if kind == Second::Cooked { 113 } else { 1 };
    let mut file = Vec::new();
    for word in [0xa1b2_3c4d, 0x0004_0002, 0, 0, 65_535, link] {
        file.extend(u32::to_le_bytes(word));
    }
    for (at, frame) in all {
        let len = frame.len() as u32;
        for word in [(at / 1_000_000_000) as u32, (at % 1_000_000_000) as u32, len, len] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    file
}

/// A transfer with a loss that three duplicate ACKs repair. The duplicate ACKs differ only in their time.
fn packets(isn: [u32; 2], v6: bool, rtt: f64, lost: u32) -> Vec<(u64, usize, Vec<u8>)> {
    let mut s = Script::new();
    (s.isn, s.v6) = (isn, v6);
    s.send(0.0, 0, Flags::SYN, 0, 0, 0);
    s.send(rtt, 1, Flags::SYN | Flags::ACK, 0, 0, 1);
    s.send(rtt + 0.01, 0, Flags::ACK, 1, 0, 1);
    let mut at = rtt + 1.0;
    for n in 0..8 {
        s.data(at + f64::from(n) * 0.05, 1 + 1000 * n, 1000);
    }
    at += rtt;
    for n in (0..8).filter(|n| *n != lost) {
        s.ack(at + f64::from(n) * 0.05, 1 + 1000 * if n < lost { n + 1 } else { lost });
    }
    at += 0.5;
    s.data(at, 1 + 1000 * lost, 1000);
    s.ack(at + rtt, 8001);
    let file = s.finish();
    let frames = open(&file).unwrap().map(Result::unwrap);
    let from = |ip: &[u8]| usize::from(if ip[0] >> 4 == 6 { ip[23] } else { ip[15] } == 2);
    frames
        .map(|frame| {
            let mut ip = frame.bytes.to_vec();
            ip.resize(frame.wire_len as usize, 0x5a);
            (frame.at.0, from(&ip), ip)
        })
        .collect()
}

/// Packets, copies, duplicate ACKs, retransmissions and losses.
fn counts(analysis: &Analysis) -> [u64; 5] {
    let connection = &analysis.connections[0];
    let (sent, back) = (&connection.to_server, &connection.to_client);
    let again = sent.retransmissions.total();
    [
        analysis.tcp_packets,
        analysis.copied_packets,
        back.duplicate_acks,
        again,
        sent.losses.len() as u64,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn copies_on_another_link_are_left_out(
        isn in any::<[u32; 2]>(), v6 in any::<bool>(), rtt in 5.0f64..300.0, lost in 0u32..5,
        after in 1_000u64..3_000_000,
        kind in prop_oneof![Just(Second::Routed), Just(Second::Tagged), Just(Second::Cooked)],
    ) {
        let packets = packets(isn, v6, rtt, lost);
        let read = |after| analyze_capture(&capture(&packets, kind, after), Config::default()).unwrap();
        let (once, twice) = (read(None), read(Some(after)));
        let count = packets.len() as u64;
        let dupacks = u64::from(7 - lost);
        prop_assert_eq!(counts(&once), [count, 0, dupacks, 1, 1]);
        prop_assert_eq!(counts(&twice), [count, count, dupacks, 1, 1]);
    }
}
