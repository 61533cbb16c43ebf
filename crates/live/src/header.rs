//! The headers of a frame: the virtio header, then Ethernet with its tags.

/// Length of the virtio header before each frame.
pub const VNET: usize = 10;

/// Ethernet addresses and type.
const ETHERNET: usize = 14;

const IPV4: u16 = 0x0800;
pub(crate) const IPV6: u16 = 0x86dd;
const VLAN: [u16; 2] = [0x8100, 0x88a8];

/// The header before each frame in a packet socket (virtio_net_hdr), in the machine's byte order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VnetHeader {
    /// [`VnetHeader::NEEDS_CHECKSUM`] and others.
    pub flags: u8,
    /// Zero for a plain frame; else the segmentation of the super-packet.
    pub gso_type: u8,
    /// Length of all headers of a super-packet.
    pub header_len: u16,
    /// Payload of each segment of a super-packet.
    pub gso_size: u16,
    /// Start of the checksummed bytes, from the start of the Ethernet frame.
    pub checksum_start: u16,
    /// Offset of the checksum field from `checksum_start`.
    pub checksum_offset: u16,
}

impl VnetHeader {
    /// The checksum field holds only the sum over the pseudo-header.
    pub const NEEDS_CHECKSUM: u8 = 1;
    /// The checksum was verified already.
    pub const VALID: u8 = 2;
    /// Types of super-packets: TCP over IPv4, TCP over IPv6, and UDP. The high bit means that the first
    /// segment carries CWR.
    pub(crate) const TCPV4: u8 = 1;
    pub(crate) const TCPV6: u8 = 4;
    pub(crate) const UDP: u8 = 5;
    pub(crate) const ECN: u8 = 0x80;

    /// Reads the header at the start of `frame`.
    pub fn read(frame: &[u8]) -> Option<VnetHeader> {
        let b = frame.first_chunk::<VNET>()?;
        let word = |at: usize| u16::from_ne_bytes([b[at], b[at + 1]]);
        Some(VnetHeader {
            flags: b[0],
            gso_type: b[1],
            header_len: word(2),
            gso_size: word(4),
            checksum_start: word(6),
            checksum_offset: word(8),
        })
    }

    /// Writes the header to the start of `frame`.
    pub fn write(self, frame: &mut [u8]) {
        let Some(b) = frame.first_chunk_mut::<VNET>() else { return };
        b[0] = self.flags;
        b[1] = self.gso_type;
        b[2..4].copy_from_slice(&self.header_len.to_ne_bytes());
        b[4..6].copy_from_slice(&self.gso_size.to_ne_bytes());
        b[6..8].copy_from_slice(&self.checksum_start.to_ne_bytes());
        b[8..10].copy_from_slice(&self.checksum_offset.to_ne_bytes());
    }

    /// The header after an insertion of `bytes` bytes before the network header.
    pub fn shifted(self, bytes: u16) -> VnetHeader {
        let mut header = self;
        if self.needs_checksum() {
            header.checksum_start = self.checksum_start.wrapping_add(bytes);
        }
        if self.gso_type != 0 {
            header.header_len = self.header_len.wrapping_add(bytes);
        }
        header
    }

    /// Whether the checksum is incomplete.
    pub fn needs_checksum(self) -> bool {
        self.flags & VnetHeader::NEEDS_CHECKSUM != 0
    }

    /// Whether the checksum is complete but not verified.
    pub fn is_unverified(self) -> bool {
        self.flags & (VnetHeader::NEEDS_CHECKSUM | VnetHeader::VALID) == 0 && !self.is_super()
    }

    /// Whether this is a TCP super-packet.
    pub fn is_tcp(self) -> bool {
        matches!(self.gso_type & !VnetHeader::ECN, VnetHeader::TCPV4 | VnetHeader::TCPV6)
    }

    /// Whether this is a super-packet.
    pub fn is_super(self) -> bool {
        self.gso_type & !VnetHeader::ECN != 0
    }
}

/// Offset of the IP packet in `frame`, if there is one.
pub(crate) fn network_at(frame: &[u8]) -> Option<usize> {
    content(frame).and_then(|(kind, at)| (kind == IPV4 || kind == IPV6).then_some(at))
}

