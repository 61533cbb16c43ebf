//! Sections 5.1 and 5.2: segment sizes, and SACK at each of them.

use super::budget::{Budget, Draw, sensitivity};
use super::calibration::budgets;
use super::cases::{
    BYTES, Changes, LIFETIME, Line, MTUS, SACK_OFF, STOCK, USUAL, by_mtu, chart, gain, megabytes,
    minutes, percent, retransmissions, seeds,
};
use crate::{Bench, Finding, Interrupted, short};

fn rising(values: &[f64]) -> bool {
    values.windows(2).all(|pair| pair[0] < pair[1])
}

fn falling(values: &[f64]) -> bool {
    values.windows(2).all(|pair| pair[0] > pair[1])
}

/// 5.8: light takes 33 ns for 10 m.
const TEN_METRES: Changes = &["radio.delay=33ns"];

/// 5.1.
pub(super) fn mss(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    finding.runs = seeds(bench);
    let stock = Line::run(bench, "stock", &[STOCK])?;
    for (mtu, runs) in MTUS.iter().zip(&stock.runs) {
        let bytes = runs.summary(megabytes("sender"));
        finding.measure(format!("MTU {mtu}, sent"), bytes, "MB per battery");
        finding.measure(format!("MTU {mtu}, lifetime"), runs.summary(minutes("sender")), "min");
    }
    let steps = MTUS.iter().zip(MTUS.iter().zip(&stock.runs).skip(1)).zip(&stock.runs);
    for ((smaller, (larger, after)), before) in steps {
        let bytes = after.difference(before, megabytes("sender"));
        finding.above(format!("MTU {larger} against {smaller}: more bytes, MB,"), bytes, 0.0);
        let life = before.difference(after, minutes("sender"));
        finding.above(format!("MTU {larger} against {smaller}: shorter life, min,"), life, 0.0);
    }
    let lines = [stock];
    let title = "Figure 5.1a: bytes by MTU";
    finding.figures.push(chart(&lines, megabytes("sender"), BYTES, title));
    let title = "Figure 5.1b: lifetime by MTU";
    finding.figures.push(chart(&lines, minutes("sender"), LIFETIME, title));
    let [stock] = lines;
    let near = Line { name: "13 inches apart", ..stock.clone() };
    let apart = [near, Line::run(bench, "10 m apart", &[TEN_METRES])?];
    let title = "Figure 5.8: bytes by MTU and distance";
    finding.figures.push(chart(&apart, megabytes("sender"), BYTES, title));
    let (near, far) = (apart[0].at(USUAL), apart[1].at(USUAL));
    finding.note(format!(
        "10 m apart instead of 13 inches (5.8), MTU {USUAL}: lifetime {}, bytes {}. Only the time on the way is \
         another: with a loss of 60 dB the signal is still 37 dB above what the card needs",
        percent(&gain(far, near, minutes("sender"))),
        percent(&gain(far, near, megabytes("sender")))
    ));
    let draws = stock.runs.each_ref().map(|runs| Draw::of(runs, "sender"));
    let title = "5.1: what a battery is worth by MTU";
    finding.tables.push(by_mtu(title, &[stock], "sender"));
    let life = |budget: &Budget| draws.map(|d| budget.lifetime(d));
    let bytes = |budget: &Budget| draws.map(|d| budget.megabytes(d));
    let columns =
        "minutes at 500 | at 1000 | at 1500 | at 2296 | MB at 500 | at 1000 | at 1500 | at 2296";
    sensitivity(bench, finding, columns, |budget| [life(budget), bytes(budget)].concat())?;
    let word = |holds| if holds { "yes" } else { "no" };
    let orders = budgets(bench)?.map(|budget| {
        let (bytes, life) = (word(rising(&bytes(&budget))), word(falling(&life(&budget))));
        format!("{} times: bytes {bytes}, lifetime {life}", budget.factor)
    });
    finding.note(format!("Monotone with another cost of a segment? {}", orders.join("; ")));
    Ok(())
}

