//! The application of a transfer: bulk, on-off, or short transfers.

use lasthop_proto::agent::{AgentConfig, SplitConfig};
use lasthop_proto::describe::Keys;
use lasthop_proto::tcp::traffic::{OnOff, Periods, Sizes, Web};
use lasthop_proto::udp::{self, Arrivals, Codec, Udp, Voice};
use lasthop_proto::units::{Bytes, Rate, Span};

use super::exchange::{self, exchange};
use super::fetching;
use super::transfer::{MAX_CONNECTIONS, TransferSpec};
use crate::error::{Code, Diagnostic, Error};
use crate::model::{Host, HostSide, Stack, Stage, StageKind, Traffic};
use crate::read::Reader;

/// Maximum number of initial packets of the connections of one table: each takes a hundred bytes in flight.
const MAX_BURST: u64 = 10_000_000;
/// Maximum number of segments that a base station may accept and acknowledge within one instant.
const MAX_AT_ONCE: u64 = 1_000_000;
/// Maximum number of expected short transfers of one table.
const MAX_SHORT: u64 = MAX_CONNECTIONS / 5;
const DAY: Span = Span::secs(86_400);

/// Values of the keys of a transfer's application.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Application {
    on_off: OnOff,
    web: Option<Web>,
    udp: Option<Udp>,
    fetching: Option<(&'static str, Traffic)>,
    exchange: exchange::ExchangeValues,
}

/// Visits the keys of an application.
pub(crate) fn keys(k: &mut Keys<'_>) -> Application {
    let periods = |mean| Periods { mean, shape: None };
    let mut on_off = OnOff { on: periods(Span::millis(500)), off: periods(Span::millis(500)) };
    k.table("on-off", "it sends for a while, then nothing for a while, on one connection", |k| {
        let times = Span::millis(1)..=DAY;
        k.within("on", &mut on_off.on.mean, times.clone(), "the mean time in which it sends");
        k.within("off", &mut on_off.off.mean, times, "the mean time in which it does not");
        let shape = shape(k);
        (on_off.on.shape, on_off.off.shape) = (shape, shape);
    });
    let (mut sessions, mut think) = (1, Span::secs(1));
    let (mut mean, mut most, mut tail) = (Bytes(10_000), None, 1.2);
    let mut web = None;
    k.table("web", "users who fetch something, think, and fetch again, on new connections", |k| {
        k.count("sessions", &mut sessions, 1..=10_000, "how many users");
        let description = "the mean time from the end of a fetch to the beginning of the next";
        k.within("think", &mut think, Span::millis(1)..=DAY, description);
        k.table("size", "the sizes, a Pareto distribution", |k| {
            let sizes = Bytes(1)..=Bytes(1 << 40);
            k.within("mean", &mut mean, sizes, "the mean size");
            k.maybe("max", &mut most, Bytes(0)..=Bytes(u64::MAX), "the largest size; 100 times `mean` by default");
            tail = shape(k).unwrap_or(tail);
        });
        let most = most.unwrap_or(Bytes(mean.0.saturating_mul(100)));
        web = Sizes::new(mean, most, tail).map(|size| Web { sessions, think, size });
        if web.is_none() {
            let help = format!(
                "the largest size, {} bytes, is not above the mean of {}; for example `size = {{ mean = \"10kB\", \
                 max = \"1MB\", shape = 1.2 }}`",
                most.0, mean.0
            );
            k.out_of_range("size", help);
        }
    });
    let mut udp = None;
    k.table("udp", "datagrams at a rate that does not depend on losses", |k| {
        udp = Some(datagrams(k));
    });
    let udp = udp.filter(|_| k.has("udp"));
    let (mut page, mut video) = (None, None);
    k.table("page", "clients that load pages: a first object, then others in parallel", |k| {
        page = Some(("page", Traffic::Page(fetching::page(k))));
    });
    k.table("video", "clients that play a video by segments, and choose their rates", |k| {
        video = Some(("video", Traffic::Video(fetching::video(k))));
    });
    let fetching = page.into_iter().chain(video).find(|(key, _)| k.has(key));
    Application { on_off, web, udp, fetching, exchange: exchange::keys(k) }
}

