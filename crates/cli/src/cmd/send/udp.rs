//! `lasthop send -u`: datagrams at a constant rate, with `-R` from the receiver.

use std::net::SocketAddr;

use lasthop_live::endpoint::{
    End, EndpointError, Progress as Sent, SendObserver, SendOptions, Session, UdpOptions,
    UdpReport, receive_udp, send_udp,
};
use lasthop_proto::units::{Rate, Span};

use super::interval::Intervals;
use super::{Args, first_that_answers};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::transfer::shown;
use crate::{Outcome, format, output};

/// Default rate of the payload, bit/s: that of one video call.
const RATE: u64 = 1_000_000;

/// Default payload of a datagram, bytes. It fits a path with tunnels.
const LENGTH: u16 = 1200;

/// Default duration.
const TIME: Span = Span::secs(10);

/// Sends and prints the results.
pub fn run(
    args: &Args,
    addresses: &[SocketAddr],
    session: &Session<'_>,
    json: bool,
) -> Result<Outcome, Failure> {
    let intervals = args.intervals(session, json);
    let progress = Progress::of_bytes(None, json);
    let mut watch = Watch { progress: &progress, intervals: intervals.as_ref(), sent: 0 };
    let result = first_that_answers(addresses, |to| {
        let options = UdpOptions {
            send: SendOptions {
                from: args.source,
                connect_timeout: args.connect_timeout,
                ..SendOptions::new(to)
            },
            rate: args.rate.or(Rate::from_bps(RATE)).ok_or_else(no_rate)?,
            length: args.length.unwrap_or(LENGTH).into(),
            duration: args.time.unwrap_or(TIME),
        };
        let transfer = if args.reverse { receive_udp } else { send_udp };
        transfer(&options, session, &mut watch)
    });
    progress.finish();
    let intervals = intervals.map(Intervals::finish);
    let report = match result {
        Ok(report) => report,
        Err(EndpointError::Stopped(_)) => return Ok(Outcome::Interrupted),
        Err(error) => return Err(error.into()),
    };
    show(args, &report, intervals, json)?;
    Ok(match report.end {
        End::Closed => Outcome::Done,
        End::Stopped => Outcome::Interrupted,
        End::Idle | End::Failed { .. } => Outcome::No,
    })
}

fn no_rate() -> EndpointError {
    std::io::Error::from(std::io::ErrorKind::InvalidInput).into()
}

fn show(
    args: &Args,
    report: &UdpReport,
    intervals: Option<serde_json::Value>,
    json: bool,
) -> Result<(), Failure> {
    if !json {
        return output::print(&shown::udp_table(report, args.units));
    }
    let mut document = serde_json::json!({ "transfers": [], "udp": shown::udp(report) });
    if let Some(intervals) = intervals {
        document["intervals"] = intervals;
    }
    output::print_json(format::SEND, &document)
}

/// Shows progress.
struct Watch<'a> {
    progress: &'a Progress,
    intervals: Option<&'a Intervals>,
    sent: u64,
}

impl SendObserver for Watch<'_> {
    fn progress(&mut self, sent: Sent) {
        let more = sent.written - self.sent;
        self.sent = sent.written;
        self.progress.advance(more);
        if let Some(intervals) = self.intervals {
            intervals.count(more, None, self.progress);
        }
    }
}
