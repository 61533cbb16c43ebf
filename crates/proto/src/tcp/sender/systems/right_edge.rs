//! Right-edge recovery (balakrishnan97 5.1): Reno with limited transmit, which RFC 3042 made of it.

use crate::tcp::config::Variant;
use crate::tcp::keyword::{Deployment, Keyword};

/// The word.
pub const WORD: Keyword = Keyword {
    key: "right-edge",
    apply: |c| {
        c.variant = Variant::Reno;
        c.limited_transmit = true;
    },
    summary: "a new segment on each of the first two duplicate ACKs, so that small windows see a third",
    source: "balakrishnan97 5.1; RFC 3042",
    tier: 1,
    worlds: crate::describe::SIM,
    syntax: "host: limited-transmit = true",
    deployment: Deployment::Superseded,
    linux: None,
};
