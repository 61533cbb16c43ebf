//! Hosts and their TCP: a preset, and the keys that change it.

use std::net::IpAddr;

use lasthop_proto::describe::{Form, Keys, Need, Value};
use lasthop_proto::energy::Hardware;
use lasthop_proto::link::LineConfig;
use lasthop_proto::tcp::TcpConfig;
use lasthop_proto::wire::Addr;

use super::{kernel, named, path};
use crate::document::Node;
use crate::error::{Code, Diagnostic, Error, Location};
use crate::keys::take;
use crate::model::{HostSide, Stack};
use crate::read::Reader;
use crate::schema;

/// Maximum number of hosts of a scenario.
const MAX_HOSTS: usize = 1000;

/// A host in the file; its side may be undetermined.
pub(super) struct HostSpec {
    pub name: String,
    pub at: Location,
    pub side: Option<HostSide>,
    pub addr: Option<(Addr, Location)>,
    pub tcp: TcpConfig,
    pub access: Option<(LineConfig, Location)>,
    pub battery: Option<(Hardware, Location)>,
    pub stack: Stack,
    /// Reason why the kernel cannot be its TCP in the testbed, if any.
    pub refused: Option<Error>,
    /// Keys without a setting of the kernel in the testbed.
    pub not_applied: Vec<Diagnostic>,
}

/// All hosts, in the order of the file.
pub(super) fn read(file: &Reader<'_>) -> Result<Vec<HostSpec>, Error> {
    let Some(node) = file.node("host") else { return Err(no_hosts(file)) };
    let Some(table) = node.as_table() else {
        return Err(Diagnostic::new(Code::BadValue, "host", &node.at)
            .message(format!("`host` is {}, not a table of hosts", node.kind()))
            .label("expected tables")
            .help("each host has its own table: `[host.fixed]`")
            .into());
    };
    let entries = &table.entries;
    if entries.is_empty() {
        return Err(no_hosts(file));
    }
    if entries.len() > MAX_HOSTS {
        return Err(file.out_of_range("host", "a scenario has at most 1000 hosts"));
    }
    entries
        .iter()
        .map(|entry| {
            let path = format!("host.{}", entry.key);
            named(&entry.key, &path, &entry.key_at)?;
            host(&entry.key, &entry.key_at, &entry.node, &path)
        })
        .collect()
}

fn no_hosts(file: &Reader<'_>) -> Error {
    Diagnostic::new(Code::MissingKey, "host", file.at())
        .message("the scenario has no hosts")
        .label("`[host.NAME]` is missing")
        .help(
            "write one table for each host: `[host.fixed]` and `[host.mobile]`; they may be empty",
        )
        .into()
}

/// Values of the keys of a host's table.
#[derive(Debug)]
pub(crate) struct HostValues {
    side: Option<HostSide>,
    addr: Option<Addr>,
    stack: Stack,
    pub(super) tcp: TcpConfig,
    access: Option<LineConfig>,
    battery: Option<Hardware>,
}

