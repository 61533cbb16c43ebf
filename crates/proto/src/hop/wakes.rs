//! Deadlines of a radio hop, and their handling.

use super::Hop;
use super::waiting::Waiting;
use crate::link::end::LinkEnd;
use crate::link::transmitter::report_turn;
use crate::mac::Mac;
use crate::machine::{Machine, Out, StageId};
use crate::units::Time;

/// Limit of events collected from internal deadlines before they are reported.
const TOGETHER: usize = 64;

/// The earliest deadlines; [`Time::NEVER`] if there is none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    pub medium: Time,
    pub ends: Time,
    /// Next reported change of a channel, or deadline of the scheduler.
    pub others: Time,
    pub any: Time,
}

impl Due {
    pub const NOTHING: Due =
        Due { medium: Time::NEVER, ends: Time::NEVER, others: Time::NEVER, any: Time::NEVER };
}

/// Cached poll result of a link end; stale after any input.
#[derive(Clone, Copy, Debug)]
pub(super) struct PollCache {
    /// The end's deadline, and whether it is stale.
    pub wake: Time,
    pub stale: bool,
    /// Whether the end may have a frame to send: false after it returned none, until the next input.
    pub may_send: bool,
}

impl PollCache {
    pub const NOTHING: PollCache = PollCache { wake: Time::NEVER, stale: true, may_send: true };

    /// Invalidates the cache after an input to the end or to the layer above it.
    pub fn forget(&mut self) {
        (self.stale, self.may_send) = (true, true);
    }
}

/// The earliest of `wakes`.
fn first(wakes: impl IntoIterator<Item = Option<Time>>) -> Time {
    wakes.into_iter().flatten().fold(Time::NEVER, Time::min)
}

impl Hop {
    /// Updates the deadlines of all parts.
    pub(super) fn update_deadlines(&mut self) {
        self.due.ends = Time::NEVER;
        for (end, cache) in self.ends.iter().zip(&mut self.polled) {
            if core::mem::take(&mut cache.stale) {
                cache.wake = end.next_wake().unwrap_or(Time::NEVER);
            }
            self.due.ends = self.due.ends.min(cache.wake);
        }
        let turns = first(self.turns.iter().map(|(_, turns)| Some(turns.next())));
        let scheduler = match &self.uppers[0].waiting {
            Waiting::Scheduled(scheduler) => scheduler.next_wake(),
            Waiting::InOrder { .. } | Waiting::Airtime { .. } => None,
        };
        let sky = self.sky.as_ref().map(|sky| sky.next());
        self.due.others = first([scheduler, sky]).min(turns);
        self.update_medium_deadline();
    }

    /// Updates the deadline of medium access only.
    pub(super) fn update_medium_deadline(&mut self) {
        self.due.medium = first([self.medium.next_wake()]);
        self.due.any = self.due.medium.min(self.due.ends).min(self.due.others);
    }

    /// Handles the deadline at `now` like [`Machine::on_wake`], and then later internal deadlines before
    /// `until`, as long as no packet or signal leaves the hop. Most actions of stations concern the hop
    /// alone. `stage` is the hop's own. Returns the time of the last deadline and the number of deadlines.
    pub fn on_wakes(
        &mut self,
        now: Time,
        until: Time,
        stage: StageId,
        out: &mut Out,
    ) -> (Time, u64) {
        let (mut at, mut wakes) = (now, 1);
        self.on_wake(at, out);
        while out.sends.is_empty()
            && out.signals.is_empty()
            && out.events.len() < TOGETHER
            && (at < self.due.any && self.due.any < until)
        {
            at = self.due.any;
            wakes += 1;
            out.begin(stage, at);
            self.on_wake(at, out);
        }
        (at, wakes)
    }

    /// Whether the base station has a scheduler.
    pub(super) fn is_scheduled(&self) -> bool {
        matches!(self.uppers[0].waiting, Waiting::Scheduled(_))
    }

    /// Handles all deadlines due at `at`, the nominal time.
    pub(super) fn step(&mut self, at: Time, out: &mut Out) {
        for (side, turns) in &mut self.turns {
            while let Some(good) = turns.take(at) {
                report_turn(*side, good, true, out);
            }
        }
        if let Some(sky) = &mut self.sky {
            sky.on_wake(at, out);
        }
        let scheduled = self.is_scheduled();
        if scheduled {
            self.update_scheduler(at);
        }
        if self.due.medium <= at {
            self.with_medium(out, |mac, air| mac.on_wake(at, air));
        }
        let alone = self.due.ends.min(self.due.others) > at && !scheduled;
        if alone && self.outcomes.is_empty() && self.medium.reports_idle() {
            // Only medium access was affected, so all other deadlines are unchanged.
            return self.update_medium_deadline();
        }
        if self.due.ends <= at {
            for i in 0..self.ends.len() {
                if self.polled[i].wake <= at {
                    self.with_end(i, out, |end, above| end.on_wake(at, above));
                }
            }
        }
        self.exchange(at, out);
        self.update_deadlines();
    }
}
