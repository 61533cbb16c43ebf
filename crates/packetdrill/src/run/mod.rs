//! A run of a script: events in their order, in one of two worlds.

mod compare;
mod engine;
mod flows;
#[cfg(all(target_os = "linux", feature = "kernel"))]
pub mod kernel;
pub mod keys;
pub mod own;
mod values;
pub mod wire;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::script::{Call, Expr};
pub use engine::play;

/// A moment of a run: nanoseconds since its start.
pub type Nanos = u64;

/// How a run judges.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Rules {
    /// Times may differ by this many nanoseconds.
    pub tolerance: Nanos,
    /// Times may also differ by this share of the step since the event before, in percent.
    pub percent: f64,
    /// PSH, the order of options and echoed timestamps count too.
    pub strict: bool,
    /// Timestamps that were sent are compared, and count in this unit (`--tcp_ts_tick_usecs`).
    pub tick: Option<Nanos>,
    /// Timestamps that arrive and echo none that a line expects keep their distance to the first one
    /// (`--tcp_ts_ecr_scaled`); others arrive as they are.
    pub scaled: bool,
    /// The run continues after an expectation that does not hold, so that the whole trace can be compared.
    pub observe: bool,
}

impl Default for Rules {
    /// Those of packetdrill: 4 ms, or an eighth of the step.
    fn default() -> Rules {
        let (tick, scaled, strict, observe) = (None, false, false, false);
        Rules { tolerance: 4_000_000, percent: 12.5, strict, tick, scaled, observe }
    }
}

/// How a script ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "verdict")]
pub enum Verdict {
    /// Everything was as expected.
    Pass,
    /// Something was not.
    Fail {
        /// The line of the script, from 1.
        line: u32,
        /// What the script expects.
        expected: String,
        /// What happened.
        got: String,
    },
    /// The script cannot be run here.
    Unsupported {
        /// The line of the script, from 1.
        line: u32,
        /// The feature.
        feature: String,
    },
}

/// Something that happened in a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// When, in nanoseconds.
    pub at: Nanos,
    /// The line of the script that it belongs to; `None` for a packet that no line expects.
    pub line: Option<u32>,
    /// What it was.
    pub kind: EntryKind,
    /// It in the language of scripts, with the script's numbers.
    pub text: String,
}

/// The kind of an [`Entry`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EntryKind {
    /// A packet arrived at the host.
    Arrived,
    /// The host sent a packet.
    Sent,
    /// A call returned.
    Called,
    /// A script printed something.
    Printed,
}

/// The result of a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// How it ended.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// What was not applied: a line and a setting or a command.
    pub notes: Vec<(u32, String)>,
    /// What happened.
    pub trace: Vec<Entry>,
}

/// What a call of the socket layer answered.
#[derive(Clone, PartialEq, Debug)]
pub struct Reply {
    /// Its value.
    pub value: i64,
    /// The name of the error.
    pub errno: Option<String>,
    /// Values that the call wrote: the index of the argument and the value.
    pub written: Vec<(usize, Expr)>,
}

impl Reply {
    /// A value without an error.
    pub fn value(value: i64) -> Reply {
        Reply { value, errno: None, written: Vec::new() }
    }

    /// An error.
    pub fn error(name: &str) -> Reply {
        Reply { value: -1, errno: Some(name.to_owned()), written: Vec::new() }
    }
}

/// Whether a call has returned.
#[derive(Clone, PartialEq, Debug)]
pub enum Started {
    /// It has.
    Done(Reply),
    /// It waits; see [`World::finished`].
    Blocks,
}

/// The names and values of `tcp_info`.
pub type Info = BTreeMap<&'static str, i64>;

/// A host under test, and its clock.
pub trait World {
    /// The time.
    fn now(&mut self) -> Nanos;

    /// Lets time pass until `at`.
    fn wait(&mut self, at: Nanos);

    /// The next packet that the host has sent, as bytes with its time. Waits until `until`.
    fn sent(&mut self, until: Nanos) -> Option<(Nanos, Vec<u8>)>;

    /// A packet arrives at the host now.
    fn arrive(&mut self, bytes: Vec<u8>);

    /// The application calls. A call that may block says so by [`Call::until`].
    ///
    /// # Errors
    ///
    /// The name of a feature that this world does not have.
    fn call(&mut self, call: &Call) -> Result<Started, String>;

    /// The answer to the call that blocks, and when it came. Waits until `until`.
    fn finished(&mut self, until: Nanos) -> Option<(Nanos, Reply)>;

    /// `tcp_info` of the socket that was made last.
    ///
    /// # Errors
    ///
    /// Why there is none.
    fn info(&mut self) -> Result<Info, String>;

    /// Sets the addresses of the host and of its peer before the first call. False if they are given.
    fn set_addresses(&mut self, host: [u8; 4], peer: [u8; 4]) -> bool {
        let _ = (host, peer);
        false
    }

    /// Forgets what is cached of servers. False if that cannot be done.
    fn forget_servers(&mut self) -> bool {
        false
    }

    /// Settings that every run begins with and that the host refused.
    fn refused(&self) -> &[String] {
        &[]
    }

    /// Applies a setting below `net.ipv4`. False if it has no effect here.
    fn set(&mut self, name: &str, value: &str) -> bool;
}
