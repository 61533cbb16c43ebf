//! Effects of `tc` stages on packets: each value follows from the rules of the kernel's queueing disciplines.

use lasthop_proto::event::{Cause, EventKind, Interest, Op};
use lasthop_proto::link::LineConfig;
use lasthop_proto::link::tc::{
    By, Emulator, EmulatorConfig, Measure, Netem, Police, PoliceConfig, Tbf, TbfConfig,
};
use lasthop_proto::machine::{Machine, Out, Side};
use lasthop_proto::queue::{Discipline, Limit};
use lasthop_proto::rng::Stream;
use lasthop_proto::units::{Rate, Time};
use lasthop_proto::wire::{Addr, Body, Damage, ECT, Flags, Packet, PacketId, Segment, Seq};
use proptest::prelude::*;

const MS: u64 = 1_000_000;
/// Packets that arrive are numbered from here; a stage numbers its own from 0.
const FIRST: u64 = 1 << 32;
/// Number that represents a duplicate.
const COPY: u64 = u64::MAX;

fn number(id: PacketId) -> u64 {
    id.0.checked_sub(FIRST).unwrap_or(COPY)
}

/// A packet of `bytes` bytes, without the frame around it.
fn packet(id: u64, bytes: u32) -> Packet {
    let segment = Segment::new(1, 2, Seq(0), Seq(0), Flags::ACK);
    let body = Body::Pattern { stream: 1, len: bytes - 40, offset: 0 };
    let mut packet = Packet::tcp(Addr::v4(1, 1, 1, 1), Addr::v4(2, 2, 2, 2), segment, body);
    packet.id = PacketId(id);
    packet
}

