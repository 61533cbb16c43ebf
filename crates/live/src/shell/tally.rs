//! Counts of a shell's packets: carried, lost by cause, and queueing delays.

use std::collections::BTreeMap;

use lasthop_observe::counts::CauseCounts;
use lasthop_observe::{Passage, Sink};
use lasthop_proto::event::{Cause, Interest, Op};
use lasthop_proto::machine::{Side, StageId};
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{Packet, PacketId};
use lasthop_scenario::{Stage, StageKind};
use serde::{Deserialize, Serialize};

/// Number of packets whose arrival at the next link is stored; far more than a path holds.
const FOLLOWED: usize = 1 << 16;

/// Shortest time for a meaningful rate, seconds.
const SHORTEST: f64 = 0.1;

/// Counts of one direction.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Direction {
    /// Packets that left the path at its end.
    pub packets: u64,
    /// Their bytes, IP headers included.
    pub bytes: u64,
    /// Bits per second from the first arrival to the last departure; `None` below 100 ms.
    pub rate: Option<f64>,
    /// Dropped packets by cause.
    pub lost: BTreeMap<String, u64>,
    /// Retransmissions of link layers and agents.
    pub repeated: u64,
    /// Packets that a queue marked with Congestion Experienced.
    pub marked: u64,
    /// Packets that a radio damaged: they arrive with a wrong checksum, and the receiving host drops them.
    pub damaged: u64,
    /// Waiting times at the links, with transmission and without propagation.
    pub queue_delay: Option<Waits>,
}

/// Quantiles of waiting times.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Waits {
    /// Median, ms; all quantiles are accurate to 0.8 %.
    pub median_ms: f64,
    /// Quantile of 99 %, ms.
    pub p99_ms: f64,
    /// The longest, ms.
    pub max_ms: f64,
}

/// Counts of both directions.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Tallied {
    /// Packets to the program.
    pub down: Direction,
    /// Packets from the program.
    pub up: Direction,
}

/// The sink that counts.
pub(super) struct Tally {
    /// Propagation delay of each stage that is a link; one entry per stage of the path, hosts included.
    delays: Vec<Option<Delay>>,
    /// The stage after which packets of the program count as carried, if that is not the end of the path.
    counted_at: Option<usize>,
    /// Arrival time of each packet at its current stage, indexed by the low bits of the packet number.
    followed: Vec<(PacketId, Time)>,
    /// Indexed by the side to which packets travel.
    directions: [Counts; 2],
}

/// The propagation delay of a link.
type Delay = Box<dyn Fn(Time) -> Span>;

#[derive(Default)]
struct Counts {
    packets: u64,
    bytes: u64,
    first: Option<Time>,
    last: Time,
    lost: CauseCounts,
    repeated: u64,
    marked: u64,
    damaged: u64,
    waits: Histogram,
}

impl Tally {
    /// Counts packets on the `stages` of a path between two hosts. If `ends`, connections end at the stage
    /// behind the first link, and packets of the program count as carried there.
    pub(super) fn new(stages: &[Stage], ends: bool) -> Tally {
        let hosts = || std::iter::once(None);
        let delays: Vec<_> = hosts().chain(stages.iter().map(delay)).chain(hosts()).collect();
        Tally {
            counted_at: delays.iter().position(Option::is_some).filter(|_| ends),
            delays,
            followed: vec![(PacketId(u64::MAX), Time::ZERO); FOLLOWED],
            directions: Default::default(),
        }
    }

    /// The entry of `id`; another packet may occupy it.
    fn slot(&mut self, id: PacketId) -> &mut (PacketId, Time) {
        &mut self.followed[id.0 as usize % FOLLOWED]
    }

    /// Counts `packet` as carried over the whole path.
    fn carried(&mut self, at: Time, side: Side, packet: &Packet) {
        let counts = &mut self.directions[side.index()];
        counts.packets += 1;
        counts.bytes += u64::from(packet.wire_len());
        counts.last = at;
    }

    /// The counts. The program is on the right.
    pub(super) fn tallied(&self) -> Tallied {
        let [left, right] =
            [Side::Left, Side::Right].map(|side| self.directions[side.index()].direction());
        Tallied { down: right, up: left }
    }
}

