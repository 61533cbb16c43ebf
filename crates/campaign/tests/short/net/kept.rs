//! Figures that are kept in files, system by system, and told one by one where they differ.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// The figures of one system, by name, in the order in which they are written.
#[derive(Default)]
pub struct Block {
    /// Its name.
    pub name: String,
    figures: Vec<(String, String)>,
}

impl Block {
    pub fn new(name: &str) -> Block {
        Block { name: name.to_owned(), figures: Vec::new() }
    }

    pub fn put(&mut self, name: &str, value: impl ToString) {
        self.figures.push((name.to_owned(), value.to_string()));
    }
}

/// Figures by system and name.
type Figures = BTreeMap<(String, String), String>;

fn read(text: &str) -> Figures {
    let mut system = String::new();
    let mut figures = Figures::new();
    for line in text.lines() {
        match line.strip_prefix("  ") {
            Some(figure) => {
                let (name, value) = figure.split_once(": ").expect("a name and a value");
                figures.insert((system.clone(), name.to_owned()), value.to_owned());
            }
            None => system = line.to_owned(),
        }
    }
    figures
}

/// Most differences that are told.
const TOLD: usize = 40;

/// Compares `blocks` with the file of that name in `tests/net`, or writes it.
pub fn keep(file: &str, blocks: &[Block]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/net").join(file);
    let mut text = String::new();
    for block in blocks {
        let _ = writeln!(text, "{}", block.name);
        for (name, value) in &block.figures {
            let _ = writeln!(text, "  {name}: {value}");
        }
    }
    if std::env::var_os("LASTHOP_WRITE_FIGURES").is_some() {
        std::fs::write(&path, text).expect("it is written");
        return;
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    let (was, is) = (read(&kept), read(&text));
    let mut told = String::new();
    let differ = was.keys().chain(is.keys().filter(|key| !was.contains_key(*key)));
    let differ: Vec<_> = differ.filter(|key| was.get(*key) != is.get(*key)).collect();
    for key in differ.iter().take(TOLD) {
        let value = |of: &Figures| of.get(*key).cloned().unwrap_or_else(|| "none".to_owned());
        let _ = writeln!(told, "{}: {} is {}, and was {}", key.0, key.1, value(&is), value(&was));
    }
    let count = differ.len();
    assert!(
        count == 0,
        "{count} figures of tests/net/{file} differ:\n{told}If that is meant: make figures, and say why in the commit"
    );
}

/// FNV-1a over text: portable, and independent of how things lie in memory.
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Digest {
        Digest(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    pub fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
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
