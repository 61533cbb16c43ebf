//! A run of a script: events in order, in one of two worlds.

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

/// A time of a run: nanoseconds since its start.
pub type Nanos = u64;

/// Rules of a run's comparison.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Rules {
    /// Times may differ by this many nanoseconds.
    pub tolerance: Nanos,
    /// Further tolerance of times: this share of the step since the previous event, in percent.
    pub percent: f64,
    /// Whether PSH, the order of options and echoed timestamps count too.
    pub strict: bool,
    /// Unit of sent timestamps, which are then compared (`--tcp_ts_tick_usecs`).
    pub tick: Option<Nanos>,
    /// Whether arriving timestamps with an unexpected echo preserve their distance to the first one
    /// (`--tcp_ts_ecr_scaled`); otherwise they are unchanged.
    pub scaled: bool,
    /// Whether the run continues after a failed expectation, so that the whole trace can be compared.
    pub observe: bool,
    /// Times of arrivals and calls by the lines of the script, instead of the script's times.
    pub moments: BTreeMap<u32, Nanos>,
}

impl Default for Rules {
    /// The rules of packetdrill: 4 ms, or an eighth of the step.
    fn default() -> Rules {
        let (tick, scaled, strict, observe) = (None, false, true, false);
        let moments = BTreeMap::new();
        Rules { tolerance: 4_000_000, percent: 12.5, strict, tick, scaled, observe, moments }
    }
}

/// Result of a script.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "verdict")]
pub enum Verdict {
    /// All expectations held.
    Pass,
    /// An expectation failed.
    Fail {
        /// The line of the script, from 1.
        line: u32,
        /// The expectation of the script.
        expected: String,
        /// The actual event.
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

/// An event of a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// Time in nanoseconds.
    pub at: Nanos,
    /// Its line of the script; `None` for a packet without an expectation.
    pub line: Option<u32>,
    /// Kind of event.
    pub kind: EntryKind,
    /// The event in the language of scripts, with the script's numbers.
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
    /// A script printed text.
    Printed,
}

/// The result of a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// Verdict of the run.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Settings and commands without effect, with their lines.
    pub notes: Vec<(u32, String)>,
    /// All events.
    pub trace: Vec<Entry>,
}

/// Result of a call of the socket layer.
#[derive(Clone, PartialEq, Debug)]
pub struct Reply {
    /// Its value.
    pub value: i64,
    /// The name of the error.
    pub errno: Option<String>,
    /// Values written by the call, with the index of the argument.
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
    /// It has returned.
    Done(Reply),
    /// It is waiting; see [`World::finished`].
    Blocks,
}

/// The names and values of `tcp_info`.
pub type Info = BTreeMap<&'static str, i64>;

/// A host under test, and its clock.
pub trait World {
    /// The time.
    fn now(&mut self) -> Nanos;

    /// Advances time to `at`.
    fn wait(&mut self, at: Nanos);

    /// The next packet sent by the host, in bytes, with its time. Waits until `until`.
    fn sent(&mut self, until: Nanos) -> Option<(Nanos, Vec<u8>)>;

    /// Delivers a packet to the host now.
    fn arrive(&mut self, bytes: Vec<u8>);

    /// Makes a call of the application. [`Call::until`] marks a call that may block.
    ///
    /// # Errors
    ///
    /// The name of a missing feature of this world.
    fn call(&mut self, call: &Call) -> Result<Started, String>;

    /// The result of the blocking call, and its time. Waits until `until`.
    fn finished(&mut self, until: Nanos) -> Option<(Nanos, Reply)>;

    /// `tcp_info` of the latest socket.
    ///
    /// # Errors
    ///
    /// Why there is none.
    fn info(&mut self) -> Result<Info, String>;

    /// Sets the addresses of the host and of its peer before the first call. False if they are fixed.
    fn set_addresses(&mut self, host: [u8; 4], peer: [u8; 4]) -> bool {
        let _ = (host, peer);
        false
    }

    /// Discards the cached state of servers. False if that is impossible.
    fn forget_servers(&mut self) -> bool {
        false
    }

    /// Initial settings of every run that the host rejected.
    fn refused(&self) -> &[String] {
        &[]
    }

    /// Applies a setting below `net.ipv4`. False if it has no effect here.
    fn set(&mut self, name: &str, value: &str) -> bool;
}
