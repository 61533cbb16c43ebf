//! `recvmsg` with control messages: `TCP_INQ`, and with `MSG_ERRQUEUE` reports of writes with `MSG_ZEROCOPY`
//! and times of writes (`SO_TIMESTAMPING`).

use std::collections::VecDeque;

use super::super::values::integer;
use super::calls::{Attempt, done, error};
use super::numbers::message;
use super::{Kind, Nanos, Own, Reply, START};
use crate::script::{Call, Expr};

const MSG_TRUNC: i64 = 0x20;
const MSG_DONTWAIT: i64 = 0x40;
const MSG_ERRQUEUE: i64 = 0x2000;
const SOL_SOCKET: i64 = 1;
const SOL_TCP: i64 = 6;
const IP_RECVERR: i64 = 11;
const TCP_INQ: i64 = 36;
const SCM_TIMESTAMPING: i64 = 37;
const ENOMSG: i64 = 42;
const ORIGIN_TIMESTAMPING: i64 = 4;
const ORIGIN_ZEROCOPY: i64 = 5;
/// The data was copied, as for packets through a TUN device.
const ZEROCOPY_COPIED: i64 = 1;
/// Bits of `SO_TIMESTAMPING`: data is sent, data is queued, data is acknowledged.
const TX_SOFTWARE: i64 = 1 << 1;
const TX_SCHED: i64 = 1 << 8;
const TX_ACK: i64 = 1 << 9;
/// Maximum number of unread reports.
const NOTES_MAX: usize = 4096;

#[derive(Clone, Debug)]
enum Note {
    /// The buffers of writes with these numbers are free.
    Copied(u32, u32),
    /// An event of the byte with this number, and its time.
    Time { event: i64, key: u64, at: Nanos },
}

/// A write whose last byte is pending.
#[derive(Clone, Debug)]
struct Write {
    /// Total bytes written up to its end.
    end: u64,
    zerocopy: Option<u32>,
    sent: bool,
}

/// Reports of a connection for `MSG_ERRQUEUE`.
#[derive(Clone, Debug, Default)]
pub(super) struct ErrorQueue {
    notes: VecDeque<Note>,
    writes: VecDeque<Write>,
    /// Number of writes with `MSG_ZEROCOPY`.
    copies: u32,
    /// `SO_TIMESTAMPING`, and bytes written before it was set.
    times: (i64, u64),
    /// Number of reports.
    pub(super) count: u64,
}

impl ErrorQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.notes.is_empty()
    }

    fn push(&mut self, note: Note) {
        self.count += 1;
        if let (Note::Copied(from, to), Some(Note::Copied(_, last))) =
            (&note, self.notes.back_mut())
            && last.wrapping_add(1) == *from
        {
            *last = *to;
        } else if self.notes.len() < NOTES_MAX {
            self.notes.push_back(note);
        }
    }

    /// Records the number of bytes sent and acknowledged.
    fn advance(&mut self, at: Nanos, sent: u64, acked: u64) {
        let (bits, before) = self.times;
        let mut notes = Vec::new();
        for write in self.writes.iter_mut().filter(|write| !write.sent && write.end <= sent) {
            write.sent = true;
            let key = write.end.saturating_sub(before + 1);
            let time = |event| Note::Time { event, key, at };
            notes.extend((bits & TX_SCHED != 0).then(|| time(1)));
            notes.extend((bits & TX_SOFTWARE != 0).then(|| time(0)));
        }
        while self.writes.front().is_some_and(|write| write.end <= acked)
            && let Some(write) = self.writes.pop_front()
        {
            let key = write.end.saturating_sub(before + 1);
            notes.extend((bits & TX_ACK != 0).then_some(Note::Time { event: 2, key, at }));
            notes.extend(write.zerocopy.map(|id| Note::Copied(id, id)));
        }
        notes.into_iter().for_each(|note| self.push(note));
    }
}

fn fields(all: &[(&str, i64)]) -> Expr {
    Expr::Fields(all.iter().map(|(name, value)| ((*name).to_owned(), Expr::Int(*value))).collect())
}

/// A control message.
fn control(level: i64, kind: i64, data: Expr) -> Expr {
    let Expr::Fields(mut all) = fields(&[("cmsg_level", level), ("cmsg_type", kind)]) else {
        return data;
    };
    all.push(("cmsg_data".to_owned(), data));
    Expr::Fields(all)
}

/// Output of `recvmsg` other than the data.
fn message_with(flags: i64, controls: Vec<Expr>) -> Expr {
    let control = ("msg_control".to_owned(), Expr::List(controls));
    Expr::Fields(vec![("msg_flags".to_owned(), Expr::Int(flags)), control])
}

