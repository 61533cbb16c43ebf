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

use crate::tcp::config::Variant;
use crate::tcp::word::Word;
use crate::units::Time;

use super::flight::Judgement;
use super::growth::Acked;
use super::named::Named;
use super::recovery::{Choice, News, Progress, Recovery};
use super::{AckInfo, Chunk, Core, Window};

/// The word.
pub const WORD: Word = Word {
    key: "smart",
    apply: |c| {
        c.variant = Variant::Smart;
        c.smart = true;
    },
    what: "the receiver names the segment that caused each ACK; the sender infers the holes",
    source: "balakrishnan97 3.1.2, 3.2; Keshav and Morgan 1997",
    tier: 1,
    worlds: crate::describe::SIM,
    syntax: "host: tcp = \"*\", peer: smart = true",
};

/// SMART's recovery.
#[derive(Clone, Debug, Default)]
pub struct Smart {
    named: Named,
    /// Whether lost retransmissions are repaired.
    repeat: bool,
}

impl Smart {
    /// A recovery that has seen nothing. `repeat` says whether lost retransmissions are repaired.
    pub fn new(repeat: bool) -> Smart {
        Smart { repeat, ..Smart::default() }
    }

    /// The segment that begins at `from` has caused an ACK; whether that is news.
    ///
    /// Because the path keeps the order, a report about a segment that was sent twice is one of the second time: the
    /// first would have come before whatever showed its loss.
    fn on_cause(&mut self, w: &Window, from: u64) -> bool {
        let Smart { named: Named { flight, latest, .. }, repeat } = self;
        flight.acknowledge(w.una, |_, _| {});
        let Some(order) = flight.arrived(from) else { return false };
        *latest = order.max(*latest);
        // What was sent before and has not arrived is lost.
        flight.review(|sent| match sent.order < *latest {
            true if *repeat || !sent.again => Judgement::Lost,
            // Those that were sent once lie in the order of their transmission.
            false if !*repeat && !sent.again => Judgement::Later,
            _ => Judgement::Wait,
        });
        true
    }
}

impl Recovery for Smart {
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
        self.named.flight.acknowledge(core.window.una, |_, _| {});
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
    fn hear(&mut self, _: Time, w: &Window, info: &AckInfo<'_>) -> News {
        let news = info.caused.is_some_and(|from| self.on_cause(w, from));
        News { reported: Some(news), ..News::default() }
    }
    /// What is lost or was sent again belongs to the window after the one that was repaired.
    fn unfinished(&self) -> bool {
        self.named.flight.is_unsettled()
    }
    fn next_chunk(&mut self, core: &mut Core, _: Time) -> Choice {
        self.named.next_chunk(core)
    }
}
