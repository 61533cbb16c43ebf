//! Metrics in brief have the numbers that `lasthop run` prints.

use lasthop_observe::metrics::{FlowMetrics, RunMetrics};
use lasthop_scenario::{Argument, example, parse};
use lasthop_sim::runs::{measure, measure_in_brief};

/// Transfers with losses, agents and senders; medium access; hand-offs; requests; short transfers; datagrams; and
/// transfers without end.
const EXAMPLES: [&str; 8] = [
    "west97-lan",
    "many-flows",
    "contention",
    "handoff-wavelan",
    "web",
    "transactions",
    "lte-video",
    "rivals",
];
/// Scalars that metrics in brief lack.
const ABSENT: [&str; 6] =
    ["redundant", "delay_mean", "delay_sd", "link_retransmissions", "collisions", "airtime"];

/// The numbers of a flow that texts about a run use.
fn used(flow: &FlowMetrics) -> String {
    let FlowMetrics { flow: name, opened_s, completed_s, complete, aborted, cross, .. } = flow;
    let FlowMetrics { delivered, wired_packets, wireless_packets, ideal_packets, .. } = flow;
    let FlowMetrics { timeouts, fast_retransmits, stalls, stall_time_s, .. } = flow;
    format!(
        "{name} {opened_s:?} {completed_s:?} {complete} {aborted} {cross} {delivered} {wired_packets} {wireless_packets} \
         {ideal_packets} {timeouts} {fast_retransmits} {stalls} {stall_time_s}"
    )
}

#[test]
fn metrics_in_brief_equal_full_ones_in_all_printed_numbers() {
    for name in EXAMPLES {
        let text = example(name).unwrap_or_else(|| panic!("{name} is an example")).text;
        let (plan, _) = parse(text, name, &[Argument::Set("runs=1".into())]).unwrap();
        for cell in plan.cells.iter().take(3) {
            let (full, brief) = (measure(&cell.scenario, 1), measure_in_brief(&cell.scenario, 1));
            let scalars = |metrics: &RunMetrics| {
                let mut scalars = metrics.scalars();
                scalars.retain(|scalar| !ABSENT.contains(&scalar.name));
                scalars
            };
            assert_eq!(scalars(&brief.metrics), scalars(&full.metrics), "{name}");
            let flows = |metrics: &[FlowMetrics]| metrics.iter().map(used).collect::<Vec<_>>();
            assert_eq!(flows(&brief.metrics.flows), flows(&full.metrics.flows), "{name}");
            assert_eq!(brief.metrics.timeout_causes, full.metrics.timeout_causes, "{name}");
            assert_eq!((brief.hops, brief.reason), (full.hops, full.reason), "{name}");
        }
    }
}
