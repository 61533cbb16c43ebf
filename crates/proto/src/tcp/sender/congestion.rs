//! What a sender does when its peer echoes a mark of congestion (RFC 3168 section 6.1.2).

use crate::event::TcpKind;
use crate::units::Time;

use super::growth::Growth;
use super::{Sender, Verdict};

impl Sender {
    /// An ACK echoes a mark: the window shrinks as for a loss, once for each window of data; nothing is sent again.
    /// What is `counted` is told once, and an echo until it is heard: that may wait until something is under way.
    //= rfc3168#section-6.1.2: react as to a loss, at most once per window of data
    pub fn on_congestion_echo(&mut self, now: Time, counted: bool) -> Verdict {
        let w = &mut self.core.window;
        let idle = w.una >= w.max && !counted;
        if w.una < self.core.reduced_below || self.recovery.active() || idle {
            return None;
        }
        w.ssthresh = self.core.growth.after_mark(now, w)?;
        w.cwnd = w.cwnd.min(w.floor());
        (self.core.reduced_below, self.core.reduced) = (w.max, true);
        Some(TcpKind::CongestionEchoed)
    }

    /// Segments that an ACK of what lies below `ack` tells of, and that nothing told of before, as far as duplicate
    /// ACKs and SACK blocks are known to have.
    pub fn newly(&self, ack: u64) -> u32 {
        let w = &self.core.window;
        let all = ack.saturating_sub(w.una).div_ceil(w.mss.into());
        let sacked = self.recovery.sacked(w.mss) / u64::from(w.mss);
        all.saturating_sub(sacked.max(self.core.tally.dupacks.into())).min(u32::MAX.into()) as u32
    }

    /// Whether the peer must now be told that the window was reduced.
    pub fn take_reduced(&mut self) -> bool {
        core::mem::take(&mut self.core.reduced)
    }
}
