//! The run loop: time jumps from wake to wake.

use lasthop_path::{HostKind, Outside, Path, Stage};
use lasthop_proto::agent::BaseStation;
use lasthop_proto::event::{Cause, Event, Op, Wants, What};
use lasthop_proto::machine::{Side, StageId};
use lasthop_proto::tcp::{Connection, Host};
use lasthop_proto::units::Time;
use lasthop_proto::wire::Packet;
use lasthop_scenario::Scenario;
use lasthop_trace::Sink;

use crate::end::{Reason, RunEnd, TransferEnd};

/// Wakes without progress of time after which a machine is at fault.
const STUCK: u32 = 1_000_000;

/// Nothing lies outside: a packet that leaves is lost.
struct Void<'a, S>(&'a mut S);

impl<S: Sink> Outside for Void<'_, S> {
    #[inline]
    fn event(&mut self, event: &Event) {
        self.0.event(event);
    }

    /// No host has the packet's address: the last stage it passed drops it.
    #[cold]
    fn leave(&mut self, at: Time, stage: StageId, side: Side, packet: Packet) {
        let what = What::Packet { op: Op::Dropped(Cause::NoSuchConnection), side, packet };
        self.0.event(&Event { at, stage, what });
    }
}

pub(crate) struct Engine<'a> {
    scenario: &'a Scenario,
    path: Path,
}

impl<'a> Engine<'a> {
    pub(crate) fn new(scenario: &'a Scenario, seed: u64, wants: Wants) -> Engine<'a> {
        let path = Path::of_scenario(scenario, seed, wants, |_| HostKind::Ours);
        Engine { scenario, path }
    }

    pub(crate) fn run<S: Sink>(mut self, sink: &mut S) -> RunEnd {
        let horizon = Time::ZERO + self.scenario.horizon;
        let mut outside = Void(sink);
        let mut now = Time::ZERO;
        let (mut wakes, mut standing) = (0u64, 0u32);
        let reason = loop {
            let Some(at) = self.path.next_wake() else { break Reason::Idle };
            if at > horizon {
                now = horizon;
                break Reason::Horizon;
            }
            if at > now {
                now = at;
                standing = 0;
            } else {
                standing += 1;
                if standing > STUCK {
                    break Reason::Stuck;
                }
            }
            wakes += 1;
            self.path.wake(now, &mut outside);
            if self.path.take_host_called() && self.path.is_finished() {
                break Reason::Finished;
            }
        };
        self.end(now, reason, wakes)
    }

    fn end(self, at: Time, reason: Reason, wakes: u64) -> RunEnd {
        let stages = self.path.stages().iter().enumerate();
        let agent_state = stages
            .filter_map(|(i, stage)| {
                Some((StageId(i as u16), stage.agent()?.peak_state_bytes() as u64))
            })
            .collect();
        RunEnd {
            at,
            reason,
            stuck: self.path.next_stage().filter(|_| reason == Reason::Stuck),
            hops: self.path.hops(),
            wakes,
            transfers: self.transfers(),
            agent_state,
            stages: self.path.counts(),
        }
    }

    fn transfers(&self) -> Vec<TransferEnd> {
        let mut used = vec![0; self.scenario.hosts.len()];
        let mut ends = Vec::new();
        for transfer in &self.scenario.transfers {
            let host = |index: usize| {
                let stage = self.path.host_stages()[index];
                self.path.stages().get(stage).and_then(Stage::host)
            };
            let (Some(from), Some(to)) = (host(transfer.from), host(transfer.to)) else { continue };
            let count = transfer.connections() as usize;
            for sender in from.opened().skip(used[transfer.from]).take(count) {
                ends.push(end(sender, Some(to)));
            }
            used[transfer.from] += count;
        }
        // Behind them come the short transfers, host by host.
        for (i, used) in used.into_iter().enumerate() {
            let host = |i: usize| self.path.stages()[self.path.host_stages()[i]].host();
            let Some(from) = host(i) else { continue };
            for sender in from.opened().skip(used) {
                let peer = self.scenario.hosts.iter().position(|h| h.addr == sender.flow.dst);
                ends.push(end(sender, peer.and_then(host)));
            }
        }
        ends
    }
}

fn end(sender: &Connection, receiver: Option<&Host>) -> TransferEnd {
    let flow = sender.flow.reversed();
    let delivered = |host: &Host| {
        let delivered = host.connection(flow).map_or(0, Connection::delivered);
        if delivered >= sender.acknowledged() {
            return delivered;
        }
        // A SYN that came late may have opened the connection once more.
        let all = host.connections().iter().filter(|connection| connection.flow == flow);
        all.map(Connection::delivered).max().unwrap_or(0)
    };
    TransferEnd {
        wanted: sender.wanted(),
        delivered: receiver.map_or(0, delivered),
        acknowledged: sender.acknowledged(),
        complete: sender.is_complete(),
        aborted: sender.is_aborted(),
    }
}
