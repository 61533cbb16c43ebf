//! Times for which each limit stops a sender. They include those of Linux' `tcp_info` (busy, `rwnd_limited`,
//! `sndbuf_limited`) and limits that Linux does not report.

use serde::Serialize;

use crate::units::{Span, Time};

use super::Window;

/// The reason why a sender does not send.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// All written data is sent.
    Application,
    /// The send buffer is full of unacknowledged data.
    SendBuffer,
    /// The peer's window is full.
    ReceiveWindow,
    /// The congestion window is full, or recovery is in progress.
    CongestionWindow,
    /// The pacer delays the next segment.
    Pacing,
}

impl Limit {
    /// All limits, in the order of [`LimitTimes`].
    pub const ALL: [Limit; 5] = [
        Limit::Application,
        Limit::SendBuffer,
        Limit::ReceiveWindow,
        Limit::CongestionWindow,
        Limit::Pacing,
    ];

    /// The limit of the window `w` with `pipe` bytes in the network.
    pub(super) fn of(w: &Window, pipe: u64) -> Limit {
        if w.nxt >= w.last() {
            return Limit::Application;
        }
        let (buffer, mss) = (w.buffer(), u64::from(w.mss));
        let edge = u64::from(buffer.min(w.peer));
        let congested = pipe + mss > w.congestion().into() && u64::from(w.congestion()) < edge;
        match w.nxt - w.una + mss > edge {
            true if !congested && buffer < w.peer => Limit::SendBuffer,
            true if !congested => Limit::ReceiveWindow,
            // A burst that waits for the next ACK waits for the window.
            _ => Limit::CongestionWindow,
        }
    }
}

/// How long each [`Limit`] was in force, in the order of [`Limit::ALL`].
pub type LimitTimes = [Span; Limit::ALL.len()];

/// Total times from the first data to the end of the connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Limits {
    /// The current limit and its start.
    now: Option<(Time, Limit)>,
    times: LimitTimes,
}

impl Limits {
    /// Records that `limit` is in force from `now` on.
    #[inline]
    pub(super) fn set(&mut self, now: Time, limit: Limit) {
        if self.now.is_none_or(|(_, old)| old != limit) {
            self.times = self.until(now);
            self.now = Some((now, limit));
        }
    }

    /// Stops when all data is acknowledged.
    pub(super) fn end(&mut self, now: Time) {
        self.times = self.until(now);
        self.now = None;
    }

    /// The times until `now`.
    pub(super) fn until(&self, now: Time) -> LimitTimes {
        let mut times = self.times;
        if let Some((since, limit)) = self.now {
            times[limit as usize].0 += now.since(since).0;
        }
        times
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::config::TcpConfig;

    #[test]
    fn the_least_window_is_the_limit() {
        let window = |cwnd, peer, send_buffer| {
            let mut w = Window::new(&TcpConfig { mss: 1000, send_buffer, ..TcpConfig::rfc() });
            (w.cwnd, w.una, w.max, w.nxt) = (cwnd, 1, 20_001, 20_001);
            w.set_peer(peer);
            w
        };
        for (cwnd, peer, buffer, limit) in [
            (20_000, 90_000, 90_000, Limit::CongestionWindow),
            (90_000, 20_000, 90_000, Limit::ReceiveWindow),
            (90_000, 90_000, 20_000, Limit::SendBuffer),
            (20_000, 20_000, 90_000, Limit::ReceiveWindow),
            (20_000, 90_000, 20_000, Limit::SendBuffer),
        ] {
            let mut w = window(cwnd, peer, buffer);
            w.end = 1 << 20;
            assert_eq!(Limit::of(&w, 20_000), limit, "{cwnd} {peer} {buffer}");
            w.end = w.nxt;
            assert_eq!(Limit::of(&w, 20_000), Limit::Application, "nothing more is written");
        }
    }

    #[test]
    fn times_add_up() {
        let (mut limits, at) = (Limits::default(), |ms| Time::ZERO + Span::millis(ms));
        for (ms, limit) in [
            (10, Limit::Pacing),
            (12, Limit::Pacing),
            (15, Limit::SendBuffer),
            (30, Limit::Application),
            (40, Limit::Pacing),
        ] {
            limits.set(at(ms), limit);
        }
        let times = [10, 15, 0, 0, 7].map(Span::millis);
        assert_eq!(limits.until(at(42)), times);
        limits.end(at(42));
        assert_eq!(limits.until(at(1000)), times);
    }
}
