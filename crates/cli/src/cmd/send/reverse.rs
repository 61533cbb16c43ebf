//! `lasthop send -R`: the receiver sends.

use std::net::SocketAddr;
use std::thread;

use lasthop_live::endpoint::{
    End, Progress as Got, ReverseReport, SendObserver, SendOptions, Session, receive,
};
use lasthop_proto::units::Span;

use super::interval::Intervals;
use super::{Args, collect, first_that_answers};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::transfer::settings::AMOUNT;
use crate::transfer::shown;
use crate::{Outcome, format, output};

/// Time limit of a transfer, which the receiver may reduce.
const LONGEST: Span = Span::secs(86_400);

/// Makes all transfers and prints the results.
pub fn run(
    args: &Args,
    addresses: &[SocketAddr],
    session: &Session<'_>,
    json: bool,
) -> Result<Outcome, Failure> {
    let intervals = args.intervals(session, json);
    let mut reports = Vec::new();
    let mut next = session.clock.now();
    let mut failed = Ok(());
    for _ in 0..args.repeat {
        let waited = session.wait_until(next);
        if !waited.map_err(|error| Failure::input(error.to_string(), ""))? {
            break;
        }
        next = session.clock.now() + args.every.unwrap_or(Span::ZERO);
        failed = round(args, addresses, session, intervals.as_ref(), json, &mut reports);
        if failed.is_err() {
            break;
        }
    }
    let intervals = intervals.map(Intervals::finish);
    if failed.is_ok() || !reports.is_empty() {
        show(args, &reports, intervals, json)?;
    }
    failed?;
    let requested = u64::from(args.repeat) * u64::from(args.count);
    let good = |report: &&ReverseReport| report.end == End::Closed && report.wrong.is_none();
    let complete = reports.iter().filter(good).count() as u64;
    let stopped = session.stop.load(std::sync::atomic::Ordering::Relaxed);
    Ok(match (complete == requested, stopped) {
        (true, _) => Outcome::Done,
        (false, true) => Outcome::Interrupted,
        (false, false) => Outcome::No,
    })
}

/// Makes the simultaneous transfers of one round.
fn round(
    args: &Args,
    addresses: &[SocketAddr],
    session: &Session<'_>,
    intervals: Option<&Intervals>,
    json: bool,
    reports: &mut Vec<ReverseReport>,
) -> Result<(), Failure> {
    let bytes = args.bytes.unwrap_or(AMOUNT).0;
    let total = bytes.saturating_mul(args.count.into());
    let progress = Progress::of_bytes(Some(total), json);
    let results: Vec<_> = thread::scope(|scope| {
        let begin = |_| {
            let mut watch = Watch { progress: &progress, intervals, received: 0 };
            scope.spawn(move || {
                first_that_answers(addresses, |to| {
                    let options = SendOptions {
                        from: args.source,
                        congestion: args.congestion.clone(),
                        connect_timeout: args.connect_timeout,
                        idle: Some(args.idle),
                        ..SendOptions::new(to)
                    };
                    receive(&options, bytes, LONGEST, session, &mut watch)
                })
            })
        };
        let threads: Vec<_> = (0..args.count).map(begin).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    progress.finish();
    collect(results, reports)
}

fn show(
    args: &Args,
    reports: &[ReverseReport],
    intervals: Option<serde_json::Value>,
    json: bool,
) -> Result<(), Failure> {
    if json {
        let transfers: Vec<_> = reports.iter().map(shown::reverse).collect();
        let mut document = serde_json::json!({ "transfers": transfers });
        if let Some(intervals) = intervals {
            document["intervals"] = intervals;
        }
        return output::print_json(format::SEND, &document);
    }
    if reports.is_empty() {
        return Ok(());
    }
    output::print(&shown::reverse_table(reports, args.units))
}

/// Shows progress.
struct Watch<'a> {
    progress: &'a Progress,
    intervals: Option<&'a Intervals>,
    received: u64,
}

impl SendObserver for Watch<'_> {
    fn progress(&mut self, got: Got) {
        let more = got.acked - self.received;
        self.received = got.acked;
        self.progress.advance(more);
        if let Some(intervals) = self.intervals {
            intervals.count(more, None, self.progress);
        }
    }
}
