//! Checks of transfers against their hosts, the path and the world.

use lasthop_proto::agent::{AgentConfig, SplitConfig};

use super::transfer::TransferSpec;
use crate::error::{Code, Diagnostic, Error};
use crate::model::{Host, HostSide, Stack, Stage, StageKind, Traffic, World};

/// Maximum number of initial packets of the connections of one table: each takes a hundred bytes in flight.
const MAX_BURST: u64 = 10_000_000;
/// Maximum number of segments that a base station may accept and acknowledge within one instant.
const MAX_AT_ONCE: u64 = 1_000_000;

/// Checks that each host uses either TCP or QUIC, and that QUIC in a testbed has the UDP of a kernel.
pub(super) fn protocols(
    world: World,
    hosts: &[Host],
    transfers: &[TransferSpec],
) -> Result<(), Error> {
    let by_quic = |spec: &&TransferSpec| spec.transfer.quic.is_some();
    let mut by_tcp = vec![false; hosts.len()];
    for spec in transfers.iter().filter(|spec| !by_quic(spec)) {
        by_tcp[spec.transfer.from] = true;
        by_tcp[spec.transfer.to] = true;
    }
    for TransferSpec { transfer, at, key, .. } in transfers.iter().filter(by_quic) {
        let ends = [transfer.from, transfer.to];
        let refuse = |message: String, label, help: String| -> Result<(), Error> {
            let refused = Diagnostic::new(Code::BadTransfer, key, at);
            Err(refused.message(message).label(label).help(help).into())
        };
        let ours = ends.into_iter().find(|i| matches!(hosts[*i].stack, Stack::Lasthop));
        if let Some(host) = ours.filter(|_| world == World::Testbed) {
            let name = &hosts[host].name;
            let message =
                format!("`{name}` speaks QUIC, which needs its kernel's sockets in the testbed");
            let help = format!("leave out the `stack` of `{name}`");
            return refuse(message, "its packets would be lasthop's own", help);
        }
        if let Some(host) = ends.into_iter().find(|host| by_tcp[*host]) {
            let name = &hosts[host].name;
            let message = format!("`{name}` has transfers by TCP and by QUIC");
            let help = "give one of them another host at the same end of the path";
            return refuse(message, "one protocol for each host", help.to_owned());
        }
    }
    Ok(())
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
