//! Options of sockets.

use lasthop_proto::tcp::sockets::{KeepAlive, SocketOptions};
use lasthop_proto::tcp::words;
use lasthop_proto::units::{Rate, Span};

use super::super::values::{bytes_of, integer, integer_field, word};
use super::calls::{Attempt, done, error};
use super::numbers::errno_number;
use super::{Kind, Own, Reply};
use crate::script::{Call, Expr};

impl Own {
    pub(super) fn setsockopt(&mut self, call: &Call) -> Attempt {
        let Some((fd, mut found)) = self.fd(call) else { return error("EBADF") };
        let (level, name) = (word(call.arg(1)).unwrap_or(""), word(call.arg(2)).unwrap_or(""));
        let value = call.arg(3);
        let int = match value {
            Expr::Text(_) | Expr::Fields(_) => 0,
            value => integer(value)?,
        };
        let keep = |options: &SocketOptions, keys: [u32; 3]| {
            let [idle, interval, count] = keys;
            let (idle, interval) = (Span::secs(idle.into()), Span::secs(interval.into()));
            options.keepalive.unwrap_or(KeepAlive { idle, interval, count })
        };
        let keys = self.keys.keepalive;
        let tcp = matches!(level, "SOL_TCP" | "IPPROTO_TCP");
        let span = Span::secs(int.clamp(0, 32_767) as u64);
        match name {
            "SO_REUSEADDR" | "IP_FREEBIND" => {}
            "IP_MTU_DISCOVER" if int == 0 => {}
            // It has no effect outside the host.
            "SO_MARK" => {}
            "IP_TOS" => {
                found.tos = int as u8;
                if let Kind::Connection(index) = found.kind {
                    self.serve(index, int as u8);
                }
            }
            "SO_ZEROCOPY" => found.zerocopy = int != 0,
            "TCP_INQ" if tcp => found.inq = int != 0,
            "SO_TIMESTAMPING" => match found.kind {
                Kind::Connection(index) => self.time_writes(index, int),
                _ => return Err("SO_TIMESTAMPING before a connection".to_owned()),
            },
            "TCP_NODELAY" if tcp => {
                found.options.nodelay = int != 0;
                if let (Kind::Connection(index), true) = (&found.kind, int != 0) {
                    let index = *index;
                    self.act(|sockets, now, out| sockets.push(now, index, out));
                }
            }
            "TCP_CORK" if tcp => found.options.cork = int != 0,
            "TCP_NOTSENT_LOWAT" if tcp => {
                // Zero is the configuration of the host.
                let bytes = (int & i64::from(u32::MAX)) as u32;
                found.options.notsent_lowat =
                    Some(if bytes == 0 { self.keys.notsent_lowat } else { bytes });
                found.lowat = bytes;
            }
            "TCP_USER_TIMEOUT" if tcp => {
                found.options.user_timeout =
                    Some(Span::millis(int.clamp(0, i64::from(u32::MAX)) as u64));
            }
            "TCP_MAXSEG" if tcp && !(88..=32_767).contains(&int) => return error("EINVAL"),
            "TCP_MAXSEG" if tcp => found.options.maxseg = Some(int as u32),
            "TCP_SYNCNT" if tcp && !(1..=127).contains(&int) => return error("EINVAL"),
            "TCP_SYNCNT" if tcp => found.options.syn_count = Some(int as u32),
            "TCP_FASTOPEN" if tcp => found.options.fast_open = Some(int > 0),
            "TCP_FASTOPEN_CONNECT" if tcp && self.keys.fast_open & 1 == 0 => {
                return error("EOPNOTSUPP");
            }
            "TCP_FASTOPEN_CONNECT" if tcp => found.deferred = int != 0,
            "TCP_FASTOPEN_KEY" if tcp => {
                let Expr::Text(text) = value else { return error("EINVAL") };
                let len = integer(call.arg(4))?;
                match key_of(text).filter(|_| len == 16) {
                    Some(key) => found.cookie_key = Some(key),
                    None => return error("EINVAL"),
                }
            }
            "TCP_CONGESTION" if tcp => {
                let Expr::Text(text) = value else { return error("EINVAL") };
                match words::of_linux(text) {
                    Some(word) => found.options.congestion = Some(word),
                    None => return error("ENOENT"),
                }
            }
            "SO_KEEPALIVE" => {
                found.options.keepalive = (int != 0).then(|| keep(&found.options, keys))
            }
            "TCP_KEEPIDLE" if tcp => {
                found.options.keepalive =
                    Some(KeepAlive { idle: span, ..keep(&found.options, keys) });
            }
            "TCP_KEEPINTVL" if tcp => {
                found.options.keepalive =
                    Some(KeepAlive { interval: span, ..keep(&found.options, keys) });
            }
            "TCP_KEEPCNT" if tcp => {
                let count = int.clamp(1, 127) as u32;
                found.options.keepalive = Some(KeepAlive { count, ..keep(&found.options, keys) });
            }
            // Linux doubles the value, to have room for its own records.
            "SO_SNDBUF" => found.options.send_buffer = Some((2 * int).clamp(4608, 8 << 20) as u32),
            "SO_RCVBUF" => found.options.recv_buffer = Some((2 * int).clamp(2304, 12 << 20) as u32),
            "SO_LINGER" => {
                let on = integer_field(value, "onoff")? != 0;
                let time = integer_field(value, "linger")?.clamp(0, 65_535);
                found.options.linger = on.then(|| Span::secs(time as u64));
            }
            // At most the default; a negative value ends the connection at once.
            "TCP_LINGER2" if tcp && int >= 0 => {
                found.options.linger2 =
                    Some(Span::secs(int as u64)).filter(|wait| *wait > Span::ZERO && int <= 120);
            }
            "SO_MAX_PACING_RATE" => {
                found.options.pacing = Rate::from_bps((int.max(0) as u64).saturating_mul(8));
            }
            _ => return Err(format!("setsockopt {name}")),
        }
        let options = found.options.clone();
        match found.kind {
            Kind::Connection(index) => {
                self.act(|s, now, out| s.set_options(now, index, |old| *old = options, out));
            }
            // Later incoming connections have them.
            Kind::Listening(port) => self.listen_at(port, &found),
            Kind::Fresh | Kind::Deferred | Kind::Epoll(_) => {}
        }
        self.fds.insert(fd, found);
        done(0)
    }

