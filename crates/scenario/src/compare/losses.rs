//! The losses under which schemes are compared: those of the scenario's own axis, or given ones.

use super::stages::{stages, trouble};
use crate::address::{Dotted, Route, set};
use crate::document::{self, Node, Table};
use crate::error::Source;
use crate::error::{Error, Location};
use crate::plan::Axis;
use crate::schema;
use crate::vary::AxisSpec;

/// One value of `--errors`: its label, and its changes of the document.
pub(super) type Loss = (String, Vec<(Route, Node)>);

/// The losses under which the schemes are compared.
pub(super) enum Losses<'a> {
    Axis(&'a AxisSpec),
    Given(Vec<Loss>),
}

impl Losses<'_> {
    pub fn count(&self) -> usize {
        match self {
            Losses::Axis(axis) => axis.points.len(),
            Losses::Given(points) => points.len().max(1),
        }
    }

    pub fn axis(&self) -> Option<Axis> {
        match self {
            Losses::Axis(axis) => Some(Axis {
                name: axis.name.clone(),
                labels: axis.points.iter().map(|point| point.label.clone()).collect(),
            }),
            Losses::Given(points) if points.is_empty() => None,
            Losses::Given(points) => Some(Axis {
                name: "loss".to_owned(),
                labels: points.iter().map(|(label, _)| label.clone()).collect(),
            }),
        }
    }

    pub fn label(&self, i: usize) -> Option<String> {
        self.axis().and_then(|axis| axis.labels.get(i).cloned())
    }

    pub fn apply(&self, i: usize, mut document: Table) -> Result<Table, Error> {
        match self {
            Losses::Axis(axis) => axis.points[i].apply(&mut document)?,
            Losses::Given(points) => {
                for (route, node) in points.get(i).map_or(&[][..], |(_, changes)| changes) {
                    set(&mut document, route, node, "errors")?;
                }
            }
        }
        Ok(document)
    }
}

/// `errors` as changes of the last radio, or of the only router that others use too.
pub(super) fn loss_points(document: &Table, errors: &[String]) -> Result<Vec<Loss>, Error> {
    let place = |kind: &str| stages(document).iter().rposition(|stage| stage.has(kind));
    let mut points = Vec::with_capacity(errors.len());
    for word in errors {
        let node = |text: &str| {
            let mut node = document::parse_value(text, Source::Argument(0), 0);
            node.forget_locations();
            node
        };
        let zero = word.trim_end_matches('%').parse() == Ok(0.0_f64);
        let changes: Vec<(String, Node)> = match (place("radio"), place("cross")) {
            (Some(at), _) => {
                let model =
                    format!("{{ model = \"packet-loss\", p = \"{word}\", on = [\"data\"] }}");
                let model = if zero { "none".to_owned() } else { model };
                // Errors of single directions in the file would be added to it.
                let stage = stages(document)[at];
                let sides =
                    schema::keys("errors").iter().filter(|key| **key != "errors" && stage.has(key));
                let sides = sides.map(|key| (format!("path.{}.{key}", at + 1), node("none")));
                sides.chain([(format!("path.{}.errors", at + 1), node(&model))]).collect()
            }
            (None, Some(at)) => {
                vec![(format!("path.{}.cross.loss", at + 1), node(&format!("\"{word}\"")))]
            }
            (None, None) => {
                return Err(trouble("the path has neither a radio nor a router that could lose packets")
                    .help("add a `[[path]]` stage with `radio = { ... }` to the file, or leave the losses out")
                    .into());
            }
        };
        let mut routed = Vec::new();
        for (key, node) in changes {
            let key = Dotted::split(&key, &Location::file(0..0), 0);
            routed.extend(key.routes(document)?.into_iter().map(|route| (route, node.clone())));
        }
        points.push((word.clone(), routed));
    }
    Ok(points)
}
