//! Whether the sender of a flow slows down after a loss. Flows whose sender does not are ignored.
//!
//! Hiding losses helps a sender that interprets each loss as congestion (Reno, CUBIC). A sender that follows
//! the delivery rate (BBR) needs no help: ACKs delayed by local repairs disturb its measurements.
//!
//! The evidence is the sender's **flight** at each segment: the bytes from the last ACK that the sender has
//! received to the end of the segment. The timestamp that the segment echoes identifies that ACK (RFC 7323
//! section 4.1). Without timestamps there is no conclusion, and all losses are repaired.
//!
//! 1. **Suspicion.** A window that only losses reduce does not shrink while losses are hidden. BBR drains its
//!    queue after its startup, and sends four segments per round trip every 10 s. A flight below [`SHRUNK`]
//!    of its peak for [`SHRUNK_ROUNDS`], without a loss visible to the sender, makes its sender a suspect.
//!    Bulk flows of CUBIC and Reno hardly ever get here.
//! 2. **Test.** The largest flight of a period is measured, and the next loss is left to the sender. After
//!    the sender's retransmission losses are repaired again, and the largest flight of another period is
//!    measured. CUBIC retains 0.7 (RFC 9438 section 4.6), Reno 0.5 (RFC 5681 section 3.1), BBR all of it.
//! 3. **Congestion.** When the radio's queue overflows, losses are left to the sender anyway, which is a test
//!    without cost. A flow is ignored after [`UNMOVED_TIMES`] successive losses after which its flight
//!    recovered within [`TRIAL_ROUNDS`].
//! 4. **Ignored flows.** A flow that passes the test is ignored. If its flight falls below [`FALLEN`] of the
//!    earlier level in two periods, the agent repairs its losses again. A failed test is repeated after
//!    [`RETRY`], then after twice as long.

use std::collections::VecDeque;

use crate::units::{Span, Time};

/// Percentage of the peak below which a flight has shrunk. BBR's cycle reduces it from 1.25 of the path's
/// capacity to 1.0, the end of its startup from 2 or more to 1.
const SHRUNK: u64 = 60;
/// Rounds with such a flight: BBR's shortest dip of 200 ms has two at 100 ms.
const SHRUNK_ROUNDS: u32 = 2;
/// Segments of a peak below which there is no conclusion: a difference of few segments is no reaction.
const LEAST_PEAK: u64 = 16;
/// Rounds of a period: BBR's cycle has eight.
const PERIOD_ROUNDS: u32 = 10;
/// Shortest period: longer than the 200 ms for which BBR sends four segments a round trip.
const PERIOD: Span = Span::millis(400);
/// Rounds after a retransmission that belong to the recovery.
const RECOVERY_ROUNDS: u32 = 3;
/// Rounds in which a loss visible to the sender explains a smaller flight: several recoveries may follow each
/// other.
const EXPLAINED_ROUNDS: u32 = 10;
/// Percentage of its flight that a sender without a reaction retains: CUBIC retains 70.
const UNMOVED: u64 = 85;
/// Percentage of the flight below which an ignored flow has slowed down.
const FALLEN: u64 = 75;
/// Number of successive losses at a full queue after which the flight recovered, with the rounds and the time
/// for that. BBR probes with its whole flight every eight rounds; CUBIC needs more than a second to return to
/// 85 % of a large window.
const UNMOVED_TIMES: u32 = 4;
const TRIAL_ROUNDS: u32 = 8;
const TRIAL: Span = Span::secs(1);
/// Segments of a flight below which a recovery has no meaning: within eight rounds a window grows by some
/// segments.
const LEAST_TRIAL: u64 = 40;
/// Time from the first failed test to the next one.
const RETRY: Span = Span::secs(10);
/// Limit of doublings of that time.
const RETRY_DOUBLINGS: u32 = 6;
/// Limit of stored ACKs with timestamps.
const MARKS: usize = 32;
/// Stored ACKs per round trip.
const MARKS_A_ROUND: u64 = 8;
/// Round trips without data after which the application counts as idle.
const IDLE_ROUNDS: u64 = 2;

