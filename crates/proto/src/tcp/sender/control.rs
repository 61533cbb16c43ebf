//! The congestion controls by name: to register one is one file and one line in each list here.

use crate::tcp::config::{Congestion, TcpConfig};
use crate::units::{Rate, Time};

use super::bbr::Bbr;
use super::cubic::Cubic;
use super::growth::{Acked, Growth, Loss, Sample};
use super::slow_start::SlowStartAvoidance;
use super::vegas::Vegas;
use super::{Chunk, Window};

/// The congestion control that a sender is configured for.
#[derive(Clone, Debug)]
pub enum AnyGrowth {
    /// See [`SlowStartAvoidance`].
    Reno(SlowStartAvoidance),
    /// See [`Cubic`].
    Cubic(Box<Cubic>),
    /// See [`Bbr`].
    Bbr(Box<Bbr>),
    /// See [`Vegas`].
    Vegas(Box<Vegas>),
}

impl AnyGrowth {
    /// The congestion control that `config` asks for.
    pub fn new(config: &TcpConfig) -> AnyGrowth {
        match config.congestion {
            Congestion::Reno => AnyGrowth::Reno(SlowStartAvoidance::new(config)),
            Congestion::Vegas => AnyGrowth::Vegas(Box::new(Vegas::new(config.vegas))),
            Congestion::Cubic => AnyGrowth::Cubic(Box::new(Cubic::new(config))),
            Congestion::Bbr => AnyGrowth::Bbr(Box::new(Bbr::new(config))),
        }
    }
}

macro_rules! each {
    ($self:ident, $g:ident => $call:expr) => {
        match $self {
            AnyGrowth::Reno($g) => $call,
            AnyGrowth::Cubic($g) => $call,
            AnyGrowth::Bbr($g) => $call,
            AnyGrowth::Vegas($g) => $call,
        }
    };
}

impl Growth for AnyGrowth {
    #[inline]
    fn on_ack(&mut self, window: &mut Window, ack: &Acked) {
        each!(self, g => g.on_ack(window, ack));
    }
    fn after_loss(&mut self, now: Time, window: &Window, loss: Loss) -> u32 {
        each!(self, g => g.after_loss(now, window, loss))
    }
    fn steers(&self) -> bool {
        each!(self, g => g.steers())
    }
    fn on_sample(&mut self, window: &mut Window, sample: &Sample) {
        each!(self, g => g.on_sample(window, sample));
    }
    fn restart(&mut self, now: Time, idle: bool) {
        each!(self, g => g.restart(now, idle));
    }
    #[inline]
    fn on_sent(&mut self, now: Time, window: &Window, chunk: &Chunk) {
        each!(self, g => g.on_sent(now, window, chunk));
    }
    fn overdue(&self, now: Time, window: &Window) -> bool {
        each!(self, g => g.overdue(now, window))
    }
    #[inline]
    fn after_repair(&mut self, now: Time, window: &Window) -> bool {
        each!(self, g => g.after_repair(now, window))
    }
    fn pacing(&self) -> Option<Rate> {
        each!(self, g => g.pacing())
    }
}
