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
use crate::units::Time;

use crate::tcp::sender::congestion_control::Acked;
use crate::tcp::sender::recovery::detect::Detection;
use crate::tcp::sender::recovery::flight::Judgement;
use crate::tcp::sender::recovery::named::Named;
use crate::tcp::sender::recovery::{AckSummary, Choice, Progress, Recovery};
use crate::tcp::sender::{AckInfo, Chunk, Core, Window};

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
#[derive(Clone, Debug, Default)]
pub struct Smart {
    named: Named,
    /// Whether lost retransmissions are repaired.
    repeat: bool,
}

impl Smart {
    /// A recovery without records.
    pub fn new(config: &TcpConfig) -> Smart {
        Smart { repeat: config.smart_repeat, ..Smart::default() }
    }

    /// Records that the segment from `from` on has caused an ACK. Returns whether this is new.
    ///
    /// The path does not reorder, so a report about a segment that was sent twice refers to the second transmission.
    /// The first one would have arrived before the segment that showed its loss.
    fn on_cause(&mut self, w: &Window, from: u64) -> bool {
        let Smart { named: Named { flight, latest, .. }, repeat } = self;
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

impl Recovery for Smart {
    fn check(&self, w: &Window) {
        self.named.check(w);
    }

    const DETECTION: Detection = Detection::FirstReport;

    fn active(&self) -> bool {
        self.named.active
    }
    fn may_enter(&self, w: &Window) -> bool {
        w.una >= self.named.recover
    }
    fn enter(&mut self, w: &mut Window, _: u32) {
        w.fall();
        self.named.enter(w);
    }
    fn on_ack(&mut self, core: &mut Core, _: &Acked) -> Progress {
        self.named.flight.acknowledge(core.window.una, |_, _, _| {});
        self.named.progress(&core.window)
    }
    fn on_timeout(&mut self, _: Time, core: &mut Core) -> Option<u64> {
        self.named.forget(&core.window);
        None
    }
    fn on_sent(&mut self, now: Time, core: &mut Core, chunk: &Chunk) -> Option<bool> {
        self.named.flight.put(now, &core.window, chunk, false);
        None
    }
    fn record_ack(&mut self, _: Time, w: &Window, info: &AckInfo<'_>) -> AckSummary {
        let news = info.caused.is_some_and(|from| self.on_cause(w, from));
        AckSummary { reported: Some(news), ..AckSummary::default() }
    }
    /// Remaining losses and retransmissions belong to the window after the repaired one.
    fn unfinished(&self) -> bool {
        self.named.flight.is_unsettled()
    }
    fn next_chunk(&mut self, core: &mut Core, _: Time) -> Choice {
        self.named.next_chunk(core)
    }
}
