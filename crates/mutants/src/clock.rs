//! Wall-clock time: limits of a campaign and of tests.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

/// A running stopwatch.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "what bounds a campaign is time on the wall")]
    pub fn start() -> Clock {
        Clock(Instant::now())
    }

    #[expect(clippy::disallowed_methods, reason = "what bounds a campaign is time on the wall")]
    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }

    pub fn seconds(self) -> u64 {
        self.elapsed().as_secs()
    }
}

/// Runs a program; true if it exits with success within `limit`. After that it is killed with all its children.
///
/// # Errors
///
/// It does not start.
#[expect(
    clippy::disallowed_methods,
    reason = "the standard library cannot wait for a child for so long and no longer"
)]
pub fn passes(command: &mut Command, limit: Duration) -> io::Result<bool> {
    let clock = Clock::start();
    let mut child: Child = command.process_group(0).spawn()?;
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        if clock.elapsed() > limit {
            // The standard library cannot kill a process group.
            Command::new("kill").args(["-9", "--", &format!("-{}", child.id())]).status()?;
            child.wait()?;
            return Ok(false);
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}
