//! Scenarios from their texts, and the metrics of a run.

use lasthop_observe::metrics::{Metrics, RunMetrics};
use lasthop_scenario::{Argument, Scenario, Warning, parse};
use lasthop_sim::{layout, run};

/// The only cell of the scenario `text`.
#[track_caller]
pub fn scenario(text: &str) -> Scenario {
    scenario_with::<&str>(text, &[])
}

/// The only cell of the scenario `text` with `sets`, as after `--set`.
#[track_caller]
pub fn scenario_with<S: AsRef<str>>(text: &str, sets: &[S]) -> Scenario {
    scenario_and_warnings(text, sets).0
}

#[track_caller]
pub fn scenario_and_warnings<S: AsRef<str>>(text: &str, sets: &[S]) -> (Scenario, Vec<Warning>) {
    let sets: Vec<&str> = sets.iter().map(AsRef::as_ref).collect();
    let arguments: Vec<Argument> =
        sets.iter().map(|set| Argument::Set((*set).to_owned())).collect();
    let (mut plan, warnings) = parse(text, "test", &arguments)
        .unwrap_or_else(|error| panic!("{error}: {}\n{sets:?}\n{text}", error.help));
    assert_eq!(plan.cells.len(), 1);
    (plan.cells.remove(0).scenario, warnings)
}

/// The metrics of a run, which loses count of no packet.
#[track_caller]
pub fn metrics(scenario: &Scenario, seed: u64) -> RunMetrics {
    let mut metrics = Metrics::new(layout(scenario));
    let end = run(scenario, seed, &mut metrics);
    assert!(end.stages.iter().all(|(_, count)| count.is_conserved()), "{:?}", end.stages);
    metrics.finish(end.at)
}
