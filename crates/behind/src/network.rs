//! Two hosts and the process that runs the link between them.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use lasthop_live::shell::{Ended, LEVEL, Wish};

use crate::steps::{self, Line};
use crate::{Error, Host, Link};

/// Two hosts with a link between them, for as long as this value lives.
#[derive(Debug)]
pub struct Network {
    near: Host,
    far: Host,
    front: Front,
    // Dropped last, since it contains the sockets of the hosts.
    _dir: PrivateDir,
}

impl Network {
    pub(crate) fn start(link: &Link) -> Result<Network, Error> {
        let dir = PrivateDir::new()?;
        let (near, far) = (dir.0.join("near"), dir.0.join("far"));
        let this =
            std::env::current_exe().map_err(|error| Error::of("find this program", &error))?;
        let level = std::env::var(LEVEL).ok().and_then(|level| level.parse().ok()).unwrap_or(0);
        let wish = Wish {
            text: link.text()?,
            name: "link".to_owned(),
            set: link.set.clone(),
            program: steps::host(&this, &near),
            environment: Vec::new(),
            interactive: false,
            serve: vec![shell_line(&steps::host(&this, &far))?],
            outside: None,
            root: true,
            json: false,
            capture: link.capture.clone(),
            level,
        };
        let mut front = Front::start(&wish)?;
        match front.next()? {
            Line::Ready { near: near_address, far: far_address } => Ok(Network {
                near: Host::new(near, near_address)?,
                far: Host::new(far, far_address)?,
                front,
                _dir: dir,
            }),
            line => Err(unexpected(line)),
        }
    }

    /// The host at the right end of the link.
    pub fn near(&self) -> &Host {
        &self.near
    }

    /// The host at the left end of the link.
    pub fn far(&self) -> &Host {
        &self.far
    }

    /// Removes the link and returns its summary. `down` is the direction towards the near host.
    ///
    /// # Errors
    ///
    /// If the link had ended before.
    pub fn finish(mut self) -> Result<Ended, Error> {
        // When its standard input closes, the near host ends, which ends the link.
        drop(self.front.child.stdin.take());
        match self.front.next()? {
            Line::Ended(ended) => Ok(*ended),
            line => Err(unexpected(line)),
        }
    }
}

/// The error for a message that is received instead of the expected one.
fn unexpected(line: Line) -> Error {
    match line {
        Line::Failed { message, help } => Error { message, help },
        Line::Ready { .. } | Line::Ended(_) => Error::new("the link ended early", ""),
    }
}

/// A command line for `sh` that replaces the shell by `program`.
fn shell_line(program: &[OsString]) -> Result<String, Error> {
    let mut line = "exec".to_owned();
    for word in program {
        let Some(word) = word.to_str() else {
            let message = format!("{} is not UTF-8", word.to_string_lossy());
            return Err(Error::new(message, "move the test program to a path in UTF-8"));
        };
        line += &format!(" '{}'", word.replace('\'', r"'\''"));
    }
    Ok(line)
}

/// The process that runs the link. Dropping this value ends the process and the link.
#[derive(Debug)]
struct Front {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Front {
    fn start(wish: &Wish) -> Result<Front, Error> {
        let wish = serde_json::to_string(wish)
            .map_err(|error| Error::new(format!("cannot describe the link: {error}"), ""))?;
        let mut command = steps::own(&[steps::FRONT, &wish]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child =
            command.spawn().map_err(|error| Error::of("start this program again", &error))?;
        match child.stdout.take() {
            Some(lines) => Ok(Front { child, lines: BufReader::new(lines) }),
            None => Err(Error::new("a process has no standard output", "")),
        }
    }

    fn next(&mut self) -> Result<Line, Error> {
        let mut line = String::new();
        self.lines.read_line(&mut line).map_err(|error| Error::of("read from the link", &error))?;
        serde_json::from_str(&line).map_err(|_| {
            let help = "does the program's `main`, or a function before it, end the process?";
            Error::new("the process that holds the link ended early", help)
        })
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        // When its standard input closes, the near host ends, which ends the link.
        if self.child.stdin.take().is_some() {
            let _ = self.next();
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A directory that only this user can read; dropping the value removes it.
#[derive(Debug)]
struct PrivateDir(PathBuf);

impl PrivateDir {
    fn new() -> Result<PrivateDir, Error> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("lasthop-behind-{}-{number}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        DirBuilder::new()
            .mode(0o700)
            .create(&dir)
            .map_err(|error| Error::of(&format!("make {}", dir.display()), &error))?;
        Ok(PrivateDir(dir))
    }
}

impl Drop for PrivateDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(Path::new(&self.0));
    }
}
