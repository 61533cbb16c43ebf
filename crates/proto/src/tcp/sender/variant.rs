//! The recoveries by name: to register a variant is one file and one line here.

use crate::event::TcpKind;
use crate::tcp::config::{TcpConfig, Variant};
use crate::units::Time;

use super::family::variants;
use super::growth::Acked;
use super::integrated::{Part, Together};
use super::newreno::NewReno;
use super::rack::Rack;
use super::recovery::{Choice, News, Progress, Recovery, Step, Woken};
use super::reno::Reno;
use super::sack::Sack;
use super::smart::Smart;
use super::snack::Holes;
use super::tahoe::Tahoe;
use super::{AckInfo, Chunk, Core, Timers, Window};

variants! {
    /// The recovery of a configured variant.
    #[derive(Clone, Debug)]
    AnyRecovery: Recovery,
    /// The recovery of `variant`, with what `config` says of its details.
    new(variant: Variant, config: &TcpConfig) by (variant, config.integrated);
    {
        Together(Box<Together>): (Variant::Reno, true) => Box::new(Together::new(config)),
        Tahoe(Tahoe): (Variant::Tahoe, _) => Tahoe::default(),
        Reno(Reno): (Variant::Reno, false) => Reno::new(config),
        NewReno(NewReno): (Variant::NewReno, _) => NewReno::new(config),
        Sack(Box<Sack>): (Variant::Sack, _) => Box::default(),
        Smart(Box<Smart>): (Variant::Smart, _) => Box::new(Smart::new(config.smart_repeat)),
        Snack(Box<Holes>): (Variant::Snack, _) => Box::new(Holes::new(config.loss_cause)),
        Rack(Box<Rack>): (Variant::Rack, _) => Box::new(Rack::new(config)),
    }
    asks {
        active() -> bool;
        engaged() -> bool;
        may_enter(window: &Window) -> bool;
        unrepaired(window: &Window) -> bool;
        next_wake() -> Option<Time>;
        postponed(now: Time, timers: &Timers) -> Option<Time>;
        has_work() -> bool;
        keeps_window() -> bool;
        unfinished() -> bool;
        sacked_above() -> u64;
        waits() -> bool;
    }
    tells {
        enter(window: &mut Window, dupacks: u32) -> ();
        on_dup_ack(core: &mut Core, now: Time) -> TcpKind;
        on_ack(core: &mut Core, ack: &Acked) -> Progress;
        on_timeout(now: Time, core: &mut Core) -> Option<u64>;
        called() -> ();
        on_wake(now: Time, core: &mut Core) -> Option<Woken>;
        stop() -> ();
        hear(now: Time, window: &Window, info: &AckInfo<'_>) -> News;
        judge(now: Time, core: &Core) -> u64;
        grow(core: &mut Core, step: &Step) -> ();
        settle(core: &mut Core, step: &Step) -> ();
        on_sent(now: Time, core: &mut Core, chunk: &Chunk) -> Option<bool>;
        next_chunk(core: &mut Core, now: Time) -> Choice;
        on_blocked() -> ();
        part() -> Option<&mut Part>;
    }
}
