//! The file of a tunnel: its interface, its peer, its key, and how it repairs.

use core::net::{IpAddr, SocketAddr};

use lasthop_proto::link::tulip::{Reliable, WINDOW_MAX};
use lasthop_proto::units::{Rate, Span};

use super::station::{interface, metrics, socket};
use crate::document::Table;
use crate::error::{Code, Diagnostic, Error};
use crate::read::Reader;
use crate::schema;

/// Where the key of a tunnel comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Key {
    /// Nowhere: anybody may read and speak.
    None,
    /// From a file.
    File(String),
    /// From an environment variable.
    Environment(String),
}

/// What a tunnel's file asks for.
#[derive(Clone, PartialEq, Debug)]
pub struct LinkFile {
    /// Name of the interface.
    pub tun: String,
    /// Its addresses, as `10.8.0.1/24`.
    pub addresses: Vec<String>,
    /// Where to wait for datagrams.
    pub listen: SocketAddr,
    /// Whom to call; without it the other end has to.
    pub peer: Option<SocketAddr>,
    /// The key.
    pub key: Key,
    /// Window in packets.
    pub window: u16,
    /// At most so much is sent.
    pub rate: Option<Rate>,
    /// Largest propagation delay, if the handshake's round trip is not to be believed.
    pub delay: Option<Span>,
    /// Which packets are repeated until they arrive; nothing where none is.
    pub reliable: Option<Reliable>,
    /// How often an idle end says that it is alive.
    pub keep_alive: Span,
    /// When a silent peer counts as gone.
    pub dead_after: Span,
    /// Packets that may wait.
    pub queue: usize,
    /// Longest inner packet, if it is not to follow from the path.
    pub mtu: Option<u16>,
    /// Where to listen for `lasthop ctl`, if the file says so.
    pub socket: Option<String>,
    /// Where to answer Prometheus, if at all.
    pub metrics: Option<SocketAddr>,
}

/// Builds what the document of a tunnel's file asks for.
pub(crate) fn link(document: &Table) -> Result<LinkFile, Error> {
    let file = Reader::top(document, "tunnel's file", schema::TUNNEL)?;
    let tun =
        if file.has("tun") { interface(&file, "tun", "\"lasthop0\"")? } else { "lasthop0".into() };
    let peer = address(&file, "peer", "198.51.100.7:4747")?;
    let listen = address(&file, "listen", "0.0.0.0:4747")?;
    if listen.is_none() && peer.is_none() {
        return Err(file.missing(
            "listen",
            "an address and port to wait at, or `peer`",
            "\"0.0.0.0:4747\"",
        ));
    }
    let any = |peer: SocketAddr| match peer {
        SocketAddr::V4(_) => SocketAddr::from(([0, 0, 0, 0], 0)),
        SocketAddr::V6(_) => SocketAddr::from(([0_u16; 8], 0)),
    };
    let listen = listen.or(peer.map(any)).unwrap_or(SocketAddr::from(([0, 0, 0, 0], 0)));
    if peer.is_some_and(|peer| peer.is_ipv4() != listen.is_ipv4()) {
        return Err(bad(
            &file,
            "listen",
            "`listen` and `peer` are of two families",
            "two families",
            "give both in IPv4, `listen = \"0.0.0.0:4747\"`, or both in IPv6, `listen = \"[::]:4747\"`",
        ));
    }
    let keep_alive = file.within("keep-alive", Span::secs(3), Span::millis(50)..=Span::secs(60))?;
    let dead_after =
        file.within("dead-after", Span::secs(15), Span::millis(150)..=Span::secs(600))?;
    Ok(LinkFile {
        tun,
        addresses: addresses(&file)?,
        listen,
        peer,
        key: key(&file)?,
        window: file.within("window", 256_u64, 1..=u64::from(WINDOW_MAX))? as u16,
        rate: file.optional("rate")?,
        delay: file.optional("delay")?,
        reliable: reliable(&file)?,
        keep_alive,
        dead_after,
        queue: file.within("queue", 256_u64, 1..=100_000)? as usize,
        mtu: match file.has("mtu") {
            true => Some(file.within("mtu", 1280_u64, 576..=9000)? as u16),
            false => None,
        },
        socket: socket(&file)?,
        metrics: metrics(&file)?,
    })
}

