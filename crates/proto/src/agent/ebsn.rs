//! Explicit feedback: after each failed attempt of the link layer, the base station sends a message
//! to the source. This is explicit bad state notification (bakshi96 4.2.3) or source quench (bakshi96
//! 4.2.2).
//!
//! It has no state per connection: the link layer's signal names the packet, and the message quotes it. Needs
//! a link layer on the right that signals its attempts ([`Signal::AttemptFailed`]); without one it is a
//! router.

use serde::Serialize;

use super::admit::admit;
use super::{AgentConfig, BaseStation, Config, Ends, Idle, Read};
use crate::describe::{Descriptor, Keys, Kind, System};
use crate::event::{AgentNote, Cause, EventKind, Interest};
use crate::machine::{Machine, Out, Side, Signal};
use crate::units::{Span, Time};
use crate::wire::{Notice, Packet, Quote};

/// Notification of the source after each failed attempt of the link layer (bakshi96 4.2.3).
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Ebsn {
    /// Minimum time between two messages; zero sends each.
    pub spacing: Span,
}

impl Config for Ebsn {
    const WORDS: &'static [Descriptor<Read>] = &[Descriptor {
        word: "ebsn",
        system: System::new(
            Kind::Agent,
            "ebsn",
            "path: agent = \"ebsn\"; host: ebsn = true",
            "reports each failed local attempt to the sender by ICMP; stores nothing about connections",
            "bakshi96 4.2.3",
        ),
        read: |k| AgentConfig::Ebsn(Ebsn { spacing: spacing(k) }),
    }];
    type Agent = Notifier;

    fn agent(&self) -> Notifier {
        Notifier::new(Notice::BadState, self.spacing)
    }

    fn idle(&self, ends: &Ends<'_>) -> Option<Idle> {
        unheeded("ebsn", "ebsn", ends.from.1.ebsn, ends)
    }
}

/// Messages of a base station need a sender that processes them.
pub(super) fn unheeded(agent: &str, key: &str, heeds: bool, ends: &Ends<'_>) -> Option<Idle> {
    let name = ends.from.0;
    (ends.rightwards && !heeds).then(|| Idle {
        message: format!("`{agent}` sends messages to `{name}`, which ignores them"),
        label: "the same as `none` for this sender",
        help: format!("write `{key} = true` in `[host.{name}]`"),
    })
}

pub(super) fn spacing(k: &mut Keys<'_>) -> Span {
    let mut spacing = Span::ZERO;
    let doc = "the minimum time between two messages; 0 sends one for each failed attempt";
    k.within("spacing", &mut spacing, Span::ZERO..=Span::secs(3600), doc);
    spacing
}

/// The agent that sends messages to sources.
#[derive(Clone, Copy, Debug)]
pub struct Notifier {
    notice: Notice,
    spacing: Span,
    /// Time of the last message to any source.
    last: Option<Time>,
}

impl Notifier {
    /// An agent that sends `notice`, with `spacing` as the minimum time between two messages.
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
    fn notify(&mut self, now: Time, quote: &Quote, out: &mut Out) {
        if self.last.is_some_and(|last| now.since(last) < self.spacing) {
            if out.accepts(Interest::RESULTS) {
                let note = AgentNote::NoticeWithheld;
                out.event(EventKind::Agent { flow: quote.flow, note });
            }
            return;
        }
        self.last = Some(now);
        out.originate(Side::Left, Packet::notice(self.notice, quote), self.cause());
    }
}

impl BaseStation for Notifier {}

impl Machine for Notifier {
    fn on_packet(&mut self, _now: Time, from: Side, packet: Packet, out: &mut Out) {
        if let Some(packet) = admit(from, packet, out) {
            out.send(from.other(), packet);
        }
    }

    fn on_signal(&mut self, now: Time, from: Side, signal: Signal, out: &mut Out) {
        match signal {
            // A base station further on need not notify the source again.
            Signal::AttemptFailed { flow, seq, len, .. } if from == Side::Right => {
                self.notify(now, &Quote { flow, seq, len }, out);
            }
            _ => out.signal(from.other(), signal),
        }
    }
}
