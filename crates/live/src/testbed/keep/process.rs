//! Processes, identified by number and start time.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

/// A process. Numbers are reused after the end; together with the start time they are unique until the next
/// boot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// Start time, clock ticks since the boot.
    pub start: u64,
}

impl Process {
    /// The calling process.
    pub fn own() -> Option<Process> {
        Process::running(Pid::this().as_raw())
    }

    /// The process with this number, unless it is a zombie.
    pub fn running(pid: i32) -> Option<Process> {
        parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
            .map(|start| Process { pid, start })
    }

    /// Whether it still runs.
    pub fn runs(self) -> bool {
        Process::running(self.pid) == Some(self)
    }

    /// All visible processes.
    pub fn all() -> impl Iterator<Item = Process> {
        let entries = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
        entries
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter_map(Process::running)
    }

    /// Its name, for messages.
    pub fn name(self) -> String {
        let name = fs::read_to_string(self.file("comm")).unwrap_or_default();
        name.trim_end().to_owned()
    }

    /// One of its files in /proc.
    pub(super) fn file(self, name: &str) -> PathBuf {
        Path::new("/proc").join(self.pid.to_string()).join(name)
    }

    /// Number of one of its namespaces.
    pub(super) fn namespace(self, kind: &str) -> Option<u64> {
        use std::os::unix::fs::MetadataExt as _;
        Some(fs::metadata(self.file("ns").join(kind)).ok()?.ino())
    }

    /// Sends a signal to a running process. Returns whether it existed.
    pub fn signal(self, signal: Signal) -> bool {
        self.runs() && kill(Pid::from_raw(self.pid), signal) != Err(Errno::ESRCH)
    }
}

/// Waits until all of `processes` have ended, at most `most`. Returns whether they have.
#[expect(clippy::disallowed_methods, reason = "waits for processes, outside of any experiment")]
pub(super) fn wait(processes: &[Process], most: Duration) -> bool {
    let step = Duration::from_millis(5);
    for _ in 0..=most.as_millis() / step.as_millis() {
        if !processes.iter().any(|process| process.runs()) {
            return true;
        }
        thread::sleep(step);
    }
    false
}

/// Ends processes by SIGHUP, SIGTERM and at last SIGKILL. Returns the processes that still run after half a
/// minute, for example in an uninterruptible call. The last process of a namespace waits for the namespace's
/// removal.
pub(super) fn end(processes: &[Process]) -> Vec<Process> {
    for (signal, patience) in
        [(Signal::SIGHUP, 0), (Signal::SIGTERM, 1000), (Signal::SIGKILL, 30_000)]
    {
        for process in processes {
            process.signal(signal);
        }
        if wait(processes, Duration::from_millis(patience)) {
            return Vec::new();
        }
    }
    processes.iter().copied().filter(|process| process.runs()).collect()
}

/// Parses the start time in /proc/PID/stat. The program's name in brackets may contain any characters.
fn parse(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    // In proc(5), field 3 is the state and field 22 the start time.
    let state = fields.next()?;
    if state == "Z" || state == "X" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_time_is_parsed_for_any_process_name() {
        let rest = "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21";
        assert_eq!(parse(&format!("12 (sh) {rest}")), Some(4711));
        assert_eq!(parse(&format!("12 (a) S 1 (b) {rest}")), Some(4711));
        assert_eq!(parse(&format!("12 (sh) Z{}", &rest[1..])), None);
        assert_eq!(parse("12 (sh) S 1"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn a_process_is_identified_by_pid_and_start_time() {
        let own = Process::own().expect("we run");
        assert!(own.runs());
        assert!(Process::all().any(|process| process == own));
        assert!(!Process { start: own.start + 1, ..own }.runs());
        assert!(!Process { start: own.start + 1, ..own }.signal(Signal::SIGKILL));
    }
}
