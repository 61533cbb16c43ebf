//! A TCP by its name.

use super::config::TcpConfig;
use crate::describe::{Kind, System, Where};

/// A TCP by its name.
#[derive(Clone, Copy, Debug)]
pub struct Word {
    /// Its name everywhere.
    pub key: &'static str,
    /// What it changes about a preset. It sets whatever makes it what it is, so that the word means the same on
    /// every preset; what else the preset says stays.
    pub apply: fn(&mut TcpConfig),
    /// What it does, in a sentence.
    pub what: &'static str,
    /// Where it is described: a paper and its section, or an RFC.
    pub source: &'static str,
    /// 1 if the papers built or measured it, 2 if they describe it as related work, 0 if it came after them.
    pub tier: u8,
    /// Where it runs.
    pub worlds: &'static [Where],
    /// How a host asks for it, `*` being its name.
    pub syntax: &'static str,
}

impl Word {
    /// As a system.
    pub fn system(&self) -> System {
        let system = System::new(Kind::Sender, self.key, self.syntax, self.what, self.source);
        system.tier(self.tier).runs(self.worlds)
    }
}
