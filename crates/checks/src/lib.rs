//! A sample of all functions of the pure crates, behind functions without external requirements.
//!
//! `tests/purity.rs` compiles this crate to WebAssembly. The module must have no imports, and every run must
//! have the same digest there as here: same scenario, same seed, same bytes.

#![allow(missing_docs, reason = "only crates of this workspace use it")]

use core::fmt::{self, Write};

use lasthop_observe::Sink;
use lasthop_observe::metrics::Metrics;
use lasthop_observe::stats::Summary;
use lasthop_proto::event::{Event, Interest};
use lasthop_scenario::{Argument, Plan, example, parse};
use lasthop_sim::runs::{Results, Setup};
use lasthop_study::compare::{self, Options};
use lasthop_study::{Error, Source, Units};

/// Number of cases of [`digest`]: combinations spread over the sweep of `cases.toml`.
pub const CASES: u32 = 16;

/// Runs a case with a seed and digests everything, from the scenario's text to the metrics.
///
/// # Panics
///
/// If the sweep does not parse.
pub fn digest(case: u32, seed: u64) -> u64 {
    let plan = plan();
    // The step has no common divisor with the axes, so each of their values occurs.
    let cell = &plan.cells[case as usize * 89 % plan.cells.len()];
    let mut digest = Digest::default();
    digest.add(format_args!("{cell:?}"));
    let mut sinks = (digest, Metrics::new(lasthop_sim::layout(&cell.scenario)));
    let end = lasthop_sim::run(&cell.scenario, seed, &mut sinks);
    let (mut digest, metrics) = sinks;
    // The agents' state is omitted: its size in bytes depends on the size of a pointer.
    digest.add(format_args!("{:?}", (end.at, end.reason, end.hops, end.wakes)));
    digest.add(format_args!("{:?}", (end.transfers, end.stages)));
    let metrics = metrics.finish(end.at);
    digest.add(format_args!("{metrics:?}"));
    let numbers: Vec<f64> = metrics.flows.iter().map(|flow| flow.throughput).collect();
    digest.add(format_args!("{:?}", Summary::of(&numbers)));
    digest.hash
}

/// Digests a study: the document of a comparison and its page.
///
/// # Panics
///
/// If there is nothing to compare.
pub fn study_digest() -> u64 {
    let text = example("rivals").map_or("", |example| example.text);
    let source = Source { origin: "rivals", name: "rivals", text };
    let set = ["runs=3", "transfer.bytes=50kB"].map(|set| Argument::Set(set.to_owned()));
    let schemes = ["sack", "snoop"].map(str::to_owned);
    let options = Options { schemes: &schemes, ..Options::default() };
    let mut simulated = |plan: &Plan| Ok::<_, Error>(Results::simulated(plan, Setup::default()));
    let document = compare::lay_out(&source, &set, &options)
        .and_then(|comparison| compare::answer(&comparison, &mut simulated));
    let mut digest = Digest::default();
    match document {
        Ok(document) => {
            digest.add(format_args!("{document:?} {}", compare::page(&document, Units::default())))
        }
        Err(error) => panic!("{error}"),
    }
    digest.hash
}

/// [`CASES`], for users of the module.
#[expect(unsafe_code, reason = "an exported name; nothing else in the module has it")]
#[unsafe(no_mangle)]
pub extern "C" fn lasthop_cases() -> u32 {
    CASES
}

/// [`digest`], for users of the module.
#[expect(unsafe_code, reason = "an exported name; nothing else in the module has it")]
#[unsafe(no_mangle)]
pub extern "C" fn lasthop_digest(case: u32, seed: u64) -> u64 {
    digest(case, seed)
}

/// [`study_digest`], for users of the module.
#[expect(unsafe_code, reason = "an exported name; nothing else in the module has it")]
#[unsafe(no_mangle)]
pub extern "C" fn lasthop_study_digest() -> u64 {
    study_digest()
}

/// The sweep of the cases.
///
/// # Panics
///
/// If it does not parse.
pub fn plan() -> Plan {
    match parse(include_str!("cases.toml"), "cases", &[]) {
        Ok((plan, _)) => plan,
        Err(error) => panic!("cases.toml: {error}"),
    }
}

/// FNV-1a over printed values: every field counts, floating-point numbers to their last bit.
struct Digest {
    hash: u64,
}

impl Default for Digest {
    fn default() -> Digest {
        Digest { hash: 0xcbf2_9ce4_8422_2325 }
    }
}

impl Digest {
    fn add(&mut self, text: fmt::Arguments<'_>) {
        // Writing into a number cannot fail.
        let _ = self.write_fmt(text);
    }
}

impl Write for Digest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
        Ok(())
    }
}

impl Sink for Digest {
    fn interest(&self) -> Interest {
        Interest::EVERYTHING
    }
    fn event(&mut self, event: &Event) {
        self.add(format_args!("{event:?}"));
    }
}
