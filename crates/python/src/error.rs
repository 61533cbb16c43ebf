//! Errors of inputs as Python exceptions.

use lasthop_scenario::{Argument, Diagnostic, Source};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};

/// `lasthop.ScenarioError` for `diagnostic`, with the text that its position refers to.
pub fn scenario(
    py: Python<'_>,
    diagnostic: &Diagnostic,
    origin: &str,
    text: &str,
    arguments: &[Argument],
) -> PyErr {
    located(py, diagnostic, origin, text, arguments)
        .and_then(|fields| Ok(PyErr::from_value(class(py)?.call((), Some(&fields))?)))
        .unwrap_or_else(|error| error)
}

/// A diagnostic with its position in `text`, the scenario's or the table of points, as keyword arguments of
/// `ScenarioError`.
pub fn located<'py>(
    py: Python<'py>,
    diagnostic: &Diagnostic,
    origin: &str,
    text: &str,
    arguments: &[Argument],
) -> PyResult<Bound<'py, PyDict>> {
    let (name, text) = lasthop_scenario::files::located(&diagnostic.at, origin, text, arguments);
    let source = match diagnostic.at.source {
        Source::Argument(index) => arguments.get(index).map_or(name, |argument| {
            match argument {
                Argument::Set(_) => "set",
                Argument::Vary(_) => "vary",
            }
            .to_owned()
        }),
        Source::Points => "points".to_owned(),
        Source::File | Source::Referenced(_) => name,
    };
    let (line, column) = diagnostic.at.line_column(&text);
    let fields = PyDict::new(py);
    fields.set_item("message", &diagnostic.message)?;
    fields.set_item("code", diagnostic.code.to_string())?;
    fields.set_item("key", &diagnostic.key)?;
    fields.set_item("source", source)?;
    fields.set_item("line", line)?;
    fields.set_item("column", column)?;
    fields.set_item("quoted", text.lines().nth(line - 1).unwrap_or_default())?;
    fields.set_item("label", &diagnostic.label)?;
    fields.set_item("help", &diagnostic.help)?;
    Ok(fields)
}

/// `lasthop.ScenarioError` without a position: an argument that is no part of a scenario.
pub fn argument(py: Python<'_>, message: &str, help: &str) -> PyErr {
    let raise = || {
        let fields = PyDict::new(py);
        fields.set_item("message", message)?;
        fields.set_item("help", help)?;
        Ok(PyErr::from_value(class(py)?.call((), Some(&fields))?))
    };
    raise().unwrap_or_else(|error: PyErr| error)
}

/// The exception for an error of a batch of runs.
pub fn batch(py: Python<'_>, error: &lasthop_batch::Error) -> PyErr {
    use lasthop_batch::Error;
    match error {
        Error::Study(error) => study(py, error),
        Error::Scenario(error) => scenario(py, &error.0, "scenario", "", &[]),
        Error::Input { message, help } => argument(py, message, help),
        Error::File { error, .. } if fault(py, error).is_some() => {
            fault(py, error).unwrap_or_else(|| PyOSError::new_err(error.to_string()))
        }
        Error::File { path, error, .. } => {
            let path = path.display().to_string();
            match error.raw_os_error() {
                Some(number) => PyOSError::new_err((number, error.to_string(), path)),
                None => PyOSError::new_err(format!("{path}: {error}")),
            }
        }
    }
}

/// The exception that a store in Python raised.
fn fault(py: Python<'_>, error: &std::io::Error) -> Option<PyErr> {
    Some(error.get_ref()?.downcast_ref::<PyErr>()?.clone_ref(py))
}

/// The exception for an error of a study.
fn study(py: Python<'_>, error: &lasthop_study::Error) -> PyErr {
    match error {
        lasthop_study::Error::Input { message, help } => argument(py, message, help),
        lasthop_study::Error::Scenario { origin, text, arguments, error } => {
            scenario(py, &error.0, origin, text, arguments)
        }
    }
}

fn class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CLASS.import(py, "lasthop._errors", "ScenarioError")
}

/// A `ValueError` for an argument of the private module itself.
pub fn value(message: impl Into<String>) -> PyErr {
    PyValueError::new_err(message.into())
}
