//! Latency under load across a link whose rate, delay and queue are known.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

use crate::common::*;
use lasthop_live::clock::Clock;
use lasthop_live::endpoint::{
    DiscardOptions, LoadOptions, LoadReport, Phase, SendOptions, Session, discard, listen, load,
};
use lasthop_path::Stage;
use lasthop_proto::link::{Line, LineConfig};
use lasthop_proto::queue::{Discipline, Limit};
use lasthop_proto::units::{Rate, Span};

/// Delay of the link, one way.
const DELAY: Span = Span::millis(10);

/// Rate of the link, bit/s.
const RATE: u64 = 8_000_000;

/// Queue of the link in packets, of at most 1514 bytes with their Ethernet headers.
const QUEUE: u32 = 50;

fn slow() -> Stage {
    Stage::Line(Line::new(LineConfig {
        rate_right: Rate::from_bps(RATE),
        rate_left: Rate::from_bps(RATE),
        delay: DELAY,
        framing: 14,
        queue: Limit::Packets(QUEUE),
        discipline_right: Discipline::Fifo,
        discipline_left: Discipline::Fifo,
    }))
}

/// Measures from `fh` to a receiver on `mh`.
fn measured(phases: Vec<Phase>) -> LoadReport {
    let stop = Arc::new(AtomicBool::new(false));
    let (sender, addresses) = channel();
    let stopped = stop.clone();
    let receiver = within("mh", move || {
        let listener = listen("10.9.0.2:0".parse().unwrap()).unwrap();
        sender.send(listener.local_addr().unwrap()).unwrap();
        let session = Session { clock: Clock::start(), stop: &stopped };
        discard(&listener, &DiscardOptions::default(), &session, &mut Vec::new()).unwrap()
    });
    let to: SocketAddr = addresses.recv().unwrap();
    let report = inside("fh", move || {
        let never = AtomicBool::new(false);
        let session = Session { clock: Clock::start(), stop: &never };
        let options = LoadOptions {
            // A busy machine answers late.
            send: SendOptions { connect_timeout: Span::secs(60), ..SendOptions::new(to) },
            phases,
            duration: Span::secs(6),
            streams: 4,
            interval: Span::millis(20),
        };
        load(&options, &session, &()).unwrap()
    });
    stop.store(true, Ordering::Relaxed);
    receiver.join().unwrap();
    report
}

fn median(mut all: Vec<Span>) -> Span {
    all.sort();
    all[all.len() / 2]
}

/// The lower bounds hold on any machine: delay and queue are set. The upper bounds allow for the time by which this
/// machine wakes threads late, since each packet waits for several threads.
#[test]
fn the_queue_of_a_link_is_measured() {
    alone("the_queue_of_a_link_is_measured", || {
        wire(Wires::default());
        let station = quiet(slow);
        let lateness = Lateness::new();
        let report = measured(vec![Phase::Idle, Phase::Up, Phase::Down]);
        let late = lateness.worst();
        station.stop();
        println!("woken late by at most {late}");
        assert!(report.complete && report.failed.is_none(), "{:?}", report.failed);
        let full = Span(u64::from(QUEUE) * 1514 * 8 * 1_000_000_000 / RATE);
        let [idle, up, down] = report.phases.as_slice() else { panic!("three phases") };
        let base = median(idle.round_trips());
        let way = Span(2 * DELAY.0);
        assert!(base >= way, "{base} without load, on a link of {way}");
        for sample in report.phases.iter().flat_map(|phase| &phase.connections) {
            if let Ok((handshake, request)) = sample.result {
                assert!(handshake.min(request) >= way, "{sample:?}");
            }
        }
        for (phase, bulk) in [(up, &up.up), (down, &down.down)] {
            let name = phase.phase;
            let loaded = median(phase.round_trips());
            let longest = phase.round_trips().into_iter().max().unwrap();
            println!("{name}: idle {base}, loaded {loaded}, longest {longest}, queue {full}");
            // Four senders fill the queue again and again, however slow the machine is.
            assert!(longest >= way + Span(full.0 / 2), "{name}: {longest} at a queue of {full}");
            let most = way + full + Span(8 * late.0) + Span::millis(10);
            assert!(loaded <= most, "{name}: {loaded} at a queue of {full}, late by {late}");
            let bulk = bulk.as_ref().unwrap();
            assert_eq!(bulk.streams.len(), 4);
            let shortest = bulk.probes.iter().filter_map(|sample| sample.rtt).min();
            assert!(shortest.is_none_or(|rtt| rtt >= way), "{name}: {shortest:?} in the data");
            for stream in &bulk.streams {
                assert_eq!(stream.failed, None, "{name}");
                assert!(stream.bytes > 0 && stream.bytes >= stream.steady_bytes, "{stream:?}");
                assert!(stream.sender.is_some(), "{name}: {stream:?}");
            }
            // No more than the link carries, in its payload.
            let steady: u64 = bulk.streams.iter().map(|stream| stream.steady_bytes).sum();
            let carried = RATE as f64 / 8.0 * phase.steady().as_secs_f64();
            // The ACK of a queue's content may arrive at once after a repair.
            let jump = f64::from(4 * QUEUE * 1448);
            assert!(steady as f64 <= carried + jump, "{name}: {steady} of {carried}");
        }
    });
}
