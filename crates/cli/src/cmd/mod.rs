//! The commands, one file each.

pub mod advise;
pub mod analyze;
pub mod battery;
pub mod compare;
mod completions;
#[cfg(live)]
pub mod ctl;
pub mod doctor;
pub mod energy;
pub mod explain;
pub mod explore;
pub mod generate;
mod hardware;
#[cfg(feature = "lab")]
pub mod lab;
#[cfg(live)]
pub mod link;
pub mod list;
pub mod man;
pub mod packetdrill;
pub(crate) mod plan;
pub mod plot;
mod presets;
pub mod report;
pub mod reproduce;
pub mod run;
mod schema;
#[cfg(live)]
pub mod shell;
#[cfg(live)]
pub mod station;
#[cfg(feature = "parquet")]
pub mod sweep;
#[cfg(live)]
pub mod testbed;
#[cfg(live)]
pub mod testbed_run;
pub mod trace;
