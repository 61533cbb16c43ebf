//! Sections 5.7 and 5.9: all changes together, at the sender and at the receiver.

use super::budget::{Draw, more, sensitivity};
use super::cases::{
    BY_TIME, BYTES, Case, Changes, LIFETIME, Line, MTUS, RTS, SACK_OFF, STAMPS_OFF, STOCK, USUAL,
    by_mtu, chart, chart_with_published, gain, megabytes, minutes, per_joule, run, seeds,
};
use crate::{Bench, Estimate, Finding, Interrupted, short};

/// The largest MTU, which is one of the changes.
const LARGEST: u32 = MTUS[MTUS.len() - 1];

/// All changes except the MTU, with or without RTS.
fn changed(rts: Changes) -> [Changes; 4] {
    [SACK_OFF, STAMPS_OFF, BY_TIME, rts]
}

/// The stock and all changes at each MTU.
fn stock_and_changed(bench: &mut Bench<'_>, rts: Changes) -> Result<[Line; 2], Interrupted> {
    let stock = Line::run(bench, "stock", &[rts])?;
    Ok([stock, Line::run(bench, "all changes", &changed(rts))?])
}

/// 5.7.
pub(super) fn best(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    finding.runs = seeds(bench);
    let mut gains = Vec::new();
    let mut draws = Vec::new();
    for (words, rts, figure, (old, new), published) in [
        ("RTS off", STOCK, "5.7a", (122.0, 113.0), Some(29.0)),
        ("RTS on", RTS, "5.7b", (114.0, 113.0), None),
    ] {
        let lines = stock_and_changed(bench, rts)?;
        let bytes = format!("Figure {figure}: bytes by MTU, {words}");
        let life = format!("Lifetime by MTU, {words}");
        let published_lives = [(USUAL, old), (LARGEST, new)];
        finding.figures.extend([
            chart(&lines, megabytes("sender"), BYTES, &bytes),
            chart_with_published(&lines, minutes("sender"), LIFETIME, &life, &published_lives),
        ]);
        let title = format!("{figure}: stock and all changes, {words}");
        finding.tables.push(by_mtu(&title, &lines, "sender"));
        let (stock, same, changed) =
            (lines[0].at(USUAL), lines[0].at(LARGEST), lines[1].at(LARGEST));
        let efficiency = gain(changed, stock, per_joule("sender"));
        let alone = gain(changed, same, per_joule("sender"));
        let label = |quantity: &str| format!("{words}: {quantity}");
        finding.compare(label("bytes per joule, all changes"), efficiency, "%", published);
        finding.measure(label("without that of the MTU"), alone, "%");
        let life = stock.summary(minutes("sender"));
        finding.compare(label("lifetime, stock"), life, "min", old);
        let life = changed.summary(minutes("sender"));
        finding.compare(label("lifetime, all changes"), life, "min", new);
        finding.note(format!(
            "{words}: the changes bring {} % over the stock with an MTU of {USUAL}, and {} % at the same MTU of \
             {LARGEST}",
            short(efficiency.mean),
            short(alone.mean)
        ));
        draws.push([Draw::of(stock, "sender"), Draw::of(changed, "sender")]);
        let series = [stock, changed]
            .map(|runs| [runs.each(per_joule("sender")), runs.each(minutes("sender"))]);
        gains.push((efficiency, series));
    }
    let [(off, [stock, changed]), (_, [stock_rts, changed_rts])] = &gains[..] else {
        return Ok(());
    };
    // "Almost 29 %."
    finding.near("RTS off: bytes per joule up in %", off, 29.0, 0.15);
    let higher = Estimate::of(&[&changed_rts[0], &stock_rts[0], &changed[0], &stock[0]], |m| {
        100.0 * (m[0] / m[1] - m[2] / m[3])
    });
    finding.above("the saving with RTS and CTS less that without, points,", higher, 0.0);
    let shorter = |stock: &[f64], changed: &[f64]| Estimate::difference(stock, changed);
    let (without, with) =
        (shorter(&stock[1], &changed[1]), shorter(&stock_rts[1], &changed_rts[1]));
    finding.compare("RTS off: lifetime shorter by", without, "min", 9.0);
    finding.compare("RTS on: lifetime shorter by", with, "min", 1.0);
    let closer = Estimate::of(&[&stock[1], &changed[1], &stock_rts[1], &changed_rts[1]], |m| {
        (m[0] - m[1]) - (m[2] - m[3])
    });
    finding.above("RTS brings the lifetimes closer by, min,", closer, 0.0);
    // Lifetimes are whole minutes, and deviate by one at most.
    finding.within("RTS on: lifetime shorter by, min,", with, -1.0, 3.0);
    let columns = "RTS off: bytes per joule, % | RTS on | RTS off: minutes, stock | changed | \
                   RTS on: minutes, stock | changed";
    sensitivity(bench, finding, columns, |budget| {
        let gain = |[old, new]: &[Draw; 2]| more(budget.per_joule(*new), budget.per_joule(*old));
        let lives = draws.iter().flat_map(|pair| pair.map(|d| budget.lifetime(d)));
        draws.iter().map(gain).chain(lives).collect()
    })
}

/// 5.9.
pub(super) fn receiver(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    finding.runs = seeds(bench);
    let cases = [Case::new(LARGEST, &[RTS]), Case::new(LARGEST, &changed(RTS))];
    let [stock, changed] = run(bench, &cases)?;
    let efficiency = gain(&changed, &stock, per_joule("receiver"));
    let life = gain(&changed, &stock, minutes("receiver"));
    let (old, new) = (121.0, 120.0);
    finding.measure("bytes per joule at the receiver", efficiency, "%");
    finding.compare("lifetime", life, "%", more(new, old));
    let minutes = minutes("receiver");
    finding.compare("lifetime, stock", stock.summary(&minutes), "min", old);
    finding.compare("lifetime, all changes", changed.summary(&minutes), "min", new);
    finding.above("bytes per joule at the receiver in %", efficiency, 0.0);
    // 121 and 120 min, each with a deviation of at most one.
    let shorter = stock.difference(&changed, &minutes);
    finding.within("lifetime shorter by, min,", shorter, -1.0, 3.0);
    let lines = stock_and_changed(bench, RTS)?;
    let title = "Figure 5.9: bytes received by MTU, RTS on";
    finding.figures.push(chart(&lines, megabytes("receiver"), BYTES, title));
    let title = "Lifetime of the receiver by MTU, RTS on";
    let published = [(LARGEST, old), (LARGEST, new)];
    finding.figures.push(chart_with_published(&lines, minutes, LIFETIME, title, &published));
    finding.tables.push(by_mtu("5.9: the receiver on its battery, RTS on", &lines, "receiver"));
    let [old, new] = [Draw::of(&stock, "receiver"), Draw::of(&changed, "receiver")];
    sensitivity(bench, finding, "bytes per joule, % | minutes, stock | changed", |budget| {
        let gain = more(budget.per_joule(new), budget.per_joule(old));
        vec![gain, budget.lifetime(old), budget.lifetime(new)]
    })
}
