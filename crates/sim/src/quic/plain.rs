//! The handshake of QUIC without encryption: messages, packets and lengths are those of TLS 1.3, the bytes are
//! readable.
//!
//! The QUIC stack takes its cryptography as traits. In a simulation there is no eavesdropper, and plain text has three
//! advantages. Key exchange would use the system's entropy, so that no run would repeat; ciphers would only cost time;
//! and the bytes in a packet would not be readable. Lengths are those of X25519, Ed25519 and AES-256-GCM: a 16-byte tag
//! after each packet, and two flights of messages with the stack's transport parameters.
//!
//! Not modelled: 0-RTT, retry, session tickets, key updates with new keys (they are the same), attacks.

use std::any::Any;
use std::sync::Arc;

use bytes::BytesMut;
use quinn_proto::crypto::{
    AeadKey, ClientConfig, CryptoError, ExportKeyingMaterialError, HandshakeTokenKey, HeaderKey,
    HmacKey, KeyPair, Keys, PacketKey, ServerConfig, Session, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError};

/// Length of the tag after each packet, as in AES-GCM.
pub(crate) const TAG: usize = 16;

/// Length of a message's header: its type, and its length in three bytes.
const HEAD: usize = 4;

/// Types of handshake messages of TLS 1.3 (RFC 8446 section 4).
mod message {
    pub(super) const CLIENT_HELLO: u8 = 1;
    pub(super) const SERVER_HELLO: u8 = 2;
    pub(super) const ENCRYPTED_EXTENSIONS: u8 = 8;
    pub(super) const CERTIFICATE: u8 = 11;
    pub(super) const CERTIFICATE_VERIFY: u8 = 15;
    pub(super) const FINISHED: u8 = 20;
}

/// Lengths of messages in bytes, without transport parameters and headers.
mod length {
    /// Random, session, suites, key share, signature algorithms, server name.
    pub(super) const CLIENT_HELLO: usize = 190;
    /// Random, session, suite, key share of X25519, version.
    pub(super) const SERVER_HELLO: usize = 86;
    pub(super) const ENCRYPTED_EXTENSIONS: usize = 6;
    /// One self-signed certificate with an Ed25519 key.
    pub(super) const CERTIFICATE: usize = 340;
    /// An Ed25519 signature.
    pub(super) const CERTIFICATE_VERIFY: usize = 68;
    /// SHA-384.
    pub(super) const FINISHED: usize = 48;
}

/// The encryption level: each has its own tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Level {
    Initial = 1,
    Handshake,
    Data,
}

/// Unencrypted packets, with a tag of level and number.
struct Plain(Level);

impl Plain {
    fn tag(&self, packet: u64) -> [u8; TAG] {
        let mut tag = [self.0 as u8; TAG];
        tag[..8].copy_from_slice(&packet.to_be_bytes());
        tag
    }
}

impl PacketKey for Plain {
    fn encrypt(&self, packet: u64, buf: &mut [u8], _header_len: usize) {
        let at = buf.len() - TAG;
        buf[at..].copy_from_slice(&self.tag(packet));
    }

    fn decrypt(&self, packet: u64, _: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        let at = payload.len().checked_sub(TAG).ok_or(CryptoError)?;
        if payload[at..] != self.tag(packet) {
            return Err(CryptoError);
        }
        payload.truncate(at);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    //= rfc9001#section-6.6: AES-GCM may protect 2^23 packets with a key, and 2^52 may fail
    fn confidentiality_limit(&self) -> u64 {
        1 << 23
    }

    fn integrity_limit(&self) -> u64 {
        1 << 52
    }
}

/// Unprotected headers.
struct Open;

impl HeaderKey for Open {
    fn decrypt(&self, _: usize, _: &mut [u8]) {}
    fn encrypt(&self, _: usize, _: &mut [u8]) {}
    fn sample_size(&self) -> usize {
        TAG
    }
}

fn keys(level: Level) -> Keys {
    Keys {
        header: KeyPair { local: Box::new(Open), remote: Box::new(Open) },
        packet: packet_keys(level),
    }
}

fn packet_keys(level: Level) -> KeyPair<Box<dyn PacketKey>> {
    KeyPair { local: Box::new(Plain(level)), remote: Box::new(Plain(level)) }
}

/// One end of a handshake.
struct Handshaking {
    side: Side,
    own: Vec<u8>,
    theirs: Option<TransportParameters>,
    /// The received part of an incomplete message.
    read: Vec<u8>,
    /// The type of the peer's last message.
    received: u8,
    /// The last level whose keys were exported.
    level: Level,
    hello_sent: bool,
    announced: bool,
}

impl Handshaking {
    fn new(side: Side, params: &TransportParameters) -> Handshaking {
        let mut own = Vec::new();
        params.write(&mut own);
        let level = Level::Initial;
        Handshaking {
            side,
            own,
            theirs: None,
            read: Vec::new(),
            received: 0,
            level,
            hello_sent: false,
            announced: false,
        }
    }

    /// Appends a message of `len` filler bytes and `params`.
    fn write(&self, kind: u8, len: usize, params: &[u8], buf: &mut Vec<u8>) {
        let whole = (len + params.len()) as u32;
        buf.push(kind);
        buf.extend_from_slice(&whole.to_be_bytes()[1..]);
        buf.resize(buf.len() + len, 0);
        buf.extend_from_slice(params);
    }

