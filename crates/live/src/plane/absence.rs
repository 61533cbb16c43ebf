//! Decisions of the kernel's program while the station was too slow or stopped.
//!
//! Where no connection ends at the station, the program forwards all that comes after [`LIMIT`](super::LIMIT). Where some do, it
//! forwards the rest after [`LIMIT_OTHERS`](super::LIMIT_OTHERS) and leaves those to the station until
//! [`LIMIT_ENDING`](super::LIMIT_ENDING); then it resets their ends. In both cases the packet sockets have copies of all frames,
//! so the station must know which of them are its own.

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
    /// The station is alive at `now` of the system's monotonic clock.
    pub(crate) fn getting_on(&mut self, now: u64) {
        self.control.alive.store(now, SeqCst);
        self.beat();
    }

    /// Whether the program forwards by itself what packet sockets receive as well.
    pub(crate) fn is_stale(&self) -> bool {
        self.control.stale.load(SeqCst) != 0
    }

    /// The packet sockets are empty: the program leaves frames to them again.
    pub(crate) fn resume(&mut self) {
        self.publish(HOLD);
        self.control.stale.store(0, SeqCst);
    }

    /// How long the program has waited in vain for the station, as of `now` of the system's monotonic clock.
    pub(crate) fn away(&self, now: u64) -> Span {
        Span(now.saturating_sub(self.control.seen_at.load(SeqCst)))
    }

    /// What packet sockets had that was not passed on: `late` packets that the kernel has not forwarded, and `stale` ones that
    /// the kernel has.
    pub(crate) fn missed(&mut self, late: u64, stale: u64) {
        self.own.late += late;
        self.own.stale += stale;
    }

    /// Whether connections end at the station; `now` is the time of the system's monotonic clock.
    pub(crate) fn set_ends(&mut self, ends: bool, now: u64) {
        self.ends = ends;
        self.getting_on(now);
        if self.needs == Needs::Everything {
            self.control.mode.store(if ends { END } else { HOLD }, SeqCst);
        }
    }

    /// Whether connections end at the station.
    pub(crate) fn ends(&self) -> bool {
        self.ends
    }

    /// How long the station has not reported to be alive.
    pub(crate) fn silence(&self, now: u64) -> Span {
        Span(now.saturating_sub(self.control.alive.load(SeqCst)))
    }

    /// Whether the program has given up connections that end at the station, and the station has not looked.
    pub(crate) fn has_lost(&self) -> bool {
        self.control.lost.load(SeqCst) != self.lost
    }

    /// Connections that the program has given up, by their flows from left to right, and how each ended.
    pub(crate) fn lost(&mut self) -> Vec<(FlowKey, Bypass)> {
        self.lost = self.control.lost.load(SeqCst);
        self.endings.lost()
    }

    /// Frames from `side` that were left to the packet sockets before the program began to forward by itself.
    pub(crate) fn marked_from(&self, side: Side) -> u64 {
        self.control.mark[side.index()].load(SeqCst)
    }

    /// Frames from `side` that the program has forwarded by itself so far, while packet sockets took everything.
    pub(crate) fn passed_from(&self, side: Side) -> u64 {
        self.control.passed[side.index()].load(SeqCst)
    }

    /// Whether the connection with this flow from left to right ends at the station, as far as the program knows.
    pub(crate) fn ends_here(&self, flow: FlowKey) -> bool {
        self.endings.has(flow)
    }

    /// The connection with this flow ends at the station from now on. Packets to its ends have these link headers.
    ///
    /// # Errors
    /// When the system has no memory left. Then the connection is treated like any other.
    pub(crate) fn add_ending(
        &mut self,
        flow: FlowKey,
        resumes: bool,
        links: [Vec<u8>; 2],
    ) -> io::Result<()> {
        self.endings.add(flow, resumes, links)
    }

    /// The connection with this flow does not end at the station any more.
    pub(crate) fn remove_ending(&mut self, flow: FlowKey) {
        self.endings.remove(flow);
    }

    /// No other connections than `flows` end at the station.
    pub(crate) fn retain_endings(&mut self, flows: &BTreeSet<FlowKey>) {
        self.endings.retain(flows);
    }

    /// The map of the connections that end at the station, for the station that comes after this one.
    pub fn endings(&self) -> &impl AsFd {
        &self.endings.map
    }
}
