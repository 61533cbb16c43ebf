//! A host: sockets and programs in its network.

use std::ffi::OsStr;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use serde::{Deserialize, Serialize};

use crate::{Error, steps, sys};

/// A host at one end of the link, with the kernel's TCP.
#[derive(Debug)]
pub struct Host {
    path: PathBuf,
    address: Ipv4Addr,
    /// Process in the host's network, as numbered by this process.
    pid: i32,
}

/// Request for a socket.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Request {
    Listen(SocketAddr),
    Connect(SocketAddr),
    Udp(SocketAddr),
}

/// Result of a request; a socket accompanies `Ok`.
type SocketResult = Result<(), Refusal>;

#[derive(Debug, Serialize, Deserialize)]
struct Refusal {
    number: Option<i32>,
    message: String,
}

impl Host {
    pub(crate) fn new(path: PathBuf, address: Ipv4Addr) -> Result<Host, Error> {
        let pid = UnixStream::connect(&path)
            .and_then(|stream| Ok(getsockopt(&stream, PeerCredentials)?.pid()))
            .map_err(|error| Error::of("reach a host of the link", &error))?;
        Ok(Host { path, address, pid })
    }

    /// Its address, in the range shared among the customers of a carrier (RFC 6598).
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Listens for TCP connections at this host; port 0 chooses a free one.
    ///
    /// # Errors
    ///
    /// Those of [`TcpListener::bind`].
    pub fn listen(&self, port: u16) -> io::Result<TcpListener> {
        self.socket(Request::Listen((self.address, port).into())).map(TcpListener::from)
    }

    /// Connects from this host.
    ///
    /// # Errors
    ///
    /// Those of [`TcpStream::connect`].
    pub fn connect(&self, to: impl Into<SocketAddr>) -> io::Result<TcpStream> {
        self.socket(Request::Connect(to.into())).map(TcpStream::from)
    }

    /// A UDP socket of this host; port 0 chooses a free one.
    ///
    /// # Errors
    ///
    /// Those of [`UdpSocket::bind`].
    pub fn udp(&self, port: u16) -> io::Result<UdpSocket> {
        self.socket(Request::Udp((self.address, port).into())).map(UdpSocket::from)
    }

    /// A program in the network of this host, otherwise as [`Command::new`]: same user, files and
    /// environment. It cannot gain rights (`sudo`) there. `LASTHOP_ADDRESS` is the host's address.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = steps::enter(self.pid);
        command.arg(program).env("LASTHOP_ADDRESS", self.address.to_string());
        command
    }

    fn socket(&self, request: Request) -> io::Result<OwnedFd> {
        let mut stream = UnixStream::connect(&self.path)?;
        let mut line = serde_json::to_vec(&request)?;
        line.push(b'\n');
        stream.write_all(&line)?;
        let (line, socket) = sys::receive(&stream)?;
        match (serde_json::from_slice::<SocketResult>(&line)?, socket) {
            (Ok(()), Some(socket)) => Ok(socket),
            (Ok(()), None) => Err(io::Error::other("the host sent no socket")),
            (Err(Refusal { number: Some(number), .. }), _) => {
                Err(io::Error::from_raw_os_error(number))
            }
            (Err(Refusal { message, .. }), _) => Err(io::Error::other(message)),
        }
    }
}

/// Opens sockets in this process's network for clients of the socket `path`, until the process ends.
///
/// # Errors
///
/// If it cannot listen there.
pub fn serve(path: &Path) -> io::Result<()> {
    let listener = UnixListener::bind(path)?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || answer(&stream));
        }
    });
    Ok(())
}

fn answer(stream: &UnixStream) -> io::Result<()> {
    let mut line = String::new();
    if BufReader::new(stream).read_line(&mut line)? == 0 {
        return Ok(());
    }
    let opened = match serde_json::from_str(&line)? {
        Request::Listen(at) => TcpListener::bind(at).map(OwnedFd::from),
        Request::Connect(to) => TcpStream::connect(to).map(OwnedFd::from),
        Request::Udp(at) => UdpSocket::bind(at).map(OwnedFd::from),
    };
    let (answer, socket): (SocketResult, _) = match opened {
        Ok(socket) => (Ok(()), Some(socket)),
        Err(error) => {
            (Err(Refusal { number: error.raw_os_error(), message: error.to_string() }), None)
        }
    };
    sys::send(stream, &serde_json::to_vec(&answer)?, socket.as_ref())
}

/// The address from which this process's network reaches `far`.
///
/// # Errors
///
/// If there is no route.
pub fn address_towards(far: Ipv4Addr) -> io::Result<Ipv4Addr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.connect((far, 9))?;
    match socket.local_addr()?.ip() {
        IpAddr::V4(address) => Ok(address),
        IpAddr::V6(_) => Err(io::Error::other("the host has no IPv4 address")),
    }
}
