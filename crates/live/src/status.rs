//! Status of a station or a tunnel, for the control socket and for Prometheus.

use std::collections::BTreeMap;

use lasthop_observe::subscribers::Overview;
use lasthop_path::StageCount;
use serde::{Deserialize, Serialize};

use crate::counters::Happened;
use crate::plane::PlaneCounts;
use crate::recorder::RecorderStatus;
use crate::station::PortCounts;

/// Status of a running station.
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
    /// Run time, nanoseconds.
    pub uptime_ns: u64,
    /// The interfaces.
    pub ports: Vec<PortStatus>,
    /// The stages from left to right, with the ends of the path.
    pub stages: Vec<StageStatus>,
    /// The captures, if any.
    pub capture: Option<RecorderStatus>,
    /// Status of the kernel's data plane; `None` with packet sockets.
    #[serde(default)]
    pub plane: Option<PlaneStatus>,
    /// The view of subscribers; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscribers: Option<Overview>,
}

/// The kernel as data plane.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PlaneStatus {
    /// The packets that the station inspects: `nothing`, `heads`, `duplicates` or `everything`.
    pub shows: String,
    /// Counters of the data plane.
    #[serde(flatten)]
    pub counts: PlaneCounts,
}

/// Status of an interface.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PortStatus {
    /// Its name.
    pub name: String,
    /// `left` or `right`.
    pub side: String,
    /// Frame counters.
    #[serde(flatten)]
    pub counts: PortCounts,
}

/// Status of a stage.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StageStatus {
    /// Its name; `left` and `right` are the networks beyond the interfaces.
    pub name: String,
    /// `host`, `agent`, `link`, `radio` or `cross`.
    pub kind: String,
    /// Its configuration with defaults; null for hosts.
    pub config: serde_json::Value,
    /// Number of current flows or connections.
    pub flows: Option<usize>,
    /// Size of an agent's state with cached packets, bytes.
    pub state_bytes: Option<usize>,
    /// Maximum of `state_bytes` so far.
    pub peak_state_bytes: Option<usize>,
    /// Packet counters.
    pub packets: StageCount,
    /// Event counters.
    #[serde(flatten)]
    pub happened: Happened,
}

/// Counts by name.
pub type Counts = BTreeMap<String, u64>;

/// Status of a running tunnel.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct TunnelStatus {
    /// Version of the program.
    pub version: String,
    /// Name of the tunnel.
    pub name: String,
    /// Name of its interface.
    pub tun: String,
    /// Whether it has a key. Without one the tunnel has neither secrecy nor authentication.
    pub keyed: bool,
    /// `idle`, `calling`, `confirming`, `up` or `closed`.
    pub state: String,
    /// Address of the peer, while the session is up.
    pub peer: Option<String>,
    /// Window in packets, while the session is up.
    pub window: Option<u16>,
    /// Inner MTU, bytes.
    pub mtu: u16,
    /// Round-trip time of the handshake in microseconds, while the session is up.
    pub rtt_us: Option<u64>,
    /// Number of queued packets.
    pub waiting: usize,
    /// Run time, nanoseconds.
    pub uptime_ns: u64,
    /// Packet and frame counters.
    pub packets: Counts,
    /// Session counters, with dropped datagrams by reason.
    pub session: Counts,
    /// Retransmitted packets by cause.
    pub repeated: Counts,
    /// Notes of the link layer.
    pub notes: Counts,
    /// Datagrams and packets that the system refused, by reason.
    pub refused: Counts,
}
