//! Work in other threads, while the interpreter stays responsive.

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use lasthop_batch::{Work, lock};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::control::PythonControl;
use crate::error;

/// Interval at which the waiting thread checks for Ctrl-C.
const SLICE: Duration = Duration::from_millis(50);

/// State shared by the working threads and the waiting one.
#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    done: AtomicU64,
    of: AtomicU64,
}

/// How a call waits for its work.
pub struct Waiting {
    /// Number of threads; zero for one on each processor.
    pub jobs: usize,
    /// Called at intervals with the numbers of finished and of all runs.
    pub progress: Option<Py<PyAny>>,
    /// The Python control of the runs.
    pub control: Option<Arc<PythonControl>>,
}

impl Waiting {
    /// The result of `work`. The lock is released; Ctrl-C ends the waiting at once, and the work after the current
    /// runs. A panic becomes a `RuntimeError`.
    pub fn on<T: Send + 'static>(
        self,
        py: Python<'_>,
        work: impl FnOnce(&Work<'_>) -> Result<T, lasthop_batch::Error> + Send + 'static,
    ) -> PyResult<T> {
        let Waiting { jobs, progress, control } = self;
        let shared = Arc::new(Shared::default());
        let (send, receive) = sync_channel(1);
        let (theirs, rule) = (shared.clone(), control.clone());
        // With a Python control one thread has the lock at a time: more threads would only wait.
        let jobs = if control.is_some() { 1 } else { jobs };
        let run = move || {
            let failed = || rule.as_ref().is_some_and(|rule| rule.failed());
            let stop = || theirs.stop.load(Ordering::Relaxed) || failed();
            let count = |done: lasthop_batch::Done| {
                theirs.of.store(done.of, Ordering::Relaxed);
                theirs.done.fetch_max(done.runs, Ordering::Relaxed);
            };
            let work = || work(&Work { jobs, stop: &stop, progress: &count });
            // A thread known to Python gets the lock again in a tenth of the time.
            let result = match &rule {
                Some(_) => Python::attach(|py| py.detach(work)),
                None => work(),
            };
            let _ = send.send(result);
        };
        // Without threads the call blocks: progress is reported at the end, and Ctrl-C ends it afterwards.
        let thread = if cfg!(target_os = "emscripten") {
            py.detach(run);
            None
        } else {
            Some(Builder::new().name("lasthop".to_owned()).spawn(run)?)
        };
        let receive = Mutex::new(receive);
        let result = listen(py, &receive, &shared, progress.as_ref());
        if result.is_err() {
            shared.stop.store(true, Ordering::Relaxed);
        }
        if let Some(fault) = control.and_then(|control| control.take_fault()) {
            return Err(fault);
        }
        match result? {
            Some(result) => result.map_err(|e| error::batch(py, &e)),
            None => Err(PyRuntimeError::new_err(format!(
                "lasthop has failed: {}. This is a fault of lasthop; please report it with the scenario and the seed",
                py.detach(|| thread.map_or_else(no_result, panic_message))
            ))),
        }
    }
}

/// Waits in intervals, and checks for signals between them; `None` if the work failed.
fn listen<T: Send>(
    py: Python<'_>,
    receive: &Mutex<Receiver<T>>,
    shared: &Shared,
    progress: Option<&Py<PyAny>>,
) -> PyResult<Option<T>> {
    let mut last = u64::MAX;
    loop {
        let wait = || lock(receive).recv_timeout(SLICE);
        match py.detach(wait) {
            Ok(result) => {
                report(py, shared, progress, &mut last)?;
                return Ok(Some(result));
            }
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Err(RecvTimeoutError::Timeout) => {
                py.check_signals()?;
                report(py, shared, progress, &mut last)?;
            }
        }
    }
}

fn report(
    py: Python<'_>,
    shared: &Shared,
    progress: Option<&Py<PyAny>>,
    last: &mut u64,
) -> PyResult<()> {
    let (done, of) = (shared.done.load(Ordering::Relaxed), shared.of.load(Ordering::Relaxed));
    // Until the work has been counted, there is no number of runs.
    if let Some(progress) = progress.filter(|_| of > 0 && done != *last) {
        *last = done;
        progress.call1(py, (done, of))?;
    }
    Ok(())
}

/// The panic message of a failed thread.
fn panic_message(thread: JoinHandle<()>) -> String {
    let words = |error: Box<dyn Any + Send>| match error.downcast::<String>() {
        Ok(text) => *text,
        Err(error) => error.downcast::<&str>().map_or_else(|_| "a panic".into(), |t| t.to_string()),
    };
    thread.join().map_or_else(words, |()| no_result())
}

fn no_result() -> String {
    "it gave no result".to_owned()
}

/// Panics in one of the pool's threads: for the tests.
#[pyfunction]
pub fn fail(py: Python<'_>, message: String) -> PyResult<()> {
    let waiting = Waiting { jobs: 1, progress: None, control: None };
    waiting.on(py, move |work| {
        work.pool(1)?.install(|| panic!("{}", message));
        Ok(())
    })
}
