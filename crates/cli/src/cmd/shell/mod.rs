//! `lasthop shell`: any program behind any link.

mod link;
mod summary;

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::path::PathBuf;

use lasthop_live::shell::{self, End, Ended, Helper, LEVEL, Wish};
use lasthop_scenario::Argument;
use lasthop_scenario::LivePath;

use super::testbed::{own, prompted};
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::scenario::Text;
use crate::{format, note, output, style};

/// Run any program behind a link: rate, delay, loss, traces, agents; without root
#[derive(clap::Args, Debug)]
pub struct ShellArgs {
    #[command(flatten)]
    link: link::Link,
    /// Seed of all that is left to chance [default: that of the scenario, or 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Change a value of the scenario, for example `link.framing=18`; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Run this in a shell on the other side of the link, as the host `far`, instead of the outside; repeatable
    #[arg(long, value_name = "COMMAND")]
    serve: Vec<String>,
    /// Only the host `far` is behind the link, not the outside
    #[arg(long)]
    local: bool,
    /// Let the program be root of its network, for tcpdump and ip
    #[arg(long)]
    root: bool,
    /// Write what links carried and lost to this file, with causes
    #[arg(long, short, value_name = "FILE.pcapng")]
    output: Option<PathBuf>,
    /// Write what the link did to this file, as JSON
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,
    /// Program and its arguments [default: your shell]
    #[arg(value_name = "CMD", trailing_var_arg = true)]
    program: Vec<OsString>,
}

/// Arguments of the hidden commands.
#[derive(clap::Args, Debug)]
pub struct Hold {
    order: i32,
    answer: i32,
}

/// Arguments of the hidden commands.
#[derive(clap::Args, Debug)]
pub struct Run {
    /// The user and the group to become again, or `-`.
    #[arg(allow_hyphen_values = true)]
    user: String,
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    program: Vec<OsString>,
}

/// Runs the command.
pub fn run(args: &ShellArgs, json: bool) -> Result<Outcome, Failure> {
    let wish = args.wish(json)?;
    let mut note = |text: &str| {
        if !note::is_quiet() && !json {
            eprintln!("{} {text}", style::bold("lasthop:"));
        }
    };
    if let (Some(program), false) =
        (args.program.is_empty().then_some(&wish.program), note::is_quiet())
        && std::io::stderr().is_terminal()
    {
        let shell = program.first().map(|name| name.to_string_lossy()).unwrap_or_default();
        note(&format!("{shell} behind {}; `exit` leads back", args.link.label()));
    }
    if let (None, false, Err(why)) = (wish.outside, args.is_local(), Helper::find()) {
        note(&format!("`{}` is the only reachable host, not the outside: {why}", shell::FAR));
    }
    let ended = shell::front(wish, own, &mut note)?;
    // First, so that a full disk does not lose it.
    if json {
        eprint!("{}", format::SHELL.line(&ended));
    } else if !note::is_quiet() {
        eprint!("{}", summary::text(&ended, &args.link.label()));
    }
    if let Some(path) = &args.summary {
        output::write(path, output::json(&format::SHELL.of(&ended))?.as_bytes())?;
    }
    if let (Some(path), Some(why)) = (&args.output, &ended.capture_error) {
        let message = format!("{}: the capture is incomplete: {why}", path.display());
        return Err(Failure::input(message, "free some space, or write to another disk with -o"));
    }
    Ok(end(&ended))
}

impl ShellArgs {
    /// Whether the far host is the only one behind the link. With a server there, its own TCP is the sender.
    fn is_local(&self) -> bool {
        self.local || !self.serve.is_empty()
    }

    fn wish(&self, json: bool) -> Result<Wish, Failure> {
        let mut set = self.set.clone();
        set.extend(self.seed.map(|seed| format!("seed={seed}")));
        let arguments: Vec<_> = set.iter().cloned().map(Argument::Set).collect();
        let text = match &self.link.scenario {
            Some(word) => Text::load(word, &arguments)?,
            None => self.link.text()?.with_files(&arguments)?,
        };
        // Errors are reported with their location before a process starts.
        LivePath::of_scenario(&text.text, &text.name, &arguments)
            .map_err(|error| text.wrong(error, &arguments, None))?;
        let program = self.program.first().and_then(|word| word.to_str());
        if let Some(file) = program.filter(|word| word.ends_with(".toml")) {
            return Err(Failure::input(
                format!("`{file}` is a scenario, not a program"),
                format!("did you mean `lasthop shell --scenario {file}`?"),
            ));
        }
        let level = std::env::var(LEVEL).ok().and_then(|level| level.parse().ok()).unwrap_or(0u8);
        if level >= 16 {
            return Err(Failure::input(
                "there are 16 links around this program already",
                "use stages of one scenario for more in a row: `--scenario FILE`",
            ));
        }
        let label = self.link.label();
        let interactive = self.program.is_empty() && std::io::stdin().is_terminal();
        let (program, mut environment) = match &self.program[..] {
            [] => prompted(&label),
            program => (program.to_vec(), Vec::new()),
        };
        environment.push(("LASTHOP_SHELL".to_owned(), label));
        let outside = if self.is_local() { None } else { Helper::find().ok() };
        Ok(Wish {
            text: text.text,
            name: text.name,
            set,
            program,
            environment,
            interactive,
            serve: self.serve.clone(),
            outside,
            root: self.root,
            capture: self.output.clone().map(PathBuf::into_os_string),
            level,
            json,
        })
    }
}

/// Ends like the program: a calling shell must distinguish a killed program from a failed one.
fn end(ended: &Ended) -> Outcome {
    match ended.end {
        End::Exit(code) => Outcome::Exit(code as u8),
        End::Signal(number) => {
            shell::die_of(number);
            Outcome::Exit(128u8.wrapping_add(number as u8))
        }
    }
}

/// Main function of the keeper.
pub fn hold(args: &Hold) -> Result<Outcome, Failure> {
    shell::hold(args.order, args.answer, &own)?;
    Ok(Outcome::Done)
}

/// Exit code of a shell for a program that does not exist.
const NOT_FOUND: u8 = 127;

/// Main function of the last step before a program.
pub fn become_program(args: &Run, json: bool) -> Outcome {
    let user = args.user.split_once(':');
    let user = user.and_then(|(uid, gid)| Some((uid.parse().ok()?, gid.parse().ok()?)));
    let (why, code) = shell::run(user, &args.program);
    let help = match code {
        NOT_FOUND => {
            "is it installed? Options of the link come before the program: `lasthop shell --delay 20ms -- CMD`"
        }
        _ => "",
    };
    Failure::input(why, help).show(json);
    Outcome::Exit(code)
}

/// Main function of the helper to the outside.
pub fn outside() -> Outcome {
    if let Some(why) = shell::outside() {
        eprintln!("{why}");
    }
    Outcome::No
}
