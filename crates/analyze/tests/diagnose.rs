//! Diagnoses: made where the capture has their evidence, and nowhere else.

use crate::common::Script;
use lasthop_analyze::{
    Analysis, Confidence, Config, Diagnosis, EcnState, Finding, Negotiated, OneSided,
    analyze_capture,
};
use lasthop_proto::wire::Flags;
use proptest::prelude::*;

fn read(path: &str) -> Analysis {
    let path = format!("{}/tests/data/{path}.pcap", env!("CARGO_MANIFEST_DIR"));
    analyze_capture(&std::fs::read(path).unwrap(), Config::default()).unwrap()
}

fn all(analysis: &Analysis) -> Vec<Diagnosis> {
    let both = |c: &lasthop_analyze::Connection| {
        [c.to_server.diagnoses.clone(), c.to_client.diagnoses.clone()].concat()
    };
    analysis.connections.iter().flat_map(both).collect()
}

/// The diagnoses that are more than counts of time, timeouts and requests.
fn faults(analysis: &Analysis) -> Vec<Diagnosis> {
    let mut all = all(analysis);
    let counts = |finding: &Finding| {
        matches!(
            finding,
            Finding::Limits { .. } | Finding::Timeouts { .. } | Finding::RoundTrips { .. }
        )
    };
    all.retain(|d| !counts(&d.finding));
    all
}

fn only(analysis: &Analysis) -> Diagnosis {
    let [fault] = &faults(analysis)[..] else { panic!("one fault: {:#?}", faults(analysis)) };
    fault.clone()
}

/// Numbers, addresses and round trips that do not matter.
#[derive(Clone, Copy, Debug)]
struct Member {
    isn: [u32; 2],
    v6: bool,
    rtt: f64,
}

prop_compose! {
    fn member()(isn in any::<[u32; 2]>(), v6 in any::<bool>(), rtt in 5.0..700.0) -> Member {
        Member { isn, v6, rtt }
    }
}

fn script(member: Member) -> Script {
    let mut s = Script::new();
    (s.isn, s.v6) = (member.isn, member.v6);
    (s.mss, s.scale) = ([Some(1460); 2], [Some(7); 2]);
    s.sack_permitted = [true; 2];
    s.window = [8000, 8000];
    s
}

#[test]
fn captures_without_a_fault_of_the_path_have_no_diagnosis() {
    for name in [
        "field/ack-before-data",
        "field/rst-high",
        "field/rst-low",
        "field/half-open-a",
        "field/mirror-twice",
        "field/syn-again",
        "field/repair-at-receiver",
        "field/mac-window",
        "field/icmp-quotes",
    ] {
        assert_eq!(faults(&read(name)), [], "{name}");
    }
    // Real traffic: its ends agree on all options but where they say otherwise.
    for fault in faults(&read("real")) {
        assert!(matches!(fault.finding, Finding::OptionOneSided { .. }), "{fault}");
    }
}

#[test]
fn full_segments_that_never_arrive_are_a_black_hole() {
    let fault = only(&read("field/mtu-black-hole"));
    let Finding::MtuBlackHole { from, passed, segments, transmissions, .. } = fault.finding else {
        panic!("{fault}")
    };
    assert_eq!((from, passed), (1460, Some(400)));
    assert_eq!((segments, transmissions), (10, 17));
    assert_eq!(fault.confidence, Confidence::Likely);
    assert!(fault.explains_losses() && fault.remedy.contains("MSS"));
}

