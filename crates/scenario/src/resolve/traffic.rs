//! The application of a transfer: bulk, on-off, or short transfers.

use lasthop_proto::units::Span;

use super::exchange::{endless, exchange, excluded};
use crate::error::Error;
use crate::model::Traffic;
use crate::parts::exchange::MAX_CONNECTIONS;
use crate::parts::traffic::Application;
use crate::read::Reader;

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
