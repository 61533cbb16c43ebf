//! What the seams of a sender work on together: its windows, its timers, and what is counted until the left edge
//! moves.

use std::sync::Arc;

use crate::tcp::Settings;
use crate::tcp::config::{Clock, ElnReaction, GrowthRule, Halving, TimerOrder};
use crate::tcp::rtt::RttEstimator;
use crate::units::{Due, Time};

use super::Window;
use super::control::AnyGrowth;
use super::detect::Detector;
use super::limits::Limits;
use super::pacing::Pacer;
use super::usage::Usage;

/// What a sender consists of besides its recovery, which works on it.
#[derive(Clone, Debug)]
pub struct Core {
    /// Windows and edges.
    pub window: Window,
    /// Window growth.
    pub growth: AnyGrowth,
    /// Timers and round trips.
    pub timers: Timers,
    /// Counters.
    pub tally: Tally,
    pub(super) detector: Detector,
    pub(super) limited_transmit: bool,
    /// Each duplicate ACK tells of a segment that has arrived, and is not counted again when the left edge moves.
    pub(super) reno_sacks: bool,
    pub(super) loss_window: u32,
    /// Timeouts of a SYN that do not double the next one.
    pub(in crate::tcp) syn_linear: u32,
    pub(super) halve_at_each_timeout: bool,
    pub(super) eln: ElnReaction,
    pub(super) fast_backoff: bool,
    pub(super) stamps: bool,
    /// An echoed mark below this position belongs to a window that was reduced already.
    pub(in crate::tcp) reduced_below: u64,
    /// The window was reduced, and the peer has not been told.
    pub(super) reduced: bool,
    /// What ACKs have told of marks ([`AckInfo::ce_bytes`](super::AckInfo)) since the growth was last told.
    pub(super) ce_bytes: u32,
    pub(super) pacer: Option<Box<Pacer>>,
    /// How the congestion window is used.
    pub(super) usage: Usage,
    /// What this sender waits for.
    pub(super) limits: Limits,
    /// The peer's window is to be probed now.
    pub(super) probe_now: bool,
    /// Whether a window that is taken back is probed at once, as 4.4BSD does.
    persists_at_once: bool,
    /// Whether probes of a window wait as long as before until it takes a segment, as Linux does (`tcp_ack_probe`).
    waits_for_segment: bool,
}

impl Core {
    /// Before the handshake.
    pub fn new(config: &Arc<Settings>) -> Core {
        let rtt = RttEstimator::new(config);
        Core {
            window: Window::new(config),
            growth: AnyGrowth::new(config),
            timers: Timers {
                rtt,
                order: config.timer_order,
                timed: None,
                rexmt: Due::NEVER,
                persist: Due::NEVER,
                persist_backoff: 0,
                unanswered: 0,
            },
            tally: Tally::default(),
            detector: Detector::new(config.variant, config),
            limited_transmit: config.limited_transmit,
            reno_sacks: false,
            loss_window: config.loss_window,
            syn_linear: config.syn_linear,
            halve_at_each_timeout: config.halving == Halving::Window,
            eln: config.eln_reaction,
            fast_backoff: config.fast_backoff,
            stamps: config.stamps,
            reduced_below: 0,
            reduced: false,
            ce_bytes: 0,
            pacer: Pacer::new(config).map(Box::new),
            usage: Usage::new(config),
            limits: Limits::default(),
            probe_now: false,
            persists_at_once: matches!(config.clock, Clock::Ticks { .. }),
            waits_for_segment: config.growth == GrowthRule::Linux,
        }
    }

    /// Nothing more is sent for now: remembers whether the congestion window is the reason.
    pub(super) fn note_usage(&mut self) {
        let w = &self.window;
        let full = w.nxt - w.una + u64::from(w.mss) > w.congestion().into();
        self.usage.note(w, w.nxt < w.last() && full);
    }

    /// Of `bytes` that an ACK acknowledges, those that are news: without SACK Linux takes each duplicate ACK before for a
    /// segment that has arrived (`tcp_remove_reno_sacks`).
    pub(super) fn newly_arrived(&self, bytes: u32) -> u32 {
        if !self.reno_sacks {
            return bytes;
        }
        let known = self.tally.dupacks.saturating_mul(self.window.mss);
        bytes.saturating_sub(known).max(bytes.min(self.window.mss))
    }

    /// When the pacer lets the next segment go, if one waits for that.
    #[inline]
    pub(super) fn paced(&self) -> Due {
        self.pacer.as_ref().map_or(Due::NEVER, |pacer| pacer.waits)
    }

