//! Tests of the program. They are one program, which links once; `.ci/lanes` distributes their modules over lanes.

mod analyze;
mod commands;
mod compare;
mod documented;
mod energy;
mod explain;
#[cfg(live)]
mod hand_offs;
#[cfg(live)]
mod hops;
#[cfg(live)]
mod kernel_events;
#[cfg(live)]
mod link;
#[cfg(live)]
mod notified;
mod packetdrill;
mod plot;
#[cfg(live)]
mod programs;
#[cfg(live)]
mod quickstart;
mod readme;
mod reproduce;
mod results;
mod schemas;
#[cfg(live)]
mod shell;
#[cfg(live)]
mod shell_accuracy;
#[cfg(live)]
mod stacks;
#[cfg(live)]
mod station;
#[cfg(live)]
mod testbed;
mod trace;
#[cfg(live)]
mod transfers;
mod words;

#[path = "../../checks/shared/can_run.rs"]
mod can_run;
#[path = "support/doc_commands.rs"]
mod doc_commands;
#[cfg(live)]
#[path = "support/quic.rs"]
mod quic;
#[cfg(live)]
#[path = "../../checks/shared/rerun.rs"]
mod rerun;
#[cfg(live)]
mod support;
#[path = "support/width.rs"]
mod width;
