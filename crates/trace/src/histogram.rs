//! Lengths of time in classes, in constant memory.

use lasthop_proto::units::Span;

/// Classes of a quarter octave from about a microsecond to about an hour.
#[derive(Clone, Debug)]
pub(crate) struct Histogram([u32; (LAST_OCTAVE - FIRST_OCTAVE + 1) * 4]);

const FIRST_OCTAVE: usize = 10;
const LAST_OCTAVE: usize = 42;

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram([0; (LAST_OCTAVE - FIRST_OCTAVE + 1) * 4])
    }
}

impl Histogram {
    /// Takes in one length.
    pub(crate) fn add(&mut self, gap: Span) {
        let nanos = gap.0.clamp(1 << FIRST_OCTAVE, (1 << (LAST_OCTAVE + 1)) - 1);
        let octave = nanos.ilog2() as usize;
        let quarter = (nanos >> (octave - 2)) as usize & 3;
        let class = &mut self.0[(octave - FIRST_OCTAVE) * 4 + quarter];
        *class = class.saturating_add(1);
    }

    /// The middle of the class that holds the median.
    pub(crate) fn median(&self) -> Span {
        self.quantile(0.5)
    }

    /// The middle of the class that holds the quantile `q` of 0 to 1: at most 12.5 % off.
    pub(crate) fn quantile(&self, q: f64) -> Span {
        let total: u64 = self.0.iter().map(|n| u64::from(*n)).sum();
        let wanted = q * total as f64;
        let mut below = 0;
        for (i, n) in self.0.iter().enumerate() {
            below += u64::from(*n);
            if below as f64 >= wanted && below > 0 {
                let quarter = 1u64 << (i / 4 + FIRST_OCTAVE - 2);
                let low = quarter * (4 + i as u64 % 4);
                return Span(low + quarter / 2);
            }
        }
        Span::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_near_the_values() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile(0.5), Span::ZERO);
        (1..=10_000).for_each(|i| histogram.add(Span::micros(i * 100)));
        for (q, want) in [(0.5, 0.5), (0.95, 0.95), (0.99, 0.99)] {
            let got = histogram.quantile(q).as_secs_f64();
            assert!((got / want - 1.0_f64).abs() <= 0.125, "{q}: {got}");
        }
        let mut one = Histogram::default();
        one.add(Span::millis(540));
        let got = one.quantile(0.99).as_secs_f64();
        assert!((got / 0.54 - 1.0).abs() <= 0.125, "{got}");
    }
}
