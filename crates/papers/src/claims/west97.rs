//! What west97 published.

use super::Claim;

/// In the order of the paper.
pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "W-F9",
        paper: "west97",
        place: "4.4, Figure 9",
        setup: "2,000,000 B fixed->mobile, 10 Mb/s Ethernet + 2 Mb/s WaveLAN, no errors, Reno",
        published: "time-sequence plot is a straight line, slope = throughput, about 200 KB/s",
    },
    Claim {
        id: "W-F10",
        paper: "west97",
        place: "5.1, Figure 10",
        setup: "as W-F9 with one byte error per 64 KB (exponential gaps), Reno",
        published: "153.67 KB/s in one unusually good run; about 30 losses repaired by fast \
                    recovery; the stalls (flat parts) account for almost the whole difference \
                    to the ideal transfer",
    },
    Claim {
        id: "W-F12",
        paper: "west97",
        place: "5.1, Figure 12",
        setup: "mobile->fixed WAN, 512 B segments, RTT 67 ms, ideal 61 KB/s, no wireless \
                errors, congestion losses from competing traffic (17 of ~3,900 packets)",
        published: "63 s, 31.0 KB/s",
    },
    Claim {
        id: "W-F13",
        paper: "west97",
        place: "5.1, Figure 13",
        setup: "as W-F12 plus one error per 64 KB on the wireless link (54 losses, 1.38 %)",
        published: "137 s, 14.3 KB/s: about half of W-F12",
    },
    Claim {
        id: "W-T1",
        paper: "west97",
        place: "5.2.1, Table 1",
        setup: "2,000,000 B, 20 runs, single errors, mean 64 KB apart, on data and on ACKs; \
                columns Reno, snoop, snoop+ACKP",
        published: "ideal 199.92 KB/s; Reno 98.36 (49.20 % of ideal, goodput 97.4 %, 7.50 \
                    timer expirations); snoop 185.91 (93.00 %, wired 99.4 %, wireless 97.3 %, \
                    0.00); snoop+ACKP 185.07 (92.58 %, 99.5 %, 97.2 %, 0.00)",
    },
    Claim {
        id: "W-T1-32K-16K",
        paper: "west97",
        place: "5.2.1, last paragraph",
        setup: "as W-T1 at one error per 32 KB and per 16 KB",
        published: "snoop still shields the sender (no timer expiration, no duplicate ACK \
                    reaches it); ACKP costs nothing",
    },
    Claim {
        id: "W-T2",
        paper: "west97",
        place: "5.2.2, Table 2",
        setup: "as W-T1, each error destroys six consecutive packets",
        published: "Reno 7.19 KB/s (3.60 %, goodput 85.9 %, 56.60 expirations, 300 s); snoop \
                    105.37 (52.71 %, wired 99.6, wireless 87.5, 0.65); snoop+ACKP 105.66 \
                    (52.85 %, 99.7, 88.2, 0.30)",
    },
    Claim {
        id: "W-T3",
        paper: "west97",
        place: "5.3, Table 3",
        setup: "as W-T1 with the wireless link slowed to 14.6 KB/s by a delay at the base \
                station",
        published: "ideal 14.14 KB/s; Reno 7.52 (53.20 %, 97.6 %, 5.40); snoop 13.61 (96.24 \
                    %, wired 99.8, wireless 97.5, 0.35); snoop+ACKP 13.61 (96.20 %, 99.8, \
                    97.6, 0.05)",
    },
    Claim {
        id: "W-T4",
        paper: "west97",
        place: "5.3, Table 4",
        setup: "as W-T3 with six-packet bursts",
        published: "Reno 2.79 KB/s (19.73 %, 84.9 %, 57.55); snoop 10.80 (76.35 %, wired \
                    97.9, wireless 86.8, 4.30); snoop+ACKP 10.79 (76.31 %, 99.5, 87.8, 0.70)",
    },
    Claim {
        id: "W-ACKP-SCENARIOS",
        paper: "west97",
        place: "3.3, Figures 5-7",
        setup: "the full base-station algorithm: delayed-ACK timer, lastackp, SYN option \
                negotiation; (1) in-order, (2) hole from congestion, (3) hole filled",
        published: "(1) partial ACK for the highest contiguous packet; (2) none; (3) one \
                    partial ACK that jumps to the highest contiguous packet; no partial ACK \
                    in error-free operation or to a sender that did not offer the option",
    },
    Claim {
        id: "W-SATELLITE",
        paper: "west97",
        place: "5.3 end, 7.0 (left open by the author)",
        setup: "ACKP over a long-delay, high-bandwidth wireless link (RTT 500 ms or more, \
                window 100 KB or more), burst errors",
        published: "untested belief: there ACKP should give significant throughput gains",
    },
    Claim {
        id: "W-MULTI",
        paper: "west97",
        place: "7.0 (left open)",
        setup: "several connections through one base station, congestion and wireless losses \
                together",
        published: "proposed study: aggregate throughput, effect of one connection's losses \
                    on the others",
    },
    Claim {
        id: "W-SEQCACHE",
        paper: "west97",
        place: "7.0 (left open)",
        setup: "base station that caches sequence numbers only, shields duplicate ACKs and \
                sends an explicit loss notification so that the sender retransmits without \
                congestion control",
        published: "proposed, not built",
    },
    Claim {
        id: "W-ELN-CHECKSUM",
        paper: "west97",
        place: "2.3.3",
        setup: "receiver answers a segment whose IP checksum holds and TCP checksum fails \
                with a duplicate ACK carrying the ELN option; sender retransmits without \
                congestion control",
        published: "proposed, not built; imperfect because errors in the IP header stay \
                    invisible",
    },
];
