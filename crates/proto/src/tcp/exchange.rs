//! Requests and responses: clients, servers, and the state of a connection between them.
//!
//! A server answers as soon as a request is complete. It takes no time, so the duration of an exchange is the
//! network's. Both ends have all sizes from the start, as if the first bytes of a request contained them.

use serde::Serialize;

use super::fetch::Fetching;

use crate::units::{Bytes, Span, Time};
use crate::wire::{Addr, FlowKey};

/// Clients that send a request, wait for the response, and repeat.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Exchange {
    /// Size of a request.
    pub request: Bytes,
    /// Size of a response.
    pub response: Bytes,
    /// Interval between requests, independent of responses; `None` sends the next request after the response.
    pub every: Option<Span>,
    /// Time from a response to the next request, without `every`.
    pub think: Span,
    /// Whether a client has one connection for all exchanges; otherwise each exchange has a separate one,
    /// which both ends close.
    pub persistent: bool,
    /// Number of requests of a client; `None` continues until the client is stopped.
    pub exchanges: Option<u32>,
}

/// First port of servers.
const FIRST_PORT: u16 = 10_000;
/// Ports of a server: connections of a client use the second when source ports run out.
const PORTS: u16 = 2;

impl Exchange {
    /// Number of servers with separate ports.
    pub const SERVERS: usize = 20_000;

    /// The port of the server of the `nth` table, below [`Exchange::SERVERS`].
    pub fn port(nth: usize) -> u16 {
        FIRST_PORT + PORTS * (nth % Exchange::SERVERS) as u16
    }

    /// Whether `port` is one of the server at [`Exchange::port`] `first`.
    pub fn is_at(first: u16, port: u16) -> bool {
        (first..first + PORTS).contains(&port)
    }
}

/// One client.
#[derive(Clone, Debug)]
pub(super) struct Client {
    pub(super) to: Addr,
    pub(super) port: u16,
    pub(super) exchange: Exchange,
    /// Time from which it sends no more requests.
    pub(super) stop: Option<Time>,
    /// Number of requests sent.
    pub(super) requested: u32,
    /// Whether it waits for a response.
    pub(super) waits: bool,
    /// Connection of its requests, if it is always the same.
    pub(super) connection: Option<usize>,
}

impl Client {
    /// Time of the next request from `at` on, if there is one.
    pub(super) fn again(&self, at: Time) -> Option<Time> {
        let enough = self.exchange.exchanges.is_some_and(|most| self.requested >= most);
        let late = self.stop.is_some_and(|stop| at >= stop);
        (!enough && !late).then_some(at)
    }
}

/// A server for the connections of a host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Service {
    pub(super) client: Addr,
    pub(super) port: u16,
    pub(super) answers: Answers,
}

/// How a server determines the size of a response.
#[derive(Clone, Copy, Debug)]
pub enum Answers {
    /// The size is constant.
    Constant(Exchange),
    /// Each request has this size, and contains the size of its response.
    Requested(Bytes),
}

/// Exchanges of a connection.
#[derive(Clone, Debug)]
pub(super) enum ExchangeState {
    /// Requests and responses of constant size.
    Constant(Exchanging),
    /// Requests that contain the size of the response.
    Requested(Fetching),
}

impl Answers {
    /// State of the server's end.
    pub(super) fn server(&self) -> ExchangeState {
        match self {
            Answers::Constant(exchange) => ExchangeState::Constant(Exchanging::server(exchange)),
            Answers::Requested(request) => ExchangeState::Requested(Fetching::server(*request)),
        }
    }
}

impl Service {
    /// Whether it serves the connection `flow`, which is oriented from the server.
    pub(super) fn takes(&self, flow: FlowKey) -> bool {
        flow.dst == self.client && Exchange::is_at(self.port, flow.src_port)
    }
}

/// State of the exchanges on a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exchanging {
    /// Bytes that this end sends and receives for each exchange.
    pub(super) sends: u64,
    pub(super) gets: u64,
    /// Whether this end sends the requests.
    pub(super) is_client: bool,
    /// Whether it closes the connection after its data.
    pub(super) closes: bool,
    /// Exchanges whose part this end has sent, and exchanges completely received.
    pub(super) begun: u64,
    pub(super) done: u64,
    /// Whether a response has arrived and was not polled.
    pub(super) news: bool,
}

impl Exchanging {
    /// State of the client's end.
    pub(super) fn client(exchange: &Exchange) -> Exchanging {
        Exchanging {
            sends: exchange.request.0,
            gets: exchange.response.0,
            is_client: true,
            closes: !exchange.persistent,
            begun: 0,
            done: 0,
            news: false,
        }
    }

    /// State of the server's end.
    pub(super) fn server(exchange: &Exchange) -> Exchanging {
        let client = Exchanging::client(exchange);
        Exchanging { sends: client.gets, gets: client.sends, is_client: false, ..client }
    }
}
