//! What the applications have told, and whether what arrived is what was sent.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;

use lasthop_path::DISCARD;
use lasthop_proto::event::Event;
use lasthop_proto::tcp::host::flow_of;
use lasthop_proto::units::Time;
use lasthop_scenario::{Scenario, Stack};
use lasthop_trace::Sink;
use sha2::{Digest as _, Sha256};

use super::SETTLED;
use super::ends::Ends;
use super::news::News;
use super::ours::Ours;
use super::sockets::{self, Stood};
use crate::endpoint::{End, Pattern, Received, SendReport, hex};

/// SHA-256 of the first `bytes` of a pattern, in hexadecimal.
fn pattern_sha256(pattern: Pattern, bytes: u64) -> String {
    let mut hash = Sha256::new();
    let mut piece = Vec::new();
    let mut done = 0;
    while done < bytes {
        let count = (bytes - done).min(1 << 16);
        pattern.fill(done, count as usize, &mut piece);
        hash.update(&piece);
        done += count;
    }
    hex(hash)
}

/// What the applications have told.
#[derive(Default)]
pub(super) struct Reports {
    sent: BTreeMap<usize, Result<SendReport, String>>,
    received: Vec<Received>,
    stood: BTreeMap<usize, io::Result<Stood>>,
    /// What senders in the kernel did, until it can be put in order.
    events: Vec<Event>,
}

impl Reports {
    pub(super) fn take(&mut self, ends: &Ends) {
        for news in ends.news.try_iter() {
            match news {
                News::Event(event) => self.events.push(event),
                News::Sent(index, report) => {
                    self.sent.insert(index, report);
                }
                News::Received(received) => self.received.push(received),
                News::Stood(host, stood) => {
                    self.stood.insert(host, stood);
                }
            }
        }
    }

    /// Hands on events of so long before `now` that no older one can come: threads tell theirs at different times.
    pub(super) fn tell(&mut self, now: Time, sink: &mut dyn Sink) {
        self.events.sort_by_key(|event| event.at);
        let known = self.events.partition_point(|event| event.at + SETTLED <= now);
        for event in self.events.drain(..known) {
            sink.event(&event);
        }
    }

    /// What did not arrive as it was sent.
    pub(super) fn wrong(&self, scenario: &Scenario, ours: &Ours) -> Vec<String> {
        let mut wrong = sockets::wrong(scenario, &self.stood);
        let mut opened = vec![0; scenario.hosts.len()];
        let mut index = 0;
        for transfer in &scenario.transfers {
            let (from, to) = (&scenario.hosts[transfer.from], &scenario.hosts[transfer.to]);
            for _ in 0..transfer.connections() {
                let name = format!("transfer {} from {} to {}", index + 1, from.name, to.name);
                let nth = opened[transfer.from];
                opened[transfer.from] += 1;
                if transfer.quic.is_some() {
                    index += 1;
                    continue;
                }
                let (port, sha256) = match (self.sent.get(&index), transfer.bytes) {
                    (Some(Err(error)), _) => {
                        wrong.push(format!("{name}: {error}"));
                        index += 1;
                        continue;
                    }
                    (Some(Ok(report)), _) => (report.local.port(), report.sha256.clone()),
                    (None, Some(bytes)) => {
                        let port = flow_of(from.addr, to.addr, DISCARD, nth).src_port;
                        let pattern = Pattern { stream: index as u32 + 1 };
                        (port, pattern_sha256(pattern, bytes.0))
                    }
                    (None, None) => {
                        index += 1;
                        continue;
                    }
                };
                index += 1;
                let peer = SocketAddr::new(from.addr.ip(), port);
                if matches!(to.stack, Stack::Lasthop) {
                    match ours.received(peer, to.addr) {
                        None => wrong.push(format!("{name}: nothing arrived")),
                        Some((_, false)) => wrong.push(format!("{name}: its end did not arrive")),
                        Some((found, true)) if found != sha256 => {
                            wrong.push(format!("{name}: other bytes arrived than were sent"));
                        }
                        Some(_) => {}
                    }
                    continue;
                }
                match self.received.iter().find(|r| r.peer == peer) {
                    None => wrong.push(format!("{name}: nothing arrived")),
                    Some(r) if r.end != End::Closed => wrong.push(format!("{name}: {}", r.end)),
                    Some(r) if r.sha256 != sha256 => {
                        wrong.push(format!("{name}: other bytes arrived than were sent"));
                    }
                    Some(_) => {}
                }
            }
        }
        wrong
    }
}
