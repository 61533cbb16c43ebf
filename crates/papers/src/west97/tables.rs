//! Tables 1 to 4 (5.2, 5.3).

use lasthop_observe::metrics::RunMetrics;
use lasthop_proto::event::Cause;

use super::setup::{ACKP, ACKP_FULL, BURSTS, SLOW, SNOOP, errors, restarting};
use crate::figure::{WHISKERS, bar, bars, published_bar};
use crate::measure::{count, stall_time, throughput, timeouts, transfer_time, wired, wireless};
use crate::table::{Cell, row, table};
use crate::testbed::{SINGLE, UNCHANGED, WEST97_LAN as LAN};
use crate::{Bench, Bound, Estimate, Finding, Interrupted, Runs, short};

/// The figures of a column: name in conditions, label, unit.
const QUANTITIES: [(&str, &str, &str); 5] = [
    ("throughput", "throughput", "KB/s"),
    ("percent of ideal", "of ideal", "%"),
    ("wired goodput", "wired goodput", "%"),
    ("wireless goodput", "wireless goodput", "%"),
    ("timeouts", "timeouts", "per run"),
];
const PERCENT: usize = 1;
const WIRED: usize = 2;
const WIRELESS: usize = 3;
const TIMEOUTS: usize = 4;

/// A published table: title, testbed and errors, ideal throughput in KB/s, and the columns Reno, snoop, snoop+ACKP,
/// each in the order of [`QUANTITIES`].
struct PublishedTable {
    title: &'static str,
    testbed: &'static str,
    errors: &'static str,
    ideal: f64,
    columns: [[f64; 5]; 3],
    /// Standard deviation of the transfer time in seconds, by column.
    deviations: [f64; 3],
    /// Standard deviation of the throughput in KB/s, by column.
    spreads: [f64; 3],
    /// Margin of goodputs in points: that of single errors, or of bursts.
    goodput: f64,
    /// The condition on timeouts, by column.
    timeouts: [Timeouts; 3],
    /// Margin of "almost identical" throughputs of ACKP and snoop, in percent.
    alike: f64,
}

/// How many timeouts a column may have.
#[derive(Clone, Copy)]
enum Timeouts {
    /// About as many as published.
    About,
    /// As published, by the rate that 20 runs do not exclude.
    Rare,
    /// The same without those of a lost SYN: "some timeouts with snoop even when only a single packet loss occurs".
    RareAfterHandshake,
    /// None, nor a duplicate ACK at the sender.
    None,
}
use Timeouts::{About, Rare, RareAfterHandshake};

const TABLE_1: PublishedTable = PublishedTable {
    title: "Table 1: LAN, single errors (published in brackets)",
    testbed: LAN,
    errors: SINGLE,
    ideal: 199.92,
    columns: [
        [98.36, 49.20, 97.4, 97.4, 7.50],
        [185.91, 93.00, 99.4, 97.3, 0.00],
        [185.07, 92.58, 99.5, 97.2, 0.00],
    ],
    deviations: [4.695, 0.280, 0.520],
    spreads: [23.117, 4.890, 8.372],
    goodput: 1.0,
    timeouts: [About, Timeouts::None, Timeouts::None],
    alike: 3.0,
};

const TABLE_2: PublishedTable = PublishedTable {
    title: "Table 2: LAN, six-packet bursts (published in brackets)",
    testbed: LAN,
    errors: BURSTS,
    ideal: 199.92,
    columns: [
        [7.19, 3.60, 85.9, 85.9, 56.60],
        [105.37, 52.71, 99.6, 87.5, 0.65],
        [105.66, 52.85, 99.7, 88.2, 0.30],
    ],
    deviations: [90.581, 3.378, 3.411],
    spreads: [2.584, 16.548, 18.978],
    goodput: 3.0,
    timeouts: [About, Rare, Rare],
    alike: 5.0,
};

const TABLE_3: PublishedTable = PublishedTable {
    title: "Table 3: slow link, single errors (published in brackets)",
    testbed: SLOW,
    errors: SINGLE,
    ideal: 14.14,
    columns: [
        [7.52, 53.20, 97.6, 97.6, 5.40],
        [13.61, 96.24, 99.8, 97.5, 0.35],
        [13.61, 96.20, 99.8, 97.6, 0.05],
    ],
    deviations: [8.146, 1.739, 1.363],
    spreads: [0.230, 0.163, 0.127],
    goodput: 1.0,
    timeouts: [About, RareAfterHandshake, RareAfterHandshake],
    alike: 3.0,
};

