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
mod session;

pub use end::{Reason, RunEnd, TransferEnd};
pub use lasthop_path::{StageCount, layout};
pub use session::Session;

use lasthop_proto::units::Time;
use lasthop_scenario::Scenario;
use lasthop_trace::Sink;

/// Runs `scenario` with `seed` and hands every event to `sink`.
pub fn run<S: Sink>(scenario: &Scenario, seed: u64, sink: &mut S) -> RunEnd {
    let mut session = Session::new(scenario, seed, sink);
    session.run_until(Time::NEVER, sink);
    session.finish()
}
