//! A TCP by its name.

use super::config::TcpConfig;

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
}
