//! A sender goes on with what another one has sent.

use crate::event::Cause;
use crate::units::Time;

use super::growth::Growth;
use super::recovery::Recovery;
use super::{Chunk, Way};

impl<R: Recovery> Way<'_, R> {
    /// Another sender has sent everything below `max`, and will send no more. Here it counts as sent now, in whole
    /// segments; the timer runs if any of it is outstanding.
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
            core.growth.on_sent(now, &core.window, &chunk);
            // Whether the application had paused is no news.
            let _ = self.recovery.on_sent(now, core, &chunk);
            (core.window.nxt, core.window.max) = (chunk.end(), chunk.end());
        }
        core.timers.timed = None;
        if core.window.una < core.window.max {
            core.timers.rearm(now);
        }
    }
}
