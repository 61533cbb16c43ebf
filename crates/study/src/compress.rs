//! Energy of compression before sending, per byte of the original.

use lasthop_observe::metrics::NodeEnergy;
use lasthop_observe::stats::Summary;
use lasthop_scenario::Plan;
use lasthop_sim::runs::CellResults;
use serde::Serialize;

use crate::{Error, Runner};

/// Cost and effect of a compressor on some data, measured on one machine.
#[derive(Clone, Debug, Serialize)]
pub struct LevelMeasurement {
    /// Compressor and level.
    pub level: String,
    /// Compressed bytes per byte.
    pub ratio: f64,
    /// Processor nanoseconds per byte, the median of the repeats.
    pub ns_per_byte: f64,
    /// The fastest and the slowest repeat.
    pub ns_range: [f64; 2],
    /// Instructions per byte, at the median.
    pub instructions_per_byte: f64,
    /// Results for short pieces of the data, each compressed alone, by length.
    pub pieces: Vec<Piece>,
}

/// Results for pieces of one length.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Piece {
    pub bytes: u64,
    /// Compressed bytes per byte.
    pub ratio: f64,
    /// Instructions per byte.
    pub instructions_per_byte: f64,
}

/// Values for a node's processor that replace those of its preset.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessorOverrides {
    /// Instructions of a compressor per second.
    pub instructions_per_s: Option<f64>,
    /// Power above `base` while busy, in watts.
    pub watts: Option<f64>,
}

/// One combination of the scenario.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// The value on each axis.
    pub labels: Vec<String>,
    /// The hardware preset of the sending host.
    pub hardware: String,
    pub processor: Processor,
    /// The cost of each level.
    pub rows: Vec<Row>,
    pub recommended: Recommendation,
}

/// The recommendation for one combination of the scenario.
#[derive(Clone, Debug, Serialize)]
pub struct Recommendation {
    /// The level with the fewest joules; `None` to send uncompressed.
    pub level: Option<String>,
    /// The best level, even if it does not save energy.
    pub best: String,
    /// Energy that the best level saves, in percent.
    pub spares_percent: Summary,
    /// The shortest length in bytes of single pieces whose compression saves energy; `None` if there is none.
    pub from_bytes: Option<u64>,
    /// Without savings: the loss rate above which retransmissions make compression worthwhile.
    pub from_loss: Option<f64>,
    /// Joules to send one byte uncompressed.
    pub sending_j: f64,
    /// Joules of the processor to compress one byte.
    pub compressing_j: f64,
    /// Compressed bytes per byte.
    pub ratio: f64,
}

/// One level on one hardware.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Compressor and level.
    pub level: String,
    /// Joules per megabyte of the original, over the runs.
    pub joules_per_mb: Summary,
    /// Energy saved compared with sending uncompressed, in percent.
    pub spares_percent: Summary,
    /// Nanoseconds of the node's processor per byte.
    pub node_ns_per_byte: f64,
    /// Nanoseconds per byte below which it saves energy.
    pub break_even_ns: f64,
}

/// The cost of all levels in each combination of a scenario.
///
/// # Errors
///
/// No host sends on a battery that lasts, its processor is unknown, or `run` fails.
pub fn answer<E: From<Error>>(
    plan: &Plan,
    levels: &[LevelMeasurement],
    given: ProcessorOverrides,
    run: &mut Runner<'_, E>,
) -> Result<Vec<Cell>, E> {
    let results = run(plan)?;
    let cells = results.cells.into_iter().map(|cell| Ok(costs(cell, levels, given)?));
    cells.collect()
}

fn costs(
    cell: CellResults,
    levels: &[LevelMeasurement],
    given: ProcessorOverrides,
) -> Result<Cell, Error> {
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
            format!("the processor of `{hardware}` is not known"),
            "give `--cpu-speed` (millions of instructions per second) and `--cpu-power` (watts)",
        ));
    };
    let processor = Processor { instructions_per_s, watts };
    let rows: Vec<Row> = levels.iter().map(|level| row(level, &sendings, processor)).collect();
    let recommended = recommend(levels, &rows, Sending::mean(&sendings), processor)
        .ok_or_else(|| Error::input("no level of a compressor was tried", ""))?;
    Ok(Cell { labels: cell.labels, hardware: (*hardware).clone(), processor, rows, recommended })
}

