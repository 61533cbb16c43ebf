//! Hosts of a testbed and their specifications.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::OwnedFd;

use lasthop_scenario::HostSide;
use lasthop_scenario::model::{KernelKnob, KernelSetting};
use serde::{Deserialize, Serialize};

use super::error::Error;
use super::preset::Preset;

/// The side of the base station that a host is connected to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The wired side.
    Left,
    /// The wireless side.
    Right,
}

impl From<HostSide> for Side {
    fn from(side: HostSide) -> Side {
        match side {
            HostSide::Left => Side::Left,
            HostSide::Right => Side::Right,
        }
    }
}

/// Specification of a host.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct HostSpec {
    /// Name of its namespace, of the base station's end of its cable, and in /etc/hosts.
    pub name: String,
    /// Side of the base station.
    pub side: Side,
    /// IPv4 address.
    pub v4: Option<Ipv4Addr>,
    /// IPv6 address; ignored if the kernel has no IPv6.
    pub v6: Option<Ipv6Addr>,
    /// MTU of its cable, bytes.
    pub mtu: u32,
    /// Preset of its TCP; `None` for the kernel's defaults.
    pub preset: Option<Preset>,
    /// Sysctls below `net.ipv4` with values that override the preset.
    pub sysctls: Vec<(String, String)>,
    /// Attributes of its default routes that override the preset.
    pub route: Vec<(String, String)>,
    /// Congestion control that overrides the preset.
    pub congestion: Option<String>,
    /// Whether the kernel is its TCP. A host with lasthop's TCP has addresses in the other hosts'
    /// neighbour tables, but no namespace and no cable.
    pub kernel: bool,
}

impl HostSpec {
    /// A host with the kernel's default TCP on an Ethernet with an MTU of 1500 bytes.
    pub fn new(name: &str, side: Side, address: IpAddr) -> HostSpec {
        let (v4, v6) = match address {
            IpAddr::V4(v4) => (Some(v4), None),
            IpAddr::V6(v6) => (None, Some(v6)),
        };
        HostSpec {
            name: name.to_owned(),
            side,
            v4,
            v6,
            mtu: 1500,
            preset: None,
            sysctls: Vec::new(),
            route: Vec::new(),
            congestion: None,
            kernel: true,
        }
    }

    /// Sets the IPv6 address.
    pub fn v6(mut self, address: Ipv6Addr) -> HostSpec {
        self.v6 = Some(address);
        self
    }

    /// Sets the preset.
    pub fn preset(mut self, preset: Preset) -> HostSpec {
        self.preset = Some(preset);
        self
    }

    /// Overrides one setting of the preset.
    pub fn setting(mut self, setting: &KernelSetting) -> HostSpec {
        let pair = (setting.key.to_owned(), setting.value.clone());
        match setting.knob {
            KernelKnob::Sysctl => self.sysctls.push(pair),
            KernelKnob::Route => self.route.push(pair),
            KernelKnob::Congestion => self.congestion = Some(pair.1),
        }
        self
    }

    /// Replaces the kernel's TCP by lasthop's.
    pub fn without_kernel(mut self) -> HostSpec {
        self.kernel = false;
        self
    }

    pub(super) fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.v4.map(IpAddr::V4).into_iter().chain(self.v6.map(IpAddr::V6))
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let HostSpec { name, mtu, .. } = self;
        if !is_host_name(name) {
            return Err(Error::new(
                format!("`{name}` cannot be a host of a testbed"),
                "its name is that of an interface and a file: 1 to 15 of a-z, A-Z, 0-9, `-` and `_`, a letter \
                 first, and not `lo`, `all`, `default` or `eth0`, for example `laptop`",
            ));
        }
        if self.addresses().next().is_none() {
            return Err(Error::new(
                format!("host `{name}` has no address"),
                "give it one, for example 10.0.0.1",
            ));
        }
        // Minimum MTU: 1280 bytes for IPv6 (RFC 8200 section 5), 68 for IPv4 (RFC 791). Maximum: the longest
        // packet, 65535.
        let least = if self.v6.is_some() { 1280 } else { 68 };
        if !(least..=65_535).contains(mtu) {
            return Err(Error::new(
                format!("host `{name}` has an MTU of {mtu} bytes"),
                format!("from {least} to 65535 bytes is possible; an Ethernet has 1500"),
            ));
        }
        Ok(())
    }
}

/// Whether `name` is a valid name of a host or base station. It names an interface, which limits its length,
/// a file, and a directory in /proc/sys.
pub fn is_host_name(name: &str) -> bool {
    name.len() <= 15
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
        && !["lo", "all", "default", "eth0"].contains(&name)
}

