//! Cryptographic interface of a session. The machine contains no cipher: its driver supplies one.

/// Length of a tag in bytes, of plain messages and of sealed bodies.
pub const TAG: usize = 16;

/// Bytes that a handshake message adds to its offer: an ephemeral public key and a tag.
pub const NOISE: usize = 32 + TAG;

/// Key of a code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Key<'a> {
    /// The key that both ends share.
    Shared,
    /// A private key of this end.
    Own(&'a [u8; 32]),
}

/// Codes, and a handshake of two messages that gives both ends keys: the caller's message, then the callee's.
/// Each message carries an offer. Creating or reading either requires the shared key. The session keys also
/// depend on ephemeral secrets of this handshake, which are discarded (forward secrecy).
pub trait Seal {
    /// A caller's handshake state while it waits for the answer.
    type Initiator;
    /// A callee's handshake state before its answer.
    type Responder;
    /// The keys of a session.
    type Keys: SessionKeys;

    /// A code over `bytes` that is indistinguishable from random bytes without the key.
    fn code(&self, key: Key<'_>, bytes: &[u8]) -> [u8; 32];

    /// Whether `tag` is the beginning of the code over `bytes` under the shared key. Takes the same time for
    /// every wrong tag.
    fn is_tag(&self, bytes: &[u8], tag: &[u8; TAG]) -> bool;

    /// Starts a handshake: the first message, which carries `offer`. `None` if the system provides no random
    /// numbers.
    fn call(&self, offer: &[u8]) -> Option<(Self::Initiator, Vec<u8>)>;

    /// Reads the first message: returns the caller's offer, if the caller has the key. This is cheap: it
    /// multiplies no public key.
    fn read_call(&self, first: &[u8]) -> Option<(Self::Responder, Vec<u8>)>;

    /// Creates the second message, which carries `offer`, and the keys.
    fn answer(&self, responder: Self::Responder, offer: &[u8]) -> Option<(Self::Keys, Vec<u8>)>;

    /// Reads the second message: returns the keys and the callee's offer. After an invalid message the call
    /// can continue.
    fn finish(
        &self,
        initiator: &mut Self::Initiator,
        second: &[u8],
    ) -> Option<(Self::Keys, Vec<u8>)>;
}

/// Keys of a session for both directions.
pub trait SessionKeys {
    /// Seals everything in `datagram` after its first `head` bytes, which stay readable, and appends a tag. A
    /// counter must not be reused.
    fn seal(&self, counter: u64, datagram: &mut Vec<u8>, head: usize);

    /// Opens a datagram of the peer's [`SessionKeys::seal`] in place and returns its body; `None` if it was
    /// not sealed with these keys and this counter.
    fn open<'a>(&self, counter: u64, datagram: &'a mut [u8], head: usize) -> Option<&'a [u8]>;
}

/// For tests: codes without any strength, so that the machine can be tested without a cipher.
#[derive(Clone, Copy, Debug, Default)]
pub struct Toy {
    /// The shared key.
    pub key: u64,
}

/// See [`Toy`].
#[derive(Clone, Copy, Debug)]
pub struct ToyKeys {
    sends: u64,
    receives: u64,
}

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

    /// A message: a fake public key, the offer, and a tag over both.
    fn message(&self, offer: &[u8]) -> Vec<u8> {
        let body = [&Toy::spread(self.key, offer)[..], offer].concat();
        [&body[..], &self.code(Key::Shared, &body)[..TAG]].concat()
    }

    fn open(&self, message: &[u8]) -> Option<Vec<u8>> {
        let (body, tag) = message.split_last_chunk::<TAG>()?;
        self.is_tag(body, tag).then(|| body.get(32..).map(<[u8]>::to_vec))?
    }

    fn keys(&self, first: &[u8], second: &[u8]) -> [u64; 2] {
        [1, 2].map(|direction| fnv(fnv(self.key.wrapping_add(direction), first), second))
    }
}

impl Seal for Toy {
    type Initiator = Vec<u8>;
    type Responder = Vec<u8>;
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

    fn call(&self, offer: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
        let first = self.message(offer);
        Some((first.clone(), first))
    }

    fn read_call(&self, first: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
        Some((first.to_vec(), self.open(first)?))
    }

    fn answer(&self, first: Vec<u8>, offer: &[u8]) -> Option<(ToyKeys, Vec<u8>)> {
        let second = self.message(offer);
        let [receives, sends] = self.keys(&first, &second);
        Some((ToyKeys { sends, receives }, second))
    }

    fn finish(&self, first: &mut Vec<u8>, second: &[u8]) -> Option<(ToyKeys, Vec<u8>)> {
        let offer = self.open(second)?;
        let [sends, receives] = self.keys(first, second);
        Some((ToyKeys { sends, receives }, offer))
    }
}

impl SessionKeys for ToyKeys {
    fn seal(&self, counter: u64, datagram: &mut Vec<u8>, _: usize) {
        let code = fnv(self.sends ^ counter, datagram).to_be_bytes();
        datagram.extend_from_slice(&code);
        datagram.extend_from_slice(&code);
    }

    fn open<'a>(&self, counter: u64, datagram: &'a mut [u8], head: usize) -> Option<&'a [u8]> {
        let (bytes, tag) = datagram.split_last_chunk::<TAG>()?;
        let code = fnv(self.receives ^ counter, bytes).to_be_bytes();
        (tag[..8] == code && tag[8..] == code).then(|| bytes.get(head..))?
    }
}
