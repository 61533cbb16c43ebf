//! The client of a control socket.

use std::fs;
use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::protocol::{Request, Response};
use crate::testbed::keep::Home;

/// Size limit of an answer, bytes.
const MAX_ANSWER: u64 = 16 << 20;

/// A connection to a running station.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<UnixStream>,
}

impl Client {
    /// Connects to the station at the socket `path`.
    ///
    /// # Errors
    /// If no process listens there, or the user may not connect.
    pub fn connect(path: &Path) -> io::Result<Client> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        stream.set_write_timeout(Some(Duration::from_secs(5)))?;
        Ok(Client { stream: BufReader::new(stream) })
    }

    /// Sends a request and reads the answer.
    ///
    /// # Errors
    /// If the station closes the connection, or sends an answer of an unknown form (`InvalidData`).
    pub fn ask(&mut self, request: &Request) -> io::Result<Response> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        // A refused client receives its answer without a request, on a connection that is already closed.
        let sent = self.stream.get_mut().write_all(&line);
        let mut line = Vec::new();
        let read = self.stream.by_ref().take(MAX_ANSWER).read_until(b'\n', &mut line);
        if line.is_empty() {
            sent.and(read)?;
            return Err(io::Error::new(ErrorKind::UnexpectedEof, "the station disconnected"));
        }
        Response::parse(&line).map_err(|why| io::Error::new(ErrorKind::InvalidData, why))
    }
}

/// Directories of control sockets: the system's, and that of the user's testbeds.
pub fn directories() -> Vec<PathBuf> {
    let user = Home::open().ok().map(|home| home.dir().to_owned());
    [PathBuf::from("/run/lasthop")].into_iter().chain(user).collect()
}

/// Sockets under `dirs` with a listening station, sorted, including those that the user may not open.
pub fn listening(dirs: &[PathBuf]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for dir in dirs {
        // A systemd unit has a directory for each instance.
        let inner = entries(dir).filter(|path| path.is_dir());
        for dir in [dir.clone()].into_iter().chain(inner) {
            found.extend(entries(&dir).filter(|path| is_alive(path)));
        }
    }
    found.sort();
    found.dedup();
    found
}

fn entries(dir: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path())
}

fn is_alive(path: &Path) -> bool {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    is_socket
        && match UnixStream::connect(path) {
            Ok(_) => true,
            Err(error) => error.kind() == ErrorKind::PermissionDenied,
        }
}
