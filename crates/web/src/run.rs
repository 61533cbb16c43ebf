//! A run as columns: series of plots, events, and metrics.

use lasthop_observe::Sink;
use lasthop_proto::units::Time;
use lasthop_scenario::Scenario;
use lasthop_sim::runs::{Recording, layout, record_by};
use lasthop_sim::{RunEnd, Session, no_ends};
use serde_json::{Value, json};

use crate::envelope::Columns;
use crate::marks;
use crate::request::{ErrorAnswer, RunRequest};
use crate::rows::Rows;

/// Maximum number of events of a run: some seconds of work.
pub const MOST_EVENTS: u64 = 6_000_000;

/// Runs `one` and reports everything.
pub(crate) fn run(one: &RunRequest) -> Result<Vec<u8>, ErrorAnswer> {
    let (scenario, seed) = one.scenario()?;
    let (recording, rows, cut) = recorded(&scenario, seed);
    let layout = layout(&scenario);
    let mut columns = Columns::default();
    let codes = rows.pack(&layout, &mut columns);
    for (i, series) in recording.series.iter().enumerate() {
        marks::pack(series, i, &mut columns);
    }
    let scalars = recording.result.metrics.scalars();
    let mut answer = json!({
        "seed": seed,
        "reason": recording.result.reason,
        "end": recording.end.as_secs_f64(),
        "cut": cut,
        "events": rows.event_count(),
        "told": rows.len(),
        "stages": layout.stages,
        "cells": layout.cells.iter().map(|cell| [cell.start, cell.end]).collect::<Vec<_>>(),
        "codes": codes,
        "flows": rows.flows(),
        "series": recording.series.iter().map(marks::summary).collect::<Vec<_>>(),
        "scalars": scalars,
        "flow_metrics": recording.result.metrics.flows.iter().take(8).collect::<Vec<_>>(),
        "stage_metrics": recording.result.metrics.stages,
    });
    answer["digest"] = json!(digest(&answer, columns.sent()));
    Ok(columns.envelope(&answer))
}

/// FNV-1a over the answer.
fn digest(answer: &Value, columns: &[u8]) -> String {
    let text = answer.to_string();
    let bytes = text.as_bytes().iter().chain(columns);
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// Runs and records; true if the run was cut off.
pub(crate) fn recorded(scenario: &Scenario, seed: u64) -> (Recording, Rows, bool) {
    let mut rows = Rows::new();
    let mut cut = false;
    let recording = record_by(scenario, seed, &mut rows, |sink| {
        let (end, was_cut) = driven(scenario, seed, MOST_EVENTS, sink);
        cut = was_cut;
        end
    });
    (recording, rows, cut)
}

/// Runs until the end or `most` events; true if the run was cut off.
pub(crate) fn driven(
    scenario: &Scenario,
    seed: u64,
    most: u64,
    sink: &mut dyn Sink,
) -> (RunEnd, bool) {
    let mut sink = sink;
    let mut session = Session::with_ends(scenario, seed, &no_ends, &sink);
    session.run_bounded(most, &mut sink);
    let cut = session.ended().is_none();
    (session.end(), cut)
}

/// A run up to and including a time, with its state then.
pub(crate) fn until<'s>(
    scenario: &'s Scenario,
    seed: u64,
    at: Time,
    sink: &mut impl Sink,
) -> Session<&'s Scenario> {
    let mut session = Session::with_ends(scenario, seed, &no_ends, sink);
    session.run_until(at, sink);
    session
}
