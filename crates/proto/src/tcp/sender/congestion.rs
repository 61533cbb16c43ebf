//! What a sender does when its peer echoes a mark of congestion (RFC 3168 section 6.1.2).

use crate::event::TcpKind;
use crate::units::Time;

use super::growth::{Growth, Loss};
use super::{Sender, Verdict};

impl Sender {
    /// An ACK echoes a mark: the window shrinks as for a loss, once for each window of data; nothing is sent again.
    //= rfc3168#section-6.1.2: react as to a loss, at most once per window of data
    pub fn on_congestion_echo(&mut self, now: Time) -> Verdict {
        let w = &mut self.core.window;
        if w.una < self.core.reduced_below || self.recovery.active() || w.una >= w.max {
            return None;
        }
        w.ssthresh = self.core.growth.after_loss(now, w, Loss::Detected);
        w.cwnd = w.cwnd.min(w.ssthresh);
        (self.core.reduced_below, self.core.reduced) = (w.max, true);
        Some(TcpKind::CongestionEchoed)
    }

    /// Whether the peer must now be told that the window was reduced.
    pub fn take_reduced(&mut self) -> bool {
        core::mem::take(&mut self.core.reduced)
    }
}
