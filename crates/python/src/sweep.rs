//! Sweeps. Python distributes the batches over processes.

use std::path::Path;
use std::sync::Arc;

use lasthop_batch::store::{Store, version};
use lasthop_batch::sweep::{Batches, Shard, sweep};
use lasthop_batch::{Error, Provenance, Work};
use lasthop_proto::tcp::config::Custom;
use lasthop_scenario::{Argument, Grid, Source};
use pyo3::prelude::*;

use crate::control::PythonControl;
use crate::error;
use crate::plan::{Control, arguments, custom};
use crate::run;
use crate::wait::Waiting;

/// A scenario of any size, divided into batches. Documented in `lasthop.sweep`.
#[pyclass(frozen, module = "lasthop._lasthop")]
pub struct Sweep(Arc<SweepPlan>);

struct SweepPlan {
    grid: Grid,
    provenance: Provenance,
    origin: String,
    arguments: Vec<Argument>,
    control: Option<(Arc<PythonControl>, Custom, Option<String>)>,
    id: String,
    count: u64,
}

impl SweepPlan {
    fn batches(&self) -> Result<Batches<'_>, Error> {
        let batches = Batches::new(&self.grid, self.provenance.clone())?;
        match &self.control {
            Some((_, custom, host)) => batches.controlled(custom.clone(), host.as_deref()),
            None => Ok(batches),
        }
    }

    /// A fault in a cell, with the text that its position refers to.
    fn located(&self, error: Error) -> Error {
        let Error::Scenario(error) = error else { return error };
        let Provenance { text, points, .. } = &self.provenance;
        let text = match error.0.at.source {
            Source::Points => points.as_ref().unwrap_or(text),
            _ => text,
        };
        let (origin, arguments) = (self.origin.clone(), self.arguments.clone());
        lasthop_study::Error::Scenario { origin, text: text.clone(), arguments, error }.into()
    }
}

#[pymethods]
impl Sweep {
    /// Parses `text` with `changes`, as `Plan` does, and a table of points as CSV.
    #[new]
    #[pyo3(signature = (text, name, origin, changes, points=None, control=None))]
    fn new(
        py: Python<'_>,
        text: String,
        name: String,
        origin: String,
        changes: Vec<(String, String)>,
        points: Option<String>,
        control: Option<Control>,
    ) -> PyResult<Sweep> {
        let arguments = arguments(changes);
        let (grid, _) =
            Grid::parse(&text, &name, &arguments, points.as_deref()).map_err(|error| {
                let text = match error.0.at.source {
                    Source::Points => points.as_deref().unwrap_or_default(),
                    _ => &text,
                };
                error::scenario(py, &error.0, &origin, text, &arguments)
            })?;
        let provenance = Provenance::of_grid(&grid, &text, &arguments, points.as_deref());
        let control = control.map(|control| custom(py, control)).transpose()?;
        let (id, count) = (String::new(), 0);
        let laid = SweepPlan { grid, provenance, origin, arguments, control, id, count };
        let batches = laid.batches().map_err(|error| error::batch(py, &error))?;
        let (id, count) = (batches.id().to_owned(), batches.count());
        Ok(Sweep(Arc::new(SweepPlan { id, count, ..laid })))
    }

    /// The id of the sweep: the store has its provenance as `sweep-ID.json`.
    #[getter]
    fn id(&self) -> &str {
        &self.0.id
    }

    /// Number of batches.
    fn __len__(&self) -> usize {
        self.0.count as usize
    }

    /// The numbers of the batches that are missing in a store, each with its runs. Writes the provenance to the store.
    fn missing(&self, py: Python<'_>, store: String) -> PyResult<Vec<(u64, u64)>> {
        self.on(py, 1, None, move |batches, _| {
            let missing = batches.missing(&Store::create(Path::new(&store))?, Shard::ALL)?;
            Ok(missing.into_iter().map(|index| (index, batches.runs(index))).collect())
        })
    }

    /// Makes batch number `index` and puts it into a store, unless it exists.
    #[pyo3(signature = (index, store, jobs=1))]
    fn make(&self, py: Python<'_>, index: u64, store: String, jobs: usize) -> PyResult<bool> {
        self.on(py, jobs, None, move |batches, work| {
            batches.make(index, &Store::create(Path::new(&store))?, work)
        })
    }

    /// Makes all batches that are missing in a store; returns the output of `lasthop sweep --json`.
    #[pyo3(signature = (store, jobs=0, progress=None))]
    fn make_all(
        &self,
        py: Python<'_>,
        store: String,
        jobs: usize,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<String> {
        let swept = self.on(py, jobs, progress, move |batches, work| {
            sweep(&batches, &Store::create(Path::new(&store))?, Shard::ALL, work)
        })?;
        run::json(py, &swept.document())
    }
}

impl Sweep {
    fn on<T: Send + 'static>(
        &self,
        py: Python<'_>,
        jobs: usize,
        progress: Option<Py<PyAny>>,
        work: impl FnOnce(Batches<'_>, &Work<'_>) -> Result<T, Error> + Send + 'static,
    ) -> PyResult<T> {
        let laid = self.0.clone();
        let control = laid.control.as_ref().map(|(brought, ..)| brought.clone());
        Waiting { jobs, progress, control }.on(py, move |given| {
            laid.batches().and_then(|batches| work(batches, given)).map_err(|e| laid.located(e))
        })
    }
}

/// The version, with that of its results: the workers of a sweep must have the same.
#[pyfunction]
pub fn identity() -> String {
    version()
}
