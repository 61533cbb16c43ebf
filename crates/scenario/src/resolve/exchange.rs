//! Transfers of requests and responses.

use lasthop_proto::tcp::traffic::Exchange;
use lasthop_proto::units::Span;

use crate::error::{Code, Diagnostic, Error};
use crate::parts::exchange::{ExchangeValues, MAX_CONNECTIONS};
use crate::read::Reader;

/// Keys that require `request`.
const OTHER_KEYS: [&str; 4] = ["response", "think", "persistent", "exchanges"];

/// The exchanges of the transfer at `reader`, and the expected number of connections. The transfer lasts
/// from `start` to `end` and has `count` clients with a request `every` interval. `None` for another kind
/// of transfer.
pub(super) fn exchange(
    reader: &Reader<'_>,
    values: ExchangeValues,
    every: Option<Span>,
    [start, end]: [Option<Span>; 2],
    count: u32,
) -> Result<Option<(Exchange, u64)>, Error> {
    let Some(request) = values.request else {
        let Some(key) = OTHER_KEYS.into_iter().find(|key| reader.has(key)) else { return Ok(None) };
        return Err(Diagnostic::new(
            Code::MissingKey,
            reader.key("request"),
            &reader.location(key),
        )
        .message(format!("`{key}` needs a `request`"))
        .label("no request")
        .help("for example `request = \"300B\", response = \"10KB\", every = \"1s\"`")
        .into());
    };
    let Some(response) = values.response else {
        return Err(reader.missing("response", "the size of the response", "\"10KB\""));
    };
    for other in ["bytes", "on-off", "web"] {
        if reader.has(other) {
            let help =
                "leave out one of them: `exchanges` or `stop` limits the requests of a client";
            return Err(excluded(reader, other, "request", help));
        }
    }
    if every.is_some() && reader.has("think") {
        let help = "write `every` for requests at a fixed interval, or `think` for a pause after each response";
        return Err(excluded(reader, "think", "every", help));
    }
    let ExchangeValues { think, persistent, exchanges, .. } = values;
    let pause = every.unwrap_or(think);
    let each = match (exchanges, end) {
        (Some(exchanges), _) => u64::from(exchanges),
        (None, None) => return Err(endless(reader, "request")),
        (None, Some(_)) if pause == Span::ZERO => {
            return Err(reader.missing(
                "exchanges",
                "a number of requests, or the time between them, `every` or `think`",
                "100",
            ));
        }
        (None, Some(end)) => end.0.saturating_sub(start.unwrap_or_default().0).div_ceil(pause.0),
    };
    if each.saturating_mul(count.into()) > MAX_CONNECTIONS {
        let help = format!(
            "{count} clients with {each} requests each exceed the maximum of {MAX_CONNECTIONS} exchanges"
        );
        return Err(reader.out_of_range("request", &help));
    }
    let opened = u64::from(count) * if persistent { 1 } else { each };
    let exchange = Exchange { request, response, every, think, persistent, exchanges };
    Ok(Some((exchange, opened)))
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
