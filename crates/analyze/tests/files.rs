//! Files as recorders leave them: one behind another, in pieces, with drops, with a clock that was set, of 802.11.

use crate::common::Script;
use crate::packets::one;
use lasthop_analyze::{Analysis, Config, Reader, analyze_capture, analyze_together};
use lasthop_observe::capture::{self, Frame};
use lasthop_proto::wire::Flags;

/// Ten rounds of two segments and an ACK, 20 ms apart.
fn rounds(from: u32, to: u32, s: &mut Script) {
    for n in from..to {
        let at = 100.0 + 20.0 * f64::from(n);
        s.data(at, 1 + n * 2000, 1000);
        s.data(at + 0.1, 1001 + n * 2000, 1000);
        s.ack(at + 10.0, 2001 + n * 2000);
    }
}

fn whole() -> Vec<u8> {
    let mut s = Script::new();
    s.payload = 64;
    s.handshake(0.0, 10.0);
    rounds(0, 10, &mut s);
    s.finish()
}

/// The IP packets of a capture with their times in microseconds.
fn packets(file: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let frames = capture::open(file).unwrap().map(Result::unwrap);
    frames.map(|frame: Frame<'_>| (frame.at.0 / 1000, frame.bytes.to_vec())).collect()
}

fn pcap(big: bool, link: u32, frames: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let word = |word: u32| if big { word.to_be_bytes() } else { word.to_le_bytes() };
    let version = if big { [0, 2, 0, 4] } else { [2, 0, 4, 0] };
    let mut file =
        [word(0xa1b2_c3d4), version, word(0), word(0), word(65_535), word(link)].concat();
    for (at, bytes) in frames {
        let len = word(bytes.len() as u32);
        file.extend(
            [word((at / 1_000_000) as u32), word((at % 1_000_000) as u32), len, len].concat(),
        );
        file.extend(bytes);
    }
    file
}

fn counts(analysis: &Analysis) -> (u64, u64, u64, usize) {
    let data = &one(analysis).to_server;
    (analysis.packets, data.unique_bytes, data.retransmissions.total(), data.stalls.len())
}

#[test]
fn a_second_file_behind_the_first_is_read() {
    let all = packets(&whole());
    let expected = counts(&analyze_capture(&whole(), Config::default()).unwrap());
    let (first, second) = all.split_at(all.len() / 2);
    let ng = |n: usize| {
        let mut s = Script::new();
        if n == 0 {
            s.handshake(0.0, 10.0)
        }
        if n == 0 {
            rounds(0, 5, &mut s)
        } else {
            rounds(5, 10, &mut s)
        }
        s.finish()
    };
    let raw = 101;
    for (first, second) in [
        (pcap(false, raw, first), pcap(false, raw, second)),
        (pcap(false, raw, first), pcap(true, raw, second)),
        (pcap(true, raw, &all[..18]), ng(1)),
        (ng(0), pcap(false, raw, &all[18..])),
        (ng(0), ng(1)),
    ] {
        let file = [first, second].concat();
        let analysis = analyze_capture(&file, Config::default()).unwrap();
        assert_eq!((counts(&analysis), &analysis.error), (expected, &None));
        // In pieces, of which each ends anywhere.
        let mut reader = Reader::new(Config::default());
        let (mut from, mut to) = (0, 0);
        while to < file.len() {
            to = (to + 4999).min(file.len());
            from += reader.read(&file[from..to], to == file.len()).unwrap().unwrap();
        }
        assert_eq!(counts(&reader.finish()), expected);
    }
}

#[test]
fn a_file_of_headers_ends() {
    let header = pcap(false, 101, &[]);
    let analysis = analyze_capture(&header.repeat(50_000), Config::default()).unwrap();
    assert_eq!((analysis.packets, analysis.truncated), (0, false));
}

#[test]
fn pieces_of_a_ring_buffer_are_one_capture() {
    let all = packets(&whole());
    let mut reader = Reader::new(Config::default());
    for (i, piece) in all.chunks(9).enumerate() {
        if i > 0 {
            reader.next_file();
        }
        reader.read(&pcap(i == 1, 101, piece), true).unwrap();
    }
    let expected = counts(&analyze_capture(&whole(), Config::default()).unwrap());
    assert_eq!(counts(&reader.finish()), expected);
}

/// Data on one interface, ACKs on another.
#[test]
fn captures_at_two_interfaces_are_joined_by_time() {
    let all = packets(&whole());
    let (data, acks): (Vec<_>, Vec<_>) = all.into_iter().partition(|(_, ip)| ip[15] == 1);
    let files = [pcap(false, 101, &acks), pcap(false, 101, &data)];
    let analysis = analyze_together(&[&files[0], &files[1]], Config::default()).unwrap();
    let expected = analyze_capture(&whole(), Config::default()).unwrap();
    assert_eq!(counts(&analysis), counts(&expected));
    assert_eq!(one(&analysis).to_server.rtt, one(&expected).to_server.rtt);
}

#[test]
fn a_clock_that_was_set_back() {
    let mut all = packets(&whole());
    let expected = analyze_capture(&whole(), Config::default()).unwrap();
    all.iter_mut().skip(15).for_each(|(at, _)| *at += 8_000_000);
    all.iter_mut().take(15).for_each(|(at, _)| *at += 10_000_000);
    let analysis = analyze_capture(&pcap(false, 101, &all), Config::default()).unwrap();
    let connection = one(&analysis);
    let seconds = |c: &lasthop_analyze::Connection| c.ended.since(c.began).as_secs_f64();
    assert_eq!((analysis.clock_steps, connection.to_server.stalls.len()), (1, 0));
    assert!((analysis.clock_back - 2.0).abs() < 0.1, "{}", analysis.clock_back);
    assert!((seconds(connection) - seconds(one(&expected))).abs() < 0.05);
    assert_eq!(expected.clock_steps, 0);
}

/// A block of pcapng.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let len = (12 + body.len().next_multiple_of(4)) as u32;
    let mut block = [kind.to_le_bytes(), len.to_le_bytes()].concat();
    block.extend(body);
    block.resize(len as usize - 4, 0);
    block.extend(len.to_le_bytes());
    block
}

