//! Our senders of today beside what a Linux kernel sent when the same packets were lost.
//!
//! `tests/replay/` holds the orders in which a kernel sent its segments, three runs for each of 50 patterns of losses,
//! since the kernel itself does not do the same each time. A pattern counts as equal if ours equals any of them over
//! the first 200 segments; for BBR, which paces, if half of the data takes as long within 5 %. What differs is printed; docs/replay.md says why.

use lasthop_study::replay::{By, Compared, Recording, ours, simulate};

/// Segments that are compared.
const SEGMENTS: usize = 200;

/// How many patterns of a recording are equal.
fn equal(recording: &str) -> usize {
    let recording = Recording::parse(recording).unwrap();
    let word = ours(&recording.kernel).unwrap();
    assert_eq!(recording.patterns.len(), 50);
    let mut equal = 0;
    for recorded in &recording.patterns {
        let sent = simulate(word, &recorded.pattern).unwrap();
        let orders = recorded.orders();
        let kernel = (By::of(&recording.kernel), orders.as_slice());
        let compared = Compared::new(&recorded.pattern, kernel, &sent, SEGMENTS);
        equal += usize::from(compared.is_equal());
        if !compared.is_equal() {
            let Compared { pattern, equal, kernel, ours, kernel_agrees, .. } = compared;
            let segment = |sent: Option<_>| sent.map(|s: lasthop_study::replay::Sent| s.segment);
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
fn reno_sends_what_linux_sends() {
    assert!(equal(include_str!("replay/linux-reno.json")) >= 44);
}

#[test]
fn bbr_is_as_fast_as_linux() {
    assert!(equal(include_str!("replay/linux-bbr.json")) >= 41);
}

#[test]
fn cubic_sends_what_linux_sends() {
    assert!(equal(include_str!("replay/linux-cubic.json")) >= 40);
}
