//! Roles of connections to the discard receiver: request, answer and final report.
//!
//! A plain connection of RFC 863 begins with any bytes. A client that needs more than a discard receiver
//! begins with a [`Request`] of [`REQUEST`] bytes. The receiver sends a [`Reply`] of the same length. At the
//! end, after the client has closed its direction, it sends a [`Report`] and closes.
//!
//! The three lengths are the same in all versions, so both ends can refuse another version in a form that the
//! other end understands. Numbers are big-endian.

pub(super) mod limits;
pub(super) mod marks;
mod report;
pub(super) mod serve;

use lasthop_proto::units::Span;
use serde::Serialize;

pub use report::{REPORT, Report};

/// Length of a request and of an answer, bytes.
pub const REQUEST: usize = 64;

/// Version of the messages.
pub const VERSION: u8 = 1;

/// Length of the first part of each message, bytes.
pub(super) const MAGIC: usize = 24;

/// First bytes of a request. No text begins with them, and the pattern of [`super::Pattern`] does not either.
/// 24 bytes do not occur by chance.
const REQUEST_MAGIC: &[u8; MAGIC] = b"\x8alasthop role request\r\n\x1a";

/// First bytes of an answer.
const ANSWER_MAGIC: &[u8; MAGIC] = b"\x8alasthop role answer\r\n\x1a\n";

/// Longest name of a congestion control, bytes (TCP_CA_NAME_MAX without the final zero).
const LONGEST_NAME: usize = 15;

/// Flag of data with marks.
const MARKS: u8 = 1;

/// Number of bytes that means a download without a limit.
const UNLIMITED: u64 = u64::MAX;

/// Use of a connection, named from the client's point of view.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The client sends; the receiver counts.
    Upload,
    /// The receiver sends the pattern of stream 0, or any data with marks.
    Download,
    /// The receiver returns each byte.
    Echo,
    /// The receiver counts UDP datagrams that carry the token of its answer.
    Udp,
    /// The receiver sends UDP datagrams to the address from which the client sends the token.
    UdpDown,
}

impl Role {
    const NUMBERS: [(u8, Role); 5] = [
        (1, Role::Upload),
        (2, Role::Download),
        (3, Role::Echo),
        (4, Role::Udp),
        (5, Role::UdpDown),
    ];

    /// Whether the role has datagrams.
    pub(super) fn is_udp(self) -> bool {
        matches!(self, Role::Udp | Role::UdpDown)
    }

    fn number(self) -> u8 {
        Role::NUMBERS.iter().find(|(_, role)| *role == self).map_or(0, |(number, _)| *number)
    }

    fn of(number: u8) -> Option<Role> {
        Role::NUMBERS.iter().find(|(known, _)| *known == number).map(|(_, role)| *role)
    }
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Role::Upload => "upload",
            Role::Download => "download",
            Role::Echo => "probes",
            Role::Udp => "UDP upload",
            Role::UdpDown => "UDP download",
        })
    }
}

/// First message of a client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// Use of the connection.
    pub role: Role,
    /// Number of bytes that the receiver sends in a download; `None` until the end of `duration`. For the datagrams of
    /// the receiver, their payload in bytes per second.
    pub bytes: Option<u64>,
    /// Time after which the receiver may end the connection, accurate to 1 ms.
    pub duration: Span,
    /// Congestion control of the receiver's end.
    pub congestion: Option<String>,
    /// Whether the data of an upload or a download has marks, from which the client measures round trips.
    pub marks: bool,
    /// Payload of the receiver's datagrams, bytes.
    pub length: u16,
}

/// Result of [`recognize`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Recognition {
    /// A plain connection: the bytes are data.
    Plain,
    /// A prefix of a request, or no bytes yet.
    Incomplete,
    /// A request that this version can serve.
    Request(Request),
    /// A request that it must refuse.
    Refused(Refusal),
}

/// Classifies a connection by its first bytes. Bytes after a request are ignored.
pub fn recognize(first: &[u8]) -> Recognition {
    let known = first.len().min(MAGIC);
    if first[..known] != REQUEST_MAGIC[..known] {
        return Recognition::Plain;
    }
    let Some(fields) = Fields::parse(first) else {
        return Recognition::Incomplete;
    };
    let Fields { version, code, flags, duration, bytes, rest, length } = fields;
    if version != VERSION {
        return Recognition::Refused(Refusal::Version);
    }
    let Some(role) = Role::of(code) else { return Recognition::Refused(Refusal::Role) };
    let name: Vec<u8> = rest.iter().copied().take_while(|byte| *byte != 0).collect();
    let congestion = match name.as_slice() {
        [] => None,
        name if name.len() <= LONGEST_NAME && name.iter().all(u8::is_ascii_graphic) => {
            Some(String::from_utf8_lossy(name).into_owned())
        }
        _ => return Recognition::Refused(Refusal::Congestion),
    };
    let bytes = (bytes != UNLIMITED).then_some(bytes);
    let marks = flags & MARKS != 0;
    Recognition::Request(Request { role, bytes, duration, congestion, marks, length })
}

