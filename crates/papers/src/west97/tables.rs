//! Tables 1 to 4 (5.2, 5.3).

use lasthop_proto::event::Cause;
use lasthop_report::model::{Column, Measured, Table};
use lasthop_report::plot::{Bar, BarChart, BarGroup, BarSeries};
use lasthop_trace::stats::Summary;

use super::{ACKP, ACKP_FULL, BURSTS, LAN, SINGLE, SLOW, SNOOP, with};
use crate::bench::{Bench, Interrupted, Runs};
use crate::finding::Finding;

/// A column of a published table: throughput in KB/s, percent of ideal, wired and wireless goodput in percent,
/// timer expirations.
struct Published {
    throughput: f64,
    percent: f64,
    wired: f64,
    wireless: f64,
    timeouts: f64,
}

/// A column as measured.
struct ColumnRuns {
    name: &'static str,
    runs: Runs,
    published: Option<Published>,
}

impl ColumnRuns {
    fn percent(&self, ideal: f64) -> Summary {
        self.runs.summary(|m| 100.0 * crate::bench::throughput(m) / ideal)
    }
    fn wired(&self) -> Summary {
        self.runs.summary(|m| 100.0 * m.wired_goodput().unwrap_or(f64::NAN))
    }
    fn wireless(&self) -> Summary {
        self.runs.summary(|m| 100.0 * m.wireless_goodput().unwrap_or(f64::NAN))
    }
}

/// The runs of one table.
struct Columns {
    ideal: Runs,
    ideal_published: f64,
    columns: Vec<ColumnRuns>,
}

