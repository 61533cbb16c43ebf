//! Connections that begin again between the same ports, and resets: either end restarts, ports are used again, one
//! direction is missing. What arrives in order is neither lost nor reordered.

use crate::common::Script;
use crate::packets::{any_numbers, faults, one};
use lasthop_analyze::{Analysis, Closing, Connection, Finding};
use lasthop_proto::wire::Flags;
use proptest::prelude::*;

/// Which packets the capture has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Captured {
    Both,
    /// Those of one side.
    From(usize),
}

fn any_captured() -> impl Strategy<Value = Captured> {
    prop_oneof![Just(Captured::Both), (0usize..2).prop_map(Captured::From)]
}

/// A capture in which some packets are missing.
struct Film {
    script: Script,
    captured: Captured,
}

impl Film {
    fn new(isn: [u32; 2], v6: bool, captured: Captured) -> Film {
        let mut script = Script::new();
        (script.isn, script.v6) = (isn, v6);
        Film { script, captured }
    }

    fn send(&mut self, at: f64, from: usize, flags: Flags, seq: u32, len: u32, ack: u32) {
        if matches!(self.captured, Captured::From(side) if side != from) {
            return;
        }
        self.script.send(at, from, flags, seq, len, ack);
    }

    fn handshake(&mut self, at: f64, rtt: f64) {
        self.send(at, 0, Flags::SYN, 0, 0, 0);
        self.send(at + rtt, 1, Flags::SYN | Flags::ACK, 0, 0, 1);
        self.send(at + rtt + 0.1, 0, Flags::ACK, 1, 0, 1);
    }

    /// Side `from` sends `count` segments in order, each acknowledged.
    fn transfer(&mut self, at: f64, from: usize, first: u32, count: u32, len: u32) {
        for n in 0..count {
            let at = at + f64::from(n) * 2.0;
            self.send(at, from, Flags::ACK, first + n * len, len, 1);
            self.send(at + 1.0, 1 - from, Flags::ACK, 1, 0, first + (n + 1) * len);
        }
    }
}

/// Payload bytes of side `from`, each once, over all connections.
fn arrived(analysis: &Analysis, from: usize) -> u64 {
    let sent = |c: &Connection| {
        // The client of a connection whose opening is missing is who sends first.
        let server_is_client = c.client.port == 80;
        if (from == 0) != server_is_client {
            c.to_server.unique_bytes
        } else {
            c.to_client.unique_bytes
        }
    };
    analysis.connections.iter().map(sent).sum()
}

fn all_faults(analysis: &Analysis) -> [u64; 3] {
    let mut sum = [0; 3];
    for connection in &analysis.connections {
        sum.iter_mut().zip(faults(connection)).for_each(|(sum, n)| *sum += n);
    }
    sum
}

/// Numbers that are not near each other.
fn are_apart(a: [u32; 2], b: [u32; 2]) -> bool {
    (0..2).all(|i| (a[i].wrapping_sub(b[i]) as i32).unsigned_abs() > 1 << 20)
}

