//! Several connections that belong together: subflows of MPTCP, and halves of a split connection.

use crate::common::Script;
use crate::packets::any_numbers;
use lasthop_analyze::{Finding, Negotiated, Opening, Signature};
use lasthop_proto::wire::Flags;
use proptest::prelude::*;

const SYN_ACK: Flags = Flags(Flags::SYN.0 | Flags::ACK.0);

/// An option of MPTCP with these bytes behind kind and length, padded.
fn option(bytes: &[u8]) -> Vec<u8> {
    let mut option = vec![30, bytes.len() as u8 + 2];
    option.extend(bytes);
    option
}

fn capable(version: u8, keys: &[[u8; 8]]) -> Vec<u8> {
    option(&[&[version, 0x81], keys.concat().as_slice()].concat())
}

/// The token of the key in version 0 and 1, by other programs.
const KEY: [u8; 8] = *b"lasthop8";
const TOKENS: [u32; 2] = [0x5579_8884, 0x5733_24fd];

#[test]
fn subflows_belong_to_the_connection_of_their_token() {
    for version in [0, 1] {
        for (token, expected) in [(TOKENS[usize::from(version)], Some(0)), (7, Some(1))] {
            let mut s = Script::new();
            let other = [1, 2, 3, 4, 5, 6, 7, 8];
            s.options = capable(version, &[other][usize::from(version)..]);
            s.send(0.0, 0, Flags::SYN, 0, 0, 0);
            s.options = capable(version, &[KEY]);
            s.send(10.0, 1, SYN_ACK, 0, 0, 1);
            s.options = capable(version, &[other, KEY]);
            s.send(11.0, 0, Flags::ACK, 1, 0, 1);
            s.options.clear();
            s.data(20.0, 1, 1000);
            (s.port, s.isn) = (4001, [77_000, 88_000]);
            let join = [&[0x10, 1][..], &token.to_be_bytes(), &[9; 4]].concat();
            s.options = option(&join);
            s.send(30.0, 0, Flags::SYN, 0, 0, 0);
            s.options = option(&[[0x10, 1].as_slice(), &[3; 12]].concat());
            s.send(40.0, 1, SYN_ACK, 0, 0, 1);
            s.options.clear();
            s.data(50.0, 1, 1000);
            let analysis = s.analyze();
            let subflows: Vec<_> = analysis.connections.iter().map(|c| c.multipath).collect();
            assert_eq!(subflows, [Some(0), expected]);
        }
    }
}

#[test]
fn a_server_without_mptcp_is_reported() {
    for answers in [false, true] {
        let mut s = Script::new();
        s.options = capable(1, &[]);
        s.send(0.0, 0, Flags::SYN, 0, 0, 0);
        if !answers {
            s.options.clear();
        } else {
            s.options = capable(1, &[KEY]);
        }
        s.send(10.0, 1, SYN_ACK, 0, 0, 1);
        s.options.clear();
        s.send(11.0, 0, Flags::ACK, 1, 0, 1);
        s.data(20.0, 1, 1000);
        let analysis = s.analyze();
        let found = analysis.connections[0].to_server.diagnoses.iter().any(|d| {
            matches!(d.finding, Finding::OptionOneSided { option: Negotiated::Multipath, .. })
        });
        assert_eq!(found, !answers);
    }
}

