//! Channel models: which packets a radio damages, and at which byte.
//!
//! A [`Channel`] is one direction of a radio link. It sees each packet once, in the order of transmission,
//! and returns whether and where the packet is damaged. [`damage_at`] maps the position to the checksum that
//! the error breaks.
//!
//! A channel may apply to some kinds of frames only ([`Channel::only`]). Other frames are neither damaged nor
//! counted, so the sender checks [`Channel::applies_to`] before [`Channel::pass`]. A layer with error
//! correction calls [`Channel::pass_symbols`] instead, which reports every damaged byte.

mod fading;
mod states;
mod traffic;

use core::fmt::Debug;

use serde::Serialize;

use crate::describe::{Descriptor, Keys};
use crate::rng::Stream;
use crate::units::{Rate, Span, Time};
use crate::wire::{Damage, Packet};

pub use bit_errors::BitErrors;
pub use exponential_errors::Exponential;
pub use fading::Fading;
pub use gilbert_elliott::GilbertElliott;
pub use packet_bursts::{Overlap, PacketBursts};
pub use packet_loss::PacketLoss;
pub use rayleigh::{Modulation, Rayleigh};
pub use scripted::{Scripted, ScriptedErrors};
pub use traffic::{Kinds, Traffic};
pub use two_state::TwoState;
pub use two_state_bits::TwoStateBits;

/// Reads the keys of a model, for a radio of this rate.
pub type Read = fn(&mut Keys<'_>, Rate) -> ErrorSpec;

/// The configuration of a model, with its descriptors.
pub trait Model {
    /// Descriptors of its names in scenario files.
    const WORDS: &'static [Descriptor<Read>];
    /// Its error process in a run.
    type Errors: Errors + Clone + Debug;
    /// Its error process, drawn from `stream`. With `states`, fades depend on the time alone and are drawn
    /// from it.
    fn errors(&self, stream: Stream, states: Option<Stream>) -> Self::Errors;

    /// Whether its state changes with time even without transmissions. Only then can both directions share
    /// the state.
    fn goes_by_time(&self) -> bool {
        false
    }

    /// Whether it loses whole packets only, without damaged bytes that a code could correct.
    fn loses_whole_packets(&self) -> bool {
        false
    }
}

/// The error process of one direction, in the order of transmission.
pub trait Errors {
    /// The first damaged byte of a frame of `bytes` bytes that is sent from `start` for `duration`.
    fn pass(&mut self, start: Time, duration: Span, bytes: u32) -> Option<u32>;

    /// Calls `hit` with every damaged byte of a frame. A model of whole packets calls it never; it returns
    /// whether the packet is lost.
    fn pass_symbols(
        &mut self,
        start: Time,
        duration: Span,
        bytes: u32,
        hit: &mut dyn FnMut(u32),
    ) -> bool {
        let _ = hit;
        self.pass(start, duration, bytes).is_some()
    }

    /// Whether it is in the good state; always true without states.
    fn is_good(&self) -> bool {
        true
    }

    /// Time of the next change of state, if states change with time even without transmissions.
    fn next_turn(&self) -> Option<Time> {
        None
    }

    /// Updates such a state to `now`.
    fn advance(&mut self, now: Time) {
        let _ = now;
    }

    /// Future changes of state, if they depend on the time alone.
    fn turns(&self) -> Option<Turns> {
        None
    }

    /// The script of fates, of a model that has one.
    fn script(&self) -> Option<&ScriptedErrors> {
        None
    }

    /// The same, to change it.
    fn script_mut(&mut self) -> Option<&mut ScriptedErrors> {
        None
    }
}

family! {
    $ each;

    /// Error model of one direction of a radio link.
    #[derive(Clone, PartialEq, Debug, Serialize)]
    #[serde(tag = "model", rename_all = "kebab-case")]
    config ErrorModel;

    /// The error process of one direction. An enum, so that a frame needs no indirect call.
    #[derive(Clone, Debug)]
    #[expect(clippy::large_enum_variant, reason = "a radio has two, and a box would cost each frame")]
    machine AnyErrors(stream: Stream, states: Option<Stream>);

    /// Descriptors of all models, in the order of the manual.
    words Read;

    [exponential_errors] Exponential(model: Exponential) => <Exponential as Model>::Errors = model.errors(stream, states), Exponential::WORDS;
    [bit_errors] BitErrors(model: BitErrors) => <BitErrors as Model>::Errors = model.errors(stream, states), BitErrors::WORDS;
    [packet_bursts] PacketBursts(model: PacketBursts) => <PacketBursts as Model>::Errors = model.errors(stream, states), PacketBursts::WORDS;
    [two_state] TwoState(model: TwoState) => <TwoState as Model>::Errors = model.errors(stream, states), TwoState::WORDS;
    [two_state_bits] TwoStateBits(model: TwoStateBits) => <TwoStateBits as Model>::Errors = model.errors(stream, states), TwoStateBits::WORDS;
    [packet_loss] PacketLoss(model: PacketLoss) => <PacketLoss as Model>::Errors = model.errors(stream, states), PacketLoss::WORDS;
    [gilbert_elliott] GilbertElliott(model: GilbertElliott) => <GilbertElliott as Model>::Errors = model.errors(stream, states), GilbertElliott::WORDS;
    [rayleigh] Rayleigh(model: Rayleigh) => <Rayleigh as Model>::Errors = model.errors(stream, states), Rayleigh::WORDS;
    [scripted] Scripted(model: Scripted) => <Scripted as Model>::Errors = model.errors(stream, states), Scripted::WORDS;
}

impl ErrorModel {
    /// Whether its state changes with time even without transmissions. Only then can both directions share the
    /// state.
    pub fn goes_by_time(&self) -> bool {
        each!(config self, model => model.goes_by_time())
    }

    /// Whether it loses whole packets only, without damaged bytes that a code could correct.
    pub fn loses_whole_packets(&self) -> bool {
        each!(config self, model => model.loses_whole_packets())
    }
}

/// A channel model and the frames to which it applies.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ErrorSpec {
    /// The error model.
    pub model: ErrorModel,
    /// Kinds of frames to which it applies; others are neither damaged nor counted.
    #[serde(skip_serializing_if = "Kinds::is_all")]
    pub only: Kinds,
    /// Whether both directions have the same fades.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub reciprocal: bool,
    /// Whether changes of state are reported immediately, as events and to the neighbours of the radio.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub tell_turns: bool,
}

