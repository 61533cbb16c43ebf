//! Split connections with selective acknowledgements over the air (balakrishnan97 3.2). The machine is that of
//! [`super::split`], with another TCP in its half towards the mobile host.

use super::split::SplitConfig;
use super::{AgentConfig, Read};
use crate::describe::{Descriptor, Kind, System};
use crate::tcp::Variant;

pub(super) const WORD: Descriptor<Read> = Descriptor {
    word: "split-sack",
    system: System::new(
        Kind::Agent,
        "split-sack",
        "path: agent = \"split-sack\"; host: sack = true, at the mobile host",
        "split, with selective acknowledgements over the air",
        "balakrishnan97 3.2",
    ),
    read: |k| {
        let split = SplitConfig::keys(k);
        let mut smart = false;
        let kinds = [("rfc", false), ("smart", true)];
        k.word(
            "split-sack",
            &mut smart,
            &kinds,
            "which selective acknowledgements: RFC 2018's, or SMART",
        );
        AgentConfig::Split(if smart { split.smart() } else { split.selective() })
    },
};

impl SplitConfig {
    /// Enables selective acknowledgements towards the mobile host.
    //= balakrishnan97#3.2: the wireless connection uses TCP Reno enhanced with selective acknowledgments
    pub fn selective(mut self) -> SplitConfig {
        if self.wireless.variant != Variant::Rack {
            self.wireless.variant = Variant::Sack;
        }
        self.wireless.sack = true;
        self
    }

    /// Enables SMART towards a mobile host that supports it, and SACK (RFC 2018) otherwise.
    //= balakrishnan97#3.2: the SMART-based selective acknowledgment scheme operating over the wireless link
    pub fn smart(self) -> SplitConfig {
        let mut split = self.selective();
        split.wireless.variant = Variant::Smart;
        split.wireless.smart = true;
        split
    }
}
