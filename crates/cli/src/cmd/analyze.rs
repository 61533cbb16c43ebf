//! `lasthop analyze`: what happened to TCP in a capture.

use std::path::PathBuf;

use crate::Outcome;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  lasthop analyze trace.pcapng                    one capture
  lasthop analyze wired.pcap wireless.pcap        both sides of a base station
  lasthop analyze trace.pcap --json | jq .flows   for programs";

/// Say what happened to TCP in a capture: losses, retransmissions, stalls, and why
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Captures in pcap or pcapng form
    #[arg(value_name = "CAPTURE", required = true)]
    pub captures: Vec<PathBuf>,
    /// Also write tables and plots to this directory
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
}

/// Runs the command. Captures are read by `lasthop-analyze`; this is the one place that calls it.
pub fn run(args: &Args, _json: bool) -> Result<Outcome, Failure> {
    let Args { captures, output: _ } = args;
    if let Some(missing) = captures.iter().find(|path| !path.is_file()) {
        let error = std::io::Error::from(std::io::ErrorKind::NotFound);
        return Err(Failure::file(missing, error, "give one or more capture files"));
    }
    Err(Failure::not_in_this_build(
        "`lasthop analyze`",
        "tshark or tcptrace read captures meanwhile",
    ))
}
