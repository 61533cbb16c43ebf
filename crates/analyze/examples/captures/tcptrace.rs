//! What `tcptrace` counts, by direction.

use std::collections::BTreeMap;
use std::path::Path;

use lasthop_analyze::{Closing, Endpoint};

use crate::ours::{Key, Ours};
use crate::{Tally, UNEXPLAINED, run};

/// One direction.
#[derive(Clone, Copy, Default)]
pub struct Theirs {
    packets: u64,
    unique_bytes: u64,
    resent: u64,
    /// Window probes; they are retransmissions to it as well.
    probes: u64,
    /// SYN and FIN.
    control: u64,
    out_of_order: u64,
}

/// What it found in a file.
#[derive(Default)]
pub struct Found {
    all: BTreeMap<Ends, Vec<Theirs>>,
    /// Packets that it has seen, if it prints them.
    seen: Option<u64>,
    /// Whether it left out packets as too short.
    short: bool,
}

/// The ends of a direction; connections between the same ends come in the order of the file.
type Ends = (Endpoint, Endpoint);

/// The first bytes of pcap files with microseconds, in either byte order.
const OLD: [[u8; 4]; 2] = [[0xa1, 0xb2, 0xc3, 0xd4], [0xd4, 0xc3, 0xb2, 0xa1]];

/// The directions of the TCP connections in a file that begins with `bytes`. tcptrace knows the old format only: others
/// are converted.
pub fn directions(file: &str, bytes: &[u8], scratch: &Path) -> Option<Found> {
    let converted = scratch.join("old.pcap");
    let mut old = file;
    if !OLD.iter().any(|magic| bytes.starts_with(magic)) {
        old = converted.to_str()?;
        run("tshark", &["-r", file, "-F", "pcap", "-w", old])?;
    }
    let output = run("tcptrace", &["--csv", "-l", "-n", old])?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut lines = text.lines().filter(|line| !line.starts_with('#') && line.contains(','));
    let short = text.contains("too short to process");
    let seen = text
        .lines()
        .find_map(|line| line.split_once(" packets seen")?.0.trim_start_matches('#').parse().ok());
    let Some(head) = lines.next() else { return Some(Found { seen, short, ..Found::default() }) };
    let columns: BTreeMap<&str, usize> =
        head.split(',').enumerate().map(|(i, name)| (name.trim(), i)).collect();
    let mut all: BTreeMap<Ends, Vec<Theirs>> = BTreeMap::new();
    for line in lines {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        let text = |name: &str| columns.get(name).and_then(|i| cells.get(*i)).copied();
        let number = |name: &str| text(name).and_then(|text| text.parse().ok()).unwrap_or(0);
        let end = |host: &str, port: &str| {
            Some(Endpoint { addr: text(host)?.parse().ok()?, port: text(port)?.parse().ok()? })
        };
        let (Some(a), Some(b)) = (end("host_a", "port_a"), end("host_b", "port_b")) else {
            continue;
        };
        for (ends, way) in [((a, b), "a2b"), ((b, a), "b2a")] {
            let control = text(&format!("SYN/FIN_pkts_sent_{way}")).unwrap_or("0/0");
            let control = control.split('/').filter_map(|n| n.parse::<u64>().ok()).sum();
            all.entry(ends).or_default().push(Theirs {
                packets: number(&format!("total_packets_{way}")),
                unique_bytes: number(&format!("unique_bytes_sent_{way}")),
                resent: number(&format!("rexmt_data_pkts_{way}")),
                probes: number(&format!("zwnd_probe_pkts_{way}")),
                out_of_order: number(&format!("outoforder_pkts_{way}")),
                control,
            });
        }
    }
    Some(Found { all, seen, short })
}

