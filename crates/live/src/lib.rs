//! The protocol machines on real packets.
//!
//! The stages of the simulator run here between two network interfaces and forward the frames. This happens
//! in a testbed of network namespaces with real Linux TCP hosts, and on a router.
#![cfg(target_os = "linux")]

mod alarm;
pub mod clock;
pub mod control;
pub mod counters;
pub mod endpoint;
pub mod frame;
pub mod header;
pub mod interfaces;
mod login;
pub mod metrics;
pub mod neighbours;
pub mod notify;
pub mod offload;
pub mod owner;
pub mod plane;
pub mod port;
pub mod recorder;
pub mod service;
pub mod shell;
mod shortage;
pub mod station;
pub mod status;
pub mod subscribers;
pub mod survey;
pub mod sys;
pub mod testbed;
pub mod tunnel;
pub mod world;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks `mutex`. A value that another thread left when it panicked is used: each change of one is complete by itself.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "../../checks/shared/can_run.rs"]
mod can_run;
