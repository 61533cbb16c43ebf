//! Presence of a pair's mobile host (M-TCP, see [`crate::agent`]'s `m_tcp.rs`).

use super::Pair;
use crate::event::{AgentNote, EventKind, Interest};
use crate::machine::Out;
use crate::units::{Span, Time};

/// The half towards the mobile host, and the half towards the fixed host.
const AIR: usize = 1;
const WIRE: usize = 0;

/// The interval of probes is at least the absence divided by this number. An endless absence causes few probes, and the
/// delay until a return is noticed is at most an eighth of the absence.
const PARTS: u64 = 8;

/// After this time a mobile host is not expected back, and both connections are reset. It is the time for which gateways store
/// an idle connection (RFC 5382, requirement 5).
const LONGEST: Span = Span::secs(2 * 3600 + 4 * 60);

/// An absence of the mobile host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Absence {
    since: Time,
    next_probe: Time,
}

impl Absence {
    pub(super) fn new(now: Time) -> Absence {
        Absence { since: now, next_probe: now }
    }

    pub(super) fn next_probe(&self) -> Time {
        self.next_probe
    }
}

impl Pair {
    /// Checks whether the half towards the mobile host has timed out, and whether to send the next probe.
    pub(super) fn look(&mut self, now: Time, out: &mut Out) {
        let Some(every) = self.knocks else { return };
        if self.gone.is_none() && self.halves[AIR].has_timed_out(now) {
            self.lose(now, out);
        }
        if let Some(absence) = self.gone.as_mut().filter(|absence| absence.next_probe <= now) {
            let gone = now.since(absence.since);
            if gone >= LONGEST {
                self.gone = None;
                return self.reset(now, out);
            }
            absence.next_probe = now + every.max(Span(gone.0 / PARTS));
            self.halves[AIR].probe_return(now, out);
        }
    }

    /// Handles a change of the radio's channel to good or bad.
    pub(in crate::agent) fn on_channel_change(&mut self, now: Time, good: bool, out: &mut Out) {
        match self.gone {
            None if !good => self.lose(now, out),
            Some(_) if good => self.find(now, out),
            _ => {}
        }
    }

    /// Records the loss of the mobile host: the half towards it pauses, and the fixed host gets a zero
    /// window.
    fn lose(&mut self, now: Time, out: &mut Out) {
        if self.open_until.is_some() || self.knocks.is_none() {
            return;
        }
        self.gone = Some(Absence::new(now));
        self.note(AgentNote::HostGone, out);
        self.halves[AIR].freeze();
        self.halves[WIRE].set_window_closed(now, true, out);
    }

    /// Records the return of the mobile host: both halves resume.
    pub(super) fn find(&mut self, now: Time, out: &mut Out) {
        if self.gone.take().is_some() {
            self.note(AgentNote::HostBack, out);
            self.halves[WIRE].set_window_closed(now, false, out);
            self.halves[AIR].thaw(now, out);
        }
    }

    fn note(&self, note: AgentNote, out: &mut Out) {
        if out.accepts(Interest::RESULTS) {
            out.event(EventKind::Agent { flow: self.halves[AIR].flow, note });
        }
    }
}