/// A link with this line of netem options.
fn netem(line: &str) -> Emulator {
    let netem = Netem::parse(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    let config = EmulatorConfig {
        line: LineConfig {
            rate_right: netem.rate,
            rate_left: netem.rate,
            delay: netem.delay,
            framing: 14,
            queue: Limit::Packets(netem.limit.unwrap_or(1000)),
            discipline_right: Discipline::Fifo,
            discipline_left: Discipline::Fifo,
        },
        impairments: netem.impairments,
        extras: netem.extras,
    };
    Emulator::new(&config, |part| Stream::new(11, part))
}

/// Fates of packets: output times in nanoseconds, by number.
#[derive(Default, Debug)]
struct Fates {
    out: Vec<(u64, u64)>,
    dropped: Vec<(u64, Cause)>,
    marked: usize,
    damaged: usize,
    reordered: usize,
}

impl Fates {
    fn times(&self) -> Vec<u64> {
        self.out.iter().map(|(at, _)| *at).collect()
    }
}

/// Sends packets from the left at these times with these lengths, and checks conservation.
fn play(mut machine: impl Machine, arrivals: &[(u64, u32)], ecn: bool) -> Fates {
    let mut out = Out::new(Interest::EVERYTHING);
    let mut fates = Fates::default();
    let mut arrivals = arrivals.iter().copied().zip(0_u64..).peekable();
    let (mut inside, mut last) = (0_i64, 0);
    loop {
        let wake = machine.next_wake().map_or(u64::MAX, |at| at.0);
        let next = arrivals.next_if(|((at, _), _)| *at < wake);
        let now = next.map_or(wake, |((at, _), _)| at);
        if now == u64::MAX {
            break;
        }
        assert!(now >= last, "time does not decrease");
        last = now;
        out.begin(Default::default(), Time(now));
        match next {
            Some(((_, bytes), id)) => {
                let mut packet = packet(FIRST + id, bytes);
                packet.tos |= if ecn { ECT } else { 0 };
                inside += 1;
                machine.on_packet(Time(now), Side::Left, packet, &mut out);
            }
            None => machine.on_wake(Time(now), &mut out),
        }
        let tally = out.take_tally();
        inside += tally.originated as i64 - tally.discarded as i64;
        for (side, packet) in out.sends.drain(..) {
            assert_eq!(side, Side::Right);
            inside -= 1;
            fates.damaged += usize::from(packet.damage != Damage::None);
            fates.out.push((now, number(packet.id)));
        }
        for event in out.events.drain(..) {
            let EventKind::Packet { op, packet, .. } = event.kind else { continue };
            match op {
                Op::Dropped(cause) => fates.dropped.push((number(packet.id), cause)),
                Op::Marked => fates.marked += 1,
                Op::Redirected(Cause::Reordered) => fates.reordered += 1,
                _ => {}
            }
        }
        assert_eq!(machine.holds() as i64, inside, "packets inside at {now}");
    }
    assert_eq!(inside, 0);
    fates
}

/// Packets of 1000 bytes at these milliseconds.
fn at(ms: &[u64]) -> Vec<(u64, u32)> {
    ms.iter().map(|ms| (ms * MS, 1000)).collect()
}

#[test]
fn the_limit_counts_packets_under_way() {
    // 100 packets in 100 ms, of which 50 fit into a delay of 100 ms.
    let arrivals: Vec<_> = (0..100).map(|i| (i * MS, 1000)).collect();
    let fates = play(netem("delay 100ms limit 50"), &arrivals, false);
    assert_eq!(fates.out.len(), 50);
    assert!(fates.dropped.iter().all(|(id, cause)| *id >= 50 && *cause == Cause::QueueFull));
    assert_eq!(play(netem("delay 100ms"), &arrivals, false).dropped.len(), 0);
    assert_eq!(play(netem("limit 0"), &arrivals, false).out.len(), 0);
    // Without a limit it is 1000 packets.
    let burst = vec![(0, 1000); 1500];
    assert_eq!(play(netem("rate 1mbit"), &burst, false).out.len(), 1000);
}

#[test]
fn the_rate_counts_ethernet_header_and_line_overhead() {
    // 1014 bytes at 1 Mbit/s are 8.112 ms.
    let two = at(&[0, 0]);
    assert_eq!(play(netem("rate 1mbit"), &two, false).times(), [8_112_000, 16_224_000]);
    assert_eq!(play(netem("rate 1mbit -20"), &two, false).times(), [7_952_000, 15_904_000]);
    assert_eq!(play(netem("rate 1mbit 6"), &two, false).times(), [8_160_000, 16_320_000]);
    // 22 cells of 48 bytes in 53.
    assert_eq!(play(netem("rate 1mbit 0 48 5"), &two, false).times(), [9_328_000, 18_656_000]);
    assert_eq!(play(netem("rate 1mbit 0 1014 -1014"), &two, false).times(), [0, 0]);
}

#[test]
fn the_rate_comes_after_the_delay() {
    // The second one waits for the first; the third one finds an idle line.
    let fates = play(netem("delay 5ms rate 1mbit"), &at(&[0, 1, 50]), false);
    assert_eq!(fates.times(), [13_112_000, 21_224_000, 63_112_000]);
    // With jitter packets remain in order, and are never closer than the rate allows.
    let arrivals: Vec<_> = (0..500).map(|i| (i * 20 * MS, 1000)).collect();
    let fates = play(netem("delay 100ms 90ms rate 1mbit"), &arrivals, false);
    assert!(fates.out.is_sorted_by_key(|(_, id)| *id) && fates.reordered == 0);
    let close = fates.times().windows(2).filter(|pair| pair[1] - pair[0] == 8_112_000).count();
    assert!(fates.times().windows(2).all(|pair| pair[1] - pair[0] >= 8_112_000), "{close}");
    assert!(close > 100, "those that wait for the one before: {close}");
    // Without a rate they overtake each other.
    assert!(play(netem("delay 100ms 90ms"), &arrivals, false).reordered > 50);
}

#[test]
fn reordered_packets_use_none_of_the_rate() {
    let fates = play(netem("delay 10ms rate 1mbit reorder 100% gap 3"), &at(&[0, 0, 0, 0]), false);
    assert_eq!(fates.out, [(0, 2), (18_112_000, 0), (26_224_000, 1), (34_336_000, 3)]);
    assert_eq!(fates.reordered, 1);
    // Each packet of a line without a gap is drawn independently.
    let many: Vec<_> = (0..40_000).map(|i| (i * MS, 1000)).collect();
    let fates = play(netem("delay 10ms reorder 25%"), &many, false);
    let at_once = fates.out.iter().filter(|(at, id)| *at == id * MS).count();
    assert!((9_650..10_350).contains(&at_once), "{at_once}");
}

#[test]
fn a_duplicate_goes_first_and_takes_its_share_of_rate_and_limit() {
    let fates = play(netem("rate 1mbit duplicate 100%"), &at(&[0]), false);
    assert_eq!(fates.out, [(8_112_000, COPY), (16_224_000, 0)]);
    // The limit is checked before a duplicate is made: a packet that fits is never rejected for its own
    // duplicate.
    let fates = play(netem("delay 1s limit 3 duplicate 100%"), &at(&[0, 0, 0]), false);
    let ids: Vec<u64> = fates.out.iter().map(|(_, id)| *id).collect();
    assert_eq!(ids, [COPY, 0, COPY, 1]);
    assert_eq!(fates.dropped, [(2, Cause::QueueFull)]);
    // If it is both duplicated and lost, one copy passes.
    let fates = play(netem("duplicate 100% loss 100%"), &at(&[0, 1]), false);
    assert_eq!((fates.out, fates.dropped.len()), (vec![(0, 0), (MS, 1)], 0));
}

#[test]
fn lost_packets_take_nothing_of_the_rate() {
    // Every second packet, by a chain that always changes state.
    let fates = play(netem("rate 1mbit loss gemodel 100% 100%"), &at(&[0; 6]), false);
    assert_eq!(fates.out, [(8_112_000, 0), (16_224_000, 2), (24_336_000, 4)]);
    assert!(fates.dropped.iter().all(|(_, cause)| *cause == Cause::FrameLost));
    // Marked instead, if the ends support it; a mark is no loss.
    let line = "loss gemodel 100% 100% ecn";
    let fates = play(netem(line), &at(&[0; 6]), true);
    assert_eq!((fates.out.len(), fates.marked), (6, 3));
    assert_eq!(play(netem(line), &at(&[0; 6]), false).out.len(), 3);
    // Four states: from a gap into a burst and back.
    let fates = play(netem("loss state 100% 0% 100% 0%"), &at(&[0; 5]), false);
    let lost: Vec<u64> = fates.dropped.iter().map(|(id, _)| *id).collect();
    assert_eq!(
        lost,
        [0],
        "p13 loses the first; p32 passes the second, and with p23 = 0 nothing is lost any more"
    );
}

#[test]
fn packets_leave_in_slots() {
    // A packet that arrives after the last slot opens one, and waits for it.
    let fates = play(netem("slot 10ms packets 2"), &at(&[0, 0, 0, 0, 0]), false);
    assert_eq!(fates.times(), [10, 10, 20, 20, 30].map(|ms| ms * MS));
    let fates = play(netem("slot 10ms bytes 2000"), &at(&[0, 0, 0, 0, 0]), false);
    assert_eq!(fates.times(), [10, 10, 20, 20, 30].map(|ms| ms * MS));
    let arrivals: Vec<_> = (0..200).map(|i| (i * MS, 1000)).collect();
    let fates = play(netem("slot 10ms 20ms"), &arrivals, false);
    let mut slots = fates.times();
    slots.dedup();
    let apart = |pair: &[u64]| (10 * MS..=21 * MS).contains(&(pair[1] - pair[0]));
    assert!(slots.windows(2).all(apart), "{slots:?}");
    let fates = play(netem("slot distribution normal 10ms 1ms packets 1"), &arrivals, false);
    assert_eq!(fates.out.len(), 200);
    assert!(fates.times().windows(2).skip(1).all(|pair| pair[1] - pair[0] > 5 * MS));
}

/// 8 Mbit/s are a byte in a microsecond.
fn mbyte() -> Rate {
    Rate::from_bps(8_000_000).unwrap()
}

fn tbf(burst: u32, limit: u32, peak: Option<(Rate, u32)>) -> Tbf {
    let measure = Measure::default();
    Tbf::new(TbfConfig { rate: mbyte(), burst, limit, peak, measure, towards: None })
}

#[test]
fn a_bucket_lets_a_burst_pass_and_then_the_rate() {
    // 3042 bytes are three frames of 1014; then one leaves each 1.014 ms.
    let fates = play(tbf(3042, 100_000, None), &at(&[0; 6]), false);
    assert_eq!(fates.times(), [0, 0, 0, 1_014_000, 2_028_000, 3_042_000]);
    // After a pause the bucket is full again, and never more than that.
    let fates = play(tbf(3042, 100_000, None), &at(&[0, 0, 0, 50, 50, 50, 50]), false);
    assert_eq!(fates.times()[3..], [50 * MS, 50 * MS, 50 * MS, 51_014_000]);
    // Half of it after half of the time.
    let fates = play(tbf(2028, 100_000, None), &[(0, 1000), (0, 1000), (507_000, 1000)], false);
    assert_eq!(fates.times(), [0, 0, 1_014_000]);
}

#[test]
fn a_bucket_drops_queue_overflow_and_oversized_packets() {
    // A packet that leaves at once has never waited; two more fit.
    let fates = play(tbf(1014, 2100, None), &at(&[0; 5]), false);
    assert_eq!(
        (fates.out.len(), fates.dropped),
        (3, vec![(3, Cause::QueueFull), (4, Cause::QueueFull)])
    );
    let fates = play(tbf(1013, 5000, None), &at(&[0]), false);
    assert_eq!(fates.dropped, [(0, Cause::Policed)]);
}

#[test]
fn a_peak_rate_spreads_the_burst() {
    let peak = Some((Rate::from_bps(16_000_000).unwrap(), 1014));
    let fates = play(tbf(3042, 100_000, peak), &at(&[0; 6]), false);
    // At twice the rate until the bucket is empty: after n packets 1.014 n ms of tokens are used and half of
    // that is refilled.
    assert_eq!(fates.times(), [0, 507_000, 1_014_000, 1_521_000, 2_028_000, 3_042_000]);
}

/// Times in milliseconds at which packets left `tc qdisc add dev e0 root tbf rate 1mbit burst 10kb latency 50ms` of Linux 6.18
/// on a veth, from the fourteenth on.
const LEFT_LINUX: [f64; 22] = [
    31.718, 39.831, 47.949, 56.056, 64.171, 72.279, 80.419, 88.520, 96.625, 104.740, 112.854,
    120.966, 129.072, 137.181, 145.294, 153.416, 161.526, 169.638, 177.741, 185.858, 193.974,
    202.088,
];

#[test]
fn packets_leave_a_bucket_when_they_leave_that_of_the_kernel() {
    let measure = Measure::default();
    let rate = Rate::from_bps(1_000_000).unwrap();
    let config =
        TbfConfig { rate, burst: 10_240, limit: 16_490, peak: None, measure, towards: None };
    let arrivals: Vec<_> = (0..40).map(|i| (i * 2 * MS, 1000)).collect();
    let fates = play(Tbf::new(config), &arrivals, false);
    // The kernel's drops are equal, too.
    let dropped: Vec<u64> = fates.dropped.iter().map(|(id, _)| *id).collect();
    assert_eq!(dropped, [34, 35, 36, 38, 39]);
    let late = fates.out[13..].iter().zip(LEFT_LINUX);
    assert_eq!(fates.out.len(), 35);
    for ((at, id), linux) in late {
        let behind = linux - *at as f64 / 1e6;
        assert!((0.0..0.15).contains(&behind), "packet {id}: {behind} ms behind");
    }
}

#[test]
fn a_policer_drops_packets_over_the_rate() {
    let police = |by, peak| {
        Police::new(PoliceConfig {
            by,
            mtu: 2040,
            peak,
            measure: Measure::default(),
            towards: None,
        })
    };
    let bytes = By::Bytes { rate: mbyte(), burst: 2028 };
    let arrivals: Vec<_> = (0..10).map(|i| (i * 507_000, 1000)).collect();
    let fates = play(police(bytes, None), &arrivals, false);
    // Two fit, and half a packet of tokens is refilled per arrival: from then on every second one passes.
    let passed: Vec<u64> = fates.out.iter().map(|(_, id)| *id).collect();
    assert_eq!(passed, [0, 1, 2, 4, 6, 8]);
    assert!(fates.dropped.iter().all(|(_, cause)| *cause == Cause::Policed));
    assert_eq!(fates.times(), [0, 507_000, 1_014_000, 2_028_000, 3_042_000, 4_056_000]);
    let long = police(By::Bytes { rate: mbyte(), burst: 10_000 }, None);
    assert_eq!(play(long, &[(0, 2026), (0, 2027)], false).out, [(0, 0)]);
    let packets = By::Packets { rate: 1000, burst: 2 };
    let fates =
        play(police(packets, None), &[(0, 100), (0, 1500), (0, 40), (MS, 40), (MS, 40)], false);
    assert_eq!(fates.out, [(0, 0), (0, 1), (MS, 3)]);
    let peak = police(By::Bytes { rate: mbyte(), burst: 5000 }, Rate::from_bps(16_000_000));
    assert_eq!(play(peak, &at(&[0, 0, 0, 1]), false).out, [(0, 0), (0, 1), (MS, 3)]);
}

#[test]
fn packets_in_the_other_direction_pass_unchanged() {
    let towards = Some(Side::Left);
    let measure = Measure::default();
    let by = By::Bytes { rate: mbyte(), burst: 1 };
    let police = Police::new(PoliceConfig { by, mtu: 2040, peak: None, measure, towards });
    assert_eq!(play(police, &at(&[0, 0]), false).out.len(), 2);
    let config = TbfConfig { rate: mbyte(), burst: 1, limit: 1, peak: None, measure, towards };
    assert_eq!(play(Tbf::new(config), &at(&[0, 0]), false).times(), [0, 0]);
}

proptest! {
    /// In any interval the output stays within bucket and rate, and no packet waits needlessly.
    #[test]
    fn a_bucket_obeys_its_rate(
        gaps in prop::collection::vec((0..3_000_000_u64, 46..1500_u32), 1..80),
        burst in 1514..20_000_u32,
        limit in 2000..60_000_u32,
    ) {
        let mut now = 0;
        let arrivals: Vec<_> = gaps.iter().map(|(gap, bytes)| { now += gap; (now, *bytes) }).collect();
        let fates = play(tbf(burst, limit, None), &arrivals, false);
        prop_assert!(fates.out.is_sorted_by_key(|(_, id)| *id));
        let bytes = |id: u64| u64::from(arrivals[id as usize].1 + 14);
        for (i, (from, _)) in fates.out.iter().enumerate() {
            let mut sum = 0;
            for (to, id) in &fates.out[i..] {
                sum += bytes(*id);
                prop_assert!(sum * 1000 <= u64::from(burst) * 1000 + (to - from), "{sum} bytes in {} ns", to - from);
            }
        }
    }

    /// For any netem options packets are conserved; `play` checks it in each step.
    #[test]
    fn netem_conserves_packets(
        sent in prop::collection::vec(0..300_u64, 1..120),
        share in prop::array::uniform4(0..=100_u32),
        gap in 0..6_u32,
        rate in prop::option::of(1..20_u32),
        limit in 0..40_u32,
        slot in any::<bool>(),
    ) {
        let [loss, duplicate, corrupt, reorder] = share;
        let mut line = format!("delay 30ms 20ms distribution pareto limit {limit} duplicate {duplicate}% corrupt {corrupt}%");
        line += &format!(" loss {loss}%");
        if reorder > 0 {
            line += &format!(" reorder {reorder}% gap {gap}");
        }
        if let Some(rate) = rate {
            line += &format!(" rate {rate}mbit");
        }
        if slot {
            line += " slot 5ms 9ms packets 3";
        }
        let mut sent: Vec<_> = sent.into_iter().map(|ms| (ms * MS, 1000)).collect();
        sent.sort_unstable();
        let fates = play(netem(&line), &sent, false);
        prop_assert!(fates.out.len() <= 2 * sent.len());
    }
}
