//! Golden figures of everything that is written of a run: tables, captures, sequence plots, metrics.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

use lasthop_observe::conservation::Conservation;
use lasthop_observe::csv::{EventCsv, TcbCsv};
use lasthop_observe::layout::flow_name;
use lasthop_observe::metrics::Metrics;
use lasthop_observe::pcapng::{CapturePoint, CaptureSink};
use lasthop_observe::sequence::{Sequence, Watch};
use lasthop_observe::{Sink, capture};
use lasthop_proto::event::{EventKind, Interest};
use lasthop_proto::machine::StageId;
use lasthop_proto::tcp::words::TCPS;
use lasthop_proto::units::Time;
use lasthop_proto::wire::Transport;
use lasthop_proto::wire::emit::emit;
use lasthop_proto::wire::parse::{Mode, parse as parse_packet, view};
use lasthop_scenario::{Scenario, example, parse};
use lasthop_sim::{Session, layout};

use super::cases::{At, Draft};
use super::forms::{headers, json, viewed};
use super::record::Record;
use super::{Block, Digest, check, each, examples};

/// Passes the recorded events to `sink`.
fn replay(record: &Record, sink: &mut impl Sink) {
    for event in record.events() {
        sink.event(&event);
    }
}

fn digest(bytes: &[u8]) -> String {
    let mut digest = Digest::default();
    digest.bytes(bytes);
    format!("{} bytes, {}", bytes.len(), digest.text())
}

fn written(block: &mut Block, scenario: &Scenario, most: u64) {
    let layout = layout(scenario);
    let mut record = Record::default();
    let mut session = Session::with_ends(scenario, 1, &lasthop_sim::quic::end, &record);
    session.run_bounded(most, &mut record);
    let end = session.end();
    block.put("events", record.events().len());
    block.put("end", end.at.0);

    let mut csv = EventCsv::new(&layout, Vec::new());
    replay(&record, &mut csv);
    block.put("table of events", digest(&csv.finish().expect("it is written")));
    let mut tcb = TcbCsv::new(Vec::new());
    replay(&record, &mut tcb);
    block.put("table of control blocks", digest(&tcb.finish().expect("it is written")));

    let stages: Vec<CapturePoint> = layout
        .stages
        .iter()
        .enumerate()
        .map(|(i, stage)| CapturePoint {
            stage: StageId(i as u16),
            name: stage.name.clone(),
            is_link: stage.role.is_link(),
        })
        .collect();
    for payload in [0, 64] {
        let sink = CaptureSink::new(&stages, payload, |_| Ok(Vec::new()));
        let mut sink = sink.expect("it begins");
        replay(&record, &mut sink);
        let captures = sink.finish().expect("it is written");
        let stats = captures.stats;
        let counts = [stats.packets, stats.unwritable, stats.elsewhere, stats.lost_damage];
        block.put(&format!("captures of {payload} bytes"), json(&counts));
        let mut all = Digest::default();
        let mut read = Digest::default();
        let files = captures.links.iter().map(|(_, file)| file).chain([&captures.drops]);
        for file in files {
            all.bytes(file);
            let mut capture = capture::open(file).expect("a capture");
            for frame in capture.by_ref() {
                match frame {
                    Ok(frame) => {
                        let (number, at, interface) = (frame.number, frame.at.0, frame.interface);
                        let (len, comment) = (frame.wire_len, frame.comment.unwrap_or_default());
                        let _ = write!(read, "{number} {at} {interface} {len} {comment}");
                        read.bytes(frame.bytes);
                        match frame.view(true) {
                            Some(Ok(view)) => viewed(&view, &mut read),
                            Some(Err(error)) => read.bytes(error.to_string().as_bytes()),
                            None => read.bytes(b"no packet"),
                        }
                    }
                    Err(error) => read.bytes(error.to_string().as_bytes()),
                }
            }
            let _ = write!(read, "{} {}", capture.packets(), json(&capture.interfaces()));
        }
        block.put(&format!("digest of captures of {payload} bytes"), all.text());
        block.put(&format!("read again of {payload} bytes"), read.text());
    }

    let mut series = Digest::default();
    let mut points = 0;
    let link = layout.stages.iter().position(|stage| stage.role.is_link());
    for flow in layout.flows.iter().take(4) {
        let watches = [Some(Watch::EndPoints), link.map(|i| Watch::Link(StageId(i as u16)))];
        for watch in watches.into_iter().flatten() {
            let mut sequence = Sequence::new(flow.key, watch).in_cells(&layout);
            replay(&record, &mut sequence);
            let series_of_flow = sequence.finish(end.at);
            points += series_of_flow.sent.len();
            let _ = write!(series, "{} {}", flow_name(&flow.key), json(&series_of_flow));
        }
    }
    block.put("segments of sequence plots", points);
    block.put("digest of sequence plots", series.text());

    let metrics_until = |end| {
        let mut metrics = Metrics::new(layout.clone());
        replay(&record, &mut metrics);
        metrics.finish(end)
    };
    let metrics = metrics_until(end.at);
    for scalar in metrics.scalars() {
        block.put(scalar.name, format!("{} {}", scalar.value, scalar.unit));
    }
    let mut all = Digest::default();
    let later = metrics_until(end.at + lasthop_proto::units::Span::secs(1));
    let _ = write!(all, "{} {}", json(&metrics), json(&later));
    let _ =
        write!(all, "{} {} {}", metrics.complete(), metrics.mean_delay_s(), metrics.delay_sd_s());
    block.put("digest of metrics", all.text());
    let mut books = Conservation::default();
    replay(&record, &mut books);
    block.put("packets in flight", books.in_flight());
    let balance =
        |books: &Conservation, held| format!("{} {}", books.check(held).is_ok(), books.in_flight());
    block.put("books", balance(&books, books.in_flight()));
    // Some events twice, some missing.
    let mut wrong = Conservation::default();
    for (i, event) in record.events().enumerate().filter(|(i, _)| i % 11 != 5) {
        (0..=usize::from(i % 7 == 0)).for_each(|_| wrong.event(&event));
    }
    block.put("wrong books", balance(&wrong, 3));
    let mut halved = Conservation::default();
    let half = record.events().len() / 2;
    record.events().take(half).for_each(|event| halved.event(&event));
    block.put("books of the first half", balance(&halved, 0));
}

