//! Window growth: how an ACK for new data opens the congestion window.

use crate::tcp::config::GrowthRule;

use super::Window;

/// Opens the congestion window outside of recovery.
pub trait Growth {
    /// `acked` bytes were newly acknowledged.
    fn on_ack(&mut self, window: &mut Window, acked: u32);
}

/// Slow start below the threshold, congestion avoidance above it, both counted per ACK.
//= rfc5681#section-3.1: SMSS per ACK in slow start; SMSS * SMSS / cwnd per ACK above
#[derive(Clone, Copy, Debug)]
pub struct SlowStartAvoidance {
    rule: GrowthRule,
}

impl SlowStartAvoidance {
    /// Opens the window by `rule`.
    pub fn new(rule: GrowthRule) -> SlowStartAvoidance {
        SlowStartAvoidance { rule }
    }
}

impl Growth for SlowStartAvoidance {
    fn on_ack(&mut self, w: &mut Window, _acked: u32) {
        if w.cwnd <= w.ssthresh {
            w.open(w.mss);
            return;
        }
        let linear = u64::from(w.mss) * u64::from(w.mss) / u64::from(w.cwnd);
        let extra = match self.rule {
            GrowthRule::Rfc5681 => 0,
            GrowthRule::Bsd => w.mss / 8,
        };
        w.open((linear as u32 + extra).max(1));
    }
}
