//! Messages between the two ends of a tunnel, in bytes. One message is one datagram; numbers are big-endian.
//!
//! ```text
//! hello    | 1 | version | cookie: 16, or zeros | first message of Noise, with an offer in it  | tag |
//! welcome  | 2 | version | zeros: 16            | second message of Noise, with an offer in it | tag |
//! sealed   | 4 | identity that the receiver chose: 4 | counter: 8 | sealed body, its tag of 16 bytes last |
//! cookie   | 5 | version | tag of the hello: 16 | cookie: 16 | tag |
//! lost     | 6 | version | identity unknown at this end: 4   | tag |
//! refused  | 7 | version | tag of the hello: 16              | tag |
//!
//! offer    | window: 2 | inner MTU: 2 | keep-alive in ms: 4 | identity: 4 | end: 16 |
//! ```
//!
//! The tag of unsealed messages is a code over the preceding bytes that requires the shared key. An end
//! without the key gets no answer except a refusal. No answer is longer than its request.

use super::seal::{NOISE, TAG};

/// The version of the protocol. Earlier versions are not supported.
pub const VERSION: u8 = 2;

/// Length of an offer in bytes.
pub const OFFER: usize = 28;

/// Offset of the Noise message in a hello and in a welcome.
const BODY: usize = 2 + TAG;

/// Length of a hello and of a welcome in bytes, tag included.
pub const HANDSHAKE: usize = BODY + NOISE + OFFER + TAG;

/// Length of the head before a sealed body in bytes.
pub const HEAD: usize = 13;

/// Bytes that a tunnel adds to a frame of the link layer, without UDP and IP: the head, the kind, the tag.
pub const OVERHEAD: usize = HEAD + 1 + TAG;

const HELLO: u8 = 1;
const WELCOME: u8 = 2;
const SEALED: u8 = 4;
const COOKIE: u8 = 5;
const LOST: u8 = 6;
const REFUSED: u8 = 7;

/// An end's proposal for the session, with fresh random values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Offer {
    /// Largest window in packets.
    pub window: u16,
    /// Longest packet that the tunnel carries, in bytes.
    pub mtu: u16,
    /// Keep-alive interval of this end in milliseconds.
    pub keep_alive_ms: u32,
    /// Identity that the other end must write on all its messages.
    pub identity: u32,
    /// Random number of the process, drawn at its start. It prevents a session of an end with itself.
    pub end: [u8; 16],
}

impl Offer {
    /// Serializes the offer.
    pub fn write(&self) -> [u8; OFFER] {
        let mut bytes = [0; OFFER];
        bytes[0..2].copy_from_slice(&self.window.to_be_bytes());
        bytes[2..4].copy_from_slice(&self.mtu.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.keep_alive_ms.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.identity.to_be_bytes());
        bytes[12..28].copy_from_slice(&self.end);
        bytes
    }

    /// Parses an offer from [`Offer::write`]; `None` if the length differs.
    pub fn read(bytes: &[u8]) -> Option<Offer> {
        let bytes: &[u8; OFFER] = bytes.try_into().ok()?;
        let mut end = [0; 16];
        end.copy_from_slice(&bytes[12..28]);
        Some(Offer {
            window: u16::from_be_bytes([bytes[0], bytes[1]]),
            mtu: u16::from_be_bytes([bytes[2], bytes[3]]),
            keep_alive_ms: u32::from_be_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
            identity: u32::from_be_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]),
            end,
        })
    }
}

/// An unsealed message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Plain<'a> {
    /// Start of a handshake by the caller.
    Hello {
        /// The cookie that it received; zeros without one.
        cookie: [u8; TAG],
        /// First message of Noise.
        noise: &'a [u8],
    },
    /// Answer of the other end.
    Welcome {
        /// Second message of Noise.
        noise: &'a [u8],
    },
    /// Stateless cookie, required from the same address while handshakes exceed the limit.
    Cookie {
        /// Tag of the hello that it answers.
        hello: [u8; TAG],
        /// The cookie to return.
        cookie: [u8; TAG],
    },
    /// Report that the session of this identity no longer exists.
    Lost {
        /// Identity on the rejected message.
        identity: u32,
    },
    /// Report that the hello has another key. The tag of this message uses the key of the refusing end.
    Refused {
        /// Tag of the hello.
        hello: [u8; TAG],
    },
}

impl Plain<'_> {
    /// Serializes everything except the tag.
    pub fn write(&self) -> Vec<u8> {
        let begin = |kind: u8| vec![kind, VERSION];
        match self {
            Plain::Hello { cookie, noise } => [&begin(HELLO)[..], cookie, noise].concat(),
            Plain::Welcome { noise } => [&begin(WELCOME)[..], &[0; TAG], noise].concat(),
            Plain::Cookie { hello, cookie } => [&begin(COOKIE)[..], hello, cookie].concat(),
            Plain::Lost { identity } => [&begin(LOST)[..], &identity.to_be_bytes()].concat(),
            Plain::Refused { hello } => [&begin(REFUSED)[..], hello].concat(),
        }
    }
}

