//! A base station's end pauses while its peer is unreachable, and resumes with the same windows (M-TCP).

use super::Connection;
use crate::event::Cause;
use crate::machine::Out;
use crate::tcp::sender::Purpose;
use crate::units::Time;

impl Connection {
    /// Whether an expiration of the retransmission timer waits to be handled.
    pub fn has_timed_out(&self, now: Time) -> bool {
        let outstanding = self.tx.core.window.una < self.tx.core.window.max;
        outstanding && self.tx.core.timers.expired(now) == Some(Purpose::Timeout)
    }

    /// Stops sending and all timers while the peer is unreachable. The windows do not change.
    pub fn freeze(&mut self) {
        self.frozen = true;
        self.tx.stop();
    }

    /// Retransmits the oldest outstanding segment, to probe whether the peer is back.
    pub fn probe_return(&mut self, now: Time, out: &mut Out) {
        let w = &self.tx.core.window;
        if self.state.is_synchronised() && w.una < w.max {
            let chunk = w.chunk_at(w.una, Cause::TimeoutRetransmit);
            self.send_chunk(now, chunk, None, out);
        }
    }

    /// Resumes when the peer is back: retransmits outstanding data at once, within the previous windows.
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
