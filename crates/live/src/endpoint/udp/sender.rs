//! Sends datagrams at a constant rate to a receiver that counts them.

use std::net::{SocketAddr, TcpStream, UdpSocket};

use lasthop_proto::units::{Rate, Span, Time};
use serde::Serialize;

use super::{HEADER, Header};
use crate::endpoint::open::{final_report, open};
use crate::endpoint::role::{Report, Request, Role};
use crate::endpoint::socket::{self, LOOK};
use crate::endpoint::{End, EndpointError, Progress, SendObserver, SendOptions, Session};

/// Time for datagrams on the way before the report is requested.
const ON_THE_WAY: Span = Span::secs(1);

/// Time limit of the report.
const PATIENCE: Span = Span::secs(10);

/// Additional time that the receiver grants after the last datagram.
const MARGIN: Span = Span::secs(20);

/// Most datagrams that are sent together after a late timer.
const BURST: u64 = 64;

/// Options of a UDP transfer.
#[derive(Clone, Debug)]
pub struct UdpOptions {
    /// Destination, source and handshake of the TCP connection that controls the transfer.
    pub send: SendOptions,
    /// Rate of the payload.
    pub rate: Rate,
    /// Payload of a datagram, bytes; at least 32.
    pub length: usize,
    /// Duration of the sending.
    pub duration: Span,
}

/// Result of a UDP transfer.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct UdpReport {
    /// Address of the datagrams' source.
    pub local: SocketAddr,
    /// Address of the receiver.
    pub peer: SocketAddr,
    /// How it ended. The counters of the receiver are known only after `Closed`.
    pub end: End,
    /// Number of datagrams that the kernel accepted.
    pub sent: u64,
    /// Payload bytes of these.
    pub bytes: u64,
    /// Number of datagrams that the kernel refused, for example because a queue was full.
    pub refused: u64,
    /// Number of datagrams that were due too late to be sent, because this machine was busy.
    pub skipped: u64,
    /// Payload of a datagram, bytes.
    pub length: usize,
    /// Start of the sending, on the session's clock.
    pub began: Time,
    /// Duration of the sending.
    pub seconds: Span,
    /// Counters of the receiver.
    pub receiver: Option<Report>,
}

impl UdpReport {
    /// Number of datagrams that did not arrive.
    pub fn lost(&self) -> Option<u64> {
        self.receiver.map(|receiver| self.sent.saturating_sub(receiver.datagrams))
    }
}

/// Sends datagrams to the receiver at `options.send.to`. The receiver must accept UDP.
///
/// # Errors
///
/// [`EndpointError`] if the connection cannot be established or the role is refused.
pub fn send_udp(
    options: &UdpOptions,
    session: &Session<'_>,
    observer: &mut dyn SendObserver,
) -> Result<UdpReport, EndpointError> {
    let UdpOptions { send, rate, duration, .. } = options;
    let length = options.length.max(HEADER);
    let whole = *duration + ON_THE_WAY + MARGIN;
    let request = Request {
        role: Role::Udp,
        bytes: None,
        duration: whole,
        congestion: None,
        marks: false,
    };
    let mut control = open(send, &request, session)?;
    // The address of a link-local network has a scope, which only the whole address contains.
    let mut local = control.stream.local_addr()?;
    local.set_port(0);
    let socket = UdpSocket::bind(local)?;
    socket.connect(send.to)?;
    socket.set_nonblocking(true)?;
    let began = session.clock.now();
    let until = began + (*duration).min(control.duration.saturating_sub(ON_THE_WAY));
    let gap = (length as u64).saturating_mul(8_000_000_000) / rate.bps().max(1);
    let gap = Span(gap.max(1));
    let mut datagram = vec![0; length];
    let (mut sent, mut refused, mut skipped) = (0, 0, 0);
    let mut number = 0;
    let mut due = began;
    let mut shown = began;
    loop {
        let now = session.clock.now();
        if now >= until || session.stopped() {
            break;
        }
        if now.since(shown) >= LOOK {
            shown = now;
            let bytes = sent * length as u64;
            observer.progress(progress(bytes));
        }
        if due > now {
            socket::wait(&mut [], due.since(now).min(until.since(now)).min(LOOK))?;
            continue;
        }
        let late = now.since(due).0 / gap.0;
        if late > BURST {
            // A burst after a pause would measure the queue of this machine.
            skipped += late - BURST;
            due += Span(gap.0.saturating_mul(late - BURST));
        }
        let header = Header { token: control.token, number, sent: now };
        datagram[..HEADER].copy_from_slice(&header.encode());
        match socket.send(&datagram) {
            Ok(_) => {
                sent += 1;
                number += 1;
            }
            Err(_) => refused += 1,
        }
        due += gap;
    }
    let seconds = session.clock.now().since(began);
    let bytes = sent * length as u64;
    observer.progress(progress(bytes));
    let stopped = session.stopped();
    let report = if stopped { None } else { report(&mut control.stream, session)? };
    let end = match report {
        Some(_) => End::Closed,
        None if session.stopped() => End::Stopped,
        None => End::Failed { why: "the receiver sent no report".to_owned() },
    };
    observer.closing();
    Ok(UdpReport {
        local: socket.local_addr()?,
        peer: send.to,
        end,
        sent,
        bytes,
        refused,
        skipped,
        length,
        began,
        seconds,
        receiver: report,
    })
}

fn progress(bytes: u64) -> Progress {
    Progress { written: bytes, acked: bytes, of: None, retransmissions: None }
}

/// Waits for datagrams on the way, and requests the report. `None` if none arrives in time.
fn report(stream: &mut TcpStream, session: &Session<'_>) -> Result<Option<Report>, EndpointError> {
    if !session.wait_until(session.clock.now() + ON_THE_WAY)? {
        return Ok(None);
    }
    Ok(final_report(stream, PATIENCE, session)?)
}
