//! The net over what is written of runs: tables of events and control blocks, captures, sequence plots, metrics.

use std::fmt::Write;

use lasthop_proto::machine::StageId;
use lasthop_scenario::{Scenario, examples, parse};
use lasthop_sim::{Session, layout};
use lasthop_trace::conservation::Conservation;
use lasthop_trace::csv::{EventCsv, TcbCsv};
use lasthop_trace::layout::flow_name;
use lasthop_trace::metrics::Metrics;
use lasthop_trace::pcapng::{CaptureSink, Place};
use lasthop_trace::sequence::{Sequence, Watch};
use lasthop_trace::{Record, Sink, capture};

use super::{Block, Digest, keep};

/// Hands on what was recorded.
fn replay(record: &Record, sink: &mut impl Sink) {
    for event in &record.events {
        sink.event(event);
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
    let mut session = Session::with_ends(scenario, 1, &lasthop_quic::end, &record);
    session.run_bounded(most, &mut record);
    let end = session.finish();
    block.put("events", record.events.len());
    block.put("end", format!("{:?}", end.at));

    let mut csv = EventCsv::new(&layout, Vec::new());
    replay(&record, &mut csv);
    block.put("table of events", digest(&csv.finish().expect("it is written")));
    let mut tcb = TcbCsv::new(Vec::new());
    replay(&record, &mut tcb);
    block.put("table of control blocks", digest(&tcb.finish().expect("it is written")));

    let places: Vec<Place> = layout
        .stages
        .iter()
        .enumerate()
        .map(|(i, stage)| Place {
            stage: StageId(i as u16),
            name: stage.name.clone(),
            is_link: stage.role.is_link(),
        })
        .collect();
    for payload in [0, 64] {
        let sink = CaptureSink::new(&places, payload, |_| Ok(Vec::new()));
        let mut sink = sink.expect("it begins");
        replay(&record, &mut sink);
        let captures = sink.finish().expect("it is written");
        block.put(&format!("captures of {payload} bytes"), format!("{:?}", captures.stats));
        let mut all = Digest::default();
        let mut read = Digest::default();
        let files = captures.links.iter().map(|(_, file)| file).chain([&captures.drops]);
        for file in files {
            all.bytes(file);
            let mut capture = capture::open(file).expect("a capture");
            while let Some(frame) = capture.next() {
                let _ = match frame {
                    Ok(frame) => write!(read, "{frame:?} {:?}", frame.view(true)),
                    Err(error) => write!(read, "{error}"),
                };
            }
            let _ = write!(read, "{} {:?}", capture.packets(), capture.interfaces());
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
            let told = sequence.finish(end.at);
            points += told.sent.len();
            let _ = write!(series, "{} {told:?}", flow_name(&flow.key));
        }
    }
    block.put("segments of sequence plots", points);
    block.put("digest of sequence plots", series.text());

    let mut metrics = Metrics::new(layout);
    replay(&record, &mut metrics);
    let told = metrics.finish(end.at);
    for scalar in told.scalars() {
        block.put(scalar.name, format!("{} {}", scalar.value, scalar.unit));
    }
    let mut all = Digest::default();
    let _ = write!(all, "{told:?} {:?}", metrics.finish(end.at + lasthop_proto::units::Span::secs(1)));
    let _ = write!(all, "{} {} {}", told.complete(), told.mean_delay_s(), told.delay_sd_s());
    block.put("digest of metrics", all.text());
    let mut books = Conservation::default();
    replay(&record, &mut books);
    block.put("packets in flight", books.in_flight());
}

/// Every fourth example, from `first`.
fn examples_from(file: &str, first: usize) {
    let mut blocks = Vec::new();
    for example in examples().iter().skip(first).step_by(4) {
        let (plan, _) = parse(example.text, example.name, &[]).expect("an example");
        let last = plan.cells.len() - 1;
        for i in [0, last] {
            let mut block = Block::new(&format!("{} {i}", example.name));
            written(&mut block, &plan.cells[i].scenario, 2_500);
            blocks.push(block);
            if last == 0 {
                break;
            }
        }
    }
    keep(file, &blocks);
}

#[test]
fn what_is_written_of_examples() {
    examples_from("written-1.txt", 0);
}

#[test]
fn what_is_written_of_examples_of_the_second_quarter() {
    examples_from("written-2.txt", 1);
}

#[test]
fn what_is_written_of_examples_of_the_third_quarter() {
    examples_from("written-3.txt", 2);
}

#[test]
fn what_is_written_of_examples_of_the_last_quarter() {
    examples_from("written-4.txt", 3);
}
