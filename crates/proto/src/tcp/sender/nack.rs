//! What a sender does when a base station tells it which of its bytes the air has lost (balakrishnan97 2.1; west97
//! 2.6): they are sent again at once, and the congestion window stays as it is.

use crate::event::{Cause, TcpKind};
use crate::units::Time;

use super::eln::NOTIFIED_MAX;
use super::{Chunk, Sender};

/// Ranges that wait to be sent again.
const RANGES_MAX: usize = 16;
/// Negative acknowledgements without progress that are obeyed in a row.
const NACKS_MAX: u32 = 64;

impl Sender {
    /// Ranges of positions were lost on their way to the base station. What is not outstanding is passed over.
    pub fn on_nack(&mut self, now: Time, missing: &[(u64, u64)]) -> Option<TcpKind> {
        // As with loss notifications: a link that loses everything must not be sent more and more.
        if self.nacks >= NACKS_MAX {
            return None;
        }
        let before = self.missing.len();
        for &(from, to) in missing {
            let (from, to) = (from.max(self.window.una), to.min(self.window.max));
            if from < to && self.missing.len() < RANGES_MAX {
                self.missing.push((from, to));
            }
        }
        if self.missing.len() == before {
            return None;
        }
        self.nacks += 1;
        self.timed = None;
        self.rexmt_at = Some(self.rtt.deadline(now, 1));
        Some(TcpKind::LossNotified)
    }

    /// The next segment of what the base station misses.
    pub(super) fn next_missing(&mut self) -> Option<Chunk> {
        while let Some((from, to)) = self.missing.first_mut() {
            *from = (*from).max(self.window.una);
            if *from >= *to {
                self.missing.remove(0);
                continue;
            }
            let chunk = self.window.chunk_between(*from, *to, Cause::ElnRetransmit);
            let end = *from + u64::from(chunk.len) + u64::from(chunk.fin);
            if end == *from {
                self.missing.remove(0);
                continue;
            }
            *from = end;
            if self.notified.len() < NOTIFIED_MAX
                && let Err(at) = self.notified.binary_search(&chunk.from)
            {
                self.notified.insert(at, chunk.from);
            }
            return Some(chunk);
        }
        None
    }
}
