//! A congestion control of a user: a window growth that is not in the registry.
//!
//! Each connection has a separate instance. Names of runs depend on its name and version, so results of different
//! versions are not confused. The author must change the version with each change of the rule.

use core::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::tcp::config::TcpConfig;

use super::CongestionControl;

/// A window growth from outside.
pub trait CustomCongestionControl: CongestionControl + fmt::Debug + Send {
    /// A copy in the same state, for a copy of its sender.
    fn boxed_clone(&self) -> Box<dyn CustomCongestionControl>;
}

impl Clone for Box<dyn CustomCongestionControl> {
    fn clone(&self) -> Self {
        (**self).boxed_clone()
    }
}

type Make = dyn Fn(&TcpConfig) -> Box<dyn CustomCongestionControl> + Send + Sync;

/// Name, version and constructor of a user's congestion control.
#[derive(Clone, Serialize)]
pub struct Custom {
    /// Name, chosen by the author.
    pub name: String,
    /// Version, which changes with the rule.
    pub version: String,
    #[serde(skip)]
    make: Arc<Make>,
}

impl Custom {
    /// A congestion control with the constructor `make`, which is called for each connection.
    pub fn new(
        name: impl Into<String>,
        version: impl Into<String>,
        make: impl Fn(&TcpConfig) -> Box<dyn CustomCongestionControl> + Send + Sync + 'static,
    ) -> Custom {
        Custom { name: name.into(), version: version.into(), make: Arc::new(make) }
    }

    /// An instance for a connection of a host with this configuration.
    pub(in crate::tcp::sender) fn make(
        &self,
        config: &TcpConfig,
    ) -> Box<dyn CustomCongestionControl> {
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
