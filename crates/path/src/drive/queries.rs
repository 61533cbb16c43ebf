//! Queries of a path: its stages, counts, and whether its transfers are over.

use core::ops::Range;

use lasthop_proto::machine::{Machine as _, StageId};

use super::Path;
use crate::counts::StageCount;
use crate::stage::Stage;

impl Path {
    /// Transfers of our hosts that are not over.
    pub fn unfinished(&self) -> usize {
        self.host_stages.iter().map(|i| self.stages[*i].unfinished()).sum()
    }

    /// Whether all transfers of our hosts are over. The host that was unfinished last time is checked first.
    #[inline]
    pub fn is_finished(&mut self) -> bool {
        let busy = self.host_stages.get(self.busy).map(|i| &self.stages[*i]);
        busy.is_none_or(|host| host.unfinished() == 0) && !self.find_busy()
    }

    /// Searches a host with unfinished transfers.
    fn find_busy(&mut self) -> bool {
        let found = self.host_stages.iter().position(|i| self.stages[*i].unfinished() > 0);
        found.inspect(|busy| self.busy = *busy).is_some()
    }

    pub fn stages(&self) -> &[Stage] {
        &self.stages
    }

    pub fn stage_mut(&mut self, i: usize) -> Option<&mut Stage> {
        self.stages.get_mut(i)
    }

    pub fn inner(&self) -> Range<usize> {
        self.inner.clone()
    }

    pub fn host_stages(&self) -> &[usize] {
        &self.host_stages
    }

    /// Packets carried by links and radios.
    pub fn hops(&self) -> u64 {
        self.hops
    }

    /// Packets at each stage so far.
    pub fn counts(&self) -> Vec<(StageId, StageCount)> {
        let stages = self.stages.iter().zip(&self.counts).enumerate();
        stages
            .map(|(i, (stage, count))| {
                let retired = self.retired.iter().filter(|(at, _)| *at == i);
                let buffered = self.roam.as_ref().map_or(0, |roam| roam.held(i));
                let held =
                    stage.holds() + retired.map(|(_, old)| old.holds()).sum::<usize>() + buffered;
                let mut count = StageCount { held: held as u64, ..*count };
                if matches!(stage, Stage::Host(_) | Stage::End(_)) {
                    // A host consumes every packet.
                    count.ended = count.arrived;
                }
                (StageId(i as u16), count)
            })
            .collect()
    }

    /// Whether a packet is between the hosts.
    pub fn has_packets(&self) -> bool {
        let roam = |i: usize| self.roam.as_ref().map_or(0, |roam| roam.held(i)) > 0;
        let stages = self.stages.iter().enumerate();
        stages.into_iter().any(|(i, stage)| stage.holds() > 0 || roam(i))
            || self.retired.iter().any(|(_, old)| old.holds() > 0)
    }

    /// The stage of an endless loop, if there was one: of packets, which were dropped, or of a timer, which was postponed.
    pub fn stuck(&self) -> Option<StageId> {
        self.stuck
    }
}
