//! Channel models: which packets a radio damages, and where in the packet.
//!
//! A [`Channel`] is one direction of a radio link. It sees each packet once, in the order of transmission,
//! and says whether and where the packet is damaged; [`damage_at`] then says which checksum that breaks.
//!
//! A channel may concern only some kinds of frames ([`Channel::only`]): others neither suffer nor count, so whoever
//! sends asks [`Channel::applies_to`] before [`Channel::pass`]. A layer that corrects errors asks
//! [`Channel::pass_symbols`] instead, which tells every damaged byte.

mod fading;
mod states;
mod traffic;

use core::fmt::Debug;

use serde::Serialize;

use crate::describe::{Descriptor, Keys};
use crate::rng::Stream;
use crate::units::{Rate, Span, Time};
use crate::wire::{Damage, Packet};

pub use fading::Fading;
pub use rayleigh::Modulation;
pub use scripted::ScriptedErrors;
pub use traffic::{Kinds, Traffic};

/// Goes over the keys of a model, beside a radio of this rate.
pub type Read = fn(&mut Keys<'_>, Rate) -> ErrorSpec;

/// The configuration of a model, and what there is to know about it.
pub trait Model {
    /// The words that stand for it.
    const WORDS: &'static [Descriptor<Read>];
    /// What it does in a run.
    type Errors: Errors + Clone + Debug;
    /// Its errors, drawn from `stream`. If fades are to depend on the time alone, they are drawn from `states`.
    fn errors(&self, stream: Stream, states: Option<Stream>) -> Self::Errors;

    /// Whether it changes with time even while nothing is sent: only then can both directions share its states.
    fn goes_by_time(&self) -> bool {
        false
    }

    /// Whether it is good or bad, so that turns can be told.
    fn has_states(&self) -> bool {
        false
    }

    /// Whether it knows only packets that are lost as a whole, and no bytes that a code could correct.
    fn loses_whole_packets(&self) -> bool {
        false
    }
}

/// What a model does to the frames of one direction, in the order of their transmission.
pub trait Errors {
    /// The first damaged byte of a frame of `bytes` bytes that is on the air from `start` for `duration`.
    fn pass(&mut self, start: Time, duration: Span, bytes: u32) -> Option<u32>;

    /// Tells `hit` every damaged byte of such a frame. A model that knows only whole packets tells none; true if one of
    /// those is lost.
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

    /// Whether it is in its good state; one without states always is.
    fn is_good(&self) -> bool {
        true
    }

    /// When the state will change, if that happens with time even while nothing is sent.
    fn next_turn(&self) -> Option<Time> {
        None
    }

    /// Brings such a state up to `now`.
    fn advance(&mut self, now: Time) {
        let _ = now;
    }

    /// Its turns from now on, where they depend on the time alone.
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

/// Makes the enums of all models from the list of their files.
macro_rules! models {
    ($dollar:tt; $($file:ident::$Model:ident,)*) => {
        $(mod $file;
        pub use $file::$Model;)*

        /// How errors come about in one direction of a radio link.
        #[derive(Clone, PartialEq, Debug, Serialize)]
        #[serde(tag = "model", rename_all = "kebab-case")]
        #[expect(missing_docs, reason = "each is described by its configuration")]
        pub enum ErrorModel {
            $($Model($Model),)*
        }

        #[derive(Clone, Debug)]
        #[expect(clippy::large_enum_variant, reason = "a radio has two, and a box would cost each frame")]
        enum AnyErrors {
            $($Model(<$Model as Model>::Errors),)*
        }

        /// One match for whichever model it is, so that a frame costs no indirect call.
        macro_rules! each {
            ($dollar any:expr, $dollar errors:ident => $dollar call:expr) => {
                match $dollar any {
                    $(AnyErrors::$Model($dollar errors) => $dollar call,)*
                }
            };
        }

        /// The words for a model, in the order of the manual.
        pub fn words() -> impl Iterator<Item = &'static Descriptor<Read>> {
            [$($Model::WORDS),*].into_iter().flatten()
        }

        impl ErrorModel {
            fn errors(&self, stream: Stream, states: Option<Stream>) -> AnyErrors {
                match self {
                    $(ErrorModel::$Model(model) => AnyErrors::$Model(model.errors(stream, states)),)*
                }
            }

            /// Whether it changes with time even while nothing is sent: only then can both directions share its states.
            pub fn goes_by_time(&self) -> bool {
                match self {
                    $(ErrorModel::$Model(model) => model.goes_by_time(),)*
                }
            }

            /// Whether it is good or bad, so that turns can be told.
            pub fn has_states(&self) -> bool {
                match self {
                    $(ErrorModel::$Model(model) => model.has_states(),)*
                }
            }

            /// Whether it knows only packets that are lost as a whole, and no bytes that a code could correct.
            pub fn loses_whole_packets(&self) -> bool {
                match self {
                    $(ErrorModel::$Model(model) => model.loses_whole_packets(),)*
                }
            }
        }
    };
}

models! {
    $;
    exponential_errors::Exponential,
    bit_errors::BitErrors,
    packet_bursts::PacketBursts,
    two_state::TwoState,
    two_state_bits::TwoStateBits,
    packet_loss::PacketLoss,
    gilbert_elliott::GilbertElliott,
    rayleigh::Rayleigh,
    scripted::Scripted,
}

/// A channel model and what it applies to.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ErrorSpec {
    /// How errors come about.
    pub model: ErrorModel,
    /// Which frames of the direction they concern; others neither suffer nor count.
    #[serde(skip_serializing_if = "Kinds::is_all")]
    pub only: Kinds,
    /// Whether both directions have the same fades.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub reciprocal: bool,
    /// Whether turns are told when they happen, as events and to the neighbours of the radio.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub tell_turns: bool,
}

