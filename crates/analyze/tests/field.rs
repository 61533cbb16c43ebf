//! Kinds of captures from routers, mirror ports and hosts that restart: nothing is counted as lost that was not.

use crate::common::Script;
use crate::packets::{any_numbers, connection, faults, one, write_sorted};
use lasthop_analyze::{Analysis, Closing, Config, LossLocation, Opening, analyze_capture};
use lasthop_proto::wire::Flags;
use proptest::prelude::*;

fn read(name: &str) -> Analysis {
    let path = format!("{}/tests/data/field/{name}.pcap", env!("CARGO_MANIFEST_DIR"));
    analyze_capture(&std::fs::read(path).expect("it is there"), Config::default()).unwrap()
}

#[test]
fn data_captured_after_its_ack_is_no_retransmission() {
    let analysis = read("ack-before-data");
    let connection = one(&analysis);
    let sent = &connection.to_client;
    assert_eq!(faults(connection), [0; 3]);
    assert_eq!((sent.data_packets, sent.unique_bytes, sent.goodput), (40, 584_000, Some(1.0)));
    assert_eq!(sent.acked_before_seen, 10);
    assert_eq!(sent.rtt.unwrap().samples, 30, "from pairs only");
}

#[test]
fn a_reset_without_ack_acknowledges_nothing() {
    for name in ["rst-high", "rst-low"] {
        let analysis = read(name);
        let connection = one(&analysis);
        assert_eq!(faults(connection), [0; 3], "{name}");
        assert_eq!(connection.to_client.data_packets + connection.to_server.data_packets, 24);
        assert_eq!(connection.to_client.data_packets, 23);
        assert_eq!(connection.closing, Closing::Reset);
    }
}

#[test]
fn a_host_restart_is_counted_without_faults() {
    let analysis = read("half-open-a");
    let connection = one(&analysis);
    let sent = &connection.to_client;
    assert_eq!(faults(connection), [0; 3]);
    assert_eq!((sent.unique_bytes, sent.restarts), (20_000, 1));
    assert_eq!(connection.opening, Opening::Handshake);
    assert!(connection.handshake_rtt.is_some_and(|rtt| rtt.as_secs_f64() < 0.02));
}

#[test]
fn a_reset_does_not_complete_a_handshake() {
    let analysis = read("syn-unanswered");
    let connection = one(&analysis);
    assert_eq!((connection.handshake_rtt, connection.opening), (None, Opening::Unanswered));
    let json = serde_json::to_value(connection).unwrap();
    assert!(json["handshake_rtt"].is_null());
}

#[test]
fn a_retransmission_is_identified_by_the_senders_ip_id() {
    let analysis = read("repair-at-receiver");
    let connection = one(&analysis);
    assert_eq!(faults(connection), [1, 0, 1]);
    let sent = &connection.to_client;
    assert_eq!((sent.retransmissions.fast, sent.losses[0].seen), (1, LossLocation::Never));
    assert_eq!(sent.order_evidence.ip_ids, 1);
}

/// A transfer from the server in whole segments, as packets in the order of the wire: from which side, number, length,
/// acknowledgment.
fn transfer(segments: u32, len: u32) -> Vec<(usize, u32, u32, u32)> {
    let mut packets = vec![(0, 1, 100, 1), (1, 1, 0, 101)];
    for i in 0..segments {
        packets.push((1, 1 + i * len, len, 101));
        packets.push((0, 101, 0, 1 + (i + 1) * len));
    }
    packets
}

