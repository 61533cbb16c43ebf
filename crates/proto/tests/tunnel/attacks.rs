//! Tests of a tunnel under attack, and after changes of the path or an end.

use core::net::SocketAddr;
use std::cell::Cell;
use std::rc::Rc;

use super::seal::{Key, Seal, TAG};
use super::session::{Notice, Session, SessionConfig};
use super::states::State;
use super::tests::{Harm, NONE, World, at, config, udp};
use super::toy::{Toy, ToyKeys};
use super::*;

const UP: [State; 2] = [State::Up, State::Up];

#[test]
fn reflected_messages_create_no_session() {
    for answers in [true, false] {
        let mut alone = config(Some(at(1)));
        alone.session.answers = answers;
        let mut world = World::new([alone, config(None)], NONE, 1);
        world.echo = true;
        world.run_for(Span::secs(60));
        assert_eq!(world.session(0).sessions, 0);
        assert!(world.session(0).reflected > 10);
        assert_eq!(world.notices[0], [Notice::Reflected(at(1))], "said once");
        // A hello from an earlier call as well.
        let hello = world.log[0].clone();
        let mut later = World::pair(Harm { lose: 1.0, ..NONE }, 1);
        later.run_for(Span::millis(100));
        later.start(0, config(Some(at(1))));
        later.inject(0, at(1), &hello);
        assert_eq!(later.end(0).session().state(), State::Idle);
    }
}

#[test]
fn a_caller_only_end_ignores_incoming_calls() {
    let mut caller = config(Some(at(1)));
    caller.session.answers = false;
    let mut world = World::new([caller, config(Some(at(0)))], NONE, 1);
    world.run_for(Span::secs(3));
    assert_eq!(world.states(), UP);
    assert!(world.end(0).session().agreed().unwrap().caller);
    assert!(world.session(0).unexpected > 0);
}

#[test]
fn replayed_messages_change_no_session_and_deliver_nothing() {
    let mut world = World::pair(NONE, 1);
    world.run_for(Span::secs(1));
    for n in 0..50 {
        world.put(0, &udp(n, 500));
        world.run_for(Span::millis(5));
    }
    let (log, before) = (world.log.clone(), [world.session(0), world.session(1)]);
    for bytes in &log {
        for (i, from) in [(0, at(1)), (1, at(0)), (1, at(66)), (0, at(66))] {
            world.inject(i, from, bytes);
        }
    }
    world.run_for(Span::secs(1));
    assert_eq!(world.got[1].len(), 50);
    for (i, before) in before.into_iter().enumerate() {
        let now = world.session(i);
        assert_eq!((now.sessions, now.moved), (before.sessions, before.moved), "{i}");
        assert_eq!(world.end(i).session().peer(), Some(at(1 - i as u8)));
    }
}

#[test]
fn messages_of_other_versions_are_not_answered() {
    let mut world = World::pair(NONE, 1);
    world.run_for(Span::secs(1));
    let sent = world.log.len();
    for version in [0, 1, 3] {
        for kind in [1, 2, 3, 5, 6, 7] {
            // The length of the first version.
            let mut bytes = vec![0; 110];
            (bytes[0], bytes[1]) = (kind, version);
            let code = Toy { key: 7 }.code(Key::Shared, &bytes[..110 - TAG]);
            bytes[110 - TAG..].copy_from_slice(&code[..TAG]);
            world.inject(1, at(9), &bytes);
        }
    }
    assert_eq!(world.log.len(), sent, "no datagram is answered");
    assert_eq!(world.session(1).bad_version, 18);
    assert_eq!(world.notices[1], [Notice::OtherVersion(at(9), 0)], "said once");
    assert_eq!(world.states(), UP);
}

#[test]
fn a_different_key_is_reported_once_by_both_ends() {
    let mut world = World::pair(NONE, 6);
    world.ends[0] = Some(Tunnel::new(config(Some(at(1))), Toy { key: 8 }, [9; 32]));
    world.run_for(Span::secs(300));
    assert_eq!(world.notices[0], [Notice::RefusedBy(at(1))]);
    assert_eq!(world.notices[1], [Notice::OtherKey(at(0))]);
    assert_eq!(world.session(0).sessions + world.session(1).sessions, 0);
    let refusals = world.log.iter().filter(|bytes| bytes[0] == 7).count();
    assert!((2..=302).contains(&refusals), "one a second at most: {refusals}");
}

