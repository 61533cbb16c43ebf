//! The file of a base station: two interfaces, the stages between them, and who may look at it.

use core::net::SocketAddr;

use lasthop_proto::agent::SnoopConfig;
use lasthop_proto::units::Bytes;

use super::path;
use super::transfer::Directions;
use crate::document::{Node, Table};
use crate::error::{Code, Diagnostic, Error, Place, Warning};
use crate::live::LivePath;
use crate::model::Stage;
use crate::read::{Reader, read};
use crate::schema;

/// Longest name of an interface (IFNAMSIZ without the end).
const IFNAME: usize = 15;
/// Longest path of a socket (sun_path without the end).
const SUN_PATH: usize = 107;

/// What a station's file asks for.
#[derive(Clone, Debug)]
pub struct StationFile {
    /// The interface on the wired side.
    pub left: String,
    /// The interface on the wireless side.
    pub right: String,
    /// Seed of all random draws.
    pub seed: u64,
    /// The stages between the interfaces, as they can be changed while they run.
    pub path: LivePath,
    /// Where to listen for `lasthop ctl`, if the file says so.
    pub socket: Option<String>,
    /// Where to answer Prometheus, if at all.
    pub metrics: Option<SocketAddr>,
    /// What to capture, if anything.
    pub capture: Option<Captures>,
    /// What it may take.
    pub limits: Limits,
}

/// Captures of a station: a bounded number of files of bounded size.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Captures {
    /// Directory.
    pub dir: String,
    /// Bytes kept of each packet's body.
    pub payload: u32,
    /// Size of all files of one generation together; then the next begins.
    pub file_size: Bytes,
    /// Generations kept.
    pub files: u32,
}

/// What a station may take, whoever asks for more.
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

/// Builds what the document of a station's file asks for.
pub(crate) fn station(document: Table) -> Result<(StationFile, Vec<Warning>), Error> {
    let file = Reader::top(&document, "station's file", schema::STATION)?;
    let left = interface(&file, "left", "\"eth0\"")?;
    let right = interface(&file, "right", "\"wlan0\"")?;
    if left == right {
        return Err(Diagnostic::new(Code::BadValue, "right", &file.place("right"))
            .message(format!("`{right}` is on both sides"))
            .label("the same interface twice")
            .help("a station stands between two interfaces: `left` to the wired side, `right` to the wireless")
            .into());
    }
    let seed = file.within("seed", 1_u64, 0..=i64::MAX as u64)?;
    let limits = limits(&file)?;
    let (stages, warnings) = stages(&document)?;
    let (socket, metrics, capture) = (socket(&file)?, metrics(&file)?, captures(&file)?);
    let path = LivePath::of_station(document, stages);
    let station = StationFile { left, right, seed, path, socket, metrics, capture, limits };
    Ok((station, warnings))
}

/// The stages of a station's document, checked against its limits.
pub(crate) fn stages(document: &Table) -> Result<(Vec<Stage>, Vec<Warning>), Error> {
    let file = Reader::top(document, "station's file", schema::STATION)?;
    let mut notes = Vec::new();
    // The wired side is on the left, so what `errors-data` means travels to the right.
    let stages = path::read(&file, Directions { right: true, left: false }, &mut notes)?;
    within_limits(&file, limits(&file)?)?;
    Ok((stages, notes.into_iter().map(|note| note.warning).collect()))
}

pub(super) fn interface(file: &Reader<'_>, key: &str, example: &str) -> Result<String, Error> {
    if !file.has(key) {
        return Err(file.missing(key, "the name of a network interface", example));
    }
    let name: String = file.required(key)?;
    let fits = (1..=IFNAME).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_graphic() && !matches!(b, b'/' | b':'));
    if fits {
        return Ok(name);
    }
    Err(Diagnostic::new(Code::BadName, key, &file.place(key))
        .message(format!("`{name}` cannot be the name of an interface"))
        .label("not a name")
        .help(format!("a name has 1 to {IFNAME} letters, for example `{key} = {example}`; `ip link` lists them"))
        .into())
}

/// A table that may be left out.
fn table<'t>(file: &Reader<'t>, key: &str, keys: &[&str]) -> Result<Option<Reader<'t>>, Error> {
    file.node(key).map(|node| Reader::open(node, key, keys)).transpose()
}

pub(super) fn socket(file: &Reader<'_>) -> Result<Option<String>, Error> {
    let Some(control) = table(file, "control", schema::CONTROL)? else { return Ok(None) };
    let Some(socket) = control.optional::<String>("socket")? else { return Ok(None) };
    if socket.starts_with('/') && socket.len() <= SUN_PATH && !socket.contains('\0') {
        return Ok(Some(socket));
    }
    Err(Diagnostic::new(Code::BadValue, "control.socket", &control.place("socket"))
        .message(format!("`{socket}` cannot be the path of a socket"))
        .label("not a path")
        .help(format!(
            "an absolute path of at most {SUN_PATH} bytes, for example \
             `socket = \"/run/lasthop/station.sock\"`"
        ))
        .into())
}

