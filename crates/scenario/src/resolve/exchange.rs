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
const BESIDE: [&str; 4] = ["response", "think", "persistent", "exchanges"];

/// Visits the keys.
pub(super) fn keys(k: &mut Keys<'_>) -> ExchangeValues {
    let (mut request, mut response) = (None, None);
    let sizes = Bytes(1)..=Bytes(1 << 40);
    let what = "what a client at `from` asks a server at `to`, in place of `bytes`";
    k.maybe("request", &mut request, sizes.clone(), what);
    k.maybe("response", &mut response, sizes, "what the server answers at once");
    let (mut think, mut persistent, mut exchanges) = (Span::ZERO, false, None);
    let what = "with `request` and without `every`: the time from an answer to the next request";
    k.within("think", &mut think, Span::ZERO..=Span::secs(86_400), what);
    let what = "with `request`: one connection for all exchanges of a client, not one for each";
    k.flag("persistent", &mut persistent, what);
    let what = "with `request`: how often each client asks; else until `stop` or the `horizon`";
    k.maybe_count("exchanges", &mut exchanges, 1..=MAX_CONNECTIONS, what);
    ExchangeValues { request, response, think, persistent, exchanges }
}

/// The exchanges of the transfer at `reader`, which lasts from `start` to `end`, for `count` clients with a
/// request `every` interval; and the expected number of connections. `None` for another kind of transfer.
pub(super) fn exchange(
    reader: &Reader<'_>,
    values: ExchangeValues,
    every: Option<Span>,
    [start, end]: [Option<Span>; 2],
    count: u32,
) -> Result<Option<(Exchange, u64)>, Error> {
    let Some(request) = values.request else {
        let Some(key) = BESIDE.into_iter().find(|key| reader.has(key)) else { return Ok(None) };
        return Err(Diagnostic::new(
            Code::MissingKey,
            reader.key("request"),
            &reader.location(key),
        )
        .message(format!("`{key}` needs a `request`"))
        .label("of what request?")
        .help("for example `request = \"300B\", response = \"10KB\", every = \"1s\"`")
        .into());
    };
    let Some(response) = values.response else {
        return Err(reader.missing("response", "what the server answers (a size)", "\"10KB\""));
    };
    for other in ["bytes", "on-off", "web"] {
        if reader.has(other) {
            let help = "leave out one of them: a client asks as often as `exchanges` says, or until `stop`";
            return Err(excluded(reader, other, "request", help));
        }
    }
    if every.is_some() && reader.has("think") {
        let help = "a client asks `every` so often whatever comes, or thinks after each answer";
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
                "how often a client asks, or how long it waits between: `every` or `think`",
                "100",
            ));
        }
        (None, Some(end)) => end.0.saturating_sub(start.unwrap_or_default().0).div_ceil(pause.0),
    };
    if each.saturating_mul(count.into()) > MAX_CONNECTIONS {
        let help = format!(
            "{count} clients that ask {each} times are more than {MAX_CONNECTIONS} exchanges, which are the most"
        );
        return Err(reader.out_of_range("request", &help));
    }
    let opened = u64::from(count) * if persistent { 1 } else { each };
    let exchange = Exchange { request, response, every, think, persistent, exchanges };
    Ok(Some((exchange, opened)))
}
