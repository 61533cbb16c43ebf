//! Controlled delay: the conditions of drops.

use lasthop_proto::event::Cause;
use lasthop_proto::queue::{CodelConfig, Discipline, Limit};
use lasthop_proto::units::Span;
use lasthop_proto::wire::{ECT, Packet, PacketId, Seq};

use super::script::{Bench, packet};

pub const PLENTY: Limit = Limit::Packets(100_000);

/// A segment of 1000 bytes, of the connection with port `port`.
pub fn data(port: u16, id: u64, capable: bool) -> Packet {
    let tos = if capable { ECT } else { 0 };
    packet(&format!("data 1+960 port {port}"), Seq(0)).with(|packet| {
        packet.tos = tos;
        packet.id = PacketId(id);
    })
}

/// Observations of a line that sends a packet a millisecond for `millis`, with `arrivals(millisecond)`
/// packets before each: the milliseconds of drops by causes, and of marks.
pub struct Observations {
    pub drops: Vec<u64>,
    pub marks: Vec<u64>,
    /// Waiting time of the packet that left in each millisecond.
    pub waited: Vec<u64>,
}

pub fn watch(
    mut bench: Bench,
    millis: u64,
    arrivals: impl Fn(u64) -> u64,
    capable: bool,
) -> Observations {
    let (mut drops, mut marks, mut waited) = (Vec::new(), Vec::new(), Vec::new());
    for now in 0..millis {
        for _ in 0..arrivals(now) {
            let ended = bench.enqueue(data(5001, now, capable));
            assert!(ended.iter().all(|(_, cause)| *cause == Cause::EarlyDrop));
            drops.extend(ended.iter().map(|_| now));
        }
        let packet = bench.dequeue();
        assert!(bench.ended.iter().all(|(_, cause)| *cause == Cause::EarlyDrop));
        drops.extend(bench.ended.iter().map(|_| now));
        marks.extend((0..std::mem::take(&mut bench.marked)).map(|_| now));
        waited.extend(packet.map(|packet| now - packet.id.0));
        bench.wait(Span::millis(1));
    }
    Observations { drops, marks, waited }
}

fn codel(config: CodelConfig) -> Bench {
    Bench::new(Discipline::Codel(config), PLENTY)
}

/// Two packets a millisecond for 10 s: the queue never drains, for any number of drops.
fn overload(config: CodelConfig, capable: bool) -> Observations {
    watch(codel(config), 10_000, |_| 2, capable)
}

//= rfc8289: the next drop comes interval / sqrt(count) after the last
#[test]
fn a_standing_queue_is_dropped_from_at_the_times_of_the_control_law() {
    let observed = overload(CodelConfig::default(), false);
    // The packet that leaves in millisecond 9 arrived in millisecond 4: the first that has waited for 5 ms.
    let (mut due, mut count) = (109.0_f64, 1.0_f64);
    let mut want = Vec::new();
    while due < 10_000.0 {
        want.push(due.ceil() as u64);
        due += 100.0 / count.sqrt();
        count += 1.0;
    }
    assert!(want.len() > 2000, "{}", want.len());
    let millisecond = |(a, b): (&u64, &u64)| a.abs_diff(*b) <= 1;
    let off = observed.drops.iter().zip(&want).find(|pair| !millisecond(*pair));
    assert_eq!(off, None);
    assert!(observed.drops.len().abs_diff(want.len()) <= 1);
    assert_eq!(&observed.drops[..5], [109, 209, 280, 338, 388]);
}

#[test]
fn a_burst_that_is_gone_within_the_interval_passes() {
    // 90 packets at once, then one every two milliseconds: the queue lasts longer than an interval, but is
    // above the target for less than one.
    let observed =
        watch(codel(CodelConfig::default()), 1000, |now| if now == 0 { 90 } else { 0 }, false);
    assert!(observed.drops.is_empty() && observed.waited[80] == 80);
    // A queue that returns to two packets once in an interval is not a standing queue.
    let waves = |now: u64| if now.is_multiple_of(90) { 90 } else { 0 };
    assert!(watch(codel(CodelConfig::default()), 5000, waves, false).drops.is_empty());
}

#[test]
fn the_last_packet_is_never_dropped() {
    // One packet at a time, each sent after 200 ms.
    let mut bench = codel(CodelConfig::default());
    for id in 0..50 {
        bench.enqueue(data(5001, id, false));
        bench.wait(Span::millis(200));
        assert_eq!(bench.dequeue().unwrap().id.0, id);
    }
}

#[test]
fn ecn_capable_packets_are_marked_instead_of_dropped() {
    let observed = overload(CodelConfig::default(), true);
    assert!(observed.drops.is_empty() && observed.marks.len() > 2000);
    assert_eq!(&observed.marks[..5], [109, 209, 280, 338, 388]);
    let unmarked = CodelConfig { mark: false, ..CodelConfig::default() };
    let observed = overload(unmarked, true);
    assert!(observed.marks.is_empty() && observed.drops.len() > 2000);
}

#[test]
fn dropping_resumes_its_rate_if_the_queue_soon_refills() {
    // The queue is occupied for 2 s, empty for a moment, and occupied again.
    let twice = |pause: u64| {
        move |now: u64| match now {
            0..2000 => 2,
            _ if now < 4000 + pause => 0,
            _ => 2,
        }
    };
    let first_second = |pause: u64| {
        let observed = watch(codel(CodelConfig::default()), 8000, twice(pause), false);
        let begin = 4000 + pause;
        observed.drops.iter().filter(|at| (begin..begin + 1000).contains(*at)).count()
    };
    let (soon, late) = (first_second(0), first_second(3000));
    assert!(soon > 2 * late, "{soon} {late}");
}
