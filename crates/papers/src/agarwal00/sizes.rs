//! Sections 5.1 and 5.2: segment sizes, and SACK at each of them.

use lasthop_report::model::Measured;

use super::budget::{Draw, sensitivity};
use super::calibration::budgets;
use super::cases::{
    BYTES, LIFETIME, Line, MTUS, SACK_OFF, STOCK, chart, gain, line, megabytes, minutes, percent,
    retransmissions, seeds, table,
};
use crate::bench::{Bench, Interrupted};
use crate::finding::{Finding, short};
use crate::west97::Experiment;

/// The experiment for the claim `id`.
pub(super) fn experiment(id: &str) -> Option<Experiment> {
    Some(match id {
        "A-MSS" => mss,
        "A-SACK" => sack,
        _ => return None,
    })
}

fn rising(values: &[f64]) -> bool {
    values.windows(2).all(|pair| pair[0] < pair[1])
}

/// 5.1.
fn mss(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let mut finding = Finding::new(seeds(bench));
    let stock = line(bench, "stock", &[STOCK])?;
    for mtu in MTUS {
        let Some(runs) = stock.at(mtu) else { continue };
        let (bytes, life) = (runs.summary(megabytes("sender")), runs.summary(minutes("sender")));
        finding.measured.push(Measured::new(
            format!("MTU {mtu}, sent"),
            &bytes,
            "MB per battery",
            None,
        ));
        finding.measured.push(Measured::new(format!("MTU {mtu}, lifetime"), &life, "min", None));
    }
    let bytes = stock.means(megabytes("sender"));
    let life = stock.means(minutes("sender"));
    let list = |values: &[f64]| values.iter().map(|v| short(*v)).collect::<Vec<_>>().join(", ");
    finding.require(rising(&bytes), format!("bytes rise with the MTU: {} MB", list(&bytes)));
    let falling: Vec<f64> = life.iter().map(|v| -v).collect();
    finding.require(rising(&falling), format!("lifetime falls with the MTU: {} min", list(&life)));
    let lines = [stock];
    finding.figures.push(chart(&lines, megabytes("sender"), BYTES, "Figure 5.1a: bytes by MTU"));
    finding.figures.push(chart(
        &lines,
        minutes("sender"),
        LIFETIME,
        "Figure 5.1b: lifetime by MTU",
    ));
    finding.tables.push(table("5.1: what a battery is worth by MTU", &lines, "sender"));
    let budgets = budgets(bench)?;
    let draws: Vec<Draw> = lines[0].runs.iter().map(|(_, runs)| Draw::of(runs, "sender")).collect();
    let columns = [
        "minutes at 500",
        "at 1000",
        "at 1500",
        "at 2296",
        "MB at 500",
        "at 1000",
        "at 1500",
        "at 2296",
    ];
    sensitivity(&mut finding, &budgets, &columns, |budget| {
        let life = draws.iter().map(|d| budget.lifetime(*d));
        life.chain(draws.iter().map(|d| budget.megabytes(*d))).collect()
    });
    let orders: Vec<String> = budgets
        .iter()
        .map(|budget| {
            let life: Vec<f64> = draws.iter().map(|d| -budget.lifetime(*d)).collect();
            let bytes: Vec<f64> = draws.iter().map(|d| budget.megabytes(*d)).collect();
            let word = |holds| if holds { "yes" } else { "no" };
            format!(
                "{} times: bytes {}, lifetime {}",
                budget.factor,
                word(rising(&bytes)),
                word(rising(&life))
            )
        })
        .collect();
    finding.note(format!("Monotone with another cost of a segment? {}", orders.join("; ")));
    Ok(finding)
}

/// 5.2.
fn sack(bench: &mut Bench<'_>) -> Result<Finding, Interrupted> {
    let mut finding = Finding::new(seeds(bench));
    let on = line(bench, "SACK on", &[STOCK])?;
    let off = line(bench, "SACK off", &[SACK_OFF])?;
    let mut answers = Vec::new();
    for mtu in MTUS {
        let (Some(with), Some(without)) = (on.at(mtu), off.at(mtu)) else { continue };
        let bytes = gain(without, with, megabytes("sender"));
        let life = gain(without, with, minutes("sender"));
        finding.measured.push(Measured::new(
            format!("MTU {mtu}, SACK off: bytes"),
            &bytes,
            "%",
            None,
        ));
        finding.measured.push(Measured::new(
            format!("MTU {mtu}, SACK off: lifetime"),
            &life,
            "%",
            None,
        ));
        finding.require(
            bytes.mean.is_finite() && bytes.n >= 2,
            format!("MTU {mtu}: off against on measured over {} pairs of runs", bytes.n),
        );
        answers.push(format!("{mtu}: {}", percent(&bytes)));
    }
    let again: f64 =
        MTUS.iter().filter_map(|m| on.at(*m)).map(|r| r.summary(retransmissions).mean).sum();
    finding.note(format!(
        "Bytes with SACK off against on: {}. The paper has off ahead at 2296 alone. {}",
        answers.join(", "),
        match again > 0.0 {
            true => format!("A battery sees {} retransmissions in all four sizes together", short(again)),
            false => "No segment was lost at any size: 802.11 had sent again whatever the channel damaged, so there was \
                      never a block to write or to read, and SACK is two options on the SYN"
                .to_owned(),
        }
    ));
    let normal = line(bench, "stock", &[STOCK])?;
    let pair = [normal, Line { name: "SACK off", runs: off.runs.clone() }];
    finding.figures.push(chart(
        &pair,
        megabytes("sender"),
        BYTES,
        "Figure 5.2a: bytes by MTU, SACK off",
    ));
    finding.figures.push(chart(
        &pair,
        minutes("sender"),
        LIFETIME,
        "Figure 5.2b: lifetime by MTU, SACK off",
    ));
    let lines = [on, off];
    finding.figures.push(chart(
        &lines,
        megabytes("sender"),
        BYTES,
        "Figure 5.2c: bytes by MTU, SACK on and off",
    ));
    finding.figures.push(chart(
        &lines,
        minutes("sender"),
        LIFETIME,
        "Figure 5.2d: lifetime by MTU, SACK on and off",
    ));
    finding.tables.push(table("5.2: SACK on and off", &lines, "sender"));
    Ok(finding)
}
