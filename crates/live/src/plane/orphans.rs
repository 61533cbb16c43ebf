//! Connections that ended at a dead station. While the base filter has the station's map, it answers their segments by
//! resets. The next station replaces the filter, finds the map, and resets the ends that were silent until then.

use std::os::fd::OwnedFd;

use lasthop_proto::machine::Side;
use lasthop_proto::units::Span;
use lasthop_proto::wire::{Body, Flags, FlowKey, Packet, Segment, Seq};

use super::base;
use super::ending::{Entry, MOST, Map, NAME};
use crate::frame::{self, Outgoing};

/// Number of times that each end is reset, since a last hop loses packets.
pub const ROUNDS: u32 = 3;

/// Pause between two resets, and after the last one. An end with another next number ignores a reset. It acknowledges
/// the probe before the reset, and the base filter answers this ACK with a reset of the right number.
pub const PAUSE: Span = Span::millis(60);

/// The connections that ended at a dead station.
#[derive(Debug)]
pub struct Orphans(Map);

impl Orphans {
    /// The connections in the map of a station; `None` if `map` is no such map.
    pub fn of(map: OwnedFd) -> Option<Orphans> {
        Map::of(map, NAME).ok().map(Orphans)
    }

    /// The connections of the station that has left the base filter at an interface. This needs CAP_SYS_ADMIN, so only
    /// root finds them.
    pub fn at(ifindex: u32) -> Option<Orphans> {
        Map::of_program(base::program(ifindex)?, NAME).ok().map(Orphans)
    }

    /// Frames for all ends, with the side of each end: a probe, and a reset behind it.
    pub fn resets(&self) -> Vec<(Side, [Outgoing; 2])> {
        let mut frames = Vec::new();
        for (key, value) in self.0.entries(MOST as usize) {
            let entry = Entry::read(&value);
            if !entry.resumes {
                let flow = entry.flow(&key);
                frames.extend(
                    [Side::Left, Side::Right].into_iter().filter_map(|to| reset(to, flow, &entry)),
                );
            }
        }
        frames
    }
}

fn reset(to: Side, flow: FlowKey, entry: &Entry) -> Option<(Side, [Outgoing; 2])> {
    let seq = entry.next[to.index()]?;
    let ack = entry.next[to.other().index()].unwrap_or(Seq(0));
    let link = Some(&entry.links[to.index()]).filter(|link| !link.is_empty())?;
    let FlowKey { src, dst, src_port, dst_port } = flow.rightward(to.other());
    let write = |seq, ack, flags, body| {
        let segment = Segment::new(src_port, dst_port, seq, ack, flags);
        frame::write(&Packet::tcp(src, dst, segment, body), link)
    };
    // The probe repeats a byte that the end has received.
    let probe = write(seq + u32::MAX, ack, Flags::ACK, Body::copy_of(&[0]))?;
    Some((to, [probe, write(seq, Seq(0), Flags::RST, Body::EMPTY)?]))
}
