//! One scenario under several schemes: a plan whose first axis is the scheme.
//!
//! Seed and stage name each stream of random draws, and no scheme renames a stage. So all schemes have the same draws
//! (common random numbers), and their runs can be compared in pairs.

mod builder;
mod handoffs;
mod losses;
mod stages;

use serde::Serialize;

use crate::argument::Argument;
use crate::document::{self, Table};
use crate::error::{Code, Diagnostic, Error, Location, Warning};
use crate::model::Scenario;
use crate::plan::{Axis, Cell, Plan};
use crate::resolve;
use crate::schemes::{self, Scheme};
use crate::vary::{self, AxisSpec, Point};
use builder::Builder;
pub use handoffs::Handoffs;
use losses::{Losses, loss_points};
use stages::insert_agent;

/// The name of the scenario as it is.
pub const AS_IS: &str = "as-is";

/// Selection of the schemes to compare.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum SchemeChoice {
    /// The labelled points of the scenario's own axis; without one its own `[schemes]`; otherwise all schemes.
    #[default]
    Own,
    /// Every scheme that applies.
    All,
    /// Schemes, or points of the scenario's own axis, by name.
    Named(Vec<String>),
}

/// A scheme that is not compared, with the reason.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LeftOut {
    /// Its name.
    pub name: String,
    /// Why.
    pub reason: String,
}

/// The runs of a comparison.
#[derive(Clone, PartialEq, Debug)]
pub struct Comparison {
    /// The runs. The first axis is the scheme; a second axis, if any, is the errors.
    pub plan: Plan,
    /// The schemes in the order of the first axis.
    pub schemes: Vec<Scheme>,
    /// Index in `schemes` of the scheme with which the others are compared.
    pub baseline: usize,
    /// Schemes that do not apply.
    pub left_out: Vec<LeftOut>,
    /// Settings of the scenario that are probably unintended.
    pub warnings: Vec<Warning>,
}

/// Lays `text` out for a comparison.
///
/// `errors` are probabilities that a packet with data is lost, which replace the errors of the scenario. Without
/// them, an axis of the scenario that changes only errors remains. All its other axes stay at their first points.
/// `baseline` names a scheme of the comparison; by default it is the scenario as it is, or the first point of its
/// axis. With `handoffs`, hosts move between two base stations like the last one, under every scheme.
///
/// # Errors
///
/// If the scenario or `errors` is invalid, or a name is that of no scheme ([`schemes::schemes_of`] lists
/// all). A scheme that does not fit the scenario is no error: it is omitted.
pub fn compare(
    text: &str,
    name: &str,
    arguments: &[Argument],
    choice: &SchemeChoice,
    errors: &[String],
    baseline: Option<&str>,
    handoffs: Option<&Handoffs>,
) -> Result<Comparison, Error> {
    let table = schemes::schemes_of(text)?;
    let mut document = document::parse(text)?;
    let own = schemes::take(&mut document)?;
    let mut axes = vary::apply(&mut document, arguments, vary::MAX_CELLS)?;
    if let Some(at) = insert_agent(&mut document) {
        axes.iter_mut().for_each(|axis| axis.insert_stage(at));
    }
    let labelled = axes.iter().position(|axis| axis.is_labelled() && !axis.only_errors());
    let labelled = labelled.map(|i| axes.remove(i));
    let error_axis = axes.iter().position(AxisSpec::only_errors).filter(|_| errors.is_empty());
    let error_axis = error_axis.map(|i| axes.remove(i));
    let first_of = |axis: &AxisSpec, document: &mut Table| {
        axis.points.first().map_or(Ok(()), |point| point.apply(document))
    };
    for axis in &axes {
        first_of(axis, &mut document)?;
    }
    // The points of the labelled axis are alternatives; none is added to the first one.
    let bare = document.clone();
    if let Some(axis) = &labelled {
        first_of(axis, &mut document)?;
    }
    let losses = match &error_axis {
        Some(axis) => Losses::Axis(axis),
        None => Losses::Given(loss_points(&document, errors)?),
    };
    let at_first = losses.apply(0, document.clone())?;
    let (scenario, notes) = resolve::scenario(&at_first, name)?;
    let (as_is, notes) = match handoffs {
        Some(handoffs) => {
            let mut moved = at_first;
            handoffs.apply(&mut moved)?;
            resolve::scenario(&moved, name)?
        }
        None => (scenario.clone(), notes),
    };
    let warnings =
        notes.into_iter().filter(|note| !note.in_every_cell).map(|note| note.warning).collect();
    let (base, bare) = (&document, &bare);
    let builder = Builder { name, base, bare, losses: &losses, handoffs, scenario: &scenario };

    let points = labelled.as_ref().map_or(&[][..], |axis| &axis.points);
    let candidates = candidates(choice, points, &own, &table)?;
    let own_axis = matches!(choice, SchemeChoice::Own) && !points.is_empty();
    let mut comparison = Comparison {
        plan: Plan {
            name: scenario.name.clone(),
            axes: vec![Axis { name: "scheme".to_owned(), labels: Vec::new() }],
            cells: Vec::new(),
        },
        schemes: Vec::new(),
        baseline: 0,
        left_out: Vec::new(),
        warnings,
    };
    if let Some(axis) = losses.axis() {
        comparison.plan.axes.push(axis);
    }
    if !own_axis {
        let cells = builder.cells(AS_IS, &document)?;
        let mut scheme = Scheme::plain(AS_IS, "the scenario as it is");
        // Where the scenario has an axis, the scheme is its first point.
        let firsts = axes.iter().chain(&labelled).filter_map(|axis| axis.points.first());
        scheme.set = firsts.flat_map(Point::settings).collect();
        comparison.add(scheme, cells);
    }
    let mut first = None;
    for (scheme, point) in candidates {
        match builder.cells_of(&scheme, point) {
            Ok(cells)
                if first.as_ref().is_some_and(|first: &Scenario| *first == cells[0].scenario)
                    || !own_axis && cells[0].scenario == as_is =>
            {
                let reason = match own_axis {
                    true => "it is the same as the first point",
                    false => "it is the same as the scenario",
                };
                comparison.left_out.push(LeftOut { name: scheme.name, reason: reason.to_owned() });
            }
            Ok(cells) => {
                if own_axis {
                    first.get_or_insert_with(|| cells[0].scenario.clone());
                }
                let scheme = if point.is_none() { builder.trimmed(scheme, &cells) } else { scheme };
                comparison.add(scheme, cells);
            }
            Err(reason) => comparison.left_out.push(LeftOut { name: scheme.name, reason }),
        }
    }
    if let Some(baseline) = baseline {
        let found = comparison.schemes.iter().position(|scheme| scheme.name == baseline);
        comparison.baseline = found.ok_or_else(|| {
            let names: Vec<&str> = comparison.schemes.iter().map(|s| s.name.as_str()).collect();
            no_scheme(format!("`{baseline}` is not in the comparison and cannot be its baseline"))
                .help(crate::error::did_you_mean(baseline, &names))
        })?;
    }
    Ok(comparison)
}

