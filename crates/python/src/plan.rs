//! A scenario's text with its changes, laid out as a plan.

use std::sync::Arc;

use lasthop_batch::Provenance;
use lasthop_batch::sweep::bring;
use lasthop_proto::tcp::config::Custom;
use lasthop_scenario::{Argument, Scenario, Warning, World};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::control::PythonControl;
use crate::error;

/// The version of lasthop.
#[pyfunction]
pub fn version() -> &'static str {
    lasthop_sim::version::VERSION
}

/// The commit that this version was built from, if that is known.
#[pyfunction]
pub fn commit() -> Option<&'static str> {
    lasthop_sim::version::COMMIT
}

/// Names and texts of the built-in scenarios.
#[pyfunction]
pub fn examples() -> Vec<(&'static str, &'static str)> {
    lasthop_scenario::examples().iter().map(|e| (e.name, e.text)).collect()
}

/// The files named by a scenario that are neither in the text nor built in.
#[pyfunction]
pub fn link_files(text: &str) -> Vec<String> {
    let files = lasthop_scenario::files::named(text, &[]).into_iter().map(|file| file.name);
    files.filter(|name| lasthop_scenario::examples::file(name).is_none()).collect()
}

/// The text with the content of such a file.
#[pyfunction]
pub fn with_link_file(text: String, name: &str, content: &str) -> String {
    lasthop_scenario::files::with(text, name, content)
}

/// The built-in scenario with the most similar name.
#[pyfunction]
pub fn nearest_example(word: &str) -> Option<&'static str> {
    lasthop_scenario::nearest_example(word)
}

/// A class of a congestion control, its name and version, and its host.
pub type Control = (Py<PyAny>, String, String, Option<String>);

/// `set` and `vary` arguments for the scenario crate.
pub fn arguments(changes: Vec<(String, String)>) -> Vec<Argument> {
    let argument = |(how, change): (String, String)| match how.as_str() {
        "vary" => Argument::Vary(change),
        _ => Argument::Set(change),
    };
    changes.into_iter().map(argument).collect()
}

/// A custom congestion control for hosts.
pub fn custom(
    py: Python<'_>,
    control: Control,
) -> PyResult<(Arc<PythonControl>, Custom, Option<String>)> {
    let (class, name, version, host) = control;
    let brought = Arc::new(PythonControl::new(class.into_bound(py))?);
    let custom = Custom::new(name, version, brought.clone().maker());
    Ok((brought, custom, host))
}

/// All runs of a scenario. Its fields are as in `lasthop.Scenario`.
#[pyclass(frozen, module = "lasthop._lasthop")]
pub struct Plan {
    pub plan: Arc<lasthop_scenario::Plan>,
    pub origin: String,
    pub name: String,
    pub text: String,
    pub arguments: Vec<Argument>,
    warnings: Vec<Warning>,
    pub control: Option<(Arc<PythonControl>, Custom, Option<String>)>,
}

#[pymethods]
impl Plan {
    /// Parses `text` with `changes`: pairs of `set` or `vary` and `KEY=VALUE`.
    #[new]
    #[pyo3(signature = (text, name, origin, changes, control=None))]
    fn new(
        py: Python<'_>,
        text: String,
        name: String,
        origin: String,
        changes: Vec<(String, String)>,
        control: Option<Control>,
    ) -> PyResult<Plan> {
        let arguments = arguments(changes);
        let (mut plan, warnings) = lasthop_scenario::parse(&text, &name, &arguments)
            .map_err(|e| error::scenario(py, &e.0, &origin, &text, &arguments))?;
        let control = control.map(|control| custom(py, control)).transpose()?;
        if let Some((brought, custom, host)) = &control {
            let mut cells = plan.cells.iter_mut();
            cells
                .try_for_each(|cell| bring(&mut cell.scenario, custom, host.as_deref()))
                .map_err(|error| error::batch(py, &error))?;
            plan.cells.iter().try_for_each(|cell| suits(py, brought, &cell.scenario))?;
        }
        Ok(Plan { plan: Arc::new(plan), origin, name, text, arguments, warnings, control })
    }

