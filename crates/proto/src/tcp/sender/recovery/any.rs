//! The loss recovery of a sender: one of `registry.rs`, or that of connections that share a window.

use core::ops::{Deref, DerefMut};

use crate::tcp::config::{TcpConfig, Variant};
use crate::units::{Span, Time};

use super::detect::Detection;
use super::{Outstanding, Recovery};
use crate::tcp::sender::family::variants;
use crate::tcp::sender::registry::senders;
use crate::tcp::sender::systems;
use crate::tcp::sender::systems::integrated::{Part, Together};
use crate::tcp::sender::{AckInfo, Chunk, Core, Sender, SenderWith, Verdict, Window};

/// A recovery that is stored in its sender. It is small, and with many connections each pointer costs a cache miss.
#[derive(Clone, Debug)]
pub struct Inline<R>(R);

impl<R> Inline<R> {
    /// Stores `recovery`.
    pub fn new(recovery: R) -> Inline<R> {
        Inline(recovery)
    }
}

impl<R> Deref for Inline<R> {
    type Target = R;

    fn deref(&self) -> &R {
        &self.0
    }
}

impl<R> DerefMut for Inline<R> {
    fn deref_mut(&mut self) -> &mut R {
        &mut self.0
    }
}

/// The recoveries of [`senders`].
macro_rules! recoveries {
    ($($file:ident $words:tt $(recovery $R:ident($Pointer:ident<$Own:ident>))? $(congestion_control $G:ident $g:tt)?;)*) => {
        variants! {
            /// The recovery of a configured variant.
            #[derive(Clone, Debug)]
            AnyRecovery: Recovery,
            /// The recovery of `variant`, with the details of `config`.
            new(variant: Variant, config: &TcpConfig) by (variant, config.integrated);
            {
                Together(Box<Together>): (Variant::Reno, true) => Box::new(Together::new(config)),
                $($($R($Pointer<systems::$file::$Own>): (Variant::$R, _) => {
                    $Pointer::new(systems::$file::$Own::new(config))
                },)?)*
            }
            dispatch {
                /// Processes an ACK that does not exceed the sent data. The caller sends afterwards.
                fn on_ack(now: Time, info: &AckInfo<'_>) -> Verdict;
                /// Handles expired timers. The caller sends afterwards, and aborts the connection after too many timeouts.
                fn on_wake(now: Time) -> Verdict;
                /// Handles the host's move to another cell. The caller sends afterwards.
                fn on_handoff(now: Time) -> Verdict;
                /// The next segment to send, if the windows allow one. Call repeatedly until it returns `None`.
                fn poll(now: Time) -> Option<Chunk>;
                /// Retransmits all outstanding data, without a change of the windows, after the peer was unreachable.
                fn resend(now: Time) -> ();
                /// Adopts the data below `max` that another sender has sent: it counts as sent now.
                fn adopt(now: Time, max: u64) -> ();
            }
            by_ref {
                check(window: &Window) -> ();
                active() -> bool;
                has_work() -> bool;
                sacked(mss: u32) -> u64;
                slows_down() -> bool;
                is_slowing() -> bool;
                outstanding(window: &Window) -> Outstanding;
            }
            by_mut {
                stop() -> ();
                supplied(window: &Window) -> ();
                slow_down(window: &Window) -> bool;
                part() -> Option<&mut Part>;
                opened(rtt: Span) -> ();
                set_tail_probes(on: bool) -> ();
                without_reports() -> ();
                split_flight(now: Time, core: &mut Core) -> ();
                lose_early(now: Time, core: &mut Core, to: u64) -> ();
            }
        }

        impl Variant {
            /// Its loss detection.
            pub(in crate::tcp::sender) fn detection(self) -> Detection {
                match self {
                    $($(Variant::$R => <systems::$file::$Own as Recovery>::DETECTION,)?)*
                }
            }
        }
    };
}
senders!(recoveries);
