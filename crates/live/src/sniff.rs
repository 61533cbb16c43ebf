//! Passive capture at one interface of this machine: received and sent packets.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;

use lasthop_proto::units::{Span, Time};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::time::{ClockId, clock_gettime};

use crate::clock::{Clock, nanoseconds};
use crate::header::VNET;
use crate::interfaces;
use crate::sys::packet_socket::{Inbox, PacketSocket};

/// Types of devices (`ARPHRD_*`) with Ethernet-like frames; the loopback device shows each packet twice.
const ETHERNET: &str = "1";
const LOOPBACK: &str = "772";

/// A passive capture at one interface.
pub struct Sniffer {
    socket: PacketSocket,
    inbox: Inbox,
    clock: Clock,
    /// Wall-clock time at the clock's start, nanoseconds since 1970.
    epoch: u64,
}

impl Sniffer {
    /// Starts a capture at the interface `name`. The interface is not made promiscuous, so only packets are
    /// captured that this machine sends, receives, routes or bridges.
    ///
    /// # Errors
    /// `PermissionDenied` without CAP_NET_RAW, `NotFound` for an unknown interface, `Unsupported` if its
    /// frames are not like those of Ethernet.
    pub fn open(name: &str) -> io::Result<Sniffer> {
        let index = interfaces::index(name)?;
        let kind = fs::read_to_string(format!("/sys/class/net/{name}/type")).unwrap_or_default();
        let loopback = match kind.trim() {
            LOOPBACK => true,
            ETHERNET => false,
            other => {
                let message = format!("{name} has no Ethernet frames (its type is {other})");
                return Err(io::Error::new(ErrorKind::Unsupported, message));
            }
        };
        let socket = PacketSocket::looking_on(index, !loopback)?;
        let clock = Clock::start();
        let epoch = nanoseconds(clock_gettime(ClockId::CLOCK_REALTIME)?);
        Ok(Sniffer { socket, inbox: Inbox::new(), clock, epoch })
    }

    /// Waits at most `wait` for packets. Calls `take` with each: the wall-clock time of the read, and the
    /// Ethernet frame.
    ///
    /// # Errors
    /// Errors of the system, other than an interruption.
    pub fn take(&mut self, wait: Span, mut take: impl FnMut(Time, &[u8])) -> io::Result<()> {
        let wait = PollTimeout::try_from(wait.0.div_ceil(1_000_000)).unwrap_or(PollTimeout::MAX);
        let mut fds = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        if let Err(error) = poll(&mut fds, wait)
            && error != nix::errno::Errno::EINTR
        {
            return Err(error.into());
        }
        while self.inbox.receive(&self.socket)? > 0 {
            let at = Time(self.clock.now().0 + self.epoch);
            for frame in self.inbox.frames() {
                // The virtio header precedes each frame.
                take(at, frame.get(VNET..).unwrap_or(&[]));
            }
        }
        Ok(())
    }

    /// Time since the start of the capture.
    pub fn elapsed(&self) -> Span {
        Span(self.clock.now().0)
    }

    /// Frames lost since the last call, because they were not read in time.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn take_drops(&self) -> io::Result<u32> {
        self.socket.take_drops()
    }
}
