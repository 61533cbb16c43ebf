//! The server of a control socket: access, limits and request handling.

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{
    DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _,
};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use lasthop_proto::units::{Span, Time};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::{Uid, User};

use super::Served;
use super::protocol::{MAX_REQUEST, Request, Response, Trouble};
use crate::clock::Clock;

/// Client limit; root has one more.
pub const MAX_CLIENTS: usize = 16;

/// Idle time after which a client is disconnected in favour of a new one, if the limit is reached.
const MAKES_ROOM: Span = Span::secs(3);

/// Idle time after which a client is disconnected.
const IDLE: Span = Span::secs(120);

/// Time limit from the first byte of a request to its last.
const SLOWEST: Span = Span::secs(10);

/// Interval at which a waiting thread checks for the end, ms.
const GLANCE_MS: u16 = 200;

/// A served control socket. Dropping it closes and removes the socket.
#[derive(Debug)]
pub struct Guard {
    path: PathBuf,
    /// Inode of the socket's file. A file of another inode at the path is not removed.
    inode: u64,
    over: Arc<AtomicBool>,
    listening: Option<JoinHandle<()>>,
}

impl Guard {
    /// Path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(listening) = self.listening.take() {
            let _ = listening.join();
        }
        if fs::symlink_metadata(&self.path).is_ok_and(|found| found.ino() == self.inode) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Serves `running` at the socket `path` with mode 0600. Creates the directory with mode 0700 if it is
/// missing.
///
/// # Errors
/// `AddrInUse` if another process serves this socket, `PermissionDenied` if other users may write to the
/// directory, and errors of the system.
pub fn serve(running: Arc<dyn Served>, path: &Path) -> io::Result<Guard> {
    let listener = bind(path)?;
    listener.set_nonblocking(true)?;
    let inode = fs::symlink_metadata(path)?.ino();
    let over = Arc::new(AtomicBool::new(false));
    let ended = over.clone();
    // From here on the guard removes the socket, also if no thread can be started.
    let mut guard = Guard { path: path.to_owned(), inode, over, listening: None };
    let thread = thread::Builder::new().name("control".to_owned());
    guard.listening = Some(thread.spawn(move || listen(&listener, &running, &ended))?);
    Ok(guard)
}

