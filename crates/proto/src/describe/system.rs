//! What a system is.

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

/// What part of a path a system is.
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

/// What an agent must be shown of the packets that pass a data plane, which may forward the others by itself. Each
/// includes those before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Needs {
    /// Nothing: it only forwards.
    Nothing,
    /// The headers of data to the right and of new ACKs to the left, in copies; it decides about duplicate ACKs.
    Heads,
    /// The same with the payload, from which it retransmits.
    Duplicates,
    /// Every packet of both directions, to hold, change or drop it.
    Everything,
}

/// Whether a system runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// In one of its worlds, by its scenario syntax or command.
    Implemented,
    /// Not yet.
    Planned,
}

/// A system, as it is listed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct System {
    /// Its name everywhere in this project.
    pub key: &'static str,
    /// What part of a path it is.
    pub kind: Kind,
    /// 1 if the papers built or measured it, 2 if they describe it as related work, 0 if it came after them;
    /// [`System::UNLISTED`] for a word that is no system of its own.
    pub tier: u8,
    /// Where it is meant to run.
    pub worlds: &'static [Where],
    /// Whether it runs.
    pub status: Status,
    /// How a scenario file or a command asks for it, `*` being its key; empty as long as it is planned.
    pub syntax: &'static str,
    /// What it does, in a sentence.
    pub what: &'static str,
    /// Where it was described first: paper and section, or RFC.
    pub source: &'static str,
    /// Of an agent: what it must be shown.
    pub needs: Needs,
}

impl System {
    /// The tier of words that stand for nothing at all, or for several systems together.
    pub const UNLISTED: u8 = u8::MAX;

    /// A system of the papers that runs in both worlds.
    pub const fn new(
        kind: Kind,
        key: &'static str,
        syntax: &'static str,
        what: &'static str,
        source: &'static str,
    ) -> System {
        System {
            key,
            kind,
            tier: 1,
            worlds: BOTH,
            status: Status::Implemented,
            syntax,
            what,
            source,
            needs: Needs::Everything,
        }
    }

    /// The same of another tier; see [`System::tier`].
    pub const fn tier(self, tier: u8) -> System {
        System { tier, ..self }
    }

    /// The same in these worlds.
    pub const fn runs(self, worlds: &'static [Where]) -> System {
        System { worlds, ..self }
    }

    /// The same for an agent that must be shown no more than this.
    pub const fn needs(self, needs: Needs) -> System {
        System { needs, ..self }
    }

    /// How a scenario file or a command asks for it.
    pub fn asked(&self) -> String {
        self.syntax.replace('*', self.key)
    }
}

impl Serialize for System {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let System { key, kind, tier, worlds, status, syntax: _, what, source, needs: _ } = self;
        let mut row = serializer.serialize_struct("System", 8)?;
        row.serialize_field("key", key)?;
        row.serialize_field("kind", kind)?;
        row.serialize_field("tier", tier)?;
        row.serialize_field("worlds", worlds)?;
        row.serialize_field("status", status)?;
        row.serialize_field("where", &self.asked())?;
        row.serialize_field("what", what)?;
        row.serialize_field("source", source)?;
        row.end()
    }
}

/// A word of a file that stands for a system: what it is, and how its configuration is read.
///
/// `R` is a function over [`Keys`](super::Keys) whose form depends on the family: an agent's needs nothing else, a
/// channel's is told the rate of its radio.
#[derive(Clone, Copy, Debug)]
pub struct Descriptor<R: 'static> {
    /// The word.
    pub word: &'static str,
    /// The system that it stands for.
    pub system: System,
    /// Goes over the keys and gives the configuration.
    pub read: R,
}

/// The descriptor of `word`.
pub fn find<R>(registry: &[&'static Descriptor<R>], word: &str) -> Option<&'static Descriptor<R>> {
    registry.iter().copied().find(|descriptor| descriptor.word == word)
}
