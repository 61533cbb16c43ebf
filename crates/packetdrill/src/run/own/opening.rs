//! Opening of connections by the application: `connect`, and writes that open (TCP Fast Open).

use lasthop_proto::wire::{Body, FlowKey};

use super::super::flows::PORT;
use super::calls::{Attempt, done, error};
use super::{Fd, Kind, Own};
use crate::script::Call;

impl Own {
    pub(super) fn connect(&mut self, call: &Call) -> Attempt {
        let Some((fd, found)) = self.fd(call) else { return error("EBADF") };
        match found.kind {
            Kind::Listening(_) | Kind::Deferred => error("EISCONN"),
            Kind::Epoll(_) => error("ENOTSOCK"),
            Kind::Fresh if found.deferred && self.may_open_with_data() => {
                // The SYN is sent with the first write.
                if let Some(found) = self.fds.get_mut(&fd) {
                    found.kind = Kind::Deferred;
                }
                done(0)
            }
            Kind::Fresh => {
                self.open(fd, found.deferred);
                self.opening(fd, found.nonblocking)
            }
            Kind::Connection(_) => self.opening(fd, found.nonblocking),
        }
    }

    /// Whether the SYN of a connection to the peer can carry data.
    fn may_open_with_data(&mut self) -> bool {
        let peer = self.peer();
        self.keys.fast_open & 1 != 0 && self.sockets().has_cookie(peer)
    }

    /// Opens the connection of a descriptor.
    fn open(&mut self, fd: i64, fast: bool) -> usize {
        let Fd { port, mut options, tos, .. } = self.fds[&fd].clone();
        options.ecn.get_or_insert(matches!(self.keys.ecn, 1 | 3));
        options.notsent_lowat.get_or_insert(self.keys.notsent_lowat);
        options.fast_open = Some(fast && self.keys.fast_open & 1 != 0);
        options.syn_count.get_or_insert(self.keys.syn_retries);
        let (here, peer) = (super::addr(self.ends.0), self.peer());
        let index = self.act(|sockets, now, _| match port {
            None => sockets.connect(now, (peer, PORT), &options),
            Some(src_port) => {
                let flow = FlowKey { src: here, dst: peer, src_port, dst_port: PORT };
                sockets.connect_from(now, flow, &options)
            }
        });
        if let Some(found) = self.fds.get_mut(&fd) {
            found.kind = Kind::Connection(index);
        }
        self.serve(index, tos);
        self.last = Some(index);
        index
    }

    /// `IP_TOS` of a connection.
    pub(super) fn serve(&mut self, index: usize, tos: u8) {
        let Some(flow) = self.sockets().connection(index).map(|c| c.flow) else { return };
        match tos {
            0 => drop(self.services.remove(&flow)),
            _ => drop(self.services.insert(flow, tos)),
        }
    }

    fn opening(&mut self, fd: i64, nonblocking: bool) -> Attempt {
        let Some(Kind::Connection(index)) = self.fds.get(&fd).map(|found| &found.kind) else {
            return error("EBADF");
        };
        let index = *index;
        let fresh = self.sockets().connection(index).is_some_and(|c| {
            c.state() == lasthop_proto::tcp::state::State::Closed && !c.is_aborted()
        });
        match self.sockets().connected(index) {
            Some(Ok(())) => done(0),
            Some(Err(errno)) => error(errno.name()),
            None if nonblocking => error(if fresh { "EINPROGRESS" } else { "EALREADY" }),
            None => Ok(None),
        }
    }

    /// A write of `len` bytes that opens the connection. Without a cookie the SYN requests one, and the data
    /// waits.
    pub(super) fn open_with(
        &mut self,
        fd: i64,
        len: u32,
        nonblocking: bool,
        zerocopy: bool,
    ) -> Attempt {
        let known = self.may_open_with_data();
        let index = self.open(fd, true);
        if known && len > 0 {
            let len = len.min(self.sockets().room_in_syn(index));
            let body = Body::Pattern { stream: 0, len, offset: 0 };
            // The data is sent with the SYN.
            let taken = self.act(|sockets, now, out| sockets.send(now, index, body, false, out));
            self.written = taken.unwrap_or(0).into();
        }
        match nonblocking {
            true if self.written > 0 => {
                self.note_write(index, self.written, zerocopy);
                done(self.written)
            }
            true => error("EINPROGRESS"),
            false => Ok(None),
        }
    }
}
