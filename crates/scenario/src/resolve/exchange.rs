//! Transfers of requests and responses.

use lasthop_proto::describe::Keys;
use lasthop_proto::tcp::traffic::Exchange;
use lasthop_proto::units::{Bytes, Span};

use super::traffic::{endless, excluded};
use super::transfer::MAX_CONNECTIONS;
use crate::error::{Code, Diagnostic, Error};
use crate::read::Reader;

/// Values of the keys of requests and responses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExchangeValues {
    request: Option<Bytes>,
    response: Option<Bytes>,
    think: Span,
    persistent: bool,
    exchanges: Option<u32>,
}

/// Keys that require `request`.
const OTHER_KEYS: [&str; 4] = ["response", "think", "persistent", "exchanges"];

/// Visits the keys.
pub(super) fn keys(k: &mut Keys<'_>) -> ExchangeValues {
    let (mut request, mut response) = (None, None);
    let sizes = Bytes(1)..=Bytes(1 << 40);
    let description =
        "the size of a request from a client at `from` to a server at `to`, instead of `bytes`";
    k.maybe("request", &mut request, sizes.clone(), description);
    k.maybe("response", &mut response, sizes, "the size of the response");
    let (mut think, mut persistent, mut exchanges) = (Span::ZERO, false, None);
    let description =
        "with `request` and without `every`: the time from a response to the next request";
    k.within("think", &mut think, Span::ZERO..=Span::secs(86_400), description);
    let description =
        "with `request`: one connection for all exchanges of a client, not one for each";
    k.flag("persistent", &mut persistent, description);
    let description =
        "with `request`: requests of each client; by default until `stop` or the `horizon`";
    k.maybe_count("exchanges", &mut exchanges, 1..=MAX_CONNECTIONS, description);
    ExchangeValues { request, response, think, persistent, exchanges }
}

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
