//! The session between the two ends of a tunnel: it authenticates the peer, detects its absence, and rejects
//! replays.
//!
//! A handshake of two messages, hello and welcome, is Noise (see [`super::seal`]); a sealed message confirms
//! it. Before the confirmation the callee stores only a few of its answers, and an existing session
//! continues. Hellos above the rate limit must present a cookie, which costs a code and no memory.
//!
//! There is at most one session. Datagrams outside it are counted by reason and dropped. The newest valid
//! message defines the peer's address.

mod handshake;
mod renewal;
mod terms;

use core::net::SocketAddr;

use super::limit::Limit;
use super::message::{self, HEAD, Message, OVERHEAD, Plain, Unreadable};
use super::replay::{Refused, Replay};
use super::seal::{Seal, SessionKeys};
use super::states::{Input, State};
use crate::units::{Span, Time};

use handshake::{Calling, Limits, Pending};
pub use terms::{Agreed, Notice, SessionConfig, SessionCounts, Turn};

/// First interval between two hellos or confirms; it doubles up to [`EAGER`].
const FIRST_RETRY: Span = Span::millis(200);

/// Longest interval while the peer is likely to return.
const EAGER: Span = Span::millis(500);

/// Number of hellos at that interval; then one every [`SLOWEST`].
const EAGER_HELLOS: u32 = 120;

/// Longest interval between two attempts.
const SLOWEST: Span = Span::secs(4);

/// Consecutive unanswered confirms before the handshake restarts.
const CONFIRMS: u32 = 6;

/// Unanswered hellos of a renewal before it is postponed.
const RENEWAL_HELLOS: u32 = 8;

/// Time after a renewal during which messages under the old keys are accepted.
const OVERLAP: Span = Span::secs(5);

/// Kinds of sealed bodies.
const FRAME: u8 = 0;
const ALIVE: u8 = 1;
const GOODBYE: u8 = 2;
/// The caller has received the welcome; with its round-trip time in microseconds.
const CONFIRM: u8 = 3;
/// Probe for a datagram of this length.
const PROBE: u8 = 4;
/// Answer to a probe: a datagram of this length has arrived.
const PROBED: u8 = 5;

/// Result of a datagram.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Opened<'a> {
    /// No data for the link layer.
    Nothing,
    /// A frame of the peer's link layer.
    Frame(&'a [u8]),
    /// The peer has received a probe of this length.
    Probed(u16),
}

/// A session with its keys.
struct Live<K> {
    /// Identity that this end chose, and the one that the peer chose.
    own: u32,
    theirs: u32,
    /// Random number of the peer's process.
    end: [u8; 16],
    peer: SocketAddr,
    keys: K,
    counter: u64,
    replay: Replay,
    agreed: Agreed,
    last_received: Time,
    sent: Time,
    /// Number of confirms sent, and when the next is due.
    tries: u32,
    retry: Time,
    /// When the caller renews the keys: at a time, and at a count of messages.
    renew: Time,
    renew_count: u64,
}

/// Seals a message of `kind` whose body `write` writes; returns destination and datagram.
fn sealed_by<K: SessionKeys>(
    live: &mut Live<K>,
    now: Time,
    kind: u8,
    write: impl FnOnce(&mut Vec<u8>),
) -> (SocketAddr, Vec<u8>) {
    let mut datagram = Vec::with_capacity(OVERHEAD + 1600);
    datagram.extend_from_slice(&message::head(live.theirs, live.counter));
    datagram.push(kind);
    write(&mut datagram);
    live.keys.seal(live.counter, &mut datagram, HEAD);
    live.counter += 1;
    live.sent = now;
    (live.peer, datagram)
}

/// One end of a session.
pub struct Session<S: Seal> {
    config: SessionConfig,
    seal: S,
    secret: [u8; 32],
    /// Number of values derived from the secret.
    draws: u64,
    /// Random number of this process.
    end: [u8; 16],
    state: State,
    calling: Option<Calling<S::Initiator>>,
    /// Answered hellos.
    pending: Vec<Pending<S::Keys>>,
    live: Option<Live<S::Keys>>,
    /// The keys that will replace those of `live` once the peer uses them.
    next: Option<Live<S::Keys>>,
    /// The keys before those of `live`, for messages in flight, until [`OVERLAP`] is over.
    previous: Option<(Live<S::Keys>, Time)>,
    /// When to call, if there is no session and a peer to call.
    call_at: Option<Time>,
    turn: Option<Turn>,
    outbox: Vec<(SocketAddr, Vec<u8>)>,
    counts: SessionCounts,
    limits: Limits,
    notices: Vec<Notice>,
}

