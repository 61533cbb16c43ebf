//! AIRMAIL: by exchange of frames between two ends, and over a hop with losses.

use std::collections::VecDeque;

use lasthop_proto::air::Station;
use lasthop_proto::channel::{BitErrors, Channel, ErrorModel, PacketLoss, TwoState};
use lasthop_proto::event::{Cause, EventKind, Interest, LinkNote, Op};
use lasthop_proto::hop::{Hop, HopConfig};
use lasthop_proto::link::airmail::header::AirmailHeader;
use lasthop_proto::link::airmail::levels::Strength;
use lasthop_proto::link::airmail::{Airmail, AirmailConfig};
use lasthop_proto::link::end::{Above, LinkEnd, MacSignal};
use lasthop_proto::link::frame::{Frame, Header, Load, Timing};
use lasthop_proto::link::{LinkLayerConfig, RadioConfig};
use lasthop_proto::machine::{Machine, Out, Side, StageId};
use lasthop_proto::queue::{Discipline, Limit};
use lasthop_proto::rng::Stream;
use lasthop_proto::units::{Probability, Rate, Span, Time};
use lasthop_proto::wire::{Addr, Body, Flags, Packet, PacketId, Segment, Seq};
use proptest::prelude::*;

fn packet(id: u64, from: Side, len: u32) -> Packet {
    let (fixed, mobile) = (Addr::v4(10, 0, 0, 1), Addr::v4(10, 0, 0, 2));
    let (src, dst) = if from == Side::Left { (fixed, mobile) } else { (mobile, fixed) };
    let segment = Segment::new(1, 2, Seq(id as u32), Seq(0), Flags::ACK);
    let tcp = Packet::tcp(src, dst, segment, Body::Pattern { stream: 1, len, offset: 0 });
    tcp.with(|packet| packet.id = PacketId(id))
}

/// The layer above an end.
#[derive(Default)]
struct Upper {
    queue: VecDeque<Packet>,
    released: Vec<u64>,
    repeated: Vec<(u64, Cause)>,
    notes: Vec<LinkNote>,
    peer: u8,
}

impl Above for Upper {
    fn waits(&self, to: Station) -> bool {
        to.0 == self.peer && !self.queue.is_empty()
    }
    fn next_destination(&self) -> Option<Station> {
        (!self.queue.is_empty()).then_some(Station(self.peer))
    }
    fn take(&mut self, to: Station) -> Option<Load> {
        assert_eq!(to.0, self.peer);
        self.queue.pop_front().map(Load::Packet)
    }
    fn release(&mut self, _: Station, load: Load) {
        self.released.push(load.packet().unwrap().id.0);
    }
    fn give_up(&mut self, _: Station, load: Load, cause: Cause) {
        panic!("{load:?} given up: {cause:?}");
    }
    fn repeat(&mut self, _: Station, load: &Load, cause: Cause) {
        self.repeated.push((load.packet().unwrap().id.0, cause));
    }
    fn attempt_failed(&mut self, _: &Load, _: u32, _: bool) {}
    fn note(&mut self, _: Station, note: LinkNote) {
        self.notes.push(note);
    }
}

/// A base station and a mobile host, 1 ms apart, each with a separate channel.
struct Pair {
    now: Time,
    ends: [Airmail; 2],
    uppers: [Upper; 2],
    /// Frames in flight: arrival time and receiver.
    flying: Vec<(Time, usize, Frame)>,
    /// Time at which the frame of an end has left its transmitter.
    busy: [Option<Time>; 2],
    /// Sent frames: the end, and the frame as text.
    log: Vec<(usize, String)>,
}

fn header(frame: &Frame) -> &AirmailHeader {
    match &frame.header {
        Header::Airmail(header) => header,
        other => panic!("{other:?}"),
    }
}

