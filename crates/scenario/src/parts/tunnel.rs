//! The file of a tunnel: its interface, its peer, its key, and its retransmissions.

use core::net::{IpAddr, SocketAddr};

use lasthop_proto::describe::{Form, Keys, Need, Value};
use lasthop_proto::link::tulip::{Reliable, WINDOW_MAX};
use lasthop_proto::units::{Rate, Span};

use super::station::{Shared, interface, shared};

/// Source of a tunnel's key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Key {
    /// No key: anyone may read and send.
    None,
    /// From a file.
    File(String),
    /// From an environment variable.
    Environment(String),
}

/// The settings of a tunnel's file.
#[derive(Clone, PartialEq, Debug)]
pub struct TunnelFile {
    /// Name of the interface.
    pub tun: String,
    /// Its addresses, as `10.8.0.1/24`.
    pub addresses: Vec<String>,
    /// Address for incoming datagrams.
    pub listen: SocketAddr,
    /// Peer to call; without one the other end must call.
    pub peer: Option<SocketAddr>,
    /// Whether it accepts calls of the other end. An end with a peer and without a listening address only calls.
    pub answers: bool,
    /// The key.
    pub key: Key,
    /// Window in packets.
    pub window: u16,
    /// Maximum rate.
    pub rate: Option<Rate>,
    /// Largest propagation delay, to replace the handshake's round trip.
    pub delay: Option<Span>,
    /// Packets that are retransmitted until they arrive; `None` retransmits none.
    pub reliable: Option<Reliable>,
    /// Interval of keep-alive messages of an idle end.
    pub keep_alive: Span,
    /// Silence after which a peer counts as gone.
    pub dead_after: Span,
    /// Queue capacity in packets.
    pub queue: usize,
    /// Longest inner packet; `None` probes the path.
    pub mtu: Option<u16>,
    /// The control socket of `lasthop ctl`, if the file has one.
    pub socket: Option<String>,
    /// Address for Prometheus, if any.
    pub metrics: Option<SocketAddr>,
}

/// Visits the keys of a tunnel.
pub(crate) fn keys(k: &mut Keys<'_>) -> TunnelFile {
    let need = Need::Else("`lasthop0`");
    let tun = interface(k, "tun", need, "the name of its interface");
    let tun = if tun.is_empty() { "lasthop0".to_owned() } else { tun };
    let addresses = addresses(k);
    let description = "the address and port where it listens";
    let listen = address(k, "listen", "\"0.0.0.0:4747\"", description);
    let peer = address(
        k,
        "peer",
        "\"198.51.100.7:4747\"",
        "the address and port of the other end; without it, the other end must connect",
    );
    if listen.is_none() && peer.is_none() {
        k.missing("listen", "an address and port to listen at, or `peer`", "\"0.0.0.0:4747\"");
    }
    let answers = listen.is_some();
    let any = |peer: SocketAddr| match peer {
        SocketAddr::V4(_) => SocketAddr::from(([0, 0, 0, 0], 0)),
        SocketAddr::V6(_) => SocketAddr::from(([0_u16; 8], 0)),
    };
    let listen = listen.or(peer.map(any)).unwrap_or(SocketAddr::from(([0, 0, 0, 0], 0)));
    if peer.is_some_and(|peer| peer.is_ipv4() != listen.is_ipv4()) {
        let message = "`listen` and `peer` are of two families";
        let help = "give both in IPv4, `listen = \"0.0.0.0:4747\"`, or both in IPv6, `listen = \"[::]:4747\"`";
        k.refuse("listen", message, "two families", help);
    }
    let key = key(k);
    let mut file = TunnelFile {
        tun,
        addresses,
        listen,
        peer,
        answers,
        key,
        window: 256,
        rate: None,
        delay: None,
        reliable: Some(Reliable::Tcp),
        keep_alive: Span::millis(800),
        dead_after: Span::secs(15),
        queue: 256,
        mtu: None,
        socket: None,
        metrics: None,
    };
    k.count("window", &mut file.window, 1..=u64::from(WINDOW_MAX), "packets in flight");
    k.maybe_rate("rate", &mut file.rate, "the maximum rate of sending");
    let description =
        "the largest propagation delay; by default it follows from the handshake's round trip";
    k.maybe("delay", &mut file.delay, Span::ZERO..=Span(u64::MAX), description);
    let rules = [("tcp", Some(Reliable::Tcp)), ("all", Some(Reliable::All)), ("none", None)];
    let description =
        "packets that are retransmitted: TCP with payload, also other long packets (QUIC), or none";
    k.word("reliable", &mut file.reliable, &rules, description);
    let description = "the interval of keep-alive messages of an idle end";
    k.within("keep-alive", &mut file.keep_alive, Span::millis(50)..=Span::secs(60), description);
    let silent = Span::millis(150)..=Span::secs(600);
    let description = "the silence after which the peer counts as gone";
    k.within("dead-after", &mut file.dead_after, silent, description);
    k.count("queue", &mut file.queue, 1..=100_000, "the maximum number of waiting packets");
    k.maybe_count(
        "mtu",
        &mut file.mtu,
        576..=9000,
        "the longest inner packet; by default it follows from the path",
    );
    let Shared { socket, metrics } = shared(k);
    TunnelFile { socket, metrics, ..file }
}

