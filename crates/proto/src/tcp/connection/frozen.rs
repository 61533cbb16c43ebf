//! A base station's end whose peer is gone for a while keeps its windows, and goes on from where it was (M-TCP).

use super::Connection;
use crate::event::Cause;
use crate::machine::Out;
use crate::units::Time;

impl Connection {
    /// Whether the retransmission timer has expired, and nothing was done about it.
    pub fn waits_in_vain(&self, now: Time) -> bool {
        let outstanding = self.tx.core.window.una < self.tx.core.window.max;
        outstanding && self.tx.core.timers.rexmt.is_past(now)
    }

    /// Whether it is frozen.
    pub fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// The peer is gone: nothing is sent from now on, and no timer runs. The windows stay as they are.
    pub fn freeze(&mut self) {
        self.frozen = true;
        self.tx.stop();
    }

    /// Sends the oldest segment that is outstanding once more, to see whether the peer is back.
    pub fn knock(&mut self, now: Time, out: &mut Out) {
        let w = &self.tx.core.window;
        if self.state.is_synchronised() && w.una < w.max {
            let chunk = w.chunk_at(w.una, Cause::TimeoutRetransmit);
            self.send_chunk(now, chunk, out);
        }
    }

    /// The peer is back: what is outstanding is sent again at once, as the windows of before allow.
    pub fn thaw(&mut self, now: Time, out: &mut Out) {
        if core::mem::take(&mut self.frozen) {
            let w = &self.tx.core.window;
            if self.state.is_synchronised() && w.una < w.max {
                self.tx.resend(now);
            }
            self.flush(now, out);
        }
    }
}
