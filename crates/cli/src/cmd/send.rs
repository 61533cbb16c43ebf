//! `lasthop send`: the test sender, bulk transfers over the kernel's TCP.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use lasthop_live::clock::Clock;
use lasthop_live::endpoint::{
    End, EndpointError, Pattern, Progress as Sent, SendObserver, SendOptions, Session, Source, send,
};
use lasthop_observe::Sink as _;
use lasthop_observe::csv::TcbCsv;
use lasthop_proto::event::Event;
use lasthop_proto::units::{Bytes, Span};

use crate::failure::Failure;
use crate::output::AtomicFile;
use crate::progress::Progress;
use crate::stop::Stop;
use crate::transfer::{Destination, Family, shown};
use crate::{Outcome, format, output};

/// Interval of the control block's samples with `--debug`.
const SAMPLE: Span = Span::millis(2);

/// Default size of a transfer.
const AMOUNT: Bytes = Bytes(2_000_000);

/// Send bulk data to a discard receiver and time it
#[derive(clap::Args, Debug)]
pub struct SendArgs {
    /// Receiver; the default port is 9009
    #[arg(value_name = "HOST[:PORT]")]
    destination: Destination,
    /// Number of bytes to send, in the pattern that `lasthop discard --verify` checks [default: 2MB]
    #[arg(long, short, value_name = "SIZE")]
    bytes: Option<Bytes>,
    /// Congestion control of the kernel, such as `reno` or `cubic`
    #[arg(long, value_name = "NAME")]
    congestion: Option<String>,
    /// Largest segment
    #[arg(long, value_name = "BYTES")]
    mss: Option<u16>,
    /// Send buffer; the kernel doubles it
    #[arg(long, value_name = "SIZE")]
    send_buffer: Option<Bytes>,
    /// Send small segments at once (TCP_NODELAY)
    #[arg(long)]
    no_delay: bool,
    /// Address to send from, and a port if it matters
    #[arg(long, value_name = "ADDR[:PORT]", value_parser = source_address)]
    source: Option<SocketAddr>,
    /// Write the control block over time to this file
    #[arg(long, value_name = "FILE")]
    debug: Option<PathBuf>,
    /// Abort if the connection is not open after this time
    #[arg(long, value_name = "TIME", default_value = "10s")]
    connect_timeout: Span,
    /// Abort a transfer without progress for this time
    #[arg(long, value_name = "TIME", default_value = "300s")]
    idle: Span,
    /// IPv4 only
    #[arg(short = '4', conflicts_with = "ipv6")]
    ipv4: bool,
    /// IPv6 only
    #[arg(short = '6')]
    ipv6: bool,
}

impl SendArgs {
    fn family(&self) -> Family {
        match (self.ipv4, self.ipv6) {
            (true, _) => Family::V4,
            (_, true) => Family::V6,
            _ => Family::Any,
        }
    }
}

/// The result of `attempt` for the first address that can be reached.
fn first_that_answers<T>(
    addresses: &[SocketAddr],
    mut attempt: impl FnMut(SocketAddr) -> Result<T, EndpointError>,
) -> Result<T, EndpointError> {
    let mut last = None;
    for address in addresses {
        match attempt(*address) {
            Err(error) if error.is_of_the_way() => last = Some(error),
            result => return result,
        }
    }
    Err(last.unwrap_or_else(|| io::Error::from(io::ErrorKind::AddrNotAvailable).into()))
}

fn source_address(word: &str) -> Result<SocketAddr, String> {
    let bare = word.parse().map(|address| SocketAddr::new(address, 0));
    bare.or_else(|_| word.parse())
        .map_err(|_| "expected an address of this machine, such as `10.0.0.1`".to_owned())
}

/// Runs the command.
pub fn run(args: &SendArgs, json: bool) -> Result<Outcome, Failure> {
    let stop = Stop::listen()?;
    let session = Session { clock: Clock::start(), stop: stop.flag() };
    let addresses = args.destination.addresses(args.family())?;
    let debug = |error, path: &Path| {
        Failure::file(path, error, "choose a file that you may write, with --debug FILE")
    };
    let create = |path: &PathBuf| {
        AtomicFile::create(path).map(TcbCsv::new).map_err(|error| debug(error, path))
    };
    let trace = args.debug.as_ref().map(create).transpose()?;
    let source = Source { pattern: Pattern { stream: 0 }, bytes: args.bytes.unwrap_or(AMOUNT).0 };
    let progress = Progress::of_bytes(Some(source.bytes), json);
    let mut watch = Watch { progress: &progress, acked: 0, trace };
    let result = first_that_answers(&addresses, |address| {
        let options = SendOptions {
            from: args.source,
            congestion: args.congestion.clone(),
            mss: args.mss,
            send_buffer: args.send_buffer,
            no_delay: args.no_delay,
            connect_timeout: args.connect_timeout,
            idle: Some(args.idle),
            sample: args.debug.is_some().then_some(SAMPLE),
            ..SendOptions::new(address)
        };
        send(&options, source, &session, &mut watch)
    });
    if let (Some(trace), Some(path)) = (watch.trace, &args.debug) {
        let written = trace.finish().and_then(AtomicFile::commit_unsynced);
        written.map_err(|error| debug(error, path))?;
    }
    progress.finish();
    let report = match result {
        Ok(report) => Some(report),
        Err(EndpointError::Stopped(_)) => None,
        Err(error) => return Err(error.into()),
    };
    if json {
        let transfers: Vec<_> = report.iter().map(shown::sent).collect();
        output::print_json(format::SEND, &serde_json::json!({ "transfers": transfers }))?;
    } else if let Some(report) = &report {
        output::print(&shown::table(report))?;
    }
    Ok(match report {
        Some(report) if report.end == End::Closed => Outcome::Done,
        _ if stop.requested() => Outcome::Interrupted,
        _ => Outcome::No,
    })
}

/// Shows progress and writes the trace.
struct Watch<'a> {
    progress: &'a Progress,
    acked: u64,
    trace: Option<TcbCsv<AtomicFile>>,
}

impl SendObserver for Watch<'_> {
    fn progress(&mut self, sent: Sent) {
        self.progress.advance(sent.acked - self.acked);
        self.acked = sent.acked;
    }

    fn event(&mut self, event: &Event) {
        if let Some(trace) = &mut self.trace {
            trace.event(event);
        }
    }
}
