//! The recovery of SCPS-TP (CCSDS 714.0-B section 3.5.3): the receiver names what it misses by selective negative
//! acknowledgements, and that is sent again at once.
//!
//! - A segment is sent again when a SNACK names it. It is not sent a third time while its retransmission may be under
//!   way: a SNACK that names it again counts only when something that was sent later is known to have arrived, which is
//!   a round trip after the retransmission on a path that keeps the order.
//! - Nothing is inferred from what a SNACK does not tell of.
//! - [`LossCause`] is the default assumption about losses. Congestion: the window shrinks once for the losses of one
//!   window. Corruption: it stays, and opens on.
//! - In both cases a pipe keeps the clock, as that of RFC 6675 does. A time-out forgets what was known, and closes the
//!   window in both cases: where no SNACK came back, nothing is known of the cause either.

use crate::event::Cause;
use crate::tcp::config::LossCause;
use crate::wire::Snack;

use super::in_flight::{InFlight, Piece};
use super::recovery::{Progress, Recovery};
use super::{Chunk, Window};

/// What is known of a segment in flight.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// Which transmission of this connection the latest one of it was.
    order: u64,
    /// Whether the latest one was not the first.
    again: bool,
    arrived: bool,
    /// The latest transmission is lost.
    lost: bool,
}

/// What a SNACK says of a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Told {
    Nothing,
    Arrived,
    Missing,
}

/// A SNACK as positions.
struct Report<'a> {
    snack: &'a Snack,
    /// The first hole.
    hole: (u64, u64),
    unit: u64,
}

impl Report<'_> {
    fn new(snack: &Snack, ack: u64, mss: u32) -> Report<'_> {
        let unit = u64::from(mss);
        let from = ack + u64::from(snack.offset) * unit;
        Report { snack, hole: (from, from + u64::from(snack.size) * unit), unit }
    }

    /// What it says of one position.
    fn at(&self, position: u64) -> Told {
        let Some(behind) = position.checked_sub(self.hole.1) else {
            return if position < self.hole.0 { Told::Nothing } else { Told::Missing };
        };
        let unit = behind / self.unit;
        if unit >= self.snack.told() {
            Told::Nothing
        } else if self.snack.has(unit) {
            Told::Arrived
        } else {
            Told::Missing
        }
    }

    /// What it says of a segment. Units are no segments where some are short: what a receiver misses is in missing
    /// units only, and what it has in units that arrived only.
    fn of(&self, from: u64, to: u64) -> Told {
        let first = self.at(from);
        // No segment is longer than a unit and its FIN.
        if self.at(to - 1) == first { first } else { Told::Nothing }
    }
}

/// Recovery by SNACKs.
#[derive(Clone, Debug)]
pub struct Holes {
    segments: InFlight<Known>,
    /// Transmissions so far.
    sent: u64,
    /// The latest transmission that is known to have arrived.
    latest: u64,
    active: bool,
    /// One past the highest position sent when the last loss was detected.
    recover: u64,
    assumed: LossCause,
}

impl Holes {
    /// A recovery that has seen nothing; losses are taken for `assumed`.
    pub fn new(assumed: LossCause) -> Holes {
        let segments = InFlight::default();
        Holes { segments, sent: 0, latest: 0, active: false, recover: 0, assumed }
    }

    fn hole(&self) -> Option<&Piece<Known>> {
        self.segments.iter().find(|piece| piece.about.lost)
    }

    /// Bytes believed to be in the network.
    fn pipe(&self) -> u64 {
        let inside = self.segments.iter().filter(|p| !p.about.arrived && !p.about.lost);
        inside.map(|p| p.to - p.from).sum()
    }

    /// Everything below `una` has arrived.
    fn acknowledge(&mut self, una: u64) {
        let below = self.segments.iter().take_while(|piece| piece.to <= una);
        self.latest = below.map(|piece| piece.about.order).fold(self.latest, u64::max);
        self.segments.acknowledge(una);
    }
}

impl Recovery for Holes {
    fn active(&self) -> bool {
        self.active
    }

    fn may_enter(&self, w: &Window) -> bool {
        w.una >= self.recover
    }

    fn enter(&mut self, w: &mut Window, _: u32) {
        self.active = true;
        self.recover = w.max;
        if self.assumed == LossCause::Congestion {
            w.cwnd = w.ssthresh;
        }
        // The first one goes out whatever the pipe says, unless it is under way.
        w.repair = self.hole().map(|hole| (hole.from, Cause::FastRetransmit));
    }

    fn on_dup_ack(&mut self, _: &mut Window) {}

    fn on_ack(&mut self, w: &mut Window, _: u32) -> Progress {
        self.acknowledge(w.una);
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
        self.acknowledge(w.una);
        self.sent += 1;
        let known =
            Known { order: self.sent, again: chunk.from < w.max, arrived: false, lost: false };
        let again = |before: &mut Known| {
            *before = Known { again: true, arrived: before.arrived, ..known };
        };
        self.segments.sent(w, chunk, known, again);
    }

    fn on_snack(&mut self, w: &Window, ack: u64, snack: &Snack) -> bool {
        self.acknowledge(ack);
        let report = Report::new(snack, ack, w.mss);
        let mut news = false;
        // What arrived first: it shows which retransmissions are lost.
        for piece in self.segments.iter_mut().filter(|piece| !piece.about.arrived) {
            if report.of(piece.from, piece.to) == Told::Arrived {
                (piece.about.arrived, piece.about.lost, news) = (true, false, true);
                self.latest = self.latest.max(piece.about.order);
            }
        }
        for piece in self.segments.iter_mut() {
            let known = &mut piece.about;
            let under_way = known.again && known.order >= self.latest;
            if !known.arrived
                && !known.lost
                && !under_way
                && report.of(piece.from, piece.to) == Told::Missing
            {
                (known.lost, news) = (true, true);
            }
        }
        news
    }

    fn keeps_window(&self) -> bool {
        self.assumed == LossCause::Corruption
    }

    fn selective(&self) -> bool {
        true
    }

    /// What is lost or was sent again belongs to the window after the one that was repaired.
    fn unfinished(&self) -> bool {
        let open = |known: &Known| known.lost || known.again && !known.arrived;
        self.segments.iter().any(|piece| open(&piece.about))
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
