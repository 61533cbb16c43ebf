//! A ring buffer of our own in tracefs, and what is left of those of processes that were killed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

use super::line::{POINTS, missing};
use crate::testbed::keep::Process;

/// Where every kernel with tracefs has a directory for it.
const TRACEFS: &str = "/sys/kernel/tracing";

/// Begins the name of each instance; the number and the start of its process follow.
const PREFIX: &str = "lasthop-";

/// Ring buffers of all processors together, in KiB; one has no more than [`MOST_KIB`].
const ALL_KIB: usize = 16 << 10;
const MOST_KIB: usize = 2 << 10;
const LEAST_KIB: usize = 128;

/// A private ring buffer with the events of some ports. It ends when it is dropped.
#[derive(Debug)]
pub struct Instance {
    path: PathBuf,
    pipe: Option<File>,
}

impl Instance {
    /// Opens one for the TCP senders that have these ports. The calling process must have a mount namespace of its
    /// own, since tracefs is mounted in it if it is not there.
    ///
    /// # Errors
    /// What is missing, as a clause.
    pub fn open(ports: &Range<u16>) -> Result<Instance, String> {
        let root = mounted()?;
        for (group, name, fields) in POINTS {
            let path = root.join("events").join(group).join(name).join("format");
            let format = fs::read_to_string(&path)
                .map_err(|error| format!("the kernel has no tracepoint {name} ({error})"))?;
            if let Some(field) = missing(&format, fields) {
                return Err(format!("the kernel's tracepoint {name} does not tell {field}"));
            }
        }
        sweep_in(&root);
        let own = Process::own().ok_or("/proc does not tell when this process started")?;
        let path = root.join("instances").join(format!("{PREFIX}{}-{}", own.pid, own.start));
        fs::create_dir(&path).map_err(|error| format!("no trace buffer of our own: {error}"))?;
        let mut instance = Instance { path, pipe: None };
        instance.set_up(ports)?;
        Ok(instance)
    }

    fn set_up(&mut self, ports: &Range<u16>) -> Result<(), String> {
        let processors = fs::read_dir(self.path.join("per_cpu")).map_or(1, Iterator::count).max(1);
        let size = (ALL_KIB / processors).clamp(LEAST_KIB, MOST_KIB);
        self.set("buffer_size_kb", &size.to_string())?;
        // The clock of the run.
        self.set("trace_clock", "mono")?;
        // The usual text has no address of the socket (since 6.4).
        self.set("options/fields", "1")?;
        let range = format!("sport >= {} && sport < {}", ports.start, ports.end);
        for (group, name, _) in POINTS {
            let filter = match name {
                "inet_sock_set_state" => format!("{range} && newstate == 2"),
                _ => range.clone(),
            };
            self.set(&format!("events/{group}/{name}/filter"), &filter)?;
            self.set(&format!("events/{group}/{name}/enable"), "1")?;
        }
        let pipe = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open(self.path.join("trace_pipe"));
        self.pipe = Some(pipe.map_err(|error| format!("trace_pipe cannot be read: {error}"))?);
        Ok(())
    }

    fn set(&self, file: &str, value: &str) -> Result<(), String> {
        // Not `fs::write`, which would create what is not there.
        let file = self.path.join(file);
        let written = OpenOptions::new()
            .write(true)
            .open(&file)
            .and_then(|mut file| io::Write::write_all(&mut file, value.as_bytes()));
        written.map_err(|error| format!("{} cannot be set to `{value}`: {error}", file.display()))
    }

    /// Reads what is there, at most `room`; 0 if nothing is.
    ///
    /// # Errors
    /// What the system says.
    pub fn read(&self, room: &mut [u8]) -> io::Result<usize> {
        let Some(mut pipe) = self.pipe.as_ref() else { return Ok(0) };
        loop {
            match pipe.read(room) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(0),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = self.set("events/enable", "0");
        // One whose buffer is being read cannot be removed.
        self.pipe = None;
        // What stays is found by the next one.
        let _ = fs::remove_dir(&self.path);
    }
}

/// Where tracefs is; mounts it where it is not.
fn mounted() -> Result<PathBuf, String> {
    let root = PathBuf::from(TRACEFS);
    let instances = root.join("instances");
    match fs::metadata(&instances) {
        Ok(_) => return Ok(root),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(format!("{} cannot be looked at: {error}", instances.display())),
    }
    mount(Some("tracefs"), &root, Some("tracefs"), MsFlags::empty(), None::<&str>)
        .map_err(|error| format!("tracefs cannot be mounted: {}", error.desc()))?;
    Ok(root)
}

/// Removes the trace buffers of runs that were killed, and says of which processes they were. Finds none without the
/// right to see them. Nothing of it can be seen on the machine: tracefs is mounted for a thread of ours alone.
pub fn sweep() -> Vec<i32> {
    let alone = || {
        let none = None::<&str>;
        unshare(CloneFlags::CLONE_NEWNS).ok()?;
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).ok()?;
        Some(sweep_in(&mounted().ok()?))
    };
    std::thread::spawn(alone).join().ok().flatten().unwrap_or_default()
}

fn sweep_in(root: &Path) -> Vec<i32> {
    let entries = fs::read_dir(root.join("instances")).into_iter().flatten();
    let dead = entries.filter_map(Result::ok).filter_map(|entry| {
        let process = owner(entry.file_name().to_str()?)?;
        // One of a process that only seems to be gone, in a container, is being read and stays.
        (!process.runs() && fs::remove_dir(entry.path()).is_ok()).then_some(process.pid)
    });
    dead.collect()
}

/// Whose an instance is, from its name; `None` if it is not ours.
fn owner(name: &str) -> Option<Process> {
    let (pid, start) = name.strip_prefix(PREFIX)?.split_once('-')?;
    Some(Process { pid: pid.parse().ok()?, start: start.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_names_are_read() {
        assert_eq!(owner("lasthop-12-345"), Some(Process { pid: 12, start: 345 }));
        for name in ["lasthop-", "lasthop-12", "lasthop-x-1", "lasthop-1-2-3", "other-1-2", ""] {
            assert_eq!(owner(name), None, "{name}");
        }
    }
}
