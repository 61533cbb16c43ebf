//! Queries of applications to sockets: readiness, room, snapshots.

use crate::tcp::connection::Connection;
use crate::tcp::info::TcpInfo;
use crate::tcp::state::State;
use crate::units::{Span, Time};

use super::Sockets;

/// Readiness of a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ready {
    /// Whether a read returns at once.
    pub read: bool,
    /// Whether a write returns at once.
    pub write: bool,
    /// Whether both directions are closed.
    pub hang_up: bool,
    /// Whether the peer has closed its direction, or this end shut it down.
    pub read_closed: bool,
    /// Whether an error is pending.
    pub error: bool,
}

impl Sockets {
    /// Bytes that [`Sockets::send`] would accept now.
    pub fn room(&self, index: usize) -> u32 {
        self.connection(index).map_or(0, Connection::room)
    }

    /// Unread bytes.
    pub fn unread(&self, index: usize) -> u64 {
        self.sockets.get(index).map_or(0, |socket| socket.unread)
    }

    /// Readiness of a connection.
    pub fn ready(&self, index: usize) -> Ready {
        let (Some(connection), Some(socket)) = (self.connection(index), self.sockets.get(index))
        else {
            return Ready { hang_up: true, write: true, ..Ready::default() };
        };
        let dead = connection.is_aborted() || connection.state() == State::Closed;
        let read_closed = socket.read_shut || connection.peer_has_closed() || dead;
        let written = connection.flow_size().is_some();
        let outbox = socket.options.outbox(self.host.settings());
        // Linux reports room when a third of the buffer is free.
        let mut room = connection.room() >= outbox / 3;
        if let Some(bytes) = socket.options.notsent_lowat {
            // `tcp_stream_memory_free`: half of the limit wakes a writer.
            room &= connection.agreement().unsent < u64::from(bytes.div_ceil(2));
        }
        Ready {
            read: socket.unread > 0 || read_closed || socket.error.is_some(),
            write: dead || written || connection.state().is_synchronised() && room,
            hang_up: dead || read_closed && written,
            read_closed,
            error: socket.error.is_some(),
        }
    }

    /// A snapshot of a connection.
    pub fn info(&self, index: usize) -> Option<TcpInfo> {
        self.connection(index).map(Connection::info)
    }

    /// Time of the last arrival.
    pub fn last_arrival(&self, index: usize) -> Option<Time> {
        self.sockets.get(index).map(|socket| socket.last_arrival)
    }

    /// Total time until `now` with data waiting or in flight (`tcpi_busy_time`).
    pub fn busy_time(&self, now: Time, index: usize) -> Option<Span> {
        let (busy, since) = self.sockets.get(index)?.busy;
        Some(busy + since.map_or(Span::ZERO, |since| now.since(since)))
    }

    /// Whether a connection waits to be accepted at `port`.
    pub fn has_waiting(&mut self, port: u16) -> bool {
        let waiting = self.host.listener(port).map(|l| l.waiting.clone()).unwrap_or_default();
        waiting.iter().any(|index| self.host.connections()[*index].state().is_synchronised())
    }
}
