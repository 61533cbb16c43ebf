//! Random encapsulations of IP packets, written from the formats' definitions, independently of the reader.

use std::net::Ipv4Addr;

/// A reproducible source of choices.
pub struct Choices(pub u64);

impl Choices {
    pub fn below(&mut self, bound: u32) -> u32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as u32 % bound
    }

    pub fn flip(&mut self) -> bool {
        self.below(2) == 1
    }
}

fn checksum(bytes: &[u8]) -> u16 {
    let mut sum: u32 = bytes
        .chunks(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)])))
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Sets the checksum of the TCP segment in an IP packet without options or extension headers.
pub fn set_tcp_checksum(ip: &mut [u8]) {
    let (header, addresses) = if is_v6(ip) { (40, 8..40) } else { (20, 12..20) };
    ip[header + 16..header + 18].fill(0);
    let mut pseudo = ip[addresses].to_vec();
    pseudo.extend([0, 6]);
    pseudo.extend(((ip.len() - header) as u16).to_be_bytes());
    pseudo.extend(&ip[header..]);
    let sum = checksum(&pseudo);
    ip[header + 16..header + 18].copy_from_slice(&sum.to_be_bytes());
}

pub fn is_v6(ip: &[u8]) -> bool {
    ip[0] >> 4 == 6
}

fn ethertype(ip: &[u8]) -> [u8; 2] {
    if is_v6(ip) { [0x86, 0xdd] } else { [0x08, 0x00] }
}

/// An IPv4 header before `payload`; `place` is the field of flags and fragment offset.
fn ipv4(id: u16, place: u16, protocol: u8, ends: [Ipv4Addr; 2], payload: &[u8]) -> Vec<u8> {
    let mut header = vec![0x45, 0];
    header.extend((20 + payload.len() as u16).to_be_bytes());
    header.extend(id.to_be_bytes());
    header.extend(place.to_be_bytes());
    header.extend([61, protocol, 0, 0]);
    ends.iter().for_each(|end| header.extend(end.octets()));
    let sum = checksum(&header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    [&header, payload].concat()
}

fn ipv6(next: u8, payload: &[u8]) -> Vec<u8> {
    let mut header = vec![0x60, 0, 0, 0];
    header.extend((payload.len() as u16).to_be_bytes());
    header.extend([next, 61]);
    for last in [1, 2] {
        header.extend([0xfd, 0x11]);
        header.extend([0; 13]);
        header.push(last);
    }
    [&header, payload].concat()
}

/// What carries tunnels: outer IP, with its own count of identifications.
pub struct Wrapper {
    pub choices: Choices,
    pub id: u32,
    /// Which VLAN tags all Ethernet frames have.
    pub tags: u32,
}

/// Tunnels that a connection goes through; the same for all of its packets, as on a real path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tunnel {
    Ip,
    Authenticated,
    Gre,
    GreEthernet,
    Erspan,
    Gtp,
    Vxlan,
    Geneve,
    GeneveEthernet,
    L2tp,
    EtherIp,
    MplsInGre,
    Capwap,
}

pub const TUNNELS: [Tunnel; 13] = [
    Tunnel::Ip,
    Tunnel::Authenticated,
    Tunnel::Gre,
    Tunnel::GreEthernet,
    Tunnel::Erspan,
    Tunnel::Gtp,
    Tunnel::Vxlan,
    Tunnel::Geneve,
    Tunnel::GeneveEthernet,
    Tunnel::L2tp,
    Tunnel::EtherIp,
    Tunnel::MplsInGre,
    Tunnel::Capwap,
];

