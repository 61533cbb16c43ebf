//! A TCP by its keyword.

use super::config::TcpConfig;
use crate::describe::{Kind, System, Where};

/// A TCP by its keyword.
#[derive(Clone, Copy, Debug)]
pub struct Word {
    /// Its name everywhere.
    pub key: &'static str,
    /// Changes to a preset. All defining settings are included, so the keyword has the same meaning on every
    /// preset; the preset's other settings are unchanged.
    pub apply: fn(&mut TcpConfig),
    /// Its function, in a sentence.
    pub what: &'static str,
    /// Source: a paper and its section, or an RFC.
    pub source: &'static str,
    /// 1 if the papers built or measured it, 2 if they describe it as related work, 0 if it is newer.
    pub tier: u8,
    /// Worlds in which it runs.
    pub worlds: &'static [Where],
    /// Syntax in a host, with `*` for its name.
    pub syntax: &'static str,
}

impl Word {
    /// Its description as a system.
    pub fn system(&self) -> System {
        let system = System::new(Kind::Sender, self.key, self.syntax, self.what, self.source);
        system.tier(self.tier).runs(self.worlds)
    }
}
