//! A cursor over the text of a script.

use super::{Fault, SECONDS_MAX};

/// A position in a script.
#[derive(Clone, Copy)]
pub(super) struct Scan<'a> {
    text: &'a str,
    at: usize,
    line: u32,
}

/// Whether a character continues a name.
fn in_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

impl<'a> Scan<'a> {
    pub(super) fn new(text: &'a str) -> Scan<'a> {
        Scan { text, at: 0, line: 1 }
    }

    pub(super) fn line(&self) -> u32 {
        self.line
    }

    /// The remaining text.
    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Skips `bytes` bytes, which end at a character's boundary.
    fn skip(&mut self, bytes: usize) -> &'a str {
        let (text, start) = (self.text, self.at);
        self.at = (start + bytes).min(text.len());
        let skipped = &text[start..self.at];
        self.line += skipped.bytes().filter(|byte| *byte == b'\n').count() as u32;
        skipped
    }

    /// Skips blanks and comments.
    pub(super) fn blanks(&mut self) -> Result<(), Fault> {
        loop {
            let rest = self.rest();
            let blank = rest.len() - rest.trim_start().len();
            if blank > 0 {
                self.skip(blank);
            } else if rest.starts_with("//") || rest.starts_with('#') {
                self.skip(rest.find('\n').unwrap_or(rest.len()));
            } else if rest.starts_with("/*") {
                let end = rest.find("*/").ok_or_else(|| self.wrong("`*/`"))?;
                self.skip(end + 2);
            } else {
                return Ok(());
            }
        }
    }

    /// Skips blanks and `prefix`, if it follows.
    pub(super) fn eat(&mut self, prefix: &str) -> Result<bool, Fault> {
        self.blanks()?;
        let found = self.rest().starts_with(prefix);
        if found {
            self.skip(prefix.len());
        }
        Ok(found)
    }

    /// The same for a name, which must end there.
    pub(super) fn eat_word(&mut self, word: &str) -> Result<bool, Fault> {
        self.blanks()?;
        let rest = self.rest();
        let found = rest.starts_with(word) && !rest[word.len()..].starts_with(in_word);
        if found {
            self.skip(word.len());
        }
        Ok(found)
    }

    pub(super) fn expect(&mut self, token: &str) -> Result<(), Fault> {
        match self.eat(token)? {
            true => Ok(()),
            false => Err(self.wrong(&format!("`{token}`"))),
        }
    }

    /// The fault of this position, where `expected` is missing.
    pub(super) fn wrong(&self, expected: &str) -> Fault {
        let rest = self.rest().trim_start();
        let got: String = rest.chars().take_while(|c| *c != '\n').take(24).collect();
        let got = if got.is_empty() { "the end".to_owned() } else { format!("`{got}`") };
        Fault::syntax(self.line, format!("expected {expected}, got {got}"))
    }

    /// All characters that satisfy `is`.
    pub(super) fn run(&mut self, is: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        self.skip(rest.find(|c| !is(c)).unwrap_or(rest.len()))
    }

    /// The text up to `end`, which is skipped.
    pub(super) fn until(&mut self, end: &str) -> Result<&'a str, Fault> {
        let found = self.rest().find(end).ok_or_else(|| self.wrong(&format!("`{end}`")))?;
        let text = self.skip(found);
        self.skip(end.len());
        Ok(text)
    }

    /// A name.
    pub(super) fn word(&mut self) -> Result<&'a str, Fault> {
        self.blanks()?;
        match self.peek() {
            Some(c) if c.is_ascii_alphabetic() || c == '_' => Ok(self.run(in_word)),
            _ => Err(self.wrong("a name")),
        }
    }

    /// A number, decimal or `0x...`, that fits 64 bits with its sign.
    pub(super) fn int(&mut self) -> Result<i64, Fault> {
        self.blanks()?;
        let before = *self;
        let negative = self.rest().starts_with('-');
        if negative {
            self.skip(1);
        }
        let hex = self.rest().starts_with("0x") || self.rest().starts_with("0X");
        if hex {
            self.skip(2);
        }
        let digits = self.run(|c| if hex { c.is_ascii_hexdigit() } else { c.is_ascii_digit() });
        let number = i64::from_str_radix(digits, if hex { 16 } else { 10 });
        number.map(|n| if negative { -n } else { n }).map_err(|_| before.wrong("a number"))
    }

    /// An unsigned number of a field.
    pub(super) fn field<T: TryFrom<i64>>(&mut self, expected: &str) -> Result<T, Fault> {
        self.blanks()?;
        let before = *self;
        T::try_from(self.int()?).map_err(|_| before.wrong(expected))
    }

    /// Seconds with any number of decimals, in nanoseconds.
    pub(super) fn seconds(&mut self) -> Result<u64, Fault> {
        self.blanks()?;
        let before = *self;
        let whole = self.run(|c| c.is_ascii_digit());
        // `0...0.01` is a time, three dots and another one.
        let rest = self.rest();
        let fraction = match rest.starts_with('.') && !rest.starts_with("...") {
            true => {
                self.skip(1);
                self.run(|c| c.is_ascii_digit())
            }
            false => "",
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(before.wrong("a time in seconds, as `+.1`"));
        }
        let seconds: u64 = if whole.is_empty() { 0 } else { whole.parse().unwrap_or(u64::MAX) };
        if seconds > SECONDS_MAX {
            return Err(before.wrong("a time of at most one day"));
        }
        let nanos = fraction.bytes().chain(core::iter::repeat(b'0')).take(9);
        Ok(seconds * 1_000_000_000 + nanos.fold(0, |n, digit| n * 10 + u64::from(digit - b'0')))
    }
}