/// A change of the agent's treatment of losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Change {
    /// The next loss is left to the sender, to observe its reaction.
    Tests,
    /// The sender does not slow down, so the flow is ignored.
    LeavesAlone,
    /// The sender slows down, so losses are repaired.
    Repairs,
}

/// An ACK that was forwarded to the sender.
#[derive(Clone, Copy, Debug)]
struct Mark {
    /// The receiver's timestamp.
    stamp: u32,
    /// Acknowledged position.
    acked: u64,
    at: Time,
}

/// The largest flight of a period.
#[derive(Clone, Copy, Debug)]
struct Period {
    rounds: u32,
    since: Time,
    most: u64,
}

impl Period {
    fn new(since: Time) -> Period {
        Period { rounds: 0, since, most: 0 }
    }

    /// Adds a round. Returns the largest flight when the period is complete.
    fn add(&mut self, now: Time, flight: u64) -> Option<u64> {
        self.rounds += 1;
        self.most = self.most.max(flight);
        let complete = self.rounds >= PERIOD_ROUNDS && now.since(self.since) >= PERIOD;
        complete.then_some(self.most)
    }
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Losses are repaired.
    Repairs,
    /// The flight before a test is measured.
    Before(Period),
    /// The next loss is left to the sender; with the flight so far.
    Shows { level: u64, period: Period },
    /// The sender has retransmitted; with its flight before, and the remaining rounds of its recovery.
    After { level: u64, recovery: u32, period: Period },
    /// The flow is ignored; with its flight at the start, and the number of periods far below it.
    Alone { level: u64, low: u32, period: Period },
}

/// A loss at a full queue. During the sender's recovery its flight has a hole and is not evaluated.
#[derive(Clone, Copy, Debug)]
struct Trial {
    /// Flight before the loss.
    level: u64,
    /// Position that ends the recovery, and then the round after it.
    until: u64,
    phase: Phase,
    /// Largest flight since the round after the recovery.
    most: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Recovers,
    /// The round after the recovery.
    Settles,
    Measures {
        since: Time,
        rounds: u32,
    },
}

/// State of a flow's sender.
#[derive(Clone, Debug)]
pub(super) struct Reaction {
    /// Whether flows may be ignored; otherwise only the round trip is measured.
    concludes: bool,
    state: State,
    marks: VecDeque<Mark>,
    /// The last ACK that the sender had received when it sent its latest data.
    received: Option<Mark>,
    /// The round ends when data answers an ACK of this position.
    round_end: u64,
    /// Start of the round, and duration of the last one.
    round_began: Time,
    turn: Span,
    /// Largest flight of this round.
    flight: u64,
    /// Round trip between the base station and the sender; zero if unknown.
    rtt: Span,
    /// Time of the latest data.
    busy: Time,
    /// Largest payload of a segment.
    segment: u64,
    /// Largest flight since a visible loss, and the number of rounds far below it.
    peak: u64,
    low: u32,
    /// Remaining rounds that may show the reaction to a visible loss.
    explained: u32,
    /// Flights of the last rounds.
    recent: [u64; 3],
    trial: Option<Trial>,
    /// Successive trials without a reaction.
    unmoved: u32,
    /// Time before which there is no test.
    retry: Time,
    failures: u32,
}

impl Reaction {
    /// Initial state. With `concludes` the flow may be ignored later.
    pub(super) fn new(concludes: bool) -> Reaction {
        Reaction {
            concludes,
            state: State::Repairs,
            marks: VecDeque::new(),
            received: None,
            round_end: 0,
            round_began: Time::ZERO,
            turn: Span::ZERO,
            flight: 0,
            rtt: Span::ZERO,
            busy: Time::ZERO,
            segment: 0,
            peak: 0,
            low: 0,
            explained: 0,
            recent: [0; 3],
            trial: None,
            unmoved: 0,
            retry: Time::ZERO,
            failures: 0,
        }
    }
}

/// Whether `share` percent of `whole` exceed `part`.
fn below(part: u64, whole: u64, share: u64) -> bool {
    part.saturating_mul(100) < whole.saturating_mul(share)
}

