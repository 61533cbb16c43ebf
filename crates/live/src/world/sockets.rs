//! Hosts with a stack of their own ([`End`]: QUIC) that send and take datagrams through UDP sockets of the kernel.
//!
//! The machine is the simulator's. Its packets leave as datagrams of the host's namespace, so that the kernel makes
//! the headers and fragments nothing; what the sockets hear goes to it as packets, with the marks of ECN. Its time is
//! the clock's.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd as _;

use lasthop_path::{DISCARD, End};
use lasthop_proto::event::{TcpKind, Wants, What};
use lasthop_proto::machine::{Out, Side};
use lasthop_proto::place::StageId;
use lasthop_proto::udp;
use lasthop_proto::units::Bytes;
use lasthop_proto::wire::{Addr, FlowKey, Packet};
use lasthop_scenario::Scenario;
use nix::poll::{PollFd, PollFlags};
use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSocketState};

use super::news::News;
use crate::clock::Clock;
use crate::endpoint::{LOOK, wait};

/// The largest datagram, and how many are taken from a socket at once.
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
        // It asks for marks, forbids fragments and never waits.
        let state = UdpSocketState::new((&socket).into())?;
        Ok(Socket { socket, state })
    }
}

/// A host's machine and its sockets.
pub(super) struct Machine {
    end: Box<dyn End>,
    sockets: BTreeMap<u16, Socket>,
    /// Whether all bytes that it has read were those that had been sent.
    right: bool,
    out: Out,
    stage: StageId,
}

/// How a host stood when its run was over.
#[derive(Debug)]
pub(super) struct Stood {
    /// Its machine.
    pub end: Box<dyn End>,
    /// Whether all bytes that it read were those that had been sent.
    pub right: bool,
}

impl Machine {
    /// The machine `end` of host number `host`, with the sockets that its transfers need, in the namespace of who calls.
    pub(super) fn bind(
        scenario: &Scenario,
        host: usize,
        end: Box<dyn End>,
        wants: Wants,
    ) -> io::Result<Machine> {
        let mut ports: Vec<u16> = end.opened().iter().map(|sent| sent.flow.src_port).collect();
        if scenario.transfers.iter().any(|transfer| transfer.to == host) {
            ports.push(DISCARD);
        }
        let at = |port| SocketAddr::new(end.addr().ip(), port);
        let sockets = ports.into_iter().map(|port| Ok((port, Socket::bind(at(port))?)));
        let sockets = sockets.collect::<io::Result<_>>()?;
        let stage = lasthop_path::host_stage(scenario, host);
        Ok(Machine { end, sockets, right: true, out: Out::new(wants), stage })
    }

    /// Runs it until `stopped` says so; `idle` is called when its transfers are over.
    pub(super) fn run(
        mut self,
        clock: Clock,
        stopped: impl Fn() -> bool,
        idle: impl FnOnce(),
        mut tell: impl FnMut(News),
    ) -> io::Result<Stood> {
        let mut buf = vec![0; LARGEST * BATCH];
        let mut idle = Some(idle);
        while !stopped() {
            self.hear(clock, &mut buf, &mut tell)?;
            let now = clock.now();
            if self.end.next_wake().is_some_and(|at| at <= now) {
                self.out.begin(self.stage, now);
                self.end.on_wake(now, &mut self.out);
                self.drain(&mut tell)?;
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
        Ok(Stood { end: self.end, right: self.right })
    }

    /// Hands the machine what has come.
    fn hear(
        &mut self,
        clock: Clock,
        buf: &mut [u8],
        tell: &mut impl FnMut(News),
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
                    // A peer that has gone, as ICMP says: QUIC does not believe it.
                    Err(error) if error.kind() == ErrorKind::ConnectionRefused => continue,
                    Err(error) => return Err(error),
                };
                let now = clock.now();
                for (meta, piece) in metas.iter().zip(buf.chunks_exact(LARGEST)).take(count) {
                    for datagram in piece[..meta.len].chunks(meta.stride.max(1)) {
                        let packet = packet(meta, self.end.addr(), port, datagram);
                        self.out.begin(self.stage, now);
                        // The side only says in whose direction its own packets are told of.
                        self.end.on_packet(now, Side::Right, packet, &mut self.out);
                        self.drain(tell)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Sends what the machine has to send, and tells what its connections did.
    fn drain(&mut self, tell: &mut impl FnMut(News)) -> io::Result<()> {
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
                // As if it were lost at once: a socket's buffer is full, or a probe for a larger packet was too large.
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) if error.raw_os_error() == Some(libc::EMSGSIZE) => {}
                Err(error) => return Err(error),
            }
        }
        self.out.signals.clear();
        for event in self.out.events.drain(..) {
            // What becomes of packets is told where they pass.
            if let What::Tcp(said) = &event.what {
                self.right &= said.kind != TcpKind::Corrupted;
                tell(News::Event(event));
            }
        }
        Ok(())
    }
}

/// A datagram as the machine takes it.
fn packet(meta: &RecvMeta, here: Addr, port: u16, datagram: &[u8]) -> Packet {
    let (src, src_port) = (Addr::from(meta.addr.ip()), meta.addr.port());
    let mut bytes = vec![0; udp::HEADER as usize];
    bytes.extend_from_slice(datagram);
    let flow = FlowKey { src, dst: here, src_port, dst_port: port };
    udp::packet(flow, bytes).with(|packet| packet.tos = meta.ecn.map_or(0, |ecn| ecn as u8))
}

/// What of the transfers of `scenario` did not arrive as it was sent.
pub(super) fn wrong(
    scenario: &Scenario,
    stood: &BTreeMap<usize, io::Result<Stood>>,
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
            if let Some(what) = one(ends, nth, transfer.bytes) {
                wrong.push(format!("transfer {index} from {} to {}: {what}", names[0], names[1]));
            }
        }
    }
    wrong
}

/// What is wrong with transfer number `nth` of the first of two hosts to the second.
fn one(ends: [Option<&io::Result<Stood>>; 2], nth: usize, bytes: Option<Bytes>) -> Option<String> {
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
