//! Network interfaces: which there are, and what about them would disturb a station. Nothing is ever set.

use std::fs;
use std::io;
use std::path::Path;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::{if_nameindex, if_nametoindex};

use crate::sys::ethtool::large_receive_offload;

/// The names of all interfaces.
pub fn names() -> Vec<String> {
    let Ok(all) = if_nameindex() else { return Vec::new() };
    all.iter().map(|interface| interface.name().to_string_lossy().into_owned()).collect()
}

/// The index of an interface.
///
/// # Errors
/// `NotFound`, with the names of those that there are.
pub fn index(name: &str) -> io::Result<u32> {
    if_nametoindex(name).map_err(|_| {
        let message = format!("there is no interface `{name}`; there are {}", names().join(", "));
        io::Error::new(io::ErrorKind::NotFound, message)
    })
}

/// What about this interface would disturb a station, each with its remedy.
pub fn warnings(name: &str) -> Vec<String> {
    let mut found = Vec::new();
    if large_receive_offload(name) == Some(true) {
        found.push(format!(
            "{name} merges packets that it receives (LRO), so that single ones cannot be told apart; \
             turn it off: `ethtool -K {name} lro off`"
        ));
    }
    let addresses = addresses(name);
    if !addresses.is_empty() {
        found.push(format!(
            "{name} has addresses of its own ({}): the kernel answers and routes what is meant for them, and \
             packets may pass twice; give them to another interface: `ip address flush dev {name}`",
            addresses.join(", ")
        ));
    }
    let device = Path::new("/sys/class/net").join(name);
    if device.join("brport").exists() {
        let bridge = fs::read_link(device.join("master")).ok();
        let bridge = bridge.as_deref().and_then(Path::file_name).unwrap_or_default();
        found.push(format!(
            "{name} is a port of the bridge {}: packets would pass twice; take it out: \
             `ip link set {name} nomaster`",
            bridge.to_string_lossy()
        ));
    }
    found
}

/// Addresses that hosts elsewhere may send to; every interface has a link-local one.
fn addresses(name: &str) -> Vec<String> {
    let Ok(all) = getifaddrs() else { return Vec::new() };
    all.filter(|interface| interface.interface_name == name)
        .filter_map(|interface| {
            let address = interface.address?;
            if let Some(v4) = address.as_sockaddr_in() {
                return Some(v4.ip().to_string());
            }
            let v6 = address.as_sockaddr_in6()?.ip();
            (!v6.is_unicast_link_local()).then(|| v6.to_string())
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

    /// The loopback interface has addresses, and nothing else that would disturb.
    #[test]
    fn addresses_of_its_own_are_warned_about() {
        let own = addresses("lo");
        assert!(own.iter().all(|address| address == "127.0.0.1" || address == "::1"), "{own:?}");
        let found = warnings("lo");
        assert_eq!(found.len(), usize::from(!own.is_empty()), "{found:?}");
        for warning in found {
            let wanted = format!("lo has addresses of its own ({})", own.join(", "));
            assert!(warning.starts_with(&wanted), "{warning}");
            assert!(warning.ends_with("`ip address flush dev lo`"), "{warning}");
        }
        assert_eq!(warnings("no-such-thing"), [""; 0]);
        assert!(index("lo").unwrap() > 0);
    }
}
