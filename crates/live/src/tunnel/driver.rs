//! The event loop of a tunnel.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lasthop_proto::tunnel::{Datagram, Tunnel};
use lasthop_proto::units::{Span, Time};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};

use super::TunnelReport;
use super::seal::Ciphers;
use super::status::SharedStatus;
use crate::alarm::Alarm;
use crate::clock::Clock;
use crate::notify::Manager;
use crate::status::TunnelStatus;
use crate::sys::udp_socket;
use crate::testbed::ip;

/// Limit of packets or datagrams per source and round.
const BATCH: usize = 64;

/// Interval of status updates.
const RENEW: Span = Span::millis(100);

/// Interval at which the kernel's path MTU is read. ICMP determines it, so it is probed and not trusted.
const ASK: Span = Span::secs(1);

const TUN: u64 = 0;
const UDP: u64 = 1;
const TIMER: u64 = 2;

/// The tunnel's machine with its interface and socket.
pub(super) struct Driver {
    tun: File,
    udp: UdpSocket,
    tunnel: Tunnel<Ciphers>,
    clock: Clock,
    /// Current MTU of the interface.
    mtu: u16,
    /// Whether datagrams must not be fragmented.
    whole: bool,
    peer: Option<SocketAddr>,
    status: TunnelStatus,
    shared: Arc<SharedStatus>,
    renewed: Time,
    ask_at: Time,
    datagrams: Vec<Datagram>,
    packets: Vec<Arc<[u8]>>,
    buffer: Vec<u8>,
}

impl Driver {
    pub fn new(
        tun: File,
        udp: UdpSocket,
        tunnel: Tunnel<Ciphers>,
        mtu: u16,
        status: TunnelStatus,
        shared: Arc<SharedStatus>,
    ) -> io::Result<Driver> {
        let clock = Clock::start();
        Ok(Driver {
            tun,
            udp,
            tunnel,
            clock,
            mtu,
            whole: true,
            peer: None,
            status,
            shared,
            renewed: Time::ZERO,
            ask_at: Time::NEVER,
            datagrams: Vec::new(),
            packets: Vec::new(),
            buffer: vec![0; 1 << 16],
        })
    }

    fn refuse(&mut self, reason: &str) {
        *self.status.refused.entry(reason.to_owned()).or_default() += 1;
    }

    /// Runs until `over`, then closes the session.
    ///
    /// # Errors
    /// If the interface disappears, or the system's wait fails.
    pub fn run(
        &mut self,
        over: &AtomicBool,
        manager: &mut Manager,
        report: &dyn Fn(TunnelReport),
    ) -> io::Result<()> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let mut alarm = Alarm::new()?;
        let watch = |tag| EpollEvent::new(EpollFlags::EPOLLIN, tag);
        epoll.add(self.tun.as_fd(), watch(TUN))?;
        epoll.add(self.udp.as_fd(), watch(UDP))?;
        epoll.add(alarm.as_fd(), watch(TIMER))?;
        let mut ready = [EpollEvent::empty(); 4];
        loop {
            let doze = alarm.set(self.clock, self.tunnel.next_wake())?;
            let count = match epoll.wait(&mut ready, doze) {
                Ok(count) => count,
                Err(Errno::EINTR) => 0,
                Err(error) => return Err(error.into()),
            };
            for event in &ready[..count] {
                match event.data() {
                    TUN => self.take_from_tun()?,
                    UDP => self.take_from_peer()?,
                    _ => alarm.rang(),
                }
            }
            let now = self.clock.now();
            if self.tunnel.next_wake().is_some_and(|at| at <= now) {
                self.tunnel.on_wake(now);
            }
            self.flush()?;
            self.look_after(now, report);
            manager.alive(now);
            if over.load(Ordering::Relaxed) {
                self.tunnel.close(now);
                self.flush()?;
                self.status.update(&self.tunnel, now.0);
                self.shared.put(&self.status);
                return Ok(());
            }
        }
    }

    fn take_from_tun(&mut self) -> io::Result<()> {
        for _ in 0..BATCH {
            match self.tun.read(&mut self.buffer) {
                Ok(len) => {
                    let now = self.clock.now();
                    self.tunnel.on_packet(now, &self.buffer[..len]);
                }
                Err(error) => match unread(error)? {
                    Unread::Empty => break,
                    Unread::Interrupted => {}
                },
            }
        }
        Ok(())
    }

    fn take_from_peer(&mut self) -> io::Result<()> {
        for _ in 0..BATCH {
            match self.udp.recv_from(&mut self.buffer) {
                Ok((len, from)) => {
                    let now = self.clock.now();
                    self.tunnel.on_datagram(now, from, &mut self.buffer[..len]);
                }
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => break,
                    ErrorKind::Interrupted => {}
                    // An ICMP error for an earlier datagram. The session relies on its own timers.
                    _ => self.refuse("told-by-icmp"),
                },
            }
        }
        Ok(())
    }

    /// Writes the machine's datagrams and packets to socket and interface.
    fn flush(&mut self) -> io::Result<()> {
        let mut datagrams = core::mem::take(&mut self.datagrams);
        self.tunnel.take_datagrams(&mut datagrams);
        for datagram in datagrams.drain(..) {
            self.send(&datagram)?;
        }
        self.datagrams = datagrams;
        let mut packets = core::mem::take(&mut self.packets);
        self.tunnel.take_packets(&mut packets);
        for packet in packets.drain(..) {
            if let Err(error) = self.tun.write(&packet) {
                self.refuse(not_taken(&error));
            }
        }
        self.packets = packets;
        Ok(())
    }

    /// Sends a datagram. A datagram from before a decrease of the path MTU may be fragmented, so that it
    /// arrives.
    fn send(&mut self, Datagram { to, bytes, whole }: &Datagram) -> io::Result<()> {
        if !whole {
            self.refuse("sent-in-pieces");
        }
        if *whole != self.whole {
            udp_socket::may_fragment(&self.udp, !whole)?;
            self.whole = *whole;
        }
        let Err(error) = self.udp.send_to(bytes, to) else { return Ok(()) };
        self.refuse(not_sent(&error));
        Ok(())
    }

    fn look_after(&mut self, now: Time, report: &dyn Fn(TunnelReport)) {
        for notice in self.tunnel.take_notices() {
            report(TunnelReport::Notice(notice));
        }
        let session = self.tunnel.session();
        let (agreed, peer) = (session.agreed(), session.peer());
        match (self.peer, peer, agreed) {
            (None, Some(peer), Some(agreed)) => {
                (self.renewed, self.ask_at) = (Time::ZERO, Time::ZERO);
                report(TunnelReport::Up { peer, mtu: agreed.mtu, window: agreed.window });
            }
            (Some(_), None, _) => {
                (self.renewed, self.ask_at) = (Time::ZERO, Time::NEVER);
                report(TunnelReport::Down);
            }
            (Some(was), Some(peer), _) if was != peer => {
                self.ask_at = Time::ZERO;
                report(TunnelReport::Moved(peer));
            }
            _ => {}
        }
        self.peer = peer;
        if let Some(peer) = self.peer.filter(|_| self.ask_at <= now) {
            self.ask_at = now + ASK;
            if let Some(below) = udp_socket::below(peer) {
                self.tunnel.set_below(now, below);
            }
            if let Ok(hint) = udp_socket::path_mtu(peer) {
                self.tunnel.doubt(now, hint);
            }
        }
        self.fit(report);
        if now.since(self.renewed) >= RENEW {
            self.renewed = now;
            self.status.update(&self.tunnel, now.0);
            self.shared.put(&self.status);
        }
    }

    /// Sets the interface's MTU to that of path and session. The MTU does not change when the peer is lost.
    fn fit(&mut self, report: &dyn Fn(TunnelReport)) {
        let mtu = self.tunnel.mtu();
        if mtu == self.mtu || self.peer.is_none() {
            return;
        }
        match ip::batch(&[format!("link set {} mtu {mtu}", self.status.tun)]) {
            Ok(()) => {
                self.mtu = mtu;
                report(TunnelReport::Mtu(mtu));
            }
            Err(error) => {
                // No second attempt with the same MTU.
                self.mtu = mtu;
                report(TunnelReport::Warning(error.message));
            }
        }
    }
}

