//! What all connections of a host have in common, so that none has a copy of it.

use core::ops::Deref;
use std::sync::Arc;

use super::config::{Clock, TcpConfig};
use super::rtt::{Beat, Timing};
use crate::units::Span;

/// The host-wide clocks that BSD timers beat to.
#[derive(Clone, Copy, Debug)]
pub struct Beats {
    /// Retransmission clock.
    pub slow: Beat,
    /// Delayed-ACK clock.
    pub fast: Beat,
}

impl Beats {
    /// The clocks of a host with this configuration; `beat` says when one of a period beats.
    pub fn new(config: &TcpConfig, mut beat: impl FnMut(Span) -> Beat) -> Beats {
        let (slow, fast) = match config.clock {
            Clock::Ticks { slow, fast } => (slow, fast),
            Clock::Fine { granularity } => (granularity, granularity),
        };
        Beats { slow: beat(slow), fast: beat(fast) }
    }
}

/// How the connections of a host are configured, and its clocks. It reads as its [`TcpConfig`].
#[derive(Clone, Debug)]
pub struct Settings {
    config: TcpConfig,
    /// How round trips are measured.
    pub(super) timing: Timing,
    /// The delayed-ACK clock, used with [`Clock::Ticks`].
    pub(super) fast: Beat,
    /// The retransmission clock, for settings that differ in a value.
    slow: Beat,
}

impl Settings {
    /// Those of a host with this configuration and these clocks.
    pub fn new(config: TcpConfig, beats: Beats) -> Arc<Settings> {
        let timing = Timing::new(&config, beats.slow);
        Arc::new(Settings { config, timing, fast: beats.fast, slow: beats.slow })
    }

    /// Settings of the same host for a connection that is configured otherwise.
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
