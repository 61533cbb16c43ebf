//! State of a sender that loss detection, recovery and growth share: windows, timers, and the counters that are reset
//! when the left edge moves.

use std::sync::Arc;

use crate::tcp::Settings;
use crate::tcp::config::{Clock, ElnReaction};
use crate::tcp::rtt::RttEstimator;
use crate::units::{Due, Time};

use super::Window;
use super::buffers::{Appended, Buffers};
use super::bursts::Bursts;
use super::congestion_control::any::AnyCongestionControl;
use super::congestion_control::pacing::Pacer;
use super::congestion_control::usage::Usage;
use super::limits::Limits;
use super::recovery::detect::Detector;
use super::systems::ns::TimerRules;

/// State of a sender except that of its recovery, which changes this state.
#[derive(Clone, Debug)]
pub struct Core {
    /// Windows and edges.
    pub window: Window,
    /// Window growth.
    pub congestion_control: AnyCongestionControl,
    /// Timers and round trips.
    pub timers: Timers,
    /// Counters.
    pub tally: Tally,
    pub(super) detector: Detector,
    pub(super) limited_transmit: bool,
    pub(super) loss_window: u32,
    /// Timeouts of a SYN that do not double the next one.
    pub(in crate::tcp) syn_linear: u32,
    pub(super) eln: ElnReaction,
    /// An echoed mark below this position belongs to an already reduced window.
    pub(in crate::tcp) reduced_below: u64,
    /// Whether the peer must still be notified of a reduced window (CWR).
    pub(super) reduced: bool,
    /// Marked bytes ([`AckInfo::ce_bytes`](super::AckInfo)) since the last sample of the growth.
    pub(super) ce_bytes: u32,
    pub(super) pacer: Option<Box<Pacer>>,
    /// Linux' rules for bursts of new data.
    pub(super) bursts: Option<Box<Bursts>>,
    /// Use of the congestion window, which decides whether it may grow.
    pub(super) usage: Usage,
    /// Times for which each limit has stopped this sender.
    pub(super) limits: Limits,
    /// Whether the peer's window must be probed now.
    pub(super) probe_now: bool,
    /// Whether this timer has caused the last polled segment, although the window is open (`tcp_write_wakeup`).
    pub(super) fills_window: bool,
    /// Whether a withdrawn window is probed at once, as in 4.4BSD.
    persists_at_once: bool,
}

impl Core {
    /// Asserts the invariants of windows, timers and counters.
    pub fn check(&self) {
        self.window.check();
        self.timers.rtt.check();
        let Window { una, max, .. } = self.window;
        debug_assert!(
            self.timers.timed.is_none_or(|(end, _)| end <= max),
            "a timed segment beyond the sent data: {:?}",
            self.timers.timed
        );
        // A SYN that follows received data is outstanding without a position of its own.
        debug_assert!(
            !self.timers.runs() || una < max || max == 1,
            "the retransmission timer runs without outstanding data"
        );
        debug_assert!(
            self.reduced_below <= self.window.end + 1,
            "a window reduced for unwritten data"
        );
        if let Some(reports) = &self.tally.base_reports {
            debug_assert!(reports.notified.is_sorted_by(|a, b| a < b), "notified losses ascend");
            debug_assert!(
                reports.missing.iter().all(|(from, to)| from < to && *to <= max),
                "missing ranges of sent data"
            );
            debug_assert!(
                reports.missing.is_sorted_by(|a, b| a.1 <= b.0),
                "missing ranges are disjoint"
            );
        }
    }

    /// Before the handshake.
    pub fn new(config: &Arc<Settings>) -> Core {
        let rtt = RttEstimator::new(config);
        Core {
            window: Window::new(config),
            congestion_control: AnyCongestionControl::new(config),
            timers: Timers {
                rtt,
                rules: TimerRules::new(config),
                timed: None,
                rexmt: Due::NEVER,
                purpose: Purpose::Timeout,
                persist: Due::NEVER,
                persist_backoff: 0,
                unanswered: 0,
            },
            tally: Tally::default(),
            detector: Detector::new(config.variant, config),
            limited_transmit: config.limited_transmit,
            loss_window: config.loss_window,
            syn_linear: config.syn_linear,
            eln: config.eln_reaction,
            reduced_below: 0,
            reduced: false,
            ce_bytes: 0,
            pacer: Pacer::new(config).map(Box::new),
            bursts: Bursts::of(config),
            usage: Usage::new(config),
            limits: Limits::default(),
            probe_now: false,
            fills_window: false,
            persists_at_once: matches!(config.clock, Clock::Ticks { .. }),
        }
    }

