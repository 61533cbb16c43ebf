//! TCP's round trips above TULIP: Figure 13 (5.1.4).

use std::collections::VecDeque;

use lasthop_observe::Sink;
use lasthop_observe::stats::{Moments, Summary};
use lasthop_proto::event::{Cause, Event, EventKind, Op, TcpKind};
use lasthop_proto::machine::StageId;
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{FlowKey, Seq};
use lasthop_report::model::Figure;
use lasthop_report::plot::{Curve, Pen};

use super::cases::Protocol::Tulip;
use super::cases::{Window, bit_errors, case};
use super::setup::TESTBED;
use crate::figure::{Axes, curves};
use crate::{Bench, Finding, Interrupted};

/// A measured round trip, and the sender's estimate after it.
#[derive(Clone, Copy, Debug)]
struct Trip {
    at: f64,
    /// The sender used it as a sample: it times one packet at a time.
    sample: bool,
    rtt: f64,
    srtt: f64,
    rttvar: f64,
    rto: f64,
}

/// Measures the round trip of every packet sent once: from its transmission to the ACK that covers it.
struct Trips {
    flow: FlowKey,
    sender: StageId,
    /// Packets in flight: the sequence number after each, its time, and whether it was sent once only.
    out: VecDeque<(Seq, Time, bool)>,
    first: Option<Seq>,
    /// The packet that the sender times: the sequence number after it.
    timed: Option<Seq>,
    trips: Vec<Trip>,
}

impl Sink for Trips {
    fn event(&mut self, event: &Event) {
        if event.stage != self.sender {
            return;
        }
        match &event.kind {
            EventKind::Packet { op: Op::Originated(cause), packet, .. }
                if packet.flow() == Some(self.flow) && !packet.body.is_empty() =>
            {
                let Some(segment) = packet.segment() else { return };
                self.first.get_or_insert(segment.seq);
                let end = segment.seq + packet.body.len();
                match cause {
                    Cause::Data => {
                        self.timed.get_or_insert(end);
                        self.out.push_back((end, event.at, true));
                    }
                    _ => {
                        self.timed = None;
                        self.out.iter_mut().filter(|p| p.0 == end).for_each(|p| p.2 = false);
                    }
                }
            }
            EventKind::Tcp(tcp) if tcp.flow == self.flow && tcp.kind == TcpKind::Acked => {
                let Some(first) = self.first else { return };
                let acked = first + (tcp.tcb.snd_una.saturating_sub(1)) as u32;
                while let Some((end, sent, once)) = self.out.front().copied() {
                    if (acked.0.wrapping_sub(end.0) as i32) < 0 {
                        break;
                    }
                    self.out.pop_front();
                    let sample = self.timed == Some(end);
                    if sample {
                        self.timed = None;
                    }
                    // The last packet covered by the ACK triggered it.
                    if once && end == acked {
                        let seconds = Span::as_secs_f64;
                        self.trips.push(Trip {
                            at: event.at.as_secs_f64(),
                            sample,
                            rtt: seconds(event.at.since(sent)),
                            srtt: seconds(tcp.tcb.srtt),
                            rttvar: seconds(tcp.tcb.rttvar),
                            rto: seconds(tcp.tcb.rto),
                        });
                    }
                }
            }
            _ => {}
        }
    }
}

fn trips(bench: &Bench<'_>, seed: u64) -> Vec<Trip> {
    let changes = case(Tulip, Window::Large, &bit_errors(15.0));
    let scenario = bench.scenario(TESTBED, &changes);
    let layout = lasthop_sim::runs::layout(&scenario);
    let mut sink = Trips {
        flow: layout.flows[0].key,
        sender: StageId(0),
        out: VecDeque::new(),
        first: None,
        timed: None,
        trips: Vec::new(),
    };
    lasthop_sim::runs::simulate(&scenario, seed, &mut sink);
    sink.trips
}

/// Figure 13: TCP's round trips with TULIP below it.
pub(super) fn f13(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let (mut means, mut deviations, mut margins) = (Vec::new(), Vec::new(), Vec::new());
    // Of all packets, and of those that the sender timed.
    let (mut above, mut measured) = ([0_u64; 2], [0_u64; 2]);
    for seed in bench.seeds_of(bench.seeds) {
        bench.check_interrupt()?;
        let trips = trips(bench, seed);
        let mut rtts = Moments::default();
        let mut margin = f64::INFINITY;
        for trip in &trips {
            rtts.add(trip.rtt);
            margin = margin.min(trip.rto - trip.rtt);
            let late = u64::from(trip.rtt >= trip.rto);
            above[0] += late;
            above[1] += late * u64::from(trip.sample);
            measured[1] += u64::from(trip.sample);
        }
        measured[0] += rtts.n();
        means.push(1000.0 * rtts.mean());
        deviations.push(1000.0 * rtts.sd());
        margins.push(1000.0 * margin);
        if seed == bench.first_seed {
            finding.figures.push(drawn(&trips));
        }
    }
    finding.measure("round trip", Summary::of(&means), "ms");
    finding.measure("deviation of round trips", Summary::of(&deviations), "ms");
    finding.measure("least RTO - RTT of a run", Summary::of(&margins), "ms");
    finding.require(
        above[1] == 0 && measured[1] > 0,
        format!("RTO exceeds RTT in all but {} of {} samples of the sender", above[1], measured[1]),
    );
    finding.note(format!(
        "Of all packets, timed by the sender or not, {} of {} took as long as the RTO or longer; the timer restarts \
         with each ACK and did not expire",
        above[0], measured[0]
    ));
    let worst = deviations.iter().copied().fold(0.0, f64::max);
    finding.below("deviation of round trips in ms, worst seed,", worst, 500.0);
    Ok(())
}

fn drawn(trips: &[Trip]) -> Figure {
    let curve = |name: &str, pen, of: fn(&Trip) -> f64| Curve {
        name: name.to_owned(),
        pen,
        points: trips.iter().map(|t| (t.at, 1000.0 * of(t), 0.0)).collect(),
    };
    let all = vec![
        curve("RTO", Pen::Steps, |t| t.rto),
        curve("measured RTT", Pen::Line, |t| t.rtt),
        curve("estimate", Pen::Steps, |t| t.srtt),
        curve("deviation", Pen::Steps, |t| t.rttvar),
        Curve {
            name: "published: the tick of 500 ms".to_owned(),
            pen: Pen::Line,
            points: trips
                .first()
                .into_iter()
                .chain(trips.last())
                .map(|t| (t.at, 500.0, 0.0))
                .collect(),
        },
    ];
    let title = "Figure 13: round trips at 15 bit errors per million with TULIP";
    let caption = "The first seed, window 42 KB. The sender measures in units of 500 ms.";
    curves(title, Axes { x: "time (s)", y: "ms", log_x: false }, all, caption)
}
