//! Loss recovery: the behaviour of a sender from the detection of a loss until its repair.

pub mod any;
pub mod detect;
pub mod fast_rtx_handoff;
pub mod flight;
pub(in crate::tcp::sender) mod nack;
pub(in crate::tcp::sender) mod named;
pub mod prr;
pub mod scoreboard;
pub mod tlp;

use crate::event::TcpKind;
use crate::units::{Due, Span, Time};

use self::detect::Detection;
use super::congestion_control::{Acked, CongestionControl};
use super::systems::integrated::Part;
use super::{AckInfo, Chunk, Core, Window};

/// Reports of an ACK about segments, in addition to the left edge.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckSummary {
    /// Whether it newly reports segments; `None` for a recovery that only counts duplicate ACKs.
    pub reported: Option<bool>,
    /// Round trip of the oldest newly reported segment that was sent once. It includes the delay of the ACK.
    pub oldest: Option<Span>,
    /// Round trip of the newest such segment.
    pub rtt: Option<Span>,
    /// Whether a probe has repaired a loss without other evidence. The window must shrink for this loss.
    pub repaired: bool,
    /// Whether it acknowledges only a part of a segment. In Linux its timestamp then gives no sample
    /// (`tcp_ack_update_rtt`).
    pub part: bool,
}

/// Progress of a recovery by an ACK of new data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// The recovery is complete.
    Over,
    /// More data is missing.
    Partial {
        /// Whether the retransmission timer restarts.
        rearm: bool,
    },
    /// Another loss was detected, and its repair has begun.
    Lost,
}

/// Intermediate results of processing an ACK or a timer.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// The newly acknowledged bytes; none if the left edge has not moved.
    pub ack: Acked,
    /// Whether the left edge has moved.
    pub moved: bool,
    /// Whether the retransmission timer restarts.
    pub rearm: bool,
    /// Whether the window may grow.
    pub grows: bool,
    /// Whether no recovery was in progress before.
    pub fresh: bool,
    /// Newly detected lost bytes.
    pub lost: u64,
    /// Whether the congestion control gets a sample. It gets none from a timer or without data in flight, and in Linux
    /// none from an ACK below the left edge.
    pub samples: bool,
}

impl Step {
    /// The start of processing at `now`.
    pub fn new(now: Time) -> Step {
        let ack = Acked { now, bytes: 0, rtt: None };
        Step { ack, moved: false, rearm: false, grows: false, fresh: true, lost: 0, samples: false }
    }
}

/// Effect of an expired timer of a recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Woken {
    /// Something is sent, and this event is reported.
    Send(TcpKind),
    /// Segments in flight may count as lost now.
    DetectLosses,
}

/// Counts of the segments in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Outstanding {
    /// Segments sent and not cumulatively acknowledged.
    pub segments: u32,
    /// Segments reported by SACK blocks.
    pub sacked: u32,
    /// Segments that count as lost.
    pub lost: u32,
    /// Retransmitted segments that no ACK has reported.
    pub retransmitted: u32,
    /// Whether the retransmission timer has expired for outstanding data.
    pub timed_out: bool,
    /// The shortest round trip, if one was measured.
    pub min_rtt: Option<Span>,
    /// Arrived segments, if they are counted.
    pub delivered: Option<u32>,
    /// Expected extent of reordering in segments, and number of reorderings, if they are known.
    pub reordering: Option<(u32, u32)>,
}

/// Decision of a recovery about the next segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    /// Send this segment.
    Send(Chunk),
    /// Send no segment now.
    Wait,
    /// Send new data as the windows allow.
    Window,
    /// Send no segment, since the windows do not allow one.
    Idle,
}

impl Choice {
    /// Sends `chunk`, or waits if there is none.
    pub fn now(chunk: Option<Chunk>) -> Choice {
        chunk.map_or(Choice::Wait, Choice::Send)
    }
}

/// Repairs losses. It changes edges and windows in place; [`Window::repair`] requests one segment at once.
///
/// An ACK causes these calls in this order: `record_ack`; `undo`; `on_ack` or `on_dup_ack`, if the recovery is engaged;
/// `detect_losses`; `enter`, if the loss detection finds a loss; `grow`; `settle`.
pub trait Recovery {
    /// Asserts the invariants of loss detection and recovery.
    fn check(&self, window: &Window) {
        let _ = window;
    }

    /// Its loss detection.
    const DETECTION: Detection = Detection::DupAcks;

    /// Whether a recovery is in progress.
    fn active(&self) -> bool;

