//! Sentences with a number or an order that no claim tests, in the order of the paper.

use crate::Untested;

pub(super) const UNTESTED: &[Untested] = &[
    Untested::new(
        "1",
        "At very high error rates the throughput of TULIP is up to three times that of TCP alone.",
        "TCP alone is said to be near a standstill there (5.2.1), which leaves no ratio of three; T-F15 tests \
         the ratio to snoop and the standstill.",
    ),
    Untested::new(
        "2",
        "Snoop improves TCP up to 15 bit errors per million.",
        "Of snoop's own paper; T-F10 has snoop above TCP alone at each rate.",
    ),
    Untested::new(
        "4",
        "Timers of snoop of 40 and 200 ms, retransmission on the second duplicate ACK.",
        "Set-up: the preset `parsa98` has them.",
    ),
    Untested::new(
        "5",
        "1400-byte packets, a window of 8 packets in TULIP, 10 MB, 1 and 10 Mb/s, a Poisson source of 1 Mb/s.",
        "Set-up.",
    ),
    Untested::new(
        "5",
        "Several receivers (planned, not measured).",
        "The medium access of `fama` is modelled between one base station and one mobile. With several, its \
         collisions would be our design and not that of the paper.",
    ),
    Untested::new(
        "5.1.1",
        "A bit error rate of 3.9 per million loses 4 % of the packets, 15 per million 16 %.",
        "T-T1 has the share at 15; 1400 bytes at 3.9 per million give 4.3 % by arithmetic.",
    ),
    Untested::new(
        "5.1.2",
        "Shares of lost packets and ideal goodputs of Table 1.",
        "They follow from error rates of 15.1, 15.5 and 15.2 per million by arithmetic; all runs here have 15.",
    ),
    Untested::new(
        "5.1.3",
        "The times and numbers of the packets in Figure 12 (0.15, 0.24, 0.25 and 1.75 s; packets 4, 12, 13, 14, 42).",
        "One random run of the authors: T-F12 requires the sequence of events, not their times.",
    ),
    Untested::new(
        "5.2",
        "75 bit errors per million lose 85 % of the packets.",
        "1400 bytes at 75 per million lose 57 % by arithmetic; T-F15 has a note on the rate that loses 85 %.",
    ),
    Untested::new(
        "5.3.1",
        "The times at which snoop's timers expire in Figure 18 (0.87 and 0.93 s).",
        "One random run of the authors, of which the figure is drawn.",
    ),
    Untested::new(
        "6",
        "TULIP works with encrypted headers, IPv6 and any TCP.",
        "No number and no order.",
    ),
];
