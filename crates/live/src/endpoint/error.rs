//! Errors at the start of an end point.

use std::io;
use std::net::SocketAddr;

use lasthop_proto::units::Span;

/// Why an end point could not start.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// No program listens at the destination.
    #[error("{0} refused the connection: no program listens there")]
    Refused(SocketAddr),
    /// The destination cannot be reached.
    #[error("{to} cannot be reached: {error}")]
    Unreachable {
        /// The destination.
        to: SocketAddr,
        /// Error of the system.
        error: io::Error,
    },
    /// The destination did not answer in time.
    #[error("{to} did not answer within {after}")]
    TimedOut {
        /// The destination.
        to: SocketAddr,
        /// The time limit.
        after: Span,
    },
    /// The session was stopped during the handshake.
    #[error("stopped before {0} answered")]
    Stopped(SocketAddr),
    /// An address of this end cannot be used.
    #[error("{address} cannot be used: {error}")]
    Address {
        /// The address.
        address: SocketAddr,
        /// Error of the system.
        error: io::Error,
    },
    /// Another error of the system.
    #[error("cannot set up the socket: {0}")]
    Socket(#[from] io::Error),
}
