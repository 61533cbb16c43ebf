//! Frames of all link types around an IP packet.

use super::wrap::{Wrapper, is_v6};

/// Kinds of links, some of which share a link type.
pub const LINKS: u32 = 40;

const SNAP: [u8; 6] = [0xaa, 0xaa, 3, 0, 0, 0];

fn kind(ip: &[u8]) -> [u8; 2] {
    if is_v6(ip) { [0x86, 0xdd] } else { [0x08, 0x00] }
}

/// The link type of kind `link`.
pub fn link_type(link: u32) -> u32 {
    [
        1, 101, 0, 0, 108, 113, 113, 113, 276, 276, 9, 50, 51, 104, 107, 107, 105, 127, 127, 192,
        119, 163, 239, 117, 109, 242, 204, 205, 100, 258, 9, 281, 282, 285, 8, 197, 1, 1, 1, 1,
    ][link as usize]
}

impl Wrapper {
    /// A data frame of 802.11: with quality of service and four addresses or without, padded if `padded`.
    fn wifi(&mut self, padded: bool, ip: &[u8]) -> Vec<u8> {
        let (quality, four) = (self.choices.flip(), self.choices.below(4) == 0);
        let mut frame = vec![if quality { 0x88 } else { 0x08 }, if four { 3 } else { 1 }, 0, 0];
        frame.extend([2; 18]);
        frame.extend([0x10, 0x20]);
        if four {
            frame.extend([2; 6]);
        }
        // Links of a mesh have four addresses, and mesh control with two more or without.
        let mesh = quality && four && self.choices.flip();
        if quality {
            frame.extend([0, u8::from(mesh)]);
        }
        if padded {
            frame.resize(frame.len().next_multiple_of(4), 0);
        }
        if mesh {
            let more = if self.choices.flip() { 2 } else { 0 };
            frame.extend([more, 31, 0, 0, 0, 1]);
            frame.resize(frame.len() + 6 * usize::from(more), 2);
        }
        frame.extend([&SNAP[..], &kind(ip), ip].concat());
        // The frame check sequence.
        frame.extend([1, 2, 3, 4]);
        frame
    }

    /// `ip` in a frame of kind `link`.
    pub fn frame(&mut self, link: u32, ip: &[u8]) -> Vec<u8> {
        let kind = kind(ip);
        let family: u32 = if is_v6(ip) { 30 } else { 2 };
        let cooked = |hardware: [u8; 2], protocol: [u8; 2]| {
            let mut header = vec![0, 0, hardware[0], hardware[1], 0, 6];
            header.extend([2; 8]);
            header.extend(protocol);
            header
        };
        let ppp_kind = [0, if is_v6(ip) { 0x57 } else { 0x21 }];
        let hdlc = |ip: &[u8]| [&[0x0f, 0, kind[0], kind[1]][..], ip].concat();
        match link {
            0 => self.ethernet(ip),
            1 => ip.to_vec(),
            2 => [&family.to_le_bytes()[..], ip].concat(),
            3 | 4 => [&family.to_be_bytes()[..], ip].concat(),
            5 => [&cooked([0, 1], kind)[..], ip].concat(),
            6 => [&cooked([0, 1], [0x81, 0])[..], &[0, 5], &kind, ip].concat(),
            7 => {
                let [high, low] = (ip.len() as u16 + 2).to_be_bytes();
                let pppoe = [0x11, 0, 0, 9, high, low];
                [&cooked([0, 1], [0x88, 0x64])[..], &pppoe, &ppp_kind, ip].concat()
            }
            8 => [&kind[..], &[0, 0, 0, 0, 0, 3, 0, 1, 0, 6], &[2; 8], ip].concat(),
            9 => {
                let header = [0x81, 0, 0, 0, 0, 0, 0, 3, 0, 1, 0, 6, 2, 2, 2, 2, 2, 2, 2, 2, 0, 5];
                [&header[..], &kind, ip].concat()
            }
            10 | 11 => [&[0xff, 3][..], &ppp_kind, ip].concat(),
            12 => {
                let [high, low] = (ip.len() as u16 + 2).to_be_bytes();
                [&[0x11, 0, 0, 9, high, low][..], &ppp_kind, ip].concat()
            }
            13 => hdlc(ip),
            14 => {
                let network = [if is_v6(ip) { 0x8e } else { 0xcc }];
                [&[0x18, 0x41, 0x03][..], &network, ip].concat()
            }
            15 => [&[0x18, 0x41, 0x03, 0x00, 0x80, 0, 0, 0][..], &kind, ip].concat(),
            16 => self.wifi(false, ip),
            17 => {
                // Eight bytes of fixed header, flags, and one of padding.
                let frame = self.wifi(false, ip);
                [&[0, 0, 10, 0, 2, 0, 0, 0, 0x10, 0][..], &frame].concat()
            }
            18 => {
                // Two bitmaps, a timestamp aligned to eight bytes, flags that announce padding.
                let frame = self.wifi(true, ip);
                let mut header = vec![0, 0, 26, 0, 3, 0, 0, 0x80, 0, 0, 0, 0];
                header.resize(24, 0);
                header.extend([0x30, 0]);
                [header, frame].concat()
            }
            19 => {
                let frame = self.wifi(false, ip);
                [&[0, 0, 8, 0, 105, 0, 0, 0][..], &frame].concat()
            }
            20 => {
                let mut header = vec![0x44, 0, 0, 0, 144, 0, 0, 0];
                header.resize(144, 0);
                let frame = self.wifi(false, ip);
                [header, frame].concat()
            }
            21 => {
                let mut header = vec![0x80, 0x21, 0x10, 0x01, 0, 0, 0, 64];
                header.resize(64, 0);
                let frame = self.wifi(false, ip);
                [header, frame].concat()
            }
            22 => {
                // A prefix of five bytes, padded, then the payload.
                let mut bytes = vec![if is_v6(ip) { 10 } else { 2 }, 0, 0, 0];
                bytes.extend([9, 0, 10, 0, b'a', b'b', b'c', b'd', 0, 0, 0, 0]);
                bytes.extend((ip.len() as u16 + 4).to_le_bytes());
                bytes.extend([9, 0]);
                bytes.extend(ip);
                bytes.resize(bytes.len().next_multiple_of(4), 0);
                bytes
            }
            23 => {
                let mut header = vec![61, if is_v6(ip) { 24 } else { 2 }, 0, 0];
                header.resize(64, 0);
                [&header, ip].concat()
            }
            24 => {
                let family: u32 = if is_v6(ip) { 24 } else { 2 };
                [&family.to_le_bytes()[..], &[0; 8], ip].concat()
            }
            // Behind the global routing header, as Wireshark has it.
            25 => [&[0x60; 40][..], &kind, &[0, 0], ip].concat(),
            26 => [&[1, 0xff, 3][..], &ppp_kind, ip].concat(),
            27 => [vec![0], hdlc(ip)].concat(),
            28 => [&SNAP[..], &kind, ip].concat(),
            29 => {
                let mut header = vec![108, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0];
                header.resize(108, 0);
                let frame = self.ethernet(ip);
                [header, frame].concat()
            }
            30 => hdlc(ip),
            _ => self.switched(link, ip),
        }
    }

