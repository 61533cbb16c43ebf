//! NewReno (west97 2.3.1, RFC 6582): a partial ACK shows the next loss of the same window and continues fast
//! recovery alive.

use crate::event::{Cause, TcpKind};
use crate::tcp::config::{Deflation, TcpConfig, Variant};
use crate::tcp::keyword::{Deployment, Keyword, Linux};
use crate::units::Time;

use super::reno::inflate;
use crate::tcp::sender::congestion_control::{Acked, CongestionControl};
use crate::tcp::sender::recovery::{Choice, Progress, Recovery};
use crate::tcp::sender::{Chunk, Core, Window};

/// The keyword.
pub const WORD: Keyword = Keyword {
    key: "newreno",
    apply: |c| c.variant = Variant::NewReno,
    summary: "Reno that stays in fast recovery until every loss of the window is repaired",
    source: "west97 2.3.1; RFC 6582",
    tier: 1,
    worlds: crate::describe::BOTH,
    syntax: "host: tcp = \"*\"",
    deployment: Deployment::Superseded,
    linux: Some(Linux::control("reno").with_sack(false)),
};

/// NewReno's fast recovery.
#[derive(Clone, Debug, Default)]
pub struct NewReno {
    active: bool,
    /// One past the highest position sent when the last loss was detected.
    recover: u64,
    /// Whether a partial ACK has arrived in this recovery.
    partial_seen: bool,
    /// Rule of ns-2: the window and its inflation by duplicate ACKs are separate, and each ACK permits at most two new
    /// segments.
    apart: bool,
    /// The window without inflation, with this rule.
    bare: u32,
    exit_growth: bool,
    /// New segments since the last ACK.
    new: u32,
}

impl NewReno {
    /// NewReno with the window rules of `config`.
    pub fn new(config: &TcpConfig) -> NewReno {
        let apart = config.deflation == Deflation::Ns;
        NewReno { apart, exit_growth: config.exit_growth, ..NewReno::default() }
    }
}

impl Recovery for NewReno {
    fn check(&self, window: &Window) {
        debug_assert!(self.recover <= window.end + 2, "recovery ends beyond the written data");
    }

    fn active(&self) -> bool {
        self.active
    }
    //= rfc6582#section-3.2: no new recovery for losses of the window that a timeout or recovery covers
    fn may_enter(&self, w: &Window) -> bool {
        w.una >= self.recover
    }
    fn enter(&mut self, w: &mut Window, dupacks: u32) {
        self.active = true;
        self.partial_seen = false;
        self.recover = w.max;
        inflate(w, dupacks);
        self.bare = w.floor();
    }
    fn next_chunk(&mut self, _: &mut Core, _: Time) -> Choice {
        if self.active && self.apart && self.new >= 2 { Choice::Wait } else { Choice::Window }
    }
    fn on_sent(&mut self, _: Time, _: &mut Core, chunk: &Chunk) -> Option<bool> {
        self.new += u32::from(chunk.cause == Cause::Data);
        None
    }
    fn on_dup_ack(&mut self, core: &mut Core, _: Time) -> TcpKind {
        self.new = 0;
        let w = &mut core.window;
        match self.apart {
            true => w.cwnd = w.cwnd.saturating_add(w.mss),
            false => w.open(w.mss),
        }
        TcpKind::DupAck
    }
    fn on_ack(&mut self, core: &mut Core, ack: &Acked) -> Progress {
        self.new = 0;
        let (w, acked) = (&mut core.window, ack.bytes);
        if w.una >= self.recover {
            self.active = false;
            //= rfc6582#section-3.2: full ACK: deflate, but without leaving room for a burst
            w.cwnd = match self.apart {
                true => self.bare,
                false => w.floor().min(w.flight().max(w.mss) + w.mss),
            };
            if self.exit_growth {
                core.congestion_control.on_ack(w, ack);
            }
            return Progress::Over;
        }
        //= rfc6582#section-3.2: partial ACK: send the next hole, deflate by what was acknowledged, add one
        w.repair = Some((w.una, Cause::FastRetransmit));
        if self.apart {
            let inflation = w.cwnd.saturating_sub(self.bare);
            self.bare = self.bare.saturating_sub(acked.saturating_sub(inflation)).max(w.mss);
            w.cwnd = self.bare.saturating_add(inflation.saturating_sub(acked) + w.mss);
        } else {
            w.cwnd = w.cwnd.saturating_sub(acked);
            if acked >= w.mss {
                w.cwnd += w.mss;
            }
            w.cwnd = w.cwnd.max(w.mss);
        }
        let first = !self.partial_seen;
        self.partial_seen = true;
        Progress::Partial { rearm: first }
    }
    fn uninflated_window(&self, _: &Window) -> Option<u32> {
        (self.active && self.apart).then_some(self.bare)
    }
    fn on_timeout(&mut self, _: Time, core: &mut Core) -> Option<u64> {
        self.active = false;
        // Retransmissions of already arrived data cause duplicate ACKs of exactly `max`.
        //= rfc6582#section-4: an ACK beyond that distinguishes a new loss from them
        self.recover = core.window.max + 1;
        None
    }
}