#[test]
fn a_peer_address_change_is_followed_at_once() {
    let mut world = World::pair(NONE, 1);
    world.run_for(Span::secs(1));
    // As behind a NAT that assigns another port: the end does not notice.
    for (i, n) in [(0, 50), (1, 51), (0, 52)] {
        world.places[i] = at(n);
        world.put(i, &udp(u32::from(n), 500));
        world.run_for(Span::millis(50));
        assert_eq!(world.end(1 - i).session().peer(), Some(at(n)));
        world.put(1 - i, &udp(u32::from(n), 500));
        world.run_for(Span::millis(50));
        assert_eq!(world.got[i].last(), Some(&u32::from(n)));
        assert_eq!(world.got[1 - i].last(), Some(&u32::from(n)));
    }
    // Silent ends are found by their keep-alive.
    world.places[0] = at(53);
    world.run_for(Span::millis(1100));
    assert_eq!(world.end(1).session().peer(), Some(at(53)));
    assert_eq!((world.session(0).sessions, world.session(0).moved), (1, 1));
}

#[test]
fn late_packets_do_not_restore_the_old_peer_address() {
    let mut world = World::pair(NONE, 1);
    world.run_for(Span::secs(1));
    world.harm = Harm { lose: 1.0, ..NONE };
    world.put(0, &udp(1, 500));
    let late = world.log.last().unwrap().clone();
    world.harm = NONE;
    world.places[0] = at(50);
    world.put(0, &udp(2, 500));
    world.run_for(Span::millis(15));
    world.inject(1, at(0), &late);
    assert_eq!(world.end(1).session().peer(), Some(at(50)));
}

#[test]
fn either_end_can_restart_and_reconnect() {
    for restarted in [0, 1] {
        for busy in [0, 1] {
            let mut world = World::pair(NONE, 2);
            world.run_for(Span::secs(10));
            let peer = (restarted == 0).then_some(at(1));
            world.start(restarted, config(peer));
            // A passive end has no peer address: it is found when the peer sends, a keep-alive later at most.
            let wait = if restarted == 1 && busy == 1 { 1000 } else { 0 };
            world.put(busy, &udp(5, 500));
            world.run_for(Span::millis(wait + 150));
            assert_eq!(world.states(), UP, "{restarted} {busy}");
            world.run_for(Span::millis(300));
            world.put(busy, &udp(6, 500));
            world.run_for(Span::millis(100));
            assert_eq!(world.got[1 - busy].last(), Some(&6));
        }
    }
}

#[test]
fn forged_lost_messages_do_not_end_a_session() {
    let mut world = World::pair(NONE, 2);
    world.run_for(Span::secs(1));
    let sealed = world.log.iter().rfind(|bytes| bytes[0] == 4).unwrap().clone();
    let named = u32::from_be_bytes(sealed[1..5].try_into().unwrap());
    // Of another session, and with another key.
    for (key, identity) in [(7, 1), (8, named)] {
        let mut bytes = message::Plain::Lost { identity }.write();
        let code = Toy { key }.code(Key::Shared, &bytes);
        bytes.extend_from_slice(&code[..TAG]);
        world.inject(0, at(1), &bytes);
        world.inject(1, at(0), &bytes);
    }
    // An established end cannot be made to send it either.
    let sent = world.log.len();
    let mut stranger = sealed.clone();
    stranger[1] ^= 1;
    world.inject(0, at(66), &stranger);
    world.inject(1, at(66), &stranger);
    assert_eq!(world.log.len(), sent);
    world.run_for(Span::secs(1));
    assert_eq!(world.states(), UP);
    assert_eq!(world.session(0).sessions, 1);
}

/// Counts expensive operations.
struct Counting(Toy, Rc<Cell<u32>>);

impl Seal for Counting {
    type Initiator = Vec<u8>;
    type Responder = Vec<u8>;
    type Keys = ToyKeys;

    fn code(&self, key: Key<'_>, bytes: &[u8]) -> [u8; 32] {
        self.0.code(key, bytes)
    }

    fn is_tag(&self, bytes: &[u8], tag: &[u8; TAG]) -> bool {
        self.0.is_tag(bytes, tag)
    }

    fn call(&self, offer: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
        self.0.call(offer)
    }

    fn read_call(&self, first: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
        self.0.read_call(first)
    }

    fn answer(&self, answer: Vec<u8>, offer: &[u8]) -> Option<(ToyKeys, Vec<u8>)> {
        self.1.set(self.1.get() + 1);
        self.0.answer(answer, offer)
    }

    fn finish(&self, call: &mut Vec<u8>, second: &[u8]) -> Option<(ToyKeys, Vec<u8>)> {
        self.0.finish(call, second)
    }
}

/// A new hello from an end with the key.
fn fresh(n: u8) -> Vec<u8> {
    let mut session = Session::new(config(Some(at(1))).session, Toy { key: 7 }, [n; 32]);
    session.on_wake(Time::ZERO);
    session.take_outbox().remove(0).1
}

