//! A copy of a running path, for runs that differ from this time on.

use lasthop_proto::channel::Scripted;
use lasthop_proto::link::Fate;
use lasthop_proto::machine::{Side, StageId};
use lasthop_proto::units::Time;

use super::Path;
use crate::stage::Stage;

impl Path {
    /// A copy in the same state. `None` if a host has another protocol stack: it cannot be copied.
    pub fn fork(&self) -> Option<Path> {
        let retired = self.retired.iter().map(|(i, stage)| Some((*i, stage.fork()?)));
        Some(Path {
            stages: self.stages.iter().map(Stage::fork).collect::<Option<_>>()?,
            inner: self.inner.clone(),
            next_hops: self.next_hops.clone(),
            found: self.found,
            host_stages: self.host_stages.clone(),
            counts: self.counts.clone(),
            wakes: self.wakes.clone(),
            out: self.out.clone(),
            moving: self.moving.clone(),
            leaving: self.leaving.clone(),
            now: self.now,
            free_until: self.free_until,
            inner_wakes: self.inner_wakes,
            hops: self.hops,
            host_called: self.host_called,
            retired: retired.collect::<Option<_>>()?,
            roam: self.roam.clone(),
            access: self.access.clone(),
            branches: self.branches,
            busy: self.busy,
            stuck: self.stuck,
        })
    }

    /// The stages that decide about fates of packets, each with the number of its decisions so far.
    pub fn choices(&self) -> impl Iterator<Item = (ChoicePoint, u64)> {
        let stages = self.stages.iter().enumerate();
        stages.flat_map(|(i, stage)| {
            let stage_id = StageId(i as u16);
            let router = match stage {
                Stage::Cross(cross) => cross.decided(),
                _ => None,
            };
            let router = router.map(|decided| (ChoicePoint::Router(stage_id), decided));
            let channels = Side::BOTH.into_iter().filter_map(move |side| {
                let decided = stage.script(side)?.decided();
                Some((ChoicePoint::Channel(stage_id, side), decided))
            });
            router.into_iter().chain(channels)
        })
    }

    /// When the frame at `place` of a channel began. `None` for a router.
    pub fn start_of(&self, point: ChoicePoint, place: u64) -> Option<Time> {
        let ChoicePoint::Channel(stage, side) = point else { return None };
        self.stages.get(usize::from(stage.0))?.script(side)?.start_of(place)
    }

    /// Whether `point` can apply `fate` to a packet.
    pub fn can_meet(&self, point: ChoicePoint, fate: Fate) -> bool {
        match (point, self.stages.get(usize::from(point.stage().0))) {
            (ChoicePoint::Router(_), _) => true,
            (_, Some(Stage::Radio(_) | Stage::VariedRadio(_))) => Scripted::is_known(fate),
            // Link layers and medium access discard damaged frames.
            _ => fate == Fate::Dropped,
        }
    }

    /// Sets the fate of the packet with index `place`, before `point` has decided about it.
    pub fn set_fate(&mut self, point: ChoicePoint, place: u64, fate: Fate) {
        let Some(stage) = self.stages.get_mut(usize::from(point.stage().0)) else { return };
        match (point, stage) {
            (ChoicePoint::Router(_), Stage::Cross(cross)) => cross.set_fate(place, fate),
            (ChoicePoint::Channel(_, side), stage) => {
                stage.script_mut(side).into_iter().for_each(|script| script.set(place, fate));
            }
            _ => {}
        }
    }
}

/// Decides about the fates of packets: a router with `fates`, or a scripted channel.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ChoicePoint {
    /// A router.
    Router(StageId),
    /// The channel of a radio, or a serial line, towards this side.
    Channel(StageId, Side),
}

impl ChoicePoint {
    pub fn stage(self) -> StageId {
        let (ChoicePoint::Router(stage) | ChoicePoint::Channel(stage, _)) = self;
        stage
    }
}