#[test]
fn drops_that_the_capturing_system_reports() {
    let mut file = whole();
    for (dropped, code) in [(7u64, 5u16), (1234, 5), (5, 7)] {
        let mut body = [0u32.to_le_bytes(); 3].concat();
        body.extend([code.to_le_bytes(), 8u16.to_le_bytes()].concat());
        body.extend(dropped.to_le_bytes());
        file.extend(block(5, &body));
    }
    // An interface that is not described, and a block that is too short.
    file.extend(block(5, &[9, 0, 0, 0]));
    file.extend(block(5, &[]));
    let analysis = analyze_capture(&file, Config::default()).unwrap();
    let [dropped] = &analysis.dropped[..] else { panic!("{:?}", analysis.dropped) };
    assert_eq!((dropped.by_interface, dropped.by_system), (1234, 5));
    assert!(analyze_capture(&whole(), Config::default()).unwrap().dropped.is_empty());
}

/// Each fourth packet is sent twice on the radio, the second time with the retry bit.
#[test]
fn retries_of_802_11_are_no_copies_of_a_mirror_port() {
    let frame = |ip: &[u8], retry: bool| {
        let mut frame = vec![0x08, if retry { 0x09 } else { 0x01 }, 0, 0];
        frame.extend([[2; 6], [if ip[15] == 1 { 4 } else { 6 }; 6], [8; 6]].concat());
        frame.extend([0, 0, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0]);
        frame.extend(ip);
        frame
    };
    let mut frames = Vec::new();
    for (i, (at, ip)) in packets(&whole()).into_iter().enumerate() {
        frames.push((at, frame(&ip, false)));
        if i % 4 == 0 {
            frames.push((at + 40, frame(&ip, true)));
        }
    }
    let analysis = analyze_capture(&pcap(false, 105, &frames), Config::default()).unwrap();
    let expected = analyze_capture(&whole(), Config::default()).unwrap();
    let retries = frames.iter().filter(|(_, frame)| frame[1] == 0x09).count() as u64;
    assert_eq!((analysis.copied_packets, analysis.wifi_copies), (0, retries));
    let all = analysis.wifi.iter();
    let sums = all.fold((0, 0), |(a, b), station| (a + station.frames, b + station.retries));
    assert_eq!((sums, analysis.wifi.len()), ((frames.len() as u64, retries), 2));
    assert_eq!(one(&analysis).to_server.retransmissions, one(&expected).to_server.retransmissions);
}

