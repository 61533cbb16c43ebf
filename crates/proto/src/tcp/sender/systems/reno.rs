//! Reno (west97 2.2.2, RFC 5681 section 3.2): fast recovery with window inflation, ended by the first ACK
//! for new data. Two losses in one window halve the window twice, or leave too few duplicate ACKs.

use crate::event::{Cause, TcpKind};
use crate::tcp::config::{Deflation, TcpConfig, Variant};
use crate::tcp::keyword::{Deployment, Keyword, Linux};
use crate::units::Time;

use crate::tcp::sender::congestion_control::{Acked, CongestionControl};
use crate::tcp::sender::recovery::{Progress, Recovery};
use crate::tcp::sender::{Core, Window};

/// The keyword.
pub const WORD: Keyword = Keyword {
    key: "reno",
    apply: |c| c.variant = Variant::Reno,
    summary: "Tahoe with fast recovery: duplicate ACKs inflate the window instead of emptying the pipe",
    source: "west97 2.2.2; RFC 5681 section 3.2",
    tier: 1,
    worlds: crate::describe::BOTH,
    syntax: "host: tcp = \"*\"",
    deployment: Deployment::Superseded,
    linux: Some(Linux::control("reno")),
};

/// Reno's fast recovery.
#[derive(Clone, Debug)]
pub struct Reno {
    active: bool,
    /// Whether further duplicate ACKs have arrived in this recovery.
    more: bool,
    deflation: Deflation,
    exit_growth: bool,
    /// Whether a window of data causes at most one recovery.
    once: bool,
    /// With `once`: the acknowledged position from which on another recovery may begin.
    recover: u64,
}

impl Reno {
    /// Reno with the rules of `config` for the end of a recovery.
    pub fn new(config: &TcpConfig) -> Reno {
        let TcpConfig { deflation, exit_growth, .. } = *config;
        let once = config.once_per_window;
        Reno { active: false, more: false, deflation, exit_growth, once, recover: 0 }
    }
}

/// Starts the fast recovery of Reno and NewReno.
//= rfc5681#section-3.2: retransmit the segment; the window is ssthresh inflated by the duplicates
pub(in crate::tcp::sender) fn inflate(w: &mut Window, dupacks: u32) {
    w.cwnd = w.ssthresh + w.mss.saturating_mul(dupacks);
    w.repair = Some((w.una, Cause::FastRetransmit));
}

impl Recovery for Reno {
    fn check(&self, window: &Window) {
        debug_assert!(self.recover <= window.end + 2, "recovery ends beyond the written data");
    }

    fn active(&self) -> bool {
        self.active
    }
    fn may_enter(&self, w: &Window) -> bool {
        !self.once || w.una >= self.recover
    }
    fn enter(&mut self, w: &mut Window, dupacks: u32) {
        (self.active, self.more) = (true, false);
        self.recover = w.max + 1;
        inflate(w, dupacks);
    }
    fn on_dup_ack(&mut self, core: &mut Core, _: Time) -> TcpKind {
        self.more = true;
        core.window.open(core.window.mss);
        TcpKind::DupAck
    }
    fn on_ack(&mut self, core: &mut Core, ack: &Acked) -> Progress {
        self.active = false;
        let w = &mut core.window;
        if self.more || self.deflation != Deflation::PastThreshold {
            w.fall();
        }
        if self.exit_growth {
            core.congestion_control.on_ack(w, ack);
        }
        Progress::Over
    }
    fn uninflated_window(&self, w: &Window) -> Option<u32> {
        (self.active && self.deflation == Deflation::Ns).then_some(w.ssthresh)
    }
    fn on_timeout(&mut self, _: Time, core: &mut Core) -> Option<u64> {
        self.active = false;
        self.recover = core.window.max + 1;
        None
    }
}