fn bad(file: &Reader<'_>, key: &str, message: impl Into<String>, label: &str, help: &str) -> Error {
    Diagnostic::new(Code::BadValue, key, &file.place(key))
        .message(message.into())
        .label(label)
        .help(help.to_owned())
        .into()
}

fn address(file: &Reader<'_>, key: &str, example: &str) -> Result<Option<SocketAddr>, Error> {
    let Some(word) = file.optional::<String>(key)? else { return Ok(None) };
    match word.parse() {
        Ok(address) => Ok(Some(address)),
        Err(_) => {
            let help = format!("for example `{key} = \"{example}\"`; names are not looked up");
            let message = format!("`{word}` is not an address with a port");
            Err(bad(file, key, message, "expected ADDRESS:PORT", &help))
        }
    }
}

fn addresses(file: &Reader<'_>) -> Result<Vec<String>, Error> {
    let Some(node) = file.node("addresses") else { return Ok(Vec::new()) };
    let help = "for example `addresses = [\"10.8.0.1/24\", \"fd08::1/64\"]`";
    let wrong = |what: String| bad(file, "addresses", what, "expected a list of addresses", help);
    let items = node.as_array().ok_or_else(|| wrong(format!("`addresses` is {}", node.kind())))?;
    let items = items.iter().map(|item| {
        let word = item.as_str().unwrap_or_default();
        let (ip, len) = word.split_once('/').unwrap_or((word, ""));
        let ip = ip.parse::<IpAddr>().ok();
        let most = if ip.is_some_and(|ip| ip.is_ipv4()) { 32 } else { 128 };
        let fits = ip.is_some() && len.parse::<u8>().is_ok_and(|len| len <= most);
        if fits {
            Ok(word.to_owned())
        } else {
            Err(wrong(format!("`{word}` is no address with the length of its network")))
        }
    });
    items.collect()
}

fn key(file: &Reader<'_>) -> Result<Key, Error> {
    match (file.optional("key-file")?, file.optional("key-env")?) {
        (None, None) => Ok(Key::None),
        (Some(path), None) => Ok(Key::File(path)),
        (None, Some(name)) => Ok(Key::Environment(name)),
        (Some(_), Some(_)) => Err(bad(
            file,
            "key-env",
            "the key comes from two places",
            "the second one",
            "keep `key-file` or `key-env`",
        )),
    }
}

fn reliable(file: &Reader<'_>) -> Result<Option<Reliable>, Error> {
    match file.optional::<String>("reliable")?.as_deref() {
        None | Some("tcp") => Ok(Some(Reliable::Tcp)),
        Some("all") => Ok(Some(Reliable::All)),
        Some("none") => Ok(None),
        Some(other) => Err(bad(
            file,
            "reliable",
            format!("`{other}` is no rule for what is repeated"),
            "expected `tcp`, `all` or `none`",
            "`tcp` repeats TCP with payload, `all` also other long packets (QUIC): `reliable = \"all\"`",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_link;

    #[test]
    fn a_short_file_is_enough() {
        let file = parse_link("peer = \"192.0.2.1:4747\"\naddresses = [\"10.8.0.2/24\"]").unwrap();
        assert_eq!((file.tun.as_str(), file.window, file.queue), ("lasthop0", 256, 256));
        assert_eq!(file.listen, SocketAddr::from(([0, 0, 0, 0], 0)));
        assert_eq!((file.key, file.reliable), (Key::None, Some(Reliable::Tcp)));
    }

    #[test]
    fn what_is_wrong_is_told() {
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
            let Error(found) = parse_link(text).unwrap_err();
            assert_eq!(found.key, key, "{text}");
            assert!(!found.help.is_empty(), "{text}");
        }
    }
}