/// The propagation delay of `stage`, if it is a link.
fn delay(stage: &Stage) -> Option<Delay> {
    let constant = |delay: Span| -> Option<Delay> { Some(Box::new(move |_| delay)) };
    match &stage.kind {
        StageKind::Varied(varied) => match varied.delays.clone() {
            Some(delays) => Some(Box::new(move |at| delays.at(at))),
            None => constant(varied.line.delay),
        },
        StageKind::Radio(radio) => constant(radio.radio.delay),
        kind => kind.line().and_then(|line| constant(line.delay)),
    }
}

impl Sink for Tally {
    fn interest(&self) -> Interest {
        Interest::METRICS
    }

    fn packet(&mut self, at: Time, stage: StageId, op: Op, side: Side, packet: &Packet) {
        let id = packet.id;
        match op {
            Op::Transmitted => {
                if side == Side::Left && self.counted_at == Some(usize::from(stage.0)) {
                    self.carried(at, side, packet);
                }
                let Some(delay) = self.delays.get(usize::from(stage.0)).and_then(Option::as_ref)
                else {
                    return;
                };
                // Delay at the time when the last bit was sent.
                let propagation = delay(Time(at.0.saturating_sub(delay(at).0)));
                let slot = self.slot(id);
                if slot.0 == id {
                    let waited = at.since(slot.1).saturating_sub(propagation);
                    slot.1 = at;
                    self.directions[side.index()].waits.add(waited);
                }
            }
            Op::Dropped(cause) if cause.is_loss() => self.directions[side.index()].lost.add(cause),
            Op::Originated(cause) if !is_of_a_host(cause) => *self.slot(id) = (id, at),
            Op::Repeated(_) => self.directions[side.index()].repeated += 1,
            Op::Marked | Op::MarkedBy(_) => self.directions[side.index()].marked += 1,
            Op::Damaged => self.directions[side.index()].damaged += 1,
            _ => {}
        }
        if let Op::Originated(cause) = op
            && cause.is_local_retransmission()
        {
            self.directions[side.index()].repeated += 1;
        }
    }

    fn passage(&mut self, at: Time, side: Side, packet: &Packet, passage: Passage) {
        match passage {
            Passage::In => {
                *self.slot(packet.id) = (packet.id, at);
                self.directions[side.index()].first.get_or_insert(at);
            }
            Passage::Out if side == Side::Left && self.counted_at.is_some() => {}
            Passage::Out => self.carried(at, side, packet),
            // A shell has no kernel that forwards.
            Passage::Copied => {}
        }
    }
}

/// Whether a host originated the packet. Its arrival at the path was reported already.
fn is_of_a_host(cause: Cause) -> bool {
    use Cause::*;
    cause.is_host_retransmission() || matches!(cause, Data | Ack | Control | WindowProbe)
}

impl Counts {
    fn direction(&self) -> Direction {
        let seconds = self.first.map(|first| self.last.since(first).as_secs_f64());
        let rate =
            seconds.filter(|seconds| *seconds >= SHORTEST).map(|s| self.bytes as f64 * 8.0 / s);
        Direction {
            packets: self.packets,
            bytes: self.bytes,
            rate,
            lost: self.lost.iter().map(|(cause, n)| (cause.name().to_owned(), n)).collect(),
            repeated: self.repeated,
            marked: self.marked,
            damaged: self.damaged,
            queue_delay: self.waits.waits(),
        }
    }
}

/// Classes per octave: values in one class differ by at most 0.8 %.
const FINE: usize = 128;
/// Octaves of microseconds, up to more than an hour.
const OCTAVES: usize = 33;

/// Durations in classes, in constant memory.
struct Histogram {
    classes: Vec<u64>,
    count: u64,
    max: Span,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { classes: vec![0; FINE * OCTAVES], count: 0, max: Span::ZERO }
    }
}

impl Histogram {
    fn add(&mut self, span: Span) {
        // Each value below FINE microseconds has a separate class.
        let micros = (span.0 / 1000).max(1);
        let octave = (micros.ilog2() as usize).saturating_sub(FINE.ilog2() as usize);
        let class = octave * FINE + (micros >> octave) as usize;
        if let Some(n) = self.classes.get_mut(class) {
            *n += 1;
        }
        self.count += 1;
        self.max = self.max.max(span);
    }

    /// Middle of the class that holds the quantile `q`, ms.
    fn quantile(&self, q: f64) -> f64 {
        let rank = (q * self.count as f64).ceil().max(1.0) as u64;
        let mut below = 0;
        for (class, n) in self.classes.iter().enumerate() {
            below += n;
            if below >= rank {
                let octave = (class / FINE).saturating_sub(1);
                let low = ((class - octave * FINE) as u64) << octave;
                return (low as f64 + (1u64 << octave) as f64 / 2.0) / 1000.0;
            }
        }
        self.max.as_secs_f64() * 1000.0
    }

