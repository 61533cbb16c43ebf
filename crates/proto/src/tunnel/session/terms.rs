//! Configuration of a session, the agreed terms, and its counts.

use core::net::SocketAddr;

use serde::Serialize;

use crate::units::Span;

/// Configuration of a session.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SessionConfig {
    /// Peer to call; without one the session waits for calls.
    pub peer: Option<SocketAddr>,
    /// Whether others may call. An end that only calls answers no hello.
    pub answers: bool,
    /// Largest window in packets; the smaller one of both ends applies.
    pub window: u16,
    /// Longest inner packet in bytes; the smaller one of both ends applies.
    pub mtu: u16,
    /// Keep-alive interval without other messages; the shorter one of both ends applies.
    pub keep_alive: Span,
    /// Silence after which a peer counts as gone; three keep-alives at least.
    pub dead_after: Span,
    /// Time after which the caller renews the keys, while the session continues.
    pub renew_after: Span,
    /// Number of messages after which the caller renews the keys.
    pub renew_count: u64,
    /// Number of messages under the same keys after which a session ends.
    pub worn_after: u64,
}

/// Terms that both ends have agreed upon.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Agreed {
    /// Window in packets.
    pub window: u16,
    /// Longest inner packet in bytes.
    pub mtu: u16,
    /// Keep-alive interval of each end.
    pub keep_alive: Span,
    /// Silence after which a peer counts as gone.
    pub dead_after: Span,
    /// Round-trip time of the handshake.
    pub rtt: Span,
    /// Whether this end called.
    pub caller: bool,
}

/// Counts of datagrams and sessions; each dropped datagram is counted by its reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct SessionCounts {
    /// Sessions that have begun.
    pub sessions: u64,
    /// Sessions that replaced an established one: the peer has restarted.
    pub restarts: u64,
    /// Renewals of the keys of a session that continued.
    pub renewed: u64,
    /// Sessions that ended because the peer was silent.
    pub vanished: u64,
    /// Sessions that ended because the peer said goodbye.
    pub goodbyes: u64,
    /// Sessions that ended because their counter was near its limit.
    pub worn: u64,
    /// Sessions that ended because the peer had lost them: it was restarted.
    pub forgotten: u64,
    /// Changes of the peer's address; later messages go to the new one.
    pub moved: u64,
    /// Handshakes that received a welcome and no further message.
    pub unconfirmed: u64,
    /// Dropped: the length does not match its kind.
    pub bad_length: u64,
    /// Dropped: another version of the protocol.
    pub bad_version: u64,
    /// Dropped: unknown kind of message.
    pub bad_kind: u64,
    /// Dropped: the tag was not created with this key.
    pub bad_tag: u64,
    /// Dropped: a message of this end, sent back.
    pub reflected: u64,
    /// Hellos that were answered with a request for a cookie, and hellos with a cookie that were dropped
    /// above the limit.
    pub flooded: u64,
    /// Dropped: of another or an earlier session.
    pub other_session: u64,
    /// Dropped: received before.
    pub replayed: u64,
    /// Dropped: too far behind the newest to detect a replay.
    pub too_old: u64,
    /// Dropped: a welcome, a cookie or a refusal that matches no pending hello.
    pub stale: u64,
    /// Dropped: sealed by the peer, but unreadable.
    pub bad_body: u64,
    /// Dropped: not expected in this state.
    pub unexpected: u64,
}

/// A notice for the user about other ends. Each kind is emitted at most once in ten minutes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notice {
    /// A hello with another key came from this address.
    OtherKey(SocketAddr),
    /// The end at this address reports that this end's hello had another key.
    RefusedBy(SocketAddr),
    /// The end at this address uses another version of the protocol.
    OtherVersion(SocketAddr, u8),
    /// This end's own messages come back from this address.
    Reflected(SocketAddr),
}

/// Change of the session since the last poll.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// A new session is up: the state of the last one is void.
    Began(Agreed),
    /// The session is over.
    Ended,
}
