//! Channel models: which packets a radio damages, and where in the packet.
//!
//! A [`Channel`] is one direction of a radio link. It sees each packet once, in the order of transmission,
//! and says whether and where the packet is damaged; [`damage_at`] then says which checksum that breaks.

mod bit_errors;
mod exponential_errors;
mod packet_bursts;
mod packet_loss;
mod two_state;

use serde::Serialize;

use crate::rng::Stream;
use crate::units::{Bytes, Probability, Span, Time};
use crate::wire::{Damage, Packet};

pub use bit_errors::BitErrors;
pub use exponential_errors::ExponentialErrors;
pub use packet_bursts::PacketBursts;
pub use packet_loss::PacketLoss;
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
}

/// What a channel did to one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Fate {
    /// Index of the first damaged byte of the IP packet; `None` when it is unharmed.
    pub damaged_at: Option<u32>,
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
pub enum Channel {
    /// See [`ErrorModel::Exponential`].
    Exponential(ExponentialErrors),
    /// See [`ErrorModel::BitErrors`].
    BitErrors(BitErrors),
    /// See [`ErrorModel::PacketBursts`].
    PacketBursts(PacketBursts),
    /// See [`ErrorModel::TwoState`].
    TwoState(TwoState),
    /// See [`ErrorModel::TwoStateBits`].
    TwoStateBits(TwoStateBits),
    /// See [`ErrorModel::PacketLoss`].
    PacketLoss(PacketLoss),
}

impl Channel {
    /// The channel of `model`, drawing from `stream`.
    pub fn new(model: &ErrorModel, stream: Stream) -> Channel {
        match *model {
            ErrorModel::Exponential { mean } => {
                Channel::Exponential(ExponentialErrors::new(mean, stream))
            }
            ErrorModel::BitErrors { ber } => Channel::BitErrors(BitErrors::new(ber, stream)),
            ErrorModel::PacketBursts { packets, mean, uniform } => {
                Channel::PacketBursts(PacketBursts::new(packets, mean, uniform, stream))
            }
            ErrorModel::TwoState { good, bad, ber_good, ber_bad, deterministic } => {
                let bers = [ber_good, ber_bad];
                Channel::TwoState(TwoState::new([good, bad], bers, deterministic, stream))
            }
            ErrorModel::TwoStateBits { good_bits, bad_bits, ber_good, ber_bad } => {
                let (means, bers) = ([good_bits, bad_bits], [ber_good, ber_bad]);
                Channel::TwoStateBits(TwoStateBits::new(means, bers, stream))
            }
            ErrorModel::PacketLoss { p } => Channel::PacketLoss(PacketLoss::new(p, stream)),
        }
    }

    /// A packet of `bytes` bytes (IP header included) is on the air from `start` for `duration`.
    #[inline]
    pub fn pass(&mut self, start: Time, duration: Span, bytes: u32) -> Fate {
        let before = self.is_good();
        let damaged_at = match self {
            Channel::Exponential(model) => model.pass(bytes),
            Channel::BitErrors(model) => model.pass(bytes),
            Channel::PacketBursts(model) => model.pass(bytes),
            Channel::TwoState(model) => model.pass(start, duration, bytes),
            Channel::TwoStateBits(model) => model.pass(bytes),
            Channel::PacketLoss(model) => model.pass(bytes),
        };
        let after = self.is_good();
        Fate { damaged_at, turned: (after != before).then_some(after) }
    }

    /// Whether the channel is in its good state; channels without states always are.
    #[inline]
    pub fn is_good(&self) -> bool {
        match self {
            Channel::TwoState(model) => model.is_good(),
            Channel::TwoStateBits(model) => model.is_good(),
            _ => true,
        }
    }

    /// When the state will change, for channels that change with time even while nothing is sent.
    pub fn next_turn(&self) -> Option<Time> {
        match self {
            Channel::TwoState(model) => model.next_turn(),
            _ => None,
        }
    }

    /// Brings such a channel up to `now`; the new state if it differs.
    pub fn advance(&mut self, now: Time) -> Option<bool> {
        let before = self.is_good();
        if let Channel::TwoState(model) = self {
            model.advance(now);
        }
        let after = self.is_good();
        (after != before).then_some(after)
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