impl Reaction {
    /// Whether losses are left to the sender at present.
    pub(super) fn leaves(&self) -> bool {
        matches!(self.state, State::Shows { .. } | State::Alone { .. })
    }

    /// Whether the flow is ignored, so that its packets need not be cached.
    pub(super) fn is_alone(&self) -> bool {
        matches!(self.state, State::Alone { .. })
    }

    /// Round trip between the base station and the sender; zero if unknown.
    pub(super) fn round_trip(&self) -> Span {
        self.rtt
    }

    /// Records an ACK of `acked` to the sender with the receiver's timestamp `stamp`.
    pub(super) fn acked(&mut self, now: Time, stamp: u32, acked: u64) {
        let spacing = Span(self.rtt.0 / MARKS_A_ROUND);
        if let Some(last) = self.marks.back()
            && (now.since(last.at) < spacing || last.stamp == stamp)
        {
            return;
        }
        if self.marks.len() == MARKS {
            self.marks.pop_front();
        }
        self.marks.push_back(Mark { stamp, acked, at: now });
    }

    /// Records that a loss or a congestion mark is visible to the sender.
    pub(super) fn loss_visible(&mut self) {
        self.explained = EXPLAINED_ROUNDS;
        (self.peak, self.low) = (0, 0);
    }

    /// Records that losses below position `until` are left to the sender, since the queue is full.
    pub(super) fn congested(&mut self, until: u64) {
        self.loss_visible();
        let mut level = self.recent.into_iter().fold(self.flight, u64::max);
        if let Some(trial) = self.trial {
            level = match trial.phase {
                Phase::Measures { .. } => {
                    self.conclude(trial);
                    trial.most
                }
                Phase::Recovers | Phase::Settles => trial.level,
            };
        }
        let known = matches!(self.state, State::Repairs) && level >= LEAST_TRIAL * self.segment;
        self.trial = known.then_some(Trial { level, until, phase: Phase::Recovers, most: 0 });
    }

    fn conclude(&mut self, trial: Trial) {
        let stays = !below(trial.most, trial.level, UNMOVED);
        self.unmoved = if stays { self.unmoved + 1 } else { 0 };
        self.trial = None;
    }

    /// Evaluates data up to `end` with this flight, sent in answer to an ACK of `acked`.
    fn try_flight(&mut self, now: Time, acked: u64, end: u64, flight: u64) {
        let Some(trial) = &mut self.trial else { return };
        match trial.phase {
            Phase::Recovers | Phase::Settles if acked < trial.until => {}
            Phase::Recovers => (trial.phase, trial.until) = (Phase::Settles, end),
            Phase::Settles => {
                trial.phase = Phase::Measures { since: now, rounds: 0 };
                trial.until = end;
                trial.most = flight;
            }
            Phase::Measures { since, rounds } => {
                trial.most = trial.most.max(flight);
                if acked >= trial.until {
                    trial.until = end;
                    trial.phase = Phase::Measures { since, rounds: rounds + 1 };
                }
                if rounds >= TRIAL_ROUNDS || now.since(since) >= TRIAL {
                    let trial = *trial;
                    self.conclude(trial);
                }
            }
        }
    }

    /// Ends a round with this flight. Returns whether enough trials were without a reaction.
    fn passes_trials(&mut self, now: Time, flight: u64) -> bool {
        self.recent = [flight, self.recent[0], self.recent[1]];
        self.unmoved >= UNMOVED_TIMES && now >= self.retry
    }

    /// Records the sender's retransmission.
    pub(super) fn retransmitted(&mut self, now: Time) {
        self.loss_visible();
        if let State::Shows { level, .. } = self.state {
            let period = Period::new(now);
            self.state = State::After { level, recovery: RECOVERY_ROUNDS, period };
        }
    }

