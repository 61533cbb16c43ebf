//! Commands with too little memory: they end with an error or by a signal, and files under a final name are complete.
//!
//! The limit is that of the address space (`ulimit -v`), which affects every allocation at once. A limit of a control
//! group (`memory.max`) sends SIGKILL instead, which the kill campaigns cover.
//!
//! `Little` does the same to stations and tunnels: some start with too little memory, others reach a limit later.

use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};

use lasthop_proto::rng::Stream;
use rustix::process::Signal;

use crate::disk::{Bench, Tree, Writer, files, read};

/// More than any command needs, in KiB.
const PLENTY: u64 = 16 << 20;

/// Results of a command with many sizes of memory.
#[derive(Clone, Debug, Default)]
pub struct MemoryRuns {
    pub refused: u64,
    /// Runs ended by a signal when an allocation failed.
    pub killed: u64,
    /// Runs with enough memory.
    pub done: u64,
    /// The smallest size with success, in KiB.
    pub least: u64,
    /// Faults found.
    pub wrong: Vec<String>,
}

/// A panic caused by a failed allocation. The compressor of tables and the standard library's thread start report
/// failure in no other way.
fn is_allocation_failure(stderr: &str) -> bool {
    ["null pointer", "annot allocate memory"].iter().any(|why| stderr.contains(why))
}

/// Takes memory away from processes that run without end.
pub(crate) struct Little {
    dice: Stream,
    /// Below this the kernel or the loader ends the program before it starts.
    least: u64,
    /// The largest address space so far, in bytes.
    most: u64,
}

impl Little {
    /// Searches the smallest size with which `program` starts.
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

    /// Starts `command`; every second process has less memory than earlier ones used. It has no input and no output.
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

    /// Limits `child` to little more than it has now.
    ///
    /// # Errors
    ///
    /// `prlimit` (util-linux) is missing.
    pub(crate) fn take_away(&mut self, child: &Child) -> io::Result<()> {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let size = status.lines().find_map(|line| line.strip_prefix("VmSize:"));
        let kib = size.and_then(|size| size.trim().split(' ').next()?.parse::<u64>().ok());
        // It has ended.
        let Some(kib) = kib else { return Ok(()) };
        let bytes = kib << 10;
        self.most = self.most.max(bytes);
        let limit = bytes + self.dice.below(256 << 10);
        let mut command = Command::new("prlimit");
        command.args(["--pid", &child.id().to_string(), &format!("--as={limit}")]);
        // A process that has ended meanwhile is no fault.
        command.stderr(Stdio::null()).status().map(drop)
    }

    /// A process with too little memory may end with this status and output.
    pub(crate) fn excuses(status: ExitStatus, stderr: &str) -> bool {
        match status.code() {
            Some(1 | 2 | 127) => !stderr.trim().is_empty(),
            Some(101) => is_allocation_failure(stderr),
            Some(code) => code == 0,
            // Ended by SIGABRT after a failed allocation, or by the signal that it was sent.
            None => status.signal() != Some(Signal::SEGV.as_raw()),
        }
    }
}

impl Bench {
    /// Runs `writer` with an address space of `kib` KiB; returns the files that it wrote.
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
        // A backtrace allocates; if that fails, the standard library deadlocks on its own lock.
        let output = command.env_remove("RUST_BACKTRACE").stdin(Stdio::null()).output()?;
        let mut tree = Tree::new();
        read(&out, &out, &mut tree)?;
        Ok((output, tree))
    }

    /// Searches the least memory that `writer` needs, then runs it with `steps` sizes below that.
    ///
    /// # Errors
    ///
    /// Files could not be read or written, or the command fails with plenty of memory.
    pub fn starve(&self, writer: &Writer, steps: u64) -> io::Result<MemoryRuns> {
        let mut all = MemoryRuns::default();
        let (output, whole) = self.within(writer, PLENTY)?;
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(io::Error::other(format!("{}: with plenty: {stderr}", writer.name)));
        }
        // Searched to within 0.5 %.
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
        all: &mut MemoryRuns,
    ) {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let mut wrong = |message: &str| {
            let last: Vec<&str> = stderr.lines().rev().take(4).collect();
            all.wrong.push(format!(
                "{} within {kib} KiB: {message}; it printed: {}",
                writer.name,
                last.join(" / ")
            ));
        };
        // The shell or the loader may lack memory as well, with exit code 127 and other messages.
        match output.status.code() {
            Some(0) => all.done += 1,
            Some(1 | 2 | 127) if !stderr.trim().is_empty() => all.refused += 1,
            // The exit codes of timeout for a signal and for its own.
            Some(124 | 137) => wrong("it does not end"),
            None | Some(134 | 139) => all.killed += 1,
            Some(_) => wrong(&format!("it ended with {}", output.status)),
        }
        if stderr.contains("panicked") && !is_allocation_failure(&stderr) {
            wrong("it panicked");
        }
        if output.status.code() == Some(139) {
            wrong("it was ended by SIGSEGV");
        }
        files(whole, left, output.status.success(), &mut wrong);
    }
}
