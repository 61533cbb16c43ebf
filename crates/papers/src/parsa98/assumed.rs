//! Assumptions where the paper is silent, common to all of its experiments.

/// Assumption and reason.
pub(super) const ASSUMED: &[(&str, &str)] = &[
    (
        "Each radio frame takes 0.2 ms in addition to its bits, the preamble of 802.11 (192 us) and its headers.",
        "The only fitted constant: with it an error-free transfer with TULIP reaches about 631 kb/s, to which the \
         three rows of Table 2 extrapolate. It represents the ramp-up, ramp-down and processing of equation 1, for \
         which the paper has no numbers.",
    ),
    (
        "The wireless host takes 0.1 ms for each packet, either way.",
        "Processing time of equation 1. Its value does not matter as long as it is longer than the 30 us in which an \
         answer must begin: a host that acknowledges sooner would find its station still listening and draw a \
         backoff, while one that takes a moment finds the channel quiet. Without it ACKs and data have equal \
         chances, half of the window waits at the wireless host, and delays do not come near Table 2.",
    ),
    (
        "Physical layer: 802.11 DSSS at 1 Mb/s, 192 us of preamble, slots of 20 us, SIFS of 10 us. FAMA-NCS backs \
         off for 1 to 10 times an RTS.",
        "The paper names 802.11 and FAMA-NCS; these are their published values.",
    ),
    (
        "TCP measures round trips in whole units of 500 ms; its timeout is the estimate plus four times the \
         deviation, 0.5 s at least, doubled up to 64 s; it never gives up. Every packet is acknowledged.",
        "5.1.4, footnote 6, taken as written. A first round trip then gives 0.5 s + 4 x 0.25 s: the 1.5 s after \
         which the timer of Figure 12(a) expires. REAL's receiver is not described; delayed ACKs would halve the \
         number of ACKs in Figure 12.",
    ),
    (
        "The source always has data.",
        "The paper offers 1 Mb/s on average as a Poisson process, more than the channel carries: the source is \
         backlogged but for the first moments.",
    ),
    (
        "Bit errors are independent, so that their distances are exponential, and hit every frame of either \
         direction: data, ACKs, link acknowledgements, RTS and CTS.",
        "5 applies losses to the wireless channel; 3 says that they hit ACKs as well. The packet losses of Table 1 \
         (16 % at 15 per million) are those of frames of 1400 bytes and headers.",
    ),
    (
        "Error rates are per bit. At 75 per million 58 % of the data packets are lost.",
        "5.2 speaks of 85 % there, which is the number of errors per packet (0.86) and not the share of packets that \
         have one; at 15 per million, where the two are alike, it measured 16 %.",
    ),
    (
        "Snoop's retransmissions go before the packets that wait for the radio.",
        "The published description of snoop has it so, and the authors matched their code with it. In Figure 18(b) \
         two retransmissions fall into a burst of six packets, with a window of packets waiting.",
    ),
    (
        "Snoop times a packet from when it leaves the queue before the radio; its first local timeout is 200 ms.",
        "In Figure 18(b) local timeouts are 60 ms apart while a window of packets waits for the radio, more than \
         ten times as long: the paper's round trips do not hold that queue.",
    ),
    (
        "Snoop has no check for bursts (`burst-check`).",
        "A port of the authors' code of 1999 has it, their snoop for ns of July 1997 does not. Here each packet is \
         acknowledged and repeated packets go first: with the check a needless repetition causes the next one, and at low \
         error rates snoop has 0.58 of TULIP's throughput in fading, where 5.3.2 has no difference.",
    ),
    (
        "Snoop's fault: a sample counts although other packets were retransmitted while it was taken. It is in \
         experiments 1 and 3; experiment 2 shows both.",
        "5.2 describes the fault and says that the code was changed for experiment 2, and that plots of the fixed \
         snoop are labelled so; those of experiments 1 and 3 are not.",
    ),
    (
        "The base station queues 50 packets; the wire has 1 ms of delay.",
        "No window is larger, so that nothing is ever dropped. The wire of Figure 8 has no delay given.",
    ),
    (
        "10 MB are 10,000,000 bytes, the windows 42,000 and 16,000 bytes, 30 and 11 packets; the 64 KB between \
         bursts are 65,536 bytes of data packets on the air, retransmissions included.",
        "30 packets of 1400 bytes are 42,000 bytes; other readings of KB give the same number of packets.",
    ),
    (
        "Fading: a carrier of 2.4 GHz and a margin of 20 dB, states that go by time and are the same in both \
         directions.",
        "802.11's band. The paper names the speed and neither margin nor carrier; in a fade neither side hears the \
         other (5.3).",
    ),
];
