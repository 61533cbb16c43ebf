//! The calls of an application, executed by [`Sockets`](lasthop_proto::tcp::sockets::Sockets).

use lasthop_proto::tcp::sockets::Errno;
use lasthop_proto::wire::Body;

use super::super::flows::PORT;
use super::super::values::{integer, integer_field, number, port, word};
use super::numbers::{events_of, message, pieces};
use super::{Fd, Kind, Own, Reply};
use crate::script::{Call, Expr};

/// Maximum length of writes in bytes.
const WRITE_MAX: i64 = 1 << 28;

const MSG_DONTWAIT: i64 = 0x40;
const MSG_EOR: i64 = 0x80;
const MSG_MORE: i64 = 0x8000;
const MSG_ZEROCOPY: i64 = 0x0400_0000;
const MSG_FASTOPEN: i64 = 0x2000_0000;
const MSG_OOB: i64 = 1;
const MSG_PEEK: i64 = 2;

/// Result of a call; `None` while it waits.
pub(super) type Attempt = Result<Option<Reply>, String>;

pub(super) fn done(value: i64) -> Attempt {
    Ok(Some(Reply::value(value)))
}

pub(super) fn error(name: &str) -> Attempt {
    Ok(Some(Reply::error(name)))
}

impl Own {
    pub(super) fn fd(&mut self, call: &Call) -> Option<(i64, Fd)> {
        let fd = number(call.arg(0))?;
        self.fds.get(&fd).map(|found| (fd, found.clone()))
    }

    /// Tries a call; returns `None` while it has to wait.
    pub(super) fn attempt(&mut self, call: &Call) -> Attempt {
        match call.name.as_str() {
            "socket" => self.socket(call),
            "bind" => self.bind(call),
            "listen" => self.listen(call),
            "accept" | "accept4" => self.accept(call),
            "connect" => self.connect(call),
            "write" | "send" | "sendto" | "sendmsg" | "writev" => self.write(call),
            "read" | "recv" | "recvfrom" => self.read(call),
            "shutdown" => self.shutdown(call),
            "close" => self.close(call),
            "setsockopt" => self.setsockopt(call),
            "getsockopt" => self.getsockopt(call),
            "fcntl" => self.fcntl(call),
            "poll" => self.poll(call),
            "recvmsg" => self.recvmsg(call),
            "epoll_create" | "epoll_create1" => self.epoll_create(call),
            "epoll_ctl" => self.epoll_ctl(call),
            "epoll_wait" => self.epoll_wait(call),
            "ioctl" => self.ioctl(call),
            other => Err(format!("the call {other}()")),
        }
    }

    pub(super) fn new_fd(&mut self, expected: &Expr, fd: Fd) -> i64 {
        let free = (3..).find(|n| !self.fds.contains_key(n)).expect("a free number");
        // A script names the expected descriptor; an open one with this name loses it.
        let wanted = number(expected).filter(|n| *n >= 0);
        let number = wanted.unwrap_or(free);
        self.fds.insert(number, fd);
        number
    }

    fn socket(&mut self, call: &Call) -> Attempt {
        let kind = integer(call.arg(1))?;
        if word(call.arg(2)) == Some("IPPROTO_MPTCP") {
            return Err("MPTCP".to_owned());
        }
        if kind & 0xf != 1 {
            return Err("sockets other than SOCK_STREAM".to_owned());
        }
        if word(call.arg(0)) == Some("AF_INET6") {
            return Err("IPv6".to_owned());
        }
        let nonblocking = kind & 0o4000 != 0;
        let fd = self.new_fd(&call.result, Fd::new(Kind::Fresh, nonblocking));
        self.last = None;
        done(fd)
    }

    fn bind(&mut self, call: &Call) -> Attempt {
        let Some((fd, mut found)) = self.fd(call) else { return error("EBADF") };
        found.port = Some(port(call.arg(1))?);
        self.fds.insert(fd, found);
        done(0)
    }

