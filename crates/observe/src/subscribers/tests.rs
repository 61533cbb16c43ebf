use lasthop_proto::wire::{Body, Seq, Timestamps};
use proptest::prelude::*;

use super::*;

const CONFIG: Config = Config { prefix4: 32, prefix6: 64, most: 100, flows: 100 };

fn at(millis: u64) -> Time {
    Time::ZERO + Span::millis(millis)
}

/// A server and a subscriber with one connection, and the view of the station between them.
struct Hosts {
    view: Subscribers,
    ids: u64,
    /// Initial sequence numbers: server, subscriber.
    first: [u32; 2],
    /// The clocks of the timestamps option, if the hosts use it.
    stamps: Option<[u32; 2]>,
    passage: Passage,
}

impl Hosts {
    fn new(first: [u32; 2]) -> Hosts {
        let view = Subscribers::new(CONFIG);
        Hosts { view, ids: 0, first, stamps: None, passage: Passage::In }
    }

    fn packet(&mut self, from: Side, flags: Flags, (seq, len): (u32, u32), ack: u32) -> Packet {
        let (own, peer) = (from.index(), from.other().index());
        let addrs = [Addr::v4(192, 0, 2, 1), Addr::v4(10, 0, 0, 7)];
        let ports = [443, 50_000];
        let [seq, ack] = [Seq(self.first[own]) + seq, Seq(self.first[peer]) + ack];
        let mut segment = Segment::new(ports[own], ports[peer], seq, ack, flags);
        segment.window = 60_000;
        segment.timestamps =
            self.stamps.map(|clocks| Timestamps { value: clocks[own], echo: clocks[peer] });
        self.ids += 1;
        Packet::tcp(addrs[own], addrs[peer], segment, Body::Pattern { stream: 1, len, offset: 0 })
            .with(|parts| parts.id = PacketId(self.ids))
    }

    /// A segment enters from one side, and leaves at the other.
    fn pass(&mut self, ms: u64, from: Side, flags: Flags, span: (u32, u32), ack: u32) {
        let packet = self.packet(from, flags, span, ack);
        self.view.passage(at(ms), from.other(), &packet, self.passage, false);
        if self.passage == Passage::In {
            self.view.passage(at(ms), from.other(), &packet, Passage::Out, false);
        }
    }

    fn down(&mut self, ms: u64, seq: u32, len: u32) {
        self.pass(ms, Side::Left, Flags::ACK, (seq, len), 1);
    }

    fn ack(&mut self, ms: u64, ack: u32) {
        self.pass(ms, Side::Right, Flags::ACK, (1, 0), ack);
    }

    /// The station retransmits data of the server.
    fn local(&mut self, ms: u64, seq: u32, len: u32) {
        let packet = self.packet(Side::Left, Flags::ACK, (seq, len), 1);
        self.view.passage(at(ms), Side::Right, &packet, Passage::Out, true);
    }

    /// The handshake: 40 ms on the server side, 20 ms on the radio side.
    fn open(&mut self) {
        self.pass(0, Side::Right, Flags::SYN, (0, 0), 0);
        self.pass(40, Side::Left, Flags::SYN | Flags::ACK, (0, 0), 1);
        self.ack(60, 1);
    }

    fn row(&self, ms: u64) -> Subscriber {
        assert_eq!(self.view.slots(), 1);
        self.view.subscriber(at(ms), 0).unwrap()
    }
}

/// Numbers at the start, and near the wraparound of each end.
const FIRSTS: [[u32; 2]; 3] = [[0, 0], [u32::MAX - 2500, 9], [7, u32::MAX - 500]];

