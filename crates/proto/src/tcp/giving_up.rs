//! When a connection is given up whose peer is silent; `connection::giving_up` follows it.

use serde::Serialize;

/// When a connection is given up whose peer is silent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GivingUp {
    /// After [`TcpConfig::max_retries`](super::TcpConfig::max_retries) timeouts in a row, with a reset. A closed window is probed without end.
    #[default]
    Count,
    /// As Linux, without a segment: once the peer has been silent as long as that many timeouts take from
    /// [`TcpConfig::rto_min`](super::TcpConfig::rto_min) on, and after that many window probes without an answer.
    Time,
}
