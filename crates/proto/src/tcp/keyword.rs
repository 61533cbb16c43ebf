//! A TCP by its keyword.

use super::config::TcpConfig;
use crate::describe::{Kind, System, Where};

/// Deployment of a sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deployment {
    /// Replaced by current senders on all systems; advice to a host with a
    /// current sender does not contain it.
    Superseded,
    /// Available for current systems; it detects losses by time (RFC 8985).
    Current,
    /// A proposal, or for special networks.
    Research,
}

/// The congestion control of Linux that corresponds to a sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Linux {
    /// Its name, as in `tcp_congestion_control`.
    pub control: &'static str,
    /// The value of `tcp_sack`, if the sender depends on it.
    pub sack: Option<bool>,
    /// Why the main line of Linux does not have it.
    pub missing: Option<&'static str>,
}

impl Linux {
    /// A congestion control of the main line.
    pub const fn control(control: &'static str) -> Linux {
        Linux { control, sack: None, missing: None }
    }

    /// A congestion control of another tree, with the reason why `tcp = "..."` cannot select it in a testbed.
    pub const fn elsewhere(control: &'static str, why: &'static str) -> Linux {
        Linux { control, sack: None, missing: Some(why) }
    }

    /// Sets `tcp_sack`.
    pub const fn with_sack(self, on: bool) -> Linux {
        Linux { sack: Some(on), ..self }
    }
}

/// A TCP by its keyword.
#[derive(Clone, Copy, Debug)]
pub struct Keyword {
    /// Its name everywhere.
    pub key: &'static str,
    /// Changes to a preset. All defining settings are included, so the keyword has the same meaning on every
    /// preset; the preset's other settings are unchanged.
    pub apply: fn(&mut TcpConfig),
    /// Its function, in a sentence.
    pub summary: &'static str,
    /// Source: a paper and its section, or an RFC.
    pub source: &'static str,
    /// 1 if the papers built or measured it, 2 if they describe it as related work, 0 if it is newer.
    pub tier: u8,
    /// Worlds in which it runs.
    pub worlds: &'static [Where],
    /// Syntax in a host, with `*` for its name.
    pub syntax: &'static str,
    /// Its deployment.
    pub deployment: Deployment,
    /// Its counterpart in Linux, if there is one.
    pub linux: Option<Linux>,
}

impl Keyword {
    /// Its description as a system.
    pub fn system(&self) -> System {
        let system = System::new(Kind::Sender, self.key, self.syntax, self.summary, self.source);
        system.tier(self.tier).runs(self.worlds)
    }
}
