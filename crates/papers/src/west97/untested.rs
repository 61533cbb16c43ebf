//! Sentences with a number or an order that no claim tests, in the order of the paper.

use crate::Untested;

pub(super) const UNTESTED: &[Untested] = &[
    Untested::new(
        "2.2.1",
        "Fast retransmit detects a loss in some ms on a LAN and in about 100 ms on a WAN, where the timer takes \
         seconds.",
        "Background on Tahoe; W-F10 and W-F12 measure both costs.",
    ),
    Untested::new(
        "2.6",
        "Snoop improves throughput more than any other experimental scheme.",
        "A summary of related work; D-F2-LAN and D-F3-LAN compare the schemes.",
    ),
    Untested::new(
        "3.0",
        "EBSN gives 50 % on LANs and 100 % on wide areas.",
        "Of bakshi96: B-F8 and B-F10.",
    ),
    Untested::new(
        "4.0",
        "Rates of 10 and 2 Mb/s, transfers of 2,000,000 bytes.",
        "Set-up: the scenario has them.",
    ),
    Untested::new(
        "4.3",
        "A table of 50,000 exponential distances drives the error model.",
        "Set-up: distances are random here, from a stream with a longer period.",
    ),
    Untested::new(
        "5.1",
        "A round trip takes 6 to 8 ms on the LAN and 67 ms on the WAN.",
        "Set-up: the overhead of a radio frame is fitted to the ideal throughput, the WAN has its round trip.",
    ),
    Untested::new(
        "5.1",
        "Packets have 1460 bytes on the LAN and 512 on the WAN; smaller ones lower the ideal throughput.",
        "Set-up.",
    ),
    Untested::new(
        "5.1",
        "A WAN has longer stalls than a LAN because its round trips vary more.",
        "W-F12 and W-F13 model other traffic as random loss and jitter that are ours, so that their timers \
         would test our model and not the paper.",
    ),
    Untested::new(
        "5.2",
        "The standard deviation of throughput, next to that of the transfer time.",
        "The same runs: the deviation of the transfer time is judged in W-T1 to W-T4.",
    ),
    Untested::new(
        "5.2.1",
        "A stall of a full window takes about 10 ms.",
        "No stall of that length can be seen in the metrics; W-SNOOP-WINDOW tests the cure.",
    ),
    Untested::new(
        "5.3",
        "The slow link has a peak of 14.6 KB/s and less than 10 ms of propagation.",
        "Set-up.",
    ),
    Untested::new(
        "5.3",
        "With a window below 32 KB the sender generally stalls while a burst is repaired.",
        "W-SNOOP-WINDOW varies the window with single errors; the paper measured no other window.",
    ),
    Untested::new(
        "5.3",
        "Partial ACKs make up for the traffic that they save on the wire.",
        "A guess of the author (\"probably\"); goodput counts data packets only.",
    ),
    Untested::new(
        "5.3",
        "Slow start takes seconds and congestion avoidance minutes on a satellite link.",
        "W-SATELLITE answers the question that it is an argument for.",
    ),
    Untested::new(
        "7.0",
        "The share of damaged packets that reach TCP on real networks has to be found out.",
        "A property of networks, not of a protocol: W-ELN-CHECKSUM assumes that all errors outside of the IP \
         header are seen.",
    ),
];
