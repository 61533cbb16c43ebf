//! A small pcapng writer for Wireshark, and a sink that captures a run.
//!
//! The format follows draft-ietf-opsawg-pcapng: a section header, one interface description per capture
//! point, one enhanced packet block per packet. Times are in nanoseconds, links are raw IP
//! ([`LINKTYPE_RAW`]). A comment of a packet contains information that is not on the wire: the cause of its
//! origin, and its fate.
//!
//! No function here opens files. [`Writer`] writes to any [`std::io::Write`].

mod sink;

use std::io::{self, Write};

use lasthop_proto::machine::Side;
use lasthop_proto::units::Time;
use lasthop_proto::wire::Packet;
use lasthop_proto::wire::emit::{EmitError, Prefix, emit_prefix};

pub use sink::{CapturePoint, CaptureSink, CaptureStats, Captures};

/// Link type of packets that begin with their IP header, version 4 or 6.
pub const LINKTYPE_RAW: u16 = 101;

const BLOCK_SECTION: u32 = 0x0a0d_0d0a;
const BLOCK_INTERFACE: u32 = 1;
const BLOCK_PACKET: u32 = 6;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;

const OPT_END: u16 = 0;
const OPT_COMMENT: u16 = 1;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_DESCRIPTION: u16 = 3;
const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;
const EPB_FLAGS: u16 = 2;

/// Length limit of a comment, bytes; a longer one is truncated at a character.
pub const MAX_COMMENT: usize = 4096;

/// An interface of one [`Writer`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InterfaceId(u32);

/// Content of an interface description.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Interface<'a> {
    /// Name, as Wireshark shows it with each packet.
    pub name: &'a str,
    /// A descriptive sentence; empty for none.
    pub description: &'a str,
    /// Seconds from the Unix epoch to [`Time::ZERO`]; zero for simulated time.
    pub epoch: i64,
    /// Limit of stored bytes per packet; zero for no limit.
    pub snap: u32,
}

/// Writes one pcapng section in little-endian order.
///
/// Each block is one call of [`Write::write_all`], so use a [`std::io::BufWriter`] for files.
#[derive(Debug)]
pub struct Writer<W> {
    to: W,
    /// The current block. It is reused, so no packet allocates memory.
    block: Vec<u8>,
    interfaces: u32,
}

impl<W: Write> Writer<W> {
    /// Starts a section.
    ///
    /// # Errors
    /// Errors of `to`.
    pub fn new(to: W) -> io::Result<Writer<W>> {
        let mut writer = Writer { to, block: Vec::with_capacity(2048), interfaces: 0 };
        writer.begin(BLOCK_SECTION);
        writer.long(BYTE_ORDER_MAGIC);
        // Version 1.0, unspecified section length.
        writer.long(1);
        writer.block.extend_from_slice(&u64::MAX.to_le_bytes());
        let name = concat!("lasthop ", env!("CARGO_PKG_VERSION"));
        writer.option(SHB_USERAPPL, name.as_bytes());
        writer.option(OPT_END, &[]);
        writer.end()?;
        Ok(writer)
    }

    /// Adds a capture point. Its packets may follow at any time.
    ///
    /// # Errors
    /// Errors of the writer.
    pub fn interface(&mut self, interface: &Interface<'_>) -> io::Result<InterfaceId> {
        self.begin(BLOCK_INTERFACE);
        self.long(u32::from(LINKTYPE_RAW));
        self.long(interface.snap);
        self.option(IF_NAME, cut(interface.name).as_bytes());
        if !interface.description.is_empty() {
            self.option(IF_DESCRIPTION, cut(interface.description).as_bytes());
        }
        self.option(IF_TSRESOL, &[9]);
        if interface.epoch != 0 {
            self.option(IF_TSOFFSET, &interface.epoch.to_le_bytes());
        }
        self.option(OPT_END, &[]);
        self.end()?;
        self.interfaces += 1;
        Ok(InterfaceId(self.interfaces - 1))
    }

    /// Writes a packet with the first `payload` bytes of its body.
    ///
    /// # Errors
    /// Errors of the writer, and [`io::ErrorKind::InvalidInput`] for a packet without an encoding.
    pub fn packet(
        &mut self,
        on: InterfaceId,
        at: Time,
        side: Side,
        packet: &Packet,
        payload: u32,
        comment: &str,
    ) -> io::Result<()> {
        self.begin_packet(on, at);
        let prefix = emit_prefix(packet, payload, &mut self.block).map_err(invalid)?;
        self.end_packet(prefix, side, comment)
    }

    /// Writes an encoded packet; `original` is its length on the wire.
    ///
    /// # Errors
    /// Errors of the writer.
    pub fn bytes(
        &mut self,
        on: InterfaceId,
        at: Time,
        side: Side,
        bytes: &[u8],
        original: u32,
        comment: &str,
    ) -> io::Result<()> {
        self.begin_packet(on, at);
        self.block.extend_from_slice(bytes);
        let prefix = Prefix { captured: bytes.len() as u32, original };
        self.end_packet(prefix, side, comment)
    }

    /// Returns the writer.
    pub fn into_inner(self) -> W {
        self.to
    }

    fn begin_packet(&mut self, on: InterfaceId, at: Time) {
        self.begin(BLOCK_PACKET);
        let mut head = [0u8; 20];
        head[..4].copy_from_slice(&on.0.to_le_bytes());
        head[4..8].copy_from_slice(&((at.0 >> 32) as u32).to_le_bytes());
        head[8..12].copy_from_slice(&(at.0 as u32).to_le_bytes());
        // The two lengths follow after the bytes.
        self.block.extend_from_slice(&head);
    }

    fn end_packet(&mut self, len: Prefix, side: Side, comment: &str) -> io::Result<()> {
        self.block[20..24].copy_from_slice(&len.captured.to_le_bytes());
        self.block[24..28].copy_from_slice(&len.original.to_le_bytes());
        self.pad();
        // Directions: 1 inbound for packets to the left, 2 outbound for packets to the right.
        let flags: u32 = match side {
            Side::Left => 1,
            Side::Right => 2,
        };
        self.option(EPB_FLAGS, &flags.to_le_bytes());
        if !comment.is_empty() {
            self.option(OPT_COMMENT, cut(comment).as_bytes());
        }
        self.option(OPT_END, &[]);
        self.end()
    }

    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.long(kind);
        self.long(0);
    }

    fn end(&mut self) -> io::Result<()> {
        let len = self.block.len() as u32 + 4;
        self.block[4..8].copy_from_slice(&len.to_le_bytes());
        self.long(len);
        self.to.write_all(&self.block)
    }

    fn long(&mut self, value: u32) {
        self.block.extend_from_slice(&value.to_le_bytes());
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        let head = u32::from(code) | (value.len() as u32) << 16;
        self.long(head);
        self.block.extend_from_slice(value);
        self.pad();
    }

    fn pad(&mut self) {
        let len = self.block.len().next_multiple_of(4);
        self.block.resize(len, 0);
    }
}

fn invalid(error: EmitError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error)
}

fn cut(text: &str) -> &str {
    let end = (0..=MAX_COMMENT.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or(0)]
}
