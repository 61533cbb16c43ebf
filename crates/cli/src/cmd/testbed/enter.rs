//! `lasthop testbed exec` and `shell`: this process executes a program on a host.

use std::ffi::OsString;
use std::io::{ErrorKind, IsTerminal as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use lasthop_live::testbed::keep::join::VARIABLE;
use lasthop_live::testbed::keep::{Home, Record, join};

use crate::failure::{Failure, file_error};
use crate::outcome::Outcome;
use crate::style;

/// Arguments of `exec`.
#[derive(clap::Args, Debug)]
pub struct Exec {
    /// Testbed; not needed if only one is up
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Host, or the base station
    #[arg(value_name = "HOST")]
    host: String,
    /// Program and its arguments
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true)]
    program: Vec<OsString>,
}

/// Arguments of `shell`.
#[derive(clap::Args, Debug)]
pub struct Shell {
    /// Testbed; not needed if only one is up
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Host, or the base station
    #[arg(value_name = "HOST")]
    host: String,
}

impl Exec {
    /// Executes the program.
    pub fn run(&self) -> Result<Outcome, Failure> {
        let record = enter(self.name.as_deref(), &self.host)?;
        let Some((program, arguments)) = self.program.split_first() else {
            return Err(Failure::input("no program is given", "for example `-- ip address`"));
        };
        let mut command = Command::new(program);
        command.args(arguments);
        Ok(become_it(command, &record, &self.host))
    }
}

impl Shell {
    /// Executes the user's shell, with the host's name in its prompt.
    pub fn run(&self) -> Result<Outcome, Failure> {
        let record = enter(self.name.as_deref(), &self.host)?;
        let host = &self.host;
        let (shell, environment) = prompted(host);
        let mut command = Command::new(&shell[0]);
        command.args(&shell[1..]).envs(environment);
        if std::io::stderr().is_terminal() {
            eprintln!("{host} of testbed {}; `exit` leads back", style::bold(&record.name));
        }
        Ok(become_it(command, &record, host))
    }
}

/// The user's shell with `label` in its prompt: the program with its arguments, and additional environment
/// variables. `label` must not need quotes.
pub fn prompted(label: &str) -> (Vec<OsString>, Vec<(String, String)>) {
    let shell = std::env::var_os("SHELL").filter(|shell| Path::new(shell).is_absolute());
    let shell = shell.unwrap_or_else(|| "/bin/sh".into());
    let (mut program, mut environment) = (vec![shell.clone()], Vec::new());
    match Path::new(&shell).file_name().and_then(|name| name.to_str()) {
        // The shell's start-up files set the prompt, so it is changed just before it is displayed.
        Some("bash") => {
            let set = format!(r#"case $PS1 in "({label}) "*) ;; *) PS1="({label}) $PS1" ;; esac"#);
            environment.push(("PROMPT_COMMAND".to_owned(), set));
        }
        Some("fish") => program.extend([
            "--init-command".into(),
            format!(
                "functions --copy fish_prompt lasthop_prompt; \
                 function fish_prompt; echo -n '({label}) '; lasthop_prompt; end"
            )
            .into(),
        ]),
        Some("zsh") => {
            let label = label.replace('%', "%%");
            environment.push(("PS1".to_owned(), format!("({label}) $ ")));
        }
        _ => environment.push(("PS1".to_owned(), format!("({label}) $ "))),
    }
    (program, environment)
}

fn enter(name: Option<&str>, host: &str) -> Result<Record, Failure> {
    let record = Home::open()?.find(name)?;
    join(&record, host)?;
    Ok(record)
}

/// Replaces this process, so exit code, signals and terminal are the program's. Returns only on failure.
fn become_it(mut command: Command, record: &Record, host: &str) -> Outcome {
    let error = command
        .env(VARIABLE, format!("{}/{}", record.name, record.token))
        .env("LASTHOP_HOST", host)
        .exec();
    let program = command.get_program().to_string_lossy();
    let (why, code) = match error.kind() {
        ErrorKind::NotFound => ("there is no such program".to_owned(), 127),
        _ => (file_error(&error), 126),
    };
    eprintln!("{} cannot run {program}: {why}", style::error("error:"));
    Outcome::Exit(code)
}
