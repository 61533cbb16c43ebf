//! The ciphers of a tunnel. The handshake and the session use Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s of the
//! crate `snow`; the outer codes use HMAC-SHA-256. No cipher is implemented here.
//!
//! Two keys are derived from the shared one. So the codes and Noise use independent keys, which also differ
//! from those of the first protocol version.

use hmac::{Hmac, KeyInit as _, Mac as _};
use lasthop_proto::tunnel::message::{OFFER, VERSION};
use lasthop_proto::tunnel::seal::{Key, NOISE, Seal, SessionKeys, TAG};
use sha2::Sha256;
use snow::params::NoiseParams;
use snow::{Builder, HandshakeState, StatelessTransportState};

/// Length of the shared key, bytes.
pub const KEY: usize = 32;

/// Noise pattern: an ephemeral key of each end, with the shared key mixed in first.
const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";

/// The ciphers with the shared key.
pub struct Ciphers {
    codes: [u8; KEY],
    noise: [u8; KEY],
    params: NoiseParams,
    /// Protocol, version and role of the initiator, which both ends must agree on.
    prologue: Vec<u8>,
}

fn mac(key: &[u8; KEY], bytes: &[u8]) -> Hmac<Sha256> {
    let Ok(mut mac) = Hmac::new_from_slice(key) else {
        unreachable!("a key for HMAC may have any length")
    };
    mac.update(bytes);
    mac
}

fn code(key: &[u8; KEY], bytes: &[u8]) -> [u8; 32] {
    mac(key, bytes).finalize().into_bytes().into()
}

impl Ciphers {
    /// The ciphers of this key. `None` means a public key: no secrecy and no authentication.
    pub fn new(key: Option<[u8; KEY]>) -> Ciphers {
        let shared = key.unwrap_or([0; KEY]);
        let Ok(params) = PATTERN.parse() else { unreachable!("the pattern is well-formed") };
        Ciphers {
            codes: code(&shared, b"lasthop link 2: codes"),
            noise: code(&shared, b"lasthop link 2: noise"),
            params,
            prologue: [b"lasthop link, caller to callee, version ", &[VERSION][..]].concat(),
        }
    }

    fn builder(&self) -> Result<Builder<'_>, snow::Error> {
        Builder::new(self.params.clone()).psk(0, &self.noise)?.prologue(&self.prologue)
    }
}

/// Writes a handshake message that carries `offer`.
fn write(state: &mut HandshakeState, offer: &[u8]) -> Option<Vec<u8>> {
    let mut message = vec![0; NOISE + offer.len()];
    let len = state.write_message(offer, &mut message).ok()?;
    message.truncate(len);
    Some(message)
}

fn read(state: &mut HandshakeState, message: &[u8]) -> Option<Vec<u8>> {
    let mut offer = vec![0; OFFER + NOISE];
    let len = state.read_message(message, &mut offer).ok()?;
    offer.truncate(len);
    Some(offer)
}

impl Seal for Ciphers {
    /// Empty after a valid answer.
    type Initiator = Option<HandshakeState>;
    type Responder = HandshakeState;
    type Keys = Both;

    fn code(&self, key: Key<'_>, bytes: &[u8]) -> [u8; 32] {
        match key {
            Key::Shared => code(&self.codes, bytes),
            Key::Own(own) => code(own, bytes),
        }
    }

    fn is_tag(&self, bytes: &[u8], tag: &[u8; TAG]) -> bool {
        mac(&self.codes, bytes).verify_truncated_left(tag).is_ok()
    }

    fn call(&self, offer: &[u8]) -> Option<(Self::Initiator, Vec<u8>)> {
        let mut state = self.builder().and_then(Builder::build_initiator).ok()?;
        let first = write(&mut state, offer)?;
        Some((Some(state), first))
    }

    fn read_call(&self, first: &[u8]) -> Option<(HandshakeState, Vec<u8>)> {
        let mut state = self.builder().and_then(Builder::build_responder).ok()?;
        let offer = read(&mut state, first)?;
        Some((state, offer))
    }

    fn answer(&self, mut state: HandshakeState, offer: &[u8]) -> Option<(Both, Vec<u8>)> {
        let second = write(&mut state, offer)?;
        Some((Both(state.into_stateless_transport_mode().ok()?), second))
    }

