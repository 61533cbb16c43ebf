//! A reaction to a loss that was none is taken back, as Linux does it: when every retransmission proves to have been
//! needless (DSACK, RFC 3708), when the receiver answers what was sent before the first of them (Eifel, RFC 3522), and
//! after a time-out when data arrives that was never sent again (F-RTO, RFC 5682).

use crate::tcp::rtt::RttEstimator;
use crate::tcp::sender::growth::Growth as _;
use crate::tcp::sender::recovery::Choice;
use crate::tcp::sender::usage::Usage;
use crate::tcp::sender::{AckInfo, Core, Window};
use crate::units::{Span, Time};

use super::Rack;

/// What there is to take back.
#[derive(Clone, Debug, Default)]
pub(super) struct Undo {
    /// The left edge when the reaction began.
    marker: Option<u64>,
    /// Retransmissions that are not known to have been needless; `None` before the first.
    unproven: Option<u64>,
    /// When the first of them left.
    first: Option<Time>,
    /// The congestion window and the threshold before.
    prior: (u32, u32),
    /// The same when no loss was being repaired, last.
    calm: (u32, u32),
    /// After a time-out: whether it may still prove to be spurious.
    pub(super) doubts: bool,
    /// New data goes before what counts as lost, to learn whether it is.
    pub(super) tests: bool,
    /// The last ACK filled a hole with a delayed segment: it marks nothing lost, and nothing lost is sent for it.
    pub(super) holds: bool,
}

impl Undo {
    /// Nothing; the first threshold is known.
    pub(super) fn new(ssthresh: u32) -> Undo {
        Undo { calm: (0, ssthresh), ..Undo::default() }
    }

    /// No loss is being repaired: what would be gone back to.
    pub(super) fn remember(&mut self, cwnd: u32, ssthresh: u32) {
        self.calm = (cwnd, ssthresh);
    }

    /// The same, where the threshold has been lowered already.
    pub(super) fn remember_window(&mut self, cwnd: u32) {
        self.calm.0 = cwnd;
    }

    /// A reaction begins with the left edge at `una`; `repeated` segments that were sent again are under way.
    pub(super) fn begin(&mut self, una: u64, repeated: u64) {
        let calm = self.calm;
        let first = self.first.filter(|_| repeated > 0);
        *self = Undo {
            marker: Some(una),
            unproven: (repeated > 0).then_some(repeated),
            first,
            prior: calm,
            calm,
            ..Undo::default()
        };
    }

    /// A segment is sent again.
    pub(super) fn repeats(&mut self, now: Time) {
        self.first.get_or_insert(now);
        self.unproven = Some(self.unproven.unwrap_or(0) + 1);
    }

    /// The receiver reports that `segments` which end at `end` came twice.
    pub(super) fn duplicate(&mut self, end: u64, segments: u64) {
        if self.marker.is_some_and(|marker| end > marker)
            && let Some(unproven) = &mut self.unproven
        {
            *unproven = unproven.saturating_sub(segments);
        }
    }

    /// Whether each retransmission was needless: all have been reported as duplicates (RFC 3708).
    pub(super) fn is_proven(&self) -> bool {
        self.marker.is_some() && self.unproven == Some(0)
    }

    /// Whether an ACK that echoes what was sent at `echoed` answers something older than the first retransmission;
    /// timestamps count in `tick`.
    //= rfc3522#section-3.2: the first acceptable ACK echoes an older timestamp than that of the retransmission
    pub(super) fn is_delayed(&self, echoed: Option<Time>, tick: Span) -> bool {
        let ends = echoed.zip(self.first);
        self.marker.is_some() && ends.is_some_and(|(echoed, first)| echoed + tick <= first)
    }

    /// Whether nothing has been sent again since the reaction began.
    pub(super) fn is_untouched(&self) -> bool {
        self.marker.is_some() && self.first.is_none()
    }

    /// The congestion window and the threshold to go back to; there is nothing more to take back.
    pub(super) fn take(&mut self) -> (u32, u32) {
        let (prior, calm) = (self.prior, self.calm);
        *self = Undo { calm, holds: self.holds, ..Undo::default() };
        prior
    }
}

/// What shows that a reaction was for nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Proof {
    /// A segment has arrived that was not sent again: nothing counts as lost any more.
    Arrival,
    /// All retransmissions were reported as duplicates.
    Duplicates,
    /// All that was outstanding is acknowledged, before any retransmission was needed.
    End,
}

