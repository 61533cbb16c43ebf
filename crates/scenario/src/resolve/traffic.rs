//! The application of a transfer: bulk, on-off, or short transfers.

use lasthop_proto::agent::{AgentConfig, SplitConfig};
use lasthop_proto::units::Span;

use super::exchange::{endless, exchange, excluded};
use super::transfer::TransferSpec;
use crate::error::{Code, Diagnostic, Error};
use crate::model::{Host, HostSide, Stack, Stage, StageKind, Traffic};
use crate::parts::exchange::MAX_CONNECTIONS;
use crate::parts::traffic::Application;
use crate::read::Reader;

/// Maximum number of initial packets of the connections of one table: each takes a hundred bytes in flight.
const MAX_BURST: u64 = 10_000_000;
/// Maximum number of segments that a base station may accept and acknowledge within one instant.
const MAX_AT_ONCE: u64 = 1_000_000;
/// Maximum number of expected short transfers of one table.
const MAX_SHORT: u64 = MAX_CONNECTIONS / 5;

/// The application of the transfer at `reader`, and the expected number of later connections. The transfer
/// lasts from `start` to `stop`, repeats `every` interval, and has `count` parallel instances.
pub(super) fn traffic(
    file: &Reader<'_>,
    reader: &Reader<'_>,
    values: Application,
    [start, stop, every]: [Option<Span>; 3],
    count: u32,
) -> Result<(Traffic, u64), Error> {
    let horizon = file.optional::<Span>("horizon")?;
    let end = stop.into_iter().chain(horizon).min();
    let requests = values.exchange;
    if values.fetching.is_none()
        && let Some((exchange, opened)) = exchange(reader, requests, every, [start, end], count)?
    {
        return Ok((Traffic::Exchange(exchange), opened));
    }
    if let Some((key, traffic)) = values.fetching {
        return fetched(reader, key, traffic, end, count);
    }
    if let Some(udp) = values.udp {
        if let Some(key) =
            ["on-off", "web", "bytes", "every"].into_iter().find(|key| reader.has(key))
        {
            let help = "datagrams are sent until `stop` or the `horizon`";
            return Err(excluded(reader, key, "udp", help));
        }
        return match end {
            Some(_) => Ok((Traffic::Udp(udp), 0)),
            None => Err(endless(reader, "udp")),
        };
    }
    let (key, traffic) = match (reader.has("on-off"), values.web) {
        (false, None) => return Ok((Traffic::Bulk, 0)),
        (true, None) => ("on-off", Traffic::OnOff(values.on_off)),
        (false, Some(web)) => ("web", Traffic::Web(web)),
        (true, Some(_)) => {
            return Err(excluded(reader, "web", "on-off", "leave out one of them"));
        }
    };
    if reader.has("bytes") {
        let help = "without `bytes`: it sends until `stop` or the `horizon`";
        return Err(excluded(reader, "bytes", key, help));
    }
    if let (Traffic::Web(_), true) = (traffic, reader.has("count")) {
        let help = "write the number of users into `web`, for example `web = { sessions = 5 }`";
        return Err(excluded(reader, "count", key, help));
    }
    let Some(end) = end else { return Err(endless(reader, key)) };
    let mut short = 0;
    if let Traffic::Web(web) = traffic {
        let most = end.0.saturating_sub(start.unwrap_or_default().0) / web.think.0.max(1)
            * u64::from(web.sessions);
        if most > MAX_SHORT {
            let help = format!(
                "{} sessions that think for {} make up to {most} transfers until {end}, and the maximum is \
                 {MAX_SHORT}; lower `sessions`, or raise `think`",
                web.sessions, web.think
            );
            return Err(reader.out_of_range(key, &help));
        }
        short = most;
    }
    Ok((traffic, short))
}

/// The pages or the video of the transfer at `reader`, from its table `key`.
fn fetched(
    reader: &Reader<'_>,
    key: &str,
    traffic: Traffic,
    end: Option<Span>,
    count: u32,
) -> Result<(Traffic, u64), Error> {
    let others = ["on-off", "web", "udp", "page", "video", "request", "bytes", "every"];
    if let Some(other) = others.into_iter().find(|other| *other != key && reader.has(other)) {
        return Err(excluded(reader, other, key, "leave out one of them"));
    }
    if count > u32::from(u16::MAX) {
        return Err(reader.out_of_range("count", "at most 65535 clients"));
    }
    let connections = match traffic {
        Traffic::Page(page) if page.pages.is_none() && end.is_none() => {
            return Err(endless(reader, key));
        }
        Traffic::Page(page) => page.connections,
        _ => 1,
    };
    Ok((traffic, u64::from(count) * u64::from(connections)))
}

