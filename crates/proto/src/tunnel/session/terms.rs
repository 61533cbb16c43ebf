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

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counts of datagrams and sessions; each dropped datagram is counted by its reason.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
        #[serde(rename_all = "kebab-case")]
        pub struct SessionCounts {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl SessionCounts {
            /// Each count with its name.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }
        }
    };
}

counts! {
    /// Sessions that have begun.
    sessions,
    /// Sessions that replaced an established one: the peer has restarted.
    restarts,
    /// Renewals of the keys of a session that continued.
    renewed,
    /// Sessions that ended because the peer was silent.
    vanished,
    /// Sessions that ended because the peer said goodbye.
    goodbyes,
    /// Sessions that ended because their counter was near its limit.
    worn,
    /// Sessions that ended because the peer had lost them: it was restarted.
    forgotten,
    /// Changes of the peer's address; later messages go to the new one.
    moved,
    /// Handshakes that received a welcome and no further message.
    unconfirmed,
    /// Dropped: the length does not match its kind.
    bad_length,
    /// Dropped: another version of the protocol.
    bad_version,
    /// Dropped: unknown kind of message.
    bad_kind,
    /// Dropped: the tag was not created with this key.
    bad_tag,
    /// Dropped: a message of this end, sent back.
    reflected,
    /// Hellos that were answered with a request for a cookie, and hellos with a cookie that were dropped
    /// above the limit.
    flooded,
    /// Dropped: of another or an earlier session.
    other_session,
    /// Dropped: received before.
    replayed,
    /// Dropped: too far behind the newest to detect a replay.
    too_old,
    /// Dropped: a welcome, a cookie or a refusal that matches no pending hello.
    stale,
    /// Dropped: sealed by the peer, but unreadable.
    bad_body,
    /// Dropped: not expected in this state.
    unexpected,
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
