//! `lasthop lab`: the laboratory in a browser, run natively by this program.

mod server;

use std::fmt::Write as _;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};

use lasthop_scenario::{example, nearest_example};

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::{format, output};

/// Serve the laboratory to a browser on this machine
#[derive(clap::Args, Debug)]
pub struct LabArgs {
    /// Scenario to open: a built-in one or a TOML file
    scenario: Option<String>,
    /// Port on loopback [default: any free one]
    #[arg(long, default_value_t = 0, hide_default_value = true, value_name = "PORT")]
    port: u16,
    /// Directory whose scenarios are offered [default: that of SCENARIO, or the current one]
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
}

impl LabArgs {
    /// The directory, and the scenario as the page lists it: a built-in name or the name of a file in the directory.
    fn resolved(&self) -> (PathBuf, Option<&str>) {
        let here = || PathBuf::from(".");
        let word = self.scenario.as_deref();
        let path = word.map(Path::new).filter(|path| self.directory.is_none() && path.is_file());
        match path.and_then(|path| Some((path.parent()?, path.file_name()?.to_str()?))) {
            Some((parent, name)) if parent == Path::new("") => (here(), Some(name)),
            Some((parent, name)) => (parent.to_owned(), Some(name)),
            None => (self.directory.clone().unwrap_or_else(here), word),
        }
    }
}

/// The part of the address that opens a scenario.
fn fragment(name: &str, directory: &Path) -> Result<String, Failure> {
    let is_offered = name.ends_with(".toml") && directory.join(name).is_file();
    if !is_offered && example(name).is_none() {
        let message =
            format!("there is neither a built-in scenario `{name}` nor a file *.toml of this name");
        let help = match nearest_example(name) {
            Some(near) => format!("did you mean the built-in scenario `{near}`?"),
            None => "give a TOML file or one of `lasthop list scenarios`".to_owned(),
        };
        return Err(Failure::input(message, help));
    }
    let mut fragment = "#".to_owned();
    for byte in name.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-' => {
                fragment.push(byte.into())
            }
            _ => drop(write!(fragment, "%{byte:02X}")),
        }
    }
    Ok(fragment)
}

/// Runs the command, until it is interrupted.
pub fn run(args: &LabArgs, json: bool) -> Result<Outcome, Failure> {
    let (directory, scenario) = args.resolved();
    if !directory.is_dir() {
        let message = format!("{} is no directory", directory.display());
        return Err(Failure::input(message, "name the directory that has your scenarios"));
    }
    let fragment = scenario.map(|name| fragment(name, &directory)).transpose()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port)).map_err(|error| {
        let message = format!("cannot listen on port {} of loopback: {error}", args.port);
        Failure::input(message, "leave `--port` out, then any free one is taken")
    })?;
    let cannot = |error: std::io::Error| Failure::input(format!("cannot serve: {error}"), "");
    let port = listener.local_addr().map_err(cannot)?.port();
    let url = format!("http://127.0.0.1:{port}/{}", fragment.unwrap_or_default());
    match json {
        true => output::print_json(format::LAB, &serde_json::json!({ "url": url }))?,
        false => output::print(&format!("The laboratory is at {url} (Ctrl-C ends it)\n"))?,
    }
    server::serve(listener, port, directory).map_err(cannot)?;
    Ok(Outcome::Done)
}
