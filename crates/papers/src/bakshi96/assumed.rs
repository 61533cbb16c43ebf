//! Assumptions where the paper is silent, common to all of its experiments.

/// Assumption and reason.
pub(super) const ASSUMED: &[(&str, &str)] = &[
    (
        "Throughput is payload over time; headers do not count. kb/s means 1000 bit/s, a file of 100 KB 102,400 \
         bytes, one of 4 MB 4,194,304.",
        "5: \"we take into account 40 bytes of header overhead while measuring connection throughput\". With headers \
         counted, throughput could not rise with the packet size as in Figure 8. The printed 9.0 kb/s with a \
         bound of 9.14 agrees: a transfer begins in the good state, which lifts the mean share of good time in its \
         90 s from 71.4 to 72.3 %, and 12.8 x 0.723 x 1496 / 1536 is 9.02.",
    ),
    (
        "Several runs have the throughput of all their bytes over all their time. Changed after figures had \
         been seen: \
         by the mean of each run's throughput basic TCP has 5.3 kb/s at 1536 B and 4 s, and EBSN 1.5 times that.",
        "1: throughput is \"the ratio of the total data received by the end user and the connection time\". A run in \
         good luck is short and has a high rate, so that the mean of rates exceeds what a user gets on average.",
    ),
    (
        "Both directions of the radio are good and bad together, and the connection begins in the good state.",
        "4.2.1: acknowledgements are lost in the same bad period; the bound of 5.1 counts one share of good time; \
         the example begins good.",
    ),
    (
        "In the example of 4.2.1 (Figures 3 to 5) the good state loses nothing and the bad state everything.",
        "Its bit errors are constant: at 1e-6 the first one would come after 78 s of sending, at 1e-2 every frame \
         has several. \"During the bad periods, all packets transmitted over the wireless link are lost.\" The file \
         is that of 5.1.",
    ),
    (
        "Bit error rates hold for the bits before coding.",
        "3.1: the rate of the good state is what is left with the assumed error correction.",
    ),
    (
        "The MTU of 128 bytes counts the packet's bytes; headers of fragments are part of the factor 1.5.",
        "3.1: a packet of W bytes becomes 1.5 W after framing, error correction, segmentation and synchronization.",
    ),
    (
        "Links delay by 2 ms (56 kb/s) and 0.1 ms (radio), in the local-area network by 0.2 and 0.1 ms; 50 packets \
         fit each queue.",
        "The paper gives no delays. The times that it prints for Figure 3 come out with 2 ms. It was 10 ms \
         before those times had been looked at; no verdict but that of \
         B-F3 depends on it. No queue ever fills: the window is smaller.",
    ),
    (
        "The window of 4 KB is a whole number of packets, headers included: 2 of 1536 bytes, 7 of 576, 32 of 128.",
        "The simulator counts windows in packets; Figure 3 shows seven packets lost at once.",
    ),
    (
        "The window of 64 KB is 65,535 bytes; radio frames of the local-area network have no coding overhead.",
        "The largest window without an option; 5.2 puts the throughput without errors at 2 Mb/s.",
    ),
    (
        "TCP is the Tahoe of ns as of December 1996, the preset `ns-1996`: a round trip by each new ACK, to the \
         nearest \
         100 ms; averages in whole eighths and quarters; 3 s at first, at least two ticks, at most 2000 s; the timer \
         starts \
         before the backoff doubles and before a round trip is counted; a fast retransmit backs off too; slow start \
         below the threshold, which may be less than two packets; no handshake. Changed after figures had been seen: \
         with `preset = \"bakshi96\"`, which took later versions for that of 1996, three of the nine claims held.",
        "The paper names Tahoe and the tick (3.3). The rest was read in the simulator's source of the time, and \
         gives the \
         three times that the paper prints, which the preset before did not: 13.75, 25.9 and 28.3 s.",
    ),
    ("With another tick the smallest timeout is two of those ticks.", "As ns had it."),
    (
        "Local recovery is stop-and-wait in both directions, fragment by fragment, each acknowledged by one byte; the \
         link is full duplex. Changed after figures had been seen: it was packet by packet, acknowledged by 8 bytes \
         (`local-recovery.unit=packet`, `local-recovery.ack=8B`).",
        "3.1: the MTU of 128 bytes is \"the maximum link level packet size\", so that the packets which 4.2.1 \
         retransmits are fragments. 3.1: the bandwidth is symmetrical. The protocol's constants are those of CDPD \
         (the paper's reference 12), where a decode status of 5 bits acknowledges a block.",
    ),
    (
        "In section 5 the link layer retransmits without a limit. In the example of 4.2.1 RT_max = 13 counts \
         retransmissions, so that a fragment is sent 14 times. Changed after figures had been seen: the limit was \
         13 everywhere.",
        "RT_max is a parameter of the example. With it exponential bad periods outlast all attempts, and timeouts \
         could not be \"completely eliminated\" (5.1, 5.2).",
    ),
    (
        "The random backoff is uniform from zero to a limit that doubles from 16 to 256 slots of 60 bits: from 50 ms \
         to 800 ms at 19.2 kb/s, and from 0.48 to 7.68 ms at 2 Mb/s. Changed after figures had been seen: both \
         networks had the times of the wide area.",
        "The paper says only \"random\". For RT_max it follows CDPD, whose slots have 60 bits at any rate.",
    ),
    (
        "A sender waits for an acknowledgement from the end of its frame, for the time of the longest frame of the \
         other direction, two acknowledgements and the way there and back.",
        "After that time none can arrive. The base station sees a failed attempt at that moment.",
    ),
    (
        "EBSN and source quench are sent after each failed attempt to bring data across, and quote the packet.",
        "4.2.3: \"after every unsuccessful attempt\". A source that reacts to source quench closes its congestion \
         window to one packet, as 4.4BSD did.",
    ),
];
