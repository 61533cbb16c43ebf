//! The keys of stations.

use core::net::SocketAddr;

use lasthop_proto::describe::{Form, Keys, Need, Value};
use lasthop_proto::units::{Bytes, Span};

/// Longest name of an interface (IFNAMSIZ without the end).
const IFNAME: usize = 15;

/// Longest path of a socket (sun_path without the end).
const SUN_PATH: usize = 107;

/// The data plane between the interfaces of a station.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PlaneChoice {
    /// The kernel if rights and the system allow it and the path does not need every packet, else packet
    /// sockets.
    #[default]
    Auto,
    /// The kernel only; otherwise the station does not start.
    Kernel,
    /// Packet sockets of the station.
    Sockets,
}

/// Captures of a station: a bounded number of files of bounded size.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Captures {
    /// Directory.
    pub dir: String,
    /// Bytes stored of each packet's body.
    pub payload: u32,
    /// Total size of all files of one generation, after which the next begins.
    pub file_size: Bytes,
    /// Number of generations of files.
    pub files: u32,
}

/// The view of subscribers of a station.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SubscriberConfig {
    /// Leading bits of an IPv4 address that identify a subscriber.
    pub prefix4: u8,
    /// Leading bits of an IPv6 address that identify a subscriber.
    pub prefix6: u8,
    /// Limit of subscribers.
    pub most: usize,
    /// Limit of their connections.
    pub flows: usize,
    /// Number of subscribers in the metrics.
    pub metrics: usize,
}

impl Default for SubscriberConfig {
    fn default() -> SubscriberConfig {
        SubscriberConfig { prefix4: 32, prefix6: 64, most: 20_000, flows: 65_536, metrics: 100 }
    }
}

/// Upper limits of a station, for its file and for `lasthop ctl set`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Connections followed at each end, and flows of an agent.
    pub flows: usize,
    /// Caches of all agents together.
    pub cache: Bytes,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { flows: 4096, cache: Bytes(64 << 20) }
    }
}

/// The settings of a station's file, without its path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StationSettings {
    /// The interface on the wired side.
    pub left: String,
    /// The interface on the wireless side.
    pub right: String,
    /// Seed of all random draws.
    pub seed: u64,
    /// The control socket of `lasthop ctl`, if the file has one.
    pub socket: Option<String>,
    /// Address for Prometheus, if any.
    pub metrics: Option<SocketAddr>,
    /// Captures, if any.
    pub capture: Option<Captures>,
    /// The view of subscribers, if any.
    pub subscribers: Option<SubscriberConfig>,
    /// Limits of connections and memory.
    pub limits: Limits,
    /// The data plane.
    pub plane: PlaneChoice,
    /// Whether the kernel continues to forward after a clean stop.
    pub forward_after_stop: bool,
    /// Time limit for the connections that end at the station to finish before a stop.
    pub drain: Span,
}

/// Values of the keys that files of stations and tunnels share.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Shared {
    /// Address for `lasthop ctl`.
    pub socket: Option<String>,
    /// Address for Prometheus.
    pub metrics: Option<SocketAddr>,
}

/// Visits the keys of a station.
pub(crate) fn keys(k: &mut Keys<'_>) -> StationSettings {
    let left = interface(k, "left", Need::Required("\"eth0\""), "the interface on the wired side");
    let right =
        interface(k, "right", Need::Required("\"wlan0\""), "the interface on the wireless side");
    if left == right && k.has("right") {
        let help =
            "a station connects two interfaces: `left` to the wired side, `right` to the wireless";
        k.refuse("right", format!("`{right}` is on both sides"), "the same interface twice", help);
    }
    let mut seed = 1_u64;
    k.count("seed", &mut seed, 0..=i64::MAX as u64, "the seed of all random draws");
    let mut plane = PlaneChoice::Auto;
    let planes = [
        ("auto", PlaneChoice::Auto),
        ("kernel", PlaneChoice::Kernel),
        ("sockets", PlaneChoice::Sockets),
    ];
    let description = "the forwarding plane: the kernel, which passes to the station what its agent needs, or packet sockets";
    k.word("plane", &mut plane, &planes, description);
    let mut forward_after_stop = false;
    let description = "whether the kernel continues to forward after the station has stopped";
    k.flag("forward-after-stop", &mut forward_after_stop, description);
    let mut drain = Span::ZERO;
    let description = "the time that connections which end at the station get to finish before a stop; the rest is reset";
    k.within("drain", &mut drain, Span::ZERO..=Span::secs(60), description);
    let limits = limits(k);
    let Shared { socket, metrics } = shared(k);
    StationSettings {
        left,
        right,
        seed,
        limits,
        socket,
        metrics,
        capture: captures(k),
        subscribers: subscribers(k),
        plane,
        forward_after_stop,
        drain,
    }
}

