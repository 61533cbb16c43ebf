//! `lasthop send`: the test sender, bulk transfers over the kernel's TCP.

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;

use lasthop_live::clock::Clock;
use lasthop_live::endpoint::{
    End, EndpointError, Pattern, Progress as Sent, SendObserver, SendOptions, SendReport, Session,
    Source, send,
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
    /// Send the data from stdin
    #[arg(value_name = "-", value_parser = ["-"], conflicts_with_all = ["bytes", "file"])]
    stdin: Option<String>,
    /// Number of bytes to send, in the pattern that `lasthop discard --verify` checks [default: 2MB]
    #[arg(long, short, value_name = "SIZE", conflicts_with = "file")]
    bytes: Option<Bytes>,
    /// Send a file
    #[arg(long, short, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Number of simultaneous transfers
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    at_once: u16,
    /// Number of repetitions, one after the other
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    repeat: u32,
    /// Minimum time between the starts of two repetitions
    #[arg(long, value_name = "TIME", requires = "repeat")]
    interval: Option<Span>,
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

/// Appends the reports of simultaneous transfers, and returns the first error. A stopped transfer without a report is none.
fn collect<R>(results: Vec<Result<R, EndpointError>>, reports: &mut Vec<R>) -> Result<(), Failure> {
    let mut first = Ok(());
    for result in results {
        match result {
            Ok(report) => reports.push(report),
            Err(EndpointError::Stopped(_)) => {}
            Err(error) => first = first.and(Err(error.into())),
        }
    }
    first
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
    if args.stdin.is_some() && (args.at_once > 1 || args.repeat > 1) {
        return Err(Failure::input(
            "stdin can be sent only once",
            "leave out --at-once and --repeat, or send a file: --file FILE",
        ));
    }
    let job = Job { args, json };
    let stop = Stop::listen()?;
    job.run(&Session { clock: Clock::start(), stop: stop.flag() })
}

/// The trace, shared by simultaneous transfers.
type Trace = Mutex<TcbCsv<AtomicFile>>;

/// The size and form of the transfer.
struct Job<'a> {
    args: &'a SendArgs,
    json: bool,
}

