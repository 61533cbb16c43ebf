//! A program behind a link: it runs in its own network, whose only way out is a station.
//!
//! ```text
//!   namespace far            the keeper               namespace near
//!   eth0 ================== far | stages | near ================== eth0: the program
//!   tap0: pasta or slirp4netns, where there is one; else nothing
//! ```
//!
//! There are three processes. The user starts the front: it waits, forwards signals, stops when the program
//! stops, and exits with the program's status. The keeper is the first process of a process namespace: it
//! makes the network, runs the base station and starts the program. When the keeper ends, the kernel ends all
//! processes of that namespace. When the front ends, the kernel ends the keeper, even after `kill -9`. All
//! are in the process group that the user's shell made, so the program has the terminal as without these
//! processes. As a first process the keeper is not stopped with that group.

mod capture;
mod front;
mod hold;
mod outside;
mod run;
mod tally;

use std::ffi::OsString;
use std::net::{Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

pub use front::{die_of, front};
pub use hold::hold;
pub use outside::{Helper, outside};
pub use run::run;
pub use tally::{Direction, Tallied, Waits};

/// Name of the host that runs the program.
pub const NEAR: &str = "near";
/// Name of the host at the other end of the link.
pub const FAR: &str = "far";
/// Environment variable with the number of links around a program.
pub const LEVEL: &str = "LASTHOP_SHELL_LEVEL";
/// Hidden command that starts the keeper.
pub const HOLD: &str = "shell-hold";
/// Hidden command that becomes the program.
pub const RUN: &str = "shell-run";
/// Hidden command that becomes the helper to the outside.
pub const OUTSIDE: &str = "shell-outside";

/// A request for a shell.
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
    /// Whether the program is a shell that takes over the terminal.
    pub interactive: bool,
    /// Commands of `sh` that run on the far host meanwhile.
    pub serve: Vec<String>,
    /// The helper that carries packets to the outside; `None` without access to the outside.
    pub outside: Option<Helper>,
    /// Whether the program appears as root of its network, where the user is not root.
    pub root: bool,
    /// Whether a program that cannot be run is reported as JSON.
    pub json: bool,
    /// File for a capture; a path that need not be UTF-8.
    pub capture: Option<OsString>,
    /// Number of links around this process already.
    pub level: u8,
}

/// A request with the user's identity, which only the front can determine.
#[derive(Serialize, Deserialize)]
struct Order {
    wish: Wish,
    /// User and group, if the keeper is in a user namespace.
    user: Option<(u32, u32)>,
}

/// How a program ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// Exit code.
    Exit(i32),
    /// Number of the signal that ended it.
    Signal(i32),
}

/// Result of a shell.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Ended {
    /// How the program ended.
    pub end: End,
    /// Run time, seconds.
    pub seconds: f64,
    /// Processor time of the station meanwhile, user and kernel, seconds.
    pub cpu_seconds: f64,
    /// Counts of the program's packets.
    #[serde(flatten)]
    pub tallied: Tallied,
    /// Packets that the station lost because it was too slow. Above zero the counts are not reliable.
    pub overrun: u64,
    /// Reason for an incomplete capture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture_error: Option<String>,
}

/// A message of the keeper.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    /// The program runs.
    Runs,
    /// A message for the user.
    Note(String),
    /// The program was stopped by a signal.
    Stopped,
    /// The answer to `Word::IsStopped` if no change of the program is unreported.
    StillStopped,
    /// The stopped program has continued.
    Continued,
    /// The program has ended.
    Ended(Box<Ended>),
    /// The program cannot be started.
    Failed { message: String, help: String },
}

/// A message of the front.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    /// A signal for the program.
    Signal(i32),
    /// Asks whether the program is stopped now.
    IsStopped,
}

/// Addresses of one nesting level. Each level has its own, so that a shell may run in a shell.
#[derive(Clone, Copy, Debug)]
struct Addresses(u8);

impl Addresses {
    /// The n-th address of the range for carrier-grade NAT (RFC 6598).
    fn v4(self, n: u8) -> Ipv4Addr {
        Ipv4Addr::new(100, 64, self.0, n)
    }

    /// The n-th unique local address (RFC 4193).
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
