//! Which packets do not just arrive.

use lasthop_proto::link::Fate;
use lasthop_proto::machine::StageId;
use lasthop_scenario::Scenario;
use lasthop_sim::layout;
use serde::Serialize;

/// The fate of one packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct Fault {
    #[serde(skip)]
    pub router: StageId,
    /// Its place among the packets that the router decides about, from 1 on.
    pub place: u64,
    pub fate: Fate,
}

/// Faults in the order of their decisions.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize)]
#[serde(transparent)]
pub struct Pattern(pub Vec<Fault>);

impl Pattern {
    pub(crate) fn with(&self, fault: Fault) -> Pattern {
        let mut faults = self.0.clone();
        faults.push(fault);
        Pattern(faults)
    }

    /// In the form of `--set`, one for each router: `wired.cross.fates=5 drop, 7 late`.
    pub fn settings(&self, scenario: &Scenario) -> Vec<String> {
        let stages = layout(scenario).stages;
        let mut routers: Vec<StageId> = self.0.iter().map(|fault| fault.router).collect();
        routers.sort_unstable();
        routers.dedup();
        let setting = |router: &StageId| {
            let name = &stages.get(usize::from(router.0))?.name;
            let mut here: Vec<&Fault> = self.0.iter().filter(|f| f.router == *router).collect();
            here.sort_unstable_by_key(|fault| fault.place);
            let words = here.iter().map(|fault| format!("{} {}", fault.place, fault.fate.word()));
            Some(format!("{name}.cross.fates={}", words.collect::<Vec<_>>().join(", ")))
        };
        routers.iter().filter_map(setting).collect()
    }
}