/// The level with the fewest joules, and the conditions under which it saves energy; `None` without a level that
/// compresses.
fn recommend(
    levels: &[LevelMeasurement],
    rows: &[Row],
    sending: Sending,
    processor: Processor,
) -> Option<Recommendation> {
    let Processor { instructions_per_s, watts } = processor;
    let compressing =
        levels.iter().zip(rows).filter(|(level, _)| level.instructions_per_byte > 0.0);
    let (best, row) =
        compressing.min_by(|a, b| a.1.joules_per_mb.mean.total_cmp(&b.1.joules_per_mb.mean))?;
    let spares = row.spares_percent;
    let pays = spares.mean - spares.ci95 > 0.0;
    // The shortest length for which compression saves energy, also at all greater lengths.
    let piece =
        |p: &&Piece| sending.pays(p.ratio, p.instructions_per_byte / instructions_per_s, watts);
    let from_bytes = best.pieces.iter().rev().take_while(piece).last().map(|piece| piece.bytes);
    let cpu_s = best.instructions_per_byte / instructions_per_s;
    Some(Recommendation {
        level: pays.then(|| best.level.clone()),
        best: best.level.clone(),
        spares_percent: spares,
        from_bytes: from_bytes.filter(|_| pays),
        from_loss: if pays { None } else { sending.loss_from_which(best.ratio, cpu_s, watts) },
        sending_j: sending.per_byte(1.0, 0.0, watts),
        compressing_j: cpu_s * watts,
        ratio: best.ratio,
    })
}

/// The cost of a level over all runs.
fn row(level: &LevelMeasurement, sendings: &[Sending], processor: Processor) -> Row {
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
    /// Instructions of a compressor per second.
    pub instructions_per_s: f64,
    /// Power above `base` while busy, in watts.
    pub watts: f64,
}

/// Processors by hardware preset. These are round assumptions: clock rate times instructions per cycle, and the busy
/// and idle power of data sheets. docs/explanation/energy-questions.md has the reasons.
const PROCESSORS: [(&str, Processor); 5] = [
    ("sens-800", Processor { instructions_per_s: 90e6, watts: 10.0 }),
    ("laptop-wifi-n", Processor { instructions_per_s: 4e9, watts: 10.0 }),
    ("phone-wifi", Processor { instructions_per_s: 3e9, watts: 1.5 }),
    ("lte-m-modem", Processor { instructions_per_s: 60e6, watts: 0.01 }),
    ("esp32", Processor { instructions_per_s: 200e6, watts: 0.10 }),
];

impl Processor {
    /// The processor of a preset, if known.
    pub fn of(preset: &str) -> Option<Processor> {
        PROCESSORS.iter().find(|(name, _)| *name == preset).map(|(_, processor)| *processor)
    }
}

/// The cost of sending one byte, from a run.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Sending {
    /// Seconds.
    pub seconds: f64,
    /// Joules above those of a node whose radio only listens.
    pub joules: f64,
    /// Power of such a node, in watts.
    pub rest_w: f64,
}

impl Sending {
    /// The cost at one host of a run; `None` if it sent nothing or its battery was empty.
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

    /// The mean of several.
    fn mean(all: &[Sending]) -> Sending {
        let of = |number: fn(&Sending) -> f64| {
            all.iter().map(number).sum::<f64>() / all.len().max(1) as f64
        };
        Sending { seconds: of(|s| s.seconds), joules: of(|s| s.joules), rest_w: of(|s| s.rest_w) }
    }

    /// Compression to `ratio` uses fewer joules than sending uncompressed.
    fn pays(&self, ratio: f64, cpu_s: f64, watts: f64) -> bool {
        self.per_byte(ratio, cpu_s, watts) < self.per_byte(1.0, 0.0, watts)
    }

