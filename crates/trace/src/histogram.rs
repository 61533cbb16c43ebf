//! Lengths of time in classes, in constant memory.

use lasthop_proto::units::Span;

/// Classes of a quarter octave from about a microsecond to about an hour. Only those from the lowest to the highest that
/// occurred take room: the delays of a flow are in a few.
#[derive(Clone, Debug, Default)]
pub(crate) struct Histogram {
    /// The class of the first count.
    first: u16,
    /// The class of the length that came last, and how many came in a row that are not in `counts` yet: most lengths are
    /// like the one before, and then nothing else of a histogram is touched.
    last: u16,
    row: u32,
    counts: Vec<u32>,
}

const FIRST_OCTAVE: usize = 10;
const LAST_OCTAVE: usize = 42;

impl Histogram {
    /// Takes in one length.
    pub(crate) fn add(&mut self, gap: Span) {
        let nanos = gap.0.clamp(1 << FIRST_OCTAVE, (1 << (LAST_OCTAVE + 1)) - 1);
        let octave = nanos.ilog2() as usize;
        let quarter = (nanos >> (octave - 2)) as usize & 3;
        let class = ((octave - FIRST_OCTAVE) * 4 + quarter) as u16;
        if class != self.last {
            self.end_row();
            self.last = class;
        }
        self.row = self.row.saturating_add(1);
    }

    /// Counts the lengths that came in a row.
    fn end_row(&mut self) {
        if self.row == 0 {
            return;
        }
        let (class, row) = (self.last, core::mem::take(&mut self.row));
        // A class below the first wraps to a number beyond the last.
        match self.counts.get_mut(usize::from(class.wrapping_sub(self.first))) {
            Some(n) => *n = n.saturating_add(row),
            None => self.widen(class, row),
        }
    }

    /// Makes room for `class` and counts the first lengths in it.
    #[cold]
    fn widen(&mut self, class: u16, row: u32) {
        if self.counts.is_empty() {
            self.first = class;
        }
        let below = usize::from(self.first.saturating_sub(class));
        self.first = self.first.min(class);
        let place = usize::from(class - self.first);
        let room = (place + 1).max(self.counts.len() + below);
        self.counts.reserve_exact(room - self.counts.len());
        self.counts.splice(0..0, std::iter::repeat_n(0, below));
        self.counts.resize(room, 0);
        self.counts[place] = row;
    }

    /// The middle of the class that holds the median.
    pub(crate) fn median(&self) -> Span {
        self.quantile(0.5)
    }

    /// The middle of the class that holds the quantile `q` of 0 to 1: at most 12.5 % off.
    pub(crate) fn quantile(&self, q: f64) -> Span {
        let mut all = self.clone();
        all.end_row();
        let total: u64 = all.counts.iter().map(|n| u64::from(*n)).sum();
        let wanted = q * total as f64;
        let mut below = 0;
        for (i, n) in (usize::from(all.first)..).zip(&all.counts) {
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
        // Rows, upwards and downwards.
        let mut rows = Histogram::default();
        for ms in [8, 8, 8, 64, 64, 1, 1, 1, 1, 8] {
            rows.add(Span::millis(ms));
        }
        for (q, want) in [(0.3, 1.0), (0.7, 8.0), (0.9, 64.0)] {
            let got = rows.quantile(q).as_secs_f64() * 1e3;
            assert!((got / want - 1.0_f64).abs() <= 0.125, "{q}: {got}");
        }
        let mut one = Histogram::default();
        one.add(Span::millis(540));
        let got = one.quantile(0.99).as_secs_f64();
        assert!((got / 0.54 - 1.0).abs() <= 0.125, "{got}");
    }
}
