//! What a session asks of cryptography. The machine knows no cipher: who drives it brings one.

/// Length of a tag, of plain messages and of sealed bodies.
pub const TAG: usize = 16;

/// What a message of a handshake adds to the offer in it: an ephemeral public key and a tag.
pub const NOISE: usize = 32 + TAG;

/// Which key a code is made with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Key<'a> {
    /// The one that both ends have.
    Shared,
    /// One of our own that nobody else ever sees.
    Own(&'a [u8; 32]),
}

/// Codes, and a handshake of two messages that leaves both ends with keys: the caller's, then the callee's. Each message
/// carries an offer. Neither can be made or read without the shared key, and the keys depend on secrets of this handshake
/// alone as well, which nobody keeps.
pub trait Seal {
    /// A caller's side of a handshake, waiting for the answer.
    type Call;
    /// A callee's side of a handshake that has not been answered.
    type Answer;
    /// What seals and opens in a session.
    type Keys: SessionKeys;

    /// A code over `bytes` that cannot be told from chance without the key.
    fn code(&self, key: Key<'_>, bytes: &[u8]) -> [u8; 32];

    /// Whether `tag` is how the code over `bytes` under the shared key begins. Takes as long for every wrong tag.
    fn is_tag(&self, bytes: &[u8], tag: &[u8; TAG]) -> bool;

    /// Begins a handshake: the first message, which carries `offer`. Nothing when the system has no chance to give.
    fn call(&self, offer: &[u8]) -> Option<(Self::Call, Vec<u8>)>;

    /// Reads the first message: the caller's offer, if whoever made it has the key. This is cheap: no public key is
    /// multiplied.
    fn hear(&self, first: &[u8]) -> Option<(Self::Answer, Vec<u8>)>;

    /// Answers with the second message, which carries `offer`.
    fn answer(&self, answer: Self::Answer, offer: &[u8]) -> Option<(Self::Keys, Vec<u8>)>;

    /// Reads the second message: the keys, and the callee's offer. The call can go on when it is none.
    fn finish(&self, call: &mut Self::Call, second: &[u8]) -> Option<(Self::Keys, Vec<u8>)>;
}

/// Keys of a session, for both directions.
pub trait SessionKeys {
    /// Seals everything in `datagram` behind its first `head` bytes, which stay readable, and appends a tag. A counter must
    /// never come twice.
    fn seal(&self, counter: u64, datagram: &mut Vec<u8>, head: usize);

    /// Opens what the peer's [`SessionKeys::seal`] has sealed, in place; the body, or nothing if it was not sealed with
    /// these keys and this counter.
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

    /// A message: what stands for a public key, the offer, and a tag over both.
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
    type Call = Vec<u8>;
    type Answer = Vec<u8>;
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

    fn hear(&self, first: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
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
