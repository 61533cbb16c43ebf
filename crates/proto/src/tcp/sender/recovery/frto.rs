//! F-RTO without SACK, as in Linux: after a timeout, data that arrives without a retransmission shows that nothing was
//! lost, and new data is sent before further retransmissions to find out (RFC 5682 section 2.1). An ACK that answers
//! the first transmission shows it as well (Eifel, RFC 3522).

use crate::tcp::config::{Clock, TcpConfig};
use crate::tcp::sender::congestion_control::CongestionControl as _;
use crate::tcp::sender::{AckInfo, Core};
use crate::units::{Span, Time};

use super::Choice;

/// The test whether the last timeout was spurious.
#[derive(Clone, Debug)]
struct Test {
    /// Congestion window and threshold before the timeout.
    prior: (u32, u32),
    /// One past the highest position sent before the timeout.
    sent: u64,
    /// When the first retransmission was sent.
    repeated: Option<Time>,
    /// Number of new segments sent as a test, from the first ACK of new data on.
    new: Option<u32>,
}

/// Tests of timeouts.
#[derive(Clone, Debug)]
pub struct Frto {
    /// Unit of timestamps.
    tick: Span,
    /// Window and threshold before the timeout that is being handled, if it may be spurious.
    prior: Option<(u32, u32)>,
    test: Option<Test>,
    /// The data to retransmit after a test that showed a loss.
    lost: Option<Lost>,
}

/// Lost data, with the new data of the test behind it, which is not lost.
#[derive(Clone, Copy, Debug)]
struct Lost {
    /// One past the last lost byte.
    to: u64,
    /// Number of new segments behind it.
    new: u32,
    /// Duplicate ACKs since the last ACK of new data: as many new segments have left the network.
    dupacks: u32,
}

impl Frto {
    /// No test.
    pub fn new(config: &TcpConfig) -> Frto {
        let tick = match config.clock {
            Clock::Fine { granularity } => granularity.max(Span::millis(1)),
            Clock::Ticks { slow, .. } => slow,
        };
        Frto { tick, prior: None, test: None, lost: None }
    }

    /// Records the windows before a timeout. It may be spurious if it is the first one outside of a recovery (`calm`),
    /// or repeats such a timeout.
    pub fn before_timeout(&mut self, core: &Core, calm: bool) {
        let (w, again) = (&core.window, core.tally.retries > 0);
        let open = self.test.as_ref().filter(|_| again).map(|test| test.prior);
        self.prior = open.or((calm && !again && w.una > 0).then_some((w.cwnd, w.ssthresh)));
    }

    /// Begins the test after a timeout. Without recorded windows there is none.
    //= rfc5682#section-2.1: step 1
    pub fn begin(&mut self, core: &Core) {
        let sent = core.window.max;
        let test = |prior| Test { prior, sent, repeated: None, new: None };
        self.test = self.prior.take().map(test);
        self.lost = None;
    }

    /// Records a retransmission.
    pub fn repeats(&mut self, now: Time) {
        if let Some(test) = &mut self.test {
            test.repeated.get_or_insert(now);
        }
    }

    /// Takes an ACK before it moves the left edge. Reverts the reaction to the timeout if the ACK shows that it was
    /// spurious, and returns whether it does.
    pub fn undo(&mut self, core: &mut Core, info: &AckInfo<'_>) -> bool {
        let w = &mut core.window;
        let moved = info.ack > w.una;
        let repeats = !moved && !info.carries;
        if let Some(lost) = &mut self.lost {
            lost.dupacks = if moved { 0 } else { lost.dupacks.saturating_add(repeats.into()) };
        }
        let Some(test) = &mut self.test else { return false };
        let ends = info.echoed.zip(test.repeated);
        let delayed = ends.is_some_and(|(echoed, repeated)| echoed + self.tick <= repeated);
        //= rfc5682#section-2.1: step 3b: data is acknowledged that was not retransmitted. Without SACK an ACK that also covers
        // a retransmission is no evidence: the receiver may have had the data behind it (`tcp_clean_rtx_queue`).
        if moved && (info.ack > w.nxt && w.una == w.nxt || delayed) {
            let (cwnd, ssthresh) = test.prior;
            core.congestion_control.undone(w, cwnd);
            w.ssthresh = w.ssthresh.max(ssthresh);
            w.nxt = w.max;
            (core.reduced, core.reduced_below) = (false, 0);
            self.test = None;
            return true;
        }
        //= rfc5682#section-2.1: step 2a and 3a: all is acknowledged, or a duplicate ACK answers the new data
        if info.ack >= test.sent {
            self.test = None;
        } else if let Some(new) = test.new.filter(|new| repeats && *new > 0) {
            self.lost = Some(Lost { to: test.sent, new, dupacks: 1 });
            self.test = None;
        } else if moved {
            test.new.get_or_insert(0);
        }
        false
    }

    /// New data in place of further retransmissions; it waits for the ACKs of what it has sent.
    //= rfc5682#section-2.1: step 2b: new data, or the conventional recovery if there is none
    pub fn next_chunk(&mut self, core: &mut Core) -> Choice {
        let w = &mut core.window;
        let Some(new) = self.test.as_mut().and_then(|test| test.new.as_mut()) else {
            if self.lost.take_if(|lost| w.nxt >= lost.to).is_some() {
                w.nxt = w.max;
            }
            let flying = self.lost.map_or(0, |lost| lost.new.saturating_sub(lost.dupacks));
            let pipe = w.nxt - w.una + u64::from(flying) * u64::from(w.mss);
            if flying == 0 || pipe + u64::from(w.mss) <= u64::from(w.cwnd) {
                return Choice::Window;
            }
            core.usage.note(w, pipe, true);
            return Choice::Wait;
        };
        let nxt = w.nxt;
        let chunk = (*new < w.cwnd / w.mss).then(|| w.new_chunk()).flatten();
        w.nxt = nxt;
        if chunk.is_none() && *new == 0 {
            self.test = None;
            return Choice::Window;
        }
        *new += u32::from(chunk.is_some());
        Choice::now(chunk)
    }
}
