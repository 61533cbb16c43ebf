//! The pcapng format (draft-ietf-opsawg-pcapng): sections of blocks, each section with a separate byte order.

use lasthop_proto::machine::Side;
use lasthop_proto::units::Time;

use super::{
    CaptureError, Dropped, Frame, LinkType, MAX_INTERFACES, MAX_RECORD, Order, Step, time,
};

/// The type of a section header block; the same in either byte order.
pub(super) const SECTION: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

const INTERFACE: u32 = 1;
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;

const OPT_COMMENT: u16 = 1;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;
const PACKET_FLAGS: u16 = 2;
const PACKET_DROPS: u16 = 4;
const DROPPED_BY_INTERFACE: u16 = 5;
const DROPPED_BY_SYSTEM: u16 = 7;

/// A pcapng capture.
#[derive(Clone, Debug)]
pub(super) struct Pcapng {
    order: Order,
    /// The interfaces of all sections so far.
    interfaces: Vec<Interface>,
    /// Index of the current section's first interface.
    section: usize,
    /// Time of the latest packet that has one.
    latest: Time,
}

#[derive(Clone, Debug)]
struct Interface {
    link: LinkType,
    snap: u32,
    name: Box<str>,
    resolution: Resolution,
    /// Seconds to add to each time.
    offset: i64,
    /// Drops of the interface and of the system, the latest statistics; and drops that packets report.
    drops: [u64; 2],
    before_packets: u64,
}

/// What one unit of a time stamp is.
#[derive(Clone, Copy, Debug)]
enum Resolution {
    /// 10^-n seconds.
    Decimal(u8),
    /// 2^-n seconds.
    Binary(u8),
}

impl Resolution {
    fn from_option(value: u8) -> Resolution {
        if value & 0x80 == 0 {
            Resolution::Decimal(value)
        } else {
            Resolution::Binary(value & 0x7f)
        }
    }

    fn nanos(self, units: u64) -> i128 {
        let units = u128::from(units);
        let nanos = match self {
            Resolution::Decimal(n @ 0..=9) => units * 10u128.pow(9 - u32::from(n)),
            // Finer than 10^-38 s no 64-bit count reaches a nanosecond.
            Resolution::Decimal(n) => {
                10u128.checked_pow(u32::from(n) - 9).map_or(0, |divisor| units / divisor)
            }
            Resolution::Binary(n) => (units * 1_000_000_000).checked_shr(n.into()).unwrap_or(0),
        };
        // 2^64 seconds in nanoseconds are below 2^94.
        nanos as i128
    }
}

/// A block without its framing.
struct Block<'a> {
    kind: u32,
    body: &'a [u8],
    offset: usize,
}

impl Pcapng {
    pub(super) fn open(file: &[u8]) -> Result<Pcapng, CaptureError> {
        let order = section_order(file, 0)?.ok_or(CaptureError::Empty)?;
        Ok(Pcapng { order, interfaces: Vec::new(), section: 0, latest: Time::ZERO })
    }

    /// Interfaces at which the capture has missed packets.
    pub(super) fn dropped(&self) -> Vec<Dropped> {
        let dropped = |interface: &Interface| Dropped {
            interface: interface.name.to_string(),
            by_interface: interface.drops[0],
            by_system: interface.drops[1],
            before_packets: interface.before_packets,
        };
        let any = |d: &Dropped| d.by_interface > 0 || d.by_system > 0 || d.before_packets > 0;
        self.interfaces.iter().map(dropped).filter(any).collect()
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.interfaces.iter().map(|interface| interface.name.to_string()).collect()
    }

