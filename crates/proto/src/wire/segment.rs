//! The TCP header and its options.

use core::fmt;
use core::ops::BitOr;

use serde::{Deserialize, Serialize};

use super::opening::Opening;
use super::{EcnCounts, Seq, options};
use crate::units::Time;

/// TCP header flags in their wire positions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Flags(pub u16);

impl Flags {
    /// No flags.
    pub const NONE: Flags = Flags(0);
    /// No more data from sender.
    pub const FIN: Flags = Flags(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Flags = Flags(0x02);
    /// Reset the connection.
    pub const RST: Flags = Flags(0x04);
    /// Push.
    pub const PSH: Flags = Flags(0x08);
    /// The acknowledgement number is valid.
    pub const ACK: Flags = Flags(0x10);
    /// The urgent pointer is valid.
    pub const URG: Flags = Flags(0x20);
    /// ECN echo (RFC 3168).
    pub const ECE: Flags = Flags(0x40);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Flags = Flags(0x80);
    /// Accurate ECN (RFC 9768).
    pub const AE: Flags = Flags(0x100);
    /// All three ECN flags.
    pub const ACE: Flags = Flags(0x1c0);

    /// Whether all flags of `other` are set.
    pub fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// The flags without those of `other`.
    #[must_use]
    pub fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }

    /// Whether any flag of `other` is set.
    pub fn any(self, other: Flags) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for Flags {
    type Output = Flags;
    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

impl fmt::Display for Flags {
    /// Writes tcpdump's letters: `S`, `F`, `R`, `P`, `U`, `E`, `W`, `e` for AE and `.` for ACK.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (flag, letter) in [
            (Flags::FIN, 'F'),
            (Flags::SYN, 'S'),
            (Flags::RST, 'R'),
            (Flags::PSH, 'P'),
            (Flags::URG, 'U'),
            (Flags::ECE, 'E'),
            (Flags::CWR, 'W'),
            (Flags::AE, 'e'),
            (Flags::ACK, '.'),
        ] {
            if self.has(flag) {
                fmt::Write::write_char(f, letter)?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{self}]")
    }
}

/// The timestamps option (RFC 7323 section 3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Timestamps {
    /// TSval: the clock of the side that sent this segment.
    pub value: u32,
    /// TSecr: the last TSval received from the other side.
    pub echo: u32,
}

impl Timestamps {
    /// Whether the timestamp `a` is older than `b`.
    //= rfc7323#section-4.3: timestamps are compared as sequence numbers are, modulo 2^32
    pub fn is_older(a: u32, b: u32) -> bool {
        (a.wrapping_sub(b) as i32) < 0
    }
}

/// Time stamps that the packets of simulators carry outside their header: they take no bytes, and real
/// packets have none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Stamp {
    /// When this packet was sent.
    pub sent: Time,
    /// Send time of the packet that arrived last from the other side.
    pub echo: Option<Time>,
}

/// The partial-acknowledgement option (west97 3.2, 3.4), an experimental option (RFC 6994).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ackp {
    /// On a SYN: the sender understands partial acknowledgements.
    Permitted,
    /// On an ACK that a base station created: everything below the acknowledgement number has reached the
    /// base station. It does not cover the receiver.
    Partial,
}

/// The explicit-loss-notification option (west97 2.3.3, balakrishnan97 3.1.2), an experimental option (RFC 6994).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Eln {
    /// On a SYN: the sender understands loss notifications.
    Permitted,
    /// On an ACK: the segment that begins at this sequence number was lost to corruption on the wireless link,
    /// not to congestion.
    Lost(Seq),
    /// On a SYN: the sender understands marked ACKs.
    MarksPermitted,
    /// On an ACK, the mark: the segment that begins at its acknowledgement number was lost to corruption.
    Marked,
}

/// The SMART option (Keshav and Morgan 1997; balakrishnan97 3.1.2), an experimental option (RFC 6994).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Smart {
    /// On a SYN: this end names the cause of its ACKs, and understands it.
    Permitted,
    /// On an ACK: the segment that begins at this sequence number caused it.
    Caused(Seq),
}

/// Negative acknowledgements by a base station (west97 2.6), an experimental option (RFC 6994).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Nack {
    /// On a SYN: the sender understands them.
    Permitted,
    /// On an ACK that a base station created: these ranges, in the form of SACK blocks, were lost before the
    /// base station.
    Missing(SackBlocks),
}

