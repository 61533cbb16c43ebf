//! Whether compressing before sending spares a battery: the arithmetic, per byte of what is to be sent.

use lasthop_lab::CellResults;
use lasthop_scenario::Plan;
use lasthop_trace::metrics::NodeEnergy;
use lasthop_trace::stats::Summary;
use serde::Serialize;

use crate::{Error, Runner};

/// What a compressor did to the data, on some machine.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// Compressor and level.
    pub level: String,
    /// What is left for each byte.
    pub ratio: f64,
    /// Nanoseconds of the machine's processor for each byte, the median of the repeats.
    pub ns_per_byte: f64,
    /// The fastest and the slowest of them.
    pub ns_range: [f64; 2],
    /// The median in instructions.
    pub instructions_per_byte: f64,
}

/// What is said of a node's processor; where nothing is, its preset counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Given {
    /// Instructions of a compressor that it does in a second.
    pub instructions_per_s: Option<f64>,
    /// What it draws beyond `base` while it is busy.
    pub watts: Option<f64>,
}

/// One combination of the scenario.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// The value on each axis.
    pub labels: Vec<String>,
    /// What the sending host is made of.
    pub hardware: String,
    /// Its processor.
    pub processor: Processor,
    /// What each level costs.
    pub rows: Vec<Row>,
}

/// One level on one sort of hardware.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Compressor and level.
    pub level: String,
    /// Joules for a megabyte of the original, over the runs.
    pub joules_per_mb: Summary,
    /// What that spares of sending it as it is, in percent.
    pub spares_percent: Summary,
    /// Nanoseconds of the node's processor for a byte.
    pub node_ns_per_byte: f64,
    /// Up to how many of them it spares energy.
    pub break_even_ns: f64,
}

/// What the levels cost in each combination of a scenario.
///
/// # Errors
///
/// If no host sends on a battery that lasts, if nothing is known of its processor, and whatever `run` fails of.
pub fn answer<E: From<Error>>(
    plan: &Plan,
    levels: &[Measured],
    given: Given,
    run: &mut Runner<'_, E>,
) -> Result<Vec<Cell>, E> {
    let results = run(plan)?;
    let cells = results.cells.into_iter().map(|cell| Ok(costs(cell, levels, given)?));
    cells.collect()
}

fn costs(cell: CellResults, levels: &[Measured], given: Given) -> Result<Cell, Error> {
    let nodes = cell.runs.iter().flat_map(|run| &run.metrics.energy);
    let (hardware, sendings): (Vec<&String>, Vec<Sending>) =
        nodes.filter_map(|node| Some((&node.hardware, Sending::of(node)?))).unzip();
    let Some(hardware) = hardware.last() else {
        return Err(Error::input(
            "no host of the scenario sends on a battery that lasts",
            "give the sender a battery, for example `--set host.sender.battery=phone-wifi`",
        ));
    };
    let known = Processor::of(hardware);
    let instructions_per_s = given.instructions_per_s.or(known.map(|p| p.instructions_per_s));
    let watts = given.watts.or(known.map(|p| p.watts));
    let (Some(instructions_per_s), Some(watts)) = (instructions_per_s, watts) else {
        return Err(Error::input(
            format!("nothing is known of the processor of `{hardware}`"),
            "say `--cpu-speed` (millions of instructions in a second) and `--cpu-power` (watts)",
        ));
    };
    let processor = Processor { instructions_per_s, watts };
    let rows = levels.iter().map(|level| row(level, &sendings, processor)).collect();
    Ok(Cell { labels: cell.labels, hardware: (*hardware).clone(), processor, rows })
}

/// What a level costs, from all runs.
fn row(level: &Measured, sendings: &[Sending], processor: Processor) -> Row {
    let Processor { instructions_per_s, watts } = processor;
    let cpu_s = level.instructions_per_byte / instructions_per_s;
    let of = |number: &dyn Fn(&Sending) -> f64| {
        Summary::of(&sendings.iter().map(number).collect::<Vec<f64>>())
    };
    let per_byte = |s: &Sending| s.per_byte(level.ratio, cpu_s, watts);
    let plain = |s: &Sending| s.per_byte(1.0, 0.0, watts);
    Row {
        level: level.level.clone(),
        joules_per_mb: of(&|s| per_byte(s) * 1e6),
        spares_percent: of(&|s| (1.0 - per_byte(s) / plain(s)) * 100.0),
        node_ns_per_byte: cpu_s * 1e9,
        break_even_ns: of(&|s| s.break_even(level.ratio, watts) * 1e9).mean,
    }
}

