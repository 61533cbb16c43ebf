//! Scenarios and measurements that the experiments share.

use lasthop_observe::metrics::RunMetrics;

use crate::Claim;

pub(super) const CLAIM: Claim = Claim::of("related");

/// The built-in scenario `name` without its axes.
pub(super) fn built_in(name: &str) -> &'static str {
    let text = lasthop_scenario::example(name).map_or("", |example| example.text);
    text.split("[vary]").next().unwrap_or(text)
}

/// Delivered payload over the whole run, in Mbit/s.
pub(super) fn rate(m: &RunMetrics) -> f64 {
    m.sum(|flow| flow.delivered) as f64 * 8e-6 / m.end_s
}
