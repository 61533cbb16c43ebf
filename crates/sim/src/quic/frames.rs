//! Parses packets as far as needed for the cause of their transmission.
//!
//! Packets are not encrypted ([`crate::quic::plain`]), so this reads the stack's frames directly.

use crate::quic::plain::TAG;

/// Length of the connection ids of our hosts.
pub(crate) const CID: usize = 8;

/// Frames of a datagram.
#[derive(Default, Debug, PartialEq, Eq)]
pub(crate) struct Frames {
    /// Truncated number of the last packet with its length in bits; `None` if all are handshake packets.
    pub number: Option<(u64, u32)>,
    /// Stream data: stream, first byte, one past the last byte.
    pub stream: Vec<(u64, u64, u64)>,
    /// The peer must acknowledge at once: the end probes, by timer or for a larger packet.
    pub probe: bool,
    /// Acknowledged packet numbers, from and to, the highest first.
    pub acks: Vec<(u64, u64)>,
    /// There is more than acknowledgements and padding.
    pub eliciting: bool,
}

/// Parses variable-length integers.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    //= rfc9000#section-16: the two highest bits say how many bytes there are
    fn number(&mut self) -> Option<u64> {
        let first = self.byte()?;
        let more = (1 << (first >> 6)) - 1;
        (0..more).try_fold(u64::from(first & 0x3f), |n, _| Some(n << 8 | u64::from(self.byte()?)))
    }

    fn numbers(&mut self, count: usize) -> Option<()> {
        (0..count).try_for_each(|_| self.number().map(drop))
    }

    fn skip(&mut self, len: u64) -> Option<()> {
        self.0 = self.0.get(usize::try_from(len).ok()?..)?;
        Some(())
    }
}

/// The rest of `datagram` after its first packet, which has a long header.
//= rfc9000#section-17.2: type, version, two connection ids, a token in Initial packets, the length of the rest
fn behind_long(datagram: &[u8]) -> Option<&[u8]> {
    let mut r = Reader(datagram);
    let initial = r.byte()? & 0x30 == 0;
    r.skip(4)?;
    for _ in 0..2 {
        let len = r.byte()?;
        r.skip(len.into())?;
    }
    if initial {
        let token = r.number()?;
        r.skip(token)?;
    }
    let len = r.number()?;
    r.skip(len)?;
    Some(r.0)
}

impl Frames {
    /// The content of a datagram. Handshake packets may precede the last packet; only their presence is recorded.
    pub fn of_datagram(datagram: &[u8]) -> Frames {
        let mut frames = Frames::default();
        let mut rest = datagram;
        while let Some(first) = rest.first() {
            //= rfc9000#section-17.2: the highest bit marks a long header
            if first & 0x80 == 0 {
                frames.packet(rest);
                break;
            }
            frames.eliciting = true;
            let Some(behind) = behind_long(rest) else { break };
            rest = behind;
        }
        frames
    }

    /// A packet with a short header.
    fn packet(&mut self, packet: &[u8]) {
        //= rfc9000#section-17.3.1: behind the first byte stand connection id and packet number
        let len = usize::from(packet[0] & 3) + 1;
        let Some((head, payload)) = packet.split_at_checked(1 + CID + len) else { return };
        let number = head[1 + CID..].iter().fold(0, |n, byte| n << 8 | u64::from(*byte));
        self.number = Some((number, 8 * len as u32));
        let end = payload.len().saturating_sub(TAG);
        let mut reader = Reader(&payload[..end]);
        while !reader.0.is_empty() {
            // An unknown frame ends the parsing.
            if self.frame(&mut reader).is_none() {
                break;
            }
        }
    }

