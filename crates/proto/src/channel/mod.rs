//! Channel models: which packets a radio damages, and where in the packet.
//!
//! A [`Channel`] is one direction of a radio link. It sees each packet once, in the order of transmission,
//! and says whether and where the packet is damaged; [`damage_at`] then says which checksum that breaks.
//!
//! A channel may concern only some kinds of frames ([`Channel::only`]): others neither suffer nor count, so whoever
//! sends asks [`Channel::applies_to`] before [`Channel::pass`]. A layer that corrects errors asks
//! [`Channel::pass_symbols`] instead, which tells every damaged byte.

mod bit_errors;
mod exponential_errors;
mod fading;
mod packet_bursts;
mod packet_loss;
mod rayleigh;
mod states;
mod traffic;
mod two_state;

use serde::Serialize;

use crate::rng::Stream;
use crate::units::{Bytes, Decibels, Frequency, Probability, Span, Speed, Time};
use crate::wire::{Damage, Packet};

pub use bit_errors::BitErrors;
pub use exponential_errors::ExponentialErrors;
pub use fading::Fading;
pub use packet_bursts::PacketBursts;
pub use packet_loss::PacketLoss;
pub use rayleigh::{Modulation, Rayleigh};
pub use traffic::{Kinds, Traffic};
pub use two_state::{TwoState, TwoStateBits};

/// How errors come about in one direction of a radio link.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "model", rename_all = "kebab-case")]
pub enum ErrorModel {
    /// Errors at exponential distances in bytes; each damages the one packet it falls into (west97 4.3).
    Exponential {
        /// Mean distance between errors.
        mean: Bytes,
    },
    /// Independent bit errors.
    BitErrors {
        /// Bit error rate.
        ber: Probability,
    },
    /// Each error destroys `packets` consecutive packets; distances are from onset to onset (west97 5.2.2).
    PacketBursts {
        /// Packets destroyed by one error.
        packets: u32,
        /// Mean distance between the onsets of two errors.
        mean: Bytes,
        /// Whether the distances are all equal instead of exponential.
        uniform: bool,
    },
    /// A Markov channel that is good or bad for exponential times (bakshi96 3.1).
    TwoState {
        /// Mean time in the good state.
        good: Span,
        /// Mean time in the bad state.
        bad: Span,
        /// Bit error rate in the good state.
        ber_good: Probability,
        /// Bit error rate in the bad state.
        ber_bad: Probability,
        /// Whether the times are constant instead of exponential.
        deterministic: bool,
    },
    /// A Markov channel that changes its state between bits (parsa98 5.3.2).
    TwoStateBits {
        /// Mean length of a good period in bits.
        good_bits: u64,
        /// Mean length of a bad period in bits.
        bad_bits: u64,
        /// Bit error rate in the good state.
        ber_good: Probability,
        /// Bit error rate in the bad state.
        ber_bad: Probability,
    },
    /// Each packet is lost with this probability, whatever its length.
    PacketLoss {
        /// Probability of loss.
        p: Probability,
    },
    /// The power fades as that of somebody who moves between reflections (parsa98 5.3).
    Rayleigh {
        /// How fast.
        speed: Speed,
        /// On which carrier.
        carrier: Frequency,
        /// Mean signal-to-noise ratio per bit.
        snr: Decibels,
        /// What that means for bits.
        modulation: Modulation,
    },
}

impl ErrorModel {
    /// Whether it changes with time even while nothing is sent: only then can both directions share its states.
    pub fn goes_by_time(&self) -> bool {
        matches!(self, ErrorModel::TwoState { .. } | ErrorModel::Rayleigh { .. })
    }

    /// Whether it is good or bad, so that turns can be told.
    pub fn has_states(&self) -> bool {
        matches!(self, ErrorModel::TwoState { .. } | ErrorModel::TwoStateBits { .. })
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
    model: Model,
    only: Kinds,
    tells: bool,
}

#[derive(Clone, Debug)]
enum Model {
    Exponential(ExponentialErrors),
    BitErrors(BitErrors),
    PacketBursts(PacketBursts),
    TwoState(TwoState),
    TwoStateBits(TwoStateBits),
    PacketLoss(PacketLoss),
    Rayleigh(Box<Rayleigh>),
}

impl Channel {
    /// The channel of `model`, drawing from `stream`. It concerns every frame.
    pub fn new(model: &ErrorModel, stream: Stream) -> Channel {
        Channel::of(model, stream, None)
    }