    /// Records whether the congestion window is the reason that no more is sent now.
    pub(super) fn note_usage(&mut self) {
        let w = &self.window;
        let full = w.nxt - w.una + u64::from(w.mss) > w.congestion().into();
        self.usage.note(w, w.nxt - w.una, w.nxt < w.last() && full);
    }

    /// The buffers of written data, if the sender has Linux' rules for bursts.
    pub(in crate::tcp) fn buffers(&self) -> Option<&Buffers> {
        self.bursts.as_ref().map(|bursts| &bursts.buffers)
    }

    /// Appends a part of a write of `rest` bytes; see [`Buffers::append`].
    pub(in crate::tcp) fn append(&mut self, rest: u64, marks: (bool, bool)) -> Option<Appended> {
        let bursts = self.bursts.as_mut()?;
        Some(bursts.buffers.append(&self.window, rest, marks))
    }

    /// Whether the last polled segment leaves in one buffer with the one before, as one packet of Linux.
    pub(in crate::tcp) fn joins(&self) -> bool {
        self.bursts.as_ref().is_some_and(|bursts| bursts.joined)
    }

    /// Whether the last polled segment has PSH as the last one of its buffer; `None` if that follows from the writes.
    pub(in crate::tcp) fn pushes(&self) -> Option<bool> {
        let cut = self.bursts.as_ref().is_some_and(|bursts| bursts.cut).then_some(false);
        if self.joins() || self.fills_window { Some(true) } else { cut }
    }

    /// Time at which the pacer permits the next segment, if one waits.
    #[inline]
    pub(super) fn paced(&self) -> Due {
        self.pacer.as_ref().map_or(Due::NEVER, |pacer| pacer.waits)
    }

    /// Stops the probes, since the peer's window is open. In Linux their backoff continues until the window has room
    /// for a segment (`tcp_ack_probe`).
    #[inline]
    pub(super) fn end_probes(&mut self) {
        self.timers.persist = Due::NEVER;
        if self.timers.persist_backoff > 0 {
            let w = &self.window;
            let next = u64::from(w.mss).min(w.last().saturating_sub(w.una));
            if !w.linux || u64::from(w.peer) >= next {
                self.timers.persist_backoff = 0;
            }
        }
    }

    /// Starts the timer of window probes. The backoff continues if the window has opened by less than a segment.
    pub(super) fn begin_probes(&mut self, now: Time) {
        let backoff = if self.window.linux { self.timers.persist_backoff } else { 0 };
        let factor = self.timers.rtt.backoff_factor(backoff);
        self.timers.probe_later(now, factor);
    }

    /// Whether the peer has withdrawn its whole window while data is in flight, and this sender does not wait for its
    /// ACK.
    pub(super) fn window_withdrawn(&self) -> bool {
        let w = &self.window;
        w.peer == 0 && w.una < w.nxt && self.persists_at_once
    }
}

/// Purpose of the timer for outstanding data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// The retransmission timeout.
    Timeout,
    /// A tail loss probe.
    Probe,
    /// The end of the wait for reordered segments.
    Reordering,
}

/// The timers of a sender, and the round-trip estimate on which they depend.
#[derive(Clone, Debug)]
pub struct Timers {
    /// Round-trip estimation.
    pub rtt: RttEstimator,
    pub(super) rules: TimerRules,
    /// The segment that is being timed: the position past its end, and when it was sent.
    pub timed: Option<(u64, Time)>,
    /// When the timer for outstanding data expires.
    //= rfc8985#section-8: one timer with a variable for its purpose
    pub(super) rexmt: Due,
    purpose: Purpose,
    /// When a closed window is probed.
    pub persist: Due,
    /// Consecutive probes without an answer that opens the window.
    pub persist_backoff: u32,
    /// Probes since the last ACK of the peer, with timeouts while its window is closed.
    pub unanswered: u32,
}

impl Timers {
    /// Sets the timer for outstanding data, whatever its purpose was.
    #[inline]
    pub fn set(&mut self, purpose: Purpose, at: Time) {
        (self.purpose, self.rexmt) = (purpose, Due::at(at));
    }