#[test]
fn a_download_has_the_figures_of_its_segments() {
    for first in FIRSTS {
        let mut hosts = Hosts::new(first);
        hosts.open();
        // 1: lost on the radio, and repaired by the server. 3: by the station. 5: lost before the station.
        hosts.down(100, 1, 1000);
        hosts.down(101, 1001, 1000);
        hosts.down(102, 2001, 1000);
        hosts.down(103, 3001, 1000);
        hosts.down(104, 4001, 1000);
        hosts.down(105, 6001, 1000);
        hosts.ack(121, 1001);
        hosts.down(180, 1001, 1000);
        hosts.ack(200, 3001);
        hosts.local(201, 3001, 1000);
        hosts.ack(221, 5001);
        hosts.down(260, 5001, 1000);
        hosts.ack(280, 7001);
        let row = hosts.row(1000);
        assert_eq!(row.subscriber.to_string(), "10.0.0.7");
        let expected = Transfers {
            delivered_down: 7000,
            delivered_up: 0,
            arrived: 8000,
            missing_before: 1000,
            server_bytes: 1000,
            server_packets: 1,
            sent: 9000,
            sent_again: 2000,
            local_bytes: 1000,
            local_packets: 1,
        };
        assert_eq!(row.total, expected, "{first:?}");
        assert_eq!((row.loss_down, row.loss_before), (Some(2.0 / 9.0), Some(1.0 / 7.0)));
        assert_eq!((row.goodput_down, row.loss_up, row.upload), (7000.0, None, None));
        // Of the handshake and of the first segment, and none that waited for a repair.
        let radio = row.radio.unwrap();
        assert_eq!((radio.samples, radio.min_s), (2, 0.02), "{first:?}");
        assert!((radio.median_s - 0.0205).abs() < 0.001, "{radio:?}");
        let server = row.server.unwrap();
        assert_eq!((server.samples, server.min_s), (1, 0.04), "{first:?}");
        assert_eq!(row.grade, None, "for want of round trips");
    }
}

#[test]
fn an_upload_has_losses_on_the_radio_and_round_trips_to_the_server() {
    for first in FIRSTS {
        let mut hosts = Hosts::new(first);
        hosts.open();
        let up = |hosts: &mut Hosts, ms, seq| {
            hosts.pass(ms, Side::Right, Flags::ACK, (seq, 500), 1);
        };
        let answer = |hosts: &mut Hosts, ms, ack| {
            hosts.pass(ms, Side::Left, Flags::ACK, (1, 0), ack);
        };
        up(&mut hosts, 100, 1);
        answer(&mut hosts, 150, 501);
        // The second is lost on the radio, the fourth behind the station.
        up(&mut hosts, 201, 1001);
        up(&mut hosts, 202, 1501);
        answer(&mut hosts, 251, 501);
        up(&mut hosts, 300, 501);
        answer(&mut hosts, 350, 1501);
        up(&mut hosts, 400, 1501);
        answer(&mut hosts, 450, 2001);
        let row = hosts.row(450);
        assert_eq!((row.total.delivered_up, row.total.delivered_down), (2000, 0), "{first:?}");
        let expected = Upload { arrived: 2000, missing: 500, client_bytes: 500, client_packets: 1 };
        assert_eq!(row.upload, Some(expected), "{first:?}");
        assert_eq!((row.loss_up, row.loss_down), (Some(0.25), None));
        let server = row.server.unwrap();
        assert_eq!((server.samples, server.min_s), (2, 0.04), "{first:?}");
        // The FIN is no payload.
        hosts.pass(500, Side::Right, Flags::FIN | Flags::ACK, (2001, 0), 1);
        answer(&mut hosts, 540, 2002);
        assert_eq!(hosts.row(540).total.delivered_up, 2000);
    }
}

/// The kernel forwards: copies have no losses of uploads, and only round trips that cannot be wrong.
#[test]
fn figures_from_uncopied_packets_are_absent() {
    let mut hosts = Hosts::new([0, 0]);
    hosts.passage = Passage::Copied;
    hosts.open();
    hosts.down(100, 1, 1000);
    hosts.ack(130, 1001);
    hosts.pass(200, Side::Right, Flags::ACK, (1, 500), 1001);
    hosts.pass(900, Side::Left, Flags::ACK, (1001, 0), 501);
    let row = hosts.row(1000);
    assert_eq!((row.upload, row.loss_up), (None, None));
    assert_eq!((row.total.delivered_down, row.total.delivered_up), (1000, 500));
    assert_eq!((row.total.sent, row.total.arrived), (1000, 1000));
    assert_eq!(row.radio.map(|trips| trips.samples), Some(2));
    let server = row.server.unwrap();
    assert_eq!((server.samples, server.min_s), (1, 0.04), "the copy may be a retransmission");
}

