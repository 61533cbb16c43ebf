//! Settings that all connections of a host share, so that none has a copy.

use core::ops::Deref;
use std::sync::Arc;

use super::config::{Clock, TcpConfig};
use super::rtt::{Beat, Timing};
use crate::units::{Due, Span, Time};

/// The host-wide clocks of BSD timers.
#[derive(Clone, Copy, Debug)]
pub struct Beats {
    /// Retransmission clock.
    pub slow: Beat,
    /// Delayed-ACK clock.
    pub fast: Beat,
}

impl Beats {
    /// The clocks of a host with this configuration; `beat` returns the clock for a period.
    pub fn new(config: &TcpConfig, mut beat: impl FnMut(Span) -> Beat) -> Beats {
        let (slow, fast) = match config.clock {
            Clock::Ticks { slow, fast } => (slow, fast),
            Clock::Fine { granularity } => (granularity, granularity),
        };
        Beats { slow: beat(slow), fast: beat(fast) }
    }
}

/// The configuration of a host's connections, and its clocks. It dereferences to its [`TcpConfig`].
#[derive(Clone, Debug)]
pub struct Settings {
    config: TcpConfig,
    /// Measurement of round trips.
    pub(super) timing: Timing,
    /// The delayed-ACK clock, used with [`Clock::Ticks`].
    pub(super) fast: Beat,
    /// The retransmission clock.
    pub(super) slow: Beat,
}

impl Settings {
    /// Creates the settings of a host with this configuration and these clocks.
    pub fn new(config: TcpConfig, beats: Beats) -> Arc<Settings> {
        let timing = Timing::new(&config, beats.slow);
        Arc::new(Settings { config, timing, fast: beats.fast, slow: beats.slow })
    }

    /// The time at which a connection is dropped that begins to open at `now` and is not established by then.
    pub(super) fn opening_deadline(&self, now: Time) -> Due {
        let Some(limit) = self.config.opening_limit else { return Due::NEVER };
        Due::at(match self.config.clock {
            Clock::Ticks { slow, .. } => self.slow.nth_after(now, limit.0.div_ceil(slow.0.max(1))),
            Clock::Fine { .. } => now + limit,
        })
    }

    /// The settings of the same host for a connection with another configuration.
    pub fn changed(&self, change: impl FnOnce(&mut TcpConfig)) -> Arc<Settings> {
        let mut config = self.config.clone();
        change(&mut config);
        Settings::new(config, Beats { slow: self.slow, fast: self.fast })
    }
}

impl Deref for Settings {
    type Target = TcpConfig;

    fn deref(&self) -> &TcpConfig {
        &self.config
    }
}
