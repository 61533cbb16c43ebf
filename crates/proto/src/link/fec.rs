//! Forward error correction as a layer: a block code over the bytes of a frame.
//!
//! The code is specified by its numbers, like a Reed-Solomon code over bytes. Blocks of `n` bytes on the air
//! carry `k` bytes of the frame, and are decoded if and only if at most `t` of the `n` bytes are wrong. So
//! the positions of errors determine the fate of a frame; no byte is encoded here.
//!
//! Modelled: the bytes on the air, a shortened last block, decoding up to half the distance block by block,
//! interleaving over a frame. Not modelled: the time for encoding and decoding, decoding beyond half the
//! distance, erasures, soft decisions, and miscorrected blocks. A Reed-Solomon decoder miscorrects about one
//! of `t!` blocks beyond its limit; the frame's check sequence detects them.
//!
//! A code with `t` of zero is pure overhead, for channels whose errors are specified after decoding. bakshi96
//! does so (3.1): packets are 1.5 times as long on the air, so 19.2 kb/s leave 12.8.

use crate::describe::{Kind, System};
use serde::Serialize;

use crate::describe::{Form, Keys, Value};

/// Descriptor for lists.
pub const FEC: System = System::new(
    Kind::Link,
    "fec",
    "path: coding = { block = 255, data = 223 }",
    "block codes by their numbers: bytes on the air, and which errors a frame survives",
    "bakshi96 3.1",
)
.tier(2);

/// A block code over bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Code {
    n: u8,
    k: u8,
    t: u8,
    interleaved: bool,
}

/// Impossible parameters of a code.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "no code of {n} bytes carries {k} and corrects {t}: expected 1 <= k <= n and 2 t <= n - k, \
     for example n = 255, k = 223, t = 16"
)]
pub struct NoSuchCode {
    /// Bytes of a block on the air.
    pub n: u8,
    /// Bytes of the frame in a block.
    pub k: u8,
    /// Number of correctable bytes.
    pub t: u8,
}

impl Code {
    /// The code with blocks of `n` bytes, `k` of them of the frame, that corrects `t` wrong bytes.
    ///
    /// # Errors
    /// If there is no such code: each correctable byte needs two check bytes (the Singleton bound).
    pub fn new(n: u8, k: u8, t: u8) -> Result<Code, NoSuchCode> {
        let possible = 1 <= k && k <= n && 2 * u16::from(t) <= u16::from(n - k);
        let code = Code { n, k, t, interleaved: false };
        if possible { Ok(code) } else { Err(NoSuchCode { n, k, t }) }
    }

    /// The Reed-Solomon code with these blocks, which corrects half as many bytes as it has check bytes.
    ///
    /// # Errors
    /// If `k` is zero or more than `n`.
    pub fn reed_solomon(n: u8, k: u8) -> Result<Code, NoSuchCode> {
        Code::new(n, k, n.saturating_sub(k) / 2)
    }

    /// The code with its blocks interleaved over each frame: neighbouring bytes on the air belong to
    /// different blocks, so a burst of errors is divided among all of them. The frame is distributed evenly
    /// over its blocks.
    #[must_use]
    pub fn interleaved(self) -> Code {
        Code { interleaved: true, ..self }
    }

    /// Number of blocks of a frame of `bytes` bytes.
    pub fn blocks(self, bytes: u32) -> u32 {
        bytes.div_ceil(self.k.into())
    }

    /// Length on the air of a frame of `bytes` bytes: each started block has all its check bytes.
    pub fn on_air(self, bytes: u32) -> u32 {
        bytes.saturating_add(self.blocks(bytes).saturating_mul(u32::from(self.n - self.k)))
    }

    /// Whether a frame of `bytes` bytes is decoded when the bytes at `errors` are wrong. Positions count from
    /// the first byte on the air, in order. Successive duplicates count once, and positions beyond the frame
    /// not at all.
    pub fn survives(self, errors: impl IntoIterator<Item = u32>, bytes: u32) -> bool {
        let (on_air, blocks) = (self.on_air(bytes), self.blocks(bytes));
        // A frame without errors allocates no memory.
        let mut wrong: Vec<u8> = Vec::new();
        let mut last = None;
        for at in errors {
            if at >= on_air || last.replace(at) == Some(at) {
                continue;
            }
            let block = if self.interleaved { at % blocks } else { at / u32::from(self.n) };
            if wrong.is_empty() {
                wrong.resize(blocks as usize, 0);
            }
            let Some(count) = wrong.get_mut(block as usize) else { continue };
            if *count == self.t {
                return false;
            }
            *count += 1;
        }
        true
    }
}

/// Coding of a frame's bytes by the radio.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum Coding {
    /// Bytes on the air per byte; the channel's errors are those after decoding (bakshi96 3.1).
    Overhead(f64),
    /// A block code; the channel's errors are those before decoding.
    Block(Code),
}

impl Coding {
    /// Reads the key `coding`: a factor, or a table with a block code.
    pub fn keys(k: &mut Keys<'_>) -> Coding {
        let mut code = None;
        let doc = "bytes on the air for each byte of a frame, or a block code that corrects the channel's errors";
        let factor =
            k.table_or("coding", Form::within(1.0..=100.0), doc, |k| code = Some(block_code(k)));
        match (factor, code) {
            (Value::Number(factor), _) => Coding::Overhead(factor),
            (_, Some(code)) if k.has("coding") => Coding::Block(code),
            _ => Coding::NONE,
        }
    }

    /// No coding.
    pub const NONE: Coding = Coding::Overhead(1.0);

    /// Length on the air of `bytes` bytes.
    pub fn on_air(self, bytes: u32) -> u32 {
        match self {
            Coding::Overhead(factor) => libm::ceil(f64::from(bytes) * factor) as u32,
            Coding::Block(code) => code.on_air(bytes),
        }
    }

    /// Bytes on the air per byte of a long frame.
    pub fn factor(self) -> f64 {
        match self {
            Coding::Overhead(factor) => factor,
            Coding::Block(code) => f64::from(code.n) / f64::from(code.k),
        }
    }
}
/// Reads a Reed-Solomon code, or another code that corrects `corrects` bytes.
fn block_code(k: &mut Keys<'_>) -> Code {
    let (mut block, mut data) = (255_u8, 223_u8);
    k.count("block", &mut block, 1..=255, "bytes of a block on the air");
    k.count("data", &mut data, 1..=255, "bytes of the frame in a block");
    let mut corrects = block.saturating_sub(data) / 2;
    k.count("corrects", &mut corrects, 0..=127, "wrong bytes that a block can correct");
    let mut interleaved = false;
    k.flag("interleaved", &mut interleaved, "blocks are spread over the frame");
    match Code::new(block, data, corrects) {
        Ok(code) if interleaved => code.interleaved(),
        Ok(code) => code,
        Err(error) => {
            k.out_of_range("data", error.to_string());
            Code { n: 1, k: 1, t: 0, interleaved: false }
        }
    }
}