#[test]
fn hello_floods_cost_little_and_block_no_valid_caller() {
    let answered = Rc::new(Cell::new(0));
    let seal = Counting(Toy { key: 7 }, answered.clone());
    let mut end = Session::new(config(None).session, seal, [1; 32]);
    let hellos: Vec<Vec<u8>> = (100..200).map(fresh).collect();
    let (mut now, mut bytes_in, mut bytes_out) = (Time::ZERO, 0, 0);
    for n in 0..100_000_u32 {
        now += Span::micros(100);
        let from = SocketAddr::from((n.to_be_bytes(), 4500));
        let mut hello = hellos[n as usize % 100].clone();
        bytes_in += hello.len();
        end.on_datagram(now, from, &mut hello);
        bytes_out += end.take_outbox().iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
    }
    // Ten seconds: five a second, and the first eight.
    assert!((50..=60).contains(&answered.get()), "{}", answered.get());
    assert!(bytes_out <= bytes_in);
    assert!(end.counts().flooded > 90_000);
    // During the flood an end with the key connects by means of a cookie.
    let mut caller = Session::new(config(Some(at(1))).session, Toy { key: 7 }, [2; 32]);
    for n in 0..2000_u32 {
        now += Span::millis(1);
        end.on_datagram(now, at(77), &mut hellos[n as usize % 100].clone());
        end.take_outbox();
        caller.on_wake(now);
        for (_, mut bytes) in caller.take_outbox() {
            end.on_datagram(now, at(0), &mut bytes);
        }
        for (_, mut bytes) in end.take_outbox() {
            caller.on_datagram(now, at(1), &mut bytes);
        }
    }
    assert!(caller.is_up() && end.is_up());
    assert_eq!(end.peer(), Some(at(0)));
}

#[test]
fn path_mtu_changes_are_detected_without_any_report() {
    let mut world = World::pair(Harm { lose: 0.05, ..NONE }, 4);
    world.run_for(Span::secs(1));
    let whole = world.end(0).mtu();
    for width in [1400, 1280, 900, 1500] {
        world.width = width;
        for n in 0..900 {
            world.put(0, &udp(n, usize::from(world.end(0).mtu()) - 28));
            world.run_for(Span::millis(100));
        }
        let path = world.end(0).path();
        assert!(path <= width && path + 4 > width, "{width}: {path}");
        assert_eq!(world.got[1].len(), 900, "{width}: packets that are too long are fragmented");
        world.got[1].clear();
    }
    assert_eq!(world.end(0).mtu(), whole);
    assert_eq!(world.session(0).sessions, 1);
}

#[test]
fn a_false_path_mtu_report_changes_nothing() {
    let mut world = World::pair(NONE, 4);
    world.run_for(Span::secs(1));
    let mtu = world.end(0).mtu();
    for lie in [68, 576, 1000] {
        let now = world.now;
        world.ends[0].as_mut().unwrap().doubt(now, lie);
        world.run_for(Span::millis(200));
        assert_eq!((world.end(0).mtu(), world.end(0).path()), (mtu, 1500));
    }
}

/// A caller without an answer, and its hello.
fn caller(n: u8) -> (Session<Toy>, Vec<u8>) {
    let mut session = Session::new(config(Some(at(1))).session, Toy { key: 7 }, [n; 32]);
    session.on_wake(Time::ZERO);
    let hello = session.take_outbox().remove(0).1;
    (session, hello)
}

/// Immediate answer of `end`, if any.
fn answer(end: &mut Session<Toy>, now: Time, from: SocketAddr, bytes: &[u8]) -> Option<Vec<u8>> {
    end.on_datagram(now, from, &mut bytes.to_vec());
    let mut sent = end.take_outbox();
    assert!(sent.len() < 2);
    sent.pop().map(|(_, bytes)| bytes)
}

fn answering() -> Session<Toy> {
    Session::new(config(None).session, Toy { key: 7 }, [1; 32])
}

fn before(span: Span) -> Span {
    Span(span.0 - 1)
}

const HELLO: u8 = 1;
const WELCOME: u8 = 2;

#[test]
fn an_unanswered_welcome_is_confirmed_six_times_and_counted() {
    let (mut caller, hello) = caller(9);
    let welcome = answer(&mut answering(), Time::ZERO, at(0), &hello).unwrap();
    let mut sent = usize::from(answer(&mut caller, Time::ZERO, at(1), &welcome).is_some());
    while caller.state() == State::Confirming {
        assert_eq!(caller.counts().unconfirmed, 0);
        let now = caller.next_wake().unwrap();
        caller.on_wake(now);
        sent += caller.take_outbox().len();
    }
    assert_eq!((sent, caller.state()), (6, State::Idle));
    let counts = caller.counts();
    assert_eq!((counts.unconfirmed, counts.vanished, counts.sessions), (1, 0, 0));
}

