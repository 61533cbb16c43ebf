//! What of a flow moves to another base station, and how that one goes on with it.

use super::super::SnoopConfig;
use super::super::cache::Entry;
use super::Flow;
use crate::travel::FAR;
use crate::travel::travels;
use crate::units::Time;
use crate::wire::{FlowKey, Packet};

travels!(Flow {
    origin,
    complete,
    top,
    acked,
    fin,
    receiver,
    partial,
    cache,
    rtt,
    reports,
    sent,
    heard,
    dups,
    answers,
    ..
});

impl Flow {
    /// Without what does not travel.
    pub(in super::super) fn packed(mut self) -> Flow {
        self.cache.pack();
        self.rtt.moved();
        (self.timer, self.busy, self.repeated) = (None, Time::ZERO, Time::ZERO);
        self
    }

    /// Whether no step can overflow with it, and its packets are those of `flow`.
    pub(in super::super::super) fn is_sound(&self, flow: FlowKey) -> bool {
        let near = |position: Option<u64>| position.is_none_or(|position| position < FAR);
        [self.top, self.sent, self.heard].into_iter().all(|count| count < FAR)
            && near(self.acked)
            && near(self.fin)
            && self.partial.is_sound()
            && self.heard <= self.sent
            && self.dups < u32::MAX / 2
            && self.cache.is_sound(flow, self.sent)
    }

    /// Whether this is a later connection between the same ports than `moved`.
    pub(in super::super) fn began_after(&self, moved: &Flow) -> bool {
        self.complete && self.origin != moved.origin
    }

    /// Another base station goes on with it: timers start anew, and tries count from there.
    pub(in super::super) fn resume(&mut self, now: Time, config: &SnoopConfig) {
        (self.busy, self.repeated) = (now, now);
        self.cache.entries_mut().for_each(|entry| entry.attempts = 0);
        if !self.cache.is_empty() {
            self.restart(now, config);
        }
    }

    /// All that is cached now went out over the radio of the old base station.
    pub(in super::super) fn has_moved(&mut self) {
        self.moved = self.top;
    }

    /// The first packet that went out over a radio that the host has left, and was not sent again since. Nobody else may
    /// notice its loss: later packets, whose arrival would show it, were lost as well.
    pub(in super::super) fn left_behind(
        &mut self,
        now: Time,
        config: &SnoopConfig,
    ) -> Option<Packet> {
        let moved = self.moved;
        if self.acked.unwrap_or(0) >= moved {
            return None;
        }
        let lost = |e: &Entry| e.end <= moved && e.attempts == 0 && !e.reported;
        let i = self.cache.position(lost).filter(|_| !self.is_shut())?;
        self.resend(i, now, config)
    }

    /// Adds what the next base station has seen of the same connection, `seen`, before this came there.
    pub(in super::super) fn absorb(&mut self, mut seen: Flow) {
        let seq = |position: u64| seen.origin + position as u32;
        if let Some(acked) = seen.acked.and_then(|acked| self.position(seq(acked)))
            && acked > self.acked.unwrap_or(0)
        {
            self.acked = Some(acked);
            self.cache.release(acked, false);
        }
        if let Some(fin) = seen.fin.and_then(|fin| self.position(seq(fin))) {
            self.fin = Some(fin);
        }
        if seen.receiver.window().is_some() {
            self.receiver = seen.receiver;
        }
        let origin = seen.origin;
        for entry in seen.cache.entries_mut() {
            let Some(start) = self.position(origin + entry.start as u32) else { continue };
            let end = start + (entry.end - entry.start);
            if self.acked.is_some_and(|acked| end <= acked) {
                continue;
            }
            let sent_as = self.transmitted(entry.packet.pieces());
            let repeated = start < self.top;
            self.top = self.top.max(end);
            if !(repeated && self.store_again([start, end], &entry.packet, sent_as)) {
                self.store([start, end], &entry.packet, sent_as, repeated);
            }
        }
    }
}
