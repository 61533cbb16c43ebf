//! Explicit loss notification at the sender: a loss on the wireless link is repaired without congestion measures.
//!
//! A notification that names a segment is obeyed at once (west97 2.3.3). A mark on an ACK says that the segment which
//! it asks for was lost on the wireless link (balakrishnan97 3.1.2); it is obeyed with the third duplicate ACK, or at
//! once, as [`ElnReaction`] says.

use crate::event::{Cause, TcpKind};
use crate::tcp::config::ElnReaction;
use crate::units::Time;

use super::detect::Detect;
use super::recovery::Recovery;
use super::{AckInfo, Sender, Verdict};

/// Segments that may be under way again after notifications at a time.
pub(super) const NOTIFIED_MAX: usize = 64;
/// Loss notifications for one segment that are obeyed in a row.
const NOTICES_MAX: u32 = 12;

impl Sender {
    /// A wireless loss at `position`: queue it again without touching the window. False if it is not
    /// outstanding.
    //= west97#2.3.3: the sender retransmits at once and takes no congestion measures
    pub(super) fn notify(&mut self, now: Time, position: u64) -> bool {
        let w = &mut self.window;
        if position < w.una || position >= w.max || self.notified.len() >= NOTIFIED_MAX {
            return false;
        }
        if position == w.una {
            // A link that damages every packet must not be sent one for each notification, for ever: after so
            // many without progress the timer decides, and it backs off.
            if self.notices >= NOTICES_MAX {
                return false;
            }
            self.notices += 1;
        }
        if let Err(at) = self.notified.binary_search(&position) {
            self.notified.insert(at, position);
        }
        w.repair = Some((position, Cause::ElnRetransmit));
        self.timed = None;
        self.rexmt_at = Some(self.rtt.deadline(now, 1));
        true
    }

    /// An ACK has moved the left edge and bears a mark: the segment at the new edge was lost as well.
    //= balakrishnan97#3.1.2: E2E-ELN-RXMT immediately retransmits when receiving acknowledgments with the ELN bit set
    pub(super) fn marked_edge(
        &mut self,
        now: Time,
        info: &AckInfo<'_>,
        verdict: Verdict,
    ) -> Verdict {
        let at_once = info.marked && self.eln == ElnReaction::FirstAck;
        if at_once && !self.recovery.active() && self.notify(now, info.ack) {
            return Some(TcpKind::LossNotified);
        }
        verdict
    }

    /// A duplicate ACK outside of recovery, counted already. True if a mark has led to a retransmission.
    //= balakrishnan97#3.1.2: ELN prevents the sender from reducing the congestion window after a wireless loss
    pub(super) fn marked_duplicate(&mut self, now: Time, info: &AckInfo<'_>) -> bool {
        self.marked |= info.marked;
        let enough = match self.eln {
            ElnReaction::Named => false,
            ElnReaction::ThirdDuplicate => self.dupacks >= self.detector.threshold(),
            ElnReaction::FirstAck => true,
        };
        if !(self.marked && enough && self.notify(now, self.window.una)) {
            return false;
        }
        // As in fast recovery: each duplicate ACK tells of a segment that has left the network.
        self.window.extra = self.window.mss.saturating_mul(self.dupacks);
        true
    }
}
