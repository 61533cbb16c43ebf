//! The classic pcap format (draft-ietf-opsawg-pcap).

use super::{CaptureError, Frame, LinkType, MAX_RECORD, Order, Step, time};

const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;

/// A classic capture.
#[derive(Clone, Debug)]
pub(super) struct Pcap {
    order: Order,
    /// Nanoseconds in one unit of the sub-second field.
    unit: u32,
    link: LinkType,
    /// Length of the header of a record.
    header: usize,
    lengths: Lengths,
}

/// The order of a record's two lengths, which versions before 2.4 wrote differently.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lengths {
    /// First the captured one.
    CapturedFirst,
    /// First the one on the wire.
    WireFirst,
    /// The smaller is the captured one.
    Either,
}

/// Variants of the format by magic number in big-endian order: nanoseconds in a unit, length of a record's header, and
/// of what follows the file's header.
const VARIANTS: [(u32, u32, usize, usize); 5] = [
    (0xa1b2_c3d4, 1000, RECORD_HEADER, 0),
    (0xa1b2_3c4d, 1, RECORD_HEADER, 0),
    // Linux with interface and protocol in each record.
    (0xa1b2_cd34, 1000, 24, 0),
    // Ixia, by hardware and by software: the length of the file follows the header.
    (0x1c00_01ac, 1, RECORD_HEADER, 4),
    (0x1c00_01ab, 1, RECORD_HEADER, 4),
];

/// Whether `magic` begins a pcap file of either byte order.
pub(super) fn is_magic(magic: [u8; 4]) -> bool {
    let known = |variant: &(u32, u32, usize, usize)| {
        magic == variant.0.to_be_bytes() || magic == variant.0.to_le_bytes()
    };
    VARIANTS.iter().any(known)
}

impl Pcap {
    /// Reads the file header, and answers how long it is; `None` if the magic number is not that of pcap.
    pub(super) fn open(file: &[u8]) -> Result<Option<(Pcap, usize)>, CaptureError> {
        let Some(magic) = file.first_chunk::<4>() else { return Err(CaptureError::Empty) };
        let variant = VARIANTS.iter().find_map(|variant| match *magic {
            magic if magic == variant.0.to_be_bytes() => Some((Order::Big, variant)),
            magic if magic == variant.0.to_le_bytes() => Some((Order::Little, variant)),
            _ => None,
        });
        let Some((order, &(_, unit, header, more))) = variant else { return Ok(None) };
        if file.len() < FILE_HEADER + more {
            return Err(CaptureError::Empty);
        }
        let (major, minor) = (order.u16(file, 4).unwrap_or(0), order.u16(file, 6).unwrap_or(0));
        // 543.0 is written by tcpdump of DG/UX.
        let lengths = match (major, minor) {
            (2, 4) => Lengths::CapturedFirst,
            (2, 3) => Lengths::Either,
            (2, 0..=2) | (543, 0) => Lengths::WireFirst,
            _ => return Err(CaptureError::Version { major, minor }),
        };
        // The upper bits are whether frames include their check sequence.
        let link = LinkType((order.u32(file, 20).unwrap_or(0) & 0xffff) as u16);
        Ok(Some((Pcap { order, unit, link, header, lengths }, FILE_HEADER + more)))
    }

    /// The next record of `rest`, which begins at byte `at` of the file; `at` moves past it.
    pub(super) fn step<'a>(
        &self,
        rest: &'a [u8],
        at: &mut usize,
    ) -> Result<Step<'a>, CaptureError> {
        if rest.is_empty() {
            return Ok(Step::End);
        }
        let field = |index: usize| self.order.u32(rest, 4 * index);
        let (Some(secs), Some(fraction), Some(first), Some(second)) =
            (field(0), field(1), field(2), field(3))
        else {
            return Ok(Step::Truncated);
        };
        let (captured, wire_len) = match self.lengths {
            Lengths::CapturedFirst => (first, second),
            Lengths::WireFirst => (second, first),
            Lengths::Either => (first.min(second), first.max(second)),
        };
        if captured > MAX_RECORD {
            let (offset, record) = (*at, "packet");
            return Err(CaptureError::Length { offset, record, len: captured });
        }
        let end = self.header + captured as usize;
        let Some(bytes) = rest.get(self.header..end) else { return Ok(Step::Truncated) };
        *at += end;
        let nanos = i128::from(secs) * 1_000_000_000 + i128::from(fraction) * i128::from(self.unit);
        Ok(Step::Frame(Frame {
            number: 0,
            at: time(nanos),
            interface: 0,
            link: self.link,
            bytes,
            wire_len,
            direction: None,
            comment: None,
        }))
    }
}
