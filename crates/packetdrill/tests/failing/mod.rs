//! Scripts that lasthop's TCP does not pass, with the reason. The list may only shrink.

/// The name of a script, and what is missing.
pub const FAILING: &[(&str, &str)] = &[
    (
        "icmp-too-large",
        "the window keeps its bytes where segments become smaller, in Linux its segments",
    ),
    (
        "window-bounds-flight",
        "a write fills the rest of the peer's window with a part of a segment",
    ),
];
