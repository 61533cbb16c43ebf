//! From a plan to results, with a new thread pool for each call.
//!
//! A pool per call is needed because a forked child cannot use the pool of its parent.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use lasthop_scenario::{Plan, Run, Scenario, World};
use lasthop_sim::runs::{Observer, Results, RunResult, Setup};

use crate::Error;

/// Locks `mutex`. A value that another thread left when it panicked is used: each change of one is complete by itself.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Progress of runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Done {
    /// Finished runs of this call.
    pub runs: u64,
    /// All runs of this call.
    pub of: u64,
    /// The cell of the last finished run.
    pub cell: usize,
}

/// How work is done: threads, interruption, progress.
#[derive(Clone, Copy)]
pub struct Work<'a> {
    /// Number of threads; zero for one on each processor.
    pub jobs: usize,
    /// Polled before each run, from any thread; true to start no further run.
    pub stop: &'a (dyn Fn() -> bool + Sync),
    /// Called after each run, from its thread.
    pub progress: &'a (dyn Fn(Done) + Sync),
}

impl core::fmt::Debug for Work<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Work").field("jobs", &self.jobs).finish_non_exhaustive()
    }
}

impl Work<'_> {
    /// Work on `jobs` threads without interruption and progress.
    pub fn new(jobs: usize) -> Work<'static> {
        Work { jobs, stop: &|| false, progress: &|_| () }
    }

    /// Number of threads for `runs` runs: the wanted ones, but at most one for each run and four for each processor.
    pub fn threads(&self, runs: usize) -> usize {
        let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let wanted = if self.jobs == 0 { processors } else { self.jobs };
        wanted.min(4 * processors).min(runs).max(1)
    }

    /// The [threads](Work::threads) of one call for `runs` runs.
    ///
    /// # Errors
    ///
    /// The system refuses threads.
    pub fn pool(&self, runs: usize) -> Result<Pool, Error> {
        let threads = rayon::ThreadPoolBuilder::new();
        if cfg!(target_os = "emscripten") {
            // Later calls fail, and the pool of the first one remains.
            let _ = threads.num_threads(1).use_current_thread().build_global();
            return Ok(Pool(None));
        }
        let count = self.threads(runs);
        threads.num_threads(count).build().map(|pool| Pool(Some(pool))).map_err(|error| {
            Error::input(format!("cannot start {count} threads: {error}"), "use fewer `jobs`")
        })
    }
}

/// The threads of one call; `None` on Emscripten, which has only the calling thread.
#[derive(Debug)]
pub struct Pool(Option<rayon::ThreadPool>);

impl Pool {
    /// Calls `work`; its parallel parts run on these threads.
    pub fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match &self.0 {
            Some(pool) => pool.install(work),
            None => work(),
        }
    }
}

/// Starts the global threads, for code without its own pool. A program calls it once, before its first run. If the pool
/// started its threads itself, a refusal by the system would end the program with a panic.
///
/// # Errors
///
/// The system refuses threads, or they were started before.
pub fn start_threads() -> Result<(), Error> {
    rayon::ThreadPoolBuilder::new().build_global().map_err(|error| {
        let help = "give it more memory (`ulimit -v`) or more processes (`ulimit -u`)";
        Error::input(format!("cannot start a thread for each processor: {error}"), help)
    })
}

/// Makes all runs of a plan in the simulator. The results do not depend on the number of threads; some are missing if
/// `work` was interrupted. `command` is stored in the results.
///
/// # Errors
///
/// The plan has runs on real packets, or no threads can be started.
pub fn run(plan: &Plan, command: &str, work: &Work<'_>) -> Result<Results, Error> {
    let runs: Vec<Run> = plan.runs().collect();
    let measured = measure(plan, &runs, work, &|_, _| Ok::<(), Error>(()), &|scenario, run| {
        Ok(lasthop_sim::runs::measure(scenario, run.seed))
    })?;
    Ok(Results::new(plan, Setup::new(command.to_owned(), plan), measured))
}

/// Makes one run.
pub type Make<'a, E> = dyn Fn(&Scenario, &Run) -> Result<RunResult, E> + Sync + 'a;

/// Makes some runs of a plan, each by `make`. Each result is passed to `keep` when
/// it is finished, from its thread. Results are in the order of `runs`, `None` for a run that was not started.
///
/// # Errors
///
/// The first error of `keep` or `make`, after which no further run starts; else as [`run`].
pub fn measure<E: From<Error> + Send>(
    plan: &Plan,
    runs: &[Run],
    work: &Work<'_>,
    keep: &(dyn Fn(&Run, &RunResult) -> Result<(), E> + Sync),
    make: &Make<'_, E>,
) -> Result<Vec<Option<RunResult>>, E> {
    let cells = |run: &Run| &plan.cells[run.cell].scenario;
    if runs.iter().any(|run| cells(run).world == World::Testbed) {
        let help = "the command `lasthop run --world testbed` makes them; here it is `world=sim`";
        return Err(Error::input("runs on real packets are made by the command alone", help).into());
    }
    let jobs: Vec<(&Scenario, u64)> = runs.iter().map(|run| (cells(run), run.seed)).collect();
    let keeper = ResultForwarder {
        runs,
        work,
        keep,
        make,
        done: AtomicU64::new(0),
        broken: AtomicBool::new(false),
        failure: Mutex::new(None),
    };
    let measured =
        work.pool(jobs.len())?.install(|| lasthop_sim::runs::measure_all(&jobs, &keeper));
    match keeper.failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(failure) => Err(failure),
        None => Ok(measured),
    }
}

/// Passes on each finished result.
struct ResultForwarder<'a, E> {
    runs: &'a [Run],
    work: &'a Work<'a>,
    keep: &'a (dyn Fn(&Run, &RunResult) -> Result<(), E> + Sync),
    make: &'a Make<'a, E>,
    done: AtomicU64,
    /// Set when a result or a trace could not be stored, which makes further runs useless.
    broken: AtomicBool,
    failure: Mutex<Option<E>>,
}

impl<E> ResultForwarder<'_, E> {
    fn fail(&self, failure: E) {
        self.broken.store(true, Ordering::Relaxed);
        lock(&self.failure).get_or_insert(failure);
    }
}

impl<E: Send> Observer for ResultForwarder<'_, E> {
    fn make(&self, job: usize, scenario: &Scenario, _: u64) -> Option<RunResult> {
        (self.make)(scenario, &self.runs[job]).map_err(|failure| self.fail(failure)).ok()
    }

    fn measured(&self, job: usize, result: &RunResult) {
        let run = &self.runs[job];
        let stored = (self.keep)(run, result);
        let runs = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        (self.work.progress)(Done { runs, of: self.runs.len() as u64, cell: run.cell });
        if let Err(failure) = stored {
            self.fail(failure);
        }
    }

    fn stop(&self) -> bool {
        self.broken.load(Ordering::Relaxed) || (self.work.stop)()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_and_a_quarter_of_a_processor_have_at_most_one_thread() {
        let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let threads = |jobs, runs| Work::new(jobs).threads(runs);
        assert_eq!((threads(9999, 1), threads(9999, 3)), (1, 3));
        assert_eq!(threads(9999, 9999), 4 * processors);
        assert_eq!((threads(0, 9999), threads(1, 9999), threads(1, 0)), (processors, 1, 1));
    }
}