impl Request {
    /// A request for `role` without limits.
    pub fn new(role: Role) -> Request {
        Request {
            role,
            bytes: None,
            duration: Span(u64::MAX),
            congestion: None,
            marks: false,
            length: 0,
        }
    }

    /// The message. A name of a congestion control beyond 15 bytes is cut, so the receiver refuses it.
    pub fn encode(&self) -> [u8; REQUEST] {
        let mut rest = [0; 16];
        let name = self.congestion.as_deref().unwrap_or_default().bytes();
        rest.iter_mut().zip(name).for_each(|(into, byte)| *into = byte);
        Fields {
            version: VERSION,
            code: self.role.number(),
            flags: if self.marks { MARKS } else { 0 },
            duration: self.duration,
            bytes: self.bytes.unwrap_or(UNLIMITED),
            rest,
            length: self.length,
        }
        .encode(REQUEST_MAGIC)
    }
}

/// Identifies the UDP datagrams of a client.
pub type Token = [u8; 16];

/// Reply of the receiver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    /// The connection has the requested role.
    Granted {
        /// Time after which the receiver ends the connection.
        duration: Span,
        /// Limit of the bytes of a download; of the receiver's datagrams, their payload in bytes per second.
        bytes: u64,
        /// Token of UDP datagrams; zeros for other roles.
        token: Token,
    },
    /// The receiver closes the connection.
    Refused(Refusal),
}

impl Reply {
    /// The message.
    pub fn encode(&self) -> [u8; REQUEST] {
        let fields = match *self {
            Reply::Granted { duration, bytes, token } => Fields {
                version: VERSION,
                code: 0,
                flags: 0,
                duration,
                bytes,
                rest: token,
                length: 0,
            },
            Reply::Refused(refusal) => Fields {
                version: VERSION,
                code: refusal.number(),
                flags: 0,
                duration: Span::ZERO,
                bytes: 0,
                rest: [0; 16],
                length: 0,
            },
        };
        fields.encode(ANSWER_MAGIC)
    }

    /// Parses a reply; `None` if the peer is no receiver with roles, or bytes are missing.
    pub fn parse(bytes: &[u8]) -> Option<Reply> {
        let fields = bytes.strip_prefix(ANSWER_MAGIC).and_then(|_| Fields::parse(bytes))?;
        if fields.version != VERSION {
            return Some(Reply::Refused(Refusal::Version));
        }
        Some(match fields.code {
            0 => Reply::Granted {
                duration: fields.duration,
                bytes: fields.bytes,
                token: fields.rest,
            },
            code => Reply::Refused(Refusal::of(code)),
        })
    }
}

/// Reason for refusing a role.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// The other end has another version of the messages.
    Version,
    /// The role is unknown.
    Role,
    /// Roles are switched off.
    Off,
    /// The limit of new roles for each second is reached.
    Busy,
    /// The limit of this client is reached.
    Client,
    /// The receiver's kernel has not loaded this congestion control, or restricts it to root.
    Congestion,
    /// The receiver does not accept UDP.
    Udp,
    /// A reason unknown to this version.
    Other,
}

impl Refusal {
    const NUMBERS: [(u8, Refusal); 8] = [
        (1, Refusal::Version),
        (2, Refusal::Role),
        (3, Refusal::Off),
        (4, Refusal::Busy),
        (5, Refusal::Congestion),
        (6, Refusal::Udp),
        (7, Refusal::Client),
        (255, Refusal::Other),
    ];

    fn number(self) -> u8 {
        Refusal::NUMBERS.iter().find(|(_, refusal)| *refusal == self).map_or(255, |known| known.0)
    }

    fn of(number: u8) -> Refusal {
        let known = Refusal::NUMBERS.iter().find(|(known, _)| *known == number);
        known.map_or(Refusal::Other, |(_, refusal)| *refusal)
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Refusal::Version => "its version differs from this one",
            Refusal::Role => "it does not know this role",
            Refusal::Off => "it only receives plain transfers",
            Refusal::Busy => "it has reached its limit of new measurements for this second",
            Refusal::Client => "it has reached its limit of connections for this client",
            Refusal::Congestion => {
                "its kernel has not loaded this congestion control, or restricts it to root"
            }
            Refusal::Udp => "it does not accept UDP",
            Refusal::Other => "for a reason that this version does not know",
        })
    }
}

/// Fields after the first bytes of a request or an answer: version, code, flags, a reserved byte, duration
/// (milliseconds, 32 bits), number of bytes (64 bits), 16 bytes, length (16 bits), six reserved bytes.
struct Fields {
    version: u8,
    code: u8,
    flags: u8,
    duration: Span,
    bytes: u64,
    rest: [u8; 16],
    length: u16,
}