    /// `ip` in a frame of a switch, of a card for captures, or of a network below Ethernet.
    fn switched(&mut self, link: u32, ip: &[u8]) -> Vec<u8> {
        let kind = kind(ip);
        let outer = |kind: [u8; 2]| [&[2_u8; 12][..], &kind].concat();
        match link {
            31 => [&[2; 12][..], &[0, 0, 0, 3], &kind, ip].concat(),
            32 => [&[0, 0, 0, 3][..], &self.ethernet(ip)].concat(),
            33 => [&[2; 12][..], &[0xda, 0xda, 0, 0, 0xc0, 8, 0, 0], &kind, ip].concat(),
            34 => [&[0; 16][..], ip].concat(),
            35 => {
                let frame = self.ethernet(ip);
                let wire = (frame.len() as u16 + 4).to_be_bytes();
                let record = (frame.len() as u16 + 30).to_be_bytes();
                let header = [&[0; 8][..], &[0x82, 4], &record, &[0, 0], &wire].concat();
                // An extension header, two bytes of padding, and the frame check sequence.
                [&header, &[3, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], &frame, &[9; 4]].concat()
            }
            // FabricPath, TRILL with options, and B.A.T.M.A.N. advanced.
            // The first one ends with its frame check sequence, which tshark expects.
            36 => [&outer([0x89, 0x03])[..], &[0, 0x41], &self.ethernet(ip), &[9; 4]].concat(),
            37 => {
                let options = self.choices.below(3) as u8;
                let mut header = vec![0, 31 | options << 6, 0, 1, 0, 2];
                header.resize(header.len() + 4 * usize::from(options), 7);
                [&outer([0x22, 0xf3])[..], &header, &self.ethernet(ip)].concat()
            }
            38 => {
                let four = self.choices.flip();
                let mut header = vec![if four { 0x42 } else { 0x40 }, 15, 50, 1];
                header.resize(if four { 18 } else { 10 }, 2);
                [&outer([0x43, 0x05])[..], &header, &self.ethernet(ip)].concat()
            }
            // A pseudowire without control word, to an address that begins like an IP header.
            _ => {
                let mut address = vec![if self.choices.flip() { 0x45 } else { 0x6c }];
                address.extend((0..5).map(|_| self.choices.below(256) as u8));
                let label = [0x12, 0x34, 1, 63];
                [&outer([0x88, 0x47])[..], &label, &address[..], &[2; 6], &kind, ip].concat()
            }
        }
    }
}
