use super::super::two_state_bits::TwoStateBitErrors;
use super::*;

fn p(x: f64) -> Probability {
    Probability::new(x).unwrap()
}

#[test]
fn deterministic_states_take_turns() {
    let means = [Span::millis(10), Span::millis(4)];
    let mut channel = TwoStateErrors::new(means, [p(0.0), p(1.0)], true, Stream::new(1, "radio"));
    let mut pass = |ms: u64| channel.pass(Time(ms * 1_000_000), Span::millis(1), 100);
    assert_eq!(pass(0), None);
    assert_eq!(pass(10), Some(0));
    assert_eq!(pass(14), None);
    // 1,000,000 cycles of 14 ms later, nothing has drifted.
    assert_eq!(pass(14_000_000 + 13), Some(0));
}

#[test]
fn a_frame_across_a_change_is_damaged_where_the_bad_state_begins() {
    let means = [Span::millis(10), Span::millis(4)];
    let mut channel = TwoStateErrors::new(means, [p(0.0), p(1.0)], true, Stream::new(1, "radio"));
    assert_eq!(channel.pass(Time(8_000_000), Span::millis(4), 1000), Some(500));
    assert!(!channel.is_good());
    assert_eq!(channel.next_turn(), Some(Time(14_000_000)));
}

#[test]
fn the_share_of_bad_time_is_that_of_its_mean() {
    let means = [Span::millis(30), Span::millis(10)];
    let mut channel = TwoStateErrors::new(means, [p(0.0), p(1.0)], false, Stream::new(1, "radio"));
    let n = 400_000;
    let bad = (0..n)
        .filter(|i| channel.pass(Time(i * 1_000_000), Span::micros(1), 1).is_some())
        .count() as f64;
    // A quarter of the time. Neighbouring samples are correlated: about 27,000 are independent, deviation
    // 0.0027.
    assert!((bad / n as f64 - 0.25).abs() < 0.011, "{bad}");
}

#[test]
fn a_long_silence_is_skipped_without_walking_it() {
    let mut channel =
        TwoStateErrors::new([Span(3), Span(1)], [p(0.0), p(1.0)], false, Stream::new(1, "radio"));
    let n = 20_000;
    let bad = (1..=n).filter(|i| channel.pass(Time(i << 40), Span(1), 1).is_some()).count() as f64;
    // A frame of a nanosecond encounters the bad state at its start, or with some probability during it.
    assert!(bad / n as f64 > 0.22 && bad / (n as f64) < 0.60, "{bad}");
    assert!(channel.pass(Time(n << 41), Span::secs(3600), 1500).is_some());
}

#[test]
fn bits_have_their_share_of_errors() {
    // parsa98 5.3.2: half of the bits sent in the bad state are damaged.
    let bers = [p(0.0), p(0.5)];
    let mut channel = TwoStateBitErrors::new([3000, 1000], bers, Stream::new(1, "radio"));
    let n = 400_000;
    let hit = (0..n).filter(|_| channel.pass(Time::ZERO, Span::ZERO, 1).is_some()).count() as f64;
    // A byte is damaged with 1 - 2^-8 when bad; about 1,600 independent periods, deviation 0.011.
    assert!((hit / f64::from(n) - 0.25).abs() < 0.035, "{hit}");
}

#[test]
fn a_state_that_lasts_no_time_never_occurs() {
    let bers = [p(0.0), p(1.0)];
    for (means, harm) in [([0, 0], false), ([0, 5], true), ([5, 0], false)] {
        let spans = means.map(Span);
        let mut by_time = TwoStateErrors::new(spans, bers, false, Stream::new(1, "radio"));
        let mut by_bit = TwoStateBitErrors::new(means, bers, Stream::new(1, "radio"));
        for i in 0..100 {
            assert_eq!(by_time.pass(Time(i), Span(7), 10).is_some(), harm);
            assert_eq!(by_bit.pass(Time::ZERO, Span::ZERO, 10).is_some(), harm);
        }
    }
}

#[test]
fn symbols_are_damaged_only_in_the_bad_state() {
    let means = [Span::millis(10), Span::millis(4)];
    let mut channel = TwoStateErrors::new(means, [p(0.0), p(0.5)], true, Stream::new(1, "radio"));
    let mut found = Vec::new();
    // A millisecond is 100 bytes: good until byte 200, bad until byte 600.
    channel.pass_symbols(Time(8_000_000), Span::millis(8), 800, &mut |b| found.push(b));
    assert!(found.iter().all(|b| (200..600).contains(b)) && found.len() > 380, "{found:?}");
    let mut bits = TwoStateBitErrors::new([8000, 8000], [p(0.0), p(1.0)], Stream::new(1, "radio"));
    let (mut all, first) = (Vec::new(), bits.clone().pass(Time::ZERO, Span::ZERO, 100_000));
    bits.pass_symbols(Time::ZERO, Span::ZERO, 100_000, &mut |b| all.push(b));
    assert_eq!(all.first().copied(), first);
    // Six bad periods of 1000 bytes on average: half of all.
    assert!((30_000..70_000).contains(&all.len()), "{}", all.len());
}

#[test]
fn both_directions_can_have_the_same_fades() {
    let means = [Span::millis(30), Span::millis(10)];
    let channel = |name| {
        let states = Stream::new(1, "radio.states");
        let stream = Stream::new(1, name);
        TwoStateErrors::with_states(means, [p(0.0), p(1.0)], false, stream, states)
    };
    let (mut right, mut left) = (channel("right"), channel("left"));
    let mut bad = 0;
    for i in 0..40_000 {
        let at = Time(i * 7_000_000);
        let there = right.pass(at, Span::micros(1), 1).is_some();
        // The other direction sends seldom: one frame after each long silence.
        if i % 1000 == 0 {
            assert_eq!(left.pass(at, Span::micros(1), 1).is_some(), there);
        }
        bad += u32::from(there);
    }
    // A quarter; about 14,000 independent samples, deviation 0.0037.
    assert!((f64::from(bad) / 40_000.0 - 0.25).abs() < 0.015, "{bad}");
}

/// A frame of a second over states of nanoseconds has their average error rate, and each state has its own
/// share.
#[test]
fn over_a_frame_of_many_states_errors_are_those_of_their_shares() {
    let (means, bers) = ([Span(30), Span(10)], [p(1e-4), p(1e-3)]);
    let apart = TwoStateErrors::with_states(
        means,
        bers,
        false,
        Stream::new(1, "radio"),
        Stream::new(1, "radio.states"),
    );
    let mixed = TwoStateErrors::new(means, bers, false, Stream::new(1, "radio"));
    for (name, mut channel) in [("apart", apart), ("mixed", mixed)] {
        let mut hits = 0u32;
        for i in 0..50 {
            channel
                .pass_symbols(Time(i * 2_000_000_000), Span::secs(1), 100_000, &mut |_| hits += 1);
        }
        // 800,000 bits fifty times, three quarters good: 40e6 * (0.75e-4 + 0.25e-3), deviation 114.
        let expected = 13_000.0;
        let off = f64::from(hits) / expected - 1.0;
        assert!(off.abs() < 0.05, "{name}: {hits} errors, and not about {expected}");
    }
}
