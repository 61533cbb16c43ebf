//! A base station that is only a router.

use serde::Serialize;

use super::admit::admit;
use super::{AgentConfig, BaseStation, Config, Read};
use crate::describe::{Descriptor, Kind, Needs, System};
use crate::machine::{Machine, Out, Side};
use crate::units::Time;
use crate::wire::Packet;

/// Forwards every packet in both directions, except those whose IP header is damaged.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize)]
pub struct Router;

impl Config for Router {
    const WORDS: &'static [Descriptor<Read>] = &[Descriptor {
        word: "none",
        system: System::new(
            Kind::Agent,
            "none",
            "path: agent = \"none\"",
            "packets are only forwarded",
            "RFC 1812",
        )
        .tier(System::UNLISTED)
        .needs(Needs::Nothing),
        read: |_| AgentConfig::None(Router),
    }];
    type Agent = Router;

    fn agent(&self) -> Router {
        *self
    }

    fn plan(&self) -> String {
        "no agent".to_owned()
    }

    fn needs_radio(&self) -> bool {
        false
    }

    fn helps_both_ways(&self) -> bool {
        true
    }
}

impl BaseStation for Router {
    fn takes_bulk(&self) -> bool {
        true
    }
}

impl Machine for Router {
    fn on_packet(&mut self, _now: Time, from: Side, packet: Packet, out: &mut Out) {
        if let Some(packet) = admit(from, packet, out) {
            out.send(from.other(), packet);
        }
    }
}
