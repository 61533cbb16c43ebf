//! Timers of sockets: `TCP_USER_TIMEOUT`, keepalives and `TCP_LINGER2`.

use crate::machine::Out;
use crate::tcp::state::State;
use crate::units::{Span, Time};

use super::{Errno, Socket, Sockets};

/// Time in FIN-WAIT-2 without an application (`tcp_fin_timeout`).
const ORPHAN: Span = Span::secs(60);

impl Sockets {
    /// Sets the timers of `TCP_USER_TIMEOUT` and of keepalives.
    pub(super) fn watch(&mut self, now: Time, index: usize) {
        let Some(connection) = self.host.connections().get(index) else { return };
        let ((edge, waits), state) = (connection.left_edge(), connection.state());
        let over = connection.is_aborted() || !state.is_synchronised();
        let socket = self.socket(index);
        socket.orphan_until = match socket.closed && state == State::FinWait2 {
            true => socket.orphan_until.or(Some(now + socket.options.linger2.unwrap_or(ORPHAN))),
            false => None,
        };
        socket.busy = match (waits && !over, socket.busy) {
            (true, (busy, None)) => (busy, Some(now)),
            (false, (busy, Some(since))) => (busy + now.since(since), None),
            (_, same) => same,
        };
        socket.waits = match (waits && !over, socket.waits) {
            (false, _) => None,
            (true, Some((at, since))) if at == edge => Some((at, since)),
            (true, _) => Some((edge, now)),
        };
        if let (Some(keep), false) = (socket.options.keepalive, over) {
            let wait = if socket.probes == 0 { keep.idle } else { keep.interval };
            socket.probe_at.get_or_insert(now + wait);
        } else {
            socket.probe_at = None;
        }
    }

    /// When the timers of a socket expire next.
    pub(super) fn due(&self, socket: &Socket) -> Option<Time> {
        let timeout = socket.options.user_timeout.filter(|span| *span > Span::ZERO);
        let gives_up = timeout.zip(socket.waits).map(|(span, (_, since))| since + span);
        [gives_up, socket.probe_at, socket.orphan_until].into_iter().flatten().min()
    }

    /// The first socket whose timer has expired by `now`.
    pub(super) fn expired(&self, now: Time) -> Option<usize> {
        self.sockets.iter().position(|socket| self.due(socket).is_some_and(|at| at <= now))
    }

    pub(super) fn expire(&mut self, now: Time, index: usize, out: &mut Out) {
        let socket = &mut self.sockets[index];
        if socket.orphan_until.take_if(|until| *until <= now).is_some() {
            return self.host.act(index, |c| c.give_up(out));
        }
        let timeout = socket.options.user_timeout.filter(|span| *span > Span::ZERO);
        let since = socket.waits.map(|(_, since)| since);
        let gives_up = timeout.zip(since).is_some_and(|(span, since)| since + span <= now);
        let keep = socket.options.keepalive.unwrap_or_default();
        if since.is_some() && !gives_up {
            // While data is outstanding, its retransmission timer detects a dead peer.
            socket.probe_at = Some(now + keep.idle);
            return;
        }
        // TCP_USER_TIMEOUT takes the place of TCP_KEEPCNT (`tcp_keepalive_timer`).
        let silent = match timeout {
            Some(span) => socket.probes > 0 && now.since(socket.last_arrival) >= span,
            None => socket.probes >= keep.count,
        };
        if gives_up || silent {
            self.host.act(index, |c| match gives_up {
                true => c.give_up(out),
                false => c.reset(now, out),
            });
            self.settle(now, index, Errno::TimedOut);
            return;
        }
        socket.probes += 1;
        socket.probe_at = Some(now + keep.interval);
        self.host.act(index, |c| c.probe_peer(now, out));
    }
}