    //= rfc9000#section-19: frames
    fn frame(&mut self, r: &mut Reader<'_>) -> Option<()> {
        let kind = r.number()?;
        self.eliciting |= !matches!(kind, 0x00 | 0x02 | 0x03 | 0x1c | 0x1d);
        match kind {
            0x00 | 0x01 | 0x1e => Some(()),
            0x1f => {
                self.probe = true;
                Some(())
            }
            0x02 | 0x03 => self.ack(r, kind == 0x03),
            0x04 => r.numbers(3),
            0x05 | 0x11 | 0x15 => r.numbers(2),
            0x06 => {
                r.number()?;
                let len = r.number()?;
                r.skip(len)
            }
            0x07 => {
                let len = r.number()?;
                r.skip(len)
            }
            0x08..=0x0f => {
                let stream = r.number()?;
                let start = if kind & 4 != 0 { r.number()? } else { 0 };
                let len = if kind & 2 != 0 { r.number()? } else { r.0.len() as u64 };
                r.skip(len)?;
                self.stream.push((stream, start, start + len));
                Some(())
            }
            0x10 | 0x12 | 0x13 | 0x14 | 0x16 | 0x17 | 0x19 => r.numbers(1),
            0x18 => {
                r.numbers(2)?;
                let len = r.byte()?;
                r.skip(u64::from(len) + 16)
            }
            0x1a | 0x1b => r.skip(8),
            // ACK_FREQUENCY (draft-ietf-quic-ack-frequency).
            0xaf => r.numbers(4),
            _ => None,
        }
    }

    //= rfc9000#section-19.3: gaps and ranges go down from the largest number
    fn ack(&mut self, r: &mut Reader<'_>, counts: bool) -> Option<()> {
        let mut high = r.number()?;
        r.number()?;
        let more = r.number()?;
        let mut low = high.checked_sub(r.number()?)?;
        self.acks.push((low, high));
        for _ in 0..more {
            high = low.checked_sub(r.number()?.checked_add(2)?)?;
            low = high.checked_sub(r.number()?)?;
            self.acks.push((low, high));
        }
        if counts { r.numbers(3) } else { Some(()) }
    }
}

/// The full number with the low `bits` bits `low`, closest to `expected`.
//= rfc9000#section-17.1: the number closest to the next packet expected
pub(crate) fn widen(low: u64, bits: u32, expected: u64) -> u64 {
    let span = 1_u64 << bits;
    let near = expected & !(span - 1) | low;
    if near + span / 2 <= expected {
        near + span
    } else if near > expected + span / 2 && near >= span {
        near - span
    } else {
        near
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(frames: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x41];
        packet.extend_from_slice(&[7; CID]);
        packet.extend_from_slice(&[0x12, 0x34]);
        packet.extend_from_slice(frames);
        packet.extend_from_slice(&[0; TAG]);
        packet
    }

    #[test]
    fn the_frames_of_a_packet_are_parsed() {
        // PING, IMMEDIATE_ACK, a stream frame with offset and length, one to the end.
        let all = packet(&[1, 0x1f, 0x0e, 4, 0x40, 0x64, 2, 9, 9, 0x08, 8, 1, 2, 3]);
        let read = Frames::of_datagram(&all);
        assert_eq!(read.number, Some((0x1234, 16)));
        assert_eq!(read.stream, [(4, 100, 102), (8, 0, 3)]);
        assert!(read.probe && read.eliciting && read.acks.is_empty());
    }

    #[test]
    fn ranges_of_acknowledgements_go_down() {
        // Largest 20, delay 0, two more ranges: 18..=20, 10..=15, 3..=3.
        let read = Frames::of_datagram(&packet(&[2, 20, 0, 2, 2, 1, 5, 5, 0]));
        assert_eq!(read.acks, [(18, 20), (10, 15), (3, 3)]);
        assert!(!read.eliciting);
    }

    #[test]
    fn data_behind_a_handshake_packet_is_parsed() {
        let mut all = vec![0xe0, 0, 0, 0, 1, 1, 9, 0, 3, 1, 2, 3];
        all.extend_from_slice(&packet(&[0x0a, 2, 2, 9, 9]));
        let read = Frames::of_datagram(&all);
        assert_eq!((read.stream.as_slice(), read.eliciting), ([(2, 0, 2)].as_slice(), true));
    }

    #[test]
    fn truncated_packets_are_parsed_without_panic() {
        let whole = packet(&[0x0e, 4, 0x40, 0x64, 2, 9, 9, 2, 20, 0, 2, 2, 1, 5, 5, 0]);
        for len in 0..whole.len() {
            Frames::of_datagram(&whole[..len]);
        }
        assert_eq!(Frames::of_datagram(&packet(&[2, 0x20, 0, 0, 0x21])).acks, []);
    }

    #[test]
    fn numbers_are_widened_to_the_nearest() {
        assert_eq!(widen(0x34, 8, 0x133), 0x134);
        assert_eq!(widen(0x02, 8, 0x1fe), 0x202);
        assert_eq!(widen(0xfe, 8, 0x202), 0x1fe);
        assert_eq!(widen(5, 16, 0), 5);
    }
}
