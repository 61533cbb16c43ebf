//! The keys of requests and responses.

use lasthop_proto::describe::Keys;
use lasthop_proto::units::{Bytes, Span};

/// Maximum number of transfers of a table, and of connections in total.
pub(crate) const MAX_CONNECTIONS: u64 = 100_000;

/// Values of the keys of requests and responses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExchangeValues {
    pub request: Option<Bytes>,
    pub response: Option<Bytes>,
    pub think: Span,
    pub persistent: bool,
    pub exchanges: Option<u32>,
}

/// Visits the keys.
pub(crate) fn keys(k: &mut Keys<'_>) -> ExchangeValues {
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
