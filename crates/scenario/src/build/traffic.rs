//! What the application of a transfer does: bulk, on and off, or short transfers.

use lasthop_proto::tcp::traffic::{OnOff, Periods, Sizes, Web};
use lasthop_proto::units::{Bytes, Span};

use super::transfer::{MAX_CONNECTIONS, TransferSpec};
use crate::document::Node;
use crate::error::{Code, Diagnostic, Error};
use crate::model::{Host, Stack, Traffic};
use crate::read::Reader;
use crate::schema;

/// Short transfers that the sessions of one table may be expected to make.
const MAX_SHORT: u64 = MAX_CONNECTIONS / 5;
const DAY: Span = Span::secs(86_400);

/// The application of the transfer at `reader`, which lasts from `start` to `stop`, and how many short transfers may be
/// expected of it.
pub(super) fn traffic(
    file: &Reader<'_>,
    reader: &Reader<'_>,
    start: Span,
    stop: Option<Span>,
) -> Result<(Traffic, u64), Error> {
    let (key, traffic) = match (reader.node("on-off"), reader.node("web")) {
        (None, None) => return Ok((Traffic::Bulk, 0)),
        (Some(node), None) => ("on-off", on_off(reader, node)?),
        (None, Some(node)) => ("web", web(reader, node)?),
        (Some(_), Some(_)) => {
            return Err(excluded(reader, "web", "on-off", "leave out one of them"));
        }
    };
    if reader.has("bytes") {
        let help = "without `bytes`: it sends until `stop` or the `horizon`";
        return Err(excluded(reader, "bytes", key, help));
    }
    if let (Traffic::Web(_), true) = (traffic, reader.has("count")) {
        let help = "how many users there are is said there, for example `web = { sessions = 5 }`";
        return Err(excluded(reader, "count", key, help));
    }
    let horizon = file.optional::<Span>("horizon")?;
    let Some(end) = stop.into_iter().chain(horizon).min() else {
        return Err(Diagnostic::new(Code::MissingKey, "horizon", &reader.place(key))
            .message(format!("`{key}` needs a `horizon` or a `stop`"))
            .label("never ends by itself")
            .help(
                "say at the top of the file when a run is cut off, for example `horizon = \"60s\"`, or here when it \
                 ends: `stop = \"60s\"`",
            )
            .into());
    };
    let mut short = 0;
    if let Traffic::Web(web) = traffic {
        let most = end.0.saturating_sub(start.0) / web.think.0.max(1) * u64::from(web.sessions);
        if most > MAX_SHORT {
            let help = format!(
                "{} sessions that think for {} would make up to {most} transfers until {end}, and {MAX_SHORT} is the most; \
                 lower `sessions`, or raise `think`",
                web.sessions, web.think
            );
            return Err(reader.out_of_range(key, &help));
        }
        short = most;
    }
    Ok((traffic, short))
}

fn excluded(reader: &Reader<'_>, key: &str, other: &str, help: &str) -> Error {
    Diagnostic::new(Code::BadTransfer, reader.key(key), &reader.place(key))
        .message(format!("`{key}` and `{other}` exclude each other"))
        .label("one too many")
        .help(help)
        .into()
}

fn shape(reader: &Reader<'_>) -> Result<Option<f64>, Error> {
    let Some(shape) = reader.optional::<f64>("shape")? else { return Ok(None) };
    if (1.05..=10.0).contains(&shape) {
        return Ok(Some(shape));
    }
    let help = "the shape of a Pareto distribution may be 1.05 (heavy tail) to 10 (hardly any)";
    Err(reader.out_of_range("shape", help))
}

fn on_off(reader: &Reader<'_>, node: &Node) -> Result<Traffic, Error> {
    let table = Reader::open(node, &reader.key("on-off"), schema::ON_OFF)?;
    let shape = shape(&table)?;
    let periods = |key: &str| -> Result<Periods, Error> {
        let mean = table.within(key, Span::millis(500), Span::millis(1)..=DAY)?;
        Ok(Periods { mean, shape })
    };
    Ok(Traffic::OnOff(OnOff { on: periods("on")?, off: periods("off")? }))
}

fn web(reader: &Reader<'_>, node: &Node) -> Result<Traffic, Error> {
    let table = Reader::open(node, &reader.key("web"), schema::WEB)?;
    let sessions = table.within("sessions", 1_u64, 1..=10_000)? as u32;
    let think = table.within("think", Span::secs(1), Span::millis(1)..=DAY)?;
    let mut mean = Bytes(10_000);
    let (mut most, mut tail) = (None, 1.2);
    let key = table.key("size");
    if let Some(node) = table.node("size") {
        let size = Reader::open(node, &key, schema::SIZE)?;
        mean = size.within("mean", mean, Bytes(1)..=Bytes(1 << 40))?;
        most = size.optional::<Bytes>("max")?;
        tail = shape(&size)?.unwrap_or(tail);
    }
    let most = most.unwrap_or(Bytes(mean.0.saturating_mul(100)));
    let Some(size) = Sizes::new(mean, most, tail) else {
        return Err(Diagnostic::new(Code::OutOfRange, &key, &table.place("size"))
            .message(format!(
                "`{key}`: the largest size, {} bytes, is not above the mean of {}",
                most.0, mean.0
            ))
            .label("no such sizes")
            .help("for example `size = { mean = \"10kB\", max = \"1MB\", shape = 1.2 }`")
            .into());
    };
    Ok(Traffic::Web(Web { sessions, think, size }))
}

/// Applications that come and go are ours: a kernel's would need programs on its host.
pub(super) fn in_testbed(hosts: &[Host], transfers: &[TransferSpec]) -> Result<(), Error> {
    for TransferSpec { transfer, at, key, .. } in transfers {
        let what = match transfer.traffic {
            Traffic::Web(_) => "web",
            Traffic::OnOff(_) => "on-off",
            Traffic::Bulk if transfer.stop.is_some() => "stop",
            Traffic::Bulk => continue,
        };
        let ends = [&hosts[transfer.from], &hosts[transfer.to]];
        if let Some(host) = ends.iter().find(|host| host.stack != Stack::Lasthop) {
            return Err(Diagnostic::new(Code::BadTransfer, key, at)
                .message(format!("`{what}` needs hosts with our TCP, and `{}` has the kernel's", host.name))
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