    /// Processes a message.
    fn take(&mut self, kind: u8, body: &[u8]) -> Result<(), TransportError> {
        let lead = match kind {
            message::CLIENT_HELLO => Some(length::CLIENT_HELLO),
            message::ENCRYPTED_EXTENSIONS => Some(length::ENCRYPTED_EXTENSIONS),
            _ => None,
        };
        if let Some(lead) = lead {
            let mut params = body.get(lead..).unwrap_or_default();
            let read = TransportParameters::read(self.side, &mut params);
            self.theirs = Some(read.map_err(TransportError::from)?);
        }
        self.received = kind;
        Ok(())
    }

    /// Advances to `level` and returns its keys.
    fn reach(&mut self, level: Level) -> Option<Keys> {
        self.level = level;
        Some(keys(level))
    }

    fn client(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        match (self.level, self.received) {
            (Level::Initial, message::SERVER_HELLO..) => self.reach(Level::Handshake),
            (Level::Initial, _) if !self.hello_sent => {
                self.hello_sent = true;
                self.write(message::CLIENT_HELLO, length::CLIENT_HELLO, &self.own, buf);
                None
            }
            (Level::Handshake, message::FINISHED) => {
                self.write(message::FINISHED, length::FINISHED, &[], buf);
                self.reach(Level::Data)
            }
            _ => None,
        }
    }

    fn server(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        match (self.level, self.received) {
            (Level::Initial, message::CLIENT_HELLO) => {
                self.write(message::SERVER_HELLO, length::SERVER_HELLO, &[], buf);
                self.reach(Level::Handshake)
            }
            (Level::Handshake, _) => {
                let lead = length::ENCRYPTED_EXTENSIONS;
                self.write(message::ENCRYPTED_EXTENSIONS, lead, &self.own, buf);
                self.write(message::CERTIFICATE, length::CERTIFICATE, &[], buf);
                self.write(message::CERTIFICATE_VERIFY, length::CERTIFICATE_VERIFY, &[], buf);
                self.write(message::FINISHED, length::FINISHED, &[], buf);
                self.reach(Level::Data)
            }
            _ => None,
        }
    }
}

impl Session for Handshaking {
    fn initial_keys(&self, _: &ConnectionId, _: Side) -> Keys {
        keys(Level::Initial)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        self.level != Level::Data || self.received != message::FINISHED
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.read.extend_from_slice(buf);
        while let [kind, a, b, c, rest @ ..] = self.read.as_slice() {
            let len = u32::from_be_bytes([0, *a, *b, *c]) as usize;
            let Some(body) = rest.get(..len).map(<[u8]>::to_vec) else { break };
            let kind = *kind;
            self.read.drain(..HEAD + len);
            self.take(kind, &body)?;
        }
        let news = !self.announced && !self.is_handshaking();
        self.announced |= news;
        Ok(news)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        Ok(self.theirs)
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        match self.side {
            Side::Client => self.client(buf),
            Side::Server => self.server(buf),
        }
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        Some(packet_keys(Level::Data))
    }

    fn is_valid_retry(&self, _: &ConnectionId, _: &[u8], _: &[u8]) -> bool {
        false
    }

    fn export_keying_material(
        &self,
        _: &mut [u8],
        _: &[u8],
        _: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}

/// The configuration of both ends of a handshake, and of tokens.
pub(crate) struct Handshake;

impl ClientConfig for Handshake {
    fn start_session(
        self: Arc<Self>,
        _version: u32,
        _server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(Box::new(Handshaking::new(Side::Client, params)))
    }
}

impl ServerConfig for Handshake {
    fn initial_keys(&self, _: u32, _: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(keys(Level::Initial))
    }

    fn retry_tag(&self, _: u32, _: &ConnectionId, _: &[u8]) -> [u8; 16] {
        [0; 16]
    }

    fn start_session(self: Arc<Self>, _: u32, params: &TransportParameters) -> Box<dyn Session> {
        Box::new(Handshaking::new(Side::Server, params))
    }
}

impl HandshakeTokenKey for Handshake {
    fn aead_from_hkdf(&self, _: &[u8]) -> Box<dyn AeadKey> {
        Box::new(Handshake)
    }
}

impl AeadKey for Handshake {
    fn seal(&self, data: &mut Vec<u8>, _: &[u8]) -> Result<(), CryptoError> {
        data.resize(data.len() + TAG, 0);
        Ok(())
    }

    fn open<'a>(&self, data: &'a mut [u8], _: &[u8]) -> Result<&'a mut [u8], CryptoError> {
        let len = data.len().checked_sub(TAG).ok_or(CryptoError)?;
        Ok(&mut data[..len])
    }
}

/// Tokens of stateless resets: a hash (FNV-1a) of the connection id, with a key of the host.
pub(crate) struct ResetKey(pub(crate) u64);

impl HmacKey for ResetKey {
    fn sign(&self, data: &[u8], out: &mut [u8]) {
        let mut hash = self.0 ^ 0xcbf2_9ce4_8422_2325;
        let add = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        hash = data.iter().fold(hash, |hash, byte| add(hash, *byte));
        for byte in out {
            hash = add(hash, 0);
            *byte = (hash >> 32) as u8;
        }
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        let mut expected = [0; 32];
        self.sign(data, &mut expected);
        if expected == *signature { Ok(()) } else { Err(CryptoError) }
    }
}