impl From<ErrorModel> for ErrorSpec {
    /// Errors for every frame, with separate fades per direction, reported when a frame encounters them.
    fn from(model: ErrorModel) -> ErrorSpec {
        ErrorSpec { model, only: Kinds::ALL, reciprocal: false, tell_turns: false }
    }
}

/// Effect of a channel on one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Fate {
    /// Index of the first damaged byte of the IP packet; `None` if it is undamaged.
    pub damaged_at: Option<u32>,
    /// The state after the packet, good (true) or bad, if it has changed.
    pub turned: Option<bool>,
}

/// Effect of a channel on the bytes of one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Harm {
    /// Number of damaged bytes that were reported.
    pub bytes: u32,
    /// Whether the packet is lost as a whole, so that no code helps.
    pub whole: bool,
    /// The state after the packet, good (true) or bad, if it has changed.
    pub turned: Option<bool>,
}

/// The checksum that an error at byte `position` of `packet` breaks.
//= west97#4.3: an error in the IP header breaks the IP checksum, one behind it the TCP checksum
pub fn damage_at(position: u32, packet: &Packet) -> Damage {
    if position < packet.ip_header_len() { Damage::Ip } else { Damage::Tcp }
}

/// One direction of a radio link, with a separate random stream.
#[derive(Clone, Debug)]
pub struct Channel {
    errors: AnyErrors,
    only: Kinds,
    reports_changes: bool,
}

impl Channel {
    /// The channel of `model`, with draws from `stream`. It applies to every frame.
    pub fn new(model: &ErrorModel, stream: Stream) -> Channel {
        Channel {
            errors: AnyErrors::new(model, stream, None),
            only: Kinds::ALL,
            reports_changes: false,
        }
    }

    /// Like [`Channel::new`], with fades drawn from `states` that depend on that stream and the time alone.
    /// Two directions with equal streams fade together (parsa98 5.3: "neither sender nor receiver can hear
    /// each other"), and changes can be reported immediately. Models whose states do not depend on time
    /// ignore `states`.
    pub fn with_states(model: &ErrorModel, stream: Stream, states: Stream) -> Channel {
        Channel {
            errors: AnyErrors::new(model, stream, Some(states)),
            only: Kinds::ALL,
            reports_changes: false,
        }
    }

