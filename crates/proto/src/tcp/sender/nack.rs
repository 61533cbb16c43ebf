//! What a sender does when a base station tells it which of its bytes the air has lost (west97 2.6): they
//! are sent again at once, and the congestion window stays as it is.

use crate::event::{Cause, TcpKind};
use crate::units::Time;

use super::detect::Detect;
use super::eln::NOTIFIED_MAX;
use super::{Chunk, Core, Sender};

/// Ranges that wait to be sent again.
const RANGES_MAX: usize = 16;
/// Negative acknowledgements without progress that are obeyed in a row.
const NACKS_MAX: u32 = 64;

impl Sender {
    /// Ranges of positions were lost on their way to the base station. What is not outstanding is passed over.
    pub fn on_nack(&mut self, now: Time, missing: &[(u64, u64)]) -> Option<TcpKind> {
        if !self.core.detector.counts() {
            // RACK sends again what its own records show to be lost. Obeyed in part, a message would only postpone the
            // retransmission timer.
            return None;
        }
        let (w, tally) = (&self.core.window, &mut self.core.tally);
        // As with loss notifications: a link that loses everything must not be sent more and more.
        let told = tally.told();
        if told.nacks >= NACKS_MAX {
            return None;
        }
        let all = &mut told.missing;
        let before = all.len();
        for &(from, to) in missing {
            let (from, to) = (from.max(w.una), to.min(w.max));
            if from < to && all.len() < RANGES_MAX {
                all.push((from, to));
            }
        }
        if all.len() == before {
            return None;
        }
        told.nacks += 1;
        self.core.timers.timed = None;
        self.core.timers.rearm(now);
        Some(TcpKind::LossNotified)
    }
}

impl Core {
    /// The next segment of what the base station misses.
    pub(super) fn next_missing(&mut self) -> Option<Chunk> {
        let (w, told) = (&self.window, self.tally.told());
        while let Some((from, to)) = told.missing.first_mut() {
            *from = (*from).max(w.una);
            if *from >= *to {
                told.missing.remove(0);
                continue;
            }
            let chunk = w.chunk_between(*from, *to, Cause::ElnRetransmit);
            if chunk.end() == *from {
                told.missing.remove(0);
                continue;
            }
            *from = chunk.end();
            if told.notified.len() < NOTIFIED_MAX {
                told.note(chunk.from);
            }
            return Some(chunk);
        }
        None
    }
}