fn no_scheme(message: String) -> Diagnostic {
    Diagnostic::new(Code::NoScheme, "", &Location::file(0..0))
        .message(message)
        .label("this scenario")
}

type Candidate<'p> = (Scheme, Option<&'p Point>);

/// The chosen schemes, in order.
fn candidates<'p>(
    choice: &SchemeChoice,
    points: &'p [Point],
    own: &[Scheme],
    table: &[Scheme],
) -> Result<Vec<Candidate<'p>>, Error> {
    // A point with the name of a scheme is that scheme, written in the file's own keys.
    let of_point = |point: &'p Point| {
        let known = table.iter().find(|scheme| scheme.name == point.label);
        let mut scheme = known.cloned().unwrap_or_else(|| Scheme::plain(&point.label, ""));
        scheme.set = point.settings();
        (scheme, Some(point))
    };
    let plain = |scheme: &Scheme| (scheme.clone(), None);
    match choice {
        SchemeChoice::Own if !points.is_empty() => Ok(points.iter().map(of_point).collect()),
        SchemeChoice::Own if !own.is_empty() => Ok(own.iter().map(plain).collect()),
        SchemeChoice::Own | SchemeChoice::All => Ok(table.iter().map(plain).collect()),
        SchemeChoice::Named(names) => {
            let mut seen: Vec<&str> = Vec::new();
            let mut found = Vec::new();
            for name in names.iter().filter(|name| name.as_str() != AS_IS) {
                if seen.contains(&name.as_str()) {
                    continue;
                }
                seen.push(name);
                let point = points.iter().find(|point| point.label == *name).map(of_point);
                let scheme = table.iter().find(|scheme| scheme.name == *name).map(plain);
                let Some(one) = point.or(scheme) else {
                    let known: Vec<&str> = table.iter().map(|s| s.name.as_str()).collect();
                    return Err(no_scheme(format!("there is no scheme `{name}`"))
                        .help(crate::error::did_you_mean(name, &known))
                        .into());
                };
                found.push(one);
            }
            Ok(found)
        }
    }
}

impl Comparison {
    fn add(&mut self, scheme: Scheme, cells: Vec<Cell>) {
        self.plan.axes[0].labels.push(scheme.name.clone());
        self.plan.cells.extend(cells);
        self.schemes.push(scheme);
    }

    /// Number of points of the axis of errors; one without such an axis.
    pub fn points(&self) -> usize {
        self.plan.axes.get(1).map_or(1, |axis| axis.labels.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two round trips of packets of 1500 bytes and eight more, if this exceeds the default: one packet per
    /// millisecond at 12 Mb/s.
    #[test]
    fn the_link_layer_window_fills_its_hop() {
        let named = SchemeChoice::Named(["ll", "ll-sack", "tulip"].map(str::to_owned).to_vec());
        for (delay, ll, tulip) in [
            ("0us", 32, 8),
            ("1us", 32, 9),
            ("6ms", 32, 32),
            ("6001us", 33, 33),
            ("7ms", 36, 36),
            ("254ms", 1024, 1024),
            ("255ms", 1024, 1024),
        ] {
            let text = format!(
                "horizon = \"60s\"\ntransfer = {{ from = \"a\", to = \"b\", bytes = \"1MB\" }}\n[host.a]\n[host.b]\n\
                 [[path]]\nradio = {{ rate = \"12mbit\", delay = \"{delay}\" }}\n"
            );
            let comparison = compare(&text, "test", &[], &named, &[], None, None).unwrap();
            for (scheme, window) in [("ll", ll), ("ll-sack", ll), ("tulip", tulip)] {
                let cell = comparison.plan.cells.iter().find(|cell| cell.labels[0] == scheme);
                let path = format!("{:?}", cell.unwrap().scenario.path);
                assert!(path.contains(&format!("window: {window},")), "{delay} {scheme}: {path}");
            }
        }
    }
}
