//! `lasthop testbed`: real hosts on this machine, behind a base station.

mod enter;
mod spec;

pub use enter::prompted;

use std::fmt::Write as _;
use std::process::Command;

use clap::Subcommand;
use lasthop_live::control::{self, About, Running};
use lasthop_live::counters::{Counters, Tap};
use lasthop_live::testbed::keep::{self, Ended, Entry, Held, Home, Ready, Record, Status, Stop};
use lasthop_live::testbed::{Error, Net, Side, probe};
use lasthop_live::world;
use lasthop_scenario::LivePath;
use serde::Serialize;

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::sweep::testbed::Order;
use crate::{format, output, style};

/// Default name of a testbed.
const DEFAULT_NAME: &str = "testbed";

/// Real hosts on this machine, in network namespaces behind a base station
#[derive(clap::Args, Debug)]
pub struct TestbedArgs {
    #[command(subcommand)]
    command: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Start a testbed in the background
    Up(spec::TestbedSpecArgs),
    /// Run a program on a host
    Exec(enter::Exec),
    /// Open a shell on a host
    Shell(enter::Shell),
    /// List testbeds, with their hosts
    #[command(visible_alias = "status")]
    List {
        /// Only this one; exit code 1 if it is not up
        #[arg(value_name = "NAME")]
        name: Option<String>,
    },
    /// End a testbed and the programs that run inside
    Down {
        /// Which; not needed if only one is up
        #[arg(value_name = "NAME")]
        name: Option<String>,
    },
    /// Remove what killed testbeds have left
    Clean,
    /// The background process of a testbed
    #[command(hide = true)]
    Hold,
    /// Try what a testbed needs, for `lasthop doctor`
    #[command(hide = true)]
    Probe,
}

/// Runs the command.
pub fn run(args: &TestbedArgs, json: bool) -> Result<Outcome, Failure> {
    match &args.command {
        Verb::Up(args) => up(args, json),
        Verb::Exec(args) => args.run(),
        Verb::Shell(args) => args.run(),
        Verb::List { name } => list(name.as_deref(), json),
        Verb::Down { name } => {
            let ended = keep::down(&Home::open()?, name.as_deref())?;
            let left = !ended.left.is_empty();
            print_ended(&[ended], json)?;
            Ok(if left { Outcome::No } else { Outcome::Done })
        }
        Verb::Clean => {
            let ended = keep::clean(&Home::open()?)?;
            let left = ended.iter().any(|ended| !ended.left.is_empty());
            print_ended(&ended, json)?;
            Ok(if left { Outcome::No } else { Outcome::Done })
        }
        Verb::Hold => {
            // Errors are in the log, and were sent to `up`.
            keep::hold(serve)?;
            Ok(Outcome::Done)
        }
        Verb::Probe => {
            output::exact(&output::json(&probe::probe())?)?;
            Ok(Outcome::Done)
        }
    }
}

/// Name of the control socket in a testbed's directory.
const SOCKET: &str = "control.sock";

/// The base station's loop while the testbed is up: carries packets along the scenario's path, and answers
/// `lasthop ctl`.
fn serve(net: &Net, ready: Ready, stop: Stop, held: &Held<'_>) -> Result<(), Error> {
    let order: Order = serde_json::from_str(held.payload)
        .map_err(|error| Error::new(format!("cannot parse the order: {error}"), ""))?;
    let (path, scenario) = LivePath::of_scenario(&order.text, &order.name, &order.arguments())
        .map_err(|lasthop_scenario::Error(why)| Error::new(why.message, why.help))?;
    let mut station = world::standing(net, &scenario)?;
    let counters = Counters::new(station.path().stages().len());
    let name = held.name.to_owned();
    let about = About { world: "testbed", name, seed: scenario.first_seed };
    let running = Running::new(about, station.handle(), path, counters.clone(), None);
    let guard = control::serve(running, &held.dir.join(SOCKET))
        .map_err(|error| Error::new(format!("cannot serve the control socket: {error}"), ""))?;
    ready.say()?;
    let ended = station.run(&mut Tap(counters), &mut |_, _, _| !stop.requested());
    drop(guard);
    ended.map_err(|error| {
        Error::new(format!("the base station stopped: {error}"), "is an interface gone?")
    })
}

/// This program with a hidden command.
pub fn own(arguments: &[&str]) -> Command {
    // Not by its path, since the file may have been replaced meanwhile.
    let mut command = Command::new("/proc/self/exe");
    command.args(arguments);
    command
}