/// Limits the initial data of all connections of a transfer, which is sent at one instant and must be stored.
pub(super) fn bursts(hosts: &[Host], transfers: &[TransferSpec]) -> Result<(), Error> {
    for TransferSpec { transfer, at, key, .. } in transfers {
        let tcp = &hosts[transfer.from].tcp;
        let window = tcp.send_buffer.min(hosts[transfer.to].tcp.recv_buffer);
        let bytes = transfer.bytes.map_or(u64::MAX, |bytes| bytes.0).min(window.into());
        let each = bytes.div_ceil(u64::from(tcp.mss).max(1)).min(tcp.initial_window.into());
        let all = each * u64::from(transfer.connections());
        if all > MAX_BURST && transfer.quic.is_none() {
            return Err(Diagnostic::new(Code::BadTransfer, key, at)
                .message(format!(
                    "{} connections that begin with {each} segments each send {all} packets at one instant",
                    transfer.connections()
                ))
                .label("too many to hold")
                .help(format!(
                    "at most {MAX_BURST}: fewer connections, or a smaller `initial-window` in `[host.{}]`",
                    hosts[transfer.from].name
                ))
                .into());
        }
    }
    Ok(())
}

/// Limits the data of one instant. Without a link in between, a base station that splits connections accepts a full
/// buffer from a host at once.
pub(super) fn next_to_hosts(
    hosts: &[Host],
    transfers: &[TransferSpec],
    path: &[Stage],
) -> Result<(), Error> {
    let adjacent_split = |host: &Host| {
        let mut stages: Box<dyn Iterator<Item = &Stage>> = match host.side {
            HostSide::Left => Box::new(path.iter()),
            HostSide::Right => Box::new(path.iter().rev()),
        };
        let first = stages.find(|stage| stage.kind.is_link() || split(stage).is_some());
        first.filter(|_| host.access.is_none()).and_then(split)
    };
    for TransferSpec { transfer, at, key, .. } in
        transfers.iter().filter(|t| t.transfer.quic.is_none())
    {
        for from in [transfer.from, transfer.to] {
            let Some(split) = adjacent_split(&hosts[from]) else { continue };
            let tcp = &hosts[from].tcp;
            let bytes = u64::from(tcp.send_buffer).min(split.buffer.0);
            let all = bytes.div_ceil(u64::from(tcp.mss).max(1)) * u64::from(transfer.connections());
            if all > MAX_AT_ONCE {
                let name = &hosts[from].name;
                return Err(Diagnostic::new(Code::BadTransfer, key, at)
                    .message(format!(
                        "with no link between `{name}` and the base station that splits its connections, {all} segments \
                         may pass at one instant"
                    ))
                    .label("too many at once")
                    .help(format!(
                        "at most {MAX_AT_ONCE}: put a link between them, or make the base station's `buffer` smaller"
                    ))
                    .into());
            }
        }
    }
    Ok(())
}

/// The base station of a stage that splits connections.
fn split(stage: &Stage) -> Option<&SplitConfig> {
    match &stage.kind {
        StageKind::Agent(AgentConfig::Split(split)) => Some(split),
        _ => None,
    }
}

/// Rejects intermittent applications on hosts with a kernel's TCP, because these would need programs on the host.
pub(super) fn in_testbed(hosts: &[Host], transfers: &[TransferSpec]) -> Result<(), Error> {
    for TransferSpec { transfer, at, key, .. } in transfers {
        let kind = match transfer.traffic {
            Traffic::Web(_) => "web",
            Traffic::OnOff(_) => "on-off",
            Traffic::Page(_) => "page",
            Traffic::Video(_) => "video",
            Traffic::Udp(_) => "udp",
            Traffic::Bulk if transfer.stop.is_some() => "stop",
            // The kernel's applications are bulk senders, and clients and servers of requests.
            Traffic::Bulk | Traffic::Exchange(_) => continue,
        };
        let ends = [&hosts[transfer.from], &hosts[transfer.to]];
        if let Some(host) = ends.iter().find(|host| host.stack != Stack::Lasthop) {
            return Err(Diagnostic::new(Code::BadTransfer, key, at)
                .message(format!("`{kind}` needs hosts with our TCP, and `{}` has the kernel's", host.name))
                .label("not in the testbed")
                .help(format!(
                    "write `stack = \"lasthop\"` in `[host.{}]`, or run it in the simulator: `world = \"sim\"`",
                    host.name
                ))
                .into());
        }
    }
    Ok(())
}