/// Both sides repeat their packets at the same time.
#[test]
fn time_before_the_opening_counts_once() {
    let mut s = Script::new();
    for at in [0.0, 1000.0, 3000.0] {
        s.send(at, 0, Flags::SYN, 0, 0, 0);
        s.send(at + 100.0, 1, Flags::SYN | Flags::ACK, 0, 0, 1);
    }
    s.send(3101.0, 0, Flags::ACK, 1, 0, 1);
    s.data(3102.0, 1, 1000);
    let analysis = s.analyze();
    let found = analysis.connections[0].to_server.diagnoses.iter().find_map(|d| match d.finding {
        Finding::Opening { waited, share, .. } => Some((waited, share)),
        _ => None,
    });
    let (waited, share) = found.unwrap();
    assert!((waited - 3.1).abs() < 1e-6 && share <= 1.0, "{waited} {share}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Data of the old connection is in the capture; then its client restarts and opens again between the same ports.
    /// The server answers for the old connection, is reset, and opens as well.
    #[test]
    fn a_client_that_restarts(
        old in any_numbers(), new in any_numbers(), v6 in any::<bool>(), captured in any_captured(),
        from in 0usize..2, before in 0u32..8, segments in 3u32..20, repeats in 1u32..4, opened in any::<bool>(),
    ) {
        prop_assume!(are_apart(old, new));
        let mut film = Film::new(old, v6, captured);
        if opened {
            film.handshake(0.0, 20.0);
        }
        film.transfer(50.0, from, 1, before, 1000);
        let (seq, ack) = if from == 1 { (1 + 1000 * before, 1) } else { (1, 1 + 1000 * before) };
        for n in 0..repeats {
            let at = 5000.0 + 1000.0 * f64::from(n);
            film.script.isn = new;
            film.send(at, 0, Flags::SYN, 0, 0, 0);
            film.script.isn = old;
            film.send(at + 20.0, 1, Flags::ACK, seq, 0, ack);
            film.send(at + 20.1, 0, Flags::RST, ack, 0, 0);
        }
        film.script.isn = new;
        film.handshake(9000.0, 20.0);
        film.transfer(9030.0, from, 1, segments, 1000);
        let analysis = film.script.analyze();
        prop_assert_eq!(all_faults(&analysis), [0; 3]);
        if captured != Captured::From(1 - from) {
            prop_assert_eq!(arrived(&analysis, from), u64::from(1000 * (before + segments)));
        }
    }

    /// The server restarts: it resets what it does not know, and the client opens again between the same ports.
    #[test]
    fn a_server_that_restarts(
        old in any_numbers(), new in any_numbers(), v6 in any::<bool>(), captured in any_captured(),
        before in 1u32..8, segments in 3u32..20, with_ack in any::<bool>(), opened in any::<bool>(),
    ) {
        prop_assume!(are_apart(old, new));
        let mut film = Film::new(old, v6, captured);
        if opened {
            film.handshake(0.0, 20.0);
        }
        film.transfer(50.0, 0, 1, before, 1000);
        // A reset of a segment with ACK has its number and no ACK; some systems send one nevertheless.
        let flags = if with_ack { Flags::RST | Flags::ACK } else { Flags::RST };
        film.send(4000.0, 0, Flags::ACK, 1 + 1000 * before, 1000, 1);
        film.send(4001.0, 1, flags, 1, 0, 1 + 1000 * before);
        film.script.isn = new;
        film.handshake(9000.0, 20.0);
        film.transfer(9030.0, 0, 1, segments, 1000);
        let analysis = film.script.analyze();
        prop_assert_eq!(all_faults(&analysis), [0; 3]);
        if captured != Captured::From(1) {
            prop_assert_eq!(arrived(&analysis, 0), u64::from(1000 * (before + 1 + segments)));
        }
    }

    /// Ports are used again after an orderly end; the SYN, or the SYN and its answer, may be missing.
    #[test]
    fn ports_that_are_used_again(
        old in any_numbers(), new in any_numbers(), v6 in any::<bool>(), captured in any_captured(),
        from in 0usize..2, before in 1u32..8, segments in 3u32..20, missing in 0usize..2,
    ) {
        prop_assume!(are_apart(old, new));
        let mut film = Film::new(old, v6, captured);
        film.handshake(0.0, 20.0);
        film.transfer(50.0, from, 1, before, 1000);
        let ends = if from == 0 { [1 + 1000 * before, 1] } else { [1, 1 + 1000 * before] };
        film.send(200.0, 0, Flags::FIN | Flags::ACK, ends[0], 0, ends[1]);
        film.send(201.0, 1, Flags::FIN | Flags::ACK, ends[1], 0, ends[0] + 1);
        film.send(202.0, 0, Flags::ACK, ends[0] + 1, 0, ends[1] + 1);
        film.script.isn = new;
        if missing == 0 {
            film.send(9000.0, 0, Flags::SYN, 0, 0, 0);
        }
        film.send(9020.0, 1, Flags::SYN | Flags::ACK, 0, 0, 1);
        film.send(9020.1, 0, Flags::ACK, 1, 0, 1);
        film.transfer(9030.0, from, 1, segments, 1000);
        let analysis = film.script.analyze();
        prop_assert_eq!(all_faults(&analysis), [0; 3]);
        let whole = missing == 0 || captured == Captured::Both || captured == Captured::From(1);
        if whole && captured != Captured::From(1 - from) {
            prop_assert_eq!(arrived(&analysis, from), u64::from(1000 * (before + segments)));
        }
    }

    /// A SYN is answered twice with different numbers: by two servers behind one address, or one that restarted in
    /// between. The client takes the first or the second.
    #[test]
    fn two_answers_to_a_syn(
        isn in any_numbers(), other in any::<u32>(), v6 in any::<bool>(), second in any::<bool>(),
        stray_is_late in any::<bool>(), from in 0usize..2,
    ) {
        prop_assume!((other.wrapping_sub(isn[1]) as i32).unsigned_abs() > 1 << 20);
        let mut film = Film::new(isn, v6, Captured::Both);
        let stray = |film: &mut Film, at: f64| {
            film.script.isn[1] = other;
            film.send(at, 1, Flags::SYN | Flags::ACK, 0, 0, 1);
            film.script.isn = isn;
        };
        film.send(0.0, 0, Flags::SYN, 0, 0, 0);
        if second {
            stray(&mut film, 19.0);
        }
        film.send(20.0, 1, Flags::SYN | Flags::ACK, 0, 0, 1);
        if !second && !stray_is_late {
            stray(&mut film, 20.05);
        }
        film.send(20.1, 0, Flags::ACK, 1, 0, 1);
        if !second && stray_is_late {
            stray(&mut film, 20.2);
        }
        film.transfer(30.0, from, 1, 10, 1000);
        let analysis = film.script.analyze();
        prop_assert_eq!(faults(one(&analysis)), [0; 3]);
        prop_assert_eq!(arrived(&analysis, from), 10_000);
        let rtt = one(&analysis).handshake_rtt.map(|rtt| rtt.as_secs_f64());
        prop_assert!(rtt.is_some_and(|rtt| (rtt - 0.0201).abs() < 1e-6), "{:?}", rtt);
    }

    /// One side closes early and resets each packet that still comes; its resets have an acknowledgment number or not.
    #[test]
    fn a_side_that_resets_all_that_still_comes(
        isn in any_numbers(), v6 in any::<bool>(), captured in any_captured(), from in 0usize..2,
        garbage in prop_oneof![Just(0), any::<u32>()], with_ack in any::<bool>(), segments in 2u32..30,
        early in 1u32..20,
    ) {
        let early = early.min(segments);
        let mut film = Film::new(isn, v6, captured);
        film.handshake(0.0, 20.0);
        let flags = if with_ack { Flags::RST | Flags::ACK } else { Flags::RST };
        film.transfer(30.0, from, 1, early, 1460);
        for n in early..segments {
            let at = 200.0 + f64::from(n);
            film.send(at, from, Flags::ACK, 1 + 1460 * n, 1460, 1);
            film.script.garbage = garbage;
            film.send(at + 0.5, 1 - from, flags, 1, 0, 1 + 1460 * early);
            film.script.garbage = 0;
        }
        let analysis = film.script.analyze();
        prop_assert_eq!(all_faults(&analysis), [0; 3]);
        if captured != Captured::From(1 - from) {
            prop_assert_eq!(arrived(&analysis, from), u64::from(1460 * segments));
        }
        if captured == Captured::Both && early < segments {
            prop_assert_eq!(one(&analysis).closing, Closing::Reset);
        }
    }
}
