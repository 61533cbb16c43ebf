//! Sends datagrams at a constant rate to a receiver that counts them.

use std::net::TcpStream;

use super::pace::Pace;
use super::{HEADER, Header, MARGIN, ON_THE_WAY, PATIENCE, UdpOptions, UdpReport, socket_of};
use crate::endpoint::open::{final_report, open};
use crate::endpoint::role::{Report, Request, Role};
use crate::endpoint::socket::{self, LOOK};
use crate::endpoint::{End, EndpointError, Progress, SendObserver, Session};

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
    let request = Request { duration: whole, ..Request::new(Role::Udp) };
    let mut control = open(send, &request, session)?;
    let socket = socket_of(&control.stream, send.to)?;
    let began = session.clock.now();
    let until = began + (*duration).min(control.duration.saturating_sub(ON_THE_WAY));
    let mut datagram = vec![0; length];
    let (mut sent, mut refused) = (0, 0);
    let mut pace = Pace::new(*rate, length, began);
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
        if !pace.departs(now) {
            let left = pace.due().since(now).min(until.since(now)).min(LOOK);
            socket::wait(&mut [], left)?;
            continue;
        }
        let header = Header { token: control.token, number: sent, sent: now };
        datagram[..HEADER].copy_from_slice(&header.encode());
        match socket.send(&datagram) {
            Ok(_) => sent += 1,
            Err(_) => refused += 1,
        }
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
        reverse: false,
        local: socket.local_addr()?,
        peer: send.to,
        end,
        sent,
        bytes,
        refused,
        skipped: pace.skipped,
        limited: None,
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
