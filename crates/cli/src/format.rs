//! Names and versions of the formats of JSON answers.
//!
//! A version rises when a member is removed, renamed or changes its meaning. New members do not raise it, so
//! programs must ignore unknown members.

use serde::Serialize;

/// The format of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Format {
    /// Name, which begins with `lasthop-`.
    pub name: &'static str,
    /// Version, from 1 on.
    pub version: u32,
}

const fn format(name: &'static str) -> Format {
    Format { name, version: 1 }
}

pub const ADVISE: Format = format("lasthop-advise");
/// Version 2 has no `wireshark`.
pub const ANALYZE: Format = Format { name: "lasthop-analyze", version: 2 };
pub const BATTERY: Format = format("lasthop-battery");
pub const COMPARE: Format = format("lasthop-compare");
pub const CTL: Format = format("lasthop-ctl");
pub const DOCTOR: Format = format("lasthop-doctor");
pub const ENERGY: Format = format("lasthop-energy");
pub const ERROR: Format = format("lasthop-error");
pub const EXPLAIN: Format = format("lasthop-explain");
pub const EXPLORE: Format = format("lasthop-explore");
pub const LAB: Format = format("lasthop-lab");
pub const LINK: Format = format("lasthop-link");
pub const LIST: Format = format("lasthop-list");
pub const PACKETDRILL: Format = format("lasthop-packetdrill");
pub const PLAN: Format = format("lasthop-plan");
pub const PLOT: Format = format("lasthop-plot");
pub const REPORT: Format = format("lasthop-report");
pub const REPRODUCE: Format = format("lasthop-reproduce");
/// Version 2 has no `tcp_events`, `tcp_events_why` and `lost_tcp_events`.
pub const RUN: Format = Format { name: "lasthop-run", version: 2 };
pub const SHELL: Format = format("lasthop-shell");
pub const STATION: Format = format("lasthop-station");
pub const SWEEP: Format = format("lasthop-sweep");
pub const TESTBED: Format = format("lasthop-testbed");
pub const TRACE: Format = format("lasthop-trace");
pub const VERSION: Format = format("lasthop-version");

/// An answer, preceded by its format; the answer must be an object.
#[derive(Serialize, Debug)]
pub struct Envelope<'a, T> {
    format: &'static str,
    format_version: u32,
    #[serde(flatten)]
    answer: &'a T,
}

impl Format {
    /// An answer in this format.
    pub fn of<T: Serialize>(self, answer: &T) -> Envelope<'_, T> {
        Envelope { format: self.name, format_version: self.version, answer }
    }

    /// An answer on one line, for programs that read several.
    pub fn line<T: Serialize>(self, answer: &T) -> String {
        // Only maps with keys other than text cannot be serialized; no answer contains one.
        serde_json::to_string(&self.of(answer)).expect("answers are JSON") + "\n"
    }
}
