//! A closer look at TCP: Figures 12 and 13 (5.1.3, 5.1.4).

use std::collections::VecDeque;

use lasthop_proto::event::{Cause, Event, Op, TcpKind, Wants, What};
use lasthop_proto::machine::StageId;
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{FlowKey, Seq};
use lasthop_report::model::Measured;
use lasthop_report::plot::{Curve, Curves, Pen, TimeSequence};
use lasthop_trace::Sink;
use lasthop_trace::sequence::{SendKind, Series};
use lasthop_trace::stats::{Moments, Summary};

use super::TESTBED;
use super::cases::Protocol::{Tulip, Unaided};
use super::cases::{Protocol, Window, bit_errors, case, figure, run, timeouts};
use crate::bench::{Bench, Interrupted, scenario};
use crate::finding::Finding;

/// How much of the transfer Figure 12 shows, in seconds.
const SHOWN: f64 = 2.0;
/// How far the sequence of events is looked for if two seconds do not have it.
const SEARCHED: f64 = 10.0;

/// The start of a transfer.
fn start(
    bench: &Bench<'_>,
    protocol: Protocol,
    seed: u64,
    seconds: f64,
) -> Result<Series, Interrupted> {
    if bench.stopped() {
        return Err(Interrupted);
    }
    let mut changes = case(protocol, Window::Large, &bit_errors(15.0));
    changes.push(format!("horizon={seconds}s"));
    let changes: Vec<&str> = changes.iter().map(String::as_str).collect();
    let recording = bench.record(TESTBED, &changes, seed);
    Ok(recording.series.into_iter().next().unwrap_or_default())
}

/// The longest time in which the source neither sends nor hears an ACK, from its first packet on.
fn longest_idle(series: &Series, until: f64) -> f64 {
    let sent = series.sent.iter().map(|s| s.at_s);
    let mut moments: Vec<f64> = sent.chain(series.acked.iter().map(|(at, _)| *at)).collect();
    moments.push(until);
    moments.sort_by(f64::total_cmp);
    moments.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max)
}

/// What 5.1.3 tells of the transfer without help.
#[derive(Clone, Copy, Debug)]
struct Episode {
    /// A fast retransmission halves the window.
    fast: f64,
    /// Of the packets sent after it, so many are lost before the time-out.
    lost: usize,
    /// The timer expires.
    timeout: f64,
    /// A packet goes out again that was not lost.
    redundant: f64,
}

/// The first such episode.
fn episode(series: &Series) -> Option<Episode> {
    let ever_lost = |start: u64, end: u64, by: f64| {
        series.lost.iter().any(|l| l.start < end && start < l.end && l.at_s <= by)
    };
    let mut before = 0.0;
    for (i, timeout) in series.timeouts.iter().enumerate() {
        let since = std::mem::replace(&mut before, *timeout);
        let until = series.timeouts.get(i + 1).copied().unwrap_or(f64::INFINITY);
        let fast = series
            .sent
            .iter()
            .find(|s| s.kind == SendKind::Fast && s.at_s > since && s.at_s < *timeout);
        let Some(fast) = fast else { continue };
        let lost = series.lost.iter().filter(|l| l.at_s > fast.at_s && l.at_s < *timeout).count();
        let redundant = series.sent.iter().find(|s| {
            s.kind != SendKind::First
                && s.at_s >= *timeout
                && s.at_s < until
                && !ever_lost(s.start, s.end, s.at_s)
        });
        if let (true, Some(redundant)) = (lost >= 2, redundant) {
            return Some(Episode {
                fast: fast.at_s,
                lost,
                timeout: *timeout,
                redundant: redundant.at_s,
            });
        }
    }
    None
}

