//! Loss recovery: what a sender does from the detection of a loss until it is repaired.

use crate::event::TcpKind;
use crate::units::{Due, Rate, Span, Time};

use super::growth::{Acked, Growth};
use super::integrated::Part;
use super::{AckInfo, Chunk, Core, Timers, Window};

/// What an ACK told about segments, beyond the left edge.
#[derive(Clone, Copy, Debug, Default)]
pub struct News {
    /// Whether it told of segments that nobody knew of; `None` where nothing but duplicate ACKs tells of them.
    pub reported: Option<bool>,
    /// Round trip of the oldest segment that it tells of and that was sent once: a delayed ACK is part of it.
    pub oldest: Option<Span>,
    /// Round trip of the newest one.
    pub rtt: Option<Span>,
    /// A probe has repaired a loss that would have gone unnoticed: the window has to shrink for it.
    pub repaired: bool,
}

/// How far an ACK for new data brought a recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// It is over.
    Over,
    /// More is missing; `rearm` says whether the retransmission timer starts again.
    Partial {
        /// Start the timer again.
        rearm: bool,
    },
    /// Another loss was found, and its repair has begun.
    Lost,
}

/// What an ACK, or a timer, has come to so far.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// What the ACK told of the left edge; no bytes if that has not moved.
    pub ack: Acked,
    /// Whether the left edge has moved.
    pub moved: bool,
    /// Whether the retransmission timer starts again.
    pub rearm: bool,
    /// Whether the window may grow.
    pub grows: bool,
    /// Whether no loss was being repaired before.
    pub fresh: bool,
    /// Bytes that were found to be lost.
    pub lost: u64,
    /// Whether an ACK gives a sample to the congestion control: a timer does not, nor for Linux an ACK below the left edge.
    pub samples: bool,
}

impl Step {
    /// Nothing has come of it yet, at `now`.
    pub fn new(now: Time) -> Step {
        let ack = Acked { now, bytes: 0, rtt: None };
        Step { ack, moved: false, rearm: false, grows: false, fresh: true, lost: 0, samples: false }
    }
}

/// What a timer of a recovery brings about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Woken {
    /// This; something is sent.
    Acts(TcpKind),
    /// Segments may count as lost by now.
    Judges,
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
    /// Segments sent again that have not been reported.
    pub retransmitted: u32,
    /// Whether the retransmission timer has expired for data that is outstanding.
    pub timed_out: bool,
    /// The shortest round trip, if one was measured.
    pub min_rtt: Option<Span>,
    /// Segments that have arrived, if they are counted.
    pub delivered: Option<u32>,
    /// By how many segments reordering is expected, and how often it was seen; where that is known.
    pub reordering: Option<(u32, u32)>,
}

/// What is sent next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    /// This.
    Send(Chunk),
    /// Nothing now.
    Wait,
    /// What the window allows.
    Window,
    /// Nothing, since there is nothing that the windows allow.
    Idle,
}

impl Choice {
    /// `chunk`, or nothing now.
    pub fn now(chunk: Option<Chunk>) -> Choice {
        chunk.map_or(Choice::Wait, Choice::Send)
    }
}

/// Repairs losses. [`Window::repair`] asks for one segment at once; edges and windows are changed in place.
///
/// An ACK goes through these methods in this order: `hear`; `undo`; `on_ack` or `on_dup_ack`, if the recovery is engaged;
/// `judge`; `enter`, if the loss detection finds a loss; `grow`; `settle`.
pub trait Recovery {
    /// Whether a recovery is under way.
    fn active(&self) -> bool;

    /// Whether ACKs go to it: a recovery is under way, or it decides about the window at all times.
    fn engaged(&self) -> bool {
        self.active()
    }

    /// Whether a detected loss may begin a recovery, or belongs to one that ended by a time-out.
    fn may_enter(&self, window: &Window) -> bool {
        let _ = window;
        true
    }

    /// A loss was detected by `dupacks` duplicate ACKs; the slow-start threshold has been lowered.
    fn enter(&mut self, window: &mut Window, dupacks: u32);

    /// A further duplicate ACK while it is engaged; what that means.
    fn on_dup_ack(&mut self, core: &mut Core, now: Time) -> TcpKind {
        let _ = (core, now);
        TcpKind::DupAck
    }

    /// An ACK moved the left edge while it is engaged.
    fn on_ack(&mut self, core: &mut Core, ack: &Acked) -> Progress;

    /// What a time-out halves, where that is not the window with what duplicate ACKs have added to it.
    fn bare(&self, window: &Window) -> Option<u32> {
        let _ = window;
        None
    }

    /// The retransmission timer expired; the caller resets the window afterwards. Where records say what to send
    /// again, the bytes that may still be under way: they count on top of the new window. Otherwise everything is sent
    /// again.
    fn on_timeout(&mut self, now: Time, core: &mut Core) -> Option<u64>;

    /// Whether the window has shrunk for a loss that is not repaired yet, so that a time-out is no reason to lower the
    /// threshold again.
    fn unrepaired(&self, window: &Window) -> bool {
        let _ = window;
        false
    }

    /// When a timer of its own expires next.
    fn next_wake(&self) -> Option<Time> {
        None
    }

    /// The sender is called because of the time or of its turn, not for an ACK.
    fn called(&mut self) {}

    /// A timer of its own may have expired.
    fn on_wake(&mut self, now: Time, core: &mut Core) -> Option<Woken> {
        let _ = (now, core);
        None
    }

