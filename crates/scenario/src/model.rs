//! A scenario after validation: complete input for a world, without references to resolve.

use lasthop_proto::agent::AgentConfig;
pub use lasthop_proto::channel::ErrorSpec;
use lasthop_proto::energy::Hardware;
use lasthop_proto::hop::HopConfig;
pub use lasthop_proto::link::CrossTraffic;
use lasthop_proto::link::tc::{EmulatorConfig, PoliceConfig, TbfConfig};
pub use lasthop_proto::link::varied::Varying;
use lasthop_proto::link::{LineConfig, RadioConfig, SerialConfig, VariedConfig};
use lasthop_proto::mac::HalfDuplexHops;
use lasthop_proto::tcp::TcpConfig;
pub use lasthop_proto::tcp::page::Page;
pub use lasthop_proto::tcp::traffic::{Answers, Exchange, OnOff, Periods, Sizes, Web};
pub use lasthop_proto::tcp::video::Video;
pub use lasthop_proto::udp::Udp;
use lasthop_proto::units::{Bytes, Span};
use lasthop_proto::wire::Addr;
use serde::Serialize;

pub use crate::quic::{Quic, QuicCongestion};
use crate::roaming::Roaming;

/// An experiment: hosts at both ends of a path, their transfers, and the number of runs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Scenario {
    /// Name, for tables and file names.
    pub name: String,
    /// World of the runs.
    pub world: World,
    /// Number of runs; run `i` has seed `first_seed + i`.
    pub runs: u32,
    /// Seed of the first run.
    pub first_seed: u64,
    /// Maximum duration of a run; the result records that it was cut off.
    pub horizon: Span,
    /// Hosts, in the order of the file.
    pub hosts: Vec<Host>,
    /// All transfers.
    pub transfers: Vec<Transfer>,
    /// The path from left to right, without the hosts; with cells its wired part.
    pub path: Vec<Stage>,
    /// The cells behind it, if hosts move.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roaming: Option<Box<Roaming>>,
}

impl Scenario {
    /// The stages from the left hosts to those in cell number `cell`; without cells the path.
    pub fn line(&self, cell: usize) -> impl DoubleEndedIterator<Item = &Stage> {
        let cell = self.roaming.as_ref().and_then(|roaming| roaming.cells.get(cell));
        self.path.iter().chain(cell.into_iter().flat_map(|cell| &cell.path))
    }

    /// Number of such lines: one, or one for each cell.
    pub fn lines(&self) -> usize {
        self.roaming.as_ref().map_or(1, |roaming| roaming.cells.len())
    }
}

impl Scenario {
    /// Whether host number `host` uses QUIC, which excludes TCP.
    pub fn speaks_quic(&self, host: usize) -> bool {
        self.transfers.iter().any(|t| t.quic.is_some() && (t.from == host || t.to == host))
    }

    /// The transfers of requests and responses, pages and videos among them.
    pub fn exchanges(&self) -> impl Iterator<Item = &Transfer> {
        self.transfers.iter().filter(|transfer| transfer.traffic.answers().is_some())
    }
}

impl Scenario {
    /// The transfers of datagrams.
    pub fn datagrams(&self) -> impl Iterator<Item = (&Transfer, Udp)> {
        self.transfers.iter().filter_map(|transfer| match transfer.traffic {
            Traffic::Udp(udp) => Some((transfer, udp)),
            _ => None,
        })
    }
}

/// World in which a scenario is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum World {
    /// The simulator: every machine is ours, time jumps.
    Sim,
    /// Real packets between network namespaces of this machine, in real time.
    Testbed,
}

/// TCP implementation of a host in the testbed. In the simulator it is always ours.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase", tag = "stack")]
pub enum Stack {
    /// Ours, on real packets.
    Lasthop,
    /// The kernel's.
    Kernel {
        /// Its configuration; one of [`crate::KERNELS`].
        preset: &'static str,
        /// Changes of the preset by the host's keys.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        settings: Vec<KernelSetting>,
    },
}

/// A setting of a host's kernel, by a key of the host.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct KernelSetting {
    /// Its place of application: a sysctl, a route, or the congestion control.
    pub knob: KernelKnob,
    /// The name of the sysctl below `net.ipv4`, or of the route's attribute.
    pub key: &'static str,
    /// Its value, as it is written there.
    pub value: String,
}

/// Where a kernel setting is applied.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum KernelKnob {
    /// A sysctl of the host's network namespace.
    Sysctl,
    /// An attribute of its default routes.
    Route,
    /// The congestion control, which needs a module of the kernel.
    Congestion,
}

/// End of the path of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HostSide {
    /// The wired end.
    Left,
    /// The wireless end.
    Right,
}

/// A host.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Host {
    /// Name in the scenario.
    pub name: String,
    /// Its end of the path.
    pub side: HostSide,
    /// Its address; shown in captures.
    #[serde(serialize_with = "display")]
    pub addr: Addr,
    /// Its TCP, if that is ours.
    pub tcp: TcpConfig,
    /// Its own link to the path, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<LineConfig>,
    /// Its hardware, if it runs on a battery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub battery: Option<Hardware>,
    /// Its TCP implementation in the testbed.
    #[serde(skip)]
    pub stack: Stack,
}