/// Harmless reasons for a read without a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unread {
    Empty,
    Interrupted,
}

fn unread(error: io::Error) -> io::Result<Unread> {
    match error.kind() {
        ErrorKind::WouldBlock => Ok(Unread::Empty),
        ErrorKind::Interrupted => Ok(Unread::Interrupted),
        // An interface that is down has no packets; a removed one returns EBADFD.
        _ if error.raw_os_error() == Some(Errno::EIO as i32) => Ok(Unread::Empty),
        _ => Err(error),
    }
}

/// Counter of a packet that the interface refused.
fn not_taken(error: &io::Error) -> &'static str {
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EIO) => "tun-down",
        Some(Errno::ENOBUFS | Errno::EAGAIN) => "tun-full",
        _ => "tun",
    }
}

/// Counter of a datagram that the socket refused.
fn not_sent(error: &io::Error) -> &'static str {
    match error.raw_os_error().map(Errno::from_raw) {
        // The interface below has changed its MTU. The session notices the drop like a loss.
        Some(Errno::EMSGSIZE) => "too-long-for-the-interface",
        Some(Errno::EAGAIN | Errno::ENOBUFS) => "socket-full",
        Some(Errno::ENETUNREACH | Errno::EHOSTUNREACH | Errno::ENETDOWN) => "no-way-to-the-peer",
        Some(Errno::EPERM) => "forbidden-by-the-firewall",
        _ => "socket",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An interface that is down may come up again; a removed one ends the tunnel.
    #[test]
    fn down_interfaces_are_empty_and_removed_ones_fail() {
        let of = |errno: Errno| unread(errno.into()).map_err(|error| error.raw_os_error());
        assert_eq!(of(Errno::EAGAIN), Ok(Unread::Empty));
        assert_eq!(of(Errno::EIO), Ok(Unread::Empty));
        assert_eq!(of(Errno::EINTR), Ok(Unread::Interrupted));
        for fault in [Errno::EBADFD, Errno::EINVAL, Errno::EFAULT] {
            assert_eq!(of(fault), Err(Some(fault as i32)));
        }
    }

    #[test]
    fn each_write_error_has_its_counter_name() {
        let cases = [
            (Errno::EIO, "tun-down", "socket"),
            (Errno::ENOBUFS, "tun-full", "socket-full"),
            (Errno::EAGAIN, "tun-full", "socket-full"),
            (Errno::EMSGSIZE, "tun", "too-long-for-the-interface"),
            (Errno::ENETUNREACH, "tun", "no-way-to-the-peer"),
            (Errno::EHOSTUNREACH, "tun", "no-way-to-the-peer"),
            (Errno::ENETDOWN, "tun", "no-way-to-the-peer"),
            (Errno::EPERM, "tun", "forbidden-by-the-firewall"),
            (Errno::EINVAL, "tun", "socket"),
        ];
        for (errno, tun, socket) in cases {
            let error = io::Error::from(errno);
            assert_eq!((not_taken(&error), not_sent(&error)), (tun, socket), "{errno:?}");
        }
    }
}
