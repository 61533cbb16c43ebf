//! Packets of a script.

use lasthop_proto::wire::Flags;

use super::scan::Scan;
use super::{Fault, Icmp, Packet, Tcp, TcpOption, Tos, Transport};

/// `TFO_COOKIE`: the Fast Open cookie of Linux for 192.0.2.1 at 192.168.0.1 with the key of `defaults.sh`.
pub const TFO_COOKIE: [u8; 8] = [0x30, 0x21, 0xb9, 0xd8, 0x89, 0x01, 0x7e, 0xeb];
/// Kinds of the options with counters of accurate ECN (RFC 9768 section 3.2.3).
const E0B_FIRST: u8 = 172;
const E1B_FIRST: u8 = 174;
/// Options of MPTCP in scripts.
const MPTCP: [&str; 13] = [
    "mpcapable",
    "mp_capable",
    "mpjoin",
    "mp_join",
    "mp_join_syn",
    "mp_join_syn_ack",
    "dss",
    "add_address",
    "remove_address",
    "mp_prio",
    "mp_fail",
    "mp_fastclose",
    "mp_reset",
];
/// Maximum number of SACK blocks and options of one packet.
const OPTIONS_MAX: usize = 40;

pub(super) fn packet(scan: &mut Scan<'_>) -> Result<Packet, Fault> {
    let inbound = scan.eat("<")?;
    if !inbound {
        scan.expect(">")?;
    }
    let line = scan.line();
    for (name, feature) in [
        ("ipv4", "encapsulated packets"),
        ("ipv6", "encapsulated packets"),
        ("gre", "GRE"),
        ("mpls", "MPLS"),
        ("psp", "PSP"),
    ] {
        if scan.eat_word(name)? {
            return Err(Fault::unsupported(line, feature));
        }
    }
    let mut packet = Packet {
        inbound,
        tos: None,
        ttl: None,
        ports: None,
        transport: Transport::Icmp(Icmp { kind: (0, 0), mtu: None, seq: 0 }),
    };
    for (open, close) in [("[", "]"), ("(", ")")] {
        if scan.eat(open)? {
            ip_info(scan, &mut packet)?;
            scan.expect(close)?;
        }
    }
    if scan.eat_word("udp")? {
        return Err(Fault::unsupported(line, "UDP packets"));
    }
    if scan.eat_word("icmp")? {
        packet.transport = Transport::Icmp(icmp(scan)?);
        return Ok(packet);
    }
    packet.ports = ports(scan)?;
    packet.transport = Transport::Tcp(tcp(scan)?);
    Ok(packet)
}

/// `[ect0]`, `[tos 0x1e]`, `(ttl 63)` and the like.
fn ip_info(scan: &mut Scan<'_>, packet: &mut Packet) -> Result<(), Fault> {
    loop {
        scan.blanks()?;
        let (line, before) = (scan.line(), *scan);
        match scan.word()? {
            "noecn" => packet.tos = Some(Tos::Ecn(0)),
            "ect0" => packet.tos = Some(Tos::Ecn(0b10)),
            "ect1" => packet.tos = Some(Tos::Ecn(0b01)),
            "ce" => packet.tos = Some(Tos::Ecn(0b11)),
            "ect01" => packet.tos = Some(Tos::Ect01),
            "tos" => packet.tos = Some(Tos::Exact(scan.field("a byte, as `tos 0x1e`")?)),
            "ttl" => packet.ttl = Some(scan.field("a number of hops up to 255")?),
            "flowlabel" => return Err(Fault::unsupported(line, "IPv6 flow labels")),
            _ => return Err(before.wrong("`noecn`, `ect0`, `ect1`, `ect01`, `ce`, `tos` or `ttl`")),
        }
        if !scan.eat(",")? {
            return Ok(());
        }
    }
}

/// `1000 > 2000`, unless this is the start of something else.
fn ports(scan: &mut Scan<'_>) -> Result<Option<(u16, u16)>, Fault> {
    scan.blanks()?;
    let mut ahead = *scan;
    let digits = ahead.run(|c| c.is_ascii_digit());
    if digits.is_empty() || !ahead.eat(">")? {
        return Ok(None);
    }
    let from = scan.field("a port")?;
    scan.expect(">")?;
    Ok(Some((from, scan.field("a port")?)))
}

fn tcp(scan: &mut Scan<'_>) -> Result<Tcp, Fault> {
    let (flags, ace) = flags(scan)?;
    let (seq, len) = sequence(scan, flags)?;
    let mut tcp =
        Tcp { flags, ace, seq, len, ack: None, window: None, urgent: 0, options: Some(vec![]) };
    if scan.eat_word("ack")? {
        tcp.ack = Some(scan.field("a sequence number")?);
    }
    if scan.eat_word("win")? {
        tcp.window = Some(scan.field("a window field up to 65535")?);
    }
    if scan.eat_word("urg")? {
        tcp.urgent = scan.field("an urgent pointer up to 65535")?;
    }
    if scan.eat("<")? {
        tcp.options = options(scan)?;
    }
    Ok(tcp)
}