/// Adds to `digest` how the bytes are parsed: in each mode, and emitted again.
fn read_packet(bytes: &[u8], digest: &mut Digest) {
    let captured = Mode { verify: true, wire_len: Some(bytes.len() + 40) };
    for mode in [Mode::WHOLE, Mode { verify: false, wire_len: None }, captured] {
        match view(bytes, mode) {
            Ok(view) => viewed(&view, digest),
            Err(error) => digest.bytes(error.to_string().as_bytes()),
        }
    }
    let frame: Arc<[u8]> = bytes.into();
    match parse_packet(&frame, 0, true) {
        Ok(packet) => {
            headers(&packet, digest);
            let _ = write!(digest, "{}", packet.wire_len());
        }
        Err(error) => {
            let _ = write!(digest, "{error}");
        }
    }
}

/// Packets with each kind of header, each byte of their headers changed in turn.
#[test]
fn parsed_changed_packets() {
    let blocks = each(TCPS, |tcp| {
        let mut block = Block::new(tcp.key);
        let mut kinds_so_far = BTreeSet::new();
        let mut digest = Digest::default();
        for (preset, address) in [("linux", "10.0.0.1"), ("freebsd-2.1", "fd00::1")] {
            let line = format!("tcp = \"{}\"", tcp.key);
            let preset = format!("preset = \"{preset}\"");
            let mut draft = Draft::lossy();
            for at in [At::Fixed, At::Mobile] {
                draft = draft.with(at, &preset).with(at, &line);
            }
            if address.contains(':') {
                let addresses =
                    [(At::Fixed, "addr = \"fd00::1\""), (At::Mobile, "addr = \"fd00::2\"")];
                for (at, address) in addresses {
                    draft = draft.with(at, address);
                }
            }
            let Ok(scenario) = draft.scenario() else { continue };
            let mut record = Record::default();
            Session::with_ends(&scenario, 1, &lasthop_sim::quic::end, &record)
                .run_bounded(4_000, &mut record);
            for event in record.events() {
                let EventKind::Packet { packet, .. } = &event.kind else { continue };
                let mut bytes = Vec::new();
                if emit(packet, &mut bytes).is_err() {
                    continue;
                }
                let header = bytes.len() - packet.body.len() as usize;
                let kind = match &packet.transport {
                    Transport::Tcp(segment) => format!("{header} {}", segment.flags),
                    _ => format!("{header}"),
                };
                if !kinds_so_far.insert(kind) {
                    continue;
                }
                bytes.truncate(header + 20.min(packet.body.len() as usize));
                read_packet(&bytes, &mut digest);
                for at in 0..bytes.len() {
                    for change in [1, 2, 0x10, 0x80, 0xff] {
                        let mut bytes = bytes.clone();
                        bytes[at] ^= change;
                        read_packet(&bytes, &mut digest);
                    }
                    read_packet(&bytes[..at], &mut digest);
                }
            }
        }
        block.put("kinds of packets", kinds_so_far.len());
        block.put("digest", digest.text());
        block
    });
    check("changed-packets.txt", &blocks);
}

