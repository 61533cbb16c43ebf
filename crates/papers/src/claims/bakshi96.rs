//! What bakshi96 published.

use super::Claim;

/// In the order of the paper.
pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "B-F3",
        paper: "bakshi96",
        place: "4.2.1, Figure 3",
        setup: "Tahoe, 576 B packets, 4 KB window, MTU 128 B fragments, 56 kb/s wired, 12.8 \
                kb/s effective wireless, 100 ms tick; deterministic 10 s good / 4 s bad",
        published: "every bad period loses the packets in flight and ends in a time-out; \
                    packet 44 is retransmitted twice in the third",
    },
    Claim {
        id: "B-F4",
        paper: "bakshi96",
        place: "4.2.1, Figure 4",
        setup: "the same with local recovery (random back-off, at most 13 tries)",
        published: "most bad periods cause no source retransmission, some cause a source \
                    time-out and a redundant retransmission",
    },
    Claim {
        id: "B-F5",
        paper: "bakshi96",
        place: "4.2.1, Figure 5",
        setup: "the same with EBSN after every failed attempt",
        published: "no source time-out",
    },
    Claim {
        id: "B-F7",
        paper: "bakshi96",
        place: "5.1, Figure 7",
        setup: "100 KB, packet sizes 128..1536 B, good 10 s, bad 1..4 s (exponential), BER \
                1e-6 / 1e-2; basic Tahoe, no local recovery",
        published: "an optimum packet size exists and depends on the bad period (512 B at 1 \
                    s: 8.7 kb/s, about 30 % above 1536 B; 384 B at 3 s); 4.5 kb/s at 1536 B \
                    and 4 s; throughput falls with the bad period",
    },
    Claim {
        id: "B-F8",
        paper: "bakshi96",
        place: "5.1, Figure 8",
        setup: "as B-F7 with local recovery and EBSN",
        published: "throughput rises with packet size; 9.0 kb/s at 1536 B and 4 s (bound \
                    12.8*10/14 = 9.14); twice basic TCP",
    },
    Claim {
        id: "B-F9",
        paper: "bakshi96",
        place: "5.1, Figure 9",
        setup: "data retransmitted by the source in B-F7 and B-F8",
        published: "basic: grows with packet size and bad period; EBSN: none",
    },
    Claim {
        id: "B-F10",
        paper: "bakshi96",
        place: "5.2, Figures 10 and 11",
        setup: "LAN: 10 Mb/s + 2 Mb/s, 64 KB window, 1536 B, 4 MB, good 4 s, bad 0.4..1.6 s, \
                no fragmentation",
        published: "EBSN up to about 50 % above basic TCP, zero source time-outs, goodput 100 \
                    %",
    },
    Claim {
        id: "B-QUENCH",
        paper: "bakshi96",
        place: "4.2.2",
        setup: "ICMP source quench from the base station instead of EBSN",
        published: "does not prevent the time-outs of packets already under way; no gain",
    },
    Claim {
        id: "B-TICK",
        paper: "bakshi96",
        place: "4.2.1, 6",
        setup: "timer granularity 100 ms against 300-500 ms, local recovery with and without \
                EBSN",
        published: "local recovery alone suffers from fine timers, EBSN does not",
    },
];
