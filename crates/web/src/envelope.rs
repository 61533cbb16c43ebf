//! The format of questions and answers: JSON, followed by binary columns for numbers.
//!
//! ```text
//! length of the JSON, 32 bits, little-endian | JSON, padded with blanks | bytes, with the columns
//! ```
//!
//! In an answer the bytes start at a multiple of eight, and so does each column; `columns` in the JSON has their
//! offsets.

use serde::Serialize;
use serde_json::{Map, Value, json};

/// JSON and bytes of an envelope; `None` if the format is wrong.
pub fn open(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first_chunk::<4>()?;
    let len = u32::from_le_bytes(*len) as usize;
    (len <= rest.len()).then(|| rest.split_at(len))
}

/// An envelope with `json` and unpadded bytes, as in a question.
pub fn question(json: &Value, bytes: &[u8]) -> Vec<u8> {
    let json = json.to_string();
    let mut all = (json.len() as u32).to_le_bytes().to_vec();
    all.extend(json.as_bytes());
    all.extend(bytes);
    all
}

/// Named columns of numbers.
#[derive(Debug, Default)]
pub struct Columns {
    /// Entries of `columns` in the JSON.
    entries: Vec<Value>,
    bytes: Vec<u8>,
}

impl Columns {
    fn add(&mut self, name: &str, of: &str, len: usize, bytes: impl Iterator<Item = u8>) {
        self.entries.push(json!({ "name": name, "of": of, "at": self.bytes.len(), "len": len }));
        self.bytes.extend(bytes);
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
    }

    /// 64-bit floats.
    pub fn numbers(&mut self, name: &str, numbers: &[f64]) {
        let bytes = numbers.iter().flat_map(|n| n.to_le_bytes());
        self.add(name, "f64", numbers.len(), bytes);
    }

    /// 32-bit integers.
    pub fn words(&mut self, name: &str, words: &[u32]) {
        self.add(name, "u32", words.len(), words.iter().flat_map(|n| n.to_le_bytes()));
    }

    /// 16-bit integers.
    pub fn halves(&mut self, name: &str, halves: &[u16]) {
        self.add(name, "u16", halves.len(), halves.iter().flat_map(|n| n.to_le_bytes()));
    }

    pub fn bytes(&mut self, name: &str, bytes: &[u8]) {
        self.add(name, "u8", bytes.len(), bytes.iter().copied());
    }

    /// The binary part.
    pub fn sent(&self) -> &[u8] {
        &self.bytes
    }

    /// The envelope of an answer.
    pub fn envelope(self, answer: &impl Serialize) -> Vec<u8> {
        let answer = serde_json::to_value(answer).expect("answers are JSON");
        let mut answer: Map<String, Value> = match answer {
            Value::Object(answer) => answer,
            other => [("answer".to_owned(), other)].into_iter().collect(),
        };
        answer.insert("columns".to_owned(), Value::Array(self.entries));
        let mut json = Value::Object(answer).to_string().into_bytes();
        json.resize((json.len() + 4).next_multiple_of(8) - 4, b' ');
        let mut all = Vec::with_capacity(4 + json.len() + self.bytes.len());
        all.extend((json.len() as u32).to_le_bytes());
        all.extend(json);
        all.extend(self.bytes);
        all
    }
}
