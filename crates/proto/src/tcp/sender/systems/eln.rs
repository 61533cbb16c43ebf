//! Explicit loss notification at the sender: a loss on the wireless link is repaired without congestion measures.
//!
//! A notification that names a segment takes effect at once (west97 2.3.3). A mark on an ACK means that the requested
//! segment was lost on the wireless link (balakrishnan97 3.1.2). It takes effect with the third duplicate ACK, or at once,
//! depending on [`ElnReaction`].

use crate::event::Cause;
use crate::tcp::config::{ElnMode, ElnReaction, TcpConfig, Variant};
use crate::tcp::keyword::{Deployment, Keyword};
use crate::units::Time;

use crate::tcp::sender::recovery::Recovery;
use crate::tcp::sender::recovery::detect::Detect;
use crate::tcp::sender::{AckInfo, SenderWith};

/// The keyword for a reaction to marks at the third duplicate ACK.
pub const WORD: Keyword = Keyword {
    key: "eln",
    apply: |c| marks(c, ElnReaction::ThirdDuplicate),
    summary: "losses that the receiver marks as corruption do not shrink the window (receiver checksum)",
    source: "balakrishnan97 3.1.2",
    tier: 1,
    worlds: crate::describe::SIM,
    syntax: "host: eln = \"checksum\" | \"ideal\"",
    deployment: Deployment::Research,
    linux: None,
};

/// The keyword for an immediate reaction to marks.
pub const AT_ONCE: Keyword = Keyword {
    key: "eln-rxmt",
    apply: |c| marks(c, ElnReaction::FirstAck),
    summary: "marked ACKs: the first one retransmits, or the third duplicate one, and the window stays",
    source: "balakrishnan97 3.1.2",
    tier: 1,
    worlds: crate::describe::SIM,
    syntax: "host: tcp = \"eln-rxmt\" | \"eln\", peer: eln = \"checksum\"",
    deployment: Deployment::Research,
    linux: None,
};

/// Configures Reno with this reaction to marks.
fn marks(c: &mut TcpConfig, reaction: ElnReaction) {
    c.variant = Variant::Reno;
    if c.eln == ElnMode::Off {
        c.eln = ElnMode::Checksum;
    }
    c.eln_reaction = reaction;
}

/// Maximum number of segments in flight that were retransmitted after notifications.
pub(in crate::tcp::sender) const NOTIFIED_MAX: usize = 64;
/// Maximum number of consecutive reactions to notifications for one segment.
const NOTICES_MAX: u32 = 12;

impl<R: Recovery> SenderWith<'_, R> {
    /// Requests the retransmission of a wireless loss at `position`, without a change of the window. False if the
    /// position is not outstanding, or after too many notifications.
    //= west97#2.3.3: the sender retransmits at once and takes no congestion measures
    pub(in crate::tcp::sender) fn notify(&mut self, now: Time, position: u64) -> bool {
        let (w, tally) = (&mut self.core.window, &mut self.core.tally);
        if position < w.una
            || position >= w.max
            || tally.base_reports().notified.len() >= NOTIFIED_MAX
        {
            return false;
        }
        if position == w.una {
            // On a link that damages every packet, each notification would cause a retransmission without end. After
            // this number without progress, only the timer with its backoff retransmits.
            if tally.base_reports().notices >= NOTICES_MAX {
                return false;
            }
            tally.base_reports().notices += 1;
        }
        tally.base_reports().note(position);
        w.repair = Some((position, Cause::ElnRetransmit));
        self.core.timers.timed = None;
        self.core.timers.rearm(now);
        true
    }

    /// Handles a marked ACK of new data: the segment at the new left edge was lost on the wireless link. Returns
    /// whether it is retransmitted.
    //= balakrishnan97#3.1.2: E2E-ELN-RXMT immediately retransmits when receiving acknowledgments with the ELN bit set
    pub(in crate::tcp::sender) fn marked_edge(&mut self, now: Time, info: &AckInfo<'_>) -> bool {
        let at_once = self.core.eln == ElnReaction::FirstAck && self.core.detector.counts();
        at_once && !self.recovery.active() && self.notify(now, info.ack)
    }

    /// Handles an already counted duplicate ACK outside of recovery. Returns whether a mark has caused a
    /// retransmission.
    //= balakrishnan97#3.1.2: ELN prevents the sender from reducing the congestion window after a wireless loss
    pub(in crate::tcp::sender) fn marked_duplicate(
        &mut self,
        now: Time,
        info: &AckInfo<'_>,
    ) -> bool {
        let tally = &mut self.core.tally;
        tally.marked |= info.marked;
        let (marked, dupacks) = (tally.marked, tally.dupacks);
        let enough = match self.core.eln {
            ElnReaction::Named => false,
            ElnReaction::ThirdDuplicate => dupacks >= self.core.detector.threshold(),
            ElnReaction::FirstAck => true,
        };
        if !(marked && enough && self.notify(now, self.core.window.una)) {
            return false;
        }
        // As in fast recovery, each duplicate ACK shows that a segment has left the network.
        self.core.window.extra = self.core.window.mss.saturating_mul(dupacks);
        true
    }
}
