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
    /// `EHOSTUNREACH`: reported by an ICMP error.
    HostUnreachable,
    /// `EINVAL`: the port does not listen.
    Invalid,
    /// `ENETUNREACH`: reported by an ICMP error.
    NetUnreachable,
    /// `ENOPROTOOPT`: an ICMP error reports that the host has no TCP.
    NoProtocol,
    /// `ENOTCONN`: there is no connection.
    NotConnected,
    /// `EPIPE`: writing is no longer possible.
    Pipe,
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
            Errno::HostUnreachable => "EHOSTUNREACH",
            Errno::Invalid => "EINVAL",
            Errno::NetUnreachable => "ENETUNREACH",
            Errno::NoProtocol => "ENOPROTOOPT",
            Errno::NotConnected => "ENOTCONN",
            Errno::Pipe => "EPIPE",
            Errno::TimedOut => "ETIMEDOUT",
        }
    }
}
