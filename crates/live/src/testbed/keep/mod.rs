//! Persistent testbeds: a background process holds the namespaces until its end is requested.
//!
//! `up` starts it and returns when it works. A directory holds its record: the process with its start time,
//! which detects a reused process number, and the numbers of its namespaces. Programs join those namespaces
//! through the process. A killed testbed leaves a directory and running programs; `clean` finds both.

pub mod clean;
pub mod hold;
pub mod join;
pub mod process;
pub mod state;

pub use clean::{Ended, clean, down};
pub use hold::{Held, Ready, Request, Stop, hold, up};
pub use join::join;
pub use process::Process;
pub use state::{Entry, Home, Record, Status};