fn up(args: &spec::TestbedSpecArgs, json: bool) -> Result<Outcome, Failure> {
    let request = args.request()?;
    let record = keep::up(&Home::open()?, own(&["testbed", "hold"]), request)?;
    if json {
        output::print_json(format::TESTBED, &record)?;
    } else {
        let name = match record.name.as_str() {
            DEFAULT_NAME => String::new(),
            name => format!("--name {name} "),
        };
        let hosts_of = |side| record.hosts.iter().find(|h| h.side == Some(side));
        let ends = [hosts_of(Side::Left), hosts_of(Side::Right)];
        let [left, right] = ends.map(|host| host.map_or("", |host| host.name.as_str()));
        output::print(&format!(
            "{}\ntry: lasthop testbed exec {name}{left} -- ping -c 3 {right}\n",
            hosts(&record, Status::Up)
        ))?;
    }
    Ok(Outcome::Done)
}

fn list(name: Option<&str>, json: bool) -> Result<Outcome, Failure> {
    let mut entries = Home::open()?.entries()?;
    if let Some(name) = name {
        entries.retain(|entry| entry.name == name);
    }
    if json {
        output::print_json(format::TESTBED, &serde_json::json!({ "testbeds": entries }))?;
    } else if entries.is_empty() {
        output::print(&match name {
            Some(name) => {
                format!("no testbed `{name}`; `lasthop testbed up --name {name}` starts one\n")
            }
            None => "no testbed is up; `lasthop testbed up` starts one\n".to_owned(),
        })?;
    } else {
        let texts: Vec<_> = entries.iter().map(entry_text).collect();
        output::print(&texts.join("\n"))?;
    }
    let no = name.is_some() && !entries.iter().any(|entry| entry.status == Status::Up);
    Ok(if no { Outcome::No } else { Outcome::Done })
}

fn entry_text(entry: &Entry) -> String {
    match (&entry.record, entry.status) {
        (Some(record), status) => hosts(record, status),
        (None, Status::Starting) => format!("{}  starting\n", style::heading(&entry.name)),
        (None, _) => format!("{}  {}\n", style::heading(&entry.name), dead()),
    }
}

fn dead() -> String {
    style::bad("dead; `lasthop testbed clean` removes what is left")
}

fn hosts(record: &Record, status: Status) -> String {
    let state = match status {
        Status::Up => {
            format!("{}  {}, process {}", style::good("up"), record.origin, record.process.pid)
        }
        Status::Starting => "starting".to_owned(),
        Status::Dead => dead(),
    };
    let mut text = format!("{}  {state}\n", style::heading(&record.name));
    let width = record.hosts.iter().map(|host| host.name.len()).max().unwrap_or(0);
    for side in [Some(Side::Left), None, Some(Side::Right)] {
        for host in record.hosts.iter().filter(|host| host.side == side) {
            let position = match side {
                Some(Side::Left) => "wired side",
                None => "base station",
                Some(Side::Right) => "wireless side",
            };
            let v4 = host.v4.map(|address| address.to_string());
            let v6 = host.v6.map(|address| address.to_string());
            let words: Vec<_> = v4.into_iter().chain(v6).chain(host.preset.clone()).collect();
            let line = format!("  {:<width$}  {position:<13}  {}", host.name, words.join("  "));
            let _ = writeln!(text, "{}", line.trim_end());
        }
    }
    text
}

/// Ended testbeds, for JSON.
#[derive(Serialize)]
struct EndedAnswer<'a> {
    testbeds: &'a [Ended],
}

fn print_ended(ended: &[Ended], json: bool) -> Result<(), Failure> {
    if json {
        return output::print_json(format::TESTBED, &EndedAnswer { testbeds: ended });
    }
    let mut text = String::new();
    if ended.is_empty() {
        text.push_str("nothing is left of earlier testbeds\n");
    }
    for Ended { name, was_up, ended, left } in ended {
        let state = if *was_up { "is down" } else { "was dead; what it left is removed" };
        let _ = writeln!(text, "{}  {state}", style::heading(name));
        for (pid, program) in ended {
            let _ = writeln!(text, "  ended {program} (process {pid}), which ran inside");
        }
        for (pid, program) in left {
            let _ = writeln!(text, "  {} {program} (process {pid})", style::bad("could not end"));
        }
    }
    output::print(&text)
}
