//! Ending testbeds, and removing what killed ones have left.

use std::fs;
use std::path::Path;

use nix::sys::signal::Signal;
use serde::Serialize;

use super::super::error::{Error, Tried as _};
use super::join::VARIABLE;
use super::process::{self, Process};
use super::state::{Home, Record, Status};

/// What was done about a testbed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Ended {
    /// Its name.
    pub name: String,
    /// Whether its process was still running.
    pub was_up: bool,
    /// Programs that ran inside and were ended: number and name.
    pub ended: Vec<(i32, String)>,
    /// Programs that could not be ended.
    pub left: Vec<(i32, String)>,
}

/// Ends a testbed: the one of this name, or the only one. Programs that run inside are ended too.
///
/// # Errors
///
/// If there is no such testbed.
pub fn down(home: &Home, name: Option<&str>) -> Result<Ended, Error> {
    let entries = home.entries()?;
    let name = match name {
        // One that is dead is taken down as well: that is what was wanted.
        Some(name) if entries.iter().any(|entry| entry.name == name) => name.to_owned(),
        other => home.find(other)?.name,
    };
    let _lock = home.lock()?;
    end(home, &name)
}

/// Removes what testbeds have left whose process is gone.
///
/// # Errors
///
/// If the directory of testbeds cannot be read or changed.
pub fn clean(home: &Home) -> Result<Vec<Ended>, Error> {
    // With the lock nobody is making one, so what has no record never will.
    let _lock = home.lock()?;
    let dead = |name: &String| home.entry(name, true).status == Status::Dead;
    let names: Vec<_> = home.entries()?.into_iter().map(|entry| entry.name).filter(dead).collect();
    names.iter().map(|name| end(home, name)).collect()
}

/// Ends one testbed; the lock is held.
fn end(home: &Home, name: &str) -> Result<Ended, Error> {
    let entry = home.entry(name, true);
    let was_up = entry.status == Status::Up;
    let mut ended = Ended { name: name.to_owned(), was_up, ended: Vec::new(), left: Vec::new() };
    if let Some(record) = entry.record.filter(|record| record.boot == super::state::boot()) {
        // As long as it runs, its namespaces are surely its own.
        let inside = inside(&record, was_up);
        if was_up {
            record.process.signal(Signal::SIGTERM);
            if !process::wait(&[record.process], std::time::Duration::from_secs(5)) {
                record.process.signal(Signal::SIGKILL);
                process::wait(&[record.process], std::time::Duration::from_secs(5));
            }
        }
        let named: Vec<_> = inside.iter().map(|process| (*process, process.name())).collect();
        let left = process::end(&inside);
        for (process, name) in named {
            let list = if left.contains(&process) { &mut ended.left } else { &mut ended.ended };
            list.push((process.pid, name));
        }
    }
    // Otherwise they could not be found again.
    if ended.left.is_empty() {
        remove(&home.of(name))?;
    }
    Ok(ended)
}

fn remove(dir: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(dir) {
        Ok(()) => Ok(()),
        // It has done so itself.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).tried(|| format!("remove {}", dir.display())),
    }
}

/// The processes that live in a testbed's network namespaces, without the one that holds it.
///
/// When that one has ended (`sure` is false), the kernel may have given the number of a namespace again. Then a
/// process counts only if something else says so too: the number of its mount namespace, or the testbed's token in
/// its environment.
fn inside(record: &Record, sure: bool) -> Vec<Process> {
    let own = Process::own();
    let token = format!("{VARIABLE}={}/{}", record.name, record.token);
    let numbers: Vec<u64> = record.hosts.iter().filter_map(|host| host.namespace).collect();
    Process::all()
        .filter(|process| *process != record.process && Some(*process) != own)
        .filter(|process| process.namespace("net").is_some_and(|number| numbers.contains(&number)))
        .filter(|process| {
            let environment = || fs::read(process.file("environ")).unwrap_or_default();
            sure || process.namespace("mnt") == Some(record.mount)
                || environment().split(|byte| *byte == 0).any(|entry| entry == token.as_bytes())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_removed_itself_is_removed_and_what_cannot_be_is_named() {
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
