//! What `tshark` counts, by direction.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use lasthop_analyze::{Analysis, Endpoint, Opening};
use lasthop_observe::capture::Reason;

use crate::ours::{Key, Ours, is_unread};
use crate::{Tally, UNEXPLAINED, run};

/// A difference of clocks' rounding, in seconds.
const ROUNDING: f64 = 2e-6;

/// One direction.
#[derive(Default)]
pub struct Theirs {
    packets: u64,
    /// The round trip of the handshake, as both directions have it.
    rtt: Option<f64>,
    /// SYNs with an ACK.
    syn_acks: u64,
    /// Packets whose TCP header was cut off, or makes no sense.
    malformed: bool,
    /// The headers of its first packet.
    protocols: String,
}

/// What it found in a file.
#[derive(Default)]
pub struct Found {
    all: BTreeMap<Key, Theirs>,
    /// Whether it stopped before the TCP header of a packet.
    malformed: bool,
}

/// The directions of the TCP connections in a file; segments that an ICMP error quotes are no packets of them.
pub fn directions(file: &str) -> Option<Found> {
    let head = [
        "tcp.stream",
        "ip.src",
        "ipv6.src",
        "tcp.srcport",
        "tcp.analysis.initial_rtt",
        "tcp.flags",
        "_ws.malformed",
        "frame.protocols",
    ];
    let filter = "tcp and not icmp and not icmpv6 or _ws.malformed and not tcp";
    // In a tunnel the innermost headers count.
    let mut arguments = vec!["-r", file, "-n", "-Y", filter, "-T", "fields", "-E", "occurrence=l"];
    for field in head {
        arguments.extend(["-e", field]);
    }
    let output = run("tshark", &arguments)?;
    let (mut all, mut malformed): (BTreeMap<Key, Theirs>, _) = (BTreeMap::new(), false);
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let cells: Vec<&str> = line.split('\t').collect();
        let (Ok(stream), Ok(port)) = (cells[0].parse(), cells[3].parse()) else {
            malformed |= !cells[6].is_empty();
            continue;
        };
        // It derives IPv4 addresses from those of 6to4.
        let protocols = cells[7];
        let is_v6 = protocols.rfind(":ipv6") > protocols.rfind(":ip:");
        let addresses = if is_v6 { [cells[2], cells[1]] } else { [cells[1], cells[2]] };
        let addr = addresses.iter().find_map(|text| text.parse::<IpAddr>().ok());
        // An IPv4 address that is written as an IPv6 one is the same to us.
        let Some(addr) = addr.map(|addr| addr.to_canonical()) else { continue };
        let theirs = all.entry((stream, Endpoint { addr, port })).or_default();
        if theirs.packets == 0 {
            theirs.protocols = protocols.to_owned();
        }
        theirs.packets += 1;
        theirs.rtt = theirs.rtt.or(cells[4].parse().ok());
        let flags = u32::from_str_radix(cells[5].trim_start_matches("0x"), 16).unwrap_or(0);
        theirs.syn_acks += u64::from(flags & 0x12 == 0x12);
        theirs.malformed |= !cells[6].is_empty();
    }
    Some(Found { all, malformed })
}

/// Why lasthop has no direction that tshark has.
fn missing(analysis: &Analysis, theirs: &Theirs) -> &'static str {
    let before_tcp = theirs.protocols.split(":tcp").next().unwrap_or("");
    match () {
        () if before_tcp.ends_with(":udp") || before_tcp.contains(":udp:") => {
            "a protocol over UDP that lasthop does not read"
        }
        () if is_unread(analysis, |reason| matches!(reason, Reason::LinkType(_))) => {
            "a link type that lasthop does not read"
        }
        () if analysis.malformed_packets > 0 => "lasthop reads no malformed headers",
        () if analysis.unread_packets > 0 => "lasthop reports them as not read",
        () => UNEXPLAINED,
    }
}

/// Compares both.
pub fn compare(
    name: &str,
    analysis: &Analysis,
    ours: &BTreeMap<Key, Ours<'_>>,
    found: &Found,
    tally: &mut Tally,
) {
    let theirs = &found.all;
    let keys: BTreeSet<Key> = ours.keys().chain(theirs.keys()).copied().collect();
    let mut equal = true;
    for key in keys {
        // A connection of one of them that the other has under another number.
        let renumbered = || {
            let only_ours =
                ours.keys().any(|other| other.1 == key.1 && !theirs.contains_key(other));
            let only_theirs =
                theirs.keys().any(|other| other.1 == key.1 && !ours.contains_key(other));
            only_ours && only_theirs
        };
        let differ = match (ours.get(&key), theirs.get(&key)) {
            (Some(ours), Some(theirs)) => differences(ours, theirs, found.malformed),
            (mine, _) => {
                let only = if mine.is_some() { "only lasthop" } else { "only tshark" };
                let why = match theirs.get(&key) {
                    _ if renumbered() => "tshark also numbers conversations within payload",
                    Some(theirs) => missing(analysis, theirs),
                    None => "tshark does not read them",
                };
                vec![("packets", why, only.to_owned())]
            }
        };
        equal &= differ.is_empty();
        tally.direction("tshark", &format!("{name}, {} from {}", key.0, key.1.port), &differ);
    }
    tally.file("tshark", equal);
}

fn differences(
    ours: &Ours<'_>,
    theirs: &Theirs,
    malformed: bool,
) -> Vec<(&'static str, &'static str, String)> {
    let mut found = Vec::new();
    let packets = ours.sent.packets + ours.sent.copies;
    if packets != theirs.packets {
        let why = match () {
            () if theirs.malformed => "headers were cut off",
            () if malformed && packets > theirs.packets => "tshark stops at malformed IP options",
            () if ours.incomplete => "lasthop drops packets whose fragments overlap (RFC 5722)",
            () if ours.unread => "lasthop does not read all packets of the file",
            () => UNEXPLAINED,
        };
        found.push(("packets", why, format!("{packets}, tshark {}", theirs.packets)));
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
                "tshark counts the timer of a SYN-ACK that was retransmitted"
            }
            _ => {
                "lasthop knows by the timestamp which SYN was answered, or that one of them is a copy"
            }
        };
        found.push(("handshake round trip", why, format!("{own:?}, tshark {:?}", theirs.rtt)));
    }
    found
}
