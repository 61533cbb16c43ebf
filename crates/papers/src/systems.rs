//! All systems of the papers, and later ones. Each system describes itself; this file adds the tools of crates that
//! this crate does not depend on.

use lasthop_proto::describe::LIVE;
pub use lasthop_proto::describe::{Kind, Status, System, Where};

/// Tools of a testbed and a station.
const LIVE_TOOLS: &[System] = &[
    System::new(
        Kind::Tool,
        "test-sender",
        "lasthop run FILE --world testbed",
        "bulk sender and discard receiver on the kernel's TCP",
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
    for more in [lasthop_observe::tools::TOOLS, LIVE_TOOLS] {
        all.extend(more);
    }
    all.sort_by_key(|system| system.kind as u8);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_unique_and_implemented_systems_have_syntax() {
        let all = systems();
        assert_eq!(all.iter().filter(|system| system.tier > 0).count(), 58);
        for (i, system) in all.iter().enumerate() {
            let same = |other: &&System| other.key == system.key && other.kind == system.kind;
            assert_eq!(all[..i].iter().find(same), None);
            let planned = system.status == Status::Planned;
            assert_eq!(planned, system.syntax.is_empty(), "{}", system.key);
            assert!(!system.summary.is_empty() && !system.source.is_empty(), "{}", system.key);
        }
    }
}
