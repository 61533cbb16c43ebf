//! What parsa98 published.

use super::Claim;

/// In the order of the paper.
pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "T-F6",
        paper: "parsa98",
        place: "3.4, Figure 6",
        setup: "window 8, packets 7-13, the losses described in the text",
        published: "exact order: 7, 8, 9(lost), 10, 9*(lost), 11(lost), 12, 9*, 11*, 13; \
                    releases and bit vectors as in the text",
    },
    Claim {
        id: "T-F9",
        paper: "parsa98",
        place: "5.1.1, Figure 9",
        setup: "10 MB, 10 Mb/s wired + 1 Mb/s half-duplex wireless (802.11 PHY, FAMA-NCS \
                MAC), 1400 B packets, 42 KB window, BER 3.9e-6 and 15e-6",
        published: "at 15e-6 TCP alone is only 30 % through when TULIP and snoop are done; no \
                    TCP time-out with either; TULIP slightly ahead",
    },
    Claim {
        id: "T-F10",
        paper: "parsa98",
        place: "5.1.1, Figure 10",
        setup: "BER 0..15e-6, windows 42 KB and 16 KB",
        published: "MAC acceleration is worth 4-5 % at BER 0; unaided TCP keeps up below \
                    0.5e-6; no difference between the windows",
    },
    Claim {
        id: "T-T1",
        paper: "parsa98",
        place: "5.1.2, Table 1 and Figure 11",
        setup: "BER 15e-6, 42 KB window",
        published: "goodput TULIP 0.840 (ideal 0.841), snoop 0.829 (0.831), none 0.814 \
                    (0.834); TCP time-outs 0, 0, 732; redundant packets 0, 0, 158",
    },
    Claim {
        id: "T-F12",
        paper: "parsa98",
        place: "5.1.3, Figure 12",
        setup: "BER 15e-6, first two seconds",
        published: "unaided: two losses in one small window lead to a time-out and a \
                    redundant retransmission; TULIP: 17 losses, idle periods <= 200 ms, no \
                    time-out, one packet lost three times",
    },
    Claim {
        id: "T-F13",
        paper: "parsa98",
        place: "5.1.4, Figure 13",
        setup: "TULIP at BER 15e-6; TCP's RTT estimate, deviation, RTO with 500 ms ticks",
        published: "RTO stays well above the measured RTT; RTT variation within the 500 ms \
                    tick",
    },
    Claim {
        id: "T-F14",
        paper: "parsa98",
        place: "5.1.5, Figure 14",
        setup: "end-to-end packet delay, BER 0..15e-6, 42 KB and 16 KB",
        published: "TULIP's mean delay below snoop's everywhere, its deviation too as errors \
                    rise; 16 KB window cuts the delay by more than half",
    },
    Claim {
        id: "T-F15",
        paper: "parsa98",
        place: "5.2.1, Figure 15",
        setup: "BER 15e-6..75e-6",
        published: "unaided TCP nearly stands still above 30e-6; snoop falls off above 30e-6; \
                    TULIP declines slowly, up to 3 times snoop",
    },
    Claim {
        id: "T-F16",
        paper: "parsa98",
        place: "5.2.2, Figure 16",
        setup: "delay at high BER, 42 KB; snoop with its RTT-sampling fault and with the \
                fault mended",
        published: "the mend lowers snoop's delay and deviation much; above 35e-6 TULIP's are \
                    lower still",
    },
    Claim {
        id: "T-F17",
        paper: "parsa98",
        place: "5.2.2, Figure 17",
        setup: "as T-F16 with 16 KB",
        published: "snoop's mean delay more than twice TULIP's at the high end",
    },
    Claim {
        id: "T-T2",
        paper: "parsa98",
        place: "5.3.1, Table 2 and Figure 18",
        setup: "bursts of 2, 4, 6 data packets every 64 KB, 42 KB window",
        published: "TULIP 587.3, 550.0, 516.1 kb/s, delay 540+-56, 579+-74, 618+-98 ms; snoop \
                    562.6, 527.6, 496.4 kb/s, 582+-60, 621+-84, 660+-114 ms",
    },
    Claim {
        id: "T-F19",
        paper: "parsa98",
        place: "5.3.2, Figure 19",
        setup: "two-state Markov fading, pedestrian 2 km/h, bad-state loss 50 %, good-state \
                BER 0.01e-6..100e-6",
        published: "TULIP and snoop alike at low rates; snoop falls behind above 10e-6; \
                    unaided TCP degrades above 0.1e-6; at 100e-6 TULIP's delay and deviation \
                    much lower",
    },
    Claim {
        id: "T-BIDIR",
        paper: "parsa98",
        place: "3.3.1, Figure 1",
        setup: "transfers in both directions at once over the half-duplex link",
        published: "interleaving by TRANS/WAIT keeps RTS collisions away",
    },
];
