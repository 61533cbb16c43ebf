//! Half-open connections, and room for new ones.
//!
//! A connection is half-open until its opener has acknowledged the SYN-ACK. Before that its source address may be
//! forged (RFC 4987). Half-open connections occupy at most half of the table. At this limit, the oldest one is
//! removed if it has lasted longer than a handshake with one lost segment; otherwise the new SYN passes unsplit. So a
//! flood of SYNs does not remove established connections, and does not end handshakes in progress.

use std::collections::BTreeSet;

use super::pair::{HANDSHAKE, Pair};
use super::{Fate, SILENT, Split, note};
use crate::event::AgentNote;
use crate::machine::Out;
use crate::units::{Span, Time};

/// Age from which a half-open connection may be removed for a new one.
//= rfc6298#section-2: a host that retransmitted its SYN continues with a timeout of three seconds (5.7)
pub(super) const LASTING: Span = Span::secs(3);

/// The half-open pairs, by the deadline of their handshake and their slot.
#[derive(Clone, Debug, Default)]
pub(super) struct HalfOpen(BTreeSet<(Time, usize)>);

impl HalfOpen {
    /// Records that the deadline of the pair in slot `i` changes. A pair that is not half-open has none.
    pub(super) fn update(&mut self, i: usize, before: Option<Time>, after: Option<Time>) {
        if before != after {
            before.map(|until| self.0.remove(&(until, i)));
            after.map(|until| self.0.insert((until, i)));
        }
    }

    /// The slot of the oldest pair, if it is at least `age` old.
    fn oldest(&self, now: Time, age: Span) -> Option<usize> {
        let (until, i) = *self.0.first()?;
        (until <= now + Span(HANDSHAKE.0 - age.0)).then_some(i)
    }
}

impl Split {
    /// Number of half-open connections.
    pub(super) fn half_open(&self) -> usize {
        self.half_open.0.len()
    }

    /// Initial buffers of a pair, bytes.
    pub(super) fn initial_bytes(&self) -> u64 {
        2 * u64::from(self.ends.buffer)
    }

    /// Limit of half-open connections: half of those for which there are slots and memory.
    fn most_half_open(&self) -> usize {
        let stored = usize::try_from(self.memory.all / self.initial_bytes()).unwrap_or(usize::MAX);
        self.most.min(stored).div_ceil(2).max(1)
    }

    /// Makes room for the pair of a new SYN.
    ///
    /// # Errors
    /// The limit that excludes it.
    pub(super) fn admit_syn(&mut self, now: Time, out: &mut Out) -> Result<(), AgentNote> {
        let is_full = self.half_open() >= self.most_half_open();
        if is_full && !self.evict_half_open(now, LASTING, out) {
            return Err(AgentNote::HalfOpenLimit);
        }
        match self.has_room(now, self.initial_bytes(), LASTING, out) {
            true => Ok(()),
            false => Err(AgentNote::NoRoom),
        }
    }

    /// Whether there is room for another pair with buffers of `bytes` bytes. If needed, removes a half-open pair
    /// that is at least `age` old, or a pair that was silent for long.
    pub(super) fn has_room(&mut self, now: Time, bytes: u64, age: Span, out: &mut Out) -> bool {
        let fits = |split: &Split| {
            split.pairs.len() < split.most && split.memory.promised + bytes <= split.memory.all
        };
        while !fits(self) {
            if !self.evict_half_open(now, age, out) && !self.evict_silent(now, out) {
                return false;
            }
        }
        true
    }

    /// Removes the oldest half-open pair if it is at least `age` old.
    fn evict_half_open(&mut self, now: Time, age: Span, out: &mut Out) -> bool {
        let Some(i) = self.half_open.oldest(now, age) else { return false };
        note(out, self.pairs.key(i), AgentNote::HalfOpenEvicted);
        self.act(i, out, |pair, _, out| {
            pair.abandon(now, out);
            Fate::Over
        });
        true
    }

    /// Aborts the least recently used pair if it was silent for long.
    fn evict_silent(&mut self, now: Time, out: &mut Out) -> bool {
        let Some(oldest) = self.pairs.oldest() else { return false };
        let silent = |pair: &Pair| now.since(pair.last_packet()) >= SILENT;
        let is_silent = self.pairs[oldest].as_deref().is_some_and(silent);
        if is_silent {
            self.act(oldest, out, |pair, _, out| {
                pair.reset(now, out);
                Fate::Over
            });
        }
        is_silent
    }
}
