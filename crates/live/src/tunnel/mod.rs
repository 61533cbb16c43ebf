//! A tunnel between two hosts: the machine of `lasthop_proto::tunnel` between an interface and a socket.
//!
//! One thread waits for packets of the interface, datagrams of the peer, and the machine's next timer.
//! Datagrams must not be fragmented. When the machine detects a smaller path MTU, it lowers the interface's
//! MTU. Then the inner TCP sends segments that fit, and the kernel notifies other senders by ICMP. Received
//! ICMP messages are not trusted.

mod driver;
pub mod seal;
mod status;

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use lasthop_proto::link::tulip::Rule;
use lasthop_proto::tunnel::session::{Notice, SessionConfig};
use lasthop_proto::tunnel::{LEAST, Tunnel, TunnelConfig, inner};
use lasthop_proto::units::Span;
use lasthop_scenario::TunnelFile;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{SigSet, Signal};

use crate::metrics::{self, Endpoint};
use crate::status::TunnelStatus;
use crate::sys::{tun, udp_socket};
use crate::testbed::ip;
use crate::{control, notify::Manager, shortage};

use driver::Driver;
use seal::{Ciphers, KEY};
use status::SharedStatus;

/// Initial assumption for an unknown path MTU, bytes.
const ETHERNET: u32 = 1500;

/// Messages after which keys are renewed; far below the limits of counter and cipher.
const WORN: u64 = 1 << 48;

/// Age of keys, and messages under them, after which the initiator renews them.
const RENEW_AFTER: Span = Span::secs(120);
const RENEW_COUNT: u64 = 1 << 32;