const TABLE_4: PublishedTable = PublishedTable {
    title: "Table 4: slow link, six-packet bursts (published in brackets)",
    testbed: SLOW,
    errors: BURSTS,
    ideal: 14.14,
    columns: [
        [2.79, 19.73, 84.9, 84.9, 57.55],
        [10.80, 76.35, 97.9, 86.8, 4.30],
        [10.79, 76.31, 99.5, 87.8, 0.70],
    ],
    deviations: [125.229, 15.235, 17.914],
    spreads: [0.500, 0.828, 0.952],
    goodput: 3.0,
    timeouts: [About, About, Rare],
    alike: 5.0,
};

/// A printed mean allows its printed standard deviation, at most this share of itself; the share alone where none is
/// printed.
const SPREAD: f64 = 0.15;
/// The standard deviation of 20 runs is between 0.76 and 1.46 times that of all runs (95 %), so that a published one
/// allows these multiples of itself.
const DEVIATIONS: (f64, f64) = (1.0 / 1.46, 1.0 / 0.76);
/// None in 20 runs excludes a higher rate (95 %).
const NONE_IN_20: f64 = 0.15;

/// The rates of rare events that 20 runs with `rate` events each do not exclude (95 %, Wilson and Hilferty).
fn rare(rate: f64) -> (f64, f64) {
    let edge = |n: f64, side: f64| {
        let root = (1.0 - 1.0 / (9.0 * n) + side * 1.96 / (3.0 * n.sqrt())).max(0.0);
        n * root * root * root / 20.0
    };
    (edge(20.0 * rate, -1.0), edge(20.0 * rate + 1.0, 1.0))
}

/// A measured column.
struct Column {
    name: &'static str,
    runs: Runs,
    measured: [Estimate; 5],
    published: Option<[f64; 5]>,
}

impl Column {
    fn new(name: &'static str, runs: Runs, ideal: f64, published: Option<[f64; 5]>) -> Column {
        let measured = [
            runs.throughput(),
            runs.summary(|m| 100.0 * throughput(m) / ideal),
            runs.summary(wired),
            runs.summary(wireless),
            runs.timeouts(),
        ];
        Column { name, runs, measured: measured.map(Estimate::from), published }
    }

    fn within(&self, finding: &mut Finding, quantity: usize, (low, high): (f64, f64)) {
        let what = format!("{}, {},", self.name, QUANTITIES[quantity].0);
        finding.within(what, self.measured[quantity], low, high);
    }

    /// Requires the published figures of the column `i` of a table.
    fn judge(&self, finding: &mut Finding, of: &PublishedTable, i: usize) {
        let published = of.columns[i];
        let about = |quantity: usize, share: f64| {
            ((1.0 - share) * published[quantity], (1.0 + share) * published[quantity])
        };
        // The spread of the percentage is that of the throughput.
        self.within(finding, PERCENT, about(PERCENT, SPREAD.min(of.spreads[i] / published[0])));
        for goodput in [WIRED, WIRELESS] {
            let published = published[goodput];
            self.within(finding, goodput, (published - of.goodput, published + of.goodput));
        }
        let what = format!("{}, timeouts,", self.name);
        let (low, high) = rare(published[TIMEOUTS]);
        match of.timeouts[i] {
            About => self.within(finding, TIMEOUTS, about(TIMEOUTS, SPREAD)),
            Rare => finding.within(what, self.measured[TIMEOUTS], low, high),
            RareAfterHandshake => {
                let later = |m: &RunMetrics| timeouts(m) - count(|f| f.opening_timeouts)(m);
                finding.within(what, self.runs.summary(later), low, high);
            }
            Timeouts::None => {
                finding.below(what, self.measured[TIMEOUTS], NONE_IN_20);
                let dupacks = self.runs.summary(count(|f| f.dupacks));
                let what = format!("{}, duplicate ACKs at the sender,", self.name);
                finding.below(what, dupacks, NONE_IN_20);
            }
        }
    }

    fn row(&self) -> Vec<String> {
        let cells = self.measured.iter().enumerate();
        let cells =
            cells.map(|(i, measured)| with_published(measured, self.published.map(|p| p[i])));
        let name = core::iter::once(self.name.to_owned());
        name.chain(cells).chain([self.runs.cell()]).collect()
    }
}

