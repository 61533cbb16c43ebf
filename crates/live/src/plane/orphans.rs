//! Connections that ended at a station which has died. The base filter answers their segments by resets, as long as it has the
//! station's map. The next station, which replaces the filter, finds the map and resets the ends that were silent until then.

use std::os::fd::OwnedFd;

use lasthop_proto::machine::Side;
use lasthop_proto::units::Span;
use lasthop_proto::wire::{Body, Flags, FlowKey, Packet, Segment, Seq};

use super::base;
use super::ending::{Entry, MOST, Map, NAME};
use crate::frame::{self, Outgoing};

/// Each end gets its reset so often, since a last hop loses packets.
pub const ROUNDS: u32 = 3;

/// Between two resets, and behind the last one. An end that has another number by now takes no reset. It acknowledges the probe
/// before it, and the base filter answers that.
pub const PAUSE: Span = Span::millis(60);

/// The connections that ended at a station which is gone.
#[derive(Debug)]
pub struct Orphans(Map);

impl Orphans {
    /// Those of a station whose map this is; `None` if it is something else.
    pub fn of(map: OwnedFd) -> Option<Orphans> {
        Map::of(map, NAME).ok().map(Orphans)
    }

    /// Those of the station that has left the base filter at an interface. Only root finds them so: it takes CAP_SYS_ADMIN.
    pub fn at(ifindex: u32) -> Option<Orphans> {
        Map::of_program(base::program(ifindex)?, NAME).ok().map(Orphans)
    }

    /// Resets for all their ends, each behind a probe: frames with the side they go to.
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
    // A byte that it has received.
    let probe = write(seq + u32::MAX, ack, Flags::ACK, Body::copy_of(&[0]))?;
    Some((to, [probe, write(seq, Seq(0), Flags::RST, Body::EMPTY)?]))
}
