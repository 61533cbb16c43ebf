//! `lasthop discard`: receives the data of the test sender, counts it, and discards it.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};

use lasthop_live::clock::Clock;
use lasthop_live::endpoint::{
    DEFAULT_PORT, DiscardObserver, DiscardOptions, Pattern, Received, Session, discard, listen,
    listen_everywhere,
};
use lasthop_proto::units::Span;
use lasthop_report::number::plural;

use crate::failure::Failure;
use crate::stop::Stop;
use crate::transfer::shown;
use crate::{Outcome, output};

/// Receive and throw away: the other end of `lasthop send`
#[derive(clap::Args, Debug)]
pub struct DiscardArgs {
    /// Where to listen: ADDRESS:PORT, ADDRESS or PORT [default: port 9009 of all addresses]
    #[arg(long, value_name = "ADDR:PORT", value_parser = listening)]
    listen: Option<Listen>,
    /// End after one transfer
    #[arg(long, conflicts_with = "count")]
    once: bool,
    /// End after N transfers
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Compare with the bytes that `lasthop send --bytes` sends
    #[arg(long)]
    verify: bool,
    /// Connections at the same time; further ones wait
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=1024))]
    at_once: u16,
    /// Give a connection up when nothing came for so long
    #[arg(long, value_name = "TIME", default_value = "300s")]
    idle: Span,
}

/// Where to listen.
#[derive(Clone, Copy, Debug)]
enum Listen {
    Everywhere(u16),
    At(SocketAddr),
}

fn listening(word: &str) -> Result<Listen, String> {
    if let Ok(port) = word.parse() {
        return Ok(Listen::Everywhere(port));
    }
    if let Ok(address) = word.parse() {
        return Ok(Listen::At(address));
    }
    word.trim_matches(['[', ']'])
        .parse::<IpAddr>()
        .map(|address| Listen::At(SocketAddr::new(address, DEFAULT_PORT)))
        .map_err(|_| {
            "expected an address and a port, such as `10.0.1.1:9009` or `[::1]:9`".to_owned()
        })
}

/// Runs the command.
pub fn run(args: &DiscardArgs, json: bool) -> Result<Outcome, Failure> {
    let listener = match args.listen.unwrap_or(Listen::Everywhere(DEFAULT_PORT)) {
        Listen::Everywhere(port) => listen_everywhere(port),
        Listen::At(address) => listen(address),
    }?;
    let stop = Stop::listen()?;
    let at = listener.local_addr().map_err(|error| Failure::input(error.to_string(), ""))?;
    // On stderr, so that programs read only transfers from stdout.
    let both = if at.ip().is_unspecified() && at.is_ipv6() { " (IPv6 and IPv4)" } else { "" };
    eprintln!("listening on {at}{both}");
    let options = DiscardOptions {
        at_once: args.at_once.into(),
        count: if args.once { Some(1) } else { args.count },
        verify: args.verify.then_some(Pattern { stream: 0 }),
        idle: Some(args.idle),
    };
    let session = Session { clock: Clock::start(), stop: stop.flag() };
    let mut printer =
        TransferPrinter { json, verified: args.verify, error: None, stop: stop.flag() };
    let totals = discard(&listener, &options, &session, &mut printer)
        .map_err(|error| Failure::input(format!("cannot accept connections: {error}"), ""))?;
    if let Some(error) = printer.error {
        return Err(error);
    }
    if !json {
        let bad = match totals.bad {
            0 => String::new(),
            bad => format!(", {bad} of them incomplete or with wrong bytes"),
        };
        eprintln!(
            "{}, {}{bad}",
            plural(totals.transfers, "transfer"),
            plural(totals.bytes, "byte")
        );
    }
    Ok(match (stop.requested(), totals.bad) {
        (true, _) => Outcome::Interrupted,
        (false, 0) => Outcome::Done,
        (false, _) => Outcome::No,
    })
}

/// Prints each transfer.
struct TransferPrinter<'a> {
    json: bool,
    verified: bool,
    error: Option<Failure>,
    stop: &'a AtomicBool,
}

impl DiscardObserver for TransferPrinter<'_> {
    fn received(&mut self, transfer: &Received) {
        let line = if self.json {
            shown::received(transfer)
        } else {
            shown::line(transfer, self.verified)
        };
        let print = if self.json { output::exact } else { output::print };
        if let Err(error) = print(&line) {
            // The reader of the output has exited.
            self.error.get_or_insert(error);
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}
