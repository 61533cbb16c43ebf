//! World 1: a deterministic simulator.
//!
//! It knows machines only by their contract. Who wants to be woken first is called, what it answers is handed
//! to its neighbours, and time jumps to the next wake. There is one wake per hop where a queue is plain FIFO.
//!
//! ```text
//! left hosts | stage 0 | stage 1 | ... | right hosts
//! ```

mod end;
mod engine;

pub use end::{Reason, RunEnd, TransferEnd};
pub use lasthop_path::{StageCount, layout};

use lasthop_scenario::Scenario;
use lasthop_trace::Sink;

/// Runs `scenario` with `seed` and hands every event to `sink`.
pub fn run<S: Sink>(scenario: &Scenario, seed: u64, sink: &mut S) -> RunEnd {
    engine::Engine::new(scenario, seed, sink.wants()).run(sink)
}