    /// The same, but fades are drawn from `states`, and depend on nothing but that and the time: two directions with
    /// equal streams fade together (parsa98 5.3: "neither sender nor receiver can hear each other"), and turns can be
    /// told when they happen. Models that do not go by time leave `states` unused.
    pub fn with_states(model: &ErrorModel, stream: Stream, states: Stream) -> Channel {
        Channel::of(model, stream, Some(states))
    }

    fn of(model: &ErrorModel, mut stream: Stream, states: Option<Stream>) -> Channel {
        let model = match *model {
            ErrorModel::Exponential { mean } => {
                Model::Exponential(ExponentialErrors::new(mean, stream))
            }
            ErrorModel::BitErrors { ber } => Model::BitErrors(BitErrors::new(ber, stream)),
            ErrorModel::PacketBursts { packets, mean, uniform } => {
                Model::PacketBursts(PacketBursts::new(packets, mean, uniform, stream))
            }
            ErrorModel::TwoState { good, bad, ber_good, ber_bad, deterministic } => {
                let (means, bers) = ([good, bad], [ber_good, ber_bad]);
                Model::TwoState(match states {
                    None => TwoState::new(means, bers, deterministic, stream),
                    Some(states) => {
                        TwoState::with_states(means, bers, deterministic, stream, states)
                    }
                })
            }
            ErrorModel::TwoStateBits { good_bits, bad_bits, ber_good, ber_bad } => {
                let (means, bers) = ([good_bits, bad_bits], [ber_good, ber_bad]);
                Model::TwoStateBits(TwoStateBits::new(means, bers, stream))
            }
            ErrorModel::PacketLoss { p } => Model::PacketLoss(PacketLoss::new(p, stream)),
            ErrorModel::Rayleigh { speed, carrier, snr, modulation } => {
                let phases =
                    states.unwrap_or_else(|| Stream::new(stream.next_u64(), "rayleigh.phases"));
                let doppler = carrier.doppler(speed);
                Model::Rayleigh(Box::new(Rayleigh::new(doppler, snr, modulation, stream, phases)))
            }
        };
        Channel { model, only: Kinds::ALL, tells: false }
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
        let damaged_at = match &mut self.model {
            Model::Exponential(model) => model.pass(bytes),
            Model::BitErrors(model) => model.pass(bytes),
            Model::PacketBursts(model) => model.pass(bytes),
            Model::TwoState(model) => model.pass(start, duration, bytes),
            Model::TwoStateBits(model) => model.pass(bytes),
            Model::PacketLoss(model) => model.pass(bytes),
            Model::Rayleigh(model) => model.pass(start, duration, bytes),
        };
        let after = self.is_good();
        Fate { damaged_at, turned: (after != before).then_some(after) }
    }

    /// The same for a layer that corrects errors: `hit` is told every damaged byte, in order and once. The first is
    /// the one that [`Channel::pass`] would have named; the draws for the others follow it. Models that know only
    /// whole packets ([`ErrorModel::PacketLoss`], [`ErrorModel::PacketBursts`]) tell none and say so in [`Harm::whole`].
    pub fn pass_symbols(
        &mut self,
        start: Time,
        duration: Span,
        bytes: u32,
        hit: &mut dyn FnMut(u32),
    ) -> Harm {
        let before = self.is_good();
        let (mut count, mut whole) = (0, false);
        let mut told = |byte| {
            count += 1;
            hit(byte);
        };
        match &mut self.model {
            Model::Exponential(model) => model.pass_symbols(bytes, &mut told),
            Model::BitErrors(model) => model.pass_symbols(bytes, &mut told),
            Model::TwoState(model) => model.pass_symbols(start, duration, bytes, &mut told),
            Model::TwoStateBits(model) => model.pass_symbols(bytes, &mut told),
            Model::Rayleigh(model) => model.pass_symbols(start, duration, bytes, &mut told),
            Model::PacketBursts(model) => whole = model.pass(bytes).is_some(),
            Model::PacketLoss(model) => whole = model.pass(bytes).is_some(),
        }
        let after = self.is_good();
        Harm { bytes: count, whole, turned: (after != before).then_some(after) }
    }