/// `3?` is packet 3 with a status request; `[2 .*]` a status with 2 in order, not 3, and 4; `p1` is parity.
fn read(frame: &Frame) -> String {
    let header = header(frame);
    let mut text = header.seq.map_or(String::new(), |seq| seq.to_string());
    if let Some(parity) = &header.parity {
        text += &format!("p{}", parity.index);
    }
    text += if header.poll { "?" } else { "" };
    if let Some(status) = &header.status {
        let vector = &status.ack.vector;
        let bits: String =
            (0..vector.len()).map(|i| if vector.get(i) { '*' } else { '.' }).collect();
        text += &format!(
            "[{}{}{bits}]",
            status.ack.cumulative as i32,
            if bits.is_empty() { "" } else { " " }
        );
    }
    text
}

impl Pair {
    fn new(config: &AirmailConfig) -> Pair {
        let timing = Timing {
            byte_ps: 8_000_000,
            frame: Span::ZERO,
            propagation: Span::millis(1),
            turnaround: Span::ZERO,
            processing: Span::ZERO,
            turn: Span::ZERO,
        };
        Pair {
            now: Time::ZERO,
            ends: [0, 1].map(|i| Airmail::new(config, Station(i), 2, timing)),
            uppers: [1, 0].map(|peer| Upper { peer, ..Upper::default() }),
            flying: Vec::new(),
            busy: [None, None],
            log: Vec::new(),
        }
    }

    fn put(&mut self, end: usize, ids: core::ops::Range<u64>) {
        let side = if end == 0 { Side::Left } else { Side::Right };
        self.uppers[end].queue.extend(ids.map(|id| packet(id, side, 1000)));
    }

    /// Runs until `end`; `lost` decides for each frame, by its sender and its number.
    fn run(&mut self, end: Span, mut lost: impl FnMut(usize, usize) -> bool) {
        let mut counts = [0; 2];
        loop {
            for (i, count) in counts.iter_mut().enumerate() {
                if self.busy[i].is_some() {
                    continue;
                }
                let Some(frame) = self.ends[i].next_frame(self.now, &mut self.uppers[i]) else {
                    continue;
                };
                let left = self.now + Span(u64::from(frame.bytes) * 8_000);
                self.busy[i] = Some(left);
                self.log.push((i, read(&frame)));
                if !lost(i, *count) {
                    self.flying.push((left + Span::millis(1), 1 - i, frame));
                }
                *count += 1;
            }
            // The mobile host never has a deadline.
            assert_eq!(self.ends[1].next_wake(), None);
            let wakes = self.ends.iter().filter_map(LinkEnd::next_wake);
            let times = self.busy.iter().flatten().copied().chain(self.flying.iter().map(|f| f.0));
            let Some(at) = wakes.chain(times).min().filter(|at| *at <= Time::ZERO + end) else {
                return;
            };
            self.now = at.max(self.now);
            for i in 0..2 {
                if self.busy[i].is_some_and(|at| at <= self.now) {
                    self.busy[i] = None;
                    let done = MacSignal::Done { to: Station(1 - i as u8), acked: None };
                    self.ends[i].on_mac(self.now, done, &mut self.uppers[i]);
                }
                let now = self.now;
                for (_, _, frame) in self.flying.extract_if(.., |f| f.0 <= now && f.1 == i) {
                    self.ends[i].on_frame(now, frame, &mut self.uppers[i]);
                }
                if self.ends[i].next_wake().is_some_and(|at| at <= now) {
                    self.ends[i].on_wake(now, &mut self.uppers[i]);
                }
            }
        }
    }

    fn log_of(&self, end: usize) -> Vec<&str> {
        self.log.iter().filter(|(i, _)| *i == end).map(|(_, text)| text.as_str()).collect()
    }
}

/// Windows of four, no codes, statuses every 10 s: only the window has an effect.
fn quiet() -> AirmailConfig {
    AirmailConfig {
        window: 4,
        status_period: Some(Span::secs(10)),
        byte_fec: Some(Strength::None),
        packet_fec: Some(0),
        ..AirmailConfig::default()
    }
}

