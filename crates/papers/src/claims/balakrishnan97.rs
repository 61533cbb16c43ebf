//! What balakrishnan97 published.

use super::Claim;

/// In the order of the paper.
pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "D-F1",
        paper: "balakrishnan97",
        place: "2.2, Figure 1",
        setup: "2 Mb/s WaveLAN (1.5 Mb/s without losses), snoop against Reno, mean error \
                distance from 16 KB to 16 MB and every other packet lost",
        published: "no difference below 1e-6; improvement by 2 to 20 times above; snoop \
                    finishes even when every other packet is lost, Reno makes no progress",
    },
    Claim {
        id: "D-F2-LAN",
        paper: "balakrishnan97",
        place: "3.1.1, Figure 2",
        setup: "8 MB, 1400 B, one error per 64 KB (2.3 % of packets), LAN; LL, LL-TCP-AWARE, \
                LL-SACK, LL-SACK-TCP-AWARE",
        published: "TCP-aware about 10 % above LL; wireless goodput LL 95.5 %, TCP-aware 97.6 \
                    % (best possible 97.7 %); about 90 % of losses retransmitted by both \
                    source and LL; best: LL-SACK-TCP-AWARE, 1.40 Mb/s",
    },
    Claim {
        id: "D-F2-WAN",
        paper: "balakrishnan97",
        place: "3.1.1, Figure 2",
        setup: "the same over 16 hops (large delay-bandwidth product)",
        published: "TCP-aware about 30 % above LL",
    },
    Claim {
        id: "D-F3-LAN",
        paper: "balakrishnan97",
        place: "3.1.2, Figure 3",
        setup: "end-to-end protocols, LAN: Reno, NewReno, SMART SACK, ELN, ELN-RXMT; 64 KB \
                and 8 KB socket buffers",
        published: "Reno below 50 % of the link; NewReno 10-25 % above Reno; ELN over twice \
                    Reno; ELN-RXMT's gain larger with 8 KB buffers; SMART SACK 1.25 Mb/s, \
                    best of them; all goodputs near 97.7 %",
    },
    Claim {
        id: "D-F3-WAN",
        paper: "balakrishnan97",
        place: "3.1.2, Figure 3",
        setup: "the same over the WAN",
        published: "Reno 0.31 Mb/s, below 25 %; NewReno about 2.3 times Reno; ELN over twice",
    },
    Claim {
        id: "D-F4",
        paper: "balakrishnan97",
        place: "3.2, Figure 4",
        setup: "split connections, 64 KB buffer at the base station: SPLIT, SPLIT-SACK; LAN \
                and WAN",
        published: "SPLIT 0.6 Mb/s LAN, 0.58 WAN; SPLIT-SACK 1.3 LAN, 1.1 WAN",
    },
    Claim {
        id: "D-ACKSPLIT",
        paper: "balakrishnan97",
        place: "3.2 (semantics)",
        setup: "base station is killed in mid-transfer",
        published: "split connections acknowledge data that has not arrived; the TCP-aware \
                    link layer keeps end-to-end semantics",
    },
    Claim {
        id: "D-F6",
        paper: "balakrishnan97",
        place: "4.1, Figure 6",
        setup: "wireless cable modem, return channel Ethernet or dial-up with and without \
                SLIP header compression, socket buffers 8..64 KB",
        published: "ACK dilation limits dial-up without compression; compression helps; \
                    Ethernet return is best",
    },
    Claim {
        id: "D-T1",
        paper: "balakrishnan97",
        place: "4.3, Table 1",
        setup: "10 Mb/s forward, 9.6 or 28.8 kb/s return, ACKs 40 B or 6 B (C), 1000 B \
                packets, 100 KB windows, 10-packet buffers, 50 s; ACC and AF with sender \
                adaptation",
        published: "Mb/s: 9.6: Reno 1.78, ACC 3.64, AF 6.28; 9.6 C: 6.67, 7.69, 7.93; 28.8: \
                    4.35, 7.58, 9.49; 28.8 C: 9.78, 9.77, 9.88",
    },
    Claim {
        id: "D-2WAY",
        paper: "balakrishnan97",
        place: "4.4.1",
        setup: "a transfer in the return direction beside the forward one; FIFO against \
                acks-first with ACC",
        published: "acks-first with ACC performs well in both directions",
    },
    Claim {
        id: "D-MAC",
        paper: "balakrishnan97",
        place: "4.4.2",
        setup: "packet radio network, two and three half-duplex hops with per-packet \
                turn-around latency; with and without ACK filtering; one and several \
                connections",
        published: "ACK filtering improves throughput and fairness",
    },
    Claim {
        id: "D-F7",
        paper: "balakrishnan97",
        place: "5.1, Figure 7",
        setup: "one 10 s transfer through a router with cross traffic and frequent losses; \
                SACK against right-edge recovery",
        published: "right-edge recovery is more than twice as fast; far fewer coarse \
                    time-outs",
    },
    Claim {
        id: "D-F8-F9",
        paper: "balakrishnan97",
        place: "5.2.2, Figures 8 and 9",
        setup: "four transfers starting at 0, 2, 4, 6 s, ending at 10 s, 3-packet buffer; \
                SACK against TCP-INT",
        published: "SACK: two of four flows get < 10 % of the bytes; TCP-INT: equal shares, \
                    almost no coarse time-outs, slightly fewer bytes in all",
    },
    Claim {
        id: "D-F11-F12",
        paper: "balakrishnan97",
        place: "5.2.3, Figures 11 and 12",
        setup: "one connection to host 1, one then two (from 15 s) to host 2, cross traffic; \
                SACK against TCP-INT",
        published: "SACK shares by connection (host 2 gets twice); TCP-INT shares by host",
    },
    Claim {
        id: "D-MOBILE-SENDER",
        paper: "balakrishnan97",
        place: "2.1; west97 2.6",
        setup: "transfer mobile->fixed with snoop's negative acknowledgements (SACK-based) \
                from the base station",
        published: "improves transfers from the mobile host too",
    },
];