impl Note {
    fn message(&self) -> Expr {
        let error = |errno, origin, code, info: i64, data: i64| {
            let data = fields(&[
                ("ee_errno", errno),
                ("ee_origin", origin),
                ("ee_type", 0),
                ("ee_code", code),
                ("ee_info", info),
                ("ee_data", data),
            ]);
            control(0, IP_RECVERR, data)
        };
        match *self {
            Note::Copied(from, to) => {
                let note = error(0, ORIGIN_ZEROCOPY, ZEROCOPY_COPIED, from.into(), to.into());
                message_with(MSG_ERRQUEUE, vec![note])
            }
            Note::Time { event, key, at } => {
                let (sec, nsec) = ((at / 1_000_000_000) as i64, (at % 1_000_000_000) as i64);
                let time = fields(&[("scm_sec", sec), ("scm_nsec", nsec)]);
                let time = control(SOL_SOCKET, SCM_TIMESTAMPING, time);
                let note = error(ENOMSG, ORIGIN_TIMESTAMPING, 0, event, key as i64);
                message_with(MSG_ERRQUEUE | MSG_TRUNC, vec![time, note])
            }
        }
    }
}

impl Own {
    /// Bytes written, sent and acknowledged on a connection.
    fn progress(&self, index: usize) -> Option<(u64, u64, u64)> {
        let sockets = self.sockets.as_ref()?;
        let (connection, info) = (sockets.connection(index)?, sockets.info(index)?);
        let acked = connection.acknowledged();
        let written = acked + connection.unacknowledged().1;
        Some((written, written.saturating_sub(info.notsent_bytes), acked))
    }

    /// Records a write of `len` bytes.
    pub(super) fn note_write(&mut self, index: usize, len: i64, zerocopy: bool) {
        let Some((end, ..)) = self.progress(index).filter(|_| len > 0) else { return };
        let times = self.queues.get(&index).is_some_and(|queue| queue.times.0 != 0);
        if !zerocopy && !times {
            return;
        }
        let queue = self.queues.entry(index).or_default();
        let number = queue.copies;
        queue.copies = queue.copies.wrapping_add(u32::from(zerocopy));
        if queue.writes.len() < NOTES_MAX {
            let zerocopy = zerocopy.then_some(number);
            queue.writes.push_back(Write { end, zerocopy, sent: false });
        }
        self.note_progress();
    }

    /// `SO_TIMESTAMPING`: times later writes.
    pub(super) fn time_writes(&mut self, index: usize, bits: i64) {
        let Some((written, ..)) = self.progress(index) else { return };
        self.queues.entry(index).or_default().times = (bits, written);
    }

    /// Records progress: bytes may have been sent or acknowledged.
    pub(super) fn note_progress(&mut self) {
        let at = self.now - START;
        let waiting: Vec<usize> = self
            .queues
            .iter()
            .filter(|(_, queue)| !queue.writes.is_empty())
            .map(|(index, _)| *index)
            .collect();
        for index in waiting {
            let progress = self.progress(index);
            if let (Some((_, sent, acked)), Some(queue)) = (progress, self.queues.get_mut(&index)) {
                queue.advance(at, sent, acked);
            }
        }
    }

    pub(super) fn recvmsg(&mut self, call: &Call) -> Attempt {
        let Some((_, found)) = self.fd(call) else { return error("EBADF") };
        let flags = integer(call.arg(2))?;
        let Kind::Connection(index) = found.kind else {
            return error(if flags & MSG_ERRQUEUE != 0 { "EAGAIN" } else { "ENOTCONN" });
        };
        if flags & MSG_ERRQUEUE != 0 {
            let note = self.queues.get_mut(&index).and_then(|queue| queue.notes.pop_front());
            let Some(note) = note else { return error("EAGAIN") };
            let written = vec![(1, note.message())];
            return Ok(Some(Reply { written, ..Reply::value(0) }));
        }
        let most = message(call.arg(1))?.max(0) as u64;
        let mut bodies = Vec::new();
        let got = self.act(|sockets, now, out| sockets.recv(now, index, most, &mut bodies, out));
        match got {
            Ok(bytes) if found.inq => {
                let sockets = self.sockets();
                let unread = sockets.unread(index) as i64;
                let closed = sockets.connection(index).is_some_and(|c| c.peer_has_closed());
                // A hint of one byte makes programs read the end of the stream.
                let hint = if unread == 0 && closed { 1 } else { unread };
                let note = control(SOL_TCP, TCP_INQ, Expr::Int(hint));
                let written = vec![(1, message_with(0, vec![note]))];
                Ok(Some(Reply { written, ..Reply::value(bytes as i64) }))
            }
            Ok(bytes) => done(bytes as i64),
            Err(lasthop_proto::tcp::sockets::Errno::Again)
                if !found.nonblocking && flags & MSG_DONTWAIT == 0 && call.until.is_some() =>
            {
                Ok(None)
            }
            Err(errno) => error(errno.name()),
        }
    }
}