/// Bytes of a probe.
const PROBE: u64 = 64;

fn datagrams(k: &mut Keys<'_>) -> Udp {
    let description = "a voice call, instead of a rate and a size; its quality is estimated";
    let codec = k.maybe_word("voice", &Codec::WORDS, description);
    let (usual, mut given) = (Rate::from_bps(1_000_000), codec.and_then(Codec::rate));
    let mut usual_size = codec.map_or(1000, Codec::size);
    let mut buffer = Span::millis(60);
    let description =
        "with `voice`: the playout buffer, the maximum delay of packets above the shortest one";
    k.within("buffer", &mut buffer, Span::ZERO..=Span::secs(10), description);
    let mut probe = None;
    let description = "the interval of small packets that the receiver returns, instead of a rate and a size; they measure round trips";
    k.maybe("probe", &mut probe, Span::millis(1)..=Span::secs(60), description);
    if let Some(every) = probe {
        (given, usual_size) =
            (Rate::from_bps((PROBE * 8_000_000_000 / every.0).max(1)), PROBE as u32);
    }
    let voice = codec.map(|codec| Voice { codec, buffer });
    k.maybe_rate("rate", &mut given, "the mean rate, IP headers included");
    let listed = usual.unwrap_or_else(|| unreachable!("a rate"));
    let rate = k.demand("rate", given, listed);
    let (mut size, mut arrivals, mut sizes) =
        (usual_size, Arrivals::Constant, udp::Sizes::Constant);
    k.bytes("size", &mut size, 60..=65_535, "the mean size of an IP packet, headers included");
    let words = [("constant", Arrivals::Constant), ("poisson", Arrivals::Poisson)];
    k.word("arrivals", &mut arrivals, &words, "whether intervals are equal, or exponential");
    let words = [("constant", udp::Sizes::Constant), ("exponential", udp::Sizes::Exponential)];
    k.word("sizes", &mut sizes, &words, "whether sizes are equal, or exponential");
    let mut l4s = false;
    let description =
        "packets and returned probes have ECT(1), which selects the low-latency queue";
    k.flag("l4s", &mut l4s, description);
    let own = ["rate", "size", "arrivals", "sizes", "voice"];
    let of_voice = codec.and(k.first(&own[..4])).map(|key| (key, "voice"));
    let of_probe = probe.and(k.first(&own)).map(|key| (key, "probe"));
    if let Some((key, other)) = of_probe.or(of_voice) {
        let message = format!("`{}` and `{other}` exclude each other", k.path(key));
        k.refuse(key, message, "not together", "leave one of them out");
    }
    if codec.is_none() && k.has("buffer") {
        let message = format!("`{}` without `voice`", k.path("buffer"));
        k.refuse("buffer", message, "nothing uses it", "write `voice = \"g711\"`, or leave it out");
    }
    Udp { rate, size, arrivals, sizes, voice, probe, l4s }
}

fn shape(k: &mut Keys<'_>) -> Option<f64> {
    let mut shape = None;
    let description =
        "the shape of a Pareto distribution, from 1.05 (heavy tail) to 10 (hardly any)";
    k.maybe("shape", &mut shape, 1.05..=10.0, description);
    shape
}

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

/// The error for traffic of `key` without an end.
pub(super) fn endless(reader: &Reader<'_>, key: &str) -> Error {
    Diagnostic::new(Code::MissingKey, "horizon", &reader.location(key))
        .message(format!("`{key}` needs a `horizon` or a `stop`"))
        .label("never ends by itself")
        .help(
            "write at the top of the file when a run ends, for example `horizon = \"60s\"`, or here when it stops: \
             `stop = \"60s\"`",
        )
        .into()
}

pub(super) fn excluded(reader: &Reader<'_>, key: &str, other: &str, help: &str) -> Error {
    Diagnostic::new(Code::BadTransfer, reader.key(key), &reader.location(key))
        .message(format!("`{key}` and `{other}` exclude each other"))
        .label("one too many")
        .help(help)
        .into()
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