/// Runs `scenario` into `sink`; the time of its end.
fn run(scenario: &Scenario, sink: &mut impl Sink) -> Time {
    let mut session = Session::new(scenario, 3, &*sink);
    session.run_bounded(4_000, sink);
    session.end().at
}

fn interest_of(sink: impl Sink) -> Interest {
    sink.interest()
}

/// A sink in a tuple, a vector, an option or behind a reference receives the same events as alone.
#[test]
fn nested_sinks_receive_the_same_events() {
    for name in ["west97-lan", "web", "energy-today", "handoff-wavelan"] {
        let example = example(name).expect("an example");
        let (plan, _) = parse(example.text, name, &[]).expect("an example");
        let scenario = &plan.cells[0].scenario;
        let new = || Metrics::new(layout(scenario));
        let mut alone = new();
        let end = run(scenario, &mut alone);
        let finished = |metrics: Metrics| format!("{:?}", metrics.finish(end));
        let alone_wants = alone.interest();
        let expected = finished(alone);
        let (mut pair, mut many, mut maybe) = ((new(), new()), vec![new(), new()], Some(new()));
        run(scenario, &mut pair);
        run(scenario, &mut many);
        run(scenario, &mut maybe);
        let mut lent = new();
        run(scenario, &mut &mut lent);
        assert_eq!((maybe.interest(), many.interest()), (alone_wants, alone_wants));
        assert_eq!((pair.interest(), interest_of(&mut lent)), (alone_wants, alone_wants));
        let all = [pair.0, pair.1, lent];
        for metrics in all.into_iter().chain(many).chain(maybe) {
            assert_eq!(finished(metrics), expected, "{name}");
        }
        assert_eq!(None::<Metrics>.interest(), Interest::NOTHING);
        assert_eq!(Vec::<Metrics>::new().interest(), Interest::NOTHING);
        // Records as well.
        let (mut record, mut maybe) = (Record::default(), Some(Record::default()));
        run(scenario, &mut record);
        run(scenario, &mut maybe);
        assert!(maybe.expect("it is there").events().eq(record.events()), "{name}");
    }
}

#[test]
fn outputs_of_examples() {
    let plans = examples();
    let mut cells = Vec::new();
    for example in &plans {
        let (plan, _) = parse(example.text, example.name, &[]).expect("an example");
        let last = plan.cells.len() - 1;
        let numbers: BTreeSet<usize> = [0, last].into();
        let name = |i| format!("{} {i}", example.name);
        cells.extend(numbers.into_iter().map(|i| (name(i), plan.cells[i].scenario.clone())));
    }
    let blocks = each(&cells, |(name, cell)| {
        let mut block = Block::new(name);
        written(&mut block, cell, 2_500);
        block
    });
    check("written.txt", &blocks);
}