#[test]
fn timestamps_measure_the_server_side_while_it_has_data_in_flight() {
    let mut hosts = Hosts::new([0, 0]);
    hosts.stamps = Some([1000, 2000]);
    hosts.open();
    let mut now = 100;
    for n in 0..4 {
        hosts.down(now, 1 + 2000 * n, 1000);
        hosts.down(now, 1001 + 2000 * n, 1000);
        hosts.stamps = Some([1000, 2001 + n]);
        // One of two is acknowledged; the server answers 30 ms later.
        hosts.ack(now + 20, 1001 + 2000 * n);
        now += 50;
    }
    // The server has sent everything: its next answer is late.
    hosts.down(now, 8001, 1000);
    hosts.stamps = Some([1000, 2500]);
    hosts.ack(now + 20, 9001);
    hosts.down(now + 5000, 9001, 1000);
    let server = hosts.row(now + 5000).server;
    // The handshake's has lost no weight: all are of one window.
    let server = server.unwrap();
    assert_eq!((server.samples, server.min_s), (5, 0.03), "{server:?}");
    assert!(server.median_s < 0.041, "{server:?}");
}

#[test]
fn the_grade_depends_on_the_delay_increase() {
    let mut hosts = Hosts::new([0, 0]);
    hosts.open();
    for n in 0..20 {
        let now = 100 + u64::from(n) * 200;
        hosts.down(now, 1 + 1000 * n, 1000);
        hosts.ack(now + 90, 1001 + 1000 * n);
    }
    let row = hosts.row(5000);
    let increase = row.increase_s.unwrap();
    assert!((increase - 0.07).abs() < 0.003, "{increase}");
    assert_eq!(row.grade, Some(Grade::C));
    let mut overview = hosts.view.overview();
    overview.add(&row);
    assert_eq!((overview.grades["C"], overview.grades["A"], overview.ungraded), (1, 0, 0));
    // Without segments it has no grade, and after five minutes it is not counted.
    overview.add(&hosts.row(290_000));
    overview.add(&hosts.row(400_000));
    assert_eq!((overview.grades["C"], overview.ungraded), (1, 1));
}

/// A host would not accept these segments, so they change no figure. Nor do those of unknown connections.
#[test]
fn unacceptable_segments_change_no_figure() {
    let mut hosts = Hosts::new([0, 0]);
    for n in 0..50 {
        hosts.down(n, 1, 1000);
        hosts.pass(n, Side::Left, Flags::SYN, (0, 0), 0);
    }
    hosts.pass(1, Side::Right, Flags::RST | Flags::ACK, (0, 0), 1);
    assert_eq!((hosts.view.slots(), hosts.view.overview().flows), (0, 0));
    hosts.open();
    hosts.down(100, 1, 1000);
    let before = hosts.row(200);
    hosts.down(101, 5_000_000, 1000);
    hosts.down(102, 3_000_000_000, 1000);
    hosts.pass(103, Side::Left, Flags::SYN, (70_000, 0), 0);
    hosts.pass(104, Side::Left, Flags::FIN | Flags::ACK, (8_000_000, 0), 1);
    hosts.pass(105, Side::Left, Flags::RST, (9_000_000, 0), 0);
    hosts.pass(106, Side::Left, Flags::ACK, (1001, 0), 5_000_000);
    let packet = hosts.packet(Side::Left, Flags::ACK, (1, 1000), 1);
    let damaged = packet.with(|parts| parts.damage = Damage::Tcp);
    hosts.view.passage(at(107), Side::Right, &damaged, Passage::In, false);
    let after = hosts.row(200);
    assert_eq!((after.total, after.radio), (before.total, before.radio));
    assert_eq!(hosts.view.overview().refused, 6);
    hosts.ack(120, 1001);
    assert_eq!(hosts.row(200).total.delivered_down, 1000);
    // The reset that a host accepts ends the connection, and its own packet creates none.
    hosts.pass(130, Side::Left, Flags::RST, (1001, 0), 0);
    assert_eq!(hosts.view.overview().flows, 0);
}

