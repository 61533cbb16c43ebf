//! SMART (Keshav and Morgan 1997; balakrishnan97 3.1.2 and 3.2): each ACK names the segment that caused it, and the
//! sender keeps a map of what has arrived.
//!
//! The path is taken to keep the order of packets: when a segment has arrived, all that was sent before it and has
//! not arrived is lost, without waiting for a third duplicate ACK. Where a path reorders, that costs needless
//! retransmissions, and so does the loss of an ACK that named a segment above a hole.
//!
//! - Each loss is repaired once. Whether a retransmission is lost as well shows when a segment that was sent after
//!   it arrives; [`TcpConfig::smart_repeat`] says whether that is acted upon. The subset that was measured in
//!   balakrishnan97 left it to the timer.
//! - The window is halved once for the losses of one window, and recovery keeps the clock by a pipe, as that of
//!   RFC 6675 does: what is known to have arrived or to be lost is not in the network.
//! - A time-out forgets the map.
//!
//! [`TcpConfig::smart_repeat`]: crate::tcp::TcpConfig::smart_repeat

use crate::event::Cause;

use super::in_flight::{InFlight, Piece};
use super::recovery::{Progress, Recovery};
use super::{Chunk, Window};

/// What is known of a segment in flight.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// Which transmission of this connection the latest one of it was.
    order: u64,
    arrived: bool,
    /// Sent again, or not to be sent again.
    resent: bool,
}

/// SMART's recovery.
#[derive(Clone, Debug, Default)]
pub struct Smart {
    segments: InFlight<Known>,
    /// Transmissions so far.
    sent: u64,
    /// The latest transmission that is known to have arrived.
    latest: u64,
    active: bool,
    /// One past the highest position sent when the last loss was detected.
    recover: u64,
    repeat: bool,
}

impl Smart {
    /// A recovery that has seen nothing. `repeat` says whether lost retransmissions are repaired.
    pub fn new(repeat: bool) -> Smart {
        Smart { repeat, ..Smart::default() }
    }

    fn is_lost(&self, known: &Known) -> bool {
        !known.arrived && known.order < self.latest
    }

    /// What is lost and has not been sent again.
    fn hole(&self) -> Option<&Piece<Known>> {
        self.segments.iter().find(|piece| self.is_lost(&piece.about) && !piece.about.resent)
    }

    /// Bytes believed to be in the network.
    fn pipe(&self) -> u64 {
        let inside = |known: &Known| !known.arrived && (known.order >= self.latest || known.resent);
        self.segments.iter().filter(|piece| inside(&piece.about)).map(|p| p.to - p.from).sum()
    }
}

impl Recovery for Smart {
    fn active(&self) -> bool {
        self.active
    }

    fn may_enter(&self, w: &Window) -> bool {
        w.una >= self.recover
    }

    fn enter(&mut self, w: &mut Window, _: u32) {
        self.active = true;
        self.recover = w.max;
        w.cwnd = w.ssthresh;
        // The first one goes out whatever the pipe says, unless it is under way.
        w.repair = self.hole().map(|hole| (hole.from, Cause::FastRetransmit));
    }

    fn on_dup_ack(&mut self, _: &mut Window) {}

    fn on_ack(&mut self, w: &mut Window, _: u32) -> Progress {
        self.segments.acknowledge(w.una);
        if w.una < self.recover {
            return Progress::Partial { rearm: true };
        }
        self.active = false;
        Progress::Over
    }

    fn on_timeout(&mut self, w: &mut Window) {
        self.active = false;
        self.recover = w.max;
        self.segments.clear();
    }

    fn on_sent(&mut self, w: &Window, chunk: &Chunk) {
        self.sent += 1;
        let order = self.sent;
        let first = Known { order, arrived: false, resent: false };
        self.segments.sent(w, chunk, first, |known| {
            known.order = order;
            known.resent = true;
        });
    }

    /// Because the path keeps the order, a report about a segment that was sent twice is one of the second time: the
    /// first would have come before whatever showed its loss.
    fn on_cause(&mut self, w: &Window, from: u64) -> bool {
        self.segments.acknowledge(w.una);
        let Some(piece) = self.segments.find(from).filter(|piece| !piece.about.arrived) else {
            return false;
        };
        piece.about.arrived = true;
        let order = piece.about.order;
        self.latest = self.latest.max(order);
        if self.repeat {
            let latest = self.latest;
            let again = self.segments.iter_mut().map(|piece| &mut piece.about);
            again.filter(|known| known.order < latest).for_each(|known| known.resent = false);
        }
        true
    }

    fn selective(&self) -> bool {
        true
    }

    /// What is lost or was sent again belongs to the window after the one that was repaired.
    fn unfinished(&self) -> bool {
        let again = |known: &Known| known.resent && !known.arrived;
        self.segments.iter().any(|piece| self.is_lost(&piece.about) || again(&piece.about))
    }

    /// Losses first, then new data, as far as the pipe has room.
    fn next_chunk(&mut self, w: &mut Window) -> Option<Option<Chunk>> {
        if !self.active {
            return None;
        }
        if self.pipe() + u64::from(w.mss) > u64::from(w.cwnd) {
            return Some(None);
        }
        let Some(hole) = self.hole() else { return Some(w.new_chunk()) };
        Some(Some(w.chunk_between(hole.from, hole.to, Cause::FastRetransmit)))
    }
}