/// `measured ± interval (published)`.
fn with_published(measured: &Estimate, published: Option<f64>) -> String {
    let published = published.map_or(String::new(), |p| format!(" ({})", p.cell()));
    format!("{}{published}", measured.cell())
}

/// A measured table: the transfer without errors, and the columns.
struct MeasuredTable {
    ideal: Column,
    columns: [Column; 4],
}

/// Runs a table, and adds its figures, table, chart and the conditions that all tables have.
fn measure(
    bench: &mut Bench<'_>,
    finding: &mut Finding,
    of: &PublishedTable,
) -> Result<MeasuredTable, Interrupted> {
    let runs = bench.runs(of.testbed, UNCHANGED)?;
    let ideal = runs.throughput();
    // Timeouts are so rare with snoop, and bursts so unequal, that 20 seeds cannot decide which is better.
    let errors = errors(bench, of.errors);
    let mut column = |name, agent: &[&str], published: Option<[f64; 5]>| {
        let changes = [agent, &[errors.as_str()]].concat();
        let runs = match published {
            Some(_) => bench.with_many(|bench| bench.runs(of.testbed, &changes))?,
            None => bench.runs(of.testbed, &changes)?,
        };
        Ok(Column::new(name, runs.opened(), ideal.mean, published))
    };
    let [reno, snoop, ackp] = of.columns.map(Some);
    let columns = [
        column("Reno", &[], reno)?,
        column("snoop", SNOOP, snoop)?,
        column("snoop+ACKP", ACKP, ackp)?,
        column("snoop+ACKP, full", ACKP_FULL, None)?,
    ];
    let perfect = Some([of.ideal, 100.0, 100.0, 100.0, 0.0]);
    let ideal = Column::new("ideal", runs, ideal.mean, perfect);
    finding.compare("ideal throughput", ideal.measured[0], "KB/s", of.ideal);
    let mut rows = table(
        of.title,
        "< | KB/s | % of ideal | wired goodput % | wireless goodput % | timeouts | completed",
    );
    let mut first = ideal.row();
    first[1 + PERCENT].clear();
    rows.rows.push(first);
    for column in &columns {
        for (i, (_, quantity, unit)) in QUANTITIES.iter().enumerate() {
            let label = format!("{} {quantity}", column.name);
            finding.compare(label, column.measured[i], unit, column.published.map(|p| p[i]));
        }
        rows.rows.push(column.row());
        let all = column.runs.all().len();
        let given_up = all - column.runs.complete();
        if given_up > 0 {
            finding.note(format!(
                "{given_up} of {all} transfers with {} gave up after 12 timeouts in a row and count with what \
                 they delivered until then",
                column.name
            ));
        }
    }
    finding.tables.push(rows);
    for (column, published) in columns.iter().zip(of.deviations) {
        let times = column.runs.deviation(transfer_time);
        let label = format!("{} standard deviation of the transfer time", column.name);
        finding.compare(label, times, "s", published);
        let (low, high) = DEVIATIONS;
        let quantity = format!(
            "{}, standard deviation of the transfer time over that published,",
            column.name
        );
        finding.within(quantity, times.scaled(1.0 / published), low, high);
    }
    let groups = core::iter::once(&ideal).chain(&columns).map(|column| {
        let published = column.published.and_then(|p| published_bar(p[0]));
        (column.name, vec![published, bar(column.measured[0])])
    });
    let series = [("published", true), ("measured", false)];
    let title = of.title.trim_end_matches(" (published in brackets)");
    finding.figures.push(bars(title, "throughput, KB/s", series, groups, WHISKERS));
    for (i, column) in columns.iter().take(of.columns.len()).enumerate() {
        column.judge(finding, of, i);
    }
    let [_, snoop, ackp, _] = &columns;
    let above = ackp.runs.percent_above(&snoop.runs, throughput);
    finding.equal("throughput of ACKP above that of snoop", above, of.alike);
    Ok(MeasuredTable { ideal, columns })
}

