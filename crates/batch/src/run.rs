//! From a plan to results, on a pool of threads of its own for each call.
//!
//! A pool for each call, since a child that was forked cannot use one of its parent's.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use lasthop_lab::{Observer, Results, RunResult, Setup};
use lasthop_scenario::{Plan, Run, Scenario, World};

use crate::Error;

/// How many runs are done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Done {
    /// So many of this call are.
    pub runs: u64,
    /// Of so many.
    pub of: u64,
    /// The cell of the last one.
    pub cell: usize,
}

/// How work is done: on how many threads, until when, and who is told.
#[derive(Clone, Copy)]
pub struct Work<'a> {
    /// Runs at the same time; zero for one on each processor.
    pub jobs: usize,
    /// Asked before each run, from any thread: whether to begin no further one.
    pub stop: &'a (dyn Fn() -> bool + Sync),
    /// Told after each run, from the thread that made it.
    pub progress: &'a (dyn Fn(Done) + Sync),
}

impl core::fmt::Debug for Work<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Work").field("jobs", &self.jobs).finish_non_exhaustive()
    }
}

impl Work<'_> {
    /// On so many threads, to the end, and nobody is told.
    pub fn new(jobs: usize) -> Work<'static> {
        Work { jobs, stop: &|| false, progress: &|_| () }
    }

    /// The pool of one call.
    ///
    /// # Errors
    ///
    /// If the system gives no threads.
    pub fn pool(&self) -> Result<rayon::ThreadPool, Error> {
        rayon::ThreadPoolBuilder::new().num_threads(self.jobs).build().map_err(|error| {
            Error::input(format!("cannot start {} threads: {error}", self.jobs), "ask for fewer")
        })
    }
}

/// Starts the threads of what makes no pool of its own: a program does so once, before its first run. Left to the pool
/// itself, a system that gives no threads ends the program by a panic.
///
/// # Errors
///
/// If the system gives no threads, or they have been started before.
pub fn start_threads() -> Result<(), Error> {
    rayon::ThreadPoolBuilder::new().build_global().map_err(|error| {
        let help = "give it more memory (`ulimit -v`) or more processes (`ulimit -u`)";
        Error::input(format!("cannot start a thread for each processor: {error}"), help)
    })
}

/// Makes all runs of a plan in the simulator. The results are the same whatever the number of threads; there are fewer
/// of them if `work` said stop. `command` is what they say made them.
///
/// # Errors
///
/// If the plan has runs on real packets, or no threads can be started.
pub fn run(plan: &Plan, command: &str, work: &Work<'_>) -> Result<Results, Error> {
    let runs: Vec<Run> = plan.runs().collect();
    let measured = measure(plan, &runs, work, &|_, _| Ok::<(), Error>(()))?;
    Ok(Results::new(plan, Setup::new(command.to_owned(), plan), measured))
}

/// Makes some runs of a plan. Each is handed to `keep` as soon as it is there, from the thread that made it. Results
/// come
/// in the order of `runs`, `None` for what was not begun.
///
/// # Errors
///
/// The first of `keep`, after which no further run is begun; else as [`run`].
pub fn measure<E: From<Error> + Send>(
    plan: &Plan,
    runs: &[Run],
    work: &Work<'_>,
    keep: &(dyn Fn(&Run, &RunResult) -> Result<(), E> + Sync),
) -> Result<Vec<Option<RunResult>>, E> {
    let cells = |run: &Run| &plan.cells[run.cell].scenario;
    if runs.iter().any(|run| cells(run).world == World::Testbed) {
        let help = "the command `lasthop run --world testbed` makes them; here it is `world=sim`";
        return Err(Error::input("runs on real packets are made by the command alone", help).into());
    }
    let jobs: Vec<(&Scenario, u64)> = runs.iter().map(|run| (cells(run), run.seed)).collect();
    let keeper = Keeper {
        runs,
        work,
        keep,
        done: AtomicU64::new(0),
        broken: AtomicBool::new(false),
        failure: Mutex::new(None),
    };
    let measured = work.pool()?.install(|| lasthop_lab::measure_all(&jobs, &keeper));
    match keeper.failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(failure) => Err(failure),
        None => Ok(measured),
    }
}

/// Hands on each result as soon as it is there.
struct Keeper<'a, E> {
    runs: &'a [Run],
    work: &'a Work<'a>,
    keep: &'a (dyn Fn(&Run, &RunResult) -> Result<(), E> + Sync),
    done: AtomicU64,
    /// Set when a result could not be kept: there is no use in going on.
    broken: AtomicBool,
    failure: Mutex<Option<E>>,
}

impl<E: Send> Observer for Keeper<'_, E> {
    fn measured(&self, job: usize, result: &RunResult) {
        let run = &self.runs[job];
        let kept = (self.keep)(run, result);
        let runs = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        (self.work.progress)(Done { runs, of: self.runs.len() as u64, cell: run.cell });
        if let Err(failure) = kept {
            self.broken.store(true, Ordering::Relaxed);
            self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
        }
    }

    fn stop(&self) -> bool {
        self.broken.load(Ordering::Relaxed) || (self.work.stop)()
    }
}
