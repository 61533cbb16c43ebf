//! The HTTP server of the metrics and its limits.
//!
//! Each connection has a thread, which reads a request up to its empty line, at most [`MAX_REQUEST`] bytes, within
//! [`SLOWEST`]. At [`MAX_CONNECTIONS`] open connections, a new one replaces the oldest, so silent connections do not
//! exclude others.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use lasthop_proto::units::{Span, Time};

use super::Figures;
use crate::clock::Clock;

/// Size limit of a request, bytes.
pub const MAX_REQUEST: usize = 8 << 10;

/// Limit of open connections.
pub const MAX_CONNECTIONS: usize = 32;

/// Time limit of a request, and of a client that reads nothing.
const SLOWEST: Span = Span::secs(2);

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
    let address = listener.local_addr()?;
    let over = Arc::new(AtomicBool::new(false));
    let ended = over.clone();
    let listening = thread::Builder::new().name("metrics".to_owned()).spawn(move || {
        let mut open: VecDeque<Weak<TcpStream>> = VecDeque::new();
        while !ended.load(Ordering::Relaxed) {
            let Ok((stream, _)) = listener.accept() else { continue };
            let (stream, running) = (Arc::new(stream), running.clone());
            open.retain(|stream| stream.strong_count() > 0);
            if open.len() >= MAX_CONNECTIONS {
                let oldest = open.pop_front().and_then(|stream| stream.upgrade());
                oldest.into_iter().for_each(|stream| _ = stream.shutdown(Shutdown::Both));
            }
            open.push_back(Arc::downgrade(&stream));
            let _ = thread::Builder::new().spawn(move || converse(&stream, &*running));
        }
    })?;
    Ok(Endpoint { address, over, listening: Some(listening) })
}

/// Answers the request of a client.
fn converse(mut stream: &TcpStream, running: &dyn Figures) -> io::Result<()> {
    stream.set_write_timeout(Some(Duration::from_nanos(SLOWEST.0)))?;
    let response = match request(stream)? {
        Some(line) => response(answer(&line, running)),
        None => response(("400 Bad Request", "one HTTP request, within two seconds\n".to_owned())),
    };
    stream.write_all(&response)
}

/// The first line of a request, empty if it is not text; `None` if the request is late or too long.
fn request(mut stream: &TcpStream) -> io::Result<Option<String>> {
    let clock = Clock::start();
    let (mut head, mut buffer) = (Vec::new(), [0; 1024]);
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = SLOWEST.saturating_sub(clock.now().since(Time::ZERO));
        if left == Span::ZERO || head.len() > MAX_REQUEST {
            return Ok(None);
        }
        stream.set_read_timeout(Some(Duration::from_nanos(left.0)))?;
        match stream.read(&mut buffer) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(len) => head.extend_from_slice(&buffer[..len]),
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
    }
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    Ok(Some(String::from_utf8(line.to_vec()).unwrap_or_default()))
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
    use super::*;

    /// A page of this many bytes.
    struct Long(usize);

    impl Figures for Long {
        fn page(&self) -> Result<String, String> {
            if self.0 == 0 { Err("it has ended".to_owned()) } else { Ok("x".repeat(self.0)) }
        }
    }

    const ASK: &[u8] = b"GET /metrics HTTP/1.1\r\n\r\n";

    /// A client that has sent `request`, and the server's result once the client has read everything.
    fn talk(request: &[u8], figures: usize, reads: bool) -> (Vec<u8>, io::Result<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        client.write_all(request).unwrap();
        let server = thread::spawn(move || converse(&stream, &Long(figures)));
        let mut got = Vec::new();
        if reads {
            client.read_to_end(&mut got).unwrap();
        }
        (got, server.join().unwrap())
    }

    #[test]
    fn a_page_larger_than_the_send_buffer_arrives_complete() {
        let (got, _) = talk(ASK, 32 << 20, true);
        let body = got.windows(4).position(|end| end == b"\r\n\r\n").unwrap() + 4;
        assert!(got.starts_with(b"HTTP/1.1 200 OK\r\n"));
        assert_eq!(got.len() - body, 32 << 20);
        assert!(got[body..].iter().all(|byte| *byte == b'x'));
    }

    #[test]
    fn each_request_has_its_answer() {
        let cases: [(&[u8], usize, &str); 8] = [
            (ASK, 1, "HTTP/1.1 200 OK\r\n"),
            (b"GET /metrics?x=1 HTTP/1.0\r\n\r\n", 1, "HTTP/1.1 200 OK\r\n"),
            (ASK, 0, "HTTP/1.1 503 Service Unavailable\r\n"),
            (b"GET / HTTP/1.1\r\n\r\n", 1, "HTTP/1.1 404 Not Found\r\n"),
            (b"PUT /metrics HTTP/1.1\r\n\r\n", 1, "HTTP/1.1 405 Method Not Allowed\r\n"),
            (b"GET /metrics\r\n\r\n", 1, "HTTP/1.1 400 Bad Request\r\n"),
            (b"\xff\xff HTTP/1.1\r\n\r\n", 1, "HTTP/1.1 400 Bad Request\r\n"),
            // It waits for the rest, up to its limit of time.
            (b"GET /metrics HT", 1, "HTTP/1.1 400 Bad Request\r\n"),
        ];
        for (request, figures, expected) in cases {
            let (got, _) = talk(request, figures, true);
            let text = String::from_utf8_lossy(&got);
            let request = String::from_utf8_lossy(request);
            assert!(text.starts_with(expected), "{request}: {text}");
            assert_eq!(text.contains("Allow: GET\r\n"), text.contains(" 405 "), "{text}");
            assert_eq!(text.contains("version=0.0.4"), text.contains(" 200 "), "{text}");
        }
    }

    #[test]
    fn an_oversized_request_or_a_client_that_reads_nothing_ends_the_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        client.write_all(&vec![b'x'; MAX_REQUEST + 2000]).unwrap();
        assert_eq!(request(&stream).unwrap(), None, "no head is so long");
        drop(client);
        assert!(request(&stream).is_err(), "a client that has disconnected is closed");
        let (_, result) = talk(ASK, 32 << 20, false);
        assert!(result.is_err(), "a client that does not read is closed");
    }
}
