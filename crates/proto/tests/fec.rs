//! Block codes: lengths, bounds, and the fates of frames against the binomial formula.

use lasthop_proto::link::fec::Code;
use lasthop_proto::rng::Stream;
use proptest::prelude::*;

#[test]
fn lengths_on_the_air() {
    let code = Code::reed_solomon(255, 223).unwrap();
    assert_eq!(code.on_air(0), 0);
    assert_eq!(code.on_air(1), 33, "a shortened block has all its check bytes");
    assert_eq!(code.on_air(223), 255);
    assert_eq!(code.on_air(224), 224 + 64);
    assert_eq!(code.on_air(1500), 1500 + 7 * 32);
    assert_eq!(code.interleaved().on_air(1500), 1500 + 7 * 32);
    //= bakshi96#3.1: a factor of 1.5
    let overhead = Code::new(3, 2, 0).unwrap();
    assert_eq!(overhead.on_air(128), 192);
    assert!(overhead.survives([], 128) && !overhead.survives([5], 128));
    assert_eq!(Code::new(1, 1, 0).unwrap().on_air(1500), 1500);
    assert_eq!(Code::new(2, 1, 0).unwrap().on_air(u32::MAX), u32::MAX, "no overflow");
}

#[test]
fn numbers_that_make_no_code_are_refused() {
    for (n, k, t) in [(255, 0, 1), (10, 11, 0), (255, 223, 17), (0, 0, 0), (3, 2, 1)] {
        let error = Code::new(n, k, t).unwrap_err();
        assert!(error.to_string().contains("k = 223"), "{error}");
    }
    assert!(Code::reed_solomon(3, 200).is_err());
    assert_eq!(Code::reed_solomon(255, 223), Code::new(255, 223, 16));
    assert_eq!(Code::reed_solomon(255, 222), Code::new(255, 222, 16));
}

#[test]
fn a_block_is_decoded_up_to_its_bound() {
    let code = Code::reed_solomon(15, 9).unwrap();
    assert!(code.survives([0, 7, 14], 9));
    assert!(!code.survives([0, 7, 8, 14], 9));
    assert!(code.survives([0, 7, 7, 7, 14], 9), "a byte is wrong once, however many of its bits");
    assert!(code.survives([0, 7, 14, 15, 99], 9), "what lies behind the frame is not its own");
    // Three errors in each of two blocks; in one block they are too many.
    assert!(code.survives([0, 1, 2, 15, 16, 17], 18));
    assert!(!code.survives([0, 1, 2, 3], 18));
    assert!(code.interleaved().survives([0, 1, 2, 3, 4, 5], 18));
    assert!(!code.interleaved().survives([0, 2, 4, 6], 18));
}

/// Probability that at most `t` of `n` bytes are wrong, each with probability `p`: term by term.
fn at_most(t: u32, n: u32, p: f64) -> f64 {
    let mut term = (0..n).fold(1.0, |q, _| q * (1.0 - p));
    let mut sum = term;
    for i in 0..t {
        term *= f64::from(n - i) / f64::from(i + 1) * p / (1.0 - p);
        sum += term;
    }
    sum
}

#[test]
fn independent_errors_meet_the_binomial_formula() {
    const FRAMES: u32 = 20_000;
    let rs = |n, k| Code::reed_solomon(n, k).unwrap();
    for (code, n, t, bytes, p) in [
        (rs(255, 223), 255, 16, 223 * 3, 0.045),
        (rs(255, 223).interleaved(), 255, 16, 223 * 3, 0.045),
        (rs(31, 23), 31, 4, 23 * 10, 0.05),
        (rs(31, 23).interleaved(), 31, 4, 23 * 10, 0.05),
        (Code::new(3, 2, 0).unwrap(), 3, 0, 128, 0.004),
    ] {
        let mut rng = Stream::new(3, "errors");
        let on_air = code.on_air(bytes);
        let mut alive = 0;
        for _ in 0..FRAMES {
            let errors: Vec<u32> = (0..on_air).filter(|_| rng.chance(p)).collect();
            alive += u32::from(code.survives(errors, bytes));
        }
        let block = at_most(t, n, p);
        let expected = (0..code.blocks(bytes)).fold(1.0, |all, _| all * block);
        let measured = f64::from(alive) / f64::from(FRAMES);
        let sigma = (expected * (1.0 - expected) / f64::from(FRAMES)).sqrt();
        assert!((0.05..0.95).contains(&expected), "the case says something: {expected}");
        assert!((measured - expected).abs() < 4.0 * sigma, "{code:?}: {measured} not {expected}");
    }
}

proptest! {
    /// Interleaved over `b` blocks, any burst of `t * b` bytes is corrected, and one byte more is not.
    #[test]
    fn a_burst_is_shared_by_all_blocks(
        check in 0u8..40, k in 1u8..=200, bytes in 1u32..3000, at in any::<proptest::sample::Index>(),
    ) {
        let code = Code::reed_solomon(k + check, k).unwrap().interleaved();
        let burst = u32::from(check / 2) * code.blocks(bytes);
        let on_air = code.on_air(bytes);
        let first = at.index((on_air - burst) as usize) as u32;
        prop_assert!(code.survives(first..first + burst, bytes));
        prop_assert!(!code.survives(first..=first + burst, bytes));
    }

    /// Each wrong byte belongs to one block of at most `n` bytes. A block fails with `t + 1` errors, and all
    /// blocks can have `t` errors each.
    #[test]
    fn blocks_share_the_frame_out(
        check in 0u8..40, k in 1u8..=200, bytes in 1u32..3000, interleaved in any::<bool>(),
    ) {
        let code = Code::reed_solomon(k + check, k).unwrap();
        let code = if interleaved { code.interleaved() } else { code };
        let (t, blocks, on_air) = (u32::from(check / 2), code.blocks(bytes), code.on_air(bytes));
        let of_block = |b: u32| -> Vec<u32> {
            let n = u32::from(k + check);
            if interleaved {
                (b..on_air).step_by(blocks as usize).collect()
            } else {
                (b * n..((b + 1) * n).min(on_air)).collect()
            }
        };
        let mut total = 0;
        for b in 0..blocks {
            let own = of_block(b);
            prop_assert!(own.len() > usize::from(check) && own.len() <= usize::from(k + check));
            total += own.len() as u32;
            prop_assert!(!code.survives(own.into_iter().take(t as usize + 1), bytes));
        }
        prop_assert_eq!(total, on_air);
        let mut most: Vec<u32> =
            (0..blocks).flat_map(|b| of_block(b).into_iter().rev().take(t as usize)).collect();
        most.sort_unstable();
        prop_assert!(code.survives(most, bytes));
    }
}
