//! Distributions of jitter: the tables of netem, computed from iproute2's formulas.
//!
//! The `experimental` table is from a measurement, in `measured.rs`.
//!
//! A table contains 4096 equally likely quantiles of a distribution in units of the jitter. All are limited
//! to four times the jitter, which truncates the tail of the Pareto distribution. Its mean is then -0.03 and
//! its deviation 0.82 times the jitter; those of `paretonormal` are -0.03 and 0.83.

mod measured;

use std::sync::LazyLock;

use serde::Serialize;

/// Entries of a table.
const SIZE: usize = 4096;
/// Table value of the jitter itself.
const SCALE: f64 = 8192.0;
/// Parts of the range of a normal distribution in its table.
const PARTS: f64 = 16_384.0;

/// Distribution of jitter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// Uniform between minus and plus the jitter.
    #[default]
    Uniform,
    /// Normal, with the jitter as its deviation.
    Normal,
    /// Pareto of shape 3 with mean 0.
    Pareto,
    /// A quarter normal and three quarters Pareto.
    ParetoNormal,
    /// Round trips to a distant host, measured by NISTnet.
    Experimental,
}

static NORMAL: LazyLock<Vec<i16>> = LazyLock::new(|| table(|j| whole(normal(j))));
static PARETO: LazyLock<Vec<i16>> = LazyLock::new(|| table(|j| whole(pareto(j).min(32_767.0))));
static PARETO_NORMAL: LazyLock<Vec<i16>> =
    LazyLock::new(|| table(|j| (whole(normal(j)) + 3 * whole(pareto(j).min(32_767.0))) / 4));

static EXPERIMENTAL: LazyLock<Vec<i16>> = LazyLock::new(measured::table);

fn table(entry: impl Fn(usize) -> i64) -> Vec<i16> {
    let cut = |value: i64| value.clamp(i16::MIN.into(), i16::MAX.into()) as i16;
    (0..SIZE).map(|j| cut(entry(j))).collect()
}

fn whole(value: f64) -> i64 {
    libm::rint(value) as i64
}

/// Entry `j` of the normal table: the quantile at the end of its part, times [`SCALE`].
fn normal(j: usize) -> f64 {
    /// Step of the search for quantiles.
    const STEP: f64 = 0.000_05;
    let part = (4 * j) as f64;
    let below =
        |x: f64| libm::rint(PARTS * 0.5 * libm::erfc(-x / core::f64::consts::SQRT_2)) <= part;
    // The last step of -10, -9.99995 and so on that belongs to the part.
    let (mut low, mut high) = (0_u32, 400_000_u32);
    while high - low > 1 {
        let middle = low.midpoint(high);
        *(if below(-10.0 + f64::from(middle) * STEP) { &mut low } else { &mut high }) = middle;
    }
    (-10.0 + f64::from(low) * STEP) * SCALE
}

/// Entry `j` of the Pareto table: the inverse distribution less its mean, times [`SCALE`].
fn pareto(j: usize) -> f64 {
    const SHAPE: f64 = 3.0;
    let tail = 1.0 - j as f64 / SIZE as f64;
    (1.0 / libm::pow(tail, 1.0 / SHAPE) - 1.5) * (4.0 / 3.0) * SCALE
}

impl Distribution {
    /// Its names.
    pub const WORDS: [(&'static str, Distribution); 5] = [
        ("uniform", Distribution::Uniform),
        ("normal", Distribution::Normal),
        ("pareto", Distribution::Pareto),
        ("paretonormal", Distribution::ParetoNormal),
        ("experimental", Distribution::Experimental),
    ];

    /// Its table, if it has one.
    pub(in crate::link) fn table(self) -> Option<&'static [i16]> {
        match self {
            Distribution::Uniform => None,
            Distribution::Normal => Some(&NORMAL),
            Distribution::Pareto => Some(&PARETO),
            Distribution::ParetoNormal => Some(&PARETO_NORMAL),
            Distribution::Experimental => Some(&EXPERIMENTAL),
        }
    }

    /// Deviation from the delay in units of the jitter, for a number within [0, 1).
    pub(super) fn at(self, number: f64) -> f64 {
        match self.table() {
            None => 2.0 * number - 1.0,
            Some(table) => {
                let index = (number * SIZE as f64) as usize;
                f64::from(table[index.min(SIZE - 1)]) / SCALE
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FNV-1a of the numbers as text.
    fn digest(table: &[i16]) -> u64 {
        let text = table.iter().map(|n| format!("{n} ")).collect::<String>();
        text.bytes()
            .fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3))
    }

    #[test]
    fn tables_are_those_of_iproute2() {
        // Output of its programs: the first ten and the last.
        let firsts: [(_, [i16; 10], i16); 4] = [
            (
                Distribution::Normal,
                [-32768, -28307, -26871, -25967, -25298, -24765, -24320, -23937, -23600, -23298],
                LAST[0],
            ),
            (
                Distribution::Pareto,
                [-5461, -5460, -5460, -5459, -5458, -5457, -5456, -5455, -5454, -5453],
                LAST[1],
            ),
            (
                Distribution::ParetoNormal,
                [-12305, -11171, -10812, -10586, -10418, -10284, -10172, -10075, -9990, -9914],
                LAST[2],
            ),
            (
                Distribution::Experimental,
                [-10576, -10197, -10134, -10071, -10008, -9945, -9882, -9819, -9788, -9756],
                LAST[3],
            ),
        ];
        for (i, (distribution, first, last)) in firsts.into_iter().enumerate() {
            let table = distribution.table().unwrap();
            assert_eq!((&table[..10], table[SIZE - 1]), (&first[..], last), "{distribution:?}");
            assert_eq!(digest(table), DIGESTS[i], "{distribution:?}");
        }
    }
    const LAST: [i16; 4] = [28858, 32767, 31789, 32767];
    const DIGESTS: [u64; 4] = [
        0xb6cc_3c54_dfde_57b8,
        0x6e89_2653_8232_f19d,
        0xeef2_96df_74a4_7b88,
        0x1100_63ca_7f2a_9b15,
    ];
}
