//! What the packets of a shell met: how many were carried, what became of the others, how long they waited.

use std::collections::BTreeMap;

use lasthop_proto::event::{Cause, Event, Op, Wants, What};
use lasthop_proto::machine::Side;
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{Packet, PacketId};
use lasthop_scenario::{Stage, StageKind};
use lasthop_trace::counts::CauseCounts;
use lasthop_trace::{Passage, Sink};
use serde::{Deserialize, Serialize};

/// Packets of which it is known when they came to the next link; far more than a path holds.
const FOLLOWED: usize = 1 << 16;

/// A rate over less than this says nothing, seconds.
const SHORTEST: f64 = 0.1;

/// What became of the packets of one direction.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Direction {
    /// Packets that came out at the end of the path.
    pub packets: u64,
    /// Their bytes, IP headers included.
    pub bytes: u64,
    /// Bits per second from the first packet that came in to the last that came out; none where that is not 100 ms.
    pub rate: Option<f64>,
    /// Packets that ended on the way, by cause.
    pub lost: BTreeMap<String, u64>,
    /// Packets that a link layer or an agent sent once more.
    pub repeated: u64,
    /// Packets that a queue marked: congestion experienced.
    pub marked: u64,
    /// Packets that a radio damaged: they come out with a wrong checksum, and whoever gets them drops them.
    pub damaged: u64,
    /// How long packets waited at the links, their transmission included and propagation left out.
    pub queue_delay: Option<Waits>,
}

/// Lengths of time.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Waits {
    /// Median, ms; as all quantiles at most 0.8 % off.
    pub median_ms: f64,
    /// Quantile of 99 %, ms.
    pub p99_ms: f64,
    /// The longest, ms.
    pub max_ms: f64,
}

/// Both directions.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Tallied {
    /// To the program.
    pub down: Direction,
    /// From the program.
    pub up: Direction,
}

/// The sink that takes it all in.
pub(super) struct Tally {
    /// Of each stage of the path, hosts included: the propagation delay, if it is a link.
    delays: Vec<Option<Delay>>,
    /// The stage where what comes from the program has been carried, if that is not the end of the path.
    counted_at: Option<usize>,
    /// Packets on their way by the last digits of their number: when each came to where it is.
    followed: Vec<(PacketId, Time)>,
    /// By the side that packets travel to.
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
    /// For the `stages` of a path between two hosts. What comes from the program counts behind the first link if
    /// `ends` says that connections end at the stage before that.
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

    /// The place where it stands when `id` came to where it is.
    fn place(&mut self, id: PacketId) -> &mut (PacketId, Time) {
        &mut self.followed[id.0 as usize % FOLLOWED]
    }

    /// `packet` has come to the end of its way over the link.
    fn carried(&mut self, at: Time, side: Side, packet: &Packet) {
        let counts = &mut self.directions[side.index()];
        counts.packets += 1;
        counts.bytes += u64::from(packet.wire_len());
        counts.last = at;
    }

    /// All of it; the program sat on the right.
    pub(super) fn tallied(&self) -> Tallied {
        let [left, right] =
            [Side::Left, Side::Right].map(|side| self.directions[side.index()].told());
        Tallied { down: right, up: left }
    }
}