    /// Stops the timer for outstanding data.
    #[inline]
    pub fn clear(&mut self) {
        (self.purpose, self.rexmt) = (Purpose::Timeout, Due::NEVER);
    }

    /// Whether the timer for outstanding data runs, for any purpose.
    #[inline]
    pub fn runs(&self) -> bool {
        self.rexmt.is_set()
    }

    /// Expiry of the timer for outstanding data.
    #[inline]
    pub fn expiry(&self) -> Due {
        self.rexmt
    }

    /// Whether the timer for outstanding data runs for `purpose`.
    #[inline]
    pub fn is_for(&self, purpose: Purpose) -> bool {
        self.runs() && self.purpose == purpose
    }

    /// Purpose of the timer for outstanding data, if it has expired.
    #[inline]
    pub fn expired(&self, now: Time) -> Option<Purpose> {
        self.rexmt.is_past(now).then_some(self.purpose)
    }

    /// Restarts the retransmission timer with the current timeout.
    pub fn rearm(&mut self, now: Time) {
        self.set(Purpose::Timeout, self.rtt.deadline(now, 1));
    }

    /// Starts the timer of window probes with `factor` times the current timeout.
    pub fn probe_later(&mut self, now: Time, factor: u64) {
        self.persist = Due::at(self.rtt.deadline(now, factor));
    }
}

/// Counters that are reset when the left edge moves or the retransmission timer expires.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Duplicate ACKs.
    pub dupacks: u32,
    /// Whether the last segment of the peer carried nothing, and did not change its window.
    pub plain: bool,
    /// Whether a duplicate ACK has reported that the left edge was lost on the wireless link.
    pub marked: bool,
    /// Timeouts since the left edge last moved.
    pub retries: u32,
    /// Time of the first of these timeouts.
    pub(super) first_timeout: Time,
    /// Reports of base stations; most connections have none.
    base_reports: Option<Box<BaseReports>>,
}

/// Reports of base stations, and the retransmissions that they require.
#[derive(Clone, Debug, Default)]
pub struct BaseReports {
    /// Loss notifications for the left edge.
    pub notices: u32,
    /// Negative acknowledgements.
    pub nacks: u32,
    /// Consecutive partial ACKs since the last complete ACK. A timeout does not reset the count.
    pub ackp_run: u32,
    /// Positions that were lost on the wireless link and retransmitted, lowest first.
    pub notified: Vec<u64>,
    /// Ranges that a base station has not received, to be retransmitted.
    pub missing: Vec<(u64, u64)>,
}

impl BaseReports {
    /// Records the retransmission of the segment at `position`, which was lost on the wireless link.
    pub fn note(&mut self, position: u64) {
        if let Err(at) = self.notified.binary_search(&position) {
            self.notified.insert(at, position);
        }
    }
}

impl Tally {
    /// Resets the counters that both an ACK of new data and a timeout reset.
    fn reset(&mut self) {
        (self.dupacks, self.marked) = (0, false);
        if let Some(reports) = &mut self.base_reports {
            (reports.notices, reports.nacks) = (0, 0);
        }
    }

    /// The reports of base stations.
    pub fn base_reports(&mut self) -> &mut BaseReports {
        self.base_reports.get_or_insert_default()
    }

    /// Whether data that a base station has not received waits for its retransmission.
    #[inline]
    pub fn has_missing(&self) -> bool {
        self.base_reports.as_ref().is_some_and(|reports| !reports.missing.is_empty())
    }

    /// Whether this is the lowest position that was lost on the wireless link.
    pub fn was_notified(&self, position: u64) -> bool {
        self.base_reports
            .as_ref()
            .is_some_and(|reports| reports.notified.first() == Some(&position))
    }

    /// Handles a move of the left edge to `una`.
    pub fn edge_moved(&mut self, una: u64) {
        self.reset();
        self.retries = 0;
        if let Some(reports) = &mut self.base_reports {
            reports.ackp_run = 0;
            reports.notified.retain(|position| *position >= una);
        }
    }

    /// Handles the loss of all data in flight.
    pub fn start_over(&mut self) {
        self.reset();
        if let Some(reports) = &mut self.base_reports {
            reports.notified.clear();
            reports.missing.clear();
        }
    }
}