    fn listen(&mut self, call: &Call) -> Attempt {
        let Some((fd, mut found)) = self.fd(call) else { return error("EBADF") };
        let backlog = integer(call.arg(1))?.clamp(0, 4096) as u32;
        // The engine delivers packets to the default port of listeners.
        let port = PORT;
        found.kind = Kind::Listening(port);
        found.backlog = backlog;
        self.listen_at(port, &found);
        self.fds.insert(fd, found);
        done(0)
    }

    /// Listens at `port` with the options of a descriptor.
    pub(super) fn listen_at(&mut self, port: u16, fd: &Fd) {
        let (backlog, mut options) = (fd.backlog, fd.options.clone());
        options.ecn.get_or_insert(self.keys.ecn != 0);
        options.notsent_lowat.get_or_insert(self.keys.notsent_lowat);
        let (always, may) = (self.keys.fast_open & 0x402 == 0x402, self.keys.fast_open & 2 != 0);
        options.fast_open = Some(options.fast_open.unwrap_or(always) && may);
        let key = fd.cookie_key.unwrap_or(self.keys.cookie_key);
        self.act(|sockets, _, _| {
            sockets.set_cookie_key(key);
            sockets.listen(port, backlog, &options);
        });
    }

    /// Applies changed settings to later connections and listeners.
    pub(super) fn reconfigure(&mut self) {
        if self.sockets.is_none() {
            return;
        }
        let (config, bits) = (self.keys.config(), self.keys.fast_open);
        let probes = self.keys.tail_probes;
        let sockets = self.sockets();
        sockets.reconfigure(config);
        sockets.open_without_cookies(bits & 4 != 0, bits & 0x200 != 0);
        sockets.set_tail_probes(probes);
        let listening = self.fds.values().filter(|fd| matches!(fd.kind, Kind::Listening(_)));
        for fd in listening.cloned().collect::<Vec<_>>() {
            if let Kind::Listening(port) = fd.kind {
                self.listen_at(port, &fd);
            }
        }
    }

    fn accept(&mut self, call: &Call) -> Attempt {
        let Some((_, found)) = self.fd(call) else { return error("EBADF") };
        let Kind::Listening(port) = found.kind else { return error("EINVAL") };
        match self.sockets().accept(port) {
            Ok(index) => {
                let mut inherited = found.options.clone();
                inherited.notsent_lowat.get_or_insert(self.keys.notsent_lowat);
                self.act(|s, now, out| s.set_options(now, index, |o| *o = inherited, out));
                let flags = integer(call.arg(3))?;
                let nonblocking = call.name == "accept4" && flags & 0o4000 != 0;
                let kind = Kind::Connection(index);
                let fd = Fd { kind, nonblocking, port: None, deferred: false, backlog: 0, ..found };
                self.serve(index, fd.tos);
                self.last = Some(index);
                let fd = self.new_fd(&call.result, fd);
                done(fd)
            }
            Err(Errno::Again) if !found.nonblocking && call.until.is_some() => Ok(None),
            Err(errno) => error(errno.name()),
        }
    }