/// A datagram, as far as it can be parsed without a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message<'a> {
    /// Unsealed; the tag is not verified yet.
    Plain(Plain<'a>),
    /// Sealed.
    Sealed {
        /// The identity that the receiver chose.
        identity: u32,
        /// Number of the message in its direction.
        counter: u64,
    },
}

/// Why a datagram does not belong to the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unreadable {
    /// The length does not match its kind.
    Length,
    /// Another version of the protocol.
    Version(u8),
    /// Unknown kind.
    Kind,
}

/// Parses a datagram.
///
/// # Errors
/// When it does not belong to the protocol.
pub fn read(bytes: &[u8]) -> Result<Message<'_>, Unreadable> {
    let kind = match bytes.first() {
        None => return Err(Unreadable::Length),
        Some(&SEALED) => return read_sealed(bytes),
        // The third message of the first version.
        Some(&kind @ (HELLO..=3 | COOKIE..=REFUSED)) => kind,
        Some(_) => return Err(Unreadable::Kind),
    };
    // The version first: another one may have other lengths.
    match bytes.get(1) {
        Some(&version) if version != VERSION => return Err(Unreadable::Version(version)),
        _ => {}
    }
    let body = bytes.get(2..bytes.len().saturating_sub(TAG)).ok_or(Unreadable::Length)?;
    let (first, rest) = body.split_first_chunk::<TAG>().map_or(([0; TAG], body), |(f, r)| (*f, r));
    let plain = match kind {
        HELLO if bytes.len() == HANDSHAKE => Plain::Hello { cookie: first, noise: rest },
        WELCOME if bytes.len() == HANDSHAKE => Plain::Welcome { noise: rest },
        COOKIE => match rest.try_into() {
            Ok(cookie) => Plain::Cookie { hello: first, cookie },
            Err(_) => return Err(Unreadable::Length),
        },
        LOST => match body.try_into() {
            Ok(identity) => Plain::Lost { identity: u32::from_be_bytes(identity) },
            Err(_) => return Err(Unreadable::Length),
        },
        REFUSED if body.len() == TAG => Plain::Refused { hello: first },
        HELLO | WELCOME | REFUSED => return Err(Unreadable::Length),
        _ => return Err(Unreadable::Kind),
    };
    Ok(Message::Plain(plain))
}

fn read_sealed(bytes: &[u8]) -> Result<Message<'_>, Unreadable> {
    if bytes.len() < OVERHEAD {
        return Err(Unreadable::Length);
    }
    let head: &[u8; HEAD] = bytes.first_chunk().ok_or(Unreadable::Length)?;
    let mut counter = [0; 8];
    counter.copy_from_slice(&head[5..13]);
    Ok(Message::Sealed {
        identity: u32::from_be_bytes([head[1], head[2], head[3], head[4]]),
        counter: u64::from_be_bytes(counter),
    })
}

/// The head of a sealed message.
pub fn head(identity: u32, counter: u64) -> [u8; HEAD] {
    let mut head = [SEALED; HEAD];
    head[1..5].copy_from_slice(&identity.to_be_bytes());
    head[5..13].copy_from_slice(&counter.to_be_bytes());
    head
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn offers_come_back() {
        let offer = Offer {
            window: 64,
            mtu: 1400,
            keep_alive_ms: 3000,
            identity: 7 << 24 | 7,
            end: [9; 16],
        };
        assert_eq!(Offer::read(&offer.write()), Some(offer));
        assert_eq!(Offer::read(&offer.write()[1..]), None);
    }

    #[test]
    fn plain_messages_come_back() {
        let noise = [7; NOISE + OFFER];
        for plain in [
            Plain::Hello { cookie: [1; TAG], noise: &noise },
            Plain::Welcome { noise: &noise },
            Plain::Cookie { hello: [1; TAG], cookie: [2; TAG] },
            Plain::Lost { identity: 0xdead_beef },
            Plain::Refused { hello: [1; TAG] },
        ] {
            let mut bytes = plain.write();
            assert!(matches!(read(&bytes), Err(Unreadable::Length)), "without its tag: {plain:?}");
            bytes.extend([0; TAG]);
            assert!(bytes.len() <= HANDSHAKE, "no answer is longer than a hello");
            assert_eq!(read(&bytes), Ok(Message::Plain(plain)));
            bytes.push(0);
            assert_eq!(read(&bytes), Err(Unreadable::Length));
            for version in [VERSION - 1, VERSION + 1] {
                bytes[1] = version;
                assert_eq!(read(&bytes), Err(Unreadable::Version(version)));
            }
        }
    }

    #[test]
    fn heads_come_back() {
        let mut bytes = head(0xdead_beef, 1 << 40).to_vec();
        bytes.resize(OVERHEAD, 0);
        let sealed = Message::Sealed { identity: 0xdead_beef, counter: 1 << 40 };
        assert_eq!(read(&bytes), Ok(sealed));
        assert_eq!(read(&bytes[..OVERHEAD - 1]), Err(Unreadable::Length));
        assert_eq!(read(&[]), Err(Unreadable::Length));
        assert_eq!(read(&[9; 200]), Err(Unreadable::Kind));
    }

    proptest! {
        #[test]
        fn nothing_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
        }
    }
}
