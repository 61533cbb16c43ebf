//! Description of a system.

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

/// The part of a path that a system belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A TCP sender.
    Sender,
    /// A TCP receiver.
    Receiver,
    /// An agent at the base station.
    Agent,
    /// A link layer.
    Link,
    /// Medium access.
    Mac,
    /// A queue in front of a link.
    Queue,
    /// A channel and its errors.
    Channel,
    /// A tool for measuring.
    Tool,
}

/// Where a system runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Where {
    /// In the simulator.
    Sim,
    /// On real packets, with the kernel's TCP at one end at least.
    Live,
}

/// In the simulator alone.
pub const SIM: &[Where] = &[Where::Sim];
/// On real packets alone.
pub const LIVE: &[Where] = &[Where::Live];
/// In both.
pub const BOTH: &[Where] = &[Where::Sim, Where::Live];

/// Packets that a data plane must pass to an agent; it may forward the others by itself. Each variant
/// includes those before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Needs {
    /// No packets: it only forwards.
    Nothing,
    /// Copies of the headers of data to the right and of new ACKs to the left; it decides about duplicate
    /// ACKs.
    Heads,
    /// Like [`Needs::Heads`] with the payload, from which it retransmits.
    Duplicates,
    /// Every packet of both directions, which it may hold, change or drop.
    Everything,
}

/// Whether a system is implemented.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// In one of its worlds, by its scenario syntax or command.
    Implemented,
    /// Not implemented yet.
    Planned,
}

/// A system in the lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct System {
    /// Its name everywhere in this project.
    pub key: &'static str,
    /// The part of a path that it belongs to.
    pub kind: Kind,
    /// 1 if the papers built or measured it, 2 if they describe it as related work, 0 if it is newer;
    /// [`System::UNLISTED`] for a keyword without a separate system.
    pub tier: u8,
    /// Worlds for which it is intended.
    pub worlds: &'static [Where],
    /// Whether it is implemented.
    pub status: Status,
    /// Scenario syntax or command that selects it, with `*` for its key; empty while it is planned.
    pub syntax: &'static str,
    /// Its function, in a sentence.
    pub summary: &'static str,
    /// First description: paper and section, or RFC.
    pub source: &'static str,
    /// For an agent: the packets that it needs.
    pub needs: Needs,
}

impl System {
    /// The tier of keywords for no system, or for several systems together.
    pub const UNLISTED: u8 = u8::MAX;

    /// A system of the papers that runs in both worlds.
    pub const fn new(
        kind: Kind,
        key: &'static str,
        syntax: &'static str,
        summary: &'static str,
        source: &'static str,
    ) -> System {
        System {
            key,
            kind,
            tier: 1,
            worlds: BOTH,
            status: Status::Implemented,
            syntax,
            summary,
            source,
            needs: Needs::Everything,
        }
    }

    /// Sets the tier; see [`System::tier`].
    pub const fn tier(self, tier: u8) -> System {
        System { tier, ..self }
    }

    /// Sets the worlds.
    pub const fn runs(self, worlds: &'static [Where]) -> System {
        System { worlds, ..self }
    }

    /// Sets the packets that an agent needs.
    pub const fn needs(self, needs: Needs) -> System {
        System { needs, ..self }
    }

    /// Scenario syntax or command that selects it.
    pub fn selector(&self) -> String {
        self.syntax.replace('*', self.key)
    }
}

impl Serialize for System {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let System { key, kind, tier, worlds, status, syntax: _, summary, source, needs: _ } = self;
        let mut row = serializer.serialize_struct("System", 8)?;
        row.serialize_field("key", key)?;
        row.serialize_field("kind", kind)?;
        row.serialize_field("tier", tier)?;
        row.serialize_field("worlds", worlds)?;
        row.serialize_field("status", status)?;
        row.serialize_field("where", &self.selector())?;
        row.serialize_field("what", summary)?;
        row.serialize_field("source", source)?;
        row.end()
    }
}

/// A keyword for a system in a file, with its description and the reader of its configuration.
///
/// `R` is a function over [`Keys`](super::Keys) whose form depends on the family: an agent's has no other
/// arguments, a channel's takes the rate of its radio.
#[derive(Clone, Copy, Debug)]
pub struct Descriptor<R: 'static> {
    /// The keyword.
    pub word: &'static str,
    /// The system that it selects.
    pub system: System,
    /// Visits the keys and returns the configuration.
    pub read: R,
}

/// The descriptor of `word`.
pub fn find<R>(registry: &[&'static Descriptor<R>], word: &str) -> Option<&'static Descriptor<R>> {
    registry.iter().copied().find(|descriptor| descriptor.word == word)
}