#[test]
fn full_tables_evict_the_least_recently_seen_entry() {
    let most = 20_000;
    let mut view = Subscribers::new(Config { most, flows: 30_000, ..CONFIG });
    let open = |view: &mut Subscribers, ms: u64, n: u32| {
        let [_, b, c, d] = n.to_be_bytes();
        let segment = Segment::new(50_000, 443, Seq(n), Seq(0), Flags::SYN);
        let packet =
            Packet::tcp(Addr::v4(10, b, c, d), Addr::v4(192, 0, 2, 1), segment, Body::EMPTY);
        view.passage(at(ms), Side::Left, &packet, Passage::In, false);
    };
    for n in 0..50_000 {
        open(&mut view, u64::from(n), n);
        if n % 1000 == 0 {
            // It is seen again and again, so it stays.
            open(&mut view, u64::from(n), 0);
        }
    }
    let overview = view.overview();
    assert_eq!((overview.followed, overview.evicted), (20_000, 30_000));
    assert_eq!((overview.flows, overview.flows_evicted), (30_000, 20_000));
    assert_eq!(view.slots(), most);
    let rows = |view: &Subscribers| -> Vec<Subscriber> {
        (0..view.slots()).filter_map(|slot| view.subscriber(at(50_000), slot)).collect()
    };
    let mut all = rows(&view);
    assert_eq!(all.len(), most);
    assert!(all.iter().any(|row| row.subscriber.to_string() == "10.0.0.0"));
    all.sort_by_key(|row| row.subscriber);
    assert_eq!(all[1].subscriber.to_string(), "10.0.117.49", "the first ones are gone");
    retain_first(&mut all, Order::Goodput, 10);
    assert_eq!(all.len(), 10);
    // Memory of one entry of each table, without the index by key.
    let (account, flow) = (size_of::<Account>(), size_of::<Tracked>());
    assert!(account <= 1700 && flow <= 340, "{account} {flow}");
}

#[test]
fn a_prefix_is_one_subscriber() {
    let mut view = Subscribers::new(Config { prefix4: 24, ..CONFIG });
    let server = Addr::v4(192, 0, 2, 1);
    let v6 = |last: u16| Addr::from(std::net::IpAddr::from([0xfd00, 1, 2, 3, 0, 0, 0, last]));
    for addr in
        [Addr::v4(10, 0, 0, 1), Addr::v4(10, 0, 0, 200), v6(1), v6(9), Addr::v4(10, 0, 1, 1)]
    {
        let segment = Segment::new(50_000, 443, Seq(1), Seq(0), Flags::SYN);
        let server = if addr.is_v4() { server } else { v6(77) };
        let packet = Packet::tcp(addr, server, segment, Body::EMPTY);
        view.passage(at(1), Side::Left, &packet, Passage::In, false);
    }
    let names: Vec<String> = (0..view.slots())
        .filter_map(|slot| view.subscriber(at(1), slot))
        .map(|row| row.subscriber.to_string())
        .collect();
    assert_eq!(names, ["10.0.0.0/24", "fd00:1:2:3::/64", "10.0.1.0/24"]);
    for name in names {
        let prefix: Prefix = name.parse().unwrap();
        assert_eq!(prefix.to_string(), name);
        assert!(prefix.contains(prefix));
    }
    let of = |word: &str| word.parse::<Prefix>().unwrap();
    assert!(of("10.0.0.0/8").contains(of("10.0.0.0/24")));
    assert!(!of("10.0.0.0/24").contains(of("10.0.0.0/8")));
    assert!(!of("10.0.0.0/8").contains(of("fd00::/64")));
    assert!("10.0.0.0/33".parse::<Prefix>().is_err() && "moth".parse::<Prefix>().is_err());
}