    fn waits(&self) -> Option<Waits> {
        let max_ms = self.max.as_secs_f64() * 1000.0;
        let quantile = |q| self.quantile(q).min(max_ms);
        (self.count > 0).then(|| Waits { median_ms: quantile(0.5), p99_ms: quantile(0.99), max_ms })
    }
}

#[cfg(test)]
mod tests {
    use lasthop_proto::event::{Event, EventKind};

    use super::*;

    const WAN: u16 = 1;
    const RADIO: u16 = 3;

    /// Stages: a host, a link of 5 ms, an agent, a link of 2 ms, a host.
    fn tally(ends: bool) -> Tally {
        let delay = |ms| -> Option<Delay> { Some(Box::new(move |_| Span::millis(ms))) };
        let delays = vec![None, delay(5), None, delay(2), None];
        Tally {
            counted_at: Some(1).filter(|_| ends),
            delays,
            followed: vec![(PacketId(u64::MAX), Time::ZERO); FOLLOWED],
            directions: Default::default(),
        }
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::millis(ms)
    }

    fn packet(id: u64, bytes: usize) -> Packet {
        use lasthop_proto::wire::{Addr, Body, Flags, Segment, Seq};
        let segment = Segment::new(1, 2, Seq(0), Seq(0), Flags::ACK);
        let body = Body::copy_of(&vec![0; bytes]);
        Packet::tcp(Addr::v4(10, 0, 0, 1), Addr::v4(10, 0, 0, 2), segment, body)
            .with(|packet| packet.id = PacketId(id))
    }

    fn happens(tally: &mut Tally, ms: u64, stage: u16, op: Op, side: Side, packet: &Packet) {
        let kind = EventKind::Packet { op, side, packet: packet.clone() };
        let stage = StageId(stage);
        tally.event(&Event { at: at(ms), stage, kind });
    }

    #[test]
    fn packets_count_at_the_exit_and_waits_per_link() {
        let mut tally = tally(false);
        let one = packet(7, 960);
        let bytes = u64::from(one.wire_len());
        tally.passage(at(100), Side::Right, &one, Passage::In);
        // Forwarded after 5 ms of waiting and 5 ms of propagation, then after 10 ms and 2 ms.
        happens(&mut tally, 110, WAN, Op::Transmitted, Side::Right, &one);
        happens(&mut tally, 122, RADIO, Op::Transmitted, Side::Right, &one);
        assert_eq!(tally.tallied().down.packets, 0, "it is still in flight");
        tally.passage(at(122), Side::Right, &one, Passage::Out);
        let Tallied { down, up } = tally.tallied();
        assert_eq!((down.packets, down.bytes, down.rate), (1, bytes, None), "too short for a rate");
        let waits = down.queue_delay.unwrap();
        assert!((waits.median_ms / 5.0 - 1.0).abs() < 0.008, "{waits:?}");
        assert!((waits.p99_ms / 10.0 - 1.0).abs() < 0.008, "{waits:?}");
        assert_eq!(waits.max_ms, 10.0);
        assert_eq!(up, Direction::default(), "nothing went the other way");

        let two = packet(8, 960);
        tally.passage(at(180), Side::Right, &two, Passage::In);
        tally.passage(at(200), Side::Right, &two, Passage::Out);
        let down = tally.tallied().down;
        // From the first arrival to the last departure: 100 ms.
        assert_eq!((down.packets, down.rate), (2, Some(bytes as f64 * 2.0 * 8.0 / 0.1)));
    }

    /// A packet with equal low bits of its number has taken the entry, so there is no waiting time.
    #[test]
    fn a_packet_that_is_no_longer_followed_has_no_wait() {
        let mut tally = tally(false);
        tally.passage(at(0), Side::Right, &packet(1, 10), Passage::In);
        tally.passage(at(1), Side::Right, &packet(1 + FOLLOWED as u64, 10), Passage::In);
        happens(&mut tally, 50, WAN, Op::Transmitted, Side::Right, &packet(1, 10));
        assert_eq!(tally.tallied().down.queue_delay, None);
        happens(
            &mut tally,
            50,
            WAN,
            Op::Transmitted,
            Side::Right,
            &packet(1 + FOLLOWED as u64, 10),
        );
        assert_eq!(tally.tallied().down.queue_delay.map(|waits| waits.max_ms), Some(44.0));
    }

