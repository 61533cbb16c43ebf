//! The commands, one file each.

pub mod advise;
pub mod analyze;
mod bare;
pub mod battery;
pub mod compare;
pub mod completions;
pub mod compress;
#[cfg(target_os = "linux")]
pub mod ctl;
#[cfg(target_os = "linux")]
pub mod discard;
pub mod doctor;
pub mod energy;
pub mod explain;
mod hardware;
pub mod lab;
#[cfg(target_os = "linux")]
pub mod link;
pub mod list;
pub mod man;
pub mod packetdrill;
pub(crate) mod plan;
mod presets;
pub mod replay;
pub mod report;
pub mod reproduce;
pub mod run;
pub mod schema;
#[cfg(target_os = "linux")]
pub mod send;
#[cfg(target_os = "linux")]
pub mod shell;
#[cfg(target_os = "linux")]
pub mod station;
pub mod sweep;
#[cfg(target_os = "linux")]
pub mod testbed;
#[cfg(target_os = "linux")]
pub mod testbed_run;
pub mod trace;
