//! Reverting spurious reactions to losses, as in Linux. A reaction is spurious if all retransmissions were needless
//! (DSACK, RFC 3708), or if an ACK answers a segment from before the first retransmission (Eifel, RFC 3522). After
//! a timeout, it is also spurious if data arrives that was not retransmitted (F-RTO, RFC 5682).

use crate::tcp::sender::congestion_control::CongestionControl as _;
use crate::tcp::sender::recovery::Choice;
use crate::tcp::sender::{AckInfo, Core, Window};
use crate::units::{Span, Time};

use super::Rack;

/// State for reverting a reaction.
#[derive(Clone, Debug, Default)]
pub(super) struct Undo {
    /// The left edge when the reaction began.
    marker: Option<u64>,
    /// Number of retransmissions not reported as duplicates; `None` before the first retransmission.
    unproven: Option<u64>,
    /// When the first retransmission was sent.
    first: Option<Time>,
    /// Congestion window and threshold before the reaction.
    prior: (u32, u32),
    /// Last congestion window and threshold outside of recovery.
    calm: (u32, u32),
    /// Whether the last timeout may still prove to be spurious.
    pub(super) may_be_spurious: bool,
    /// Whether new data is sent before lost segments, to test whether they are lost (F-RTO).
    pub(super) tests: bool,
    /// Whether the last ACK was for a delayed original segment: it marks no losses, and causes no retransmission.
    pub(super) holds: bool,
}

impl Undo {
    /// State without a reaction, with the initial threshold.
    pub(super) fn new(ssthresh: u32) -> Undo {
        Undo { calm: (0, ssthresh), ..Undo::default() }
    }

    /// Records the window and the threshold outside of recovery, to which a reaction may be reverted.
    pub(super) fn remember(&mut self, cwnd: u32, ssthresh: u32) {
        self.calm = (cwnd, ssthresh);
    }

    /// Records the window only, after the threshold was lowered.
    pub(super) fn remember_window(&mut self, cwnd: u32) {
        self.calm.0 = cwnd;
    }

    /// Starts a reaction with the left edge at `una` and `repeated` retransmissions in flight; `head` is whether the oldest
    /// segment was retransmitted. Earlier retransmissions belong to it as long as any is unacknowledged
    /// (`tcp_retrans_stamp_cleanup`).
    pub(super) fn begin(&mut self, una: u64, repeated: u64, head: bool) {
        let calm = self.calm;
        let first = self.first.filter(|_| repeated > 0 || head);
        *self = Undo {
            marker: Some(una),
            unproven: (repeated > 0).then_some(repeated),
            first,
            prior: calm,
            calm,
            ..Undo::default()
        };
    }

    /// Records a retransmission.
    pub(super) fn repeats(&mut self, now: Time) {
        self.first.get_or_insert(now);
        self.unproven = Some(self.unproven.unwrap_or(0) + 1);
    }

    /// Records a report of `segments` duplicate segments that end at `end`.
    pub(super) fn duplicate(&mut self, end: u64, segments: u64) {
        if self.marker.is_some_and(|marker| end > marker)
            && let Some(unproven) = &mut self.unproven
        {
            *unproven = unproven.saturating_sub(segments);
        }
    }

    /// Whether all retransmissions were reported as duplicates (RFC 3708).
    pub(super) fn is_proven(&self) -> bool {
        self.marker.is_some() && self.unproven == Some(0)
    }

    /// Whether an ACK that echoes the timestamp of `echoed` answers a segment from before the first retransmission;
    /// `tick` is the unit of timestamps.
    //= rfc3522#section-3.2: the first acceptable ACK echoes an older timestamp than that of the retransmission
    pub(super) fn is_delayed(&self, echoed: Option<Time>, tick: Span) -> bool {
        let ends = echoed.zip(self.first);
        self.marker.is_some() && ends.is_some_and(|(echoed, first)| echoed + tick <= first)
    }

    /// Whether the reaction was reverted.
    pub(super) fn is_done(&self) -> bool {
        self.marker.is_none()
    }

    /// Whether there was no retransmission since the start of the reaction.
    pub(super) fn is_untouched(&self) -> bool {
        self.marker.is_some() && self.first.is_none()
    }

    /// The previous congestion window and threshold. Ends the reaction.
    pub(super) fn take(&mut self) -> (u32, u32) {
        let (prior, calm) = (self.prior, self.calm);
        *self = Undo { calm, first: self.first, holds: self.holds, ..Undo::default() };
        prior
    }
}

/// Evidence of a spurious reaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Proof {
    /// An original segment has arrived. All loss marks are removed.
    Arrival,
    /// All retransmissions were reported as duplicates.
    Duplicates,
    /// All outstanding data is acknowledged, without a needed retransmission.
    End,
}

impl Rack {
    /// Records the window and the threshold to which a reaction to a loss may be reverted, outside of one.
    pub(super) fn remember_window(&mut self, w: &Window) {
        if !self.active && w.una >= self.recover {
            self.undo.remember(w.cwnd, w.ssthresh);
        }
    }

    /// Begins a reaction with the left edge at `una`.
    pub(super) fn begin_undo(&mut self, una: u64) {
        let head = self.flight.first().is_some_and(|head| head.again);
        self.undo.begin(una, self.flight.repeated(), head);
    }