/// The delay of `stage`, if it is a link.
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
    fn wants(&self) -> Wants {
        Wants::METRICS
    }

    fn event(&mut self, event: &Event) {
        let What::Packet { op, side, packet } = &event.what else { return };
        let (at, id, side) = (event.at, packet.id, *side);
        match *op {
            Op::Transmitted => {
                if side == Side::Left && self.counted_at == Some(usize::from(event.stage.0)) {
                    self.carried(at, side, packet);
                }
                let Some(delay) =
                    self.delays.get(usize::from(event.stage.0)).and_then(Option::as_ref)
                else {
                    return;
                };
                // The delay that held when its last bit was sent.
                let propagation = delay(Time(at.0.saturating_sub(delay(at).0)));
                let place = self.place(id);
                if place.0 == id {
                    let waited = at.since(place.1).saturating_sub(propagation);
                    place.1 = at;
                    self.directions[side.index()].waits.add(waited);
                }
            }
            Op::Dropped(cause) if cause.is_loss() => self.directions[side.index()].lost.add(cause),
            Op::Originated(cause) if !is_of_a_host(cause) => *self.place(id) = (id, at),
            Op::Repeated(_) => self.directions[side.index()].repeated += 1,
            Op::Marked | Op::MarkedBy(_) => self.directions[side.index()].marked += 1,
            Op::Damaged => self.directions[side.index()].damaged += 1,
            _ => {}
        }
        if let Op::Originated(cause) = *op
            && cause.is_local_retransmission()
        {
            self.directions[side.index()].repeated += 1;
        }
    }

    fn passage(&mut self, at: Time, side: Side, packet: &Packet, passage: Passage) {
        match passage {
            Passage::In => {
                *self.place(packet.id) = (packet.id, at);
                self.directions[side.index()].first.get_or_insert(at);
            }
            Passage::Out if side == Side::Left && self.counted_at.is_some() => {}
            Passage::Out => self.carried(at, side, packet),
        }
    }
}

/// Whether a host put it into the path, which was told when it came in.
fn is_of_a_host(cause: Cause) -> bool {
    use Cause::*;
    cause.is_host_retransmission() || matches!(cause, Data | Ack | Control | WindowProbe)
}

impl Counts {
    fn told(&self) -> Direction {
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
            queue_delay: self.waits.told(),
        }
    }
}

/// Classes in an octave: what is in the same one differs by 0.8 % at most.
const FINE: usize = 128;
/// Octaves of microseconds: up to more than an hour.
const OCTAVES: usize = 33;

/// Lengths of time in classes, in constant memory.
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
        // Below FINE microseconds each has a class of its own.
        let micros = (span.0 / 1000).max(1);
        let octave = (micros.ilog2() as usize).saturating_sub(FINE.ilog2() as usize);
        let class = octave * FINE + (micros >> octave) as usize;
        if let Some(n) = self.classes.get_mut(class) {
            *n += 1;
        }
        self.count += 1;
        self.max = self.max.max(span);
    }

    /// The middle of the class that holds the quantile `q`, ms.
    fn quantile(&self, q: f64) -> f64 {
        let wanted = (q * self.count as f64).ceil().max(1.0) as u64;
        let mut below = 0;
        for (class, n) in self.classes.iter().enumerate() {
            below += n;
            if below >= wanted {
                let octave = (class / FINE).saturating_sub(1);
                let low = ((class - octave * FINE) as u64) << octave;
                return (low as f64 + (1u64 << octave) as f64 / 2.0) / 1000.0;
            }
        }
        self.max.as_secs_f64() * 1000.0
    }

    fn told(&self) -> Option<Waits> {
        let max_ms = self.max.as_secs_f64() * 1000.0;
        let quantile = |q| self.quantile(q).min(max_ms);
        (self.count > 0).then(|| Waits { median_ms: quantile(0.5), p99_ms: quantile(0.99), max_ms })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_near_the_values() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.told(), None);
        (1..=10_000).for_each(|i| histogram.add(Span::micros(i * 10)));
        let Waits { median_ms, p99_ms, max_ms } = histogram.told().unwrap();
        assert!((median_ms / 50.0 - 1.0).abs() < 0.01, "{median_ms}");
        assert!((p99_ms / 99.0 - 1.0).abs() < 0.01, "{p99_ms}");
        assert_eq!(max_ms, 100.0);
        let mut short = Histogram::default();
        (1..=100).for_each(|i| short.add(Span::micros(i)));
        assert!((short.quantile(0.5) - 0.0505).abs() < 1e-9, "{}", short.quantile(0.5));
        let mut long = Histogram::default();
        long.add(Span::secs(3000));
        assert_eq!(long.told().unwrap().max_ms, 3e6);
        assert!((long.quantile(0.5) / 3e6 - 1.0).abs() < 0.01, "{}", long.quantile(0.5));
    }
}