fn flags(scan: &mut Scan<'_>) -> Result<(Flags, Option<u8>), Fault> {
    scan.blanks()?;
    let before = *scan;
    let mut flags = Flags::NONE;
    let mut ace = None;
    let text = scan.run(|c| c.is_ascii_alphanumeric() || c == '.' || c == '-');
    for c in text.chars() {
        flags = flags
            | match c {
                'F' => Flags::FIN,
                'S' => Flags::SYN,
                'R' => Flags::RST,
                'P' => Flags::PSH,
                '.' => Flags::ACK,
                'U' => Flags::URG,
                'E' => Flags::ECE,
                'W' => Flags::CWR,
                'A' => Flags::AE,
                '-' if text == "-" => Flags::NONE,
                '0'..='7' if ace.is_none() => {
                    ace = c.to_digit(8).map(|n| n as u8);
                    Flags::NONE
                }
                _ => return Err(before.wrong("flags, as `S`, `P.` or `-`")),
            };
    }
    match text.is_empty() {
        true => Err(before.wrong("flags, as `S`, `P.` or `-`")),
        false => Ok((flags, ace)),
    }
}

/// `1:1001(1000)`; the second number must be the first plus the third.
fn sequence(scan: &mut Scan<'_>, flags: Flags) -> Result<(u32, u32), Fault> {
    scan.blanks()?;
    let before = *scan;
    let from: u32 = scan.field("a sequence number, as in `1:1001(1000)`")?;
    scan.expect(":")?;
    let to: u32 = scan.field("a sequence number")?;
    scan.expect("(")?;
    let len: u32 = scan.field("a number of bytes")?;
    scan.expect(")")?;
    // A SYN and a FIN may be counted or not.
    let control = u32::from(flags.has(Flags::SYN)) + u32::from(flags.has(Flags::FIN));
    let fits = to.wrapping_sub(from);
    if fits != len && fits != len.wrapping_add(control) || len > 1 << 20 {
        let expected = format!("`{from}:{}({len})`", from.wrapping_add(len));
        return Err(before.wrong(&expected));
    }
    Ok((from, len))
}

/// The options after `<`; `None` for `...`.
fn options(scan: &mut Scan<'_>) -> Result<Option<Vec<TcpOption>>, Fault> {
    if scan.eat("...")? {
        scan.expect(">")?;
        return Ok(None);
    }
    let mut options = Vec::new();
    loop {
        scan.blanks()?;
        if options.len() >= OPTIONS_MAX {
            return Err(scan.wrong("at most 40 options"));
        }
        options.push(option(scan)?);
        if scan.eat(">")? {
            return Ok(Some(options));
        }
        scan.expect(",")?;
    }
}

fn option(scan: &mut Scan<'_>) -> Result<TcpOption, Fault> {
    let (line, before) = (scan.line(), *scan);
    Ok(match scan.word()? {
        "nop" => TcpOption::Nop,
        "eol" => TcpOption::Eol,
        "mss" => TcpOption::Mss(scan.field("a segment size up to 65535")?),
        "wscale" => TcpOption::WindowScale(scan.field("a shift up to 255")?),
        "sackOK" => TcpOption::SackPermitted,
        "sack" => TcpOption::Sack(blocks(scan)?),
        "TS" | "ts" => {
            scan.expect("val")?;
            let value = scan.field("a timestamp")?;
            scan.expect("ecr")?;
            TcpOption::Timestamps { value, echo: scan.field("a timestamp")? }
        }
        "FO" => TcpOption::FastOpen(bytes(scan)?),
        "FOEXP" => TcpOption::FastOpenExp(bytes(scan)?),
        "md5" => TcpOption::Md5(bytes(scan)?),
        "ECN" => counters(scan)?,
        word if MPTCP.contains(&word) => return Err(Fault::unsupported(line, "MPTCP")),
        _ => return Err(before.wrong("a TCP option, as `mss 1460`, `sackOK` or `nop`")),
    })
}

/// Counters of accurate ECN, as `e0b 1 ceb 0 e1b 1` or in the reverse order.
fn counters(scan: &mut Scan<'_>) -> Result<TcpOption, Fault> {
    let mut kind = None;
    let mut values = Vec::new();
    loop {
        let before = *scan;
        let next = ["e0b", "ceb", "e1b"].into_iter().find_map(|name| {
            let mut ahead = *scan;
            ahead.eat_word(name).unwrap_or(false).then_some((name, ahead))
        });
        let Some((name, ahead)) = next else { break };
        *scan = ahead;
        let first = *kind.get_or_insert(if name == "e1b" { E1B_FIRST } else { E0B_FIRST });
        let order = if first == E1B_FIRST { ["e1b", "ceb", "e0b"] } else { ["e0b", "ceb", "e1b"] };
        if order.get(values.len()) != Some(&name) {
            return Err(before.wrong("counters in the order `e0b`, `ceb`, `e1b` or the reverse"));
        }
        values.push(scan.field::<u32>("a counter of 24 bits")? & 0xff_ffff);
    }
    Ok(TcpOption::EcnCounters(kind.unwrap_or(E0B_FIRST), values))
}

