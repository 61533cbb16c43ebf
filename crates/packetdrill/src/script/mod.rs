//! The script language: its data types and its parser.
//!
//! The parser accepts the language of packetdrill as of 2025 as far as a TCP needs it. Parts of the language that this
//! crate cannot run (GRE, MPLS, IPv6 headers) are rejected with [`FaultKind::Unsupported`] and their name.

mod call;
mod packet;
mod read;
mod scan;
pub mod shell;

use core::fmt;

use lasthop_proto::wire::Flags;

pub use packet::TFO_COOKIE;

/// Maximum size of a script in bytes.
pub const SCRIPT_MAX: usize = 1 << 20;
/// Maximum number of events of a script.
pub const EVENTS_MAX: usize = 20_000;
/// Maximum time of a script in seconds: one day.
pub const SECONDS_MAX: u64 = 86_400;

/// A script.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Script {
    /// Options of the form `--name=value` at its top, with their lines.
    pub options: Vec<(u32, String, Option<String>)>,
    /// Shell commands before the first event and after the last one, and the line of each.
    pub commands: Vec<(u32, String)>,
    /// The events in their order.
    pub events: Vec<Event>,
}

impl Script {
    /// Parses a script.
    ///
    /// # Errors
    ///
    /// The first wrong or unsupported line.
    pub fn parse(text: &str) -> Result<Script, Fault> {
        read::script(text)
    }
}

/// One event.
#[derive(Clone, PartialEq, Debug)]
pub struct Event {
    /// Its line, from 1.
    pub line: u32,
    /// Its time.
    pub when: When,
    /// Its action.
    pub action: Action,
}

/// Time of an event, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// `1.5`: at this time of the script.
    At(u64),
    /// `1.5~2`: between two times of the script.
    Between(u64, u64),
    /// `+.1`: after the previous event.
    After(u64),
    /// `+.1~+.2`: between two times after the previous event.
    AfterBetween(u64, u64),
    /// `*`: at any time.
    Any,
}

/// Action of an event.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// A packet arrives or is expected.
    Packet(Packet),
    /// The application calls the socket layer.
    Call(Call),
    /// A command of the shell.
    Shell(String),
    /// `%{ ... }%`: statements over `tcp_info`.
    Code(String),
}

/// A packet of a script.
#[derive(Clone, PartialEq, Debug)]
pub struct Packet {
    /// Whether it arrives at the host under test; otherwise the host is expected to send it.
    pub inbound: bool,
    /// Bits of the traffic class, if given.
    pub tos: Option<Tos>,
    /// Hops, if given.
    pub ttl: Option<u8>,
    /// Source and destination port, if given.
    pub ports: Option<(u16, u16)>,
    /// The transport.
    pub transport: Transport,
}

/// The traffic class of a script's packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tos {
    /// These ECN bits.
    Ecn(u8),
    /// ECT(0) or ECT(1).
    Ect01,
    /// The whole field.
    Exact(u8),
}

/// The transport of a packet.
#[derive(Clone, PartialEq, Debug)]
pub enum Transport {
    /// TCP.
    Tcp(Tcp),
    /// An ICMP error message.
    Icmp(Icmp),
}

/// A TCP segment of a script; numbers are relative to the initial ones.
#[derive(Clone, PartialEq, Debug)]
pub struct Tcp {
    /// The flags.
    pub flags: Flags,
    /// The three bits of accurate ECN, if they are given as a number.
    pub ace: Option<u8>,
    /// First sequence number.
    pub seq: u32,
    /// Bytes of payload.
    pub len: u32,
    /// The acknowledgement, if given.
    pub ack: Option<u32>,
    /// The window field, if given.
    pub window: Option<u16>,
    /// The urgent pointer, by default 0.
    pub urgent: u16,
    /// The options; `None` for `<...>`, which allows any.
    pub options: Option<Vec<TcpOption>>,
}

/// A TCP option of a script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TcpOption {
    /// End of the list.
    Eol,
    /// Padding.
    Nop,
    /// Maximum segment size.
    Mss(u16),
    /// Window scale.
    WindowScale(u8),
    /// SACK permitted.
    SackPermitted,
    /// SACK blocks.
    Sack(Vec<(u32, u32)>),
    /// Timestamps.
    Timestamps {
        /// TSval.
        value: u32,
        /// TSecr.
        echo: u32,
    },
    /// A Fast Open cookie (RFC 7413), empty in a request.
    FastOpen(Vec<u8>),
    /// The same as an experimental option with the identifier 0xF989.
    FastOpenExp(Vec<u8>),
    /// Counters of accurate ECN (RFC 9768 section 3.2.3): the kind of the option, and up to three counters.
    EcnCounters(u8, Vec<u32>),
    /// Signature (RFC 2385).
    Md5(Vec<u8>),
}

/// An ICMP error message of a script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Icmp {
    /// Type and code of ICMPv4.
    pub kind: (u8, u8),
    /// MTU of the next hop, if given.
    pub mtu: Option<u16>,
    /// Sequence number of the quoted TCP segment.
    pub seq: u32,
}

/// A call of the socket layer.
#[derive(Clone, PartialEq, Debug)]
pub struct Call {
    /// Its name.
    pub name: String,
    /// Its arguments.
    pub args: Vec<Expr>,
    /// `...`: it may block until this time, in nanoseconds, relative to the same base as the event's own
    /// time.
    pub until: Option<u64>,
    /// The expected result.
    pub result: Expr,
    /// The expected error name, as `EAGAIN`.
    pub errno: Option<String>,
}

impl Call {
    /// An argument; [`Expr::Any`] if it is omitted.
    pub fn arg(&self, index: usize) -> &Expr {
        self.args.get(index).unwrap_or(&Expr::Any)
    }
}

/// An argument or a result.
#[derive(Clone, PartialEq, Debug)]
pub enum Expr {
    /// `...`
    Any,
    /// A number.
    Int(i64),
    /// A name, as `SOCK_STREAM`.
    Word(String),
    /// A text in quotes.
    Text(String),
    /// Alternatives joined by `|`.
    Or(Vec<Expr>),
    /// `[...]`
    List(Vec<Expr>),
    /// `{a, b}`
    Tuple(Vec<Expr>),
    /// `{name=value, ...}`
    Fields(Vec<(String, Expr)>),
}

impl Expr {
    /// The value of a field.
    pub fn field(&self, name: &str) -> Option<&Expr> {
        match self {
            Expr::Fields(fields) => fields.iter().find(|(key, _)| key == name).map(|(_, v)| v),
            _ => None,
        }
    }
}

/// Why a script cannot be run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The line, from 1.
    pub line: u32,
    /// Whether the script is wrong or the feature is missing.
    pub kind: FaultKind,
    /// The fault, or the name of the missing feature.
    pub message: String,
}

/// The kind of a [`Fault`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// The script is not in the language.
    Syntax,
    /// The script uses a missing feature.
    Unsupported,
}

impl Fault {
    /// A fault of the script.
    pub fn syntax(line: u32, message: impl Into<String>) -> Fault {
        Fault { line, kind: FaultKind::Syntax, message: message.into() }
    }

    /// A missing feature.
    pub fn unsupported(line: u32, message: impl Into<String>) -> Fault {
        Fault { line, kind: FaultKind::Unsupported, message: message.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            FaultKind::Syntax => write!(f, "line {}: {}", self.line, self.message),
            FaultKind::Unsupported => {
                write!(f, "line {}: unsupported: {}", self.line, self.message)
            }
        }
    }
}

#[cfg(test)]
mod tests;
