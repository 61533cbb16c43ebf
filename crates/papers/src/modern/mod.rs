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
        cubic::WINDOWS,
        cubic::RATES,
        round_trips::ROUND_TRIPS,
        equation::EQUATION,
        prr::PRR,
        slow_start::HYSTART,
        rack::RACK,
        bbr::LOSS,
        bbr_queue::QUEUE,
        bbr_queue::FAIR,
        sharing::BBR,
        sharing::BBR3,
        split::SPLIT,
        buffers::BUFFERS,
        codel::CODEL,
        fq_codel::FQ_CODEL,
        l4s::L4S,
        wireless::VENO,
        wireless::WESTWOOD,
        anomaly::ANOMALY,
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