/// The option of ACK congestion control (balakrishnan97 4.2.1), an experimental option (RFC 6994).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Acc {
    /// On a SYN: this end takes part.
    Permitted,
    /// On data: the receiver's input for spacing its ACKs.
    Window {
        /// The sender's window in full segments.
        segments: u16,
        /// Number of the receiver's ACKs that arrived marked, modulo 256.
        marks: u8,
        /// The sender's left edge: the newest received acknowledgement.
        acked: Seq,
    },
}

/// The capabilities option of SCPS-TP (CCSDS 714.0-B section 3.2.3), on a SYN.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Scps {
    /// Capabilities of this end: one bit each.
    pub flags: u8,
    /// Identifier of the connection, for its header compression.
    pub connection: u8,
}

impl Scps {
    /// The capabilities of this code: a long SNACK, with a bit vector, and a short one.
    pub const SNACK: Scps = Scps { flags: 0x60, connection: 0 };

    /// Whether SNACKs of either length are understood.
    pub fn has_snack(self) -> bool {
        self.flags & Scps::SNACK.flags != 0
    }
}

/// A selective negative acknowledgement of SCPS-TP (CCSDS 714.0-B section 3.5.3): the missing segments of a
/// receiver, in units of the agreed segment size from the acknowledgement number on.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Snack {
    /// Units between the acknowledgement number and the first hole.
    pub offset: u16,
    /// Size of the first hole in units.
    pub size: u16,
    count: u8,
    bits: [u8; Snack::BYTES_MAX],
}

impl Snack {
    /// The longest bit vector that fits a header, in bytes.
    pub const BYTES_MAX: usize = 34;

    /// A SNACK with a first hole and the bit vector of the units after it, as far as it fits.
    pub fn new(offset: u16, size: u16, vector: &[u8]) -> Snack {
        let mut bits = [0; Snack::BYTES_MAX];
        let count = vector.len().min(bits.len());
        bits.iter_mut().zip(vector).for_each(|(bit, from)| *bit = *from);
        Snack { offset, size, count: count as u8, bits }
    }

    /// A bit for each unit after the first hole, the highest bit of a byte first: 1 if it has arrived, 0 if
    /// it is missing. Zeros after the last 1 are padding.
    pub fn vector(&self) -> &[u8] {
        &self.bits[..usize::from(self.count)]
    }

    /// Units after the first hole that the bit vector covers.
    pub fn reported_units(&self) -> u64 {
        let last = self.vector().iter().rposition(|byte| *byte != 0);
        last.map_or(0, |at| 8 * at as u64 + 8 - u64::from(self.bits[at].trailing_zeros()))
    }

    /// Whether the bit vector marks this unit after the first hole as arrived.
    pub fn has(&self, unit: u64) -> bool {
        let byte = usize::try_from(unit / 8).ok().and_then(|at| self.vector().get(at));
        byte.is_some_and(|byte| byte << (unit % 8) & 0x80 != 0)
    }

    /// Length of the option on the wire: kind, length, two 16-bit numbers, bit vector.
    pub fn wire_len(&self) -> u32 {
        SNACK_LEN + u32::from(self.count)
    }
}

impl fmt::Debug for Snack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.offset, self.size)?;
        self.vector().iter().try_for_each(|byte| write!(f, " {byte:08b}"))
    }
}

/// Up to four SACK blocks (RFC 2018 section 3), each from its first byte to one past its last.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SackBlocks {
    count: u8,
    blocks: [(Seq, Seq); 4],
}

impl SackBlocks {
    /// Adds a block; returns false when all four are present.
    pub fn push(&mut self, left: Seq, right: Seq) -> bool {
        let Some(slot) = self.blocks.get_mut(usize::from(self.count)) else { return false };
        *slot = (left, right);
        self.count += 1;
        true
    }

