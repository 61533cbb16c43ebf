//! Hosts and their TCP: a preset, and the keys that change it.

use lasthop_proto::energy::Hardware;
use lasthop_proto::link::LineConfig;
use lasthop_proto::tcp::TcpConfig;
use lasthop_proto::wire::Addr;

use super::kernel;
use crate::document::Node;
use crate::error::{Code, Diagnostic, Error, Location};
use crate::model::{HostSide, Stack};
use crate::parts::host::keys;
use crate::read::{Reader, check_name};
use crate::reading::take;
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
            check_name(&entry.key, &path, &entry.key_at)?;
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
