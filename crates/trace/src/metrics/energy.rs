//! What a host on a battery has spent.

use serde::{Deserialize, Serialize};

/// A host that runs on a battery: what it has spent, and what that makes of a full one. Energies in joules, times in
/// seconds.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct NodeEnergy {
    /// The host.
    pub host: String,
    /// What it is made of.
    pub hardware: String,
    /// What the full battery holds.
    pub capacity_j: f64,
    /// What was drawn, by what drew it.
    pub spent: Spent,
    /// The sum of these.
    pub spent_j: f64,
    /// For how long the radio sent.
    pub transmit_s: f64,
    /// For how long it heard a frame and did not send.
    pub receive_s: f64,
    /// For how long it slept.
    pub doze_s: f64,
    /// For how long it listened and nothing was on the air.
    pub idle_s: f64,
    /// Instructions of the stack, in those of the table of costs.
    pub instructions: f64,
    /// Payload that this host sent and the other end delivered, in bytes.
    pub sent: u64,
    /// Payload that was delivered at this host, in bytes.
    pub received: u64,
    /// How long the full battery lasts: when it was empty, or at the mean power of the run.
    pub lifetime_s: f64,
    /// Whether the battery was empty before the run ended.
    pub emptied: bool,
    /// Payload sent and received for each joule.
    pub bytes_per_joule: f64,
    /// Payload sent and received with a full battery.
    pub bytes_per_battery: f64,
}

/// What was drawn in a run, in joules.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Spent {
    /// By the host, whatever happened.
    pub base: f64,
    /// By the radio while it slept.
    pub doze: f64,
    /// By the radio while it listened in vain.
    pub idle: f64,
    /// By the radio while it heard a frame.
    pub receive: f64,
    /// By the radio while it sent.
    pub transmit: f64,
    /// By the work of the stack.
    pub processing: f64,
}