impl Columns {
    fn run(
        bench: &mut Bench<'_>,
        testbed: &str,
        errors: &str,
        ideal_published: f64,
        published: [Published; 3],
    ) -> Result<Columns, Interrupted> {
        let ideal = bench.runs(testbed, &[])?;
        let cases: [(&'static str, &[&str]); 4] = [
            ("Reno", &[]),
            ("snoop", SNOOP),
            ("snoop+ACKP", ACKP),
            ("snoop+ACKP, full", ACKP_FULL),
        ];
        let mut columns = Vec::new();
        let mut published = published.into_iter();
        for (name, agent) in cases {
            let runs = bench.runs(testbed, &with(agent, &[errors]))?;
            columns.push(ColumnRuns { name, runs, published: published.next() });
        }
        Ok(Columns { ideal, ideal_published, columns })
    }

    fn ideal(&self) -> f64 {
        self.ideal.throughput().mean
    }

    fn find(&self, name: &str) -> &ColumnRuns {
        self.columns.iter().find(|c| c.name == name).unwrap_or(&self.columns[0])
    }

    /// Figures, table and chart that every table has.
    fn finding(&self, seeds: u32, title: &str) -> Finding {
        let mut finding = Finding::new(seeds);
        let ideal = self.ideal.throughput();
        finding.measured.push(Measured::new(
            "ideal throughput",
            &ideal,
            "KB/s",
            Some(self.ideal_published),
        ));
        let mut table = Table {
            title: title.to_owned(),
            columns: vec![
                Column::text(""),
                Column::number("KB/s"),
                Column::number("% of ideal"),
                Column::number("wired goodput %"),
                Column::number("wireless goodput %"),
                Column::number("timer expirations"),
                Column::number("completed"),
            ],
            rows: vec![vec![
                "ideal".to_owned(),
                beside(&ideal, Some(self.ideal_published)),
                String::new(),
                beside(
                    &self.ideal.summary(|m| 100.0 * m.wired_goodput().unwrap_or(f64::NAN)),
                    Some(100.0),
                ),
                beside(
                    &self.ideal.summary(|m| 100.0 * m.wireless_goodput().unwrap_or(f64::NAN)),
                    Some(100.0),
                ),
                beside(&self.ideal.timeouts(), Some(0.0)),
                complete(&self.ideal),
            ]],
        };
        for column in &self.columns {
            let p = column.published.as_ref();
            let throughput = column.runs.throughput();
            let percent = column.percent(ideal.mean);
            let (wired, wireless) = (column.wired(), column.wireless());
            let timeouts = column.runs.timeouts();
            let mut add = |what: &str, summary: &Summary, unit: &str, published: Option<f64>| {
                let label = format!("{} {what}", column.name);
                finding.measured.push(Measured::new(label, summary, unit, published));
            };
            add("throughput", &throughput, "KB/s", p.map(|p| p.throughput));
            add("of ideal", &percent, "%", p.map(|p| p.percent));
            add("wired goodput", &wired, "%", p.map(|p| p.wired));
            add("wireless goodput", &wireless, "%", p.map(|p| p.wireless));
            add("timer expirations", &timeouts, "per run", p.map(|p| p.timeouts));
            table.rows.push(vec![
                column.name.to_owned(),
                beside(&throughput, p.map(|p| p.throughput)),
                beside(&percent, p.map(|p| p.percent)),
                beside(&wired, p.map(|p| p.wired)),
                beside(&wireless, p.map(|p| p.wireless)),
                beside(&timeouts, p.map(|p| p.timeouts)),
                complete(&column.runs),
            ]);
            let given_up = column.runs.all().len() - column.runs.complete();
            if given_up > 0 {
                finding.note(format!(
                    "{given_up} of {} transfers with {} gave up after 12 time-outs in a row and count with what \
                     they delivered until then",
                    column.runs.all().len(),
                    column.name
                ));
            }
        }
        finding.tables.push(table);
        finding.figures.push(self.chart(title));
        finding
    }

    fn chart(&self, title: &str) -> lasthop_report::model::Figure {
        let bar = |value, ci| Some(Bar { value, ci });
        let ideal = self.ideal.throughput();
        let mut groups = vec![BarGroup {
            label: "ideal".to_owned(),
            bars: vec![bar(self.ideal_published, 0.0), bar(ideal.mean, ideal.ci95)],
        }];
        for column in &self.columns {
            let measured = column.runs.throughput();
            groups.push(BarGroup {
                label: column.name.to_owned(),
                bars: vec![
                    column.published.as_ref().and_then(|p| bar(p.throughput, 0.0)),
                    bar(measured.mean, measured.ci95),
                ],
            });
        }
        let chart = BarChart {
            title: title.to_owned(),
            y_label: "throughput, KB/s".to_owned(),
            series: vec![
                BarSeries { name: "published".to_owned(), published: true },
                BarSeries { name: "measured".to_owned(), published: false },
            ],
            groups,
        };
        super::figures::figure(&chart.plot(), title, "Whiskers are 95 % confidence intervals.")
    }
}

/// `measured ± interval (published)`.
fn beside(summary: &Summary, published: Option<f64>) -> String {
    let measured = lasthop_report::number::summary(summary);
    match published {
        Some(p) => format!("{measured} ({})", lasthop_report::number::short(p)),
        None => measured,
    }
}

fn complete(runs: &Runs) -> String {
    format!("{} of {}", runs.complete(), runs.all().len())
}

/// Table 1: single errors on the LAN.
pub fn t1(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let published = [
        Published {
            throughput: 98.36,
            percent: 49.20,
            wired: 97.4,
            wireless: 97.4,
            timeouts: 7.50,
        },
        Published {
            throughput: 185.91,
            percent: 93.00,
            wired: 99.4,
            wireless: 97.3,
            timeouts: 0.00,
        },
        Published {
            throughput: 185.07,
            percent: 92.58,
            wired: 99.5,
            wireless: 97.2,
            timeouts: 0.00,
        },
    ];
    let table = Columns::run(bench, LAN, SINGLE, 199.92, published)?;
    let mut finding =
        table.finding(bench.seeds, "Table 1: LAN, single errors (published in brackets)");
    finding.within("ideal in KB/s", table.ideal(), 199.92 * 0.95, 199.92 * 1.05);
    for column in &table.columns {
        let Some(p) = &column.published else { continue };
        let name = column.name;
        let percent = column.percent(table.ideal()).mean;
        finding.within(
            &format!("{name}, percent of ideal,"),
            percent,
            p.percent - 8.0,
            p.percent + 8.0,
        );
        finding.within(
            &format!("{name}, wired goodput,"),
            column.wired().mean,
            p.wired - 1.0,
            p.wired + 1.0,
        );
        let wireless = column.wireless().mean;
        finding.within(
            &format!("{name}, wireless goodput,"),
            wireless,
            p.wireless - 1.0,
            p.wireless + 1.0,
        );
        let timeouts = column.runs.timeouts().mean;
        if name == "Reno" {
            finding.within("Reno, timer expirations,", timeouts, 4.0, 12.0);
        } else {
            finding.below(&format!("{name}, timer expirations,"), timeouts, 0.3);
        }
    }
    Ok(finding)
}

/// 5.2.1, last paragraph: the same at twice and four times the error rate.
pub fn t1_denser(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let mut finding = Finding::new(bench.seeds);
    let mut table = Table {
        title: "Denser single errors".to_owned(),
        columns: vec![
            Column::text("one error per"),
            Column::text("agent"),
            Column::number("KB/s"),
            Column::number("timer expirations"),
            Column::number("duplicate ACKs at the sender"),
        ],
        rows: Vec::new(),
    };
    for mean in ["32KiB", "16KiB"] {
        let errors =
            format!(r#"errors={{ model = "exponential", mean = "{mean}", on = ["data", "ack"] }}"#);
        let mut throughputs = Vec::new();
        for (name, agent) in [("snoop", SNOOP), ("snoop+ACKP", ACKP)] {
            let runs = bench.runs(LAN, &with(agent, &[&errors]))?;
            let dupacks = runs.summary(|m| m.sum(|f| f.dupacks) as f64);
            let (throughput, timeouts) = (runs.throughput(), runs.timeouts());
            let label = |what: &str| format!("{name} at {mean}, {what}");
            finding.measured.extend([
                Measured::new(label("throughput"), &throughput, "KB/s", None),
                Measured::new(label("timer expirations"), &timeouts, "per run", None),
                Measured::new(label("duplicate ACKs at the sender"), &dupacks, "per run", None),
            ]);
            finding.below(&label("timer expirations"), timeouts.mean, 0.5);
            finding.below(&label("duplicate ACKs at the sender"), dupacks.mean, 1.0);
            table.rows.push(vec![
                mean.to_owned(),
                name.to_owned(),
                beside(&throughput, None),
                beside(&timeouts, None),
                beside(&dupacks, None),
            ]);
            throughputs.push(throughput.mean);
        }
        let ratio = throughputs[1] / throughputs[0];
        finding.within(&format!("ACKP's throughput over snoop's at {mean}"), ratio, 0.97, 1.03);
    }
    finding.tables.push(table);
    Ok(finding)
}

/// Table 2: six-packet bursts on the LAN.
pub fn t2(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let published = [
        Published { throughput: 7.19, percent: 3.60, wired: 85.9, wireless: 85.9, timeouts: 56.60 },
        Published {
            throughput: 105.37,
            percent: 52.71,
            wired: 99.6,
            wireless: 87.5,
            timeouts: 0.65,
        },
        Published {
            throughput: 105.66,
            percent: 52.85,
            wired: 99.7,
            wireless: 88.2,
            timeouts: 0.30,
        },
    ];
    let table = Columns::run(bench, LAN, BURSTS, 199.92, published)?;
    let mut finding =
        table.finding(bench.seeds, "Table 2: LAN, six-packet bursts (published in brackets)");
    let ideal = table.ideal();
    let (reno, snoop, ackp) = (table.find("Reno"), table.find("snoop"), table.find("snoop+ACKP"));
    finding.below("Reno, percent of ideal,", reno.percent(ideal).mean, 8.0);
    finding.within("Reno, timer expirations,", reno.runs.timeouts().mean, 35.0, 80.0);
    for column in [snoop, ackp] {
        let name = column.name;
        finding.within(
            &format!("{name}, percent of ideal,"),
            column.percent(ideal).mean,
            42.0,
            65.0,
        );
        finding.below(&format!("{name}, timer expirations,"), column.runs.timeouts().mean, 2.0);
    }
    for column in [reno, snoop, ackp] {
        let Some(p) = &column.published else { continue };
        let wireless = column.wireless().mean;
        let what = format!("{}, wireless goodput,", column.name);
        finding.within(&what, wireless, p.wireless - 3.0, p.wireless + 3.0);
    }
    let (with, without) = (ackp.runs.timeouts().mean, snoop.runs.timeouts().mean);
    finding.require(
        with <= without,
        format!("ACKP's timer expirations ({with:.2}) do not exceed snoop's ({without:.2})"),
    );
    Ok(finding)
}

/// Table 3: single errors on the slow link.
pub fn t3(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let published = [
        Published { throughput: 7.52, percent: 53.20, wired: 97.6, wireless: 97.6, timeouts: 5.40 },
        Published {
            throughput: 13.61,
            percent: 96.24,
            wired: 99.8,
            wireless: 97.5,
            timeouts: 0.35,
        },
        Published {
            throughput: 13.61,
            percent: 96.20,
            wired: 99.8,
            wireless: 97.6,
            timeouts: 0.05,
        },
    ];
    let table = Columns::run(bench, SLOW, SINGLE, 14.14, published)?;
    let mut finding =
        table.finding(bench.seeds, "Table 3: slow link, single errors (published in brackets)");
    let ideal = table.ideal();
    finding.within("ideal in KB/s", ideal, 14.14 * 0.95, 14.14 * 1.05);
    for column in &table.columns {
        let Some(p) = &column.published else { continue };
        let percent = column.percent(ideal).mean;
        finding.within(
            &format!("{}, percent of ideal,", column.name),
            percent,
            p.percent - 8.0,
            p.percent + 8.0,
        );
    }
    let timeouts = |name: &str| table.find(name).runs.timeouts().mean;
    finding.within("Reno, timer expirations,", timeouts("Reno"), 3.0, 9.0);
    finding.below("snoop, timer expirations,", timeouts("snoop"), 1.0);
    let (with, without) = (timeouts("snoop+ACKP"), timeouts("snoop"));
    finding.require(
        with <= without,
        format!("ACKP's timer expirations ({with:.2}) do not exceed snoop's ({without:.2})"),
    );
    let reno = table.find("Reno");
    let lost = reno.runs.summary(|m| m.flows.iter().map(|f| f.transfer_time_s).sum::<f64>()).mean
        - table.ideal.summary(|m| m.flows.iter().map(|f| f.transfer_time_s).sum::<f64>()).mean;
    let stalled = reno.runs.summary(|m| m.flows.iter().map(|f| f.stall_time_s).sum::<f64>()).mean;
    finding.note(format!(
        "Reno here loses {lost:.1} s against the ideal transfer. Its stalls add up to {stalled:.1} s, but the queue \
         before the slow link covers part of them: a window of two packets keeps that link busy, so only time-outs \
         cost anything. The paper's 121.7 s for 5.4 time-outs are 22.5 s each, more than twice those of its own \
         Table 4 (10.1 s); nothing in its text accounts for them"
    ));
    Ok(finding)
}

/// Table 4: six-packet bursts on the slow link.
pub fn t4(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let published = [
        Published {
            throughput: 2.79,
            percent: 19.73,
            wired: 84.9,
            wireless: 84.9,
            timeouts: 57.55,
        },
        Published {
            throughput: 10.80,
            percent: 76.35,
            wired: 97.9,
            wireless: 86.8,
            timeouts: 4.30,
        },
        Published {
            throughput: 10.79,
            percent: 76.31,
            wired: 99.5,
            wireless: 87.8,
            timeouts: 0.70,
        },
    ];
    let table = Columns::run(bench, SLOW, BURSTS, 14.14, published)?;
    let mut finding =
        table.finding(bench.seeds, "Table 4: slow link, six-packet bursts (published in brackets)");
    let ideal = table.ideal();
    let (reno, snoop, ackp) = (table.find("Reno"), table.find("snoop"), table.find("snoop+ACKP"));
    finding.within("Reno, percent of ideal,", reno.percent(ideal).mean, 12.0, 28.0);
    for column in [snoop, ackp] {
        let percent = column.percent(ideal).mean;
        finding.within(&format!("{}, percent of ideal,", column.name), percent, 66.0, 86.0);
    }
    let apart = (snoop.percent(ideal).mean - ackp.percent(ideal).mean).abs();
    finding.require(
        apart <= 5.0,
        format!("snoop and ACKP are {apart:.1} points apart, wanted at most 5"),
    );
    let (with, without) = (ackp.runs.timeouts().mean, snoop.runs.timeouts().mean);
    finding.require(
        with < without / 2.0,
        format!(
            "ACKP's timer expirations ({with:.2}) are less than half of snoop's ({without:.2})"
        ),
    );
    let (better, worse) = (ackp.wired().mean, snoop.wired().mean);
    finding.require(
        better > worse,
        format!("ACKP's wired goodput ({better:.2} %) is above snoop's ({worse:.2} %)"),
    );
    let local = |cause| snoop.runs.summary(|m| m.sum(|f| f.originated.get(cause)) as f64).mean;
    finding.note(format!(
        "Snoop's round trips hold the queue of a whole window before the slow link, eleven packets of 0.1 s, so its \
         local time-out is above a second; {:.1} losses a run wait for it ({:.1} more for the persist timer, {:.1} are \
         repaired on a duplicate ACK). The paper's agent must have measured shorter round trips: where its delay \
         stood is not told",
        local(Cause::LocalTimeout),
        local(Cause::LocalPersist),
        local(Cause::LocalDupAck),
    ));
    Ok(finding)
}
