//! Runs of a plan and their results.

use std::sync::Arc;

use arrow_array::RecordBatch;
use lasthop_batch::{Done, Provenance, Work, tables};
use lasthop_observe::pcapng::{CapturePoint, CaptureSink};
use lasthop_proto::machine::StageId;
use lasthop_scenario::Cell;
use lasthop_sim::runs::Setup;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error;
use crate::plan::{Plan, simulated};
use crate::table::Table;
use crate::wait::Waiting;

/// The results of a plan. Documented in `lasthop.Results`.
#[pyclass(frozen, module = "lasthop._lasthop")]
pub struct Results {
    plan: Arc<lasthop_scenario::Plan>,
    results: lasthop_sim::runs::Results,
    provenance: Provenance,
}

/// One run with all its events. Documented in `lasthop.Recording`.
#[pyclass(frozen, module = "lasthop._lasthop")]
pub struct Recording {
    cell: Cell,
    seed: u64,
    tables: [RecordBatch; 3],
    result: String,
    end: f64,
}

/// Makes all runs of a plan.
#[pyfunction]
#[pyo3(signature = (plan, jobs=0, progress=None))]
pub fn run(
    py: Python<'_>,
    plan: &Plan,
    jobs: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<Results> {
    plan.plan.cells.iter().try_for_each(|cell| simulated(py, &cell.scenario))?;
    let provenance = plan.provenance();
    let (all, own) = (plan.plan.clone(), plan.control.is_some());
    let waiting = Waiting { jobs, progress, control: plan.rule() };
    let results = waiting.on(py, move |work| match own {
        true => Ok(one_by_one(&all, work)),
        false => lasthop_batch::run(&all, "", work),
    })?;
    Ok(Results { plan: plan.plan.clone(), results, provenance })
}

/// All runs in the calling thread, as a Python control requires.
fn one_by_one(plan: &lasthop_scenario::Plan, work: &Work<'_>) -> lasthop_sim::runs::Results {
    let of = plan.count();
    let runs = plan.runs().zip(1..).map(|(run, runs)| {
        let result = (!(work.stop)())
            .then(|| lasthop_sim::runs::measure(&plan.cells[run.cell].scenario, run.seed))?;
        (work.progress)(Done { runs, of, cell: run.cell });
        Some(result)
    });
    let runs = runs.collect();
    lasthop_sim::runs::Results::new(plan, Setup::new(String::new(), plan), runs)
}

/// Makes and records the run of one cell with `seed`.
#[pyfunction]
pub fn record(py: Python<'_>, plan: &Plan, cell: usize, seed: u64) -> PyResult<Recording> {
    plan.scenario(py, cell)?;
    let provenance = plan.provenance();
    let cell = plan.plan.cells[cell].clone();
    let own = cell.clone();
    let recorded = Waiting { jobs: 1, progress: None, control: plan.rule() }
        .on(py, move |_| tables::recorded::recorded(&own, seed, &provenance))?;
    let tables::recorded::RecordedRun { recording, series, events, tcb } = recorded;
    let (result, end) = (json(py, &recording.result)?, recording.end.as_secs_f64());
    Ok(Recording { cell, seed, tables: [series, events, tcb], result, end })
}

/// The results of a plan, from their JSON.
#[pyfunction]
pub fn restore_results(py: Python<'_>, plan: &Plan, json: &str) -> PyResult<Results> {
    let results: lasthop_sim::runs::Results = serde_json::from_str(json)
        .map_err(|e| error::argument(py, &format!("these are no results: {e}"), ""))?;
    let ours = lasthop_sim::version::VERSION;
    if results.lasthop != ours {
        let message =
            format!("these results are of lasthop {}, and this is {ours}", results.lasthop);
        return Err(error::argument(py, &message, "install that version, or make the runs again"));
    }
    if results.axes != plan.plan.axes || results.cells.len() != plan.plan.cells.len() {
        return Err(error::argument(py, "these results are of another scenario", ""));
    }
    Ok(Results { plan: plan.plan.clone(), results, provenance: plan.provenance() })
}

/// A recording of the first cell of a plan, from its parts.
#[pyfunction]
pub fn restore_recording(
    py: Python<'_>,
    plan: &Plan,
    seed: u64,
    tables: [Bound<'_, Table>; 3],
    result: String,
    end: f64,
) -> PyResult<Recording> {
    plan.scenario(py, 0)?;
    let tables = tables.map(|table| table.get().0.clone());
    Ok(Recording { cell: plan.plan.cells[0].clone(), seed, tables, result, end })
}

#[pymethods]
impl Results {
    /// The table of runs.
    fn runs(&self, py: Python<'_>) -> PyResult<Table> {
        self.table(py, tables::runs)
    }

    /// The table of flows.
    fn flows(&self, py: Python<'_>) -> PyResult<Table> {
        self.table(py, tables::flows)
    }

    /// The table of stages.
    fn stages(&self, py: Python<'_>) -> PyResult<Table> {
        self.table(py, tables::stages)
    }

    /// The provenance as JSON.
    #[getter]
    fn provenance(&self, py: Python<'_>) -> PyResult<String> {
        json(py, &self.provenance)
    }

    /// The results, as printed by `lasthop run --json`.
    fn json(&self, py: Python<'_>) -> PyResult<String> {
        json(py, &self.results)
    }

    /// Labels and the summary of all numbers for each cell, as JSON.
    fn summary(&self, py: Python<'_>) -> PyResult<String> {
        let cells: Vec<_> =
            self.results.cells.iter().map(|cell| (&cell.labels, &cell.summary)).collect();
        json(py, &cells)
    }

    /// Runs that ended in an endless loop.
    fn stuck(&self) -> Vec<String> {
        self.results.stuck()
    }
}

type Tabled = fn(
    &lasthop_scenario::Plan,
    &lasthop_sim::runs::Results,
    &Provenance,
) -> Result<RecordBatch, lasthop_batch::Error>;

impl Results {
    fn table(&self, py: Python<'_>, of: Tabled) -> PyResult<Table> {
        let numbered = || {
            let table = of(&self.plan, &self.results, &self.provenance)?;
            tables::AxisNumbers::of(&self.plan.axes).apply(&table)
        };
        py.detach(numbered).map(Table).map_err(|e| error::batch(py, &e))
    }
}

#[pymethods]
impl Recording {
    /// The time-sequence series.
    #[getter]
    fn series(&self) -> Table {
        Table(self.tables[0].clone())
    }

    /// All events.
    #[getter]
    fn events(&self) -> Table {
        Table(self.tables[1].clone())
    }

    /// Control blocks.
    #[getter]
    fn tcb(&self) -> Table {
        Table(self.tables[2].clone())
    }

    /// The metrics as JSON.
    #[getter]
    fn result(&self) -> &str {
        &self.result
    }

    /// Seconds until the run ended.
    #[getter]
    fn end(&self) -> f64 {
        self.end
    }

    /// The seed of the run.
    #[getter]
    fn seed(&self) -> u64 {
        self.seed
    }

    /// Names of the stages that carry packets.
    #[getter]
    fn links(&self) -> Vec<String> {
        let stages = lasthop_sim::runs::layout(&self.cell.scenario).stages.into_iter();
        stages.filter(|stage| stage.role.is_link()).map(|stage| stage.name).collect()
    }

    /// The capture of a link, or of all dropped packets, as pcapng. The run is repeated.
    fn pcapng<'py>(&self, py: Python<'py>, link: Option<String>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| self.capture(link.as_deref()));
        Ok(PyBytes::new(py, &bytes.map_err(|e| PyOSError::new_err(e.to_string()))?))
    }
}

impl Recording {
    fn capture(&self, link: Option<&str>) -> std::io::Result<Vec<u8>> {
        let scenario = &self.cell.scenario;
        let layout = lasthop_sim::runs::layout(scenario);
        let stages = layout.stages.iter().enumerate().map(|(i, stage)| CapturePoint {
            stage: StageId(i as u16),
            name: stage.name.clone(),
            is_link: stage.role.is_link(),
        });
        let mut sink = CaptureSink::new(&stages.collect::<Vec<_>>(), 0, |_| Ok(Vec::new()))?;
        lasthop_sim::runs::simulate(scenario, self.seed, &mut sink);
        let captures = sink.finish()?;
        let Some(link) = link else { return Ok(captures.drops) };
        let is_it = |id: &StageId| layout.stages[usize::from(id.0)].name == link;
        let found = captures.links.into_iter().find(|(id, _)| is_it(id));
        found.map(|(_, bytes)| bytes).ok_or_else(|| std::io::Error::other("there is no such link"))
    }
}

/// As JSON.
pub fn json(py: Python<'_>, value: &impl serde::Serialize) -> PyResult<String> {
    let text = serde_json::to_string(value);
    text.map_err(|e| error::argument(py, &format!("this is no JSON: {e}"), ""))
}
