//! Window growth: how an ACK for new data opens the congestion window.

use super::Window;

/// Opens the congestion window outside of recovery.
pub trait Growth {
    /// `acked` bytes were newly acknowledged.
    fn on_ack(&mut self, window: &mut Window, acked: u32);
}

/// Slow start below the threshold, congestion avoidance above it, both counted per ACK.
//= rfc5681#section-3.1: SMSS per ACK in slow start; SMSS * SMSS / cwnd per ACK above
#[derive(Clone, Copy, Debug, Default)]
pub struct SlowStartAvoidance;

impl Growth for SlowStartAvoidance {
    fn on_ack(&mut self, w: &mut Window, _acked: u32) {
        let step = if w.cwnd > w.ssthresh {
            (u64::from(w.mss) * u64::from(w.mss) / u64::from(w.cwnd)).max(1) as u32
        } else {
            w.mss
        };
        w.open(step);
    }
}