/// Figure 12: the first two seconds of a transfer.
pub fn f12(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let seeds = bench.seeds.max(20);
    let mut finding = Finding::new(seeds);
    let mut idle = Vec::new();
    let mut losses = Vec::new();
    let mut expired = 0;
    let mut thrice = 0;
    let mut drawn = None;
    for seed in 1..=u64::from(seeds) {
        let series = start(bench, Tulip, seed, SHOWN)?;
        idle.push(1000.0 * longest_idle(&series, SHOWN));
        losses.push(series.lost.len() as f64);
        expired += series.timeouts.len();
        let times = |start| series.lost.iter().filter(|l| l.start == start).count();
        let most = series.lost.iter().map(|l| times(l.start)).max().unwrap_or(0);
        thrice += usize::from(most >= 3);
        if drawn.is_none() || most >= 3 && thrice == 1 {
            drawn = Some((seed, series));
        }
    }
    if let Some((seed, series)) = &drawn {
        let title = "Figure 12 (b): the first two seconds with TULIP";
        let plot = TimeSequence { title, series, part: Some((0.0, SHOWN)) }.plot();
        finding.figures.push(figure(&plot, title, &format!("Seed {seed}.")));
    }
    let worst = idle.iter().copied().fold(0.0, f64::max);
    let idle = Summary::of(&idle);
    finding.measured.extend([
        Measured::new("TULIP, longest idle period", &idle, "ms", Some(200.0)),
        Measured::new("TULIP, packets lost", &Summary::of(&losses), "in 2 s", Some(17.0)),
    ]);
    finding.within("TULIP, the longest idle period of all seeds in ms,", worst, 0.0, 400.0);
    finding.within("TULIP, time-outs in 2 s over all seeds,", expired as f64, 0.0, 0.0);
    let whole = run(bench, Tulip, Window::Large, &bit_errors(15.0))?;
    let all = whole.each(timeouts).iter().sum::<f64>();
    finding.within("TULIP, time-outs in whole transfers over all seeds,", all, 0.0, 0.0);
    finding.note(format!(
        "One packet is lost three times or more within two seconds in {thrice} of {seeds} seeds"
    ));

    let mut found = None;
    for seconds in [SHOWN, SEARCHED] {
        for seed in 1..=u64::from(seeds) {
            let series = start(bench, Unaided, seed, seconds)?;
            if let Some(episode) = episode(&series) {
                found = Some((seed, seconds, series, episode));
                break;
            }
        }
        if found.is_some() {
            break;
        }
    }
    finding.require(
        found.is_some(),
        "a trace without help shows a fast retransmission, two losses in the small window, a time-out and a \
         redundant retransmission",
    );
    if let Some((seed, _, series, e)) = &found {
        finding.note(format!(
            "Without help, seed {seed}: a fast retransmission at {:.2} s, then {} losses, a time-out at {:.2} s, and \
             at {:.2} s a packet again that had arrived",
            e.fast, e.lost, e.timeout, e.redundant
        ));
        let title = "Figure 12 (a): the start of a transfer without help";
        let part = Some((0.0, (e.redundant + 0.3).max(SHOWN).min(series.end_s.max(SHOWN))));
        let plot = TimeSequence { title, series, part }.plot();
        finding.figures.push(figure(&plot, title, &format!("Seed {seed}.")));
    }
    Ok(finding)
}

/// One measured round trip and what the sender made of it.
#[derive(Clone, Copy, Debug)]
struct Trip {
    at: f64,
    /// Whether the sender took this as a sample: it times one packet at a time.
    sample: bool,
    rtt: f64,
    srtt: f64,
    rttvar: f64,
    rto: f64,
}

/// Measures the round trip of every packet that was sent once: from its sending to the ACK that covers it.
struct Trips {
    flow: FlowKey,
    sender: StageId,
    /// Packets on their way: the sequence number past each, when it left, and whether it was sent once only.
    out: VecDeque<(Seq, Time, bool)>,
    first: Option<Seq>,
    /// The packet that the sender times: the sequence number past it.
    timed: Option<Seq>,
    trips: Vec<Trip>,
}

impl Sink for Trips {
    fn wants(&self) -> Wants {
        Wants::EVERYTHING
    }

