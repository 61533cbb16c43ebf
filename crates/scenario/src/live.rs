//! A path that changes while it runs, and the file of a base station that has one. Keys are set one by one, after
//! validation of the whole new path.

use core::mem::discriminant;
use std::collections::{BTreeMap, BTreeSet};

use crate::argument::Argument;
use crate::document::{self, Node, Table, Value};
use crate::error::{Code, Diagnostic, Error, Location, Source, Warning};
use crate::model::{Scenario, Stage, StageKind};
use crate::parts::station::StationSettings;
use crate::plan;
use crate::resolve::{self, station};
use crate::vary::{self, Setting};

/// The stages of a running path, and their document.
#[derive(Clone, Debug)]
pub struct LivePath {
    document: Table,
    form: Form,
    stages: Vec<Stage>,
}

/// The kind of a document.
#[derive(Clone, Debug)]
enum Form {
    Station,
    /// A scenario, with its name.
    Scenario(String),
}

impl LivePath {
    /// The path of a scenario in the first of its combinations, and the scenario.
    ///
    /// # Errors
    /// As [`crate::parse`].
    pub fn of_scenario(
        text: &str,
        name: &str,
        arguments: &[Argument],
    ) -> Result<(LivePath, Scenario), Error> {
        let mut document = document::parse(text)?;
        let axes = vary::apply(&mut document, arguments, vary::MAX_CELLS)?;
        plan::first_points(&mut document, &axes)?;
        let (scenario, _) = resolve::scenario(&document, name)?;
        if scenario.roaming.is_some() {
            return Err(resolve::cells::not_standing(&document));
        }
        document.forget_locations();
        let stages = scenario.path.clone();
        Ok((LivePath { document, form: Form::Scenario(name.to_owned()), stages }, scenario))
    }

    /// The stages, left to right.
    pub fn stages(&self) -> &[Stage] {
        &self.stages
    }

    /// The value of a key such as `agent` or `errors.mean`, in the notation of a file; `None` for the
    /// default.
    ///
    /// # Errors
    /// The path has no such key. Locations refer to `key`, as argument 0.
    pub fn get(&self, key: &str) -> Result<Option<String>, Error> {
        vary::get_path(&self.document, key)
    }

    /// The path with `values` set, each of the form `KEY=VALUE`, and the old and new value of each key.
    ///
    /// # Errors
    /// A value is invalid, the resulting path is invalid, or the number or kind of stages would change.
    /// Locations refer to the values, as arguments.
    pub fn set(&self, values: &[String]) -> Result<(LivePath, Vec<Setting>, Vec<Warning>), Error> {
        let mut document = self.document.clone();
        let settings = vary::set_path(&mut document, values)?;
        let (stages, warnings) = match &self.form {
            Form::Station => station::stages(&document)?,
            Form::Scenario(name) => {
                let (scenario, notes) = resolve::scenario(&document, name)?;
                (scenario.path, notes.into_iter().map(|note| note.warning).collect())
            }
        };
        document.forget_locations();
        let path = LivePath { document, form: self.form.clone(), stages };
        if let Some(why) = self.differs_in_shape(&path) {
            let at = Location {
                source: Source::Argument(0),
                span: 0..values.first().map_or(0, String::len),
            };
            return Err(Diagnostic::new(Code::BadPath, "path", &at)
                .message(why)
                .label("needs a restart")
                .help("the number, kinds and names of stages are fixed at run time; change the file and restart")
                .into());
        }
        Ok((path, settings, warnings))
    }

    /// The keys of a stage in the file, each as `key = value`. Stages count from 0.
    pub fn stage_lines(&self, stage: usize) -> Vec<String> {
        let prefix = format!("path.{}.", stage + 1);
        let leaves = leaves(&self.document).into_iter();
        leaves
            .filter_map(|(key, value)| Some(format!("{} = {value}", key.strip_prefix(&prefix)?)))
            .collect()
    }

    /// The keys that differ in `other`, with both values.
    pub fn changes_to(&self, other: &LivePath) -> Vec<Setting> {
        differences(&self.document, &other.document)
    }

    /// The reason why `other` cannot replace this path while it runs, if any.
    pub fn differs_in_shape(&self, other: &LivePath) -> Option<String> {
        if self.stages.len() != other.stages.len() {
            let (was, is) = (self.stages.len(), other.stages.len());
            return Some(format!("the path has {was} stages and would have {is}"));
        }
        let changed = self
            .stages
            .iter()
            .zip(&other.stages)
            .find(|(was, is)| was.name != is.name || !are_alike(&was.kind, &is.kind));
        changed.map(|(was, is)| match was.name == is.name {
            true => format!("the stage `{}` would become another kind of stage", was.name),
            false => format!("the stage `{}` would become `{}`", was.name, is.name),
        })
    }
}

/// A station's file.
#[derive(Clone, Debug)]
pub struct StationFile {
    /// Everything but the path.
    pub settings: StationSettings,
    /// The stages between the interfaces, which can be changed while they run.
    pub path: LivePath,
}

impl StationFile {
    /// The file with this document.
    pub(crate) fn of(mut document: Table) -> Result<(StationFile, Vec<Warning>), Error> {
        let settings = station::values(&document)?;
        let (stages, warnings) = station::stages(&document)?;
        document.forget_locations();
        let path = LivePath { document, form: Form::Station, stages };
        Ok((StationFile { settings, path }, warnings))
    }
}

/// Whether one kind of stage can replace the other while packets pass. A link may begin to compress headers,
/// or to vary.
fn are_alike(a: &StageKind, b: &StageKind) -> bool {
    discriminant(a) == discriminant(b) || a.line().is_some() && b.line().is_some()
}

/// The keys of the path in which two documents differ, in the order of their names.
fn differences(was: &Table, is: &Table) -> Vec<Setting> {
    let (was, is) = (leaves(was), leaves(is));
    let keys: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
    let changed = keys.into_iter().filter(|key| was.get(*key) != is.get(*key));
    changed
        .map(|key| Setting {
            key: key.clone(),
            old: was.get(key).cloned(),
            new: is.get(key).cloned().unwrap_or_else(|| "(default)".to_owned()),
        })
        .collect()
}

/// The keys of the path in a document, each with its value.
fn leaves(document: &Table) -> BTreeMap<String, String> {
    let mut leaves = BTreeMap::new();
    document.get("path").into_iter().for_each(|path| collect_leaves("path", path, &mut leaves));
    leaves
}

fn collect_leaves(key: &str, node: &Node, into: &mut BTreeMap<String, String>) {
    match &node.value {
        Value::Table(table) => {
            for entry in &table.entries {
                collect_leaves(&format!("{key}.{}", entry.key), &entry.node, into);
            }
        }
        Value::Array(items) if items.iter().any(|item| item.as_table().is_some()) => {
            for (i, item) in items.iter().enumerate() {
                collect_leaves(&format!("{key}.{}", i + 1), item, into);
            }
        }
        _ => drop(into.insert(key.to_owned(), node.brief())),
    }
}
