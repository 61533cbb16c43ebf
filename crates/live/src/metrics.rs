//! The station's figures for Prometheus, in its text format, over a socket of this machine.
//!
//! One page, read by one program every few seconds: a server library would be most of what listens here. Requests
//! are read up to the empty line and no further than [`MAX_REQUEST`], one at a time, each within two seconds.

use std::fmt::Write as _;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use lasthop_proto::units::Span;

use crate::clock::Clock;
use crate::counters::DirectionCounts;
use crate::status::{PortStatus, StageStatus, Status};

/// Longest request in bytes.
pub const MAX_REQUEST: usize = 8 << 10;

/// How long a request may take.
const SLOWEST: Span = Span::secs(2);

/// What has figures to show.
pub trait Figures: Send + Sync {
    /// The page for Prometheus.
    ///
    /// # Errors
    /// Why there is none: it no longer runs.
    fn page(&self) -> Result<String, String>;
}

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
        // Wakes the thread that accepts.
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
    let address = listener.local_addr()?;
    let over = Arc::new(AtomicBool::new(false));
    let ended = over.clone();
    let listening = thread::Builder::new().name("metrics".to_owned()).spawn(move || {
        for stream in listener.incoming() {
            if ended.load(Ordering::Relaxed) {
                return;
            }
            if let Ok(stream) = stream {
                let _ = respond(stream, &*running);
            }
        }
    })?;
    Ok(Endpoint { address, over, listening: Some(listening) })
}