    /// The axes: names and labels.
    #[getter]
    fn axes(&self) -> Vec<(String, Vec<String>)> {
        self.plan.axes.iter().map(|axis| (axis.name.clone(), axis.labels.clone())).collect()
    }

    /// The labels of each cell.
    #[getter]
    fn cells(&self) -> Vec<Vec<String>> {
        self.plan.cells.iter().map(|cell| cell.labels.clone()).collect()
    }

    /// Names of the hosts of the first cell.
    #[getter]
    fn hosts(&self) -> Vec<String> {
        self.plan
            .cells
            .iter()
            .take(1)
            .flat_map(|cell| &cell.scenario.hosts)
            .map(|h| h.name.clone())
            .collect()
    }

    /// The scenario's name.
    #[getter]
    fn title(&self) -> &str {
        &self.plan.name
    }

    /// The seed of the first run.
    #[getter]
    fn first_seed(&self) -> u64 {
        self.plan.cells.first().map_or(0, |cell| cell.scenario.first_seed)
    }

    /// How many runs there are.
    #[getter]
    fn count(&self) -> u64 {
        self.plan.count()
    }

    /// Warnings about the scenario, as keyword arguments of `ScenarioError`.
    #[getter]
    fn warnings<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let Plan { origin, text, arguments, .. } = self;
        let located = |w| error::located(py, w, origin, text, arguments);
        self.warnings.iter().map(located).collect()
    }

    /// The key of each run, in the order of the runs.
    fn keys(&self) -> Vec<String> {
        self.plan.runs().map(|run| run.key.to_string()).collect()
    }

    fn __repr__(&self) -> String {
        format!("<plan of {} with {} runs>", self.plan.name, self.plan.count())
    }
}

impl Plan {
    /// The origin of its results.
    pub fn provenance(&self) -> Provenance {
        let mut provenance = Provenance::new(&self.plan, &self.text, &self.arguments);
        let named =
            |c: &Custom, host: &Option<String>| (c.name.clone(), c.version.clone(), host.clone());
        provenance.control = self.control.as_ref().map(|(_, custom, host)| named(custom, host));
        provenance
    }

    /// The custom control of its runs.
    pub fn rule(&self) -> Option<Arc<PythonControl>> {
        self.control.as_ref().map(|(brought, ..)| brought.clone())
    }

    /// The scenario of cell number `cell`, if the simulator can run it.
    pub fn scenario(&self, py: Python<'_>, cell: usize) -> PyResult<&Scenario> {
        let cell =
            self.plan.cells.get(cell).ok_or_else(|| error::value("there is no such cell"))?;
        simulated(py, &cell.scenario)?;
        Ok(&cell.scenario)
    }
}

/// Fails if a control needs samples and a sender or its peer lacks what they are made of.
fn suits(py: Python<'_>, control: &PythonControl, scenario: &Scenario) -> PyResult<()> {
    let mut hosts = scenario.hosts.iter().filter(|host| host.tcp.custom.is_some());
    hosts.try_for_each(|host| control.suits(py, &host.tcp))?;
    let ends = scenario.transfers.iter().map(|t| [&scenario.hosts[t.from], &scenario.hosts[t.to]]);
    for ends in ends.filter(|ends| ends.iter().any(|host| host.tcp.custom.is_some())) {
        if let Some(host) = ends.iter().find(|host| !host.tcp.sack) {
            control.needs_sack(py, &host.name)?;
        }
    }
    Ok(())
}

/// An error for a scenario on real packets.
pub fn simulated(py: Python<'_>, scenario: &Scenario) -> PyResult<()> {
    match scenario.world {
        World::Sim => Ok(()),
        World::Testbed => Err(error::argument(
            py,
            "`world = \"testbed\"` is not run from Python",
            "run it with the command `lasthop run`, or simulate it: `.set(\"world\", \"sim\")`",
        )),
    }
}
