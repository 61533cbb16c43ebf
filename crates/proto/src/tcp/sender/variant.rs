//! The recoveries by name: to register a variant is one file and one line here.

use core::ops::{Deref, DerefMut};

use crate::tcp::config::{TcpConfig, Variant};
use crate::units::{Span, Time};

use super::family::variants;
use super::integrated::{Part, Together};
use super::newreno::NewReno;
use super::rack::Rack;
use super::recovery::{Outstanding, Recovery};
use super::reno::Reno;
use super::sack::Sack;
use super::smart::Smart;
use super::snack::Holes;
use super::tahoe::Tahoe;
use super::{AckInfo, Chunk, Core, Sender, Verdict, Way, Window};

/// A recovery that is small enough to lie in its sender: with many connections each pointer is another wait for memory.
#[derive(Clone, Debug)]
pub struct Inline<R>(R);

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

variants! {
    /// The recovery of a configured variant.
    #[derive(Clone, Debug)]
    AnyRecovery: Recovery,
    /// The recovery of `variant`, with what `config` says of its details.
    new(variant: Variant, config: &TcpConfig) by (variant, config.integrated);
    {
        Together(Box<Together>): (Variant::Reno, true) => Box::new(Together::new(config)),
        Tahoe(Box<Tahoe>): (Variant::Tahoe, _) => Box::default(),
        Reno(Inline<Reno>): (Variant::Reno, false) => Inline(Reno::new(config)),
        NewReno(Inline<NewReno>): (Variant::NewReno, _) => Inline(NewReno::new(config)),
        Sack(Box<Sack>): (Variant::Sack, _) => Box::default(),
        Smart(Box<Smart>): (Variant::Smart, _) => Box::new(Smart::new(config.smart_repeat)),
        Snack(Box<Holes>): (Variant::Snack, _) => Box::new(Holes::new(config.loss_cause)),
        Rack(Box<Rack>): (Variant::Rack, _) => Box::new(Rack::new(config)),
    }
    ways {
        /// An acknowledgement that is not beyond what was sent. The caller sends afterwards.
        fn on_ack(now: Time, info: &AckInfo<'_>) -> Verdict;
        /// A timer may have expired. The caller sends afterwards, and gives up when the back-off is too high.
        fn on_wake(now: Time) -> Verdict;
        /// The host has come to another cell. The caller sends afterwards.
        fn on_handoff(now: Time) -> Verdict;
        /// The next piece to send, if the windows allow one. Call until it answers `None`.
        fn poll(now: Time) -> Option<Chunk>;
        /// What is outstanding was lost while the peer was away: it is sent again, and the windows stay as they are.
        fn resend(now: Time) -> ();
        /// Another sender has sent everything below `max`, and will send no more. Here it counts as sent now.
        fn adopt(now: Time, max: u64) -> ();
    }
    asks {
        active() -> bool;
        next_wake() -> Option<Time>;
        has_work() -> bool;
        sacked(mss: u32) -> u64;
        outstanding(window: &Window) -> Outstanding;
    }
    tells {
        stop() -> ();
        part() -> Option<&mut Part>;
        opened(rtt: Span) -> ();
        set_tail_probes(on: bool) -> ();
        split_flight(now: Time, core: &mut Core) -> ();
        lose_early(now: Time, core: &mut Core, to: u64) -> ();
    }
}