fn bind(path: &Path) -> io::Result<UnixListener> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    if fs::metadata(dir)?.mode() & 0o022 != 0 {
        let message = format!(
            "others may write to {}: choose a directory of your own, for example /run/lasthop",
            dir.display()
        );
        return Err(io::Error::new(ErrorKind::PermissionDenied, message));
    }
    if let Ok(found) = fs::symlink_metadata(path) {
        let in_use = |why| io::Error::new(ErrorKind::AddrInUse, why);
        if !found.file_type().is_socket() {
            return Err(in_use("there is a file that is no socket"));
        }
        match UnixStream::connect(path) {
            Ok(_) => return Err(in_use("another station listens there")),
            // The previous server was killed and left its socket.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => fs::remove_file(path)?,
            Err(error) => return Err(error),
        }
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Waits for input for a limited time. Returns whether there is some.
fn readable(socket: &impl AsFd) -> bool {
    let mut fds = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
    matches!(poll(&mut fds, PollTimeout::from(GLANCE_MS)), Ok(n) if n > 0)
}

fn listen(listener: &UnixListener, running: &Arc<dyn Served>, over: &Arc<AtomicBool>) {
    let clients = Arc::new(Clients::default());
    while !over.load(Ordering::Relaxed) {
        if !readable(listener) {
            continue;
        }
        let Ok((stream, _)) = listener.accept() else { continue };
        let timeout = Some(Duration::from_secs(5));
        if stream.set_nonblocking(false).and(stream.set_write_timeout(timeout)).is_err() {
            continue;
        }
        let (running, over) = (running.clone(), over.clone());
        let client = Client { stream, running, over, clients: clients.clone() };
        let taken = clients.taken.load(Ordering::Relaxed);
        // At the limit an idle client must leave, so that the next one is served.
        clients.slot_needed.store(taken >= MAX_CLIENTS, Ordering::Relaxed);
        if let Some(refused) = client.refused(taken) {
            let mut client = client;
            let _ = client.say(&Response::Error(refused));
            continue;
        }
        let slot = ClientSlot::take(&clients);
        // Without a thread the client is dropped, which closes its connection.
        let _ = thread::Builder::new().name("control-client".to_owned()).spawn(move || {
            let _slot = slot;
            let mut client = client;
            let _ = client.attend();
        });
    }
}

/// The connected clients.
#[derive(Default)]
struct Clients {
    taken: AtomicUsize,
    /// The client limit was reached: the next idle client leaves.
    slot_needed: AtomicBool,
}

/// One of the client slots; dropping it frees the slot.
struct ClientSlot(Arc<Clients>);

impl ClientSlot {
    fn take(clients: &Arc<Clients>) -> ClientSlot {
        clients.taken.fetch_add(1, Ordering::Relaxed);
        ClientSlot(clients.clone())
    }
}

impl Drop for ClientSlot {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Name of a user and a process for the log.
pub(crate) fn who(uid: u32, pid: i32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let user = User::from_uid(Uid::from_raw(uid)).ok().flatten();
    let user = user.map_or_else(|| uid.to_string(), |user| user.name);
    // The process that sent a signal may have exited.
    let name = if name.is_empty() { "?" } else { name.trim() };
    format!("{user} ({name}, process {pid})")
}

struct Client {
    stream: UnixStream,
    running: Arc<dyn Served>,
    over: Arc<AtomicBool>,
    clients: Arc<Clients>,
}

impl Client {
    /// User and process of the peer, from the kernel.
    fn who(&self) -> String {
        let Ok(peer) = getsockopt(&self.stream, PeerCredentials) else { return "?".to_owned() };
        who(peer.uid(), peer.pid())
    }

    /// Reason to refuse this client, with `others` connected.
    fn refused(&self, others: usize) -> Option<Trouble> {
        let uid = getsockopt(&self.stream, PeerCredentials).ok().map(|peer| peer.uid());
        if uid != Some(0) && uid != Some(Uid::effective().as_raw()) {
            let help = "only root and the user of the station may connect: use sudo";
            return Some(Trouble::new("not-allowed", "this station is not yours", help));
        }
        if others >= MAX_CLIENTS + usize::from(uid == Some(0)) {
            let message = format!("{MAX_CLIENTS} clients are connected already");
            let help = "try again: the station disconnects an idle client in a few seconds";
            return Some(Trouble::new("busy", message, help));
        }
        None
    }

    fn say(&mut self, answer: &Response) -> io::Result<()> {
        let mut line = serde_json::to_vec(answer)?;
        line.push(b'\n');
        self.stream.write_all(&line)
    }

    /// Answers requests until the client disconnects or exceeds a limit.
    fn attend(&mut self) -> io::Result<()> {
        let clock = Clock::start();
        let mut pending = Vec::new();
        let mut since = clock.now();
        let mut buffer = [0; 4096];
        while !self.over.load(Ordering::Relaxed) {
            while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = pending.drain(..=end).collect();
                self.respond(&line[..end])?;
                since = clock.now();
            }
            if self.makes_room(clock.now().since(since)) {
                let help = "connect again";
                let trouble = Trouble::new("busy", "this client is idle, and others wait", help);
                return self.say(&Response::Error(trouble));
            }
            if pending.len() > MAX_REQUEST || is_late(&clock, since, pending.is_empty()) {
                let why = match pending.len() {
                    0 => return Ok(()),
                    1..=MAX_REQUEST => "the request takes too long",
                    _ => "the request is too long",
                };
                let help = format!("one line of at most {MAX_REQUEST} bytes, ended by a newline");
                return self.say(&Response::Error(Trouble::new("bad-request", why, help)));
            }
            if !readable(&self.stream) {
                continue;
            }
            if pending.is_empty() {
                since = clock.now();
            }
            match self.stream.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(len) => pending.extend_from_slice(&buffer[..len]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Whether this client, idle for `silent`, leaves for a waiting one. One client leaves for each that
    /// waits.
    fn makes_room(&self, silent: Span) -> bool {
        silent > MAKES_ROOM && self.clients.slot_needed.swap(false, Ordering::Relaxed)
    }

    fn respond(&mut self, line: &[u8]) -> io::Result<()> {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let answer = match Request::parse(line) {
            Ok(request) => {
                let answer = self.running.answer(&request);
                if let Response::Changed(changed) = &answer {
                    self.running.changed(&self.who(), changed);
                }
                answer
            }
            Err(trouble) => Response::Error(trouble),
        };
        self.say(&answer)
    }
}

fn is_late(clock: &Clock, since: Time, idle: bool) -> bool {
    clock.now().since(since) > if idle { IDLE } else { SLOWEST }
}