impl From<ErrorModel> for ErrorSpec {
    /// Errors for every frame, with fades of their own, told when a frame meets them.
    fn from(model: ErrorModel) -> ErrorSpec {
        ErrorSpec { model, only: Kinds::ALL, reciprocal: false, tell_turns: false }
    }
}

/// What a channel did to one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Fate {
    /// Index of the first damaged byte of the IP packet; `None` when it is unharmed.
    pub damaged_at: Option<u32>,
    /// The state after the packet, good (true) or bad, if it differs from the state before.
    pub turned: Option<bool>,
}

/// What a channel did to the bytes of one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Harm {
    /// Damaged bytes, each told on its own.
    pub bytes: u32,
    /// The packet is lost as a whole: the model knows no bytes, and no code helps.
    pub whole: bool,
    /// The state after the packet, good (true) or bad, if it differs from the state before.
    pub turned: Option<bool>,
}

/// The checksum that an error at byte `position` of `packet` breaks.
//= west97#4.3: an error in the IP header breaks the IP checksum, one behind it the TCP checksum
pub fn damage_at(position: u32, packet: &Packet) -> Damage {
    if position < packet.ip_header_len() { Damage::Ip } else { Damage::Tcp }
}

/// One direction of a radio link, with its own stream of draws.
#[derive(Clone, Debug)]
pub struct Channel {
    errors: AnyErrors,
    only: Kinds,
    tells: bool,
}

impl Channel {
    /// The channel of `model`, drawing from `stream`. It concerns every frame.
    pub fn new(model: &ErrorModel, stream: Stream) -> Channel {
        Channel { errors: model.errors(stream, None), only: Kinds::ALL, tells: false }
    }

    /// The same, but fades are drawn from `states`, and depend on nothing but that and the time: two directions with
    /// equal streams fade together (parsa98 5.3: "neither sender nor receiver can hear each other"), and turns can be
    /// told when they happen. Models that do not go by time leave `states` unused.
    pub fn with_states(model: &ErrorModel, stream: Stream, states: Stream) -> Channel {
        Channel { errors: model.errors(stream, Some(states)), only: Kinds::ALL, tells: false }
    }

    /// The same channel for frames of `kinds` only. The default is every frame in its direction.
    #[must_use]
    pub fn only(mut self, kinds: Kinds) -> Channel {
        self.only = kinds;
        self
    }

    /// The same channel, whose radio tells its turns to the world and to its neighbours when they happen.
    #[must_use]
    pub fn telling(mut self) -> Channel {
        self.tells = true;
        self
    }

    /// Whether its turns are to be told.
    pub fn tells(&self) -> bool {
        self.tells
    }

    /// Whether frames of this kind pass through the channel at all. If not, [`Channel::pass`] must not be called for
    /// one: it is neither damaged, nor does it take part in distances and bursts (parsa98 5.3.1: bursts of data
    /// packets, every so many bytes of data).
    #[inline]
    pub fn applies_to(&self, kind: Traffic) -> bool {
        self.only.has(kind)
    }

    /// A packet of `bytes` bytes (IP header included) is on the air from `start` for `duration`.
    #[inline]
    pub fn pass(&mut self, start: Time, duration: Span, bytes: u32) -> Fate {
        let before = self.is_good();
        let damaged_at = each!(&mut self.errors, errors => errors.pass(start, duration, bytes));
        let after = self.is_good();
        Fate { damaged_at, turned: (after != before).then_some(after) }
    }

    /// The same for a layer that corrects errors: `hit` is told every damaged byte, in order and once. The first is
    /// the one that [`Channel::pass`] would have named; the draws for the others follow it. Models that know only
    /// whole packets ([`PacketLoss`], [`PacketBursts`]) tell none and say so in [`Harm::whole`].
    pub fn pass_symbols(
        &mut self,
        start: Time,
        duration: Span,
        bytes: u32,
        hit: &mut dyn FnMut(u32),
    ) -> Harm {
        let before = self.is_good();
        let mut count = 0;
        let mut told = |byte| {
            count += 1;
            hit(byte);
        };
        let told = &mut told;
        let whole = each!(&mut self.errors, e => e.pass_symbols(start, duration, bytes, told));
        let after = self.is_good();
        Harm { bytes: count, whole, turned: (after != before).then_some(after) }
    }

    /// Whether the channel is in its good state; channels without states always are.
    #[inline]
    pub fn is_good(&self) -> bool {
        each!(&self.errors, errors => errors.is_good())
    }

    /// When the state will change, for channels that change with time even while nothing is sent.
    pub fn next_turn(&self) -> Option<Time> {
        each!(&self.errors, errors => errors.next_turn())
    }

    /// Brings such a channel up to `now`; the new state if it differs.
    pub fn advance(&mut self, now: Time) -> Option<bool> {
        let before = self.is_good();
        each!(&mut self.errors, errors => errors.advance(now));
        let after = self.is_good();
        (after != before).then_some(after)
    }

    /// The turns of a channel that has its states from a stream of their own, to be watched beside it: a frame takes
    /// the channel to the frame's end, while its turns still lie ahead of whoever waits for them.
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

/// The good and bad periods of a channel, one after the other.
#[derive(Clone, Debug)]
pub struct Turns(states::States);

impl Turns {
    /// When the state changes next; [`Time::NEVER`] if it does not.
    #[inline]
    pub fn next(&self) -> Time {
        self.0.until()
    }

    /// Takes the next change if it is due at `now`: the new state. Call it until there is none.
    pub fn take(&mut self, now: Time) -> Option<bool> {
        if self.0.until() > now || self.0.until() == Time::NEVER {
            return None;
        }
        if self.0.is_long(now.since(self.0.until())) {
            // A channel that was made anew in a station long after its start: what has been is not told.
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
