//! Transfers, and the end of the path for each host.

use lasthop_proto::units::Span;
use lasthop_proto::wire::Addr;

use super::host::{HostSpec, names};
use super::traffic::traffic;
use crate::document::{Node, Value};
use crate::error::{Code, Diagnostic, Error, Location, did_you_mean};
use crate::model::{Exchange, Host, HostSide, Traffic, Transfer};
use crate::parts::exchange::MAX_CONNECTIONS;
use crate::parts::transfer::{TransferValues, keys};
use crate::read::Reader;
use crate::reading::take;
use crate::schema;

/// A transfer and its source location.
#[derive(Clone)]
pub(super) struct TransferSpec {
    pub transfer: Transfer,
    pub at: Location,
    pub key: String,
    /// Expected number of short transfers.
    short: u64,
}

/// Directions of data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Directions {
    /// From a left host to a right one.
    pub right: bool,
    /// From a right host to a left one.
    pub left: bool,
}

/// All transfers: one table or a list of tables.
pub(super) fn read(file: &Reader<'_>, hosts: &[HostSpec]) -> Result<Vec<TransferSpec>, Error> {
    let Some(node) = file.node("transfer") else {
        let example = "{ from = \"fixed\", to = \"mobile\", bytes = \"2MB\" }";
        return Err(file.missing("transfer", "a sender, a receiver and a size", example));
    };
    let specs = match &node.value {
        Value::Array(items) if items.is_empty() => {
            return Err(Diagnostic::new(Code::BadTransfer, "transfer", &node.at)
                .message("the scenario transfers nothing")
                .label("an empty list")
                .help("for example `transfer = { from = \"fixed\", to = \"mobile\", bytes = \"2MB\" }`")
                .into());
        }
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(i, item)| transfers(file, item, format!("transfer.{}", i + 1), hosts))
            .collect::<Result<Vec<_>, _>>()?
            .concat(),
        _ => transfers(file, node, "transfer".to_owned(), hosts)?,
    };
    let mut connections = 0;
    for spec in &specs {
        connections += u64::from(spec.transfer.connections()) + spec.short;
        if connections > MAX_CONNECTIONS {
            return Err(Diagnostic::new(Code::OutOfRange, &spec.key, &spec.at)
                .message(format!("the transfers add up to more than {MAX_CONNECTIONS} connections"))
                .label("too many with this one")
                .help("lower `count` or `sessions`, or leave out transfers")
                .into());
        }
    }
    let servers = specs.iter().filter(|spec| spec.transfer.traffic.answers().is_some());
    if let Some(spec) = servers.clone().nth(Exchange::SERVERS) {
        let most = Exchange::SERVERS;
        return Err(Diagnostic::new(Code::OutOfRange, &spec.key, &spec.at)
            .message(format!("more than {most} tables of requests"))
            .label("too many with this one")
            .help("raise `count` of a table instead of repeating it")
            .into());
    }
    Ok(specs)
}

/// A table of transfers: one, or with `every` as many as begin before the end.
fn transfers(
    file: &Reader<'_>,
    node: &Node,
    key: String,
    hosts: &[HostSpec],
) -> Result<Vec<TransferSpec>, Error> {
    let reader = Reader::open(node, &key, schema::keys("transfer"))?;
    let (values, _) = take(&reader, keys)?;
    let every = values.every;
    let spec = transfer(file, &reader, values, key, hosts)?;
    let Some(every) = every.filter(|_| !matches!(spec.transfer.traffic, Traffic::Exchange(_)))
    else {
        return Ok(vec![spec]);
    };
    if spec.transfer.bytes.is_none() {
        let help = "a transfer that is repeated needs a size, for example `bytes = \"5MB\"`";
        return Err(reader.out_of_range("every", help));
    }
    let horizon = file.optional::<Span>("horizon")?;
    let Some(end) = spec.transfer.stop.into_iter().chain(horizon).min() else {
        return Err(Diagnostic::new(Code::MissingKey, "horizon", &reader.location("every"))
            .message("`every` needs a `horizon` or a `stop`")
            .label("never ends by itself")
            .help("write at the top of the file when a run ends, for example `horizon = \"600s\"`, or here \
                   when it stops: `stop = \"600s\"`")
            .into());
    };
    let times = end.0.saturating_sub(spec.transfer.start.0).div_ceil(every.0).max(1);
    if times.saturating_mul(spec.transfer.count.into()) > MAX_CONNECTIONS {
        let help = format!(
            "these are {times} transfers until {end}, and the maximum is {MAX_CONNECTIONS} connections"
        );
        return Err(reader.out_of_range("every", &help));
    }
    let begins = (0..times).map(|i| {
        let mut again = spec.clone();
        again.transfer.start = Span(spec.transfer.start.0 + i * every.0);
        again
    });
    Ok(begins.collect())
}

