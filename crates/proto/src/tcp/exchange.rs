//! Requests and responses: clients that ask, servers that answer, and what a connection knows of both.
//!
//! A server answers at once when a request is there in full: it takes no time, so what an exchange lasts is the
//! network's. Sizes are known to both ends, as if the first bytes of a request said them.

use serde::Serialize;

use super::fetch::Fetching;

use crate::units::{Bytes, Span, Time};
use crate::wire::{Addr, FlowKey};

/// Clients that ask for something, wait for it, and ask again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Exchange {
    /// What a client sends.
    pub request: Bytes,
    /// What it gets.
    pub response: Bytes,
    /// A client asks again so long after it asked, whatever has come; without it, after its answer.
    pub every: Option<Span>,
    /// Time from an answer to the next request, without `every`.
    pub think: Span,
    /// One connection for all exchanges of a client; otherwise each has its own, which both ends close.
    pub persistent: bool,
    /// How often a client asks; without it, until it is stopped.
    pub exchanges: Option<u32>,
}

/// The first port of servers.
const FIRST_PORT: u16 = 10_000;
/// Ports of a server: connections of a client take the second when source ports run out.
const PORTS: u16 = 2;

impl Exchange {
    /// So many servers have ports of their own.
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
    /// It asks for nothing from then on.
    pub(super) stop: Option<Time>,
    /// How often it has asked.
    pub(super) asked: u32,
    /// It waits for an answer before it goes on.
    pub(super) waits: bool,
    /// Where it asks, if that is always the same.
    pub(super) connection: Option<usize>,
}

impl Client {
    /// When it asks next, if it may once more from `at` on.
    pub(super) fn again(&self, at: Time) -> Option<Time> {
        let enough = self.exchange.exchanges.is_some_and(|most| self.asked >= most);
        let late = self.stop.is_some_and(|stop| at >= stop);
        (!enough && !late).then_some(at)
    }
}

/// A server that answers connections of a host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Service {
    pub(super) client: Addr,
    pub(super) port: u16,
    pub(super) answers: Answers,
}

/// How a server knows what is asked for.
#[derive(Clone, Copy, Debug)]
pub enum Answers {
    /// It is always the same.
    Same(Exchange),
    /// Requests of this size say how much.
    Told(Bytes),
}

/// What a connection carries.
#[derive(Clone, Debug)]
pub(super) enum Talk {
    /// Requests and responses that are always the same.
    Same(Exchanging),
    /// Requests that say how much is asked for.
    Told(Fetching),
}

impl Answers {
    /// Of the end that answers.
    pub(super) fn server(&self) -> Talk {
        match self {
            Answers::Same(exchange) => Talk::Same(Exchanging::server(exchange)),
            Answers::Told(request) => Talk::Told(Fetching::server(*request)),
        }
    }
}

impl Service {
    /// Whether it answers on the connection `flow`, seen from the server.
    pub(super) fn takes(&self, flow: FlowKey) -> bool {
        flow.dst == self.client && Exchange::is_at(self.port, flow.src_port)
    }
}

/// What a connection knows of the exchanges on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exchanging {
    /// Bytes that this end sends for each exchange, and that it gets.
    pub(super) sends: u64,
    pub(super) gets: u64,
    /// Whether this end asks.
    pub(super) asks: bool,
    /// Whether it closes behind what it sends.
    pub(super) closes: bool,
    /// Exchanges of which this end has sent its part, or all of them have come.
    pub(super) begun: u64,
    pub(super) done: u64,
    /// An answer has come, and nobody has looked.
    pub(super) news: bool,
}

impl Exchanging {
    /// Of the end that asks.
    pub(super) fn client(exchange: &Exchange) -> Exchanging {
        Exchanging {
            sends: exchange.request.0,
            gets: exchange.response.0,
            asks: true,
            closes: !exchange.persistent,
            begun: 0,
            done: 0,
            news: false,
        }
    }

    /// Of the end that answers.
    pub(super) fn server(exchange: &Exchange) -> Exchanging {
        let client = Exchanging::client(exchange);
        Exchanging { sends: client.gets, gets: client.sends, asks: false, ..client }
    }
}