fn address(
    k: &mut Keys<'_>,
    key: &'static str,
    example: &'static str,
    description: &'static str,
) -> Option<SocketAddr> {
    let value = k.value(key, Form::Text(example), Need::Else(""), Value::Absent, description);
    let Value::Text(word) = value else { return None };
    let address = word.parse().ok();
    if address.is_none() {
        let help = format!("for example `{key} = {example}`; names are not looked up");
        let message = format!("`{word}` is not an address with a port");
        k.refuse(key, message, "expected ADDRESS:PORT", help);
    }
    address
}

fn addresses(k: &mut Keys<'_>) -> Vec<String> {
    const EXAMPLE: &str = "[\"10.8.0.1/24\", \"fd08::1/64\"]";
    let (need, description) =
        (Need::Else("none"), "addresses of its interface, each with its prefix length");
    let value = k.value("addresses", Form::Texts(EXAMPLE), need, Value::Absent, description);
    let Value::Texts(addresses) = value else { return Vec::new() };
    let fits = |word: &&String| {
        let (ip, len) = word.split_once('/').unwrap_or((word, ""));
        let ip = ip.parse::<IpAddr>().ok();
        let most = if ip.is_some_and(|ip| ip.is_ipv4()) { 32 } else { 128 };
        ip.is_some() && len.parse::<u8>().is_ok_and(|len| len <= most)
    };
    if let Some(word) = addresses.iter().find(|word| !fits(word)) {
        let message = format!("`{word}` is not an address with a prefix length");
        let help = format!("for example `addresses = {EXAMPLE}`");
        k.refuse("addresses", message, "expected a list of addresses", help);
    }
    addresses
}

fn key(k: &mut Keys<'_>) -> Key {
    let mut text = |key, example, description| match k.value(
        key,
        Form::Text(example),
        Need::Else("no key"),
        Value::Absent,
        description,
    ) {
        Value::Text(text) => Some(text),
        _ => None,
    };
    let file = text("key-file", "\"/etc/lasthop/link.key\"", "a file with the key");
    let name = text("key-env", "\"LASTHOP_KEY\"", "an environment variable with the key");
    match (file, name) {
        (None, None) => Key::None,
        (Some(path), None) => Key::File(path),
        (None, Some(name)) => Key::Environment(name),
        (Some(path), Some(_)) => {
            let message = "the key is given twice";
            k.refuse("key-env", message, "the second one", "leave out `key-file` or `key-env`");
            Key::File(path)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Error, parse_tunnel};

    #[test]
    fn a_minimal_tunnel_file_has_defaults() {
        let file =
            parse_tunnel("peer = \"192.0.2.1:4747\"\naddresses = [\"10.8.0.2/24\"]").unwrap();
        assert_eq!((file.tun.as_str(), file.window, file.queue), ("lasthop0", 256, 256));
        assert_eq!(file.listen, SocketAddr::from(([0, 0, 0, 0], 0)));
        assert_eq!((file.key, file.reliable), (Key::None, Some(Reliable::Tcp)));
    }

    #[test]
    fn an_invalid_key_is_reported_with_a_remedy() {
        for (text, key) in [
            ("", "listen"),
            ("listen = \"nowhere\"", "listen"),
            ("listen = \"0.0.0.0:1\"\npeer = \"[::1]:2\"", "listen"),
            ("listen = \"0.0.0.0:1\"\naddresses = [\"10.0.0.1\"]", "addresses"),
            ("listen = \"0.0.0.0:1\"\naddresses = [\"10.0.0.1/33\"]", "addresses"),
            ("listen = \"0.0.0.0:1\"\naddresses = \"10.0.0.1/24\"", "addresses"),
            ("listen = \"0.0.0.0:1\"\nreliable = \"some\"", "reliable"),
            ("listen = \"0.0.0.0:1\"\nwindow = 5000", "window"),
            ("listen = \"0.0.0.0:1\"\ntun = \"a/b\"", "tun"),
            ("listen = \"0.0.0.0:1\"\nkey-file = \"a\"\nkey-env = \"b\"", "key-env"),
            ("listen = \"0.0.0.0:1\"\npears = 1", "pears"),
        ] {
            let Error(found) = parse_tunnel(text).unwrap_err();
            assert_eq!(found.key, key, "{text}");
            assert!(!found.help.is_empty(), "{text}");
        }
    }
}
