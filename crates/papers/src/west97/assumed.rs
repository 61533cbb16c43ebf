//! Assumptions where the paper is silent, common to all of its experiments.

/// Assumption and reason.
pub(super) const ASSUMED: &[(&str, &str)] = &[
    (
        "Each radio frame takes 0.65 ms in addition to its bits.",
        "The only fitted constant: with it the error-free transfer takes the published 9.77 s (Table 1). It represents \
         preamble, framing and channel access of the WaveLAN.",
    ),
    (
        "The two stations take turns on the radio; 50 packets fit each interface queue.",
        "CSMA/CA gives both stations the same chance; 50 packets was BSD's interface queue.",
    ),
    (
        "Timers and round trips follow 4.4BSD's integer arithmetic: 500 ms and 200 ms ticks with a random phase in \
         each run, srtt in eighths and variation in quarters of a tick, RTO 1 s to 64 s, 12 retries.",
        "FreeBSD 2.1 descends from 4.4BSD-Lite. The truncation of this arithmetic keeps a LAN's timeout at three \
         ticks, which the lengths of the stalls depend on.",
    ),
    (
        "The congestion window opens by one segment a window.",
        "RFC 5681. 4.4BSD added an eighth of a segment per ACK; whether FreeBSD 2.1 still did is not known. `--set \
         host.fixed.growth=bsd` shows the difference: Reno of Table 1 gains about 7 %. 4.4BSD's window also grew on \
         the \
         ACK that ends a recovery (`exit-growth=true`: 6 %), and stayed inflated at exactly three duplicate ACKs \
         (`deflation=past-threshold`: 8 %).",
    ),
    (
        "Socket buffers are 16 KiB, segments 1460 B on the LAN and 512 B on the WAN, no options.",
        "FreeBSD's defaults; the segment sizes are the paper's.",
    ),
    (
        "In six-packet bursts the 64 KB count from onset to onset, and an onset inside a burst restarts it.",
        "5.2.2: the mean distance between the onset of two error bursts. Retransmissions that pass during a burst \
         are destroyed as well.",
    ),
    (
        "Snoop retransmits on one duplicate ACK; its local timeout is srtt + 4 rttvar, at least 100 ms, 1.1 s \
         before the first measurement, and is not backed off; its persist timer is 200 ms or the local timeout if \
         that is longer.",
        "2.6 for the duplicate ACK. The paper names no timers: those of the snoop in ns-2 by the same authors are \
         taken, and the persist timer of parsa98 4.",
    ),
    (
        "Snoop measures round trips of its own retransmissions as well, and then its persist timer alone decides \
         (`rtt-fault`). Changed after figures had been seen: without it W-T4 fails, with snoop at 60 % of ideal.",
        "parsa98 5.2.2 found this fault in the snoop of Berkeley, which is the one that this testbed ran (2.6).",
    ),
    (
        "On the slow link (5.3) packets wait behind the base station's agent.",
        "The paper's delay is where a packet is forwarded to the wireless link, and snoop has it before.",
    ),
    (
        "The WAN is a 545 kbit/s link with 27 ms each way.",
        "So that the error-free transfer reaches the published 61 KB/s at the published 67 ms of round trip.",
    ),
    (
        "Other people's traffic drops 0.44 % of the data packets at random and delays each by 0 to 67 ms.",
        "17 of 3,900 packets were lost (5.1). The paper gives no delays; a gateway that drops packets has a full \
         queue, taken as up to one more round trip.",
    ),
    (
        "A transfer is timed from the first SYN to the ACK of its last byte. A connection that gives up counts with \
         what it delivered until then.",
        "The test sender times the transfer (4.5), without saying from where to where.",
    ),
];