    fn write(&mut self, call: &Call) -> Attempt {
        let Some((fd, found)) = self.fd(call) else { return error("EBADF") };
        let (len, flags) = match call.name.as_str() {
            "sendmsg" => (message(call.arg(1))?, integer(call.arg(2))?),
            "writev" => (pieces(call.arg(1))?, 0),
            "write" => (integer(call.arg(2))?, 0),
            _ => (integer(call.arg(2))?, integer(call.arg(3))?),
        };
        if !(0..=WRITE_MAX).contains(&len) {
            return error("EINVAL");
        }
        let nonblocking = found.nonblocking || flags & MSG_DONTWAIT != 0;
        if flags & MSG_FASTOPEN != 0 {
            let unspecified = word(call.arg(4)) == Some("AF_UNSPEC");
            if self.keys.fast_open & 1 == 0 || unspecified {
                return error("EOPNOTSUPP");
            }
        }
        let opens = flags & MSG_FASTOPEN != 0;
        if word(call.arg(1)) == Some("NULL") && len > 0 {
            return error("EFAULT");
        }
        let zerocopy = flags & MSG_ZEROCOPY != 0 && found.zerocopy;
        let index = match found.kind {
            Kind::Connection(index) => index,
            Kind::Fresh | Kind::Deferred if opens || found.kind == Kind::Deferred => {
                return self.open_with(fd, len as u32, nonblocking, zerocopy);
            }
            _ => return error("EPIPE"),
        };
        let unopened = self
            .sockets()
            .connection(index)
            .is_some_and(|c| !c.state().is_synchronised() && !c.is_aborted());
        if unopened {
            return match nonblocking {
                true if opens => error("EALREADY"),
                true => error("EAGAIN"),
                false if call.until.is_some() => {
                    self.act(|sockets, _, _| sockets.await_open(index));
                    Ok(None)
                }
                false => error("EAGAIN"),
            };
        }
        let left = len - self.written;
        let alive = self.sockets().connection(index).is_some_and(|c| !c.is_aborted());
        if left == 0 && self.written > 0 && alive {
            self.act(|sockets, now, out| sockets.end_wait(now, index, out));
            self.note_write(index, self.written, zerocopy);
            return done(self.written);
        }
        let body = Body::Pattern { stream: 0, len: left as u32, offset: 0 };
        let more = flags & MSG_MORE != 0;
        let urgent = flags & MSG_OOB != 0;
        match self.act(|sockets, now, out| match urgent {
            true => sockets.send_urgent(now, index, body, out),
            false => sockets.send(now, index, body, more, out),
        }) {
            Ok(taken) => {
                self.written += i64::from(taken);
                if flags & MSG_EOR != 0 && self.written >= len {
                    self.act(|sockets, _, _| sockets.end_record(index));
                }
                if self.written >= len || nonblocking || call.until.is_none() {
                    self.note_write(index, self.written, zerocopy);
                    return done(self.written);
                }
                Ok(None)
            }
            Err(Errno::Again) if self.written > 0 && nonblocking => done(self.written),
            Err(Errno::Again) if !nonblocking && call.until.is_some() => Ok(None),
            Err(errno @ (Errno::ConnectionRefused | Errno::TimedOut)) => error(errno.name()),
            Err(_) if self.written > 0 => done(self.written),
            Err(errno) => error(errno.name()),
        }
    }

    fn read(&mut self, call: &Call) -> Attempt {
        let Some((_, found)) = self.fd(call) else { return error("EBADF") };
        let Kind::Connection(index) = found.kind else {
            return error(if found.kind == Kind::Deferred { "EAGAIN" } else { "ENOTCONN" });
        };
        if word(call.arg(1)) == Some("NULL") && self.sockets().unread(index) > 0 {
            return error("EFAULT");
        }
        let flags = match call.name.as_str() {
            "read" => 0,
            _ => integer(call.arg(3))?,
        };
        if flags & MSG_PEEK != 0 {
            let unread = self.sockets().unread(index) as i64;
            return if unread > 0 {
                done(unread.min(integer(call.arg(2))?))
            } else {
                error("EAGAIN")
            };
        }
        let most = integer(call.arg(2))?.max(0) as u64;
        let mut bodies = Vec::new();
        match self.act(|sockets, now, out| sockets.recv(now, index, most, &mut bodies, out)) {
            Ok(bytes) => done(bytes as i64),
            Err(Errno::Again)
                if !found.nonblocking && flags & MSG_DONTWAIT == 0 && call.until.is_some() =>
            {
                Ok(None)
            }
            Err(errno) => error(errno.name()),
        }
    }

    fn shutdown(&mut self, call: &Call) -> Attempt {
        let Some((_, found)) = self.fd(call) else { return error("EBADF") };
        let how = integer(call.arg(1))?;
        let Kind::Connection(index) = found.kind else { return error("ENOTCONN") };
        if !(0..=2).contains(&how) {
            return error("EINVAL");
        }
        let (read, write) = (how != 1, how != 0);
        match self.act(|sockets, now, out| sockets.shutdown(now, index, read, write, out)) {
            Ok(()) => done(0),
            Err(errno) => error(errno.name()),
        }
    }

