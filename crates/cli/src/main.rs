//! `lasthop`: measures the effect of a wireless last hop on TCP, and finds remedies.
//!
//! This crate is a thin layer: it parses arguments, calls the other crates, and prints tables, pictures and
//! exit codes.

#![cfg_attr(
    not(feature = "full"),
    allow(
        dead_code,
        unused_imports,
        clippy::large_enum_variant,
        reason = "what commands share is not all used where some are left out"
    )
)]

mod braille;
mod child;
mod cmd;
mod demo;
mod failure;
mod features;
mod format;
mod help;
mod lines;
mod note;
mod outcome;
mod output;
mod progress;
mod scenario;
mod show;
mod snippet;
mod stop;
mod study_args;
mod style;
mod sweep;
mod usage;
mod version;
#[cfg(live)]
mod watch;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::usage::{Early, Parsed};

/// What does a wireless last hop do to TCP, and what would help?
#[derive(Parser, Debug)]
#[command(name = "lasthop", version, about, max_term_width = 100)]
struct Cli {
    /// Print JSON instead of tables and pictures; errors too, on stderr
    #[arg(long, global = true, help_heading = EVERYWHERE)]
    json: bool,
    /// When to use colours: auto (on terminals, unless NO_COLOR is set), always, never
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t, hide_possible_values = true,
          hide_default_value = true, help_heading = EVERYWHERE)]
    color: style::Color,
    /// Print no progress, warnings or notes on stderr
    #[arg(long, short, global = true, conflicts_with = "verbose", help_heading = EVERYWHERE)]
    quiet: bool,
    /// Print on stderr what is read, run and written
    #[arg(long, short, global = true, help_heading = EVERYWHERE)]
    verbose: bool,
    #[command(subcommand)]
    command: Command,
}

/// Heading of the options that all commands have.
const EVERYWHERE: &str = "Options of all commands";

#[derive(Subcommand, Debug)]
enum Command {
    Run(cmd::run::RunArgs),
    #[cfg(feature = "parquet")]
    Sweep(cmd::sweep::SweepArgs),
    Compare(cmd::compare::CompareArgs),
    Advise(cmd::advise::AdviseArgs),
    Energy(cmd::energy::EnergyArgs),
    Battery(cmd::battery::BatteryArgs),
    Reproduce(cmd::reproduce::ReproduceArgs),
    Explain(cmd::explain::ExplainArgs),
    Explore(cmd::explore::ExploreArgs),
    Analyze(cmd::analyze::AnalyzeArgs),
    Packetdrill(cmd::packetdrill::PacketdrillArgs),
    Report(cmd::report::ReportArgs),
    Plot(cmd::plot::PlotArgs),
    Trace(cmd::trace::TraceArgs),
    #[cfg(feature = "lab")]
    Lab(cmd::lab::LabArgs),
    List(cmd::list::ListArgs),
    #[cfg(live)]
    Shell(cmd::shell::ShellArgs),
    #[cfg(live)]
    Testbed(cmd::testbed::TestbedArgs),
    Doctor(cmd::doctor::DoctorArgs),
    #[cfg(live)]
    Station(cmd::station::StationArgs),
    #[cfg(live)]
    Link(cmd::link::LinkArgs),
    #[cfg(live)]
    Ctl(cmd::ctl::CtlArgs),
    Generate(cmd::generate::GenerateArgs),
    #[cfg(live)]
    #[command(hide = true)]
    TestbedRun,
    #[cfg(live)]
    #[command(hide = true)]
    PacketdrillRun,
    #[cfg(live)]
    #[command(hide = true)]
    ShellHold(cmd::shell::Hold),
    #[cfg(live)]
    #[command(hide = true)]
    ShellRun(cmd::shell::Run),
    #[cfg(live)]
    #[command(hide = true)]
    ShellOutside,
}

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    let early = Early::of(&words);
    style::choose(early.color);
    let mut json = early.json;
    let result = match usage::parse(&words, early) {
        Ok(Parsed::Command(cli)) => {
            // `--json` may be an option of a started program.
            json = cli.json;
            style::choose(cli.color);
            note::set(cli.quiet, cli.verbose);
            note::detail(|| format!("lasthop {}", version::LINE));
            command(*cli)
        }
        Ok(Parsed::Shown(text)) => {
            output::exact(&output::with_manual(&text)).map(|()| Outcome::Done)
        }
        Ok(Parsed::Version) => version::print_json().map(|()| Outcome::Done),
        Err(failure) => Err(failure),
    };
    match result {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::No) => ExitCode::from(1),
        #[cfg(live)]
        Ok(Outcome::Exit(code)) => ExitCode::from(code),
        Ok(Outcome::Interrupted) => ExitCode::from(stop::INTERRUPTED),
        // A closed pipe, as in `lasthop list systems | head`, is no error.
        Err(Failure::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(failure) => {
            failure.show(json);
            ExitCode::from(failure.code())
        }
    }
}

fn command(cli: Cli) -> Result<Outcome, Failure> {
    let json = cli.json;
    match cli.command {
        Command::Run(args) => cmd::run::run(&args, json),
        #[cfg(feature = "parquet")]
        Command::Sweep(args) => cmd::sweep::run(&args, json),
        Command::Advise(args) => cmd::advise::run(&args, json),
        Command::Energy(args) => cmd::energy::run(&args, json),
        Command::Battery(args) => cmd::battery::run(&args, json),
        Command::Compare(args) => cmd::compare::run(&args, json),
        Command::Reproduce(args) => cmd::reproduce::run(&args, json),
        Command::Explain(args) => cmd::explain::run(&args, json),
        Command::Explore(args) => cmd::explore::run(&args, json),
        Command::Analyze(args) => cmd::analyze::run(&args, json),
        Command::Packetdrill(args) => cmd::packetdrill::run(&args, json),
        Command::Report(args) => cmd::report::run(&args, json),
        Command::Plot(args) => cmd::plot::run(&args, json),
        Command::Trace(args) => cmd::trace::run(&args, json),
        #[cfg(feature = "lab")]
        Command::Lab(args) => cmd::lab::run(&args, json),
        Command::List(args) => cmd::list::run(&args, json),
        #[cfg(live)]
        Command::Shell(args) => cmd::shell::run(&args, json),
        #[cfg(live)]
        Command::Testbed(args) => cmd::testbed::run(&args, json),
        Command::Doctor(args) => cmd::doctor::run(&args, json),
        #[cfg(live)]
        Command::Station(args) => cmd::station::run(&args, json),
        #[cfg(live)]
        Command::Link(args) => cmd::link::run(&args, json),
        #[cfg(live)]
        Command::Ctl(args) => cmd::ctl::run(&args, json),
        Command::Generate(args) => cmd::generate::run(&args),
        #[cfg(live)]
        Command::TestbedRun => cmd::testbed_run::run(),
        #[cfg(live)]
        Command::PacketdrillRun => cmd::packetdrill::run_on_kernel(),
        #[cfg(live)]
        Command::ShellHold(args) => cmd::shell::hold(&args),
        #[cfg(live)]
        Command::ShellRun(args) => Ok(cmd::shell::become_program(&args, json)),
        #[cfg(live)]
        Command::ShellOutside => Ok(cmd::shell::outside()),
    }
}

// Only on Linux, which has all documented commands.
#[cfg(all(test, live))]
#[path = "../tests/support/commands_page.rs"]
mod commands_page;
#[cfg(all(test, live))]
#[path = "../tests/support/doc_commands.rs"]
mod doc_commands;

#[cfg(test)]
mod tests {
    #[test]
    fn the_arguments_fit_together() {
        super::usage::command().debug_assert();
    }
}
