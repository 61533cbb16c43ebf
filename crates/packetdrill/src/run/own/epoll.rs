//! `epoll`: watched descriptors, reported while they are ready or, with `EPOLLET`, after an event.

use super::super::values::{integer, integer_field, number};
use super::calls::{Attempt, done, error};
use super::{Fd, Kind, Own, Reply};
use crate::script::{Call, Expr};

const EPOLLERR: i64 = 8;
const EPOLLHUP: i64 = 16;
const EPOLLONESHOT: i64 = 1 << 30;
const EPOLLET: i64 = 1 << 31;
const CTL_ADD: i64 = 1;
const CTL_DEL: i64 = 2;
const CTL_MOD: i64 = 3;
/// Maximum number of descriptors in one `epoll`.
const WATCHES_MAX: usize = 1024;

/// A watched descriptor.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Watch {
    fd: i64,
    events: i64,
    /// Its counts at the last report; `None` before the first.
    seen: Option<Happened>,
}

/// Event counts of a descriptor.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Happened {
    /// Bytes received.
    arrived: u64,
    /// Notes of the error queue.
    notes: u64,
    /// Readiness by bits. Only a newly set bit is an event.
    ready: i64,
}

impl Happened {
    fn is_news(&self, before: &Happened) -> bool {
        let more = self.arrived > before.arrived || self.notes > before.notes;
        more || self.ready & !before.ready != 0
    }
}

impl Own {
    pub(super) fn epoll_create(&mut self, call: &Call) -> Attempt {
        let fd = self.new_fd(&call.result, Fd::new(Kind::Epoll(Vec::new()), false));
        done(fd)
    }

    pub(super) fn epoll_ctl(&mut self, call: &Call) -> Attempt {
        let Some((epoll, found)) = self.fd(call) else { return error("EBADF") };
        let Kind::Epoll(mut watches) = found.kind.clone() else { return error("EINVAL") };
        let fd = integer(call.arg(2))?;
        if !self.fds.contains_key(&fd) {
            return error("EBADF");
        }
        let events = integer_field(call.arg(3), "events")?;
        let at = watches.iter().position(|watch| watch.fd == fd);
        let watch = Watch { fd, events, seen: None };
        match (number(call.arg(1)), at) {
            (Some(CTL_ADD), Some(_)) => return error("EEXIST"),
            (Some(CTL_ADD), None) if watches.len() < WATCHES_MAX => watches.push(watch),
            (Some(CTL_MOD), Some(at)) => watches[at] = watch,
            (Some(CTL_DEL), Some(at)) => drop(watches.remove(at)),
            (Some(CTL_MOD | CTL_DEL), None) => return error("ENOENT"),
            _ => return error("EINVAL"),
        }
        self.fds.insert(epoll, Fd { kind: Kind::Epoll(watches), ..found });
        done(0)
    }

    fn happened(&mut self, fd: i64) -> Happened {
        let ready = self.readiness(fd);
        let Some(Kind::Connection(index)) = self.fds.get(&fd).map(|found| found.kind.clone())
        else {
            return Happened { ready, ..Happened::default() };
        };
        let arrived = self.sockets().connection(index).map_or(0, |c| c.delivered());
        let notes = self.queues.get(&index).map_or(0, |queue| queue.count);
        Happened { arrived, notes, ready }
    }

    pub(super) fn epoll_wait(&mut self, call: &Call) -> Attempt {
        let Some((epoll, found)) = self.fd(call) else { return error("EBADF") };
        let Kind::Epoll(mut watches) = found.kind.clone() else { return error("EINVAL") };
        let timeout = integer(call.arg(3))?;
        for watch in &mut watches {
            let now = self.happened(watch.fd);
            let events = now.ready & (watch.events & 0xffff | EPOLLERR | EPOLLHUP);
            let wanted = watch.events & !(EPOLLET | EPOLLONESHOT) != 0;
            let news = watch.seen.is_none_or(|seen| now.is_news(&seen));
            let edge = watch.events & EPOLLET != 0;
            // A cleared bit may be set again.
            if let Some(seen) = &mut watch.seen {
                seen.ready &= now.ready;
            }
            if events == 0 || !wanted || edge && !news {
                continue;
            }
            watch.seen = Some(now);
            let fd = watch.fd;
            if watch.events & EPOLLONESHOT != 0 {
                watch.events = 0;
            }
            self.fds.insert(epoll, Fd { kind: Kind::Epoll(watches), ..found });
            let fields = [("events", events), ("fd", fd)];
            let event = fields.map(|(name, value)| (name.to_owned(), Expr::Int(value)));
            let written = vec![(1, Expr::Fields(event.to_vec()))];
            return Ok(Some(Reply { written, ..Reply::value(1) }));
        }
        self.fds.insert(epoll, Fd { kind: Kind::Epoll(watches), ..found });
        if timeout != 0 && call.until.is_some() { Ok(None) } else { done(0) }
    }
}
