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

pub use end::{Limits, Reason, RunEnd, TransferEnd};
pub use lasthop_path::{Ends, StageCount, layout, no_ends};
pub use session::Session;

use lasthop_proto::units::Time;
use lasthop_scenario::Scenario;
use lasthop_trace::Sink;

/// Runs `scenario` with `seed` and hands every event to `sink`.
pub fn run<S: Sink>(scenario: &Scenario, seed: u64, sink: &mut S) -> RunEnd {
    run_with(scenario, seed, &no_ends, sink)
}

/// The same where `ends` makes the hosts with stacks of their own, such as those that speak QUIC.
pub fn run_with<S: Sink>(scenario: &Scenario, seed: u64, ends: Ends<'_>, sink: &mut S) -> RunEnd {
    let mut session = Session::with_ends(scenario, seed, ends, sink);
    session.run_until(Time::NEVER, sink);
    session.finish()
}
