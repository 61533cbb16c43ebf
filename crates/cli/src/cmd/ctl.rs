//! `lasthop ctl`: queries and changes a running station or testbed.

use std::io::{ErrorKind, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use lasthop_live::control::client::{Client, directories, listening};
use lasthop_live::control::protocol::{Endings, Request, Response, Status, Trouble};
use lasthop_observe::subscribers::{Order, Prefix};
use lasthop_proto::units::Span;
use serde_json::Value;

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::{format, output, style, watch};

/// Query, change or watch a running station or testbed
#[derive(clap::Args, Debug)]
pub struct CtlArgs {
    /// Control socket of the station
    #[arg(long, value_name = "PATH", global = true)]
    socket: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    /// Print what is set, and how the station fares
    Get {
        /// A key of the path, or of `ctl get --json`; without it everything
        key: Option<String>,
    },
    /// Change keys of the path, all or none
    Set {
        /// As in scenario files: `agent=snoop`, `errors.mean=64KiB`
        #[arg(required = true, value_name = "KEY=VALUE")]
        values: Vec<String>,
        /// Reset connections that end at an agent which is replaced (split connections)
        #[arg(long, conflicts_with = "drain")]
        reset: bool,
        /// Let them continue at the old agent until they end
        #[arg(long)]
        drain: bool,
    },
    /// Show rates, drops, repairs and flows as they go by
    Watch {
        /// How often
        #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
        interval: Span,
        /// Stop after so many times
        #[arg(long, value_name = "N")]
        times: Option<u64>,
    },
    /// Show figures of each subscriber, where the station's file has `[subscribers]`
    Subscribers {
        /// Order: the worst grade first, or the largest loss, goodput or round trip
        #[arg(long, value_name = "ORDER", value_parser = order(), default_value = "grade")]
        by: Order,
        /// Number of subscribers
        #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=10_000))]
        top: u16,
        /// Only subscribers within this address or prefix, such as 10.5.0.0/16
        #[arg(long, value_name = "PREFIX", value_parser = str::parse::<Prefix>)]
        within: Option<Prefix>,
        /// Print them again at this interval
        #[arg(long, value_name = "TIME", value_parser = interval)]
        interval: Option<Span>,
        /// Number of repetitions; without it until Ctrl-C
        #[arg(long, value_name = "N", requires = "interval")]
        times: Option<u64>,
    },
}

fn order() -> impl TypedValueParser<Value = Order> {
    PossibleValuesParser::new(Order::NAMES.map(|(name, _)| name)).map(|word| {
        let found = Order::NAMES.into_iter().find(|(name, _)| *name == word);
        found.map_or(Order::default(), |(_, order)| order)
    })
}

fn interval(word: &str) -> Result<Span, String> {
    let span: Span = word.parse().map_err(|error| format!("{error}; for example 1s or 500ms"))?;
    match span {
        span if span < Span::millis(100) || span > Span::secs(60) => {
            Err("out of range; from 100ms to 60s, for example 1s".to_owned())
        }
        span => Ok(span),
    }
}

/// Runs the command.
pub fn run(args: &CtlArgs, json: bool) -> Result<Outcome, Failure> {
    let socket = match &args.socket {
        Some(socket) => socket.clone(),
        None => only(&listening(&directories()))?,
    };
    let mut client = Client::connect(&socket).map_err(|error| cannot_connect(&socket, error))?;
    let mut ask = |request: &Request| match client.ask(request) {
        Ok(Response::Error(trouble)) => Err(RequestError::Trouble(trouble)),
        Ok(answer) => Ok(answer),
        Err(error) => {
            let help = match error.kind() {
                ErrorKind::InvalidData => "use the lasthop version of the station",
                _ => "is the station still running?",
            };
            Err(RequestError::Failure(Failure::file(&socket, error, help)))
        }
    };
    match &args.command {
        Command::Get { key: None } => match (ask(&Request::Status {})?, json) {
            (Response::Status(status), true) => output::print_json(format::CTL, &status)?,
            (Response::Status(status), false) => {
                output::print(&watch::table(None, &status))?;
            }
            (Response::Link(status), true) => output::print_json(format::CTL, &status)?,
            (Response::Link(status), false) => output::print(&watch::link(&status))?,
            _ => return Err(strange()),
        },
        Command::Get { key: Some(key) } => output::exact(&get(&mut ask, key, json)?)?,
        Command::Set { values, reset, drain } => {
            let endings = match (reset, drain) {
                (true, _) => Some(Endings::Reset),
                (_, true) => Some(Endings::Drain),
                _ => None,
            };
            let request = Request::Set { values: values.clone(), endings };
            let Response::Changed(changed) = ask(&request)? else {
                return Err(strange());
            };
            for warning in changed.warnings.iter().filter(|_| !json) {
                eprint!("{}", style::stderr_wrapped(&format!("warning: {warning}\n")));
            }
            if json {
                output::print_json(format::CTL, &changed)?;
            } else {
                let lines = changed.settings.iter().map(|setting| {
                    let old = setting.old.as_deref().unwrap_or("(default)");
                    format!("{}: {old} -> {}\n", setting.key, setting.new)
                });
                let endings = changed.endings.map(|(kind, count)| match kind {
                    Endings::Reset => format!("connections reset: {count}\n"),
                    Endings::Drain => {
                        format!("connections that continue until they end: {count}\n")
                    }
                });
                output::print(&lines.chain(endings).collect::<String>())?;
            }
        }
        Command::Watch { interval, times } => {
            let terminal = is_terminal(json);
            let mut last: Option<Status> = None;
            repeat(*interval, *times, || {
                let now = status(&mut ask)?;
                match (json, terminal) {
                    (true, _) => output::exact(&format::CTL.line(&now))?,
                    (_, true) => {
                        let table = watch::table(last.as_ref(), &now);
                        let worst = worst(&mut ask, &now)?;
                        output::print(&format!("{CLEAR}{table}{worst}"))?;
                    }
                    (_, false) => output::print(&watch::line(last.as_ref(), &now))?,
                }
                last = Some(now);
                Ok(())
            })?;
        }
        Command::Subscribers { by, top, within, interval, times } => {
            let request = Request::Subscribers { by: *by, top: usize::from(*top), within: *within };
            let once = interval.is_none();
            let clear = if is_terminal(json) && !once { CLEAR } else { "" };
            repeat(interval.unwrap_or(Span::ZERO), times.or(once.then_some(1)), || {
                let Response::Subscribers(list) = ask(&request)? else { return Err(strange()) };
                match (json, once) {
                    (true, true) => output::print_json(format::CTL, &list),
                    (true, false) => output::exact(&format::CTL.line(&list)),
                    (false, _) => {
                        let table = watch::subscribers::table(&list);
                        output::print(&format!("{clear}{table}"))
                    }
                }
            })?;
        }
    }
    Ok(Outcome::Done)
}

/// Moves to the top of an empty screen.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Number of subscribers in a live table of the station.
const WORST: usize = 10;

fn is_terminal(json: bool) -> bool {
    std::io::stdout().is_terminal() && !json
}

/// Calls `show` at each interval, `times` times.
fn repeat(
    interval: Span,
    times: Option<u64>,
    mut show: impl FnMut() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (_never, tick) = channel::<()>();
    let mut left = times.unwrap_or(u64::MAX);
    while left > 0 {
        show()?;
        left -= 1;
        if left > 0 {
            // The channel has no sender, so this waits for the interval.
            let _ = tick.recv_timeout(Duration::from_nanos(interval.0));
        }
    }
    Ok(())
}

/// The subscribers with the worst grades, if the station has a view of them.
fn worst(ask: Ask<'_>, now: &Status) -> Result<String, Failure> {
    if now.subscribers.is_none() {
        return Ok(String::new());
    }
    let request = Request::Subscribers { by: Order::Grade, top: WORST, within: None };
    match ask(&request)? {
        Response::Subscribers(list) => Ok(format!("\n{}", watch::subscribers::rows(&list))),
        _ => Err(strange()),
    }
}

/// The reason for a failed request.
enum RequestError {
    /// The station refused it.
    Trouble(Trouble),
    /// No answer from the station.
    Failure(Failure),
}

impl From<RequestError> for Failure {
    fn from(error: RequestError) -> Failure {
        match error {
            RequestError::Trouble(trouble) => Failure::input(trouble.message, trouble.help),
            RequestError::Failure(failure) => failure,
        }
    }
}

fn strange() -> Failure {
    Failure::input("the station's answer does not match the request", "is it of another version?")
}

type Ask<'a> = &'a mut dyn FnMut(&Request) -> Result<Response, RequestError>;

fn status(ask: Ask<'_>) -> Result<Status, Failure> {
    match ask(&Request::Status {})? {
        Response::Status(status) => Ok(*status),
        Response::Link(_) => Err(Failure::input(
            "this is a tunnel, and `lasthop ctl watch` is for stations",
            "query it: `lasthop ctl get`, `lasthop ctl get --json`",
        )),
        _ => Err(strange()),
    }
}

/// The value of a key of the path, or otherwise of the station's status.
fn get(ask: Ask<'_>, key: &str, json: bool) -> Result<String, Failure> {
    let trouble = match ask(&Request::Get { key: key.to_owned() }) {
        Ok(Response::Value(value)) => {
            return match (json, value) {
                (true, value) => valued(key, &value),
                (false, Some(value)) => Ok(format!("{value}\n")),
                (false, None) => Ok("(default)\n".to_owned()),
            };
        }
        Ok(_) => return Err(strange()),
        // An unknown key of the path may be one of the status.
        Err(RequestError::Trouble(trouble))
            if matches!(trouble.code.as_str(), "unknown-key" | "bad-axis") =>
        {
            trouble
        }
        Err(error) => return Err(error.into()),
    };
    let status = serde_json::to_value(status(ask)?).expect("a status is JSON");
    match find(&status, key) {
        Some(Value::String(text)) if !json => Ok(format!("{text}\n")),
        Some(value) if json => valued(key, value),
        Some(value) => output::json(value),
        None => Err(RequestError::Trouble(trouble).into()),
    }
}

/// The value of a key, for a program.
fn valued(key: &str, value: &impl serde::Serialize) -> Result<String, Failure> {
    output::json(&format::CTL.of(&serde_json::json!({ "key": key, "value": value })))
}

/// The value at a dotted key; entries of lists have a number or a name.
fn find<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    key.split('.').try_fold(value, |value, word| match value {
        Value::Array(items) => match word.parse::<usize>() {
            Ok(i) => items.get(i),
            Err(_) => items.iter().find(|item| item["name"] == word),
        },
        value => value.get(word),
    })
}

