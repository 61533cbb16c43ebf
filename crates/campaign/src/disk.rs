//! Full and read-only disks: every command that writes runs on disks of every size up to the size that it needs.
//!
//! The disk is a tmpfs in an own namespace (`unshare -rm`), so it needs no rights and no other file is touched. A file
//! that a command leaves under its final name must have the right content.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A command that writes to a directory.
#[derive(Clone, Copy, Debug)]
pub struct Writer {
    /// Its name in tables.
    pub name: &'static str,
    /// Its arguments; `OUT` is replaced by the disk, `IN` by the directory with its input.
    pub words: &'static [&'static str],
}

pub const WRITERS: &[Writer] = &[
    Writer { name: "run", words: &["run", "IN/small.toml", "-o", "OUT/r", "--details", "all"] },
    Writer {
        name: "sweep",
        words: &["sweep", "IN/small.toml", "--store", "OUT/s", "--seeds", "40"],
    },
    Writer { name: "compare", words: &["compare", "IN/small.toml", "-o", "OUT/c", "--seeds", "2"] },
    Writer { name: "analyze", words: &["analyze", "IN/link.pcapng", "-o", "OUT/a"] },
    Writer { name: "report", words: &["report", "IN/run", "-o", "OUT/page.html"] },
    Writer {
        name: "reproduce",
        words: &["reproduce", "W-ELN-CHECKSUM", "--seeds", "1", "-o", "OUT/p"],
    },
    Writer {
        name: "trace make",
        words: &["trace", "make", "lte", "--rate", "12mbit", "-o", "OUT/lte.up"],
    },
    Writer {
        name: "trace convert",
        words: &["trace", "convert", "IN/link.pcapng", "-o", "OUT/link.up"],
    },
    Writer { name: "generate man", words: &["generate", "man", "OUT/man"] },
    Writer { name: "link --keygen", words: &["link", "--keygen", "OUT/link.key"] },
];

/// A scenario with a short run and small output.
const SMALL: &str = "name = \"small\"\nruns = 2\ntransfer = { from = \"fixed\", to = \"mobile\", bytes = \"20kB\" }\n\
    [host.fixed]\n[host.mobile]\n[[path]]\nlink = { rate = \"1mbit\", delay = \"10ms\" }\n";

/// Results of a command on disks of many sizes.
#[derive(Clone, Debug, Default)]
pub struct DiskRuns {
    /// Runs without enough room that reported an error.
    pub refused: u64,
    /// Runs with enough room.
    pub done: u64,
    /// Faults found.
    pub wrong: Vec<String>,
}

/// Files by name.
pub(crate) type Tree = BTreeMap<String, Vec<u8>>;

pub(crate) fn read(root: &Path, at: &Path, into: &mut Tree) -> io::Result<()> {
    for entry in fs::read_dir(at)? {
        let path = entry?.path();
        if path.is_dir() {
            read(root, &path, into)?;
        } else {
            let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            into.insert(name, fs::read(&path)?);
        }
    }
    Ok(())
}

/// The file has a temporary name, under which no reader looks for it.
pub(crate) fn is_temporary(name: &str) -> bool {
    let is =
        |part: &str| part.starts_with('.') || part.ends_with(".tmp") || part.contains(".partial");
    name.split('/').any(is)
}

/// The file is a list of finished runs, which grows at its end. Readers skip an incomplete last line after a crash.
pub(crate) fn grows(name: &str) -> bool {
    name.ends_with(".jsonl")
}

/// Reports files in `left` that differ from those in `whole`. With `done` (the command reported success) every file
/// must be there.
pub(crate) fn files(whole: &Tree, left: &Tree, done: bool, wrong: &mut impl FnMut(&str)) {
    for name in whole.keys().filter(|name| done && !left.contains_key(*name)) {
        wrong(&format!("it reports success, but `{name}` is missing"));
    }
    for (name, bytes) in left {
        let is_right = match whole.get(name) {
            _ if is_temporary(name) => true,
            // A new key on each run.
            Some(_) if name.ends_with(".key") => !bytes.is_empty(),
            // Runs finish in any order.
            Some(full) if grows(name) => bytes.len() <= full.len() + 4096,
            Some(full) => full == bytes,
            None => false,
        };
        if !is_right {
            wrong(&format!("`{name}` has {} bytes and other content", bytes.len()));
        }
    }
}

/// The program, and its working directory.
#[derive(Debug)]
pub struct Bench {
    pub(crate) program: PathBuf,
    pub(crate) base: PathBuf,
}