impl<S: Seal> Session<S> {
    /// Asserts the invariants of keys and counts.
    pub fn check(&self) {
        debug_assert!(
            self.call_at.is_none() || self.config.peer.is_some(),
            "a call without a peer"
        );
        debug_assert!(self.next.is_none() || self.live.is_some(), "new keys replace older ones");
        for live in self.live.iter().chain(&self.next) {
            debug_assert!(live.end != self.end, "a session with itself");
        }
    }

    /// Creates a session that calls at once if it has a peer. `secret` must be 32 secret bytes that were
    /// never used before: all fresh values derive from them.
    pub fn new(config: SessionConfig, seal: S, secret: [u8; 32]) -> Session<S> {
        let call_at = config.peer.map(|_| Time::ZERO);
        let mut session = Session {
            config,
            seal,
            secret,
            draws: 0,
            end: [0; 16],
            state: State::Idle,
            calling: None,
            pending: Vec::new(),
            live: None,
            next: None,
            previous: None,
            call_at,
            turn: None,
            outbox: Vec::new(),
            counts: SessionCounts::default(),
            limits: Limits::default(),
            notices: Vec::new(),
        };
        session.end = session.draw();
        session
    }

    /// State of the session.
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether frames may be sent.
    pub fn is_up(&self) -> bool {
        self.state == State::Up
    }

    /// Agreed terms, while it is up.
    pub fn agreed(&self) -> Option<Agreed> {
        self.live.as_ref().filter(|_| self.is_up()).map(|live| live.agreed)
    }

