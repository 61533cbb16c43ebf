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

use crate::tcp::config::{Congestion, LossCause, Variant};
use crate::tcp::word::Word;
use crate::units::Time;
use crate::wire::Snack;

use super::flight::Judgement;
use super::growth::Acked;
use super::named::Named;
use super::recovery::{Choice, News, Progress, Recovery};
use super::{AckInfo, Chunk, Core, Window};

/// The word.
pub const WORD: Word = Word {
    key: "scps-tp",
    apply: |c| {
        c.variant = Variant::Snack;
        c.snack = true;
        c.congestion = Congestion::Vegas;
    },
    what: "SNACK option and the configurable default assumption about the cause of losses",
    source: "west97 2.7; CCSDS 714.0-B section 3.5.3",
    tier: 2,
    worlds: crate::describe::SIM,
    syntax: "host: tcp = \"*\", loss-cause = \"congestion\" | \"corruption\"; peer: snack = true",
};

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
    named: Named,
    assumed: LossCause,
}

impl Holes {
    /// A recovery that has seen nothing; losses are taken for `assumed`.
    pub fn new(assumed: LossCause) -> Holes {
        Holes { named: Named::default(), assumed }
    }

    /// Everything below `una` has arrived.
    fn acknowledge(&mut self, una: u64) {
        let Named { flight, latest, .. } = &mut self.named;
        flight.acknowledge(una, |sent, _| {
            if sent.to() <= una {
                *latest = sent.order.max(*latest);
            }
        });
    }

    /// An ACK of `ack` names what is missing above it; whether that was new.
    fn on_snack(&mut self, w: &Window, ack: u64, snack: &Snack) -> bool {
        self.acknowledge(ack);
        let report = Report::new(snack, ack, w.mss);
        let Named { flight, latest, .. } = &mut self.named;
        // What arrived first: it shows which retransmissions are lost.
        let arrived = flight.review(|sent| match report.of(sent.from, sent.to()) {
            Told::Arrived => {
                *latest = sent.order.max(*latest);
                Judgement::Arrived
            }
            _ => Judgement::Wait,
        });
        let lost = flight.review(|sent| {
            let under_way = sent.again && sent.order >= *latest;
            match !sent.lost && !under_way && report.of(sent.from, sent.to()) == Told::Missing {
                true => Judgement::Lost,
                false => Judgement::Wait,
            }
        });
        arrived || lost
    }
}

impl Recovery for Holes {
    fn active(&self) -> bool {
        self.named.active
    }
    fn may_enter(&self, w: &Window) -> bool {
        w.una >= self.named.recover
    }
    fn enter(&mut self, w: &mut Window, _: u32) {
        if self.assumed == LossCause::Congestion {
            w.fall();
        }
        self.named.enter(w);
    }
    fn on_ack(&mut self, core: &mut Core, _: &Acked) -> Progress {
        self.acknowledge(core.window.una);
        self.named.progress(&core.window)
    }
    fn on_timeout(&mut self, _: Time, core: &mut Core) -> Option<u64> {
        self.named.forget(&core.window);
        None
    }
    fn on_sent(&mut self, now: Time, core: &mut Core, chunk: &Chunk) -> Option<bool> {
        let w = &core.window;
        self.acknowledge(w.una);
        self.named.flight.put(now, w, chunk, chunk.from < w.max);
        None
    }
    fn hear(&mut self, _: Time, w: &Window, info: &AckInfo<'_>) -> News {
        let snack = info.snack.filter(|_| info.ack >= w.una);
        let news = snack.is_some_and(|snack| self.on_snack(w, info.ack, snack));
        News { reported: Some(news), ..News::default() }
    }
    fn keeps_window(&self) -> bool {
        self.assumed == LossCause::Corruption
    }
    /// What is lost or was sent again belongs to the window after the one that was repaired.
    fn unfinished(&self) -> bool {
        self.named.flight.is_unsettled()
    }
    fn next_chunk(&mut self, core: &mut Core, _: Time) -> Choice {
        self.named.next_chunk(core)
    }
}
