//! Execution times on this machine. Only ratios within one run are meaningful for other machines.

use std::time::Instant;

use lasthop_observe::stats::Summary;

/// A measured function, with the number of repetitions per call.
pub(super) type Task<'a> = (u32, Box<dyn FnMut() + 'a>);

/// Nanoseconds per repetition, in each round.
#[derive(Clone, Debug)]
pub(super) struct Times(Vec<f64>);

impl Times {
    /// The minimum in nanoseconds: other load only adds time.
    pub(super) fn least(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// All rounds, in nanoseconds.
    pub(super) fn summary(&self) -> Summary {
        Summary::of(&self.0)
    }
}

/// Times each task `rounds` times, interleaved, so that all tasks meet the same disturbances.
#[expect(clippy::disallowed_methods, reason = "the claim is about time on this machine")]
pub(super) fn time_interleaved(rounds: usize, tasks: &mut [Task<'_>]) -> Vec<Times> {
    let mut times = vec![Times(Vec::with_capacity(rounds)); tasks.len()];
    for _ in 0..rounds {
        for (task, times) in tasks.iter_mut().zip(&mut times) {
            let begin = Instant::now();
            (task.1)();
            times.0.push(begin.elapsed().as_nanos() as f64 / f64::from(task.0.max(1)));
        }
    }
    times
}
