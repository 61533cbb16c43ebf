//! Options of a socket, set before or after its connection opens.

use std::sync::Arc;

use crate::machine::{Machine as _, Out};
use crate::tcp::Settings;
use crate::tcp::keyword::Keyword;
use crate::units::{Rate, Span, Time};

use super::Sockets;

/// Keepalives (`SO_KEEPALIVE`, `TCP_KEEPIDLE`, `TCP_KEEPINTVL`, `TCP_KEEPCNT`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeepAlive {
    /// Silence before the first probe.
    pub idle: Span,
    /// Time between probes.
    pub interval: Span,
    /// Unanswered probes before the connection is aborted.
    pub count: u32,
}

impl Default for KeepAlive {
    /// Linux: two hours, 75 seconds, nine probes.
    fn default() -> KeepAlive {
        KeepAlive { idle: Span::secs(7200), interval: Span::secs(75), count: 9 }
    }
}

/// Options of a socket; `None` is the configuration of the host.
#[derive(Clone, Debug, Default)]
pub struct SocketOptions {
    /// `TCP_NODELAY`: segments that are not full do not wait for more data.
    pub nodelay: bool,
    /// `TCP_CORK`: segments that are not full wait until this option is cleared.
    pub cork: bool,
    /// `TCP_USER_TIMEOUT`: maximum time that data may stay unacknowledged.
    pub user_timeout: Option<Span>,
    /// Keepalives.
    pub keepalive: Option<KeepAlive>,
    /// `TCP_MAXSEG` in bytes.
    pub maxseg: Option<u32>,
    /// `TCP_SYNCNT`: retransmissions of the SYN.
    pub syn_count: Option<u32>,
    /// Size of the receive buffer in bytes.
    pub recv_buffer: Option<u32>,
    /// Size of the send buffer in bytes.
    pub send_buffer: Option<u32>,
    /// `TCP_NOTSENT_LOWAT`: number of unsent bytes above which a write only fills the present segment
    /// buffer.
    pub notsent_lowat: Option<u32>,
    /// `TCP_CONGESTION`.
    pub congestion: Option<&'static Keyword>,
    /// `SO_LINGER`, if it is on.
    pub linger: Option<Span>,
    /// `TCP_LINGER2`: time in FIN-WAIT-2 after `close`; 60 s without it.
    pub linger2: Option<Span>,
    /// `SO_MAX_PACING_RATE`.
    pub pacing: Option<Rate>,
    /// Whether the connection opens with data if possible (`MSG_FASTOPEN`, `TCP_FASTOPEN`).
    pub fast_open: Option<bool>,
    /// Whether ECN is offered, or accepted by a listener.
    pub ecn: Option<bool>,
}

/// Retransmissions of a SYN if `count` of them are set and the first `linear` timeouts do not double the
/// next.
///
/// Linux counts only retransmissions with a doubled timeout. It also stops when `count` doublings would
/// have taken the same time.
fn syn_retries(count: u32, linear: u32) -> u32 {
    let most = (2u64 << count.min(32)) - 1;
    let all = count.saturating_add(linear);
    // In units of the first timeout.
    let (mut wait, mut elapsed) = (1u64, 0u64);
    for sent in 0..all {
        elapsed += wait;
        if elapsed >= most {
            return sent;
        }
        if sent >= linear {
            wait *= 2;
        }
    }
    all
}

impl SocketOptions {
    /// The settings of a connection with these options on a host with `settings`.
    pub(super) fn settings(&self, settings: &Arc<Settings>, passive: bool) -> Arc<Settings> {
        settings.changed(|config| {
            config.mss =
                self.maxseg.map_or(config.mss, |bytes| bytes.clamp(88, 65_535).min(config.mss));
            if let Some(bytes) = self.recv_buffer {
                // In Linux half of the memory becomes window.
                config.recv_buffer = if config.quick_acks { bytes / 2 } else { bytes };
                config.recv_memory = Some([bytes; 2]);
            }
            config.send_buffer = self.send_buffer.unwrap_or(config.send_buffer);
            config.fast_open &= self.fast_open.unwrap_or(config.fast_open);
            config.ecn = self.ecn.unwrap_or(config.ecn);
            if let (Some(count), false) = (self.syn_count, passive) {
                config.syn_retries = Some(syn_retries(count, config.syn_linear));
            }
            if let Some(word) = self.congestion {
                (word.apply)(config);
            }
        })
    }

    /// Bytes that may be written ahead.
    pub(super) fn outbox(&self, settings: &Settings) -> u32 {
        self.send_buffer.unwrap_or(settings.send_buffer)
    }
}

impl Sockets {
    /// Options of a socket.
    pub fn options(&self, index: usize) -> Option<&SocketOptions> {
        self.sockets.get(index).map(|socket| &socket.options)
    }

    /// Changes options of a running connection. Options negotiated by the handshake are unchanged.
    pub fn set_options(
        &mut self,
        now: Time,
        index: usize,
        change: impl FnOnce(&mut SocketOptions),
        out: &mut Out,
    ) {
        let socket = self.socket(index);
        let before = socket.options.clone();
        change(&mut socket.options);
        let after = socket.options.clone();
        if after.nodelay && !before.nodelay {
            // Linux pushes waiting data when Nagle is disabled, corked or not.
            self.push(now, index, out);
        }
        let coalescing = self.coalescing(index);
        self.host.act(index, |c| {
            c.set_coalescing(coalescing, now, out);
            if let Some(bytes) =
                after.send_buffer.filter(|_| after.send_buffer != before.send_buffer)
            {
                c.set_send_buffer(bytes);
                c.grow_outbox(bytes);
            }
            if let Some(bytes) =
                after.recv_buffer.filter(|_| after.recv_buffer != before.recv_buffer)
            {
                c.set_inbox(bytes);
            }
            if let Some(rate) = after.pacing.filter(|_| after.pacing != before.pacing) {
                c.limit_pacing(rate);
            }
            if let Some(bytes) = after.maxseg.filter(|_| after.maxseg != before.maxseg) {
                c.clamp_mss(bytes);
            }
            if let Some(word) = after.congestion {
                if before.congestion.is_none_or(|old| old.key != word.key) {
                    c.set_congestion_control(now, word);
                }
            }
        });
        if let Some(count) = after.syn_count.filter(|_| after.syn_count != before.syn_count) {
            let retries = syn_retries(count, self.host.settings().syn_linear);
            self.host.act(index, |c| c.set_syn_retries(retries));
        }
        if after.keepalive != before.keepalive {
            self.sockets[index].probe_at = None;
        }
        self.watch(now, index);
        debug_assert!(self.next_wake().is_none_or(|at| at.0 > 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retransmissions_of_a_syn_end_by_their_count_or_their_time() {
        // Timeouts at 1, 2, 3, 4, 5, 7, 11 and 19 s; without linear ones at 1, 3, 7 and 15 s.
        for (count, linear, retries) in [(1, 4, 2), (2, 4, 5), (3, 4, 7), (6, 4, 10), (3, 0, 3)] {
            assert_eq!(syn_retries(count, linear), retries, "{count} {linear}");
        }
        assert!(syn_retries(255, 255) < 512);
    }
}
