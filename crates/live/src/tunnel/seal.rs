//! The ciphers of a tunnel: HMAC-SHA-256 for handshakes, HKDF for the keys of a session, ChaCha20-Poly1305 (RFC 8439)
//! for what it says. None of it is ours.

use chacha20poly1305::aead::AeadInOut as _;
use chacha20poly1305::{ChaCha20Poly1305, KeyInit as _, Nonce, Tag};
use hkdf::Hkdf;
use hmac::{Hmac, Mac as _};
use lasthop_proto::tunnel::seal::{Key, Seal, SessionKeys, TAG};
use sha2::Sha256;

/// Length of the key that both ends share.
pub const KEY: usize = 32;

/// What session keys are derived for.
const INFO: &[u8] = b"lasthop link 1 session keys";

/// The shared key at work.
pub struct Ciphers {
    shared: [u8; KEY],
}

impl Ciphers {
    /// With this key; without one, with a key that everybody knows: then nothing is secret and nobody is proven.
    pub fn new(key: Option<[u8; KEY]>) -> Ciphers {
        Ciphers { shared: key.unwrap_or([0; KEY]) }
    }

    fn mac(key: &[u8; KEY]) -> Hmac<Sha256> {
        match Hmac::new_from_slice(key) {
            Ok(mac) => mac,
            Err(_) => unreachable!("a key for HMAC may have any length"),
        }
    }
}

impl Seal for Ciphers {
    type Keys = Direction;

    fn code(&self, key: Key<'_>, bytes: &[u8]) -> [u8; 32] {
        let mut mac = Ciphers::mac(match key {
            Key::Shared => &self.shared,
            Key::Own(own) => own,
        });
        mac.update(bytes);
        mac.finalize().into_bytes().into()
    }

    fn is_tag(&self, bytes: &[u8], tag: &[u8; TAG]) -> bool {
        let mut mac = Ciphers::mac(&self.shared);
        mac.update(bytes);
        mac.verify_truncated_left(tag).is_ok()
    }

    fn keys(&self, transcript: &[u8]) -> [Direction; 2] {
        let hkdf = Hkdf::<Sha256>::new(Some(transcript), &self.shared);
        let mut keys = [0; 64];
        if hkdf.expand(INFO, &mut keys).is_err() {
            unreachable!("two keys are far less than HKDF may give");
        }
        let key = |at: usize| {
            let mut key = [0; 32];
            key.copy_from_slice(&keys[at..at + 32]);
            Direction(ChaCha20Poly1305::new(&key.into()))
        };
        [key(0), key(32)]
    }
}

/// One direction of a session.
pub struct Direction(ChaCha20Poly1305);

fn nonce(counter: u64) -> Nonce {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&counter.to_be_bytes());
    nonce.into()
}

impl SessionKeys for Direction {
    fn seal(&self, counter: u64, datagram: &mut Vec<u8>, head: usize) {
        let (head, body) = datagram.split_at_mut(head);
        let tag = match self.0.encrypt_inout_detached(&nonce(counter), head, body.into()) {
            Ok(tag) => tag,
            Err(_) => unreachable!("a datagram is far shorter than the cipher's limit"),
        };
        datagram.extend_from_slice(&tag);
    }

    fn open<'a>(&self, counter: u64, datagram: &'a mut [u8], head: usize) -> Option<&'a [u8]> {
        let (rest, tag) = datagram.split_last_chunk_mut::<TAG>()?;
        let (head, body) = rest.split_at_mut_checked(head)?;
        let tag = Tag::from(*tag);
        self.0.decrypt_inout_detached(&nonce(counter), head, (&mut *body).into(), &tag).ok()?;
        Some(body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(key: u8, transcript: &[u8]) -> [Direction; 2] {
        Ciphers::new(Some([key; KEY])).keys(transcript)
    }

    fn sealed(keys: &Direction, counter: u64) -> Vec<u8> {
        let mut datagram = b"head and body".to_vec();
        keys.seal(counter, &mut datagram, 4);
        datagram
    }

    #[test]
    fn what_is_sealed_opens_with_the_same_key_counter_and_head_alone() {
        let [there, back] = keys(1, b"both offers");
        let good = sealed(&there, 7);
        assert_eq!(&good[..4], b"head");
        assert!(!good.windows(4).any(|bytes| bytes == b"body"));
        assert_eq!(there.open(7, &mut good.clone(), 4), Some(&b" and body"[..]));
        assert_eq!(there.open(8, &mut good.clone(), 4), None);
        assert_eq!(back.open(7, &mut good.clone(), 4), None);
        assert_eq!(keys(2, b"both offers")[0].open(7, &mut good.clone(), 4), None);
        assert_eq!(keys(1, b"other offers")[0].open(7, &mut good.clone(), 4), None);
        for i in 0..good.len() {
            let mut bad = good.clone();
            bad[i] ^= 1;
            assert_eq!(there.open(7, &mut bad, 4), None, "byte {i}");
        }
        for len in 0..good.len() {
            assert_eq!(there.open(7, &mut good[..len].to_vec(), 4), None, "{len} bytes");
        }
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
