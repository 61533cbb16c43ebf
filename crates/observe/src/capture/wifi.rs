//! 802.11 frames, and what capturing drivers put before them.

use super::content::{Protocol, Reason};
use super::part::{BOTH_SYSTEMS, Layer, MORE_FRAGMENTS, PROTECTED, Part, Step, Stop};
use super::{LinkType, link};

/// In the second byte of the field for quality of service: mesh control follows.
const MESH: u8 = 0x01;

/// Radiotap: a bitmap of fields, of which the flags are needed.
pub(super) fn radiotap(frame: Part<'_>) -> Step<'_> {
    const TIMESTAMP: u32 = 1;
    const FLAGS: u32 = 2;
    const MORE: u32 = 1 << 31;
    const PADDED: u8 = 0x20;
    const BAD_CHECK: u8 = 0x40;
    let len = usize::from(frame.le16(2)?);
    let present = frame.le32(4)?;
    let mut at = 4;
    while frame.le32(at)? & MORE != 0 {
        at += 4;
        if at > len {
            return Err(Stop::Unread(Reason::Malformed));
        }
    }
    at += 4;
    if present & TIMESTAMP != 0 {
        at = at.next_multiple_of(8) + 8;
    }
    let flags = if present & FLAGS == 0 { 0 } else { frame.byte(at)? };
    if flags & BAD_CHECK != 0 {
        return Err(Stop::Unread(Reason::FrameCheck));
    }
    Ok((Layer::Wifi { padded: flags & PADDED != 0 }, frame.skip(len)?))
}

/// Data rate in a radiotap header, in units of 100 kbit/s: legacy, HT, VHT of one user, or HE.
fn rate(frame: Part<'_>) -> Option<u32> {
    const MORE: u32 = 1 << 31;
    /// Alignment and length of each field, in bytes, in the order of the bits.
    const FIELDS: [(usize, usize); 24] = [
        (8, 8),
        (1, 1),
        (1, 1),
        (2, 4),
        (1, 2),
        (1, 1),
        (1, 1),
        (2, 2),
        (2, 2),
        (2, 2),
        (1, 1),
        (1, 1),
        (1, 1),
        (1, 1),
        (2, 2),
        (2, 2),
        (1, 1),
        (1, 1),
        (4, 8),
        (1, 3),
        (4, 8),
        (2, 12),
        (8, 12),
        (2, 12),
    ];
    /// Bits of a symbol for each subcarrier, times 12: modulation and code rate of each index.
    const BITS: [u32; 12] = [6, 12, 18, 24, 36, 48, 54, 60, 72, 80, 90, 100];
    /// Subcarriers with data of each bandwidth and resource unit of HE.
    const HE_CARRIERS: [u32; 11] = [234, 468, 980, 1960, 24, 48, 102, 234, 468, 980, 1960];
    /// HE: index, bandwidth and guard interval are known.
    const HE_KNOWN: (u16, u16) = (0x4020, 0x0002);
    let present = frame.le32(4).ok()?;
    let mut at = 4;
    while frame.le32(at).ok()? & MORE != 0 {
        at += 4;
    }
    at += 4;
    let bits = |index: usize, carriers: u32, streams: u32| {
        Some(*BITS.get(index)? * carriers * streams * 100 / 12)
    };
    let symbols = |index: usize, carriers: u32, streams: u32, short: bool| {
        Some(bits(index, carriers, streams)? / if short { 36 } else { 40 })
    };
    let mut legacy = None;
    for (bit, (align, len)) in FIELDS.into_iter().enumerate() {
        if present >> bit & 1 == 0 {
            continue;
        }
        at = at.next_multiple_of(align);
        match bit {
            2 => legacy = Some(u32::from(frame.byte(at).ok()?) * 5),
            19 => {
                let (flags, index) =
                    (frame.byte(at + 1).ok()?, usize::from(frame.byte(at + 2).ok()?));
                let carriers = if flags & 3 == 1 { 108 } else { 52 };
                if index >= 32 {
                    return None;
                }
                return symbols(index % 8, carriers, index as u32 / 8 + 1, flags & 4 != 0);
            }
            21 => {
                let (flags, width) = (frame.byte(at + 2).ok()?, frame.byte(at + 3).ok()? & 31);
                let user = frame.byte(at + 4).ok()?;
                let carriers = match width {
                    0 | 2 | 3 | 7..=10 => 52,
                    1 | 5 | 6 => 108,
                    4 => 234,
                    11 => 468,
                    _ => return None,
                };
                return symbols((user >> 4).into(), carriers, u32::from(user & 15), flags & 4 != 0);
            }
            23 => {
                let word = |index: usize| frame.le16(at + 2 * index).ok();
                let (rate, width, streams) = (word(2)?, word(4)?, u32::from(word(5)? & 15));
                if (word(0)? & HE_KNOWN.0, word(1)? & HE_KNOWN.1) != HE_KNOWN {
                    return None;
                }
                let index = usize::from(rate >> 8 & 15);
                let bits = bits(index, *HE_CARRIERS.get(usize::from(width & 15))?, streams)?;
                // A symbol takes 12.8 us, and its guard interval 0.8, 1.6 or 3.2 us.
                let symbol = 128 + (8 << (width >> 4 & 3).min(2));
                let twice = rate & 0x1000 != 0;
                return Some(bits / symbol / if twice { 2 } else { 1 }).filter(|rate| *rate > 0);
            }
            _ => {}
        }
        at += len;
    }
    legacy.filter(|rate| *rate > 0)
}

/// The part of an 802.11 header that identifies a transmission.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct WifiHeader {
    /// Address of the transmitting station.
    pub transmitter: [u8; 6],
    /// Whether the frame repeats one that was not acknowledged on the link.
    pub retry: bool,
    /// Data rate by the capturing driver, in units of 100 kbit/s.
    pub rate: Option<u32>,
}

