//! Why an end point could not begin, and what to do about it.

use std::io;
use std::net::SocketAddr;

use lasthop_proto::units::Span;

/// Why an end point could not begin.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// Nobody listens there.
    #[error("{0} refused the connection: nobody listens there")]
    Refused(SocketAddr),
    /// No way to it, or no answer.
    #[error("{to} cannot be reached: {error}")]
    Unreachable {
        /// Where to.
        to: SocketAddr,
        /// What the system says.
        error: io::Error,
    },
    /// No answer in time.
    #[error("{to} did not answer within {after}")]
    TimedOut {
        /// Where to.
        to: SocketAddr,
        /// How long was waited.
        after: Span,
    },
    /// This end was asked to stop before there was a connection.
    #[error("stopped before {0} answered")]
    Stopped(SocketAddr),
    /// The kernel has no such congestion control, or may not give it to everybody.
    #[error("congestion control `{name}` is not available: {error}")]
    Congestion {
        /// What was asked for.
        name: String,
        /// Those that the kernel has loaded.
        available: Vec<String>,
        /// What the system says.
        error: io::Error,
    },
    /// A segment size that the kernel refuses.
    #[error("the kernel refuses an MSS of {0}")]
    Mss(u16),
    /// Somebody else listens there.
    #[error("{0} is in use: another program listens there")]
    InUse(SocketAddr),
    /// A port below 1024, without the right to it.
    #[error("{0} may not be used without privileges")]
    Forbidden(SocketAddr),
    /// This machine does not have the address.
    #[error("{address} cannot be used: {error}")]
    Address {
        /// Which one.
        address: SocketAddr,
        /// What the system says.
        error: io::Error,
    },
    /// Something else about the socket.
    #[error("cannot set up the socket: {0}")]
    Socket(#[from] io::Error),
}

impl EndpointError {
    /// Whether another address of the same host may fare better.
    pub fn is_of_the_way(&self) -> bool {
        matches!(
            self,
            EndpointError::Refused(_)
                | EndpointError::Unreachable { .. }
                | EndpointError::TimedOut { .. }
        )
    }

    /// What to do about it.
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
                "is the host up, and does a firewall drop the packets? A slow path may want a longer \
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