/// The only running station.
fn only(found: &[PathBuf]) -> Result<PathBuf, Failure> {
    match found {
        [one] => Ok(one.clone()),
        [] => Err(Failure::input(
            "no station or testbed runs here",
            "start one with `lasthop station FILE`, or name its socket: `lasthop ctl --socket PATH get`; only \
             root sees root's stations",
        )),
        several => {
            let several: Vec<String> =
                several.iter().map(|path| path.display().to_string()).collect();
            Err(Failure::input(
                format!("{} stations run here: {}", several.len(), several.join(", ")),
                format!("choose one: `lasthop ctl --socket {} get`", several[0]),
            ))
        }
    }
}

fn cannot_connect(socket: &Path, error: std::io::Error) -> Failure {
    let help = match error.kind() {
        ErrorKind::PermissionDenied => "only its owner and root may connect: use sudo",
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
            "no station listens there; start it with `lasthop station FILE`"
        }
        _ => "name the socket of a running station: `lasthop ctl --socket PATH get`",
    };
    Failure::file(socket, error, help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_by_number_and_by_name() {
        let status = serde_json::json!({ "stages": [{ "name": "agent", "flows": 3 }] });
        assert_eq!(find(&status, "stages.agent.flows"), Some(&Value::from(3)));
        assert_eq!(find(&status, "stages.0.flows"), Some(&Value::from(3)));
        assert_eq!(find(&status, "stages.1.flows"), None);
        assert_eq!(find(&status, "stages.agent.flows.more"), None);
    }

    #[test]
    fn one_station_needs_no_name() {
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert_eq!(only(&paths(&["/run/a"])).unwrap(), Path::new("/run/a"));
        assert!(only(&[]).is_err());
        let failure = only(&paths(&["/run/a", "/run/b"])).unwrap_err().to_string();
        assert!(failure.contains("/run/a, /run/b"), "{failure}");
    }
}
