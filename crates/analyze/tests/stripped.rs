//! Options that a middlebox takes out, and middleboxes that answer for an end: found where they are, and nowhere else.

use crate::common::Script;
use lasthop_analyze::{Analysis, Diagnosis, Finding, Negotiated, OneSided};
use lasthop_proto::wire::Flags;
use proptest::prelude::*;

/// Numbers, addresses and round trips that do not matter.
#[derive(Clone, Copy, Debug)]
struct Member {
    isn: [u32; 2],
    v6: bool,
    rtt: f64,
    segments: u32,
    lost: u32,
}

prop_compose! {
    fn member()(
        isn in any::<[u32; 2]>(), v6 in any::<bool>(), rtt in 5.0..400.0, segments in 16u32..40, lost in 0u32..8,
    ) -> Member {
        Member { isn, v6, rtt, segments, lost }
    }
}

/// Options that the path removes from SYN, SYN-ACK, data and ACKs.
#[derive(Clone, Copy, Debug, Default)]
struct Stripped {
    stamps: [bool; 4],
    blocks: bool,
}

/// A transfer in which a segment is lost and repaired upon duplicate ACKs, captured behind what takes options out.
fn transfer(member: Member, stripped: Stripped) -> Analysis {
    let Member { isn, v6, rtt, segments, lost } = member;
    let mut s = Script::new();
    (s.isn, s.v6, s.mss) = (isn, v6, [Some(1460); 2]);
    s.sack_permitted = [true; 2];
    s.window = [60_000; 2];
    let stamp = |s: &mut Script, kind: usize, value: u32| {
        s.stamps = (!stripped.stamps[kind]).then_some((value, 1));
    };
    stamp(&mut s, 0, 1);
    s.send(0.0, 0, Flags::SYN, 0, 0, 0);
    stamp(&mut s, 1, 1);
    s.send(rtt, 1, Flags::SYN | Flags::ACK, 0, 0, 1);
    stamp(&mut s, 2, 2);
    s.send(rtt + 0.01, 0, Flags::ACK, 1, 0, 1);
    let len = 1448;
    let at = rtt + 10.0;
    let moment = |n: u32| at + f64::from(n) * 0.01;
    for n in 0..segments {
        stamp(&mut s, 2, 10);
        s.data(moment(n), 1 + n * len, len);
    }
    for n in (0..segments).filter(|n| *n != lost) {
        stamp(&mut s, 3, 10);
        let at = moment(n) + rtt;
        let hole = 1 + lost * len;
        match n < lost {
            true => s.ack(at, 1 + (n + 1) * len),
            false if stripped.blocks => s.ack(at, hole),
            false => s.ack_sack(at, hole, &[(hole + len, 1 + (n + 1) * len)]),
        }
    }
    let at = moment(segments) + rtt + 1.0;
    stamp(&mut s, 2, 500);
    s.data(at, 1 + lost * len, len);
    stamp(&mut s, 3, 500);
    s.ack(at + rtt, 1 + segments * len);
    s.analyze()
}

fn options(analysis: &Analysis) -> Vec<Finding> {
    let all = |c: &lasthop_analyze::Connection| {
        [c.to_server.diagnoses.clone(), c.to_client.diagnoses.clone()].concat()
    };
    let all = analysis.connections.iter().flat_map(all).map(|diagnosis| diagnosis.finding);
    all.filter(|f| {
        matches!(
            f,
            Finding::OptionStripped { .. }
                | Finding::OptionOneSided { .. }
                | Finding::Middlebox { .. }
        )
    })
    .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn options_that_arrive_are_not_stripped(member in member()) {
        prop_assert_eq!(options(&transfer(member, Stripped::default())), []);
        // None of the ends has timestamps.
        let none = Stripped { stamps: [true; 4], blocks: false };
        prop_assert_eq!(options(&transfer(member, none)), []);
    }

    #[test]
    fn sack_blocks_that_are_taken_out(member in member()) {
        let found = options(&transfer(member, Stripped { blocks: true, ..Stripped::default() }));
        let [Finding::OptionStripped { option: Negotiated::Sack, without, with: 0 }] = found[..] else {
            panic!("{found:?}")
        };
        prop_assert_eq!(without, u64::from(member.segments - member.lost - 1));
    }

    #[test]
    fn timestamps_that_are_taken_out_behind_the_handshake(member in member(), data in any::<bool>(), acks in any::<bool>()) {
        let stripped = Stripped { stamps: [false, false, data, acks], blocks: false };
        let found = options(&transfer(member, stripped));
        let named = found.iter().any(|f| matches!(f, Finding::OptionStripped { option: Negotiated::Timestamps, .. }));
        prop_assert_eq!(named, data || acks, "{:?}", found);
        prop_assert!(found.len() <= 1, "{:?}", found);
    }

    #[test]
    fn timestamps_that_are_taken_out_of_the_handshake(member in member(), of_syn in any::<bool>()) {
        let stamps = [of_syn, !of_syn, true, true];
        let found = options(&transfer(member, Stripped { stamps, blocks: false }));
        let by = if of_syn { OneSided::Server } else { OneSided::Client };
        prop_assert_eq!(found, [Finding::OptionOneSided { option: Negotiated::Timestamps, by }]);
    }

    /// A firewall between the ends resets the connection with its own packets.
    #[test]
    fn a_reset_of_another_host(
        member in member(), end in 40u8..60, middle in 40u8..64, count in 1u32..3, from_server in any::<bool>(),
    ) {
        let mut s = Script::new();
        (s.isn, s.v6) = (member.isn, member.v6);
        s.handshake(0.0, member.rtt);
        let mut at = member.rtt + 1.0;
        for n in 0..5 {
            s.ttl = 64;
            s.data(at, 1 + 1000 * n, 1000);
            s.ttl = end;
            s.send(at + member.rtt, 1, Flags::ACK, 1 + 500 * n, 500, 1001 + 1000 * n);
            s.send(at + member.rtt + 0.1, 1, Flags::ACK, 501 + 500 * n, 0, 1001 + 1000 * n);
            s.ttl = 64;
            s.send(at + member.rtt + 0.2, 0, Flags::ACK, 1001 + 1000 * n, 0, 501 + 500 * n);
            at += member.rtt + 1.0;
        }
        s.ttl = middle;
        for _ in 0..count {
            match from_server {
                true => s.send(at, 1, Flags::RST | Flags::ACK, 2501, 0, 5001),
                false => s.send(at, 0, Flags::RST | Flags::ACK, 5001, 0, 2501),
            }
        }
        let data = if from_server { end } else { 64 };
        let expected = (data != middle).then_some(Finding::Middlebox {
            data_hops: data, answer_hops: middle, answers: count.into(),
        });
        let found: Option<Finding> = options(&s.analyze()).into_iter().next();
        prop_assert_eq!(found, expected);
    }
}

/// The kernel of an end resets with its usual number of hops, whatever it is.
#[test]
fn a_reset_of_the_end_itself_is_no_middlebox() {
    let mut s = Script::new();
    s.handshake(0.0, 10.0);
    for n in 0..5 {
        s.data(20.0 + f64::from(n), 1 + 1000 * n, 1000);
        s.ack(30.0 + f64::from(n), 1001 + 1000 * n);
    }
    s.ttl = 255;
    s.send(50.0, 0, Flags::RST, 5001, 0, 0);
    let found: Vec<Diagnosis> = s.analyze().connections.remove(0).to_server.diagnoses;
    assert!(found.iter().all(|d| !matches!(d.finding, Finding::Middlebox { .. })), "{found:?}");
}