/// A connection on both sides of a host that translates its addresses, in one capture: with the same identifications, with
/// others, and without the handshake. In the control the bytes and identifications differ.
#[test]
fn both_sides_of_a_translation() {
    for (skipped, ids, bytes) in
        [(0, false, false), (0, true, false), (9, false, false), (0, true, true)]
    {
        let mut frames = Vec::new();
        for (at, ip) in packets(&whole()).into_iter().skip(skipped) {
            let mut translated = ip.clone();
            // The server's address, which is the last part of the source or of the destination.
            let server = if ip[15] == 2 { 15 } else { 19 };
            translated[server] = 77;
            translated[8] -= 1;
            translated[5] ^= if ids { 0x55 } else { 0 };
            let header = 20 + usize::from(ip[32] >> 4) * 4;
            translated[header..].iter_mut().for_each(|byte| *byte ^= u8::from(bytes));
            frames.push((at, ip));
            frames.push((at + 20, translated));
        }
        let analysis = analyze_capture(&pcap(false, 101, &frames), Config::default()).unwrap();
        let same: Vec<_> = analysis.connections.iter().map(|c| c.translated).collect();
        assert_eq!(same, [None, Some(0).filter(|_| !bytes)], "{skipped} {ids}");
    }
}

/// One segment comes from the address behind the translation, and is reset.
#[test]
fn an_untranslated_segment() {
    let mut frames = packets(&whole());
    let (at, mut stray) = frames[19].clone();
    assert_eq!(stray[15], 1);
    // From the client's side, whose address is translated for the server.
    stray[15] = 9;
    let mut reset = [
        &stray[..12],
        &stray[16..20],
        &stray[12..16],
        &stray[22..24],
        &stray[20..22],
        &stray[28..32],
        &[0; 12],
    ]
    .concat();
    (reset[2], reset[3], reset[32], reset[33]) = (0, 40, 0x50, 0x04);
    frames.insert(20, (at + 1, stray));
    frames.insert(21, (at + 2, reset));
    let analysis = analyze_capture(&pcap(false, 101, &frames), Config::default()).unwrap();
    let found = |c: &lasthop_analyze::Connection| {
        let both = c.to_server.diagnoses.iter().chain(&c.to_client.diagnoses);
        both.filter(|d| matches!(d.finding, lasthop_analyze::Finding::Untranslated { of: 0, .. }))
            .count()
    };
    let counts: Vec<usize> = analysis.connections.iter().map(found).collect();
    assert_eq!(counts, [0, 1]);
}

/// The flags of the handshake decide between classic and accurate ECN.
#[test]
fn a_server_without_accurate_ecn() {
    let state = |syn: Flags| {
        let mut s = Script::new();
        s.ecn = [2, 0];
        s.send(0.0, 0, Flags::SYN | syn, 0, 0, 0);
        s.send(9.0, 1, Flags::SYN | Flags::ACK | Flags::ECE, 0, 0, 1);
        s.send(10.0, 0, Flags::ACK, 1, 0, 1);
        rounds(0, 10, &mut s);
        let analysis = s.analyze();
        let diagnoses = one(&analysis).to_server.diagnoses.clone();
        let mut ecn = diagnoses.into_iter().filter_map(|d| match d.finding {
            lasthop_analyze::Finding::Ecn { state, .. } => {
                Some((state, d.evidence.contains("AccECN")))
            }
            _ => None,
        });
        ecn.next()
    };
    let unmarked = lasthop_analyze::EcnState::Unmarked;
    assert_eq!(state(Flags::ECE | Flags::CWR), Some((unmarked, false)));
    assert_eq!(state(Flags::ECE | Flags::CWR | Flags::AE), Some((unmarked, true)));
}

/// With accurate ECN the flags of ACKs are a counter of three bits, which wraps.
#[test]
fn accurate_ecn_counts_marks() {
    let ace = |n: u32| {
        let bits = [(4, Flags::AE), (2, Flags::CWR), (1, Flags::ECE)];
        let set = bits.into_iter().filter(|(bit, _)| ((n + 5) % 8) & bit != 0);
        set.fold(Flags::ACK, |all, (_, flag)| all | flag)
    };
    let mut s = Script::new();
    s.ecn = [2, 0];
    s.send(0.0, 0, Flags::SYN | Flags::AE | Flags::CWR | Flags::ECE, 0, 0, 0);
    s.send(9.0, 1, Flags::SYN | Flags::ACK | Flags::CWR, 0, 0, 1);
    s.send(10.0, 0, Flags::ACK | Flags::CWR, 1, 0, 1);
    for n in 0..30u32 {
        s.send(20.0 + 20.0 * f64::from(n), 0, ace(0), 1 + n * 1000, 1000, 1);
        s.send(30.0 + 20.0 * f64::from(n), 1, ace(n / 2), 1, 0, 1001 + n * 1000);
    }
    let analysis = s.analyze();
    let diagnoses = &one(&analysis).to_server.diagnoses;
    let found = diagnoses.iter().find_map(|d| match d.finding {
        lasthop_analyze::Finding::Ecn { accurate, echoes, .. } => Some((accurate, echoes)),
        _ => None,
    });
    assert_eq!(found, Some((true, 14)));
}
