//! Window updates and duplicate ACKs as tshark counts them: by the window field as it is in the header, whatever scale the
//! SYNs have, and whether they were captured.

use crate::common::Script;
use lasthop_proto::wire::Flags;
use proptest::prelude::*;

/// A packet without payload, or data of the client that its peer acknowledges later.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A side announces this window, and acknowledges what it acknowledged before.
    Window { side: usize, window: u16 },
    /// The client sends data.
    Data,
    /// The server acknowledges all, with this window.
    Ack { window: u16 },
}

fn any_window() -> impl Strategy<Value = u16> {
    // Few values, so that the field often stays as it was in the SYN; zero closes the window.
    prop_oneof![3 => Just(4096u16), 3 => Just(65_535), 2 => 1u16..=65_535, 1 => Just(0)]
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0usize..2, any_window()).prop_map(|(side, window)| Step::Window { side, window }),
        1 => Just(Step::Data),
        1 => any_window().prop_map(|window| Step::Ack { window }),
    ]
}

/// The definition, for a side whose latest packet had the window field `before`.
fn kind(before: Option<u16>, window: u16, repeats: bool) -> [u64; 3] {
    let changed = before != Some(window);
    [
        u64::from(repeats && changed && window != 0),
        u64::from(repeats && !changed && window != 0),
        u64::from(window == 0),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn windows_are_compared_as_they_are_in_the_header(
        isn in any::<[u32; 2]>(), v6 in any::<bool>(),
        scale in proptest::array::uniform2(prop_oneof![Just(None), (0u8..=14).prop_map(Some)]),
        opened in any::<[bool; 2]>(), first in proptest::array::uniform2(any_window()),
        steps in prop::collection::vec(any_step(), 1..40),
    ) {
        // tshark takes the number zero for none.
        prop_assume!(isn.iter().all(|isn| isn.checked_add(60_000).is_some() && *isn > 0));
        let mut s = Script::new();
        (s.isn, s.v6, s.scale, s.window) = (isn, v6, scale, first);
        let (mut last, mut known) = ([None; 2], [false; 2]);
        let mut expected = [[0; 3]; 2];
        if opened[0] {
            s.send(0.0, 0, Flags::SYN, 0, 0, 0);
            last[0] = Some(first[0]);
        }
        if opened[1] {
            s.send(20.0, 1, Flags::SYN | Flags::ACK, 0, 0, 1);
            (last[1], known[1]) = (Some(first[1]), true);
        }
        // Until each side has sent an ACK its number is not known to be the expected one.
        let (mut sent, mut acked) = (1, 1);
        for side in 0..2 {
            let window = first[side];
            s.send(21.0 + side as f64, side, Flags::ACK, 1, 0, 1);
            let counted = kind(last[side], window, known[side]);
            expected[side].iter_mut().zip(counted).for_each(|(sum, n)| *sum += n);
            (last[side], known[side]) = (Some(window), true);
        }
        for (n, step) in steps.into_iter().enumerate() {
            let at = 100.0 + 300.0 * n as f64;
            let (side, window, repeats) = match step {
                Step::Data => {
                    s.data(at, sent, 100);
                    sent += 100;
                    // Data announces the latest window again.
                    expected[0][2] += u64::from(last[0] == Some(0));
                    continue;
                }
                Step::Ack { window } => (1, window, acked == sent),
                Step::Window { side, window } => (side, window, true),
            };
            s.window[side] = window;
            match (side, step) {
                (1, Step::Ack { .. }) => {
                    s.ack(at, sent);
                    acked = sent;
                }
                (1, _) => s.ack(at, acked),
                _ => s.send(at, 0, Flags::ACK, sent, 0, 1),
            }
            let counted = kind(last[side], window, repeats);
            expected[side].iter_mut().zip(counted).for_each(|(sum, n)| *sum += n);
            last[side] = Some(window);
        }
        let analysis = s.analyze();
        let [connection] = &analysis.connections[..] else { panic!("one connection") };
        let from_client = connection.client.port != 80;
        let sides = [&connection.to_server, &connection.to_client];
        for (side, expected) in expected.into_iter().enumerate() {
            let counts = sides[if from_client { side } else { 1 - side }].wireshark;
            let got = [counts.window_update, counts.duplicate_ack, counts.zero_window];
            prop_assert_eq!(got, expected, "side {}", side);
        }
    }
}
