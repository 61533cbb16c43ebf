//! Addresses and errors of end points, for `send` and `discard`.

pub mod shown;

use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::str::FromStr;

use lasthop_live::endpoint::{DEFAULT_PORT, EndpointError};

use crate::failure::Failure;

/// A host and a port, as `HOST`, `HOST:PORT`, `ADDRESS` or `[ADDRESS]:PORT`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Destination {
    /// A name or an address.
    pub host: String,
    pub port: u16,
}

impl FromStr for Destination {
    type Err = String;

    fn from_str(word: &str) -> Result<Destination, String> {
        let wrong = |message: &str| {
            Err(format!("{message}; expected HOST or HOST:PORT, such as `laptop` or `[::1]:9`"))
        };
        let word = word.trim();
        if let Some((scheme, rest)) = word.split_once("://") {
            let host = rest.split('/').next().unwrap_or_default();
            return Err(format!(
                "this is an address of the web; leave out `{scheme}://` and the path: `{host}`"
            ));
        }
        let (host, port) = if let Some(rest) = word.strip_prefix('[') {
            match rest.split_once(']') {
                Some((host, "")) => (host, None),
                Some((host, port)) => match port.strip_prefix(':') {
                    Some(port) => (host, Some(port)),
                    None => return wrong("something else than a port follows `]`"),
                },
                None => return wrong("`[` without `]`"),
            }
        } else if word.parse::<IpAddr>().is_ok() {
            (word, None)
        } else {
            match word.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (word, None),
            }
        };
        if host.is_empty() || host.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return wrong("there is no host");
        }
        let port = match port.map(str::parse) {
            None => DEFAULT_PORT,
            Some(Ok(port)) if port > 0 => port,
            Some(_) => return wrong("the port is not a number from 1 to 65535"),
        };
        Ok(Destination { host: host.to_owned(), port })
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Permitted address families.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// All addresses of the name.
    Any,
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Destination {
    /// Its addresses, in the order of preference.
    pub fn addresses(&self, family: Family) -> Result<Vec<SocketAddr>, Failure> {
        let found = (self.host.as_str(), self.port).to_socket_addrs().map_err(|error| {
            Failure::input(
                format!("cannot find `{}`: {error}", self.host),
                "is it spelled right? An address works without a name server, for example 192.0.2.1",
            )
        })?;
        let fits = |address: &SocketAddr| match family {
            Family::Any => true,
            Family::V4 => address.is_ipv4(),
            Family::V6 => address.is_ipv6(),
        };
        let addresses: Vec<_> = found.filter(fits).collect();
        if addresses.is_empty() {
            let (has, give) = if family == Family::V4 { ("IPv4", "-4") } else { ("IPv6", "-6") };
            return Err(Failure::input(
                format!("`{}` has no {has} address", self.host),
                format!("leave out {give}"),
            ));
        }
        Ok(addresses)
    }
}

impl From<EndpointError> for Failure {
    fn from(error: EndpointError) -> Failure {
        Failure::input(error.to_string(), error.help())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_as_people_write_them() {
        for (word, host, port) in [
            ("laptop", "laptop", DEFAULT_PORT),
            (" laptop:9 ", "laptop", 9),
            ("10.0.0.1:80", "10.0.0.1", 80),
            ("::1", "::1", DEFAULT_PORT),
            ("[::1]", "::1", DEFAULT_PORT),
            ("[fe80::1%eth0]:7", "fe80::1%eth0", 7),
        ] {
            let destination: Destination = word.parse().expect(word);
            assert_eq!((destination.host.as_str(), destination.port), (host, port), "{word}");
            assert_eq!(destination.to_string().parse(), Ok(destination), "{word}");
        }
        for word in
            ["", ":9", "laptop:", "laptop:0", "laptop:65536", "a b", "[::1", "[::1]9", "a:b:c"]
        {
            assert!(word.parse::<Destination>().is_err(), "{word}");
        }
    }
}
