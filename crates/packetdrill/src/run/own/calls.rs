//! The calls of an application, carried out by [`Sockets`](lasthop_proto::tcp::sockets::Sockets).

use lasthop_proto::tcp::sockets::{Errno, KeepAlive, SocketOptions};
use lasthop_proto::units::Span;
use lasthop_proto::wire::{Body, FlowKey};

use super::super::flows::PORT;
use super::super::keys;
use super::super::values::{number, word};
use super::numbers::{errno_number, events_of, message, pieces};
use super::{Fd, Kind, Own, Reply, peer};
use crate::script::{Call, Expr};

/// Writes are at most this long.
const WRITE_MAX: i64 = 1 << 28;

const MSG_DONTWAIT: i64 = 0x40;
const MSG_MORE: i64 = 0x8000;
const MSG_ZEROCOPY: i64 = 0x0400_0000;
const MSG_FASTOPEN: i64 = 0x2000_0000;
const MSG_PEEK: i64 = 2;

/// What a call comes to: an answer, or none yet.
type Attempt = Result<Option<Reply>, String>;

fn done(value: i64) -> Attempt {
    Ok(Some(Reply::value(value)))
}

fn error(name: &str) -> Attempt {
    Ok(Some(Reply::error(name)))
}

impl Own {
    fn arg<'a>(&self, call: &'a Call, index: usize) -> &'a Expr {
        call.args.get(index).unwrap_or(&Expr::Any)
    }

    fn fd(&mut self, call: &Call) -> Option<(i64, Fd)> {
        let fd = number(self.arg(call, 0))?;
        self.fds.get(&fd).map(|found| (fd, found.clone()))
    }

    /// Tries a call; `None` while it has to wait.
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
            "ioctl" => self.ioctl(call),
            other => Err(format!("the call {other}()")),
        }
    }

    fn new_fd(&mut self, expected: &Expr, fd: Fd) -> i64 {
        let free = (3..).find(|n| !self.fds.contains_key(n)).unwrap_or(3);
        // A script names the descriptor that it expects.
        let wanted = number(expected).filter(|n| *n >= 0 && !self.fds.contains_key(n));
        let number = wanted.unwrap_or(free);
        self.fds.insert(number, fd);
        number
    }

    fn socket(&mut self, call: &Call) -> Attempt {
        let kind = number(self.arg(call, 1)).unwrap_or(0);
        if kind & 0xf != 1 {
            return Err("sockets other than SOCK_STREAM".to_owned());
        }
        if word(self.arg(call, 0)) == Some("AF_INET6") {
            return Err("IPv6".to_owned());
        }
        let nonblocking = kind & 0o4000 != 0;
        let options = SocketOptions::default();
        let fd =
            Fd { kind: Kind::Fresh, options, nonblocking, port: None, deferred: false, backlog: 0 };
        let fd = self.new_fd(&call.result, fd);
        self.last = None;
        done(fd)
    }

    fn bind(&mut self, call: &Call) -> Attempt {
        let Some((fd, mut found)) = self.fd(call) else { return error("EBADF") };
        let address = self.arg(call, 1);
        let port = address.field("sin_port").and_then(number).unwrap_or(PORT.into());
        found.port = u16::try_from(port).ok();
        self.fds.insert(fd, found);
        done(0)
    }

    fn listen(&mut self, call: &Call) -> Attempt {
        let Some((fd, mut found)) = self.fd(call) else { return error("EBADF") };
        let backlog = number(self.arg(call, 1)).unwrap_or(0).clamp(0, 4096) as u32;
        // The engine lets packets arrive at the port that listeners have without an address.
        let port = PORT;
        found.kind = Kind::Listening(port);
        found.backlog = backlog;
        self.listen_at(port, &found);
        self.fds.insert(fd, found);
        done(0)
    }

    /// Listens at `port` with the options of a descriptor.
    fn listen_at(&mut self, port: u16, fd: &Fd) {
        let (backlog, mut options) = (fd.backlog, fd.options.clone());
        options.ecn.get_or_insert(self.keys.ecn != 0);
        let always = self.keys.fast_open & 0x402 == 0x402;
        options.fast_open.get_or_insert(always);
        self.act(|sockets, _, _| sockets.listen(port, backlog, &options));
    }

    fn accept(&mut self, call: &Call) -> Attempt {
        let Some((_, found)) = self.fd(call) else { return error("EBADF") };
        let Kind::Listening(port) = found.kind else { return error("EINVAL") };
        match self.sockets().accept(port) {
            Ok(index) => {
                let options = found.options.clone();
                let inherited = options.clone();
                self.act(|s, now, out| s.set_options(now, index, |o| *o = inherited, out));
                let flags = number(self.arg(call, 3)).unwrap_or(0);
                let nonblocking = call.name == "accept4" && flags & 0o4000 != 0;
                let kind = Kind::Connection(index);
                let fd = Fd { kind, options, nonblocking, port: None, deferred: false, backlog: 0 };
                self.last = Some(index);
                let fd = self.new_fd(&call.result, fd);
                done(fd)
            }
            Err(Errno::Again) if !found.nonblocking && call.until.is_some() => Ok(None),
            Err(errno) => error(errno.name()),
        }
    }

    fn connect(&mut self, call: &Call) -> Attempt {
        let Some((fd, found)) = self.fd(call) else { return error("EBADF") };
        match found.kind {
            Kind::Listening(_) => error("EISCONN"),
            Kind::Fresh if found.deferred => {
                // The SYN goes with the first write.
                done(0)
            }
            Kind::Fresh => {
                self.open(fd, false);
                self.opening(fd, found.nonblocking)
            }
            Kind::Connection(_) => self.opening(fd, found.nonblocking),
        }
    }

    /// Opens the connection of a descriptor.
    fn open(&mut self, fd: i64, fast: bool) -> usize {
        let (port, mut options) =
            self.fds.get(&fd).map(|found| (found.port, found.options.clone())).unwrap_or_default();
        options.ecn.get_or_insert(self.keys.ecn == 1);
        options.fast_open = Some(fast && self.keys.fast_open & 1 != 0);
        options.syn_count.get_or_insert(self.keys.syn_retries);
        let here = super::addr(super::LOCAL);
        let index = self.act(|sockets, now, _| match port {
            None => sockets.connect(now, (peer(), PORT), &options),
            Some(src_port) => {
                let flow = FlowKey { src: here, dst: peer(), src_port, dst_port: PORT };
                sockets.connect_from(now, flow, &options)
            }
        });
        if let Some(found) = self.fds.get_mut(&fd) {
            found.kind = Kind::Connection(index);
        }
        self.last = Some(index);
        index
    }

    fn opening(&mut self, fd: i64, nonblocking: bool) -> Attempt {
        let Some(Fd { kind: Kind::Connection(index), .. }) = self.fds.get(&fd) else {
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

    fn write(&mut self, call: &Call) -> Attempt {
        let Some((fd, found)) = self.fd(call) else { return error("EBADF") };
        let (len, flags) = match call.name.as_str() {
            "sendmsg" => (message(self.arg(call, 1))?, number(self.arg(call, 2)).unwrap_or(0)),
            "writev" => (pieces(self.arg(call, 1))?, 0),
            "write" => (number(self.arg(call, 2)).unwrap_or(0), 0),
            _ => (number(self.arg(call, 2)).unwrap_or(0), number(self.arg(call, 3)).unwrap_or(0)),
        };
        if word(self.arg(call, 1)) == Some("NULL") {
            return Err("writes of no buffer".to_owned());
        }
        if flags & MSG_ZEROCOPY != 0 {
            return Err("MSG_ZEROCOPY".to_owned());
        }
        if !(0..=WRITE_MAX).contains(&len) {
            return error("EINVAL");
        }
        let nonblocking = found.nonblocking || flags & MSG_DONTWAIT != 0;
        let opens = flags & MSG_FASTOPEN != 0 || found.deferred;
        let index = match found.kind {
            Kind::Connection(index) => index,
            Kind::Fresh if opens => return self.open_with(fd, len as u32, nonblocking),
            _ => return error("EPIPE"),
        };
        let unopened = self
            .sockets()
            .connection(index)
            .is_some_and(|c| !c.state().is_synchronised() && !c.is_aborted());
        if opens && unopened {
            return if nonblocking { error("EALREADY") } else { Ok(None) };
        }
        let left = len - self.written;
        let body = Body::Pattern { stream: 0, len: left as u32, offset: 0 };
        let more = flags & MSG_MORE != 0;
        match self.act(|sockets, now, out| sockets.send(now, index, body, more, out)) {
            Ok(taken) => {
                self.written += i64::from(taken);
                if self.written >= len || nonblocking || call.until.is_none() {
                    return done(self.written);
                }
                Ok(None)
            }
            Err(Errno::Again) if self.written > 0 && nonblocking => done(self.written),
            Err(Errno::Again) if !nonblocking && call.until.is_some() => Ok(None),
            Err(_) if self.written > 0 => done(self.written),
            Err(errno) => error(errno.name()),
        }
    }

    /// A write that opens the connection.
    fn open_with(&mut self, fd: i64, len: u32, nonblocking: bool) -> Attempt {
        let index = self.open(fd, true);
        let known = self.act(|sockets, now, out| {
            let known = sockets.has_cookie(peer());
            if known {
                let body = Body::Pattern { stream: 0, len, offset: 0 };
                // What fits the SYN goes with it.
                let _ = sockets.send(now, index, body, false, out);
            }
            known
        });
        if known {
            return done(len.into());
        }
        if nonblocking { error("EINPROGRESS") } else { Ok(None) }
    }

    fn read(&mut self, call: &Call) -> Attempt {
        let Some((_, found)) = self.fd(call) else { return error("EBADF") };
        let Kind::Connection(index) = found.kind else { return error("ENOTCONN") };
        let flags = match call.name.as_str() {
            "read" => 0,
            _ => number(self.arg(call, 3)).unwrap_or(0),
        };
        if flags & MSG_PEEK != 0 {
            let unread = self.sockets().unread(index) as i64;
            return if unread > 0 {
                done(unread.min(number(self.arg(call, 2)).unwrap_or(0)))
            } else {
                error("EAGAIN")
            };
        }
        let most = number(self.arg(call, 2)).unwrap_or(0).max(0) as u64;
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
        let how = number(self.arg(call, 1)).unwrap_or(-1);
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
            Kind::Fresh => {}
        }
        done(0)
    }

    fn fcntl(&mut self, call: &Call) -> Attempt {
        let Some((fd, mut found)) = self.fd(call) else { return error("EBADF") };
        let flags = number(self.arg(call, 2)).unwrap_or(0);
        match word(self.arg(call, 1)) {
            Some("F_SETFL") => {
                found.nonblocking = flags & 0o4000 != 0;
                self.fds.insert(fd, found);
                done(0)
            }
            Some("F_GETFL") => done(2 | if found.nonblocking { 0o4000 } else { 0 }),
            _ => Err("fcntl() other than F_GETFL and F_SETFL".to_owned()),
        }
    }

    fn setsockopt(&mut self, call: &Call) -> Attempt {
        let Some((fd, mut found)) = self.fd(call) else { return error("EBADF") };
        let (level, name) =
            (word(self.arg(call, 1)).unwrap_or(""), word(self.arg(call, 2)).unwrap_or(""));
        let value = self.arg(call, 3);
        let int = number(value).unwrap_or(0);
        let keep = |options: &SocketOptions, keys: [u32; 3]| {
            let [idle, interval, count] = keys;
            let (idle, interval) = (Span::secs(idle.into()), Span::secs(interval.into()));
            options.keepalive.unwrap_or(KeepAlive { idle, interval, count })
        };
        let (options, keys) = (&mut found.options, self.keys.keepalive);
        let tcp = matches!(level, "SOL_TCP" | "IPPROTO_TCP");
        let span = Span::secs(int.clamp(0, 32_767) as u64);
        match name {
            "SO_REUSEADDR" | "IP_FREEBIND" => {}
            "IP_MTU_DISCOVER" | "IP_TOS" if int == 0 => {}
            "TCP_NODELAY" if tcp => options.nodelay = int != 0,
            "TCP_CORK" if tcp => options.cork = int != 0,
            "TCP_USER_TIMEOUT" if tcp => {
                options.user_timeout = Some(Span::millis(int.clamp(0, i64::from(u32::MAX)) as u64));
            }
            "TCP_MAXSEG" if tcp && !(88..=32_767).contains(&int) => return error("EINVAL"),
            "TCP_MAXSEG" if tcp => options.maxseg = Some(int as u32),
            "TCP_SYNCNT" if tcp && !(1..=127).contains(&int) => return error("EINVAL"),
            "TCP_SYNCNT" if tcp => options.syn_count = Some(int as u32),
            "TCP_FASTOPEN" if tcp => options.fast_open = Some(int > 0),
            "TCP_FASTOPEN_CONNECT" if tcp => found.deferred = int != 0,
            "TCP_CONGESTION" if tcp => {
                let Expr::Text(text) = value else { return error("EINVAL") };
                match keys::word(text) {
                    Some(word) => options.congestion = Some(word),
                    None => return error("ENOENT"),
                }
            }
            "SO_KEEPALIVE" => options.keepalive = (int != 0).then(|| keep(options, keys)),
            "TCP_KEEPIDLE" if tcp => {
                options.keepalive = Some(KeepAlive { idle: span, ..keep(options, keys) });
            }
            "TCP_KEEPINTVL" if tcp => {
                options.keepalive = Some(KeepAlive { interval: span, ..keep(options, keys) });
            }
            "TCP_KEEPCNT" if tcp => {
                let count = int.clamp(1, 127) as u32;
                options.keepalive = Some(KeepAlive { count, ..keep(options, keys) });
            }
            // Linux doubles what is asked for, to have room for its own records.
            "SO_SNDBUF" => options.send_buffer = Some((2 * int).clamp(4608, 8 << 20) as u32),
            "SO_RCVBUF" => options.recv_buffer = Some((2 * int).clamp(2304, 12 << 20) as u32),
            "SO_LINGER" => {
                let on = value.field("onoff").and_then(number).unwrap_or(0) != 0;
                let time = value.field("linger").and_then(number).unwrap_or(0).clamp(0, 65_535);
                options.linger = on.then(|| Span::secs(time as u64));
            }
            _ => return Err(format!("setsockopt {name}")),
        }
        let options = found.options.clone();
        match found.kind {
            Kind::Connection(index) => {
                self.act(|s, now, out| s.set_options(now, index, |old| *old = options, out));
            }
            // Connections that come in from now on have them.
            Kind::Listening(port) => self.listen_at(port, &found),
            Kind::Fresh => {}
        }
        self.fds.insert(fd, found);
        done(0)
    }

    fn getsockopt(&mut self, call: &Call) -> Attempt {
        let Some((_, found)) = self.fd(call) else { return error("EBADF") };
        let name = word(self.arg(call, 2)).unwrap_or("").to_owned();
        let index = match found.kind {
            Kind::Connection(index) => Some(index),
            _ => None,
        };
        let value = match name.as_str() {
            "SO_ERROR" => {
                let error = index.and_then(|index| self.sockets().take_error(index));
                error.map_or(0, errno_number)
            }
            "TCP_MAXSEG" => {
                let info = index.and_then(|index| self.sockets().info(index));
                match (info, found.options.maxseg) {
                    (Some(info), _) => info.snd_mss.into(),
                    (None, Some(bytes)) => bytes.into(),
                    (None, None) => 536,
                }
            }
            "TCP_NODELAY" => i64::from(found.options.nodelay),
            "TCP_CORK" => i64::from(found.options.cork),
            "SO_SNDBUF" => match found.options.send_buffer {
                Some(bytes) => bytes.into(),
                None => return Err("SO_SNDBUF of a buffer that grows by itself".to_owned()),
            },
            "TCP_USER_TIMEOUT" => {
                found.options.user_timeout.map_or(0, |span| (span.0 / 1_000_000) as i64)
            }
            _ => return Err(format!("getsockopt {name}")),
        };
        let written = vec![(3, Expr::List(vec![Expr::Int(value)]))];
        Ok(Some(Reply { value: 0, errno: None, written }))
    }

    fn poll(&mut self, call: &Call) -> Attempt {
        let Expr::List(items) = self.arg(call, 0) else { return error("EINVAL") };
        let items = items.clone();
        let timeout = number(self.arg(call, 2)).unwrap_or(0);
        let mut written = Vec::new();
        let mut count = 0;
        for item in &items {
            let fd = item.field("fd").and_then(number).unwrap_or(-1);
            let events = item.field("events").and_then(number).unwrap_or(0);
            let ready = match self.fds.get(&fd).map(|found| found.kind.clone()) {
                Some(Kind::Connection(index)) => events_of(&self.sockets().ready(index)),
                Some(Kind::Listening(port)) => i64::from(self.sockets().has_waiting(port)),
                Some(Kind::Fresh) => 4 | 16,
                None => 32,
            };
            // Errors and hang-ups are reported whatever was asked for.
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

    fn ioctl(&mut self, call: &Call) -> Attempt {
        let Some((_, found)) = self.fd(call) else { return error("EBADF") };
        let Kind::Connection(index) = found.kind else { return error("EINVAL") };
        let name = word(self.arg(call, 1)).unwrap_or("").to_owned();
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