#[test]
fn one_status_acknowledges_a_window() {
    let mut pair = Pair::new(&quiet());
    pair.put(0, 0..6);
    pair.run(Span::secs(1), |_, _| false);
    assert_eq!(pair.log_of(0), ["0", "1", "2", "3?", "4", "5?"]);
    assert_eq!(pair.log_of(1), ["[3]", "[5]"]);
    assert_eq!(pair.uppers[1].released, [0, 1, 2, 3, 4, 5]);
}

#[test]
fn missing_packets_are_retransmitted_before_the_next_window() {
    let mut pair = Pair::new(&quiet());
    pair.put(0, 0..6);
    pair.run(Span::secs(1), |end, nth| end == 0 && (nth == 0 || nth == 2));
    assert_eq!(pair.log_of(0), ["0", "1", "2", "3?", "0", "2?", "4", "5?"]);
    assert_eq!(pair.log_of(1), ["[-1 .*.*]", "[3]", "[5]"]);
    assert_eq!(pair.uppers[1].released, [0, 1, 2, 3, 4, 5]);
    assert_eq!(pair.uppers[0].repeated, [(0, Cause::LinkNack), (2, Cause::LinkNack)]);
}

#[test]
fn the_base_station_repeats_its_request_without_a_status() {
    let mut pair = Pair::new(&quiet());
    pair.put(0, 0..4);
    // The request is lost with its packet, then the answer to the next request.
    pair.run(Span::secs(1), |end, nth| (end, nth) == (0, 3) || (end, nth) == (1, 0));
    assert_eq!(pair.log_of(0), ["0", "1", "2", "3?", "?", "?", "3?"]);
    assert_eq!(pair.log_of(1), ["[2]", "[2]", "[3]"]);
    assert_eq!(pair.uppers[1].released, [0, 1, 2, 3]);
}

#[test]
fn polls_of_a_silent_host_back_off() {
    let config = AirmailConfig { poll_timeout: Some(Span::millis(10)), ..quiet() };
    let mut pair = Pair::new(&config);
    pair.put(0, 0..1);
    pair.run(Span::secs(1), |end, _| end == 0);
    // After 10, 20, 40, and then 80 ms each time.
    let questions = pair.log_of(0).len();
    assert!((13..=15).contains(&questions), "{questions}");
}

#[test]
fn uplink_status_is_sent_by_the_base_stations_timer() {
    let config = AirmailConfig { status_period: Some(Span::millis(50)), ..quiet() };
    let mut pair = Pair::new(&config);
    pair.put(1, 0..6);
    pair.run(Span::millis(115), |end, nth| end == 1 && nth == 1);
    // The buffer of four is full until the first status, which requests packet 1: it precedes new ones.
    assert_eq!(pair.log_of(1), ["0", "1", "2", "3", "1", "4", "5"]);
    assert_eq!(pair.log_of(0)[0], "[0 .**]");
    assert_eq!(pair.uppers[0].released, [0, 1, 2, 3, 4, 5]);
}

#[test]
fn the_last_packet_up_is_found_lost_by_the_second_status() {
    let config = AirmailConfig { status_period: Some(Span::millis(50)), ..quiet() };
    let mut pair = Pair::new(&config);
    pair.put(1, 0..1);
    pair.run(Span::secs(2), |end, nth| end == 1 && nth == 0);
    assert_eq!(pair.log_of(1), ["0", "0"]);
    assert_eq!(pair.log_of(0)[..3], ["[-1]", "[-1]", "[0]"]);
    assert_eq!(pair.uppers[0].released, [0]);
    // No more packets arrive. At 50 ms there would be forty in two seconds; the period has grown to 400.
    assert!(pair.log_of(0).len() < 10, "{:?}", pair.log_of(0));
}

