//! DualPI2: the pseudo-code of RFC 9332 appendix A compared with this implementation on scripted arrivals,
//! the coupling law of both queues, and overload.

use std::collections::VecDeque;

use lasthop_proto::event::Cause;
use lasthop_proto::queue::{Discipline, DualPi2Config};
use lasthop_proto::units::Span;
use lasthop_proto::wire::{CE, ECT, ECT1, Packet, PacketId, Seq};

use super::codel::PLENTY;
use super::script::{Bench, packet};

/// A segment of 1000 bytes with these ECN bits.
fn data(tos: u8, id: u64) -> Packet {
    packet("data 1+960", Seq(0)).with(|packet| {
        packet.tos = tos;
        packet.id = PacketId(id);
    })
}

fn dualpi2(config: DualPi2Config) -> Bench {
    Bench::new(Discipline::DualPi2(config), PLENTY)
}

/// Fate of a packet, with its millisecond.
#[derive(Debug, PartialEq, Clone, Copy)]
enum Fate {
    Left(u64),
    Marked(u64),
    Dropped(u64),
}

/// An independent implementation of the pseudo-code: a packet of 1000 bytes is sent each millisecond. The
/// weighted scheduler is that of Linux, since the RFC leaves it open.
#[derive(Default)]
struct Reading {
    lq: VecDeque<(f64, u8, u64)>,
    cq: VecDeque<(f64, u8, u64)>,
    p: f64,
    prevq: f64,
    counts: [f64; 3],
    credit: f64,
    fates: Vec<Fate>,
}

impl Reading {
    fn recur(&mut self, counter: usize, likelihood: f64) -> bool {
        self.counts[counter] += likelihood;
        let due = self.counts[counter] > 1.0;
        self.counts[counter] -= f64::from(u8::from(due));
        due
    }

    fn update(&mut self, now: f64) {
        let time = |q: &VecDeque<(f64, u8, u64)>| q.front().map_or(0.0, |(came, ..)| now - came);
        let curq = time(&self.lq).max(time(&self.cq));
        self.p += 0.15 * (curq - 0.015) + 3.0 * (curq - self.prevq);
        self.p = self.p.clamp(0.0, 1.0);
        self.prevq = curq;
    }

    fn dequeue(&mut self, now: f64) {
        loop {
            let both = !self.lq.is_empty() && !self.cq.is_empty();
            let low = !self.lq.is_empty() && (!both || self.credit <= 0.0);
            let next = if low { self.lq.pop_front() } else { self.cq.pop_front() };
            let Some((came, ecn, id)) = next else {
                self.credit = -1200.0;
                return;
            };
            let (p_cl, p_c) = (2.0 * self.p, self.p * self.p);
            let fate = if low && p_cl < 1.0 {
                let delay = now - came;
                let own = if self.lq.is_empty() {
                    0.0
                } else {
                    (((delay * 1e6).round() - 800.0) / 400.0).clamp(0.0, 1.0)
                };
                match self.recur(0, own.max(p_cl)) && ecn != CE {
                    true => Fate::Marked(id),
                    false => Fate::Left(id),
                }
            } else if low {
                match self.recur(1, p_c) {
                    true => Fate::Dropped(id),
                    false if ecn == CE => Fate::Left(id),
                    false => Fate::Marked(id),
                }
            } else {
                match (self.recur(2, p_c), ecn) {
                    (false, _) => Fate::Left(id),
                    (true, 0) => Fate::Dropped(id),
                    (true, _) if p_c >= 0.25 => Fate::Dropped(id),
                    (true, _) => Fate::Marked(id),
                }
            };
            self.fates.push(fate);
            if matches!(fate, Fate::Dropped(_)) {
                continue;
            }
            if both {
                self.credit += if low { 100.0 } else { -900.0 };
            }
            return;
        }
    }
}

/// Arrivals of five seconds: calm, two kinds of bursts, an overload by both classes, calm again.
fn arrivals(now: u64) -> Vec<u8> {
    match now {
        0..500 if now.is_multiple_of(10) => vec![ECT1; 4],
        500..1500 => [
            &[0u8; 2][..usize::from(now.is_multiple_of(2)) * 2],
            &[ECT1][..usize::from(now.is_multiple_of(5))],
        ]
        .concat(),
        1500..2500 => vec![if now.is_multiple_of(4) { CE } else { ECT }, ECT1]
            [..1 + usize::from(now.is_multiple_of(7))]
            .to_vec(),
        2500..3000 => vec![ECT1, ECT1, 0, ECT],
        3000..5000 if now.is_multiple_of(4) => vec![ECT, ECT1],
        _ => vec![],
    }
}