/// Transfers from one host to another.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Transfer {
    /// Index of the sending host in [`Scenario::hosts`].
    pub from: usize,
    /// Index of the receiving host, at the other end.
    pub to: usize,
    /// Size; `None` sends until the transfer is stopped, or until the horizon.
    pub bytes: Option<Bytes>,
    /// Start time.
    pub start: Span,
    /// Number of such transfers that start together, each on its own connection.
    pub count: u32,
    /// Time after which no new data is sent; data in flight still arrives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<Span>,
    /// Its application.
    #[serde(skip_serializing_if = "Traffic::is_bulk")]
    pub traffic: Traffic,
    /// Whether it is cross traffic, which is measured separately.
    #[serde(skip_serializing_if = "is_false")]
    pub cross: bool,
    /// QUIC settings; `None` is TCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quic: Option<Quic>,
}

impl Transfer {
    /// Connections that exist from the start.
    pub fn connections(&self) -> u32 {
        match self.traffic {
            Traffic::Bulk | Traffic::OnOff(_) => self.count,
            _ => 0,
        }
    }

    /// Whether it ends by itself.
    pub fn ends(&self) -> bool {
        let is_limited = match self.traffic {
            Traffic::Exchange(exchange) => exchange.exchanges.is_some(),
            Traffic::Page(page) => page.pages.is_some(),
            Traffic::Video(_) => true,
            _ => false,
        };
        is_limited || self.stop.is_some() || self.bytes.is_some()
    }
}

/// The application of a transfer.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Traffic {
    /// Sends as fast as TCP permits.
    Bulk,
    /// Like bulk, with pauses.
    OnOff(OnOff),
    /// Consecutive short transfers.
    Web(Web),
    /// Requests of clients and responses of the other end.
    Exchange(Exchange),
    /// Web pages that clients load from the other end.
    Page(Page),
    /// A video that clients play from the other end.
    Video(Video),
    /// Datagrams without retransmission.
    Udp(Udp),
}

impl Traffic {
    /// Responses of the other end, if this end sends requests.
    pub fn answers(&self) -> Option<Answers> {
        match self {
            Traffic::Exchange(exchange) => Some(Answers::Constant(*exchange)),
            Traffic::Page(page) => Some(Answers::Requested(page.request)),
            Traffic::Video(video) => Some(Answers::Requested(video.request)),
            _ => None,
        }
    }

    fn is_bulk(&self) -> bool {
        *self == Traffic::Bulk
    }
}

/// A stage of the path.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Stage {
    /// Name, unique in the scenario: names captures and random streams.
    pub name: String,
    /// Its kind, with the configuration.
    pub kind: StageKind,
}

/// The kind of a stage.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "lowercase", tag = "stage")]
#[expect(clippy::large_enum_variant, reason = "a path has few stages")]
pub enum StageKind {
    /// A full-duplex line.
    Link(LineConfig),
    /// A line that compresses headers or loses frames.
    Serial(SerialConfig),
    /// A line that varies over time.
    Varied(Box<VariedConfig>),
    /// A base-station agent; the wireless side is on its right.
    Agent(AgentConfig),
    /// A radio hop.
    Radio(RadioStage),
    /// Losses by cross traffic in a router.
    Cross(CrossTraffic),
    /// A link that models netem.
    Netem(Box<EmulatorConfig>),
    /// A token bucket filter.
    Tbf(TbfConfig),
    /// A policer.
    Police(PoliceConfig),
}

impl StageKind {
    /// The line, if this is one of any kind.
    pub fn line(&self) -> Option<&LineConfig> {
        match self {
            StageKind::Link(line) => Some(line),
            StageKind::Serial(serial) => Some(&serial.line),
            StageKind::Varied(varied) => Some(&varied.line),
            StageKind::Netem(netem) => Some(&netem.line),
            _ => None,
        }
    }

    /// Whether it carries packets over some time: a line or a radio hop.
    pub fn is_link(&self) -> bool {
        self.line().is_some() || matches!(self, StageKind::Radio(_))
    }
}

/// A radio hop and its errors.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RadioStage {
    /// The medium.
    pub radio: RadioConfig,
    /// Errors towards the right.
    pub errors_right: Option<ErrorSpec>,
    /// Errors towards the left.
    pub errors_left: Option<ErrorSpec>,
    /// Its values that vary over time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub varying: Option<Box<Varying>>,
    /// Medium access and link layer; `None` is the plain radio, which has neither.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hop: Option<Box<HopConfig>>,
    /// Packet radio over several hops, which has neither.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hops: Option<HalfDuplexHops>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde calls")]
fn is_false(flag: &bool) -> bool {
    !flag
}

fn display<T: core::fmt::Display, S: serde::Serializer>(t: &T, s: S) -> Result<S::Ok, S::Error> {
    s.collect_str(t)
}
