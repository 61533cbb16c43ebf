//! A congestion control that a user brings: a window growth that is not in the list of ours.
//!
//! It is made anew for each connection. The name of a run covers its name and version, so results of another one are
//! never taken for its own; that the version changes when the rule does is up to its author.

use core::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::tcp::config::TcpConfig;

use super::growth::Growth;

/// A window growth from outside.
pub trait CustomGrowth: Growth + fmt::Debug + Send {
    /// Another one in the same state, for a copy of its sender.
    fn boxed_clone(&self) -> Box<dyn CustomGrowth>;
}

impl Clone for Box<dyn CustomGrowth> {
    fn clone(&self) -> Self {
        (**self).boxed_clone()
    }
}

type Make = dyn Fn(&TcpConfig) -> Box<dyn CustomGrowth> + Send + Sync;

/// How a host's connections come to a congestion control from outside.
#[derive(Clone, Serialize)]
pub struct Custom {
    /// Its author's name for it.
    pub name: String,
    /// Changes whenever the rule does.
    pub version: String,
    #[serde(skip)]
    make: Arc<Make>,
}

impl Custom {
    /// A congestion control that `make` makes for each connection.
    pub fn new(
        name: impl Into<String>,
        version: impl Into<String>,
        make: impl Fn(&TcpConfig) -> Box<dyn CustomGrowth> + Send + Sync + 'static,
    ) -> Custom {
        Custom { name: name.into(), version: version.into(), make: Arc::new(make) }
    }

    /// One for a connection of a host with this configuration.
    pub(super) fn make(&self, config: &TcpConfig) -> Box<dyn CustomGrowth> {
        (self.make)(config)
    }
}

impl PartialEq for Custom {
    fn eq(&self, other: &Custom) -> bool {
        (&self.name, &self.version) == (&other.name, &other.version)
    }
}

impl fmt::Debug for Custom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.version)
    }
}
