//! Metrics of split connections: both halves have the same addresses, ports and numbers, and must be distinguished.

use lasthop_observe::Sink;
use lasthop_observe::conservation::Conservation;
use lasthop_observe::metrics::{FlowMetrics, Metrics};
use lasthop_observe::sequence::{SendKind, Sequence, Series, Watch};
use lasthop_proto::event::{Cause, Event, EventKind, Interest, TcpKind};
use lasthop_proto::units::Time;
use lasthop_proto::wire::FlowKey;
use lasthop_sim::{Reason, RunEnd, layout, run};

use crate::parsed::{scenario, scenario_with};

const TEXT: &str = r#"
transfer = { from = "fixed", to = "mobile", bytes = "500kB" }
[host.fixed]
preset = "rfc"
mss = 1460
[host.mobile]
preset = "rfc"
mss = 536
[[path]]
link = { rate = "10mbit", delay = "5ms" }
[[path]]
agent = "split"
split-preset = "freebsd-2.1"
buffer = "64KiB"
[[path]]
radio = { rate = "2mbit", delay = "1ms", queue = "200p" }
"#;

/// The time when all was acknowledged at the sender, and the last byte delivered at the receiver.
struct Ends {
    flow: FlowKey,
    acknowledged: Time,
    delivered: Time,
}

impl Sink for Ends {
    fn interest(&self) -> Interest {
        Interest::METRICS
    }
    fn event(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Tcp(tcp) if tcp.kind == TcpKind::Complete && tcp.flow == self.flow => {
                self.acknowledged = event.at;
            }
            EventKind::Tcp(tcp)
                if matches!(tcp.kind, TcpKind::Delivered { .. })
                    && tcp.flow == self.flow.reversed() =>
            {
                self.delivered = event.at;
            }
            _ => {}
        }
    }
}

struct SplitRun {
    end: RunEnd,
    flow: FlowMetrics,
    series: Series,
    ends: Ends,
}

fn see(arguments: &[(&str, &str)]) -> SplitRun {
    watch(TEXT, arguments)
}

fn watch(text: &str, arguments: &[(&str, &str)]) -> SplitRun {
    let sets: Vec<String> = arguments.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let scenario = &scenario_with(text, &sets);
    let layout = layout(scenario);
    let key = layout.flows[0].key;
    let mut sinks = (
        (Metrics::new(layout), Sequence::new(key, Watch::EndPoints)),
        (
            Ends { flow: key, acknowledged: Time::ZERO, delivered: Time::ZERO },
            Conservation::default(),
        ),
    );
    let end = run(scenario, 1, &mut sinks);
    let ((metrics, sequence), (ends, books)) = sinks;
    let held: u64 = end.stages.iter().map(|(_, count)| count.held).sum();
    books.check(held).expect("the books balance");
    let mut metrics = metrics.finish(end.at);
    assert_eq!((metrics.flows.len(), metrics.corrupted), (1, 0));
    SplitRun { flow: metrics.flows.remove(0), series: sequence.finish(end.at), end, ends }
}

#[test]
fn a_transfer_is_complete_when_the_receiver_has_it() {
    let seen = see(&[]);
    assert_eq!(seen.end.reason, Reason::Finished);
    assert!(seen.ends.acknowledged < seen.ends.delivered, "the base station answers for the host");
    let completed = seen.flow.completed_s.expect("complete");
    let delivered = seen.ends.delivered.as_secs_f64();
    assert!(completed >= delivered && completed < delivered + 0.3, "{completed} {delivered}");
    assert_eq!(seen.series.end_s, completed);
    // The radio is the bottleneck, and the throughput is the receiver's: 250 kB/s less headers and ACKs.
    assert!((150e3..245e3).contains(&seen.flow.throughput), "{}", seen.flow.throughput);

    let plain = see(&[("agent", "none")]);
    assert!(plain.ends.acknowledged > plain.ends.delivered);
    assert_eq!(plain.flow.completed_s, Some(plain.ends.acknowledged.as_secs_f64()));
}

#[test]
fn each_half_is_measured_by_its_own_segments() {
    let seen = see(&[]);
    assert_eq!(seen.flow.mss, 1460);
    assert!(seen.flow.wireless_packets > 2 * seen.flow.wired_packets);
    for goodput in [seen.flow.wired_goodput, seen.flow.wireless_goodput] {
        // Closing windows cut some segments short.
        assert!((0.8..=1.0).contains(&goodput.expect("packets")), "{goodput:?}");
    }
    let taken = seen.flow.dropped.get(Cause::SplitTaken);
    assert_eq!(taken, seen.flow.wired_packets + 1, "data and the SYN");
    assert_eq!(seen.flow.dropped.total_of(Cause::is_loss), 0);
    assert_eq!(seen.flow.redundant, 0);
}

/// The second connection finds no room and passes unsplit, with the MSS of the hosts.
#[test]
fn unsplit_connections_are_measured_by_host_segments() {
    for (hosts, preset) in [("1460", "bakshi96"), ("536", "freebsd-2.1")] {
        let text = TEXT
            .replace("bytes = \"500kB\"", "bytes = \"500kB\", count = 2")
            .replace("mss = 536", &format!("mss = {hosts}"))
            .replace("agent = \"split\"", "agent = \"split\"\nflows = 1")
            .replace("freebsd-2.1", preset);
        let scenario = &scenario(&text);
        let mut metrics = Metrics::new(layout(scenario));
        let end = run(scenario, 1, &mut metrics);
        let run = metrics.finish(end.at);
        assert!(run.flows[0].dropped.get(Cause::SplitTaken) > 0);
        assert_eq!(run.flows[1].dropped.get(Cause::SplitTaken), 0);
        assert_eq!(run.flows[1].mss.to_string(), hosts);
        let flows = run.flows.iter().flat_map(|f| [f.wired_goodput, f.wireless_goodput]);
        let all = [run.wired_goodput(), run.wireless_goodput()];
        let stages = run.stages.iter().filter(|s| s.data_packets > 0).map(|s| s.goodput);
        for goodput in flows.chain(all).chain(stages) {
            assert!((0.7..=1.0).contains(&goodput.expect("packets")), "{hosts}: {run:#?}");
        }
    }
}