pub(super) fn metrics(file: &Reader<'_>) -> Result<Option<SocketAddr>, Error> {
    let Some(metrics) = table(file, "metrics", schema::METRICS)? else { return Ok(None) };
    let example = "\"127.0.0.1:9464\"";
    if !metrics.has("listen") {
        return Err(metrics.missing("listen", "an address of this machine and a port", example));
    }
    let word: String = metrics.required("listen")?;
    let trouble = |message: String, label: &str, help: String| {
        Diagnostic::new(Code::BadValue, "metrics.listen", &metrics.place("listen"))
            .message(message)
            .label(label)
            .help(help)
    };
    match word.parse::<SocketAddr>() {
        Ok(address) if address.ip().is_loopback() => Ok(Some(address)),
        Ok(address) => Err(trouble(
            format!("`{}` can be reached from outside", address.ip()),
            "not a loopback address",
            format!(
                "the figures are for this machine only, since nobody is asked who they are: \
                 `listen = {example}`; let a proxy with access control pass them on"
            ),
        )
        .into()),
        Err(_) => Err(trouble(
            format!("`{word}` is not an address with a port"),
            "expected ADDRESS:PORT",
            format!("for example `listen = {example}` or `listen = \"[::1]:9464\"`"),
        )
        .into()),
    }
}

fn captures(file: &Reader<'_>) -> Result<Option<Captures>, Error> {
    let Some(capture) = table(file, "capture", schema::CAPTURE)? else { return Ok(None) };
    let dir: String = capture.required("dir")?;
    if dir.is_empty() || dir.contains('\0') {
        return Err(capture.missing("dir", "a directory", "\"/var/log/lasthop\""));
    }
    Ok(Some(Captures {
        dir,
        payload: capture.within("payload", 0_u64, 0..=65_535)? as u32,
        file_size: capture.within("file-size", Bytes(64 << 20), Bytes(1 << 16)..=Bytes(1 << 40))?,
        files: capture.within("files", 4_u64, 1..=10_000)? as u32,
    }))
}

fn limits(file: &Reader<'_>) -> Result<Limits, Error> {
    let base = Limits::default();
    let Some(limits) = table(file, "limits", schema::LIMITS)? else { return Ok(base) };
    Ok(Limits {
        flows: limits.within("flows", base.flows as u64, 1..=1_000_000)? as usize,
        cache: limits.within("cache", base.cache, Bytes(1500)..=Bytes(1 << 40))?,
    })
}

/// Whether the agents keep within the limits. Their options are looked at by key, so that it holds for every agent.
fn within_limits(file: &Reader<'_>, limits: Limits) -> Result<(), Error> {
    let default = SnoopConfig::west97();
    let mut caches = 0_u64;
    let items = file.node("path").and_then(Node::as_array).unwrap_or_default();
    for (i, item) in items.iter().enumerate() {
        let Some(stage) = item.as_table() else { continue };
        let Some(agent) = stage.get("agent").filter(|node| node.as_str() != Some("none")) else {
            continue;
        };
        let place = |key: &str| stage.get(key).map_or(&agent.at, |node| &node.at);
        let path = |key: &str| format!("path.{}.{key}", i + 1);
        let flows = match stage.get("flows") {
            Some(node) => read::<u64>(node, &path("flows"), "flows")?,
            None => default.flows as u64,
        };
        if flows > limits.flows as u64 {
            let help =
                format!("`[limits]` allows {}: lower `flows` or raise the limit", limits.flows);
            return Err(beyond(
                &path("flows"),
                place("flows"),
                format!("the agent watches up to {flows} flows"),
                help,
            ));
        }
        let cache = match stage.get("cache") {
            Some(node) => read::<Bytes>(node, &path("cache"), "cache")?,
            None => default.cache,
        };
        caches = caches.saturating_add(cache.0);
        if caches > limits.cache.0 {
            let help = format!(
                "`[limits]` allows {} for all agents together: lower `cache` or raise the limit",
                limits.cache
            );
            return Err(beyond(
                &path("cache"),
                place("cache"),
                format!("the agents cache up to {}", Bytes(caches)),
                help,
            ));
        }
    }
    Ok(())
}

fn beyond(key: &str, at: &Place, message: String, help: String) -> Error {
    Diagnostic::new(Code::OutOfRange, key, at)
        .message(message)
        .label("beyond the limits")
        .help(help)
        .into()
}
