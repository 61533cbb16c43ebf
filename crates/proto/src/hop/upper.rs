//! The layer above a link's end in a radio hop: queues, fragmentation, and the stage's neighbours.

use std::collections::VecDeque;

use super::pieces::{Cutter, Gatherer};
use super::waiting::Waiting;
use crate::air::Station;
use crate::event::{Cause, EventKind, Interest, LinkNote, Op};
use crate::link::end::Above;
use crate::link::frame::Load;
use crate::machine::{Out, Side, Signal};
use crate::wire::{Packet, PacketId};

/// Limit of stored packet identities of each kind per station.
const REMEMBERED: usize = 256;

/// Packets that ended recently at a station. A link layer may give up a packet that has arrived, if all
/// acknowledgements were lost. And a packet that was given up may arrive, if a copy was still under way.
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

/// The layer above one end.
#[derive(Clone, Debug)]
pub(super) struct Upper {
    pub station: Station,
    /// Side of the network layer.
    pub own: Side,
    pub waiting: Waiting,
    pub cutter: Option<Cutter>,
    /// Packets under reassembly, by sender.
    pub gatherers: Vec<Gatherer>,
    /// Fragmented packets that were given up recently.
    pub given_up: VecDeque<u32>,
}

/// The layer above an end, from the view of the end during one call.
pub(super) struct UpperView<'a> {
    pub upper: &'a mut Upper,
    /// By station.
    pub ended: &'a mut [Ended],
    /// Number of packets inside the hop.
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
            // Its first life has ended: this is a new one.
            ended.given_up.remove(i);
            *self.inside += 1;
            self.out.introduce(upper.own, &mut packet, Cause::LateCopy);
        }
        self.out.send(upper.own, packet);
    }

    fn discard(&mut self, from: Station, load: Load, cause: Cause) {
        let upper = &mut *self.upper;
        match load {
            Load::None => {}
            Load::Packet(packet) => self.out.discard(upper.own, packet, cause),
            // The packet ends with its last fragment.
            Load::Piece(piece) => {
                let gatherer = &mut upper.gatherers[from.index()];
                gatherer.spoil(piece.id);
                if piece.index + 1 == piece.count {
                    gatherer.forget(piece.id);
                    self.out.discard(upper.own, piece.packet, Cause::PieceLost);
                }
            }
        }
    }

    fn waits_for_order(&mut self, packet: &Packet) {
        self.out.packet_event(Op::Redirected(Cause::ReorderWait), self.upper.own, packet);
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
        // If it was delivered, only its acknowledgement was lost.
        let ended = &mut self.ended[to.index()];
        if !ended.handed_up.contains(&packet.id) {
            remember(&mut ended.given_up, packet.id);
            self.out.discard(upper.own.other(), packet, cause);
        }
    }

    fn is_open(&self, to: Station) -> bool {
        match &self.upper.waiting {
            Waiting::InOrder { .. } | Waiting::Airtime { .. } => true,
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
        if !self.out.accepts(Interest::RESULTS) {
            return;
        }
        self.out.event(EventKind::Link { station: self.upper.station, peer, note });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::frame::Piece;
    use crate::queue::csdp::CsdpConfig;
    use crate::queue::{Discipline, Limit, Queue};
    use crate::rng::Stream;
    use crate::units::{Span, Time};
    use crate::wire::{Addr, Body, Flags, Segment, Seq};

    const PEER: Station = Station(1);

    fn packet(id: u64) -> Packet {
        let (src, dst) = (Addr::v4(10, 0, 0, 1), Addr::v4(10, 0, 0, 2));
        let segment = Segment::new(1, 2, Seq(0), Seq(0), Flags::ACK);
        let body = Body::Pattern { stream: 1, len: 100, offset: 0 };
        Packet::tcp(src, dst, segment, body).with(|packet| packet.id = PacketId(id))
    }

    fn piece(id: u32, index: u16) -> Load {
        Load::Piece(Piece { packet: packet(id.into()), id, index, count: 3, bytes: 50 })
    }

    struct Bench {
        upper: Upper,
        ended: Vec<Ended>,
        inside: u64,
        out: Out,
    }

    impl Bench {
        /// A base station with two mobile stations.
        fn new(waiting: Waiting) -> Bench {
            let upper = Upper {
                station: Station::BASE,
                own: Side::Left,
                waiting,
                cutter: None,
                gatherers: (0..3).map(|_| Gatherer::default()).collect(),
                given_up: VecDeque::new(),
            };
            let out = Out::new(Interest::METRICS);
            Bench { upper, ended: vec![Ended::default(); 3], inside: 0, out }
        }

        fn in_order() -> Bench {
            let queue =
                |_| Queue::new(Limit::Packets(9), Discipline::Fifo, || Stream::new(1, "queue"));
            Bench::new(Waiting::new((0..3).map(queue).collect()))
        }

        fn view(&mut self) -> UpperView<'_> {
            UpperView {
                upper: &mut self.upper,
                ended: &mut self.ended,
                inside: &mut self.inside,
                out: &mut self.out,
            }
        }

        /// Number of packets that end when `load` is given up.
        fn give_up(&mut self, to: Station, load: Load) -> u64 {
            self.view().give_up(to, load, Cause::RetryLimit);
            self.out.take_tally().discarded
        }

        /// Number of packets that end when `load` is delivered.
        fn release(&mut self, load: Load) -> u64 {
            self.view().release(PEER, load);
            self.out.take_tally().discarded
        }
    }

    #[test]
    fn a_station_is_open_unless_the_scheduler_takes_its_channel_for_bad() {
        let mut bench = Bench::new(Waiting::scheduled(
            CsdpConfig { backoff: Span::millis(50), ..CsdpConfig::default() },
            Limit::Packets(10),
            3,
        ));
        let open = |bench: &mut Bench| [1, 2].map(|to| bench.view().is_open(Station(to)));
        assert_eq!(open(&mut bench), [true, true]);
        assert!(bench.upper.waiting.scheduler().unwrap().failed(PEER));
        for (nanos, is_open) in [(0, false), (49_999_999, false), (50_000_000, true)] {
            bench.upper.waiting.scheduler().unwrap().advance(Time(nanos));
            assert_eq!(open(&mut bench), [is_open, true], "{nanos}");
        }
        assert_eq!(open(&mut Bench::in_order()), [true, true]);
    }

    #[test]
    fn a_packet_ends_once_whether_it_is_given_up_or_handed_up_first() {
        let mut bench = Bench::in_order();
        assert_eq!(bench.give_up(PEER, Load::None), 0);
        assert_eq!(bench.give_up(PEER, Load::Packet(packet(7))), 1);
        // Packets given up at another station are unrelated.
        bench.ended.swap(1, 0);
        assert_eq!((bench.release(Load::Packet(packet(8))), bench.inside), (0, 0));
        assert_eq!((bench.release(Load::Packet(packet(7))), bench.inside), (0, 1), "a late copy");
        assert_eq!((bench.release(Load::Packet(packet(7))), bench.inside), (0, 1), "once");
        bench.ended.swap(1, 0);
        assert_eq!(bench.give_up(PEER, Load::Packet(packet(8))), 0, "it has arrived");
        assert_eq!(bench.give_up(PEER, Load::Packet(packet(9))), 1);
    }

    #[test]
    fn the_last_packets_that_ended_are_remembered_and_no_more() {
        for (others, ended) in [(REMEMBERED - 1, 0), (REMEMBERED, 1)] {
            let mut bench = Bench::in_order();
            for id in 0..=others {
                bench.release(Load::Packet(packet(id as u64)));
            }
            bench.ended.swap(1, 0);
            assert_eq!(bench.give_up(PEER, Load::Packet(packet(0))), ended, "{others} since");
        }
    }

    #[test]
    fn of_a_packet_in_pieces_the_first_that_is_given_up_ends_it() {
        let mut bench = Bench::in_order();
        assert_eq!(bench.give_up(PEER, piece(5, 1)), 1);
        assert_eq!(bench.give_up(PEER, piece(5, 2)), 0);
        for id in 100..100 + REMEMBERED as u32 - 1 {
            assert_eq!(bench.give_up(PEER, piece(id, 0)), 1);
        }
        assert_eq!(bench.give_up(PEER, piece(5, 2)), 0, "still remembered");
        assert_eq!(bench.upper.given_up.len(), REMEMBERED);
        assert_eq!(bench.give_up(PEER, piece(99, 0)), 1);
        assert_eq!(bench.upper.given_up.len(), REMEMBERED);
    }

    #[test]
    fn a_packet_with_a_lost_piece_ends_with_its_last_one() {
        let mut bench = Bench::in_order();
        let from = PEER.index();
        bench.upper.gatherers[from].spoil(5);
        for (index, ended) in [(0, 0), (1, 0), (2, 1)] {
            assert_eq!(bench.release(piece(5, index)), ended, "piece {index}");
        }
        assert!(!bench.upper.gatherers[from].is_spoilt(5));
        // A packet without a loss is delivered completely.
        for index in 0..3 {
            let before = bench.ended[0].handed_up.len();
            assert_eq!(bench.release(piece(6, index)), 0);
            assert_eq!(bench.ended[0].handed_up.len() - before, usize::from(index == 2));
        }
    }
}
