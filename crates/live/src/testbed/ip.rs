//! Runs the program `ip`, which configures links, addresses and routes.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use super::error::Error;

/// Remedy for a missing `ip`.
const INSTALL: &str = "install it: `apt install iproute2`, or `iproute2` or `iproute` elsewhere";

/// Path of the program. `sbin` is often missing in an ordinary user's PATH.
pub(super) fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|dir| dir.join("ip"))
        .find(|file| file.is_file())
}

/// The error for a missing `ip`.
pub(super) fn missing() -> Error {
    Error::new("there is no program `ip` on this machine", INSTALL)
}

/// Runs commands in order, in the calling thread's namespace. Stops at the first that fails.
///
/// # Errors
///
/// The failed command, with the message of `ip`.
pub(crate) fn batch(lines: &[String]) -> Result<(), Error> {
    let text = lines.join("\n") + "\n";
    let output = run(&["-batch", "-"], &text)?;
    if output.status.success() {
        return Ok(());
    }
    Err(failure(lines, &String::from_utf8_lossy(&output.stderr)))
}

/// Finds the failed command and its reason in the output of `ip`.
fn failure(lines: &[String], stderr: &str) -> Error {
    // For example "Command failed -:3".
    let failed = stderr
        .lines()
        .filter_map(|line| line.rsplit_once(':'))
        .filter_map(|(_, number)| number.trim().parse::<usize>().ok())
        .find_map(|number| lines.get(number.checked_sub(1)?));
    let why = stderr.lines().next().unwrap_or("no reason given").trim_start_matches("Error: ");
    let command = failed.map_or("a command".to_owned(), |line| format!("`ip {line}`"));
    let help = if why.contains("Unknown device type") || why.contains("not supported") {
        "the kernel lacks a driver that the testbed needs: `sudo modprobe veth`, or a kernel with CONFIG_VETH"
    } else {
        "is iproute2 5.0 or later installed? `lasthop doctor` looks for what is missing"
    };
    Error::new(format!("{command} failed: {why}"), help)
}

/// Output of a command, parsed as JSON.
pub(super) fn json(arguments: &[&str]) -> Result<serde_json::Value, Error> {
    let output = run(arguments, "")?;
    // Older versions print an empty result as no output.
    if output.status.success() && output.stdout.trim_ascii().is_empty() {
        return Ok(serde_json::Value::Array(Vec::new()));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| {
        let stderr = String::from_utf8_lossy(&output.stderr);
        Error::new(
            format!("`ip {}` printed no JSON: {error} {}", arguments.join(" "), stderr.trim()),
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
        // `ip` stops reading at the first failed command, and reports it on stderr.
        let _ = stdin.write_all(input.as_bytes());
    }
    child.wait_with_output().map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `ip` prints the line number of the command, from 1, after the reason.
    #[test]
    fn the_command_that_failed_is_named_with_its_reason() {
        let lines = ["link add a", "link set b up", "addr add c"].map(str::to_owned);
        let message = |stderr: &str| failure(&lines, stderr).message;
        let device = "Cannot find device \"b\"\nCommand failed -:";
        for (number, expected) in [
            ("1", "`ip link add a`"),
            ("2", "`ip link set b up`"),
            (" 3 ", "`ip addr add c`"),
            ("0", "a command"),
            ("4", "a command"),
            ("x", "a command"),
        ] {
            let expected = format!("{expected} failed: Cannot find device \"b\"");
            assert_eq!(message(&format!("{device}{number}\n")), expected, "{number:?}");
        }
        let file = "Error: Nexthop has invalid gateway.\nCommand failed -:3\n";
        assert_eq!(message(file), "`ip addr add c` failed: Nexthop has invalid gateway.");
        assert_eq!(message(""), "a command failed: no reason given");
    }

    #[test]
    fn a_driver_that_is_missing_has_a_remedy_of_its_own() {
        let help = |stderr: &str| failure(&[], stderr).help;
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