#[test]
fn parity_makes_up_for_packets_without_another_round() {
    let mut pair = Pair::new(&AirmailConfig { packet_fec: Some(2), ..quiet() });
    pair.put(0, 0..4);
    pair.run(Span::secs(1), |end, nth| end == 0 && (nth == 1 || nth == 2));
    assert_eq!(pair.log_of(0), ["0", "1", "2", "3", "p0", "p1?"]);
    assert_eq!(pair.log_of(1), ["[3]"]);
    assert_eq!(pair.uppers[1].released, [0, 1, 2, 3]);
    // Three losses exceed the parity by one.
    let mut pair = Pair::new(&AirmailConfig { packet_fec: Some(2), ..quiet() });
    pair.put(0, 0..4);
    pair.run(Span::secs(1), |end, nth| end == 0 && nth < 3);
    assert_eq!(pair.log_of(0)[6..], ["0", "1", "2?"]);
    assert_eq!(pair.log_of(1), ["[-1 ...*]", "[3]"]);
    assert_eq!(pair.uppers[1].released, [0, 1, 2, 3]);
}

/// Packets delivered to the right and to the left, and the cost.
#[derive(Default)]
struct Run {
    right: Vec<u64>,
    left: Vec<u64>,
    /// Time on the air of each station.
    air: [Span; 2],
    /// Frames sent by each station.
    frames: [usize; 2],
    repeated: usize,
    held: usize,
    end: Time,
}

fn hop(config: AirmailConfig, delay: Span, model: &ErrorModel, seed: u64) -> Hop {
    let radio = RadioConfig {
        rate: Rate::from_bps(2_000_000).unwrap(),
        delay,
        overhead: Span::micros(300),
        half_duplex: true,
        queue: Limit::Packets(10_000),
        discipline_right: Discipline::Fifo,
        discipline_left: Discipline::Fifo,
    };
    let channel = |part: &str| Some(Channel::new(model, Stream::new(seed, part)));
    let config = HopConfig { link: LinkLayerConfig::Airmail(config), ..HopConfig::default() };
    let channels = vec![[channel("left"), channel("right")]];
    Hop::new(&radio, &config, channels, |part| Stream::new(seed, part))
}

/// Sends `down` packets of 1,040 bytes and `up` of 240, one each every `gap`, until all have arrived.
fn send(mut hop: Hop, down: u64, up: u64, gap: Span) -> Run {
    let mut out = Out::new(Interest::METRICS);
    let mut run = Run::default();
    let mut next = 0;
    let mut steps = 0;
    while run.right.len() as u64 != down || run.left.len() as u64 != up {
        let arrival = (next < down.max(up)).then(|| Time::ZERO + gap * next);
        let now = hop.next_wake().into_iter().chain(arrival).min().unwrap();
        steps += 1;
        assert!(steps < 1_000_000, "it never ends: {:?} {:?}", run.right.len(), run.left.len());
        out.begin(StageId(1), now);
        if arrival == Some(now) {
            if next < down {
                hop.on_packet(now, Side::Left, packet(next, Side::Left, 1000), &mut out);
            }
            if next < up {
                hop.on_packet(now, Side::Right, packet(next, Side::Right, 200), &mut out);
            }
            next += 1;
        } else {
            hop.on_wake(now, &mut out);
        }
        for (side, packet) in out.sends.drain(..) {
            if side == Side::Right { &mut run.right } else { &mut run.left }.push(packet.id.0);
        }
        for event in out.events.drain(..) {
            match event.kind {
                EventKind::Air(air) => {
                    run.air[air.station.index()] = run.air[air.station.index()] + air.airtime;
                    run.frames[air.station.index()] += 1;
                }
                EventKind::Packet { op: Op::Repeated(_), .. } => run.repeated += 1,
                EventKind::Packet { op: Op::Dropped(cause), .. } => panic!("{cause:?}"),
                _ => {}
            }
        }
        out.signals.clear();
        out.take_tally();
        run.end = now;
    }
    run.held = hop.holds();
    run
}

fn loss(p: f64) -> ErrorModel {
    ErrorModel::PacketLoss(PacketLoss { p: Probability::new(p).unwrap() })
}

