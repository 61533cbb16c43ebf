//! Sentences with a number or an order that no claim tests, in the order of the paper.

use crate::Untested;

pub(super) const UNTESTED: &[Untested] = &[
    Untested::new(
        "2.2",
        "An error rate of 1e-6 is near the 1 Mb point of the axis.",
        "Set-up of D-F1, whose boundary is 128 KB.",
    ),
    Untested::new(
        "3.1",
        "One error per 65,536 bytes is a bit error rate of 1.9e-6, and 2.3 % of packets of 1400 bytes.",
        "Set-up: by arithmetic.",
    ),
    Untested::new(
        "3.1.2",
        "The goodputs of Figures 2 and 3 that the text does not state.",
        "The figures are not in the text that could be read.",
    ),
    Untested::new(
        "3.2",
        "SPLIT-SACK is behind LL-OPT because of rare coarse timeouts.",
        "A cause without a number; D-F4 requires the order.",
    ),
    Untested::new(
        "4.1",
        "Throughput by socket buffer in Figure 6.",
        "The values are in the figure only; D-F6 requires the orders of the text.",
    ),
    Untested::new(
        "4.3",
        "A return queue that is full of ACKs of 6 bytes delays by 50 ms at 9.6 kb/s.",
        "By arithmetic from 10 packets of 6 bytes; the timers of the sender, 100 ms, do not resolve it.",
    ),
    Untested::new(
        "5",
        "25 % of all timeouts of the traces could have been avoided.",
        "D-TIMEOUTS has the share.",
    ),
    Untested::new(
        "5.1.1",
        "422,025 coarse timeouts in three hours, 18,713 of them within the reach of SACK.",
        "Counts of a server's traces; D-TIMEOUTS tests their shares.",
    ),
    Untested::new(
        "5.2.2",
        "The connection of 2 s sends hardly anything until 6 s, the first one loses seconds from 4 s on.",
        "One run of the authors; D-F8-F9 tests the shares of bytes.",
    ),
];
