//! A wall clock that jumps by years. All times that lasthop computes, forwards and measures must come from the
//! monotonic clock.
//!
//! An `LD_PRELOAD` library (`clock.c`, built with the machine's C compiler) replaces the clock calls of one program, so
//! that no other program is affected. The monotonic clock cannot jump and is passed through. libfaketime is no
//! alternative: it also changes the absolute times of monotonic timers, which the kernel then refuses.

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
    /// Builds the library in `dir`.
    ///
    /// # Errors
    ///
    /// There is no C compiler (`cc`), the library has no effect here, or files could not be written.
    pub fn new(dir: &Path) -> io::Result<Jumps> {
        let (source, library) = (dir.join("clock.c"), dir.join("clock.so"));
        fs::write(&source, SOURCE)?;
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(&source);
        let made = compiler.output()?;
        if !made.status.success() {
            let stderr = String::from_utf8_lossy(&made.stderr).into_owned();
            return Err(io::Error::other(format!("no clock: {stderr}")));
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

    /// Runs `command` with this clock.
    pub fn on<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env("LD_PRELOAD", &self.library)
    }
}
