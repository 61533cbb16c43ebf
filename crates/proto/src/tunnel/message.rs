//! What two ends of a tunnel say to each other, as bytes. One message is one datagram; numbers are big-endian.
//!
//! ```text
//! hello    | 1 | version | zeros         | offer of the caller | zeros           | tag |
//! welcome  | 2 | version | zeros         | offer of the caller | own offer       | tag |
//! confirm  | 3 | version | round trip: 4 | offer of the caller | offer of callee | tag |
//! sealed   | 4 | identity that the receiver chose: 4 | counter: 8 | sealed body, its tag of 16 bytes last |
//!
//! offer    | window: 2 | inner MTU: 2 | keep-alive in ms: 4 | identity: 4 | random: 32 |
//! ```
//!
//! The tag of the first three is a code over everything before it that only who has the key can make. They have one
//! length, so that no answer is longer than what asked for it. The round trip, in microseconds, is what the caller has
//! measured.

use super::seal::TAG;

/// The version of the protocol.
pub const VERSION: u8 = 1;

/// Length of an offer.
pub const OFFER: usize = 44;

/// Length of a handshake's message, tag included.
pub const HANDSHAKE: usize = OFFERS + 2 * OFFER + TAG;

/// Where the offers begin.
const OFFERS: usize = 6;

/// Length of what stands before a sealed body.
pub const HEAD: usize = 13;

/// What a tunnel adds to a frame of the link layer, UDP and IP not counted: the head, the kind, the tag.
pub const OVERHEAD: usize = HEAD + 1 + TAG;

const SEALED: u8 = 4;

/// What one end wants of the session, and what makes it new.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Offer {
    /// Largest window, in packets.
    pub window: u16,
    /// Longest packet that the tunnel carries.
    pub mtu: u16,
    /// How often this end says that it is alive, in milliseconds.
    pub keep_alive_ms: u32,
    /// What the other end is to write on everything that it sends.
    pub identity: u32,
    /// Bytes that were never used before.
    pub random: [u8; 32],
}

impl Offer {
    /// The offer as bytes.
    pub fn write(&self) -> [u8; OFFER] {
        let mut bytes = [0; OFFER];
        bytes[0..2].copy_from_slice(&self.window.to_be_bytes());
        bytes[2..4].copy_from_slice(&self.mtu.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.keep_alive_ms.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.identity.to_be_bytes());
        bytes[12..44].copy_from_slice(&self.random);
        bytes
    }

    fn read(bytes: &[u8; OFFER]) -> Offer {
        let mut random = [0; 32];
        random.copy_from_slice(&bytes[12..44]);
        Offer {
            window: u16::from_be_bytes([bytes[0], bytes[1]]),
            mtu: u16::from_be_bytes([bytes[2], bytes[3]]),
            keep_alive_ms: u32::from_be_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
            identity: u32::from_be_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]),
            random,
        }
    }
}

/// The three messages of a handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// The caller knocks.
    Hello,
    /// The other end answers, and keeps nothing.
    Welcome,
    /// The caller shows that it heard the answer.
    Confirm,
}

impl Step {
    fn code(self) -> u8 {
        match self {
            Step::Hello => 1,
            Step::Welcome => 2,
            Step::Confirm => 3,
        }
    }
}

/// A message of a handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handshake {
    /// Which of the three.
    pub step: Step,
    /// The caller's offer.
    pub caller: Offer,
    /// The callee's; none in a hello.
    pub callee: Option<Offer>,
    /// The round trip that the caller has measured, in microseconds; zero before the confirm.
    pub rtt_us: u32,
}

impl Handshake {
    /// Everything but the tag.
    pub fn write(&self) -> [u8; HANDSHAKE - TAG] {
        let mut bytes = [0; HANDSHAKE - TAG];
        bytes[0] = self.step.code();
        bytes[1] = VERSION;
        bytes[2..OFFERS].copy_from_slice(&self.rtt_us.to_be_bytes());
        bytes[OFFERS..OFFERS + OFFER].copy_from_slice(&self.caller.write());
        if let Some(callee) = &self.callee {
            bytes[OFFERS + OFFER..].copy_from_slice(&callee.write());
        }
        bytes
    }
}

/// A datagram, as far as it can be read without a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message {
    /// Of a handshake; the tag is still to be checked.
    Handshake(Handshake),
    /// Sealed.
    Sealed {
        /// The identity that the receiver chose.
        identity: u32,
        /// Number of the message in its direction.
        counter: u64,
    },
}

/// Why a datagram is none of ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unreadable {
    /// It is shorter or longer than its kind is.
    Length,
    /// It speaks another version.
    Version,
    /// There is no such kind.
    Kind,
}

/// Reads a datagram.
///
/// # Errors
/// When it is none of ours.
pub fn read(bytes: &[u8]) -> Result<Message, Unreadable> {
    let step = match bytes.first() {
        None => return Err(Unreadable::Length),
        Some(&SEALED) => return read_sealed(bytes),
        Some(1) => Step::Hello,
        Some(2) => Step::Welcome,
        Some(3) => Step::Confirm,
        Some(_) => return Err(Unreadable::Kind),
    };
    // The version first: another one may have other lengths.
    if bytes.get(1).is_some_and(|version| *version != VERSION) {
        return Err(Unreadable::Version);
    }
    let bytes: &[u8; HANDSHAKE] = bytes.try_into().map_err(|_| Unreadable::Length)?;
    let offer = |at: usize| {
        let mut offer = [0; OFFER];
        offer.copy_from_slice(&bytes[at..at + OFFER]);
        Offer::read(&offer)
    };
    let callee = (step != Step::Hello).then(|| offer(OFFERS + OFFER));
    let rtt_us = u32::from_be_bytes([bytes[2], bytes[3], bytes[4], bytes[5]]);
    Ok(Message::Handshake(Handshake { step, caller: offer(OFFERS), callee, rtt_us }))
}

fn read_sealed(bytes: &[u8]) -> Result<Message, Unreadable> {
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

    fn offer(n: u8) -> Offer {
        Offer {
            window: 64,
            mtu: 1400,
            keep_alive_ms: 3000,
            identity: u32::from(n) << 24 | 7,
            random: [n; 32],
        }
    }

    #[test]
    fn handshakes_come_back() {
        for (step, callee) in
            [(Step::Hello, None), (Step::Welcome, Some(offer(2))), (Step::Confirm, Some(offer(2)))]
        {
            let message = Handshake { step, caller: offer(1), callee, rtt_us: 40_000 };
            let mut bytes = message.write().to_vec();
            assert_eq!(read(&bytes), Err(Unreadable::Length), "without its tag");
            bytes.extend([0; TAG]);
            assert_eq!(read(&bytes), Ok(Message::Handshake(message)));
            bytes[1] = VERSION + 1;
            assert_eq!(read(&bytes), Err(Unreadable::Version));
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
