//! TCP Fast Open (RFC 7413): a SYN with data, and a cookie that proves its sender's address.
//!
//! A client requests a cookie on its first SYN to a server, and receives it on the SYN-ACK. Later SYNs carry
//! the cookie and data. A server that recognises the cookie delivers the data to the application at once. All
//! other connections open by the handshake. A cookie authenticates the sender, not the freshness of the SYN:
//! its duplicate counts as another connection.
//!
//! This file has the state that a host stores. `connection/opening.rs`, shared with [`t_tcp`](super::t_tcp),
//! has the behaviour of a connection.
//!
//! **Modelled:** request, grant and use of cookies, with a bound of connections with an unfinished
//! handshake. A SYN has data up to the segment size that the server offered before, and is retransmitted
//! without option and data. Responses may precede the end of the handshake. **Not modelled:** keys that
//! change with time; servers for which a client temporarily avoids Fast Open after a failure.

use crate::describe::{Kind, SIM, System};
use crate::wire::Addr;
use crate::wire::opening::Cookie;

/// Description of the system, for lists.
pub const FAST_OPEN: System = System::new(
    Kind::Sender,
    "fast-open",
    "host: fast-open = true, at both ends",
    "TCP Fast Open: a SYN with a cookie of the server's carries data that is answered at once",
    "RFC 7413",
)
.tier(0)
.runs(SIM);

/// Number of servers with a stored cookie; the least recently used one is discarded first.
const SERVERS_MAX: usize = 256;
/// Maximum number of connections with an unfinished handshake whose data has been delivered.
//= rfc7413#section-5.1: a server must limit those that are pending
const PENDING_MAX: usize = 256;

/// Cached state of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Server {
    addr: Addr,
    cookie: Option<Cookie>,
    /// The segment size that it offered last.
    mss: u16,
    /// Whether its cookie is in an experimental option.
    experiment: bool,
    /// Unanswered requests: none, one with the usual option, or one with the experimental option too.
    unanswered: u8,
}

/// Cookies of a host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cookies {
    key: [u64; 2],
    /// The host's address, if cookies are computed from both addresses as in Linux.
    own: Option<Addr>,
    /// Servers, the most recently used last.
    servers: Vec<Server>,
    pending: usize,
    /// Whether a client sends data in its SYN without a cookie (`tcp_fastopen`, bit 2).
    pub client_without: bool,
    /// Whether a server accepts data in a SYN without a cookie (`tcp_fastopen`, bit 9).
    pub server_without: bool,
}

impl Cookies {
    /// A host without cookies of others; `key` is the key of its own cookies.
    pub fn new(key: [u64; 2]) -> Cookies {
        let (client_without, server_without) = (false, false);
        let (own, servers) = (None, Vec::new());
        Cookies { key, own, servers, pending: 0, client_without, server_without }
    }

    /// From now on creates cookies with `key` as Linux does at the address `own`.
    pub fn make_as_linux(&mut self, key: [u64; 2], own: Addr) {
        (self.key, self.own) = (key, Some(own));
    }

    /// The cookie for a client.
    //= rfc7413#section-4.1.2: from its address, by what only the server can compute
    pub fn made_for(&self, client: Addr) -> Cookie {
        let octets = |addr: Addr| match addr.ip() {
            core::net::IpAddr::V4(ip) => ip.octets().to_vec(),
            core::net::IpAddr::V6(ip) => ip.octets().to_vec(),
        };
        let mut message = octets(client);
        let bytes = match self.own {
            // `__tcp_fastopen_cookie_gen_cipher`
            Some(own) => {
                message.extend(octets(own));
                siphash(self.key, &message).to_le_bytes()
            }
            None => siphash(self.key, &message).to_be_bytes(),
        };
        Cookie::new(&bytes).expect("eight bytes are a cookie")
    }

    /// Whether a client may open with data: it has the right cookie, and the limit permits it.
    pub fn accepts(&self, client: Addr, cookie: &Cookie) -> bool {
        self.has_room() && *cookie == self.made_for(client)
    }

    /// Whether one connection more may open with data.
    pub fn has_room(&self) -> bool {
        self.pending < PENDING_MAX
    }