/// A row with these figures only.
fn row(last: u8, grade: Option<Grade>, loss_down: Option<f64>, goodput_down: f64) -> Subscriber {
    let mut hosts = Hosts::new([0, 0]);
    hosts.open();
    let subscriber = format!("10.0.0.{last}").parse().unwrap();
    let increase_s = grade.map(|_| 0.1);
    Subscriber { subscriber, grade, increase_s, loss_down, goodput_down, ..hosts.row(60) }
}

#[test]
fn rows_sort_worst_first_and_missing_values_last() {
    let rows = [
        row(1, None, Some(0.5), 9.0),
        row(2, Some(Grade::APlus), None, 8.0),
        row(3, Some(Grade::F), Some(0.0), 7.0),
        row(4, Some(Grade::C), Some(0.1), 7.0),
    ];
    for (order, expected) in
        [(Order::Grade, [3, 4, 2, 1]), (Order::Loss, [1, 4, 3, 2]), (Order::Goodput, [1, 2, 3, 4])]
    {
        let mut sorted = rows.to_vec();
        retain_first(&mut sorted, order, 9);
        let names: Vec<String> = sorted.iter().map(|row| row.subscriber.to_string()).collect();
        assert_eq!(names, expected.map(|n| format!("10.0.0.{n}")), "{order:?}");
    }
}

proptest! {
    /// Segments with any numbers, flags and times: no panic, and figures that contradict none.
    #[test]
    fn any_segments_give_consistent_figures(
        segments in prop::collection::vec(
            (any::<bool>(), 0u8..3, 0u16..64, 0u32..9, prop_oneof![0u32..4000, any::<u32>()], 0u32..3000,
             prop_oneof![0u32..4000, any::<u32>()], any::<(bool, u32, u32)>(), 0u64..100_000),
            1..200,
        ),
    ) {
        let mut view = Subscribers::new(Config { prefix4: 31, prefix6: 64, most: 3, flows: 5 });
        let mut now = Time::ZERO;
        for (right, passage, flags, host, seq, len, ack, (stamped, value, echo), later) in segments {
            now += Span::micros(later * later / 1000);
            let flags = if flags & 3 == 3 { Flags::ACK } else { Flags(flags) };
            let (a, b) = (Addr::v4(192, 0, 2, 1), Addr::v4(10, 0, 0, host as u8));
            let mut segment = Segment::new(9, 9, Seq(seq), Seq(ack), flags);
            segment.window = seq as u16;
            segment.timestamps = stamped.then_some(Timestamps { value, echo });
            let (side, src, dst) =
                if right { (Side::Left, b, a) } else { (Side::Right, a, b) };
            let packet = Packet::tcp(src, dst, segment, Body::Pattern { stream: 1, len, offset: 0 });
            let passage = [Passage::In, Passage::Out, Passage::Copied][usize::from(passage)];
            view.passage(now, side, &packet, passage, value % 2 == 0);
            let overview = view.overview();
            prop_assert!(overview.followed <= 3 && overview.flows <= 5);
        }
        for slot in 0..view.slots() {
            let row = view.subscriber(now, slot).unwrap();
            let total = row.total;
            prop_assert!(total.sent_again <= total.sent && total.local_bytes <= total.sent_again);
            prop_assert!(total.server_bytes + total.missing_before <= total.arrived);
            for share in [row.loss_down, row.loss_up, row.loss_before].into_iter().flatten() {
                prop_assert!((0.0..=1.0).contains(&share), "{share}");
            }
            for trips in [row.radio, row.server].into_iter().flatten() {
                prop_assert!(trips.min_s <= trips.median_s && trips.median_s <= 60.0);
            }
            let text = serde_json::to_string(&row).unwrap();
            let read: Subscriber = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(read.total, row.total);
        }
    }
}
