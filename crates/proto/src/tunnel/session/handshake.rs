//! The handshake of a session: hello, welcome, and a sealed message that confirms.

use core::net::SocketAddr;

use super::super::message::{HEAD, Offer, Plain};
use super::super::replay::Replay;
use super::super::seal::{Key, Seal, SessionKeys, TAG};
use super::super::states::{Input, State};
use super::{
    Agreed, CONFIRM, Limit, Live, Notice, SLOWEST, Session, SessionConfig, Turn, pause, sealed_by,
};
use crate::units::{Span, Time};

/// Answers that are stored until they are confirmed; a new one replaces the oldest.
const PENDING: usize = 8;

/// Lifetime of an answer.
const GOOD_FOR: Span = Span::secs(30);

/// Period of cookies; a cookie is valid in its period and the next.
const COOKIE_AGE: Span = Span::secs(30);

/// A call in progress.
pub(super) struct Calling<C> {
    call: C,
    /// First message of Noise, and the identity that this end chose.
    first: Vec<u8>,
    own: u32,
    cookie: [u8; TAG],
    /// Tag of the last hello.
    tag: [u8; TAG],
    pub tries: u32,
    /// When the last hello was sent, and when the next is due.
    sent: Time,
    pub at: Time,
}

/// An answered hello whose sender has not confirmed the answer yet.
pub(super) struct Pending<K> {
    since: Time,
    /// First message of Noise, to recognize a repetition, and its answer.
    first: Vec<u8>,
    welcome: Vec<u8>,
    offer: Offer,
    own: u32,
    keys: K,
}

/// Rate limits for unauthenticated senders.
pub(super) struct Limits {
    /// Answered hellos without a cookie, each of which costs two multiplications on the curve.
    hello: Limit,
    /// Answered hellos with a cookie.
    with_cookie: Limit,
    pub lost: Limit,
    refused: Limit,
    /// One limit for each kind of notice.
    notices: [Limit; 4],
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            hello: Limit::new(Span::millis(200), 8),
            with_cookie: Limit::new(Span::millis(20), 16),
            lost: Limit::new(Span::millis(100), 4),
            refused: Limit::new(Span::secs(1), 2),
            notices: [Limit::new(Span::secs(600), 1); 4],
        }
    }
}

impl<S: Seal> Session<S> {
    /// Unpredictable bytes that were never drawn before.
    pub(super) fn draw(&mut self) -> [u8; 16] {
        self.draws += 1;
        first_half(self.seal.code(Key::Own(&self.secret), &self.draws.to_be_bytes()))
    }

    fn offer(&mut self) -> Offer {
        let [a, b, c, d, ..] = self.draw();
        let SessionConfig { window, mtu, keep_alive, .. } = self.config;
        let keep_alive_ms = u32::try_from(keep_alive.0 / 1_000_000).unwrap_or(u32::MAX);
        let identity = u32::from_be_bytes([a, b, c, d]);
        Offer { window, mtu, keep_alive_ms, identity, end: self.end }
    }

    /// Emits a notice, unless its kind was emitted recently.
    pub(super) fn notice(&mut self, now: Time, notice: Notice) {
        let kind = match notice {
            Notice::OtherKey(_) => 0,
            Notice::RefusedBy(_) => 1,
            Notice::OtherVersion(..) => 2,
            Notice::Reflected(_) => 3,
        };
        if self.limits.notices[kind].take(now) {
            self.notices.push(notice);
        }
    }

    /// Sends a message with its tag, and returns the tag.
    pub(super) fn say(&mut self, to: SocketAddr, message: &Plain<'_>) -> [u8; TAG] {
        let mut datagram = message.write();
        let tag = first_half(self.seal.code(Key::Shared, &datagram));
        datagram.extend_from_slice(&tag);
        self.outbox.push((to, datagram));
        tag
    }

