//! `lasthop lab`: the laboratory in a browser, run natively by this program.

mod server;

use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::{format, output};

const EXAMPLES: &str = "\
Examples:
  lasthop lab                       prints the address to open in a browser
  lasthop lab --port 8080           always the same one
  lasthop lab --directory lectures  offers the scenarios of another directory

Only this machine can open the page. It offers the scenarios of the directory (*.toml) and the
built-in ones, and its runs are made by this program. Ctrl-C ends it.
docs/how-to/lab.md explains it, and the page that needs no program.";

/// Serve the laboratory to a browser on this machine
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Port on loopback; any free one without it
    #[arg(long, default_value_t = 0, value_name = "PORT")]
    port: u16,
    /// Directory whose scenarios are offered
    #[arg(long, default_value = ".", value_name = "DIR")]
    directory: PathBuf,
}

/// Runs the command, until it is interrupted.
pub fn run(args: &Args, json: bool) -> Result<Outcome, Failure> {
    if !args.directory.is_dir() {
        let what = format!("{} is no directory", args.directory.display());
        return Err(Failure::input(what, "name the directory that has your scenarios"));
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port)).map_err(|error| {
        let what = format!("cannot listen on port {} of loopback: {error}", args.port);
        Failure::input(what, "leave `--port` out, then any free one is taken")
    })?;
    let cannot = |error: std::io::Error| Failure::input(format!("cannot serve: {error}"), "");
    let port = listener.local_addr().map_err(cannot)?.port();
    let url = format!("http://127.0.0.1:{port}/");
    match json {
        true => output::print_json(format::LAB, &serde_json::json!({ "url": url }))?,
        false => output::print(&format!("The laboratory is at {url} (Ctrl-C ends it)\n"))?,
    }
    server::serve(listener, port, args.directory.clone()).map_err(cannot)?;
    Ok(Outcome::Done)
}