impl Fields {
    fn encode(&self, magic: &[u8; MAGIC]) -> [u8; REQUEST] {
        let milliseconds = u32::try_from(self.duration.0 / 1_000_000).unwrap_or(u32::MAX);
        let mut message = [0; REQUEST];
        message[..MAGIC].copy_from_slice(magic);
        message[24] = self.version;
        message[25] = self.code;
        message[26] = self.flags;
        message[28..32].copy_from_slice(&milliseconds.to_be_bytes());
        message[32..40].copy_from_slice(&self.bytes.to_be_bytes());
        message[40..56].copy_from_slice(&self.rest);
        message[56..58].copy_from_slice(&self.length.to_be_bytes());
        message
    }

    /// `None` if bytes are missing.
    fn parse(message: &[u8]) -> Option<Fields> {
        let message: &[u8; REQUEST] = message.first_chunk()?;
        let milliseconds = u32::from_be_bytes(*message[28..].first_chunk()?);
        Some(Fields {
            version: message[24],
            code: message[25],
            flags: message[26],
            duration: Span::millis(milliseconds.into()),
            bytes: u64::from_be_bytes(*message[32..].first_chunk()?),
            rest: *message[40..].first_chunk()?,
            length: u16::from_be_bytes(*message[56..].first_chunk()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::Pattern;

    fn request() -> Request {
        Request {
            role: Role::Download,
            bytes: Some(1 << 40),
            duration: Span::millis(12_345),
            congestion: Some("bbr".to_owned()),
            marks: false,
            length: 700,
        }
    }

    #[test]
    fn messages_survive_encoding() {
        for (_, role) in Role::NUMBERS {
            for (bytes, congestion) in [(None, None), (Some(7), Some("cubic".to_owned()))] {
                let request =
                    Request { role, bytes, congestion, marks: bytes.is_none(), ..request() };
                assert_eq!(recognize(&request.encode()), Recognition::Request(request));
            }
        }
        let granted = Reply::Granted { duration: Span::secs(3), bytes: 9, token: [5; 16] };
        assert_eq!(Reply::parse(&granted.encode()), Some(granted));
        for (_, refusal) in Refusal::NUMBERS {
            let answer = Reply::Refused(refusal);
            assert_eq!(Reply::parse(&answer.encode()), Some(answer));
        }
    }

    #[test]
    fn a_prefix_is_incomplete_until_a_byte_differs() {
        let message = request().encode();
        for length in 0..REQUEST {
            assert_eq!(recognize(&message[..length]), Recognition::Incomplete, "{length}");
        }
        for at in 0..MAGIC {
            let mut other = message;
            other[at] ^= 1;
            assert_eq!(recognize(&other[..=at]), Recognition::Plain, "{at}");
            assert_eq!(recognize(&other), Recognition::Plain, "{at}");
        }
        // Data after the request belongs to the role.
        assert!(matches!(recognize(&[&message[..], b"data"].concat()), Recognition::Request(_)));
    }

    #[test]
    fn the_pattern_of_the_test_sender_is_plain() {
        let mut bytes = Vec::new();
        for stream in 0..1000 {
            Pattern { stream }.fill(0, MAGIC, &mut bytes);
            assert_eq!(recognize(&bytes), Recognition::Plain, "{stream}");
        }
    }

    #[test]
    fn unknown_versions_roles_and_names_are_refused() {
        let changed = |at: usize, byte: u8| {
            let mut message = request().encode();
            message[at] = byte;
            recognize(&message)
        };
        assert_eq!(changed(24, 2), Recognition::Refused(Refusal::Version));
        for role in [0, 6, 255] {
            assert_eq!(changed(25, role), Recognition::Refused(Refusal::Role));
        }
        assert_eq!(changed(40, b'\n'), Recognition::Refused(Refusal::Congestion));
        assert_eq!(changed(40, 0xff), Recognition::Refused(Refusal::Congestion));
        let long = Request { congestion: Some("n".repeat(99)), ..request() };
        assert_eq!(recognize(&long.encode()), Recognition::Refused(Refusal::Congestion));
        // Reserved bytes and flags are free for later versions.
        for at in [26, 27, 58, 63] {
            assert_eq!(changed(at, 2), Recognition::Request(request()));
        }
    }

    #[test]
    fn only_answers_are_parsed_as_answers() {
        assert_eq!(Reply::parse(&request().encode()), None);
        let message = Reply::Refused(Refusal::Busy).encode();
        for length in 0..REQUEST {
            assert_eq!(Reply::parse(&message[..length]), None);
        }
        let mut unknown = message;
        unknown[25] = 77;
        assert_eq!(Reply::parse(&unknown), Some(Reply::Refused(Refusal::Other)));
        unknown[24] = 2;
        assert_eq!(Reply::parse(&unknown), Some(Reply::Refused(Refusal::Version)));
    }
}
