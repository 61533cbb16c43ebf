//! Loss detection without SACK, as in Linux. Each duplicate ACK counts as an arrived segment (`tcp_add_reno_sack`). The
//! third one shows the loss of the oldest segment, and in recovery a partial ACK that of the next one (RFC 6582,
//! `tcp_newreno_mark_lost`).

use crate::tcp::sender::Window;
use crate::units::Time;

use super::Rack;
use super::arrivals::MOST_REORDERED;

impl Rack {
    /// Whether the left edge at `una` ends the reaction to a loss. Without SACK only later data does: retransmissions of
    /// arrived data cause duplicate ACKs of exactly this position (`tcp_is_non_sack_preventing_reopen`).
    pub(super) fn is_over(&self, una: u64) -> bool {
        una > self.recover || una == self.recover && !(self.counts && una > 0)
    }

    /// Counts the arrivals that the last ACK shows, and marks a segment as lost if they show its loss. Returns its bytes.
    pub(super) fn detect_by_count(&mut self, now: Time, w: &Window) -> u64 {
        let (moved, below) = (self.last.moved, w.una < self.recover);
        if moved {
            if !self.flight.miss_oldest() {
                self.note_excess(self.last.acked);
            }
        } else if self.last.reported && self.counts_now(w) {
            self.count_duplicate(now, w);
        }
        // The end of a reaction to a timeout looks at the counts first, and one that reverts a recovery does not change them
        // (`tcp_fastretrans_alert`).
        let repairs = self.active && below || self.last.reopened;
        let forgets = moved && !repairs && !self.undo.holds;
        let looks = !forgets || self.last.after_timeout;
        let due = match self.active {
            true => moved && below && !self.undo.holds,
            false => {
                let counted = self.flight.sacked_segments() as u64;
                looks && self.is_over(w.una) && counted >= self.facts.reordered_by
            }
        };
        let (meter, losses) = (&mut self.meter, &mut self.losses);
        let lost = match due {
            true => self.flight.lose_oldest(|sent| losses.note(meter, now, sent)),
            false => 0,
        };
        if forgets {
            self.flight.forget_reports();
        }
        lost
    }

    /// Whether a duplicate ACK counts now. After a timeout it does for the new data that tests whether the timeout was
    /// spurious (`tcp_process_loss`).
    fn counts_now(&self, w: &Window) -> bool {
        let below = w.una < self.recover;
        match self.active {
            true => below,
            false => self.is_over(w.una) || below && w.nxt > self.recover,
        }
    }

    fn count_duplicate(&mut self, now: Time, w: &Window) {
        if self.flight.count_arrival() {
            self.meter.delivered_again(now, w.mss.into());
            self.last.delivered += u64::from(w.mss);
            self.facts.delivered = self.facts.delivered.wrapping_add(1);
        } else {
            self.note_excess(0);
        }
    }

    /// Records that more segments have arrived than can have: there is reordering, whose extent is that of the flight,
    /// even where this is less than before (`tcp_check_reno_reordering`).
    fn note_excess(&mut self, acked: u64) {
        self.facts.reordered_by = (self.flight.segments() as u64 + acked).min(MOST_REORDERED);
        self.facts.reorderings = self.facts.reorderings.saturating_add(1);
    }
}
