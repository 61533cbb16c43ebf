//! Errors of calls.

/// Error of a call, by the names of POSIX.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Errno {
    /// `EAGAIN`: the call would have to wait.
    Again,
    /// `ECONNREFUSED`: a reset answered the SYN, or an ICMP error reports that the port is closed.
    ConnectionRefused,
    /// `ECONNRESET`: the peer has reset the connection.
    ConnectionReset,
    /// `EHOSTDOWN`: reported by an ICMP error.
    HostDown,
    /// `EHOSTUNREACH`: reported by an ICMP error.
    HostUnreachable,
    /// `EINVAL`: the port does not listen.
    Invalid,
    /// `ENETUNREACH`: reported by an ICMP error.
    NetUnreachable,
    /// `ENONET`: an ICMP error reports that the source is isolated.
    NoNetwork,
    /// `ENOPROTOOPT`: an ICMP error reports that the host has no TCP.
    NoProtocol,
    /// `ENOTCONN`: there is no connection.
    NotConnected,
    /// `EOPNOTSUPP`: an ICMP error reports that the source route failed.
    NotSupported,
    /// `EPIPE`: writing is no longer possible.
    Pipe,
    /// `EPROTO`: an ICMP error reports a wrong header.
    Protocol,
    /// `ETIMEDOUT`: the peer does not answer.
    TimedOut,
}

impl Errno {
    /// Its name in C.
    pub fn name(self) -> &'static str {
        match self {
            Errno::Again => "EAGAIN",
            Errno::ConnectionRefused => "ECONNREFUSED",
            Errno::ConnectionReset => "ECONNRESET",
            Errno::HostDown => "EHOSTDOWN",
            Errno::HostUnreachable => "EHOSTUNREACH",
            Errno::Invalid => "EINVAL",
            Errno::NetUnreachable => "ENETUNREACH",
            Errno::NoNetwork => "ENONET",
            Errno::NoProtocol => "ENOPROTOOPT",
            Errno::NotConnected => "ENOTCONN",
            Errno::NotSupported => "EOPNOTSUPP",
            Errno::Pipe => "EPIPE",
            Errno::Protocol => "EPROTO",
            Errno::TimedOut => "ETIMEDOUT",
        }
    }
}
