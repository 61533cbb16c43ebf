//! Explicit feedback: after each failed attempt of the link layer the base station sends the source a message,
//! explicit bad state notification (bakshi96 4.2.3) or source quench (bakshi96 4.2.2).
//!
//! It keeps nothing about connections: which datagram is meant the link layer says, and the message quotes it.
//! Needs a link layer on the right that tells of its attempts ([`Signal::AttemptFailed`]); without one it is a
//! router.

use super::none::admit;
use crate::event::{AgentNote, Cause, Wants, What};
use crate::machine::{Machine, Out, Side, Signal};
use crate::units::{Span, Time};
use crate::wire::{Notice, Packet, Quote};

/// The agent that sends messages to sources.
#[derive(Clone, Copy, Debug)]
pub struct Notifier {
    notice: Notice,
    spacing: Span,
    /// When it sent the last one, to whomever.
    last: Option<Time>,
}

impl Notifier {
    /// An agent that sends `notice`, and after each one no other for `spacing`.
    pub fn new(notice: Notice, spacing: Span) -> Notifier {
        Notifier { notice, spacing, last: None }
    }

    fn cause(&self) -> Cause {
        match self.notice {
            Notice::BadState => Cause::BadStateNotification,
            Notice::SourceQuench => Cause::SourceQuench,
        }
    }

    //= bakshi96#4.2.3: one is sent after every unsuccessful attempt to transmit over the wireless link
    fn tell(&mut self, now: Time, quote: &Quote, out: &mut Out) {
        if self.last.is_some_and(|last| now.since(last) < self.spacing) {
            if out.wants(Wants::METRICS) {
                let note = AgentNote::NoticeWithheld;
                out.event(What::Agent { flow: quote.flow, note });
            }
            return;
        }
        self.last = Some(now);
        out.originate(Side::Left, Packet::notice(self.notice, quote), self.cause());
    }
}

impl Machine for Notifier {
    fn on_packet(&mut self, _now: Time, from: Side, packet: Packet, out: &mut Out) {
        if let Some(packet) = admit(from, packet, out) {
            out.send(from.other(), packet);
        }
    }

    fn on_signal(&mut self, now: Time, from: Side, signal: Signal, out: &mut Out) {
        match signal {
            // A base station further on need not tell the source once more.
            Signal::AttemptFailed { flow, seq, len, .. } if from == Side::Right => {
                self.tell(now, &Quote { flow, seq, len }, out);
            }
            _ => out.signal(from.other(), signal),
        }
    }

    fn on_wake(&mut self, _now: Time, _out: &mut Out) {}

    fn next_wake(&self) -> Option<Time> {
        None
    }
}