/// Visits the keys of a host.
pub(crate) fn keys(k: &mut Keys<'_>) -> HostValues {
    let sides = [("left", HostSide::Left), ("right", HostSide::Right)];
    let side = k.maybe_word("side", &sides, "its end of the path: wired or wireless");
    let need = Need::Else("one is chosen");
    let addr = match k.value("addr", Form::Text("\"10.0.0.1\""), need, Value::Absent, "its address")
    {
        Value::Text(text) => match text.parse::<IpAddr>() {
            Ok(ip) => Some(Addr::from(ip)),
            Err(_) => {
                let message = format!("`{}`: `{text}` is no IP address", k.path("addr"));
                let help = "for example `addr = \"10.0.0.1\"` or `addr = \"fd00::1\"`; without it one is chosen";
                k.refuse("addr", message, "expected an address", help);
                None
            }
        },
        _ => None,
    };
    let tcp = TcpConfig::keys(k);
    let kernels = KERNELS.map(|(word, _)| (word, word));
    let description =
        "the setup of its kernel in the testbed; by default the one nearest to the preset";
    let kernel = k.maybe_word("kernel", &kernels, description);
    // The caller finds the kernel closest to the preset, since it has the keys of the file.
    let kernel = Stack::Kernel { preset: kernel.unwrap_or(""), settings: Vec::new() };
    let mut stack = kernel.clone();
    let stacks = [("kernel", kernel), ("lasthop", Stack::Lasthop)];
    k.word("stack", &mut stack, &stacks, "its TCP in the testbed: the kernel's, or lasthop's");
    let description =
        "its own link to the path, in both directions: other hosts have other round trips";
    let mut access = None;
    k.table("access", description, |k| access = Some(path::access(k)));
    let access = access.filter(|_| k.has("access"));
    HostValues { side, addr, stack, tcp, access, battery: Hardware::keys(k) }
}

/// The values of `kernel`: presets of a host's kernel in the testbed.
pub const KERNELS: [(&str, &str); 4] = [
    (
        "linux-1997",
        "the kernel's Reno without SACK, timestamps, scaling or probes, 1 s minimum RTO",
    ),
    ("linux-reno", "today's kernel with Reno"),
    ("linux-cubic", "today's kernel with CUBIC, its default"),
    ("linux-bbr", "today's kernel with BBR"),
];

fn host(name: &str, at: &Location, node: &Node, path: &str) -> Result<HostSpec, Error> {
    let reader = Reader::open(node, path, schema::keys("host"))?;
    let (values, _) = take(&reader, keys)?;
    let placed = |key| reader.location(key);
    let (stack, settings) = match values.stack {
        Stack::Kernel { preset, .. } => {
            let preset = if preset.is_empty() { nearest_kernel_preset(&reader) } else { preset };
            let mut found = kernel::settings(&reader, &values);
            let settings = core::mem::take(&mut found.applied);
            (Stack::Kernel { preset, settings }, found)
        }
        Stack::Lasthop => (Stack::Lasthop, kernel::Settings::default()),
    };
    Ok(HostSpec {
        name: name.to_owned(),
        at: at.clone(),
        side: values.side,
        addr: values.addr.map(|addr| (addr, placed("addr"))),
        tcp: values.tcp,
        access: values.access.map(|access| (access, placed("access"))),
        battery: values.battery.map(|battery| (battery, placed("battery"))),
        stack,
        refused: settings.refused,
        not_applied: settings.warnings,
    })
}

/// On a path with cells, hosts have no access links.
pub(super) fn none_with_access(specs: &[HostSpec]) -> Result<(), Error> {
    let Some((spec, at)) = specs.iter().find_map(|s| Some((s, &s.access.as_ref()?.1))) else {
        return Ok(());
    };
    let key = format!("host.{}.access", spec.name);
    Err(Diagnostic::new(Code::BadValue, &key, at)
        .message(format!("`{key}` in a scenario with cells"))
        .label("not together")
        .help("leave out `access`, and write the links into the `path` of the cells or before them")
        .into())
}

/// The kernel configuration closest to a host's TCP.
fn nearest_kernel_preset(reader: &Reader<'_>) -> &'static str {
    let word = |key: &str| reader.node(key).and_then(Node::as_str);
    match word("preset").unwrap_or("linux") {
        "linux" if word("tcp") == Some("bbr") => "linux-bbr",
        "linux" if word("tcp") == Some("rack") => "linux-reno",
        "freebsd-2.1" | "ns" | "bakshi96" => "linux-1997",
        "linux" => "linux-cubic",
        _ => "linux-reno",
    }
}

/// Names of all hosts, for suggestions.
pub(super) fn names(specs: &[HostSpec]) -> Vec<&str> {
    specs.iter().map(|spec| spec.name.as_str()).collect()
}