impl Job<'_> {
    /// Makes all transfers and prints the results.
    fn run(&self, session: &Session<'_>) -> Result<Outcome, Failure> {
        let addresses = self.args.destination.addresses(self.args.family())?;
        let help = "choose a file that you may write, with --debug FILE";
        let debug = |error, path: &Path| Failure::file(path, error, help);
        let trace = match &self.args.debug {
            Some(path) => {
                let file = AtomicFile::create(path).map_err(|error| debug(error, path))?;
                Some(Mutex::new(TcbCsv::new(file)))
            }
            None => None,
        };
        let mut reports = Vec::new();
        let result = self.rounds(&addresses, session, trace.as_ref(), &mut reports);
        if let (Some(trace), Some(path)) = (trace, &self.args.debug) {
            let csv = trace.into_inner().unwrap_or_else(PoisonError::into_inner);
            csv.finish()
                .and_then(AtomicFile::commit_unsynced)
                .map_err(|error| debug(error, path))?;
        }
        if result.is_ok() || !reports.is_empty() {
            self.show(&reports)?;
        }
        result?;
        let stopped = session.stop.load(std::sync::atomic::Ordering::Relaxed);
        let requested = u64::from(self.args.repeat) * u64::from(self.args.at_once);
        let complete = reports.iter().filter(|report| report.end == End::Closed).count() as u64;
        Ok(match (complete == requested, stopped) {
            (true, _) => Outcome::Done,
            (false, true) => Outcome::Interrupted,
            (false, false) => Outcome::No,
        })
    }

    fn rounds(
        &self,
        addresses: &[SocketAddr],
        session: &Session<'_>,
        trace: Option<&Trace>,
        reports: &mut Vec<SendReport>,
    ) -> Result<(), Failure> {
        let mut next = session.clock.now();
        for _ in 0..self.args.repeat {
            let waited = session.wait_until(next);
            if !waited.map_err(|error| Failure::input(error.to_string(), ""))? {
                return Ok(());
            }
            next = session.clock.now() + self.args.interval.unwrap_or(Span::ZERO);
            self.round(addresses, session, trace, reports)?;
        }
        Ok(())
    }

    /// Makes the simultaneous transfers of one round.
    fn round(
        &self,
        addresses: &[SocketAddr],
        session: &Session<'_>,
        trace: Option<&Trace>,
        reports: &mut Vec<SendReport>,
    ) -> Result<(), Failure> {
        let sources: Vec<Source> =
            (0..self.args.at_once).map(|_| self.source()).collect::<Result<_, _>>()?;
        let total = sources.iter().map(Source::bytes).sum();
        let progress = Progress::of_bytes(total, self.json);
        let results: Vec<_> = thread::scope(|scope| {
            let begin = |source| {
                let mut watch = Watch { progress: &progress, acked: 0, trace };
                scope.spawn(move || self.transfer(addresses, source, session, &mut watch))
            };
            let threads: Vec<_> = sources.into_iter().map(begin).collect();
            threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
        });
        progress.finish();
        collect(results, reports)
    }

    fn source(&self) -> Result<Source, Failure> {
        if self.args.stdin.is_some() {
            let stdin = io::stdin().as_fd().try_clone_to_owned();
            let help = "give something to send: lasthop send laptop - < FILE";
            return stdin
                .map(|stdin| Source::File(stdin.into()))
                .map_err(|error| Failure::file(Path::new("stdin"), error, help));
        }
        let Some(path) = &self.args.file else {
            return Ok(Source::Pattern {
                pattern: Pattern { stream: 0 },
                bytes: self.args.bytes.unwrap_or(AMOUNT).0,
            });
        };
        let file = File::open(path).and_then(|file| {
            if file.metadata()?.is_dir() {
                Err(io::ErrorKind::IsADirectory.into())
            } else {
                Ok(file)
            }
        });
        file.map(Source::File).map_err(|error| {
            Failure::file(
                path,
                error,
                "give a file that you may read, or --bytes 2MB for a pattern",
            )
        })
    }

    /// Makes one transfer to the first address that answers.
    fn transfer(
        &self,
        addresses: &[SocketAddr],
        mut source: Source,
        session: &Session<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<SendReport, EndpointError> {
        first_that_answers(addresses, |address| {
            let options = SendOptions {
                from: self.args.source,
                congestion: self.args.congestion.clone(),
                mss: self.args.mss,
                send_buffer: self.args.send_buffer,
                no_delay: self.args.no_delay,
                connect_timeout: self.args.connect_timeout,
                idle: Some(self.args.idle),
                sample: watch.trace.map(|_| SAMPLE),
                ..SendOptions::new(address)
            };
            send(&options, &mut source, session, watch)
        })
    }

    fn show(&self, reports: &[SendReport]) -> Result<(), Failure> {
        if self.json {
            let transfers: Vec<_> = reports.iter().map(shown::sent).collect();
            return output::print_json(
                format::SEND,
                &serde_json::json!({ "transfers": transfers }),
            );
        }
        if reports.is_empty() {
            return Ok(());
        }
        output::print(&shown::table(reports))
    }
}

/// Shows progress and writes the trace.
struct Watch<'a> {
    progress: &'a Progress,
    acked: u64,
    trace: Option<&'a Trace>,
}

impl SendObserver for Watch<'_> {
    fn progress(&mut self, sent: Sent) {
        let more = sent.acked - self.acked;
        self.acked = sent.acked;
        self.progress.advance(more);
    }

    fn event(&mut self, event: &Event) {
        if let Some(trace) = self.trace {
            trace.lock().unwrap_or_else(PoisonError::into_inner).event(event);
        }
    }
}
