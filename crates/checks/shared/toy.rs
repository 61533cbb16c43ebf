//! A tunnel's codes without a cipher, so that its machine can be tested alone. The module above names the traits.

use super::seal::{Key, Seal, SessionKeys, TAG};

/// Codes without any strength.
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
