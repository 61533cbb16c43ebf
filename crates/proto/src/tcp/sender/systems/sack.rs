//! SACK (west97 2.3.2, RFC 6675): a scoreboard of arrived data, and an estimate of the bytes in flight (the pipe).

use crate::event::Cause;
use crate::tcp::config::{TcpConfig, Variant};
use crate::tcp::keyword::{Deployment, Keyword, Linux};
use crate::units::Time;

use crate::tcp::sender::congestion_control::Acked;
use crate::tcp::sender::recovery::detect::Detection;
use crate::tcp::sender::recovery::scoreboard::{Hole, Scoreboard};
use crate::tcp::sender::recovery::{AckSummary, Choice, Progress, Recovery};
use crate::tcp::sender::{AckInfo, Chunk, Core, Window};

/// The keyword.
pub const WORD: Keyword = Keyword {
    key: "sack",
    apply: |c| {
        c.variant = Variant::Sack;
        c.sack = true;
    },
    summary: "selective acknowledgements with a scoreboard and an estimate of the pipe",
    source: "west97 2.3.2; RFC 2018, RFC 6675",
    tier: 1,
    worlds: crate::describe::BOTH,
    syntax: "host: tcp = \"*\"",
    deployment: Deployment::Superseded,
    linux: Some(Linux::control("reno").with_sack(true)),
};

/// SACK-based recovery.
#[derive(Clone, Debug, Default)]
pub struct Sack {
    board: Scoreboard,
    active: bool,
    /// One past the highest position sent when the last loss was detected.
    recover: u64,
    /// All lost data below this position was retransmitted in this recovery (HighRxt).
    retransmitted: u64,
}

const DUPTHRESH: u64 = 3;

impl Sack {
    /// A recovery without reports.
    pub fn new(_config: &TcpConfig) -> Sack {
        Sack::default()
    }

    /// IsLost of RFC 6675: enough data above the hole was reported.
    fn is_lost(hole: &Hole, mss: u32) -> bool {
        hole.ranges_above as u64 >= DUPTHRESH
            || hole.sacked_above > (DUPTHRESH - 1) * u64::from(mss)
    }

    /// Estimated bytes in the network.
    //= rfc6675#section-4: SetPipe: bytes that are neither reported nor lost, and retransmissions
    fn pipe(&self, w: &Window) -> u64 {
        let mut pipe = w.max - self.board.highest().unwrap_or(w.una).max(w.una);
        for hole in self.board.holes(w.una) {
            if !Sack::is_lost(&hole, w.mss) {
                pipe += hole.to - hole.from;
            }
            pipe += self.retransmitted.min(hole.to).saturating_sub(hole.from);
        }
        pipe
    }

    /// The first range to retransmit: in a hole (a lost one, if `lost_only`), and not retransmitted yet.
    fn next_hole(&self, w: &Window, lost_only: bool) -> Option<(u64, u64)> {
        self.board
            .holes(w.una)
            .filter(|hole| !lost_only || Sack::is_lost(hole, w.mss))
            .map(|hole| (hole.from.max(self.retransmitted), hole.to))
            .find(|(from, to)| from < to)
    }

    fn resend(&mut self, w: &Window, from: u64, to: u64) -> Chunk {
        let chunk = w.chunk_between(from, to, Cause::FastRetransmit);
        self.retransmitted = from + u64::from(chunk.len) + u64::from(chunk.fin);
        chunk
    }
}

impl Recovery for Sack {
    fn check(&self, window: &Window) {
        self.board.check();
        debug_assert!(self.recover <= window.end + 2, "recovery ends beyond the written data");
        debug_assert!(self.retransmitted <= window.max, "retransmitted beyond the sent data");
    }

    const DETECTION: Detection = Detection::SackedBytes;

    fn active(&self) -> bool {
        self.active
    }
    fn may_enter(&self, w: &Window) -> bool {
        w.una >= self.recover
    }
    fn enter(&mut self, w: &mut Window, _: u32) {
        self.active = true;
        self.recover = w.max;
        w.fall();
        //= rfc6675#section-5: the first lost segment is sent independent of the pipe
        w.repair = Some((w.una, Cause::FastRetransmit));
        self.retransmitted = w.una + u64::from(w.chunk_at(w.una, Cause::FastRetransmit).len);
    }
    fn on_ack(&mut self, core: &mut Core, _: &Acked) -> Progress {
        let w = &mut core.window;
        self.board.acknowledge(w.una);
        if w.una >= self.recover {
            self.active = false;
            return Progress::Over;
        }
        // A partial ACK without reports above it shows that the next segment is missing as well.
        if self.board.ranges().is_empty() && self.retransmitted <= w.una {
            w.repair = Some((w.una, Cause::FastRetransmit));
            self.retransmitted = w.una + u64::from(w.chunk_at(w.una, Cause::FastRetransmit).len);
        }
        Progress::Partial { rearm: true }
    }
    //= rfc2018#section-8: a timeout clears the reports, since the receiver may have reneged
    fn on_timeout(&mut self, _: Time, core: &mut Core) -> Option<u64> {
        self.active = false;
        self.recover = core.window.max;
        self.board.clear();
        None
    }
    fn record_ack(&mut self, _: Time, w: &Window, info: &AckInfo<'_>) -> AckSummary {
        self.board.acknowledge(w.una);
        let mut news = false;
        for &(from, to) in info.sacked {
            // Ignore reports of duplicates (RFC 2883) and of positions beyond the sent data.
            if from >= w.una && to <= w.max {
                news |= self.board.add(from, to);
            }
        }
        AckSummary { reported: Some(news), ..AckSummary::default() }
    }
    fn sacked_above(&self) -> u64 {
        self.board.bytes()
    }
    //= rfc6675#section-4: NextSeg: lost holes, then new data, then holes not yet known to be lost
    fn next_chunk(&mut self, core: &mut Core, _: Time) -> Choice {
        if !self.active {
            return Choice::Window;
        }
        let w = &mut core.window;
        if self.pipe(w) + u64::from(w.mss) > u64::from(w.cwnd) {
            return Choice::Wait;
        }
        if let Some((from, to)) = self.next_hole(w, true) {
            return Choice::Send(self.resend(w, from, to));
        }
        if let Some(new) = w.new_chunk() {
            return Choice::Send(new);
        }
        Choice::now(self.next_hole(w, false).map(|(from, to)| self.resend(w, from, to)))
    }
}
