//! Captures made by others: pcap and pcapng of any byte order, clock and link layer.
//!
//! [`open`] looks at the first bytes and gives an iterator over [`Frame`]s that borrow from the file's bytes; [`Pieces`]
//! reads a file of which only a piece is in memory at a time.
//! The file may come from anybody: nothing panics, nothing is allocated by a length that the file
//! claims, and an error names the byte where the file stopped making sense. A file that merely ends too early,
//! as it does when a sniffer is killed, yields every whole packet and then says so by [`Capture::truncated`].

mod content;
mod decoder;
mod ethernet;
mod formats;
mod fragments;
mod link;
mod part;
mod pcap;
mod pcapng;
mod pieces;
mod tunnel;
mod wifi;

use lasthop_proto::machine::Side;
use lasthop_proto::units::Time;
use lasthop_proto::wire::parse::{Mode, ParseError, View, view};

pub use content::{Content, Protocol, Reason};
pub use decoder::{Decoder, MAX_HEADERS};
pub use link::LinkType;
pub use pieces::Pieces;

/// No capture holds larger packets or blocks: libpcap's own limit for a packet is 256 KiB.
pub const MAX_RECORD: u32 = 16 << 20;

/// Most interfaces that one section may describe.
pub const MAX_INTERFACES: usize = 1 << 16;

/// The first bytes of a file as text, or as numbers if they are none.
fn shown(first: &[u8; 4]) -> String {
    match core::str::from_utf8(first) {
        Ok(text) if text.chars().all(|c| c.is_ascii_graphic() || c == ' ') => format!("`{text}`"),
        _ => format!("the bytes {first:02x?}"),
    }
}

/// Why bytes are not a capture, or stopped being one. Offsets count from the first byte of the file.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CaptureError {
    /// The first bytes are those of no capture format.
    #[error("this is neither pcap nor pcapng: the file begins with {}{hint}", shown(first))]
    NotACapture {
        /// The first four bytes.
        first: [u8; 4],
        /// What it is instead, if that is known.
        hint: &'static str,
    },
    /// The file ends within its first header.
    #[error("the capture ends within its file header")]
    Empty,
    /// A version of the format that does not exist.
    #[error("pcap format version {major}.{minor} is unknown")]
    Version {
        /// Major version.
        major: u16,
        /// Minor version.
        minor: u16,
    },
    /// A length that no capture has.
    #[error("at byte {offset}: a {what} of {len} bytes cannot be")]
    Length {
        /// Where the record begins.
        offset: usize,
        /// What is meant to be there.
        what: &'static str,
        /// Its length as the file claims.
        len: u32,
    },
    /// A packet refers to an interface that was not described.
    #[error("at byte {offset}: a packet of interface {interface}, but only {known} are described")]
    Interface {
        /// Where the block begins.
        offset: usize,
        /// The interface it names.
        interface: u32,
        /// How many there are.
        known: usize,
    },
    /// More interfaces than [`MAX_INTERFACES`].
    #[error("at byte {offset}: more than {MAX_INTERFACES} interfaces")]
    TooManyInterfaces {
        /// Where the block begins.
        offset: usize,
    },
    /// A section that does not tell its byte order.
    #[error("at byte {offset}: the section header has byte-order magic {magic:02x?}")]
    ByteOrder {
        /// Where the block begins.
        offset: usize,
        /// What stands there.
        magic: [u8; 4],
    },
}

/// One packet as it was captured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Frame<'a> {
    /// Its number in the file, from 1, as Wireshark counts.
    pub number: u64,
    /// When, in nanoseconds since the Unix epoch. Simple packet blocks carry no time: theirs is that of the packet before, or zero.
    pub at: Time,
    /// Index of the interface in the file.
    pub interface: u32,
    /// What the bytes begin with.
    pub link: LinkType,
    /// The captured bytes.
    pub bytes: &'a [u8],
    /// Length of the frame on the wire, of which `bytes` may be only the beginning.
    pub wire_len: u32,
    /// Which way it went, where the capture tells: inbound counts as towards the left.
    pub direction: Option<Side>,
    /// The first comment beside it, if it is text.
    pub comment: Option<&'a str>,
}

impl<'a> Frame<'a> {
    /// The outermost IP packet in the frame with its length on the wire (link-layer trailers included);
    /// `None` if the frame holds none that this code can find.
    pub fn ip(&self) -> Option<(&'a [u8], usize)> {
        decoder::outermost(self)
    }

    /// A number of the link on which the frame was captured, from the interface, the MAC addresses and the VLAN tags.
    /// A packet that passes a router, or a bridge that changes tags, has another one behind it; radio and tunnel headers,
    /// which may change with each frame, do not count.
    #[inline]
    pub fn link_id(&self) -> u32 {
        link::id(self.link, self.interface, self.bytes)
    }