    #[test]
    fn split_uploads_are_counted_at_the_first_link() {
        for ends in [false, true] {
            let mut tally = tally(ends);
            let (one, other) = (packet(1, 100), packet(2, 1000));
            tally.passage(at(0), Side::Left, &one, Passage::In);
            happens(&mut tally, 10, RADIO, Op::Transmitted, Side::Left, &one);
            happens(&mut tally, 20, WAN, Op::Transmitted, Side::Left, &other);
            happens(&mut tally, 20, WAN, Op::Transmitted, Side::Right, &one);
            tally.passage(at(30), Side::Left, &one, Passage::Out);
            tally.passage(at(30), Side::Right, &one, Passage::Out);
            let Tallied { down, up } = tally.tallied();
            let counted = if ends { &other } else { &one };
            assert_eq!((up.packets, up.bytes), (1, counted.wire_len().into()), "ends: {ends}");
            assert_eq!(down.packets, 1, "ends: {ends}");
        }
    }

    #[test]
    fn marks_damage_repairs_and_losses_are_counted_separately() {
        let mut tally = tally(false);
        let one = packet(1, 100);
        let ops = [
            (Op::Dropped(Cause::SplitTaken), 1),
            (Op::Marked, 1),
            (Op::MarkedBy(Cause::Data), 1),
            (Op::Damaged, 3),
            (Op::Repeated(Cause::LocalTimeout), 2),
            (Op::Originated(Cause::LocalDupAck), 2),
            (Op::Originated(Cause::FastRetransmit), 5),
        ];
        let lost: Vec<Cause> =
            Cause::ALL.into_iter().filter(|cause| cause.is_loss()).take(2).collect();
        for (op, times) in
            ops.into_iter().chain([(Op::Dropped(lost[0]), 2), (Op::Dropped(lost[1]), 1)])
        {
            (0..times).for_each(|_| happens(&mut tally, 10, WAN, op, Side::Right, &one));
        }
        let Tallied { down, up } = tally.tallied();
        assert_eq!((down.marked, down.damaged, down.repeated), (2, 3, 4));
        let expected = [(lost[0].name().to_owned(), 2), (lost[1].name().to_owned(), 1)];
        assert_eq!(down.lost, BTreeMap::from(expected), "a received packet is not lost");
        assert_eq!(up, Direction::default());
    }

    /// A packet of an agent waits from its origination. A packet of a host waits from its arrival, which was
    /// reported earlier.
    #[test]
    fn an_agents_packet_waits_from_its_origination() {
        let mut tally = tally(false);
        for (id, cause, wait) in [
            (1, Cause::LocalTimeout, Some(38.0)),
            (2, Cause::FastRetransmit, None),
            (3, Cause::Data, None),
            (4, Cause::Ack, None),
            (5, Cause::Control, None),
            (6, Cause::WindowProbe, None),
        ] {
            tally.directions = Default::default();
            let one = packet(id, 10);
            happens(&mut tally, 10, 2, Op::Originated(cause), Side::Right, &one);
            happens(&mut tally, 50, RADIO, Op::Transmitted, Side::Right, &one);
            let waits = tally.tallied().down.queue_delay;
            assert_eq!(waits.map(|waits| waits.max_ms), wait, "{cause:?}");
        }
    }

    #[test]
    fn quantiles_are_near_the_values() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.waits(), None);
        (1..=10_000).for_each(|i| histogram.add(Span::micros(i * 10)));
        let Waits { median_ms, p99_ms, max_ms } = histogram.waits().unwrap();
        assert!((median_ms / 50.0 - 1.0).abs() < 0.01, "{median_ms}");
        assert!((p99_ms / 99.0 - 1.0).abs() < 0.01, "{p99_ms}");
        assert_eq!(max_ms, 100.0);
        let mut short = Histogram::default();
        (1..=100).for_each(|i| short.add(Span::micros(i)));
        assert!((short.quantile(0.5) - 0.0505).abs() < 1e-9, "{}", short.quantile(0.5));
        let mut long = Histogram::default();
        long.add(Span::secs(3000));
        assert_eq!(long.waits().unwrap().max_ms, 3e6);
        assert!((long.quantile(0.5) / 3e6 - 1.0).abs() < 0.01, "{}", long.quantile(0.5));
    }
}
