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
         each run, srtt in eighths and variation in quarters of a tick, RTO 1 s to 64 s, 12 retries; each second full \
         segment is acknowledged.",
        "The same sources. The truncation of this arithmetic keeps a LAN's timeout at three \
         ticks, which the lengths of the stalls depend on.",
    ),
    (
        "Hosts run the TCP of FreeBSD 2.1-STABLE as its sources have it (December 1996): the congestion window opens by \
         one segment a window, without 4.4BSD's eighth; it also grows on the ACK that ends a recovery, and deflates only \
         if more than three duplicate ACKs had come; a loss halves the smaller window; buffers of 16 KiB are rounded up \
         to whole segments, 17,520 bytes on the LAN. A connection that is not established after 75 s is dropped. \
         Changed after figures had been seen: Reno of Table 1 was closer to the published 98 KB/s without them.",
        "4.0 names FreeBSD 2.1. `tcp_input.c`, `tcp_timer.c` and `tcp_timer.h` are in `OSPreservProject/oskit`, \
         `freebsd/src/sys/netinet`.",
    ),
    (
        "A connection that was never established is no transfer, and its run does not count.",
        "The test program would report the error of `connect`, and the author would have repeated the run.",
    ),
    (
        "Hosts offer no timestamps. Segments have 1460 bytes on the LAN and 512 on the WAN.",
        "The kernel's default is `tcp_do_rfc1323 = 1`, but timestamps would leave 1448 of 1460 bytes, and 5.1 has \
         packets of 1460. A boot script (`tcp_extensions` in `/etc/sysconfig`) could switch them off.",
    ),
    (
        "In six-packet bursts an onset inside a burst has no effect. Changed after figures had been seen: it restarted \
         the burst.",
        "The text leaves both readings. 5.2.2 has bursts that \"damage six consecutive packets\", which only this one \
         gives, and a mean of 64 KB \"between the onset of two error bursts\", which is 72 KB with it and 64 KB with \
         restarts. The results decide: with restarts the wireless goodput is 87.1 % (published: 87.5 to 88.2), Reno's \
         transfers take 1.4 times as long, and its timeouts are 71 instead of 57. W-T2 and W-T4 show both. \
         Retransmissions that pass during a burst are destroyed as well.",
    ),
    (
        "Snoop retransmits on one duplicate ACK; its local timeout is srtt + 4 rttvar, at least 100 ms, 1.1 s \
         before the first measurement, and is not backed off; its persist timer is 500 ms. Changed after figures had \
         been seen: the persist timer was 200 ms.",
        "2.6 for the duplicate ACK. The paper names no timers, but ran the authors' code of early 1997. parsa98 4 says \
         that the persist timer of that code was changed to 200 ms, and that its rule was not twice the round trip. Of \
         this time only the authors' snoop for ns is known, whose minimum was 500 ms until July 1997 and 100 ms later. \
         W-T2 and W-T4 show a minimum of 500 ms as well.",
    ),
    (
        "Snoop measures round trips of its own retransmissions as well, and then its persist timer alone decides \
         (`rtt-fault`). Changed after figures had been seen: without it W-T4 fails, with snoop at 60 % of ideal.",
        "parsa98 5.2.2 found this fault in the snoop of Berkeley, which is the one that this testbed ran (2.6).",
    ),
    (
        "Snoop repeats the packet after a repaired one at once if an ACK of that one alone shows it to be missing \
         (`burst-check`). Added after figures had been seen.",
        "The check for burst loss in `elements/tcpudp/snooptcp.cc` of the Click router (1999), written after \
         Balakrishnan's code.",
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