fn ber(ber: f64) -> ErrorModel {
    ErrorModel::BitErrors(BitErrors { ber: Probability::new(ber).unwrap() })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_packet_arrives_once_and_in_order(
        window in 1_u16..40,
        p in 0.0..0.6_f64,
        seed in any::<u64>(),
        gap in 0_u64..8_000_000,
        byte_fec in prop::option::of(prop::sample::select(Strength::ALL.to_vec())),
        packet_fec in prop::option::of(0_u8..5),
    ) {
        let config = AirmailConfig { window, byte_fec, packet_fec, ..AirmailConfig::default() };
        let run = send(hop(config, Span::millis(1), &loss(p), seed), 80, 40, Span(gap));
        prop_assert_eq!(run.right, (0..80).collect::<Vec<_>>());
        prop_assert_eq!(run.left, (0..40).collect::<Vec<_>>());
        prop_assert_eq!(run.held, 0);
    }
}

#[test]
fn the_mobile_host_sends_a_frame_for_each_window() {
    let run =
        send(hop(AirmailConfig::default(), Span::millis(1), &loss(0.0), 1), 640, 0, Span::ZERO);
    // The first packet finds an idle radio and is a separate window; the last window begins when it has
    // arrived.
    assert!(run.frames[1] <= 22, "{:?}", run.frames);
    assert_eq!(run.repeated, 0);
    // 1,040 bytes and a header of 7 at 2 Mb/s, 0.3 ms for each frame.
    let packets = Span::micros(300 + 1047 * 4) * 640;
    assert!(run.air[0] >= packets && run.air[0] < packets + Span::millis(60), "{:?}", run.air);
}

#[test]
fn adaptive_codes_correct_scattered_bit_errors() {
    let time = |byte_fec, model| {
        let config = AirmailConfig { byte_fec, packet_fec: Some(0), ..AirmailConfig::default() };
        send(hop(config, Span::millis(1), &model, 1), 1500, 0, Span::ZERO).end.since(Time::ZERO)
    };
    // A frame of 8,376 bits survives 2e-4 one in five times.
    let (plain, adaptive) = (time(Some(Strength::None), ber(2e-4)), time(None, ber(2e-4)));
    assert!(adaptive * 2 < plain, "{adaptive} {plain}");
    // If a frame in twenty is lost with any code, codes do no harm.
    let (plain, adaptive) = (time(Some(Strength::None), loss(0.05)), time(None, loss(0.05)));
    assert!(adaptive * 100 < plain * 104, "{adaptive} {plain}");
}

#[test]
fn parity_saves_rounds_where_these_are_long() {
    let time = |packet_fec, delay| {
        let config = AirmailConfig {
            packet_fec,
            byte_fec: Some(Strength::None),
            ..AirmailConfig::default()
        };
        send(hop(config, delay, &loss(0.02), 1), 2000, 0, Span::ZERO).end.since(Time::ZERO)
    };
    let (none, adaptive) = (time(Some(0), Span::millis(250)), time(None, Span::millis(250)));
    assert!(adaptive * 10 < none * 9, "{adaptive} {none}");
    let (none, adaptive) = (time(Some(0), Span::millis(1)), time(None, Span::millis(1)));
    assert!(adaptive * 100 < none * 103, "{adaptive} {none}");
}

#[test]
fn a_long_fade_costs_only_occasional_requests() {
    let fade = ErrorModel::TwoState(TwoState {
        good: Span::millis(100),
        bad: Span::secs(1),
        ber_good: Probability::ZERO,
        ber_bad: Probability::new(0.5).unwrap(),
        deterministic: true,
    });
    let run = send(hop(AirmailConfig::default(), Span::millis(1), &fade, 1), 60, 0, Span::ZERO);
    // A window is lost once; then only requests are sent, until one arrives.
    assert!(run.frames[0] < 60 + 32 + 100, "{:?}", run.frames);
    assert_eq!(run.right, (0..60).collect::<Vec<_>>());
}
