//! A handshake with the ciphers of `lasthop link`, with an attacker who changes one bit of one message or its
//! length. No network is used.

use std::net::SocketAddr;

use lasthop_live::tunnel::seal::Ciphers;
use lasthop_proto::tunnel::session::{Session, SessionConfig};
use lasthop_proto::units::{Span, Time};

fn at(n: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, n], 4747))
}

fn end(peer: Option<SocketAddr>, secret: u8) -> Session<Ciphers> {
    let config = SessionConfig {
        peer,
        answers: true,
        window: 256,
        mtu: 1395,
        keep_alive: Span::secs(1),
        dead_after: Span::secs(15),
        renew_after: Span::secs(120),
        renew_count: 1 << 32,
        worn_after: 1 << 48,
    };
    Session::new(config, Ciphers::new(Some([7; 32])), [secret; 32])
}

/// One step of a handshake: delivers the message of `from` to `to`, changed by `harm`.
fn pass(
    from: &mut Session<Ciphers>,
    to: &mut Session<Ciphers>,
    place: SocketAddr,
    harm: impl FnOnce(&mut Vec<u8>),
) {
    let mut outbox = from.take_outbox();
    assert_eq!(outbox.len(), 1, "a handshake sends one message at a time");
    let (_, mut bytes) = outbox.remove(0);
    harm(&mut bytes);
    to.on_datagram(Time::ZERO + Span::millis(20), place, &mut bytes);
}

/// Runs a handshake of hello, welcome and confirm, with the callee's answer to the last. `harm` changes
/// message number `nth`. Returns the number of sent messages, and both ends.
fn handshake(nth: usize, harm: &dyn Fn(&mut Vec<u8>)) -> (usize, [Session<Ciphers>; 2]) {
    let (mut caller, mut callee) = (end(Some(at(2)), 1), end(None, 2));
    caller.on_wake(Time::ZERO);
    for step in 0..4 {
        let is_ours = step % 2 == 0;
        let (from, to) =
            if is_ours { (&mut caller, &mut callee) } else { (&mut callee, &mut caller) };
        let place = at(if is_ours { 1 } else { 2 });
        pass(from, to, place, |bytes| {
            if step == nth {
                harm(bytes)
            }
        });
        if step == nth {
            return (step + 1, [caller, callee]);
        }
    }
    (4, [caller, callee])
}

/// Length of each message.
fn lengths() -> Vec<usize> {
    (0..4)
        .map(|nth| {
            let len = std::cell::Cell::new(0);
            handshake(nth, &|bytes| len.set(bytes.len()));
            len.get()
        })
        .collect()
}

/// An end that receives a changed message has no session from it: the callee before the confirm, the caller
/// before the callee's first message under the session keys.
fn refused(nth: usize, harm: &dyn Fn(&mut Vec<u8>), case: &str) {
    let (_, [caller, callee]) = handshake(nth, harm);
    let hit = if [0, 2].contains(&nth) { &callee } else { &caller };
    assert!(!hit.is_up(), "{case}");
    assert_eq!(hit.counts().sessions, 0, "{case}");
    if nth < 3 {
        assert!(!caller.is_up() && !callee.is_up(), "{case}");
    }
}

#[test]
fn an_untouched_handshake_leads_to_a_session() {
    let (messages, [caller, callee]) = handshake(9, &|_| {});
    assert_eq!(messages, 4);
    assert!(caller.is_up() && callee.is_up());
}

#[test]
fn every_bit_of_every_message_counts() {
    for (nth, len) in lengths().into_iter().enumerate() {
        assert!(len >= 30);
        for bit in 0..len * 8 {
            let case = format!("message {nth}, bit {bit}");
            refused(nth, &move |bytes| bytes[bit / 8] ^= 1 << (bit % 8), &case);
        }
    }
}

#[test]
fn so_does_the_length() {
    for (nth, len) in lengths().into_iter().enumerate() {
        for cut in 0..len {
            refused(nth, &move |bytes| bytes.truncate(cut), &format!("message {nth}, {cut} bytes"));
        }
        refused(nth, &|bytes| bytes.push(0), &format!("message {nth}, longer"));
    }
}

#[test]
fn a_message_of_another_handshake_is_none_of_this() {
    let (mut other, mut third) = (end(Some(at(2)), 3), end(None, 4));
    other.on_wake(Time::ZERO);
    let mut messages = Vec::new();
    for step in 0..4 {
        let (from, to) =
            if step % 2 == 0 { (&mut other, &mut third) } else { (&mut third, &mut other) };
        pass(from, to, at(9), |bytes| messages.push(bytes.clone()));
    }
    // A hello is valid if its sender has the key; without that caller it must not lead to a session.
    for (nth, message) in messages.into_iter().enumerate().skip(1) {
        refused(nth, &move |bytes| bytes.clone_from(&message), &format!("message {nth}"));
    }
}

/// Checks the harness: if the genuine message follows a changed one, a session is established.
#[test]
fn a_forgery_does_not_end_a_call() {
    let (mut caller, mut callee) = (end(Some(at(2)), 1), end(None, 2));
    caller.on_wake(Time::ZERO);
    pass(&mut caller, &mut callee, at(1), |_| {});
    let (_, welcome) = callee.take_outbox().remove(0);
    for bit in 0..welcome.len() * 8 {
        let mut forged = welcome.clone();
        forged[bit / 8] ^= 1 << (bit % 8);
        caller.on_datagram(Time::ZERO + Span::millis(10), at(2), &mut forged);
    }
    caller.on_datagram(Time::ZERO + Span::millis(20), at(2), &mut welcome.clone());
    pass(&mut caller, &mut callee, at(1), |_| {});
    pass(&mut callee, &mut caller, at(2), |_| {});
    assert!(caller.is_up() && callee.is_up());
}
