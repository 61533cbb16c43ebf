//! The applications at hosts with the kernel's TCP.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::thread::JoinHandle;

use lasthop_path::DISCARD;
use lasthop_proto::event::{Event, EventKind, Tcb, TcpEvent};
use lasthop_proto::machine::StageId;
use lasthop_proto::tcp::traffic::Exchange;
use lasthop_proto::units::{Bytes, Span, Time};
use lasthop_scenario::{Scenario, Traffic, Transfer};

use super::host_report::HostReport;
use super::sockets::Machine;
use super::{Connection, SAMPLE, has_tcp};
use crate::clock::Clock;
use crate::endpoint::{
    Client, Pattern, SendOptions, Session, Source, answer, ask, discard, listen, send,
};
use crate::testbed::{Error, Net};

/// The applications on kernel hosts, one thread each.
pub(super) struct Ends {
    stop: Arc<AtomicBool>,
    unfinished: Arc<AtomicUsize>,
    threads: std::cell::RefCell<Vec<JoinHandle<()>>>,
    pub(super) news: Receiver<HostReport>,
}

impl Ends {
    pub(super) fn start(
        net: &Net,
        scenario: &Scenario,
        shared: Shared,
        news: Receiver<HostReport>,
        connections: &[Connection],
        machines: Vec<(usize, Machine)>,
    ) -> Result<Ends, Error> {
        let mut threads = Vec::new();
        // Receivers first, so that they listen when senders connect.
        for (i, host) in scenario.hosts.iter().enumerate().filter(|(i, _)| has_tcp(scenario, *i)) {
            let expected: u32 =
                scenario.transfers.iter().filter(|t| t.to == i).map(|t| t.connections()).sum();
            if expected > 0 {
                let address = SocketAddr::new(host.addr.ip(), DISCARD);
                threads.push(shared.receive(net, &host.name, address, expected)?);
            }
        }
        for (nth, transfer) in scenario.exchanges().enumerate() {
            let Traffic::Exchange(exchange) = transfer.traffic else { continue };
            let server = &scenario.hosts[transfer.to];
            let to = SocketAddr::new(server.addr.ip(), Exchange::port(nth));
            if has_tcp(scenario, transfer.to) {
                threads.push(shared.answer(net, &server.name, to, exchange)?);
            }
            if has_tcp(scenario, transfer.from) {
                let times = [transfer.start, transfer.stop.unwrap_or(Span(u64::MAX))];
                let [start, stop] = times.map(|at| Time(at.0));
                let client = Client { exchange, to, start, stop: Some(stop) };
                let name = &scenario.hosts[transfer.from].name;
                let stage = lasthop_path::host_stage(scenario, transfer.from);
                for _ in 0..transfer.count {
                    threads.push(shared.ask(net, name, stage, client)?);
                }
            }
        }
        for (index, connection) in connections.iter().enumerate() {
            if let Some(port) = connection.port {
                threads.push(shared.send(net, scenario, connection.transfer, index, port)?);
            }
        }
        for (host, machine) in machines {
            threads.push(shared.drive(net, &scenario.hosts[host].name, host, machine)?);
        }
        let Shared { stop, unfinished, .. } = shared;
        Ok(Ends { stop, unfinished, threads: threads.into(), news })
    }

    /// Number of running applications.
    pub(super) fn unfinished(&self) -> usize {
        self.unfinished.load(Ordering::Acquire)
    }

    /// Stops the running applications and waits for them.
    pub(super) fn finish(&self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.borrow_mut().drain(..) {
            // A panicked thread has printed its message to stderr, and its transfer counts as missing.
            let _ = thread.join();
        }
    }
}

/// Shared state of all applications.
#[derive(Clone)]
pub(super) struct Shared {
    clock: Clock,
    stop: Arc<AtomicBool>,
    unfinished: Arc<AtomicUsize>,
    news: Sender<HostReport>,
}

/// Counts an application as ended when it is dropped, even by a panic.
struct UnfinishedGuard(Arc<AtomicUsize>);

impl Drop for UnfinishedGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

impl Shared {
    pub(super) fn new(clock: Clock, news: Sender<HostReport>) -> Shared {
        let (stop, unfinished) = (Arc::default(), Arc::default());
        Shared { clock, stop, unfinished, news }
    }

    fn counted(&self) -> UnfinishedGuard {
        self.unfinished.fetch_add(1, Ordering::Release);
        UnfinishedGuard(self.unfinished.clone())
    }

