//! The recoveries by name: to register a variant is one file and one line in each list here.

use crate::tcp::config::{TcpConfig, Variant};
use crate::units::{Span, Time};

use super::newreno::NewReno;
use super::rack::Rack;
use super::recovery::{Progress, Recovery};
use super::reno::Reno;
use super::sack::Sack;
use super::smart::Smart;
use super::snack::Holes;
use super::tahoe::Tahoe;
use super::{Chunk, Window};
use crate::wire::Snack;

/// The recovery of a configured variant.
#[derive(Clone, Debug)]
pub enum AnyRecovery {
    /// See [`Tahoe`].
    Tahoe(Tahoe),
    /// See [`Reno`].
    Reno(Reno),
    /// See [`NewReno`].
    NewReno(NewReno),
    /// See [`Sack`].
    Sack(Box<Sack>),
    /// See [`Smart`].
    Smart(Box<Smart>),
    /// See [`Holes`].
    Snack(Box<Holes>),
    /// See [`Rack`].
    Rack(Box<Rack>),
}

impl AnyRecovery {
    /// The recovery of `variant`, with what `config` says of its details.
    pub fn new(variant: Variant, config: &TcpConfig) -> AnyRecovery {
        match variant {
            Variant::Tahoe => AnyRecovery::Tahoe(Tahoe::default()),
            Variant::Reno => AnyRecovery::Reno(Reno::default()),
            Variant::NewReno => AnyRecovery::NewReno(NewReno::default()),
            Variant::Sack => AnyRecovery::Sack(Box::default()),
            Variant::Smart => AnyRecovery::Smart(Box::new(Smart::new(config.smart_repeat))),
            Variant::Snack => AnyRecovery::Snack(Box::new(Holes::new(config.loss_cause))),
            Variant::Rack => AnyRecovery::Rack(Box::new(Rack::new(config))),
        }
    }
}

macro_rules! each {
    ($self:ident, $r:ident => $call:expr) => {
        match $self {
            AnyRecovery::Tahoe($r) => $call,
            AnyRecovery::Reno($r) => $call,
            AnyRecovery::NewReno($r) => $call,
            AnyRecovery::Sack($r) => $call,
            AnyRecovery::Smart($r) => $call,
            AnyRecovery::Snack($r) => $call,
            AnyRecovery::Rack($r) => $call,
        }
    };
}

impl Recovery for AnyRecovery {
    fn active(&self) -> bool {
        each!(self, r => r.active())
    }
    fn may_enter(&self, window: &Window) -> bool {
        each!(self, r => r.may_enter(window))
    }
    fn enter(&mut self, window: &mut Window, dupacks: u32) {
        each!(self, r => r.enter(window, dupacks))
    }
    fn on_dup_ack(&mut self, window: &mut Window) {
        each!(self, r => r.on_dup_ack(window))
    }
    fn on_ack(&mut self, window: &mut Window, acked: u32) -> Progress {
        each!(self, r => r.on_ack(window, acked))
    }
    fn on_timeout(&mut self, window: &mut Window) {
        each!(self, r => r.on_timeout(window))
    }
    fn expired(&mut self, now: Time, window: &mut Window, srtt: Span) {
        each!(self, r => r.expired(now, window, srtt))
    }
    fn next_wake(&self) -> Option<Time> {
        each!(self, r => r.next_wake())
    }
    fn stop(&mut self) {
        each!(self, r => r.stop())
    }
    fn has_work(&self) -> bool {
        each!(self, r => r.has_work())
    }
    fn learn(&mut self, window: &Window, blocks: &[(u64, u64)]) -> bool {
        each!(self, r => r.learn(window, blocks))
    }
    fn on_cause(&mut self, window: &Window, from: u64) -> bool {
        each!(self, r => r.on_cause(window, from))
    }
    fn on_snack(&mut self, window: &Window, ack: u64, snack: &Snack) -> bool {
        each!(self, r => r.on_snack(window, ack, snack))
    }
    fn keeps_window(&self) -> bool {
        each!(self, r => r.keeps_window())
    }
    #[inline]
    fn on_sent(&mut self, window: &Window, chunk: &Chunk) {
        each!(self, r => r.on_sent(window, chunk))
    }
    fn unfinished(&self) -> bool {
        each!(self, r => r.unfinished())
    }
    fn selective(&self) -> bool {
        each!(self, r => r.selective())
    }
    fn sacked_above(&self, window: &Window) -> u64 {
        each!(self, r => r.sacked_above(window))
    }
    fn next_chunk(&mut self, window: &mut Window) -> Option<Option<Chunk>> {
        each!(self, r => r.next_chunk(window))
    }
}
