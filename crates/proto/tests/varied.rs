//! Links that vary: rates, delays, losses and outages over time, and traces of delivery opportunities.

use lasthop_proto::event::{Cause, EventKind, Interest, Op};
use lasthop_proto::link::varied::{Course, Light, OutagePackets, Pace, Trace};
use lasthop_proto::link::{Line, LineConfig, Varied, VariedConfig};
use lasthop_proto::machine::{Machine as _, Out, Side};
use lasthop_proto::queue::{CodelConfig, Discipline, Limit};
use lasthop_proto::rng::Stream;
use lasthop_proto::units::{Rate, Span, Time};
use proptest::prelude::*;

use crate::support::{packet, play, play_late};

const MS: u64 = 1_000_000;

fn config() -> VariedConfig {
    VariedConfig {
        line: LineConfig {
            rate_right: None,
            rate_left: None,
            delay: Span::ZERO,
            framing: 0,
            queue: Limit::Packets(100_000),
            discipline_right: Discipline::Fifo,
            discipline_left: Discipline::Fifo,
        },
        right: None,
        left: None,
        delays: None,
        losses: None,
        outages: None,
        outage_packets: OutagePackets::Keep,
        impairments: None,
    }
}

fn rates(text: &str) -> Option<Pace> {
    Some(Pace::Rates(Course::parse(text).unwrap()))
}

fn varied(config: VariedConfig) -> Varied {
    Varied::new(config, |part| Stream::new(1, part))
}

/// Output time of each packet to the right, in milliseconds.
fn arrivals_ms(config: VariedConfig, packets: &[(u64, u32)]) -> Vec<f64> {
    let packets: Vec<_> =
        packets.iter().map(|(ms, bytes)| (Time(ms * MS), Side::Left, *bytes)).collect();
    let outcome = play(&mut varied(config), &packets);
    outcome.out.iter().map(|(at, ..)| at.0 as f64 / MS as f64).collect()
}

#[test]
fn a_packet_in_flight_continues_at_the_new_rate() {
    // 1000 bytes take 8 ms at 1 Mbit/s. After 4 of them the rest, 4000 bits, takes 2 ms at twice the rate.
    let faster = VariedConfig { right: rates("0s 1mbit, 4ms 2mbit"), ..config() };
    assert_eq!(arrivals_ms(faster, &[(0, 1000), (0, 1000)]), [6.0, 10.0]);
    // At a rate of zero it waits.
    let stopped = VariedConfig { right: rates("0s 1mbit, 4ms 0bit, 10ms 500kbit"), ..config() };
    assert_eq!(arrivals_ms(stopped, &[(0, 1000)]), [18.0]);
    // Repeating: 8 ms of each 10 carry 8000 bits, and two carry none.
    let again = VariedConfig { right: rates("0s 1mbit, 8ms 0bit, 10ms again"), ..config() };
    assert_eq!(arrivals_ms(again, &[(0, 1000), (0, 1000), (0, 500)]), [8.0, 18.0, 24.0]);
}

#[test]
fn along_a_ramp_the_bits_are_the_area_below_it() {
    // From 0 to 8 Mbit/s within 8 ms: after t ms 500 t^2 bits, so 8000 bits take 4 ms and 32000 take 8.
    let ramp = VariedConfig { right: rates("0s 0bit, 8ms to 8mbit"), ..config() };
    let out = arrivals_ms(ramp, &[(0, 1000), (0, 3000), (0, 1000)]);
    for (out, want) in out.iter().zip([4.0, 8.0, 9.0]) {
        assert!((out - want).abs() < 1e-5, "{out} {want}");
    }
    // Down from 8 Mbit/s to zero: the last bit of 32000 leaves at the end, and one more never.
    let down = VariedConfig { right: rates("0s 8mbit, 8ms to 0bit, 100ms 1mbit"), ..config() };
    let out = arrivals_ms(down, &[(0, 3000), (0, 1000), (0, 125)]);
    for (out, want) in out.iter().zip([4.0, 8.0, 101.0]) {
        assert!((out - want).abs() < 0.01, "{out} {want}");
    }
}

#[test]
fn the_last_bit_sets_the_delay_without_overtaking() {
    let delays = Course::parse("0s 20ms, 10ms 5ms, 40ms 30ms").unwrap();
    let config = VariedConfig { right: rates("0s 1mbit"), delays: Some(delays), ..config() };
    let out = arrivals_ms(config, &[(0, 1000), (3, 1000), (20, 1000), (35, 1000)]);
    // The second is sent at 16 and would arrive at 21, before the first one at 28.
    assert_eq!(out, [28.0, 28.0, 33.0, 73.0]);
}

