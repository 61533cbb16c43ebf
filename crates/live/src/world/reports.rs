//! Reports of the applications, and the comparison of received with sent data.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;

use lasthop_observe::Sink;
use lasthop_observe::metrics::Limits;
use lasthop_path::{DISCARD, Path, Stage};
use lasthop_proto::event::Event;
use lasthop_proto::tcp::host::flow_of;
use lasthop_proto::units::Time;
use lasthop_proto::wire::{Addr, FlowKey};
use lasthop_scenario::{Scenario, Stack};
use sha2::{Digest as _, Sha256};

use super::ends::Ends;
use super::host_report::HostReport;
use super::limits;
use super::ours::Ours;
use super::sockets::{self, FinalState};
use super::{Connection, SETTLED};
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

/// Collected reports of the applications.
#[derive(Default)]
pub(super) struct Reports {
    sent: BTreeMap<usize, Result<SendReport, String>>,
    received: Vec<Received>,
    stood: BTreeMap<usize, io::Result<FinalState>>,
    /// Events of kernel senders that are not in order yet.
    events: Vec<Event>,
    /// Time of the last event that a sink received.
    last: Time,
}

impl Reports {
    pub(super) fn take(&mut self, ends: &Ends) {
        for news in ends.news.try_iter() {
            match news {
                HostReport::Event(event) => self.events.push(event),
                HostReport::Sent(index, report) => {
                    self.sent.insert(index, report.map(|report| *report));
                }
                HostReport::Received(received) => self.received.push(received),
                HostReport::FinalState(host, stood) => {
                    self.stood.insert(host, stood);
                }
            }
        }
    }

    /// Forwards events in order: those before `now` minus the delay of the senders' reports.
    pub(super) fn forward(&mut self, now: Time, sink: &mut dyn Sink) {
        self.events.sort_by_key(|event| event.at);
        let known = self.events.partition_point(|event| event.at + SETTLED <= now);
        for event in self.events.drain(..known) {
            self.last = event.at;
            sink.event(&event);
        }
    }

    /// The end of a run that became quiet at `quiet`. On a busy machine the kernel's last events are read later.
    pub(super) fn end(&self, quiet: Time) -> Time {
        quiet.max(self.last)
    }

    /// Limiting factors of the senders until `at`, without cross traffic.
    pub(super) fn limits(
        &self,
        scenario: &Scenario,
        connections: &[Connection],
        path: &Path,
        at: Time,
    ) -> Option<Limits> {
        let counts = |index: &usize| {
            let transfer = connections.get(*index).map(|connection| connection.transfer);
            transfer.is_some_and(|transfer| !scenario.transfers[transfer].cross)
        };
        let reports = self.sent.iter().filter(|(index, _)| counts(index));
        let kernel = reports.filter_map(|(_, report)| limits::of_kernel(report.as_ref().ok()?));
        let others: Vec<[Addr; 2]> = scenario
            .transfers
            .iter()
            .filter(|transfer| transfer.cross)
            .map(|transfer| [transfer.from, transfer.to].map(|i| scenario.hosts[i].addr))
            .collect();
        let is_other = |flow: FlowKey| {
            others.contains(&[flow.src, flow.dst]) || others.contains(&[flow.dst, flow.src])
        };
        let hosts = path.stages().iter().filter_map(Stage::host);
        let ours = hosts.flat_map(|host| host.connections()).filter(|c| !is_other(c.flow));
        let ours = ours.filter_map(|c| limits::of_ours(c.acknowledged(), c.limits(at)));
        limits::mean(kernel.chain(ours))
    }

    /// Incorrect transfers, one line each.
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

#[cfg(test)]
mod tests {
    use lasthop_proto::units::Span;

    use super::*;

    /// Three transfers to a host with the kernel's TCP; `stack` is the sender's.
    fn scenario(stack: &str) -> Scenario {
        let transfer = |kib| {
            format!("[[transfer]]\nfrom = \"fixed\"\nto = \"mobile\"\nbytes = \"{kib}KiB\"\n")
        };
        let text = format!(
            "{}[host.fixed]\nstack = \"{stack}\"\n[host.mobile]\n\
             [[path]]\nlink = {{ rate = \"1mbit\", delay = \"1ms\" }}\n",
            [100, 150, 150].map(transfer).concat()
        );
        let (plan, _) = lasthop_scenario::parse(&text, "t", &[]).unwrap();
        plan.cells.into_iter().next().unwrap().scenario
    }

