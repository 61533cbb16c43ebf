//! The session between the two ends of a tunnel: who the peer is, that it is there, and that what it says is new.
//!
//! A handshake of three messages. Hellos and welcomes leave no trace at who answers them: the callee's offer is a
//! code, under a key that only it has, over the caller's address and offer, and can be made again when the confirm
//! brings it back. So state is made only for a peer that has the shared key, hears what is sent to its address, and
//! speaks now: when a session begins, all welcomes given before lose their worth.
//!
//! One session at most is kept. What is not of it is counted by reason and dropped.

mod handshake;
mod terms;

use core::net::SocketAddr;

use super::message::{self, HEAD, Handshake, Message, OVERHEAD, Offer, Step, Unreadable};
use super::replay::{Refused, Replay};
use super::seal::{Seal, SessionKeys, TAG};
use super::states::{Input, State};
use crate::units::{Span, Time};

use handshake::Calling;
pub use terms::{Agreed, SessionConfig, SessionCounts, Turn};

/// The first pause between two hellos or confirms; it doubles up to [`SLOWEST`].
const FIRST_RETRY: Span = Span::millis(200);

/// The longest pause between two attempts.
const SLOWEST: Span = Span::secs(4);

/// Confirms in a row without an answer before the handshake begins again.
const CONFIRMS: u32 = 6;

/// Kinds of sealed bodies.
const FRAME: u8 = 0;
const ALIVE: u8 = 1;
const GOODBYE: u8 = 2;

/// What came of a datagram.
#[derive(PartialEq, Eq, Debug)]
pub enum Opened<'a> {
    /// Nothing for the link layer.
    Nothing,
    /// A frame of the peer's link layer.
    Frame(&'a [u8]),
}

/// A session with its keys.
struct Live<K> {
    caller: Offer,
    callee: Offer,
    /// Whether we called.
    ours: bool,
    peer: SocketAddr,
    sends: K,
    receives: K,
    counter: u64,
    replay: Replay,
    agreed: Agreed,
    heard: Time,
    sent: Time,
    /// Confirms sent, and when the next is due.
    tries: u32,
    retry: Time,
}

impl<K> Live<K> {
    /// What the peer chose to be called by.
    fn theirs(&self) -> u32 {
        if self.ours { self.callee.identity } else { self.caller.identity }
    }

    /// What we chose to be called by.
    fn own(&self) -> u32 {
        if self.ours { self.caller.identity } else { self.callee.identity }
    }
}

/// One end of a session.
pub struct Session<S: Seal> {
    config: SessionConfig,
    seal: S,
    secret: [u8; 32],
    /// Draws made from the secret.
    draws: u64,
    /// Counts sessions: welcomes are worth something in the generation in which they were given.
    generation: u64,
    state: State,
    calling: Option<Calling>,
    live: Option<Live<S::Keys>>,
    /// When to call, if there is none and somebody to call.
    call_at: Option<Time>,
    turn: Option<Turn>,
    outbox: Vec<(SocketAddr, Vec<u8>)>,
    counts: SessionCounts,
}

impl<S: Seal> Session<S> {
    /// A session that begins to call at once, if it knows whom. `secret` are 32 bytes that nobody else knows and that
    /// were never used before: everything that must be new comes from them.
    pub fn new(config: SessionConfig, seal: S, secret: [u8; 32]) -> Session<S> {
        let call_at = config.peer.map(|_| Time::ZERO);
        Session {
            config,
            seal,
            secret,
            draws: 0,
            generation: 0,
            state: State::Idle,
            calling: None,
            live: None,
            call_at,
            turn: None,
            outbox: Vec::new(),
            counts: SessionCounts::default(),
        }
    }

    /// Where it stands.
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether frames may be sent.
    pub fn is_up(&self) -> bool {
        self.state == State::Up
    }

    /// What was agreed upon, while it is up.
    pub fn agreed(&self) -> Option<Agreed> {
        self.live.as_ref().filter(|_| self.is_up()).map(|live| live.agreed)
    }