/// Notes figures of a table of bursts with one alternative each.
fn alternatives(
    bench: &mut Bench<'_>,
    finding: &mut Finding,
    of: &PublishedTable,
) -> Result<(), Interrupted> {
    let restart = restarting(of.errors);
    let stamps = ["host.fixed.timestamps=true", "host.mobile.timestamps=true"];
    let cases: [(&str, &str, &[&str]); 5] = [
        ("an onset within a burst begins it anew", &restart, &[]),
        ("snoop's minimum timeout is 500 ms too", of.errors, &["path.verdi.min-timeout=500ms"]),
        ("snoop's persist timer is 200 ms", of.errors, &["path.verdi.persist=200ms"]),
        ("snoop has no check for bursts", of.errors, &["path.verdi.burst-check=false"]),
        ("hosts have timestamps", of.errors, &stamps),
    ];
    for (name, errors, more) in cases {
        let mut rate = |agent: &[&str]| {
            let runs = bench.runs(of.testbed, &[agent, more, &[errors]].concat())?.opened();
            Ok(format!(
                "{} KB/s and {} timeouts in {} s",
                runs.throughput().cell(),
                runs.timeouts().cell(),
                short(runs.mean(transfer_time))
            ))
        };
        // What only snoop has leaves Reno as it is.
        let reno = match name.starts_with("snoop") {
            true => String::new(),
            false => format!("Reno has {}, ", rate(&[])?),
        };
        finding.note(format!("where {name}: {reno}snoop has {}", rate(SNOOP)?));
    }
    Ok(())
}

/// Requires ACKP to have fewer timeouts than snoop alone.
fn fewer_timeouts(finding: &mut Finding, ackp: &Column, snoop: &Column) {
    let less = snoop.runs.difference(&ackp.runs, timeouts);
    finding.above("timeouts of snoop less those of ACKP", less, 0.0);
}

/// Table 1: single errors on the LAN.
pub(super) fn t1(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let MeasuredTable { ideal, columns } = measure(bench, finding, &TABLE_1)?;
    finding.near("ideal in KB/s", ideal.measured[0], TABLE_1.ideal, 0.05);
    let [_, snoop, ..] = &columns;
    let opening = snoop.runs.mean(count(|f| f.opening_timeouts));
    finding.note(format!(
        "{} of snoop's {} timeouts a run are those of a lost SYN or its answer, which the error model can hit as well",
        opening.cell(),
        snoop.measured[TIMEOUTS].value.cell()
    ));
    Ok(())
}

