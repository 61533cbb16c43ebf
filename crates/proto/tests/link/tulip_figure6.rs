//! The transmission example of parsa98 3.4, Figure 6, packet by packet.

use std::collections::BTreeMap;

use lasthop_proto::air::Station;
use lasthop_proto::event::Cause;
use lasthop_proto::link::frame::{BitVector, Frame};
use lasthop_proto::link::tulip::TulipConfig;
use lasthop_proto::units::{Span, Time};

use crate::support::{LogEntry, World, arq, packet, timing};

fn bits(vector: &BitVector) -> String {
    (0..vector.len()).map(|i| u8::from(vector.get(i)).to_string()).collect()
}

/// The events, in the notation of the figure: a star for each earlier transmission of a packet.
fn lines(log: &[LogEntry]) -> Vec<String> {
    let mut tries: BTreeMap<u32, usize> = BTreeMap::new();
    let mut line = |entry: &LogEntry| match entry {
        LogEntry::Released(ids) => (!ids.is_empty()).then(|| format!("up {ids:?}")),
        LogEntry::List(seqs) => (!seqs.is_empty()).then(|| format!("R{seqs:?}")),
        LogEntry::Sent { frame, lost } => {
            let header = arq(frame);
            let lost = if *lost { " lost" } else { "" };
            Some(match (header.seq, &header.ack) {
                (Some(seq), None) => {
                    let tries = tries.entry(seq).or_default();
                    *tries += 1;
                    format!("{seq}{}{lost}", "*".repeat(*tries - 1))
                }
                (None, Some(ack)) => format!("{} [{}]{lost}", ack.cumulative, bits(&ack.vector)),
                _ => format!("{header:?}"),
            })
        }
    };
    log.iter().filter_map(&mut line).collect()
}

#[test]
fn figure_6_packet_by_packet() {
    let config = TulipConfig::default();
    assert_eq!(config.window, 8);
    let mut world = World::new(&config, 2, timing(Span::micros(1)), true);
    for id in 0..7 {
        world.put(0, 1, packet(id, 1360));
    }
    world.run(Time(1_000_000_000), &mut |_| vec![Span::ZERO]);
    assert_eq!(world.uppers[1].released.len(), 7);
    world.log.clear();

    for id in 7..14 {
        world.put(0, 1, packet(id, 1360));
    }
    // Lost are 9, 9*, 11, and the acknowledgements of 9** and 11*.
    let (mut data, mut acks) = (0, 0);
    let mut fate = |frame: &Frame| {
        let lost = if frame.from == Station::BASE {
            data += 1;
            [3, 5, 6].contains(&data)
        } else {
            acks += 1;
            [5, 6].contains(&acks)
        };
        if lost { vec![] } else { vec![Span::ZERO] }
    };
    world.run(Time(2_000_000_000), &mut fate);
    // The figure writes the second star of 9 as the first; the retransmission list of two is present, R[9
    // 11].
    let expected = [
        "7",
        "7 [00000000]",
        "8",
        "8 [00000000]",
        "9 lost",
        "10",
        "8 [01000000]",
        "9* lost",
        "11 lost",
        "12",
        "8 [01010000]",
        "9**",
        "10 [01000000] lost",
        "11*",
        "12 [00000000] lost",
        "13",
        "13 [00000000]",
    ];
    let lines = lines(&world.log);
    let sent: Vec<_> =
        lines.iter().filter(|line| !line.starts_with(['u', 'R'])).map(String::as_str).collect();
    assert_eq!(sent, expected);
    let rest: Vec<_> =
        lines.iter().filter(|line| line.starts_with(['u', 'R'])).map(String::as_str).collect();
    let expected = ["up [7]", "up [8]", "R[9]", "R[9, 11]", "up [9, 10]", "up [11, 12]", "up [13]"];
    assert_eq!(rest, expected);
    // Each release follows directly on the packet that made it possible.
    for (packet, release) in [("9**", "up [9, 10]"), ("11*", "up [11, 12]")] {
        let at = lines.iter().position(|line| line == packet).unwrap();
        assert_eq!(lines[at + 1..].iter().find(|line| line.starts_with('u')).unwrap(), release);
    }
    let nacked = |id| (id, Cause::LinkNack);
    assert_eq!(world.uppers[0].repeated, [nacked(9), nacked(9), nacked(11)]);
}
