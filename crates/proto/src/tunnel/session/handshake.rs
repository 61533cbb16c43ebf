//! How a session comes about: hello, welcome, confirm.

use core::net::SocketAddr;

use super::super::message::{Handshake, Offer, Step};
use super::super::replay::Replay;
use super::super::seal::{Key, Seal, TAG};
use super::super::states::{Input, State};
use super::{Agreed, Live, Session, SessionConfig, Turn, pause};
use crate::units::{Span, Time};

/// A call under way.
#[derive(Debug)]
pub(super) struct Calling {
    pub offer: Offer,
    pub tries: u32,
    /// When the last hello went out, and when the next is due.
    pub said: Time,
    pub at: Time,
}

impl<S: Seal> Session<S> {
    /// Bytes that were never drawn before and nobody can guess.
    pub(super) fn draw(&mut self) -> ([u8; 32], u32) {
        self.draws += 1;
        let code = |what: u8| {
            let mut bytes = [0; 16];
            bytes[0] = what;
            bytes[8..].copy_from_slice(&self.draws.to_be_bytes());
            self.seal.code(Key::Own(&self.secret), &bytes)
        };
        (code(b'r'), identity(&code(b'i')))
    }

    pub(super) fn offer(&self, random: [u8; 32], identity: u32) -> Offer {
        let SessionConfig { window, mtu, keep_alive, .. } = self.config;
        let keep_alive_ms = u32::try_from(keep_alive.0 / 1_000_000).unwrap_or(u32::MAX);
        Offer { window, mtu, keep_alive_ms, identity, random }
    }

    /// Our answer to the caller's offer from this address: the same whenever it is made in this generation.
    pub(super) fn answer(&self, from: SocketAddr, caller: &Offer) -> Offer {
        let code = |what: u8| {
            let mut bytes = vec![what];
            bytes.extend_from_slice(&self.generation.to_be_bytes());
            bytes.extend_from_slice(&address(from));
            bytes.extend_from_slice(&caller.write());
            self.seal.code(Key::Own(&self.secret), &bytes)
        };
        self.offer(code(b'R'), identity(&code(b'I')))
    }

    pub(super) fn say(&mut self, to: SocketAddr, message: &Handshake) {
        let bytes = message.write();
        let code = self.seal.code(Key::Shared, &bytes);
        let mut datagram = Vec::with_capacity(bytes.len() + TAG);
        datagram.extend_from_slice(&bytes);
        datagram.extend_from_slice(&code[..TAG]);
        self.outbox.push((to, datagram));
    }

    pub(super) fn on_welcome(
        &mut self,
        now: Time,
        from: SocketAddr,
        said: &Handshake,
        callee: Offer,
    ) {
        let calling = self.calling.as_ref().filter(|calling| calling.offer == said.caller);
        let Some(said_at) = calling.map(|calling| calling.said) else {
            self.counts.stale += 1;
            return;
        };
        if self.step(Input::Welcome) {
            self.calling = None;
            let rtt = now.since(said_at);
            self.live = Some(self.begin(now, from, (said.caller, callee), true, rtt));
            self.confirm(now);
        }
    }

    pub(super) fn on_confirm(
        &mut self,
        now: Time,
        from: SocketAddr,
        said: &Handshake,
        callee: Offer,
    ) {
        if let Some(live) = &self.live {
            let same = live.caller == said.caller && live.callee == callee && !live.ours;
            if same {
                // Our answer was lost.
                self.say_alive(now);
                return;
            }
        }
        if callee != self.answer(from, &said.caller) {
            self.counts.stale += 1;
            return;
        }
        // Both have called at once: both take the session of the caller with the greater number.
        if let (State::Confirming, Some(live)) = (self.state, &self.live)
            && live.caller.random > said.caller.random
        {
            self.counts.unexpected += 1;
            return;
        }
        let was_up = self.is_up();
        if self.step(Input::Confirm) {
            self.counts.restarts += u64::from(was_up);
            self.calling = None;
            let rtt = Span::micros(said.rtt_us.into());
            self.live = Some(self.begin(now, from, (said.caller, callee), false, rtt));
            self.up();
            self.say_alive(now);
        }
    }

    fn begin(
        &self,
        now: Time,
        peer: SocketAddr,
        (caller, callee): (Offer, Offer),
        ours: bool,
        rtt: Span,
    ) -> Live<S::Keys> {
        let [from_caller, from_callee] = self.seal.keys(&[caller.write(), callee.write()].concat());
        let (sends, receives) =
            if ours { (from_caller, from_callee) } else { (from_callee, from_caller) };
        // A peer may offer what it likes; what is sane is agreed upon.
        let alive_ms = caller.keep_alive_ms.min(callee.keep_alive_ms).max(10);
        let keep_alive = Span::millis(alive_ms.into());
        let agreed = Agreed {
            window: caller.window.min(callee.window).max(1),
            mtu: caller.mtu.min(callee.mtu),
            keep_alive,
            dead_after: Span(self.config.dead_after.0.max(3 * keep_alive.0)),
            rtt,
            caller: ours,
        };
        Live {
            caller,
            callee,
            ours,
            peer,
            sends,
            receives,
            counter: 0,
            replay: Replay::default(),
            agreed,
            heard: now,
            sent: now,
            tries: 0,
            retry: now,
        }
    }

    /// The session is up: earlier welcomes are worth nothing from now on.
    pub(super) fn up(&mut self) {
        self.generation += 1;
        self.counts.sessions += 1;
        self.call_at = None;
        self.turn = self.live.as_ref().map(|live| Turn::Began(live.agreed));
    }

    pub(super) fn confirm(&mut self, now: Time) {
        let Some(live) = &mut self.live else { return };
        let (caller, callee) = (live.caller, live.callee);
        live.retry = now + pause(live.tries);
        live.tries += 1;
        let peer = live.peer;
        let rtt_us = u32::try_from(live.agreed.rtt.0 / 1000).unwrap_or(u32::MAX);
        self.say(peer, &Handshake { step: Step::Confirm, caller, callee: Some(callee), rtt_us });
    }

    pub(super) fn call(&mut self, now: Time) {
        let (Some(calling), Some(peer)) = (&mut self.calling, self.config.peer) else { return };
        calling.said = now;
        calling.at = now + pause(calling.tries);
        calling.tries += 1;
        let caller = calling.offer;
        self.say(peer, &Handshake { step: Step::Hello, caller, callee: None, rtt_us: 0 });
    }
}

fn identity(code: &[u8; 32]) -> u32 {
    u32::from_be_bytes([code[0], code[1], code[2], code[3]])
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
