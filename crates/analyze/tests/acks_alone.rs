//! Captures of the ACKs alone: what they acknowledge is counted, and no loss is made up.

use crate::common::Script;
use crate::packets::{any_numbers, faults, one};
use lasthop_analyze::{Confidence, Finding};
use lasthop_proto::wire::Flags;
use proptest::prelude::*;

/// Content of an ACK.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// So many bytes more.
    New(u32),
    /// Nothing new.
    Duplicate,
    /// Nothing new but a SACK block.
    Sack(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (1u32..60_000).prop_map(Step::New),
        1 => Just(Step::Duplicate),
        1 => (1u32..20_000).prop_map(Step::Sack),
    ];
    prop::collection::vec(step, 4..80)
}

/// Data whose ACKs take another way: only the echoes of timestamps show them. In the control the peer is gone.
#[test]
fn data_of_an_asymmetric_route() {
    for gone in [false, true] {
        let mut s = Script::new();
        s.stamps = Some((100, 0));
        s.send(0.0, 0, Flags::SYN, 0, 0, 0);
        s.stamps = Some((900, 100));
        s.send(10.0, 1, Flags::SYN | Flags::ACK, 0, 0, 1);
        for i in 0..20u32 {
            let at = 20.0 + 400.0 * f64::from(i);
            s.stamps = Some((110 + i, if gone { 900 } else { 900 + i }));
            s.data(at, if gone { 1 } else { 1 + 1000 * i }, 1000);
        }
        let analysis = s.analyze();
        let data = &one(&analysis).to_server;
        let is = |of: fn(&Finding) -> bool| data.diagnoses.iter().any(|d| of(&d.finding));
        assert_eq!(is(|f| matches!(f, Finding::OnlyData { .. })), !gone, "{:?}", data.diagnoses);
        assert_eq!(is(|f| matches!(f, Finding::Unanswered { .. })), gone, "{:?}", data.diagnoses);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn an_acks_only_capture_has_right_counts_without_losses(
        isn in any_numbers(), v6 in any::<bool>(), stamped in any::<bool>(), from in 0usize..2, opened in any::<bool>(),
        counted in any::<bool>(), steps in steps(), again in proptest::option::of(any_numbers()),
    ) {
        prop_assume!(steps.iter().filter(|step| matches!(step, Step::New(_))).count() > 3);
        // The ports are used again, by a connection of which the capture has the ACKs as well.
        prop_assume!(again.is_none_or(|other| {
            (0..2).all(|i| (other[i].wrapping_sub(isn[i]) as i32).unsigned_abs() > 1 << 24)
        }));
        let mut s = Script::new();
        s.v6 = v6;
        s.stamps = stamped.then_some((5, 6));
        s.ids = (counted && !v6).then_some([7, 60_000]);
        let (mut at, mut acks, mut bytes, mut duplicates, mut blocks) = (0.0, 0, 0, 0, 0);
        for numbers in [Some(isn), again].into_iter().flatten() {
            s.isn = numbers;
            let syn = opened || acks > 0;
            if syn {
                let flags = if from == 0 { Flags::SYN } else { Flags::SYN | Flags::ACK };
                s.send(at, from, flags, 0, 0, 1);
                acks += u64::from(from == 1);
            }
            let mut ack = 1;
            at += 20.0;
            if from == 0 || !syn {
                s.send(at, from, Flags::ACK, 1, 0, ack);
                acks += 1;
            }
            for step in &steps {
                at += 5.0;
                match step {
                    Step::New(more) => {
                        ack += more;
                        bytes += u64::from(*more);
                    }
                    Step::Duplicate => duplicates += 1,
                    Step::Sack(right) => {
                        (duplicates, blocks) = (duplicates + 1, blocks + 1);
                        s.sack = vec![(ack + 1000, ack + 1000 + right)];
                    }
                }
                s.send(at, from, Flags::ACK, 1, 0, ack);
                s.sack.clear();
                acks += 1;
            }
            at += 10_000.0;
        }
        let analysis = s.analyze();
        prop_assert_eq!(analysis.copied_packets, 0);
        let mut counted = [0; 4];
        for connection in &analysis.connections {
            prop_assert_eq!(faults(connection), [0; 3]);
            let both = connection.to_server.diagnoses.iter().chain(&connection.to_client.diagnoses);
            for fault in both {
                let Finding::OnlyAcks { acks, acked_bytes, duplicate_acks, sack_acks, rate } = fault.finding else {
                    panic!("{fault}")
                };
                prop_assert_eq!(fault.confidence, Confidence::Certain);
                prop_assert!(rate.is_some_and(|rate| rate > 0.0));
                let more = [acks, acked_bytes, duplicate_acks, sack_acks];
                counted.iter_mut().zip(more).for_each(|(sum, n)| *sum += n);
            }
        }
        if from == 0 || again.is_none() {
            prop_assert!(analysis.connections.len() as u64 == 1 + u64::from(again.is_some()));
        } else {
            // The SYN was not captured: one connection that begins anew.
            one(&analysis);
        }
        prop_assert_eq!(counted, [acks, bytes, duplicates, blocks]);
    }
}
