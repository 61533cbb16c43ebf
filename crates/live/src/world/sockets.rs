//! Hosts with their own stack ([`End`]: QUIC) that exchange datagrams through UDP sockets of the kernel.
//!
//! The machine is the simulator's. Its packets leave as datagrams in the host's namespace, so the kernel
//! makes the headers and does not fragment. Received datagrams reach the machine as packets, with their ECN
//! codepoints. The machine's time is that of the clock.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd as _;

use lasthop_path::{DISCARD, End};
use lasthop_proto::event::{EventKind, Interest, TcpKind};
use lasthop_proto::machine::{Out, Side};
use lasthop_proto::side::StageId;
use lasthop_proto::udp;
use lasthop_proto::units::Bytes;
use lasthop_proto::wire::{Addr, FlowKey, Packet};
use lasthop_scenario::Scenario;
use nix::poll::{PollFd, PollFlags};
use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSocketState};

use super::host_report::HostReport;
use crate::clock::Clock;
use crate::endpoint::{LOOK, wait};

/// Largest datagram, bytes, and datagrams per read.
const LARGEST: usize = 65_536;
const BATCH: usize = 16;

/// A socket of such a host.
struct Socket {
    socket: UdpSocket,
    state: UdpSocketState,
}

impl Socket {
    fn bind(address: SocketAddr) -> io::Result<Socket> {
        let socket = UdpSocket::bind(address)?;
        // It enables ECN codepoints, disables fragmentation and is non-blocking.
        let state = UdpSocketState::new((&socket).into())?;
        Ok(Socket { socket, state })
    }
}

/// A host's machine and its sockets.
pub(super) struct Machine {
    end: Box<dyn End>,
    sockets: BTreeMap<u16, Socket>,
    /// Whether all delivered bytes equal the sent ones.
    right: bool,
    out: Out,
    stage: StageId,
}

/// Final state of a host.
#[derive(Debug)]
pub(super) struct FinalState {
    /// Its machine.
    pub end: Box<dyn End>,
    /// Whether all delivered bytes equal the sent ones.
    pub right: bool,
}

impl Machine {
    /// Binds the sockets that the transfers of host `host` need for the machine `end`, in the caller's
    /// namespace.
    pub(super) fn bind(
        scenario: &Scenario,
        host: usize,
        end: Box<dyn End>,
        interest: Interest,
    ) -> io::Result<Machine> {
        let mut ports: Vec<u16> = end.opened().iter().map(|sent| sent.flow.src_port).collect();
        if scenario.transfers.iter().any(|transfer| transfer.to == host) {
            ports.push(DISCARD);
        }
        let at = |port| SocketAddr::new(end.addr().ip(), port);
        let sockets = ports.into_iter().map(|port| Ok((port, Socket::bind(at(port))?)));
        let sockets = sockets.collect::<io::Result<_>>()?;
        let stage = lasthop_path::host_stage(scenario, host);
        Ok(Machine { end, sockets, right: true, out: Out::new(interest), stage })
    }

    /// Runs the machine until `stopped` returns true. Calls `idle` when its transfers are over.
    pub(super) fn run(
        mut self,
        clock: Clock,
        stopped: impl Fn() -> bool,
        idle: impl FnOnce(),
        mut report: impl FnMut(HostReport),
    ) -> io::Result<FinalState> {
        let mut buf = vec![0; LARGEST * BATCH];
        let mut idle = Some(idle);
        while !stopped() {
            self.receive(clock, &mut buf, &mut report)?;
            let now = clock.now();
            if self.end.next_wake().is_some_and(|at| at <= now) {
                self.out.begin(self.stage, now);
                self.end.on_wake(now, &mut self.out);
                self.drain(&mut report)?;
            }
            if self.end.unfinished() == 0
                && let Some(idle) = idle.take()
            {
                idle();
            }
            let next = self.end.next_wake();
            let rest = next.map_or(LOOK, |at| at.since(clock.now()).min(LOOK));
            let sockets = self.sockets.values();
            let mut watched: Vec<PollFd<'_>> =
                sockets.map(|s| PollFd::new(s.socket.as_fd(), PollFlags::POLLIN)).collect();
            wait(&mut watched, rest)?;
        }
        Ok(FinalState { end: self.end, right: self.right })
    }

