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
