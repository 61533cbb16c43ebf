//! Errors at the start of an end point, with remedies.

use std::io;
use std::net::SocketAddr;

use lasthop_proto::units::Span;

/// Reason why an end point cannot start.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// No process listens there.
    #[error("{0} refused the connection: no program listens there")]
    Refused(SocketAddr),
    /// There is no route, or no answer.
    #[error("{to} cannot be reached: {error}")]
    Unreachable {
        /// Destination.
        to: SocketAddr,
        /// Error of the system.
        error: io::Error,
    },
    /// The handshake exceeded its time limit.
    #[error("{to} did not answer within {after}")]
    TimedOut {
        /// Destination.
        to: SocketAddr,
        /// Waiting time.
        after: Span,
    },
    /// The session was stopped before the connection was established.
    #[error("stopped before {0} answered")]
    Stopped(SocketAddr),
    /// The kernel lacks this congestion control, or restricts it to root.
    #[error("congestion control `{name}` is not available: {error}")]
    Congestion {
        /// The requested name.
        name: String,
        /// Congestion controls that the kernel has loaded.
        available: Vec<String>,
        /// Error of the system.
        error: io::Error,
    },
    /// The kernel refuses this segment size.
    #[error("the kernel refuses an MSS of {0}")]
    Mss(u16),
    /// Another process listens there.
    #[error("{0} is in use: another program listens there")]
    InUse(SocketAddr),
    /// A port below 1024 without the needed privilege.
    #[error("{0} may not be used without privileges")]
    Forbidden(SocketAddr),
    /// The address does not belong to this machine.
    #[error("{address} cannot be used: {error}")]
    Address {
        /// The requested address.
        address: SocketAddr,
        /// Error of the system.
        error: io::Error,
    },
    /// Any other error of a socket.
    #[error("cannot set up the socket: {0}")]
    Socket(#[from] io::Error),
}

impl EndpointError {
    /// Whether another address of the same host may succeed.
    pub fn is_of_the_way(&self) -> bool {
        matches!(
            self,
            EndpointError::Refused(_)
                | EndpointError::Unreachable { .. }
                | EndpointError::TimedOut { .. }
        )
    }

    /// The remedy, as a phrase for users.
    pub fn help(&self) -> String {
        match self {
            EndpointError::Refused(to) => format!(
                "start the receiver there first: lasthop discard --listen {}",
                crate::endpoint::socket::any_at(*to)
            ),
            EndpointError::Unreachable { .. } => {
                "is there a route (ip route get ADDRESS), and is the other host up?".to_owned()
            }
            EndpointError::TimedOut { .. } => {
                "is the host up, and does a firewall drop the packets? A slow path may need a longer \
                 --connect-timeout"
                    .to_owned()
            }
            EndpointError::Stopped(_) => String::new(),
            EndpointError::Congestion { available, error, .. } => {
                let names = match available.as_slice() {
                    [] => "none can be listed".to_owned(),
                    names => names.join(", "),
                };
                let load = if error.kind() == io::ErrorKind::PermissionDenied {
                    "root may allow more in net.ipv4.tcp_allowed_congestion_control"
                } else {
                    "`modprobe tcp_NAME` loads more"
                };
                format!("available: {names}; {load}")
            }
            EndpointError::Mss(_) => "give a size from 88 to 32767, such as --mss 512".to_owned(),
            EndpointError::InUse(address) => format!(
                "end the other program (ss -ltnp 'sport = :{}' names it), or choose another port: --listen {}",
                address.port(),
                SocketAddr::new(address.ip(), address.port().wrapping_add(1).max(1024)),
            ),
            EndpointError::Forbidden(address) => format!(
                "run as root, allow it with `sysctl net.ipv4.ip_unprivileged_port_start={}`, or choose a port \
                 from 1024 on",
                address.port()
            ),
            EndpointError::Address { .. } => {
                "give an address of this machine; `ip address` lists them".to_owned()
            }
            EndpointError::Socket(_) => String::new(),
        }
    }
}
