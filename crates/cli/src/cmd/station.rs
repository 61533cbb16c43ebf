//! `lasthop station`: the base station between two interfaces of this machine.

use std::path::{Path, PathBuf};

use lasthop_live::service::{self, Fault, StationReport};
use lasthop_live::survey::{Finding, Weight, survey};
use lasthop_scenario::{Error, Setting, StationFile, Warning, files, parse_station};
use serde_json::json;

use crate::failure::{Failure, Located};
use crate::outcome::Outcome;
use crate::scenario::{read, regular, with_files};
use crate::snippet::Severity;
use crate::{format, output, style};

/// Run the base station between two interfaces, as a bump in the wire
#[derive(clap::Args, Debug)]
pub struct StationArgs {
    /// The station's file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Only check the file, and this machine: interfaces, rights, what is taken. Exit code 1 if it would not run
    #[arg(long)]
    check: bool,
    /// Only take away what forwards when a station was killed or stopped with `forward-after-stop`
    #[arg(long, conflicts_with = "check")]
    clear: bool,
    /// Control socket, instead of the one in the file
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &StationArgs, json: bool) -> Result<Outcome, Failure> {
    let (file, warnings) = load(&args.file)?;
    for warning in &warnings {
        match json {
            true => eprintln!("{}", json!({ "warning": warning.json() })),
            false => eprint!("{}", warning.rendered(Severity::Warning)),
        }
    }
    if args.clear {
        return clear(&file, json);
    }
    let name = args.file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let given = args.socket.clone().or_else(|| file.settings.socket.as_ref().map(PathBuf::from));
    let socket = socket(given, &name);
    if args.check {
        return check(&args.file, &file, socket.ok().as_deref(), json);
    }
    let socket = socket?;
    let path = args.file.clone();
    let reread =
        move || load(&path).map(|(file, _)| file).map_err(|failure| reload_error(&failure));
    let done = service::run(&name, file, &socket, reread, move |news| print_report(&news, json));
    done.map_err(|fault| failed(&fault))?;
    Ok(Outcome::Done)
}

fn clear(file: &StationFile, json: bool) -> Result<Outcome, Failure> {
    let found = service::clear(file).map_err(|fault| failed(&fault))?;
    if json {
        output::exact(&format::STATION.line(&json!({ "cleared": found })))?;
    } else {
        let text = if found { "cleared" } else { "there was nothing" };
        output::print(&format!("{} and {}: {text}\n", file.settings.left, file.settings.right))?;
    }
    Ok(Outcome::Done)
}

/// Reads and checks the file.
fn load(path: &Path) -> Result<(StationFile, Vec<Located>), Failure> {
    let help = "give a station's file, for example /etc/lasthop/base.toml; docs/reference/station.md explains it";
    let mut from = regular(path, help)?;
    let (text, directory) = (read(&mut from, path, help)?, path.parent().unwrap_or(Path::new("")));
    for named in files::named(&text, &[]) {
        let path = directory.join(&named.name);
        if path.exists() {
            regular(&path, help)?;
        }
    }
    let text = with_files(text, directory, &[])?;
    let located =
        |diagnostic: Warning| Located::new(diagnostic, &path.to_string_lossy(), &text, &[]);
    match parse_station(&text) {
        Ok((file, warnings)) => Ok((file, warnings.into_iter().map(located).collect())),
        Err(Error(diagnostic)) => Err(Failure::Scenario(Box::new(located(*diagnostic)))),
    }
}

fn reload_error(failure: &Failure) -> String {
    match failure {
        Failure::Scenario(located) => format!("\n{}", located.rendered(Severity::Error)),
        failure => failure.to_string(),
    }
}

/// Prints the content of the file and its findings on this machine.
fn check(
    path: &Path,
    file: &StationFile,
    socket: Option<&Path>,
    json: bool,
) -> Result<Outcome, Failure> {
    let stages: Vec<&str> = file.path.stages().iter().map(|stage| stage.name.as_str()).collect();
    let found = survey(file, socket);
    let runs = found.iter().all(|finding| finding.weight != Weight::Fatal);
    let outcome = if runs { Outcome::Done } else { Outcome::No };
    if json {
        output::print_json(
            format::STATION,
            &json!({
                "left": file.settings.left, "right": file.settings.right, "seed": file.settings.seed, "path": file.path.stages(),
                "would-run": runs, "found": found,
            }),
        )?;
        return Ok(outcome);
    }
    let (left, right) = (&file.settings.left, &file.settings.right);
    // The first line has the severest consequence.
    let plane = found.first().filter(|plane| plane.weight == Weight::Mind);
    let cuts = plane.map(|plane| format!("; {}", plane.found)).unwrap_or_default();
    let good = format!("good: {left} | {} | {right}{cuts}", stages.join(" | "));
    let mut text = format!("{}: {good}\n", path.display());
    for (i, name) in stages.iter().enumerate() {
        text += &format!("      {name}: {}\n", file.path.stage_lines(i).join(", "));
    }
    for Finding { about, weight, found, remedy } in &found {
        let sign = match weight {
            Weight::Good => "ok",
            Weight::Mind => "mind",
            Weight::Fatal => "no",
        };
        text += &format!("{sign:>4}  {about}: {found}\n");
        if !remedy.is_empty() {
            text += &format!("      help: {remedy}\n");
        }
    }
    let (minds, verdict) =
        (found.iter().any(|finding| finding.weight == Weight::Mind), "it would run here");
    text += &match (runs, minds) {
        (false, _) => "it would not run here\n".to_owned(),
        (true, true) => format!("{verdict}; note the remarks above\n"),
        (true, false) => {
            format!("{verdict}: frames that arrive at {left} leave at {right}, and vice versa\n")
        }
    };
    output::print(&text)?;
    Ok(outcome)
}

