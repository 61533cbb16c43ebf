//! The window growth of a sender: one of `registry.rs`, the rules of Linux, or a custom one.

use crate::tcp::config::{Congestion, GrowthRule, TcpConfig};
use crate::units::{Rate, Span, Time};

use super::custom::CustomCongestionControl;
use super::linux_cubic::LinuxCubic;
use super::linux_reno::LinuxReno;
use super::slow_start::SlowStartAvoidance;
use super::{Acked, CongestionControl, Loss, Lost, Sample, SampleUse};
use crate::tcp::sender::family::variants;
use crate::tcp::sender::registry::senders;
use crate::tcp::sender::systems;
use crate::tcp::sender::{Chunk, Window};

/// The window growths of [`senders`].
macro_rules! growths {
    ($($file:ident $words:tt $(recovery $R:ident $r:tt)? $(congestion_control $G:ident($Pointer:ident<$Own:ident>))?;)*) => {
        variants! {
            /// The configured window growth of a sender.
            #[derive(Clone, Debug)]
            AnyCongestionControl: CongestionControl,
            /// The window growth of `config`.
            new(config: &TcpConfig) by (&config.custom, config.congestion, config.growth);
            {
                Custom(Box<Box<dyn CustomCongestionControl>>): (Some(custom), _, _) => Box::new(custom.make(config)),
                LinuxReno(LinuxReno): (None, Congestion::Reno, GrowthRule::Linux) => LinuxReno::default(),
                LinuxCubic(Box<LinuxCubic>): (None, Congestion::Cubic, GrowthRule::Linux) => Box::default(),
                Reno(SlowStartAvoidance): (None, Congestion::Reno, _) => SlowStartAvoidance::new(config),
                $($($G($Pointer<systems::$file::$Own>): (None, Congestion::$G, _) => {
                    $Pointer::new(systems::$file::$Own::new(config))
                },)?)*
            }
            by_ref {
                check(window: &Window) -> ();
                sample_use() -> SampleUse;
                scalable() -> bool;
                overdue(now: Time, window: &Window) -> bool;
                pacing() -> Option<Rate>;
                bursts_per_second() -> u64;
            }
            by_mut {
                opened(now: Time, window: &Window, rtt: Span) -> ();
                on_ack(window: &mut Window, ack: &Acked) -> ();
                on_round_trip(now: Time, window: &mut Window, rtt: Span) -> ();
                ssthresh_after_loss(now: Time, window: &Window, loss: Loss) -> u32;
                ssthresh_after_mark(now: Time, window: &Window) -> Option<u32>;
                on_sample(window: &mut Window, sample: &Sample) -> ();
                on_lost(window: &Window, lost: &Lost) -> ();
                timed_out() -> ();
                undone(window: &mut Window, prior: u32) -> ();
                restart(now: Time, idle: bool) -> ();
                on_sent(now: Time, window: &Window, chunk: &Chunk) -> ();
                after_repair(now: Time, window: &Window) -> bool;
            }
        }

        impl Congestion {
            /// Whether a model of the path, not losses, sets the window.
            pub(in crate::tcp) fn has_a_model(self) -> bool {
                match self {
                    Congestion::Reno => false,
                    $($(Congestion::$G => <systems::$file::$Own as CongestionControl>::has_model(),)?)*
                }
            }
        }
    };
}
senders!(growths);

impl AnyCongestionControl {
    /// Whether samples set the window.
    pub(in crate::tcp::sender) fn steers(&self) -> bool {
        self.sample_use() == SampleUse::SetsWindow
    }

    /// Reno's growth with the rules of `config`, for controls that differ only in the reduction of the window.
    pub(in crate::tcp::sender) fn reno(config: &TcpConfig) -> AnyCongestionControl {
        AnyCongestionControl::new(&TcpConfig { congestion: Congestion::Reno, ..config.clone() })
    }
}