    pub(super) fn on_plain(
        &mut self,
        now: Time,
        from: SocketAddr,
        plain: Plain<'_>,
        datagram: &[u8],
    ) {
        let Some((body, tag)) = datagram.split_last_chunk::<TAG>() else { return };
        let genuine = self.seal.is_tag(body, tag);
        let answers_us = |hello| self.calling.as_ref().is_some_and(|call| call.tag == hello);
        match plain {
            _ if self.state == State::Closed => self.counts.unexpected += 1,
            // An end with another key can prove nothing: its message changes no state and is only reported.
            Plain::Refused { hello } if !genuine && answers_us(hello) => {
                self.counts.bad_tag += 1;
                self.notice(now, Notice::RefusedBy(from));
            }
            Plain::Hello { .. } if !genuine => {
                self.counts.bad_tag += 1;
                self.notice(now, Notice::OtherKey(from));
                if self.config.answers && self.limits.refused.take(now) {
                    self.say(from, &Plain::Refused { hello: *tag });
                }
            }
            _ if !genuine => self.counts.bad_tag += 1,
            Plain::Hello { cookie, noise } => self.on_hello(now, from, (cookie, *tag), noise),
            Plain::Welcome { noise } => self.on_welcome(now, from, noise),
            Plain::Cookie { hello, cookie } if answers_us(hello) => {
                if let Some(calling) = self.calling.as_mut().filter(|call| call.cookie != cookie) {
                    calling.cookie = cookie;
                    self.call(now);
                }
            }
            Plain::Lost { identity } => {
                if self.live.as_ref().is_some_and(|live| live.theirs == identity) {
                    self.counts.forgotten += 1;
                    self.end(now, Input::Silence, Span::ZERO);
                }
            }
            Plain::Cookie { .. } | Plain::Refused { .. } => self.counts.stale += 1,
        }
    }

    fn on_hello(
        &mut self,
        now: Time,
        from: SocketAddr,
        (cookie, tag): ([u8; TAG], [u8; TAG]),
        noise: &[u8],
    ) {
        if self.calling.as_ref().is_some_and(|calling| calling.first == noise) {
            return self.reflected(now, from);
        }
        if !self.config.answers {
            self.counts.unexpected += 1;
            return;
        }
        self.pending.retain(|pending| pending.since + GOOD_FOR > now);
        if let Some(same) = self.pending.iter().find(|pending| pending.first == noise) {
            let welcome = same.welcome.clone();
            self.say(from, &Plain::Welcome { noise: &welcome });
            return;
        }
        if self.is_cookie(now, from, cookie) {
            if !self.limits.with_cookie.take(now) {
                self.counts.flooded += 1;
                return;
            }
        } else if !self.limits.hello.take(now) {
            self.counts.flooded += 1;
            let cookie = self.cookie(now.0 / COOKIE_AGE.0, from);
            self.say(from, &Plain::Cookie { hello: tag, cookie });
            return;
        }
        let call = self.seal.read_call(noise);
        let Some((answer, offer)) = call.and_then(|(a, offer)| Some((a, Offer::read(&offer)?)))
        else {
            self.counts.bad_tag += 1;
            return;
        };
        if offer.end == self.end {
            return self.reflected(now, from);
        }
        let ours = self.offer();
        let Some((keys, welcome)) = self.seal.answer(answer, &ours.write()) else {
            self.counts.bad_tag += 1;
            return;
        };
        if self.pending.len() >= PENDING {
            self.pending.remove(0);
        }
        self.say(from, &Plain::Welcome { noise: &welcome });
        let (first, own) = (noise.to_vec(), ours.identity);
        self.pending.push(Pending { since: now, first, welcome, offer, own, keys });
    }

    fn reflected(&mut self, now: Time, from: SocketAddr) {
        self.counts.reflected += 1;
        self.notice(now, Notice::Reflected(from));
    }

    fn cookie(&self, age: u64, from: SocketAddr) -> [u8; TAG] {
        let bytes = [&b"cookie"[..], &age.to_be_bytes(), &address(from)].concat();
        first_half(self.seal.code(Key::Own(&self.secret), &bytes))
    }

    fn is_cookie(&self, now: Time, from: SocketAddr, cookie: [u8; TAG]) -> bool {
        let age = now.0 / COOKIE_AGE.0;
        // A cookie gives no more than a place in the queue, so a comparison in variable time is safe.
        cookie != [0; TAG]
            && [age, age.saturating_sub(1)].iter().any(|age| self.cookie(*age, from) == cookie)
    }