    /// Passes received datagrams to the machine.
    fn receive(
        &mut self,
        clock: Clock,
        buf: &mut [u8],
        report: &mut impl FnMut(HostReport),
    ) -> io::Result<()> {
        for port in self.sockets.keys().copied().collect::<Vec<_>>() {
            loop {
                let Socket { socket, state } = &self.sockets[&port];
                let mut metas = [RecvMeta::default(); BATCH];
                let mut slices: Vec<IoSliceMut<'_>> =
                    buf.chunks_exact_mut(LARGEST).map(IoSliceMut::new).collect();
                let count = match state.recv(socket.into(), &mut slices, &mut metas) {
                    Ok(count) => count,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    // ICMP reports an unreachable peer. QUIC does not trust this.
                    Err(error) if error.kind() == ErrorKind::ConnectionRefused => continue,
                    Err(error) => return Err(error),
                };
                let now = clock.now();
                for (meta, piece) in metas.iter().zip(buf.chunks_exact(LARGEST)).take(count) {
                    for datagram in piece[..meta.len].chunks(meta.stride.max(1)) {
                        let packet = packet(meta, self.end.addr(), port, datagram);
                        self.out.begin(self.stage, now);
                        // The side only sets the direction in the events of its own packets.
                        self.end.on_packet(now, Side::Right, packet, &mut self.out);
                        self.drain(report)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Sends the machine's packets, and reports the events of its connections.
    fn drain(&mut self, report: &mut impl FnMut(HostReport)) -> io::Result<()> {
        for (_, packet) in self.out.sends.drain(..) {
            let Some(flow) = packet.datagram_flow() else { continue };
            let Some(Socket { socket, state }) = self.sockets.get(&flow.src_port) else { continue };
            let Some(contents) = udp::payload(&packet) else { continue };
            let transmit = Transmit {
                destination: SocketAddr::new(flow.dst.ip(), flow.dst_port),
                ecn: EcnCodepoint::from_bits(packet.tos & 3),
                contents,
                segment_size: None,
                src_ip: None,
            };
            match state.try_send(socket.into(), &transmit) {
                Ok(()) => {}
                // Counts as an immediate loss: the socket's buffer is full, or a path MTU probe is too large.
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) if error.raw_os_error() == Some(libc::EMSGSIZE) => {}
                Err(error) => return Err(error),
            }
        }
        self.out.signals.clear();
        for event in self.out.events.drain(..) {
            // Packets are reported by the stages that carry them.
            if let EventKind::Tcp(tcp) = &event.kind {
                self.right &= tcp.kind != TcpKind::Corrupted;
                report(HostReport::Event(event));
            }
        }
        Ok(())
    }
}

/// Converts a datagram to a packet for the machine.
fn packet(meta: &RecvMeta, here: Addr, port: u16, datagram: &[u8]) -> Packet {
    let (src, src_port) = (Addr::from(meta.addr.ip()), meta.addr.port());
    let mut bytes = vec![0; udp::HEADER as usize];
    bytes.extend_from_slice(datagram);
    let flow = FlowKey { src, dst: here, src_port, dst_port: port };
    udp::packet(flow, bytes).with(|packet| packet.tos = meta.ecn.map_or(0, |ecn| ecn as u8))
}

/// Incorrect transfers of `scenario`, one line each.
pub(super) fn wrong(
    scenario: &Scenario,
    stood: &BTreeMap<usize, io::Result<FinalState>>,
) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut index = 0;
    let mut opened = vec![0; scenario.hosts.len()];
    for transfer in &scenario.transfers {
        let names = [transfer.from, transfer.to].map(|i| &scenario.hosts[i].name);
        for _ in 0..transfer.connections() {
            index += 1;
            let nth = opened[transfer.from];
            opened[transfer.from] += 1;
            if transfer.quic.is_none() {
                continue;
            }
            let ends = [transfer.from, transfer.to].map(|i| stood.get(&i));
            if let Some(message) = one(ends, nth, transfer.bytes) {
                wrong
                    .push(format!("transfer {index} from {} to {}: {message}", names[0], names[1]));
            }
        }
    }
    wrong
}

/// The problem of transfer number `nth` from the first to the second host.
fn one(
    ends: [Option<&io::Result<FinalState>>; 2],
    nth: usize,
    bytes: Option<Bytes>,
) -> Option<String> {
    let [from, to] = match ends {
        [Some(Ok(from)), Some(Ok(to))] => [from, to],
        [Some(Err(error)), _] | [_, Some(Err(error))] => return Some(error.to_string()),
        _ => return Some("a host did not run".to_owned()),
    };
    let Some(sent) = from.end.opened().get(nth).copied() else {
        return Some("it was not opened".to_owned());
    };
    if sent.aborted {
        return Some("the connection was given up".to_owned());
    }
    if !to.right {
        return Some("other bytes arrived than were sent".to_owned());
    }
    let Bytes(bytes) = bytes?;
    let arrived = to.end.delivered(sent.flow.reversed());
    (arrived != bytes).then(|| format!("{arrived} of {bytes} bytes arrived"))
}

#[cfg(test)]
mod tests;
