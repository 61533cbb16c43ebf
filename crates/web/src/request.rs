//! The scenarios and runs to which questions refer.

use lasthop_scenario::{
    AS_IS, Argument, Code, Diagnostic, Scenario, SchemeChoice, Source, compare, files,
};
use serde::Deserialize;
use serde_json::{Value, json};

/// Maximum length of a scenario's text, in bytes.
const LONGEST: usize = 16 << 20;

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

    /// The error with its position, in the page's format.
    pub(crate) fn wrong(&self, error: &lasthop_scenario::Error) -> ErrorAnswer {
        let mut document = diagnostic(self, error);
        if error.code == Code::NoScheme {
            document["source"] = json!("scheme");
        }
        ErrorAnswer(document)
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

/// Line and column count from one; `start` and `end` are UTF-16 offsets, as in the page.
pub(crate) fn diagnostic(scene: &ScenarioRequest, it: &Diagnostic) -> Value {
    let empty = String::new();
    let in_file;
    let (source, text) = match it.at.source {
        Source::File => ("file", &scene.text),
        Source::Argument(i) => ("set", scene.set.get(i).unwrap_or(&empty)),
        Source::Points => ("points", &empty),
        Source::Referenced(_) => {
            in_file = files::located(&it.at, "", &scene.text, &scene.arguments()).1;
            ("referenced", &in_file)
        }
    };
    let (line, column) = it.at.line_column(text);
    json!({
        "code": it.code,
        "message": it.message,
        "key": it.key,
        "label": it.label,
        "help": it.help,
        "source": source,
        "line": line,
        "column": column,
        "start": utf16(text, it.at.span.start),
        "end": utf16(text, it.at.span.end),
    })
}

/// The UTF-16 offset of a byte offset.
fn utf16(text: &str, byte: usize) -> usize {
    text.char_indices().take_while(|(i, _)| *i < byte).map(|(_, c)| c.len_utf16()).sum()
}
