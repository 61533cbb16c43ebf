//! Our modern senders compared with a Linux kernel that lost the same packets.
//!
//! `tests/replay/` holds the orders of a kernel's segments, three runs for each of 50 loss patterns, because the kernel
//! does not send the same order each time. A pattern counts as equal if ours equals any of them over the first 200
//! segments; for BBR, which paces, if the time for half of the data is equal within 5 %. Differences are printed;
//! docs/how-to/replay.md explains them.

use lasthop_study::replay::{Comparison, Criterion, Recording, ours, simulate};

/// Segments that are compared.
const SEGMENTS: usize = 200;

/// The number of equal patterns of a recording.
fn equal(recording: &str) -> usize {
    let recording = Recording::parse(recording).unwrap();
    let word = ours(&recording.kernel).unwrap();
    assert_eq!(recording.patterns.len(), 50);
    let mut equal = 0;
    for recorded in &recording.patterns {
        let sent = simulate(word, &recorded.pattern).unwrap();
        let orders = recorded.orders();
        let kernel = (Criterion::of(&recording.kernel), orders.as_slice());
        let compared = Comparison::new(&recorded.pattern, kernel, &sent, SEGMENTS);
        equal += usize::from(compared.is_equal());
        if !compared.is_equal() {
            let Comparison { pattern, equal, kernel, ours, kernel_agrees, .. } = compared;
            let segment =
                |sent: Option<_>| sent.map(|s: lasthop_study::replay::SentSegment| s.segment);
            let (kernel, ours) = (segment(kernel), segment(ours));
            println!(
                "{pattern}: {equal} equal ({kernel_agrees} among the kernel's), then {kernel:?}, ours {ours:?}"
            );
        }
    }
    println!("{word}: {equal} equal");
    equal
}

#[test]
fn reno_matches_the_segment_order_of_linux() {
    assert!(equal(include_str!("replay/linux-reno.json")) >= 44);
}

#[test]
fn bbr_is_as_fast_as_linux() {
    assert!(equal(include_str!("replay/linux-bbr.json")) >= 41);
}

#[test]
fn cubic_matches_the_segment_order_of_linux() {
    assert!(equal(include_str!("replay/linux-cubic.json")) >= 40);
}
