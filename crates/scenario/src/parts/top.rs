//! The keys at the top of a scenario that are no tables.

use lasthop_proto::describe::{Form, Keys, Need, Value};
use lasthop_proto::units::Span;

use crate::model::World;

/// Maximum number of runs of one scenario.
pub(crate) const MAX_RUNS: u64 = 1_000_000;

/// Default number of runs in the testbed, where a run takes real time.
const TESTBED_RUNS: u64 = 5;

/// Values of the keys at the top of a scenario.
#[derive(Debug)]
pub(crate) struct Top {
    pub name: Option<String>,
    pub world: World,
    pub runs: u64,
    pub testbed_runs: u64,
    pub first_seed: u64,
    pub horizon: Span,
}

/// Visits the keys.
pub(crate) fn keys(k: &mut Keys<'_>) -> Top {
    let need = Need::Else("the file's name");
    let form = Form::Text("\"my-link\"");
    let name = match k.value("name", form, need, Value::Absent, "the name, for tables and files") {
        Value::Text(name) => Some(name),
        _ => None,
    };
    let (mut world, mut runs, mut first_seed) = (World::Sim, 20, 1);
    let worlds = [("sim", World::Sim), ("testbed", World::Testbed)];
    k.word("world", &mut world, &worlds, "where it is run: in the simulator, or on real packets");
    k.count("runs", &mut runs, 1..=MAX_RUNS, "runs, each with its own seed");
    let mut testbed_runs = runs.min(TESTBED_RUNS);
    k.count("testbed-runs", &mut testbed_runs, 1..=MAX_RUNS, "runs in the testbed");
    k.count("seed", &mut first_seed, 0..=i64::MAX as u64 - MAX_RUNS, "the seed of the first run");
    let mut horizon = Span::secs(3600);
    let horizons = Span::millis(1)..=Span::secs(30 * 86_400);
    k.within("horizon", &mut horizon, horizons, "when a run ends at the latest");
    Top { name, world, runs, testbed_runs, first_seed, horizon }
}
