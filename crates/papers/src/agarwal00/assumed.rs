//! Assumptions where the paper is silent, common to all of its experiments.

/// Assumption and reason.
pub(super) const ASSUMED: &[(&str, &str)] = &[
    (
        "500, 1000, 1500 and 2296 are MTUs; a segment carries 40 bytes less, and 12 less again with timestamps.",
        "The paper says MTU and MSS of the same four sizes (5.1). 2296 is the MTU of 802.11 (4.6), 1500 that of an \
         Ethernet and of the driver.",
    ),
    (
        "\"No changes\" is Linux 2.2 at an MTU of 1500; 5.3 to 5.6 are judged there, and drawn at all four sizes.",
        "5.7 lists the MTU of 2296 among the changes. The driver's own MTU is 1500.",
    ),
    (
        "Linux 2.2: SACK, timestamps and window scaling on; a window of 32,767 bytes, so that the scale is 0; a \
         least timeout of 200 ms and a clock of 10 ms; every second segment acknowledged; header prediction behind \
         PAWS.",
        "Red Hat 6.1 brought that kernel. Its sources have these values (tcp_input.c: the three options on, \
         MAX_DELAY_ACK of 2, HZ/5), and fingerprints of its SYN show windows of 32,120 bytes with a scale of 0.",
    ),
    (
        "The ACK every 500 ms only (5.6): at the latest after 500 ms, and at once where it would double what the \
         sender still may send.",
        "That is what is left of the rules in Linux 2.2 without the second segment. Without its rule for the window \
         a sender with 32 KB would be idle for nine tenths of the time, and the paper found more bytes.",
    ),
    (
        "802.11b in ad-hoc mode: long preambles of 192 us; ACK, CTS and RTS at 2 Mb/s; retry limits 7 and 4; no \
         power saving.",
        "Short preambles were an option. 802.11 (9.6) has an answer sent at the highest basic rate that is not above \
         the frame's; basic rates of cards of that time were 1 and 2 Mb/s. 5 turns power saving off.",
    ),
    (
        "RTS and CTS precede frames of more than 1000 bytes.",
        "5.7 says packets; 802.11 compares the frame, with 36 bytes more. No packet of these experiments has between \
         965 and 1000 bytes, but those of an MTU of 1000, which have a handshake here.",
    ),
    (
        "The channel: one bit in 10^8 is damaged, in every frame, one independent of the other. Chosen before \
         anything was counted.",
        "13 inches of air take 30 dB off the card's 15 dBm, and 11 Mb/s need -82 dBm (its data sheet): 66 dB are \
         left, so that noise does nothing. Measurements of WaveLAN within buildings found an error rate comparable \
         to that of wires (Eckhardt and Steenkiste, SIGCOMM 1996); 10^-8 is what 802.3 allows a twisted pair.",
    ),
    (
        "A base load, the radio in each of its states, and the work of the stack draw from a battery. The \
         two lifetimes of 5 give the base and the capacity; nothing else is fitted.",
        "The card's currents are published. A card that neither sends nor sleeps draws the receive current: the \
         paper gives no other.",
    ),
    (
        "The work on one full segment costs 14 mJ, all other work in proportion to its instructions.",
        "The one constant that is stated and not derived (preset sens-800 says why). Tables next to the verdicts \
         have half of it and twice of it, with base and capacity derived again from the same two lifetimes.",
    ),
    (
        "Runs last 100 s (300 s with another node) and are extrapolated to a full battery at their mean power; a \
         quarter as many seeds as elsewhere, five where those are 20.",
        "It is a steady state: a run until the battery is empty differs by less than 0.1 % (A-CAL). The thesis ran \
         five times.",
    ),
    (
        "Runs begin with the whole window open, all but the one that empties the battery.",
        "A connection is opened once in two hours. With ACKs by time that takes a minute at an MTU of 1500, which \
         would be most of a run (A-DELACK shows it).",
    ),
    (
        "The node that interferes has Linux 2.2 as it comes and an MTU of 1500; \"continuously\" is a TCP transfer \
         without end, \"5MB every 5 minutes\" a connection of 5,000,000 bytes each.",
        "5.11 does not say what it runs. What the receiver has changed holds for its connections, too.",
    ),
    (
        "On a current kernel (A-LIVE) CPU time represents the energy of protocol processing.",
        "The thesis has one figure for the whole laptop. Of a stack in a namespace nothing else can be measured, and \
         CPU time is what the options, the segment size and the ACKs act on.",
    ),
];
