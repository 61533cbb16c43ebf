//! What a session asks of cryptography. The machine knows no cipher: who drives it brings one.

/// Length of a tag, of handshakes and of sealed bodies.
pub const TAG: usize = 16;

/// Which key a code is made with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Key<'a> {
    /// The one that both ends have.
    Shared,
    /// One of our own that nobody else ever sees.
    Own(&'a [u8; 32]),
}

/// Codes and keys.
pub trait Seal {
    /// What seals and opens in one direction of one session.
    type Keys: SessionKeys;

    /// A code over `bytes` that cannot be told from chance without the key.
    fn code(&self, key: Key<'_>, bytes: &[u8]) -> [u8; 32];

    /// Whether `tag` is how the code over `bytes` under the shared key begins. Takes as long for every wrong tag.
    fn is_tag(&self, bytes: &[u8], tag: &[u8; TAG]) -> bool;

    /// The keys of the session that `transcript`, both offers, stands for: what the caller sends with, then the
    /// callee.
    fn keys(&self, transcript: &[u8]) -> [Self::Keys; 2];
}

/// Keys of one direction of a session.
pub trait SessionKeys {
    /// Seals everything in `datagram` behind its first `head` bytes, which stay readable and are vouched for, and
    /// appends a tag. A counter must never come twice.
    fn seal(&self, counter: u64, datagram: &mut Vec<u8>, head: usize);

    /// Opens what [`SessionKeys::seal`] has sealed, in place; the body, or nothing if it was not sealed with these
    /// keys, this counter and this head.
    fn open<'a>(&self, counter: u64, datagram: &'a mut [u8], head: usize) -> Option<&'a [u8]>;
}

/// For tests: codes without any strength, so that the machine can be tried without a cipher.
#[derive(Clone, Copy, Debug, Default)]
pub struct Toy {
    /// The shared key.
    pub key: u64,
}

/// See [`Toy`].
#[derive(Clone, Copy, Debug)]
pub struct ToyKeys(u64);

fn fnv(start: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(start ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}

impl Toy {
    fn spread(start: u64, bytes: &[u8]) -> [u8; 32] {
        let mut code = [0; 32];
        for (i, part) in code.chunks_exact_mut(8).enumerate() {
            part.copy_from_slice(&fnv(start.rotate_left(i as u32), bytes).to_be_bytes());
        }
        code
    }
}

impl Seal for Toy {
    type Keys = ToyKeys;

    fn code(&self, key: Key<'_>, bytes: &[u8]) -> [u8; 32] {
        match key {
            Key::Shared => Toy::spread(self.key, bytes),
            Key::Own(own) => Toy::spread(fnv(1, own), bytes),
        }
    }

    fn is_tag(&self, bytes: &[u8], tag: &[u8; TAG]) -> bool {
        self.code(Key::Shared, bytes)[..TAG] == *tag
    }

    fn keys(&self, transcript: &[u8]) -> [ToyKeys; 2] {
        [1, 2].map(|direction| ToyKeys(fnv(self.key.wrapping_add(direction), transcript)))
    }
}

impl SessionKeys for ToyKeys {
    fn seal(&self, counter: u64, datagram: &mut Vec<u8>, _: usize) {
        let code = fnv(self.0 ^ counter, datagram).to_be_bytes();
        datagram.extend_from_slice(&code);
        datagram.extend_from_slice(&code);
    }

    fn open<'a>(&self, counter: u64, datagram: &'a mut [u8], head: usize) -> Option<&'a [u8]> {
        let (bytes, tag) = datagram.split_last_chunk::<TAG>()?;
        let code = fnv(self.0 ^ counter, bytes).to_be_bytes();
        (tag[..8] == code && tag[8..] == code).then(|| bytes.get(head..))?
    }
}