    /// Whether it processes ACKs: a recovery is in progress, or it controls the window at all times.
    fn engaged(&self) -> bool {
        self.active()
    }

    /// Whether a detected loss may begin a recovery. It may not if it belongs to one that a timeout has ended.
    fn may_enter(&self, window: &Window) -> bool {
        let _ = window;
        true
    }

    /// Begins recovery from a loss that `dupacks` duplicate ACKs have shown. The threshold has been lowered before.
    fn enter(&mut self, window: &mut Window, dupacks: u32);

    /// Handles a further duplicate ACK while engaged. Returns the event to report.
    fn on_dup_ack(&mut self, core: &mut Core, now: Time) -> TcpKind {
        let _ = (core, now);
        TcpKind::DupAck
    }

    /// Handles an ACK of new data while engaged.
    fn on_ack(&mut self, core: &mut Core, ack: &Acked) -> Progress;

    /// The window without the inflation by duplicate ACKs, if a timeout halves that one.
    fn uninflated_window(&self, window: &Window) -> Option<u32> {
        let _ = window;
        None
    }

    /// Handles a timeout; the caller resets the window afterwards. A recovery with records of segments returns the
    /// bytes that may still be in flight, which are added to the new window. With `None` everything is retransmitted.
    fn on_timeout(&mut self, now: Time, core: &mut Core) -> Option<u64>;

    /// Whether the window was reduced for a loss that is still unrepaired. A timeout then does not lower the
    /// threshold again.
    fn unrepaired(&self, window: &Window) -> bool {
        let _ = window;
        false
    }

    /// Whether a timeout lowers the threshold, for a recovery with its own rule. Otherwise it does unless the window
    /// is [unrepaired](Recovery::unrepaired) or the timer has expired before.
    fn lowers_at_timeout(&mut self, core: &Core) -> Option<bool> {
        let _ = core;
        None
    }

    /// Records that the sender is called for a timer or its turn to send, not for an ACK.
    fn called(&mut self) {}

    /// Handles an expired timer that is not the retransmission timeout, or sets the timer again.
    fn on_wake(&mut self, now: Time, core: &mut Core) -> Option<Woken> {
        let _ = (now, core);
        None
    }

    /// Discards what it was about to send.
    fn stop(&mut self) {}

    /// Records that the application writes. The edges are still those before the new data.
    fn supplied(&mut self, window: &Window) {
        let _ = window;
    }

    /// Whether it may have something to send.
    fn has_work(&self) -> bool {
        self.active()
    }

    /// Records the reports of an ACK about segments, before any other processing.
    fn record_ack(&mut self, now: Time, window: &Window, info: &AckInfo<'_>) -> AckSummary {
        let _ = (now, window, info);
        AckSummary::default()
    }

    /// Reverts the reaction to a loss if the recorded ACK shows that it was spurious. Returns whether it was.
    fn undo(&mut self, core: &mut Core, info: &AckInfo<'_>) -> bool {
        let _ = (core, info);
        false
    }

    /// Marks segments as lost, for a recovery with records of segments. Returns the number of newly lost bytes.
    fn detect_losses(&mut self, now: Time, core: &mut Core) -> u64 {
        let _ = (now, core);
        0
    }

    /// Opens the window at an ACK, or reduces it in proportion to the arriving data.
    fn grow(&mut self, core: &mut Core, step: &Step) {
        if !step.grows {
            return;
        }
        // The growth is called in any case, since it may measure round trips.
        let most = if core.usage.may_grow(&core.window) { u32::MAX } else { core.window.cwnd };
        core.congestion_control.on_ack(&mut core.window, &step.ack);
        core.window.cwnd = core.window.cwnd.min(most);
    }

    /// Sets the timers after an ACK.
    fn settle(&mut self, core: &mut Core, step: &Step) {
        let (w, timers) = (&core.window, &mut core.timers);
        if !step.moved {
            return;
        }
        if w.una >= w.last() {
            timers.persist = Due::NEVER;
        }
        if w.una >= w.max {
            timers.clear();
        } else if step.rearm {
            timers.rearm(step.ack.now);
        }
    }

    /// Whether a loss is no sign of congestion. The window is then not reduced, and grows during recovery.
    fn preserves_window(&self) -> bool {
        false
    }

    /// Records a sent segment; the edges are still those before it. If no other data was in flight, a recovery with
    /// records returns whether the application had too little to send before.
    fn on_sent(&mut self, now: Time, core: &mut Core, chunk: &Chunk) -> Option<bool> {
        let _ = (now, core, chunk);
        None
    }