impl Wrapper {
    pub fn outer(&mut self, v6: bool, protocol: u8, payload: &[u8]) -> Vec<u8> {
        self.id += 1;
        if v6 {
            return ipv6(protocol, payload);
        }
        let ends = [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2)];
        ipv4(self.id as u16, 0, protocol, ends, payload)
    }

    pub fn udp(&mut self, v6: bool, port: u16, payload: &[u8]) -> Vec<u8> {
        let mut datagram = 49_152_u16.to_be_bytes().to_vec();
        datagram.extend(port.to_be_bytes());
        datagram.extend((8 + payload.len() as u16).to_be_bytes());
        // No checksum.
        datagram.extend([0, 0]);
        datagram.extend(payload);
        self.outer(v6, 17, &datagram)
    }

    fn gre(&mut self, kind: [u8; 2], payload: &[u8]) -> Vec<u8> {
        let flags = self.choices.below(16) as u8 & 0b1011;
        let mut bytes = vec![flags << 4, 0, kind[0], kind[1]];
        for flag in [8, 2, 1] {
            if flags & flag != 0 {
                // Checksum and offset, key, sequence number: only their length matters here.
                bytes.extend([0, 0, 0, 0]);
            }
        }
        bytes.extend(payload);
        bytes
    }

    /// `ip` inside of `tunnel`.
    pub fn through(&mut self, tunnel: Tunnel, v6: bool, ip: &[u8]) -> Vec<u8> {
        let kind = ethertype(ip);
        match tunnel {
            Tunnel::Ip => self.outer(v6, if is_v6(ip) { 41 } else { 4 }, ip),
            Tunnel::Authenticated => {
                let words = 1 + self.choices.below(5) as u8 * 2;
                let mut header = vec![if is_v6(ip) { 41 } else { 4 }, words + 1, 0, 0];
                header.extend(vec![7; 8 + 4 * (usize::from(words) - 1)]);
                // 12 bytes of fixed fields, then the value: (length + 2) words in all.
                header.resize(4 * (usize::from(words) + 3), 7);
                self.outer(v6, 51, &[&header, ip].concat())
            }
            Tunnel::Gre => {
                let bytes = self.gre(kind, ip);
                self.outer(v6, 47, &bytes)
            }
            Tunnel::GreEthernet => {
                let frame = self.ethernet(ip);
                let bytes = self.gre([0x65, 0x58], &frame);
                self.outer(v6, 47, &bytes)
            }
            Tunnel::Erspan => {
                let frame = self.ethernet(ip);
                let header = [0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 1, 0, 1, 0, 0, 0, 0];
                self.outer(v6, 47, &[&header[..], &frame].concat())
            }
            Tunnel::Gtp => {
                let flags = self.choices.below(8) as u8;
                let mut optional = Vec::new();
                if flags & 7 != 0 {
                    let extended = flags & 4 != 0;
                    optional.extend([0, 1, 0, if extended { 0x85 } else { 0 }]);
                    if extended {
                        // A PDU session container of one word, then one of two.
                        optional.extend([1, 0x10, 9, 0xc0, 2, 0, 0, 0, 0, 0, 0, 0]);
                    }
                }
                let len = (optional.len() + ip.len()) as u16;
                let [high, low] = len.to_be_bytes();
                let header = [0x30 | flags, 255, high, low, 0, 0, 0, 7];
                self.udp(v6, 2152, &[&header[..], &optional, ip].concat())
            }
            Tunnel::Vxlan => {
                let frame = self.ethernet(ip);
                self.udp(v6, 4789, &[&[8, 0, 0, 0, 0, 0, 42, 0][..], &frame].concat())
            }
            Tunnel::Geneve | Tunnel::GeneveEthernet => {
                let words = self.choices.below(4) as u8 * 2;
                let ethernet = tunnel == Tunnel::GeneveEthernet;
                let kind = if ethernet { [0x65, 0x58] } else { kind };
                let reserved = self.choices.below(3) as u8;
                let mut header = vec![words, 0, kind[0], kind[1], 0, 0, 7, reserved];
                for _ in 0..words / 2 {
                    header.extend([1, 2, 0x80, 1, 9, 9, 9, 9]);
                }
                let content = if ethernet { self.ethernet(ip) } else { ip.to_vec() };
                self.udp(v6, 6081, &[&header[..], &content].concat())
            }
            Tunnel::L2tp => {
                let ppp = self.ppp(ip);
                let (with_len, with_sequence) = (self.choices.flip(), self.choices.flip());
                let mut header = vec![0, 2];
                if with_len {
                    header[0] |= 0x40;
                    header.extend([0, 0]);
                }
                header.extend([0, 1, 0, 2]);
                if with_sequence {
                    header[0] |= 0x08;
                    header.extend([0, 0, 0, 0]);
                }
                if with_len {
                    let len = ((header.len() + ppp.len()) as u16).to_be_bytes();
                    header[2..4].copy_from_slice(&len);
                }
                self.udp(v6, 1701, &[&header[..], &ppp].concat())
            }
            Tunnel::EtherIp => {
                let frame = self.ethernet(ip);
                self.outer(v6, 97, &[&[0x30, 0][..], &frame].concat())
            }
            Tunnel::Capwap => {
                // Header of two words, the payload an 802.11 frame; its fields may have their bytes swapped.
                let (quality, swapped) = (self.choices.flip(), self.choices.flip());
                let mut fields = vec![[if quality { 0x88 } else { 0x08 }, 1], [0x2c, 0]];
                fields.extend([[2, 2]; 9]);
                fields.push([0x10, 0x20]);
                if quality {
                    fields.push([0, 0]);
                }
                if swapped {
                    [0, 1, 11].into_iter().for_each(|field: usize| fields[field].reverse());
                }
                let frame = [&fields.concat()[..], &[0xaa, 0xaa, 3, 0, 0, 0], &kind, ip].concat();
                self.udp(v6, 5247, &[&[0, 0x10, 0x03, 0, 0, 0, 0, 0][..], &frame].concat())
            }
            Tunnel::MplsInGre => {
                let labels = self.mpls(ip);
                let bytes = self.gre([0x88, 0x47], &labels);
                self.outer(v6, 47, &bytes)
            }
        }
    }

    fn mpls(&mut self, payload: &[u8]) -> Vec<u8> {
        let labels = 1 + self.choices.below(3);
        let mut bytes = Vec::new();
        for label in 0..labels {
            bytes.extend([0x12, 0x34, u8::from(label + 1 == labels), 63]);
        }
        bytes.extend(payload);
        bytes
    }

    /// PPP, with or without address and control.
    pub fn ppp(&mut self, ip: &[u8]) -> Vec<u8> {
        let address: &[u8] = if self.choices.flip() { &[0xff, 0x03] } else { &[] };
        [address, &[0, if is_v6(ip) { 0x57 } else { 0x21 }], ip].concat()
    }

    /// An Ethernet frame: plain, with VLAN tags, MPLS, PPPoE or LLC and SNAP.
    pub fn ethernet(&mut self, ip: &[u8]) -> Vec<u8> {
        let mut frame = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]].concat();
        let tags: &[u8] = match self.tags {
            0 => &[0x81, 0x00, 0, 5],
            1 => &[0x88, 0xa8, 0, 5, 0x81, 0x00, 0, 6],
            _ => &[],
        };
        let kind = ethertype(ip);
        frame.extend(tags);
        match self.choices.below(5) {
            0 => {
                frame.extend([0x88, 0x47]);
                let labels = self.mpls(ip);
                frame.extend(labels);
            }
            1 => {
                // PPPoE has no address and control (RFC 2516).
                let protocol = [0, if is_v6(ip) { 0x57 } else { 0x21 }];
                let [high, low] = (ip.len() as u16 + 2).to_be_bytes();
                frame.extend([0x88, 0x64, 0x11, 0, 0, 1, high, low]);
                frame.extend(protocol);
                frame.extend(ip);
            }
            2 if tags.is_empty() && ip.len() < 1400 => {
                frame.extend((ip.len() as u16 + 8).to_be_bytes());
                frame.extend([0xaa, 0xaa, 3, 0, 0, 0, kind[0], kind[1]]);
                frame.extend(ip);
            }
            _ => {
                frame.extend(kind);
                frame.extend(ip);
            }
        }
        // Padding, as short frames have it.
        frame.resize(frame.len().max(60), 0);
        frame
    }

    /// The same IPv6 packet with extension headers; an IPv4 packet is left as it is.
    pub fn extended(&mut self, ip: &[u8]) -> Vec<u8> {
        if !is_v6(ip) {
            return ip.to_vec();
        }
        let (mut next, mut payload) = (ip[6], ip[40..].to_vec());
        for kind in [44, 43, 60, 0] {
            if self.choices.flip() {
                let header: &[u8] = match kind {
                    // Atomic: no offset, and no more fragments.
                    44 => &[next, 0, 0, 0, 1, 2, 3, 4],
                    // The route has been travelled: no segment is left.
                    43 => &[
                        next, 2, 2, 0, 0, 0, 0, 0, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                        9,
                    ],
                    _ => &[next, 0, 1, 4, 0, 0, 0, 0],
                };
                payload = [header, &payload].concat();
                next = kind;
            }
        }
        let mut packet = ip[..40].to_vec();
        packet[6] = next;
        packet[4..6].copy_from_slice(&(payload.len() as u16).to_be_bytes());
        [packet, payload].concat()
    }

    /// `ip` in fragments, in any order; copies of some.
    pub fn fragments(&mut self, ip: &[u8]) -> Vec<Vec<u8>> {
        self.id += 1;
        let header = if is_v6(ip) { 40 } else { 20 };
        let payload = &ip[header..];
        let unit = 8 * (3 + self.choices.below(120) as usize);
        if payload.len() <= unit {
            return vec![ip.to_vec()];
        }
        let mut all = Vec::new();
        for (i, piece) in payload.chunks(unit).enumerate() {
            let at = (i * unit) as u16;
            let more = usize::from(at) + piece.len() < payload.len();
            all.push(if is_v6(ip) {
                let place = at | u16::from(more);
                let mut bytes = vec![ip[6], 0, (place >> 8) as u8, place as u8];
                bytes.extend(self.id.to_be_bytes());
                bytes.extend(piece);
                let mut fragment = ip[..40].to_vec();
                fragment[6] = 44;
                fragment[4..6].copy_from_slice(&(bytes.len() as u16).to_be_bytes());
                [fragment, bytes].concat()
            } else {
                let end = |at: usize| Ipv4Addr::new(ip[at], ip[at + 1], ip[at + 2], ip[at + 3]);
                let place = (at / 8) | (u16::from(more) << 13);
                ipv4(self.id as u16, place, ip[9], [end(12), end(16)], piece)
            });
        }
        for i in (1..all.len()).rev() {
            all.swap(i, self.choices.below(i as u32 + 1) as usize);
        }
        if self.choices.below(4) == 0 {
            let copy = all[0].clone();
            all.insert(1, copy);
        }
        all
    }
}
