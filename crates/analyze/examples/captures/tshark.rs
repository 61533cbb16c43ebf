//! What `tshark` counts, by direction.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use lasthop_analyze::{Endpoint, Opening};

use crate::fields::{FIELDS, counts};
use crate::ours::{Key, Ours};
use crate::{Tally, UNEXPLAINED, run};

/// A difference of clocks' rounding, in seconds.
const ROUNDING: f64 = 2e-6;

/// One direction.
#[derive(Default)]
pub struct Theirs {
    packets: u64,
    counts: [u64; 13],
    /// The round trip of the handshake, as both directions have it.
    rtt: Option<f64>,
    /// SYNs with an ACK.
    syn_acks: u64,
    /// Packets whose TCP header was cut off, or makes no sense.
    malformed: bool,
    /// Packets that are longer by their IP header than the frame.
    longer: bool,
}

/// The directions of the TCP connections in a file; segments that an ICMP error quotes are no packets of them.
pub fn directions(file: &str) -> Option<BTreeMap<Key, Theirs>> {
    let names = FIELDS.map(|field| format!("tcp.analysis.{field}"));
    let head = [
        "tcp.stream",
        "ip.src",
        "ipv6.src",
        "tcp.srcport",
        "tcp.analysis.initial_rtt",
        "tcp.flags",
        "_ws.malformed",
        "ip.bogus_ip_length",
    ];
    let filter = "tcp and not icmp and not icmpv6";
    // In a tunnel the innermost headers count.
    let mut arguments = vec!["-r", file, "-n", "-Y", filter, "-T", "fields", "-E", "occurrence=l"];
    for field in head.into_iter().chain(names.iter().map(String::as_str)) {
        arguments.extend(["-e", field]);
    }
    let output = run("tshark", &arguments)?;
    let mut all: BTreeMap<Key, Theirs> = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let cells: Vec<&str> = line.split('\t').collect();
        let (Ok(stream), Ok(port)) = (cells[0].parse(), cells[3].parse()) else { continue };
        let addr = [cells[1], cells[2]].iter().find_map(|text| text.parse::<IpAddr>().ok());
        // An IPv4 address that is written as an IPv6 one is the same to us.
        let Some(addr) = addr.map(|addr| addr.to_canonical()) else { continue };
        let theirs = all.entry((stream, Endpoint { addr, port })).or_default();
        theirs.packets += 1;
        theirs.rtt = theirs.rtt.or(cells[4].parse().ok());
        let flags = u32::from_str_radix(cells[5].trim_start_matches("0x"), 16).unwrap_or(0);
        theirs.syn_acks += u64::from(flags & 0x12 == 0x12);
        theirs.malformed |= !cells[6].is_empty();
        theirs.longer |= !cells[7].is_empty();
        for (count, cell) in theirs.counts.iter_mut().zip(&cells[head.len()..]) {
            *count += u64::from(!cell.is_empty());
        }
    }
    Some(all)
}

/// Compares both.
pub fn compare(
    name: &str,
    ours: &BTreeMap<Key, Ours<'_>>,
    theirs: &BTreeMap<Key, Theirs>,
    tally: &mut Tally,
) {
    let keys: BTreeSet<Key> = ours.keys().chain(theirs.keys()).copied().collect();
    let mut equal = true;
    for key in keys {
        let found = match (ours.get(&key), theirs.get(&key)) {
            (Some(ours), Some(theirs)) => differences(ours, theirs),
            (None, _) => vec![("packets", "lasthop does not read them", "only tshark".to_owned())],
            (_, None) => vec![("packets", "tshark does not read them", "only lasthop".to_owned())],
        };
        equal &= found.is_empty();
        tally.direction("tshark", &format!("{name}, {} from {}", key.0, key.1.port), &found);
    }
    tally.file("tshark", equal);
}

fn differences(ours: &Ours<'_>, theirs: &Theirs) -> Vec<(&'static str, &'static str, String)> {
    let mut found = Vec::new();
    let packets = ours.sent.packets + ours.sent.copies;
    if packets != theirs.packets {
        let why = match () {
            () if theirs.malformed => "headers were cut off",
            () if ours.unread => "lasthop does not read all packets of the file",
            () => UNEXPLAINED,
        };
        found.push(("packets", why, format!("{packets}, tshark {}", theirs.packets)));
    }
    let mine = counts(&ours.sent.wireshark);
    for (i, field) in FIELDS.into_iter().enumerate().filter(|(i, _)| mine[*i] != theirs.counts[*i])
    {
        let why = match () {
            () if packets != theirs.packets => "not the same packets were read",
            () if theirs.malformed => "tshark stops at a header that was cut off",
            () if theirs.longer => {
                "the frame is shorter than its IP packet: lasthop takes the length of the IP header"
            }
            () if field == "window_update" && ours.connection.opening != Opening::Handshake => {
                "tshark takes zero for number, ACK and window of a side before its first packet"
            }
            () => UNEXPLAINED,
        };
        found.push((field, why, format!("{}, tshark {}", mine[i], theirs.counts[i])));
    }
    let own = ours.connection.handshake_rtt.map(|rtt| rtt.as_secs_f64());
    let same = match (own, theirs.rtt) {
        (Some(own), Some(theirs)) => (own - theirs).abs() <= ROUNDING,
        // It has the field only where a packet comes behind the handshake.
        (own, None) => own.is_none() || packets <= 1,
        (None, Some(_)) => false,
    };
    if !same {
        let opening = ours.connection.opening;
        let why = match (own, theirs.rtt) {
            (None, _) if opening != Opening::Handshake => {
                "tshark ends a handshake by any ACK, a reset's too"
            }
            (None, _) => "tshark ends a handshake by an ACK of something else than the SYN-ACK",
            (Some(_), None) => "tshark has none for packets before the end of the handshake",
            (Some(own), Some(theirs)) if own < theirs => {
                "tshark counts the timer of a SYN-ACK that was sent again"
            }
            _ => {
                "lasthop knows by the timestamp which SYN was answered, or that one of them is a copy"
            }
        };
        found.push(("handshake round trip", why, format!("{own:?}, tshark {:?}", theirs.rtt)));
    }
    found
}
