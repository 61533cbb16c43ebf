//! Golden figures: results of many small runs, stored as one digest for each block of figures.
//!
//! A test builds [`Block`]s and compares them with `tests/net/FILE` by [`check`]. A line of that file is a block:
//!
//! ```text
//! DIGEST CHECKS NAME
//! ```
//!
//! CHECKS has two hexadecimal digits for each run of the block (`-` without runs), so that a failure names the runs that
//! differ, each by its seed. The figures themselves are not stored: `make figures-diff` computes them for a base commit
//! and for the working tree, and shows the difference.
//!
//! A block belongs to one system, under its key, and depends on no other entry of a registry: a new system adds lines
//! and changes none. So figures contain neither positions in a registry nor lists of its names, and random draws come
//! from streams that are named by the key. Figures are bytes of packets and files, JSON, or text for users; `Debug`
//! shows names and fields of the implementation.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// The figures of one system or file, in the order in which they are printed.
#[derive(Default)]
pub struct Block {
    name: String,
    figures: Vec<(String, String)>,
    runs: Vec<(u64, String)>,
}

impl Block {
    pub fn new(name: &str) -> Block {
        Block { name: name.to_owned(), ..Block::default() }
    }

    pub fn put(&mut self, name: &str, value: impl ToString) {
        self.figures.push((name.to_owned(), value.to_string()));
    }

    /// Adds the figures of one run, in one line.
    #[allow(dead_code, reason = "not every test that includes this file has runs with seeds")]
    pub fn run(&mut self, seed: u64, figures: String) {
        self.runs.push((seed, figures));
    }

    fn text(&self) -> String {
        let mut text = format!("{}\n", self.name);
        for (name, value) in &self.figures {
            let _ = writeln!(text, "  {name}: {value}");
        }
        for (number, (seed, figures)) in (1..).zip(&self.runs) {
            let _ = writeln!(text, "  run {number}, seed {seed}: {figures}");
        }
        text
    }

    fn digest(&self) -> String {
        Digest::of(&self.text()).text()
    }

    fn checks(&self) -> String {
        let check = |(_, figures): &(u64, String)| format!("{:02x}", Digest::of(figures).0 & 0xff);
        let checks: String = self.runs.iter().map(check).collect();
        if checks.is_empty() { "-".to_owned() } else { checks }
    }

    /// Its line in the golden file.
    pub fn line(&self) -> String {
        format!("{} {} {}\n", self.digest(), self.checks(), self.name)
    }

    /// Differences of this block from the stored `checks`: the runs by number and seed, or all of them.
    fn difference(&self, checks: &str) -> String {
        let stored: Vec<&str> = (0..checks.len() / 2).map(|i| &checks[2 * i..2 * i + 2]).collect();
        let count = self.runs.len();
        if stored.len() != count {
            return format!("{count} runs, {} before", stored.len());
        }
        let found = self.checks();
        let runs = self.runs.iter().zip(&stored).enumerate();
        let differ: Vec<String> = runs
            .filter(|(i, (_, stored))| found[2 * i..2 * i + 2] != ***stored)
            .map(|(i, ((seed, _), _))| format!("run {} (seed {seed})", i + 1))
            .collect();
        match differ.as_slice() {
            [] => "its figures".to_owned(),
            differ => format!("{} of {count} runs: {}", differ.len(), differ.join(", ")),
        }
    }
}

/// The blocks of a golden file: digest and checks by name. Blocks of one name count as first, second and so on.
type Stored = BTreeMap<(String, usize), (String, String)>;

fn insert(into: &mut Stored, name: &str, digest: &str, checks: &str) -> (String, usize) {
    let occurrence = into.keys().filter(|(other, _)| other == name).count();
    let key = (name.to_owned(), occurrence);
    into.insert(key.clone(), (digest.to_owned(), checks.to_owned()));
    key
}

fn read(text: &str) -> Stored {
    let mut stored = Stored::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ' ');
        if let (Some(digest), Some(checks), Some(name)) = (parts.next(), parts.next(), parts.next())
        {
            insert(&mut stored, name, digest, checks);
        }
    }
    stored
}

/// The differences between `blocks` and the golden file with the content `stored`, a line for each block.
pub fn differences(stored: &str, blocks: &[Block]) -> Vec<String> {
    let stored = read(stored);
    let mut found = Stored::new();
    let mut lines = Vec::new();
    for block in blocks {
        let digest = block.digest();
        let key = insert(&mut found, &block.name, &digest, "");
        match stored.get(&key) {
            None => lines.push(format!("{}: new", block.name)),
            Some((was, _)) if *was == digest => {}
            Some((_, checks)) => {
                lines.push(format!("{}: {}", block.name, block.difference(checks)))
            }
        }
    }
    lines.extend(
        stored
            .keys()
            .filter(|key| !found.contains_key(*key))
            .map(|(name, _)| format!("{name}: missing")),
    );
    lines
}

/// Compares `blocks` with the golden file `tests/net/FILE` of this crate.
///
/// With `LASTHOP_WRITE_FIGURES` it writes the file instead. With `LASTHOP_FIGURES_TO=DIR` it writes the
/// figures themselves to `DIR/FILE`, without a comparison.
pub fn check(file: &str, blocks: &[Block]) {
    if let Some(dir) = std::env::var_os("LASTHOP_FIGURES_TO") {
        let text: String = blocks.iter().map(Block::text).collect();
        std::fs::write(Path::new(&dir).join(file), text).expect("a writable directory");
        return;
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/net").join(file);
    if std::env::var_os("LASTHOP_WRITE_FIGURES").is_some() {
        let text: String = blocks.iter().map(Block::line).collect();
        std::fs::write(&path, text).expect("a writable file");
        return;
    }
    let differ = differences(&std::fs::read_to_string(&path).unwrap_or_default(), blocks);
    assert!(
        differ.is_empty(),
        "{} of {} blocks of tests/net/{file} differ:\n{}\n`make figures-diff` shows the figures. If the change is \
         intended: `make figures`, and give the reason in the commit",
        differ.len(),
        blocks.len(),
        differ.join("\n")
    );
}

/// FNV-1a over text: portable, and independent of memory layout.
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Digest {
        Digest(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    fn of(text: &str) -> Digest {
        let mut digest = Digest::default();
        digest.bytes(text.as_bytes());
        digest
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        // Without an iterator, whose calls are not inlined in builds for tests.
        let mut rest = bytes;
        while let [byte, after @ ..] = rest {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
            rest = after;
        }
    }

    pub fn text(&self) -> String {
        format!("{:016x}", self.0)
    }
}

impl Write for Digest {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.bytes(text.as_bytes());
        Ok(())
    }
}
