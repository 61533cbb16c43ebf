//! Scripts that lasthop's TCP does not pass, with the reason. The list may only shrink.

/// The name of a script, and what is missing.
pub const FAILING: &[(&str, &str)] = &[
    ("fast-retransmit-sack", "the window after the recovery is 7 segments, that of Linux 8"),
    ("window-bounds-flight", "the rest of the peer's window is filled with a part of a segment"),
];
