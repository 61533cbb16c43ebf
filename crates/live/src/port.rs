//! One interface of the station: received frames, sent frames and lost frames by cause.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use lasthop_proto::machine::{Side, StageId};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::frame::Outgoing;
use crate::offload;
use crate::plane::Passed;
use crate::sys::packet_socket::{Inbox, PacketSocket};

/// Longest wait for a full send buffer, ms.
const PATIENCE_MS: u8 = 1;

/// One interface.
pub struct Port {
    /// Its name, for users.
    pub name: String,
    /// The stage of the host beyond the interface.
    pub stage: StageId,
    /// Side of the path.
    pub side: Side,
    pub(crate) socket: PacketSocket,
    pub(crate) inbox: Option<Inbox>,
    pub(crate) outbox: Vec<Outgoing>,
    /// Prioritized frames, which are sent before the queued ones of the interface.
    pub(crate) urgent: Vec<Outgoing>,
    pub(crate) counts: PortCounts,
    /// Whether it went down, and no frame has passed since.
    down: bool,
    /// Whether frames are received here. Otherwise the kernel forwards, and this socket only sends.
    listening: bool,
    /// Number of frames received here that the kernel's program left to this socket.
    pub(crate) taken: u64,
}

/// Frame counters of one interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct PortCounts {
    /// Received frames.
    pub received: u64,
    /// Received bytes.
    pub received_bytes: u64,
    /// Sent frames.
    pub sent: u64,
    /// Received frames that bypassed the stages: not IP, neighbour discovery, malformed.
    pub passed: u64,
    /// Received frames of type IP that were malformed.
    pub malformed: u64,
    /// Frames sent in pieces, because they exceed the interface's MTU.
    pub refitted: u64,
    /// Frames lost at a full receive buffer.
    pub overrun: u64,
    /// Frames lost for an impossible length.
    pub unreadable: u64,
    /// Frames that the interface refused, for any reason.
    pub refused: u64,
    /// Frames refused at a full queue or send buffer.
    pub refused_full: u64,
    /// Frames refused for exceeding the MTU.
    pub refused_long: u64,
    /// Frames refused while the interface was down.
    pub refused_down: u64,
    /// Number of times the interface went down.
    pub downs: u64,
}

impl PortCounts {
    /// Adds the counts of the kernel's forwarding, if it forwards.
    pub(crate) fn with(self, passed: Option<Passed>, side: Side) -> PortCounts {
        let Some(passed) = passed else { return self };
        let (own, other) = (side.index(), side.other().index());
        PortCounts {
            received: passed.packets[own],
            received_bytes: passed.bytes[own],
            sent: self.sent + passed.forwarded[other],
            ..self
        }
    }

    /// Counts a refused frame. Returns whether the interface is down.
    fn refuse(&mut self, reason: Errno) -> bool {
        self.refused += 1;
        let cause = match reason {
            Errno::EAGAIN | Errno::ENOBUFS => &mut self.refused_full,
            Errno::EMSGSIZE => &mut self.refused_long,
            Errno::ENETDOWN | Errno::ENXIO | Errno::ENODEV => {
                self.refused_down += 1;
                return true;
            }
            _ => return false,
        };
        *cause += 1;
        false
    }
}

impl Port {
    /// Opens the interface `name` with this index, as the end of the path at `stage`.
    ///
    /// # Errors
    /// See [`PacketSocket::open`].
    pub fn open(name: &str, ifindex: u32, stage: StageId, side: Side) -> io::Result<Port> {
        Ok(Port {
            name: name.to_owned(),
            stage,
            side,
            socket: PacketSocket::open(ifindex)?,
            inbox: Some(Inbox::new()),
            outbox: Vec::new(),
            urgent: Vec::new(),
            counts: PortCounts::default(),
            down: false,
            listening: true,
            taken: 0,
        })
    }

    /// Opens the interface with this index in place of the earlier one; the counters continue.
    ///
    /// # Errors
    /// See [`PacketSocket::open`].
    pub(crate) fn reopen(&mut self, ifindex: u32) -> io::Result<()> {
        let new = Port::open(&self.name, ifindex, self.stage, self.side)?;
        *self = Port { counts: self.counts, ..new };
        Ok(())
    }

    /// Whether frames are received here.
    pub(crate) fn is_listening(&self) -> bool {
        self.listening
    }

    /// Enables or disables reception.
    ///
    /// # Errors
    /// If the interface no longer exists.
    pub(crate) fn listen(&mut self, on: bool) -> io::Result<()> {
        self.listening = on;
        self.socket.listen(on)
    }

    /// Receives a batch into `inbox`. Returns the number of frames. An interface that is down has no frames
    /// and may come up again.
    ///
    /// # Errors
    /// Errors of the system, other than an interface that is down.
    pub(crate) fn receive(&mut self, inbox: &mut Inbox) -> io::Result<usize> {
        match inbox.receive(&self.socket) {
            Ok(count) => {
                self.down &= count == 0;
                self.counts.received += inbox.frames().len() as u64;
                self.counts.unreadable = inbox.malformed();
                Ok(count)
            }
            Err(error) if error.raw_os_error() == Some(Errno::ENETDOWN as i32) => {
                self.counts.downs += 1;
                self.down = true;
                Ok(0)
            }
            Err(error) => Err(error),
        }
    }

