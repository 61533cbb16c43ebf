//! A program behind a link: what runs in a network of its own, whose only way out is a station.
//!
//! ```text
//!   namespace far            the keeper               namespace near
//!   eth0 ================== far | stages | near ================== eth0: the program
//!   tap0: pasta or slirp4netns, where there is one; else nothing
//! ```
//!
//! Three processes. The front is what the user has started: it waits, hands on signals, stops when the program stops,
//! and tells its end. The keeper is the first process of a process namespace: it makes the network, is the base station
//! and starts the program. Whatever ends the keeper ends everything in that namespace, and the front's end is the
//! keeper's: the kernel sees to that, also after `kill -9`. All are in the group of processes that the user's shell
//! made, so that the terminal is the program's as if it ran alone; the keeper, being a first process, goes on when that
//! is stopped.

mod capture;
mod front;
mod hold;
mod outside;
mod run;
mod tally;

use std::ffi::OsString;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use front::{die_of, front};
pub use hold::hold;
pub use outside::{Helper, outside};
pub use run::run;
pub use tally::{Direction, Tallied, Waits};

/// Where the program is.
pub const NEAR: &str = "near";
/// Where the other end of the link is.
pub const FAR: &str = "far";
/// The variable that says how many links are around a program.
pub const LEVEL: &str = "LASTHOP_SHELL_LEVEL";
/// The hidden commands that a shell consists of.
pub const HOLD: &str = "shell-hold";
/// See [`HOLD`].
pub const RUN: &str = "shell-run";
/// See [`HOLD`].
pub const OUTSIDE: &str = "shell-outside";

/// What is wanted.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Wish {
    /// Text of the scenario whose path is the link.
    pub text: String,
    /// Name of the scenario, where its text gives none.
    pub name: String,
    /// `--set` arguments in order.
    pub set: Vec<String>,
    /// The program and its arguments.
    pub program: Vec<OsString>,
    /// Variables of its environment that are added.
    pub environment: Vec<(String, String)>,
    /// Whether it is a shell at a terminal, which takes it as its own.
    pub interactive: bool,
    /// Commands of `sh` that run on the other side of the link meanwhile.
    pub serve: Vec<String>,
    /// Who carries packets to the outside; without it there are the two hosts only.
    pub outside: Option<Helper>,
    /// Whether the program is root of its network, where the user is not root.
    pub root: bool,
    /// Where a capture goes.
    pub capture: Option<PathBuf>,
    /// How many links are around it already.
    pub level: u8,
}

/// The same with what only the front knows.
#[derive(Serialize, Deserialize)]
struct Order {
    wish: Wish,
    /// The user and the group, if the keeper is in a user namespace.
    user: Option<(u32, u32)>,
}

/// How a program ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// With this exit code.
    Exit(i32),
    /// By this signal.
    Signal(i32),
}

/// What became of it all.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Ended {
    /// How the program ended.
    pub end: End,
    /// How long it ran, seconds.
    pub seconds: f64,
    /// What the station cost the processor meanwhile, seconds: its own and the kernel's for it.
    pub cpu_seconds: f64,
    /// What its packets met.
    #[serde(flatten)]
    pub tallied: Tallied,
    /// Packets that the station lost because it could not keep up: then the figures say little.
    pub overrun: u64,
}

/// A line of the keeper.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    /// The program runs.
    Runs,
    /// Something that the user should know.
    Note(String),
    /// The program has been stopped.
    Stopped,
    /// It goes on.
    Continued,
    /// It is over.
    Ended(Box<Ended>),
    /// It cannot be.
    Failed { message: String, help: String },
}

/// A line of the front.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    /// A signal for the program.
    Signal(i32),
}

/// The addresses of a level: each has its own, so that one shell may run in another.
#[derive(Clone, Copy, Debug)]
struct Addresses(u8);

impl Addresses {
    /// The n-th address, of those that are shared among the customers of a carrier (RFC 6598).
    fn v4(self, n: u8) -> Ipv4Addr {
        Ipv4Addr::new(100, 64, self.0, n)
    }

    /// The n-th address, of those that are nobody's outside (RFC 4193).
    fn v6(self, n: u8) -> Ipv6Addr {
        Ipv6Addr::new(0xfd6c, 0x6173, 0x7468, 0, 0, 0, self.0.into(), n.into())
    }

    fn far(self) -> (Ipv4Addr, Ipv6Addr) {
        (self.v4(1), self.v6(1))
    }

    fn near(self) -> (Ipv4Addr, Ipv6Addr) {
        (self.v4(2), self.v6(2))
    }
}
