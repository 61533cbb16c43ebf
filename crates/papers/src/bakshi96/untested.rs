//! Sentences with a number or an order that no claim tests, in the order of the paper.

use crate::Untested;

pub(super) const UNTESTED: &[Untested] = &[
    Untested::new(
        "3.1",
        "Error rates, periods, MTU, coding of 1.5 and rates of the links.",
        "Set-up: the scenarios have them.",
    ),
    Untested::new(
        "4.1",
        "For most error conditions the best packet size is neither the MTU nor 576 bytes.",
        "576 bytes are not among the sizes of Figure 7 here; B-F7 tests the best sizes that are named.",
    ),
    Untested::new(
        "4.2.1",
        "A coarse timer of 300 to 500 ms does not show redundant retransmissions.",
        "B-TICK compares timeouts at 100 and at 500 ms.",
    ),
    Untested::new(
        "4.2.3",
        "The existing estimate of the timeout suffices for EBSN.",
        "B-F5, B-F8 and B-F10 use it.",
    ),
    Untested::new(
        "5.1",
        "The theoretical maximum at bad periods of 1 s is 11.8 kb/s.",
        "The paper's formula gives 12.8 x 10 / 11 = 11.6; the bounds are drawn by the formula.",
    ),
    Untested::new(
        "5.1",
        "EBSN is close to the theoretical maximum for larger packets.",
        "B-F8 requires 9.0 kb/s of the 9.14 at 1536 bytes and 4 s, the only value that is printed.",
    ),
    Untested::new(
        "6",
        "EBSN with a congested wired network, and with ECN (studied separately).",
        "The paper gives neither load nor result, and its reference 18 did not appear: a scenario would be ours \
         in every number.",
    ),
    Untested::new(
        "6",
        "Improvements are greater for links with higher error rates.",
        "B-LONGER tests the same expectation of 5.1 by longer bad periods.",
    ),
];
