//! When a connection with a silent peer is aborted; `connection::giving_up` implements it.

use serde::Serialize;

/// When a connection with a silent peer is aborted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GivingUp {
    /// After [`TcpConfig::max_retries`](super::TcpConfig::max_retries) consecutive timeouts, with a reset. A
    /// closed window is probed without limit.
    #[default]
    Count,
    /// As Linux, without a segment. The peer must be silent for the total time of `max_retries` timeouts that
    /// begin with [`TcpConfig::rto_min`](super::TcpConfig::rto_min). For window probes the limit is the
    /// number of unanswered ones.
    Time,
}