#[test]
fn an_acks_only_capture_reports_acked_bytes_and_rate() {
    let fault = only(&read("field/one-way-acks"));
    let Finding::OnlyAcks { acks, acked_bytes, duplicate_acks, sack_acks, rate } = fault.finding
    else {
        panic!("{fault}")
    };
    assert_eq!((acks, acked_bytes), (108, 144_540));
    assert_eq!((duplicate_acks, sack_acks), (8, 8));
    assert!((1e6..1.3e6).contains(&rate.unwrap()), "{rate:?}");
    assert!(fault.remedy.contains("both directions"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_black_hole_is_named_by_its_size(
        member in member(), mss in 536u16..9000, flight in 2u32..12, tail in 1u32..400,
        sack in any::<bool>(), stamps in any::<bool>(), repeats in 2u32..7,
    ) {
        let mut s = script(member);
        s.mss = [Some(mss); 2];
        s.sack_permitted = [sack; 2];
        s.stamps = stamps.then_some((1, 1));
        let full = u32::from(mss) - if stamps { 12 } else { 0 };
        s.handshake(0.0, member.rtt);
        let at = member.rtt + 1.0;
        s.data(at, 1, 200);
        s.ack(at + member.rtt, 201);
        let at = at + member.rtt + 1.0;
        (0..flight).for_each(|n| s.data(at, 201 + n * full, full));
        let end = 201 + flight * full;
        s.data(at, end, tail);
        let answer = at + member.rtt;
        if sack { s.ack_sack(answer, 201, &[(end, end + tail)]) } else { s.ack(answer, 201) }
        let mut at = answer + 200.0;
        for n in 0..repeats {
            s.data(at, 201, full);
            at += 400.0 * f64::from(1 << n);
        }
        let analysis = s.analyze();
        let fault = only(&analysis);
        let Finding::MtuBlackHole { from, passed, segments, .. } = fault.finding else {
            panic!("{fault}")
        };
        prop_assert_eq!((from, segments), (full, u64::from(flight)));
        prop_assert_eq!(passed, Some(if sack { tail.max(200) } else { 200 }));
    }

    #[test]
    fn a_black_hole_is_diagnosed_when_smaller_segments_pass(
        member in member(), size in 600u32..1400, repeats in 2u32..5,
    ) {
        let mut s = script(member);
        s.handshake(0.0, member.rtt);
        let mut at = member.rtt + 1.0;
        (0..4).for_each(|n| s.data(at, 1 + n * 1460, 1460));
        for n in 0..repeats {
            at += 400.0 * f64::from(1 << n);
            s.data(at, 1, 1460);
        }
        // The sender probes for the path MTU (RFC 4821).
        let mut next = 1;
        while next < 1 + 4 * 1460 {
            at += member.rtt + 1.0;
            let len = size.min(1 + 4 * 1460 - next);
            s.data(at, next, len);
            next += len;
            s.ack(at + member.rtt, next);
        }
        let analysis = s.analyze();
        let fault = only(&analysis);
        let Finding::MtuBlackHole { from, passed, .. } = fault.finding else { panic!("{fault}") };
        prop_assert_eq!((from, passed), (1460, Some(size)));
    }

    /// The path breaks in the midst, or at its end segments of all sizes are lost.
    #[test]
    fn an_outage_is_no_black_hole(
        member in member(), before in 1u32..20, repeats in 2u32..8, small in any::<bool>(),
    ) {
        let mut s = script(member);
        s.handshake(0.0, member.rtt);
        let mut at = member.rtt + 1.0;
        for n in 0..before {
            let len = if small { 20 } else { 1460 };
            s.data(at, 1 + n * len, len);
            at += member.rtt;
            s.ack(at, 1 + (n + 1) * len);
        }
        let next = 1 + before * if small { 20 } else { 1460 };
        let len = if small { 200 } else { 1460 };
        for n in 0..repeats {
            s.data(at, next, len);
            at += 300.0 * f64::from(1 << n);
        }
        // Small segments that wait for ACKs are those of Nagle's algorithm.
        let known =
            |d: &Diagnosis| matches!(d.finding, Finding::Unanswered { .. } | Finding::Nagle { .. });
        prop_assert!(faults(&s.analyze()).iter().all(known));
    }

    #[test]
    fn a_one_sided_window_scale_is_diagnosed_as_limit(
        member in member(), shift in 1u8..14, from_server in any::<bool>(), window in 20_000u16..,
        near in any::<bool>(),
    ) {
        let mut s = script(member);
        s.scale = if from_server { [None, Some(shift)] } else { [Some(shift), None] };
        s.window = [8000, window];
        s.send(0.0, 0, Flags::SYN, 0, 0, 0);
        // At the client, which sends, or at the server.
        let there = if near { member.rtt } else { 0.01 };
        s.send(there, 1, Flags::SYN | Flags::ACK, 0, 0, 1);
        s.send(member.rtt + 0.02, 0, Flags::ACK, 1, 0, 1);
        let flight = u32::from(window) / 1460;
        let mut at = member.rtt + 1.0;
        for round in 0..12 {
            let at_packet = |n: u32| at + f64::from(n) * 0.01;
            let first = 1 + round * flight * 1460;
            (0..flight).for_each(|n| s.data(at_packet(n), first + n * 1460, 1460));
            let last = at_packet(flight - 1);
            s.ack(if near { last + member.rtt } else { last + 0.01 }, first + flight * 1460);
            at = last + member.rtt + 0.1;
        }
        let fault = only(&s.analyze());
        let Finding::WindowScaleOneSided { by, shift: seen, window: limit, share } = fault.finding
        else {
            panic!("{fault}")
        };
        let expected = if from_server { OneSided::Server } else { OneSided::Client };
        prop_assert_eq!((by, seen, limit), (expected, shift, Some(u64::from(window))));
        prop_assert!(share.unwrap() > 0.8, "{share:?}");
    }

    /// The window is the limit, but its data waits in a queue: a larger one lengthens only the queue.
    #[test]
    fn a_one_sided_window_scale_on_a_full_link_has_no_remedy_at_the_window(
        member in member(), window in 20_000u16..,
    ) {
        let mut s = script(member);
        s.scale = [Some(7), None];
        s.window = [8000, window];
        s.handshake(0.0, member.rtt);
        let flight = u32::from(window) / 1460;
        // The queue holds twice the data of the empty path, and at least 50 ms.
        let slot = (3.0 * member.rtt + 50.0) / f64::from(flight);
        let (mut acked, mut events) = (Vec::new(), Vec::new());
        for n in 0..flight * 12 {
            let sent = match n.checked_sub(flight) {
                None => member.rtt + 1.0 + f64::from(n) * 0.001,
                Some(earlier) => acked[earlier as usize] + 0.001,
            };
            let arrives = acked.last().map_or(0.0, |last: &f64| last + slot);
            acked.push(arrives.max(sent + member.rtt));
            events.extend([(sent, true, n), (acked[n as usize], false, n)]);
        }
        events.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (at, is_data, n) in events {
            match is_data {
                true => s.data(at, 1 + n * 1460, 1460),
                false => s.ack(at, 1 + (n + 1) * 1460),
            }
        }
        let found = faults(&s.analyze());
        let fault = found.iter().find(|d| matches!(d.finding, Finding::WindowScaleOneSided { .. }));
        let fault = fault.unwrap_or_else(|| panic!("{found:#?}"));
        prop_assert!(fault.remedy.starts_with("the link is full"), "{fault}");
    }

    #[test]
    fn an_option_of_one_side_is_named(member in member(), from_server in any::<bool>()) {
        let mut s = script(member);
        s.sack_permitted = [!from_server, from_server];
        s.handshake(0.0, member.rtt);
        s.data(member.rtt + 1.0, 1, 1000);
        s.ack(2.0 * member.rtt + 1.0, 1001);
        let by = if from_server { OneSided::Server } else { OneSided::Client };
        let expected = Finding::OptionOneSided { option: Negotiated::Sack, by };
        prop_assert_eq!(only(&s.analyze()).finding, expected);
    }

    #[test]
    fn sack_blocks_with_other_numbers_are_outside_the_window(
        member in member(), shift in 1u32 << 24..u32::MAX - (1 << 24), right in any::<bool>(),
    ) {
        let mut s = script(member);
        s.handshake(0.0, member.rtt);
        let mut at = member.rtt + 1.0;
        for n in 0..8 {
            s.data(at + f64::from(n) * 0.01, 1 + 1460 * n, 1460);
        }
        at += member.rtt;
        let shift = if right { 0 } else { shift };
        for n in 1..8u32 {
            let (from, to) = (1461u32.wrapping_add(shift), (1461 + 1460 * n).wrapping_add(shift));
            s.ack_sack(at + f64::from(n), 1, &[(from, to)]);
        }
        s.data(at + 10.0, 1, 1460);
        s.ack(at + 10.0 + member.rtt, 1 + 8 * 1460);
        let analysis = s.analyze();
        if right {
            prop_assert_eq!(faults(&analysis), []);
        } else {
            let expected = Finding::SackOutsideWindow { outside: 7, blocks: 7 };
            prop_assert_eq!(only(&analysis).finding, expected);
        }
    }

    #[test]
    fn data_alone_shows_no_losses(member in member(), packets in 3u32..100) {
        let mut s = script(member);
        (0..packets).for_each(|n| s.data(f64::from(n), 1 + 1000 * n, 1000));
        let fault = only(&s.analyze());
        let unique_bytes = u64::from(packets) * 1000;
        let data_packets = packets.into();
        prop_assert_eq!(fault.finding, Finding::OnlyData { data_packets, unique_bytes, sent_again: 0 });
    }
}

/// A connection with ECN, captured next to the sender or behind the path; `flags` are those of SYN and SYN-ACK.
fn ecn(member: Member, ecn: u8, flags: [Flags; 2], near: bool, echo: bool) -> Vec<Diagnosis> {
    let mut s = script(member);
    s.send(0.0, 0, Flags::SYN | flags[0], 0, 0, 0);
    let there = if near { member.rtt } else { 0.01 };
    s.send(there, 1, Flags::SYN | Flags::ACK | flags[1], 0, 0, 1);
    s.send(member.rtt + 0.02, 0, Flags::ACK, 1, 0, 1);
    let at = member.rtt + 1.0;
    s.ecn = [ecn, 0];
    (0..15).for_each(|n| s.data(at + f64::from(n) * 0.01, 1 + 1460 * n, 1460));
    let answer = Flags::ACK | if echo { Flags::ECE } else { Flags::NONE };
    s.send(at + 0.2 + there, 1, answer, 1, 0, 1 + 15 * 1460);
    faults(&s.analyze())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn ecn_is_unmarked_marked_or_bleached(member in member(), near in any::<bool>(), ect in 1u8..3) {
        let agreed = [Flags::ECE | Flags::CWR, Flags::ECE];
        let state = |found: Vec<Diagnosis>| match &found[..] {
            [] => None,
            [Diagnosis { finding: Finding::Ecn { state, .. }, .. }] => Some(*state),
            other => panic!("{other:?}"),
        };
        prop_assert_eq!(state(ecn(member, ect, agreed, near, false)), Some(EcnState::Unmarked));
        prop_assert_eq!(state(ecn(member, ect, agreed, near, true)), Some(EcnState::Marked));
        prop_assert_eq!(state(ecn(member, 3, agreed, near, false)), Some(EcnState::Marked));
        // Next to a sender that sets no codepoint nothing was cleared.
        let bleached = (!near).then_some(EcnState::Bleached);
        prop_assert_eq!(state(ecn(member, 0, agreed, near, false)), bleached);
        for refused in [[Flags::NONE; 2], [agreed[0], Flags::NONE], [agreed[0], agreed[0]]] {
            prop_assert_eq!(state(ecn(member, 0, refused, near, false)), None);
        }
    }

    #[test]
    fn the_tail_of_a_flight_is_repaired_by_a_timeout(
        member in member(), packets in 4u32..30, lost in 1u32..3, sack in any::<bool>(),
    ) {
        let mut s = script(member);
        s.sack_permitted = [sack; 2];
        s.handshake(0.0, member.rtt);
        let at = member.rtt + 1.0;
        let arrived = packets - lost;
        (0..packets).for_each(|n| s.data(at + f64::from(n) * 0.1, 1 + 1000 * n, 1000));
        (0..arrived).for_each(|n| s.ack(at + member.rtt + f64::from(n) * 0.1, 1001 + 1000 * n));
        let mut at = at + 4.0 * member.rtt + 300.0;
        for n in arrived..packets {
            s.data(at, 1 + 1000 * n, 1000);
            at += member.rtt;
            s.ack(at, 1001 + 1000 * n);
        }
        let found = all(&s.analyze());
        let tails: Vec<_> = found.iter().filter_map(|fault| match fault.finding {
            Finding::TailLoss { losses, timeouts, .. } => Some((losses, timeouts)),
            _ => None,
        }).collect();
        prop_assert_eq!(tails, [(1, 1)]);
        let causes = found.iter().find_map(|fault| match fault.finding {
            Finding::Timeouts { total, causes, .. } => {
                Some((total, causes.no_duplicate_acks, causes.avoided_by_tail_loss_probe))
            }
            _ => None,
        });
        prop_assert_eq!(causes, Some((1, 1, u64::from(sack || lost == 1))));
    }

    #[test]
    fn a_timeout_after_few_dup_acks_suggests_limited_transmit(
        member in member(), dupacks in 1u32..3, short in any::<bool>(),
    ) {
        let mut s = script(member);
        s.window = [60_000; 2];
        s.handshake(0.0, member.rtt);
        s.send(member.rtt + 0.5, 1, Flags::ACK, 1, 0, 1);
        let at = member.rtt + 1.0;
        // A last segment that is not full: there was no more to send.
        let last = if short { 700 } else { 1460 };
        let len = |n: u32| if n == dupacks { last } else { 1460 };
        (0..=dupacks).for_each(|n| s.data(at + f64::from(n) * 0.1, 1 + 1460 * n, len(n)));
        let end = 1 + 1460 * dupacks + last;
        for n in 1..=dupacks {
            let right = if n == dupacks { end } else { 1 + 1460 * (n + 1) };
            s.ack_sack(at + member.rtt + f64::from(n) * 0.1, 1, &[(1461, right)]);
        }
        let at = at + 4.0 * member.rtt + 300.0;
        s.data(at, 1, 1460);
        s.ack(at + member.rtt, end);
        let found = all(&s.analyze());
        let [Diagnosis { finding: Finding::Timeouts { total, causes, .. }, .. }] = &found[..] else {
            panic!("{found:?}")
        };
        prop_assert_eq!((*total, causes.few_duplicate_acks, causes.no_duplicate_acks), (1, 1, 0));
        prop_assert_eq!(causes.avoided_by_limited_transmit, u64::from(!short));
    }

    /// A queue of the sender's own making, or a delay that varies by itself.
    #[test]
    fn round_trips_that_grow_with_the_flight_are_bufferbloat(
        member in member(), own in any::<bool>(), unrelated in proptest::collection::vec(0u32..64, 80),
    ) {
        let mut s = script(member);
        s.window = [60_000; 2];
        s.handshake(0.0, 20.0);
        let (mut at, mut next) = (30.0, 1);
        for (flight, unrelated) in (1..=40).cycle().zip(unrelated) {
            let wait = if own { flight } else { unrelated };
            (0..flight).for_each(|n| s.data(at + f64::from(n) * 0.01, next + 1000 * n, 1000));
            next += 1000 * flight;
            at += 20.0 + 10.0 * f64::from(wait);
            s.ack(at, next);
            at += 1.0;
        }
        let bloats = |d: &Diagnosis| matches!(d.finding, Finding::Bufferbloat { .. });
        let found = faults(&s.analyze());
        prop_assert_eq!(found.iter().any(bloats), own, "{:?}", found);
    }

    #[test]
    fn acks_with_another_hop_count_indicate_a_middlebox(
        member in member(), data in 40u8..64, other in 40u8..64, acks in 3u32..20,
    ) {
        let mut s = script(member);
        s.handshake(0.0, member.rtt);
        let mut at = member.rtt + 1.0;
        for n in 0..acks {
            s.ttl = 64;
            // Full segments: small ones that follow ACKs may wait for them (Nagle).
            s.data(at, 1 + 1460 * n, 1460);
            at += member.rtt;
            s.ttl = other;
            s.send(at, 1, Flags::ACK, 1 + 500 * n, 0, 1461 + 1460 * n);
            s.ttl = data;
            s.send(at + 0.5, 1, Flags::ACK, 1 + 500 * n, 500, 1461 + 1460 * n);
            at += 1.0;
        }
        let found = faults(&s.analyze());
        let expected = (data != other).then_some(Finding::Middlebox {
            data_hops: data, answer_hops: other, answers: acks.into(),
        });
        let seen = found.into_iter().map(|fault| fault.finding).next();
        prop_assert_eq!(seen, expected);
    }
}