    /// The retransmission timer expired: when it does in fact, if that is not now.
    fn postponed(&self, now: Time, timers: &Timers) -> Option<Time> {
        let _ = (now, timers);
        None
    }

    /// Stops its timers.
    fn stop(&mut self) {}

    /// Whether it may have something to send.
    fn has_work(&self) -> bool {
        self.active()
    }

    /// Takes in what an ACK tells about segments, before anything else is done with it.
    fn hear(&mut self, now: Time, window: &Window, info: &AckInfo<'_>) -> News {
        let _ = (now, window, info);
        News::default()
    }

    /// Whether the ACK that was just heard shows that the reaction to a loss was for nothing; it has been taken back then.
    fn undo(&mut self, core: &mut Core, info: &AckInfo<'_>) -> bool {
        let _ = (core, info);
        false
    }

    /// Marks what is lost by now; how many bytes that are. Only those do that keep records of segments.
    fn judge(&mut self, now: Time, core: &Core) -> u64 {
        let _ = (now, core);
        0
    }

    /// Opens the window by an ACK, or closes it in step with what arrives.
    fn grow(&mut self, core: &mut Core, step: &Step) {
        if !step.grows {
            return;
        }
        // A growth that measures round trips goes on doing so.
        let most = if core.usage.may_grow(&core.window) { u32::MAX } else { core.window.cwnd };
        core.growth.on_ack(&mut core.window, &step.ack);
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
            timers.rexmt = Due::NEVER;
        } else if step.rearm {
            timers.rearm(step.ack.now);
        }
    }

    /// Whether a loss is no sign of congestion: the window stays, and opens on while losses are repaired.
    fn keeps_window(&self) -> bool {
        false
    }

    /// A piece goes out; the edges are still those before. Where a record says that nothing else was under way, whether
    /// the application had too little to send before.
    fn on_sent(&mut self, now: Time, core: &mut Core, chunk: &Chunk) -> Option<bool> {
        let _ = (now, core, chunk);
        None
    }

    /// Whether it is known already that more is lost, so that the next recovery begins when one is over.
    fn unfinished(&self) -> bool {
        false
    }

    /// Whether a recovery begins at once, since the last one has just ended and left losses behind. Asked once for each ACK.
    fn begins_anew(&mut self) -> bool {
        false
    }

    /// Bytes above the left edge that have been selectively acknowledged.
    fn sacked_above(&self) -> u64 {
        0
    }

    /// About how many bytes above the left edge have been reported, in segments of `mss`.
    fn sacked(&self, mss: u32) -> u64 {
        let _ = mss;
        self.sacked_above()
    }

    /// What is known of the segments in flight.
    fn outstanding(&self, window: &Window) -> Outstanding {
        let segments = window.flight().div_ceil(window.mss.max(1));
        let sacked = self.sacked(window.mss).div_ceil(window.mss.max(1).into()) as u32;
        Outstanding { segments, sacked, ..Outstanding::default() }
    }

    /// What to send next, after what is urgent.
    fn next_chunk(&mut self, core: &mut Core, now: Time) -> Choice {
        let _ = (core, now);
        Choice::Window
    }

    /// The pacer holds back what would be sent next: that is no use of the window. What was sent before may be.
    fn held_back(&mut self, core: &mut Core, now: Time) {
        let _ = now;
        if core.usage.is_unnoted() {
            core.note_usage();
        }
    }

    /// Segments that leave together at the pace `rate` where the path is so short that Linux sends larger bursts; else none.
    fn near_burst(&self, rate: Rate, w: &Window) -> u32 {
        let _ = (rate, w);
        0
    }

    /// Bytes that the congestion window takes for in the network.
    fn pipe(&self, w: &Window) -> u64 {
        w.nxt - w.una
    }

    /// Bytes that were sent for the first time on the strength of duplicate ACKs: they do not count as in flight where a
    /// loss is detected. With reports, those are what the window has no room for.
    //= rfc6675#section-5: step 4.2: segments sent by limited transmit are not counted
    fn limited(&self, w: &Window) -> u32 {
        let beyond = u64::from(w.flight().saturating_sub(w.cwnd));
        w.limited.max(self.reported_above().min(beyond) as u32)
    }

    /// Bytes above the left edge that the receiver has reported.
    fn reported_above(&self) -> u64 {
        self.sacked_above()
    }

    /// Whether something lost waits for the peer's window to open.
    fn waits(&self) -> bool {
        false
    }

    /// The peer's window is closed, and will be probed.
    fn on_blocked(&mut self) {}

    /// The handshake took the round trip `rtt`.
    fn opened(&mut self, rtt: Span) {
        let _ = rtt;
    }

    /// Tail loss probes are sent, or not.
    fn set_tail_probes(&mut self, on: bool) {
        let _ = on;
    }

    /// What the SYN carried from the left edge up to `to` was not acknowledged: it counts as sent and lost.
    fn lose_early(&mut self, now: Time, core: &mut Core, to: u64) {
        let _ = (now, core, to);
    }

    /// The segment size has become smaller: what is larger and in flight counts as lost, without congestion. Where no record
    /// tells, everything is sent again from the left edge on.
    fn split_flight(&mut self, now: Time, core: &mut Core) {
        let _ = now;
        let w = &mut core.window;
        (w.nxt, w.again) = (w.una.max(1), crate::event::Cause::TimeoutRetransmit);
    }

    /// Whether other connections may be using the congestion window while this one is silent.
    fn shares_window(&self) -> bool {
        false
    }

    /// Its part in a state that connections share.
    fn part(&mut self) -> Option<&mut Part> {
        None
    }
}