    fn on_welcome(&mut self, now: Time, from: SocketAddr, noise: &[u8]) {
        let Some(calling) = &mut self.calling else {
            self.counts.stale += 1;
            return;
        };
        let finished = self.seal.finish(&mut calling.call, noise);
        let Some((keys, offer)) = finished.and_then(|(k, offer)| Some((k, Offer::read(&offer)?)))
        else {
            self.counts.stale += 1;
            return;
        };
        let (own, rtt) = (calling.own, now.since(calling.sent));
        if offer.end == self.end {
            return self.reflected(now, from);
        }
        if self.is_up() {
            // The keys of a renewal.
            self.calling = None;
            let mut next = self.begin(now, from, (own, true), keys, &offer, rtt);
            let confirm = confirm_by(&mut next, now);
            self.outbox.push(confirm);
            self.next = Some(next);
        } else if self.step(Input::Welcome) {
            self.calling = None;
            self.live = Some(self.begin(now, from, (own, true), keys, &offer, rtt));
            self.confirm(now);
        }
    }

    /// Handles a sealed message outside the established session: it may confirm a session that this end
    /// answered. Returns whether it does.
    pub(super) fn on_confirm(
        &mut self,
        now: Time,
        from: SocketAddr,
        identity: u32,
        counter: u64,
        datagram: &mut [u8],
    ) -> bool {
        let answers =
            |pending: &Pending<_>| pending.own == identity && pending.since + GOOD_FOR > now;
        let Some(index) = self.pending.iter().position(answers) else { return false };
        let rtt_us = match self.pending[index].keys.open(counter, datagram, HEAD) {
            Some(&[CONFIRM, a, b, c, d]) => u32::from_be_bytes([a, b, c, d]),
            Some(_) => {
                self.counts.bad_body += 1;
                return true;
            }
            None => {
                self.counts.bad_tag += 1;
                return true;
            }
        };
        // Both ends have called at once: both choose the session of the caller with the greater number.
        if let (State::Confirming, Some(live)) = (self.state, &self.live)
            && live.end == self.pending[index].offer.end
            && self.end > live.end
        {
            self.counts.unexpected += 1;
            return true;
        }
        let was_up = self.is_up();
        let end = self.pending[index].offer.end;
        let is_renewal = was_up && self.live.as_ref().is_some_and(|live| live.end == end);
        if self.step(Input::Confirm) {
            let pending = self.pending.swap_remove(index);
            self.counts.restarts += u64::from(was_up && !is_renewal);
            self.calling = None;
            let (own, rtt) = (pending.own, Span::micros(rtt_us.into()));
            let mut live = self.begin(now, from, (own, false), pending.keys, &pending.offer, rtt);
            live.replay.note(counter);
            if is_renewal {
                self.replace(now, live);
            } else {
                (self.next, self.previous) = (None, None);
                self.live = Some(live);
                self.up();
            }
            self.say_alive(now);
        }
        true
    }

    fn begin(
        &self,
        now: Time,
        peer: SocketAddr,
        (own, caller): (u32, bool),
        keys: S::Keys,
        theirs: &Offer,
        rtt: Span,
    ) -> Live<S::Keys> {
        // A peer may offer any value; the agreed value is limited to a sane range.
        let alive = self.config.keep_alive.min(Span::millis(theirs.keep_alive_ms.into()));
        let keep_alive = alive.max(Span::millis(10));
        let agreed = Agreed {
            window: self.config.window.min(theirs.window).max(1),
            mtu: self.config.mtu.min(theirs.mtu),
            keep_alive,
            dead_after: Span(self.config.dead_after.0.max(3 * keep_alive.0)),
            rtt,
            caller,
        };
        Live {
            own,
            theirs: theirs.identity,
            end: theirs.end,
            peer,
            keys,
            counter: 0,
            replay: Replay::default(),
            agreed,
            last_received: now,
            sent: now,
            tries: 0,
            retry: now,
            renew: now + self.config.renew_after,
            renew_count: self.config.renew_count,
        }
    }

