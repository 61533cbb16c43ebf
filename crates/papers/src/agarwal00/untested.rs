//! Sentences with a number or an order that no claim tests, in the order of the paper.

use crate::Untested;

pub(super) const UNTESTED: &[Untested] = &[
    Untested::new(
        "2",
        "Link failures are handled by ELFN and TCP-F.",
        "Cited, neither described nor measured; no host here receives a notice of a broken route.",
    ),
    Untested::new(
        "3.1",
        "Coalescing interrupts saves energy at a negligible loss of throughput.",
        "The energy model has a cost for each packet and none for an interrupt; the thesis gives no number.",
    ),
    Untested::new(
        "3.2",
        "Caches of one entry hit mostly, 20 routes give 90 %.",
        "A-LOOKUP measures the cache of one entry; routes are no part of lasthop.",
    ),
    Untested::new(
        "4.4",
        "An old duplicate is accepted with a probability of 2^-21.",
        "By arithmetic from the size of a segment and of the sequence space.",
    ),
    Untested::new(
        "5",
        "The deviation of lifetimes is at most one minute.",
        "Runs here deviate less; bounds on lifetimes allow the minute.",
    ),
    Untested::new(
        "5",
        "Lifetimes of the unchanged TCP: 106, 110, 111, 114 and 122 min.",
        "They differ for the same set-up by more than the deviation that is stated, so that single lifetimes \
         are drawn and differences judged.",
    ),
    Untested::new(
        "5.8",
        "10 m give the same as 1 inch.",
        "Only the delay of light can be changed here; A-MSS has a note on it.",
    ),
    Untested::new(
        "6",
        "The MAC's backoff can be made milder, as in MACAW.",
        "Proposed, not measured; `80211` has the backoff of the standard.",
    ),
    Untested::new(
        "6",
        "Compression costs more energy than it saves.",
        "No number, no algorithm and no data are named.",
    ),
    Untested::new(
        "6",
        "WEP and the power save mode can be tried.",
        "Proposed, not measured; WEP has no cost in the energy model.",
    ),
];