impl Bench {
    /// Writes the input of the commands to `base`.
    ///
    /// # Errors
    ///
    /// A file cannot be written, or the program does not start.
    pub fn new(program: &Path, base: &Path) -> io::Result<Bench> {
        let program = fs::canonicalize(program)?;
        fs::create_dir_all(base.join("in"))?;
        fs::create_dir_all(base.join("disk"))?;
        let bench = Bench { program, base: fs::canonicalize(base)? };
        let input = bench.base.join("in");
        fs::write(input.join("small.toml"), SMALL)?;
        let path = |name: &str| input.join(name).display().to_string();
        let (small, run) = (path("small.toml"), path("run"));
        bench.plainly(&["run", &small, "-o", &run, "--details", "all"])?;
        let mut written = Tree::new();
        read(&input, &input, &mut written)?;
        let capture = written.iter().find(|(name, _)| name.ends_with("link.pcapng"));
        let (_, bytes) = capture.ok_or_else(|| io::Error::other("a run left no capture"))?;
        fs::write(input.join("link.pcapng"), bytes)?;
        Ok(bench)
    }

    fn plainly(&self, words: &[&str]) -> io::Result<()> {
        let output = Command::new(&self.program).args(words).stdin(Stdio::null()).output()?;
        match output.status.success() {
            true => Ok(()),
            false => Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned())),
        }
    }

    /// Runs `writer` on a disk of `kib` KiB, mounted with the options `mounted`; returns the files that it leaves.
    fn on_disk(&self, writer: &Writer, kib: u64, mounted: &str) -> io::Result<(Output, Tree)> {
        let (disk, after) = (self.base.join("disk"), self.base.join("after"));
        let _ = fs::remove_dir_all(&after);
        fs::create_dir_all(&after)?;
        // The files are copied off the full disk, whatever the command's exit code is.
        let script = "mount -t tmpfs -o size=\"$1\"k none \"$2\" && mount -o remount,\"$3\" \"$2\" || exit 99\n\
                      disk=$2 after=$3; after=$4; shift 4\n\
                      \"$@\"; code=$?; cp -a \"$disk\"/. \"$after\"/ || exit 98; exit $code";
        let mut command = Command::new("timeout");
        command.args(["60", "unshare", "-rm", "sh", "-c", script, "sh"]);
        command.arg(kib.to_string()).arg(&disk).arg(mounted).arg(&after).arg(&self.program);
        let (out, input) = (disk.display().to_string(), self.base.join("in").display().to_string());
        for word in writer.words {
            command.arg(word.replace("OUT", &out).replace("IN", &input));
        }
        let output = command.stdin(Stdio::null()).output()?;
        if output.status.code() == Some(99) {
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(io::Error::other(format!("no disk in a namespace of its own: {stderr}")));
        }
        let mut tree = Tree::new();
        read(&after, &after, &mut tree)?;
        Ok((output, tree))
    }

    /// Runs `writer` on a read-only disk, and on `steps` disks up to one with room for everything.
    ///
    /// # Errors
    ///
    /// No such disk can be made here.
    pub fn fill(&self, writer: &Writer, steps: u64) -> io::Result<DiskRuns> {
        let mut all = DiskRuns::default();
        let (output, whole) = self.on_disk(writer, 1 << 20, "rw")?;
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(io::Error::other(format!("{}: with room for all: {stderr}", writer.name)));
        }
        // A tmpfs allocates whole pages for each file.
        let pages: u64 = whole.values().map(|bytes| 2 + bytes.len() as u64 / 4096).sum();
        let (output, left) = self.on_disk(writer, 4096, "ro")?;
        self.judge(writer, "that takes nothing", &output, (&left, &whole), &mut all);
        for step in 1..=steps {
            let kib = (4 * pages * step).div_ceil(steps).max(4);
            let (output, left) = self.on_disk(writer, kib, "rw")?;
            self.judge(writer, &format!("of {kib} KiB"), &output, (&left, &whole), &mut all);
        }
        Ok(all)
    }

    fn judge(
        &self,
        writer: &Writer,
        disk: &str,
        output: &Output,
        (left, whole): (&Tree, &Tree),
        all: &mut DiskRuns,
    ) {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let mut wrong = |message: &str| {
            let last: String = stderr.lines().rev().take(6).collect::<Vec<_>>().join(" / ");
            all.wrong
                .push(format!("{} on a disk {disk}: {message}; it printed: {last}", writer.name));
        };
        match output.status.code() {
            Some(0) => all.done += 1,
            Some(1 | 2) => {
                all.refused += 1;
                if !stderr.contains(&self.base.join("disk").display().to_string()) {
                    wrong("the error names no file");
                }
            }
            _ => wrong(&format!("it ended with {}", output.status)),
        }
        if stderr.contains("panicked") {
            wrong("it panicked");
        }
        files(whole, left, output.status.success(), &mut wrong);
        for name in left.keys().filter(|name| is_temporary(name)) {
            wrong(&format!("`{name}` was left behind"));
        }
    }
}
