//! The simulator, which is deterministic.
//!
//! It uses machines only by their contract ([`lasthop_proto::machine`]). It calls the stage with the earliest
//! deadline, forwards the packets of this stage to the neighbouring stages, and advances time to the next deadline. A
//! plain FIFO queue needs one deadline per packet and hop.
//!
//! ```text
//! left hosts | stage 0 | stage 1 | ... | right hosts
//! ```
//!
//! [`runs`] makes many runs: on all processors with the feature `threads`. The feature `quic` adds hosts with QUIC, which
//! are not pure. Without both the crate is pure.

#![allow(missing_docs, reason = "only crates of this workspace use it")]

mod end;
mod engine;
#[cfg(feature = "quic")]
pub mod quic;
pub mod runs;
mod session;
pub mod version;

pub use end::{Limits, Reason, RunEnd, TransferEnd};
pub use lasthop_path::{ChoicePoint, End, Ends, StageCount, layout, no_ends};
pub use session::Session;

use engine::Engine;
use lasthop_observe::Sink;
use lasthop_proto::units::Time;
use lasthop_scenario::Scenario;

/// Runs `scenario` with `seed` and passes every event to `sink`.
pub fn run(scenario: &Scenario, seed: u64, sink: &mut dyn Sink) -> RunEnd {
    run_with(scenario, seed, &no_ends, sink)
}

/// The same with `ends` for hosts with other protocol stacks, such as QUIC.
pub fn run_with(scenario: &Scenario, seed: u64, ends: Ends<'_>, mut sink: &mut dyn Sink) -> RunEnd {
    run_compiled(scenario, seed, ends, &mut sink)
}

/// The same, compiled for the sink. This is faster, but each sink adds a copy of the whole simulator to the program.
pub fn run_compiled<S: Sink>(
    scenario: &Scenario,
    seed: u64,
    ends: Ends<'_>,
    sink: &mut S,
) -> RunEnd {
    let mut engine = Engine::new(scenario, seed, ends, sink.interest());
    engine.run(Time::NEVER, sink, None::<fn(&lasthop_path::Path) -> bool>);
    engine.end(scenario)
}
