//! Two ends in virtual time, and a path between them that loses, repeats, reorders and forges.

use core::net::SocketAddr;

use proptest::prelude::*;

use super::session::{Notice, SessionConfig, SessionCounts};
use super::states::State;
use super::toy::Toy;
use super::*;
use crate::rng::Stream;
use crate::wire::checksum::checksum;

pub(super) fn at(n: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, n], 4500))
}

pub(super) fn config(peer: Option<SocketAddr>) -> TunnelConfig {
    TunnelConfig {
        session: SessionConfig {
            peer,
            answers: true,
            window: 64,
            mtu: 1400,
            keep_alive: Span::secs(1),
            dead_after: Span::secs(5),
            renew_after: Span::secs(1 << 20),
            renew_count: 1 << 40,
            worn_after: 1 << 40,
        },
        rule: Some(Rule { reliable: crate::link::tulip::Reliable::All, ..Rule::default() }),
        rate: None,
        delay: None,
        framing: 28,
        below: 1500,
        follows: true,
        queue: 256,
    }
}

/// A UDP packet in IPv4 with a number in it.
pub(super) fn udp(n: u32, len: usize) -> Vec<u8> {
    let total = 28 + len.max(4);
    let mut bytes = vec![0; total];
    bytes[0] = 0x45;
    bytes[2..4].copy_from_slice(&(total as u16).to_be_bytes());
    bytes[8] = 64;
    bytes[9] = 17;
    bytes[12..20].copy_from_slice(&[10, 9, 0, 1, 10, 9, 0, 2]);
    let sum = checksum(&bytes[..20]).to_be_bytes();
    bytes[10..12].copy_from_slice(&sum);
    bytes[24..26].copy_from_slice(&((total - 20) as u16).to_be_bytes());
    bytes[28..32].copy_from_slice(&n.to_be_bytes());
    bytes
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([bytes[28], bytes[29], bytes[30], bytes[31]])
}

/// Behaviour of the path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Harm {
    pub lose: f64,
    pub repeat: f64,
    pub reorder: f64,
    pub forge: f64,
}

pub(super) const NONE: Harm = Harm { lose: 0.0, repeat: 0.0, reorder: 0.0, forge: 0.0 };

pub(super) struct World {
    pub now: Time,
    pub ends: [Option<Tunnel<Toy>>; 2],
    starts: u8,
    /// Arrival time, order, receiver, sender and bytes.
    path: Vec<(Time, u64, usize, SocketAddr, Vec<u8>)>,
    sent: u64,
    delay: Span,
    pub harm: Harm,
    rng: Stream,
    /// Addresses of the ends.
    pub places: [SocketAddr; 2],
    /// Whether datagrams are reflected to their sender, as if from the other end.
    pub echo: bool,
    /// Longer IP packets are dropped.
    pub width: u32,
    /// Whether hellos are dropped.
    pub no_hellos: bool,
    pub got: [Vec<u32>; 2],
    pub log: Vec<Vec<u8>>,
    pub notices: [Vec<Notice>; 2],
}

impl World {
    pub fn new(configs: [TunnelConfig; 2], harm: Harm, seed: u64) -> World {
        let mut world = World {
            now: Time::ZERO,
            ends: [None, None],
            starts: 0,
            path: Vec::new(),
            sent: 0,
            delay: Span::millis(10),
            harm,
            rng: Stream::new(seed, "path"),
            places: [at(0), at(1)],
            echo: false,
            width: 1500,
            no_hellos: false,
            got: [Vec::new(), Vec::new()],
            log: Vec::new(),
            notices: [Vec::new(), Vec::new()],
        };
        for (i, config) in configs.into_iter().enumerate() {
            world.start(i, config);
        }
        world
    }

    pub fn pair(harm: Harm, seed: u64) -> World {
        World::new([config(Some(at(1))), config(None)], harm, seed)
    }

    pub fn start(&mut self, i: usize, config: TunnelConfig) {
        self.starts += 1;
        self.ends[i] = Some(Tunnel::new(config, Toy { key: 7 }, [self.starts; 32]));
    }

    pub fn end(&self, i: usize) -> &Tunnel<Toy> {
        self.ends[i].as_ref().unwrap()
    }