    /// The blocks in the order of the header.
    pub fn as_slice(&self) -> &[(Seq, Seq)] {
        &self.blocks[..usize::from(self.count)]
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl fmt::Debug for SackBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}

/// The options that most segments do not carry, stored out of line so that a packet stays small.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// Maximum segment size (RFC 9293 section 3.7.1); SYN only.
    pub mss: Option<u16>,
    /// Window scale shift (RFC 7323 section 2); SYN only.
    pub window_scale: Option<u8>,
    /// SACK permitted (RFC 2018 section 2); SYN only.
    pub sack_permitted: bool,
    /// Selective acknowledgement blocks.
    pub sack: SackBlocks,
    /// Partial acknowledgement.
    pub ackp: Option<Ackp>,
    /// Explicit loss notification.
    pub eln: Option<Eln>,
    /// Negative acknowledgement.
    pub nack: Option<Nack>,
    /// Cause of an ACK.
    pub smart: Option<Smart>,
    /// Congestion control of acknowledgements.
    pub acc: Option<Acc>,
    /// Capabilities of SCPS-TP; SYN only.
    pub scps: Option<Scps>,
    /// Selective negative acknowledgement.
    pub snack: Option<Snack>,
    /// Counters of accurate ECN.
    pub ecn: Option<EcnCounts>,
    /// Connection counts and Fast Open cookies.
    pub opening: Opening,
    /// Not an option on the wire: time stamps of a simulator's packet.
    pub stamp: Option<Stamp>,
    /// Unknown options in their wire form (kind, length, value ...).
    pub unknown: Vec<u8>,
    /// Urgent pointer; meaningful when URG is set.
    pub urgent: u16,
    /// Whether the options of a SYN have the layout of Linux; see [`super::options::packed`]. False after
    /// parsing.
    pub packed: bool,
}

static NO_OPTIONS: Options = Options {
    mss: None,
    window_scale: None,
    sack_permitted: false,
    sack: SackBlocks { count: 0, blocks: [(Seq(0), Seq(0)); 4] },
    ackp: None,
    eln: None,
    nack: None,
    smart: None,
    acc: None,
    scps: None,
    snack: None,
    ecn: None,
    opening: Opening::NONE,
    stamp: None,
    unknown: Vec::new(),
    urgent: 0,
    packed: false,
};

/// Length in bytes of the partial-acknowledgement option on the wire: kind, length, 16-bit ExID, one byte.
pub const ACKP_LEN: u32 = 5;
/// Length of the loss-notification option on a SYN: kind, length, 16-bit ExID.
pub const ELN_PERMITTED_LEN: u32 = 4;
/// Length of the option for negative acknowledgements on a SYN: kind, length, 16-bit ExID. Each range adds eight.
pub const NACK_LEN: u32 = 4;
/// Length of a loss notification: kind, length, 16-bit ExID, sequence number.
pub const ELN_LOST_LEN: u32 = 8;
/// Length of the permission of marks, and of a mark: kind, length, 16-bit ExID, one byte.
pub const ELN_MARK_LEN: u32 = 5;
/// Length of the capabilities of SCPS-TP: kind, length, capabilities, connection.
pub const SCPS_LEN: u32 = 4;
/// Length of a SNACK without its bit vector: kind, length, offset and size of the first hole.
pub const SNACK_LEN: u32 = 6;
/// Length of the SMART option on a SYN: kind, length, 16-bit ExID.
pub const SMART_PERMITTED_LEN: u32 = 4;
/// Length of the SMART option on an ACK: kind, length, 16-bit ExID, sequence number.
pub const SMART_CAUSED_LEN: u32 = 8;

// As derived, but without later fields: the digests of runs are computed from this form.
impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Options { mss, window_scale, sack_permitted, sack, ackp, eln, unknown, urgent, .. } =
            self;
        let mut form = f.debug_struct("Options");
        form.field("mss", mss).field("window_scale", window_scale);
        form.field("sack_permitted", sack_permitted).field("sack", sack).field("ackp", ackp);
        form.field("eln", eln).field("unknown", unknown).field("urgent", urgent);
        if self.smart.is_some() {
            form.field("smart", &self.smart);
        }
        if self.nack.is_some() {
            form.field("nack", &self.nack);
        }
        if self.acc.is_some() {
            form.field("acc", &self.acc);
        }
        if self.scps.is_some() {
            form.field("scps", &self.scps);
        }
        if self.snack.is_some() {
            form.field("snack", &self.snack);
        }
        if self.ecn.is_some() {
            form.field("ecn", &self.ecn);
        }
        if self.opening != Opening::NONE {
            form.field("opening", &self.opening);
        }
        if self.stamp.is_some() {
            form.field("stamp", &self.stamp);
        }
        form.finish()
    }
}