#[test]
fn in_an_outage_packets_wait_or_are_lost() {
    let outages = Some(Course::parse_outages("4ms-10ms, 20ms-21ms").unwrap());
    let keep = VariedConfig { right: rates("0s 1mbit"), outages, ..config() };
    let sent = [(0, 1000), (5, 1000), (25, 125)];
    assert_eq!(arrivals_ms(keep.clone(), &sent), [14.0, 23.0, 26.0]);
    let drop = VariedConfig { outage_packets: OutagePackets::Drop, ..keep };
    let packets = sent.map(|(ms, bytes)| (Time(ms * MS), Side::Left, bytes));
    let outcome = play(&mut varied(drop), &packets);
    // On the line from 0 to 8 and from 8 to 16 ms: both touch the first outage.
    let lost = [(Time(8 * MS), 0, Cause::Outage), (Time(16 * MS), 1, Cause::Outage)];
    assert_eq!(outcome.dropped, lost);
    assert_eq!(outcome.out, [(Time(26 * MS), Side::Right, 2)]);
}

#[test]
fn outages_and_held_packets_are_reported() {
    let outages = Some(Course::parse_outages("4ms-10ms").unwrap());
    let mut line = varied(VariedConfig { right: rates("0s 1mbit"), outages, ..config() });
    let mut out = Out::new(Interest::EVERYTHING);
    let mut reports = Vec::new();
    let mut calls = vec![(0, Some(1)), (4, None), (5, Some(2)), (10, None), (14, None), (22, None)];
    for (ms, packet_id) in calls.drain(..) {
        let now = Time(ms * MS);
        out.begin(Default::default(), now);
        match packet_id {
            Some(id) => line.on_packet(now, Side::Left, packet(id, 1000), &mut out),
            None => {
                assert_eq!(line.next_wake(), Some(now));
                line.on_wake(now, &mut out);
            }
        }
        out.sends.clear();
        reports.extend(out.events.drain(..).filter_map(|event| match event.kind {
            EventKind::Channel { side: Side::Right, good } => Some(format!("{ms} {good}")),
            EventKind::Packet { op: Op::Redirected(cause), packet, .. } => {
                Some(format!("{ms} {} {}", cause.name(), packet.id.0))
            }
            _ => None,
        }));
    }
    assert_eq!(reports, ["4 false", "4 outage 1", "5 outage 2", "10 true"]);
}

#[test]
fn losses_match_the_probability_of_their_time() {
    let losses = Some(Course::parse("0s 1%, 5s to 21%, 10s 0%").unwrap());
    let config = VariedConfig { losses, ..config() };
    let packets: Vec<_> = (0..12_000).map(|ms| (Time(ms * MS), Side::Left, 100)).collect();
    let outcome = play(&mut varied(config), &packets);
    let lost = |from: u64, to: u64| {
        let times = outcome.dropped.iter().map(|(at, ..)| at.0 / MS);
        times.filter(|ms| (from..to).contains(ms)).count() as f64
    };
    assert!(outcome.dropped.iter().all(|(.., cause)| *cause == Cause::FrameLost));
    assert_eq!(lost(10_000, 12_000), 0.0);
    // Means 550 and 1050 of 5000, standard deviations below 23 and 29.
    assert!((lost(0, 5000) - 550.0).abs() < 70.0, "{}", lost(0, 5000));
    assert!((lost(5000, 10_000) - 1050.0).abs() < 90.0, "{}", lost(5000, 10_000));
}

#[test]
fn an_opportunity_is_shared_wasted_or_continued() {
    let trace = |text: &str| Some(Pace::Trace(Trace::parse(text).unwrap()));
    // 752 bytes with the header of a TUN device: two of them fill one opportunity.
    let shared = VariedConfig { right: trace("5\n9\n20\n"), ..config() };
    assert_eq!(arrivals_ms(shared.clone(), &[(0, 748), (0, 748), (0, 748)]), [5.0, 5.0, 9.0]);
    // One byte more: the rest leaves with the next opportunity.
    assert_eq!(arrivals_ms(shared.clone(), &[(0, 748), (0, 749), (0, 1500)]), [5.0, 9.0, 20.0]);
    // A packet uses no opportunity of its own millisecond, and the trace repeats after its last line.
    let late = [(5, 1500), (10, 1500), (20, 1500), (30, 1500), (61, 1500)];
    assert_eq!(arrivals_ms(shared.clone(), &late), [9.0, 20.0, 25.0, 40.0, 65.0]);
    // The delay is added afterwards.
    let far = LineConfig { delay: Span::millis(30), ..config().line };
    assert_eq!(arrivals_ms(VariedConfig { line: far, ..shared }, &[(0, 100)]), [35.0]);
}