    /// Restricts the channel to frames of `kinds`.
    #[must_use]
    pub fn only(mut self, kinds: Kinds) -> Channel {
        self.only = kinds;
        self
    }

    /// Makes the radio report changes of state immediately, to the world and to its neighbours.
    #[must_use]
    pub fn reporting(mut self) -> Channel {
        self.reports_changes = true;
        self
    }

    /// Whether changes of state are reported immediately.
    pub fn reports_changes(&self) -> bool {
        self.reports_changes
    }

    /// Whether the channel applies to frames of this kind. If not, [`Channel::pass`] must not be called: such
    /// a frame is not damaged, and does not count for distances and bursts (parsa98 5.3.1: bursts of data
    /// packets, distances in bytes of data).
    #[inline]
    pub fn applies_to(&self, kind: Traffic) -> bool {
        self.only.has(kind)
    }

    /// Passes a packet of `bytes` bytes (IP header included) that is sent from `start` for `duration`.
    #[inline]
    pub fn pass(&mut self, start: Time, duration: Span, bytes: u32) -> Fate {
        let before = self.is_good();
        let damaged_at = each!(&mut self.errors, errors => errors.pass(start, duration, bytes));
        let after = self.is_good();
        Fate { damaged_at, turned: (after != before).then_some(after) }
    }

    /// Like [`Channel::pass`], for a layer with error correction: calls `hit` with every damaged byte once,
    /// in order. The first is the one that [`Channel::pass`] would return; the draws for the others follow
    /// it. Models of whole packets ([`PacketLoss`], [`PacketBursts`]) set [`Harm::whole`] instead.
    pub fn pass_symbols(
        &mut self,
        start: Time,
        duration: Span,
        bytes: u32,
        hit: &mut dyn FnMut(u32),
    ) -> Harm {
        let before = self.is_good();
        let mut count = 0;
        let mut record_hit = |byte| {
            count += 1;
            hit(byte);
        };
        let record_hit = &mut record_hit;
        let whole =
            each!(&mut self.errors, e => e.pass_symbols(start, duration, bytes, record_hit));
        let after = self.is_good();
        Harm { bytes: count, whole, turned: (after != before).then_some(after) }
    }

    /// Whether the channel is in the good state; always true without states.
    #[inline]
    pub fn is_good(&self) -> bool {
        each!(&self.errors, errors => errors.is_good())
    }

    /// Time of the next change of state, if states change with time even without transmissions.
    pub fn next_turn(&self) -> Option<Time> {
        each!(&self.errors, errors => errors.next_turn())
    }

    /// Updates the state of such a channel to `now`. Returns the new state if it has changed.
    pub fn advance(&mut self, now: Time) -> Option<bool> {
        let before = self.is_good();
        each!(&mut self.errors, errors => errors.advance(now));
        let after = self.is_good();
        (after != before).then_some(after)
    }

    /// Changes of state from a separate stream, for observation in parallel. A frame advances the channel to
    /// the frame's end, while changes during the frame are still in the observer's future.
    pub fn turns(&self) -> Option<Turns> {
        each!(&self.errors, errors => errors.turns())
    }

    /// The script of fates, of a model that has one.
    pub fn script(&self) -> Option<&ScriptedErrors> {
        each!(&self.errors, errors => errors.script())
    }

    /// The same, to change it.
    pub fn script_mut(&mut self) -> Option<&mut ScriptedErrors> {
        each!(&mut self.errors, errors => errors.script_mut())
    }
}

/// The alternating good and bad periods of a channel.
#[derive(Clone, Debug)]
pub struct Turns(states::States);

impl Turns {
    /// Time of the next change; [`Time::NEVER`] if there is none.
    #[inline]
    pub fn next(&self) -> Time {
        self.0.until()
    }

    /// Returns the new state of the next change if it is due at `now`. Call it until it returns `None`.
    pub fn take(&mut self, now: Time) -> Option<bool> {
        if self.0.until() > now || self.0.until() == Time::NEVER {
            return None;
        }
        if self.0.is_long(now.since(self.0.until())) {
            // In a channel made long after the station's start, past changes are not reported.
            let was = self.0.is_good();
            self.0.advance(now);
            return Some(self.0.is_good()).filter(|good| *good != was);
        }
        self.0.turn();
        Some(self.0.is_good())
    }
}

#[cfg(test)]
mod tests;