/// SYNs with the option of TCP MD5 or TCP-AO.
#[test]
fn signatures_are_named_and_explain_a_missing_answer() {
    let md5 = [&[19, 18][..], &[5; 16]].concat();
    let ao = [&[29, 16][..], &[5; 14]].concat();
    for (option, signature) in
        [(md5, Some(Signature::Md5)), (ao, Some(Signature::Ao)), (Vec::new(), None)]
    {
        let mut s = Script::new();
        s.options = option;
        s.garbage = 0;
        (0..4u32).for_each(|n| s.send(f64::from(1000 << n), 0, Flags::SYN, 0, 0, 0));
        let analysis = s.analyze();
        let direction = &analysis.connections[0].to_server;
        assert_eq!(direction.signature, signature);
        assert_eq!(direction.signed, if signature.is_some() { 4 } else { 0 });
        let names = |text: &str| direction.diagnoses[0].remedy.contains(text);
        assert_eq!(names("TCPMD5"), signature == Some(Signature::Md5));
        assert_eq!(names("TCPAO"), signature == Some(Signature::Ao));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A PEP in the capture: it opens its half before (`late`) or after it answers the client. In the control the client opens
    /// a new connection from the same port.
    #[test]
    fn halves_of_a_split_connection(
        isn in any_numbers(), isn_2 in any_numbers(), v6 in any::<bool>(), late in any::<bool>(), split in any::<bool>(),
        delay in 5.0f64..700.0, len in 100u32..1400,
    ) {
        let far = |a: u32, b: u32| a.wrapping_sub(b) as i32;
        prop_assume!([0, 1].iter().all(|&i| far(isn[i], isn_2[i]).unsigned_abs() > 1_000_000));
        let mut s = Script::new();
        s.v6 = v6;
        // The halves, interleaved: initial numbers, and when each begins.
        let halves = [(isn, 0.0), (isn_2, 1.0)];
        let mut steps: Vec<(f64, usize, usize, Flags, u32, u32, u32)> = Vec::new();
        for (half, (_, from)) in halves.iter().enumerate() {
            let answer = if half == 0 && late { delay + 3.0 } else { 2.0 + delay * half as f64 };
            steps.push((*from, half, 0, Flags::SYN, 0, 0, 0));
            if half == 0 && !split {
                continue;
            }
            steps.push((from + answer, half, 1, SYN_ACK, 0, 0, 1));
            steps.push((from + answer + 0.1, half, 0, Flags::ACK, 1, 0, 1));
            let begin = 1000.0 + 0.3 * half as f64;
            for n in 0..40u32 {
                let at = begin + f64::from(n);
                steps.push((at, half, 0, Flags::ACK, 1 + n * len, len, 1));
                steps.push((at + 0.5, half, 1, Flags::ACK, 1, 0, 1 + (n + 1) * len));
            }
        }
        steps.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (at, half, side, flags, seq, len, ack) in steps {
            s.isn = halves[half].0;
            s.send(at, side, flags, seq, len, ack);
        }
        let analysis = s.analyze();
        let [first, second] = &analysis.connections[..] else { panic!("{}", analysis.connections.len()) };
        prop_assert_eq!(second.half, split.then_some(0));
        prop_assert_eq!(first.opening, if split { Opening::Handshake } else { Opening::Unanswered });
        for half in [first, second].into_iter().skip(usize::from(!split)) {
            let data = &half.to_server;
            prop_assert_eq!((data.unique_bytes, data.restarts), (u64::from(40 * len), 0));
            prop_assert_eq!(data.retransmissions.total() + data.out_of_order, 0);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A proxy between two networks, with addresses, numbers and segments of its own. In the control two clients send equal
    /// requests.
    #[test]
    fn halves_of_a_proxy(
        isn in any_numbers(), isn_2 in any_numbers(), v6 in any::<bool>(), split in any::<bool>(), rtt in 5.0f64..300.0,
        segment in 500u32..1400, port in 1000u16..60_000, from in any::<u32>(),
    ) {
        prop_assume!(isn != isn_2);
        let mut s = Script::new();
        (s.v6, s.payload) = (v6, 200);
        let mut steps: Vec<(f64, usize, usize, Flags, u32, u32, u32)> = Vec::new();
        for half in 0..2 {
            // The proxy opens its half before it answers, and forwards what it receives.
            let later = |way: f64| if split { way } else { 3.0 };
            let (syn, end) = (later(1.0) * half as f64, later(2.0) * half as f64);
            let (ask, answer) = (rtt + 3.0 + later(1.0) * half as f64, 2.0 * rtt + 9.0 + later(-1.0) * half as f64);
            let size = if half == 0 { segment } else { 600 };
            steps.push((syn, half, 0, Flags::SYN, 0, 0, 0));
            steps.push((rtt + syn, half, 1, SYN_ACK, 0, 0, 1));
            steps.push((rtt + syn + 0.1, half, 0, Flags::ACK, 1, 0, 1));
            steps.push((ask, half, 0, Flags::ACK, 1, 300, 1));
            let mut sent = 0;
            while sent < 8000 {
                let len = size.min(8000 - sent);
                steps.push((answer + f64::from(sent) * 1e-4, half, 1, Flags::ACK, 1 + sent, len, 301));
                sent += len;
            }
            steps.push((answer + rtt, half, 0, Flags::ACK, 301, 0, 8001));
            steps.push((answer + rtt + end, half, 0, Flags::FIN | Flags::ACK, 301, 0, 8001));
            steps.push((answer + rtt + end + 0.1, half, 1, Flags::FIN | Flags::ACK, 8001, 0, 302));
        }
        steps.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (at, half, side, flags, seq, len, ack) in steps {
            (s.isn, s.hosts, s.port) = if half == 0 { (isn, [1, 2], 4000) } else { (isn_2, [3, 9], port) };
            s.stream_from = [u64::from(from), 1 << 40];
            s.send(at, side, flags, seq, len, ack);
        }
        let analysis = s.analyze();
        let halves: Vec<_> = analysis.connections.iter().map(|c| c.half).collect();
        prop_assert_eq!(halves, [None, Some(0).filter(|_| split)]);
    }
}