    /// The session is up: earlier answers are void.
    pub(super) fn up(&mut self) {
        self.pending.clear();
        self.counts.sessions += 1;
        self.call_at = None;
        self.turn = self.live.as_ref().map(|live| Turn::Began(live.agreed));
    }

    pub(super) fn confirm(&mut self, now: Time) {
        let Some(live) = &mut self.live else { return };
        let confirm = confirm_by(live, now);
        self.outbox.push(confirm);
    }

    pub(super) fn begin_call(&mut self, now: Time) {
        match self.new_call(now) {
            Some(calling) if self.step(Input::Call) => {
                self.calling = Some(calling);
                self.call(now);
            }
            Some(_) => {}
            None => self.call_at = Some(now + SLOWEST),
        }
    }

    /// A call whose first hello is due; `None` if the system provided no key.
    pub(super) fn new_call(&mut self, now: Time) -> Option<Calling<S::Initiator>> {
        let offer = self.offer();
        let (call, first) = self.seal.call(&offer.write())?;
        let (own, none) = (offer.identity, [0; TAG]);
        Some(Calling { call, first, own, cookie: none, tag: none, tries: 0, sent: now, at: now })
    }

    pub(super) fn call(&mut self, now: Time) {
        let (Some(mut calling), Some(peer)) = (self.calling.take(), self.config.peer) else {
            return;
        };
        calling.sent = now;
        calling.at = now + pause(calling.tries);
        calling.tries += 1;
        calling.tag =
            self.say(peer, &Plain::Hello { cookie: calling.cookie, noise: &calling.first });
        self.calling = Some(calling);
    }
}

/// The next confirm under the keys of `live`.
pub(super) fn confirm_by<K: SessionKeys>(live: &mut Live<K>, now: Time) -> (SocketAddr, Vec<u8>) {
    live.retry = now + pause(live.tries);
    live.tries += 1;
    let rtt_us = u32::try_from(live.agreed.rtt.0 / 1000).unwrap_or(u32::MAX);
    sealed_by(live, now, CONFIRM, |out| out.extend_from_slice(&rtt_us.to_be_bytes()))
}

fn first_half(code: [u8; 32]) -> [u8; 16] {
    let mut half = [0; 16];
    half.copy_from_slice(&code[..16]);
    half
}

fn address(of: SocketAddr) -> [u8; 18] {
    let ip = match of.ip() {
        core::net::IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        core::net::IpAddr::V6(v6) => v6,
    };
    let mut bytes = [0; 18];
    bytes[..16].copy_from_slice(&ip.octets());
    bytes[16..].copy_from_slice(&of.port().to_be_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tunnel::tests::{at, config};
    use crate::tunnel::toy::Toy;

    /// A cookie is valid for its requester, from the same port, until the end of the period after its own.
    #[test]
    fn a_cookie_is_good_for_one_address_and_two_ages() {
        let end = Session::new(config(None).session, Toy { key: 7 }, [1; 32]);
        let other = Session::new(config(None).session, Toy { key: 7 }, [2; 32]);
        let cookie = end.cookie(5, at(1));
        let in_age = |age: u64| Time(COOKIE_AGE.0 * age + 1);
        for (age, good) in [(4, false), (5, true), (6, true), (7, false)] {
            assert_eq!(end.is_cookie(in_age(age), at(1), cookie), good, "age {age}");
        }
        let mut port = at(1);
        port.set_port(4501);
        let v6 = SocketAddr::from(([0xfd00, 0, 0, 0, 0, 0, 0, 1], 4500));
        for elsewhere in [at(2), port, v6] {
            assert!(!end.is_cookie(in_age(5), elsewhere, cookie), "{elsewhere}");
        }
        assert!(end.is_cookie(in_age(5), v6, end.cookie(5, v6)));
        assert!(!other.is_cookie(in_age(5), at(1), cookie), "of another end");
        assert!(!end.is_cookie(in_age(5), at(1), [0; TAG]), "none");
    }
}