fn respond(mut stream: TcpStream, running: &dyn Figures) -> io::Result<()> {
    let timeout = Some(Duration::from_millis(500));
    stream.set_read_timeout(timeout)?;
    stream.set_write_timeout(timeout)?;
    let (status, body) = match request(&mut stream)? {
        Some(line) => answer(&line, running),
        None => ("400 Bad Request", "one HTTP request, within two seconds\n".to_owned()),
    };
    let kind = if status.starts_with("200") { "text/plain; version=0.0.4" } else { "text/plain" };
    let allow = if status.starts_with("405") { "Allow: GET\r\n" } else { "" };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {}\r\n{allow}\
         Connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

/// The first line of a request that is whole; `None` if it does not become so.
fn request(stream: &mut impl Read) -> io::Result<Option<String>> {
    let clock = Clock::start();
    let mut head = Vec::new();
    let mut buffer = [0; 1024];
    while head.len() <= MAX_REQUEST && clock.now().0 < SLOWEST.0 {
        let len = match stream.read(&mut buffer) {
            Ok(0) => return Ok(None),
            Ok(len) => len,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                continue;
            }
            Err(error) => return Err(error),
        };
        head.extend_from_slice(&buffer[..len]);
        if head.windows(4).any(|end| end == b"\r\n\r\n") {
            let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
            return Ok(String::from_utf8(line.to_vec()).ok());
        }
    }
    Ok(None)
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

/// A page in the making: each family is written once, its samples behind its head.
#[derive(Default)]
pub(crate) struct Page(String);

impl Page {
    /// A family of samples, each with labels and a value.
    pub(crate) fn family(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        samples: Vec<(Labels<'_>, f64)>,
    ) {
        if samples.is_empty() {
            return;
        }
        let _ = writeln!(self.0, "# HELP lasthop_{name} {help}\n# TYPE lasthop_{name} {kind}");
        for (labels, value) in samples {
            let labels: Vec<String> =
                labels.iter().map(|(key, value)| format!("{key}=\"{}\"", escaped(value))).collect();
            let braces =
                if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
            let _ = writeln!(self.0, "lasthop_{name}{braces} {value}");
        }
    }

    /// The page.
    pub(crate) fn text(self) -> String {
        self.0
    }

    fn ports(&mut self, status: &Status, name: &str, help: &str, get: impl Fn(&PortStatus) -> u64) {
        let samples = status.ports.iter().map(|port| {
            (
                vec![("interface", port.name.as_str()), ("side", port.side.as_str())],
                get(port) as f64,
            )
        });
        self.family(&format!("interface_{name}_total"), "counter", help, samples.collect());
    }

    fn stages(
        &mut self,
        status: &Status,
        (name, kind): (&str, &str),
        help: &str,
        get: impl Fn(&StageStatus) -> Option<u64>,
    ) {
        let samples = status.stages.iter().filter_map(|stage| {
            get(stage).map(|value| (vec![("stage", stage.name.as_str())], value as f64))
        });
        self.family(name, kind, help, samples.collect());
    }

    fn directions(
        &mut self,
        status: &Status,
        name: &str,
        help: &str,
        get: impl Fn(&DirectionCounts) -> u64,
    ) {
        let samples = directions(status).map(|(stage, direction, counts)| {
            (vec![("stage", stage), ("direction", direction)], get(counts) as f64)
        });
        self.family(name, "counter", help, samples.collect());
    }
}

pub(crate) type Labels<'a> = Vec<(&'static str, &'a str)>;

fn directions(status: &Status) -> impl Iterator<Item = (&str, &'static str, &DirectionCounts)> {
    status.stages.iter().flat_map(|stage| {
        let name = stage.name.as_str();
        [(name, "right", &stage.happened.right), (name, "left", &stage.happened.left)]
    })
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// The page.
pub fn render(status: &Status) -> String {
    let mut page = Page::default();
    let build = vec![("version", status.version.as_str()), ("world", status.world.as_str())];
    page.family("build_info", "gauge", "What runs here.", vec![(build, 1.0)]);
    let uptime = status.uptime_ns as f64 / 1e9;
    page.family(
        "uptime_seconds",
        "gauge",
        "How long the station has been running.",
        vec![(vec![], uptime)],
    );

    interfaces(&mut page, status);
    stages(&mut page, status);
    happened(&mut page, status);
    if let Some(plane) = &status.plane {
        let rows = plane.counts.named().map(|(what, n)| (vec![("what", what)], n as f64));
        let what = "What the program in the kernel did, if it forwards.";
        page.family("plane_total", "counter", what, rows.to_vec());
    }
    if let Some(capture) = &status.capture {
        let failed = f64::from(u8::from(capture.failed.is_some()));
        page.family(
            "capture_failed",
            "gauge",
            "Whether captures have ended because of a fault.",
            vec![(vec![], failed)],
        );
    }
    page.0
}

fn interfaces(page: &mut Page, s: &Status) {
    page.ports(s, "received_frames", "Frames received.", |p| p.counts.received);
    page.ports(s, "received_bytes", "Bytes of frames received.", |p| p.counts.received_bytes);
    page.ports(s, "sent_frames", "Frames sent.", |p| p.counts.sent);
    page.ports(s, "passed_frames", "Frames that no stage looked at.", |p| p.counts.passed);
    page.ports(s, "overrun_frames", "Frames lost because the receive buffer was full.", |p| {
        p.counts.overrun
    });
    page.ports(s, "refused_frames", "Frames that the interface did not take.", |p| {
        p.counts.refused
    });
}

fn stages(page: &mut Page, s: &Status) {
    let agents = s.stages.iter().filter_map(|stage| {
        let agent = stage.config.get("agent")?.as_str()?;
        Some((vec![("stage", stage.name.as_str()), ("agent", agent)], 1.0))
    });
    page.family("agent_info", "gauge", "Which agent a stage runs.", agents.collect());
    let number = |n: Option<usize>| n.map(|n| n as u64);
    page.stages(s, ("flows", "gauge"), "Flows or connections followed now.", |x| number(x.flows));
    page.stages(s, ("state_bytes", "gauge"), "State of an agent, cached packets included.", |x| {
        number(x.state_bytes)
    });
    page.stages(
        s,
        ("peak_state_bytes", "gauge"),
        "The most that the state of an agent ever was.",
        |x| number(x.peak_state_bytes),
    );
    page.stages(s, ("stage_arrived_packets_total", "counter"), "Packets handed to a stage.", |x| {
        Some(x.packets.arrived)
    });
    page.stages(
        s,
        ("stage_departed_packets_total", "counter"),
        "Packets handed on by a stage.",
        |x| Some(x.packets.departed),
    );
    page.stages(
        s,
        ("stage_ended_packets_total", "counter"),
        "Packets that ended at a stage.",
        |x| Some(x.packets.ended),
    );
    page.stages(s, ("stage_held_packets", "gauge"), "Packets inside a stage.", |x| {
        Some(x.packets.held)
    });
}

fn happened(page: &mut Page, s: &Status) {
    page.directions(s, "transmitted_packets_total", "Packets carried by a link or radio.", |d| {
        d.transmitted
    });
    page.directions(s, "transmitted_bytes_total", "IP bytes carried by a link or radio.", |d| {
        d.transmitted_bytes
    });
    page.directions(s, "damaged_packets_total", "Packets damaged by the channel.", |d| d.damaged);
    let mut by_cause =
        |name: &str,
         help: &str,
         of: fn(&DirectionCounts) -> &lasthop_trace::counts::CauseCounts| {
            let samples = directions(s).flat_map(|(stage, direction, counts)| {
                of(counts).iter().map(move |(cause, n)| {
                    (
                        vec![("stage", stage), ("direction", direction), ("cause", cause.name())],
                        n as f64,
                    )
                })
            });
            page.family(name, "counter", help, samples.collect());
        };
    by_cause("originated_packets_total", "Packets put into the path, by cause.", |d| &d.originated);
    by_cause("dropped_packets_total", "Packets that ended, by cause.", |d| &d.dropped);
    by_cause("repeated_packets_total", "Packets that a link layer sent again, by cause.", |d| {
        &d.repeated
    });
    let notes = s.stages.iter().flat_map(|stage| {
        let notes = stage.happened.notes.iter();
        notes.map(|(note, n)| {
            (vec![("stage", stage.name.as_str()), ("note", note.as_str())], *n as f64)
        })
    });
    page.family("notes_total", "counter", "What hosts and agents noticed.", notes.collect());
}
