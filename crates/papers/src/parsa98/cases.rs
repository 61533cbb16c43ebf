//! The variables of the experiments: protocol, window, errors; and the charts of sweeps over them.

use lasthop_observe::metrics::{RunMetrics, StageMetrics};
use lasthop_report::model::{Figure, Table};
use lasthop_report::plot::{Curve, Pen};

use super::setup::TESTBED;
use crate::figure::{Axes, curves, line};
use crate::measure::kbps;
use crate::table::{row, table};
use crate::{Bench, Estimate, Interrupted, Runs};

/// The protocol that repairs losses of the radio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Protocol {
    /// TULIP with MAC acceleration.
    Tulip,
    /// TULIP whose acknowledgements contend for the channel like other frames.
    TulipPlain,
    /// Snoop as published, with the fault of 5.2.
    Snoop,
    /// Snoop without the fault.
    SnoopFixed,
    /// The sender alone.
    Unaided,
}

use Protocol::{Snoop, SnoopFixed, Tulip, TulipPlain, Unaided};

impl Protocol {
    #[cfg(test)]
    pub(super) const ALL: [Protocol; 5] = [Tulip, TulipPlain, Snoop, SnoopFixed, Unaided];

    pub(super) fn name(self) -> &'static str {
        match self {
            Tulip => "TULIP",
            TulipPlain => "TULIP without acceleration",
            Snoop => "snoop",
            SnoopFixed => "snoop, fixed",
            Unaided => "none",
        }
    }

    pub(super) fn changes(self) -> &'static [&'static str] {
        match self {
            Tulip => &["link-layer=tulip"],
            TulipPlain => &["link-layer=tulip", "fama.acceleration=false"],
            Snoop => &["agent=snoop", "agent-preset=parsa98", "rtt-fault=true"],
            SnoopFixed => &["agent=snoop", "agent-preset=parsa98", "rtt-fault=false"],
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

/// The settings of one case.
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
    bench.runs(TESTBED, &case(protocol, window, errors))
}

/// The runs of several protocols over several error rates, in bits per million.
pub(super) struct Sweeps {
    rates: Vec<f64>,
    all: Vec<(Protocol, Vec<Runs>)>,
}

impl Sweeps {
    /// `errors` maps a rate to its setting.
    pub(super) fn run(
        bench: &mut Bench<'_>,
        protocols: &[Protocol],
        window: Window,
        rates: &[f64],
        errors: impl Fn(f64) -> String,
    ) -> Result<Sweeps, Interrupted> {
        let at = |protocol| rates.iter().map(move |rate| (protocol, *rate));
        let cases = protocols.iter().flat_map(|protocol| at(*protocol));
        let cases = cases.map(|(protocol, rate)| case(protocol, window, &errors(rate)));
        let cases: Vec<Vec<String>> = cases.collect();
        let mut runs = bench.each(TESTBED, &cases, bench.seeds)?.into_iter();
        let own = |protocol: &Protocol| (*protocol, runs.by_ref().take(rates.len()).collect());
        Ok(Sweeps { all: protocols.iter().map(own).collect(), rates: rates.to_vec() })
    }

    /// The runs of a protocol at an error rate.
    ///
    /// # Panics
    ///
    /// If it was not swept: protocols and rates are those of the experiment's own sweep.
    pub(super) fn at(&self, protocol: Protocol, ppm: f64) -> &Runs {
        let runs = self.all.iter().find(|(p, _)| *p == protocol).map(|(_, runs)| runs);
        match runs.zip(self.rates.iter().position(|rate| *rate == ppm)) {
            Some((runs, i)) => &runs[i],
            None => unreachable!("{protocol:?} was not run at {ppm}"),
        }
    }

    /// The mean of a figure over its runs.
    pub(super) fn mean(
        &self,
        protocol: Protocol,
        ppm: f64,
        of: impl Fn(&RunMetrics) -> f64,
    ) -> f64 {
        self.at(protocol, ppm).mean(of)
    }

    /// By how many percent a figure of one protocol exceeds that of another at an error rate.
    pub(super) fn percent_above(
        &self,
        (over, under): (Protocol, Protocol),
        ppm: f64,
        of: impl Fn(&RunMetrics) -> f64,
    ) -> Estimate {
        self.at(over, ppm).percent_above(self.at(under, ppm), of)
    }

    /// The ratio of a figure of one protocol to that of another at an error rate.
    pub(super) fn ratio(
        &self,
        (over, under): (Protocol, Protocol),
        ppm: f64,
        of: impl Fn(&RunMetrics) -> f64,
    ) -> Estimate {
        self.at(over, ppm).ratio(self.at(under, ppm), of)
    }

    /// Each protocol with its error rates and runs.
    pub(super) fn each(&self) -> impl Iterator<Item = (Protocol, Points<'_>)> {
        self.all.iter().map(|(p, runs)| (*p, self.rates.iter().copied().zip(runs).collect()))
    }

    /// Throughput against the error rate.
    pub(super) fn throughput_chart(
        &self,
        title: &str,
        log_x: bool,
        published: Option<Curve>,
        caption: &str,
    ) -> Figure {
        let axes = Axes { x: "bit errors per million", y: "throughput, kb/s", log_x };
        let series = self.each().map(|(protocol, points)| {
            let points = points.into_iter().map(|(x, runs)| (x, runs.summary(kbps)));
            line(protocol.name(), points)
        });
        curves(title, axes, series.chain(published).collect(), caption)
    }

    /// Mean packet delay of `protocols` against the error rate; whiskers are the deviation of packets, as in the paper.
    pub(super) fn delay_chart(
        &self,
        title: &str,
        protocols: &[Protocol],
        log_x: bool,
        caption: &str,
    ) -> Figure {
        let axes = Axes { x: "bit errors per million", y: "packet delay, ms", log_x };
        let curve = |protocol: &Protocol| {
            let points = self.each().filter(|(p, _)| p == protocol).flat_map(|(_, points)| points);
            let points = points.map(|(x, runs)| (x, runs.mean(delay), runs.mean(deviation)));
            Curve { name: protocol.name().to_owned(), pen: Pen::Whiskers, points: points.collect() }
        };
        curves(title, axes, protocols.iter().map(curve).collect(), caption)
    }

    /// Throughput, delay, deviation and timeouts of every case.
    pub(super) fn table(&self, title: &str) -> Table {
        let mut rows = table(
            title,
            "errors per million bits | <protocol | kb/s | delay ms | deviation ms | TCP timeouts | completed",
        );
        for (i, rate) in self.rates.iter().enumerate() {
            for (protocol, runs) in &self.all {
                let (name, runs) = (protocol.name(), &runs[i]);
                let [kbps, delay, deviation, timeouts] =
                    [kbps, delay, deviation, timeouts].map(|of| runs.summary(of));
                rows.rows.push(row(&[rate, &name, &kbps, &delay, &deviation, &timeouts, runs]));
            }
        }
        rows
    }
}

/// Error rates with the runs at each.
pub(super) type Points<'r> = Vec<(f64, &'r Runs)>;

/// Timeouts of the sender after the handshake: REAL's connections have none.
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

/// Share of the undamaged data frames on the air: the upper bound of goodput.
pub(super) fn ideal_goodput(m: &RunMetrics) -> f64 {
    let sum = |of: fn(&StageMetrics) -> u64| -> u64 {
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