    /// Moves the output of end `i` to the path.
    fn drain(&mut self, i: usize) {
        let Some(end) = &mut self.ends[i] else { return };
        let (mut datagrams, mut packets) = (Vec::new(), Vec::new());
        end.take_datagrams(&mut datagrams);
        end.take_packets(&mut packets);
        self.notices[i].extend(end.take_notices());
        self.got[i].extend(packets.iter().map(|bytes| number(bytes)));
        for Datagram { to, bytes: datagram, whole } in datagrams {
            self.log.push(datagram.clone());
            let Some(there) = self.places.iter().position(|place| *place == to) else { continue };
            if whole && datagram.len() as u32 + 28 > self.width {
                continue;
            }
            if self.no_hellos && datagram[0] == self.log[0][0] {
                continue;
            }
            let (to, from) = if self.echo { (i, to) } else { (there, self.places[i]) };
            let harm = self.harm;
            let copies = if self.rng.chance(harm.repeat) { 2 } else { 1 };
            for _ in 0..copies {
                if self.rng.chance(harm.lose) {
                    continue;
                }
                let mut datagram = datagram.clone();
                if self.rng.chance(harm.forge) {
                    let place = self.rng.below(datagram.len() as u64) as usize;
                    datagram[place] ^= 1 << self.rng.below(8);
                }
                let late = if self.rng.chance(harm.reorder) { 3 } else { 1 };
                self.sent += 1;
                self.path.push((self.now + self.delay * late, self.sent, to, from, datagram));
            }
        }
    }

    pub fn put(&mut self, i: usize, bytes: &[u8]) {
        let now = self.now;
        self.ends[i].as_mut().unwrap().on_packet(now, bytes);
        self.drain(i);
    }

    pub fn session(&self, i: usize) -> SessionCounts {
        self.end(i).session().counts()
    }

    pub fn inject(&mut self, i: usize, from: SocketAddr, bytes: &[u8]) {
        let now = self.now;
        self.ends[i].as_mut().unwrap().on_datagram(now, from, &mut bytes.to_vec());
        self.drain(i);
    }

    pub fn run_until(&mut self, until: Time) {
        loop {
            let arrives = self.path.iter().map(|(at, ..)| *at).min();
            let wakes = self.ends.iter().flatten().filter_map(Tunnel::next_wake).min();
            let Some(next) = arrives.into_iter().chain(wakes).min().filter(|at| *at <= until)
            else {
                self.now = until;
                return;
            };
            self.now = self.now.max(next);
            let first = self.path.iter().enumerate().min_by_key(|(_, (at, n, ..))| (*at, *n));
            if let Some((i, _)) = first.filter(|(_, (at, ..))| *at <= self.now) {
                let (_, _, to, from, mut bytes) = self.path.swap_remove(i);
                let now = self.now;
                if let Some(end) = &mut self.ends[to] {
                    end.on_datagram(now, from, &mut bytes);
                }
                self.drain(to);
                continue;
            }
            for i in 0..2 {
                let now = self.now;
                if let Some(end) = &mut self.ends[i] {
                    end.on_wake(now);
                }
                self.drain(i);
            }
        }
    }

    pub fn run_for(&mut self, span: Span) {
        self.run_until(self.now + span);
    }

    pub fn states(&self) -> [State; 2] {
        [0, 1].map(|i| self.end(i).session().state())
    }
}

#[test]
fn packets_pass_both_ways_after_three_messages() {
    let mut world = World::pair(NONE, 1);
    world.run_for(Span::millis(45));
    assert_eq!(world.states(), [State::Up, State::Up]);
    for n in 0..500 {
        world.put(0, &udp(n, 1000));
        world.put(1, &udp(n, 700));
        world.run_for(Span::millis(2));
    }
    world.run_for(Span::secs(1));
    assert_eq!(world.got, [(0..500).collect::<Vec<_>>(), (0..500).collect()]);
    let agreed = world.end(0).session().agreed().unwrap();
    assert_eq!(agreed.rtt, Span::millis(20));
    assert_eq!(world.end(0).counts().session_lost, 0);
}

#[test]
fn clean_paths_have_no_resends_and_few_extra_messages() {
    let mut world = World::pair(NONE, 1);
    world.run_for(Span::millis(100));
    let before = world.log.len();
    for n in 0..200 {
        world.put(0, &udp(n, 1000));
        world.run_for(Span::millis(1));
    }
    world.run_for(Span::millis(900));
    assert_eq!(world.got[1].len(), 200);
    let repeated: u64 = world.end(0).repeated().values().sum();
    assert_eq!(repeated, 0, "{:?}", world.end(0).repeated());
    assert!(world.log.len() - before <= 2 * 200 + 4, "{}", world.log.len() - before);
}

