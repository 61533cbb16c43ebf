//! What the experiments vary: protocol, window, errors; and how the sweeps over them are shown.

use lasthop_report::model::{Column, Figure, Table};
use lasthop_report::plot::{Curve, Curves, LineChart, LineSeries, Pen, Plot, Point};
use lasthop_trace::metrics::RunMetrics;
use lasthop_trace::stats::Summary;

use super::TESTBED;
use crate::bench::{Bench, Interrupted, Runs};

/// Which protocol repairs the losses of the radio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Protocol {
    /// TULIP with MAC acceleration.
    Tulip,
    /// TULIP whose answers contend for the channel like anything else.
    TulipPlain,
    /// Snoop as it was on line, with the fault of 5.2.
    Snoop,
    /// Snoop with the fault mended.
    SnoopMended,
    /// The sender alone.
    Unaided,
}

use Protocol::{Snoop, SnoopMended, Tulip, TulipPlain, Unaided};

impl Protocol {
    #[cfg(test)]
    pub(super) const ALL: [Protocol; 5] = [Tulip, TulipPlain, Snoop, SnoopMended, Unaided];

    pub(super) fn name(self) -> &'static str {
        match self {
            Tulip => "TULIP",
            TulipPlain => "TULIP without acceleration",
            Snoop => "snoop",
            SnoopMended => "snoop, mended",
            Unaided => "none",
        }
    }

    pub(super) fn changes(self) -> &'static [&'static str] {
        match self {
            Tulip => &["link-layer=tulip"],
            TulipPlain => &["link-layer=tulip", "fama.acceleration=false"],
            Snoop => &["agent=snoop", "agent-preset=parsa98", "rtt-fault=true"],
            SnoopMended => &["agent=snoop", "agent-preset=parsa98", "rtt-fault=false"],
            Unaided => &[],
        }
    }
}

/// The receiver's window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Window {
    Large,
    Small,
}

impl Window {
    pub(super) const BOTH: [Window; 2] = [Window::Large, Window::Small];

    pub(super) fn name(self) -> &'static str {
        match self {
            Window::Large => "42 KB",
            Window::Small => "16 KB",
        }
    }

    fn change(self) -> &'static str {
        match self {
            Window::Large => "host.mobile.recv-buffer=42kB",
            Window::Small => "host.mobile.recv-buffer=16kB",
        }
    }
}

