//! Visits of hosts to cells, and pauses of delivery at hand-offs.

use std::collections::BTreeMap;

use lasthop_proto::machine::StageId;
use lasthop_proto::units::Time;
use lasthop_proto::wire::Addr;
use serde::{Deserialize, Serialize};

use crate::layout::Layout;

/// Number of visits listed individually.
const LISTED: usize = 256;

/// A visit of a host to a cell.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Visit {
    /// The host's address.
    pub host: String,
    /// The cell's name.
    pub cell: String,
    /// Time of arrival, seconds.
    pub from_s: f64,
    /// Time of departure or end of the run, seconds.
    pub to_s: f64,
    /// Time from the last delivery to or from the host before its arrival to the first one after, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause_s: Option<f64>,
}

/// Hand-offs during data transfers, summed over all hosts.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Handoffs {
    /// Number of hand-offs.
    pub count: u64,
    /// Mean time from the last delivery before to the first after, seconds.
    pub pause_mean_s: f64,
    /// Longest such time, seconds.
    pub pause_max_s: f64,
    /// Bytes of agents' state that moved between base stations over the wired network.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub state_bytes: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde calls")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// A visit under construction.
#[derive(Debug)]
struct VisitRecord {
    host: Addr,
    stage: StageId,
    from: Time,
    to: Option<Time>,
    pause_s: Option<f64>,
}

/// State of a mobile host.
#[derive(Debug, Default)]
struct Mobile {
    delivered: Option<Time>,
    /// Set after an arrival in another cell: the index of the visit, if it is listed.
    came: Option<Option<usize>>,
}

/// Collects visits and pauses at hand-offs.
#[derive(Debug, Default)]
pub(super) struct Visits {
    visits: Vec<VisitRecord>,
    mobiles: BTreeMap<Addr, Mobile>,
    handoffs: Handoffs,
}

impl Visits {
    /// Handles the arrival of a host in the cell of the base station at `stage`, or its departure.
    pub(super) fn turn(&mut self, at: Time, stage: StageId, host: Addr, arrived: bool) {
        if !arrived {
            let open = |visit: &&mut VisitRecord| {
                (visit.host, visit.stage, visit.to) == (host, stage, None)
            };
            if let Some(visit) = self.visits.iter_mut().find(open) {
                visit.to = Some(at);
            }
            return;
        }
        let listed = (self.visits.len() < LISTED).then_some(self.visits.len());
        if listed.is_some() {
            self.visits.push(VisitRecord { host, stage, from: at, to: None, pause_s: None });
        }
        let mobile = self.mobiles.entry(host).or_default();
        // Without an earlier delivery it is no handoff. A pause over several handoffs belongs to the first.
        if mobile.delivered.is_some() && mobile.came.is_none() {
            mobile.came = Some(listed);
        }
    }

    /// Counts agents' state that starts its way to another base station.
    pub(super) fn state(&mut self, bytes: u64, arrived: bool) {
        self.handoffs.state_bytes += if arrived { 0 } else { bytes };
    }

    /// Handles a delivery of data between these hosts.
    #[inline]
    pub(super) fn delivered(&mut self, at: Time, hosts: [Addr; 2]) {
        if !self.mobiles.is_empty() {
            hosts.into_iter().for_each(|host| self.delivered_with(at, host));
        }
    }

    fn delivered_with(&mut self, at: Time, host: Addr) {
        let Some(mobile) = self.mobiles.get_mut(&host) else { return };
        let before = mobile.delivered.replace(at);
        if let (Some(visit), Some(before)) = (mobile.came.take(), before) {
            let pause_s = at.since(before).as_secs_f64();
            let all = &mut self.handoffs;
            all.count += 1;
            all.pause_mean_s += (pause_s - all.pause_mean_s) / all.count as f64;
            all.pause_max_s = all.pause_max_s.max(pause_s);
            if let Some(visit) = visit {
                self.visits[visit].pause_s = Some(pause_s);
            }
        }
    }

    /// The hand-offs, if hosts move.
    pub(super) fn handoffs(&self) -> Option<Handoffs> {
        (!self.mobiles.is_empty()).then_some(self.handoffs)
    }

    pub(super) fn listed(&self, layout: &Layout, end: Time) -> Vec<Visit> {
        let listed = self.visits.iter().map(|visit| Visit {
            host: visit.host.to_string(),
            cell: layout.name(visit.stage).to_owned(),
            from_s: visit.from.as_secs_f64(),
            to_s: visit.to.unwrap_or(end).as_secs_f64(),
            pause_s: visit.pause_s,
        });
        listed.collect()
    }
}
