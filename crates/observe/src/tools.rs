//! Descriptors of the tools of this crate, for lists.

use lasthop_proto::describe::{Kind, SIM, System};

/// Tools for the observation of a run.
pub const TOOLS: &[System] = &[
    System::new(
        Kind::Tool,
        "packet-filter",
        "lasthop run -o DIR",
        "captures on each link that Wireshark, tcpdump and tcptrace open",
        "west97 4.4",
    ),
    System::new(
        Kind::Tool,
        "tcb-trace",
        "lasthop run -o DIR",
        "the TCP control block at each event: windows, round trips, timeouts",
        "west97 4.4",
    ),
    System::new(
        Kind::Tool,
        "sequence-plot",
        "lasthop report DIR",
        "sequence numbers against time, with losses, retransmissions and stalls",
        "west97 4.4",
    )
    .runs(SIM),
    System::new(
        Kind::Tool,
        "metrics",
        "lasthop run",
        "throughput, goodput on each side, timeouts, delays, stalls, fairness; means with confidence intervals",
        "balakrishnan97 3.1",
    ),
];