/// `ppm` bit errors per million, at exponential distances, in every frame of both directions.
pub(super) fn bit_errors(ppm: f64) -> String {
    if ppm == 0.0 {
        return "errors=none".to_owned();
    }
    format!(r#"errors={{ model = "bit-errors", ber = "{ppm}e-6" }}"#)
}

/// The changes of one case.
pub(super) fn case(protocol: Protocol, window: Window, errors: &str) -> Vec<String> {
    let own = protocol.changes().iter().map(|c| (*c).to_owned());
    own.chain([window.change().to_owned(), errors.to_owned()]).collect()
}

/// The runs of one case.
pub(super) fn run(
    bench: &mut Bench<'_>,
    protocol: Protocol,
    window: Window,
    errors: &str,
) -> Result<Runs, Interrupted> {
    let changes = case(protocol, window, errors);
    bench.runs(TESTBED, &changes.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The runs of one protocol over several error rates, in bits per million.
pub(super) struct Sweep {
    pub(super) protocol: Protocol,
    pub(super) points: Vec<(f64, Runs)>,
}

impl Sweep {
    pub(super) fn at(&self, ppm: f64) -> Option<&Runs> {
        self.points.iter().find(|(x, _)| *x == ppm).map(|(_, runs)| runs)
    }
}

/// A value of `runs`, or no number without any.
pub(super) fn mean(runs: Option<&Runs>, of: impl Fn(&RunMetrics) -> f64) -> f64 {
    runs.map_or(f64::NAN, |runs| runs.summary(of).mean)
}

/// Sweeps over error rates for several protocols; `errors` says what a rate means.
pub(super) fn sweeps(
    bench: &mut Bench<'_>,
    protocols: &[Protocol],
    window: Window,
    rates: &[f64],
    errors: impl Fn(f64) -> String,
) -> Result<Vec<Sweep>, Interrupted> {
    let mut all = Vec::new();
    for protocol in protocols {
        let mut points = Vec::new();
        for rate in rates {
            points.push((*rate, run(bench, *protocol, window, &errors(*rate))?));
        }
        all.push(Sweep { protocol: *protocol, points });
    }
    Ok(all)
}

pub(super) fn find(sweeps: &[Sweep], protocol: Protocol) -> Option<&Sweep> {
    sweeps.iter().find(|s| s.protocol == protocol)
}

/// Throughput of a run in kb/s (1 kb is 1000 bits).
pub(super) fn kbps(m: &RunMetrics) -> f64 {
    m.aggregate_throughput * 8.0 / 1000.0
}

/// Expirations of the sender's timer once the connection is open: REAL's connections have no handshake.
pub(super) fn timeouts(m: &RunMetrics) -> f64 {
    m.sum(|f| f.timeouts - f.opening_timeouts) as f64
}

/// Mean packet delay of a run in ms.
pub(super) fn delay(m: &RunMetrics) -> f64 {
    m.mean_delay_s() * 1000.0
}

/// Deviation of the packet delay within a run, in ms.
pub(super) fn deviation(m: &RunMetrics) -> f64 {
    m.flows.first().map_or(f64::NAN, |f| f.delay.sd_s * 1000.0)
}

/// Share of the data frames on the air that the channel left unharmed: the goodput that nobody can exceed.
pub(super) fn ideal_goodput(m: &RunMetrics) -> f64 {
    let sum = |of: fn(&lasthop_trace::metrics::StageMetrics) -> u64| -> u64 {
        let radio = m.stages.iter().filter(|s| s.name == "radio");
        radio.filter(|s| s.data_packets > s.damaged_data).map(of).max().unwrap_or(0)
    };
    let (sent, damaged) = (sum(|s| s.data_packets), sum(|s| s.damaged_data));
    if sent == 0 { f64::NAN } else { 1.0 - damaged as f64 / sent as f64 }
}

/// Goodput over the radio: packets delivered over data frames on the air.
pub(super) fn goodput(m: &RunMetrics) -> f64 {
    m.wireless_goodput().unwrap_or(f64::NAN)
}

/// A drawing with words around it.
pub(super) fn figure(plot: &Plot, title: &str, caption: &str) -> Figure {
    Figure { svg: plot.inline(), title: title.to_owned(), caption: caption.to_owned() }
}

/// Something of each run against the error rate, with confidence intervals as bands.
pub(super) fn chart(
    sweeps: &[Sweep],
    of: impl Fn(&RunMetrics) -> f64,
    y_label: &str,
    log_x: bool,
    title: &str,
) -> Plot {
    let series = sweeps.iter().map(|sweep| LineSeries {
        name: sweep.protocol.name().to_owned(),
        published: false,
        points: sweep
            .points
            .iter()
            .map(|(x, runs)| {
                let y = runs.summary(&of);
                Point { x: *x, y: y.mean, ci: y.ci95 }
            })
            .collect(),
    });
    let series = series.collect();
    let x_label = "bit errors per million".to_owned();
    LineChart { title: title.to_owned(), x_label, y_label: y_label.to_owned(), log_x, series }
        .plot()
}

/// Mean packet delay against the error rate; whiskers are the deviation of packets, as in the paper.
pub(super) fn delay_chart(sweeps: &[&Sweep], log_x: bool, title: &str) -> Plot {
    let curve = |sweep: &&Sweep| Curve {
        name: sweep.protocol.name().to_owned(),
        pen: Pen::Whiskers,
        points: sweep
            .points
            .iter()
            .map(|(x, runs)| (*x, runs.summary(delay).mean, runs.summary(deviation).mean))
            .collect(),
    };
    Curves {
        title: title.to_owned(),
        x_label: "bit errors per million".to_owned(),
        y_label: "packet delay, ms".to_owned(),
        log_x,
        curves: sweeps.iter().map(curve).collect(),
    }
    .plot()
}

pub(super) fn shown(summary: &Summary) -> String {
    lasthop_report::number::summary(summary)
}

/// Throughput, delay, deviation and time-outs of every case of a window.
pub(super) fn table(title: &str, sweeps: &[Sweep]) -> Table {
    let mut table = Table {
        title: title.to_owned(),
        columns: vec![
            Column::number("errors per million bits"),
            Column::text("protocol"),
            Column::number("kb/s"),
            Column::number("delay ms"),
            Column::number("deviation ms"),
            Column::number("TCP time-outs"),
            Column::number("completed"),
        ],
        rows: Vec::new(),
    };
    let rates: Vec<f64> =
        sweeps.first().map_or(Vec::new(), |s| s.points.iter().map(|p| p.0).collect());
    for rate in rates {
        for sweep in sweeps {
            let Some(runs) = sweep.at(rate) else { continue };
            table.rows.push(vec![
                lasthop_report::number::short(rate),
                sweep.protocol.name().to_owned(),
                shown(&runs.summary(kbps)),
                shown(&runs.summary(delay)),
                shown(&runs.summary(deviation)),
                shown(&runs.summary(timeouts)),
                format!("{} of {}", runs.complete(), runs.all().len()),
            ]);
        }
    }
    table
}
