//! Reasons why a station cannot run, with their remedies.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::owner::Owner;
use crate::plane::Refusal;
use crate::shortage;

/// Reason why a station cannot run.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// An interface does not exist, or cannot be opened.
    #[error("{interface}: {error}")]
    Interface {
        /// Its name.
        interface: String,
        /// Error of the system.
        error: io::Error,
    },
    /// The control socket cannot be served.
    #[error("{}: {error}", path.display())]
    Socket {
        /// Path of the socket.
        path: PathBuf,
        /// Error of the system.
        error: io::Error,
    },
    /// The metrics cannot be served.
    #[error("{address}: {error}")]
    Metrics {
        /// Address of the server.
        address: SocketAddr,
        /// Error of the system.
        error: io::Error,
    },
    /// Captures cannot be written.
    #[error("{dir}: {error}")]
    Capture {
        /// Directory of the captures.
        dir: String,
        /// Error of the system.
        error: io::Error,
    },
    /// The kernel was requested as data plane but cannot forward.
    #[error("the kernel cannot forward by itself: {0}")]
    Plane(Refusal),
    /// Another station owns an interface.
    #[error("{interface} has a station already: {owner}")]
    Owned {
        /// Its name.
        interface: String,
        /// The other station.
        owner: Owner,
    },
    /// The kernel forwards already, but packet sockets were requested.
    #[error(
        "{interface} has the base filter of another station, so packets would pass twice: {error}"
    )]
    Base {
        /// Name of the interface.
        interface: String,
        /// Reason why the filter cannot be removed.
        error: io::Error,
    },
    /// Any other error of the system.
    #[error("{0}")]
    System(#[from] io::Error),
}

impl Fault {
    /// The remedy.
    pub fn remedy(&self) -> String {
        let error = match self {
            Fault::Owned { .. } => {
                return "stop that station first, or give this one other interfaces: `left`, `right`"
                    .to_owned();
            }
            Fault::Interface { error, .. }
            | Fault::Socket { error, .. }
            | Fault::Metrics { error, .. }
            | Fault::Capture { error, .. }
            | Fault::Plane(Refusal { error, .. })
            | Fault::Base { error, .. }
            | Fault::System(error) => error,
        };
        if let Some(remedy) = shortage::remedy(error) {
            return remedy.to_owned();
        }
        match self {
            Fault::Interface { error, .. } if error.kind() == ErrorKind::PermissionDenied => {
                "packet sockets need the capability CAP_NET_RAW: install the systemd unit, or run as root \
                 (`sudo lasthop station FILE`), or give it to the program: `sudo setcap cap_net_raw+ep \
                 $(realpath \"$(command -v lasthop)\")`"
                    .to_owned()
            }
            Fault::Interface { .. } => "`ip link` shows the interfaces".to_owned(),
            Fault::Socket { error, .. } if error.kind() == ErrorKind::AddrInUse => {
                "stop the other station, or choose another socket: `[control] socket = \"/run/lasthop/NAME.sock\"`"
                    .to_owned()
            }
            Fault::Socket { .. } => "choose a socket in a directory of your own with `--socket PATH`".to_owned(),
            Fault::Metrics { .. } => {
                "choose another port: `[metrics] listen = \"127.0.0.1:9464\"`".to_owned()
            }
            Fault::Capture { .. } => {
                "choose a directory that you may write to: `[capture] dir = \"/var/log/lasthop\"`".to_owned()
            }
            Fault::Plane(refusal) => {
                format!("{}; or let packet sockets do it: `plane = \"sockets\"`", refusal.remedy())
            }
            Fault::Base { .. } => {
                "remove it as root: `sudo lasthop station FILE --clear`, or by `tc filter del`".to_owned()
            }
            Fault::Owned { .. } | Fault::System(_) => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each fault that a user can fix has a remedy.
    #[test]
    fn each_fault_has_its_remedy() {
        let of = |kind: ErrorKind| io::Error::from(kind);
        let interface = |kind| Fault::Interface { interface: "eth7".to_owned(), error: of(kind) };
        let socket = |kind| Fault::Socket { path: "/run/x.sock".into(), error: of(kind) };
        let address = SocketAddr::from(([127, 0, 0, 1], 9464));
        let dir = "/nowhere".to_owned();
        for (fault, remedy) in [
            (interface(ErrorKind::PermissionDenied), "CAP_NET_RAW"),
            (interface(ErrorKind::NotFound), "`ip link`"),
            (socket(ErrorKind::AddrInUse), "stop the other station"),
            (socket(ErrorKind::PermissionDenied), "--socket PATH"),
            (Fault::Metrics { address, error: of(ErrorKind::AddrInUse) }, "listen ="),
            (Fault::Capture { dir, error: of(ErrorKind::NotFound) }, "dir ="),
            (
                Fault::Base {
                    interface: "eth7".to_owned(),
                    error: of(ErrorKind::PermissionDenied),
                },
                "--clear",
            ),
            (
                Fault::Owned { interface: "eth7".to_owned(), owner: Owner { pid: 7, uid: 0 } },
                "stop that station",
            ),
        ] {
            assert!(fault.remedy().contains(remedy), "{fault}: {}", fault.remedy());
        }
        assert_eq!(Fault::System(of(ErrorKind::BrokenPipe)).remedy(), "");
        for short in [ErrorKind::OutOfMemory, ErrorKind::WouldBlock] {
            for fault in [Fault::System(of(short)), socket(short), interface(short)] {
                assert!(fault.remedy().contains("MemoryMax"), "{fault}: {}", fault.remedy());
            }
        }
    }
}
