//! Lost segments, until they are reported to the window growth.

use crate::tcp::sender::congestion_control::rate::RateMeter;
use crate::tcp::sender::congestion_control::{CongestionControl as _, Lost};
use crate::tcp::sender::recovery::Outstanding;
use crate::tcp::sender::recovery::flight::SentSegment;
use crate::tcp::sender::{Core, Window};
use crate::units::Time;

use super::Rack;

/// Lost segments that the window growth has not processed.
#[derive(Clone, Debug, Default)]
pub(super) struct Losses(Vec<Lost>);

impl Losses {
    /// Records the loss of `sent`.
    pub(super) fn note(&mut self, meter: &mut RateMeter, now: Time, sent: &SentSegment) {
        meter.lose(sent.bytes());
        self.0.push(Lost {
            now,
            from: sent.from,
            bytes: sent.bytes(),
            in_flight: sent.stamp.in_flight(),
            lost: meter.lost_since(&sent.stamp),
            app_limited: sent.stamp.app_limited(),
            total: meter.total(),
        });
    }

    /// Reports the losses to the window growth, if it uses them.
    #[inline]
    pub(super) fn report(&mut self, core: &mut Core) {
        if self.0.is_empty() {
            return;
        }
        let steers = core.congestion_control.steers();
        for lost in self.0.drain(..).filter(|_| steers) {
            core.congestion_control.on_lost(&core.window, &lost);
        }
    }
}

impl Rack {
    /// Counts of the segments in flight.
    pub(super) fn count(&self, w: &Window) -> Outstanding {
        let (lost, retransmitted) = self.flight.lost_and_repeated();
        Outstanding {
            segments: self.flight.segments() as u32,
            sacked: self.flight.sacked_segments() as u32,
            lost,
            retransmitted,
            timed_out: self.after_timeout(w),
            min_rtt: self.facts.min_rtt,
            delivered: Some(self.facts.delivered),
            reordering: Some((self.facts.reordered_by as u32, self.facts.reorderings)),
        }
    }

    /// Marks the unacknowledged data of the SYN, up to `to`, as sent and lost (`tcp_rcv_fastopen_synack`).
    pub(super) fn lose_from_syn(&mut self, now: Time, w: &mut Window, to: u64) {
        let mut from = w.una;
        while self.kernel && from < to {
            let end = to.min(from + u64::from(w.mss.max(1)));
            self.flight.sent(now, from, end, self.meter.stamp(end - from));
            from = end;
        }
        if from > w.una {
            self.flight.expire(|_| true, |_| {});
            (w.nxt, w.max, self.recover) = (to, to, to);
        }
    }

    /// Marks segments as lost that are too large for the new segment size (`tcp_simple_retransmit`).
    pub(super) fn split(&mut self, w: &Window) {
        if self.flight.lose_larger(w.mss.max(1)) && !self.after_timeout(w) && !self.active {
            self.recover = w.nxt;
        }
    }
}
