//! Data that arrives at hosts with lasthop's TCP. It is hashed, for comparison with the sent data.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use lasthop_observe::Sink;
use lasthop_path::Path;
use lasthop_proto::wire::{Addr, Body, FlowKey};
use sha2::{Digest as _, Sha256};

use crate::endpoint::hex;
use crate::station::Station;

/// An incoming connection.
struct Arrived {
    flow: FlowKey,
    hash: Sha256,
    closed: bool,
}

/// Incoming connections of lasthop's hosts, by the host's stage and the connection's index there.
#[derive(Default)]
pub(super) struct Ours {
    stages: Vec<usize>,
    arrived: BTreeMap<(usize, usize), Arrived>,
    bodies: Vec<Body>,
    bytes: Vec<u8>,
}

impl Ours {
    /// Makes the lasthop hosts of `path` store received data.
    pub(super) fn watch(path: &mut Path) -> Ours {
        let mut ours = Ours::default();
        for i in path.host_stages().to_vec() {
            if let Some(host) = path.stage_mut(i).and_then(|stage| stage.host_mut()) {
                host.store_delivered();
                ours.stages.push(i);
            }
        }
        ours
    }

    /// Hashes the data that was delivered since the last call.
    pub(super) fn take(&mut self, station: &mut Station, sink: &mut dyn Sink) {
        let Ours { stages, arrived, bodies, bytes } = self;
        if stages.is_empty() || !station.path_mut().take_host_called() {
            return;
        }
        for stage in stages.iter().copied() {
            station.call(stage, sink, |machine, _| {
                let Some(host) = machine.host_mut() else { return };
                for i in 0..host.connections().len() {
                    if host.connections()[i].is_active() {
                        continue;
                    }
                    host.act(i, |connection| {
                        connection.take_delivered(bodies);
                        let one = arrived.entry((stage, i)).or_insert_with(|| Arrived {
                            flow: connection.flow,
                            hash: Sha256::new(),
                            closed: false,
                        });
                        for body in bodies.drain(..) {
                            bytes.clear();
                            body.copy_into(u32::MAX, bytes);
                            one.hash.update(&bytes);
                        }
                        one.closed = connection.peer_has_closed();
                    });
                }
            });
        }
    }

    /// SHA-256 of the data from `peer` to `host`, and whether the peer has closed its direction. The latest
    /// of several connections with the same ports counts.
    pub(super) fn received(&self, peer: SocketAddr, host: Addr) -> Option<(String, bool)> {
        let from = |flow: FlowKey| SocketAddr::new(flow.dst.ip(), flow.dst_port);
        let mut last = self.arrived.values().rev();
        let one = last.find(|one| one.flow.src == host && from(one.flow) == peer)?;
        Some((hex(one.hash.clone()), one.closed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hash of the latest connection between the two hosts counts.
    #[test]
    fn the_latest_hash_is_found_by_peer_and_host() {
        let (host, other) = (Addr::v4(10, 0, 0, 1), Addr::v4(10, 0, 0, 2));
        let peer = |addr: Addr, port| SocketAddr::new(addr.ip(), port);
        let hash = |text: &str| Sha256::new().chain_update(text);
        let mut ours = Ours::default();
        for (key, src, dst, dst_port, text, closed) in [
            ((1, 0), host, other, 7, "first", true),
            ((1, 1), host, other, 7, "last", false),
            ((1, 2), host, other, 8, "another port", true),
            ((2, 0), other, host, 7, "another host", true),
        ] {
            let flow = FlowKey { src, dst, src_port: 9, dst_port };
            ours.arrived.insert(key, Arrived { flow, hash: hash(text), closed });
        }
        let came = |text, closed| Some((hex(hash(text)), closed));
        assert_eq!(ours.received(peer(other, 7), host), came("last", false));
        assert_eq!(ours.received(peer(other, 8), host), came("another port", true));
        assert_eq!(ours.received(peer(host, 7), other), came("another host", true));
        assert_eq!(ours.received(peer(other, 9), host), None, "no host has that port");
        assert_eq!(ours.received(peer(other, 7), other), None, "it came to another host");
    }
}