//= rfc9332#section-a.1: and the overload of section A.2
#[test]
fn the_implementation_matches_the_rfc_pseudo_code() {
    let (mut bench, mut reading) =
        (dualpi2(DualPi2Config::default()), Reading { credit: -1200.0, ..Reading::default() });
    let mut fates = Vec::new();
    let mut id = 0;
    for now in 0..8000u64 {
        let seconds = now as f64 / 1000.0;
        // Timers due at this time precede arrivals.
        if now > 0 && now.is_multiple_of(15) {
            reading.update(seconds);
        }
        for tos in arrivals(now) {
            assert!(bench.enqueue(data(tos, id)).is_empty());
            let queue = if tos & 1 == 1 { &mut reading.lq } else { &mut reading.cq };
            queue.push_back((seconds, tos, id));
            id += 1;
        }
        let marks = bench.marks.len();
        let left = bench.dequeue();
        fates.extend(bench.ended.iter().map(|(packet, _)| Fate::Dropped(packet.id.0)));
        fates.extend(left.map(|packet| match bench.marks.len() > marks {
            true => Fate::Marked(packet.id.0),
            false => Fate::Left(packet.id.0),
        }));
        reading.dequeue(seconds);
        bench.wait(Span::millis(1));
    }
    assert_eq!(fates.len() as u64, id);
    let differs = fates.iter().zip(&reading.fates).find(|(ours, theirs)| ours != theirs);
    assert_eq!(differs, None);
    let count = |which: fn(&Fate) -> bool| fates.iter().filter(|fate| which(fate)).count();
    let (marked, dropped) =
        (count(|f| matches!(f, Fate::Marked(_))), count(|f| matches!(f, Fate::Dropped(_))));
    assert!(marked > 200 && dropped > 200, "{marked} {dropped}");
    // Each of the reasons occurred.
    for cause in [Cause::StepMark, Cause::CoupledMark, Cause::ClassicMark, Cause::OverloadMark] {
        assert!(bench.marks.contains(&cause), "{cause:?}");
    }
}

/// `(p_L, p_C)` over `millis` milliseconds. One packet arrives and one leaves in each, alternating between
/// both classes. The classic queue is standing and unresponsive.
fn shares(millis: u64) -> (f64, f64) {
    let mut bench = dualpi2(DualPi2Config { classic_share: 0.5, ..DualPi2Config::default() });
    // Classic packets have odd names.
    for i in 0..16 {
        bench.enqueue(data(ECT, 2 * i + 1));
    }
    let (mut marked, mut left) = ([0.0; 2], [0.0; 2]);
    for now in 0..millis {
        bench.enqueue(data([ECT1, ECT][(now % 2) as usize], now));
        bench.marks.clear();
        let class = (bench.dequeue().unwrap().id.0 % 2) as usize;
        marked[class] += bench.marks.len() as f64;
        left[class] += 1.0;
        assert!(bench.ended.is_empty(), "overload");
        bench.wait(Span::millis(1));
    }
    (marked[0] / left[0], marked[1] / left[1])
}

//= rfc9332#section-2.1: p_C = (p_L / k)^2
#[test]
fn the_queues_are_coupled_by_the_square() {
    // The probability only grows meanwhile, so that the mean of its square is above the square of its mean.
    let (low, classic) = shares(600);
    let law = low / 2.0 * (low / 2.0);
    assert!(low > 0.1 && low < 1.0, "{low}");
    assert!((0.85..1.5).contains(&(classic / law)), "{low} {classic} {law}");
}

#[test]
fn classic_traffic_does_not_delay_l4s_packets() {
    // Two classic packets arrive per millisecond for one that leaves, and an L packet every fourth.
    let mut bench = dualpi2(DualPi2Config { alpha: 0.0, beta: 0.0, ..DualPi2Config::default() });
    let (mut waited, mut shared) = (Vec::new(), 0);
    for now in 0..300u64 {
        (0..2).for_each(|_| assert!(bench.enqueue(data(0, now)).is_empty()));
        if now.is_multiple_of(4) {
            bench.enqueue(data(ECT1, now));
        }
        if let Some(packet) = bench.dequeue() {
            match packet.tos & 1 {
                1 => waited.push(now - packet.id.0),
                _ => shared += 1,
            }
        }
        bench.wait(Span::millis(1));
    }
    assert!(waited.iter().all(|millis| *millis <= 1), "{waited:?}");
    assert!(waited.len() >= 74 && shared + waited.len() == 300);
}

/// L traffic of twice the line's rate leaves the classic queue its tenth.
#[test]
fn the_classic_queue_is_not_starved() {
    let mut bench = dualpi2(DualPi2Config { alpha: 0.0, beta: 0.0, ..DualPi2Config::default() });
    let mut classic = 0;
    for now in 0..1000u64 {
        (0..2).for_each(|_| assert!(bench.enqueue(data(ECT1, now)).is_empty()));
        bench.enqueue(data(0, now));
        classic += u32::from(bench.dequeue().unwrap().tos == 0);
        bench.wait(Span::millis(1));
    }
    assert!((98..=102).contains(&classic), "{classic}");
}

//= rfc9332#section-a.2: on overload both are dropped with the same probability, and the L queue's others are marked
#[test]
fn overload_drops_both_alike() {
    let mut bench = dualpi2(DualPi2Config { classic_share: 0.5, ..DualPi2Config::default() });
    let mut ended = [[0u32; 2]; 2];
    for now in 0..4000u64 {
        for tos in [ECT1, ECT, ECT1, ECT] {
            bench.enqueue(data(tos, now));
        }
        bench.marks.clear();
        let left = bench.dequeue();
        if now >= 1000 {
            for (packet, cause) in &bench.ended {
                assert_eq!(*cause, Cause::OverloadDrop);
                ended[0][usize::from(packet.tos & 1)] += 1;
            }
            let packet = left.unwrap();
            let low = packet.tos & 1 == 1;
            ended[1][usize::from(low)] += 1;
            assert_eq!(bench.marks, if low { vec![Cause::OverloadMark] } else { vec![] });
        }
        bench.wait(Span::millis(1));
    }
    let [classic, low] =
        [0, 1].map(|i| f64::from(ended[0][i]) / f64::from(ended[0][i] + ended[1][i]));
    assert!(low > 0.25 && (low - classic).abs() < 0.02, "{low} {classic} {ended:?}");
}
