//! What can be asked, and who answers.

use lasthop_scenario::{AS_IS, Argument, Scenario, Wanted, compare};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::envelope::{self, Columns};
use crate::{band, capture, check, event, files, look, run};

/// No text of a scenario is longer.
const LONGEST: usize = 16 << 20;

/// What is asked.
#[derive(Deserialize, Debug)]
#[serde(rename_all = "kebab-case", tag = "ask")]
enum Ask {
    /// The built-in scenarios, the schemes, and what files may say.
    Known,
    /// Whether a text is a scenario, and what can be turned at.
    Check(Scene),
    /// Which schemes apply.
    Choices(Scene),
    /// A run, and everything that happened.
    Run(One),
    /// One of its events in full.
    Event {
        #[serde(flatten)]
        one: One,
        /// Its number.
        index: usize,
    },
    /// How hosts and base stations stand at a time of the run.
    Look {
        #[serde(flatten)]
        one: One,
        /// The time, in seconds.
        at: f64,
    },
    /// Several runs, and what they have in common.
    Band {
        #[serde(flatten)]
        one: One,
        /// How many, with the seeds from that of the run on.
        runs: u32,
    },
    /// A run as a file.
    File {
        #[serde(flatten)]
        one: One,
        /// What is in it.
        form: files::Form,
    },
    /// What happened to TCP in the capture that stands behind the question.
    Capture {
        /// What to call it.
        name: String,
    },
}

/// A scenario.
#[derive(Deserialize, Debug)]
pub struct Scene {
    /// Its text.
    pub text: String,
    /// Its name, where the text gives none.
    #[serde(default)]
    pub name: String,
    /// What is set in it, as by `--set`.
    #[serde(default)]
    pub set: Vec<String>,
}

/// A run of a scenario.
#[derive(Deserialize, Debug)]
pub struct One {
    /// The scenario.
    #[serde(flatten)]
    pub scene: Scene,
    /// Under which scheme; nothing is the scenario as it is.
    #[serde(default)]
    pub scheme: Option<String>,
    /// The seed; without it the first one of the scenario.
    #[serde(default)]
    pub seed: Option<u64>,
}

/// Why there is no answer, as the page shows it.
#[derive(Debug)]
pub struct Failed(pub Value);

impl Failed {
    /// Something is wrong, and what would be right.
    pub(crate) fn new(message: impl Into<String>, help: impl Into<String>) -> Failed {
        Failed(json!({ "message": message.into(), "help": help.into() }))
    }
}

/// Answers a question. Both are [envelopes](crate::envelope).
pub fn answer(question: &[u8]) -> Vec<u8> {
    let answered = envelope::open(question)
        .ok_or_else(|| Failed::new("the question is not whole", "this is a fault of the page"))
        .and_then(|(json, bytes)| {
            let asked = serde_json::from_slice(json)
                .map_err(|error| Failed::new(error.to_string(), "this is a fault of the page"))?;
            answered(asked, bytes)
        });
    answered.unwrap_or_else(|Failed(error)| Columns::default().envelope(&json!({ "error": error })))
}

fn answered(asked: Ask, bytes: &[u8]) -> Result<Vec<u8>, Failed> {
    match asked {
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

impl Scene {
    pub(crate) fn arguments(&self) -> Vec<Argument> {
        self.set.iter().cloned().map(Argument::Set).collect()
    }

    pub(crate) fn named(&self) -> &str {
        if self.name.is_empty() { "scenario" } else { &self.name }
    }

    /// Refuses what nobody writes.
    pub(crate) fn bounded(&self) -> Result<(), Failed> {
        let len = self.text.len() + self.set.iter().map(String::len).sum::<usize>();
        if len <= LONGEST {
            return Ok(());
        }
        Err(Failed::new("the scenario is longer than 16 MiB", "leave out what it does not need"))
    }

    /// What is wrong with it, and where.
    pub(crate) fn wrong(&self, error: &lasthop_scenario::Error) -> Failed {
        Failed(check::told(self, error))
    }
}

impl One {
    /// What is run, and by which seed.
    pub(crate) fn scenario(&self) -> Result<(Scenario, u64), Failed> {
        self.scene.bounded()?;
        let wanted = Wanted::Named(self.scheme.iter().cloned().collect());
        let arguments = self.scene.arguments();
        let (text, name) = (&self.scene.text, self.scene.named());
        let mut all = compare(text, name, &arguments, &wanted, &[], None, None)
            .map_err(|error| self.scene.wrong(&error))?;
        let scheme = self.scheme.as_deref().unwrap_or(AS_IS);
        let same = "the scenario is so already";
        let at = match all.schemes.iter().position(|found| found.name == scheme) {
            Some(at) => at,
            None => match all.left_out.iter().find(|left| left.name == scheme) {
                Some(left) if left.reason == same => 0,
                left => {
                    let reason = left.map_or("it is not there", |left| &left.reason);
                    return Err(Failed::new(
                        format!("the scheme `{scheme}` does not apply here: {reason}"),
                        "choose another one, or change the scenario",
                    ));
                }
            },
        };
        let scenario = all.plan.cells.swap_remove(at * all.points()).scenario;
        if (0..scenario.hosts.len()).any(|host| scenario.speaks_quic(host)) {
            return Err(Failed::new(
                "hosts of this scenario speak QUIC, which is not part of the laboratory",
                "`lasthop run` runs it",
            ));
        }
        let seed = self.seed.unwrap_or(scenario.first_seed);
        Ok((scenario, seed))
    }
}
