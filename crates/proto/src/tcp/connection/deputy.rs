//! A base station's end that acknowledges for the far end: only what that has acknowledged (M-TCP).
//!
//! Such an end takes data in as any other and passes it on, but tells its peer no more than the far end has told the
//! base station, less one byte as long as more is under way to the far end. That byte is for the moment at which the
//! far end is gone: a window can then be closed by an ACK that acknowledges something, which every sender believes
//! (4.4BSD takes a window back only so).
//!
//! An ACK that says nothing new would count as a duplicate, so none goes. Behind a hole duplicates are what tells the
//! sender; they are owed until the far end has acknowledged all that lies before the hole, since their number would
//! name bytes that are not missing.

use super::Connection;
use crate::machine::Out;
use crate::travel::FAR;
use crate::travel::travels;
use crate::units::{Span, Time};
use crate::wire::Segment;

/// Duplicate ACKs that are owed at most: there is one for each segment behind a hole.
const OWED_MAX: u32 = 1024;

/// What was acknowledged before and comes again is answered no more often than this. When a window opens that was taken
/// back, a whole window of it may come, and as many answers would count as duplicates. No sender's timer is shorter.
const QUIET: Span = Span::millis(100);

/// What an end knows that acknowledges for another.
#[derive(Clone, Debug, Default)]
pub(super) struct Deputy {
    /// Positions below are acknowledged by the far end.
    far: u64,
    /// Positions below have been acknowledged to the peer.
    told: u64,
    /// Whether the far end is gone: the peer is told of no window.
    shut: bool,
    /// The peer must be answered, whatever there is to say.
    answer: bool,
    /// Duplicate ACKs that wait.
    owed: u32,
    /// When something that was acknowledged before was answered once more.
    repeated: Option<Time>,
}

travels!(Deputy { far, told, shut, .. });

impl Deputy {
    /// One whose far end has what lies before `far`, of which the peer knows what lies before `told`.
    #[cfg(test)]
    pub(super) fn at(far: u64, told: u64) -> Deputy {
        Deputy { far, told, ..Deputy::default() }
    }

    /// Whether it can be so at an end that expects `next`.
    pub(super) fn is_sound(&self, next: u64) -> bool {
        self.far < FAR && self.told <= next.max(1)
    }
}

impl Connection {
    /// From now on nothing is acknowledged that [`Connection::far_has`] does not tell of. Before the connection opens.
    pub fn acknowledge_for_another(&mut self) {
        self.deputy = Some(Box::new(Deputy { far: 1, told: 1, ..Deputy::default() }));
    }

    /// Whether this end acknowledges for another.
    pub fn is_deputy(&self) -> bool {
        self.deputy.is_some()
    }

    /// Whether the peer is told that there is no window, since the far end is gone.
    pub fn is_shut(&self) -> bool {
        self.deputy.as_ref().is_some_and(|deputy| deputy.shut)
    }

    /// The far end has acknowledged `bytes` of what came here, and the peer's FIN if `fin`.
    pub fn far_has(&mut self, now: Time, bytes: u64, fin: bool, out: &mut Out) {
        self.hear_of_far(bytes, fin);
        let Some(deputy) = &mut self.deputy else { return };
        let reached = deputy.far >= self.rx.nxt;
        let owed = if reached { core::mem::take(&mut deputy.owed) } else { 0 };
        if self.sayable() > self.told() {
            self.rx.demand_ack();
            self.flush(now, out);
        }
        for _ in 0..owed {
            self.insist(now, out);
        }
    }

    /// The same, and what is sent next tells of it: nothing is sent for that alone.
    pub fn hear_of_far(&mut self, bytes: u64, fin: bool) {
        if let Some(deputy) = &mut self.deputy {
            deputy.far = deputy.far.max(1 + bytes + u64::from(fin));
        }
    }

    /// The far end is gone, or is back: the peer is told that there is no window, or how large it is.
    pub fn set_shut(&mut self, now: Time, shut: bool, out: &mut Out) {
        if let Some(deputy) = &mut self.deputy
            && deputy.shut != shut
            && self.state.is_synchronised()
        {
            deputy.shut = shut;
            self.insist(now, out);
        }
    }

    /// Positions below have been acknowledged to the peer.
    pub(super) fn told(&self) -> u64 {
        self.deputy.as_ref().map_or(self.rx.nxt, |deputy| deputy.told)
    }

    /// Whether something is missing before what has come.
    fn has_hole(&self) -> bool {
        !self.rx.has_no_gap() && !self.rx.is_finished()
    }

    /// How far the peer can be acknowledged now: what the far end has, less a byte if more is under way there. Behind a
    /// hole it is all, since what the peer sends again begins where it is acknowledged.
    fn sayable(&self) -> u64 {
        let Some(deputy) = &self.deputy else { return self.rx.nxt };
        let far = deputy.far.min(self.rx.nxt);
        let keeps = !deputy.shut && far < self.rx.nxt && far > deputy.told && !self.has_hole();
        deputy.told.max(far - u64::from(keeps))
    }

    /// The position that the next segment acknowledges: `acknowledges` says that it is being sent.
    pub(super) fn acknowledged_position(&mut self) -> u64 {
        let sayable = self.sayable();
        if let Some(deputy) = &mut self.deputy {
            (deputy.told, deputy.answer) = (sayable, false);
        }
        sayable
    }

    /// What the next segment says of the window: that beyond what it acknowledges.
    #[inline]
    pub(super) fn window_to_tell(&mut self, acknowledged: u64) -> u64 {
        let window = self.rx.window() + self.rx.nxt.saturating_sub(acknowledged);
        if self.is_shut() { 0 } else { window }
    }

    /// The peer is answered, whatever there is to say.
    pub(super) fn insist(&mut self, now: Time, out: &mut Out) {
        if let Some(deputy) = &mut self.deputy {
            deputy.answer = true;
        }
        self.rx.demand_ack();
        self.flush(now, out);
    }

    /// Whether an ACK that is due says something.
    pub(super) fn has_a_say(&mut self) -> bool {
        let (sayable, told) = (self.sayable(), self.told());
        let (hole, next) = (self.has_hole(), self.rx.nxt);
        let Some(deputy) = &mut self.deputy else { return true };
        if deputy.answer || sayable > told || hole && sayable == next {
            return true;
        }
        if hole {
            deputy.owed = (deputy.owed + 1).min(OWED_MAX);
        }
        false
    }

    /// A segment came whose bytes, up to `to`, were all here: whether its sender is to be answered. If the answer to
    /// something that was acknowledged is lost it is, and if it probes a closed window. What waits for the far end is
    /// its own affair, but for the byte that was kept back.
    pub(super) fn answers_repeated(
        &mut self,
        now: Time,
        segment: &Segment,
        (from, to): (u64, u64),
    ) -> bool {
        let acceptable = self.has_acceptable_ack(segment);
        let Some(deputy) = &mut self.deputy else { return true };
        if let Some(ts) = segment.timestamps.filter(|_| acceptable && from <= deputy.told) {
            // What is acknowledged next answers this one.
            self.ts_recent = ts.value;
        }
        if from <= deputy.told && deputy.far > deputy.told {
            deputy.told = deputy.far.min(self.rx.nxt);
            return true;
        }
        if deputy.shut {
            return true;
        }
        let quiet = deputy.repeated.is_some_and(|at| now.since(at) < QUIET);
        let answers = to <= deputy.told && !quiet;
        if answers {
            deputy.repeated = Some(now);
        }
        answers
    }
}
