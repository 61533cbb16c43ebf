//! The HTTP server of the metrics and its limits.
//!
//! One thread serves all connections without blocking. Each is read and written as far as possible, within
//! [`SLOWEST`]. At [`MAX_CONNECTIONS`] open connections, a new one replaces the oldest, so silent connections
//! do not exclude others. A request is read up to its empty line, at most [`MAX_REQUEST`] bytes.

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

/// Size limit of a request, bytes.
pub const MAX_REQUEST: usize = 8 << 10;

/// Limit of open connections.
pub const MAX_CONNECTIONS: usize = 32;

/// Time limit of a connection.
const SLOWEST: Span = Span::secs(2);

/// Interval at which silent connections are checked, ms.
const GLANCE_MS: u16 = 200;

/// A served end point. Dropping it stops the server.
#[derive(Debug)]
pub struct Endpoint {
    address: SocketAddr,
    over: Arc<AtomicBool>,
    listening: Option<JoinHandle<()>>,
}

impl Endpoint {
    /// The address of its listener.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // Wakes the waiting thread.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_millis(200));
        if let Some(listening) = self.listening.take() {
            let _ = listening.join();
        }
    }
}

/// Serves the metrics of `running` at `address`.
///
/// # Errors
/// If the address is not a loopback address, or is in use.
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
            open.retain_mut(|connection: &mut Connection| connection.advance(now, &*running));
            accept(&listener, now, &mut open);
        }
    })?;
    Ok(Endpoint { address, over, listening: Some(listening) })
}

/// Waits until a socket is ready.
fn wait(listener: &TcpListener, open: &[Connection]) {
    let mut fds = vec![PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
    fds.extend(open.iter().map(|connection| {
        let interest =
            if connection.answer.is_empty() { PollFlags::POLLIN } else { PollFlags::POLLOUT };
        PollFd::new(connection.stream.as_fd(), interest)
    }));
    let timeout = match open {
        [] => PollTimeout::NONE,
        _ => PollTimeout::from(GLANCE_MS),
    };
    let _ = poll(&mut fds, timeout);
}

/// Accepts waiting connections. At the limit the oldest one is dropped.
fn accept(listener: &TcpListener, now: Time, open: &mut Vec<Connection>) {
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

/// A connection of a client.
struct Connection {
    stream: TcpStream,
    since: Time,
    /// Received part of the request.
    head: Vec<u8>,
    /// The response, and the number of its bytes already written.
    answer: Vec<u8>,
    written: usize,
}

impl Connection {
    /// Reads and writes as far as possible. Returns whether the connection remains open.
    fn advance(&mut self, now: Time, running: &dyn Figures) -> bool {
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

    /// The first line of a complete request; empty if it is not text.
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

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// A page of this many bytes.
    struct Long(usize);

    impl Figures for Long {
        fn page(&self) -> Result<String, String> {
            if self.0 == 0 { Err("it has ended".to_owned()) } else { Ok("x".repeat(self.0)) }
        }
    }

    /// A client and its connection.
    fn pair() -> (TcpStream, Connection) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        stream.set_nonblocking(true).unwrap();
        let connection = Connection {
            stream,
            since: Time::ZERO,
            head: Vec::new(),
            answer: Vec::new(),
            written: 0,
        };
        (client, connection)
    }

    const ASK: &[u8] = b"GET /metrics HTTP/1.1\r\n\r\n";

    /// All bytes that the client receives, and the number of calls of `advance`.
    fn all(
        mut client: TcpStream,
        mut connection: Connection,
        figures: &dyn Figures,
    ) -> (Vec<u8>, usize) {
        let (mut got, mut rounds) = (Vec::new(), 1);
        client.set_nonblocking(true).unwrap();
        let mut buffer = vec![0; 1 << 16];
        let mut more = true;
        loop {
            while more && connection.advance(Time::ZERO, figures) {
                rounds += 1;
                while let Ok(len @ 1..) = client.read(&mut buffer) {
                    got.extend_from_slice(&buffer[..len]);
                }
            }
            more = false;
            let _ = connection.stream.shutdown(std::net::Shutdown::Write);
            match client.read(&mut buffer) {
                Ok(0) => return (got, rounds),
                Ok(len) => got.extend_from_slice(&buffer[..len]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    #[test]
    fn a_page_larger_than_the_send_buffer_arrives_complete() {
        let (mut client, connection) = pair();
        client.write_all(ASK).unwrap();
        let (got, rounds) = all(client, connection, &Long(32 << 20));
        let body = got.windows(4).position(|end| end == b"\r\n\r\n").unwrap() + 4;
        assert!(got.starts_with(b"HTTP/1.1 200 OK\r\n"));
        assert_eq!(got.len() - body, 32 << 20);
        assert!(got[body..].iter().all(|byte| *byte == b'x'));
        assert!(rounds > 1, "it was to be more than a buffer holds");
    }

    #[test]
    fn each_request_has_its_answer() {
        let cases: [(&[u8], usize, &str); 7] = [
            (ASK, 1, "HTTP/1.1 200 OK\r\n"),
            (b"GET /metrics?x=1 HTTP/1.0\r\n\r\n", 1, "HTTP/1.1 200 OK\r\n"),
            (ASK, 0, "HTTP/1.1 503 Service Unavailable\r\n"),
            (b"GET / HTTP/1.1\r\n\r\n", 1, "HTTP/1.1 404 Not Found\r\n"),
            (b"PUT /metrics HTTP/1.1\r\n\r\n", 1, "HTTP/1.1 405 Method Not Allowed\r\n"),
            (b"GET /metrics\r\n\r\n", 1, "HTTP/1.1 400 Bad Request\r\n"),
            (b"\xff\xff HTTP/1.1\r\n\r\n", 1, "HTTP/1.1 400 Bad Request\r\n"),
        ];
        for (request, figures, expected) in cases {
            let (mut client, connection) = pair();
            client.write_all(request).unwrap();
            let (got, _) = all(client, connection, &Long(figures));
            let text = String::from_utf8_lossy(&got);
            let request = String::from_utf8_lossy(request);
            assert!(text.starts_with(expected), "{request}: {text}");
            assert_eq!(text.contains("Allow: GET\r\n"), text.contains(" 405 "), "{text}");
            assert_eq!(text.contains("version=0.0.4"), text.contains(" 200 "), "{text}");
        }
    }

    #[test]
    fn a_slow_client_or_oversized_request_ends_the_connection() {
        let figures = &Long(1);
        let late = Time::ZERO + SLOWEST + Span::millis(1);
        let (mut client, mut connection) = pair();
        client.write_all(b"GET /metrics HT").unwrap();
        assert!(connection.advance(Time::ZERO + SLOWEST, figures), "there is still time");
        assert!(!connection.advance(late, figures), "it is late");
        assert!(connection.answer.starts_with(b"HTTP/1.1 400"), "the client receives an error");

        let (mut client, mut connection) = pair();
        client.write_all(&vec![b'x'; MAX_REQUEST + 2000]).unwrap();
        while connection.advance(Time::ZERO, figures) {}
        assert!(connection.answer.starts_with(b"HTTP/1.1 400"), "no head is so long");

        let (mut client, mut connection) = pair();
        client.write_all(ASK).unwrap();
        assert!(connection.advance(Time::ZERO, &Long(32 << 20)), "it has not been read");
        assert!(!connection.advance(late, figures), "a client that does not read is closed");

        let (client, mut connection) = pair();
        drop(client);
        assert!(
            !connection.advance(Time::ZERO, figures),
            "a client that has disconnected is closed"
        );
        assert!(connection.answer.is_empty());
    }
}
