//! The commands, one file each.

pub mod analyze;
pub mod completions;
#[cfg(target_os = "linux")]
pub mod ctl;
pub mod doctor;
pub mod list;
mod plan;
pub mod report;
pub mod reproduce;
pub mod run;
#[cfg(target_os = "linux")]
pub mod station;