    fn close(&mut self, call: &Call) -> Attempt {
        let Some((fd, found)) = self.fd(call) else { return error("EBADF") };
        self.fds.remove(&fd);
        match found.kind {
            Kind::Connection(index) => {
                self.act(|sockets, now, out| sockets.close(now, index, out));
            }
            Kind::Listening(port) => self.act(|sockets, now, out| sockets.unlisten(now, port, out)),
            Kind::Fresh | Kind::Deferred | Kind::Epoll(_) => {}
        }
        done(0)
    }

    fn fcntl(&mut self, call: &Call) -> Attempt {
        let Some((fd, mut found)) = self.fd(call) else { return error("EBADF") };
        let flags = integer(call.arg(2))?;
        match word(call.arg(1)) {
            Some("F_SETFL") => {
                found.nonblocking = flags & 0o4000 != 0;
                self.fds.insert(fd, found);
                done(0)
            }
            Some("F_GETFL") => done(2 | if found.nonblocking { 0o4000 } else { 0 }),
            _ => Err("fcntl() other than F_GETFL and F_SETFL".to_owned()),
        }
    }

    fn poll(&mut self, call: &Call) -> Attempt {
        let Expr::List(items) = call.arg(0) else { return error("EINVAL") };
        let items = items.clone();
        let timeout = integer(call.arg(2))?;
        let mut written = Vec::new();
        let mut count = 0;
        for item in &items {
            let fd = integer_field(item, "fd")?;
            let events = integer_field(item, "events")?;
            let ready = self.readiness(fd);
            // Errors and hang-ups are always reported.
            let revents = ready & (events | 8 | 16 | 32);
            count += i64::from(revents != 0);
            let fields = [("fd", fd), ("events", events), ("revents", revents)];
            let fields = fields.map(|(name, value)| (name.to_owned(), Expr::Int(value)));
            written.push(Expr::Fields(fields.to_vec()));
        }
        if count == 0 && timeout != 0 && call.until.is_some() {
            return Ok(None);
        }
        let written = vec![(0, Expr::List(written))];
        Ok(Some(Reply { value: count, errno: None, written }))
    }

    /// Readiness of a descriptor, in the bits of `poll`.
    pub(super) fn readiness(&mut self, fd: i64) -> i64 {
        match self.fds.get(&fd).map(|found| found.kind.clone()) {
            Some(Kind::Connection(index)) => {
                let has_messages = self.queues.get(&index).is_some_and(|queue| !queue.is_empty());
                events_of(&self.sockets().ready(index)) | if has_messages { 8 } else { 0 }
            }
            Some(Kind::Listening(port)) => i64::from(self.sockets().has_waiting(port)),
            Some(Kind::Fresh) => 4 | 16,
            Some(Kind::Deferred) => 4,
            Some(Kind::Epoll(_)) => 0,
            None => 32,
        }
    }

    fn ioctl(&mut self, call: &Call) -> Attempt {
        let Some((_, found)) = self.fd(call) else { return error("EBADF") };
        let Kind::Connection(index) = found.kind else { return error("EINVAL") };
        let name = word(call.arg(1)).unwrap_or("").to_owned();
        let sockets = self.sockets();
        let value = match (name.as_str(), sockets.info(index), sockets.connection(index)) {
            ("SIOCINQ" | "FIONREAD", ..) => sockets.unread(index) as i64,
            ("SIOCOUTQNSD", Some(info), _) => info.notsent_bytes as i64,
            ("SIOCOUTQ", _, Some(connection)) => connection.unacknowledged().1 as i64,
            _ => return Err(format!("ioctl {name}")),
        };
        let written = vec![(2, Expr::List(vec![Expr::Int(value)]))];
        Ok(Some(Reply { value: 0, errno: None, written }))
    }
}