#[test]
fn base_station_repairs_are_not_counted_for_the_sender() {
    let errors = "{ model = \"packet-loss\", p = \"5%\", on = [\"data\"] }";
    let lossy = [("radio.duplex", "full"), ("errors", errors)];
    let seen = see(&lossy);
    assert!(seen.flow.complete);
    assert_eq!(seen.flow.host_retransmissions(), 0);
    assert_eq!((seen.flow.timeouts, seen.flow.fast_retransmits), (0, 0));
    assert!(seen.flow.local_retransmissions() > 10);
    // One series: the host sends each byte once, and only the base station retransmits.
    let of = |kind| seen.series.sent.iter().filter(move |sent| sent.kind == kind);
    // A byte that probed the closed window is sent in a whole segment as well.
    let first: u64 = of(SendKind::First).map(|sent| sent.end - sent.start).sum();
    assert!((500_000..500_050).contains(&first), "{first}");
    assert_eq!(of(SendKind::Local).count() as u64, seen.flow.local_retransmissions());
    assert_eq!(of(SendKind::Fast).count() + of(SendKind::Timeout).count(), 0);
    assert!(seen.series.lost.len() as u64 >= seen.flow.local_retransmissions() / 2);
    assert!(seen.series.timeouts.is_empty());
}

#[test]
fn data_from_the_air_is_split_as_well() {
    let seen =
        see(&[("transfer.from", "mobile"), ("transfer.to", "fixed"), ("link.rate", "1mbit")]);
    assert!(seen.flow.complete);
    assert_eq!(seen.flow.mss, 1460);
    for goodput in [seen.flow.wired_goodput, seen.flow.wireless_goodput] {
        // Small pieces are forwarded as they arrive when the window is open.
        assert!((0.6..=1.0).contains(&goodput.expect("packets")), "{goodput:?}");
    }
    assert!(seen.ends.acknowledged < seen.ends.delivered);
}

/// A lossless path with round trips of 20 ms on each side of the base station.
const CLEAN: &str = r#"
transfer = { from = "fixed", to = "mobile", bytes = "5MB" }
[host.fixed]
preset = "linux"
[host.mobile]
preset = "linux"
[[path]]
link = { rate = "100mbit", delay = "10ms", queue = "1000p" }
[[path]]
agent = "split"
split-preset = "linux"
[[path]]
radio = { rate = "20mbit", delay = "10ms", queue = "5000p", duplex = "full" }
"#;

/// However the mobile host acknowledges, the base station announces an opened window in time: its sender never waits
/// for a delayed ACK.
#[test]
fn the_sender_never_pauses_before_an_opened_window() {
    for more in
        [("delayed-ack", "off"), ("delayed-ack.every", "2"), ("mss", "700"), ("mss", "1200")]
    {
        let key = format!("host.mobile.{}", more.0);
        let seen = watch(CLEAN, &[("path.agent.buffer", "64KiB"), (&key, more.1)]);
        assert!(seen.flow.complete);
        let sent = seen.series.sent.iter().filter(|sent| sent.kind == SendKind::First);
        let times: Vec<f64> = sent.map(|sent| sent.at_s).collect();
        // A round trip is 20 ms, a delayed ACK 40 ms.
        let pauses = times.windows(2).filter(|pair| pair[1] - pair[0] > 0.03).count();
        assert_eq!(pauses, 0, "{more:?}");
        // 64 KiB in the 40 ms from end to end, less headers.
        assert!(seen.flow.throughput > 1.5e6, "{more:?}: {}", seen.flow.throughput);
    }
}

/// A buffer that grows with the path costs a lossless transfer nothing, on whichever side the path is long. 64 KiB in
/// each direction halve some of these rates.
#[test]
fn the_buffer_follows_the_path() {
    for (wired, wireless) in [("1ms", "1ms"), ("1ms", "40ms"), ("20ms", "20ms"), ("40ms", "1ms")] {
        let path = [("link.delay", wired), ("radio.delay", wireless), ("transfer.bytes", "10MB")];
        let of = |more: &[(&str, &str)]| watch(CLEAN, &[&path, more].concat()).flow.throughput;
        let (split, none) = (of(&[]), of(&[("agent", "none")]));
        assert!(split > 0.98 * none, "{wired}, {wireless}: {split} of {none}");
        // The window limits a paced sender for longer, and one whose ACKs come from the other end.
        let paced = |agent| of(&[("agent", agent), ("host.fixed.tcp", "bbr")]);
        let (none, split, m_tcp) = (paced("none"), paced("split"), paced("m-tcp"));
        assert!(split.min(m_tcp) > 0.95 * none, "{wired}, {wireless}: {split}, {m_tcp} of {none}");
    }
    let long = [("link.delay", "20ms"), ("radio.delay", "20ms")];
    let fixed = watch(CLEAN, &[&long[..], &[("path.agent.buffer", "64KiB")]].concat());
    assert!(fixed.flow.throughput < 1e6, "{}", fixed.flow.throughput);
}
