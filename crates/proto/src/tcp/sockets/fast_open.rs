//! TCP Fast Open as applications use it: `MSG_FASTOPEN`, `TCP_FASTOPEN`, `TCP_FASTOPEN_KEY` and the bits of `tcp_fastopen`.

use crate::machine::Out;
use crate::tcp::TcpConfig;
use crate::tcp::connection::Connection;
use crate::units::Time;
use crate::wire::Addr;

use super::Sockets;

impl Sockets {
    /// Connections and listeners that are made from now on are configured so.
    pub fn reconfigure(&mut self, config: TcpConfig) {
        self.host.reconfigure(config);
    }

    /// Whether connections that open from now on send tail loss probes.
    pub fn set_tail_probes(&mut self, on: bool) {
        self.no_probes = !on;
    }

    /// A write waits until the connection is open: what is due until then goes with its data, so that one ACK is saved.
    pub fn await_open(&mut self, index: usize) {
        self.host.act(index, |c| {
            c.cork();
            c.set_write_waits(true);
        });
    }

    /// Nothing waits for the connection any more.
    pub fn end_wait(&mut self, now: Time, index: usize, out: &mut Out) {
        self.host.act(index, |c| {
            c.set_write_waits(false);
            c.uncork(now, out);
        });
    }

    /// Cookies are made as Linux makes them with `key`.
    pub fn set_cookie_key(&mut self, key: [u64; 2]) {
        let own = self.host.addr();
        if let Some(memory) = self.host.memory_mut() {
            memory.cookies.make_as_linux(key, own);
        }
    }

    /// Whether a client sends data in a SYN, and a server accepts it, without a cookie.
    pub fn open_without_cookies(&mut self, client: bool, server: bool) {
        if let Some(memory) = self.host.memory_mut() {
            (memory.cookies.client_without, memory.cookies.server_without) = (client, server);
        }
    }

    /// Forgets the cookies of servers, and what else is stored of them.
    pub fn forget_servers(&mut self) {
        if let Some(memory) = self.host.memory_mut() {
            memory.cookies.forget_all();
        }
    }

    /// Whether a connection to `peer` can open with data: its cookie is known, or none is needed.
    pub fn has_cookie(&mut self, peer: Addr) -> bool {
        self.host.memory_mut().is_some_and(|memory| {
            memory.cookies.client_without || memory.cookies.known(peer).is_some()
        })
    }

    /// Bytes that the SYN of a connection carries at most.
    pub fn room_in_syn(&mut self, index: usize) -> u32 {
        let Some((peer, own)) = self.connection(index).map(Connection::offer) else { return 0 };
        let known = self.host.memory_mut().and_then(|memory| memory.cookies.known_mss(peer));
        known.map_or(own, u32::from).min(own).saturating_sub(crate::wire::options::MAX_LEN as u32)
    }
}