    fn event(&mut self, event: &Event) {
        if event.stage != self.sender {
            return;
        }
        match &event.what {
            What::Packet { op: Op::Originated(cause), packet, .. }
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
            What::Tcp(tcp) if tcp.flow == self.flow && tcp.kind == TcpKind::Acked => {
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
                    // The packet that the ACK answers is the last one that it covers.
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

fn trips(seed: u64) -> Vec<Trip> {
    let changes = case(Tulip, Window::Large, &bit_errors(15.0));
    let changes: Vec<&str> = changes.iter().map(String::as_str).collect();
    let scenario = scenario(TESTBED, &changes);
    let layout = lasthop_lab::layout(&scenario);
    let mut sink = Trips {
        flow: layout.flows[0].key,
        sender: StageId(0),
        out: VecDeque::new(),
        first: None,
        timed: None,
        trips: Vec::new(),
    };
    lasthop_lab::simulate(&scenario, seed, &mut sink);
    sink.trips
}

/// Figure 13: TCP's round trips with TULIP below it.
pub fn f13(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let mut finding = Finding::new(bench.seeds);
    let (mut means, mut deviations, mut margins) = (Vec::new(), Vec::new(), Vec::new());
    // Of all packets, and of those that the sender timed.
    let (mut above, mut measured) = ([0_u64; 2], [0_u64; 2]);
    for seed in 1..=u64::from(bench.seeds) {
        if bench.stopped() {
            return Err(Interrupted);
        }
        let trips = trips(seed);
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
        if seed == 1 {
            finding.figures.push(round_trips(&trips));
        }
    }
    let deviation = Summary::of(&deviations);
    finding.measured.extend([
        Measured::new("round trip", &Summary::of(&means), "ms", None),
        Measured::new("deviation of round trips", &deviation, "ms", None),
        Measured::new("least RTO - RTT of a run", &Summary::of(&margins), "ms", None),
    ]);
    finding.require(
        above[1] == 0 && measured[1] > 0,
        format!("RTO exceeds RTT in all but {} of {} samples of the sender", above[1], measured[1]),
    );
    finding.note(format!(
        "Of all packets, timed by the sender or not, {} of {} took as long as the RTO or longer; the timer starts anew \
         with each ACK and did not expire",
        above[0], measured[0]
    ));
    let worst = deviations.iter().copied().fold(0.0, f64::max);
    finding.below("deviation of round trips in ms, worst seed,", worst, 500.0);
    Ok(finding)
}

fn round_trips(trips: &[Trip]) -> lasthop_report::model::Figure {
    let curve = |name: &str, pen, of: fn(&Trip) -> f64| Curve {
        name: name.to_owned(),
        pen,
        points: trips.iter().map(|t| (t.at, 1000.0 * of(t), 0.0)).collect(),
    };
    let title = "Figure 13: round trips at 15 bit errors per million with TULIP";
    let plot = Curves {
        title: title.to_owned(),
        x_label: "time (s)".to_owned(),
        y_label: "ms".to_owned(),
        log_x: false,
        curves: vec![
            curve("RTO", Pen::Steps, |t| t.rto),
            curve("measured RTT", Pen::Line, |t| t.rtt),
            curve("estimate", Pen::Steps, |t| t.srtt),
            curve("deviation", Pen::Steps, |t| t.rttvar),
        ],
    };
    figure(&plot.plot(), title, "Seed 1, window 42 KB. The sender measures in units of 500 ms.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_trace::sequence::{Lost, Sent};

    fn sent(at_s: f64, packet: u64, kind: SendKind) -> Sent {
        Sent { at_s, start: packet * 1400, end: (packet + 1) * 1400, kind }
    }

    /// The events of 5.1.3, and the same without the redundant packet.
    #[test]
    fn the_episode_of_the_paper_is_recognised() {
        let lost =
            |at_s, packet: u64| Lost { at_s, start: packet * 1400, end: (packet + 1) * 1400 };
        let mut series = Series {
            sent: vec![
                sent(0.1, 5, SendKind::First),
                sent(0.15, 5, SendKind::Fast),
                sent(0.24, 12, SendKind::First),
                sent(0.25, 13, SendKind::First),
                sent(0.26, 14, SendKind::First),
                sent(1.75, 12, SendKind::Timeout),
                sent(1.8, 13, SendKind::Timeout),
            ],
            lost: vec![lost(0.11, 5), lost(0.24, 12), lost(0.25, 13)],
            timeouts: vec![1.75],
            ..Series::default()
        };
        assert!(episode(&series).is_none(), "nothing was redundant");
        series.sent.push(sent(1.81, 14, SendKind::Timeout));
        let episode = episode(&series).unwrap();
        assert_eq!((episode.fast, episode.lost, episode.redundant), (0.15, 2, 1.81));
        series.timeouts.clear();
        assert!(super::episode(&series).is_none(), "no time-out");
    }

    #[test]
    fn idle_is_when_nothing_is_sent_and_nothing_heard() {
        let series = Series {
            sent: vec![sent(0.0, 0, SendKind::First), sent(0.5, 1, SendKind::First)],
            acked: vec![(0.4, 1400), (0.9, 2800)],
            ..Series::default()
        };
        assert!((longest_idle(&series, 1.0) - 0.4).abs() < 1e-9);
        assert!((longest_idle(&series, 2.0) - 1.1).abs() < 1e-9);
    }
}