    /// The headers of the outermost IP packet in the frame; `None` if there is none. Checksums are compared if `verify`
    /// is set and the packet was captured whole. A [`Decoder`] finds the innermost packet.
    ///
    /// # Errors
    /// When the packet's headers make no sense, or were cut off.
    pub fn view(&self, verify: bool) -> Option<Result<View, ParseError>> {
        let (bytes, wire_len) = self.ip()?;
        Some(view(bytes, Mode { verify, wire_len: Some(wire_len) }))
    }
}

#[derive(Clone, Debug)]
enum Format {
    Pcap(pcap::Pcap),
    Pcapng(pcapng::Pcapng),
}

impl Format {
    /// Looks at the first bytes of a file; the answer has the length of what stands before the first record.
    fn open(file: &[u8]) -> Result<(Format, usize), CaptureError> {
        let first = *file.first_chunk::<4>().ok_or(CaptureError::Empty)?;
        if first == pcapng::SECTION {
            return Ok((Format::Pcapng(pcapng::Pcapng::open(file)?), 0));
        }
        if let Some((pcap, header)) = pcap::Pcap::open(file)? {
            return Ok((Format::Pcap(pcap), header));
        }
        let hint = formats::hint(file);
        Err(CaptureError::NotACapture { first, hint })
    }

    /// The next packet of `rest`, which begins at byte `at` of the file; `at` moves past all that was read.
    #[inline]
    fn step<'a>(&mut self, rest: &'a [u8], at: &mut usize) -> Result<Step<'a>, CaptureError> {
        match self {
            Format::Pcap(pcap) => pcap.step(rest, at),
            Format::Pcapng(pcapng) => pcapng.step(rest, at),
        }
    }
}

/// What a format's reader found next.
enum Step<'a> {
    /// A packet; its number is filled in by whoever counts.
    Frame(Frame<'a>),
    /// The bytes end here, as they should.
    End,
    /// The bytes end within a record.
    Truncated,
}

/// A capture that is being read.
#[derive(Clone, Debug)]
pub struct Capture<'a> {
    file: &'a [u8],
    at: usize,
    format: Format,
    packets: u64,
    /// Set at the end, by whatever kind of end it was.
    ended: bool,
    truncated: bool,
}

/// Begins to read the capture in `file`.
///
/// # Errors
/// When the file begins like no capture; the message says what it is if that is known.
pub fn open(file: &[u8]) -> Result<Capture<'_>, CaptureError> {
    let (format, at) = Format::open(file)?;
    Ok(Capture { file, at, format, packets: 0, ended: false, truncated: false })
}

impl Capture<'_> {
    /// How many packets were read so far.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Whether the file ended within a record, seen after the last packet: "truncated after packet N",
    /// where N is [`Capture::packets`].
    pub fn truncated(&self) -> bool {
        self.truncated
    }

    /// Names of the interfaces described so far, empty where a capture does not name them.
    pub fn interfaces(&self) -> Vec<String> {
        match &self.format {
            Format::Pcap(_) => vec![String::new()],
            Format::Pcapng(pcapng) => pcapng.names(),
        }
    }
}

impl<'a> Iterator for Capture<'a> {
    type Item = Result<Frame<'a>, CaptureError>;

    /// The next packet. After an error there are no more.
    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let rest = self.file.get(self.at..).unwrap_or(&[]);
        match self.format.step(rest, &mut self.at) {
            Ok(Step::Frame(mut frame)) => {
                self.packets += 1;
                frame.number = self.packets;
                Some(Ok(frame))
            }
            Ok(end) => {
                self.ended = true;
                self.truncated = matches!(end, Step::Truncated);
                None
            }
            Err(error) => {
                self.ended = true;
                Some(Err(error))
            }
        }
    }
}

/// Integers of one byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Little,
    Big,
}

impl Order {
    /// The 16-bit integer at `at`, if the bytes reach that far.
    fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let raw = *bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Order::Little => u16::from_le_bytes(raw),
            Order::Big => u16::from_be_bytes(raw),
        })
    }

    /// The 32-bit integer at `at`, if the bytes reach that far.
    fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let raw = *bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Order::Little => u32::from_le_bytes(raw),
            Order::Big => u32::from_be_bytes(raw),
        })
    }

    /// The signed 64-bit integer at `at`, if the bytes reach that far.
    fn i64(self, bytes: &[u8], at: usize) -> Option<i64> {
        let raw = *bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Order::Little => i64::from_le_bytes(raw),
            Order::Big => i64::from_be_bytes(raw),
        })
    }
}

/// Nanoseconds since the epoch as a time; what lies outside 1970..2554 is moved to the nearer end.
fn time(nanos: i128) -> Time {
    // `Time::NEVER` stays reserved.
    Time(nanos.clamp(0, i128::from(u64::MAX - 1)) as u64)
}
