//! Every system that the papers describe, and what came after them, and whether it runs yet.
//!
//! What runs describes itself where it stands. A system of the papers that is not built yet has its row here, so that
//! the list is complete and its status honest.

use lasthop_proto::describe::LIVE;
pub use lasthop_proto::describe::{Kind, Status, System, Where};

const PLANNED: &[System] = &[
    System::planned(
        Kind::Sender,
        "fast-rtx-handoff",
        "fast retransmit as soon as a hand-off is over, instead of waiting for a time-out",
        "bakshi96 2, agarwal00 2; Caceres and Iftode 1995",
    ),
    System::planned(
        Kind::Agent,
        "i-tcp-handoff",
        "moves the state of an agent to the next base station at a hand-off",
        "west97 2.5",
    ),
    System::planned(
        Kind::Agent,
        "m-tcp",
        "a split connection that keeps end-to-end acknowledgements and outlives disconnections",
        "parsa98 2, agarwal00 2; Brown and Singh 1997",
    ),
    System::planned(
        Kind::Link,
        "airmail",
        "whole-window retransmission with forward error correction, most of the work at the base station",
        "parsa98 2",
    ),
    System::planned(
        Kind::Queue,
        "csdp",
        "serves the mobile hosts in turn, skipping those whose channel is bad",
        "bakshi96 2",
    ),
];

/// Tools of a testbed and a station, which this crate does not depend on.
const LIVE_TOOLS: &[System] = &[
    System::new(
        Kind::Tool,
        "test-sender",
        "lasthop send, lasthop discard",
        "bulk sender and discard receiver on real hosts",
        "west97 4.5",
    )
    .runs(LIVE),
    System::new(
        Kind::Tool,
        "wireless-config",
        "lasthop ctl get, set, watch",
        "reads and changes errors and enhancements of a running base station",
        "west97 4.6",
    )
    .runs(LIVE),
];

/// All systems, in the order of a path from sender to receiver, tools last.
pub fn systems() -> Vec<System> {
    let mut all = lasthop_proto::systems::systems();
    for more in [PLANNED, lasthop_trace::tools::TOOLS, LIVE_TOOLS] {
        all.extend(more);
    }
    all.sort_by_key(|system| system.kind as u8);
    all
}

/// The system of this key.
pub fn system(key: &str) -> Option<System> {
    systems().into_iter().find(|system| system.key == key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_unique_and_what_runs_says_how() {
        let all = systems();
        assert_eq!(all.iter().filter(|system| system.tier > 0).count(), 58);
        for (i, system) in all.iter().enumerate() {
            let same = |other: &&System| other.key == system.key && other.kind == system.kind;
            assert_eq!(all[..i].iter().find(same), None);
            let planned = system.status == Status::Planned;
            assert_eq!(planned, system.syntax.is_empty(), "{}", system.key);
            assert!(!system.what.is_empty() && !system.source.is_empty(), "{}", system.key);
        }
    }
}
