//! The process that the user has started: it waits for the program, and is to the terminal what the program is.

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

/// How long after a program has been stopped is waited for the news that it goes on: whoever was stopped together with
/// it, by the terminal, hears of both at once.
const TOGETHER_MS: u8 = 100;

/// Signals that are for the program.
const SIGNALS: [Signal; 4] = [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM];

/// Runs `wish` to its end. The calling process, which must not have other threads, changes its user namespace; `own` is
/// this program with a hidden command, and `note` tells the user something.
///
/// # Errors
///
/// If it cannot be.
pub fn front(
    wish: Wish,
    own: impl Fn(&[&str]) -> Command,
    note: &mut dyn FnMut(&str),
) -> Result<Ended, Error> {
    let user = enter::own_processes()?;
    let terminal = Terminal::of_stdin();
    let (mut keeper, mut words, lines) = start(&own)?;
    // Later than the start of the keeper: the program must not inherit it.
    let signals = SigSet::from_iter(SIGNALS);
    signals.thread_block().tried(|| "block signals")?;
    let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
    let signals = SignalFd::with_flags(&signals, flags).tried(|| "wait for signals")?;
    // What it says of an order that it does not take is said in a line.
    let _ = tell(&mut words, &Order { wish, user });
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
                "what ran behind the link has ended with it",
            )
        })
    })
}

/// The keeper, what it is told by, and what it answers by.
fn start(own: &impl Fn(&[&str]) -> Command) -> Result<(Child, File, File), Error> {
    let pipe = || pipe2(OFlag::O_CLOEXEC).tried(|| "make a pipe");
    let ((order, words), (lines, answer)) = (pipe()?, pipe()?);
    for end in [&order, &answer] {
        fcntl(end, FcntlArg::F_SETFD(FdFlag::empty())).tried(|| "hand on a pipe")?;
    }
    let number = |fd: &OwnedFd| fd.as_raw_fd().to_string();
    let keeper = own(&[HOLD, &number(&order), &number(&answer)]).spawn();
    Ok((keeper.tried(|| "start a process")?, words.into(), lines.into()))
}

fn tell(words: &mut File, what: &impl serde::Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    words.write_all(&line)
}

/// Goes on until the keeper is gone; what it told of the end.
fn converse(
    signals: &SignalFd,
    mut words: File,
    lines: File,
    note: &mut dyn FnMut(&str),
) -> Result<Option<Ended>, Error> {
    let mut lines = BufReader::new(lines);
    let mut ended = None;
    loop {
        if lines.buffer().is_empty() {
            wait(&[signals.as_fd(), lines.get_ref().as_fd()], PollTimeout::NONE);
            while let Ok(Some(signal)) = signals.read_signal() {
                // What the terminal sends, the program gets as well.
                if signal.ssi_code <= 0 {
                    let _ = tell(&mut words, &Word::Signal(signal.ssi_signo as i32));
                }
            }
            if !wait(&[lines.get_ref().as_fd()], PollTimeout::ZERO) {
                continue;
            }
        }
        let Some(line) = next(&mut lines)? else { return Ok(ended) };
        match line {
            Line::Runs | Line::Continued => {}
            Line::Note(text) => note(&text),
            Line::Ended(how) => ended = Some(*how),
            Line::Failed { message, help } => return Err(Error::new(message, help)),
            Line::Stopped => {
                let patience = PollTimeout::from(TOGETHER_MS);
                let more = !lines.buffer().is_empty() || wait(&[lines.get_ref().as_fd()], patience);
                if !more {
                    // The program has stopped by itself, or somebody has stopped it alone: so do we, and whoever has
                    // us go on means the program.
                    let _ = raise(Signal::SIGSTOP);
                    let _ = tell(&mut words, &Word::Signal(Signal::SIGCONT as i32));
                }
            }
        }
    }
}

/// The next line of the keeper; `None` when it is gone.
fn next(lines: &mut BufReader<File>) -> Result<Option<Line>, Error> {
    let mut line = String::new();
    let read = lines.read_line(&mut line).tried(|| "hear what becomes of the program")?;
    if read == 0 {
        return Ok(None);
    }
    serde_json::from_str(&line).map(Some).tried(|| "understand what becomes of the program")
}

/// Whether one of these can be read, or is closed, within the time.
fn wait(fds: &[BorrowedFd<'_>], most: PollTimeout) -> bool {
    let mut fds: Vec<_> = fds.iter().map(|fd| PollFd::new(*fd, PollFlags::POLLIN)).collect();
    // When it is interrupted, whoever asks asks again.
    poll(&mut fds, most).is_ok_and(|ready| ready > 0)
}

/// The terminal at the standard input, and whose it was.
struct Terminal(Pid);

impl Terminal {
    /// `None` if there is no terminal, or it is not ours.
    fn of_stdin() -> Option<Terminal> {
        let stdin = io::stdin();
        let group = tcgetpgrp(&stdin).ok().filter(|_| stdin.is_terminal())?;
        (group == getpgrp()).then_some(Terminal(group))
    }

    /// A shell that had the terminal as its own may have ended without giving it back; it could not name us.
    fn take_back(self) {
        give_terminal(self.0);
    }
}

/// Gives the terminal at the standard input to `group`, whoever has it. Without a terminal nothing happens.
pub(super) fn give_terminal(group: Pid) {
    // Whoever is not in front and does that is stopped for it, unless the signal is blocked.
    let mut blocked = SigSet::empty();
    blocked.add(Signal::SIGTTOU);
    if blocked.thread_block().is_ok() {
        let _ = tcsetpgrp(io::stdin(), group);
        let _ = blocked.thread_unblock();
    }
}

/// Ends the calling process by the signal `number`, without a core. Returns if it cannot: the signal is blocked, or
/// ends nobody.
pub fn die_of(number: i32) {
    let Ok(signal) = Signal::try_from(number) else { return };
    let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    let mut set = SigSet::empty();
    set.add(signal);
    let _ = set.thread_unblock();
    let _ = raise(signal);
}