/// A key with the name of an interface.
pub(crate) fn interface(
    k: &mut Keys<'_>,
    key: &'static str,
    need: Need,
    description: &'static str,
) -> String {
    let example = if let Need::Required(example) = need { example } else { "\"lasthop0\"" };
    let Value::Text(name) = k.value(key, Form::Text(example), need, Value::Absent, description)
    else {
        return String::new();
    };
    let fits = (1..=IFNAME).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_graphic() && !matches!(b, b'/' | b':'));
    if !fits {
        let message = format!("`{name}` cannot be the name of an interface");
        let help = format!(
            "a name has 1 to {IFNAME} letters, for example `{key} = {example}`; `ip link` lists them"
        );
        k.refuse(key, message, "not a name", help);
    }
    name
}

/// Visits the keys that stations and tunnels share.
pub(crate) fn shared(k: &mut Keys<'_>) -> Shared {
    let mut shared = Shared::default();
    k.table("control", "control at run time", |k| {
        const EXAMPLE: &str = "\"/run/lasthop/station.sock\"";
        let need = Need::Else("a socket in the system's directory");
        let description = "the path of the socket for `lasthop ctl`";
        let Value::Text(socket) =
            k.value("socket", Form::Text(EXAMPLE), need, Value::Absent, description)
        else {
            return;
        };
        if !(socket.starts_with('/') && socket.len() <= SUN_PATH && !socket.contains('\0')) {
            let message = format!("`{socket}` cannot be the path of a socket");
            let help = format!(
                "an absolute path of at most {SUN_PATH} bytes, for example `socket = {EXAMPLE}`"
            );
            k.refuse("socket", message, "not a path", help);
        }
        shared.socket = Some(socket);
    });
    k.table("metrics", "metrics for Prometheus", |k| shared.metrics = metrics(k));
    shared
}

fn metrics(k: &mut Keys<'_>) -> Option<SocketAddr> {
    const EXAMPLE: &str = "\"127.0.0.1:9464\"";
    let description = "an address of this machine and a port";
    let need = Need::Required(EXAMPLE);
    let Value::Text(word) =
        k.value("listen", Form::Text(EXAMPLE), need, Value::Absent, description)
    else {
        return None;
    };
    match word.parse::<SocketAddr>() {
        Ok(address) if address.ip().is_loopback() => return Some(address),
        Ok(address) => k.refuse(
            "listen",
            format!("`{}` can be reached from outside", address.ip()),
            "not a loopback address",
            format!(
                "the metrics have no access control, so they are for this machine only: `listen = {EXAMPLE}`; for \
                 others, add a proxy with access control"
            ),
        ),
        Err(_) => k.refuse(
            "listen",
            format!("`{word}` is not an address with a port"),
            "expected ADDRESS:PORT",
            format!("for example `listen = {EXAMPLE}` or `listen = \"[::1]:9464\"`"),
        ),
    }
    None
}

fn captures(k: &mut Keys<'_>) -> Option<Captures> {
    let mut captures = None;
    k.table("capture", "capture files", |k| {
        const EXAMPLE: &str = "\"/var/log/lasthop\"";
        let need = Need::Required(EXAMPLE);
        let dir = k.value("dir", Form::Text(EXAMPLE), need, Value::Absent, "a directory");
        let dir = if let Value::Text(dir) = dir { dir } else { String::new() };
        if k.has("dir") && (dir.is_empty() || dir.contains('\0')) {
            k.missing("dir", "a directory", EXAMPLE);
        }
        let mut c = Captures { dir, payload: 0, file_size: Bytes(64 << 20), files: 4 };
        k.count("payload", &mut c.payload, 0..=65_535, "bytes stored of each packet's body");
        let sizes = Bytes(1 << 16)..=Bytes(1 << 40);
        let description = "the total size of the files of a generation; then the next one begins";
        k.within("file-size", &mut c.file_size, sizes, description);
        k.count("files", &mut c.files, 1..=10_000, "generations of files that are stored");
        captures = Some(c);
    });
    captures.filter(|_| k.has("capture"))
}

fn subscribers(k: &mut Keys<'_>) -> Option<SubscriberConfig> {
    let mut config = SubscriberConfig::default();
    k.table("subscribers", "statistics of each subscriber; off without this table", |k| {
        let description = "leading bits of an IPv4 address that identify a subscriber";
        k.count("prefix4", &mut config.prefix4, 1..=32, description);
        let description = "leading bits of an IPv6 address that identify a subscriber";
        k.count("prefix6", &mut config.prefix6, 1..=128, description);
        let description = "subscribers at once; the least recently seen is removed first";
        k.count("most", &mut config.most, 1..=1_000_000, description);
        let description = "connections at once; the least recently used is removed first";
        k.count("flows", &mut config.flows, 1..=1_000_000, description);
        let description = "subscribers with series in the metrics: those with the largest goodput";
        k.count("metrics", &mut config.metrics, 0..=10_000, description);
    });
    k.has("subscribers").then_some(config)
}

fn limits(k: &mut Keys<'_>) -> Limits {
    let mut limits = Limits::default();
    k.table("limits", "limits of the memory that agents use", |k| {
        let description = "tracked connections at each end, and flows of an agent";
        k.count("flows", &mut limits.flows, 1..=1_000_000, description);
        let sizes = Bytes(1500)..=Bytes(1 << 40);
        k.within("cache", &mut limits.cache, sizes, "the caches of all agents together");
    });
    limits
}
