//! Visits of a flow's mobile host to cells.

use lasthop_proto::machine::StageId;
use lasthop_proto::units::Time;
use serde::{Deserialize, Serialize};

use crate::layout::{Layout, Role};

/// A visit of the flow's mobile host to a cell.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CellStay {
    /// The cell's name.
    pub cell: String,
    /// Time of arrival, seconds since the start of the run.
    pub from_s: f64,
    /// Time of departure or end of the observation.
    pub to_s: f64,
}

/// Limit of recorded visits; a plot with more is illegible.
const MOST: usize = 10_000;

/// Collects the visits.
#[derive(Debug, Default)]
pub(super) struct Stays {
    /// Names of base stations by stage.
    bases: Vec<(StageId, String)>,
    stays: Vec<(StageId, Time, Option<Time>)>,
}

impl Stays {
    pub(super) fn of(layout: &Layout) -> Stays {
        let stages = layout.stages.iter().enumerate();
        let bases = stages.filter(|(_, stage)| stage.role == Role::Base);
        let bases = bases.map(|(i, base)| (StageId(i as u16), base.name.clone())).collect();
        Stays { bases, stays: Vec::new() }
    }

    /// Handles the arrival of the host at the base station at `stage`, or its departure.
    pub(super) fn turn(&mut self, at: Time, stage: StageId, arrived: bool) {
        if arrived {
            if self.stays.len() < MOST {
                self.stays.push((stage, at, None));
            }
        } else if let Some(stay) =
            self.stays.iter_mut().rfind(|stay| stay.0 == stage && stay.2.is_none())
        {
            stay.2 = Some(at);
        }
    }

    pub(super) fn listed(&self, end: Time) -> Vec<CellStay> {
        let name = |stage| self.bases.iter().find(|(base, _)| *base == stage);
        let stays = self.stays.iter().filter_map(|(stage, from, to)| {
            Some(CellStay {
                cell: name(*stage)?.1.clone(),
                from_s: from.as_secs_f64(),
                to_s: to.unwrap_or(end).as_secs_f64(),
            })
        });
        stays.collect()
    }
}