fn transfer(
    file: &Reader<'_>,
    reader: &Reader<'_>,
    values: TransferValues,
    key: String,
    hosts: &[HostSpec],
) -> Result<TransferSpec, Error> {
    let from = end(reader, "from", &values.from, hosts)?;
    let to = end(reader, "to", &values.to, hosts)?;
    let TransferValues { start, stop, every, count, cross, quic, .. } = values;
    let times = [Some(start), stop, every];
    let (traffic, short) = traffic(file, reader, values.application, times, count)?;
    if quic.is_some() && traffic != Traffic::Bulk {
        return Err(only_bulk(reader));
    }
    let bytes = match reader.node("bytes").and_then(Node::as_str) {
        _ if traffic != Traffic::Bulk => None,
        Some("unlimited") if stop.is_none() && !file.has("horizon") => {
            return Err(Diagnostic::new(Code::MissingKey, "horizon", &reader.location("bytes"))
                .message("an unlimited transfer needs a `horizon` or a `stop`")
                .label("never ends by itself")
                .help(
                    "write at the top of the file when a run ends, for example `horizon = \"60s\"`, or here when \
                     it stops: `stop = \"60s\"`",
                )
                .into());
        }
        None if stop.is_none() && !reader.has("bytes") => {
            let expected = "how much is sent (a size, or \"unlimited\" with a `horizon`)";
            return Err(reader.missing("bytes", expected, "\"2MB\""));
        }
        _ => values.bytes,
    };
    Ok(TransferSpec {
        transfer: Transfer { from, to, bytes, start, count, stop, traffic, cross, quic },
        at: reader.at().clone(),
        key,
        short,
    })
}

/// The error for QUIC with an application: QUIC carries only data that is available at the start.
fn only_bulk(reader: &Reader<'_>) -> Error {
    let key = if reader.has("quic") { "quic" } else { "protocol" };
    Diagnostic::new(Code::BadTransfer, reader.key(key), &reader.location(key))
        .message("QUIC carries transfers of `bytes` only")
        .label("not with this application")
        .help("leave out `on-off`, `web` or `request`, or write `protocol = \"tcp\"`")
        .into()
}

fn end(reader: &Reader<'_>, key: &str, name: &str, hosts: &[HostSpec]) -> Result<usize, Error> {
    hosts.iter().position(|host| host.name == name).ok_or_else(|| {
        Diagnostic::new(Code::BadTransfer, reader.key(key), &reader.location(key))
            .message(format!("there is no host `{name}`"))
            .label("no such host")
            .help(format!("{}; or add a table `[host.{name}]`", did_you_mean(name, &names(hosts))))
            .into()
    })
}

/// Gives each host its side and address.
///
/// The first rule that applies determines the side: (1) the side in the file; (2) left for a name that begins
/// with `fixed`, right for `mobile`; (3) opposite to a host with which it exchanges data. If no rule applies
/// to any host, the first undecided host is on the left, and rule 3 applies again.
pub(super) fn assign_sides(
    specs: &mut [HostSpec],
    transfers: &[TransferSpec],
) -> Result<Vec<Host>, Error> {
    for spec in specs.iter_mut() {
        if spec.side.is_none() && spec.name.starts_with("fixed") {
            spec.side = Some(HostSide::Left);
        } else if spec.side.is_none() && spec.name.starts_with("mobile") {
            spec.side = Some(HostSide::Right);
        }
    }
    loop {
        spread(specs, transfers);
        match specs.iter_mut().find(|spec| spec.side.is_none()) {
            Some(undecided) => undecided.side = Some(HostSide::Left),
            None => break,
        }
    }
    for TransferSpec { transfer, at, key, .. } in transfers {
        let (from, to) = (&specs[transfer.from], &specs[transfer.to]);
        if from.side == to.side {
            return Err(same_end(from, to, at, key));
        }
    }
    addresses(specs)
}