/// Path of the socket for `lasthop ctl`: the user's choice, or the default for `name`.
pub(super) fn socket(given: Option<PathBuf>, name: &str) -> Result<PathBuf, Failure> {
    if let Some(given) = given {
        return Ok(given);
    }
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    // Directory made by systemd; several are separated by colons.
    if let Some(dirs) = variable("RUNTIME_DIRECTORY") {
        let dirs = dirs.to_string_lossy().into_owned();
        let first = dirs.split(':').next().unwrap_or_default();
        return Ok(Path::new(first).join("station.sock"));
    }
    let dir = match variable("XDG_RUNTIME_DIR") {
        _ if nix::unistd::Uid::effective().is_root() => PathBuf::from("/run/lasthop"),
        Some(dir) => PathBuf::from(dir).join("lasthop"),
        None => {
            return Err(Failure::input(
                "no directory for the control socket is known",
                "name one: `--socket PATH`, or `[control] socket = \"PATH\"` in the file",
            ));
        }
    };
    Ok(dir.join(format!("{name}.sock")))
}

fn failed(fault: &Fault) -> Failure {
    Failure::input(fault.to_string(), fault.remedy())
}

/// Changed keys in the format of `lasthop ctl set`.
fn changes(settings: &[Setting]) -> String {
    let lines = settings.iter().map(|Setting { key, old, new }| {
        format!("{key}: {} -> {new}", old.as_deref().unwrap_or("(default)"))
    });
    lines.collect::<Vec<_>>().join(", ")
}

/// Prints an event. A closed output does not stop the station.
fn print_report(report: &StationReport, json: bool) {
    let result = match (report, json) {
        (StationReport::Ready { socket, metrics }, true) => output::exact(&format::STATION.line(
            &json!({ "ready": { "socket": socket.display().to_string(), "metrics": metrics } }),
        )),
        (StationReport::Plane { plane, instead }, true) => {
            let instead = instead.as_ref().map(|(why, help)| json!({ "why": why, "help": help }));
            output::exact(&format::STATION.line(&json!({ "plane": plane, "instead": instead })))
        }
        (StationReport::Reloaded { who, stages, settings }, true) => output::exact(
            &format::STATION.line(&json!({ "reloaded": stages, "settings": settings, "by": who })),
        ),
        (StationReport::Changed { who, settings }, true) => {
            output::exact(&format::STATION.line(&json!({ "changed": settings, "by": who })))
        }
        (StationReport::Warning(text), true) => {
            eprintln!("{}", json!({ "warning": { "message": text } }));
            Ok(())
        }
        (StationReport::Draining(count, limit), true) => {
            let drain = json!({ "connections": count, "seconds": limit.as_secs_f64() });
            output::exact(&format::STATION.line(&json!({ "drain": drain })))
        }
        (StationReport::Draining(count, limit), false) => {
            output::print(&format!("stops when {count} connections are over, or after {limit}\n"))
        }
        (StationReport::Gone(names), true) => {
            output::exact(&format::STATION.line(&json!({ "gone": { "interfaces": names } })))
        }
        (StationReport::Gone(names), false) => output::print(&format!(
            "{} does not exist any more: nothing passes; the station waits until it is back and up (`ip link`)\n",
            names.join(", ")
        )),
        (StationReport::Back, true) => {
            output::exact(&format::STATION.line(&json!({ "back": true })))
        }
        (StationReport::Back, false) => {
            output::print("both interfaces exist again: packets pass\n")
        }
        (StationReport::Reset(count), true) => {
            output::exact(&format::STATION.line(&json!({ "reset": { "connections": count } })))
        }
        (StationReport::Reset(count), false) => {
            output::print(&format!("connections that ended here were reset: {count}\n"))
        }
        (StationReport::Orphaned(count), true) => {
            output::exact(&format::STATION.line(&json!({ "orphaned": { "ends": count } })))
        }
        (StationReport::Orphaned(count), false) => output::print(&format!(
            "a station has died here; ends of its connections that were reset: {count}\n"
        )),
        (StationReport::Ready { socket, metrics }, false) => {
            let metrics = metrics.map(|at| format!("; metrics at http://{at}/metrics"));
            let metrics = metrics.unwrap_or_default();
            output::print(&format!("running; control socket {}{metrics}\n", socket.display()))
        }
        (StationReport::Plane { plane: "kernel", .. }, false) => {
            output::print("the kernel forwards; the station gets packets that its agents need\n")
        }
        (StationReport::Plane { instead: None, .. }, false) => {
            output::print("packet sockets of the station forward\n")
        }
        (StationReport::Plane { instead: Some((why, help)), .. }, false) => {
            output::print(&format!(
                "packet sockets of the station forward, since the kernel cannot by itself: {why}; {help}\n"
            ))
        }
        (StationReport::Reloaded { who, stages, .. }, false) if stages.is_empty() => {
            output::print(&format!("the file was read again: no changes; requested by {who}\n"))
        }
        (StationReport::Reloaded { who, stages, settings }, false) => output::print(&format!(
            "the file was read again: changed {}: {}; requested by {who}\n",
            stages.join(", "),
            changes(settings)
        )),
        (StationReport::Changed { who, settings }, false) => {
            output::print(&format!("set by {who}: {}\n", changes(settings)))
        }
        (StationReport::Warning(text), false) => {
            eprint!("{}", style::stderr_wrapped(&format!("{} {text}\n", style::bold("warning:"))));
            Ok(())
        }
    };
    drop(result);
}
