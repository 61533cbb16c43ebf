//! Commands with too little memory: they end with an error or are ended by the system, and what they leave under a final
//! name is whole.
//!
//! The bound is that of the address space (`ulimit -v`), which every allocation meets at once; what a group of processes
//! may have (`memory.max`) ends a process by SIGKILL instead, as the campaigns of kills do.

use std::fs;
use std::io;
use std::process::{Command, Output, Stdio};

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
        // The compressor of tables and the standard library's start of a thread have no other way to say so.
        let told = ["null pointer", "annot allocate memory"].iter().any(|why| said.contains(why));
        if said.contains("panicked") && !told {
            wrong("it panicked");
        }
        if output.status.code() == Some(139) {
            wrong("it was ended by SIGSEGV");
        }
        files(whole, left, output.status.success(), &mut wrong);
    }
}