#[test]
fn a_train_follows_the_light_trace_and_then_the_heavy_one() {
    let light = Light::parse("0 30 0 1 1 2\n500 40 0 2 3\n1000 31 0 1\n").unwrap();
    let trace = Trace::parse("10\n").unwrap().with_light(light);
    let pair = VariedConfig { right: Some(Pace::Trace(trace)), ..config() };
    let full = |at: &[u64]| at.iter().map(|ms| (*ms, 1396)).collect::<Vec<_>>();
    let arrivals = |at: &[u64]| arrivals_ms(pair.clone(), &full(at));
    // Four packets use the train, 30 ms before they arrive. The rest, also of a busy link, waits for 10, 20, 30.
    let busy = [0, 0, 0, 0, 0, 0, 15];
    assert_eq!(arrivals(&busy), [30.0, 31.0, 31.0, 32.0, 40.0, 50.0, 60.0]);
    // A later packet starts another train, with the delay between two lines; the last line ends the period.
    assert_eq!(arrivals(&[0, 250, 250, 1250]), [30.0, 285.0, 286.0, 1285.0]);
    assert_eq!(arrivals(&[600, 600, 600, 600]), [638.2, 640.2, 641.2, 648.2]);
    // CellReplay's own queue returns the same times for each of these, but 650 for 648.2: its opportunities follow the
    // delay. Packets of a train are not split: what does not fit takes the next opportunity.
    let mixed = [(0, 100), (0, 696), (0, 696), (0, 697), (0, 1500), (0, 100)];
    assert_eq!(arrivals_ms(pair.clone(), &mixed), [30.0, 30.0, 31.0, 31.0, 32.0, 40.0]);
    // A heavy opportunity carries 1400 bytes as well, and a packet that does not fit continues.
    let heavy = [(0, 1396), (0, 1396), (0, 1396), (0, 1396), (0, 1397), (0, 1300)];
    assert_eq!(arrivals_ms(pair, &heavy)[4..], [50.0, 50.0]);
}

#[test]
fn opportunities_of_an_outage_carry_nothing() {
    let trace = Some(Pace::Trace(Trace::parse("2\n4\n6\n8\n10\n").unwrap()));
    let outages = Some(Course::parse_outages("3ms-7ms").unwrap());
    let config = VariedConfig { right: trace, outages, ..config() };
    assert_eq!(arrivals_ms(config, &[(0, 1500), (0, 1500), (0, 1500)]), [2.0, 8.0, 10.0]);
}

/// Any trace of up to 60 lines, some with equal times, with a period of at least a millisecond.
fn any_trace() -> impl Strategy<Value = Vec<u32>> {
    let gaps = prop::collection::vec(prop_oneof![Just(0_u32), 0..4_u32, 0..150_u32], 1..60);
    (0..30_u32, gaps).prop_map(|(first, gaps)| {
        let mut at = first;
        let mut times: Vec<u32> = gaps
            .iter()
            .map(|gap| {
                at += gap;
                at
            })
            .collect();
        if at == 0 {
            times.push(1);
        }
        times
    })
}

/// Bytes of a saturating sender in each 100 ms, by an independent reading of the format. Byte number n leaves
/// with the first opportunity up to which the trace has room for n bytes, and a packet with its last byte.
fn per_window(times: &[u32], sizes: &[u32]) -> Vec<u64> {
    let period = u64::from(*times.last().unwrap());
    let rounds =
        (0_u64..).flat_map(|round| times.iter().map(move |t| round * period + u64::from(*t)));
    let mut room = 0_u64;
    // At 0 the packets have not arrived yet.
    let mut opportunities = rounds.filter(|at| *at > 0).map(|at| {
        room += 1504;
        (at, room)
    });
    let (mut at, mut room) = opportunities.next().unwrap();
    let (mut windows, mut sent) = (Vec::new(), 0_u64);
    for size in sizes {
        sent += u64::from(size + 4);
        while room < sent {
            (at, room) = opportunities.next().unwrap();
        }
        let window = (at / 100) as usize;
        windows.resize(windows.len().max(window + 1), 0);
        windows[window] += u64::from(*size);
    }
    windows
}