    /// Adds the kernel's count of dropped frames.
    ///
    /// # Errors
    /// If the interface no longer exists.
    pub(crate) fn poll_drops(&mut self) -> io::Result<()> {
        self.counts.overrun += u64::from(self.socket.take_drops()?);
        if (self.down || !self.listening) && self.socket.is_gone() {
            let message = format!("the interface {} is gone", self.name);
            return Err(io::Error::new(io::ErrorKind::NotFound, message));
        }
        Ok(())
    }

    /// Sends the buffered frames.
    pub(crate) fn flush(&mut self) {
        if !self.urgent.is_empty() {
            let mut urgent = core::mem::take(&mut self.urgent);
            // After an error they wait as all others do.
            let prioritized = self.socket.prioritize(true).is_ok();
            self.send(&urgent);
            if prioritized {
                let _ = self.socket.prioritize(false);
            }
            urgent.clear();
            self.urgent = urgent;
        }
        if !self.outbox.is_empty() {
            let mut outbox = core::mem::take(&mut self.outbox);
            self.send(&outbox);
            outbox.clear();
            self.outbox = outbox;
        }
    }

    /// Sends all frames that the interface accepts, and counts the others by cause.
    pub(crate) fn send<T: AsRef<[u8]>>(&mut self, mut frames: &[T]) {
        let mut patient = true;
        while let Some(first) = frames.first() {
            let gone = match self.socket.send(frames) {
                Ok(sent) => {
                    self.counts.sent += sent as u64;
                    self.down = false;
                    sent
                }
                Err(error) => match Errno::from_raw(error.raw_os_error().unwrap_or(0)) {
                    Errno::EINTR => 0,
                    // Frames in the interface's queue occupy the send buffer, which may drain within a
                    // moment.
                    Errno::EAGAIN if patient => {
                        patient = false;
                        self.wait();
                        0
                    }
                    Errno::EMSGSIZE => {
                        self.send_in_pieces(first.as_ref());
                        1
                    }
                    reason => {
                        self.refuse(reason);
                        1
                    }
                },
            };
            frames = frames.get(gone..).unwrap_or(&[]);
        }
    }

    fn wait(&self) {
        let mut fds = [PollFd::new(self.socket.as_fd(), PollFlags::POLLOUT)];
        // The next attempt shows the result.
        let _ = poll(&mut fds, PollTimeout::from(PATIENCE_MS));
    }

    /// Sends a `frame` that exceeds the MTU.
    fn send_in_pieces(&mut self, frame: &[u8]) {
        let pieces = self.socket.mtu().ok().and_then(|mtu| offload::refit(frame, mtu));
        // A single piece would equal the frame, including its tags.
        let Some(pieces) = pieces.filter(|pieces| pieces.len() > 1) else {
            self.refuse(Errno::EMSGSIZE);
            return;
        };
        let mut pieces: &[Arc<[u8]>] = &pieces;
        self.counts.refitted += 1;
        while !pieces.is_empty() {
            let gone = match self.socket.send(pieces) {
                Ok(sent) => {
                    self.counts.sent += sent as u64;
                    sent
                }
                Err(error) => {
                    self.refuse(Errno::from_raw(error.raw_os_error().unwrap_or(0)));
                    1
                }
            };
            pieces = pieces.get(gone..).unwrap_or(&[]);
        }
    }

    /// Counts a lost frame. A full queue drops frames by design, so there is no second attempt.
    fn refuse(&mut self, reason: Errno) {
        self.down |= self.counts.refuse(reason);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If the kernel forwards, its count of arrived frames is the number of received ones. The sent frames
    /// are the frames that it forwarded from the other side, and the station's own.
    #[test]
    fn kernel_forwarded_frames_count_on_both_ports() {
        let own = PortCounts {
            received: 1,
            received_bytes: 2,
            sent: 3,
            passed: 4,
            ..PortCounts::default()
        };
        assert_eq!(own.with(None, Side::Left), own);
        let passed = Passed { packets: [10, 20], bytes: [100, 200], forwarded: [7, 8] };
        let left = own.with(Some(passed), Side::Left);
        assert_eq!(left, PortCounts { received: 10, received_bytes: 100, sent: 3 + 8, ..own });
        let right = own.with(Some(passed), Side::Right);
        assert_eq!(right, PortCounts { received: 20, received_bytes: 200, sent: 3 + 7, ..own });
    }

    /// Each cause has a counter, and all are included in the total; a frame shows that the interface is down.
    #[test]
    fn a_frame_that_is_not_taken_is_counted_by_its_cause() {
        let refused = |reason| {
            let mut counts = PortCounts { refused: 10, ..PortCounts::default() };
            let down = counts.refuse(reason);
            let rest = PortCounts {
                refused: 11,
                refused_full: counts.refused_full,
                refused_long: counts.refused_long,
                refused_down: counts.refused_down,
                ..PortCounts::default()
            };
            assert_eq!(counts, rest, "{reason:?}");
            ([counts.refused_full, counts.refused_long, counts.refused_down], down)
        };
        for full in [Errno::EAGAIN, Errno::ENOBUFS] {
            assert_eq!(refused(full), ([1, 0, 0], false), "{full:?}");
        }
        assert_eq!(refused(Errno::EMSGSIZE), ([0, 1, 0], false));
        for down in [Errno::ENETDOWN, Errno::ENXIO, Errno::ENODEV] {
            assert_eq!(refused(down), ([0, 0, 1], true), "{down:?}");
        }
        for other in [Errno::EPERM, Errno::EINVAL, Errno::UnknownErrno] {
            assert_eq!(refused(other), ([0, 0, 0], false), "{other:?}");
        }
    }
}