#[test]
fn a_restarted_end_reconnects_and_old_frames_are_refused() {
    let mut world = World::pair(NONE, 2);
    world.run_for(Span::secs(1));
    world.put(0, &udp(1, 500));
    world.run_for(Span::millis(100));
    let old = world.log.clone();
    for restarted in [0, 1] {
        let peer = if restarted == 0 { Some(at(1)) } else { None };
        world.start(restarted, config(peer));
        world.run_for(Span::secs(8));
        assert_eq!(world.states(), [State::Up, State::Up], "{restarted}");
        world.put(0, &udp(2, 500));
        world.run_for(Span::millis(500));
        assert_eq!(world.got[1].last(), Some(&2));
    }
    assert_eq!(world.session(0).forgotten, 1, "end 1 went without a word");
    let got = world.got.clone();
    for bytes in &old {
        world.inject(0, at(1), bytes);
        world.inject(1, at(0), bytes);
    }
    world.run_for(Span::millis(500));
    assert_eq!(world.got, got);
    assert_eq!(world.states(), [State::Up, State::Up]);
    let counts = world.end(1).session().counts();
    assert!(counts.other_session > 0 && counts.stale > 0, "{counts:?}");
    assert_eq!(counts.restarts, 0, "hellos of old are answered, and nothing comes of it");
}

#[test]
fn a_caller_that_restarts_replaces_its_session_at_once() {
    let mut world = World::pair(NONE, 2);
    world.run_for(Span::secs(1));
    world.start(0, config(Some(at(1))));
    world.run_for(Span::millis(100));
    assert_eq!(world.states(), [State::Up, State::Up]);
    assert_eq!(world.end(1).session().counts().restarts, 1);
}

#[test]
fn a_vanished_peer_is_dropped_and_reconnected() {
    let mut world = World::pair(NONE, 3);
    world.run_for(Span::secs(1));
    world.harm = Harm { lose: 1.0, ..NONE };
    world.put(0, &udp(1, 500));
    world.run_for(Span::secs(10));
    for i in [0, 1] {
        assert_eq!(world.end(i).session().counts().vanished, 1);
        assert!(!world.end(i).session().is_up());
    }
    assert_eq!(world.end(0).counts().session_lost, 1);
    world.put(0, &udp(2, 500));
    world.harm = NONE;
    world.run_for(Span::secs(6));
    assert_eq!(world.states(), [State::Up, State::Up]);
    assert_eq!(world.got[1], [2], "what waits goes with the next session");
}

#[test]
fn a_goodbye_ends_the_session_at_once() {
    let mut world = World::pair(NONE, 4);
    world.run_for(Span::secs(1));
    let now = world.now;
    world.ends[1].as_mut().unwrap().close(now);
    world.drain(1);
    world.run_for(Span::millis(50));
    assert_eq!(world.states()[1], State::Closed);
    assert!(!world.end(0).session().is_up());
    assert_eq!(world.end(0).session().counts().goodbyes, 1);
    assert_eq!(world.end(0).session().counts().vanished, 0);
    world.run_for(Span::secs(20));
    assert!(!world.end(0).session().is_up());
}

#[test]
fn both_ends_can_call_over_a_lossy_path() {
    for seed in 0..40 {
        let harm = Harm { lose: 0.3, reorder: 0.3, ..NONE };
        let mut configs = [config(Some(at(1))), config(Some(at(0)))];
        // Five consecutive keep-alives are lost occasionally.
        configs.iter_mut().for_each(|config| config.session.dead_after = Span::secs(20));
        let mut world = World::new(configs, harm, seed);
        world.run_for(Span::secs(20));
        assert_eq!(world.states(), [State::Up, State::Up], "{seed}");
        let sessions = world.end(0).session().counts().sessions;
        assert!(sessions <= 3, "{seed}: {sessions}");
        world.put(0, &udp(9, 100));
        world.put(1, &udp(8, 300));
        world.run_for(Span::secs(2));
        assert_eq!(world.got[0], [8], "{seed}");
    }
}

#[test]
fn a_worn_session_is_renewed() {
    let mut configs = [config(Some(at(1))), config(None)];
    configs[0].session.worn_after = 300;
    let mut world = World::new(configs, NONE, 5);
    world.run_for(Span::secs(1));
    for n in 0..1000 {
        world.put(0, &udp(n, 1000));
        world.run_for(Span::millis(1));
    }
    world.run_for(Span::secs(2));
    assert!(world.end(0).session().counts().worn >= 3);
    let lost = world.end(0).counts().session_lost;
    assert!(world.got[1].len() as u64 + lost >= 1000, "{} and {lost}", world.got[1].len());
    assert!(world.got[1].is_sorted_by(|a, b| a < b), "nothing came twice or out of order");
}