    /// Whether the channel is in its good state; channels without states always are.
    #[inline]
    pub fn is_good(&self) -> bool {
        match &self.model {
            Model::TwoState(model) => model.is_good(),
            Model::TwoStateBits(model) => model.is_good(),
            _ => true,
        }
    }

    /// When the state will change, for channels that change with time even while nothing is sent.
    pub fn next_turn(&self) -> Option<Time> {
        match &self.model {
            Model::TwoState(model) => model.next_turn(),
            _ => None,
        }
    }

    /// Brings such a channel up to `now`; the new state if it differs.
    pub fn advance(&mut self, now: Time) -> Option<bool> {
        let before = self.is_good();
        if let Model::TwoState(model) = &mut self.model {
            model.advance(now);
        }
        let after = self.is_good();
        (after != before).then_some(after)
    }

    /// The turns of a channel that has its states from a stream of their own, to be watched beside it: a frame takes
    /// the channel to the frame's end, while its turns still lie ahead of whoever waits for them.
    pub fn turns(&self) -> Option<Turns> {
        match &self.model {
            Model::TwoState(model) => model.states().cloned().map(Turns),
            _ => None,
        }
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn probability() -> impl Strategy<Value = Probability> {
        prop_oneof![Just(0.0), Just(1.0), Just(1e-18), 0.0..=1.0]
            .prop_map(|p| Probability::new(p).unwrap())
    }

    fn small() -> impl Strategy<Value = u64> {
        prop_oneof![0u64..4, 1u64..100_000, Just(u64::MAX)]
    }

    fn model() -> impl Strategy<Value = ErrorModel> {
        prop_oneof![
            small().prop_map(|m| ErrorModel::Exponential { mean: Bytes(m) }),
            probability().prop_map(|ber| ErrorModel::BitErrors { ber }),
            (0u32..9, small(), any::<bool>()).prop_map(|(packets, m, uniform)| {
                ErrorModel::PacketBursts { packets, mean: Bytes(m), uniform }
            }),
            (small(), small(), probability(), probability(), any::<bool>()).prop_map(
                |(good, bad, ber_good, ber_bad, deterministic)| ErrorModel::TwoState {
                    good: Span(good),
                    bad: Span(bad),
                    ber_good,
                    ber_bad,
                    deterministic,
                }
            ),
            (small(), small(), probability(), probability()).prop_map(
                |(good_bits, bad_bits, ber_good, ber_bad)| ErrorModel::TwoStateBits {
                    good_bits,
                    bad_bits,
                    ber_good,
                    ber_bad,
                }
            ),
            probability().prop_map(|p| ErrorModel::PacketLoss { p }),
            (0u64..1 << 40, 0u64..1 << 40, -400.0..400.0).prop_map(|(speed, carrier, snr)| {
                ErrorModel::Rayleigh {
                    speed: Speed(speed),
                    carrier: Frequency(carrier),
                    snr: Decibels::new(snr).unwrap(),
                    modulation: Modulation::Dbpsk,
                }
            }),
        ]
    }

    proptest! {
        #[test]
        fn any_channel_ends_and_damages_a_byte_of_the_packet(
            model in model(),
            seed in any::<u64>(),
            frames in prop::collection::vec((0u64..1 << 40, 0u64..20_000_000, 0u32..3000), 1..20),
        ) {
            let mut channel = Channel::new(&model, Stream::new(seed, "radio"));
            let mut now = Time::ZERO;
            for (gap, duration, bytes) in frames {
                now += Span(gap);
                let fate = channel.pass(now, Span(duration), bytes);
                prop_assert!(fate.damaged_at.is_none_or(|at| at < bytes));
                now += Span(duration);
                channel.advance(now);
                prop_assert!(channel.next_turn().is_none_or(|at| at > now));
            }
        }

        /// Whoever corrects errors sees the same first error, each once, and none behind the packet.
        #[test]
        fn symbols_begin_with_the_first_damage(
            model in model(),
            seed in any::<u64>(),
            apart in any::<bool>(),
            (start, duration, bytes) in (0u64..1 << 40, 0u64..20_000_000, 0u32..3000),
        ) {
            let stream = Stream::new(seed, "radio");
            let mut channel = match apart {
                true => Channel::with_states(&model, stream, Stream::new(seed, "states")),
                false => Channel::new(&model, stream),
            };
            let fate = channel.clone().pass(Time(start), Span(duration), bytes);
            let mut found = Vec::new();
            let harm = channel.pass_symbols(Time(start), Span(duration), bytes, &mut |b| found.push(b));
            prop_assert!(found.windows(2).all(|w| w[0] < w[1]) && found.iter().all(|b| *b < bytes));
            prop_assert_eq!(harm.bytes as usize, found.len());
            if harm.whole {
                prop_assert!(fate.damaged_at.is_some() && found.is_empty());
            } else {
                prop_assert_eq!(fate.damaged_at, found.first().copied());
            }
        }
    }

    #[test]
    fn a_channel_for_data_lets_other_frames_pass() {
        let model = ErrorModel::PacketBursts { packets: 2, mean: Bytes(3000), uniform: true };
        let plain = Channel::new(&model, Stream::new(1, "radio"));
        assert!(Traffic::ALL.into_iter().all(|kind| plain.applies_to(kind)));
        let data = plain.only([Traffic::Data].into_iter().collect());
        assert!(data.applies_to(Traffic::Data) && !data.applies_to(Traffic::Ack));
        assert!(!data.applies_to(Traffic::LinkAck) && !data.applies_to(Traffic::Control));
    }

    #[test]
    fn turns_are_seen_beside_the_channel() {
        let (good, bad) = (Span::secs(10), Span::secs(4));
        let model = ErrorModel::TwoState {
            good,
            bad,
            ber_good: Probability::ZERO,
            ber_bad: Probability::new(1.0).unwrap(),
            deterministic: true,
        };
        assert!(Channel::new(&model, Stream::new(1, "radio")).turns().is_none());
        let states = Stream::new(1, "states");
        let mut channel = Channel::with_states(&model, Stream::new(1, "radio"), states);
        let mut turns = channel.turns().unwrap();
        let secs = |n| Time::ZERO + Span::secs(n);
        // A frame of half an hour goes ahead; the turns do not.
        assert!(channel.pass(Time::ZERO, Span::secs(1800), 1500).damaged_at.is_some());
        assert_eq!((turns.next(), turns.take(secs(9))), (secs(10), None));
        assert_eq!((turns.take(secs(10)), turns.take(secs(10))), (Some(false), None));
        assert_eq!(
            (turns.next(), turns.take(secs(15)), turns.next()),
            (secs(14), Some(true), secs(24))
        );
    }

    #[test]
    fn the_same_seed_gives_the_same_damage() {
        let run = |seed| {
            let model = ErrorModel::Exponential { mean: Bytes(65_536) };
            let mut channel = Channel::new(&model, Stream::new(seed, "radio"));
            (0..1000).map(|_| channel.pass(Time::ZERO, Span::ZERO, 1500)).collect::<Vec<_>>()
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
    }

    #[test]
    fn the_draws_of_every_model_are_pinned() {
        let p = |x| Probability::new(x).unwrap();
        let (good, bad) = (Span::millis(90), Span::millis(30));
        let (ber_good, ber_bad) = (p(1e-6), p(1e-3));
        let models = [
            ErrorModel::Exponential { mean: Bytes(8192) },
            ErrorModel::BitErrors { ber: p(15e-6) },
            ErrorModel::PacketBursts { packets: 6, mean: Bytes(65_536), uniform: false },
            ErrorModel::TwoState { good, bad, ber_good, ber_bad, deterministic: false },
            ErrorModel::TwoStateBits { good_bits: 90_000, bad_bits: 9_000, ber_good, ber_bad },
            ErrorModel::PacketLoss { p: p(0.1) },
        ];
        let got = models.map(|model| {
            let mut channel = Channel::new(&model, Stream::new(1, "radio"));
            let hits = (0..1000).filter_map(|i| {
                channel.pass(Time(i * 7_000_000), Span::millis(6), 1500).damaged_at.map(u64::from)
            });
            hits.fold((0, 0), |(count, sum), at| (count + 1, sum + at))
        });
        assert_eq!(got, PINNED);
    }
    /// Packets damaged of a thousand, and the sum of the positions.
    const PINNED: [(u32, u64); 6] =
        [(172, 130_326), (173, 128_590), (136, 106_833), (308, 76_002), (207, 107_706), (106, 0)];
}