fn blocks(scan: &mut Scan<'_>) -> Result<Vec<(u32, u32)>, Fault> {
    let mut blocks = Vec::new();
    loop {
        scan.blanks()?;
        if !scan.rest().starts_with(|c: char| c.is_ascii_digit()) {
            break;
        }
        let from = scan.field("a sequence number")?;
        scan.expect(":")?;
        if blocks.len() >= 4 {
            return Err(scan.wrong("at most four SACK blocks"));
        }
        blocks.push((from, scan.field("a sequence number")?));
    }
    match blocks.is_empty() {
        true => Err(scan.wrong("SACK blocks, as `sack 1001:2001`")),
        false => Ok(blocks),
    }
}

/// Hexadecimal digits, perhaps none, or `TFO_COOKIE`.
fn bytes(scan: &mut Scan<'_>) -> Result<Vec<u8>, Fault> {
    if scan.eat_word("TFO_COOKIE")? {
        return Ok(TFO_COOKIE.to_vec());
    }
    scan.blanks()?;
    let before = *scan;
    let text = scan.run(|c| c.is_ascii_hexdigit());
    if text.len() > 64 || !text.len().is_multiple_of(2) {
        return Err(before.wrong("at most 32 bytes in hexadecimal digits"));
    }
    let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("two digits");
    Ok((0..text.len()).step_by(2).map(digit).collect())
}

/// Error messages of ICMPv4 by name: type, and names of its codes.
type IcmpType = (&'static str, u8, &'static [(&'static str, u8)]);
const ICMP_TYPES: [IcmpType; 5] = [
    (
        "unreachable",
        3,
        &[
            ("net_unreachable", 0),
            ("host_unreachable", 1),
            // The public runner replaces this word.
            ("CODE", 1),
            ("protocol_unreachable", 2),
            ("port_unreachable", 3),
            ("frag_needed", 4),
            ("source_route_failed", 5),
            ("net_unknown", 6),
            ("host_unknown", 7),
            ("source_host_isolated", 8),
            ("net_prohibited", 9),
            ("host_prohibited", 10),
            ("net_unreachable_for_tos", 11),
            ("host_unreachable_for_tos", 12),
            ("packet_filtered", 13),
            ("admin_prohibited", 13),
            ("precedence_violation", 14),
            ("precedence_cutoff", 15),
        ],
    ),
    ("source_quench", 4, &[]),
    ("redirect", 5, &[]),
    ("time_exceeded", 11, &[("ttl_exceeded_in_transit", 0), ("frag_reass_exceeded", 1)]),
    ("parameter_problem", 12, &[]),
];

/// `unreachable frag_needed mtu 1000 [1:1001(1000)]` after `icmp`.
fn icmp(scan: &mut Scan<'_>) -> Result<Icmp, Fault> {
    scan.blanks()?;
    let (line, before) = (scan.line(), *scan);
    let named = scan.word()?;
    let Some((_, kind, codes)) = ICMP_TYPES.iter().find(|(name, ..)| *name == named) else {
        return Err(match named {
            "packet_too_big" => Fault::unsupported(line, "ICMPv6"),
            "echo_request"
            | "echo_reply"
            | "timestamp_request"
            | "timestamp_reply"
            | "info_request"
            | "info_reply"
            | "address_mask_request"
            | "address_mask_reply" => Fault::unsupported(line, "ICMP that is no error"),
            _ => before.wrong("a type of ICMP, as `unreachable`"),
        });
    };
    scan.blanks()?;
    let before = *scan;
    let starts_name = scan.peek().is_some_and(|c| c.is_ascii_alphabetic());
    let has_code = starts_name && !scan.clone().eat_word("mtu")?;
    let code = match has_code.then(|| scan.word()).transpose()? {
        None => 0,
        Some("no_route" | "not_neighbour" | "address_unreachable") => {
            return Err(Fault::unsupported(line, "ICMPv6"));
        }
        Some(name) => match codes.iter().find(|(known, _)| *known == name) {
            Some((_, code)) => *code,
            None => return Err(before.wrong("a code, as `frag_needed` or `host_unreachable`")),
        },
    };
    let mtu = if scan.eat_word("mtu")? { Some(scan.field("an MTU up to 65535")?) } else { None };
    let mut seq = 0;
    if scan.eat("[")? {
        if scan.eat_word("udp")? || scan.eat_word("raw")? {
            return Err(Fault::unsupported(line, "ICMP about UDP"));
        }
        seq = sequence(scan, Flags::NONE)?.0;
        scan.expect("]")?;
    }
    Ok(Icmp { kind: (*kind, code), mtu, seq })
}
