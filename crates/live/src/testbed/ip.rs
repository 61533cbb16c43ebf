//! The program `ip`, which knows how links, addresses and routes are made.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use super::error::Error;

/// What to do when there is no `ip`.
const INSTALL: &str = "install it: `apt install iproute2`, or `iproute2` or `iproute` elsewhere";

/// Where the program is. `sbin` is often not in the path of ordinary users, though its programs work for them.
pub(super) fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|dir| dir.join("ip"))
        .find(|file| file.is_file())
}

/// That there is none.
pub(super) fn missing() -> Error {
    Error::new("there is no program `ip` on this machine", INSTALL)
}

/// Carries out commands in order, in the namespace of the calling thread; stops at the first that fails.
///
/// # Errors
///
/// The command that failed, in `ip`'s words.
pub(crate) fn batch(lines: &[String]) -> Result<(), Error> {
    let text = lines.join("\n") + "\n";
    let output = run(&["-batch", "-"], &text)?;
    if output.status.success() {
        return Ok(());
    }
    Err(failure(lines, &String::from_utf8_lossy(&output.stderr)))
}

/// Which of the commands failed and why, from what `ip` said.
fn failure(lines: &[String], said: &str) -> Error {
    // "Command failed -:3"
    let failed = said
        .lines()
        .filter_map(|line| line.rsplit_once(':'))
        .filter_map(|(_, number)| number.trim().parse::<usize>().ok())
        .find_map(|number| lines.get(number.checked_sub(1)?));
    let why = said.lines().next().unwrap_or("no reason given").trim_start_matches("Error: ");
    let command = failed.map_or("a command".to_owned(), |line| format!("`ip {line}`"));
    let help = if why.contains("Unknown device type") || why.contains("not supported") {
        "the kernel lacks a driver that the testbed needs: `sudo modprobe veth`, or a kernel with CONFIG_VETH"
    } else {
        "is iproute2 5.0 or later installed? `lasthop doctor` looks for what is missing"
    };
    Error::new(format!("{command} failed: {why}"), help)
}

/// What a command prints, as JSON.
pub(super) fn json(arguments: &[&str]) -> Result<serde_json::Value, Error> {
    let output = run(arguments, "")?;
    // Nothing to show is printed as nothing by older versions.
    if output.status.success() && output.stdout.trim_ascii().is_empty() {
        return Ok(serde_json::Value::Array(Vec::new()));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| {
        let said = String::from_utf8_lossy(&output.stderr);
        Error::new(
            format!("`ip {}` printed no JSON: {error} {}", arguments.join(" "), said.trim()),
            "is iproute2 5.0 or later installed?",
        )
    })
}

fn run(arguments: &[&str], input: &str) -> Result<Output, Error> {
    let Some(program) = program() else {
        return Err(missing());
    };
    let failed = |error| Error::new(format!("cannot run {}: {error}", program.display()), INSTALL);
    let mut child = Command::new(&program)
        .args(arguments)
        .env("LC_ALL", "C")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        // It stops reading at the first command that fails, and then says which on stderr.
        let _ = stdin.write_all(input.as_bytes());
    }
    child.wait_with_output().map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number that `ip` tells is that of a line, from one; what it said first is why.
    #[test]
    fn the_command_that_failed_is_named_with_its_reason() {
        let lines = ["link add a", "link set b up", "addr add c"].map(str::to_owned);
        let message = |said: &str| failure(&lines, said).message;
        let device = "Cannot find device \"b\"\nCommand failed -:";
        for (number, wanted) in [
            ("1", "`ip link add a`"),
            ("2", "`ip link set b up`"),
            (" 3 ", "`ip addr add c`"),
            ("0", "a command"),
            ("4", "a command"),
            ("x", "a command"),
        ] {
            let wanted = format!("{wanted} failed: Cannot find device \"b\"");
            assert_eq!(message(&format!("{device}{number}\n")), wanted, "{number:?}");
        }
        let file = "Error: Nexthop has invalid gateway.\nCommand failed -:3\n";
        assert_eq!(message(file), "`ip addr add c` failed: Nexthop has invalid gateway.");
        assert_eq!(message(""), "a command failed: no reason given");
    }

    #[test]
    fn a_driver_that_is_missing_has_a_remedy_of_its_own() {
        let help = |said: &str| failure(&[], said).help;
        for driver in ["Error: Unknown device type.", "RTNETLINK answers: Operation not supported"]
        {
            assert!(help(driver).contains("modprobe veth"), "{driver}");
        }
        for other in ["Error: argument \"x\" is wrong", ""] {
            assert!(help(other).contains("iproute2 5.0"), "{other}");
        }
        assert!(missing().help.contains("apt install iproute2"));
    }
}
