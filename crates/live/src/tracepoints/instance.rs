//! A private ring buffer in tracefs, and the removal of buffers that killed processes left.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

use super::line::{POINTS, missing};
use crate::testbed::keep::Process;

/// Mount point that every kernel with tracefs provides.
const TRACEFS: &str = "/sys/kernel/tracing";

/// Prefix of each instance's name; the number and the start time of its process follow.
const PREFIX: &str = "lasthop-";

/// Size of the ring buffers of all processors together, KiB; each has at most [`MOST_KIB`].
const ALL_KIB: usize = 16 << 10;
const MOST_KIB: usize = 2 << 10;
const LEAST_KIB: usize = 128;

/// A private ring buffer with the events of a range of ports. Dropping it removes the buffer.
#[derive(Debug)]
pub struct Instance {
    path: PathBuf,
    pipe: Option<File>,
}

impl Instance {
    /// Opens a buffer for TCP senders on `ports`. The calling process must have its own mount namespace,
    /// since a missing tracefs is mounted there.
    ///
    /// # Errors
    /// If a requirement is missing, with its description as a clause.
    pub fn open(ports: &Range<u16>) -> Result<Instance, String> {
        let root = mounted()?;
        for (group, name, fields) in POINTS {
            let path = root.join("events").join(group).join(name).join("format");
            let format = fs::read_to_string(&path)
                .map_err(|error| format!("the kernel has no tracepoint {name} ({error})"))?;
            if let Some(field) = missing(&format, fields) {
                return Err(format!("the kernel's tracepoint {name} has no field {field}"));
            }
        }
        sweep_in(&root);
        let own = Process::own().ok_or("/proc does not show the start time of this process")?;
        let path = root.join("instances").join(format!("{PREFIX}{}-{}", own.pid, own.start));
        fs::create_dir(&path).map_err(|error| format!("cannot create a trace buffer: {error}"))?;
        let mut instance = Instance { path, pipe: None };
        instance.set_up(ports)?;
        Ok(instance)
    }

    fn set_up(&mut self, ports: &Range<u16>) -> Result<(), String> {
        let processors = fs::read_dir(self.path.join("per_cpu")).map_or(1, Iterator::count).max(1);
        let size = (ALL_KIB / processors).clamp(LEAST_KIB, MOST_KIB);
        self.set("buffer_size_kb", &size.to_string())?;
        // The same clock as that of the run.
        self.set("trace_clock", "mono")?;
        // The default text has no socket address (since Linux 6.4).
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
        // Not `fs::write`, which would create a missing file.
        let file = self.path.join(file);
        let written = OpenOptions::new()
            .write(true)
            .open(&file)
            .and_then(|mut file| io::Write::write_all(&mut file, value.as_bytes()));
        written.map_err(|error| format!("{} cannot be set to `{value}`: {error}", file.display()))
    }

    /// Reads at most `room` bytes; returns 0 without pending input.
    ///
    /// # Errors
    /// Errors of the system.
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
        // A buffer with an open reader cannot be removed.
        self.pipe = None;
        // A later sweep removes a remaining one.
        let _ = fs::remove_dir(&self.path);
    }
}

/// The path of tracefs; mounts it if needed.
fn mounted() -> Result<PathBuf, String> {
    let root = PathBuf::from(TRACEFS);
    let instances = root.join("instances");
    match fs::metadata(&instances) {
        Ok(_) => return Ok(root),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(format!("{} cannot be read: {error}", instances.display())),
    }
    mount(Some("tracefs"), &root, Some("tracefs"), MsFlags::empty(), None::<&str>)
        .map_err(|error| format!("tracefs cannot be mounted: {}", error.desc()))?;
    Ok(root)
}

/// Removes trace buffers of killed runs, and returns the numbers of their processes. Returns none without the
/// needed rights. The machine's mounts are unchanged: tracefs is mounted for a separate thread only.
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
        // In a container a live process may look dead; its buffer is in use, so the removal fails.
        (!process.runs() && fs::remove_dir(entry.path()).is_ok()).then_some(process.pid)
    });
    dead.collect()
}