/// By time and by count, on a path that loses and reorders: the session and its link layer continue.
#[test]
fn keys_are_renewed_and_nothing_is_lost() {
    for (seed, by_time) in (0..20).map(|seed| (seed, seed % 2 == 0)) {
        let harm = Harm { lose: 0.1, reorder: 0.2, ..NONE };
        let mut configs = [config(Some(at(1))), config(None)];
        configs[0].session.dead_after = Span::secs(20);
        if by_time {
            configs[0].session.renew_after = Span::secs(2);
        } else {
            configs[0].session.renew_count = 300;
        }
        let mut world = World::new(configs, harm, seed);
        world.run_for(Span::secs(2));
        for n in 0..1000 {
            world.put(0, &udp(n, 1000));
            world.put(1, &udp(n, 500));
            world.run_for(Span::millis(10));
        }
        world.run_for(Span::secs(5));
        let [own, peer] = [0, 1].map(|end| world.end(end).session().counts());
        assert!(own.renewed >= 3 && peer.renewed + 1 >= own.renewed, "{seed}: {own:?} {peer:?}");
        assert_eq!(
            (own.sessions, peer.sessions, own.restarts, peer.restarts),
            (1, 1, 0, 0),
            "{seed}"
        );
        for end in [0, 1] {
            assert_eq!(world.end(end).counts().session_lost, 0, "{seed}");
            assert_eq!(world.got[end], (0..1000).collect::<Vec<_>>(), "{seed}: {end}");
        }
    }
}

/// A peer that does not answer a renewal: the session continues with its keys.
#[test]
fn an_unanswered_renewal_leaves_the_session_up() {
    let mut configs = [config(Some(at(1))), config(None)];
    configs[0].session.renew_after = Span::secs(2);
    let mut world = World::new(configs, NONE, 3);
    world.run_for(Span::secs(1));
    world.no_hellos = true;
    for n in 0..300 {
        world.put(0, &udp(n, 1000));
        world.run_for(Span::millis(100));
    }
    let counts = world.end(0).session().counts();
    assert_eq!((counts.sessions, counts.renewed, counts.vanished), (1, 0, 0), "{counts:?}");
    assert!(counts.unconfirmed >= 2, "{counts:?}");
    assert_eq!(world.got[1].len(), 300);
}

#[test]
fn a_wrong_key_opens_no_session_and_is_counted() {
    let mut world = World::pair(NONE, 6);
    world.ends[0] = Some(Tunnel::new(config(Some(at(1))), Toy { key: 8 }, [9; 32]));
    world.run_for(Span::secs(30));
    assert_eq!(world.states(), [State::Calling, State::Idle]);
    let counts = world.end(1).session().counts();
    assert!(counts.bad_tag >= 5 && counts.sessions == 0, "{counts:?}");
    assert_eq!(world.path.len(), 0, "no end answers");
}

#[test]
fn every_invalid_datagram_is_counted_by_its_cause() {
    let mut world = World::pair(NONE, 7);
    world.run_for(Span::secs(3));
    let log = world.log.clone();
    let hello = log[0].clone();
    let count = |world: &World| world.end(1).session().counts();
    let before = count(&world);
    let other = at(77);
    let mut version = hello.clone();
    version[1] = 9;
    let mut tag = hello.clone();
    *tag.last_mut().unwrap() ^= 1;
    let welcome = log.iter().find(|bytes| bytes[0] == 2).unwrap();
    for bytes in [&[][..], &hello[..40], &[9; 60], &version, &tag, welcome] {
        world.inject(1, other, bytes);
    }
    let sealed = log.iter().filter(|bytes| bytes[0] == 4).cloned().collect::<Vec<_>>();
    for bytes in &sealed {
        world.inject(1, other, bytes);
    }
    let after = count(&world);
    assert_eq!(after.bad_length - before.bad_length, 2);
    assert_eq!(after.bad_kind - before.bad_kind, 1);
    assert_eq!(after.bad_version - before.bad_version, 1);
    assert_eq!(after.bad_tag - before.bad_tag, 1);
    assert_eq!(after.stale - before.stale, 1);
    assert!(after.replayed > before.replayed && after.other_session > before.other_session);
    assert_eq!(after.sessions, before.sessions);
    assert_eq!(world.end(1).session().peer(), Some(at(0)));
}

