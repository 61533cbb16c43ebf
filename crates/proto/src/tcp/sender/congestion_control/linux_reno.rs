//! Reno's window as in Linux: in whole segments, with growth by the number of segments that an ACK reports.

use crate::units::Time;

use super::{Acked, CongestionControl, Loss};
use crate::tcp::sender::Window;

/// Count of segments since the last step of the window.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::tcp::sender) struct Count(u32);

impl Count {
    /// Slow start by `segments`, up to the threshold. Returns the number of segments left for congestion avoidance.
    pub(in crate::tcp::sender) fn slow_start(w: &mut Window, segments: u32) -> u32 {
        let room = (w.ssthresh.saturating_sub(w.cwnd) / w.mss).max(1);
        w.open(segments.min(room) * w.mss);
        segments.saturating_sub(room)
    }

    /// Congestion avoidance by `segments`: the window grows by one segment for each `every` segments.
    pub(in crate::tcp::sender) fn avoid(&mut self, w: &mut Window, every: u32, segments: u32) {
        let every = every.max(1);
        if self.0 >= every {
            self.0 = 0;
            w.open(w.mss);
        }
        self.0 += segments;
        w.open(self.0 / every * w.mss);
        self.0 %= every;
    }

    /// Resets the count after a reduction of the window.
    pub(in crate::tcp::sender) fn clear(&mut self) {
        self.0 = 0;
    }
}

/// Number of segments in `bytes`, rounded up.
pub(in crate::tcp::sender) fn segments(w: &Window, bytes: u32) -> u32 {
    bytes.div_ceil(w.mss)
}

/// Slow start and congestion avoidance by segments. A loss halves the window, not the flight.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinuxReno {
    count: Count,
}

impl CongestionControl for LinuxReno {
    fn on_ack(&mut self, w: &mut Window, ack: &Acked) {
        let mut left = segments(w, ack.bytes);
        if w.cwnd < w.ssthresh {
            left = Count::slow_start(w, left);
        }
        if left > 0 {
            self.count.avoid(w, w.cwnd / w.mss, left);
        }
    }

    fn ssthresh_after_loss(&mut self, _: Time, w: &Window, _: Loss) -> u32 {
        self.count.clear();
        (w.cwnd / w.mss / 2).max(2) * w.mss
    }

    /// In Linux each timeout ends the count (`tcp_enter_loss`).
    fn timed_out(&mut self) {
        self.count.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::config::TcpConfig;

    fn window(cwnd: u32, ssthresh: u32) -> Window {
        let mut w = Window::new(&TcpConfig { mss: 1000, ..TcpConfig::rfc() });
        (w.cwnd, w.ssthresh, w.largest) = (cwnd * 1000, ssthresh * 1000, u32::MAX);
        w
    }

    /// Delivers `segments`, two for each ACK.
    fn acks(reno: &mut LinuxReno, w: &mut Window, segments: u32) {
        for _ in 0..segments / 2 {
            reno.on_ack(w, &Acked { now: Time(0), bytes: 2000, rtt: None });
        }
    }

    #[test]
    fn two_segments_an_ack_open_the_window_as_two_acks_do() {
        let (mut reno, mut w) = (LinuxReno::default(), window(10, 40));
        acks(&mut reno, &mut w, 30);
        assert_eq!(w.cwnd, 40_000);
        // One segment of growth for each window of segments.
        acks(&mut reno, &mut w, 40);
        assert_eq!(w.cwnd, 41_000);
        acks(&mut reno, &mut w, 42);
        assert_eq!(w.cwnd, 42_000);
    }

    #[test]
    fn an_ack_that_crosses_the_threshold_counts_with_each_part_where_it_belongs() {
        let (mut reno, mut w) = (LinuxReno::default(), window(10, 11));
        reno.on_ack(&mut w, &Acked { now: Time(0), bytes: 12_000, rtt: None });
        assert_eq!(w.cwnd, 12_000);
    }

    #[test]
    fn a_loss_halves_the_window_in_whole_segments() {
        let mut reno = LinuxReno::default();
        assert_eq!(reno.ssthresh_after_loss(Time(0), &window(23, 16), Loss::Detected), 11_000);
        assert_eq!(reno.ssthresh_after_loss(Time(0), &window(3, 16), Loss::Timeout), 2000);
    }
}
