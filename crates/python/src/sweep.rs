//! Sweeps and stores. Python distributes the batches over processes.

use std::io;
use std::path::Path;
use std::sync::Arc;

use lasthop_batch::merge::merge as merging;
use lasthop_batch::store::{Directory, Store, version};
use lasthop_batch::sweep::{Batches, Shard, sweep};
use lasthop_batch::{Error, Provenance, Work};
use lasthop_proto::tcp::config::Custom;
use lasthop_scenario::{Argument, Grid, Source};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::control::PythonControl;
use crate::error;
use crate::plan::{Control, arguments, custom};
use crate::run;
use crate::wait::Waiting;

/// A store that Python implements, with the methods of [`Store`].
struct PythonStore(Py<PyAny>);

impl PythonStore {
    fn ask<T>(&self, call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> io::Result<T> {
        Python::attach(|py| call(self.0.bind(py)).map_err(io::Error::other))
    }
}

impl Store for PythonStore {
    fn title(&self) -> String {
        let title = self.ask(|place| place.call_method0("title")?.extract());
        title.unwrap_or_else(|_| "the store".to_owned())
    }

    fn has(&self, name: &str) -> io::Result<bool> {
        self.ask(|place| place.call_method1("has", (name,))?.extract())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.ask(|place| place.call_method0("list")?.extract())
    }

    fn get(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        self.ask(|place| {
            let bytes: Option<Bound<'_, PyBytes>> =
                place.call_method1("get", (name,))?.extract()?;
            Ok(bytes.map(|bytes| bytes.as_bytes().to_vec()))
        })
    }

    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> io::Result<bool> {
        self.ask(|place| {
            let bytes = PyBytes::new(place.py(), bytes);
            place.call_method1("put_if_absent", (name, bytes))?.extract()
        })
    }
}

/// A store argument: a directory or a Python object.
#[derive(FromPyObject)]
pub enum StoreArgument {
    Path(String),
    /// An object with the methods of [`Store`].
    Object(Py<PyAny>),
}

impl StoreArgument {
    fn open(self, create: bool) -> Result<Box<dyn Store>, Error> {
        Ok(match self {
            StoreArgument::Path(dir) if create => Box::new(Directory::create(Path::new(&dir))?),
            StoreArgument::Path(dir) => Box::new(Directory::open(Path::new(&dir))?),
            StoreArgument::Object(place) => Box::new(PythonStore(place)),
        })
    }
}

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
    fn missing(&self, py: Python<'_>, store: StoreArgument) -> PyResult<Vec<(u64, u64)>> {
        self.on(py, 1, None, move |batches, _| {
            let missing = batches.missing(&*store.open(true)?, Shard::ALL)?;
            Ok(missing.into_iter().map(|index| (index, batches.runs(index))).collect())
        })
    }

    /// Makes batch number `index` and puts it into a store, unless it exists.
    #[pyo3(signature = (index, store, jobs=1))]
    fn make(
        &self,
        py: Python<'_>,
        index: u64,
        store: StoreArgument,
        jobs: usize,
    ) -> PyResult<bool> {
        self.on(py, jobs, None, move |batches, work| batches.make(index, &*store.open(true)?, work))
    }

    /// Makes all batches that are missing in a store; returns the output of `lasthop sweep --json`.
    #[pyo3(signature = (store, jobs=0, progress=None))]
    fn make_all(
        &self,
        py: Python<'_>,
        store: StoreArgument,
        jobs: usize,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<String> {
        let swept = self.on(py, jobs, progress, move |batches, work| {
            sweep(&batches, &*store.open(true)?, Shard::ALL, work)
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

/// Merges stores; returns the output of `lasthop merge --json`.
#[pyfunction]
#[pyo3(signature = (stores, out=None, csv=false))]
pub fn merge(
    py: Python<'_>,
    stores: Vec<StoreArgument>,
    out: Option<String>,
    csv: bool,
) -> PyResult<String> {
    let merged = Waiting { jobs: 1, progress: None, control: None }.on(py, move |_| {
        let stores: Result<Vec<_>, Error> = stores.into_iter().map(|s| s.open(false)).collect();
        let stores = stores?;
        let stores: Vec<&dyn Store> = stores.iter().map(|store| &**store).collect();
        merging(&stores, out.as_deref().map(Path::new), csv)
    })?;
    run::json(py, &merged.document())
}

/// The version, with that of its results: the workers of a sweep must have the same.
#[pyfunction]
pub fn identity() -> String {
    version()
}