/// Eight in a row without a cookie and sixteen with one.
#[test]
fn excess_hellos_need_cookies_and_further_ones_are_dropped() {
    let mut end = answering();
    for n in 0..8 {
        let sent = answer(&mut end, Time::ZERO, at(n), &caller(50 + n).1).unwrap();
        assert_eq!((sent[0], end.counts().flooded), (WELCOME, 0), "{n}");
    }
    for n in 0..17 {
        let (mut caller, hello) = caller(100 + n);
        let cookie = answer(&mut end, Time::ZERO, at(n), &hello).unwrap();
        assert_eq!(end.counts().flooded, u64::from(n) + 1);
        let again = answer(&mut caller, Time::ZERO, at(1), &cookie).unwrap();
        assert_eq!(again[0], HELLO);
        assert!(answer(&mut caller, Time::ZERO, at(1), &cookie).is_none(), "the same once more");
        // The cookie is invalid from another address.
        let sent = answer(&mut end, Time::ZERO, at(n), &again);
        assert_eq!(sent.map(|sent| sent[0]), (n < 16).then_some(WELCOME), "{n}");
    }
    assert_eq!(end.counts().flooded, 18);
}

/// Cookies change every 30 s, and the previous one is still valid; a cookie is invalid from another address.
#[test]
fn a_cookie_is_good_for_its_half_minute_and_the_next() {
    let age = Span::secs(30);
    for (made, used, from, good) in [
        (Span::ZERO, before(age + age), 0, true),
        (Span::ZERO, age + age, 0, false),
        (before(age), before(age + age), 0, true),
        (before(age), age + age, 0, false),
        (age, age + age, 0, true),
        (Span::ZERO, Span::ZERO, 2, false),
    ] {
        let mut end = answering();
        let flood = |end: &mut Session<Toy>, at_: Span, first: u8| {
            (0..8).for_each(|n| _ = answer(end, Time::ZERO + at_, at(9), &fresh(first + n)));
        };
        flood(&mut end, made, 50);
        let (mut caller, hello) = caller(100);
        let cookie = answer(&mut end, Time::ZERO + made, at(0), &hello).unwrap();
        let again = answer(&mut caller, Time::ZERO, at(1), &cookie).unwrap();
        flood(&mut end, used, 70);
        let sent = answer(&mut end, Time::ZERO + used, at(from), &again).unwrap();
        assert_eq!(sent[0] == WELCOME, good, "{made:?} {used:?} {from}");
    }
}

/// The answer to a repeated hello is the same for half a minute, unless eight other hellos arrived since.
#[test]
fn a_repeated_hello_gets_the_cached_welcome() {
    for (others, after, same) in [
        (0, before(Span::secs(30)), true),
        (0, Span::secs(30), false),
        (7, Span::secs(8), true),
        (8, Span::secs(8), false),
    ] {
        let mut end = answering();
        let hello = fresh(100);
        let first = answer(&mut end, Time::ZERO, at(0), &hello).unwrap();
        for n in 0..others {
            let now = Time::ZERO + Span::millis(500 * (u64::from(n) + 1));
            answer(&mut end, now, at(9), &fresh(n + 50)).unwrap();
        }
        let again = answer(&mut end, Time::ZERO + after, at(0), &hello).unwrap();
        assert_eq!((again[0], again == first), (WELCOME, same), "{others} {after:?}");
    }
}

#[test]
fn both_ends_agree_on_the_smaller_offer() {
    let of = |change: &dyn Fn(&mut SessionConfig)| {
        let mut configs = [config(Some(at(1))), config(None)];
        change(&mut configs[1].session);
        let mut world = World::new(configs, NONE, 1);
        world.run_for(Span::secs(1));
        [0, 1].map(|i| {
            let agreed = world.end(i).session().agreed().unwrap();
            (agreed.window, agreed.mtu, agreed.keep_alive, agreed.dead_after)
        })
    };
    let (second, five) = (Span::secs(1), Span::secs(5));
    assert_eq!(of(&|_| {}), [(64, 1400, second, five); 2]);
    assert_eq!(of(&|c| (c.window, c.mtu) = (63, 1399)), [(63, 1399, second, five); 2]);
    assert_eq!(of(&|c| (c.window, c.mtu) = (65, 1401)), [(64, 1400, second, five); 2]);
    // A window of one packet, ten milliseconds and three keep-alives are the minima.
    let least = [(1, 1400, Span::millis(10), five); 2];
    assert_eq!(of(&|c| (c.window, c.keep_alive) = (0, Span::millis(9))), least);
    let dead = Span::secs(2);
    let patient = [(64, 1400, second, five), (64, 1400, second, Span::secs(3))];
    assert_eq!(of(&|c| (c.keep_alive, c.dead_after) = (dead, dead)), patient);
}
