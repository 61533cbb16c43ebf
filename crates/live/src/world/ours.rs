//! What arrives at hosts whose TCP is ours: each byte is hashed, so that it can be compared with what was sent.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use lasthop_path::Path;
use lasthop_proto::wire::{Addr, Body, FlowKey};
use lasthop_trace::Sink;
use sha2::{Digest as _, Sha256};

use crate::endpoint::hex;
use crate::station::Station;

/// One connection that came in.
struct Arrived {
    flow: FlowKey,
    hash: Sha256,
    closed: bool,
}

/// The connections that came in at our hosts, by the stage of the host and the connection's number there.
#[derive(Default)]
pub(super) struct Ours {
    stages: Vec<usize>,
    arrived: BTreeMap<(usize, usize), Arrived>,
    bodies: Vec<Body>,
    bytes: Vec<u8>,
}

impl Ours {
    /// Lets the hosts of `path` that are ours keep what they are sent.
    pub(super) fn watch(path: &mut Path) -> Ours {
        let mut ours = Ours::default();
        for i in path.host_stages().to_vec() {
            if let Some(host) = path.stage_mut(i).and_then(|stage| stage.host_mut()) {
                host.keep_delivered();
                ours.stages.push(i);
            }
        }
        ours
    }

    /// Takes what was delivered since the last time.
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

    /// SHA-256 of what came from `peer` to `host`, and whether the peer has said that it was all. Of several
    /// connections with the same ports the last one counts.
    pub(super) fn received(&self, peer: SocketAddr, host: Addr) -> Option<(String, bool)> {
        let from = |flow: FlowKey| SocketAddr::new(flow.dst.ip(), flow.dst_port);
        let mut last = self.arrived.values().rev();
        let one = last.find(|one| one.flow.src == host && from(one.flow) == peer)?;
        Some((hex(one.hash.clone()), one.closed))
    }
}
