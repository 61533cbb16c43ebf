//! Throughput, outstanding data, receive window and round trips of a transfer over time.

use lasthop_analyze::{MeasuredBy, Volumes};
use lasthop_report::number::{KIB, MBIT, RATE_UNIT, short};
use lasthop_report::plot::{Curve, Panel, Panels, Pen, Plot};

use super::{Transfer, seconds};

/// Minimum ratio of the window to the maximum of outstanding data for which the window is not drawn: it is no limit,
/// and would flatten the plot.
const NO_LIMIT: f64 = 4.0;

/// Maximum number of intervals.
const INTERVALS: usize = 150;

/// Three panels over the time axis of the time-sequence plot.
pub fn over_time(transfer: &Transfer<'_>) -> Plot {
    Panels {
        title: transfer.title(),
        end_s: transfer.seconds(),
        panels: vec![throughput(transfer), in_flight(transfer), round_trips(transfer)],
    }
    .plot()
}

/// Volumes in intervals of at least one round trip; shorter intervals show single bursts.
fn intervals(transfer: &Transfer<'_>) -> Volumes {
    let all = &transfer.data.over_time.volumes;
    let round = transfer.data.rtt.map_or(0.0, |rtt| rtt.mean);
    let for_round = (round / all.interval.as_secs_f64()).ceil() as usize;
    all.joined(for_round.max(all.count().div_ceil(INTERVALS)))
}

fn curve(name: impl Into<String>, pen: Pen, points: Vec<(f64, f64, f64)>) -> Curve {
    Curve { name: name.into(), pen, points }
}

fn throughput(transfer: &Transfer<'_>) -> Panel {
    let intervals = intervals(transfer);
    let length = intervals.interval.as_secs_f64();
    let volumes: Vec<_> = intervals.iter().collect();
    let steps = |of: fn(&lasthop_analyze::Volume) -> u64| {
        let rate = |volume| of(volume) as f64 / MBIT / length;
        let steps = volumes.iter().enumerate();
        let mut steps: Vec<_> = steps.map(|(i, v)| (i as f64 * length, rate(v), 0.0)).collect();
        let end = (volumes.len() as f64 * length).min(transfer.seconds());
        steps.extend(volumes.last().map(|last| (end, rate(last), 0.0)));
        steps
    };
    let again = volumes.iter().any(|volume| volume.bytes > volume.fresh);
    let span = format!("{} ms", short(length * 1e3));
    let mut curves =
        vec![curve(format!("new data, in each {span}"), Pen::Steps, steps(|v| v.fresh))];
    if again {
        curves.push(curve("with retransmissions", Pen::Steps, steps(|v| v.bytes)));
    }
    Panel { y_label: RATE_UNIT.to_owned(), curves }
}

fn in_flight(transfer: &Transfer<'_>) -> Panel {
    let all = &transfer.data.over_time.in_flight.kept;
    let at_s = |at| seconds(transfer.connection.began, at);
    let outstanding: Vec<_> =
        all.iter().map(|f| (at_s(f.at), f.outstanding as f64 / KIB, 0.0)).collect();
    let most = outstanding.iter().map(|p| p.1).fold(0.0, f64::max);
    let window: Vec<_> =
        all.iter().filter_map(|f| Some((at_s(f.at), f.window? as f64 / KIB, 0.0))).collect();
    let cut = NO_LIMIT * most;
    let name = match window.iter().map(|p| p.1).fold(f64::NEG_INFINITY, f64::max) {
        _ if window.is_empty() => "receive window: scale not captured".to_owned(),
        highest if highest > cut => {
            format!("receive window (up to {} KiB, not drawn above {})", whole(highest), whole(cut))
        }
        _ => "receive window".to_owned(),
    };
    let window = window.into_iter().map(|(at, window, none)| (at, window.min(cut), none)).collect();
    let curves =
        vec![curve("outstanding", Pen::Steps, outstanding), curve(name, Pen::Steps, window)];
    Panel { y_label: "KiB".to_owned(), curves }
}

fn whole(kb: f64) -> String {
    short(kb.round())
}

fn round_trips(transfer: &Transfer<'_>) -> Panel {
    let all = &transfer.data.over_time.round_trips.kept;
    let dots = |by: MeasuredBy| -> Vec<_> {
        let of = all.iter().filter(|trip| trip.by == by);
        of.map(|trip| (seconds(transfer.connection.began, trip.at), trip.rtt * 1e3, 0.0)).collect()
    };
    let mut curves = vec![curve("round trip", Pen::Dots, dots(MeasuredBy::Segment))];
    let stamped = dots(MeasuredBy::Timestamp);
    if !stamped.is_empty() {
        curves.push(curve("by timestamp, in recovery", Pen::Dots, stamped));
    }
    Panel { y_label: "ms".to_owned(), curves }
}