    /// Whether an echoed mark reduces the window in proportion to the delivered data.
    fn slows_down(&self) -> bool {
        false
    }

    /// Starts a reduction of the window to the threshold, in proportion to the delivered data and without a loss.
    /// Returns false if the window falls at once.
    fn slow_down(&mut self, window: &Window) -> bool {
        let _ = window;
        false
    }

    /// Whether such a reduction is in progress. A loss then does not lower the threshold again.
    fn is_slowing(&self) -> bool {
        false
    }

    /// Whether more losses are already known, so that another recovery begins when one ends.
    fn unfinished(&self) -> bool {
        false
    }

    /// Whether another recovery begins at once, since the last one has just ended with known losses. Called once for
    /// each ACK.
    fn reenters(&mut self) -> bool {
        false
    }

    /// Bytes above the left edge that have been selectively acknowledged.
    fn sacked_above(&self) -> u64 {
        0
    }

    /// Approximate number of reported bytes above the left edge, in multiples of `mss`.
    fn sacked(&self, mss: u32) -> u64 {
        let _ = mss;
        self.sacked_above()
    }

    /// Counts of the segments in flight.
    fn outstanding(&self, window: &Window) -> Outstanding {
        let segments = window.flight().div_ceil(window.mss.max(1));
        let sacked = self.sacked(window.mss).div_ceil(window.mss.max(1).into()) as u32;
        Outstanding { segments, sacked, ..Outstanding::default() }
    }

    /// The next segment to send, after urgent retransmissions and probes.
    fn next_chunk(&mut self, core: &mut Core, now: Time) -> Choice {
        let _ = (core, now);
        Choice::Window
    }

    /// Whether the segment from `from` on and the last retransmission, which ends there, were in one buffer.
    fn continues(&self, from: u64) -> bool {
        let _ = from;
        true
    }

    /// Whether the segment from `from` on is the next retransmission.
    fn repeats_next(&self, from: u64) -> bool {
        let _ = from;
        false
    }

    /// The shortest round trip, if it is measured.
    fn min_rtt(&self) -> Option<Span> {
        None
    }

    /// Handles a delay by the pacer. The delayed segment does not count as use of the window; earlier ones may.
    fn held_back(&mut self, core: &mut Core, now: Time) {
        let _ = now;
        if core.usage.is_unnoted() {
            core.note_usage();
        }
    }

    /// Bytes in the network, as the congestion window counts them.
    fn pipe(&self, w: &Window) -> u64 {
        w.nxt - w.una
    }

    /// New bytes that were sent because of duplicate ACKs. They do not count as in flight when a loss is detected.
    /// With SACK they are the reported bytes that exceed the window.
    //= rfc6675#section-5: step 4.2: segments sent by limited transmit are not counted
    fn limited(&self, w: &Window) -> u32 {
        let beyond = u64::from(w.flight().saturating_sub(w.cwnd));
        w.limited.max(self.reported_above().min(beyond) as u32)
    }

    /// Bytes above the left edge that the receiver has reported.
    fn reported_above(&self) -> u64 {
        self.sacked_above()
    }

    /// Whether lost data waits for the peer's window to open.
    fn waits(&self, _: &Window) -> bool {
        false
    }

    /// Records the round trip `rtt` of the handshake.
    fn opened(&mut self, rtt: Span) {
        let _ = rtt;
    }

    /// Enables or disables tail loss probes.
    fn set_tail_probes(&mut self, on: bool) {
        let _ = on;
    }

    /// Handles a peer that reports no segments (no SACK): a recovery with records of segments counts duplicate ACKs.
    fn without_reports(&mut self) {}

    /// Marks the unacknowledged data of the SYN, from the left edge up to `to`, as sent and lost.
    fn lose_early(&mut self, now: Time, core: &mut Core, to: u64) {
        let _ = (now, core, to);
    }

    /// Handles a smaller segment size: larger segments in flight count as lost, without congestion. Without records,
    /// everything from the left edge on is retransmitted.
    fn split_flight(&mut self, now: Time, core: &mut Core) {
        let _ = now;
        let w = &mut core.window;
        (w.nxt, w.again) = (w.una.max(1), crate::event::Cause::TimeoutRetransmit);
    }

    /// Whether other connections may use the congestion window while this one is silent.
    fn shares_window(&self) -> bool {
        false
    }

    /// This connection's part of the state that connections share.
    fn part(&mut self) -> Option<&mut Part> {
        None
    }
}
