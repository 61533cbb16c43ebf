//! What stands above a link's end in a radio hop: queues, packets in pieces, and the stage's neighbours.

use std::collections::VecDeque;

use super::pieces::{Cutter, Gatherer};
use super::waiting::Waiting;
use crate::air::Station;
use crate::event::{Cause, LinkNote, Op, Wants, What};
use crate::link::end::Above;
use crate::link::frame::Load;
use crate::machine::{Out, Side, Signal};
use crate::wire::PacketId;

/// Packets of each kind that a station remembers.
const REMEMBERED: usize = 256;

/// The last packets that came to an end at a station, either way: a link layer gives up what has arrived, where all
/// acknowledgements were lost, and what was given up may arrive, where a copy was still on its way.
#[derive(Clone, Debug, Default)]
pub(super) struct Ended {
    handed_up: VecDeque<PacketId>,
    given_up: VecDeque<PacketId>,
}

fn remember(packets: &mut VecDeque<PacketId>, id: PacketId) {
    if packets.len() == REMEMBERED {
        packets.pop_front();
    }
    packets.push_back(id);
}

/// What stands above one end.
#[derive(Debug)]
pub(super) struct Upper {
    pub station: Station,
    /// Where the network layer is.
    pub own: Side,
    pub waiting: Waiting,
    pub cutter: Option<Cutter>,
    /// What is being put together, by sender.
    pub gatherers: Vec<Gatherer>,
    /// Packets in pieces that were given up last.
    pub given_up: VecDeque<u32>,
}

/// An end's view of what stands above it, during one call.
pub(super) struct UpperView<'a> {
    pub upper: &'a mut Upper,
    /// By station.
    pub ended: &'a mut [Ended],
    /// Packets inside of the hop.
    pub inside: &'a mut u64,
    pub out: &'a mut Out,
}

impl Above for UpperView<'_> {
    fn waits(&self, to: Station) -> bool {
        let upper = &self.upper;
        upper.waiting.waits(to) || upper.cutter.as_ref().is_some_and(|cutter| cutter.is_busy(to))
    }

    fn next_destination(&self) -> Option<Station> {
        let begun = |cutter: &Cutter| {
            (0..self.upper.gatherers.len() as u8).map(Station).find(|to| cutter.is_busy(*to))
        };
        self.upper.cutter.as_ref().and_then(begun).or_else(|| self.upper.waiting.next())
    }

    fn take(&mut self, to: Station) -> Option<Load> {
        let now = self.out.now();
        let Upper { waiting, cutter, own, .. } = &mut *self.upper;
        let (side, out) = (own.other(), &mut *self.out);
        let mut next = || waiting.take(now, side, to, out);
        match cutter {
            Some(cutter) => cutter.take(to, next),
            None => next().map(Load::Packet),
        }
    }

    fn release(&mut self, from: Station, load: Load) {
        let upper = &mut *self.upper;
        let packet = match load {
            Load::None => return,
            Load::Packet(packet) => packet,
            Load::Piece(piece) => {
                let gatherer = &mut upper.gatherers[from.index()];
                let spoilt = gatherer.is_spoilt(piece.id);
                if spoilt && piece.index + 1 == piece.count {
                    gatherer.forget(piece.id);
                    self.out.discard(upper.own, piece.packet, Cause::PieceLost);
                    return;
                }
                let Some(packet) = gatherer.add(piece) else { return };
                packet
            }
        };
        let ended = &mut self.ended[upper.station.index()];
        remember(&mut ended.handed_up, packet.id);
        let mut packet = packet;
        if let Some(i) = ended.given_up.iter().position(|id| *id == packet.id) {
            // Its life has ended already: this is another one.
            ended.given_up.remove(i);
            *self.inside += 1;
            self.out.introduce(upper.own, &mut packet, Cause::LateCopy);
        }
        self.out.send(upper.own, packet);
    }

    fn give_up(&mut self, to: Station, load: Load, cause: Cause) {
        let upper = &mut *self.upper;
        let packet = match load {
            Load::None => return,
            Load::Packet(packet) => packet,
            Load::Piece(piece) => {
                if upper.given_up.contains(&piece.id) {
                    return;
                }
                if upper.given_up.len() == REMEMBERED {
                    upper.given_up.pop_front();
                }
                upper.given_up.push_back(piece.id);
                if let Some(cutter) = &mut upper.cutter {
                    cutter.abandon(to, piece.id);
                }
                piece.packet
            }
        };
        // Only its acknowledgement was lost if it has been handed up.
        let ended = &mut self.ended[to.index()];
        if !ended.handed_up.contains(&packet.id) {
            remember(&mut ended.given_up, packet.id);
            self.out.discard(upper.own.other(), packet, cause);
        }
    }

    fn is_open(&self, to: Station) -> bool {
        match &self.upper.waiting {
            Waiting::InOrder { .. } => true,
            Waiting::Scheduled(scheduler) => scheduler.is_open(to),
        }
    }

    fn repeat(&mut self, to: Station, load: &Load, cause: Cause) {
        if self.upper.waiting.scheduler().is_some_and(|scheduler| scheduler.repeated(to)) {
            self.note(to, LinkNote::ChannelBad);
        }
        if let Some(packet) = load.packet() {
            self.out.packet_event(Op::Repeated(cause), self.upper.own.other(), packet);
        }
    }

    fn attempt_failed(&mut self, load: &Load, tries: u32, discarded: bool) {
        let Some(packet) = load.packet() else { return };
        if let (Some(flow), Some(segment)) = (packet.flow(), packet.segment()) {
            let (seq, len) = (segment.seq, packet.wire_len());
            let failed = Signal::AttemptFailed { flow, seq, len, tries, discarded };
            self.out.signal(self.upper.own, failed);
        }
    }

    fn note(&mut self, peer: Station, note: LinkNote) {
        if !self.out.wants(Wants::METRICS) {
            return;
        }
        self.out.event(What::Link { station: self.upper.station, peer, note });
    }
}