/// The processor of a node.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Processor {
    /// Instructions of a compressor that it does in a second.
    pub instructions_per_s: f64,
    /// What it draws beyond `base` while it is busy.
    pub watts: f64,
}

/// Processors by preset of the hardware. They are assumptions, in round numbers: clock times instructions for each
/// cycle, and what data sheets say of busy and waiting. docs/energy-questions.md has the reasons.
const PROCESSORS: [(&str, Processor); 5] = [
    ("sens-800", Processor { instructions_per_s: 90e6, watts: 10.0 }),
    ("laptop-wifi-n", Processor { instructions_per_s: 4e9, watts: 10.0 }),
    ("phone-wifi", Processor { instructions_per_s: 3e9, watts: 1.5 }),
    ("lte-m-modem", Processor { instructions_per_s: 60e6, watts: 0.01 }),
    ("esp32", Processor { instructions_per_s: 200e6, watts: 0.10 }),
];

impl Processor {
    /// That of a preset, if it is known.
    pub fn of(preset: &str) -> Option<Processor> {
        PROCESSORS.iter().find(|(name, _)| *name == preset).map(|(_, processor)| *processor)
    }
}

/// What it takes a node to send a byte, from a run.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Sending {
    /// Seconds.
    pub seconds: f64,
    /// Joules beyond what the node draws in that time with a radio that only listens.
    pub joules: f64,
    /// What it draws so, in watts.
    pub rest_w: f64,
}

impl Sending {
    /// That of a host of a run; `None` if it has sent nothing, or its battery was empty.
    pub fn of(node: &NodeEnergy) -> Option<Sending> {
        let elapsed = node.transmit_s + node.receive_s + node.doze_s + node.idle_s;
        if node.sent == 0 || node.emptied || elapsed <= 0.0 || node.idle_s <= 0.0 {
            return None;
        }
        let rest_w = node.spent.base / elapsed + node.spent.idle / node.idle_s;
        let sent = node.sent as f64;
        let joules = ((node.spent_j - rest_w * elapsed) / sent).max(0.0);
        Some(Sending { seconds: elapsed / sent, joules, rest_w })
    }

    /// Joules for a byte of the original: `ratio` of it is left, and that takes `cpu_s` of a processor that draws
    /// `watts`. A node compresses while it sends, so that the slower of the two is what the rest has to wait for.
    pub fn per_byte(&self, ratio: f64, cpu_s: f64, watts: f64) -> f64 {
        let time = (ratio * self.seconds).max(cpu_s);
        ratio * self.joules + cpu_s * watts + self.rest_w * time
    }

    /// Up to how many seconds of processor for each byte compressing to `ratio` spares energy.
    pub fn break_even(&self, ratio: f64, watts: f64) -> f64 {
        let spared = (1.0 - ratio) * (self.joules + self.rest_w * self.seconds);
        let within = if watts > 0.0 { spared / watts } else { f64::INFINITY };
        if within <= ratio * self.seconds {
            return within.max(0.0);
        }
        let all = (1.0 - ratio) * self.joules + self.rest_w * self.seconds;
        (all / (watts + self.rest_w)).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENDING: Sending = Sending { seconds: 1e-6, joules: 2e-6, rest_w: 4.0 };

    #[test]
    fn what_takes_no_time_spares_what_is_not_sent() {
        assert_eq!(SENDING.per_byte(1.0, 0.0, 5.0), 6e-6);
        assert!((SENDING.per_byte(0.25, 0.0, 5.0) - 1.5e-6).abs() < 1e-18);
    }

    #[test]
    fn at_the_break_even_both_ways_cost_the_same() {
        let plain = SENDING.per_byte(1.0, 0.0, 0.0);
        for watts in [0.01, 0.5, 5.0, 50.0] {
            for ratio in [0.1, 0.5, 0.9, 0.999] {
                let limit = SENDING.break_even(ratio, watts);
                let there = SENDING.per_byte(ratio, limit, watts);
                assert!((there - plain).abs() < 1e-6 * plain, "{watts} {ratio}: {there}");
                assert!(SENDING.per_byte(ratio, limit * 1.1, watts) > plain);
            }
        }
        assert_eq!(SENDING.break_even(1.0, 5.0), 0.0, "what does not shrink pays nothing");
    }

    #[test]
    fn every_preset_has_a_processor() {
        for preset in lasthop_proto::energy::PRESETS {
            assert!(Processor::of(preset.name).is_some(), "{}", preset.name);
        }
    }
}
