//! IPv4 packets in bytes: arriving ones are written, sent ones are parsed.
//!
//! A script has options in any order and with any padding, so packets are built here and not by a TCP.

use lasthop_proto::wire::Flags;
use lasthop_proto::wire::checksum::checksum;

use crate::script::TcpOption;

/// Address of the host under test.
pub const LOCAL: [u8; 4] = [192, 168, 0, 1];
/// Address of its peer.
pub const REMOTE: [u8; 4] = [192, 0, 2, 1];

/// Addresses of the host and of its peer.
pub type Ends = ([u8; 4], [u8; 4]);

/// A TCP segment in its wire form.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Traffic class.
    pub tos: u8,
    /// Remaining hops (TTL).
    pub ttl: u8,
    /// Source and destination port.
    pub ports: (u16, u16),
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Flags.
    pub flags: Flags,
    /// Window field.
    pub window: u16,
    /// Urgent pointer.
    pub urgent: u16,
    /// Options in their order.
    pub options: Vec<TcpOption>,
    /// Bytes of payload.
    pub len: u32,
}

fn pair(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn quad(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

impl Segment {
    /// Reads an IPv4 packet. `None` if it is not TCP or too short.
    pub fn read(bytes: &[u8]) -> Option<Segment> {
        let first = *bytes.first()?;
        let header = usize::from(first & 0x0f) * 4;
        let total = usize::from(pair(bytes, 2)?).min(bytes.len());
        if first >> 4 != 4 || header < 20 || bytes.get(9) != Some(&6) {
            return None;
        }
        let tcp = bytes.get(header..total)?;
        let word = pair(tcp, 12)?;
        let data = usize::from(word >> 12) * 4;
        let options = tcp.get(20..data)?;
        Some(Segment {
            tos: bytes[1],
            ttl: bytes[8],
            ports: (pair(tcp, 0)?, pair(tcp, 2)?),
            seq: quad(tcp, 4)?,
            ack: quad(tcp, 8)?,
            flags: Flags(word & 0x1ff),
            window: pair(tcp, 14)?,
            urgent: pair(tcp, 18)?,
            options: read_options(options),
            len: (tcp.len() - data) as u32,
        })
    }

    /// The packet from the peer to the host under test.
    pub fn write(&self, ends: Ends) -> Vec<u8> {
        let mut options = Vec::new();
        for option in &self.options {
            write_option(option, &mut options);
        }
        options.truncate(40);
        options.resize(options.len().next_multiple_of(4), 0);
        let len = (self.len as usize).min(65_535 - 60 - 20);
        let tcp_len = 20 + options.len() + len;
        let mut tcp = Vec::with_capacity(tcp_len);
        tcp.extend(self.ports.0.to_be_bytes());
        tcp.extend(self.ports.1.to_be_bytes());
        tcp.extend(self.seq.to_be_bytes());
        tcp.extend(self.ack.to_be_bytes());
        let offset = ((20 + options.len()) / 4) as u16;
        tcp.extend((offset << 12 | self.flags.0 & 0x1ff).to_be_bytes());
        tcp.extend(self.window.to_be_bytes());
        tcp.extend([0, 0]);
        tcp.extend(self.urgent.to_be_bytes());
        tcp.extend(options);
        tcp.resize(tcp_len, 0);
        let mut pseudo = Vec::with_capacity(12 + tcp_len);
        pseudo.extend(ends.1);
        pseudo.extend(ends.0);
        pseudo.extend([0, 6]);
        pseudo.extend((tcp_len as u16).to_be_bytes());
        pseudo.extend(&tcp);
        tcp[16..18].copy_from_slice(&checksum(&pseudo).to_be_bytes());
        ip(ends, self.tos, self.ttl, 6, &tcp)
    }
}

/// An IPv4 packet from the peer with this payload.
fn ip(ends: Ends, tos: u8, ttl: u8, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let total = (20 + payload.len()) as u16;
    let mut packet = vec![0x45, tos];
    packet.extend(total.to_be_bytes());
    packet.extend([0, 0, 0, 0, ttl, protocol, 0, 0]);
    packet.extend(ends.1);
    packet.extend(ends.0);
    let sum = checksum(&packet);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend(payload);
    packet
}

/// An ICMP error message about a segment of the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IcmpMessage {
    /// Type and code.
    pub kind: (u8, u8),
    /// MTU of the next hop.
    pub mtu: u16,
    /// Ports of the host and of the peer.
    pub ports: (u16, u16),
    /// Sequence number of the segment.
    pub seq: u32,
}

/// The packet with an ICMP error message.
pub fn icmp_error(ends: Ends, message: &IcmpMessage) -> Vec<u8> {
    let IcmpMessage { kind, mtu, ports, seq } = *message;
    let mut quoted = vec![0x45, 0];
    quoted.extend(40u16.to_be_bytes());
    quoted.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
    quoted.extend(ends.0);
    quoted.extend(ends.1);
    let sum = checksum(&quoted);
    quoted[10..12].copy_from_slice(&sum.to_be_bytes());
    quoted.extend(ports.0.to_be_bytes());
    quoted.extend(ports.1.to_be_bytes());
    quoted.extend(seq.to_be_bytes());
    let mut icmp = vec![kind.0, kind.1, 0, 0, 0, 0];
    icmp.extend(mtu.to_be_bytes());
    icmp.extend(quoted);
    let sum = checksum(&icmp);
    icmp[2..4].copy_from_slice(&sum.to_be_bytes());
    ip(ends, 0, 64, 1, &icmp)
}

/// Reads an ICMP error message.
pub fn read_icmp_error(bytes: &[u8]) -> Option<IcmpMessage> {
    let header = usize::from(*bytes.first()? & 0x0f) * 4;
    let icmp = bytes.get(header..).filter(|_| header >= 20 && bytes.get(9) == Some(&1))?;
    let quoted = icmp.get(8..).filter(|_| matches!(icmp[0], 3 | 4 | 5 | 11 | 12))?;
    let tcp = quoted.get(usize::from(*quoted.first()? & 0x0f) * 4..)?;
    let ports = (pair(tcp, 0)?, pair(tcp, 2)?);
    Some(IcmpMessage { kind: (icmp[0], icmp[1]), mtu: pair(icmp, 6)?, ports, seq: quad(tcp, 4)? })
}

/// Sets the differentiated services field of an IPv4 packet to `tos`; its ECN bits are unchanged.
pub fn set_services(bytes: &mut [u8], tos: u8) {
    let header = usize::from(bytes.first().map_or(0, |first| first & 0x0f)) * 4;
    if header < 20 || bytes.len() < header {
        return;
    }
    bytes[1] = tos & 0xfc | bytes[1] & 3;
    bytes[10..12].fill(0);
    let sum = checksum(&bytes[..header]);
    bytes[10..12].copy_from_slice(&sum.to_be_bytes());
}

fn write_option(option: &TcpOption, out: &mut Vec<u8>) {
    let mut put = |kind: u8, value: &[u8]| {
        out.extend([kind, (value.len() + 2) as u8]);
        out.extend(value);
    };
    match option {
        TcpOption::Eol => out.push(0),
        TcpOption::Nop => out.push(1),
        TcpOption::Mss(mss) => put(2, &mss.to_be_bytes()),
        TcpOption::WindowScale(shift) => put(3, &[*shift]),
        TcpOption::SackPermitted => put(4, &[]),
        TcpOption::Sack(blocks) => {
            let bytes = blocks.iter().flat_map(|(a, b)| [a.to_be_bytes(), b.to_be_bytes()]);
            put(5, &bytes.flatten().collect::<Vec<u8>>());
        }
        TcpOption::Timestamps { value, echo } => {
            put(8, &[value.to_be_bytes(), echo.to_be_bytes()].concat());
        }
        TcpOption::Md5(bytes) => put(19, bytes),
        TcpOption::EcnCounters(kind, values) => {
            let bytes = values.iter().flat_map(|value| value.to_be_bytes().into_iter().skip(1));
            put(*kind, &bytes.collect::<Vec<u8>>());
        }
        TcpOption::FastOpen(cookie) => put(34, cookie),
        TcpOption::FastOpenExp(cookie) => put(254, &[&[0xf9, 0x89], &cookie[..]].concat()),
    }
}

fn read_options(mut bytes: &[u8]) -> Vec<TcpOption> {
    let mut all = Vec::new();
    while let Some((kind, rest)) = bytes.split_first() {
        if *kind <= 1 {
            all.push(if *kind == 0 { TcpOption::Eol } else { TcpOption::Nop });
            bytes = rest;
            continue;
        }
        let Some(len) = rest.first().map(|len| usize::from(*len)).filter(|len| *len >= 2) else {
            break;
        };
        let Some(value) = bytes.get(2..len) else { break };
        bytes = &bytes[len..];
        all.push(match (kind, value) {
            (2, &[a, b]) => TcpOption::Mss(u16::from_be_bytes([a, b])),
            (3, &[shift]) => TcpOption::WindowScale(shift),
            (4, []) => TcpOption::SackPermitted,
            (5, _) => TcpOption::Sack(
                value.chunks_exact(8).filter_map(|b| Some((quad(b, 0)?, quad(b, 4)?))).collect(),
            ),
            (8, &[a, b, c, d, e, f, g, h]) => TcpOption::Timestamps {
                value: u32::from_be_bytes([a, b, c, d]),
                echo: u32::from_be_bytes([e, f, g, h]),
            },
            (34, _) => TcpOption::FastOpen(value.to_vec()),
            (172 | 174, _) if value.len() % 3 == 0 => {
                let counter = |b: &[u8]| u32::from_be_bytes([0, b[0], b[1], b[2]]);
                TcpOption::EcnCounters(*kind, value.chunks_exact(3).map(counter).collect())
            }
            (254, &[0xf9, 0x89, ref cookie @ ..]) => TcpOption::FastOpenExp(cookie.to_vec()),
            _ => TcpOption::Md5(value.to_vec()),
        });
    }
    all
}

/// A segment in the language of scripts.
pub fn show(segment: &Segment) -> String {
    let Segment { tos, flags, seq, ack, window, len, urgent, options, .. } = segment;
    let ecn = ["", "[ect1] ", "[ect0] ", "[ce] "][usize::from(tos & 3)];
    let mut letters: String = [
        (Flags::FIN, 'F'),
        (Flags::SYN, 'S'),
        (Flags::RST, 'R'),
        (Flags::PSH, 'P'),
        (Flags::URG, 'U'),
        (Flags::ECE, 'E'),
        (Flags::CWR, 'W'),
        (Flags::AE, 'A'),
        (Flags::ACK, '.'),
    ]
    .into_iter()
    .filter_map(|(flag, letter)| flags.has(flag).then_some(letter))
    .collect();
    if letters.is_empty() {
        letters.push('-');
    }
    let mut text = format!("{ecn}{letters} {seq}:{}({len})", seq.wrapping_add(*len));
    if flags.has(Flags::ACK) {
        text += &format!(" ack {ack}");
    }
    text += &format!(" win {window}");
    if flags.has(Flags::URG) {
        text += &format!(" urg {urgent}");
    }
    let options: Vec<String> = options.iter().map(show_option).collect();
    if !options.is_empty() {
        text += &format!(" <{}>", options.join(","));
    }
    text
}

fn show_option(option: &TcpOption) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    match option {
        TcpOption::Eol => "eol".to_owned(),
        TcpOption::Nop => "nop".to_owned(),
        TcpOption::Mss(mss) => format!("mss {mss}"),
        TcpOption::WindowScale(shift) => format!("wscale {shift}"),
        TcpOption::SackPermitted => "sackOK".to_owned(),
        TcpOption::Sack(blocks) => {
            let blocks: Vec<String> = blocks.iter().map(|(a, b)| format!("{a}:{b}")).collect();
            format!("sack {}", blocks.join(" "))
        }
        TcpOption::Timestamps { value, echo } => format!("TS val {value} ecr {echo}"),
        TcpOption::FastOpen(cookie) => format!("FO {}", hex(cookie)).trim_end().to_owned(),
        TcpOption::FastOpenExp(cookie) => format!("FOEXP {}", hex(cookie)).trim_end().to_owned(),
        TcpOption::EcnCounters(kind, values) => {
            let names = if *kind == 174 { ["e1b", "ceb", "e0b"] } else { ["e0b", "ceb", "e1b"] };
            let pairs = names.iter().zip(values).map(|(name, value)| format!(" {name} {value}"));
            format!("ECN{}", pairs.collect::<String>())
        }
        TcpOption::Md5(bytes) => format!("md5 {}", hex(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_read_as_it_was_written() {
        let segment = Segment {
            tos: 2,
            ttl: 64,
            ports: (1000, 8080),
            seq: 0xffff_fff0,
            ack: 7,
            flags: Flags::SYN | Flags::ACK | Flags::AE,
            window: 500,
            urgent: 0,
            options: vec![
                TcpOption::Mss(1000),
                TcpOption::SackPermitted,
                TcpOption::Timestamps { value: 1, echo: 2 },
                TcpOption::Nop,
                TcpOption::WindowScale(7),
                TcpOption::FastOpen(vec![1, 2, 3, 4]),
            ],
            len: 100,
        };
        let mut bytes = segment.write((LOCAL, REMOTE));
        let read = Segment::read(&bytes).unwrap();
        assert_eq!(Segment { options: read.options[..6].to_vec(), ..read }, segment);
        assert_eq!(checksum(&bytes[..20]), 0, "the header's checksum holds");
        set_services(&mut bytes, 0xff);
        assert_eq!((bytes[1], checksum(&bytes[..20])), (0xfe, 0));
        for len in 0..bytes.len() {
            let _ = Segment::read(&bytes[..len]);
        }
    }

    #[test]
    fn an_error_message_is_read_as_it_was_written() {
        let message = IcmpMessage { kind: (3, 4), mtu: 1000, ports: (8080, 4711), seq: 99 };
        let bytes = icmp_error((LOCAL, REMOTE), &message);
        assert_eq!(read_icmp_error(&bytes), Some(message));
        for len in 0..bytes.len() {
            let _ = read_icmp_error(&bytes[..len]);
        }
    }

    #[test]
    fn a_segment_is_shown_in_the_language_of_scripts() {
        let segment = Segment {
            tos: 3,
            ttl: 64,
            ports: (1, 2),
            seq: 1,
            ack: 1001,
            flags: Flags::PSH | Flags::ACK,
            window: 9,
            urgent: 0,
            options: vec![TcpOption::Nop, TcpOption::Sack(vec![(2001, 3001)])],
            len: 10,
        };
        assert_eq!(show(&segment), "[ce] P. 1:11(10) ack 1001 win 9 <nop,sack 2001:3001>");
    }
}
