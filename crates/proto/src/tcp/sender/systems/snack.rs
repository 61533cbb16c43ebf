//! The recovery of SCPS-TP (CCSDS 714.0-B section 3.5.3): the receiver reports missing segments by selective negative
//! acknowledgements (SNACK), and the sender retransmits them at once.
//!
//! - A segment is retransmitted when a SNACK names it. It is not sent a third time while its retransmission may be in
//!   flight: another SNACK for it counts only after a later transmission has arrived. On a path without reordering this
//!   is one round trip after the retransmission.
//! - Positions that a SNACK does not cover are left unchanged.
//! - [`LossCause`] is the assumed cause of losses. Congestion: the window shrinks once for the losses of one window.
//!   Corruption: it does not shrink, and it grows during recovery.
//! - In both cases an estimate of the bytes in the network (the pipe) paces transmissions, as in RFC 6675. A timeout
//!   clears the records and closes the window in both cases, since without a SNACK the cause is unknown.

use crate::tcp::config::{Congestion, LossCause, TcpConfig, Variant};
use crate::tcp::keyword::{Deployment, Keyword};
use crate::tcp::sender::recovery::flight::Judgement;
use crate::tcp::sender::recovery::named::{Named, Reports};
use crate::tcp::sender::{AckInfo, Window};
use crate::wire::Snack;

/// The keyword.
pub const WORD: Keyword = Keyword {
    key: "scps-tp",
    apply: |c| {
        c.variant = Variant::Snack;
        c.snack = true;
        c.congestion = Congestion::Vegas;
    },
    summary: "SNACK option and the configurable default assumption about the cause of losses",
    source: "west97 2.7; CCSDS 714.0-B section 3.5.3",
    tier: 2,
    worlds: crate::describe::SIM,
    syntax: "host: tcp = \"*\", loss-cause = \"congestion\" | \"corruption\"; peer: snack = true",
    deployment: Deployment::Research,
    linux: None,
};

/// State of a range of positions by a SNACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum UnitState {
    Unknown,
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

    /// The state of one position.
    fn at(&self, position: u64) -> UnitState {
        let Some(behind) = position.checked_sub(self.hole.1) else {
            return if position < self.hole.0 { UnitState::Unknown } else { UnitState::Missing };
        };
        let unit = behind / self.unit;
        if unit >= self.snack.reported_units() {
            UnitState::Unknown
        } else if self.snack.has(unit) {
            UnitState::Arrived
        } else {
            UnitState::Missing
        }
    }

    /// The state of a segment. After a short segment, units and segments are not aligned. A segment is missing only
    /// if all its units are, and has arrived only if all its units have.
    fn of(&self, from: u64, to: u64) -> UnitState {
        let first = self.at(from);
        // A segment is at most a unit and a FIN, so the first and the last position suffice.
        if self.at(to - 1) == first { first } else { UnitState::Unknown }
    }
}

/// Recovery by SNACKs.
pub type Holes = Named<Snacks>;

/// The SNACKs of the peer.
#[derive(Clone, Debug)]
pub struct Snacks {
    assumed: LossCause,
}

impl Holes {
    /// A recovery without records.
    pub fn new(config: &TcpConfig) -> Holes {
        Named::of(Snacks { assumed: config.loss_cause })
    }
}

impl Reports for Snacks {
    const KNOWS_RETRANSMISSIONS: bool = true;

    fn acknowledge(holes: &mut Holes, una: u64) {
        let Named { flight, latest, .. } = holes;
        flight.acknowledge(una, |sent, _, _| {
            if sent.to() <= una {
                *latest = sent.order.max(*latest);
            }
        });
    }

    fn record(holes: &mut Holes, w: &Window, info: &AckInfo<'_>) -> bool {
        let Some(snack) = info.snack.filter(|_| info.ack >= w.una) else { return false };
        Snacks::acknowledge(holes, info.ack);
        let report = Report::new(snack, info.ack, w.mss);
        let Named { flight, latest, .. } = holes;
        // Process arrived segments first: they show which retransmissions are lost.
        let arrived = flight.review(|sent| match report.of(sent.from, sent.to()) {
            UnitState::Arrived => {
                *latest = sent.order.max(*latest);
                Judgement::Arrived
            }
            _ => Judgement::Wait,
        });
        let lost = flight.review(|sent| {
            let under_way = sent.again && sent.order >= *latest;
            match !sent.lost && !under_way && report.of(sent.from, sent.to()) == UnitState::Missing
            {
                true => Judgement::Lost,
                false => Judgement::Wait,
            }
        });
        arrived || lost
    }

    fn preserves_window(&self) -> bool {
        self.assumed == LossCause::Corruption
    }
}
