//! A snap length that cuts off TCP options: options missing in the capture may exist on the wire.

use crate::common::Script;
use crate::packets::{any_numbers, connection, faults, one, write_sorted};
use lasthop_analyze::{Analysis, Config, Finding, Negotiated, analyze_capture};
use lasthop_observe::capture::open;
use proptest::prelude::*;

/// The capture in `file` with at most `snap` bytes of each packet.
fn snapped(file: &[u8], snap: usize) -> Vec<u8> {
    let words = [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, snap as u32, 101];
    let mut cut: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
    for frame in open(file).unwrap().map(Result::unwrap) {
        let bytes = &frame.bytes[..frame.bytes.len().min(snap)];
        let (secs, nanos) = (frame.at.0 / 1_000_000_000, frame.at.0 % 1_000_000_000);
        let fields = [secs as u32, nanos as u32, bytes.len() as u32, frame.wire_len];
        cut.extend(fields.into_iter().flat_map(u32::to_le_bytes));
        cut.extend(bytes);
    }
    cut
}

/// Whether the analysis claims that an option was not agreed on or is removed.
fn misses_options(analysis: &Analysis) -> bool {
    let connection = one(analysis);
    let all = [&connection.to_server, &connection.to_client].into_iter().flat_map(|d| &d.diagnoses);
    all.into_iter().any(|diagnosis| {
        matches!(
            diagnosis.finding,
            Finding::WindowScaleOneSided { .. }
                | Finding::OptionOneSided { .. }
                | Finding::OptionStripped { option: Negotiated::Sack | Negotiated::Timestamps, .. }
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn options_that_are_cut_off_are_unknown(
        isn in any_numbers(), v6 in any::<bool>(), snap in 40usize..120, rtt in 1.0f64..200.0,
        lost in proptest::option::of(0u32..20), stamped in any::<bool>(),
    ) {
        let mut s = Script::new();
        (s.isn, s.v6) = (isn, v6);
        (s.scale, s.mss, s.sack_permitted) = ([Some(7); 2], [Some(1460); 2], [true; 2]);
        s.stamps = stamped.then_some((5, 6));
        write_sorted(&mut s, connection(rtt, 20, lost, None));
        let file = s.finish();
        let headers = if v6 { 60 } else { 40 };
        let snap = snap.max(headers);
        let whole = analyze_capture(&file, Config::default()).unwrap();
        let cut = analyze_capture(&snapped(&file, snap), Config::default()).unwrap();
        prop_assert_eq!(cut.tcp_packets, whole.tcp_packets);
        prop_assert_eq!(faults(one(&cut)), faults(one(&whole)));
        // Duplicate ACKs have no SACK blocks here, which counts only where their options are whole.
        let options_end = headers + if stamped { 12 } else { 0 };
        if snap < options_end {
            prop_assert!(!misses_options(&cut));
        }
        // The script writes no payload, so a packet is as long as its headers.
        let longest = open(&file).unwrap().map(|frame| frame.unwrap().bytes.len()).max();
        let (a, b) = (&one(&cut).to_server, &one(&cut).to_client);
        if snap < headers + 4 {
            prop_assert_eq!(a.window_max.or(b.window_max).filter(|max| *max > 8000), None);
        }
        prop_assert_eq!(a.options_cut + b.options_cut > 0, Some(snap) < longest);
    }
}
