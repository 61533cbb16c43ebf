//! Scenarios with QUIC and their runs.
#![allow(dead_code, reason = "each test uses a part")]

use lasthop_observe::metrics::{Metrics, RunMetrics};
use lasthop_scenario::{Scenario, parse};
use lasthop_sim::{RunEnd, layout, run_with};

use crate::record::Record;

/// A run with its metrics and events.
pub struct CompletedRun {
    pub end: RunEnd,
    pub metrics: RunMetrics,
    pub record: Record,
}

/// The scenario of `text`.
pub fn scenario(text: &str) -> Scenario {
    let (plan, _) = parse(text, "test", &[]).unwrap_or_else(|e| panic!("{e}: {}\n{text}", e.help));
    plan.cells[0].scenario.clone()
}

/// A transfer with the keys `transfer` over 10 Mb/s and 10 ms, with losses and the keys `link`.
pub fn lossy(loss: f64, link: &str, transfer: &str) -> Scenario {
    scenario(&format!(
        "horizon = \"600s\"\n\
         transfer = {{ from = \"fixed\", to = \"mobile\", protocol = \"quic\", {transfer} }}\n\
         [host.fixed]\npreset = \"rfc\"\n[host.mobile]\npreset = \"rfc\"\n\
         [[path]]\nlink = {{ rate = \"10mbit\", delay = \"10ms\", queue = \"100p\" }}\n\
         [[path]]\nradio = {{ rate = \"100mbit\", delay = \"0ms\", duplex = \"full\" {link} }}\n\
         errors = {{ model = \"packet-loss\", p = {loss} }}\n"
    ))
}

/// Runs `scenario` with `seed`.
pub fn run(scenario: &Scenario, seed: u64) -> CompletedRun {
    let mut sinks = (Record::default(), Metrics::new(layout(scenario)));
    let end = run_with(scenario, seed, &lasthop_sim::quic::end, &mut sinks);
    let (record, metrics) = sinks;
    CompletedRun { metrics: metrics.finish(end.at), end, record }
}
