//! The process that the user starts. It waits for the program and represents it at the terminal.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, IsTerminal as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::process::{Child, Command};

use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SigSet, Signal, raise};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{Pid, getpgrp, pipe2, tcgetpgrp, tcsetpgrp};

use super::{Ended, HOLD, Line, Order, Wish, Word};
use crate::testbed::Error;
use crate::testbed::enter;
use crate::testbed::error::Tried as _;

/// Signals that are forwarded to the program.
const SIGNALS: [Signal; 4] = [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM];

/// Runs `wish` to its end. The calling process changes its user namespace, so it must have a single thread.
/// `own` runs this executable with a hidden command; `note` shows a message to the user.
///
/// # Errors
///
/// If the keeper or the program cannot be started.
pub fn front(
    wish: Wish,
    own: impl Fn(&[&str]) -> Command,
    note: &mut dyn FnMut(&str),
) -> Result<Ended, Error> {
    let user = enter::own_processes()?;
    let order = line(&Order { wish, user }).tried(|| "describe the link")?;
    let terminal = Terminal::of_stdin();
    let (mut keeper, mut words, lines) = start(&own)?;
    // After the start of the keeper, since the program must not inherit the signal mask.
    let signals = SigSet::from_iter(SIGNALS);
    signals.thread_block().tried(|| "block signals")?;
    let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
    let signals = SignalFd::with_flags(&signals, flags).tried(|| "wait for signals")?;
    // A keeper that rejects the order reports the reason in a line.
    let _ = words.write_all(&order);
    let ended = converse(&signals, words, lines, note);
    if let Some(terminal) = terminal {
        terminal.take_back();
    }
    let how = keeper.wait();
    ended.and_then(|ended| {
        ended.ok_or_else(|| {
            let how = how.map_or_else(|error| error.to_string(), |status| status.to_string());
            Error::new(
                format!("the process that held the link ended early ({how})"),
                "the program behind the link has ended with it",
            )
        })
    })
}

/// Starts the keeper. Returns it with the pipe for orders and the pipe for its lines.
fn start(own: &impl Fn(&[&str]) -> Command) -> Result<(Child, File, File), Error> {
    let pipe = || pipe2(OFlag::O_CLOEXEC).tried(|| "make a pipe");
    let ((order, words), (lines, answer)) = (pipe()?, pipe()?);
    for end in [&order, &answer] {
        fcntl(end, FcntlArg::F_SETFD(FdFlag::empty())).tried(|| "pass on a pipe")?;
    }
    let number = |fd: &OwnedFd| fd.as_raw_fd().to_string();
    let keeper = own(&[HOLD, &number(&order), &number(&answer)]).spawn();
    Ok((keeper.tried(|| "start a process")?, words.into(), lines.into()))
}

fn line(message: &impl serde::Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

fn write_line(words: &mut File, message: &impl serde::Serialize) -> io::Result<()> {
    words.write_all(&line(message)?)
}

/// Forwards signals until the keeper exits. Returns the program's end, if the keeper reported it.
fn converse(
    signals: &SignalFd,
    mut words: File,
    lines: File,
    note: &mut dyn FnMut(&str),
) -> Result<Option<Ended>, Error> {
    let mut lines = BufReader::new(lines);
    let (mut ended, mut stopped) = (None, false);
    loop {
        if lines.buffer().is_empty() {
            wait(&[signals.as_fd(), lines.get_ref().as_fd()], PollTimeout::NONE);
            while let Ok(Some(signal)) = signals.read_signal() {
                // The program does not share the terminal's signals, so each is forwarded.
                if signal.ssi_code <= 0 {
                    let _ = write_line(&mut words, &Word::Signal(signal.ssi_signo as i32));
                }
            }
            if !wait(&[lines.get_ref().as_fd()], PollTimeout::ZERO) {
                continue;
            }
        }
        let Some(line) = next(&mut lines)? else { return Ok(ended) };
        match line {
            Line::Runs => {}
            Line::Note(text) => note(&text),
            Line::Ended(how) => ended = Some(*how),
            Line::Failed { message, help } => return Err(Error::new(message, help)),
            // A terminal stops and continues both at once. Then this line is old: the front reads it after both
            // have continued. So it asks.
            Line::Stopped => {
                stopped = true;
                let _ = write_line(&mut words, &Word::IsStopped);
            }
            Line::Continued => stopped = false,
            Line::StillStopped if stopped => {
                // The program alone has stopped: the front stops too. A later SIGCONT for the front is meant
                // for the program.
                let _ = raise(Signal::SIGSTOP);
                stopped = false;
                let _ = write_line(&mut words, &Word::Signal(Signal::SIGCONT as i32));
            }
            Line::StillStopped => {}
        }
    }
}

/// Next line of the keeper; `None` after it has exited.
fn next(lines: &mut BufReader<File>) -> Result<Option<Line>, Error> {
    let mut line = String::new();
    let read = lines.read_line(&mut line).tried(|| "read the state of the program")?;
    if read == 0 {
        return Ok(None);
    }
    serde_json::from_str(&line).map(Some).tried(|| "parse the state of the program")
}

/// Whether one of `fds` becomes readable or is closed within the time.
fn wait(fds: &[BorrowedFd<'_>], most: PollTimeout) -> bool {
    let mut fds: Vec<_> = fds.iter().map(|fd| PollFd::new(*fd, PollFlags::POLLIN)).collect();
    // After an interruption the caller polls again.
    poll(&mut fds, most).is_ok_and(|ready| ready > 0)
}

/// The terminal at the standard input, and its foreground process group.
struct Terminal(Pid);

impl Terminal {
    /// `None` if there is no terminal, or another process group is in the foreground.
    fn of_stdin() -> Option<Terminal> {
        let stdin = io::stdin();
        let group = tcgetpgrp(&stdin).ok().filter(|_| stdin.is_terminal())?;
        (group == getpgrp()).then_some(Terminal(group))
    }

    /// Restores the foreground group. A shell behind the link sees other process numbers, so it cannot do
    /// that itself.
    fn take_back(self) {
        give_terminal(self.0);
    }
}

/// Makes `group` the foreground process group of the terminal at the standard input. Does nothing without a
/// terminal.
pub(super) fn give_terminal(group: Pid) {
    // A background process that does this is stopped by SIGTTOU, unless it blocks the signal.
    let mut blocked = SigSet::empty();
    blocked.add(Signal::SIGTTOU);
    if blocked.thread_block().is_ok() {
        let _ = tcsetpgrp(io::stdin(), group);
        let _ = blocked.thread_unblock();
    }
}

/// Ends the calling process by the signal `number`, without a core dump. Returns if the signal is blocked or
/// does not end a process.
pub fn die_of(number: i32) {
    let Ok(signal) = Signal::try_from(number) else { return };
    let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    let mut set = SigSet::empty();
    set.add(signal);
    let _ = set.thread_unblock();
    let _ = raise(signal);
}
