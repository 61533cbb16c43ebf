//! Network interfaces and their properties that disturb a station. This module changes no settings.

use std::fmt;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::Path;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::{if_nameindex, if_nametoindex};

use crate::login;
use crate::sys::ethtool::large_receive_offload;

/// The names of all interfaces.
pub fn names() -> Vec<String> {
    let Ok(all) = if_nameindex() else { return Vec::new() };
    all.iter().map(|interface| interface.name().to_string_lossy().into_owned()).collect()
}

/// The index of an interface.
///
/// # Errors
/// `NotFound`, with the names of the existing interfaces.
pub fn index(name: &str) -> io::Result<u32> {
    if_nametoindex(name).map_err(|_| {
        let message = format!("there is no interface `{name}`; there are {}", names().join(", "));
        io::Error::new(io::ErrorKind::NotFound, message)
    })
}

/// Properties of the interface that would disturb a station, each with its remedy.
pub fn warnings(name: &str) -> Vec<String> {
    let mut found = Vec::new();
    if large_receive_offload(name) == Some(true) {
        found.push(format!(
            "{name} merges packets that it receives (LRO), so it hides single packets; \
             turn it off: `ethtool -K {name} lro off`"
        ));
    }
    let addresses = addresses(name);
    if !addresses.is_empty() {
        found.push(own_addresses(name, &addresses, login::address()));
    }
    let device = Path::new("/sys/class/net").join(name);
    if device.join("brport").exists() {
        let bridge = fs::read_link(device.join("master")).ok();
        let bridge = bridge.as_deref().and_then(Path::file_name).unwrap_or_default();
        let bridge = bridge.to_string_lossy();
        found.push(format!(
            "{name} is a port of the bridge {bridge}: packets would pass twice; a login through the bridge ends \
             when the port leaves it, so plan the way back first: `systemd-run --on-active=5min ip link set \
             {name} master {bridge}`, then `ip link set {name} nomaster`"
        ));
    }
    found
}

/// The warning about addresses on an interface, with commands to move them. They do not lock an operator out
/// for long: they save the routes, set a timer that restores everything, and delete each address separately.
fn own_addresses(name: &str, addresses: &[Address], login: Option<IpAddr>) -> String {
    let shown: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    let each = |verb: &str| {
        let all = addresses.iter().map(|address| format!("ip address {verb} {address} dev {name}"));
        all.collect::<Vec<_>>().join("; ")
    };
    let message = format!(
        "{name} has addresses ({}): the kernel answers and routes packets to them, and packets may pass \
         twice",
        shown.join(", ")
    );
    let (message, first) = match login.filter(|login| addresses.iter().any(|a| a.ip == *login)) {
        Some(login) => (
            format!("{message}. YOUR SSH LOGIN COMES IN BY {login}: without it you are locked out"),
            "log in by another interface or a console, or take an interface without addresses. ",
        ),
        None => (message, ""),
    };
    format!(
        "{message}; {first}Plan the way back, then delete: `ip route save >/run/lasthop.routes; systemd-run --on-active=5min \
         sh -c '{}; ip route restore </run/lasthop.routes'`, then `{}`. If all is well, `systemctl list-timers` names the \
         timer to stop. docs/how-to/operators.md shows where a router's address goes",
        each("add"),
        each("del"),
    )
}

/// An address with its prefix length.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Address {
    ip: IpAddr,
    prefix: u32,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.ip, self.prefix)
    }
}

/// Addresses that remote hosts may use; link-local ones are excluded, since every interface has one.
fn addresses(name: &str) -> Vec<Address> {
    let Ok(all) = getifaddrs() else { return Vec::new() };
    all.filter(|interface| interface.interface_name == name)
        .filter_map(|interface| {
            let (address, mask) = (interface.address?, interface.netmask?);
            if let (Some(v4), Some(mask)) = (address.as_sockaddr_in(), mask.as_sockaddr_in()) {
                return Some(Address {
                    ip: v4.ip().into(),
                    prefix: mask.ip().to_bits().count_ones(),
                });
            }
            let (v6, mask) = (address.as_sockaddr_in6()?.ip(), mask.as_sockaddr_in6()?.ip());
            let address = Address { ip: v6.into(), prefix: mask.to_bits().count_ones() };
            (!v6.is_unicast_link_local()).then_some(address)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_interface_is_answered_with_those_that_exist() {
        let error = index("no-such-thing").unwrap_err().to_string();
        assert!(error.contains("there are") && error.contains("lo"), "{error}");
        assert!(names().contains(&"lo".to_owned()));
    }

    /// The loopback interface has addresses and no other disturbing property.
    #[test]
    fn addresses_of_its_own_are_warned_about() {
        let own: Vec<String> = addresses("lo").iter().map(Address::to_string).collect();
        assert!(
            own.iter().all(|address| address == "127.0.0.1/8" || address == "::1/128"),
            "{own:?}"
        );
        let found = warnings("lo");
        assert_eq!(found.len(), usize::from(!own.is_empty()), "{found:?}");
        for warning in found {
            let expected = format!("lo has addresses ({})", own.join(", "));
            assert!(warning.starts_with(&expected), "{warning}");
        }
        assert_eq!(warnings("no-such-thing"), [""; 0]);
        assert!(index("lo").unwrap() > 0);
    }

    #[test]
    fn an_address_is_deleted_alone_and_after_the_way_back_is_planned() {
        let own = ["10.5.0.1/24", "10.5.0.2/24"].map(|text| {
            let (ip, prefix) = text.split_once('/').unwrap();
            Address { ip: ip.parse().unwrap(), prefix: prefix.parse().unwrap() }
        });
        let text = own_addresses("eth0", &own, None);
        assert!(!text.contains("flush") && !text.contains("SSH"), "{text}");
        let [back, away] =
            ["ip address add 10.5.0.2/24 dev eth0", "ip address del 10.5.0.1/24 dev eth0"]
                .map(|command| text.find(command).unwrap_or_else(|| panic!("{command}: {text}")));
        assert!(back < away && text.contains("systemd-run --on-active=5min"), "{text}");
        let text = own_addresses("eth0", &own, Some(own[1].ip));
        assert!(text.contains("YOUR SSH LOGIN COMES IN BY 10.5.0.2"), "{text}");
        assert!(!own_addresses("eth0", &own, "10.9.9.9".parse().ok()).contains("SSH"));
    }
}