/// Length of the option of ACK congestion control on a SYN: kind, length, 16-bit ExID.
pub const ACC_PERMITTED_LEN: u32 = 4;
/// Its length on data: kind, length, 16-bit ExID, window, marks, left edge.
pub const ACC_WINDOW_LEN: u32 = 11;

impl Options {
    /// Unpadded length in bytes of these options in the header.
    pub fn wire_len(&self) -> u32 {
        let sack = self.sack.as_slice().len() as u32;
        self.mss.map_or(0, |_| 4)
            + self.window_scale.map_or(0, |_| 3)
            + if self.sack_permitted { 2 } else { 0 }
            + if sack > 0 { 2 + 8 * sack } else { 0 }
            + self.ackp.map_or(0, |_| ACKP_LEN)
            + match self.eln {
                None => 0,
                Some(Eln::Permitted) => ELN_PERMITTED_LEN,
                Some(Eln::Lost(_)) => ELN_LOST_LEN,
                Some(Eln::MarksPermitted | Eln::Marked) => ELN_MARK_LEN,
            }
            + match self.smart {
                None => 0,
                Some(Smart::Permitted) => SMART_PERMITTED_LEN,
                Some(Smart::Caused(_)) => SMART_CAUSED_LEN,
            }
            + match &self.nack {
                None => 0,
                Some(Nack::Permitted) => NACK_LEN,
                Some(Nack::Missing(blocks)) => NACK_LEN + 8 * blocks.as_slice().len() as u32,
            }
            + match self.acc {
                None => 0,
                Some(Acc::Permitted) => ACC_PERMITTED_LEN,
                Some(Acc::Window { .. }) => ACC_WINDOW_LEN,
            }
            + self.scps.map_or(0, |_| SCPS_LEN)
            + self.snack.as_ref().map_or(0, Snack::wire_len)
            + self.ecn.as_ref().map_or(0, EcnCounts::wire_len)
            + self.opening.wire_len()
            + self.unknown.len() as u32
    }
}

/// A TCP header (RFC 9293 section 3.1). Checksum and data offset are computed when it is emitted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Sequence number of the first byte, or of the SYN.
    pub seq: Seq,
    /// Acknowledgement number; meaningful when ACK is set.
    pub ack: Seq,
    /// Flags.
    pub flags: Flags,
    /// Window field as in the header, unscaled.
    pub window: u16,
    /// Timestamps, if carried.
    pub timestamps: Option<Timestamps>,
    options: Option<Box<Options>>,
}

impl Segment {
    /// A segment without options.
    pub fn new(src_port: u16, dst_port: u16, seq: Seq, ack: Seq, flags: Flags) -> Segment {
        Segment { src_port, dst_port, seq, ack, flags, window: 0, timestamps: None, options: None }
    }

    /// The options other than timestamps.
    pub fn options(&self) -> &Options {
        self.options.as_deref().unwrap_or(&NO_OPTIONS)
    }

    /// The options other than timestamps, for changes.
    pub fn options_mut(&mut self) -> &mut Options {
        self.options.get_or_insert_default()
    }

    /// Whether its sender signed it, so that any change makes it invalid (RFC 2385, RFC 5925).
    pub fn is_signed(&self) -> bool {
        let signature = |kind: u8| matches!(kind, options::KIND_MD5 | options::KIND_AUTHENTICATION);
        let unknown = self.options.as_deref().map_or(&[][..], |options| &options.unknown);
        options::walk(unknown).flatten().any(|option| signature(option.kind))
    }

    /// Whether any option other than timestamps may be set; cheaper than comparing [`Segment::options`].
    pub fn has_options(&self) -> bool {
        self.options.is_some()
    }

    /// Length of the header in bytes, with options padded to 32 bits.
    #[inline]
    pub fn header_len(&self) -> u32 {
        let timestamps = if self.timestamps.is_some() { 12 } else { 0 };
        let rest = match &self.options {
            None => 0,
            Some(options) if options.packed => {
                return 20 + options::packed_len(self.timestamps.is_some(), options);
            }
            Some(options) => options.wire_len().next_multiple_of(4),
        };
        20 + timestamps + rest
    }

    /// Sequence numbers of this segment with `body` bytes of payload: SYN and FIN count one each.
    pub fn seq_len(&self, body: u32) -> u32 {
        body + u32::from(self.flags.has(Flags::SYN)) + u32::from(self.flags.has(Flags::FIN))
    }
}
