//! Patterns of faults: the packets with another fate than plain arrival.

use lasthop_path::ChoicePoint;
use lasthop_proto::link::{Fate, Silence};
use lasthop_proto::machine::{Side, StageId};
use lasthop_proto::units::Span;
use lasthop_scenario::{Scenario, StageKind};
use lasthop_sim::layout;
use serde::{Deserialize, Serialize};

/// A packet with a fate other than plain arrival.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(into = "Written", try_from = "Written")]
pub struct Fault {
    pub point: ChoicePoint,
    /// Its number among the packets that this point decides about, from 1.
    pub place: u64,
    pub fate: Fate,
}

/// The form of a fault in JSON.
#[derive(Serialize, Deserialize)]
struct Written {
    /// The number of the stage; the left host is 0.
    stage: u16,
    /// The direction of a radio's channel; a router has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    towards: Option<String>,
    place: u64,
    fate: String,
}

impl From<Fault> for Written {
    fn from(fault: Fault) -> Written {
        let towards = match fault.point {
            ChoicePoint::Router(_) => None,
            ChoicePoint::Channel(_, side) => Some(side.word().to_owned()),
        };
        let (place, fate) = (fault.place, fault.fate.word().to_owned());
        Written { stage: fault.point.stage().0, towards, place, fate }
    }
}

impl TryFrom<Written> for Fault {
    type Error = String;

    fn try_from(written: Written) -> Result<Fault, String> {
        let stage = StageId(written.stage);
        let point = match written.towards {
            None => ChoicePoint::Router(stage),
            Some(word) => {
                let side = Side::BOTH.into_iter().find(|side| side.word() == word);
                ChoicePoint::Channel(stage, side.ok_or_else(|| format!("no direction `{word}`"))?)
            }
        };
        let fate =
            Fate::parse(&written.fate).ok_or_else(|| format!("no fate `{}`", written.fate))?;
        Ok(Fault { point, place: written.place, fate })
    }
}

/// Faults in the order of their decisions.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pattern(pub Vec<Fault>);

impl Pattern {
    pub(crate) fn with(&self, fault: Fault) -> Pattern {
        let mut faults = self.0.clone();
        faults.push(fault);
        Pattern(faults)
    }

    /// The silences among its faults.
    pub(crate) fn silences(&self) -> impl Iterator<Item = Silence> + Clone {
        self.0.iter().filter_map(|fault| match fault.fate {
            Fate::Silent(silence) => Some(silence),
            _ => None,
        })
    }

    /// The same faults with silences that begin at an earlier packet of the same point, the latest first.
    pub(crate) fn earlier_silences(&self) -> impl Iterator<Item = Pattern> {
        let silent = |fault: &Fault| matches!(fault.fate, Fate::Silent(_));
        let most = self.0.iter().filter(|fault| silent(fault)).map(|fault| fault.place).max();
        (1..most.unwrap_or(0)).map(move |by| {
            let place =
                |fault: &Fault| fault.place.saturating_sub(if silent(fault) { by } else { 0 });
            Pattern(
                self.0.iter().map(|fault| Fault { place: place(fault).max(1), ..*fault }).collect(),
            )
        })
    }

    /// In the form of `--set`, one for each router and channel: `wired.cross.fates=5 drop, 7 late`.
    pub fn settings(&self, scenario: &Scenario) -> Vec<String> {
        let stages = layout(scenario).stages;
        let mut points: Vec<ChoicePoint> = self.0.iter().map(|fault| fault.point).collect();
        points.sort_unstable();
        points.dedup();
        let setting = |point: &ChoicePoint| {
            let name = &stages.get(usize::from(point.stage().0))?.name;
            let stage = every_stage(scenario).find(|stage| stage.name == *name)?;
            let key = match (point, &stage.kind) {
                (ChoicePoint::Router(_), _) => "cross.fates".to_owned(),
                (ChoicePoint::Channel(_, side), StageKind::Serial(_)) => {
                    format!("link.frame-fates-{}", side.word())
                }
                (ChoicePoint::Channel(_, side), _) => format!("errors-{}.fates", side.word()),
            };
            let mut here: Vec<&Fault> = self.0.iter().filter(|f| f.point == *point).collect();
            here.sort_unstable_by_key(|fault| fault.place);
            let words = here.iter().map(|fault| format!("{} {}", fault.place, fault.fate.word()));
            Some(format!("{name}.{key}={}", words.collect::<Vec<_>>().join(", ")))
        };
        points.iter().filter_map(setting).collect()
    }

    /// The sum of the delays of its late packets.
    pub(crate) fn lateness(&self, scenario: &Scenario) -> Span {
        let stages = layout(scenario).stages;
        let late = |fault: &Fault| {
            let name = &stages.get(usize::from(fault.point.stage().0))?.name;
            let stage = every_stage(scenario).find(|stage| stage.name == *name)?;
            let StageKind::Cross(cross) = &stage.kind else { return None };
            let fates = cross.fates.as_ref()?;
            match fault.fate {
                Fate::Late => Some(fates.late),
                Fate::VeryLate => Some(fates.very_late),
                _ => None,
            }
        };
        self.0.iter().filter_map(late).fold(Span::ZERO, |sum, late| sum + late)
    }
}

/// The stages of the wired part and of all cells.
pub(crate) fn every_stage(scenario: &Scenario) -> impl Iterator<Item = &lasthop_scenario::Stage> {
    let cells = scenario.roaming.iter().flat_map(|roaming| &roaming.cells);
    scenario.path.iter().chain(cells.flat_map(|cell| &cell.path))
}
