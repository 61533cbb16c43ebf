//! Sections 5.7 and 5.9: all changes together, at the sender and at the receiver.

use lasthop_report::model::Measured;

use super::budget::{Draw, sensitivity};
use super::calibration::budgets;
use super::cases::{
    BY_TIME, BYTES, Case, Changes, LIFETIME, Line, MTUS, RTS, SACK_OFF, STAMPS_OFF, STOCK, USUAL,
    chart, chart_beside, gain, line, megabytes, minutes, per_joule, run, seeds, table,
};
use crate::bench::{Bench, Interrupted, Runs};
use crate::finding::{Finding, short};
use crate::west97::Experiment;

/// The experiment for the claim `id`.
pub(super) fn experiment(id: &str) -> Option<Experiment> {
    Some(match id {
        "A-BEST" => best,
        "A-RECEIVER" => receiver,
        _ => return None,
    })
}

/// The largest MTU, which is one of the changes.
const LARGEST: u32 = MTUS[MTUS.len() - 1];

/// Everything but the MTU.
const CHANGED: [Changes; 3] = [SACK_OFF, STAMPS_OFF, BY_TIME];

/// 5.7.
fn best(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let mut finding = Finding::new(seeds(bench));
    let settings: [(&str, Changes, &str, (f64, f64)); 2] =
        [("RTS off", STOCK, "5.7a", (122.0, 113.0)), ("RTS on", RTS, "5.7b", (114.0, 113.0))];
    let mut gains = Vec::new();
    let mut draws = Vec::new();
    for (words, rts, figure, published) in settings {
        let [a, b, c] = CHANGED;
        let lines = [line(bench, "stock", &[rts])?, line(bench, "all changes", &[a, b, c, rts])?];
        let title = format!("Figure {figure}: bytes by MTU, {words}");
        finding.figures.push(chart(&lines, megabytes("sender"), BYTES, &title));
        let title = format!("Lifetime by MTU, {words}");
        let beside = [(USUAL, published.0), (LARGEST, published.1)];
        finding.figures.push(chart_beside(&lines, minutes("sender"), LIFETIME, &title, &beside));
        finding.tables.push(table(
            &format!("{figure}: stock and all changes, {words}"),
            &lines,
            "sender",
        ));
        let (Some(stock), Some(changed), Some(same)) =
            (lines[0].at(USUAL), lines[1].at(LARGEST), lines[0].at(LARGEST))
        else {
            continue;
        };
        let efficiency = gain(changed, stock, per_joule("sender"));
        let alone = gain(changed, same, per_joule("sender"));
        let published_gain = (rts == STOCK).then_some(29.0);
        finding.measured.extend([
            Measured::new(
                format!("{words}: bytes per joule, all changes"),
                &efficiency,
                "%",
                published_gain,
            ),
            Measured::new(format!("{words}: without that of the MTU"), &alone, "%", None),
            Measured::new(
                format!("{words}: lifetime, stock"),
                &stock.summary(minutes("sender")),
                "min",
                Some(published.0),
            ),
            Measured::new(
                format!("{words}: lifetime, all changes"),
                &changed.summary(minutes("sender")),
                "min",
                Some(published.1),
            ),
        ]);
        finding.note(format!(
            "{words}: the changes bring {} % over the stock with an MTU of {USUAL}, and {} % at the same MTU of {LARGEST}",
            short(efficiency.mean),
            short(alone.mean)
        ));
        draws.push([Draw::of(stock, "sender"), Draw::of(changed, "sender")]);
        gains.push(efficiency);
    }
    let [off, on] = gains.as_slice() else { return Ok(finding) };
    finding.within("RTS off: bytes per joule up in %", off.mean, 18.0, 40.0);
    finding.require(
        on.mean > off.mean,
        format!(
            "with RTS and CTS the saving is higher: {} % against {} %",
            short(on.mean),
            short(off.mean)
        ),
    );
    let budgets = budgets(bench)?;
    let columns = [
        "RTS off: bytes per joule, %",
        "RTS on",
        "RTS off: minutes, stock",
        "changed",
        "RTS on: minutes, stock",
        "changed",
    ];
    sensitivity(&mut finding, &budgets, &columns, |budget| {
        let gain = |[old, new]: &[Draw; 2]| {
            100.0 * (budget.per_joule(*new) / budget.per_joule(*old) - 1.0)
        };
        let lives = draws.iter().flat_map(|pair| pair.map(|d| budget.lifetime(d)));
        draws.iter().map(gain).chain(lives).collect()
    });
    Ok(finding)
}

/// 5.9.
fn receiver(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let mut finding = Finding::new(seeds(bench));
    let [a, b, c] = CHANGED;
    let cases = [Case::new(LARGEST, &[RTS]), Case::new(LARGEST, &[a, b, c, RTS])];
    let runs = run(bench, &cases)?;
    let [stock, changed] = runs.as_slice() else { return Ok(finding) };
    let efficiency = gain(changed, stock, per_joule("receiver"));
    let life = gain(changed, stock, minutes("receiver"));
    let lifetime = |runs: &Runs| runs.summary(minutes("receiver"));
    finding.measured.extend([
        Measured::new("bytes per joule at the receiver", &efficiency, "%", None),
        Measured::new("lifetime", &life, "%", Some(100.0 * (120.0 / 121.0 - 1.0))),
        Measured::new("lifetime, stock", &lifetime(stock), "min", Some(121.0)),
        Measured::new("lifetime, all changes", &lifetime(changed), "min", Some(120.0)),
    ]);
    finding.above("bytes per joule at the receiver in %", efficiency.low(), 0.0);
    finding.within("lifetime in %", life.mean, -3.0, 3.0);
    let lines = [line(bench, "stock", &[RTS])?, line(bench, "all changes", &[a, b, c, RTS])?];
    let only = lines.map(|line| Line { name: line.name, runs: line.runs });
    finding.figures.push(chart(
        &only,
        megabytes("receiver"),
        BYTES,
        "Figure 5.9: bytes received by MTU, RTS on",
    ));
    let title = "Lifetime of the receiver by MTU, RTS on";
    let beside = [(LARGEST, 121.0), (LARGEST, 120.0)];
    finding.figures.push(chart_beside(&only, minutes("receiver"), LIFETIME, title, &beside));
    finding.tables.push(table("5.9: the receiver on its battery, RTS on", &only, "receiver"));
    let draws = [Draw::of(stock, "receiver"), Draw::of(changed, "receiver")];
    let budgets = budgets(bench)?;
    let columns = ["bytes per joule, %", "minutes, stock", "changed"];
    sensitivity(&mut finding, &budgets, &columns, |budget| {
        let [old, new] = draws;
        vec![
            100.0 * (budget.per_joule(new) / budget.per_joule(old) - 1.0),
            budget.lifetime(old),
            budget.lifetime(new),
        ]
    });
    Ok(finding)
}
