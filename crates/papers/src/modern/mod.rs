//! Results published from 2002 to 2025 that lasthop's machines can answer, each cited by authors, title and section.
//!
//! These claims are separate from those of the papers, as related work is. The cited part of each source was read: a
//! paper, an RFC, a draft, or the published artifact of a paper. Scenarios follow the published set-up; assumptions are
//! listed.

mod anomaly;
mod bbr;
mod bbr_queue;
mod buffers;
mod codel;
mod cubic;
mod equation;
mod fq_codel;
mod l4s;
mod prr;
mod rack;
mod round_trips;
mod sharing;
mod slow_start;
mod split;
mod wireless;

use lasthop_observe::metrics::RunMetrics;

use crate::{Bench, Claim, Paper};

pub(crate) const PAPER: Paper = Paper {
    key: "modern",
    title: "Results published since (not among the claims of the papers)",
    claims: &[
        CLAIM.named("M-CUBIC-RENO", cubic::cubic_reno),
        CLAIM.named("M-CUBIC-RATES", cubic::rates),
        CLAIM.named("M-CUBIC-RTT", round_trips::round_trips),
        CLAIM.named("M-TFRC", equation::equation),
        CLAIM.named("M-PRR", prr::prr),
        CLAIM.named("M-HYSTART", slow_start::hystart),
        CLAIM.named("M-RACK", rack::rack),
        CLAIM.named("M-BBR-LOSS", bbr::loss),
        CLAIM.named("M-BBR-QUEUE", bbr_queue::queue),
        CLAIM.named("M-BBR-FAIR", bbr_queue::fair),
        CLAIM.named("M-BBR-CUBIC", sharing::bbr),
        CLAIM.named("M-BBR3-CUBIC", sharing::bbr3),
        CLAIM.named("M-SPLIT", split::split),
        CLAIM.named("M-BUFFERS", buffers::buffers),
        CLAIM.named("M-CODEL", codel::codel),
        CLAIM.named("M-FQ-CODEL", fq_codel::fq_codel),
        CLAIM.named("M-L4S", l4s::l4s),
        CLAIM.named("M-VENO", wireless::veno),
        CLAIM.named("M-WESTWOOD", wireless::westwood),
        CLAIM.named("M-ANOMALY", anomaly::anomaly),
    ],
};

const CLAIM: Claim = Claim::of("modern");

/// Tolerance of a measured value that has a published one, where the source gives none.
const TOLERANCE: f64 = 0.25;

/// A quarter of the seeds, for runs of many packets.
fn quarter(bench: &Bench<'_>) -> u32 {
    bench.seeds.div_ceil(4)
}

/// Bytes that flow `i` delivered.
fn delivered(m: &RunMetrics, i: usize) -> f64 {
    m.flows.get(i).map_or(f64::NAN, |flow| flow.delivered as f64)
}

/// Share of the rate `mbps` that packets used on the link `name` towards the right, in percent.
fn utilization(name: &'static str, mbps: f64) -> impl Fn(&RunMetrics) -> f64 {
    move |m| {
        let right = Some(lasthop_proto::machine::Side::Right);
        let link = m.stages.iter().find(|stage| stage.name == name && stage.towards == right);
        link.map_or(f64::NAN, |link| 100.0 * link.bytes as f64 * 8.0 / (mbps * 1e6 * m.end_s))
    }
}

#[cfg(test)]
mod tests {
    use super::PAPER;

    #[test]
    fn names_show_that_they_are_of_modern_results() {
        assert!(PAPER.claims.iter().all(|claim| claim.id.starts_with("M-")));
        assert!(crate::claims().all(|claim| !claim.id.starts_with("M-")));
    }
}