proptest! {
    #[test]
    fn a_saturating_sender_gets_the_rate_of_the_trace(
        times in any_trace(),
        sizes in prop::collection::vec(41..1600_u32, 1..200),
    ) {
        let trace = Some(Pace::Trace(Trace::new(times.clone()).unwrap()));
        let packets: Vec<_> = sizes.iter().map(|size| (Time(0), Side::Left, *size)).collect();
        let outcome = play(&mut varied(VariedConfig { right: trace, ..config() }), &packets);
        prop_assert_eq!(outcome.out.len(), sizes.len());
        let mut windows = Vec::new();
        for (at, _, id) in &outcome.out {
            let window = (at.0 / (100 * MS)) as usize;
            windows.resize(windows.len().max(window + 1), 0);
            windows[window] += u64::from(sizes[*id as usize]);
        }
        prop_assert_eq!(windows, per_window(&times, &sizes));
    }

    #[test]
    fn a_lone_packet_takes_the_next_opportunity(
        times in any_trace(),
        arrivals in prop::collection::vec(0..20_000_u64, 1..20),
    ) {
        let trace = Some(Pace::Trace(Trace::new(times.clone()).unwrap()));
        let period = u64::from(*times.last().unwrap());
        for tenth in arrivals {
            // In tenths of a millisecond, to hit opportunities and the time between them.
            let now = Time(tenth * MS / 10);
            let mut line = varied(VariedConfig { right: trace.clone(), ..config() });
            let outcome = play(&mut line, &[(now, Side::Left, 1500)]);
            let mut rounds = (0..).flat_map(|round| times.iter().map(move |t| round * period + u64::from(*t)));
            let want = rounds.find(|ms| ms * MS > now.0).unwrap();
            prop_assert_eq!(outcome.out[0].0, Time(want * MS));
        }
    }

    #[test]
    fn a_constant_rate_equals_a_plain_line(
        bps in 1_000..100_000_000_u64,
        packets in prop::collection::vec((0..200_u64, any::<bool>(), 41..1600_u32), 0..100),
        queue in 0..20_u32,
        delay in 0..100_u64,
        codel in any::<bool>(),
    ) {
        let discipline = if codel { Discipline::Codel(CodelConfig::default()) } else { Discipline::Fifo };
        let rate = Rate::from_bps(bps);
        let line = LineConfig {
            rate_right: rate, rate_left: rate, delay: Span::millis(delay), framing: 14,
            queue: Limit::Packets(queue), discipline_right: discipline, discipline_left: discipline,
        };
        let mut packets: Vec<_> = packets.into_iter()
            .map(|(ms, left, bytes)| (Time(ms * MS), if left { Side::Left } else { Side::Right }, bytes))
            .collect();
        packets.sort_by_key(|(at, ..)| *at);
        let steps = Course::steps([(Span::ZERO, rate), (Span::millis(30), rate)], None).unwrap();
        let same = VariedConfig {
            line: line.clone(), right: Some(Pace::Rates(steps)), ..config()
        };
        prop_assert_eq!(play(&mut varied(same), &packets), play(&mut Line::new(line), &packets));
    }

    #[test]
    fn packets_are_conserved_and_order_is_preserved(
        times in any_trace(),
        packets in prop::collection::vec((0..3000_u64, any::<bool>(), 41..1600_u32), 0..80),
        queue in 0..20_u32,
        drop in any::<bool>(),
        codel in any::<bool>(),
        tick in 1..20_u64,
    ) {
        let mut packets: Vec<_> = packets.into_iter()
            .map(|(ms, left, bytes)| (Time(ms * MS), if left { Side::Left } else { Side::Right }, bytes))
            .collect();
        packets.sort_by_key(|(at, ..)| *at);
        let discipline = if codel { Discipline::Codel(CodelConfig::default()) } else { Discipline::Fifo };
        let line = LineConfig {
            queue: Limit::Packets(queue), discipline_right: discipline, ..config().line
        };
        let varying = VariedConfig {
            line,
            right: Some(Pace::Trace(Trace::new(times).unwrap())),
            left: rates("0s 1mbit, 100ms to 0bit, 300ms 3mbit, 500ms again"),
            delays: Some(Course::parse("0s 20ms, 700ms 1ms, 900ms to 50ms, 1s again").unwrap()),
            losses: Some(Course::parse("0s 0%, 1s 10%").unwrap()),
            outages: Some(Course::parse_outages("100ms-150ms, 170ms-180ms, 400ms again").unwrap()),
            outage_packets: if drop { OutagePackets::Drop } else { OutagePackets::Keep },
            impairments: None,
        };
        // Timers of a clock with ticks are late; each step counts the stored packets.
        let late = |wake: Time| Time(wake.0.div_ceil(tick * MS) * tick * MS);
        for outcome in [
            play(&mut varied(varying.clone()), &packets),
            play_late(&mut varied(varying), &packets, late),
        ] {
            for side in Side::BOTH {
                let ids: Vec<u64> =
                    outcome.out.iter().filter(|(_, to, _)| *to == side).map(|(.., id)| *id).collect();
                prop_assert!(ids.is_sorted(), "{:?}", ids);
            }
        }
    }
}
