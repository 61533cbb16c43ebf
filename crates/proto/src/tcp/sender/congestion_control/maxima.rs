//! The maximum in a sliding window, from the best three samples (K. Nichols' algorithm, as in Linux'
//! `lib/win_minmax.c`): constant memory, and exact while samples decrease or increase steadily.

/// A windowed maximum. The caller determines the unit of the window, here round trips.
#[derive(Clone, Copy, Debug)]
pub struct Maximum {
    span: u64,
    best: [(u64, u64); 3],
}

impl Maximum {
    /// A maximum over the last `span` units.
    pub fn new(span: u64) -> Maximum {
        Maximum { span, best: [(0, 0); 3] }
    }

    /// The maximum.
    pub fn get(&self) -> u64 {
        self.best[0].1
    }

    /// Adds the sample `value` of the time `at`.
    pub fn add(&mut self, at: u64, value: u64) {
        let sample = (at, value);
        if value >= self.best[0].1 || at - self.best[2].0 > self.span {
            self.best = [sample; 3];
            return;
        }
        if value >= self.best[1].1 {
            self.best[1] = sample;
            self.best[2] = sample;
        } else if value >= self.best[2].1 {
            self.best[2] = sample;
        }
        let age = at - self.best[0].0;
        if age > self.span {
            // The best sample has left the window, and the second best may have as well.
            self.best = [self.best[1], self.best[2], sample];
            if at - self.best[0].0 > self.span {
                self.best = [self.best[1], self.best[2], sample];
            }
        } else if self.best[1].0 == self.best[0].0 && age > self.span / 4 {
            self.best[1] = sample;
            self.best[2] = sample;
        } else if self.best[2].0 == self.best[1].0 && age > self.span / 2 {
            self.best[2] = sample;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_is_forgotten_after_the_window() {
        let mut most = Maximum::new(10);
        most.add(0, 100);
        let seen: Vec<u64> = (1..=12)
            .map(|at| {
                most.add(at, 50 + at);
                most.get()
            })
            .collect();
        assert_eq!(seen[..10], [100; 10]);
        assert!((58..=61).contains(&seen[10]), "{seen:?}");
    }

    /// Samples, each with the maximum after it.
    fn follows(span: u64, samples: &[(u64, u64, u64)]) {
        let mut most = Maximum::new(span);
        for (at, value, expected) in samples {
            most.add(*at, *value);
            assert_eq!(most.get(), *expected, "over {span}, at {at}: {value}");
        }
    }

    #[test]
    fn the_second_best_may_have_left_the_window_with_the_best() {
        let retained = [(0, 100, 100), (3, 90, 100), (6, 80, 100)];
        let behind = |more: &[(u64, u64, u64)]| follows(10, &[&retained[..], more].concat());
        behind(&[(11, 50, 90)]);
        behind(&[(13, 50, 90)]);
        behind(&[(14, 50, 80), (15, 40, 80), (17, 30, 50)]);
        follows(10, &[(0, 100, 100), (10, 90, 100)]);
        follows(10, &[(0, 100, 100), (11, 90, 90)]);
    }

    #[test]
    fn a_second_best_is_taken_behind_a_quarter_and_a_third_behind_half_of_the_window() {
        follows(8, &[(0, 100, 100), (2, 50, 100), (3, 40, 100), (9, 10, 40)]);
        follows(
            8,
            &[(0, 100, 100), (3, 50, 100), (4, 40, 100), (5, 30, 100), (9, 10, 50), (12, 5, 30)],
        );
        // As good as the second or the third best is better: it is younger.
        follows(
            8,
            &[(0, 100, 100), (3, 50, 100), (5, 30, 100), (7, 50, 100), (12, 1, 50), (15, 1, 50)],
        );
        follows(
            8,
            &[(0, 100, 100), (3, 50, 100), (5, 30, 100), (7, 30, 100), (12, 1, 30), (15, 1, 30)],
        );
    }

    #[test]
    fn a_new_peak_counts_at_once() {
        let mut most = Maximum::new(10);
        most.add(3, 7);
        most.add(4, 9);
        assert_eq!(most.get(), 9);
    }
}