/// An Ethernet address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String")]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// The address of the host at this position: equal in every testbed, so that captures are comparable.
    /// Locally administered; the second and third byte spell `lh`.
    pub fn host(position: u16) -> Mac {
        let [high, low] = position.to_be_bytes();
        Mac([0x02, b'l', b'h', 0, high, low])
    }

    /// The address of the base station's end of that host's cable.
    pub fn station(position: u16) -> Mac {
        let [high, low] = position.to_be_bytes();
        Mac([0x02, b'l', b'h', 1, high, low])
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<Mac> for String {
    fn from(mac: Mac) -> String {
        mac.to_string()
    }
}

/// A host of the testbed.
#[derive(Debug)]
pub struct TestbedHost {
    pub(super) spec: HostSpec,
    pub(super) mac: Mac,
    pub(super) station_mac: Mac,
    /// Its namespace; `None` for a host without kernel.
    pub(super) namespace: Option<OwnedFd>,
}

impl TestbedHost {
    /// Its specification.
    pub fn spec(&self) -> &HostSpec {
        &self.spec
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// Its Ethernet address, the destination of frames for the host.
    pub fn mac(&self) -> Mac {
        self.mac
    }

    /// The Ethernet address of the base station's end of its cable. No host sends frames there.
    pub fn station_mac(&self) -> Mac {
        self.station_mac
    }

    /// The interface in the base station's namespace at the other end of its cable; `None` for a host without
    /// kernel.
    pub fn station_interface(&self) -> Option<&str> {
        self.spec.kernel.then_some(self.spec.name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_plain_words() {
        for good in ["ravel", "a", "host-2", "Fixed_1", "abcdefghijklmno"] {
            assert!(is_host_name(good), "{good}");
        }
        for bad in [
            "",
            "lo",
            "eth0",
            "all",
            "default",
            "abcdefghijklmnop",
            "2nd",
            "-x",
            "a/b",
            "..",
            "a b",
            "ä",
            "a\n",
            "a;b",
        ] {
            assert!(!is_host_name(bad), "{bad:?}");
        }
    }

    #[test]
    fn an_ethernet_address_is_a_function_of_the_position() {
        assert_eq!(Mac::host(0).to_string(), "02:6c:68:00:00:00");
        assert_eq!(Mac::host(258).to_string(), "02:6c:68:00:01:02");
        assert_eq!(Mac::station(3).to_string(), "02:6c:68:01:00:03");
        let written = serde_json::to_string(&Mac::host(258)).expect("written");
        assert_eq!(written, r#""02:6c:68:00:01:02""#);
    }

    /// Bounds: 68 bytes (RFC 791), 1280 bytes (RFC 8200), 65535 bytes.
    #[test]
    fn a_host_needs_an_address_and_an_mtu_that_its_ip_allows() {
        let v4: IpAddr = "10.0.0.1".parse().unwrap();
        let v6: Ipv6Addr = "fd00::1".parse().unwrap();
        let plain = || HostSpec::new("h", Side::Right, v4);
        assert_eq!((plain().mtu, plain().kernel, plain().side), (1500, true, Side::Right));
        assert!(!plain().without_kernel().kernel);
        let only_v6 = || HostSpec::new("h", Side::Left, v6.into());
        assert_eq!(only_v6().addresses().collect::<Vec<_>>(), [IpAddr::from(v6)]);
        assert_eq!(plain().v6(v6).addresses().collect::<Vec<_>>(), [v4, v6.into()]);
        for (spec, least) in [(plain(), 68), (only_v6(), 1280), (plain().v6(v6), 1280)] {
            for (mtu, good) in [(least - 1, false), (least, true), (65_535, true), (65_536, false)]
            {
                let checked = HostSpec { mtu, ..spec.clone() }.check();
                assert_eq!(checked.is_ok(), good, "{mtu} of {spec:?}");
                let help = checked.err().map(|error| error.help).unwrap_or_default();
                assert!(good || help.starts_with(&format!("from {least} to 65535")), "{help}");
            }
        }
        let nowhere = HostSpec { v4: None, ..plain() }.check().unwrap_err();
        assert_eq!(nowhere.message, "host `h` has no address");
        let unnamed = HostSpec { name: "eth0".to_owned(), ..plain() }.check().unwrap_err();
        assert_eq!(unnamed.message, "`eth0` cannot be a host of a testbed");
    }
}
