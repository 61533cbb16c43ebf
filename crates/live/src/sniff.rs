//! Looking on at one interface of this machine: what arrives and what is sent, without disturbing either.

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

/// Types of devices (`ARPHRD_*`) whose frames begin like those of Ethernet; on the second each packet passes twice.
const ETHERNET: &str = "1";
const LOOPBACK: &str = "772";

/// Looks on at an interface.
pub struct Sniffer {
    socket: PacketSocket,
    inbox: Inbox,
    clock: Clock,
    /// The time of day at the clock's start, in nanoseconds since 1970.
    epoch: u64,
}

impl Sniffer {
    /// Begins to look on at the interface `name`. It is not made promiscuous: only packets of this machine, or routed or
    /// bridged by it, pass there.
    ///
    /// # Errors
    /// `PermissionDenied` without CAP_NET_RAW, `NotFound` if there is no such interface, `Unsupported` if its frames are
    /// not those of Ethernet.
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

    /// Waits at most `wait` for packets, and hands each to `take`: the time of day at which it was read from the kernel,
    /// and the Ethernet frame.
    ///
    /// # Errors
    /// Those of the system; that the wait was interrupted is none.
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
                // The header of offloads precedes each.
                take(at, frame.get(VNET..).unwrap_or(&[]));
            }
        }
        Ok(())
    }

    /// Time since it began to look on.
    pub fn elapsed(&self) -> Span {
        Span(self.clock.now().0)
    }

    /// Frames that were lost since the last call because nobody read them in time.
    ///
    /// # Errors
    /// Those of the system.
    pub fn take_drops(&self) -> io::Result<u32> {
        self.socket.take_drops()
    }
}