#[test]
fn a_replayed_hello_from_another_address_changes_nothing() {
    let mut world = World::pair(NONE, 8);
    world.run_for(Span::secs(1));
    let hello = world.log[0].clone();
    for n in 0..1000_u16 {
        world.inject(1, SocketAddr::from(([203, 0, 113, 5], n)), &hello);
    }
    assert_eq!(world.states(), [State::Up, State::Up]);
    assert_eq!(world.end(1).session().counts().sessions, 1);
    let longest = world.log.iter().rev().take(1000).map(Vec::len).max();
    assert_eq!(longest, Some(hello.len()), "an answer is not longer than its request");
}

#[test]
fn the_send_rate_is_limited_to_the_configured_rate() {
    let rate = Rate::from_bps(8_000_000).unwrap();
    let mut configs = [config(Some(at(1))), config(None)];
    configs[0].rate = Some(rate);
    configs[0].session.window = 1024;
    configs[1].session.window = 1024;
    let mut world = World::new(configs, NONE, 9);
    world.run_for(Span::secs(1));
    let before: usize = world.log.iter().map(|bytes| bytes.len() + 28).sum();
    for n in 0..4000 {
        world.put(0, &udp(n, 1000));
        world.run_for(Span::micros(500));
    }
    let after: usize = world.log.iter().map(|bytes| bytes.len() + 28).sum();
    // Two seconds at 1 MB/s, and the acknowledgements of the other side, whose rate is not limited.
    assert!((1_900_000..2_300_000).contains(&(after - before)), "{}", after - before);
    assert!(world.end(0).counts().queue_full > 0);
}

/// Packets and bytes into one end are those that came out of the other.
#[test]
fn both_ends_count_the_same_packets_and_bytes() {
    let mut world = World::pair(NONE, 11);
    world.run_for(Span::secs(1));
    let mut bytes = 0;
    for (n, len) in [(1, 100), (2, 700), (3, 33)] {
        let packet = udp(n, len);
        bytes += packet.len() as u64;
        world.put(0, &packet);
        world.run_for(Span::millis(100));
    }
    assert_eq!(world.got[1], [1, 2, 3]);
    let [near, far] = [0, 1].map(|i| world.end(i).counts());
    assert_eq!((near.packets_in, near.bytes_in), (3, bytes));
    assert_eq!((far.packets_out, far.bytes_out), (3, bytes));
    assert_eq!((near.packets_out, near.bytes_out, far.packets_in, far.bytes_in), (0, 0, 0, 0));
    assert_eq!((near.not_ip, near.bad_frame, far.not_ip, far.bad_frame), (0, 0, 0, 0));
}

#[test]
fn oversized_and_non_ip_packets_are_counted() {
    let mut world = World::pair(NONE, 10);
    world.run_for(Span::secs(1));
    world.put(0, &udp(1, 1380));
    world.put(0, &[0; 50]);
    world.put(0, &[]);
    let counts = world.end(0).counts();
    assert_eq!((counts.too_long, counts.not_ip), (1, 2));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// For any behaviour of the path: the output is the input in order, without duplicates, and complete in
    /// the end.
    #[test]
    fn delivery_is_ordered_and_complete_on_any_path(
        seed in any::<u64>(),
        lose in 0.0..0.5_f64,
        repeat in 0.0..0.3_f64,
        reorder in 0.0..0.3_f64,
        forge in 0.0..0.2_f64,
    ) {
        let mut world = World::pair(Harm { lose, repeat, reorder, forge }, seed);
        let mut put = 0;
        for _ in 0..400 {
            if world.states() == [State::Up, State::Up] && put < 150 {
                world.put(0, &udp(put, 600));
                world.put(1, &udp(put, 200));
                put += 1;
            }
            world.run_for(Span::millis(20));
        }
        world.harm = NONE;
        world.run_for(Span::secs(20));
        let sessions = world.end(0).session().counts().sessions;
        for got in &world.got {
            prop_assert!(got.is_sorted_by(|a, b| a < b));
        }
        let lost = world.end(0).counts().session_lost + world.end(1).counts().session_lost;
        if sessions == 1 {
            prop_assert_eq!(world.got[0].len(), put as usize);
            prop_assert_eq!(world.got[1].len(), put as usize);
            prop_assert_eq!(lost, 0);
        }
    }

    /// Any datagram may arrive from any address.
    #[test]
    fn arbitrary_datagrams_do_not_disturb_a_session(
        datagrams in proptest::collection::vec((any::<bool>(), proptest::collection::vec(any::<u8>(), 0..160)), 0..40),
    ) {
        let mut world = World::pair(NONE, 11);
        world.run_for(Span::millis(200));
        for (first, bytes) in datagrams {
            world.inject(usize::from(first), at(9), &bytes);
        }
        world.run_for(Span::secs(2));
        prop_assert_eq!(world.states(), [State::Up, State::Up]);
    }
}