/// Assigns hosts that exchange data to opposite ends.
fn spread(specs: &mut [HostSpec], transfers: &[TransferSpec]) {
    // Each round assigns at least one host, or is the last one.
    loop {
        let mut changed = false;
        for TransferSpec { transfer: Transfer { from, to, .. }, .. } in transfers {
            for (known, unknown) in [(*from, *to), (*to, *from)] {
                if let (Some(side), None) = (specs[known].side, specs[unknown].side) {
                    specs[unknown].side = Some(opposite(side));
                    changed = true;
                }
            }
        }
        if !changed {
            break;
        }
    }
}

fn opposite(side: HostSide) -> HostSide {
    match side {
        HostSide::Left => HostSide::Right,
        HostSide::Right => HostSide::Left,
    }
}

fn same_end(from: &HostSpec, to: &HostSpec, at: &Location, key: &str) -> Error {
    let side = match from.side {
        Some(HostSide::Right) => "right",
        _ => "left",
    };
    let diagnostic = Diagnostic::new(Code::BadTransfer, key, at);
    if from.name == to.name {
        return diagnostic
            .message(format!("`{}` cannot send to itself", from.name))
            .label("`from` and `to` are one host")
            .help("data must cross the path: name a host at the other end")
            .into();
    }
    diagnostic
        .message(format!("`{}` and `{}` are at the same end of the path", from.name, to.name))
        .label(format!("both ends are {side}"))
        .help(format!(
            "data must cross the path: give one of the hosts the other side, for example \
             `side = \"right\"` in `[host.{}]`",
            to.name
        ))
        .into()
}

/// Hosts without an address get 10.0.0.1 and so on at the left end, 10.1.0.1 and so on at the right.
fn addresses(specs: &[HostSpec]) -> Result<Vec<Host>, Error> {
    let taken: Vec<Addr> =
        specs.iter().filter_map(|spec| spec.addr.as_ref().map(|(addr, _)| *addr)).collect();
    let mut hosts: Vec<Host> = Vec::with_capacity(specs.len());
    let mut next = [1_u16, 1_u16];
    for spec in specs {
        let side = spec.side.unwrap_or(HostSide::Left);
        let addr = match &spec.addr {
            Some((addr, at)) => {
                if let Some(other) = hosts.iter().find(|host| host.addr == *addr) {
                    return Err(Diagnostic::new(
                        Code::BadName,
                        format!("host.{}.addr", spec.name),
                        at,
                    )
                    .message(format!("`{addr}` is already the address of `{}`", other.name))
                    .label("used twice")
                    .help("each host needs its own address; without `addr` one is chosen")
                    .into());
                }
                *addr
            }
            None => loop {
                let end = usize::from(side == HostSide::Right);
                let [high, low] = next[end].to_be_bytes();
                next[end] += 1;
                let addr = Addr::v4(10, end as u8, high, low);
                if !taken.contains(&addr) {
                    break addr;
                }
            },
        };
        hosts.push(Host {
            name: spec.name.clone(),
            side,
            addr,
            tcp: spec.tcp.clone(),
            access: spec.access.as_ref().map(|(access, _)| access.clone()),
            battery: spec.battery.as_ref().map(|(hardware, _)| hardware.clone()),
            stack: spec.stack.clone(),
        });
    }
    Ok(hosts)
}

/// Directions of data.
pub(super) fn directions(hosts: &[Host], transfers: &[TransferSpec]) -> Directions {
    let from = |side| {
        transfers.iter().any(|spec| {
            let answers = spec.transfer.traffic.answers().is_some();
            hosts[spec.transfer.from].side == side || answers
        })
    };
    Directions { right: from(HostSide::Left), left: from(HostSide::Right) }
}
