//! How a station or a tunnel fares: what is told over the control socket and shown to Prometheus.

use std::collections::BTreeMap;

use lasthop_path::StageCount;
use serde::{Deserialize, Serialize};

use crate::counters::Happened;
use crate::plane::PlaneCounts;
use crate::recorder::RecorderStatus;
use crate::station::PortCounts;

/// Everything there is to know about a running station.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Status {
    /// Version of the program.
    pub version: String,
    /// `station` or `testbed`.
    pub world: String,
    /// Name of the station.
    pub name: String,
    /// Seed of all random draws.
    pub seed: u64,
    /// How long it has been running, in nanoseconds.
    pub uptime_ns: u64,
    /// The interfaces.
    pub ports: Vec<PortStatus>,
    /// The stages, left to right, the ends of the path included.
    pub stages: Vec<StageStatus>,
    /// The captures, if any.
    pub capture: Option<RecorderStatus>,
    /// What the kernel has done, if it forwards; else packet sockets do.
    #[serde(default)]
    pub plane: Option<PlaneStatus>,
}

/// The kernel as data plane.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PlaneStatus {
    /// What the station is shown: `nothing`, `heads`, `duplicates` or `everything`.
    pub shows: String,
    /// What was counted.
    #[serde(flatten)]
    pub counts: PlaneCounts,
}

/// An interface.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PortStatus {
    /// Its name.
    pub name: String,
    /// `left` or `right`.
    pub side: String,
    /// Frames.
    #[serde(flatten)]
    pub counts: PortCounts,
}

/// A stage.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StageStatus {
    /// Its name; `left` and `right` are what lies beyond the interfaces.
    pub name: String,
    /// `host`, `agent`, `link`, `radio` or `cross`.
    pub kind: String,
    /// What it was configured as, defaults included; null for hosts.
    pub config: serde_json::Value,
    /// Flows or connections that are followed now.
    pub flows: Option<usize>,
    /// Bytes of an agent's state, cached packets included.
    pub state_bytes: Option<usize>,
    /// The most that it ever was.
    pub peak_state_bytes: Option<usize>,
    /// Packets at the stage.
    pub packets: StageCount,
    /// What happened there.
    #[serde(flatten)]
    pub happened: Happened,
}

/// Counts by name.
pub type Counts = BTreeMap<String, u64>;

/// Everything there is to know about a running tunnel.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct TunnelStatus {
    /// Version of the program.
    pub version: String,
    /// Name of the tunnel.
    pub name: String,
    /// Its interface.
    pub tun: String,
    /// Whether it has a key. Without one anybody may read and speak.
    pub keyed: bool,
    /// `idle`, `calling`, `confirming`, `up` or `closed`.
    pub state: String,
    /// Where the peer is, while it is up.
    pub peer: Option<String>,
    /// Window in packets, while it is up.
    pub window: Option<u16>,
    /// Longest inner packet.
    pub mtu: u16,
    /// The round trip of the handshake in microseconds, while it is up.
    pub rtt_us: Option<u64>,
    /// Packets that wait.
    pub waiting: usize,
    /// How long it has been running, in nanoseconds.
    pub uptime_ns: u64,
    /// Packets and frames.
    pub packets: Counts,
    /// Sessions, and datagrams that were dropped, by reason.
    pub session: Counts,
    /// Packets that were sent again, by cause.
    pub repeated: Counts,
    /// What the link layer noted.
    pub notes: Counts,
    /// What the system did not take: datagrams and packets, by reason.
    pub refused: Counts,
}
