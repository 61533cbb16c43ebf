//! Questions of the page, and their dispatch.

use serde::Deserialize;
use serde_json::json;

use crate::envelope::{self, Columns};
use crate::request::{ErrorAnswer, RunRequest, ScenarioRequest};
use crate::{band, capture, check, event, files, look, run};

/// A question.
#[derive(Deserialize, Debug)]
#[serde(rename_all = "kebab-case", tag = "ask")]
enum Ask {
    /// The built-in scenarios, the schemes, and the schema of files.
    Known,
    /// Diagnostics and sliders of a text.
    Check(ScenarioRequest),
    /// The schemes that apply.
    Choices(ScenarioRequest),
    /// A run with its events.
    Run(RunRequest),
    /// One event of a run, in full.
    Event {
        #[serde(flatten)]
        one: RunRequest,
        index: usize,
    },
    /// The state of hosts and base stations at a time of the run.
    Look {
        #[serde(flatten)]
        one: RunRequest,
        /// Seconds.
        at: f64,
    },
    /// Several runs with their mean.
    Band {
        #[serde(flatten)]
        one: RunRequest,
        /// Number of runs, with consecutive seeds from that of the run.
        runs: u32,
    },
    /// A run as a file.
    File {
        #[serde(flatten)]
        one: RunRequest,
        form: files::Form,
    },
    /// The analysis of the capture in the bytes of the question.
    Capture {
        /// Its file name.
        name: String,
    },
}

/// Answers a question. Both are [envelopes](crate::envelope).
pub fn answer(question: &[u8]) -> Vec<u8> {
    let answered = envelope::open(question)
        .ok_or_else(|| ErrorAnswer::new("the request is incomplete", "this is a fault of the page"))
        .and_then(|(json, bytes)| {
            let ask = serde_json::from_slice(json).map_err(|error| {
                ErrorAnswer::new(error.to_string(), "this is a fault of the page")
            })?;
            answered(ask, bytes)
        });
    answered.unwrap_or_else(|ErrorAnswer(error)| {
        Columns::default().envelope(&json!({ "error": error }))
    })
}

fn answered(ask: Ask, bytes: &[u8]) -> Result<Vec<u8>, ErrorAnswer> {
    match ask {
        Ask::Known => Ok(Columns::default().envelope(&check::known())),
        Ask::Check(scene) => Ok(Columns::default().envelope(&check::check(&scene)?)),
        Ask::Choices(scene) => Ok(Columns::default().envelope(&check::choices(&scene)?)),
        Ask::Run(one) => run::run(&one),
        Ask::Event { one, index } => event::event(&one, index),
        Ask::Look { one, at } => look::look(&one, at),
        Ask::Band { one, runs } => band::band(&one, runs),
        Ask::File { one, form } => files::file(&one, form),
        Ask::Capture { name } => capture::capture(name, bytes),
    }
}