    /// Handles new data up to position `end` that echoes the receiver's timestamp `echo`; `segment` is the
    /// payload of one segment. Returns a change of treatment, if there is one.
    pub(super) fn data(&mut self, now: Time, echo: u32, end: u64, segment: u64) -> Option<Change> {
        self.segment = self.segment.max(segment);
        let silence = core::mem::replace(&mut self.busy, now);
        if now.since(silence) > self.turn * IDLE_ROUNDS && self.turn > Span::ZERO {
            self.pause(now);
        }
        let is_received = |mark: &Mark| echo.wrapping_sub(mark.stamp) as i32 >= 0;
        let mut newer = None;
        while let Some(mark) = self.marks.front().copied().filter(is_received) {
            newer = Some(mark);
            self.marks.pop_front();
        }
        if let Some(mark) = newer {
            let sample = now.since(mark.at);
            // The minimum of recent samples; the path may become longer.
            self.rtt = match self.rtt {
                Span::ZERO => sample,
                rtt => sample.min(rtt + rtt / 8),
            };
            self.received = Some(mark);
        }
        let received = self.received?;
        let flight = end.saturating_sub(received.acked);
        self.flight = self.flight.max(flight);
        self.try_flight(now, received.acked, end, flight);
        if received.acked < self.round_end {
            return None;
        }
        let flight = core::mem::take(&mut self.flight);
        self.round_end = end;
        self.turn = now.since(self.round_began);
        self.round_began = now;
        if !self.concludes {
            return None;
        }
        self.round(now, flight)
    }

    /// Handles a pause of the application: the flight does not reflect the window.
    fn pause(&mut self, now: Time) {
        (self.peak, self.low, self.flight) = (0, 0, 0);
        (self.recent, self.trial) = ([0; 3], None);
        self.round_began = now;
        match &mut self.state {
            State::Repairs => {}
            State::Before(period)
            | State::Shows { period, .. }
            | State::After { period, .. }
            | State::Alone { period, .. } => *period = Period::new(now),
        }
    }

    /// Ends a round trip with `flight` as its maximum.
    fn round(&mut self, now: Time, flight: u64) -> Option<Change> {
        match &mut self.state {
            State::Repairs => {
                if self.passes_trials(now, flight) {
                    let level = self.recent.into_iter().fold(0, u64::max);
                    self.state = State::Alone { level, low: 0, period: Period::new(now) };
                    return Some(Change::LeavesAlone);
                }
                if self.suspects(now, flight) {
                    self.state = State::Before(Period::new(now));
                }
                None
            }
            State::Before(period) => {
                let level = period.add(now, flight)?;
                self.state = State::Shows { level, period: Period::new(now) };
                Some(Change::Tests)
            }
            State::Shows { level, period } => {
                if let Some(most) = period.add(now, flight) {
                    (*level, *period) = (most, Period::new(now));
                }
                None
            }
            State::After { recovery, period, .. } if *recovery > 0 => {
                *recovery -= 1;
                *period = Period::new(now);
                None
            }
            State::After { level, period, .. } => {
                let most = period.add(now, flight)?;
                let level = *level;
                if below(most, level, UNMOVED) {
                    return Some(self.repair(now));
                }
                self.state = State::Alone { level, low: 0, period: Period::new(now) };
                Some(Change::LeavesAlone)
            }
            State::Alone { level, low, period } => {
                let most = period.add(now, flight)?;
                *period = Period::new(now);
                *low = if below(most, *level, FALLEN) { *low + 1 } else { 0 };
                (*low >= 2).then(|| self.repair(now))
            }
        }
    }

    /// Whether the flight is far below its peak without a loss that explains it.
    fn suspects(&mut self, now: Time, flight: u64) -> bool {
        if self.explained > 0 {
            self.explained -= 1;
            return false;
        }
        if flight >= self.peak {
            (self.peak, self.low) = (flight, 0);
            return false;
        }
        self.low = if below(flight, self.peak, SHRUNK) { self.low + 1 } else { 0 };
        self.low >= SHRUNK_ROUNDS && self.peak >= LEAST_PEAK * self.segment && now >= self.retry
    }

    /// Handles a sender that slows down: its losses are repaired until the next test.
    fn repair(&mut self, now: Time) -> Change {
        self.state = State::Repairs;
        (self.peak, self.low) = (0, 0);
        (self.trial, self.unmoved) = (None, 0);
        self.retry = now + RETRY * (1 << self.failures.min(RETRY_DOUBLINGS));
        self.failures = self.failures.saturating_add(1);
        Change::Repairs
    }
}

#[cfg(test)]
mod tests;