/// Type of the content of `frame` behind its VLAN tags, and the offset of the content.
pub(crate) fn content(frame: &[u8]) -> Option<(u16, usize)> {
    let mut at = VNET + ETHERNET - 2;
    // A frame has at most two tags (802.1ad).
    for _ in 0..3 {
        let kind = u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]);
        if VLAN.contains(&kind) {
            at += 4;
            continue;
        }
        return Some((kind, at + 2));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: VnetHeader = VnetHeader {
        flags: 1,
        gso_type: 4,
        header_len: 0x0203,
        gso_size: 0x0405,
        checksum_start: 0x0607,
        checksum_offset: 0x0809,
    };

    /// Layout of struct virtio_net_hdr: two bytes, then four words in the machine's byte order.
    #[test]
    fn the_virtio_header_has_the_kernels_layout() {
        let mut bytes = [0xee; VNET + 1];
        ALL.write(&mut bytes);
        let words: Vec<u8> =
            [0x0203_u16, 0x0405, 0x0607, 0x0809].into_iter().flat_map(u16::to_ne_bytes).collect();
        assert_eq!(bytes[..2], [1, 4]);
        assert_eq!((&bytes[2..VNET], bytes[VNET]), (&words[..], 0xee));
        assert_eq!(VnetHeader::read(&bytes), Some(ALL));
        assert_eq!(VnetHeader::read(&bytes[..VNET]), Some(ALL));
        assert_eq!(VnetHeader::read(&bytes[..VNET - 1]), None);
        let mut short = [0xee; VNET - 1];
        ALL.write(&mut short);
        assert_eq!(short, [0xee; VNET - 1], "what has no room is left alone");
    }

    #[test]
    fn flags_and_gso_type_classify_a_frame() {
        let of = |flags, gso_type| {
            let header = VnetHeader { flags, gso_type, ..VnetHeader::default() };
            let VnetHeader { .. } = header;
            [header.needs_checksum(), header.is_unverified(), header.is_super(), header.is_tcp()]
        };
        // Flags, GSO type; whether the checksum is incomplete, complete but not verified, a super-packet, a
        // TCP super-packet.
        for (flags, kind, is) in [
            (0, 0, [false, true, false, false]),
            (1, 0, [true, false, false, false]),
            (2, 0, [false, false, false, false]),
            (3, 0, [true, false, false, false]),
            (0, 0x80, [false, true, false, false]),
            (1, 1, [true, false, true, true]),
            (1, 0x81, [true, false, true, true]),
            (1, 4, [true, false, true, true]),
            (1, 0x84, [true, false, true, true]),
            (1, 5, [true, false, true, false]),
            (0, 3, [false, false, true, false]),
        ] {
            assert_eq!(of(flags, kind), is, "flags {flags}, type {kind:#x}");
        }
    }

    /// Offsets count from the start of the frame; unused offsets remain zero.
    #[test]
    fn a_vlan_tag_shifts_only_the_offsets_in_use() {
        let moved = ALL.shifted(4);
        assert_eq!((moved.checksum_start, moved.checksum_offset), (0x060b, 0x0809));
        assert_eq!((moved.header_len, moved.gso_size), (0x0207, 0x0405));
        let plain = VnetHeader { flags: 2, gso_type: 0, ..ALL }.shifted(4);
        assert_eq!((plain.checksum_start, plain.header_len), (0x0607, 0x0203));
    }

    #[test]
    fn the_packet_begins_behind_at_most_two_tags() {
        let frame = |kinds: &[u16]| {
            let mut bytes = vec![0; VNET + ETHERNET - 2];
            for kind in kinds {
                bytes.extend(kind.to_be_bytes());
                if VLAN.contains(kind) {
                    bytes.extend([0, 7]);
                }
            }
            bytes
        };
        for (kinds, at) in [
            (&[0x0800][..], Some(24)),
            (&[0x86dd], Some(24)),
            (&[0x8100, 0x0800], Some(28)),
            (&[0x88a8, 0x8100, 0x86dd], Some(32)),
            (&[0x88a8, 0x8100, 0x8100, 0x0800], None),
            (&[0x0806], None),
            (&[0x8100, 0x0806], None),
            (&[0x8100], None),
            (&[], None),
        ] {
            let bytes = frame(kinds);
            assert_eq!(network_at(&bytes), at, "{kinds:x?}");
            let cut = bytes.len() - 1;
            assert_eq!(network_at(&bytes[..cut]), None, "{kinds:x?} without its last byte");
        }
    }
}
