//! What a scenario's path looks like to the sinks.

use lasthop_scenario::{HostSide, Scenario, StageKind};
use lasthop_trace::layout::{Layout, Role, StageInfo};

/// The stages of `scenario` as worlds number them: left hosts, the path, right hosts. Flows are not named:
/// their ports are chosen when they open, so the sinks find them by their first packet.
pub fn layout(scenario: &Scenario) -> Layout {
    let hosts = |side| {
        let here = scenario.hosts.iter().filter(move |host| host.side == side);
        here.map(|host| StageInfo { name: host.name.clone(), role: Role::Host })
    };
    let path = scenario.path.iter().map(|stage| StageInfo {
        name: stage.name.clone(),
        role: match stage.kind {
            StageKind::Link(_) => Role::Link,
            StageKind::Agent(_) => Role::Agent,
            StageKind::Radio(_) => Role::Radio,
            StageKind::Cross(_) => Role::Cross,
        },
    });
    let stages = hosts(HostSide::Left).chain(path).chain(hosts(HostSide::Right)).collect();
    Layout { stages, flows: Vec::new() }
}
