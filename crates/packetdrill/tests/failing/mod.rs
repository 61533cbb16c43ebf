//! Scripts that lasthop's TCP does not pass, with the reason. The list may only shrink.

/// The name of a script, and what is missing.
pub const FAILING: &[(&str, &str)] = &[
    (
        "close-active",
        "a FIN that comes again is acknowledged with a DSACK block of it, by Linux without",
    ),
    ("delayed-ack-timer", "the second request is acknowledged at once, by Linux after 40 ms"),
    ("fast-retransmit-sack", "the window after the recovery is 7 segments, that of Linux 8"),
    ("frto", "the state after a timeout that was spurious is CWR, that of Linux Open"),
    ("frto-notlp", "tcp_early_retrans has no effect: tail loss probes cannot be switched off"),
    (
        "open-simultaneous",
        "a SYN-ACK in SYN-RECEIVED is acknowledged and does not open the connection",
    ),
    ("open-wrong-ack", "the SYN is not sent again soon after a SYN-ACK of another SYN"),
    ("pingpong-delack", "the second request is acknowledged at once, by Linux with the answer"),
    (
        "simul-close",
        "a FIN that comes again is acknowledged with a DSACK block of it, by Linux without",
    ),
    ("syn-rto3", "the timeout after a SYN that was sent again is 1.2 s, that of Linux 1 s"),
    ("window-bounds-flight", "the rest of the peer's window is filled with a part of a segment"),
];
