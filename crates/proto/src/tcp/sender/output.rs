//! What a sender sends next, and what it notes about it.

use crate::event::Cause;
use crate::units::Time;

use super::growth::Growth;
use super::recovery::Recovery;
use super::variant::AnyRecovery;
use super::{Chunk, Sender};

impl Sender {
    /// Whether anything may be waiting to be sent. A mere receiver never has any.
    #[inline]
    pub fn has_work(&self) -> bool {
        let w = &self.window;
        w.nxt < w.last()
            || w.repair.is_some()
            || !self.missing.is_empty()
            || self.probe_now
            || self.recovery.has_work()
    }

    /// The next piece to send, if the windows allow one. Call until it answers `None`.
    pub fn poll(&mut self, now: Time) -> Option<Chunk> {
        self.pace_at = self.pacer.as_ref().and_then(|pacer| pacer.blocked(now));
        if self.pace_at.is_some() {
            return None;
        }
        let chunk = match self.recovery {
            AnyRecovery::Rack(_) => self.choose_recorded(now)?,
            _ => self.choose(now)?,
        };
        if let Some(pacer) = &mut self.pacer {
            // What the peer's window or the socket buffer forbids is not there to be spread.
            let window = self.window.allowed().min(u32::MAX.into()) as u32;
            pacer.sent(now, chunk.len, window, self.growth.pacing());
        }
        self.recovery.on_sent(&self.window, &chunk);
        self.growth.on_sent(now, &self.window, &chunk);
        let end = chunk.from + u64::from(chunk.len) + u64::from(chunk.fin);
        if chunk.cause != Cause::WindowProbe {
            self.integrated_sent(now, chunk.from, end, end <= self.window.max);
        }
        let w = &mut self.window;
        if chunk.from == w.nxt && chunk.cause != Cause::WindowProbe {
            w.nxt = end;
        }
        if end > w.max {
            if w.extra > 0 {
                w.limited += (end - w.max) as u32;
            }
            w.max = end;
            //= rfc6298#section-3: only data sent for the first time is timed (Karn's rule)
            if self.timed.is_none() {
                self.timed = Some((end, now));
            }
        } else if self.timed.is_some_and(|(timed, _)| chunk.from < timed) {
            self.timed = None;
        }
        if self.rexmt_at.is_none() && chunk.cause != Cause::WindowProbe {
            self.rexmt_at = Some(self.rtt.deadline(now, 1));
        }
        self.record(now, &chunk, end);
        Some(chunk)
    }

    fn choose(&mut self, now: Time) -> Option<Chunk> {
        let w = &mut self.window;
        if let Some((position, cause)) = w.repair.take() {
            if position >= w.una && position < w.max {
                return Some(w.chunk_at(position, cause));
            }
        }
        if !self.missing.is_empty()
            && let Some(chunk) = self.next_missing()
        {
            return Some(chunk);
        }
        let w = &mut self.window;
        if self.probe_now {
            self.probe_now = false;
            if let Some(probe) = w.probe() {
                if probe.cause == Cause::WindowProbe {
                    let factor = 1 << self.persist_backoff;
                    self.persist_at = Some(self.rtt.deadline(now, factor));
                }
                return Some(probe);
            }
        }
        if let Some(choice) = self.recovery.next_chunk(w) {
            return choice;
        }
        let chunk = if self.is_integrated() {
            let (chunk, now) = self.integrated_chunk(now);
            if !now {
                return None;
            }
            chunk
        } else {
            self.window.next_chunk()
        };
        let w = &mut self.window;
        // Something to send, nothing in flight, and the peer's window is what forbids it. (A peer may also have
        // taken back its window: then what was sent counts as lost once the timer has expired.)
        //= rfc9293#section-3.8.6: a sender must be robust against a window that shrinks
        let blocked = w.nxt == w.una && w.nxt < w.last() && (w.una == w.max || w.peer == 0);
        if chunk.is_none()
            && blocked
            && (self.rexmt_at.is_none() || w.peer == 0)
            && self.persist_at.is_none()
        {
            self.rexmt_at = None;
            self.persist_at = Some(self.rtt.deadline(now, 1));
        }
        chunk
    }
}
