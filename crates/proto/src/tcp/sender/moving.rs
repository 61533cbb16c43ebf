//! Continuation of another base station's sender.

use crate::event::Cause;
use crate::units::Time;

use super::congestion_control::CongestionControl;
use super::recovery::Recovery;
use super::{Chunk, SenderWith};

impl<R: Recovery> SenderWith<'_, R> {
    /// Adopts the data below `max` that another sender has sent: it counts as sent now, in full segments. The timer
    /// starts if any of it is outstanding.
    pub(super) fn adopt(&mut self, now: Time, max: u64) {
        let core = &mut *self.core;
        let una = core.window.una;
        (core.window.nxt, core.window.max) = (una, una);
        while core.window.max < max {
            let w = &core.window;
            let from = w.max;
            let len = (w.end.min(max).saturating_sub(from)).min(w.mss.into()) as u32;
            let fin = w.fin && from + u64::from(len) == w.end && max > w.end;
            let chunk = Chunk { from, len, fin, cause: Cause::Data };
            if chunk.end() == from {
                break;
            }
            core.congestion_control.on_sent(now, &core.window, &chunk);
            // Ignore whether the application had paused.
            let _ = self.recovery.on_sent(now, core, &chunk);
            (core.window.nxt, core.window.max) = (chunk.end(), chunk.end());
        }
        core.timers.timed = None;
        if core.window.una < core.window.max {
            core.timers.rearm(now);
        }
    }
}