    pub(super) fn getsockopt(&mut self, call: &Call) -> Attempt {
        let Some((_, found)) = self.fd(call) else { return error("EBADF") };
        let name = word(call.arg(2)).unwrap_or("").to_owned();
        let index = match found.kind {
            Kind::Connection(index) => Some(index),
            _ => None,
        };
        let value = match name.as_str() {
            "SO_ERROR" => {
                let error = index.and_then(|index| self.sockets().take_any_error(index));
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
            "TCP_NOTSENT_LOWAT" => found.lowat.into(),
            "TCP_NODELAY" => i64::from(found.options.nodelay),
            "TCP_CORK" => i64::from(found.options.cork),
            "SO_SNDBUF" | "SO_RCVBUF" => {
                let options = &found.options;
                let set =
                    if name == "SO_SNDBUF" { options.send_buffer } else { options.recv_buffer };
                match set {
                    Some(bytes) => bytes.into(),
                    None => return Err(format!("{name} of a buffer that grows by itself")),
                }
            }
            "TCP_USER_TIMEOUT" => {
                found.options.user_timeout.map_or(0, |span| (span.0 / 1_000_000) as i64)
            }
            _ => return Err(format!("getsockopt {name}")),
        };
        let written = vec![(3, Expr::List(vec![Expr::Int(value)]))];
        Ok(Some(Reply { value: 0, errno: None, written }))
    }
}

/// The key in a text of 16 bytes.
fn key_of(text: &str) -> Option<[u64; 2]> {
    let bytes = bytes_of(text);
    let half = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    Some([half(0)?, half(8)?]).filter(|_| bytes.len() == 16)
}