    /// Prepares for reverting a timeout, after the threshold was lowered.
    pub(super) fn prepare_undo(&mut self, core: &Core) {
        let w = &core.window;
        // A timeout in a recovery belongs to that recovery. It may be spurious only if it is not the first one since
        // the left edge has moved (`tcp_enter_loss`).
        let again = core.tally.retries > 1;
        let fresh = !self.active && !self.after_timeout(w);
        let lowered = self.kernel && core.tally.retries == 1 && self.after_timeout(w);
        if fresh {
            self.undo.remember_window(w.cwnd);
        }
        if fresh || lowered {
            self.begin_undo(w.una);
        }
        //= rfc5682#section-3.1: step 1
        self.undo.may_be_spurious = self.kernel && (fresh || again);
    }

    /// New data to test whether the timeout was spurious, or nothing while its ACKs are outstanding.
    //= rfc5682#section-3.1: step 2b: new data, or if there is none the conventional recovery
    pub(super) fn send_test_data(&mut self, now: Time, core: &mut Core) -> Option<Choice> {
        let choice = match self.new_data(now, core) {
            Some(new) => Choice::Send(new),
            None if core.window.nxt > self.recover => Choice::Wait,
            None => {
                self.undo.may_be_spurious = false;
                return None;
            }
        };
        self.undo.tests = true;
        Some(choice)
    }

    /// Reverts the reaction to a loss if the recorded ACK shows that it was spurious. Returns whether it was.
    pub(super) fn undo_reaction(&mut self, core: &mut Core, info: &AckInfo<'_>) -> bool {
        self.undo.tests = false;
        self.undo.holds = false;
        let Some(proof) = self.proof(&core.window, info) else { return false };
        let (cwnd, ssthresh) = self.undo.take();
        let w = &mut core.window;
        core.congestion_control.undone(w, cwnd);
        (core.reduced, core.reduced_below) = (false, 0);
        if !self.active {
            core.tally.retries = 0;
        }
        w.ssthresh = w.ssthresh.max(ssthresh);
        match proof {
            Proof::Arrival => self.flight.revert_losses(),
            Proof::Duplicates => self.reordering.proved(),
            Proof::End => {}
        }
        // Remaining losses begin another reaction.
        self.leftovers = self.flight.has_losses();
        self.facts.advanced = true;
        self.last.reopened = self.active && info.ack < self.recover;
        // Without SACK, duplicate ACKs count again from the next new data on (`tcp_try_undo_loss`).
        let awaits = info.ack == self.recover || !self.active && !self.last.original;
        if !(self.counts && awaits) {
            self.active = false;
            self.recover = 0;
        }
        true
    }

    /// The evidence in the recorded ACK that the reaction to a loss was spurious.
    fn proof(&mut self, w: &Window, info: &AckInfo<'_>) -> Option<Proof> {
        let moved = info.ack > w.una;
        let over = info.ack >= self.recover;
        // If the pacer has permitted no retransmission yet, only the original can have arrived.
        let delayed = moved
            && (self.undo.is_delayed(info.echoed, self.facts.tick)
                || self.active && self.undo.is_untouched());
        let proven = self.undo.is_proven();
        if !self.active && !self.after_timeout(w) {
            // Reports of duplicates come after the end of a recovery.
            return proven.then_some(Proof::Duplicates);
        }
        if self.active {
            if delayed && !over {
                self.facts.note_reordering(w.una, w.mss.into());
                // Before the end of recovery, only if no retransmission is in flight (`tcp_try_undo_partial`).
                self.undo.holds = self.flight.repeated() > 0;
                return (!self.undo.holds).then_some(Proof::Arrival);
            }
            return match over {
                true => (proven || delayed).then_some(Proof::End),
                false => proven.then_some(Proof::Duplicates),
            };
        }
        if moved && (proven || delayed) {
            return Some(Proof::Arrival);
        }
        if !self.undo.may_be_spurious {
            return None;
        }
        //= rfc5682#section-3.1: step 3b: data has arrived that was sent before the timeout and not retransmitted
        if self.last.original {
            return Some(Proof::Arrival);
        }
        if w.nxt > self.recover {
            // Step 3a: a report or a duplicate ACK shows that the new data has arrived, and no old data.
            self.undo.may_be_spurious &= !self.last.reported && !self.last.repeats;
        } else if moved && !over {
            self.recover = w.nxt;
            self.undo.tests = true;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the pacer holds the first retransmission back, only the first transmission can have arrived.
    #[test]
    fn nothing_is_touched_until_the_first_retransmission_of_a_reaction() {
        let mut undo = Undo::new(10_000);
        assert!(!undo.is_untouched(), "there is no reaction");
        undo.begin(1000, 0, false);
        assert!(undo.is_untouched() && !undo.is_proven());
        undo.repeats(Time(5));
        assert!(!undo.is_untouched());
        // A retransmission of the previous reaction is still in flight.
        undo.begin(2000, 1, false);
        assert!(!undo.is_untouched());
        undo.begin(3000, 0, false);
        assert!(undo.is_untouched());
        undo.take();
        assert!(!undo.is_untouched());
    }

    #[test]
    fn a_report_of_several_segments_counts_for_as_many() {
        let mut undo = Undo::new(10_000);
        undo.begin(1000, 3, false);
        undo.duplicate(900, 3);
        assert!(!undo.is_proven(), "older than the reaction");
        undo.duplicate(4000, 2);
        assert!(!undo.is_proven());
        undo.duplicate(5000, 1);
        assert!(undo.is_proven());
    }
}
