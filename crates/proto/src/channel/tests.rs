use super::rayleigh::Modulation;
use super::*;
use crate::units::{Bytes, Decibels, Frequency, Probability, Speed};
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
        small().prop_map(|m| ErrorModel::Exponential(Exponential { mean: Bytes(m) })),
        probability().prop_map(|ber| ErrorModel::BitErrors(BitErrors { ber })),
        (0u32..9, small(), any::<bool>()).prop_map(|(packets, m, uniform)| {
            ErrorModel::PacketBursts(PacketBursts {
                packets,
                mean: Bytes(m),
                uniform,
                overlap: Overlap::Restart,
            })
        }),
        (small(), small(), probability(), probability(), any::<bool>()).prop_map(
            |(good, bad, ber_good, ber_bad, deterministic)| ErrorModel::TwoState(TwoState {
                good: Span(good),
                bad: Span(bad),
                ber_good,
                ber_bad,
                deterministic,
            })
        ),
        (small(), small(), probability(), probability()).prop_map(
            |(good_bits, bad_bits, ber_good, ber_bad)| ErrorModel::TwoStateBits(TwoStateBits {
                good_bits,
                bad_bits,
                ber_good,
                ber_bad,
            })
        ),
        probability().prop_map(|p| ErrorModel::PacketLoss(PacketLoss { p })),
        (0u64..1 << 40, 0u64..1 << 40, -400.0..400.0).prop_map(|(speed, carrier, snr)| {
            ErrorModel::Rayleigh(Rayleigh {
                speed: Speed(speed),
                carrier: Frequency(carrier),
                snr: Decibels::new(snr).unwrap(),
                modulation: Modulation::Dbpsk,
            })
        }),
    ]
}

proptest! {
    #[test]
    fn any_model_terminates_and_damages_bytes_within_the_packet(
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

    /// A layer with error correction sees the same first error, each damaged byte once, and none behind the
    /// packet.
    #[test]
    fn symbols_are_reported_in_order_from_the_first_error(
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
    let model = ErrorModel::PacketBursts(PacketBursts {
        packets: 2,
        mean: Bytes(3000),
        uniform: true,
        overlap: Overlap::Restart,
    });
    let plain = Channel::new(&model, Stream::new(1, "radio"));
    assert!(Traffic::ALL.into_iter().all(|kind| plain.applies_to(kind)));
    let data = plain.only([Traffic::Data].into_iter().collect());
    assert!(data.applies_to(Traffic::Data) && !data.applies_to(Traffic::Ack));
    assert!(!data.applies_to(Traffic::LinkAck) && !data.applies_to(Traffic::Control));
}

#[test]
fn observed_state_changes_are_independent_of_passing_frames() {
    let (good, bad) = (Span::secs(10), Span::secs(4));
    let model = ErrorModel::TwoState(TwoState {
        good,
        bad,
        ber_good: Probability::ZERO,
        ber_bad: Probability::new(1.0).unwrap(),
        deterministic: true,
    });
    assert!(Channel::new(&model, Stream::new(1, "radio")).turns().is_none());
    let states = Stream::new(1, "states");
    let mut channel = Channel::with_states(&model, Stream::new(1, "radio"), states);
    let mut turns = channel.turns().unwrap();
    let secs = |n| Time::ZERO + Span::secs(n);
    // A frame of half an hour advances the channel, but not the observed changes.
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
        let model = ErrorModel::Exponential(Exponential { mean: Bytes(65_536) });
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
        ErrorModel::Exponential(Exponential { mean: Bytes(8192) }),
        ErrorModel::BitErrors(BitErrors { ber: p(15e-6) }),
        ErrorModel::PacketBursts(PacketBursts {
            packets: 6,
            mean: Bytes(65_536),
            uniform: false,
            overlap: Overlap::Restart,
        }),
        ErrorModel::TwoState(TwoState { good, bad, ber_good, ber_bad, deterministic: false }),
        ErrorModel::TwoStateBits(TwoStateBits {
            good_bits: 90_000,
            bad_bits: 9_000,
            ber_good,
            ber_bad,
        }),
        ErrorModel::PacketLoss(PacketLoss { p: p(0.1) }),
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
/// Number of damaged packets in a thousand, and the sum of the positions.
const PINNED: [(u32, u64); 6] =
    [(172, 130_326), (173, 128_590), (136, 106_833), (308, 76_002), (207, 107_706), (106, 0)];

/// Both directions can share a state that depends on time; a code corrects nothing in a model of whole
/// packets.
#[test]
fn each_error_model_reports_its_properties() {
    let p = Probability::new(0.5).unwrap();
    let (m, good, bad) = (Bytes(1000), Span::secs(1), Span::secs(1));
    let two_state = TwoState { good, bad, ber_good: p, ber_bad: p, deterministic: false };
    let bits = TwoStateBits { good_bits: 10, bad_bits: 10, ber_good: p, ber_bad: p };
    let rayleigh = Rayleigh {
        speed: Speed(1),
        carrier: Frequency(1),
        snr: Decibels::new(1.0).unwrap(),
        modulation: Modulation::Dbpsk,
    };
    for (model, by_time, packets) in [
        (ErrorModel::Exponential(Exponential { mean: m }), false, false),
        (ErrorModel::BitErrors(BitErrors { ber: p }), false, false),
        (ErrorModel::PacketLoss(PacketLoss { p }), false, true),
        (
            ErrorModel::PacketBursts(PacketBursts {
                packets: 1,
                mean: m,
                uniform: false,
                overlap: Overlap::Restart,
            }),
            false,
            true,
        ),
        (ErrorModel::TwoState(two_state), true, false),
        (ErrorModel::TwoStateBits(bits), false, false),
        (ErrorModel::Rayleigh(rayleigh), true, false),
    ] {
        let properties = (model.goes_by_time(), model.loses_whole_packets());
        assert_eq!(properties, (by_time, packets), "{model:?}");
    }
}
