//! A wall clock that jumps by years: what lasthop computes, forwards and measures goes by the monotonic clock.
//!
//! A library stands between a program and the clocks that it asks for (`LD_PRELOAD`; `clock.c`, which the C compiler of
//! the machine makes), so nothing else on the machine notices. The monotonic clock cannot jump, and stays as it is.
//! libfaketime would not do: it also changes the absolute times of timers on the monotonic clock, which the kernel refuses.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = include_str!("clock.c");

/// A wall clock that jumps sixty times a second.
#[derive(Debug)]
pub struct Jumps {
    library: PathBuf,
}

impl Jumps {
    /// Makes one; `dir` is where its library lies.
    ///
    /// # Errors
    ///
    /// There is no C compiler (`cc`), the library does nothing here, or files could not be written.
    pub fn new(dir: &Path) -> io::Result<Jumps> {
        let (source, library) = (dir.join("clock.c"), dir.join("clock.so"));
        fs::write(&source, SOURCE)?;
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(&source);
        let made = compiler.output()?;
        if !made.status.success() {
            let said = String::from_utf8_lossy(&made.stderr).into_owned();
            return Err(io::Error::other(format!("no clock: {said}")));
        }
        let jumps = Jumps { library };
        let mut years = Vec::new();
        for _ in 0..20 {
            years.push(jumps.on(Command::new("date").arg("+%Y")).output()?.stdout);
        }
        years.sort();
        years.dedup();
        match years.len() {
            0..=2 => Err(io::Error::other("the wall clock does not jump for other programs here")),
            _ => Ok(jumps),
        }
    }

    /// Lets `command` see this clock.
    pub fn on<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env("LD_PRELOAD", &self.library)
    }
}