    /// Address of the peer, while it is up.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.live.as_ref().filter(|_| self.is_up()).map(|live| live.peer)
    }

    /// Time since the last message of the peer.
    pub fn silent(&self, now: Time) -> Span {
        self.live.as_ref().map_or(Span::ZERO, |live| now.since(live.last_received))
    }

    /// The counts.
    pub fn counts(&self) -> SessionCounts {
        self.counts
    }

    /// Takes the change since the last call.
    pub fn take_turn(&mut self) -> Option<Turn> {
        self.turn.take()
    }

    /// Takes the datagrams to be sent.
    pub fn take_outbox(&mut self) -> Vec<(SocketAddr, Vec<u8>)> {
        core::mem::take(&mut self.outbox)
    }

    /// Takes the notices for the user.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        core::mem::take(&mut self.notices)
    }

    /// Takes a transition of the table, and returns whether there is one.
    fn step(&mut self, input: Input) -> bool {
        match self.state.next(input) {
            Some(state) => {
                self.state = state;
                true
            }
            None => {
                self.counts.unexpected += 1;
                false
            }
        }
    }

    /// Accepts a datagram, which it changes in place.
    pub fn on_datagram<'a>(
        &mut self,
        now: Time,
        from: SocketAddr,
        datagram: &'a mut [u8],
    ) -> Opened<'a> {
        match message::read(datagram) {
            Ok(Message::Sealed { identity, counter }) => {
                return self.on_sealed(now, from, identity, counter, datagram);
            }
            Ok(Message::Plain(plain)) => self.on_plain(now, from, plain, datagram),
            Err(Unreadable::Length) => self.counts.bad_length += 1,
            Err(Unreadable::Kind) => self.counts.bad_kind += 1,
            Err(Unreadable::Version(version)) => {
                self.counts.bad_version += 1;
                self.notice(now, Notice::OtherVersion(from, version));
            }
        }
        Opened::Nothing
    }

    fn on_sealed<'a>(
        &mut self,
        now: Time,
        from: SocketAddr,
        identity: u32,
        counter: u64,
        datagram: &'a mut [u8],
    ) -> Opened<'a> {
        if self.next.as_ref().is_some_and(|next| next.own == identity) {
            self.renewed(now, counter, datagram);
        }
        let is_previous = |(old, until): &(Live<_>, Time)| old.own == identity && now < *until;
        if self.previous.as_ref().is_some_and(is_previous) {
            return self.on_previous(counter, datagram);
        }
        let Some(live) = self.live.as_mut().filter(|live| live.own == identity) else {
            if !self.on_confirm(now, from, identity, counter, datagram) {
                self.counts.other_session += 1;
                // An end without a session may report it, so that the peer need not wait for its timeout.
                if matches!(self.state, State::Idle | State::Calling) && self.limits.lost.take(now)
                {
                    self.say(from, &Plain::Lost { identity });
                }
            }
            return Opened::Nothing;
        };
        if let Err(refused) = live.replay.check(counter) {
            match refused {
                Refused::Twice => self.counts.replayed += 1,
                Refused::TooOld => self.counts.too_old += 1,
            }
            return Opened::Nothing;
        }
        let len = datagram.len();
        let Some(body) = live.keys.open(counter, datagram, HEAD) else {
            self.counts.bad_tag += 1;
            return Opened::Nothing;
        };
        if from != live.peer && live.replay.is_newest(counter) {
            live.peer = from;
            self.counts.moved += 1;
        }
        live.replay.note(counter);
        live.last_received = now;
        if self.state == State::Confirming && self.step(Input::Heard) {
            self.up();
        }
        match body.split_first() {
            Some((&FRAME, frame)) => return Opened::Frame(frame),
            Some((&ALIVE, [])) => {}
            Some((&GOODBYE, [])) => {
                self.counts.goodbyes += 1;
                self.end(now, Input::Goodbye, FIRST_RETRY);
            }
            // This end's answer was lost.
            Some((&CONFIRM, _)) => self.say_alive(now),
            Some((&PROBE, _)) => {
                let len = u16::try_from(len).unwrap_or(u16::MAX).to_be_bytes();
                self.say_sealed(now, PROBED, |out| out.extend_from_slice(&len));
            }
            Some((&PROBED, &[high, low])) => {
                return Opened::Probed(u16::from_be_bytes([high, low]));
            }
            _ => self.counts.bad_body += 1,
        }
        Opened::Nothing
    }

    /// Handles a message under the keys of a renewal: a genuine one activates them.
    fn renewed(&mut self, now: Time, counter: u64, datagram: &[u8]) {
        let Some(next) = self.next.take() else { return };
        // The caller opens it again and counts the fault.
        if next.keys.open(counter, &mut datagram.to_vec(), HEAD).is_none() {
            self.next = Some(next);
            return;
        }
        self.replace(now, next);
    }

    /// Makes `next` the session. The link layer continues, unless the peer is another process.
    fn replace(&mut self, now: Time, next: Live<S::Keys>) {
        let same = self.live.as_ref().is_some_and(|live| live.end == next.end);
        let old = self.live.replace(next);
        self.calling = None;
        self.next = None;
        if !same {
            return self.up();
        }
        self.counts.renewed += 1;
        self.previous = old.map(|old| (old, now + OVERLAP));
    }

    /// Handles a message under the keys before the last renewal. Only frames matter.
    fn on_previous<'a>(&mut self, counter: u64, datagram: &'a mut [u8]) -> Opened<'a> {
        let Some((old, _)) = &mut self.previous else { return Opened::Nothing };
        if let Err(refused) = old.replay.check(counter) {
            match refused {
                Refused::Twice => self.counts.replayed += 1,
                Refused::TooOld => self.counts.too_old += 1,
            }
            return Opened::Nothing;
        }
        let Some(body) = old.keys.open(counter, datagram, HEAD) else {
            self.counts.bad_tag += 1;
            return Opened::Nothing;
        };
        old.replay.note(counter);
        match body.split_first() {
            Some((&FRAME, frame)) => Opened::Frame(frame),
            _ => Opened::Nothing,
        }
    }

    /// Ends the session; the next call follows after `pause`.
    fn end(&mut self, now: Time, input: Input, pause: Span) {
        let was_up = self.is_up();
        if self.step(input) {
            self.live = None;
            (self.next, self.previous) = (None, None);
            self.calling = None;
            self.call_at = self.config.peer.map(|_| now + pause);
            if was_up {
                self.turn = Some(Turn::Ended);
            }
        }
    }

    /// Seals a body of the link layer that `write` writes; returns destination and datagram if the session is
    /// up.
    pub fn seal(
        &mut self,
        now: Time,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Option<(SocketAddr, Vec<u8>)> {
        if !self.is_up() {
            return None;
        }
        self.sealed(now, FRAME, write)
    }

    fn sealed(
        &mut self,
        now: Time,
        kind: u8,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Option<(SocketAddr, Vec<u8>)> {
        Some(sealed_by(self.live.as_mut()?, now, kind, write))
    }

    fn say_sealed(&mut self, now: Time, kind: u8, write: impl FnOnce(&mut Vec<u8>)) {
        let sealed = self.sealed(now, kind, write);
        self.outbox.extend(sealed);
    }

    fn say_alive(&mut self, now: Time) {
        self.say_sealed(now, ALIVE, |_| {});
    }

    /// A probe datagram of `len` bytes, if the session is up.
    pub fn probe(&mut self, now: Time, len: usize) -> Option<(SocketAddr, Vec<u8>)> {
        if !self.is_up() {
            return None;
        }
        let padding = len.saturating_sub(OVERHEAD);
        self.sealed(now, PROBE, |out| out.resize(out.len() + padding, 0))
    }

    /// Ends the session permanently, with a goodbye to the peer.
    pub fn close(&mut self, now: Time) {
        if self.is_up() {
            // The goodbye has no answer, so it is repeated: it arrives on a path that loses one datagram in
            // three.
            for _ in 0..4 {
                self.say_sealed(now, GOODBYE, |_| {});
            }
            self.turn = Some(Turn::Ended);
        }
        if self.step(Input::Stop) {
            self.live = None;
            (self.next, self.previous) = (None, None);
            self.calling = None;
            self.call_at = None;
        }
    }

    /// Handles everything that is due.
    pub fn on_wake(&mut self, now: Time) {
        if self.next_wake().is_none_or(|at| at > now) {
            return;
        }
        match self.state {
            State::Idle => self.begin_call(now),
            State::Calling => self.call(now),
            State::Confirming => {
                if self.live.as_ref().is_some_and(|live| live.tries < CONFIRMS) {
                    self.confirm(now);
                } else {
                    self.counts.unconfirmed += 1;
                    self.end(now, Input::Silence, FIRST_RETRY);
                }
            }
            State::Up => self.keep(now),
            State::Closed => {}
        }
    }

    fn keep(&mut self, now: Time) {
        let Some(live) = &self.live else { return };
        if live.last_received + live.agreed.dead_after <= now {
            self.counts.vanished += 1;
            self.end(now, Input::Silence, FIRST_RETRY);
        } else if live.counter >= self.config.worn_after {
            self.counts.worn += 1;
            self.end(now, Input::Worn, Span::ZERO);
        } else if live.sent + live.agreed.keep_alive <= now {
            self.say_alive(now);
        }
        if self.is_up() {
            self.renew(now);
        }
    }

    /// Time of the next required call.
    pub fn next_wake(&self) -> Option<Time> {
        match self.state {
            State::Idle => self.call_at,
            State::Calling => self.calling.as_ref().map(|calling| calling.at),
            State::Confirming => self.live.as_ref().map(|live| live.retry),
            State::Up => {
                let live = self.live.as_ref()?;
                if live.counter >= self.config.worn_after {
                    return Some(Time::ZERO);
                }
                let Agreed { dead_after, keep_alive, .. } = live.agreed;
                let ends = [
                    self.calling.as_ref().map(|calling| calling.at),
                    self.next.as_ref().map(|next| next.retry),
                    self.previous.as_ref().map(|(_, until)| *until),
                    self.renews_at(),
                ];
                let alive = (live.last_received + dead_after).min(live.sent + keep_alive);
                ends.into_iter().flatten().min().map_or(Some(alive), |at| Some(at.min(alive)))
            }
            State::Closed => None,
        }
    }
}

/// The pause after `tries` attempts.
fn pause(tries: u32) -> Span {
    match tries {
        EAGER_HELLOS.. => SLOWEST,
        _ => Span((FIRST_RETRY.0 << tries.min(8)).min(EAGER.0)),
    }
}
