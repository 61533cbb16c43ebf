//! Sections 5.3 to 5.6: window scaling, timestamps, header prediction, and ACKs by time.

use lasthop_observe::metrics::RunMetrics;

use super::budget::{Draw, more, sensitivity};
use super::cases::{
    BY_TIME, BYTES, Case, Changes, FROM_TWO, LIFETIME, Line, MTUS, PREDICTED, SCALE_OFF,
    STAMPS_OFF, STOCK, USUAL, by_mtu, chart, chart_with_published, gain, kbps, megabytes, minutes,
    per_joule, percent, run, seeds,
};
use crate::measure::{count, timeouts};
use crate::{Bench, Estimate, Finding, Interrupted, Runs, short};

/// Runs with a change and without it at the usual MTU.
struct Pair {
    stock: Runs,
    changed: Runs,
}

impl Pair {
    /// The change and the stock by MTU, with a figure, a table, and a chart of published lifetimes with and without the
    /// change.
    fn run(
        bench: &mut Bench<'_>,
        finding: &mut Finding,
        (name, parts): (&'static str, Changes),
        figure: &str,
        lifetimes: Option<(f64, f64)>,
    ) -> Result<Pair, Interrupted> {
        let lines = [Line::run(bench, "stock", &[STOCK])?, Line::run(bench, name, &[parts])?];
        let title = format!("Figure {figure}: bytes by MTU, {name}");
        finding.figures.push(chart(&lines, megabytes("sender"), BYTES, &title));
        if let Some((changed, stock)) = lifetimes {
            let title = format!("Lifetime by MTU, {name}");
            let published = [(USUAL, stock), (USUAL, changed)];
            let plot =
                chart_with_published(&lines, minutes("sender"), LIFETIME, &title, &published);
            finding.figures.push(plot);
        }
        finding.tables.push(by_mtu(&format!("{figure}: {name}"), &lines, "sender"));
        let each = MTUS.map(|mtu| {
            let gain = gain(lines[1].at(mtu), lines[0].at(mtu), megabytes("sender"));
            format!("{mtu}: {}", percent(&gain))
        });
        finding.note(format!("Bytes per battery with {name}, by MTU: {}", each.join(", ")));
        let [stock, changed] = lines.map(|line| line.at(USUAL).clone());
        Ok(Pair { stock, changed })
    }

    fn draws(&self) -> [Draw; 2] {
        [&self.stock, &self.changed].map(|runs| Draw::of(runs, "sender"))
    }
}

/// 5.3, 5.4, 5.5.
pub(super) fn options(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    finding.runs = seeds(bench);
    let cases = [
        ("window scale off", SCALE_OFF, "5.3", None),
        ("timestamps off", STAMPS_OFF, "5.4", Some((115.0, 111.0))),
        ("prediction before PAWS", PREDICTED, "5.5", Some((114.0, 111.0))),
    ];
    let (mut draws, mut saving) = (Vec::new(), Vec::new());
    for (name, parts, figure, published) in cases {
        let pair = Pair::run(bench, finding, (name, parts), figure, published)?;
        let bytes = gain(&pair.changed, &pair.stock, megabytes("sender"));
        let life = gain(&pair.changed, &pair.stock, minutes("sender"));
        let saved = gain(&pair.stock, &pair.changed, per_joule("sender"));
        finding.measure(format!("{name}, bytes per battery"), bytes, "%");
        let longer = published.map(|(new, old)| more(new, old));
        finding.compare(format!("{name}, lifetime"), life, "%", longer);
        finding.measure(format!("{name}, energy per byte"), saved, "%");
        for (quantity, gain) in [("bytes", bytes), ("lifetime", life)] {
            let quantity = format!("{name}: {quantity} in %");
            match published {
                None => finding.equal(quantity.trim_end_matches(" in %"), gain, 1.0),
                Some(_) => finding.above(quantity, gain, 0.0),
            }
        }
        if let Some((new, old)) = published {
            // Lifetimes are whole minutes.
            let (least, most) = (more(new - 0.5, old + 0.5), more(new + 0.5, old - 0.5));
            finding.within(format!("{name}: lifetime in %, as printed"), life, least, most);
        }
        if parts == STAMPS_OFF {
            let saved = Estimate::from(saved).scaled(-1.0);
            finding.within(format!("{name}: energy per byte saved in %"), saved, 1.0, 8.0);
        }
        draws.push(pair.draws());
        saving.push([pair.stock.each(per_joule("sender")), pair.changed.each(per_joule("sender"))]);
    }
    // "Comparable" (6): neither saves more than twice as much as the other.
    let [_, stamps, prediction] = &saving[..] else { return Ok(()) };
    let series = [&stamps[1], &stamps[0], &prediction[1], &prediction[0]];
    let times =
        Estimate::of(&series.map(Vec::as_slice), |m| (m[2] / m[3] - 1.0) / (m[0] / m[1] - 1.0));
    finding.within("saving of header prediction over that of timestamps off", times, 0.5, 2.0);
    let columns = ["bytes", "lifetime"]
        .map(|quantity| cases.map(|(name, ..)| format!("{name}: {quantity}, %")).join(" | "));
    sensitivity(bench, finding, &columns.join(" | "), |budget| {
        let bytes =
            draws.iter().map(|[old, new]| more(budget.megabytes(*new), budget.megabytes(*old)));
        let life =
            draws.iter().map(|[old, new]| more(budget.lifetime(*new), budget.lifetime(*old)));
        bytes.chain(life).collect()
    })
}

/// Frames on the air with a TCP ACK.
fn acks(m: &RunMetrics) -> f64 {
    m.stages.iter().filter_map(|s| s.air).map(|a| a.acks.frames as f64).sum()
}

/// 5.6.
pub(super) fn by_time(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    finding.runs = seeds(bench);
    let published = Some((106.0, 106.0));
    let pair = Pair::run(bench, finding, ("ACKs by time", BY_TIME), "5.6", published)?;
    let Pair { stock, changed } = &pair;
    let efficiency = gain(changed, stock, per_joule("sender"));
    let life = gain(changed, stock, minutes("sender"));
    finding.measure("bytes per joule", efficiency, "%");
    finding.compare("lifetime", life, "%", 0.0);
    finding.measure("throughput", gain(changed, stock, kbps), "%");
    finding.compare("lifetime, stock", stock.summary(minutes("sender")), "min", 106.0);
    let label = "lifetime, ACKs by time";
    finding.compare(label, changed.summary(minutes("sender")), "min", 106.0);
    finding.above("bytes per joule in %", efficiency, 0.0);
    // The same in whole minutes, with a deviation of at most one.
    let longer = changed.difference(stock, minutes("sender"));
    finding.within("lifetime longer by, min,", longer, -2.0, 2.0);
    let per_ack = |runs: &Runs| runs.mean(count(|f| f.new_packets)) / runs.mean(acks);
    finding.note(format!(
        "An ACK is for {:.1} segments by time and for {:.1} otherwise. It is the window that calls for it, half of \
         which goes by in much less than 500 ms: Linux 2.2 sends an ACK that would double what the sender still may \
         send",
        per_ack(changed),
        per_ack(stock)
    ));
    opening(bench, finding)?;
    let [old, new] = pair.draws();
    sensitivity(bench, finding, "bytes per joule, % | lifetime, %", |budget| {
        let bytes = more(budget.per_joule(new), budget.per_joule(old));
        vec![bytes, more(budget.lifetime(new), budget.lifetime(old))]
    })
}

/// The cost of opening the window from two segments, which steady-state runs omit.
fn opening(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    const SIZES: [u32; 2] = [MTUS[0], USUAL];
    let long = SIZES.map(|mtu| Case::new(mtu, &[BY_TIME]).with(FROM_TWO).with(&["horizon=600s"]));
    let open = SIZES.map(|mtu| Case::new(mtu, &[BY_TIME]));
    let (long, open) = (run(bench, &long)?, run(bench, &open)?);
    let words = SIZES.iter().zip(long.iter().zip(&open)).map(|(mtu, (long, open))| {
        let steady = open.mean(kbps);
        let missing = long.mean(|m| m.end_s * (1.0 - kbps(m) / steady));
        format!(
            "at {mtu} after {} timeouts, and the data that is not sent meanwhile would take {} s",
            short(long.mean(timeouts)),
            short(missing)
        )
    });
    finding.note(format!(
        "A connection that begins with two segments has its window opened by one ACK in 500 ms, {}: the first \
         timeout, of 200 ms, does not wait for that ACK and leaves a threshold of two segments",
        words.collect::<Vec<_>>().join("; ")
    ));
    Ok(())
}
