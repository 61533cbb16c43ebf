//! Application interface of TCP Fast Open: `MSG_FASTOPEN`, `TCP_FASTOPEN`, `TCP_FASTOPEN_KEY` and the bits of
//! `tcp_fastopen`.

use crate::machine::Out;
use crate::tcp::TcpConfig;
use crate::tcp::connection::Connection;
use crate::units::Time;
use crate::wire::Addr;

use super::Sockets;

impl Sockets {
    /// Sets the configuration of later connections and listeners.
    pub fn reconfigure(&mut self, config: TcpConfig) {
        self.host.reconfigure(config);
    }

    /// Sets whether later connections send tail loss probes.
    pub fn set_tail_probes(&mut self, on: bool) {
        self.no_probes = !on;
    }

    /// Delays pending segments until a write that waits for the connection to open: its data carries the ACK.
    pub fn await_open(&mut self, index: usize) {
        self.host.act(index, |c| {
            c.cork();
            c.set_write_waits(true);
        });
    }

    /// Ends the wait for the connection.
    pub fn end_wait(&mut self, now: Time, index: usize, out: &mut Out) {
        self.host.act(index, |c| {
            c.set_write_waits(false);
            c.uncork(now, out);
        });
    }

    /// Creates cookies with `key` as Linux does.
    pub fn set_cookie_key(&mut self, key: [u64; 2]) {
        let own = self.host.addr();
        if let Some(memory) = self.host.memory_mut() {
            memory.cookies.make_as_linux(key, own);
        }
    }

    /// Sets whether a client sends data in a SYN, and a server accepts it, without a cookie.
    pub fn open_without_cookies(&mut self, client: bool, server: bool) {
        if let Some(memory) = self.host.memory_mut() {
            (memory.cookies.client_without, memory.cookies.server_without) = (client, server);
        }
    }

    /// Discards the cookies and other stored state of servers.
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

    /// Maximum number of bytes in the SYN of a connection.
    pub fn room_in_syn(&mut self, index: usize) -> u32 {
        let Some((peer, own)) = self.connection(index).map(Connection::offer) else { return 0 };
        let known = self.host.memory_mut().and_then(|memory| memory.cookies.known_mss(peer));
        known.map_or(own, u32::from).min(own).saturating_sub(crate::wire::options::MAX_LEN as u32)
    }
}
