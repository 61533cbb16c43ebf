//! The words for a TCP: what `tcp = "..."` of a host changes about its configuration.

use super::config::{Congestion, ElnMode, ElnReaction, TcpConfig, Variant};

/// A TCP by its name.
#[derive(Clone, Copy, Debug)]
pub struct Word {
    /// Its name everywhere.
    pub key: &'static str,
    /// What it changes about a preset. It sets whatever makes it what it is, so that the word means the same on
    /// every preset; what else the preset says stays.
    pub apply: fn(&mut TcpConfig),
}

/// Every TCP, in the order of the papers.
pub const TCPS: &[Word] = &[
    Word { key: "tahoe", apply: |c| c.variant = Variant::Tahoe },
    Word { key: "reno", apply: |c| c.variant = Variant::Reno },
    Word { key: "newreno", apply: |c| c.variant = Variant::NewReno },
    Word {
        key: "sack",
        apply: |c| {
            c.variant = Variant::Sack;
            c.sack = true;
        },
    },
    Word {
        key: "smart",
        apply: |c| {
            c.variant = Variant::Smart;
            c.smart = true;
        },
    },
    Word { key: "eln", apply: |c| marks(c, ElnReaction::ThirdDuplicate) },
    Word { key: "eln-rxmt", apply: |c| marks(c, ElnReaction::FirstAck) },
    Word {
        key: "right-edge",
        apply: |c| {
            c.variant = Variant::Reno;
            c.limited_transmit = true;
        },
    },
    Word {
        key: "vegas",
        apply: |c| {
            c.variant = Variant::Reno;
            c.congestion = Congestion::Vegas;
        },
    },
];

/// Reno that asks for marks and obeys them so.
fn marks(c: &mut TcpConfig, reaction: ElnReaction) {
    c.variant = Variant::Reno;
    if c.eln == ElnMode::Off {
        c.eln = ElnMode::Checksum;
    }
    c.eln_reaction = reaction;
}
