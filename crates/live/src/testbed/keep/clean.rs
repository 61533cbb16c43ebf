//! Ends testbeds, and removes the remains of killed ones.

use std::fs;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde::Serialize;

use super::super::error::{Error, Tried as _};
use super::join::VARIABLE;
use super::process::{self, Process};
use super::state::{Home, Record, Status, TOKEN};

/// Time limit for the end of a testbed's process. It is long, since a busy machine delays the end of a process.
const PATIENCE: Duration = Duration::from_secs(30);

/// Result of the removal of a testbed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Ended {
    /// Its name.
    pub name: String,
    /// Whether its process was still running.
    pub was_up: bool,
    /// Programs inside that were ended: number and name.
    pub ended: Vec<(i32, String)>,
    /// Programs inside that did not end.
    pub left: Vec<(i32, String)>,
}

/// Ends the testbed of this name, or the only one. Programs inside are ended too.
///
/// # Errors
///
/// If the testbed does not exist.
pub fn down(home: &Home, name: Option<&str>) -> Result<Ended, Error> {
    let entries = home.entries()?;
    let name = match name {
        // A dead testbed is removed as well.
        Some(name) if entries.iter().any(|entry| entry.name == name) => name.to_owned(),
        other => home.find(other)?.name,
    };
    let _lock = home.lock()?;
    end(home, &name)
}

/// Removes the remains of testbeds without a process.
///
/// # Errors
///
/// If the directory of testbeds cannot be read or changed.
pub fn clean(home: &Home) -> Result<Vec<Ended>, Error> {
    // The holder of the lock may be making a testbed. With the lock, a directory without a record is a
    // remain.
    let _lock = home.lock()?;
    let dead = |name: &String| home.entry(name, true).status == Status::Dead;
    let names: Vec<_> = home.entries()?.into_iter().map(|entry| entry.name).filter(dead).collect();
    names.iter().map(|name| end(home, name)).collect()
}

/// Ends one testbed. The caller holds the lock.
fn end(home: &Home, name: &str) -> Result<Ended, Error> {
    let entry = home.entry(name, true);
    let was_up = entry.status == Status::Up;
    let mut ended = Ended { name: name.to_owned(), was_up, ended: Vec::new(), left: Vec::new() };
    if let Some(record) = entry.record.filter(|record| record.boot == super::state::boot()) {
        let inside = inside(&record);
        if was_up {
            record.process.signal(Signal::SIGTERM);
            if !process::wait(&[record.process], PATIENCE) {
                record.process.signal(Signal::SIGKILL);
                process::wait(&[record.process], PATIENCE);
            }
        }
        let named: Vec<_> = inside.iter().map(|process| (*process, process.name())).collect();
        let left = process::end(&inside);
        for (process, name) in named {
            let list = if left.contains(&process) { &mut ended.left } else { &mut ended.ended };
            list.push((process.pid, name));
        }
    }
    // Without the directory, the remaining programs could not be found again.
    if ended.left.is_empty() {
        remove(&home.of(name))?;
    }
    Ok(ended)
}

fn remove(dir: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(dir) {
        Ok(()) => Ok(()),
        // The testbed has removed it already.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).tried(|| format!("remove {}", dir.display())),
    }
}

/// Processes in a testbed's network namespaces, without the process that holds the testbed.
///
/// After the end of that process, the kernel may have given the numbers of its namespaces to another testbed,
/// in the same order. Then a process counts only with the testbed's token, in its environment or in a file
/// of its mount namespace.
fn inside(record: &Record) -> Vec<Process> {
    let own = Process::own();
    let numbers: Vec<u64> = record.hosts.iter().filter_map(|host| host.namespace).collect();
    let found: Vec<Process> = Process::all()
        .filter(|process| *process != record.process && Some(*process) != own)
        .filter(|process| process.namespace("net").is_some_and(|number| numbers.contains(&number)))
        .collect();
    // Compared last: no number was reused before the search ended.
    if record.is_up() {
        return found;
    }
    found.into_iter().filter(|process| has_token(*process, record)).collect()
}

fn has_token(process: Process, record: &Record) -> bool {
    let variable = format!("{VARIABLE}={}/{}", record.name, record.token);
    let environment = fs::read(process.file("environ")).unwrap_or_default();
    let file = process.file("root").join(TOKEN.trim_start_matches('/'));
    environment.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes())
        || fs::read(file).is_ok_and(|token| token == record.token.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::super::state::HostRecord;
    use super::*;

    /// Processes of others, whose namespaces have the numbers of a dead testbed, are not its own.
    #[test]
    fn a_dead_testbed_has_no_process_without_its_token() {
        let own = Process::own().unwrap();
        let record = Record {
            name: "bench".to_owned(),
            token: "7-8".to_owned(),
            boot: super::super::state::boot(),
            process: Process { start: own.start + 1, ..own },
            origin: String::new(),
            offloads: false,
            user: own.namespace("user").unwrap(),
            mount: own.namespace("mnt").unwrap(),
            hosts: vec![HostRecord {
                name: "host".to_owned(),
                side: None,
                v4: None,
                v6: None,
                preset: None,
                namespace: own.namespace("net"),
            }],
        };
        let start = |token: &str| {
            let mut program = Command::new("sleep");
            program.arg("1000").env(VARIABLE, token).stdin(Stdio::null());
            program.spawn().unwrap()
        };
        let mut children = ["bench/7-8", "bench/7-9"].map(start);
        let found: Vec<i32> = inside(&record).iter().map(|process| process.pid).collect();
        for child in &mut children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert_eq!(found, [children[0].id() as i32]);
    }

    #[test]
    fn remove_accepts_missing_directories_and_names_failures() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("bench");
        fs::create_dir_all(home.join("inner")).unwrap();
        fs::write(home.join("inner/record.json"), "{}").unwrap();
        remove(&home).unwrap();
        assert!(!home.exists());
        remove(&home).unwrap();
        fs::write(&home, "a file").unwrap();
        let error = remove(&home.join("inner")).unwrap_err().to_string();
        assert!(error.contains("remove") && error.contains("bench/inner"), "{error}");
        assert!(home.exists());
    }
}
