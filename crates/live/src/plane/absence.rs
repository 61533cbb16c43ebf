//! Decisions of the kernel's program while the station is too slow or stopped.
//!
//! If no connection ends at the station, the program forwards all frames once the station has made no progress for
//! [`LIMIT`](super::LIMIT). If some do, it forwards the frames of other connections after
//! [`LIMIT_OTHERS`](super::LIMIT_OTHERS), and resets the ends of these connections after
//! [`LIMIT_ENDING`](super::LIMIT_ENDING). In both cases the packet sockets have received all frames as well, so the
//! station must distinguish the frames that the program has already forwarded.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering::SeqCst;

use lasthop_proto::agent::{Bypass, Needs};
use lasthop_proto::machine::Side;
use lasthop_proto::units::Span;
use lasthop_proto::wire::FlowKey;

use super::Plane;
use super::shared::{END, HOLD};

impl Plane {
    /// Reports to the program that the station is alive at `now` of the system's monotonic clock.
    pub(crate) fn report_alive(&mut self, now: u64) {
        self.control.alive.store(now, SeqCst);
        self.beat();
    }

    /// Whether the program forwards frames without the station, which the packet sockets also receive.
    pub(crate) fn is_stale(&self) -> bool {
        self.control.stale.load(SeqCst) != 0
    }

    /// Called when the packet sockets are empty: the program leaves frames to them again.
    pub(crate) fn resume(&mut self) {
        self.publish(HOLD);
        self.control.stale.store(0, SeqCst);
    }

    /// Time since the program last saw progress of the station, at `now` of the system's monotonic clock.
    pub(crate) fn away(&self, now: u64) -> Span {
        Span(now.saturating_sub(self.control.seen_at.load(SeqCst)))
    }

    /// Counts frames of the packet sockets that the station did not forward: `late` ones, which the kernel has not forwarded
    /// either, and `stale` ones, which it has.
    pub(crate) fn missed(&mut self, late: u64, stale: u64) {
        self.own.late += late;
        self.own.stale += stale;
    }

    /// Sets whether connections end at the station; `now` is the time of the system's monotonic clock.
    pub(crate) fn set_ends(&mut self, ends: bool, now: u64) {
        self.ends = ends;
        self.report_alive(now);
        if self.needs == Needs::Everything {
            self.control.mode.store(if ends { END } else { HOLD }, SeqCst);
        }
    }

    /// Whether connections end at the station.
    pub(crate) fn ends(&self) -> bool {
        self.ends
    }

    /// Time since the station last reported that it is alive.
    pub(crate) fn silence(&self, now: u64) -> Span {
        Span(now.saturating_sub(self.control.alive.load(SeqCst)))
    }

    /// Whether the program has reset connections that end at the station since the last call of [`Plane::lost`].
    pub(crate) fn has_lost(&self) -> bool {
        self.control.lost.load(SeqCst) != self.lost
    }

    /// The connections that the program has reset or removed, by their flows from left to right, with the action of the
    /// program.
    pub(crate) fn lost(&mut self) -> Vec<(FlowKey, Bypass)> {
        self.lost = self.control.lost.load(SeqCst);
        self.endings.lost()
    }

    /// Number of frames from `side` that were left to the packet sockets before the program began to forward.
    pub(crate) fn marked_from(&self, side: Side) -> u64 {
        self.control.mark[side.index()].load(SeqCst)
    }

    /// Number of frames from `side` that the program has forwarded and that packet sockets have received as well.
    pub(crate) fn passed_from(&self, side: Side) -> u64 {
        self.control.passed[side.index()].load(SeqCst)
    }

    /// Whether the program lists the connection with this flow, from left to right, as ending at the station.
    pub(crate) fn ends_here(&self, flow: FlowKey) -> bool {
        self.endings.has(flow)
    }

    /// Adds a connection that ends at the station to the program's list. Packets to its ends have these link headers.
    ///
    /// # Errors
    /// If the system has no memory left. Then the connection is treated like any other.
    pub(crate) fn add_ending(
        &mut self,
        flow: FlowKey,
        resumes: bool,
        links: [Vec<u8>; 2],
    ) -> io::Result<()> {
        self.endings.add(flow, resumes, links)
    }

    /// Removes the connection with this flow from the list.
    pub(crate) fn remove_ending(&mut self, flow: FlowKey) {
        self.endings.remove(flow);
    }

    /// Removes all connections but `flows` from the list.
    pub(crate) fn retain_endings(&mut self, flows: &BTreeSet<FlowKey>) {
        self.endings.retain(flows);
    }

    /// The map with the list, for the next station.
    pub fn endings(&self) -> &impl AsFd {
        &self.endings.map
    }
}
