//! Testbeds that stay: a background process holds the namespaces until it is told to end.
//!
//! `up` starts it and returns when it works. It is known by a directory with a record: its process, with the
//! time at which that started, so that a number that was given again is not mistaken for it, and the numbers of its
//! namespaces. Whoever wants to run a program inside joins those namespaces by way of the process. What a killed
//! testbed leaves behind is a directory and the programs that still run inside; `clean` finds both.

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