/// The process that owns an instance, from its name; `None` for a foreign name.
fn owner(name: &str) -> Option<Process> {
    let (pid, start) = name.strip_prefix(PREFIX)?.split_once('-')?;
    Some(Process { pid: pid.parse().ok()?, start: start.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_instance_names_of_lasthop_have_an_owner() {
        assert_eq!(owner("lasthop-12-345"), Some(Process { pid: 12, start: 345 }));
        for name in ["lasthop-", "lasthop-12", "lasthop-x-1", "lasthop-1-2-3", "other-1-2", ""] {
            assert_eq!(owner(name), None, "{name}");
        }
    }

    /// A directory with the files of a tracefs instance, each with different content.
    fn directory(processors: usize) -> (tempfile::TempDir, Instance) {
        let dir = tempfile::tempdir().unwrap();
        let mut files = vec!["buffer_size_kb", "trace_clock", "options/fields", "trace_pipe"];
        let points: Vec<String> = POINTS
            .iter()
            .flat_map(|(group, name, _)| {
                ["filter", "enable"].map(|file| format!("events/{group}/{name}/{file}"))
            })
            .collect();
        files.extend(points.iter().map(String::as_str));
        files.push("events/enable");
        for file in files {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        for i in 0..processors {
            fs::create_dir_all(dir.path().join(format!("per_cpu/cpu{i}"))).unwrap();
        }
        let instance = Instance { path: dir.path().to_owned(), pipe: None };
        (dir, instance)
    }

    /// Expected content of each file of an instance.
    #[test]
    fn an_instance_is_set_up_for_the_ports() {
        for (processors, size) in
            [(0, "2048"), (2, "2048"), (16, "1024"), (100, "163"), (200, "128")]
        {
            let (dir, mut instance) = directory(processors);
            instance.set_up(&(500..520)).unwrap();
            let text = |file: &str| fs::read_to_string(dir.path().join(file)).unwrap();
            assert_eq!(text("buffer_size_kb"), size, "{processors} processors");
            assert_eq!((text("trace_clock"), text("options/fields")), ("mono".into(), "1".into()));
            for (group, name, _) in POINTS {
                let opening = if name == "inet_sock_set_state" { " && newstate == 2" } else { "" };
                let expected = format!("sport >= 500 && sport < 520{opening}");
                assert_eq!(text(&format!("events/{group}/{name}/filter")), expected, "{name}");
                assert_eq!(text(&format!("events/{group}/{name}/enable")), "1", "{name}");
            }
        }
    }

    #[test]
    fn failed_settings_are_named_and_the_pipe_is_read() {
        let (dir, mut instance) = directory(1);
        assert_eq!(instance.read(&mut [0; 8]).unwrap(), 0, "it is not open yet");
        fs::write(dir.path().join("trace_pipe"), "a line").unwrap();
        instance.set_up(&(1..2)).unwrap();
        let mut room = [0; 100];
        let read = instance.read(&mut room).unwrap();
        assert_eq!(&room[..read], b"a line");
        assert_eq!(instance.read(&mut room).unwrap(), 0, "the end");
        drop(instance);
        assert_eq!(fs::read_to_string(dir.path().join("events/enable")).unwrap(), "0");

        let (dir, mut instance) = directory(1);
        fs::remove_file(dir.path().join("trace_clock")).unwrap();
        let error = instance.set_up(&(1..2)).unwrap_err();
        assert!(error.contains("trace_clock cannot be set to `mono`"), "{error}");
        assert!(!dir.path().join("trace_clock").exists(), "a file was made");
    }

    /// The buffer of a dead process is removed; those of this and other processes remain.
    #[test]
    fn trace_buffers_of_dead_processes_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let own = Process::own().unwrap();
        let ours = format!("{PREFIX}{}-{}", own.pid, own.start);
        // The number of this process with another start time.
        let dead = format!("{PREFIX}{}-{}", own.pid, own.start + 1);
        for name in [ours.as_str(), dead.as_str(), "other-1-2"] {
            fs::create_dir_all(dir.path().join("instances").join(name)).unwrap();
        }
        assert_eq!(sweep_in(dir.path()), [own.pid]);
        let left = |name: &str| dir.path().join("instances").join(name).exists();
        assert_eq!([left(&ours), left(&dead), left("other-1-2")], [true, false, true]);
        assert_eq!(sweep_in(&dir.path().join("none")), [0; 0], "no instances");
    }
}
