//! Explicit loss notification at the sender: a loss on the wireless link is repaired without congestion measures.
//!
//! A notification that names a segment is obeyed at once (west97 2.3.3). A mark on an ACK says that the segment which
//! it asks for was lost on the wireless link (balakrishnan97 3.1.2); it is obeyed with the third duplicate ACK, or at
//! once, as [`ElnReaction`] says.

use crate::event::Cause;
use crate::tcp::config::{ElnMode, ElnReaction, TcpConfig, Variant};
use crate::tcp::word::Word;
use crate::units::Time;

use super::detect::Detect;
use super::recovery::Recovery;
use super::{AckInfo, Way};

/// The word for marks that the third duplicate ACK obeys.
pub const WORD: Word = Word {
    key: "eln",
    apply: |c| marks(c, ElnReaction::ThirdDuplicate),
    what: "losses that the receiver marks as corruption do not shrink the window (receiver checksum)",
    source: "balakrishnan97 3.1.2",
    tier: 1,
    worlds: crate::describe::SIM,
    syntax: "host: eln = \"checksum\" | \"ideal\"",
};

/// The word for marks that are obeyed at once.
pub const AT_ONCE: Word = Word {
    key: "eln-rxmt",
    apply: |c| marks(c, ElnReaction::FirstAck),
    what: "marked ACKs: the first one retransmits, or the third duplicate one, and the window stays",
    source: "balakrishnan97 3.1.2",
    tier: 1,
    worlds: crate::describe::SIM,
    syntax: "host: tcp = \"eln-rxmt\" | \"eln\", peer: eln = \"checksum\"",
};

/// Reno that asks for marks and obeys them so.
fn marks(c: &mut TcpConfig, reaction: ElnReaction) {
    c.variant = Variant::Reno;
    if c.eln == ElnMode::Off {
        c.eln = ElnMode::Checksum;
    }
    c.eln_reaction = reaction;
}

/// Segments that may be under way again after notifications at a time.
pub(super) const NOTIFIED_MAX: usize = 64;
/// Loss notifications for one segment that are obeyed in a row.
const NOTICES_MAX: u32 = 12;

impl<R: Recovery> Way<'_, R> {
    /// A wireless loss at `position`: queue it again without touching the window. False if it is not
    /// outstanding.
    //= west97#2.3.3: the sender retransmits at once and takes no congestion measures
    pub(super) fn notify(&mut self, now: Time, position: u64) -> bool {
        let (w, tally) = (&mut self.core.window, &mut self.core.tally);
        if position < w.una || position >= w.max || tally.told().notified.len() >= NOTIFIED_MAX {
            return false;
        }
        if position == w.una {
            // A link that damages every packet must not be sent one for each notification, for ever: after so
            // many without progress the timer decides, and it backs off.
            if tally.told().notices >= NOTICES_MAX {
                return false;
            }
            tally.told().notices += 1;
        }
        tally.told().note(position);
        w.repair = Some((position, Cause::ElnRetransmit));
        self.core.timers.timed = None;
        self.core.timers.rearm(now);
        true
    }

    /// An ACK has moved the left edge and bears a mark: the segment at the new edge was lost as well. Whether it is
    /// sent again.
    //= balakrishnan97#3.1.2: E2E-ELN-RXMT immediately retransmits when receiving acknowledgments with the ELN bit set
    pub(super) fn marked_edge(&mut self, now: Time, info: &AckInfo<'_>) -> bool {
        let at_once = self.core.eln == ElnReaction::FirstAck && self.core.detector.counts();
        at_once && !self.recovery.active() && self.notify(now, info.ack)
    }

    /// A duplicate ACK outside of recovery, counted already. True if a mark has led to a retransmission.
    //= balakrishnan97#3.1.2: ELN prevents the sender from reducing the congestion window after a wireless loss
    pub(super) fn marked_duplicate(&mut self, now: Time, info: &AckInfo<'_>) -> bool {
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
        // As in fast recovery: each duplicate ACK tells of a segment that has left the network.
        self.core.window.extra = self.core.window.mss.saturating_mul(dupacks);
        true
    }
}