/// Reason why a tunnel cannot run.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The interface cannot be created.
    #[error("{name}: {error}")]
    Tun {
        /// Path of the device, or name of the interface.
        name: String,
        /// Error of the system.
        error: io::Error,
    },
    /// The interface cannot be configured.
    #[error("{0}")]
    Setup(#[from] crate::testbed::Error),
    /// A socket cannot listen.
    #[error("{at}: {error}")]
    Listen {
        /// Its address.
        at: String,
        /// Error of the system.
        error: io::Error,
    },
    /// The inner MTU would be below IP's minimum.
    #[error("a path of {path} bytes leaves {inner} bytes for packets")]
    Narrow {
        /// Longest packet of the path, bytes.
        path: u32,
        /// Resulting inner MTU, bytes.
        inner: u32,
    },
    /// Any other error of the system.
    #[error("{0}")]
    System(#[from] io::Error),
}

impl Fault {
    /// The remedy.
    pub fn remedy(&self) -> String {
        if let Fault::Tun { error, .. } | Fault::Listen { error, .. } | Fault::System(error) = self
        {
            if let Some(remedy) = shortage::remedy(error) {
                return remedy.to_owned();
            }
        }
        match self {
            Fault::Tun { error, .. } => match error.kind() {
                ErrorKind::NotFound => "load the module: `sudo modprobe tun`; in a container pass the device on: \
                     `--device /dev/net/tun`"
                    .to_owned(),
                ErrorKind::PermissionDenied => {
                    "it needs CAP_NET_ADMIN and /dev/net/tun: run it as root (`sudo lasthop link FILE`), or by the \
                     systemd unit; for that the device must be for all (`chmod 666 /dev/net/tun`), as udev makes it"
                        .to_owned()
                }
                _ => "choose another name: `tun = \"lasthop1\"`; `ip link` shows which are taken".to_owned(),
            },
            Fault::Setup(error) => error.help.clone(),
            Fault::Listen { .. } => {
                "another program may listen there: choose another port, `listen = \"0.0.0.0:4748\"`".to_owned()
            }
            Fault::Narrow { .. } => "choose a smaller window, `window = 64`: each of its packets takes a bit in \
                 acknowledgements"
                .to_owned(),
            Fault::System(_) => String::new(),
        }
    }
}

/// Events of a tunnel for its log.
#[derive(Debug)]
pub enum TunnelReport {
    /// The tunnel runs.
    Ready {
        /// Name of its interface.
        tun: String,
        /// Address at which it receives datagrams.
        listen: SocketAddr,
        /// Path of the control socket.
        socket: PathBuf,
        /// Address of the Prometheus exporter.
        metrics: Option<SocketAddr>,
    },
    /// The session with the peer is established.
    Up {
        /// Address of the peer.
        peer: SocketAddr,
        /// Inner MTU, bytes.
        mtu: u16,
        /// Window, packets.
        window: u16,
    },
    /// The session with the peer has ended.
    Down,
    /// The inner MTU has changed, bytes.
    Mtu(u16),
    /// The peer has a new address, to which datagrams are sent now.
    Moved(SocketAddr),
    /// An unexpected datagram from another sender; repeated notices are suppressed.
    Notice(Notice),
    /// A warning with its remedy.
    Warning(String),
}

/// 32 unpredictable random bytes.
///
/// # Errors
/// If the system has no random source.
pub fn random() -> io::Result<[u8; KEY]> {
    let mut bytes = [0; KEY];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Bytes of IP and UDP headers before each datagram.
fn framing(listen: SocketAddr) -> u32 {
    if listen.is_ipv6() { 48 } else { 28 }
}

/// Creates and configures the interface.
fn device(file: &TunnelFile, mtu: u16) -> Result<(File, String), Fault> {
    let path = "/dev/net/tun";
    let fault = |name: &str| {
        let name = name.to_owned();
        move |error| Fault::Tun { name, error }
    };
    let device = File::options().read(true).write(true).open(path).map_err(fault(path))?;
    let name = tun::attach(&device, &file.tun).map_err(fault(&file.tun))?;
    fcntl(&device, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map_err(io::Error::from)?;
    ip::batch(&set_up(&file.addresses, &name, mtu))?;
    Ok((device, name))
}

/// The commands of `ip` that configure the interface.
fn set_up(addresses: &[String], name: &str, mtu: u16) -> Vec<String> {
    let mut lines = Vec::new();
    for address in addresses {
        let nodad = if is_v6(address) { " nodad" } else { "" };
        lines.push(format!("address add {address} dev {name}{nodad}"));
    }
    lines.push(format!("link set {name} mtu {mtu} up"));
    lines
}

fn is_v6(address: &str) -> bool {
    address.contains(':')
}

/// Inner MTU for a path MTU of `path` bytes.
fn inside(file: &TunnelFile, path: u32, framing: u32) -> Result<u16, Fault> {
    let mtu = file.mtu.map_or(inner(path, framing, file.window), u32::from);
    if mtu < LEAST {
        return Err(Fault::Narrow { path, inner: mtu });
    }
    Ok(u16::try_from(mtu).unwrap_or(u16::MAX))
}

/// Warning if IPv6 has an address but the MTU is below its minimum.
fn narrow_for_v6(mtu: u16, addresses: &[String]) -> Option<String> {
    //= rfc8200#section-5: every link carries 1280 bytes
    (mtu < 1280 && addresses.iter().any(|address| is_v6(address))).then(|| {
        format!(
            "packets inside may have {mtu} bytes, and IPv6 needs 1280: choose a smaller window, `window = 64`"
        )
    })
}

/// Runs the tunnel of `file` until SIGTERM or SIGINT, with its control socket at `socket`.
///
/// # Errors
/// If a requirement is missing. Nothing remains on the machine then.
pub fn run(
    name: &str,
    file: &TunnelFile,
    key: Option<[u8; KEY]>,
    socket: &Path,
    report: impl Fn(TunnelReport) + Send + Sync + 'static,
) -> Result<(), Fault> {
    let signals: SigSet = [Signal::SIGTERM, Signal::SIGINT].into_iter().collect();
    // Before the first thread starts, so that all threads inherit the mask.
    signals.thread_block().map_err(io::Error::from)?;
    let listen = |error| Fault::Listen { at: file.listen.to_string(), error };
    let udp = UdpSocket::bind(file.listen).map_err(listen)?;
    udp.set_nonblocking(true)?;
    udp_socket::may_fragment(&udp, false)?;
    udp_socket::enlarge_buffers(&udp);
    let framing = framing(file.listen);
    let path = file.peer.and_then(udp_socket::below).unwrap_or(ETHERNET);
    let mtu = inside(file, path, framing)?;
    if let Some(warning) = narrow_for_v6(mtu, &file.addresses) {
        report(TunnelReport::Warning(warning));
    }
    if key.is_none() {
        report(TunnelReport::Warning(
            "THE TUNNEL IS OPEN: it has no key, so anyone on the path can read its packets and impersonate either end; \
             make one with `lasthop link --keygen`, and name it on both sides: `key-file = \"/etc/lasthop/link.key\"`"
                .to_owned(),
        ));
    }
    let (device, tun) = device(file, mtu)?;
    let shared = Arc::new(SharedStatus::default());
    let guard = control::serve(shared.clone(), socket)
        .map_err(|error| Fault::Listen { at: socket.display().to_string(), error })?;
    let endpoint = match file.metrics {
        Some(at) => Some(
            metrics::serve(shared.clone(), at)
                .map_err(|error| Fault::Listen { at: at.to_string(), error })?,
        ),
        None => None,
    };
    let tunnel = Tunnel::new(config(file, mtu, framing, path), Ciphers::new(key), random()?);
    let status = TunnelStatus {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        name: name.to_owned(),
        tun: tun.clone(),
        keyed: key.is_some(),
        ..TunnelStatus::default()
    };
    report(TunnelReport::Ready {
        tun,
        listen: udp.local_addr()?,
        socket: guard.path().to_owned(),
        metrics: endpoint.as_ref().map(Endpoint::address),
    });
    let over = Arc::new(AtomicBool::new(false));
    let stop = over.clone();
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        while signals.wait().is_err() {}
        stop.store(true, Ordering::Relaxed);
    })?;
    let mut manager = Manager::from_environment();
    manager.say("READY=1");
    let mut driver = Driver::new(device, udp, tunnel, mtu, status, shared)?;
    let ended = driver.run(&over, &mut manager, &report);
    manager.say("STOPPING=1");
    ended.map_err(Fault::from)
}

fn config(file: &TunnelFile, mtu: u16, framing: u32, below: u32) -> TunnelConfig {
    TunnelConfig {
        session: SessionConfig {
            peer: file.peer,
            answers: file.answers,
            window: file.window,
            mtu,
            keep_alive: file.keep_alive,
            dead_after: file.dead_after,
            renew_after: RENEW_AFTER,
            renew_count: RENEW_COUNT,
            worn_after: WORN,
        },
        rule: file.reliable.map(|reliable| Rule { reliable, ..Rule::default() }),
        rate: file.rate,
        delay: file.delay,
        framing,
        below,
        follows: file.mtu.is_none(),
        queue: file.queue,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(more: &str) -> TunnelFile {
        let text = format!("addresses = [\"10.8.0.1/24\"]\nlisten = \"0.0.0.0:7000\"\n{more}");
        lasthop_scenario::parse_tunnel(&text).unwrap_or_else(|error| panic!("{error:?}"))
    }

    /// Headers of IP and UDP: 20 and 8 bytes, or 40 and 8 (RFC 791, 768, 8200).
    #[test]
    fn framing_counts_the_outer_ip_and_udp_headers() {
        assert_eq!(framing("0.0.0.0:1".parse().unwrap()), 20 + 8);
        assert_eq!(framing("[::]:1".parse().unwrap()), 40 + 8);
    }

    #[test]
    fn an_interface_is_set_up_with_its_addresses_first() {
        let addresses = ["10.8.0.1/24", "fd00::1/64"].map(str::to_owned);
        let lines = [
            "address add 10.8.0.1/24 dev lh0",
            "address add fd00::1/64 dev lh0 nodad",
            "link set lh0 mtu 1400 up",
        ];
        assert_eq!(set_up(&addresses, "lh0", 1400), lines);
        assert_eq!(set_up(&[], "x", 9), ["link set x mtu 9 up"]);
    }

    /// The file's MTU has precedence; otherwise the path determines it, and the result may be too small.
    #[test]
    fn the_inner_mtu_derives_from_the_file_or_path() {
        let own = inner(1500, 28, file("").window);
        assert_eq!(inside(&file(""), 1500, 28).ok(), u16::try_from(own).ok());
        assert_eq!(inside(&file("mtu = 1000"), 1500, 28).ok(), Some(1000));
        assert_eq!(inside(&file("mtu = 1000"), 600, 28).ok(), Some(1000));
        assert_eq!(inside(&file(""), 1 << 20, 28).ok(), Some(u16::MAX));
        let least = (0..2000).find(|path| inner(*path, 28, file("").window) >= LEAST).unwrap();
        assert_eq!(inside(&file(""), least, 28).ok(), Some(576));
        let short = inside(&file(""), least - 1, 28);
        assert!(matches!(short, Err(Fault::Narrow { path, inner: 575 }) if path == least - 1));
    }

    #[test]
    fn ipv6_needs_1280_bytes_inside() {
        let (v4, v6) =
            (["10.8.0.1/24".to_owned()], ["10.8.0.1/24", "fd00::1/64"].map(str::to_owned));
        assert!(narrow_for_v6(1279, &v6).is_some_and(|warning| warning.contains("1279")));
        assert_eq!(narrow_for_v6(1280, &v6), None);
        assert_eq!(narrow_for_v6(600, &v4), None);
    }

    /// Each key of a file reaches its field in the machine's configuration.
    #[test]
    fn each_key_reaches_the_machine_configuration() {
        let plain = config(&file(""), 1400, 28, 1500);
        assert_eq!((plain.session.mtu, plain.framing, plain.below), (1400, 28, 1500));
        assert_eq!((plain.session.peer, plain.session.worn_after), (None, 1 << 48));
        assert!(plain.follows && plain.rate.is_none());
        assert_eq!(plain.rule.map(|rule| rule.reliable), file("").reliable);
        let given = file("peer = \"10.0.0.2:7000\"\nwindow = 64\nmtu = 1300\nqueue = 77\n");
        let config = config(&given, 1300, 48, 1492);
        assert_eq!(config.session.peer, Some("10.0.0.2:7000".parse().unwrap()));
        assert_eq!((config.session.window, config.queue, config.follows), (64, 77, false));
        let times = [config.session.keep_alive, config.session.dead_after];
        assert_eq!(times, [given.keep_alive, given.dead_after]);
        assert_ne!(times[0], times[1]);
        assert_eq!(config.session.answers, given.answers);
    }

    #[test]
    fn random_bytes_differ_each_time() {
        let (one, other) = (random().unwrap(), random().unwrap());
        assert_ne!(one, other);
        assert_ne!(one, [one[0]; KEY]);
    }
}
