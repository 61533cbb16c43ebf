//! Questions of the page, and their dispatch.

use lasthop_scenario::{AS_IS, Argument, Scenario, SchemeChoice, compare};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::envelope::{self, Columns};
use crate::{band, capture, check, event, files, look, run};

/// Maximum length of a scenario's text, in bytes.
const LONGEST: usize = 16 << 20;

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

#[derive(Deserialize, Debug)]
pub struct ScenarioRequest {
    pub text: String,
    /// The name, unless the text has one.
    #[serde(default)]
    pub name: String,
    /// Settings, as with `--set`.
    #[serde(default)]
    pub set: Vec<String>,
}

#[derive(Deserialize, Debug)]
pub struct RunRequest {
    #[serde(flatten)]
    pub scene: ScenarioRequest,
    /// `None` for the unchanged scenario.
    #[serde(default)]
    pub scheme: Option<String>,
    /// `None` for the first seed of the scenario.
    #[serde(default)]
    pub seed: Option<u64>,
}

/// The reason why there is no answer, in the page's format.
#[derive(Debug)]
pub struct ErrorAnswer(pub Value);

impl ErrorAnswer {
    /// An error with a valid alternative.
    pub(crate) fn new(message: impl Into<String>, help: impl Into<String>) -> ErrorAnswer {
        ErrorAnswer(json!({ "message": message.into(), "help": help.into() }))
    }
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

impl ScenarioRequest {
    pub(crate) fn arguments(&self) -> Vec<Argument> {
        self.set.iter().cloned().map(Argument::Set).collect()
    }

    pub(crate) fn named(&self) -> &str {
        if self.name.is_empty() { "scenario" } else { &self.name }
    }

    /// Refuses oversized texts.
    pub(crate) fn bounded(&self) -> Result<(), ErrorAnswer> {
        let len = self.text.len() + self.set.iter().map(String::len).sum::<usize>();
        if len <= LONGEST {
            return Ok(());
        }
        Err(ErrorAnswer::new(
            "the scenario is longer than 16 MiB",
            "leave out what it does not need",
        ))
    }

    /// The error with its position.
    pub(crate) fn wrong(&self, error: &lasthop_scenario::Error) -> ErrorAnswer {
        ErrorAnswer(check::error_document(self, error))
    }
}

impl RunRequest {
    /// The scenario under the scheme, and the seed.
    pub(crate) fn scenario(&self) -> Result<(Scenario, u64), ErrorAnswer> {
        self.scene.bounded()?;
        let choice = SchemeChoice::Named(self.scheme.iter().cloned().collect());
        let arguments = self.scene.arguments();
        let (text, name) = (&self.scene.text, self.scene.named());
        let mut all = compare(text, name, &arguments, &choice, &[], None, None)
            .map_err(|error| self.scene.wrong(&error))?;
        let scheme = self.scheme.as_deref().unwrap_or(AS_IS);
        let same = "it is the same as the scenario";
        let at = match all.schemes.iter().position(|found| found.name == scheme) {
            Some(at) => at,
            None => match all.left_out.iter().find(|left| left.name == scheme) {
                Some(left) if left.reason == same => 0,
                left => {
                    let reason = left.map_or("no such scheme", |left| &left.reason);
                    return Err(ErrorAnswer::new(
                        format!("the scheme `{scheme}` does not apply here: {reason}"),
                        "choose another one, or change the scenario",
                    ));
                }
            },
        };
        let scenario = all.plan.cells.swap_remove(at * all.points()).scenario;
        if (0..scenario.hosts.len()).any(|host| scenario.speaks_quic(host)) {
            return Err(ErrorAnswer::new(
                "hosts of this scenario speak QUIC, which is not part of the laboratory",
                "`lasthop run` runs it",
            ));
        }
        let seed = self.seed.unwrap_or(scenario.first_seed);
        Ok((scenario, seed))
    }
}
