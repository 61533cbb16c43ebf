//! The view of subscribers of a station with real TCP hosts: its figures are compared with the delays, losses and bytes
//! of the links on both sides.
//!
//! ```text
//! fh: fl --- ll [5 ms] lr --- bl [station] br --- rl [10 ms, losses] rr --- mr :mh
//! ```
//!
//! The links are stations too, in namespaces of their own, since not each kernel has netem.

use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use crate::common::*;
use lasthop_live::clock::Clock;
use lasthop_live::control::client::Client;
use lasthop_live::control::protocol::{Request, Response};
use lasthop_live::counters::{Counters, Tap};
use lasthop_live::plane::Plane;
use lasthop_live::service::{self, StationReport};
use lasthop_live::station::{Handle, Port, Station};
use lasthop_live::subscribers::SubscriberView;
use lasthop_observe::subscribers::{Order, Subscriber};
use lasthop_path::Stage;
use lasthop_proto::event::Interest;
use lasthop_proto::machine::{Side, StageId};
use lasthop_scenario::{SubscriberConfig, parse_station};
use nix::net::if_::if_nametoindex;

const LENGTH: usize = 6_000_000;

/// Payload of a full segment with timestamps, bytes.
const SEGMENT: f64 = 1448.0;

/// Maximum number of segments that others overtake between the cores of this machine. They count as missing too.
const OVERTAKEN: f64 = 10.0;

/// A row of namespaces with cables between them.
fn wire_row() {
    for name in ["fh", "ls", "bs", "rs", "mh"] {
        sh(&format!(
            "ip netns add {name}; ip -n {name} link set dev lo up
             ip netns exec {name} sysctl -qw net.ipv6.conf.default.disable_ipv6=1"
        ));
    }
    for [(a, one), (b, other)] in [
        [("fh", "fl"), ("ls", "ll")],
        [("ls", "lr"), ("bs", "bl")],
        [("bs", "br"), ("rs", "rl")],
        [("rs", "rr"), ("mh", "mr")],
    ] {
        sh(&format!("ip link add name {one} netns {a} type veth peer name {other} netns {b}"));
        for (name, dev) in [(a, one), (b, other)] {
            sh(&format!(
                "ip netns exec {name} ethtool -K {dev} tso off gso off gro off tx off
                 ip -n {name} link set dev {dev} up"
            ));
        }
    }
    sh("ip -n fh addr add 10.9.0.1/24 dev fl; ip -n mh addr add 10.9.0.2/24 dev mr");
    wait_up(&[("fh", "fl"), ("bs", "bl"), ("bs", "br"), ("mh", "mr")]);
}

/// A station that imitates a link.
struct Link {
    counters: Arc<Counters>,
    handle: Handle,
    thread: JoinHandle<()>,
}

impl Link {
    fn start(namespace: &'static str, devs: [&'static str; 2], stage: &'static str) -> Link {
        let (sender, started) = channel();
        let counters = Counters::new(3);
        let mut tap = Tap(counters.clone());
        let thread = within(namespace, move || {
            let text =
                format!("left = \"{}\"\nright = \"{}\"\n[[path]]\n{stage}", devs[0], devs[1]);
            let (file, _) = parse_station(&text).unwrap();
            let inner = file.path.stages().iter().map(|stage| Stage::of_path(stage, 7)).collect();
            let mut station = station_between(devs, inner, Clock::start());
            sender.send(station.handle()).unwrap();
            station.run(&mut tap, &mut |_, _, _| true).unwrap();
        });
        Link { counters, handle: started.recv().unwrap(), thread }
    }

    /// Packets that its channel damaged, which their receiver drops: towards the right, and towards the left.
    fn stop(self) -> [u64; 2] {
        self.handle.ask(Station::stop);
        self.thread.join().unwrap();
        let happened = self.counters.at(1);
        [happened.right, happened.left].map(|side| {
            let dropped: u64 = side.dropped.iter().map(|(_, n)| n).sum();
            assert_eq!(dropped, 0, "no queue is full");
            side.damaged
        })
    }
}

