//! Scenarios and measurements that the experiments share.

use lasthop_observe::metrics::RunMetrics;

use crate::Claim;
use crate::measure::KB;

pub(super) const CLAIM: Claim = Claim::of("related");

/// The built-in scenario `name` without its axes.
pub(super) fn built_in(name: &str) -> &'static str {
    let text = lasthop_scenario::example(name).map_or("", |example| example.text);
    text.split("[vary]").next().unwrap_or(text)
}

/// Delivered payload over the whole run, in KB/s.
pub(super) fn rate(m: &RunMetrics) -> f64 {
    m.sum(|flow| flow.delivered) as f64 / m.end_s / KB
}