    /// Where the peer is, while it is up.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.live.as_ref().filter(|_| self.is_up()).map(|live| live.peer)
    }

    /// The counts.
    pub fn counts(&self) -> SessionCounts {
        self.counts
    }

    /// What has changed since the last call.
    pub fn take_turn(&mut self) -> Option<Turn> {
        self.turn.take()
    }

    /// Takes the datagrams that are to be sent.
    pub fn take_outbox(&mut self) -> Vec<(SocketAddr, Vec<u8>)> {
        core::mem::take(&mut self.outbox)
    }

    /// A smaller packet fits the path than was thought: holds from the next session on, and for what the caller does.
    pub fn set_mtu(&mut self, mtu: u16) {
        self.config.mtu = mtu;
    }

    /// Takes a step of the table; whether there is one.
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

    /// A datagram has arrived. It is changed in place.
    pub fn on_datagram<'a>(
        &mut self,
        now: Time,
        from: SocketAddr,
        datagram: &'a mut [u8],
    ) -> Opened<'a> {
        let handshake = match message::read(datagram) {
            Ok(Message::Handshake(handshake)) => handshake,
            Ok(Message::Sealed { identity, counter }) => {
                return self.on_sealed(now, identity, counter, datagram);
            }
            Err(reason) => {
                let count = match reason {
                    Unreadable::Length => &mut self.counts.bad_length,
                    Unreadable::Version => &mut self.counts.bad_version,
                    Unreadable::Kind => &mut self.counts.bad_kind,
                };
                *count += 1;
                return Opened::Nothing;
            }
        };
        let genuine =
            datagram.split_last_chunk::<TAG>().is_some_and(|(b, tag)| self.seal.is_tag(b, tag));
        if !genuine {
            self.counts.bad_tag += 1;
        } else if self.state == State::Closed {
            self.counts.unexpected += 1;
        } else {
            match (handshake.step, handshake.callee) {
                (Step::Welcome, Some(callee)) => self.on_welcome(now, from, &handshake, callee),
                (Step::Confirm, Some(callee)) => self.on_confirm(now, from, &handshake, callee),
                _ => {
                    let callee = Some(self.answer(from, &handshake.caller));
                    let caller = handshake.caller;
                    let welcome = Handshake { step: Step::Welcome, caller, callee, rtt_us: 0 };
                    self.say(from, &welcome);
                }
            }
        }
        Opened::Nothing
    }

    fn on_sealed<'a>(
        &mut self,
        now: Time,
        identity: u32,
        counter: u64,
        datagram: &'a mut [u8],
    ) -> Opened<'a> {
        let Some(live) = self.live.as_mut().filter(|live| live.own() == identity) else {
            self.counts.other_session += 1;
            return Opened::Nothing;
        };
        if let Err(refused) = live.replay.check(counter) {
            match refused {
                Refused::Twice => self.counts.replayed += 1,
                Refused::TooOld => self.counts.too_old += 1,
            }
            return Opened::Nothing;
        }
        let Some(body) = live.receives.open(counter, datagram, HEAD) else {
            self.counts.bad_tag += 1;
            return Opened::Nothing;
        };
        live.replay.note(counter);
        live.heard = now;
        if self.state == State::Confirming && self.step(Input::Heard) {
            self.up();
        }
        match body.split_first() {
            Some((&FRAME, frame)) => return Opened::Frame(frame),
            Some((&ALIVE, [])) => {}
            Some((&GOODBYE, [])) => {
                self.counts.goodbyes += 1;
                self.end(now, Input::Goodbye, SLOWEST);
            }
            _ => self.counts.bad_body += 1,
        }
        Opened::Nothing
    }

    /// The session is over; the peer is called after a pause.
    fn end(&mut self, now: Time, input: Input, pause: Span) {
        let was_up = self.is_up();
        if self.step(input) {
            self.live = None;
            self.calling = None;
            // Whoever had a welcome knocks again.
            self.generation += 1;
            self.call_at = self.config.peer.map(|_| now + pause);
            if was_up {
                self.turn = Some(Turn::Ended);
            }
        }
    }

    /// Seals a body of the link layer that is written by `write`; where to and what to send, if the session is up.
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
        let live = self.live.as_mut()?;
        let mut datagram = Vec::with_capacity(OVERHEAD + 1600);
        datagram.extend_from_slice(&message::head(live.theirs(), live.counter));
        datagram.push(kind);
        write(&mut datagram);
        live.sends.seal(live.counter, &mut datagram, HEAD);
        live.counter += 1;
        live.sent = now;
        Some((live.peer, datagram))
    }

    fn say_sealed(&mut self, now: Time, kind: u8) {
        let sealed = self.sealed(now, kind, |_| {});
        self.outbox.extend(sealed);
    }

    fn say_alive(&mut self, now: Time) {
        self.say_sealed(now, ALIVE);
    }

    /// Ends the session for good, with a goodbye to the peer.
    pub fn close(&mut self, now: Time) {
        if self.is_up() {
            // Nobody answers it, so it is said more than once: on a path that loses one in three it arrives.
            for _ in 0..4 {
                self.say_sealed(now, GOODBYE);
            }
            self.turn = Some(Turn::Ended);
        }
        if self.step(Input::Stop) {
            self.live = None;
            self.calling = None;
            self.call_at = None;
        }
    }

    /// Does what is due.
    pub fn on_wake(&mut self, now: Time) {
        if self.next_wake().is_none_or(|at| at > now) {
            return;
        }
        match self.state {
            State::Idle => {
                if self.step(Input::Call) {
                    let (random, identity) = self.draw();
                    let offer = self.offer(random, identity);
                    self.calling = Some(Calling { offer, tries: 0, said: now, at: now });
                    self.call(now);
                }
            }
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
        if live.heard + live.agreed.dead_after <= now {
            self.counts.vanished += 1;
            self.end(now, Input::Silence, FIRST_RETRY);
        } else if live.counter >= self.config.worn_after {
            self.counts.worn += 1;
            self.end(now, Input::Worn, Span::ZERO);
        } else if live.sent + live.agreed.keep_alive <= now {
            self.say_alive(now);
        }
    }

    /// When it wants to be called next.
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
                Some((live.heard + dead_after).min(live.sent + keep_alive))
            }
            State::Closed => None,
        }
    }
}

fn pause(tries: u32) -> Span {
    Span((FIRST_RETRY.0 << tries.min(8)).min(SLOWEST.0))
}