impl Rack {
    /// The retransmission timer has expired; the threshold has been lowered.
    pub(super) fn doubt(&mut self, core: &Core) {
        let w = &core.window;
        // A time-out in a recovery belongs to that, and is doubted only if it is not the first one.
        let again = core.timers.rtt.backoff() > 0 && self.after_timeout(w);
        let fresh = !self.active && !self.after_timeout(w);
        if fresh {
            self.undo.remember_window(w.cwnd);
            self.undo.begin(w.una, self.flight.repeated());
        }
        //= rfc5682#section-3.1: step 1
        self.undo.doubts = self.kernel && (fresh || again);
    }

    /// New data that is to show whether the time-out was spurious, or nothing while its ACKs are awaited.
    //= rfc5682#section-3.1: step 2b: new data, or if there is none the conventional recovery
    pub(super) fn test(
        &mut self,
        now: Time,
        rtt: &RttEstimator,
        w: &mut Window,
        usage: &mut Usage,
    ) -> Option<Choice> {
        let choice = match self.new_data(now, rtt, w, usage) {
            Some(new) => Choice::Send(new),
            None if w.nxt > self.recover => Choice::Wait,
            None => {
                self.undo.doubts = false;
                return None;
            }
        };
        self.undo.tests = true;
        Some(choice)
    }

    /// Whether the ACK that was just heard shows that the reaction to a loss was for nothing; it is taken back then.
    pub(super) fn take_back(&mut self, core: &mut Core, info: &AckInfo<'_>) -> bool {
        self.undo.tests = false;
        self.undo.holds = false;
        let Some(proof) = self.proof(&core.window, info) else { return false };
        let (cwnd, ssthresh) = self.undo.take();
        let w = &mut core.window;
        core.growth.undone(w, cwnd);
        (core.reduced, core.reduced_below) = (false, 0);
        w.ssthresh = w.ssthresh.max(ssthresh);
        match proof {
            Proof::Arrival => self.flight.forgive(),
            Proof::Duplicates => self.reordering.proved(),
            Proof::End => {}
        }
        // What counts as lost nevertheless begins another reaction.
        self.leftovers = self.flight.has_losses();
        self.facts.advanced = true;
        if self.active {
            self.leave();
        }
        self.recover = w.una;
        true
    }

    /// What shows that the reaction to a loss was for nothing, if the ACK does that was just heard.
    fn proof(&mut self, w: &Window, info: &AckInfo<'_>) -> Option<Proof> {
        let moved = info.ack > w.una;
        let over = info.ack >= self.recover;
        // Where the pacer has let no retransmission go yet, only the first transmission can have arrived.
        let delayed = moved
            && (self.undo.is_delayed(info.echoed, self.facts.tick)
                || self.active && self.undo.is_untouched());
        let proven = self.undo.is_proven();
        if !self.active && !self.after_timeout(w) {
            // Reports of duplicates come after the end of a recovery.
            return proven.then_some(Proof::Duplicates);
        }
        if self.active {
            self.undo.holds = delayed && !over;
            if self.undo.holds {
                self.facts.note_reordering(w.una, w.una, w.mss.into());
                // Before its end only if no retransmission is under way any more.
                return (self.flight.repeated() == 0).then_some(Proof::Arrival);
            }
            return match over {
                true => (proven || delayed).then_some(Proof::End),
                false => proven.then_some(Proof::Duplicates),
            };
        }
        if moved && (proven || delayed) {
            return Some(Proof::Arrival);
        }
        if !self.undo.doubts {
            return None;
        }
        //= rfc5682#section-3.1: step 3b: what was sent before the time-out, and not again, has arrived
        if self.last.original {
            return Some(Proof::Arrival);
        }
        if w.nxt > self.recover {
            // Step 3a: new data is acknowledged, and nothing of the old.
            self.undo.doubts &= !self.last.reported;
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
        undo.begin(1000, 0);
        assert!(undo.is_untouched() && !undo.is_proven());
        undo.repeats(Time(5));
        assert!(!undo.is_untouched());
        // A retransmission of the reaction before is still under way.
        undo.begin(2000, 1);
        assert!(!undo.is_untouched());
        undo.begin(3000, 0);
        assert!(undo.is_untouched());
        undo.take();
        assert!(!undo.is_untouched());
    }

    #[test]
    fn a_report_of_several_segments_counts_for_as_many() {
        let mut undo = Undo::new(10_000);
        undo.begin(1000, 3);
        undo.duplicate(900, 3);
        assert!(!undo.is_proven(), "older than the reaction");
        undo.duplicate(4000, 2);
        assert!(!undo.is_proven());
        undo.duplicate(5000, 1);
        assert!(undo.is_proven());
    }
}
