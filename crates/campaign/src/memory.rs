//! Commands with too little memory: they end with an error or are ended by the system, and what they leave under a final
//! name is whole.
//!
//! The bound is that of the address space (`ulimit -v`), which every allocation meets at once; what a group of processes
//! may have (`memory.max`) ends a process by SIGKILL instead, as the campaigns of kills do.
//!
//! Stations and tunnels meet it as well (`Little`): some start with too little, others get no more from some time on.

use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};

use lasthop_proto::rng::Stream;
use rustix::process::Signal;

use crate::disk::{Bench, Tree, Writer, files, read};

/// More than any of the commands needs, in KiB.
const PLENTY: u64 = 16 << 20;

/// What a command came to with many sizes of memory.
#[derive(Clone, Debug, Default)]
pub struct Starved {
    /// Ended with an error.
    pub refused: u64,
    /// Ended by the system where an allocation failed.
    pub killed: u64,
    /// Had enough.
    pub done: u64,
    /// The least with which it is done, in KiB.
    pub least: u64,
    /// What was wrong.
    pub wrong: Vec<String>,
}

/// Whether a panic is for want of memory: the compressor of tables and the standard library's start of a thread have no
/// other way to say so.
fn is_told(said: &str) -> bool {
    ["null pointer", "annot allocate memory"].iter().any(|why| said.contains(why))
}

/// How processes that go on and on come to too little memory.
pub(crate) struct Little {
    dice: Stream,
    /// With less the kernel or the loader ends the program before it begins.
    least: u64,
    /// The most that one has had, in bytes of its address space.
    most: u64,
}

impl Little {
    /// Seeks the least with which `program` begins at all.
    pub(crate) fn new(program: &Path) -> Little {
        let (mut few, mut least) = (0, PLENTY << 10);
        while least - few > least / 200 {
            let bytes = few.midpoint(least);
            let mut command = Command::new("prlimit");
            command.arg(format!("--as={bytes}")).arg(program).arg("--version");
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let begins = command.status().is_ok_and(|status| status.success());
            if begins { least = bytes } else { few = bytes }
        }
        Little { dice: Stream::new(2, "memory"), least, most: 0 }
    }

    /// Every second process that `command` starts has less than others had. It has no input and no output.
    pub(crate) fn start(&mut self, command: Command) -> Command {
        if self.most <= self.least || self.dice.below(2) == 0 {
            return command;
        }
        let bytes = self.least + self.dice.below(self.most - self.least);
        let mut limited = Command::new("prlimit");
        limited.arg(format!("--as={bytes}")).arg(command.get_program()).args(command.get_args());
        for (key, value) in command.get_envs() {
            match value {
                Some(value) => limited.env(key, value),
                None => limited.env_remove(key),
            };
        }
        limited.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        limited
    }

    /// From now on `child` gets next to nothing more.
    ///
    /// # Errors
    ///
    /// `prlimit` (util-linux) is not there.
    pub(crate) fn take_away(&mut self, child: &Child) -> io::Result<()> {
        let told = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let size = told.lines().find_map(|line| line.strip_prefix("VmSize:"));
        let kib = size.and_then(|size| size.trim().split(' ').next()?.parse::<u64>().ok());
        // It has ended.
        let Some(kib) = kib else { return Ok(()) };
        let bytes = kib << 10;
        self.most = self.most.max(bytes);
        let limit = bytes + self.dice.below(256 << 10);
        let mut command = Command::new("prlimit");
        command.args(["--pid", &child.id().to_string(), &format!("--as={limit}")]);
        // Where it has ended in the meantime nothing is to be done.
        command.stderr(Stdio::null()).status().map(drop)
    }

    /// Whether a process may end so, having said this, that had too little.
    pub(crate) fn excuses(status: ExitStatus, said: &str) -> bool {
        match status.code() {
            Some(1 | 2 | 127) => !said.trim().is_empty(),
            Some(101) => is_told(said),
            Some(code) => code == 0,
            // By the signal of the runtime where an allocation fails, or the one that it was sent.
            None => status.signal() != Some(Signal::SEGV.as_raw()),
        }
    }
}

impl Bench {
    /// Runs `writer` with an address space of `kib` KiB, and keeps what it has written.
    fn within(&self, writer: &Writer, kib: u64) -> io::Result<(Output, Tree)> {
        let out = self.base.join("starved");
        let _ = fs::remove_dir_all(&out);
        fs::create_dir_all(&out)?;
        let mut command = Command::new("timeout");
        let script = "ulimit -v \"$1\" || exit 99; shift; exec \"$@\"";
        command
            .args(["-k", "2", "20", "sh", "-c", script, "sh"])
            .arg(kib.to_string())
            .arg(&self.program);
        let (to, input) = (out.display().to_string(), self.base.join("in").display().to_string());
        for word in writer.words {
            command.arg(word.replace("OUT", &to).replace("IN", &input));
        }
        // A backtrace takes memory: where that fails too, the standard library waits for itself.
        let output = command.env_remove("RUST_BACKTRACE").stdin(Stdio::null()).output()?;
        let mut tree = Tree::new();
        read(&out, &out, &mut tree)?;
        Ok((output, tree))
    }

    /// Runs `writer` with `steps` sizes of memory below the least that it needs, which is sought first.
    ///
    /// # Errors
    ///
    /// Files could not be read or written, or it fails with plenty.
    pub fn starve(&self, writer: &Writer, steps: u64) -> io::Result<Starved> {
        let mut all = Starved::default();
        let (output, whole) = self.within(writer, PLENTY)?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(io::Error::other(format!("{}: with plenty: {said}", writer.name)));
        }
        // The least is sought to a two-hundredth.
        let (mut few, mut enough) = (0, PLENTY);
        while enough - few > enough / 200 {
            let kib = few.midpoint(enough);
            let (output, left) = self.within(writer, kib)?;
            self.weigh(writer, kib, &output, (&left, &whole), &mut all);
            if output.status.success() { enough = kib } else { few = kib }
        }
        all.least = enough;
        for step in 1..=steps {
            let kib = enough / 4 + enough * 3 * step / (4 * steps);
            let (output, left) = self.within(writer, kib)?;
            self.weigh(writer, kib, &output, (&left, &whole), &mut all);
        }
        Ok(all)
    }

    fn weigh(
        &self,
        writer: &Writer,
        kib: u64,
        output: &Output,
        (left, whole): (&Tree, &Tree),
        all: &mut Starved,
    ) {
        let said = String::from_utf8_lossy(&output.stderr);
        let mut wrong = |what: &str| {
            let last: Vec<&str> = said.lines().rev().take(4).collect();
            all.wrong.push(format!(
                "{} within {kib} KiB: {what}; it said: {}",
                writer.name,
                last.join(" / ")
            ));
        };
        // The shell or the loader may have too little as well: 127 and their own words.
        match output.status.code() {
            Some(0) => all.done += 1,
            Some(1 | 2 | 127) if !said.trim().is_empty() => all.refused += 1,
            // timeout tells of a signal so, and of its own so.
            Some(124 | 137) => wrong("it does not end"),
            None | Some(134 | 139) => all.killed += 1,
            Some(_) => wrong(&format!("it ended so: {}", output.status)),
        }
        if said.contains("panicked") && !is_told(&said) {
            wrong("it panicked");
        }
        if output.status.code() == Some(139) {
            wrong("it was ended by SIGSEGV");
        }
        files(whole, left, output.status.success(), &mut wrong);
    }
}
