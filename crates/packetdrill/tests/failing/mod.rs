//! Scripts that lasthop's TCP does not pass, with the reason. The list may only shrink.

/// Duplicate ACKs that others have overtaken fail PAWS. Linux accepts those that repeat the last number
/// (`tcp_disordered_ack_check`), and timestamps that are one unit older.
const OVERTAKEN: &str = "a duplicate ACK that others have overtaken fails PAWS";

/// The name of a script, and the missing feature.
pub const FAILING: &[(&str, &str)] = &[
    ("dsack-delivered", "a retransmission that proves needless does not count as delivered"),
    ("late-dsack", "a duplicate that an ACK below the left edge reports does not count"),
    ("overtaken-dsack", OVERTAKEN),
    ("overtaken-old", OVERTAKEN),
    ("overtaken-sack", OVERTAKEN),
    ("overtaken-window", OVERTAKEN),
];
