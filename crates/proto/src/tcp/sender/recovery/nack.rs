//! Reaction to negative ACKs of a base station (west97 2.6). A negative ACK names bytes that the radio has lost. The
//! sender retransmits them at once and does not change the congestion window.

use crate::event::{Cause, TcpKind};
use crate::units::Time;

use super::detect::Detect;
use crate::tcp::sender::systems::eln::NOTIFIED_MAX;
use crate::tcp::sender::{Chunk, Core, Sender};

/// Maximum number of ranges that wait for their retransmission.
const RANGES_MAX: usize = 16;
/// Maximum number of consecutive negative ACKs without progress to which the sender reacts.
const NACKS_MAX: u32 = 64;

impl Sender {
    /// Queues lost ranges of positions for retransmission. Positions that are not outstanding are ignored.
    pub fn on_nack(&mut self, now: Time, missing: &[(u64, u64)]) -> Option<TcpKind> {
        if !self.core.detector.counts() {
            // RACK retransmits from its own records. Here a negative ACK would only postpone its retransmission timer.
            return None;
        }
        let (w, tally) = (&self.core.window, &mut self.core.tally);
        // As for loss notifications, a link that loses all packets must not cause retransmissions without end.
        let reports = tally.base_reports();
        if reports.nacks >= NACKS_MAX {
            return None;
        }
        let all = &mut reports.missing;
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
        reports.nacks += 1;
        self.core.timers.timed = None;
        self.core.timers.rearm(now);
        Some(TcpKind::LossNotified)
    }
}

impl Core {
    /// The next segment of the ranges that a base station has reported.
    pub(in crate::tcp::sender) fn next_missing(&mut self) -> Option<Chunk> {
        let (w, reports) = (&self.window, self.tally.base_reports());
        while let Some((from, to)) = reports.missing.first_mut() {
            *from = (*from).max(w.una);
            if *from >= *to {
                reports.missing.remove(0);
                continue;
            }
            let chunk = w.chunk_between(*from, *to, Cause::ElnRetransmit);
            if chunk.end() == *from {
                reports.missing.remove(0);
                continue;
            }
            *from = chunk.end();
            if reports.notified.len() < NOTIFIED_MAX {
                reports.note(chunk.from);
            }
            return Some(chunk);
        }
        None
    }
}