/// 5.2.1, last paragraph: the same at twice and four times the error rate.
pub(super) fn t1_denser(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let mut rows = table(
        "Denser single errors",
        "<one error per | <agent | KB/s | timeouts | duplicate ACKs at the sender",
    );
    for mean in ["32KiB", "16KiB"] {
        let errors =
            format!(r#"errors={{ model = "exponential", mean = "{mean}", on = ["data", "ack"] }}"#);
        let mut both = Vec::new();
        for (name, agent) in [("snoop", SNOOP), ("snoop+ACKP", ACKP)] {
            let changes = [agent, &[errors.as_str()]].concat();
            let runs = bench.with_many(|bench| bench.runs(LAN, &changes))?;
            let dupacks = runs.summary(count(|f| f.dupacks));
            let (throughput, timeouts) = (runs.throughput(), runs.timeouts());
            let label = |quantity: &str| format!("{name} at {mean}, {quantity}");
            finding.measure(label("throughput"), throughput, "KB/s");
            finding.measure(label("timeouts"), timeouts, "per run");
            finding.measure(label("duplicate ACKs at the sender"), dupacks, "per run");
            finding.below(label("timeouts"), timeouts, 0.5);
            finding.below(label("duplicate ACKs at the sender"), dupacks, 1.0);
            rows.rows.push(row(&[&mean, &name, &throughput, &timeouts, &dupacks]));
            both.push(runs);
        }
        let above = both[1].percent_above(&both[0], throughput);
        finding.equal(format!("throughput of ACKP above that of snoop at {mean}"), above, 3.0);
    }
    finding.tables.push(rows);
    Ok(())
}

/// Table 2: six-packet bursts on the LAN.
pub(super) fn t2(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let MeasuredTable { columns: [_, snoop, ackp, _], .. } = measure(bench, finding, &TABLE_2)?;
    fewer_timeouts(finding, &ackp, &snoop);
    if bench.is_shown() {
        alternatives(bench, finding, &TABLE_2)?;
    }
    Ok(())
}

/// Table 3: single errors on the slow link.
pub(super) fn t3(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let MeasuredTable { ideal, columns } = measure(bench, finding, &TABLE_3)?;
    finding.near("ideal in KB/s", ideal.measured[0], TABLE_3.ideal, 0.05);
    let [reno, snoop, ackp, _] = &columns;
    fewer_timeouts(finding, ackp, snoop);
    let lost = reno.runs.mean(transfer_time) - ideal.runs.mean(transfer_time);
    let stalled = reno.runs.mean(stall_time);
    // If n losses of about c seconds each caused the difference, times would deviate by c sqrt(n).
    let losses = reno.runs.mean(count(|f| f.fast_retransmits)) + reno.measured[TIMEOUTS].value;
    let deviation = TABLE_3.deviations[0];
    let most = deviation / losses.sqrt();
    finding.note(format!(
        "Reno here loses {lost:.1} s against the ideal transfer. Its stalls add up to {stalled:.1} s, but the queue \
         before the slow link covers part of them: a window of two packets keeps that link busy, so only timeouts \
         cost anything. The paper's 121.7 s for 5.4 timeouts are 22.5 s each, more than twice those of its own \
         Table 4 (10.1 s); nothing in its text accounts for them"
    ));
    finding.note(format!(
        "No model of losses can give it: the published transfers take 259.8 s with a standard deviation of \
         {deviation:.1} s. If each of some {losses:.0} losses cost c seconds, the deviation of their number \
         alone would make that of the times {:.1} c, so c is at most {most:.1} s, and losses explain at most {:.0} \
         of the \
         121.7 s. What took the rest took it in every transfer alike",
        losses.sqrt(),
        most * losses
    ));
    Ok(())
}

/// Table 4: six-packet bursts on the slow link.
pub(super) fn t4(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let MeasuredTable { columns: [_, snoop, ackp, _], .. } = measure(bench, finding, &TABLE_4)?;
    let apart = snoop.runs.ratio(&ackp.runs, throughput).value * ackp.measured[PERCENT].value;
    let apart = (apart - ackp.measured[PERCENT].value).abs();
    let text = format!("snoop and ACKP are {apart:.1} points apart, wanted at most 5");
    finding.judge("points between snoop and ACKP", apart, Bound::AtMost(5.0), text);
    let times = [ackp.runs.each(timeouts), snoop.runs.each(timeouts)];
    let less = Estimate::of(&[&times[0], &times[1]], |m| m[1] / 2.0 - m[0]);
    finding.above("half of snoop's timeouts less those of ACKP", less, 0.0);
    let better = ackp.runs.difference(&snoop.runs, wired);
    finding.above("ACKP's wired goodput less snoop's, points,", better, 0.0);
    let local = |cause| snoop.runs.mean(count(move |f| f.originated.get(cause)));
    finding.note(format!(
        "With the fault the persist timer drives retransmissions whatever the round trips, which hold the queue of a \
         whole window before the slow link: {:.1} losses a run wait for the local timeout, {:.1} for the persist \
         timer, \
         {:.1} are repaired on a duplicate ACK",
        local(Cause::LocalTimeout),
        local(Cause::LocalPersist),
        local(Cause::LocalDupAck),
    ));
    if bench.is_shown() {
        alternatives(bench, finding, &TABLE_4)?;
    }
    Ok(())
}

/// 5.2.1: do larger windows help snoop?
pub(super) fn snoop_window(
    bench: &mut Bench<'_>,
    finding: &mut Finding,
) -> Result<(), Interrupted> {
    let mut rows = table("Snoop by the receive window", "window, KB | KB/s | stall time, s");
    let mut all = Vec::new();
    for kb in [16_u32, 32, 64] {
        let bytes = (kb * 1024).min(65_535);
        let [receive, send] = [("mobile", "recv"), ("fixed", "send")]
            .map(|(host, side)| format!("host.{host}.{side}-buffer={bytes}"));
        let changes = [SNOOP, &[SINGLE, &receive, &send]].concat();
        let runs = bench.with_many(|bench| bench.runs(LAN, &changes))?;
        finding.measure(format!("window of {kb} KB"), runs.throughput(), "KB/s");
        rows.rows.push(row(&[&kb, &runs.throughput(), &runs.summary(stall_time)]));
        all.push((kb, runs));
    }
    finding.tables.push(rows);
    for pair in all.windows(2) {
        let ((smaller, before), (larger, after)) = (&pair[0], &pair[1]);
        let above = after.percent_above(before, throughput);
        finding.above(format!("{larger} KB above {smaller} KB in %"), above, 0.0);
    }
    Ok(())
}
