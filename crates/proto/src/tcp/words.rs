//! The words for a TCP: what `tcp = "..."` of a host changes about its configuration.

use super::config::{Congestion, ElnMode, ElnReaction, RtoRule, TcpConfig, Variant};

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
        key: "tcp-int",
        apply: |c| {
            c.variant = Variant::Reno;
            c.congestion = Congestion::Reno;
            c.integrated = true;
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
    Word { key: "rack", apply: rack },
    Word {
        key: "cubic",
        apply: |c| {
            rack(c);
            c.congestion = Congestion::Cubic;
            c.rto_rule = RtoRule::Linux;
        },
    },
    Word {
        key: "bbr",
        apply: |c| {
            rack(c);
            c.congestion = Congestion::Bbr;
            c.rto_rule = RtoRule::Linux;
            c.pacing = true;
            c.burst = 2;
        },
    },
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
    Word {
        key: "scps-tp",
        apply: |c| {
            c.variant = Variant::Snack;
            c.snack = true;
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

/// RACK-TLP with Reno's window. What is under way is known by the segment, so new data follows what is reported
/// without limited transmit; a network of today is wider than 64 KiB.
fn rack(c: &mut TcpConfig) {
    c.variant = Variant::Rack;
    c.sack = true;
    c.dsack = true;
    c.timestamps = true;
    c.window_scale = true;
    c.limited_transmit = false;
}