/// A difference in percent that a figure can show; two options on the SYN make one of 0.000004 %.
const VISIBLE: f64 = 0.1;

/// 5.2.
pub(super) fn sack(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    finding.runs = seeds(bench);
    let on = Line::run(bench, "SACK on", &[STOCK])?;
    let off = Line::run(bench, "SACK off", &[SACK_OFF])?;
    let mut answers = Vec::new();
    for (mtu, (with, without)) in MTUS.iter().zip(on.runs.iter().zip(&off.runs)) {
        let bytes = gain(without, with, megabytes("sender"));
        let life = gain(without, with, minutes("sender"));
        finding.measure(format!("MTU {mtu}, SACK off: bytes"), bytes, "%");
        finding.measure(format!("MTU {mtu}, SACK off: lifetime"), life, "%");
        // Off is ahead only at the largest MTU and on below it, by a difference that a figure could show.
        let quantity = format!("MTU {mtu}: bytes with SACK off above on in %");
        match *mtu == MTUS[MTUS.len() - 1] {
            true => finding.above(quantity, bytes, VISIBLE),
            false => finding.below(quantity, bytes, -VISIBLE),
        }
        answers.push(format!("{mtu}: {}", percent(&bytes)));
    }
    let again: f64 = on.means(retransmissions).iter().sum();
    finding.note(format!(
        "Bytes with SACK off against on: {}. The paper has off ahead at 2296 alone. {}",
        answers.join(", "),
        match again > 0.0 {
            true =>
                format!("A battery sees {} retransmissions in all four sizes together", short(again)),
            false => "No segment was lost at any size: 802.11 had retransmitted each damaged frame, so there \
                      was never a block to write or to read, and SACK is two options on the SYN"
                .to_owned(),
        }
    ));
    losses(bench, finding)?;
    let stock_and_off = [Line::run(bench, "stock", &[STOCK])?, off.clone()];
    let on_and_off = [on, off];
    for (lines, bytes, life, options) in [
        (&stock_and_off, "5.2a", "5.2b", "SACK off"),
        (&on_and_off, "5.2c", "5.2d", "SACK on and off"),
    ] {
        let title = format!("Figure {bytes}: bytes by MTU, {options}");
        finding.figures.push(chart(lines, megabytes("sender"), BYTES, &title));
        let title = format!("Figure {life}: lifetime by MTU, {options}");
        finding.figures.push(chart(lines, minutes("sender"), LIFETIME, &title));
    }
    finding.tables.push(by_mtu("5.2: SACK on and off", &on_and_off, "sender"));
    Ok(())
}

/// A channel unlike that of the testbed: an outage of 50 ms every 20 s, so that 802.11 drops packets.
const OUTAGES: Changes =
    &[r#"errors={ model = "two-state", good = "20s", bad = "50ms", ber-bad = 0.01 }"#];

/// The effect of SACK where packets are lost.
fn losses(bench: &mut Bench<'_>, finding: &mut Finding) -> Result<(), Interrupted> {
    let on = Line::run(bench, "SACK on", &[OUTAGES])?;
    let lines = [on, Line::run(bench, "SACK off", &[SACK_OFF, OUTAGES])?];
    let each = MTUS.map(|mtu| {
        let (on, off) = (lines[0].at(mtu), lines[1].at(mtu));
        let bytes = percent(&gain(off, on, megabytes("sender")));
        format!("{mtu}: {bytes} ({} retransmitted)", short(on.mean(retransmissions)))
    });
    finding.note(format!(
        "Where nothing gets through for 50 ms every 20 s, off against on is {}",
        each.join(", ")
    ));
    let title = "SACK on and off, with outages of 50 ms every 20 s";
    finding.tables.push(by_mtu(title, &lines, "sender"));
    Ok(())
}