    fn sent(port: u16, sha256: &str) -> SendReport {
        SendReport {
            local: SocketAddr::from(([10, 0, 0, 1], port)),
            end: End::Closed,
            bytes: 1,
            acked: 1,
            sha256: sha256.to_owned(),
            first_byte: None,
            all_acked: None,
            ended: Span::ZERO,
            tcp: None,
        }
    }

    fn received(peer: SocketAddr, sha256: &str, end: End) -> Received {
        Received { peer, end, bytes: 1, sha256: sha256.to_owned() }
    }

    #[test]
    fn events_of_several_senders_are_forwarded_in_order() {
        use lasthop_proto::event::{EventKind, Interest};
        use lasthop_proto::machine::{Side, StageId};
        let event = |ms| {
            let kind = EventKind::Channel { side: Side::Right, good: true };
            Event { at: Time::ZERO + Span::millis(ms), stage: StageId(0), kind }
        };
        struct Times(Vec<Time>);
        impl Sink for Times {
            fn interest(&self) -> Interest {
                Interest::METRICS
            }
            fn event(&mut self, event: &Event) {
                self.0.push(event.at);
            }
        }
        let (mut reports, mut times) = (Reports::default(), Times(Vec::new()));
        reports.events = [500, 30, 10].map(event).to_vec();
        reports.forward(Time::ZERO + Span::millis(40), &mut times);
        reports.events.push(event(25));
        reports.forward(Time::ZERO + Span::millis(519), &mut times);
        let ms = |ms| Time::ZERO + Span::millis(ms);
        assert_eq!(times.0, [10, 25, 30].map(ms), "the last is not 20 ms old");
    }

    #[test]
    fn each_fault_is_reported_with_its_transfer() {
        let scenario = scenario("kernel");
        let from = scenario.hosts[scenario.transfers[0].from].addr.ip();
        let peer = |port| SocketAddr::new(from, port);
        let right = || {
            let mut reports = Reports::default();
            for (index, sum) in ["aa", "bb", "cc"].into_iter().enumerate() {
                let port = 1000 + index as u16;
                reports.sent.insert(index, Ok(sent(port, sum)));
                reports.received.push(received(peer(port), sum, End::Closed));
            }
            reports
        };
        let ours = Ours::default();
        let wrong = |change: &dyn Fn(&mut Reports)| {
            let mut reports = right();
            change(&mut reports);
            reports.wrong(&scenario, &ours)
        };
        let none: [&str; 0] = [];
        assert_eq!(wrong(&|_| {}), none);
        for index in 0..3 {
            let name = format!("transfer {} from fixed to mobile", index + 1);
            let fault = |message: &str| vec![format!("{name}: {message}")];
            assert_eq!(wrong(&|r| r.received[index].end = End::Stopped), fault("stopped"));
            assert_eq!(
                wrong(&|r| r.received[index].sha256 = "dd".into()),
                fault("other bytes arrived than were sent")
            );
            assert_eq!(wrong(&|r| r.received[index].peer = peer(999)), fault("nothing arrived"));
            let refused = |r: &mut Reports| {
                r.sent.insert(index, Err("refused".to_owned()));
            };
            assert_eq!(wrong(&refused), fault("refused"));
        }
        assert_eq!(wrong(&|r| r.received.swap(0, 1)), none, "in whatever order they end");
    }

    /// A lasthop sender sends no report: its port and its bytes are known from the scenario.
    #[test]
    fn lasthop_sender_data_is_compared_with_its_pattern() {
        let scenario = scenario("lasthop");
        let (from, to) = (&scenario.hosts[0], &scenario.hosts[1]);
        assert_eq!((&*from.name, &*to.name), ("fixed", "mobile"));
        let mut reports = Reports::default();
        for (nth, kib) in [(0, 100), (1, 150), (2, 150)] {
            let port = flow_of(from.addr, to.addr, DISCARD, nth).src_port;
            let mut bytes = Vec::new();
            Pattern { stream: nth as u32 + 1 }.fill(0, kib << 10, &mut bytes);
            let sum = hex(Sha256::new().chain_update(&bytes));
            reports.received.push(received(
                SocketAddr::new(from.addr.ip(), port),
                &sum,
                End::Closed,
            ));
        }
        let ours = Ours::default();
        let none: [&str; 0] = [];
        assert_eq!(reports.wrong(&scenario, &ours), none);
        reports.received.remove(1);
        assert_eq!(
            reports.wrong(&scenario, &ours),
            ["transfer 2 from fixed to mobile: nothing arrived"]
        );
    }
}
