//! Disks that are full or take nothing: every command that writes is run on disks of every size up to the one that it
//! needs.
//!
//! The disk is a tmpfs in a namespace of its own (`unshare -rm`), so this needs no rights and touches nothing else.
//! What a command has left there is looked at afterwards: a file under a final name must be the one that it should be.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A command that writes to a directory.
#[derive(Clone, Copy, Debug)]
pub struct Writer {
    /// What it is called in tables.
    pub name: &'static str,
    /// Its words; `OUT` stands for the disk, `IN` for a directory with what it reads.
    pub words: &'static [&'static str],
}

/// All commands that write files.
pub const WRITERS: &[Writer] = &[
    Writer { name: "run", words: &["run", "IN/small.toml", "-o", "OUT/r", "--trace", "all"] },
    Writer {
        name: "sweep",
        words: &["sweep", "IN/small.toml", "--store", "OUT/s", "--seeds", "40"],
    },
    Writer { name: "merge", words: &["merge", "IN/store", "-o", "OUT/m"] },
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
    Writer { name: "man", words: &["man", "OUT/man"] },
    Writer { name: "link --keygen", words: &["link", "--keygen", "OUT/link.key"] },
];

/// A scenario that takes little time and little room.
const SMALL: &str = "name = \"small\"\nruns = 2\ntransfer = { from = \"fixed\", to = \"mobile\", bytes = \"20kB\" }\n\
    [host.fixed]\n[host.mobile]\n[[path]]\nlink = { rate = \"1mbit\", delay = \"10ms\" }\n";

/// What a command came to on disks of many sizes.
#[derive(Clone, Debug, Default)]
pub struct Disks {
    /// Runs that had too little room, and said so.
    pub refused: u64,
    /// Runs that had enough.
    pub done: u64,
    /// What was wrong.
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

/// Whether a file is written under a name that nobody reads until it is whole.
pub(crate) fn is_temporary(name: &str) -> bool {
    let is =
        |part: &str| part.starts_with('.') || part.ends_with(".tmp") || part.contains(".partial");
    name.split('/').any(is)
}

/// A list of finished runs grows at its end; what a crash leaves of the last line is passed over when it is read.
pub(crate) fn grows(name: &str) -> bool {
    name.ends_with(".jsonl")
}

/// What is wrong with the files that are `left` where those of `whole` should be; all of them if the command says that it
/// is `done`.
pub(crate) fn files(whole: &Tree, left: &Tree, done: bool, wrong: &mut impl FnMut(&str)) {
    for name in whole.keys().filter(|name| done && !left.contains_key(*name)) {
        wrong(&format!("it says that all is done, and `{name}` is not there"));
    }
    for (name, bytes) in left {
        let is_right = match whole.get(name) {
            _ if is_temporary(name) => true,
            // A key is another one each time.
            Some(_) if name.ends_with(".key") => !bytes.is_empty(),
            // Runs finish in any order.
            Some(full) if grows(name) => bytes.len() <= full.len() + 4096,
            Some(full) => full == bytes,
            None => false,
        };
        if !is_right {
            wrong(&format!("`{name}` is there, with {} bytes, and is another one", bytes.len()));
        }
    }
}

/// The program, and where it may work.
#[derive(Debug)]
pub struct Bench {
    pub(crate) program: PathBuf,
    pub(crate) base: PathBuf,
}

impl Bench {
    /// Makes in `base` what the commands read.
    ///
    /// # Errors
    ///
    /// Files that cannot be written, and a program that cannot be run.
    pub fn new(program: &Path, base: &Path) -> io::Result<Bench> {
        let program = fs::canonicalize(program)?;
        fs::create_dir_all(base.join("in"))?;
        fs::create_dir_all(base.join("disk"))?;
        let bench = Bench { program, base: fs::canonicalize(base)? };
        let input = bench.base.join("in");
        fs::write(input.join("small.toml"), SMALL)?;
        let path = |name: &str| input.join(name).display().to_string();
        let (small, run, store) = (path("small.toml"), path("run"), path("store"));
        bench.plainly(&["run", &small, "-o", &run, "--trace", "all"])?;
        bench.plainly(&["sweep", &small, "--store", &store, "--seeds", "40"])?;
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

    /// Runs `writer` on a disk of `kib` KiB that is `mounted` so, and keeps what is then on it.
    fn on_disk(&self, writer: &Writer, kib: u64, mounted: &str) -> io::Result<(Output, Tree)> {
        let (disk, after) = (self.base.join("disk"), self.base.join("after"));
        let _ = fs::remove_dir_all(&after);
        fs::create_dir_all(&after)?;
        // Whatever the command does, what it leaves is copied to a place with room.
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
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(io::Error::other(format!("no disk in a namespace of its own: {said}")));
        }
        let mut tree = Tree::new();
        read(&after, &after, &mut tree)?;
        Ok((output, tree))
    }

    /// Runs `writer` on a disk that takes nothing, and on `steps` disks up to one that has room for all.
    ///
    /// # Errors
    ///
    /// No such disk can be made here.
    pub fn fill(&self, writer: &Writer, steps: u64) -> io::Result<Disks> {
        let mut all = Disks::default();
        let (output, whole) = self.on_disk(writer, 1 << 20, "rw")?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(io::Error::other(format!("{}: with room for all: {said}", writer.name)));
        }
        // A tmpfs has pages, and a file takes whole ones.
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
        all: &mut Disks,
    ) {
        let said = String::from_utf8_lossy(&output.stderr);
        let mut wrong = |what: &str| {
            let last: String = said.lines().rev().take(6).collect::<Vec<_>>().join(" / ");
            all.wrong.push(format!("{} on a disk {disk}: {what}; it said: {last}", writer.name));
        };
        match output.status.code() {
            Some(0) => all.done += 1,
            Some(1 | 2) => {
                all.refused += 1;
                if !said.contains(&self.base.join("disk").display().to_string()) {
                    wrong("the error names no file");
                }
            }
            _ => wrong(&format!("it ended so: {}", output.status)),
        }
        if said.contains("panicked") {
            wrong("it panicked");
        }
        files(whole, left, output.status.success(), &mut wrong);
        for name in left.keys().filter(|name| is_temporary(name)) {
            wrong(&format!("`{name}` was left behind"));
        }
    }
}
