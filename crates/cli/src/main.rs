//! `lasthop`: what a wireless last hop does to TCP, and what would help.
//!
//! This crate is thin: arguments in, other crates at work, tables, pictures and exit codes out.

mod asked;
mod braille;
mod child;
mod cmd;
mod compress;
mod cpu;
mod demo;
mod failure;
mod output;
mod progress;
mod scenario;
mod show;
mod stop;
mod style;
mod sweep;
#[cfg(target_os = "linux")]
mod transfer;
#[cfg(target_os = "linux")]
mod watch;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  lasthop run                                   a quick demonstration
  lasthop run west97-lan                        a built-in scenario
  lasthop run my.toml --vary tcp=reno,sack      your own, for two TCPs
  lasthop run my.toml --dry-run                 what would be run
  lasthop list scenarios                        what there is to start from

Exit codes: 0 done, 1 the answer is no, 2 bad input, 70 a fault of lasthop (the message says what to \
report), 130 interrupted (what is finished is kept).";

/// What does a wireless last hop do to TCP, and what would help?
#[derive(Parser, Debug)]
#[command(name = "lasthop", version, about, after_help = EXAMPLES, max_term_width = 100)]
struct Cli {
    /// Print JSON instead of tables and pictures; errors too, on stderr
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Run(cmd::run::Args),
    Sweep(cmd::sweep::Args),
    Merge(cmd::sweep::MergeArgs),
    Compare(cmd::compare::Args),
    Compress(cmd::compress::Args),
    Advise(cmd::advise::Args),
    Energy(cmd::energy::Args),
    Battery(cmd::battery::Args),
    Reproduce(cmd::reproduce::Args),
    Explain(cmd::explain::Args),
    Analyze(cmd::analyze::Args),
    Replay(cmd::replay::Args),
    Packetdrill(cmd::packetdrill::Args),
    Report(cmd::report::Args),
    Trace(cmd::trace::Args),
    #[cfg(target_os = "linux")]
    Send(cmd::send::Args),
    #[cfg(target_os = "linux")]
    Discard(cmd::discard::Args),
    Lab(cmd::lab::Args),
    List(cmd::list::Args),
    #[cfg(target_os = "linux")]
    Shell(cmd::shell::Args),
    #[cfg(target_os = "linux")]
    Testbed(cmd::testbed::Args),
    Doctor(cmd::doctor::Args),
    #[cfg(target_os = "linux")]
    Station(cmd::station::Args),
    #[cfg(target_os = "linux")]
    Link(cmd::link::Args),
    #[cfg(target_os = "linux")]
    Ctl(cmd::ctl::Args),
    Schema(cmd::schema::Args),
    Completions(cmd::completions::Args),
    Man(cmd::man::Args),
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    TestbedRun,
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    PacketdrillRun,
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    ShellHold(cmd::shell::Hold),
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    ShellRun(cmd::shell::Run),
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    ShellOutside,
}

/// How a command ended, if it ended well.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    /// It did what it was asked.
    Done,
    /// It did, and the answer is no: a claim does not hold, something needed is missing.
    No,
    /// What it was asked to run ended so, or could not be started, in a shell's numbers.
    #[cfg(target_os = "linux")]
    Exit(u8),
    /// It was asked to stop before the end; what was finished is kept.
    Interrupted,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let json = cli.json;
    let result = match cli.command {
        Command::Run(args) => cmd::run::run(&args, json),
        Command::Sweep(args) => cmd::sweep::run(&args, json),
        Command::Merge(args) => cmd::sweep::run_merge(&args, json),
        Command::Advise(args) => cmd::advise::run(&args, json),
        Command::Energy(args) => cmd::energy::run(&args, json),
        Command::Battery(args) => cmd::battery::run(&args, json),
        Command::Compare(args) => cmd::compare::run(&args, json),
        Command::Compress(args) => cmd::compress::run(&args, json),
        Command::Reproduce(args) => cmd::reproduce::run(&args, json),
        Command::Explain(args) => cmd::explain::run(&args, json),
        Command::Analyze(args) => cmd::analyze::run(&args, json),
        Command::Replay(args) => cmd::replay::run(&args, json),
        Command::Packetdrill(args) => cmd::packetdrill::run(&args, json),
        Command::Report(args) => cmd::report::run(&args, json),
        Command::Trace(args) => cmd::trace::run(&args, json),
        #[cfg(target_os = "linux")]
        Command::Send(args) => cmd::send::run(&args, json),
        #[cfg(target_os = "linux")]
        Command::Discard(args) => cmd::discard::run(&args, json),
        Command::Lab(args) => cmd::lab::run(&args, json),
        Command::List(args) => cmd::list::run(&args, json),
        #[cfg(target_os = "linux")]
        Command::Shell(args) => cmd::shell::run(&args, json),
        #[cfg(target_os = "linux")]
        Command::Testbed(args) => cmd::testbed::run(&args, json),
        Command::Doctor(args) => cmd::doctor::run(&args, json),
        #[cfg(target_os = "linux")]
        Command::Station(args) => cmd::station::run(&args, json),
        #[cfg(target_os = "linux")]
        Command::Link(args) => cmd::link::run(&args, json),
        #[cfg(target_os = "linux")]
        Command::Ctl(args) => cmd::ctl::run(&args, json),
        Command::Schema(args) => cmd::schema::run(&args),
        Command::Completions(args) => cmd::completions::run(&args),
        Command::Man(args) => cmd::man::run(&args),
        #[cfg(target_os = "linux")]
        Command::TestbedRun => cmd::testbed_run::run(),
        #[cfg(target_os = "linux")]
        Command::PacketdrillRun => cmd::packetdrill::run_on_kernel(),
        #[cfg(target_os = "linux")]
        Command::ShellHold(args) => cmd::shell::hold(&args),
        #[cfg(target_os = "linux")]
        Command::ShellRun(args) => Ok(cmd::shell::become_program(&args)),
        #[cfg(target_os = "linux")]
        Command::ShellOutside => Ok(cmd::shell::outside()),
    };
    match result {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::No) => ExitCode::from(1),
        #[cfg(target_os = "linux")]
        Ok(Outcome::Exit(code)) => ExitCode::from(code),
        Ok(Outcome::Interrupted) => ExitCode::from(stop::INTERRUPTED),
        // `lasthop list systems | head` is no mistake.
        Err(Failure::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(failure) => {
            failure.show(json);
            ExitCode::from(failure.code())
        }
    }
}

// The documentation is that of all commands, of which other systems have some only.
#[cfg(all(test, target_os = "linux"))]
mod commands_page;
#[cfg(all(test, target_os = "linux"))]
#[path = "../tests/support/shown.rs"]
mod shown;

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_arguments_fit_together() {
        super::Cli::command().debug_assert();
    }
}
