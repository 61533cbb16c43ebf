//! What agarwal00 published.

use super::Claim;

/// In the order of the paper.
pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "A-CAL",
        paper: "agarwal00",
        place: "5 (set-up)",
        setup: "one battery: idle with screen off lasts 223 min, sending continuously 110 \
                min; card 10/180/280 mA at 5 V (doze/receive/transmit); 11 Mb/s 802.11b",
        published: "the two lifetimes and the currents",
    },
    Claim {
        id: "A-MSS",
        paper: "agarwal00",
        place: "5.1, Figures 5.1a and b",
        setup: "MSS 500, 1000, 1500, 2296",
        published: "bytes per battery rise with MSS; lifetime falls slightly",
    },
    Claim {
        id: "A-SACK",
        paper: "agarwal00",
        place: "5.2, Figures 5.2a-d",
        setup: "SACK on and off for each MSS",
        published: "off is better only at 2296; on is better below",
    },
    Claim {
        id: "A-OPTIONS",
        paper: "agarwal00",
        place: "5.3-5.5, Figures 5.3-5.5",
        setup: "window scale, timestamps off, header prediction before PAWS",
        published: "window scale: no saving; timestamps off: lifetime 115 against 111 min; \
                    modified header prediction: 114 against 111; the last two comparable",
    },
    Claim {
        id: "A-DELACK",
        paper: "agarwal00",
        place: "5.6, Figure 5.6",
        setup: "an ACK every 500 ms only, against every second segment",
        published: "more bytes at the same lifetime (106 min)",
    },
    Claim {
        id: "A-BEST",
        paper: "agarwal00",
        place: "5.7, Figures 5.7a and b",
        setup: "MSS 2296, SACK off, timestamps off, 500 ms delayed ACK against stock; RTS/CTS \
                off and on (packets > 1000 B)",
        published: "energy efficiency up by almost 29 %; with RTS/CTS the saving is higher; \
                    lifetimes 122 stock, 113 changed; with RTS/CTS 114 and 113",
    },
    Claim {
        id: "A-RECEIVER",
        paper: "agarwal00",
        place: "5.9, Figure 5.9",
        setup: "the receiver on battery, MTU 2296, RTS/CTS on",
        published: "saves at the receiver as well; lifetimes 121 and 120 min",
    },
    Claim {
        id: "A-ERRORS",
        paper: "agarwal00",
        place: "5.10",
        setup: "TCP retransmissions over 802.11's own ARQ during one battery",
        published: "about 50 at MTU 1500",
    },
    Claim {
        id: "A-T5.1",
        paper: "agarwal00",
        place: "5.11, Table 5.1",
        setup: "interfering node continuous or 5 MB every 5 min; RTS on/off; SACK on/off; MTU \
                1500, other changes on",
        published: "min, bytes: RTS,noSACK,cont 128, 2970847921; RTS,SACK,cont 132, \
                    3058387131; no RTS,noSACK,cont 124, 3811377004; no RTS,SACK,cont 117, \
                    3647866576; no RTS,noSACK,int 106, 4183867981; no RTS,SACK,int 109, \
                    4185749921; RTS,noSACK,int 111, 3646355620; RTS,SACK,int 112, 3631339254",
    },
    Claim {
        id: "A-CHECKSUM",
        paper: "agarwal00",
        place: "3.3",
        setup: "ones' complement checksum by native word size and byte order, combined with \
                the copy; the paper's example bytes",
        published: "0x5051+0x5253+0x5455 and its byte-swapped twin give byte-swapped sums; \
                    wide words fold to the same sum; copy and checksum in one pass is nearly \
                    free",
    },
    Claim {
        id: "A-LOOKUP",
        paper: "agarwal00",
        place: "3.2, 3.4",
        setup: "connection lookup by hash with one-entry cache; header prediction fast path",
        published: "one-entry caches hit mostly; the fast path takes five comparisons",
    },
    Claim {
        id: "A-LIVE",
        paper: "agarwal00",
        place: "5 as a whole, on today's kernel",
        setup: "CPU cycles (or CPU time) per byte of the real Linux sender and receiver for \
                the same options and MSS values",
        published: "-",
    },
];
