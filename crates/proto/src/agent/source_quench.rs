//! ICMP source quench after each failed attempt of the link layer (bakshi96 4.2.2). The machine is that of
//! [`super::ebsn`] with another message.

use serde::Serialize;

use super::ebsn::{Notifier, spacing, unheeded};
use super::{AgentConfig, Config, Ends, Idle, Read};
use crate::describe::{Descriptor, Kind, System};
use crate::units::Span;
use crate::wire::Notice;

/// Source quench to the source after each failed attempt of the link layer (bakshi96 4.2.2).
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SourceQuench {
    /// Minimum time between two messages; zero sends each.
    pub spacing: Span,
}

impl Config for SourceQuench {
    const WORDS: &'static [Descriptor<Read>] = &[Descriptor {
        word: "source-quench",
        system: System::new(
            Kind::Sender,
            "source-quench",
            "host: quench = true; path: agent = \"source-quench\"",
            "ICMP source quench at each failed local attempt; the sender falls back to one segment and slow start",
            "bakshi96 4.2.2",
        ),
        read: |k| AgentConfig::SourceQuench(SourceQuench { spacing: spacing(k) }),
    }];
    type Agent = Notifier;

    fn agent(&self) -> Notifier {
        Notifier::new(Notice::SourceQuench, self.spacing)
    }

    fn idle(&self, ends: &Ends<'_>) -> Option<Idle> {
        unheeded("source-quench", "quench", ends.from.1.quench, ends)
    }
}
