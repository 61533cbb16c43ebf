//! Reaction of a sender to echoed congestion marks (RFC 3168 section 6.1.2).

use crate::event::TcpKind;
use crate::units::Time;

use super::congestion_control::CongestionControl;
use super::{Sender, Verdict};

impl Sender {
    /// Reduces the window after an echoed mark as after a loss, at most once for each window of data, without a
    /// retransmission. A `counted` mark is reported only once, and takes effect at once. An echo is repeated, so it
    /// is ignored while no data is in flight. `ack` is the position that the ACK with the echo acknowledges.
    //= rfc3168#section-6.1.2: react as to a loss, at most once per window of data
    pub fn on_congestion_echo(&mut self, now: Time, ack: u64, counted: bool) -> Verdict {
        let w = &mut self.core.window;
        let una = w.una.max(ack);
        let idle = una >= w.max && !counted;
        if una < self.core.reduced_below || self.recovery.active() || idle {
            return None;
        }
        w.ssthresh = self.core.congestion_control.ssthresh_after_mark(now, w)?;
        if self.core.congestion_control.scalable() || !self.recovery.slow_down(w) {
            w.cwnd = w.cwnd.min(w.floor());
        }
        (self.core.reduced_below, self.core.reduced) = (w.max, true);
        Some(TcpKind::CongestionEchoed)
    }

    /// Whether the reaction to an echo precedes the rest of an ACK, so that this ACK does not open the window.
    pub fn takes_echo_first(&self) -> bool {
        self.recovery.slows_down() && !self.core.congestion_control.scalable()
    }

    /// Whether an echoed mark reduces the window at present.
    pub fn is_slowing(&self) -> bool {
        self.recovery.is_slowing()
    }

    /// Number of segments that an ACK of the position `ack` newly reports, without segments that duplicate ACKs or
    /// SACK blocks have reported before.
    pub fn newly_reported(&self, ack: u64) -> u32 {
        let w = &self.core.window;
        let all = ack.saturating_sub(w.una).div_ceil(w.mss.into());
        let sacked = self.recovery.sacked(w.mss) / u64::from(w.mss);
        all.saturating_sub(sacked.max(self.core.tally.dupacks.into())).min(u32::MAX.into()) as u32
    }

    /// Whether the next segment must notify the peer of a reduced window; resets the notification.
    pub fn take_reduced(&mut self) -> bool {
        core::mem::take(&mut self.core.reduced)
    }
}