fn station_between(devs: [&'static str; 2], inner: Vec<Stage>, clock: Clock) -> Station {
    let index = |name: &str| if_nametoindex(name).unwrap();
    let ports = vec![
        Port::open(devs[0], index(devs[0]), StageId(0), Side::Left).unwrap(),
        Port::open(devs[1], index(devs[1]), StageId(2), Side::Right).unwrap(),
    ];
    Station::new(path_of(inner, Interest::METRICS), ports, clock).unwrap()
}

/// Sends `LENGTH` bytes from `mh` to a server at `fh` that begins to read when its window is closed.
fn upload_to_late_reader() {
    let (sender, address) = channel();
    let server = within("fh", move || {
        let listener = std::net::TcpListener::bind("10.9.0.1:0").unwrap();
        sender.send(listener.local_addr().unwrap()).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        pause(500);
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        assert_eq!(all.len(), LENGTH);
    });
    let address = address.recv().unwrap();
    inside("mh", move || {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        stream.write_all(&vec![7; LENGTH]).unwrap();
    });
    server.join().unwrap();
}

/// Figures of a transfer through a station with this plane and stage, and the packets that the radio lost.
fn measured(by: By, stage: fn() -> Stage, transfer: impl FnOnce()) -> (Subscriber, [u64; 2]) {
    wire_row();
    let left = Link::start(
        "ls",
        ["ll", "lr"],
        "link = { rate = \"100mbit\", delay = \"5ms\", queue = \"10000p\" }",
    );
    let losses = "radio = { rate = \"50mbit\", delay = \"10ms\", queue = \"10000p\" }\n\
                  errors = { model = \"packet-loss\", p = \"1%\", only = [\"data\"] }";
    let right = Link::start("rs", ["rl", "rr"], losses);
    let clock = Clock::start();
    let view = SubscriberView::of(SubscriberConfig::default(), clock);
    let mut tap = view.tap([StageId(0), StageId(2)]);
    let (sender, started) = channel();
    let thread = within("bs", move || {
        let mut station = station_between(["bl", "br"], vec![stage()], clock);
        if by == By::Kernel {
            let index = |name: &str| if_nametoindex(name).unwrap();
            station.set_plane(Plane::start(["bl", "br"].map(index)).unwrap()).unwrap();
        }
        sender.send(station.handle()).unwrap();
        station.run(&mut tap, &mut |_, _, _| true).unwrap();
        if let Some(plane) = station.plane() {
            plane.clear().unwrap();
        }
    });
    let handle = started.recv().unwrap();
    assert_eq!(handle.ask(|_| ()), Some(()));
    transfer();
    // The last ACKs are under way.
    let mut list = view.list(Order::Grade, 10, None);
    for _ in 0..100 {
        let total = list.subscribers.first().map(|row| row.total);
        if total.is_some_and(|total| total.delivered_down + total.delivered_up == LENGTH as u64) {
            break;
        }
        pause(20);
        list = view.list(Order::Grade, 10, None);
    }
    handle.ask(Station::stop);
    thread.join().unwrap();
    left.stop();
    let lost = right.stop();
    println!("{by:?}: lost {lost:?}, {:#?}", list.subscribers);
    assert_eq!((list.overview.followed, list.overview.refused), (1, 0));
    (list.subscribers.into_iter().next().unwrap(), lost)
}

/// Whether `value` is from `least` on, and at most `more` larger.
fn near(value: f64, least: f64, more: f64) -> bool {
    value >= least && value <= least + more
}

fn download(by: By, stage: fn() -> Stage, repairs: bool) {
    let (row, [lost, _]) = measured(by, stage, || transfer("fh", "mh", "10.9.0.2", LENGTH));
    assert_eq!(row.subscriber.to_string(), "10.9.0.2");
    assert!(lost > 20, "{lost}");
    assert_eq!((row.total.delivered_down, row.total.delivered_up), (LENGTH as u64, 0));
    let (server, local) = (row.total.server_packets, row.total.local_packets);
    let counted = counter("fh", "Tcp", "RetransSegs");
    assert!(server.abs_diff(counted) <= 1, "{server}, of {counted} by the sender's kernel");
    assert!(server + local >= lost, "{server} + {local} of {lost}");
    assert_eq!(local > 0, repairs, "{local}");
    let loss = row.loss_down.unwrap();
    if !repairs {
        // On a busy machine some retransmissions are needless, and the sender's kernel counts them too.
        let share = |packets: u64| packets as f64 * SEGMENT / row.total.sent as f64;
        let (least, most) = (share(lost), share(counted + 1));
        assert!(loss >= 0.98 * least && loss <= 1.02 * most, "{least} <= {loss} <= {most}");
    }
    // None was lost before the station: the sender's kernel has retransmitted only data that the station had seen.
    let missing = row.total.missing_before as f64 / SEGMENT;
    assert!(missing <= OVERTAKEN, "{missing}");
    // 10 ms in each direction; less than the round trip of the whole path.
    let radio = row.radio.unwrap();
    assert!(near(radio.min_s, 0.02, 0.009) && radio.median_s >= radio.min_s, "{radio:?}");
    let server = row.server.unwrap();
    assert!(near(server.min_s, 0.01, 0.009), "{server:?}");
}

fn upload_row(by: By) {
    let (row, [_, lost]) = measured(by, none, || transfer("mh", "fh", "10.9.0.1", LENGTH));
    assert_eq!((row.total.delivered_down, row.total.delivered_up), (0, LENGTH as u64));
    // With the kernel's plane the handshake alone is timed, and a busy machine may delay it.
    let more = if by == By::Kernel { 1.0 } else { 0.009 };
    assert!(near(row.server.unwrap().min_s, 0.01, more), "{:?}", row.server);
    let Some(upload) = row.upload else {
        assert_eq!((by, row.loss_up), (By::Kernel, None));
        return;
    };
    assert_eq!((by, upload.arrived), (By::Sockets, LENGTH as u64));
    // A segment that was lost twice is missing once: more than four of some 40 are in one of 100,000 runs.
    let (missing, lost) = (upload.missing as f64 / SEGMENT, lost as f64);
    assert!((lost - 4.0..=lost + OVERTAKEN).contains(&missing), "{missing} of {lost}");
}

#[test]
fn figures_of_a_download_are_those_of_the_links() {
    alone("figures_of_a_download_are_those_of_the_links", || download(By::Sockets, none, false));
}

#[test]
fn figures_of_repairs_are_those_of_the_agent() {
    alone("figures_of_repairs_are_those_of_the_agent", || download(By::Sockets, snoop, true));
}

#[test]
fn figures_of_an_upload_are_those_of_the_links() {
    alone("figures_of_an_upload_are_those_of_the_links", || upload_row(By::Sockets));
}

#[test]
fn kernel_copies_suffice_to_measure_a_download() {
    alone_as_root("kernel_copies_suffice_to_measure_a_download", || {
        download(By::Kernel, none, false)
    });
}

#[test]
fn kernel_copies_suffice_to_measure_repairs() {
    alone_as_root("kernel_copies_suffice_to_measure_repairs", || download(By::Kernel, snoop, true));
}

#[test]
fn the_kernel_hides_losses_of_an_upload() {
    alone_as_root("the_kernel_hides_losses_of_an_upload", || upload_row(By::Kernel));
}

/// The station learns of uncopied data of an upload from windows alone, so the kernel must copy each new window.
#[test]
fn the_kernel_copies_a_window_that_opens() {
    alone_as_root("the_kernel_copies_a_window_that_opens", || {
        let (row, _) = measured(By::Kernel, none, upload_to_late_reader);
        assert_eq!(row.total.delivered_up, LENGTH as u64, "{row:?}");
    });
}

/// The station of a file: the view is attached to its loop, its control socket and its metrics.
#[test]
fn a_station_of_a_file_lists_its_subscribers() {
    alone("a_station_of_a_file_lists_its_subscribers", || {
        wire(Wires::default());
        let text = "left = \"bl\"\nright = \"br\"\nplane = \"sockets\"\n[[path]]\nagent = \"none\"\n\
                    [subscribers]\nmetrics = 1\n[metrics]\nlisten = \"127.0.0.1:9464\"\n";
        let (file, _) = parse_station(text).unwrap();
        let socket = std::path::PathBuf::from("/run/station/base.sock");
        let (sender, ready) = channel();
        let own = socket.clone();
        // It ends with the process: a signal would end the test.
        let _service = within("bs", move || {
            let reread = || Err("the file is not changed".to_owned());
            service::run("base", file, &own, reread, move |news| {
                if matches!(news, StationReport::Ready { .. }) {
                    let _ = sender.send(());
                }
            })
            .unwrap();
        });
        ready.recv_timeout(std::time::Duration::from_secs(60)).expect("the station runs");
        transfer("fh", "mh", "10.9.0.2", 100_000);
        let mut client = Client::connect(&socket).unwrap();
        let request = Request::Subscribers { by: Order::Goodput, top: 5, within: None };
        // The receiver may be ready before the station has read its last ACK.
        let mut attempts = 0;
        let rows = loop {
            let Response::Subscribers(list) = client.ask(&request).unwrap() else {
                panic!("refused")
            };
            let rows: Vec<(String, u64)> = list
                .subscribers
                .iter()
                .map(|row| (row.subscriber.to_string(), row.total.delivered_down))
                .collect();
            if rows.first().is_some_and(|(_, delivered)| *delivered >= 100_000) {
                break rows;
            }
            attempts += 1;
            assert!(attempts < 3000, "{rows:?}");
            pause(10);
        };
        assert_eq!(rows, [("10.9.0.2".to_owned(), 100_000)]);
        let Response::Status(status) = client.ask(&Request::Status {}).unwrap() else {
            panic!("refused")
        };
        assert_eq!(status.subscribers.map(|overview| overview.followed), Some(1));
        let page = inside("bs", || {
            let mut stream = std::net::TcpStream::connect("127.0.0.1:9464").unwrap();
            stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
            let mut page = String::new();
            stream.read_to_string(&mut page).unwrap();
            page
        });
        let line = "lasthop_subscriber_delivered_bytes_total{subscriber=\"10.9.0.2\",direction=\"right\"} 100000";
        assert!(page.contains(line), "{page}");
        assert!(!page.contains("radio-left"), "it was not measured:\n{page}");
    });
}
