//! Registry of window growths: a growth is one file and one line here.

use crate::tcp::config::{Congestion, GrowthRule, TcpConfig};
use crate::units::{Rate, Span, Time};

use super::bbr::Bbr;
use super::bbr3::Bbr3;
use super::cubic::Cubic;
use super::custom::CustomGrowth;
use super::family::variants;
use super::growth::{Acked, Growth, Loss, Lost, Sample};
use super::htcp::Htcp;
use super::hybla::Hybla;
use super::linux_cubic::LinuxCubic;
use super::linux_reno::LinuxReno;
use super::prague::Prague;
use super::slow_start::SlowStartAvoidance;
use super::vegas::Vegas;
use super::veno::Veno;
use super::westwood::Westwood;
use super::{Chunk, Window};

variants! {
    /// The configured window growth of a sender.
    #[derive(Clone, Debug)]
    AnyGrowth: Growth,
    /// The window growth of `config`.
    new(config: &TcpConfig) by (&config.custom, config.congestion, config.growth);
    {
        Custom(Box<Box<dyn CustomGrowth>>): (Some(custom), _, _) => Box::new(custom.make(config)),
        LinuxReno(LinuxReno): (None, Congestion::Reno, GrowthRule::Linux) => LinuxReno::default(),
        LinuxCubic(Box<LinuxCubic>): (None, Congestion::Cubic, GrowthRule::Linux) => Box::default(),
        Reno(SlowStartAvoidance): (None, Congestion::Reno, _) => SlowStartAvoidance::new(config),
        Cubic(Box<Cubic>): (None, Congestion::Cubic, _) => Box::new(Cubic::new(config)),
        Bbr(Box<Bbr>): (None, Congestion::Bbr, _) => Box::new(Bbr::new(config)),
        Bbr3(Box<Bbr3>): (None, Congestion::Bbr3, _) => Box::new(Bbr3::new(config)),
        Vegas(Box<Vegas>): (None, Congestion::Vegas, _) => Box::new(Vegas::new(config.vegas)),
        Hybla(Box<Hybla>): (None, Congestion::Hybla, _) => Box::default(),
        Westwood(Box<Westwood>): (None, Congestion::Westwood, _) => Box::new(Westwood::new(config)),
        Htcp(Box<Htcp>): (None, Congestion::Htcp, _) => Box::new(Htcp::new(config)),
        Prague(Box<Prague>): (None, Congestion::Prague, _) => Box::default(),
        Veno(Box<Veno>): (None, Congestion::Veno, _) => Box::new(Veno::new(config)),
    }
    by_ref {
        steers() -> bool;
        samples() -> bool;
        requires_samples() -> bool;
        scalable() -> bool;
        overdue(now: Time, window: &Window) -> bool;
        pacing() -> Option<Rate>;
    }
    by_mut {
        opened(now: Time, rtt: Span) -> ();
        on_ack(window: &mut Window, ack: &Acked) -> ();
        on_round_trip(now: Time, window: &mut Window, rtt: Span) -> ();
        after_loss(now: Time, window: &Window, loss: Loss) -> u32;
        after_mark(now: Time, window: &Window) -> Option<u32>;
        on_sample(window: &mut Window, sample: &Sample) -> ();
        on_lost(window: &Window, lost: &Lost) -> ();
        undone(window: &mut Window, prior: u32) -> ();
        restart(now: Time, idle: bool) -> ();
        on_sent(now: Time, window: &Window, chunk: &Chunk) -> ();
        after_repair(now: Time, window: &Window) -> bool;
    }
}

impl AnyGrowth {
    /// Reno's growth with the rules of `config`, for controls that differ only in the reduction of the window.
    pub(super) fn reno(config: &TcpConfig) -> AnyGrowth {
        AnyGrowth::new(&TcpConfig { congestion: Congestion::Reno, ..config.clone() })
    }
}
