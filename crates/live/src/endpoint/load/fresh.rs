//! Probes on new connections: the handshake, and a request with its answer.

use lasthop_proto::units::{Span, Time};
use serde::Serialize;

use crate::endpoint::open::open;
use crate::endpoint::role::Request;
use crate::endpoint::{EndpointError, SendOptions, Session, socket};

/// Time limit of a handshake and of an answer after the end of the phase.
const PATIENCE: Span = Span::secs(1);

/// A new connection.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ConnectionSample {
    /// Time of the SYN since the start of the phase.
    pub at: Span,
    /// Time of the handshake and time from the request to its answer, or the error.
    pub result: Result<(Span, Span), String>,
}

/// Opens a connection every `interval` from `began` until `until`, one at a time, and closes it after the answer.
pub(super) fn connections(
    send: &SendOptions,
    request: &Request,
    interval: Span,
    began: Time,
    until: Time,
    session: &Session<'_>,
) -> Vec<ConnectionSample> {
    let mut samples = Vec::new();
    let mut due = began;
    while let Ok(true) = session.wait_until(due) {
        let now = session.clock.now();
        if now >= until {
            break;
        }
        // Connections that were due during a slow one are left out.
        due = (due + interval).max(now);
        let patience = send.connect_timeout.min(until.since(now) + PATIENCE);
        let options = SendOptions { connect_timeout: patience, ..send.clone() };
        let result = match open(&options, request, session) {
            Ok(opened) => {
                let times = (opened.handshake, opened.answer);
                socket::abort(opened.stream);
                Ok(times)
            }
            Err(EndpointError::Stopped(_)) => break,
            Err(error) => Err(error.to_string()),
        };
        samples.push(ConnectionSample { at: now.since(began), result });
    }
    samples
}
