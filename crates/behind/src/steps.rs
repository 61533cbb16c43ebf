//! Steps of this program when a link restarts it: from a test to a host's network.
//!
//! ```text
//! test -- front -- keeper: the link -+- far host
//!                                    +- near host
//! test -- enter: the program of Host::command
//! ```

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::Command;
use std::thread;

use lasthop_live::shell::{self, Ended, HOLD, RUN, Wish};
use nix::sched::{CloneFlags, setns};
use nix::unistd::{getegid, geteuid};
use serde::{Deserialize, Serialize};

use crate::host;

/// First argument of a program that executes a step.
const WORD: &str = "lasthop-behind";
/// Waits for the link's end.
pub const FRONT: &str = "front";
/// Runs one of the hosts.
const HOST: &str = "host";
/// Becomes a program in the network of a host.
const ENTER: &str = "enter";

/// A line of the front.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Line {
    /// Both hosts have a network, and these addresses.
    Ready { near: Ipv4Addr, far: Ipv4Addr },
    /// The link is down.
    Ended(Box<Ended>),
    /// The link could not be made.
    Failed { message: String, help: String },
}

impl Line {
    fn print(&self) {
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        // If the test has ended, the link ends soon.
        let _ = io::stdout().write_all(&line).and_then(|()| io::stdout().flush());
    }
}

/// This program with the arguments of a step.
pub fn own(arguments: &[&str]) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg(WORD).args(arguments);
    command
}

/// The command line of a host that listens at `socket`.
pub fn host(this: &Path, socket: &Path) -> Vec<OsString> {
    vec![this.into(), WORD.into(), HOST.into(), socket.into()]
}

/// A command that executes the program in its arguments in the network of the process `pid`.
pub fn enter(pid: i32) -> Command {
    let user = format!("{}:{}", geteuid(), getegid());
    own(&[ENTER, &pid.to_string(), &user])
}

/// Executes a step and ends the process, if this program was started for one. Runs before `main`.
pub fn dispatch() {
    // `std::env::args` may not be there yet.
    let Ok(line) = fs::read("/proc/self/cmdline") else { return };
    let line = line.strip_suffix(b"\0").unwrap_or(&line);
    let words: Vec<&OsStr> = line.split(|byte| *byte == 0).map(OsStr::from_bytes).collect();
    if let [_, word, step @ ..] = &words[..]
        && *word == WORD
    {
        std::process::exit(do_step(step).into());
    }
}

fn do_step(words: &[&OsStr]) -> u8 {
    let [step, arguments @ ..] = words else { return 2 };
    let text: Vec<&str> = arguments.iter().map(|word| word.to_str().unwrap_or_default()).collect();
    match (step.to_str().unwrap_or_default(), &text[..]) {
        (FRONT, [wish]) => front(wish),
        (HOLD, [order, answer]) => match (order.parse(), answer.parse()) {
            (Ok(order), Ok(answer)) => {
                shell::hold(order, answer, &own).map_or_else(|error| complain(&error, 1), |()| 0)
            }
            _ => 2,
        },
        (RUN, [user, "--", ..]) => become_program(user, &arguments[2..]),
        (HOST, [_]) => be_host(Path::new(arguments[0])).map_or_else(|e| complain(&e, 1), |()| 0),
        (ENTER, [pid, user, _, ..]) => match join(pid) {
            Ok(is_other_user) => {
                become_program(if is_other_user { user } else { "-" }, &arguments[2..])
            }
            Err(error) => complain(&format!("cannot enter the network of a host: {error}"), 126),
        },
        _ => 2,
    }
}

fn complain(error: &dyn std::fmt::Display, code: u8) -> u8 {
    eprintln!("lasthop-behind: {error}");
    code
}

fn front(wish: &str) -> u8 {
    let wish: Wish = match serde_json::from_str(wish) {
        Ok(wish) => wish,
        Err(error) => return complain(&error, 2),
    };
    match shell::front(wish, own, &mut |_| {}) {
        Ok(ended) => Line::Ended(Box::new(ended)).print(),
        Err(error) => Line::Failed { message: error.message, help: error.help }.print(),
    }
    0
}

/// Runs a host until the test or the link has ended.
fn be_host(socket: &Path) -> io::Result<()> {
    host::serve(socket)?;
    // The keeper waits until something listens on the far host.
    let _listens = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    let Some(far) = std::env::var("LASTHOP_FAR").ok().and_then(|far| far.parse().ok()) else {
        loop {
            thread::park();
        }
    };
    Line::Ready { near: host::address_towards(far)?, far }.print();
    // The test holds the other end.
    io::copy(&mut io::stdin().lock().by_ref(), &mut io::sink())?;
    Ok(())
}

/// Moves into the network of the process `pid`; returns whether that is in another user namespace.
fn join(pid: &str) -> io::Result<bool> {
    let of = |pid: &str, kind: &str| format!("/proc/{pid}/ns/{kind}");
    let network = File::open(of(pid, "net"))?;
    let is_other_user = fs::read_link(of(pid, "user"))? != fs::read_link(of("self", "user"))?;
    if is_other_user {
        setns(File::open(of(pid, "user"))?, CloneFlags::CLONE_NEWUSER)?;
    }
    setns(network, CloneFlags::CLONE_NEWNET)?;
    Ok(is_other_user)
}

/// Returns only if the program cannot be run: the exit code for that.
fn become_program(user: &str, program: &[&OsStr]) -> u8 {
    let ids = user.split_once(':');
    let ids = ids.and_then(|(user, group)| Some((user.parse().ok()?, group.parse().ok()?)));
    let program: Vec<OsString> = program.iter().map(|word| (*word).to_owned()).collect();
    let (why, code) = shell::run(ids, &program);
    complain(&why, code)
}
