//! Reader of capture files: pcap and pcapng of any byte order, clock and link layer.
//!
//! [`open`] detects the format and returns an iterator over [`Frame`]s that borrow from the file's bytes. [`Pieces`]
//! reads a file of which only a part is in memory. Files are untrusted: the reader does not panic and does not
//! allocate by a length in the file. An error has the offset of the first invalid byte. A truncated file, as after a
//! sniffer was killed, yields all complete packets, and then [`Capture::truncated`] is true.

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
use serde::Serialize;

use part::Part;

pub use content::{Content, Protocol, Reason};
pub use decoder::{Decoder, MAX_HEADERS};
pub use link::LinkType;
pub use pieces::Pieces;
pub use wifi::WifiHeader;

/// Maximum length of a packet or block in bytes. libpcap's limit for a packet is 256 KiB.
pub const MAX_RECORD: u32 = 16 << 20;

/// Maximum number of interfaces in a section.
pub const MAX_INTERFACES: usize = 1 << 16;

/// The first bytes of a file as text if possible, otherwise as numbers.
fn display_magic(first: &[u8; 4]) -> String {
    match core::str::from_utf8(first) {
        Ok(text) if text.chars().all(|c| c.is_ascii_graphic() || c == ' ') => format!("`{text}`"),
        _ => format!("the bytes {first:02x?}"),
    }
}

/// Errors of a capture file. Offsets count from the first byte of the file.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CaptureError {
    /// The first bytes are those of no capture format.
    #[error("this is neither pcap nor pcapng: the file begins with {}{hint}", display_magic(first))]
    NotACapture {
        /// The first four bytes.
        first: [u8; 4],
        /// The detected other format and its conversion; empty if unknown.
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
    #[error("at byte {offset}: a {record} of {len} bytes cannot be")]
    Length {
        /// Where the record begins.
        offset: usize,
        /// Kind of the record.
        record: &'static str,
        /// Length in the file.
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
    /// A section without a valid byte-order magic.
    #[error("at byte {offset}: the section header has byte-order magic {magic:02x?}")]
    ByteOrder {
        /// Where the block begins.
        offset: usize,
        /// The four bytes of the magic.
        magic: [u8; 4],
    },
}

/// One packet as it was captured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Frame<'a> {
    /// Its number in the file, from 1, as Wireshark counts.
    pub number: u64,
    /// Time in nanoseconds since the Unix epoch. Simple packet blocks have no time: they get that of the previous
    /// packet, or zero.
    pub at: Time,
    /// Index of the interface in the file.
    pub interface: u32,
    /// Type of the first header.
    pub link: LinkType,
    /// The captured bytes.
    pub bytes: &'a [u8],
    /// Length of the frame on the wire, of which `bytes` may be only the beginning.
    pub wire_len: u32,
    /// Direction, if the capture has it: inbound is to the left.
    pub direction: Option<Side>,
    /// The first comment of the packet, if it is text.
    pub comment: Option<&'a str>,
}

impl<'a> Frame<'a> {
    /// The outermost IP packet in the frame with its length on the wire (link-layer trailers included);
    /// `None` if the frame holds none that this code can find.
    pub fn ip(&self) -> Option<(&'a [u8], usize)> {
        decoder::outermost(self)
    }

    /// The 802.11 header of the frame, if it has one.
    #[inline]
    pub fn wifi(&self) -> Option<WifiHeader> {
        const WIFI: [LinkType; 5] = [
            LinkType::IEEE802_11,
            LinkType::PRISM,
            LinkType::RADIOTAP,
            LinkType::AVS,
            LinkType::PPI,
        ];
        if !WIFI.contains(&self.link) {
            return None;
        }
        wifi::header(self.link, Part::new(self.bytes, self.wire_len as usize))
    }

    /// A number that identifies the link on which the frame was captured, from the interface, the MAC addresses and
    /// the VLAN tags. It differs before and after a router, or a bridge that changes tags. Radio and tunnel headers
    /// do not count, since they may change with each frame.
    #[inline]
    pub fn link_id(&self) -> u32 {
        link::id(self.link, self.interface, self.bytes)
    }

    /// The headers of the outermost IP packet in the frame; `None` if there is none. Checksums are compared if `verify`
    /// is set and the packet was captured whole. A [`Decoder`] finds the innermost packet.
    ///
    /// # Errors
    /// If the packet's headers are invalid or incomplete.
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
    /// Detects the format by the first bytes of a file. Also returns the length of the header before the first record.
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

    /// Reads the next packet of `rest`, which begins at byte `at` of the file, and advances `at`. If another capture file was
    /// appended, its packets follow.
    #[inline]
    fn step<'a>(&mut self, rest: &'a [u8], at: &mut usize) -> Result<Step<'a>, CaptureError> {
        let (mut rest, mut began) = (rest, *at);
        loop {
            let step = match self {
                Format::Pcap(pcap) => pcap.step(rest, at),
                Format::Pcapng(pcapng) => pcapng.step(rest, at),
            };
            // The header of a pcap file looks like a record without bytes, that of a pcapng file like one that is too long.
            let record = match &step {
                Ok(Step::Frame(frame)) if frame.bytes.is_empty() => began,
                Err(CaptureError::Length { .. }) => *at,
                _ => return step,
            };
            let file = rest.get(record - began..).unwrap_or(&[]);
            match self.appended(file) {
                Some(Ok((format, header))) => {
                    *self = format;
                    (*at, began) = (record + header, record + header);
                    rest = &file[header..];
                }
                Some(Err(CaptureError::Empty)) => {
                    *at = record;
                    return Ok(Step::Truncated);
                }
                _ => return step,
            }
        }
    }

    /// The format of `file`, and the length of its header, if it begins as a capture does. A pcapng file reads a next
    /// section by itself: if its length is wrong, opening it again would never end.
    #[cold]
    fn appended(&self, file: &[u8]) -> Option<Result<(Format, usize), CaptureError>> {
        let magic = *file.first_chunk::<4>()?;
        let section = magic == pcapng::SECTION && matches!(self, Format::Pcap(_));
        (section || pcap::is_magic(magic)).then(|| Format::open(file))
    }

    /// Packets that the capturing system reports as dropped, by interface.
    fn dropped(&self) -> Vec<Dropped> {
        match self {
            Format::Pcap(_) => Vec::new(),
            Format::Pcapng(pcapng) => pcapng.dropped(),
        }
    }
}

/// Packets that the capture itself has missed at one interface, as a pcapng file reports them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Dropped {
    /// Name of the interface; empty if unknown.
    pub interface: String,
    /// Dropped by the interface, for lack of buffers.
    pub by_interface: u64,
    /// Dropped by the operating system.
    pub by_system: u64,
    /// Dropped before single packets that report it.
    pub before_packets: u64,
}

/// Result of reading a record.
enum Step<'a> {
    /// A packet; the caller sets its number.
    Frame(Frame<'a>),
    /// The bytes end after a complete record.
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
    /// Whether the end was reached, or an error.
    ended: bool,
    truncated: bool,
}

/// Opens the capture in `file`.
///
/// # Errors
/// If the file is not a capture. The message names the detected other format.
pub fn open(file: &[u8]) -> Result<Capture<'_>, CaptureError> {
    let (format, at) = Format::open(file)?;
    Ok(Capture { file, at, format, packets: 0, ended: false, truncated: false })
}

impl Capture<'_> {
    /// Number of packets read.
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
