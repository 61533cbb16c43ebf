//! The verdict on the losses of a direction.

use super::Tracker;
use super::repairs::DUPLICATES;
use crate::reading::{Cause, Verdict};

impl Tracker {
    /// The verdict. Without a repaired loss, the capture may show an unrepaired one, or be unable to show any.
    pub(super) fn verdict(&self) -> Verdict {
        let verdict = self.trials.verdict(self.lost, self.unseen);
        if verdict.cause != Cause::NoLoss || self.reading.data_packets == 0 {
            return verdict;
        }
        let missing = self.gaps.open(self.una);
        let reported = self.arrived.len() > 0 || self.duplicates >= DUPLICATES;
        let evidence = if missing > 0 {
            format!(
                "no retransmission shows a loss, but {missing} B before captured ones are neither captured nor acknowledged"
            )
        } else if self.una < self.next && reported {
            "no retransmission shows a loss, but the receiver's last ACKs report missing bytes"
                .to_owned()
        } else if self.first_offset.is_some_and(|first| self.una <= first) {
            "no retransmission shows a loss, but no ACK of this data was captured".to_owned()
        } else {
            return verdict;
        };
        Verdict { cause: Cause::Unclear, evidence, ..verdict }
    }
}