    /// The next packet of `rest`, which begins at byte `at` of the file; `at` moves past it and the blocks before it.
    pub(super) fn step<'a>(
        &mut self,
        mut rest: &'a [u8],
        at: &mut usize,
    ) -> Result<Step<'a>, CaptureError> {
        loop {
            if rest.is_empty() {
                return Ok(Step::End);
            }
            let Some((block, len)) = self.block(rest, *at)? else { return Ok(Step::Truncated) };
            rest = &rest[len..];
            *at += len;
            match block.kind {
                // Section headers are dealt with where they set the byte order.
                INTERFACE => self.interface(&block)?,
                ENHANCED_PACKET | PACKET => return self.packet(&block),
                SIMPLE_PACKET => return self.simple(&block),
                STATISTICS => self.statistics(&block),
                _ => {}
            }
        }
    }

    /// The block at the beginning of `rest`, and its length; `None` if the file ends within it.
    fn block<'a>(
        &mut self,
        rest: &'a [u8],
        offset: usize,
    ) -> Result<Option<(Block<'a>, usize)>, CaptureError> {
        if rest.starts_with(&SECTION) {
            let Some(order) = section_order(rest, offset)? else { return Ok(None) };
            self.order = order;
            self.section = self.interfaces.len();
        }
        let (Some(kind), Some(len)) = (self.order.u32(rest, 0), self.order.u32(rest, 4)) else {
            return Ok(None);
        };
        if len < 12 || !len.is_multiple_of(4) || len > MAX_RECORD {
            return Err(CaptureError::Length { offset, record: "block", len });
        }
        let Some(block) = rest.get(..len as usize) else { return Ok(None) };
        // The length is at both ends of the block. If they differ, the positions of all following blocks are unknown.
        if let Some(trailer) = self.order.u32(block, block.len() - 4)
            && trailer != len
        {
            return Err(CaptureError::Length { offset, record: "block", len: trailer });
        }
        Ok(Some((Block { kind, body: &block[8..block.len() - 4], offset }, block.len())))
    }

    fn interface(&mut self, block: &Block<'_>) -> Result<(), CaptureError> {
        let order = self.order;
        let (Some(link), Some(snap)) = (order.u16(block.body, 0), order.u32(block.body, 4)) else {
            return Err(block.short());
        };
        if self.interfaces.len() >= MAX_INTERFACES {
            return Err(CaptureError::TooManyInterfaces { offset: block.offset });
        }
        // Without a statement, microseconds.
        let resolution = Resolution::Decimal(6);
        let link = LinkType(link);
        let (drops, before_packets) = ([0; 2], 0);
        let name = Box::default();
        let mut interface =
            Interface { link, snap, name, resolution, offset: 0, drops, before_packets };
        for (code, value) in (BlockOptions { order, bytes: &block.body[8..] }) {
            match (code, value) {
                (IF_NAME, name) => interface.name = text(name).unwrap_or("").into(),
                (IF_TSRESOL, &[unit]) => interface.resolution = Resolution::from_option(unit),
                (IF_TSOFFSET, value) => interface.offset = order.i64(value, 0).unwrap_or(0),
                _ => {}
            }
        }
        self.interfaces.push(interface);
        Ok(())
    }

    /// Statistics of an interface, which count from the beginning of the capture. An invalid block is ignored.
    fn statistics(&mut self, block: &Block<'_>) {
        let order = self.order;
        let Some(number) = order.u32(block.body, 0) else { return };
        let index = self.section + number as usize;
        let Some(interface) = self.interfaces.get_mut(index) else { return };
        let options = block.body.get(12..).unwrap_or(&[]);
        for (code, value) in (BlockOptions { order, bytes: options }) {
            let count = order.i64(value, 0).map_or(0, i64::cast_unsigned);
            match code {
                DROPPED_BY_INTERFACE => interface.drops[0] = count,
                DROPPED_BY_SYSTEM => interface.drops[1] = count,
                _ => {}
            }
        }
    }

    /// An enhanced packet block, or the obsolete packet block that differs from it in one field.
    fn packet<'a>(&mut self, block: &Block<'a>) -> Result<Step<'a>, CaptureError> {
        let (order, body) = (self.order, block.body);
        let interface = if block.kind == PACKET {
            order.u16(body, 0).map(u32::from)
        } else {
            order.u32(body, 0)
        };
        let (Some(interface), Some(high), Some(low), Some(captured), Some(wire_len)) = (
            interface,
            order.u32(body, 4),
            order.u32(body, 8),
            order.u32(body, 12),
            order.u32(body, 16),
        ) else {
            return Err(block.short());
        };
        let (index, description) = self.described(block, interface)?;
        let bytes = block.packet(20, captured)?;
        let at = description.time(u64::from(high) << 32 | u64::from(low));
        let link = description.link;
        self.latest = at;
        let mut frame = Frame {
            number: 0,
            at,
            interface: index,
            link,
            bytes,
            wire_len,
            direction: None,
            comment: None,
        };
        let options = body.get(20 + bytes.len().next_multiple_of(4)..).unwrap_or(&[]);
        let mut drops = match block.kind {
            // The obsolete block has a field of 16 bits; all ones are unknown.
            PACKET => order.u16(body, 2).filter(|drops| *drops < u16::MAX).map_or(0, u64::from),
            _ => 0,
        };
        for (code, value) in (BlockOptions { order, bytes: options }) {
            match code {
                OPT_COMMENT if frame.comment.is_none() => frame.comment = text(value),
                PACKET_DROPS => drops = order.i64(value, 0).map_or(0, i64::cast_unsigned),
                PACKET_FLAGS => {
                    frame.direction = match order.u32(value, 0).unwrap_or(0) & 3 {
                        1 => Some(Side::Left),
                        2 => Some(Side::Right),
                        _ => None,
                    }
                }
                _ => {}
            }
        }
        if drops > 0
            && let Some(interface) = self.interfaces.get_mut(index as usize)
        {
            interface.before_packets = interface.before_packets.saturating_add(drops);
        }
        Ok(Step::Frame(frame))
    }

    /// A simple packet block: only bytes, of the first interface, without a time. It gets the time of the packet
    /// before.
    fn simple<'a>(&self, block: &Block<'a>) -> Result<Step<'a>, CaptureError> {
        let wire_len = self.order.u32(block.body, 0).ok_or_else(|| block.short())?;
        let (index, description) = self.described(block, 0)?;
        let snap = if description.snap == 0 { u32::MAX } else { description.snap };
        let bytes = block.packet(4, wire_len.min(snap))?;
        Ok(Step::Frame(Frame {
            number: 0,
            at: self.latest,
            interface: index,
            link: description.link,
            bytes,
            wire_len,
            direction: None,
            comment: None,
        }))
    }

    /// Interface number `interface` of the current section, and its index in the file.
    fn described(
        &self,
        block: &Block<'_>,
        interface: u32,
    ) -> Result<(u32, &Interface), CaptureError> {
        let index = self.section + interface as usize;
        self.interfaces.get(index).map(|described| (index as u32, described)).ok_or(
            CaptureError::Interface {
                offset: block.offset,
                interface,
                known: self.interfaces.len() - self.section,
            },
        )
    }
}