    fn receive(
        &self,
        net: &Net,
        host: &str,
        address: SocketAddr,
        count: u32,
    ) -> Result<JoinHandle<()>, Error> {
        let listener = net
            .in_host(host, || listen(address))?
            .map_err(|error| Error::new(format!("{address} cannot be used: {error}"), ""))?;
        let counted = self.counted();
        let shared = self.clone();
        net.spawn_in(host, move || {
            let _counted = counted;
            let session = Session { clock: shared.clock, stop: &shared.stop };
            // After the end of the run the channel has no receiver.
            let mut report = |received| drop(shared.news.send(HostReport::Received(received)));
            // A failed listener shows as missing transfers.
            let _ = discard(&listener, count as usize, &session, &mut report);
        })
    }

    /// Runs the server of a table of exchanges until the end of the run.
    fn answer(
        &self,
        net: &Net,
        host: &str,
        address: SocketAddr,
        exchange: Exchange,
    ) -> Result<JoinHandle<()>, Error> {
        let listener = net
            .in_host(host, || listen(address))?
            .map_err(|error| Error::new(format!("{address} cannot be used: {error}"), ""))?;
        let shared = self.clone();
        net.spawn_in(host, move || {
            let session = Session { clock: shared.clock, stop: &shared.stop };
            // A failed listener shows as missing responses.
            let _ = answer(&listener, &exchange, &session);
        })
    }

    /// Runs a client of such a server, at `stage`.
    fn ask(
        &self,
        net: &Net,
        host: &str,
        stage: StageId,
        client: Client,
    ) -> Result<JoinHandle<()>, Error> {
        let counted = self.counted();
        let shared = self.clone();
        net.spawn_in(host, move || {
            let _counted = counted;
            let session = Session { clock: shared.clock, stop: &shared.stop };
            if !session.wait_until(client.start).unwrap_or(false) {
                return;
            }
            let report = |at, flow, kind| {
                let kind = EventKind::Tcp(TcpEvent { flow, kind, tcb: Tcb::default() });
                let _ = shared.news.send(HostReport::Event(Event { at, stage, kind }));
            };
            // A broken connection shows as missing responses.
            let _ = ask(&client, &session, report);
        })
    }

    /// Runs the machine of host `host`.
    fn drive(
        &self,
        net: &Net,
        name: &str,
        host: usize,
        machine: Machine,
    ) -> Result<JoinHandle<()>, Error> {
        let counted = self.counted();
        let shared = self.clone();
        net.spawn_in(name, move || {
            let stopped = || shared.stop.load(Ordering::Relaxed);
            let report = |news| {
                let _ = shared.news.send(news);
            };
            let stood = machine.run(shared.clock, stopped, || drop(counted), report);
            let _ = shared.news.send(HostReport::FinalState(host, stood));
        })
    }

    fn send(
        &self,
        net: &Net,
        scenario: &Scenario,
        transfer: usize,
        index: usize,
        port: u16,
    ) -> Result<JoinHandle<()>, Error> {
        let Transfer { from, to, bytes, start, .. } = &scenario.transfers[transfer];
        let (from, to) = (&scenario.hosts[*from], &scenario.hosts[*to]);
        let stage = lasthop_path::host_stage(scenario, scenario.transfers[transfer].from);
        let options = SendOptions {
            from: Some(SocketAddr::new(from.addr.ip(), port)),
            // A handshake over a lossy path may take long.
            connect_timeout: Span::secs(300),
            sample: Some(SAMPLE),
            stage,
            ..SendOptions::new(SocketAddr::new(to.addr.ip(), DISCARD))
        };
        let pattern = Pattern { stream: index as u32 + 1 };
        let bytes = bytes.map_or(u64::MAX, |Bytes(bytes)| bytes);
        let at = Time::ZERO + *start;
        let counted = self.counted();
        let shared = self.clone();
        net.spawn_in(&from.name, move || {
            let _counted = counted;
            let session = Session { clock: shared.clock, stop: &shared.stop };
            let source = Source { pattern, bytes };
            // After the end of the run the channel has no receiver.
            let mut trace = |event| drop(shared.news.send(HostReport::Event(event)));
            let report = match session.wait_until(at) {
                Ok(false) => return,
                Ok(true) => send(&options, source, &session, &mut trace),
                Err(error) => Err(error.into()),
            };
            let report = report.map_err(|error| error.to_string());
            let _ = shared.news.send(HostReport::Sent(index, report.map(Box::new)));
        })
    }
}
