//! What a session is to be like, what both ends make of it, and what is counted.

use core::net::SocketAddr;

use serde::Serialize;

use crate::units::Span;

/// What a session is to be like.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SessionConfig {
    /// Whom to call; without it the session waits to be called.
    pub peer: Option<SocketAddr>,
    /// Whether others may call. An end that only calls answers no hello.
    pub answers: bool,
    /// Largest window in packets; the smaller of both ends' holds.
    pub window: u16,
    /// Longest inner packet in bytes; the smaller of both ends' holds.
    pub mtu: u16,
    /// Who has sent nothing for so long says that it is alive; the shorter of both ends' holds.
    pub keep_alive: Span,
    /// A peer that was not heard for so long is gone; three keep-alives at least.
    pub dead_after: Span,
    /// The caller agrees on new keys after this time, while the session goes on.
    pub renew_after: Span,
    /// The same after so many messages.
    pub renew_count: u64,
    /// A session that has sent so many messages under the same keys ends.
    pub worn_after: u64,
}

/// What both ends have agreed upon.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Agreed {
    /// Window in packets.
    pub window: u16,
    /// Longest inner packet in bytes.
    pub mtu: u16,
    /// How often each end says that it is alive.
    pub keep_alive: Span,
    /// When a peer that is not heard counts as gone.
    pub dead_after: Span,
    /// The round trip that the handshake took.
    pub rtt: Span,
    /// Whether we called.
    pub caller: bool,
}

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What became of datagrams and sessions; each datagram that is dropped is counted by its reason.
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
    /// Those of them that replaced one that was up: the peer has started anew.
    restarts,
    /// Renewals of the keys of a session that went on.
    renewed,
    /// Sessions that ended because nothing was heard.
    vanished,
    /// Sessions that ended because the peer said goodbye.
    goodbyes,
    /// Sessions that ended because their counter was near its end.
    worn,
    /// Sessions that ended because the peer no longer knew of them: it was started anew.
    forgotten,
    /// Times that the peer was heard from another address, and was answered there from then on.
    moved,
    /// Handshakes that got a welcome and then nothing.
    unconfirmed,
    /// Dropped: shorter or longer than its kind is.
    bad_length,
    /// Dropped: another version of the protocol.
    bad_version,
    /// Dropped: there is no such kind of message.
    bad_kind,
    /// Dropped: a tag that was not made with our key.
    bad_tag,
    /// Dropped: what we have said ourselves, sent back.
    reflected,
    /// Hellos that were asked to bring a cookie, and hellos with one that came too often and were dropped.
    flooded,
    /// Dropped: of a session that is not, or no longer, ours.
    other_session,
    /// Dropped: it has come before.
    replayed,
    /// Dropped: too far behind the newest to know whether it has come before.
    too_old,
    /// Dropped: a welcome, a cookie or a refusal of a hello that is not ours, or no longer.
    stale,
    /// Dropped: sealed by the peer, and yet nothing that can be read.
    bad_body,
    /// Dropped: nothing that this state waits for.
    unexpected,
}

/// What somebody should know about who else speaks here. None is told more often than once in ten minutes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notice {
    /// A hello that was made with another key came from there.
    OtherKey(SocketAddr),
    /// Who answers there says that our hello was made with another key.
    RefusedBy(SocketAddr),
    /// Another version of the protocol is spoken there.
    OtherVersion(SocketAddr, u8),
    /// Our own messages come back from there.
    Reflected(SocketAddr),
}

/// What happened to the session since it was last asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// A new one is up: what was known of the last is void.
    Began(Agreed),
    /// It is over.
    Ended,
}
