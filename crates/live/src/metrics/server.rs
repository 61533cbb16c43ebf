//! Who asks for the page, and how long they may take.
//!
//! One thread for all connections, none of which it waits for: each is read and written as far as it goes, within
//! [`SLOWEST`]. When [`MAX_CONNECTIONS`] are open, the oldest makes room for the next, so that connections that say
//! nothing keep nobody out. Requests are read up to the empty line and no further than [`MAX_REQUEST`].

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use lasthop_proto::units::{Span, Time};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::Figures;
use crate::clock::Clock;

/// Longest request in bytes.
pub const MAX_REQUEST: usize = 8 << 10;

/// Connections at once.
pub const MAX_CONNECTIONS: usize = 32;

/// From the beginning of a connection to its end.
const SLOWEST: Span = Span::secs(2);

/// How often connections are looked at that say nothing.
const GLANCE_MS: u16 = 200;

/// An end point that is being served; dropped, it ends.
#[derive(Debug)]
pub struct Endpoint {
    address: SocketAddr,
    over: Arc<AtomicBool>,
    listening: Option<JoinHandle<()>>,
}

impl Endpoint {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // Wakes the thread that waits.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_millis(200));
        if let Some(listening) = self.listening.take() {
            let _ = listening.join();
        }
    }
}

/// Serves the figures of `running` at `address`.
///
/// # Errors
/// When the address is not one of this machine alone, or is in use.
pub fn serve(running: Arc<dyn Figures>, address: SocketAddr) -> io::Result<Endpoint> {
    if !address.ip().is_loopback() {
        let why = format!("{} can be reached from outside", address.ip());
        return Err(io::Error::new(ErrorKind::InvalidInput, why));
    }
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let over = Arc::new(AtomicBool::new(false));
    let ended = over.clone();
    let listening = thread::Builder::new().name("metrics".to_owned()).spawn(move || {
        let clock = Clock::start();
        let mut open = Vec::new();
        while !ended.load(Ordering::Relaxed) {
            wait(&listener, &open);
            let now = clock.now();
            open.retain_mut(|connection: &mut Connection| connection.go_on(now, &*running));
            take_in(&listener, now, &mut open);
        }
    })?;
    Ok(Endpoint { address, over, listening: Some(listening) })
}

/// Waits until something can be done.
fn wait(listener: &TcpListener, open: &[Connection]) {
    let mut fds = vec![PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
    fds.extend(open.iter().map(|connection| {
        let what =
            if connection.answer.is_empty() { PollFlags::POLLIN } else { PollFlags::POLLOUT };
        PollFd::new(connection.stream.as_fd(), what)
    }));
    let timeout = match open {
        [] => PollTimeout::NONE,
        _ => PollTimeout::from(GLANCE_MS),
    };
    let _ = poll(&mut fds, timeout);
}

/// Takes in who waits. Who has been here longest goes when there are too many.
fn take_in(listener: &TcpListener, now: Time, open: &mut Vec<Connection>) {
    for _ in 0..MAX_CONNECTIONS {
        let Ok((stream, _)) = listener.accept() else { return };
        if stream.set_nonblocking(true).is_err() {
            continue;
        }
        if open.len() >= MAX_CONNECTIONS {
            open.remove(0);
        }
        let (head, answer) = (Vec::new(), Vec::new());
        open.push(Connection { stream, since: now, head, answer, written: 0 });
    }
}

/// Somebody who asks.
struct Connection {
    stream: TcpStream,
    since: Time,
    /// What was said so far.
    head: Vec<u8>,
    /// What is answered, and how much of it has been taken.
    answer: Vec<u8>,
    written: usize,
}

impl Connection {
    /// Reads and writes as far as it goes; whether there is more to come.
    fn go_on(&mut self, now: Time, running: &dyn Figures) -> bool {
        let late = now.since(self.since) > SLOWEST;
        if self.answer.is_empty() {
            match self.request() {
                Ok(Some(line)) => self.answer = response(answer(&line, running)),
                Ok(None) if late || self.head.len() > MAX_REQUEST => {
                    let why = "one HTTP request, within two seconds\n".to_owned();
                    self.answer = response(("400 Bad Request", why));
                }
                Ok(None) => return true,
                Err(_) => return false,
            }
        } else if late {
            return false;
        }
        while self.written < self.answer.len() {
            match self.stream.write(&self.answer[self.written..]) {
                Ok(len) => self.written += len,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
        false
    }

    /// The first line of the request, if it is whole; empty if it is not text.
    fn request(&mut self) -> io::Result<Option<String>> {
        let mut buffer = [0; 1024];
        while self.head.len() <= MAX_REQUEST {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(len) => self.head.extend_from_slice(&buffer[..len]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            }
            if self.head.windows(4).any(|end| end == b"\r\n\r\n") {
                let line = self.head.split(|byte| *byte == b'\r').next().unwrap_or_default();
                return Ok(Some(String::from_utf8(line.to_vec()).unwrap_or_default()));
            }
        }
        Ok(None)
    }
}

fn response((status, body): (&str, String)) -> Vec<u8> {
    let kind = if status.starts_with("200") { "text/plain; version=0.0.4" } else { "text/plain" };
    let allow = if status.starts_with("405") { "Allow: GET\r\n" } else { "" };
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {}\r\n{allow}\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn answer(line: &str, running: &dyn Figures) -> (&'static str, String) {
    let mut words = line.split(' ');
    let (method, target) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    if !words.next().is_some_and(|version| version.starts_with("HTTP/1.")) {
        return ("400 Bad Request", "not HTTP/1\n".to_owned());
    }
    if method != "GET" {
        return ("405 Method Not Allowed", "only GET\n".to_owned());
    }
    match target.split('?').next() {
        Some("/metrics") => match running.page() {
            Ok(page) => ("200 OK", page),
            Err(trouble) => ("503 Service Unavailable", format!("{trouble}\n")),
        },
        _ => ("404 Not Found", "the figures are at /metrics\n".to_owned()),
    }
}