    /// The peer's window is open: it is probed no longer.
    #[inline]
    pub(super) fn end_probes(&mut self) {
        self.timers.persist = Due::NEVER;
        if self.timers.persist_backoff > 0 {
            let w = &self.window;
            let next = u64::from(w.mss).min(w.last().saturating_sub(w.una));
            if !self.waits_for_segment || u64::from(w.peer) >= next {
                self.timers.persist_backoff = 0;
            }
        }
    }

    /// The peer's window will be probed, after as many timeouts as before if it has opened too little.
    pub(super) fn begin_probes(&mut self, now: Time) {
        let backoff = if self.waits_for_segment { self.timers.persist_backoff } else { 0 };
        let factor = self.timers.rtt.backoff_factor(backoff);
        self.timers.probe_later(now, factor);
    }

    /// Whether the peer has taken back its whole window below what is under way, and nothing of that is waited for.
    pub(super) fn yields(&self) -> bool {
        let w = &self.window;
        w.peer == 0 && w.una < w.nxt && self.persists_at_once
    }
}

/// The timers of a sender, and the round trips that they follow from.
#[derive(Clone, Debug)]
pub struct Timers {
    /// Round-trip estimation.
    pub rtt: RttEstimator,
    /// When the retransmission timer starts again.
    pub order: TimerOrder,
    /// One segment is timed at a time: the position past its end, and when it was sent.
    pub timed: Option<(u64, Time)>,
    /// When the retransmission timer expires.
    pub rexmt: Due,
    /// When a closed window is probed.
    pub persist: Due,
    /// Probes in a row without an answer that opens the window.
    pub persist_backoff: u32,
    /// Probes since the peer last acknowledged anything.
    pub unanswered: u32,
}

impl Timers {
    /// The retransmission timer starts again, with the time-out in force.
    pub fn rearm(&mut self, now: Time) {
        self.rexmt = Due::at(self.rtt.deadline(now, 1));
    }

    /// The time-out doubles, and the retransmission timer starts again.
    pub fn back_off(&mut self, now: Time) {
        if self.order == TimerOrder::First {
            self.rearm(now);
            return self.rtt.back_off();
        }
        self.rtt.back_off();
        self.rearm(now);
    }

    /// The timer of window probes starts, with `factor` times the time-out in force.
    pub fn probe_later(&mut self, now: Time, factor: u64) {
        self.persist = Due::at(self.rtt.deadline(now, factor));
    }
}

/// What is counted and noted until the left edge moves or the retransmission timer expires.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Duplicate ACKs.
    pub dupacks: u32,
    /// A duplicate ACK has said that the left edge was lost on the wireless link.
    pub marked: bool,
    /// Time-outs since the left edge last moved.
    pub retries: u32,
    /// When the first of them was.
    pub(super) first_timeout: Time,
    /// What base stations have told, as few do.
    told: Option<Box<ToldByBase>>,
}

/// What base stations have told.
#[derive(Clone, Debug, Default)]
pub struct ToldByBase {
    /// Loss notifications for the left edge.
    pub notices: u32,
    /// Negative acknowledgements.
    pub nacks: u32,
    /// Partial acknowledgements since the last complete one. A time-out does not end the row.
    pub ackp_run: u32,
    /// Positions that were lost on the wireless link and have been sent again, lowest first.
    pub notified: Vec<u64>,
    /// Ranges that a base station misses, to be sent again.
    pub missing: Vec<(u64, u64)>,
}

impl ToldByBase {
    /// What begins at `position` was lost on the wireless link and is sent again.
    pub fn note(&mut self, position: u64) {
        if let Err(at) = self.notified.binary_search(&position) {
            self.notified.insert(at, position);
        }
    }
}

impl Tally {
    /// What progress and a time-out clear alike.
    fn reset(&mut self) {
        (self.dupacks, self.marked) = (0, false);
        if let Some(told) = &mut self.told {
            (told.notices, told.nacks) = (0, 0);
        }
    }

    /// What base stations have told.
    pub fn told(&mut self) -> &mut ToldByBase {
        self.told.get_or_insert_default()
    }

    /// Whether a base station misses anything that is to be sent again.
    #[inline]
    pub fn misses(&self) -> bool {
        self.told.as_ref().is_some_and(|told| !told.missing.is_empty())
    }

    /// Whether the lowest position that was lost on the wireless link is this one.
    pub fn is_noted(&self, position: u64) -> bool {
        self.told.as_ref().is_some_and(|told| told.notified.first() == Some(&position))
    }

    /// The left edge has moved to `una`.
    pub fn edge_moved(&mut self, una: u64) {
        self.reset();
        self.retries = 0;
        if let Some(told) = &mut self.told {
            told.ackp_run = 0;
            told.notified.retain(|position| *position >= una);
        }
    }

    /// What was in flight counts as lost.
    pub fn start_over(&mut self) {
        self.reset();
        if let Some(told) = &mut self.told {
            told.notified.clear();
            told.missing.clear();
        }
    }
}