    /// The loss rate, with retransmissions at the same cost, above which compression saves energy; `None` if no rate
    /// suffices.
    fn loss_from_which(&self, ratio: f64, cpu_s: f64, watts: f64) -> Option<f64> {
        let pays = |loss: f64| {
            let times = 1.0 / (1.0 - loss);
            let sending =
                Sending { seconds: self.seconds * times, joules: self.joules * times, ..*self };
            sending.pays(ratio, cpu_s, watts)
        };
        const MOST: f64 = 0.99;
        if !pays(MOST) {
            return None;
        }
        let (mut low, mut high) = (0.0, MOST);
        for _ in 0..50 {
            let middle = (low + high) / 2.0;
            if pays(middle) { high = middle } else { low = middle }
        }
        Some(high)
    }

    /// Joules per byte of the original, with compression to `ratio` that takes `cpu_s` of a processor with `watts`. A
    /// node compresses while it sends, so the slower of the two determines the time.
    fn per_byte(&self, ratio: f64, cpu_s: f64, watts: f64) -> f64 {
        let time = (ratio * self.seconds).max(cpu_s);
        ratio * self.joules + cpu_s * watts + self.rest_w * time
    }

    /// Processor seconds per byte below which compression to `ratio` saves energy.
    fn break_even(&self, ratio: f64, watts: f64) -> f64 {
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
    fn free_compression_saves_the_energy_of_unsent_bytes() {
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

    fn level(name: &str, ratio: f64, ns: f64, pieces: &[(u64, f64)]) -> LevelMeasurement {
        let piece = |(bytes, ratio): &(u64, f64)| Piece {
            bytes: *bytes,
            ratio: *ratio,
            instructions_per_byte: ns,
        };
        LevelMeasurement {
            level: name.to_owned(),
            ratio,
            ns_per_byte: ns,
            ns_range: [ns; 2],
            instructions_per_byte: ns,
            pieces: pieces.iter().map(piece).collect(),
        }
    }

    #[test]
    fn the_level_with_the_fewest_joules_is_recommended_from_the_length_at_which_it_pays() {
        // A nanosecond is an instruction. Sending takes 6 uJ per byte, a microsecond of the processor 1 uJ.
        let processor = Processor { instructions_per_s: 1e9, watts: 1.0 };
        let levels = [
            level("none", 1.0, 0.0, &[]),
            level("fast", 0.5, 100.0, &[(64, 1.2), (128, 0.9), (256, 0.99), (512, 0.8)]),
            level("slow", 0.4, 900.0, &[(64, 0.5)]),
        ];
        let of = |levels: &[LevelMeasurement]| {
            let rows: Vec<Row> = levels.iter().map(|l| row(l, &[SENDING], processor)).collect();
            recommend(levels, &rows, SENDING, processor).unwrap()
        };
        let found = of(&levels);
        // 3.1 uJ with `fast`; with `slow` 0.8 + 0.9 uJ and 3.6 uJ for the rest of the node. At 256 bytes 6.04 uJ, more
        // than 6, so that only 512 and more pay.
        assert_eq!(found.level.as_deref(), Some("fast"));
        assert!((found.spares_percent.mean - 100.0 * (1.0 - 3.1 / 6.0)).abs() < 1e-9);
        assert_eq!((found.from_bytes, found.from_loss), (Some(512), None));
        // At 5 us per byte no level saves energy: 5 + 0.5 x 2 + 20 uJ. Each byte sent k times: 6 k = 25 + k, k = 5, a
        // loss of 80 %.
        let found = of(&[levels[0].clone(), level("slow", 0.5, 5000.0, &[(512, 0.5)])]);
        assert_eq!((found.level, found.best.as_str()), (None, "slow"));
        assert_eq!(found.from_bytes, None);
        assert!((found.from_loss.unwrap() - 0.8).abs() < 1e-6, "{:?}", found.from_loss);
        // Incompressible data never saves energy.
        assert_eq!(SENDING.loss_from_which(1.0, 1e-9, 1.0), None);
    }

    #[test]
    fn every_preset_has_a_processor() {
        for preset in lasthop_proto::energy::PRESETS {
            assert!(Processor::of(preset.name).is_some(), "{}", preset.name);
        }
    }
}
