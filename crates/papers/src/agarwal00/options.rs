//! Sections 5.3 to 5.6: window scaling, timestamps, header prediction, and ACKs by time.

use lasthop_report::model::Measured;

use super::budget::{Draw, sensitivity};
use super::calibration::budgets;
use super::cases::{
    BY_TIME, BYTES, Changes, LIFETIME, MTUS, PREDICTED, SCALE_OFF, STAMPS_OFF, STOCK, USUAL, chart,
    gain, kbps, line, megabytes, minutes, per_joule, percent, seeds, table,
};
use crate::bench::{Bench, Interrupted, Runs};
use crate::finding::Finding;
use crate::west97::Experiment;

/// The experiment for the claim `id`.
pub(super) fn experiment(id: &str) -> Option<Experiment> {
    Some(match id {
        "A-OPTIONS" => options,
        "A-DELACK" => by_time,
        _ => return None,
    })
}

/// What was changed, by MTU beside the stock: a figure, a table, and the two runs at the usual MTU.
fn beside(
    bench: &mut Bench<'_>,
    finding: &mut Finding,
    (name, parts): (&str, Changes),
    figure: &str,
    lifetimes: bool,
) -> Result<Option<(Runs, Runs)>, Interrupted> {
    let lines = [line(bench, "stock", &[STOCK])?, line(bench, name, &[parts])?];
    let title = format!("Figure {figure}: bytes by MTU, {name}");
    finding.figures.push(chart(&lines, megabytes("sender"), BYTES, &title));
    if lifetimes {
        let title = format!("Lifetime by MTU, {name}");
        finding.figures.push(chart(&lines, minutes("sender"), LIFETIME, &title));
    }
    finding.tables.push(table(&format!("{figure}: {name}"), &lines, "sender"));
    let each: Vec<String> = MTUS
        .iter()
        .filter_map(|mtu| {
            let (stock, changed) = (lines[0].at(*mtu)?, lines[1].at(*mtu)?);
            Some(format!("{mtu}: {}", percent(&gain(changed, stock, megabytes("sender")))))
        })
        .collect();
    finding.note(format!("Bytes per battery with {name}, by MTU: {}", each.join(", ")));
    Ok(lines[0].at(USUAL).cloned().zip(lines[1].at(USUAL).cloned()))
}

/// 5.3, 5.4, 5.5.
fn options(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let mut finding = Finding::new(seeds(bench));
    let cases = [
        ("window scale off", SCALE_OFF, "5.3", None),
        ("timestamps off", STAMPS_OFF, "5.4", Some((115.0, 111.0))),
        ("prediction before PAWS", PREDICTED, "5.5", Some((114.0, 111.0))),
    ];
    let mut draws = Vec::new();
    for (name, parts, figure, published) in cases {
        let pair = beside(bench, &mut finding, (name, parts), figure, published.is_some())?;
        let Some((stock, changed)) = pair else { continue };
        let bytes = gain(&changed, &stock, megabytes("sender"));
        let life = gain(&changed, &stock, minutes("sender"));
        let saved = gain(&stock, &changed, per_joule("sender"));
        let percents = |what: &str, value, published| {
            Measured::new(format!("{name}, {what}"), value, "%", published)
        };
        finding.measured.extend([
            percents("bytes per battery", &bytes, None),
            percents("lifetime", &life, published.map(|(new, old)| 100.0 * (new / old - 1.0))),
            percents("energy per byte", &saved, None),
        ]);
        match published {
            None => {
                finding.within(&format!("{name}: bytes in %"), bytes.mean, -1.0, 1.0);
                finding.within(&format!("{name}: lifetime in %"), life.mean, -1.0, 1.0);
            }
            Some(_) => {
                finding.above(&format!("{name}: bytes in %"), bytes.low(), 0.0);
                finding.above(&format!("{name}: lifetime in %"), life.low(), 0.0);
            }
        }
        if parts == STAMPS_OFF {
            finding.within(&format!("{name}: energy per byte saved in %"), -saved.mean, 1.0, 8.0);
        }
        draws.push([Draw::of(&stock, "sender"), Draw::of(&changed, "sender")]);
    }
    let budgets = budgets(bench)?;
    let columns = [
        "window scale off: bytes, %",
        "timestamps off: bytes, %",
        "prediction before PAWS: bytes, %",
        "window scale off: lifetime, %",
        "timestamps off: lifetime, %",
        "prediction before PAWS: lifetime, %",
    ];
    sensitivity(&mut finding, &budgets, &columns, |budget| {
        let more = |new: f64, old: f64| 100.0 * (new / old - 1.0);
        let bytes =
            draws.iter().map(|[old, new]| more(budget.megabytes(*new), budget.megabytes(*old)));
        let life =
            draws.iter().map(|[old, new]| more(budget.lifetime(*new), budget.lifetime(*old)));
        bytes.chain(life).collect()
    });
    Ok(finding)
}

/// 5.6.
fn by_time(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let mut finding = Finding::new(seeds(bench));
    let pair = beside(bench, &mut finding, ("ACKs by time", BY_TIME), "5.6", true)?;
    let Some((stock, changed)) = pair else { return Ok(finding) };
    let efficiency = gain(&changed, &stock, per_joule("sender"));
    let life = gain(&changed, &stock, minutes("sender"));
    finding.measured.extend([
        Measured::new("bytes per joule", &efficiency, "%", None),
        Measured::new("lifetime", &life, "%", Some(0.0)),
        Measured::new("throughput", &gain(&changed, &stock, kbps), "%", None),
        Measured::new("lifetime, stock", &stock.summary(minutes("sender")), "min", Some(106.0)),
        Measured::new(
            "lifetime, ACKs by time",
            &changed.summary(minutes("sender")),
            "min",
            Some(106.0),
        ),
    ]);
    finding.above("bytes per joule in %", efficiency.low(), 0.0);
    finding.within("lifetime in %", life.mean, -3.0, 3.0);
    let acks = |runs: &Runs| {
        let frames = runs
            .summary(|m| m.stages.iter().filter_map(|s| s.air).map(|a| a.acks.frames as f64).sum())
            .mean;
        let data = runs.summary(|m| m.sum(|f| f.new_packets) as f64).mean;
        data / frames
    };
    finding.note(format!(
        "An ACK is for {:.1} segments by time and for {:.1} otherwise. It is the window that calls for it, half of which \
         goes by in much less than 500 ms: Linux 2.2 sends an ACK that would double what the sender still may send",
        acks(&changed),
        acks(&stock)
    ));
    let draws = [Draw::of(&stock, "sender"), Draw::of(&changed, "sender")];
    let budgets = budgets(bench)?;
    sensitivity(&mut finding, &budgets, &["bytes per joule, %", "lifetime, %"], |budget| {
        let [old, new] = draws;
        vec![
            100.0 * (budget.per_joule(new) / budget.per_joule(old) - 1.0),
            100.0 * (budget.lifetime(new) / budget.lifetime(old) - 1.0),
        ]
    });
    Ok(finding)
}
