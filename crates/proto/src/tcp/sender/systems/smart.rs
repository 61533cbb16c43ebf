//! SMART (Keshav and Morgan 1997; balakrishnan97 3.1.2 and 3.2): each ACK names the segment that caused it, and the
//! sender records the arrived segments.
//!
//! SMART assumes a path without reordering: when a segment has arrived, all earlier segments that have not arrived
//! count as lost, without a third duplicate ACK. Reordering therefore causes needless retransmissions, and so does
//! the loss of an ACK that named a segment above a hole.
//!
//! - Each loss is repaired once. The arrival of a later segment shows that a retransmission is lost as well;
//!   [`TcpConfig::smart_repeat`] repairs such losses. The subset measured in balakrishnan97 left them to the timer.
//! - The window is halved once for the losses of one window. As in RFC 6675, an estimate of the bytes in the network
//!   (the pipe) paces transmissions: arrived and lost segments do not count.
//! - A timeout clears the records.
//!
//! [`TcpConfig::smart_repeat`]: crate::tcp::TcpConfig::smart_repeat

use crate::tcp::config::{TcpConfig, Variant};
use crate::tcp::keyword::{Deployment, Keyword};
use crate::tcp::sender::recovery::flight::Judgement;
use crate::tcp::sender::recovery::named::{Named, Reports};
use crate::tcp::sender::{AckInfo, Window};

/// The keyword.
pub const WORD: Keyword = Keyword {
    key: "smart",
    apply: |c| {
        c.variant = Variant::Smart;
        c.smart = true;
    },
    summary: "the receiver names the segment that caused each ACK; the sender infers the holes",
    source: "balakrishnan97 3.1.2, 3.2; Keshav and Morgan 1997",
    tier: 1,
    worlds: crate::describe::SIM,
    syntax: "host: tcp = \"*\", peer: smart = true",
    deployment: Deployment::Research,
    linux: None,
};

/// SMART's recovery.
pub type Smart = Named<Causes>;

/// The segments that caused ACKs.
#[derive(Clone, Debug)]
pub struct Causes {
    /// Whether lost retransmissions are repaired.
    repeat: bool,
}

impl Smart {
    /// A recovery without records.
    pub fn new(config: &TcpConfig) -> Smart {
        Named::of(Causes { repeat: config.smart_repeat })
    }
}

impl Reports for Causes {
    const KNOWS_RETRANSMISSIONS: bool = false;

    fn acknowledge(smart: &mut Smart, una: u64) {
        smart.flight.acknowledge(una, |_, _, _| {});
    }

    /// The path does not reorder, so a report about a segment that was sent twice refers to the second transmission.
    /// The first one would have arrived before the segment that showed its loss.
    fn record(smart: &mut Smart, w: &Window, info: &AckInfo<'_>) -> bool {
        let Some(from) = info.caused else { return false };
        let Named { flight, latest, reports: Causes { repeat }, .. } = smart;
        flight.acknowledge(w.una, |_, _, _| {});
        let Some(order) = flight.arrived(from) else { return false };
        *latest = order.max(*latest);
        // Earlier transmissions that have not arrived are lost.
        flight.review(|sent| match sent.order < *latest {
            true if *repeat || !sent.again => Judgement::Lost,
            // Segments that were sent once are in the order of their transmission, so the rest is later.
            false if !*repeat && !sent.again => Judgement::Later,
            _ => Judgement::Wait,
        });
        true
    }
}