    fn finish(&self, call: &mut Self::Initiator, second: &[u8]) -> Option<(Both, Vec<u8>)> {
        let offer = read(call.as_mut()?, second)?;
        Some((Both(call.take()?.into_stateless_transport_mode().ok()?), offer))
    }
}

/// The keys of both directions of a session.
pub struct Both(StatelessTransportState);

impl SessionKeys for Both {
    fn seal(&self, counter: u64, datagram: &mut Vec<u8>, head: usize) {
        let body = datagram.split_off(head);
        datagram.resize(head + body.len() + TAG, 0);
        let written = self.0.write_message(counter, &body, &mut datagram[head..]);
        assert!(written.is_ok(), "a datagram is far shorter than the cipher's limit");
    }

    fn open<'a>(&self, counter: u64, datagram: &'a mut [u8], head: usize) -> Option<&'a [u8]> {
        let sealed = datagram.get_mut(head..)?;
        let mut body = vec![0; sealed.len()];
        let len = self.0.read_message(counter, sealed, &mut body).ok()?;
        let opened = sealed.get_mut(..len)?;
        opened.copy_from_slice(&body[..len]);
        Some(opened)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handshake(caller: &Ciphers, callee: &Ciphers) -> Option<[Both; 2]> {
        let (mut call, first) = caller.call(&[1; OFFER]).unwrap();
        let (answer, offer) = callee.read_call(&first)?;
        assert_eq!(offer, [1; OFFER]);
        let (theirs, second) = callee.answer(answer, &[2; OFFER]).unwrap();
        // A forged answer does not end the call.
        assert!(caller.finish(&mut call, &first).is_none());
        let (ours, offer) = caller.finish(&mut call, &second).unwrap();
        assert_eq!(offer, [2; OFFER]);
        assert!(caller.finish(&mut call, &second).is_none(), "it is over");
        Some([ours, theirs])
    }

    fn sealed(keys: &Both, counter: u64) -> Vec<u8> {
        let mut datagram = b"head and body".to_vec();
        keys.seal(counter, &mut datagram, 4);
        datagram
    }

    #[test]
    fn a_sealed_packet_needs_its_session_direction_and_counter() {
        let key = Ciphers::new(Some([1; KEY]));
        let [ours, theirs] = handshake(&key, &key).unwrap();
        let others = handshake(&key, &key).unwrap();
        let good = sealed(&ours, 7);
        assert_eq!(&good[..4], b"head");
        assert!(!good.windows(4).any(|bytes| bytes == b"body"));
        assert_eq!(theirs.open(7, &mut good.clone(), 4), Some(&b" and body"[..]));
        assert_eq!(theirs.open(8, &mut good.clone(), 4), None);
        assert_eq!(ours.open(7, &mut good.clone(), 4), None);
        for other in &others {
            assert_eq!(other.open(7, &mut good.clone(), 4), None, "the key alone opens nothing");
        }
        for i in 4..good.len() {
            let mut bad = good.clone();
            bad[i] ^= 1;
            assert_eq!(theirs.open(7, &mut bad, 4), None, "byte {i}");
        }
        for len in 0..good.len() {
            assert_eq!(theirs.open(7, &mut good[..len].to_vec(), 4), None, "{len} bytes");
        }
    }

    #[test]
    fn a_handshake_with_another_key_fails() {
        let [a, b] = [1, 2].map(|key| Ciphers::new(Some([key; KEY])));
        assert!(handshake(&a, &b).is_none());
        assert!(handshake(&Ciphers::new(None), &a).is_none());
    }

    #[test]
    fn codes_depend_on_key_and_bytes() {
        let a = Ciphers::new(Some([1; KEY]));
        let code = a.code(Key::Shared, b"hello");
        let tag: [u8; TAG] = code[..TAG].try_into().unwrap();
        assert!(a.is_tag(b"hello", &tag));
        assert!(!a.is_tag(b"hellO", &tag));
        assert!(!Ciphers::new(None).is_tag(b"hello", &tag));
        assert_ne!(a.code(Key::Own(&[3; 32]), b"hello"), code);
    }
}