    /// Counts a connection with accepted early data, or the end of its handshake.
    pub(super) fn count_pending(&mut self, more: bool) {
        self.pending = if more { self.pending + 1 } else { self.pending.saturating_sub(1) };
    }

    /// The cached state of `server`, which becomes the most recent.
    fn server(&mut self, server: Addr) -> Option<&mut Server> {
        let at = self.servers.iter().position(|known| known.addr == server)?;
        let known = self.servers.remove(at);
        self.servers.push(known);
        self.servers.last_mut()
    }

    /// Like [`Cookies::server`], and creates the state if there is none.
    fn remember(&mut self, addr: Addr, mss: u16) -> Option<&mut Server> {
        if self.server(addr).is_none() {
            if self.servers.len() >= SERVERS_MAX {
                self.servers.remove(0);
            }
            let (cookie, experiment, unanswered) = (None, false, 0);
            self.servers.push(Server { addr, cookie, mss, experiment, unanswered });
        }
        self.servers.last_mut()
    }

    /// The cookie of `server`, and the segment size that it offered last.
    pub fn known(&mut self, server: Addr) -> Option<(Cookie, u16)> {
        let known = self.server(server)?;
        known.cookie.map(|cookie| (cookie, known.mss))
    }

    /// The segment size that `server` offered last.
    pub fn known_mss(&mut self, server: Addr) -> Option<u16> {
        self.server(server).map(|known| known.mss)
    }

    /// Stores a cookie of `server`, and its segment size `mss`; `experiment` is whether the cookie arrived in an
    /// experimental option.
    pub fn learn(&mut self, server: Addr, cookie: Cookie, mss: u16, experiment: bool) {
        if let Some(known) = self.remember(server, mss) {
            (known.cookie, known.mss, known.experiment) = (Some(cookie), mss, experiment);
        }
    }

    /// Stores the segment size of `server`.
    pub fn learn_mss(&mut self, server: Addr, mss: u16) {
        if let Some(known) = self.remember(server, mss) {
            known.mss = mss;
        }
    }

    /// Whether the experimental option is used with `server`: its cookie arrived in one, or the usual option
    /// had no answer.
    pub fn experiments_with(&mut self, server: Addr) -> bool {
        let known = self.server(server);
        known.is_some_and(|known| match known.cookie {
            Some(_) => known.experiment,
            None => known.unanswered == 1,
        })
    }

    /// Records that `server` has not answered a request in the usual option or, with `experiment`, in the
    /// experimental one.
    pub fn unanswered(&mut self, server: Addr, experiment: bool) {
        let tried = if experiment { 2 } else { 1 };
        if let Some(known) = self.remember(server, 0).filter(|known| known.cookie.is_none()) {
            known.unanswered = known.unanswered.max(tried);
        }
    }

    /// Discards the cookie of `server` after it rejected the cookie without a new one.
    pub fn forget(&mut self, server: Addr) {
        self.servers.retain(|known| known.addr != server);
    }

    /// Discards the state of all servers.
    pub fn forget_all(&mut self) {
        self.servers.clear();
    }
}

