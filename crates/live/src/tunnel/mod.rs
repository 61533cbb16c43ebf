//! A tunnel between two hosts: the machine of `lasthop_proto::tunnel` between an interface and a socket.
//!
//! One thread waits for packets of the interface, for datagrams of the peer, and for the machine's next wake. Datagrams
//! may not be cut on the way; when the machine finds that the path takes less, the interface learns a smaller MTU, so
//! that TCP inside sends what fits, and the kernel tells others by ICMP. What ICMP tells us is not believed.

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
use lasthop_scenario::TunnelFile;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{SigSet, Signal};

use crate::metrics::{self, Endpoint};
use crate::status::TunnelStatus;
use crate::sys::{path_mtu, tun};
use crate::testbed::ip;
use crate::{control, notify::Manager, shortage};

use driver::Driver;
use seal::{Ciphers, KEY};
use status::Shown;

/// A path whose MTU nobody knows yet.
const ETHERNET: u32 = 1500;

/// After so many messages keys are made anew; far below what the counter and the cipher stand.
const WORN: u64 = 1 << 48;

/// Why a tunnel cannot run.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// There is no interface to be had.
    #[error("{what}: {error}")]
    Tun {
        /// What was tried.
        what: String,
        /// What the system says.
        error: io::Error,
    },
    /// The interface cannot be set up.
    #[error("{0}")]
    Setup(#[from] crate::testbed::Error),
    /// Something to listen on cannot be had.
    #[error("{at}: {error}")]
    Listen {
        /// Where.
        at: String,
        /// Why.
        error: io::Error,
    },
    /// Packets would have to be shorter than IP allows.
    #[error("a path of {path} bytes leaves {inner} bytes for packets")]
    Narrow {
        /// Longest packet of the path.
        path: u32,
        /// What is left.
        inner: u32,
    },
    /// The system gives out.
    #[error("{0}")]
    System(#[from] io::Error),
}

impl Fault {
    /// What to do about it.
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
            Fault::Narrow { .. } => "choose a smaller window, `window = 64`: each packet of it takes a bit in \
                 acknowledgements"
                .to_owned(),
            Fault::System(_) => String::new(),
        }
    }
}

/// What happens to a tunnel that its owner should read.
#[derive(Debug)]
pub enum News {
    /// It runs.
    Ready {
        /// Its interface.
        tun: String,
        /// Where it waits for datagrams.
        listen: SocketAddr,
        /// The control socket.
        socket: PathBuf,
        /// Where Prometheus is answered.
        metrics: Option<SocketAddr>,
    },
    /// The peer is there.
    Up {
        /// Where.
        peer: SocketAddr,
        /// Longest packet inside.
        mtu: u16,
        /// Window in packets.
        window: u16,
    },
    /// The peer is gone.
    Down,
    /// The path takes other lengths than before.
    Mtu(u16),
    /// The peer is heard from another address, and answered there.
    Moved(SocketAddr),
    /// Somebody else speaks here; it is not told again soon.
    Notice(Notice),
    /// Something to mind, with its remedy.
    Warning(String),
}

/// 32 bytes that nobody can guess.
///
/// # Errors
/// When the system has none.
pub fn random() -> io::Result<[u8; KEY]> {
    let mut bytes = [0; KEY];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Bytes of IP and UDP before each datagram.
fn framing(listen: SocketAddr) -> u32 {
    if listen.is_ipv6() { 48 } else { 28 }
}

/// Opens the interface and sets it up.
fn device(file: &TunnelFile, mtu: u16) -> Result<(File, String), Fault> {
    let path = "/dev/net/tun";
    let fault = |what: &str| {
        let what = what.to_owned();
        move |error| Fault::Tun { what, error }
    };
    let device = File::options().read(true).write(true).open(path).map_err(fault(path))?;
    let name = tun::attach(&device, &file.tun).map_err(fault(&file.tun))?;
    fcntl(&device, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map_err(io::Error::from)?;
    let mut lines: Vec<String> = Vec::new();
    for address in &file.addresses {
        let nodad = if address.contains(':') { " nodad" } else { "" };
        lines.push(format!("address add {address} dev {name}{nodad}"));
    }
    lines.push(format!("link set {name} mtu {mtu} up"));
    ip::batch(&lines)?;
    Ok((device, name))
}

/// Runs the tunnel of `file` until SIGTERM or SIGINT, with its control socket at `socket`.
///
/// # Errors
/// When something that it needs is not there; nothing is left behind then.
pub fn run(
    name: &str,
    file: &TunnelFile,
    key: Option<[u8; KEY]>,
    socket: &Path,
    tell: impl Fn(News) + Send + Sync + 'static,
) -> Result<(), Fault> {
    let signals: SigSet = [Signal::SIGTERM, Signal::SIGINT].into_iter().collect();
    // Before any thread begins, so that all of them leave these signals alone.
    signals.thread_block().map_err(io::Error::from)?;
    let listen = |error| Fault::Listen { at: file.listen.to_string(), error };
    let udp = UdpSocket::bind(file.listen).map_err(listen)?;
    udp.set_nonblocking(true)?;
    path_mtu::may_fragment(&udp, false)?;
    path_mtu::enlarge_buffers(&udp);
    let framing = framing(file.listen);
    let path = file.peer.and_then(path_mtu::below).unwrap_or(ETHERNET);
    let mtu = file.mtu.map_or(inner(path, framing, file.window), u32::from);
    if mtu < LEAST {
        return Err(Fault::Narrow { path, inner: mtu });
    }
    let mtu = u16::try_from(mtu).unwrap_or(u16::MAX);
    if mtu < 1280 && file.addresses.iter().any(|address| address.contains(':')) {
        tell(News::Warning(format!(
            "packets inside may have {mtu} bytes, and IPv6 needs 1280: choose a smaller window, `window = 64`"
        )));
    }
    if key.is_none() {
        tell(News::Warning(
            "THE TUNNEL IS OPEN: it has no key, so whoever sees its packets can read them and speak for either end; \
             make one with `lasthop link --keygen`, and name it on both sides: `key-file = \"/etc/lasthop/link.key\"`"
                .to_owned(),
        ));
    }
    let (device, tun) = device(file, mtu)?;
    let shown = Arc::new(Shown::default());
    let guard = control::serve(shown.clone(), socket)
        .map_err(|error| Fault::Listen { at: socket.display().to_string(), error })?;
    let endpoint = match file.metrics {
        Some(at) => Some(
            metrics::serve(shown.clone(), at)
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
    tell(News::Ready {
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
    let mut driver = Driver::new(device, udp, tunnel, mtu, status, shown)?;
    let ended = driver.run(&over, &mut manager, &tell);
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
