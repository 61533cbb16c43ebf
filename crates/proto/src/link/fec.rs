//! Forward error correction as a layer: a block code over the bytes of a frame.
//!
//! The code is given by its numbers, as a Reed-Solomon code over bytes is: blocks of `n` bytes on the air carry `k` of
//! the frame, and are decoded if and only if at most `t` of the `n` are wrong, whatever they should have been. So the
//! fate of a frame follows from the places of its errors; no byte is encoded here.
//!
//! What is modelled: the bytes on the air, the last block shortened; decoding up to half the distance, block by block;
//! interleaving over a frame. What is not: the time that encoding and decoding take, decoding beyond half the
//! distance, erasures, soft decisions, and blocks that are decoded to something else. A Reed-Solomon decoder does the
//! last to about one of `t!` blocks that are beyond it; the frame's own check sequence finds them.
//!
//! A code with `t` of zero is pure overhead: for channels whose errors are given as what is left behind a code.
//! That is how bakshi96 has it (3.1): packets are 1.5 times as long on the air, 19.2 kb/s leave 12.8.

use crate::describe::{Kind, System};
use serde::Serialize;

use crate::describe::{Form, Keys, Value};

/// What it is, for lists.
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

/// Numbers that make no code.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "no code of {n} bytes carries {k} and corrects {t}: expected 1 <= k <= n and 2 t <= n - k, \
     for example n = 255, k = 223, t = 16"
)]
pub struct NoSuchCode {
    /// Bytes of a block on the air.
    pub n: u8,
    /// Bytes of a block that are the frame's.
    pub k: u8,
    /// Wrong bytes that are corrected.
    pub t: u8,
}

impl Code {
    /// The code with blocks of `n` bytes, `k` of them the frame's, that corrects `t` wrong ones.
    ///
    /// # Errors
    /// When no code can do that: two check bytes are needed for each byte to be corrected (the Singleton bound).
    pub fn new(n: u8, k: u8, t: u8) -> Result<Code, NoSuchCode> {
        let possible = 1 <= k && k <= n && 2 * u16::from(t) <= u16::from(n - k);
        let code = Code { n, k, t, interleaved: false };
        if possible { Ok(code) } else { Err(NoSuchCode { n, k, t }) }
    }

    /// The Reed-Solomon code with these blocks, which corrects half as many bytes as it has check bytes.
    ///
    /// # Errors
    /// When `k` is zero or more than `n`.
    pub fn reed_solomon(n: u8, k: u8) -> Result<Code, NoSuchCode> {
        Code::new(n, k, n.saturating_sub(k) / 2)
    }

    /// The same code with its blocks interleaved over each frame: neighbours on the air belong to different blocks,
    /// and a burst of errors is shared by all of them. The frame is spread evenly over as many blocks as it needs.
    #[must_use]
    pub fn interleaved(self) -> Code {
        Code { interleaved: true, ..self }
    }

    /// How many blocks a frame of `bytes` takes.
    pub fn blocks(self, bytes: u32) -> u32 {
        bytes.div_ceil(self.k.into())
    }

    /// Length on the air of a frame of `bytes`: each block that it begins brings all its check bytes.
    pub fn on_air(self, bytes: u32) -> u32 {
        bytes.saturating_add(self.blocks(bytes).saturating_mul(u32::from(self.n - self.k)))
    }

    /// Whether a frame of `bytes` is decoded when the bytes at `errors` are wrong. They count from the first byte on
    /// the air, in order; one that comes several times in a row is one wrong byte, what lies beyond the frame none.
    pub fn survives(self, errors: impl IntoIterator<Item = u32>, bytes: u32) -> bool {
        let (on_air, blocks) = (self.on_air(bytes), self.blocks(bytes));
        // Nothing is kept for a frame without errors.
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

/// What a radio makes of the bytes of a frame before they go on the air.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum Coding {
    /// Each byte takes so many on the air, and the errors of the channel are those left behind the code (bakshi96 3.1).
    Overhead(f64),
    /// A block code that meets the errors of the channel itself.
    Block(Code),
}

impl Coding {
    /// Goes over the key `coding`: a number of bytes for each, or a block code in a table.
    pub fn keys(k: &mut Keys<'_>) -> Coding {
        let mut code = None;
        let what = "bytes on the air for each byte of a frame, or a block code that meets the channel's errors itself";
        let factor =
            k.table_or("coding", Form::Number(1.0, 100.0), what, |k| code = Some(block_code(k)));
        match (factor, code) {
            (Value::Number(factor), _) => Coding::Overhead(factor),
            (_, Some(code)) if k.has("coding") => Coding::Block(code),
            _ => Coding::NONE,
        }
    }

    /// Bytes go on the air as they are.
    pub const NONE: Coding = Coding::Overhead(1.0);

    /// Length on the air of `bytes`.
    pub fn on_air(self, bytes: u32) -> u32 {
        match self {
            Coding::Overhead(factor) => libm::ceil(f64::from(bytes) * factor) as u32,
            Coding::Block(code) => code.on_air(bytes),
        }
    }

    /// Bytes on the air for each byte of a long frame.
    pub fn factor(self) -> f64 {
        match self {
            Coding::Overhead(factor) => factor,
            Coding::Block(code) => f64::from(code.n) / f64::from(code.k),
        }
    }
}
/// A Reed-Solomon code, or another one that corrects `corrects` bytes.
fn block_code(k: &mut Keys<'_>) -> Code {
    let (mut block, mut data) = (255_u8, 223_u8);
    k.count("block", &mut block, 1..=255, "bytes of a block on the air");
    k.count("data", &mut data, 1..=255, "bytes of a block that are the frame's");
    let mut corrects = block.saturating_sub(data) / 2;
    k.count("corrects", &mut corrects, 0..=127, "wrong bytes of a block that are corrected");
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