fn write(s: &mut Script, at: f64, packets: &[(usize, u32, u32, u32)]) {
    for (i, &(from, seq, len, ack)) in packets.iter().enumerate() {
        s.send(at + i as f64 * 0.4, from, Flags::ACK, seq, len, ack);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Packets of one direction move in the file to before packets of the other one.
    #[test]
    fn any_order_of_the_two_directions_in_the_file(
        isn in any_numbers(),
        v6 in any::<bool>(),
        stamped in any::<bool>(),
        ids in proptest::option::of(any::<[u16; 2]>()),
        swaps in prop::collection::vec((0usize..60, 1usize..12), 0..30),
    ) {
        let mut packets = transfer(30, 1460);
        for (from, by) in swaps {
            let ahead: Vec<_> = (0..packets.len()).filter(|i| packets[*i].0 == 0).collect();
            let Some(&at) = ahead.get(from) else { continue };
            let packet = packets.remove(at);
            // An ACK passes data, never an ACK.
            let least = packets[..at].iter().rposition(|p| p.0 == 0).map_or(0, |i| i + 1);
            packets.insert(at.saturating_sub(by).max(least), packet);
        }
        let mut s = Script::new();
        (s.isn, s.v6, s.ids) = (isn, v6, ids);
        s.stamps = stamped.then_some((5, 6));
        s.handshake(0.0, 20.0);
        write(&mut s, 30.0, &packets);
        let analysis = s.analyze();
        let connection = one(&analysis);
        prop_assert_eq!(faults(connection), [0; 3]);
        let sent = &connection.to_client;
        prop_assert_eq!((sent.unique_bytes, sent.bytes), (30 * 1460, 30 * 1460));
        prop_assert_eq!(connection.to_server.unique_bytes, 100);
        prop_assert!(sent.rtt.is_none_or(|rtt| rtt.max < 0.1));
    }

    /// A client resets in the midst of a transfer; the numbers of its resets mean nothing.
    #[test]
    fn any_reset_without_ack(
        isn in any_numbers(),
        v6 in any::<bool>(),
        garbage in any::<u32>(),
        at in 3usize..40,
    ) {
        let mut s = Script::new();
        (s.isn, s.v6) = (isn, v6);
        s.handshake(0.0, 20.0);
        let packets = transfer(20, 1000);
        write(&mut s, 30.0, &packets[..at]);
        s.garbage = garbage;
        s.send(100.0, 0, Flags::RST, 101, 0, 0);
        s.garbage = 0;
        let rest: Vec<_> = packets[at..].iter().copied().filter(|p| p.0 == 1).collect();
        write(&mut s, 101.0, &rest);
        let analysis = s.analyze();
        let connection = one(&analysis);
        prop_assert_eq!(faults(connection), [0; 3]);
        prop_assert_eq!(connection.to_client.unique_bytes, 20_000);
        prop_assert_eq!(connection.closing, Closing::Reset);
    }

    /// An end of an old connection answers; the other one resets it; then both begin anew.
    #[test]
    fn any_half_open_connection(
        old in any_numbers(),
        isn in any_numbers(),
        v6 in any::<bool>(),
        data in 0u32..3,
        challenges in 1u32..3,
        refused in any::<bool>(),
    ) {
        // The ports are the same, but a new number is never near the old one.
        prop_assume!((0..2).all(|i| (isn[i].wrapping_sub(old[i]) as i32).unsigned_abs() > 1 << 20));
        let mut s = Script::new();
        s.v6 = v6;
        for i in 0..challenges {
            let at = f64::from(i) * 1000.0;
            s.isn = isn;
            s.send(at, 0, Flags::SYN, 0, 0, 0);
            s.isn = old;
            if refused {
                s.send(at + 20.0, 1, Flags::RST | Flags::ACK, 0, 0, isn[0].wrapping_add(1).wrapping_sub(old[0]));
            } else {
                for k in 0..data {
                    s.send(at + 5.0, 1, Flags::ACK, 1 + 1000 * k, 1000, 1);
                }
                s.send(at + 20.0, 1, Flags::ACK, 1 + 1000 * data, 0, 1);
                s.send(at + 21.0, 0, Flags::RST, 1, 0, 0);
            }
        }
        s.isn = isn;
        s.handshake(5000.0, 20.0);
        write(&mut s, 5030.0, &transfer(20, 1000));
        let analysis = s.analyze();
        let connection = one(&analysis);
        let sent = &connection.to_client;
        let old_bytes = if refused { 0 } else { u64::from(1000 * data) };
        prop_assert_eq!(sent.unique_bytes, 20_000 + old_bytes);
        prop_assert_eq!(sent.out_of_order, 0);
        // Retransmissions by the old end count as retransmissions.
        let again = if refused { 0 } else { u64::from(data * (challenges - 1)) };
        prop_assert_eq!(sent.retransmissions.total(), again);
        prop_assert_eq!(connection.to_server.retransmissions.total(), 0);
        prop_assert_eq!(connection.handshake_rtt.map(|rtt| rtt.as_secs_f64()), Some(0.02));
        prop_assert_eq!(connection.closing, Closing::Open);
    }

    /// Old duplicates of SYN and SYN-ACK do not replace the numbers of a connection that lives.
    #[test]
    fn any_old_duplicate_syn_ack(
        isn in any_numbers(),
        other in any::<u32>(),
        v6 in any::<bool>(),
        at in 4usize..40,
    ) {
        prop_assume!((other.wrapping_sub(isn[1]) as i32).unsigned_abs() > 1 << 20);
        let mut s = Script::new();
        (s.isn, s.v6) = (isn, v6);
        s.handshake(0.0, 20.0);
        let packets = transfer(20, 1000);
        write(&mut s, 30.0, &packets[..at]);
        s.isn[1] = other;
        s.send(60.0, 1, Flags::SYN | Flags::ACK, 0, 0, 1);
        s.isn = isn;
        write(&mut s, 61.0, &packets[at..]);
        let analysis = s.analyze();
        let connection = one(&analysis);
        prop_assert_eq!(faults(connection), [0; 3]);
        prop_assert_eq!((connection.to_client.unique_bytes, connection.to_client.restarts), (20_000, 0));
    }

    /// A SYN that nothing answers, however often it is sent and however its sender gives up.
    #[test]
    fn any_syn_without_answer(count in 1u32..6, ack in any::<bool>(), v6 in any::<bool>(), isn in any_numbers()) {
        let mut s = Script::new();
        (s.isn, s.v6) = (isn, v6);
        (0..count).for_each(|i| s.send(f64::from(i) * 1000.0, 0, Flags::SYN, 0, 0, 0));
        let flags = if ack { Flags::RST | Flags::ACK } else { Flags::RST };
        s.send(31_000.0, 0, flags, 1, 0, 1);
        let analysis = s.analyze();
        let connection = one(&analysis);
        prop_assert_eq!((connection.handshake_rtt, connection.opening), (None, Opening::Unanswered));
    }

    /// At the receiver, a hole is filled by a packet sent later or earlier than those behind the hole.
    #[test]
    fn any_hole_at_the_receiver(
        isn in any_numbers(),
        v6 in any::<bool>(),
        by_id in any::<bool>(),
        first in any::<u16>(),
        handshake in any::<bool>(),
        again in any::<bool>(),
        after in 0.2f64..200.0,
    ) {
        prop_assume!(!(v6 && by_id));
        let mut s = Script::new();
        (s.isn, s.v6) = (isn, v6);
        s.ids = by_id.then_some([7, first]);
        let stamp = |s: &mut Script, value: u32| s.stamps = (!by_id).then_some((value, 1));
        stamp(&mut s, 1000);
        if handshake {
            s.handshake(0.0, 20.0);
        }
        let hole = s.ids.map_or(0, |ids| ids[1].wrapping_add(2));
        for i in [0, 1, 3, 4, 5u32] {
            if let (3, Some(ids)) = (i, &mut s.ids) {
                ids[1] = ids[1].wrapping_add(1);
            }
            stamp(&mut s, 1000 + i);
            s.send(30.0 + f64::from(i) * 0.1, 1, Flags::ACK, 1 + 1000 * i, 1000, 1);
            stamp(&mut s, 77);
            s.send(30.05 + f64::from(i) * 0.1, 0, Flags::ACK, 1, 0, 1 + 1000 * i.min(2));
        }
        if let (false, Some(ids)) = (again, &mut s.ids) {
            ids[1] = hole;
        }
        stamp(&mut s, if again { 1100 } else { 1002 });
        s.send(30.6 + after, 1, Flags::ACK, 2001, 1000, 1);
        s.send(30.7 + after, 0, Flags::ACK, 1, 0, 6001);
        let analysis = s.analyze();
        let connection = one(&analysis);
        let expected = if again { [1, 0, 1] } else { [0, 1, 0] };
        prop_assert_eq!(faults(connection), expected);
        prop_assert_eq!(connection.to_client.order_evidence.age_alone, 0);
    }
}

#[test]
fn mirror_port_copies_are_removed_without_faults() {
    let analysis = read("mirror-twice");
    let connection = one(&analysis);
    assert_eq!(faults(connection), [0; 3]);
    assert_eq!((analysis.packets, analysis.copied_packets, analysis.tcp_packets), (408, 204, 204));
    assert_eq!((connection.to_client.packets, connection.to_client.data_packets), (101, 100));
    assert_eq!(connection.to_client.unique_bytes, 146_000);
    assert_eq!(connection.to_server.duplicate_acks + connection.to_client.duplicate_acks, 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Repairs within a millisecond, on a local network and without identifications, are no copies.
    #[test]
    fn quick_retransmissions_are_not_counted_as_copies(
        isn in any_numbers(),
        v6 in any::<bool>(),
        stamped in any::<bool>(),
        rtt in 0.06f64..0.9,
        lost in proptest::collection::vec(0u32..4, 1..5),
    ) {
        let mut s = Script::new();
        (s.isn, s.v6) = (isn, v6);
        s.stamps = stamped.then_some((5, 6));
        let mut all = connection(rtt, 4, Some(lost[0].min(2)), None);
        for (i, lost) in lost.iter().enumerate().skip(1) {
            let mut more = connection(rtt, 4, Some((*lost).min(2)), None);
            more.drain(..3);
            let (by, offset) = (i as f64 * 10.0, 4000 * i as u32);
            more.iter_mut().for_each(|p| {
                p.at += by;
                if p.from == 1 { p.seq += offset } else { p.ack += offset }
            });
            all.extend(more);
        }
        let count = lost.len() as u64;
        write_sorted(&mut s, all);
        let analysis = s.analyze();
        prop_assert_eq!(analysis.copied_packets, 0);
        let sent = &one(&analysis).to_client;
        let sent = if sent.data_packets > 0 { sent } else { &one(&analysis).to_server };
        prop_assert_eq!(sent.retransmissions.total(), count);
    }
}