/// Compares both.
pub fn compare(name: &str, ours: &BTreeMap<Key, Ours<'_>>, found: &Found, tally: &mut Tally) {
    let mut mine: BTreeMap<Ends, Vec<(u32, Ours<'_>)>> = BTreeMap::new();
    for ((number, from), ours) in ours {
        mine.entry((*from, ours.to)).or_default().push((*number, *ours));
    }
    let mut equal = true;
    for (ends, mine) in &mine {
        let all = found.all.get(ends).map_or(&[][..], Vec::as_slice);
        let all: Vec<Theirs> = all.iter().copied().filter(|theirs| theirs.packets > 0).collect();
        let same_count = all.len() == mine.len();
        for (i, (number, ours)) in mine.iter().enumerate() {
            let differ = match all.get(i) {
                _ if all.is_empty() => {
                    vec![("packets", "tcptrace does not read them", "only lasthop".to_owned())]
                }
                Some(theirs) if same_count => differences(ours, theirs, found),
                _ => vec![(
                    "packets",
                    "tcptrace begins or ends connections between the same ports elsewhere",
                    format!("{} connections, tcptrace {}", mine.len(), all.len()),
                )],
            };
            equal &= differ.is_empty();
            tally.direction("tcptrace", &format!("{name}, {number} from {}", ends.0.port), &differ);
        }
    }
    tally.file("tcptrace", equal);
}

fn differences(
    ours: &Ours<'_>,
    theirs: &Theirs,
    file: &Found,
) -> Vec<(&'static str, &'static str, String)> {
    let sent = ours.sent;
    let reset = ours.connection.closing == Closing::Reset;
    let jumbo = sent.points.iter().any(|point| point.len > u32::from(u16::MAX) - 60);
    let mut found = Vec::new();
    let packets = sent.packets + sent.copies;
    if packets != theirs.packets {
        let why = match () {
            () if file.short => "tcptrace finds packets too short and leaves them out",
            () if ours.fragments => "tcptrace does not reassemble fragments",
            () if ours.to.addr.is_ipv6() && theirs.packets < packets => {
                "tcptrace takes extension headers of IPv6 for TCP"
            }
            () if ours.unread => "not all packets of the file are read by both",
            () if file.seen.is_some_and(|seen| seen < ours.file) => {
                "tcptrace does not see all packets of the file"
            }
            () => UNEXPLAINED,
        };
        found.push(("packets", why, format!("{packets}, tcptrace {}", theirs.packets)));
    }
    let more = theirs.unique_bytes.saturating_sub(sent.unique_bytes);
    let shared = |metric: &str| match () {
        () if packets != theirs.packets => Some("not the same packets were read"),
        () if ours.fragments => Some("tcptrace does not reassemble fragments"),
        () if ours.to.addr.is_ipv6() && more > 0 && more.is_multiple_of(8) => {
            Some("tcptrace takes extension headers of IPv6 for payload")
        }
        () if sent.restarts > 0 => Some("tcptrace does not detect that sequence numbers restart"),
        () if sent.copies > 0 => Some("tcptrace takes copies for packets"),
        () if sent.keep_alives + sent.window_probes > 0 => {
            Some("tcptrace counts bytes of keep-alives and window probes")
        }
        () if sent.acked_before_seen + sent.foreign_acks > 0 => {
            Some("ACKs precede their data, or belong to another connection")
        }
        () if reset && more > 0 => Some("tcptrace counts the text of a reset as data"),
        () if metric == "unique bytes" && reset => Some("tcptrace counts no data behind a reset"),
        () if metric == "unique bytes" && jumbo => {
            Some("tcptrace does not know the length of super-segments above 64 KB")
        }
        () if metric == "unique bytes" && sent.missed_bytes > 0 => {
            Some("tcptrace counts bytes that the capture missed, up to the highest number")
        }
        () => None,
    };
    if sent.unique_bytes != theirs.unique_bytes {
        let why = shared("unique bytes").unwrap_or(UNEXPLAINED);
        found.push((
            "unique bytes",
            why,
            format!("{}, tcptrace {}", sent.unique_bytes, theirs.unique_bytes),
        ));
    }
    let resent = sent.retransmissions.total();
    if resent != theirs.resent {
        let unseen =
            sent.losses.iter().filter(|loss| loss.seen == lasthop_analyze::LossLocation::Never);
        let unseen = unseen.count() as u64;
        let why = match shared("retransmissions") {
            Some(why) => why,
            None if theirs.control > 2 || theirs.resent > resent && theirs.control > 1 => {
                "tcptrace counts SYN and FIN that were retransmitted"
            }
            None if resent == 0 && sent.bytes > sent.unique_bytes => {
                "tcptrace takes bytes before the SYN for retransmitted"
            }
            None if theirs.probes > 0 => "tcptrace takes packets for window probes",
            None if unseen > 0 && resent > theirs.resent => {
                "tcptrace takes repairs of bytes that the capture never saw for reordered or new"
            }
            None if theirs.out_of_order > 0 => "tcptrace takes packets for reordered",
            None => UNEXPLAINED,
        };
        found.push(("retransmissions", why, format!("{resent}, tcptrace {}", theirs.resent)));
    }
    found
}