/// The byte order of the section that begins with `block`; `None` if the file ends before its magic.
fn section_order(block: &[u8], offset: usize) -> Result<Option<Order>, CaptureError> {
    match block.get(8..).and_then(|rest| rest.first_chunk::<4>()) {
        None => Ok(None),
        Some([0x1a, 0x2b, 0x3c, 0x4d]) => Ok(Some(Order::Big)),
        Some([0x4d, 0x3c, 0x2b, 0x1a]) => Ok(Some(Order::Little)),
        Some(&magic) => Err(CaptureError::ByteOrder { offset, magic }),
    }
}

impl<'a> Block<'a> {
    fn short(&self) -> CaptureError {
        let len = self.body.len() as u32 + 12;
        CaptureError::Length { offset: self.offset, record: "block", len }
    }

    /// The `len` captured bytes that begin at `at`.
    fn packet(&self, at: usize, len: u32) -> Result<&'a [u8], CaptureError> {
        let bytes = self.body.get(at..).and_then(|rest| rest.get(..len as usize));
        bytes.ok_or(CaptureError::Length { offset: self.offset, record: "packet", len })
    }
}

impl Interface {
    fn time(&self, units: u64) -> Time {
        time(self.resolution.nanos(units) + i128::from(self.offset) * 1_000_000_000)
    }
}

fn text(bytes: &[u8]) -> Option<&str> {
    core::str::from_utf8(bytes).ok()
}

/// Walks over the options of a block; ends at the end-of-options mark, or where they stop making sense.
struct BlockOptions<'a> {
    order: Order,
    bytes: &'a [u8],
}

impl<'a> Iterator for BlockOptions<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (code, len) = (self.order.u16(self.bytes, 0)?, self.order.u16(self.bytes, 2)?);
        if code == 0 {
            return None;
        }
        let value = self.bytes.get(4..4 + usize::from(len))?;
        self.bytes = self.bytes.get(4 + usize::from(len).next_multiple_of(4)..).unwrap_or(&[]);
        Some((code, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_resolution_gives_nanoseconds() {
        let nanos = |option: u8, units: u64| Resolution::from_option(option).nanos(units);
        assert_eq!(nanos(0, 7), 7_000_000_000);
        assert_eq!(nanos(3, 7), 7_000_000);
        assert_eq!(nanos(6, 7), 7_000);
        assert_eq!(nanos(9, 7), 7);
        assert_eq!(nanos(12, 7_999), 7);
        assert_eq!(nanos(127, u64::MAX), 0);
        assert_eq!(nanos(0x80 | 10, 1024), 1_000_000_000);
        assert_eq!(nanos(0x80 | 32, 1 << 31), 500_000_000);
        assert_eq!(nanos(0xff, u64::MAX), 0);
        assert!(nanos(0, u64::MAX) > 0 && nanos(0x80, u64::MAX) > 0);
    }
}