/// SipHash-2-4 (Aumasson and Bernstein 2012): a keyed hash of short messages.
fn siphash([k0, k1]: [u64; 2], message: &[u8]) -> u64 {
    let mut v = [
        k0 ^ 0x736f_6d65_7073_6575,
        k1 ^ 0x646f_7261_6e64_6f6d,
        k0 ^ 0x6c79_6765_6e65_7261,
        k1 ^ 0x7465_6462_7974_6573,
    ];
    let absorb = |v: &mut [u64; 4], word: u64| {
        v[3] ^= word;
        (0..2).for_each(|_| round(v));
        v[0] ^= word;
    };
    let mut words = message.chunks_exact(8);
    for word in &mut words {
        let word = word.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        absorb(&mut v, word);
    }
    let rest = words.remainder().iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    absorb(&mut v, (message.len() as u64) << 56 | rest);
    v[2] ^= 0xff;
    (0..4).for_each(|_| round(&mut v));
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

fn round(v: &mut [u64; 4]) {
    let [a, b, c, d] = v;
    *a = a.wrapping_add(*b);
    *b = b.rotate_left(13) ^ *a;
    *a = a.rotate_left(32);
    *c = c.wrapping_add(*d);
    *d = d.rotate_left(16) ^ *c;
    *a = a.wrapping_add(*d);
    *d = d.rotate_left(21) ^ *a;
    *c = c.wrapping_add(*b);
    *b = b.rotate_left(17) ^ *c;
    *c = c.rotate_left(32);
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Addr = Addr::v4(10, 0, 0, 1);

    #[test]
    fn siphash_matches_the_reference_vectors() {
        // The first vectors and the longest of their reference implementation: key 00 to 0f, message 00, 01
        // and so on.
        let key = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        let message: Vec<u8> = (0..64).collect();
        assert_eq!(siphash(key, &message[..0]), 0x726f_db47_dd0e_0e31);
        assert_eq!(siphash(key, &message[..1]), 0x74f8_39c5_93dc_67fd);
        assert_eq!(siphash(key, &message[..8]), 0x93f5_f579_9a93_2462);
        assert_eq!(siphash(key, &message[..15]), 0xa129_ca61_49be_45e5);
    }

    #[test]
    fn a_cookie_is_good_for_one_client_of_one_server() {
        let (one, other) = (Cookies::new([1, 2]), Cookies::new([1, 3]));
        let cookie = one.made_for(A);
        assert_eq!(cookie.as_slice().len(), 8);
        assert!(one.accepts(A, &cookie));
        assert!(!one.accepts(Addr::v4(10, 0, 0, 2), &cookie));
        assert!(!other.accepts(A, &cookie));
        assert!(!one.accepts(A, &Cookie::REQUEST));
    }

    #[test]
    fn pending_connections_are_bounded() {
        let mut cookies = Cookies::new([1, 2]);
        let cookie = cookies.made_for(A);
        (0..PENDING_MAX).for_each(|_| cookies.count_pending(true));
        assert!(!cookies.accepts(A, &cookie));
        cookies.count_pending(false);
        assert!(cookies.accepts(A, &cookie));
    }

    #[test]
    fn the_cookie_cache_evicts_the_least_recently_used_server() {
        let mut cookies = Cookies::new([1, 2]);
        let addr = |n: u32| Addr::v4(10, 1, (n >> 8) as u8, n as u8);
        for n in 0..SERVERS_MAX as u32 {
            cookies.learn(addr(n), cookies.made_for(A), 1000, false);
        }
        assert!(cookies.known(addr(0)).is_some());
        cookies.learn(A, cookies.made_for(A), 1000, false);
        assert_eq!(cookies.servers.len(), SERVERS_MAX);
        assert!(cookies.known(addr(0)).is_some() && cookies.known(addr(1)).is_none());
        cookies.forget(A);
        assert_eq!(cookies.known(A), None);
    }

    /// The cookie of Linux 6.18 for 192.0.2.1 at 192.168.0.1 with this value of `tcp_fastopen_key`.
    #[test]
    fn a_linux_key_gives_the_cookie_of_linux() {
        let mut cookies = Cookies::new([1, 2]);
        let key = [0xb2b2_b2b2_a1a1_a1a1, 0xd4d4_d4d4_c3c3_c3c3];
        cookies.make_as_linux(key, Addr::v4(192, 168, 0, 1));
        let cookie = cookies.made_for(Addr::v4(192, 0, 2, 1));
        assert_eq!(cookie.as_slice(), [0x30, 0x21, 0xb9, 0xd8, 0x89, 0x01, 0x7e, 0xeb]);
    }

    #[test]
    fn an_unanswered_request_switches_the_option_once() {
        let mut cookies = Cookies::new([1, 2]);
        let used: Vec<bool> = (0..4)
            .map(|_| {
                let experiment = cookies.experiments_with(A);
                cookies.unanswered(A, experiment);
                experiment
            })
            .collect();
        assert_eq!(used, [false, true, false, false]);
        cookies.learn(A, cookies.made_for(A), 1000, true);
        assert!(cookies.experiments_with(A));
    }
}