/// The header of a data frame, behind those of the capturing driver.
pub(super) fn header(kind: LinkType, frame: Part<'_>) -> Option<WifiHeader> {
    const RETRY: u8 = 0x08;
    const DATA: u8 = 0x08;
    let (mut layer, mut part) = link::first(kind, frame).ok()?;
    let rate = if kind == LinkType::RADIOTAP { rate(frame) } else { None };
    if let Layer::Link(inner) = layer {
        (layer, part) = link::first(inner, part).ok()?;
    }
    let Layer::Wifi { .. } = layer else { return None };
    let [kind, flags, ..] = *part.bytes else { return None };
    let transmitter = *part.bytes.get(10..)?.first_chunk()?;
    (kind & 0x0f == DATA).then_some(WifiHeader { transmitter, retry: flags & RETRY != 0, rate })
}

/// The header of Prism chips, in the byte order of the machine, or that of AVS under the same link type.
pub(super) fn prism(frame: Part<'_>) -> Step<'_> {
    if frame.be32(0)? >> 8 == 0x0080_2110 {
        return avs(frame);
    }
    let len = frame.le32(4)?.min(frame.be32(4)?) as usize;
    Ok((Layer::Wifi { padded: false }, frame.skip(len)?))
}

pub(super) fn avs(frame: Part<'_>) -> Step<'_> {
    let len = frame.be32(4)? as usize;
    Ok((Layer::Wifi { padded: false }, frame.skip(len)?))
}

/// Per-packet information: a header that names the link type of what follows.
pub(super) fn ppi(frame: Part<'_>) -> Step<'_> {
    let (len, link) = (frame.le16(2)?, frame.le32(4)?);
    match u16::try_from(link) {
        Ok(link) if len >= 8 => Ok((Layer::Link(LinkType(link)), frame.skip(len.into())?)),
        _ => Err(Stop::Unread(Reason::Malformed)),
    }
}

/// The MAC header of a frame.
pub(super) fn frame(frame: Part<'_>, padded: bool) -> Step<'_> {
    const ORDER: u8 = 0x80;
    let (kind, flags) = (frame.byte(0)?, frame.byte(1)?);
    // Data frames, without those that have no data.
    if kind & 0x0f != 0x08 || kind & 0x40 != 0 {
        return Err(Stop::Other(Protocol::LinkControl));
    }
    let quality = kind & 0x80 != 0;
    let mut len = if flags & BOTH_SYSTEMS == BOTH_SYSTEMS { 30 } else { 24 };
    let (mut subframes, mut mesh) = (false, false);
    if quality {
        mesh = frame.byte(len + 1)? & MESH != 0;
        subframes = frame.byte(len)? & 0x80 != 0;
        len += if flags & ORDER == 0 { 2 } else { 6 };
    }
    if padded {
        len = len.next_multiple_of(4);
    }
    let rest = frame.skip(len)?;
    if flags & PROTECTED != 0 {
        return decrypted(rest, subframes);
    }
    if flags & MORE_FRAGMENTS != 0 || frame.le16(22)? & 0x0f != 0 {
        return Err(Stop::Unread(Reason::LinkFragment));
    }
    if subframes {
        return Ok((Layer::Subframes, rest));
    }
    Ok((Layer::Llc, if mesh { behind_mesh(rest)? } else { rest }))
}

/// Skips the mesh control of 802.11s. In other networks its bit has another meaning, so LLC must follow.
fn behind_mesh(rest: Part<'_>) -> Result<Part<'_>, Stop> {
    const ADDRESSES: u8 = 0x03;
    const LLC: [u8; 3] = [0xaa, 0xaa, 0x03];
    let [flags, ..] = *rest.bytes else { return Ok(rest) };
    let len = 6 + 6 * usize::from(flags & ADDRESSES);
    if rest.bytes.starts_with(&LLC) || rest.wire < len + LLC.len() {
        return Ok(rest);
    }
    let inner = rest.skip(len)?;
    if inner.bytes.len() < LLC.len() {
        return Err(inner.missing(LLC.len()));
    }
    Ok(if inner.bytes.starts_with(&LLC) { inner } else { rest })
}

/// Drivers that decrypt in hardware leave the flag of encryption set, and some the initialization vector in place.
fn decrypted(rest: Part<'_>, subframes: bool) -> Step<'_> {
    for vector in [0, 8, 4] {
        if !subframes
            && let Ok(rest) = rest.skip(vector)
            && let [0xaa, 0xaa, 0x03, ..] = rest.bytes
        {
            return Ok((Layer::Llc, rest));
        }
    }
    Err(Stop::Unread(Reason::EncryptedWifi))
}

/// The first frame of an A-MSDU, and what follows it.
pub(super) fn subframe(rest: Part<'_>) -> Result<(Part<'_>, Option<Part<'_>>), Stop> {
    let len = usize::from(rest.be16(12)?);
    let content = rest.skip(14)?;
    let next = content.skip(len.next_multiple_of(4));
    Ok((content.limit(len), next.ok().filter(|next| next.wire >= 14)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate_of(present: u32, fields: &[u8]) -> Option<u32> {
        let mut frame = vec![0, 0, 8 + fields.len() as u8, 0];
        frame.extend(present.to_le_bytes());
        frame.extend(fields);
        rate(Part::new(&frame, frame.len()))
    }

    #[test]
    fn rates_of_radiotap_headers() {
        assert_eq!(rate_of(1 << 1 | 1 << 2, &[0, 108]), Some(540));
        let high_throughput = [1, 2, 3, 4, 5, 6, 7, 8, 7, 5, 7];
        assert_eq!(rate_of(1 | 1 << 19, &high_throughput), Some(1500));
        let very_high = [0, 0, 0, 4, 0x92, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(rate_of(1 << 21, &very_high), Some(7800));
        assert_eq!(rate_of(1 << 21, &very_high[..4]), None);
        assert_eq!(rate_of(1 << 1, &[0]), None);
        // IEEE 802.11ax, section 27.5: 600.5, 7.3 and 3.6 Mbit/s, and two streams.
        let high_efficiency = |index: u16, width: u16, guard: u16, streams: u16| {
            let words = [0x4020, 2, index, 0, width | guard << 4, streams];
            rate_of(1 << 23, &words.map(u16::to_le_bytes).concat())
        };
        assert_eq!(high_efficiency(11 << 8, 2, 0, 1), Some(6004));
        assert_eq!(high_efficiency(0, 0, 2, 1), Some(73));
        assert_eq!(high_efficiency(1 << 12, 0, 2, 1), Some(36));
        assert_eq!(high_efficiency(11 << 8, 2, 0, 2), Some(12_009));
        assert_eq!(high_efficiency(12 << 8, 2, 0, 1), None);
        assert_eq!(high_efficiency(0, 0, 0, 0), None);
    }
}
