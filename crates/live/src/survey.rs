//! Checks the requirements of a station's file on this machine, without a start and without changes.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;

use lasthop_proto::agent::Needs;
use lasthop_proto::units::Bytes;
use lasthop_scenario::{PlaneChoice, StationFile};
use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use nix::unistd::{AccessFlags, access};
use serde::Serialize;

use crate::sys::ethtool::{Offload, offload};
use crate::sys::udp_socket;
use crate::{interfaces, owner, plane, service};

/// Numbers of capabilities in linux/capability.h.
const CAP_NET_ADMIN: u32 = 12;
const CAP_NET_RAW: u32 = 13;

/// Receive buffer that a station requests, bytes.
const BUFFER: u64 = 32 << 20;

/// Subject of the finding about the data plane, which is the first one.
const PLANE: &str = "plane";

/// Consequence of packet sockets as the data plane.
const CUTS: &str = "a station that is killed or hangs cuts the link until it is back";

/// Severity of a finding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weight {
    /// The requirement is met.
    Good,
    /// The station would run, but with unexpected behaviour.
    Mind,
    /// The station would not run.
    Fatal,
}

/// One checked requirement.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    /// Subject: an interface, `rights`, `buffers`.
    pub about: String,
    /// Severity.
    pub weight: Weight,
    /// The finding.
    pub found: String,
    /// The remedy; empty if none is needed.
    pub remedy: String,
}

fn finding(about: &str, weight: Weight, found: impl Into<String>, remedy: &str) -> Finding {
    Finding { about: about.to_owned(), weight, found: found.into(), remedy: remedy.to_owned() }
}

/// Findings for a station of `file` on this machine, with its control socket at `socket`.
pub fn survey(file: &StationFile, socket: Option<&Path>) -> Vec<Finding> {
    let mut found = vec![forwards(file)];
    let mut mtus = Vec::new();
    for name in [&file.settings.left, &file.settings.right] {
        interface(name, &mut found);
        found.extend(owned(name));
        mtus.extend(udp_socket::mtu(name));
    }
    if let [left, right] = mtus[..]
        && left != right
    {
        let message = format!(
            "{} takes packets of {left} bytes, {} of {right}",
            file.settings.left, file.settings.right
        );
        let remedy = "longer ones of one side are lost at the other: give both the same MTU, `ip link set dev \
                      NAME mtu N`";
        found.push(finding("mtu", Weight::Mind, message, remedy));
    }
    rights(&mut found);
    memory(file, &mut found);
    places(file, socket, &mut found);
    found
}

fn number(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The finding that another station owns this interface.
fn owned(name: &str) -> Option<Finding> {
    let index = interfaces::index(name).ok()?;
    let owner = owner::owner(index).ok()??;
    let message = format!("has a station already: {owner}");
    let remedy = "stop that station before this one starts: two at one interface would send each frame twice";
    Some(finding(name, Weight::Fatal, message, remedy))
}

fn interface(name: &str, found: &mut Vec<Finding>) {
    if let Err(error) = interfaces::index(name) {
        let remedy = "`ip link` shows the interfaces; `left` and `right` name two of them. A station that runs waits \
                      for an interface that was removed";
        found.push(finding(name, Weight::Fatal, error.to_string(), remedy));
        return;
    }
    let device = format!("/sys/class/net/{name}");
    let flags =
        getifaddrs().ok().and_then(|mut all| all.find(|found| found.interface_name == name));
    let flags = flags.map_or(InterfaceFlags::all(), |interface| interface.flags);
    let before = found.len();
    if !flags.contains(InterfaceFlags::IFF_UP) {
        let remedy = format!("nothing passes until it is up: `ip link set dev {name} up`");
        found.push(finding(name, Weight::Mind, "is down", &remedy));
    } else if !flags.contains(InterfaceFlags::IFF_RUNNING) {
        found.push(finding(name, Weight::Mind, "has no carrier", "is the cable in, the radio on?"));
    }
    // The value of ARPHRD_ETHER.
    if number(&format!("{device}/type")).is_some_and(|kind| kind != 1) {
        let remedy = "a station connects interfaces of Ethernet or of a wireless access point";
        found.push(finding(name, Weight::Fatal, "does not carry Ethernet frames", remedy));
    }
    if Path::new(&device).join("phy80211").exists() {
        let message = "is wireless";
        let remedy =
            "in station mode it sends with its own address only: it must be an access point";
        found.push(finding(name, Weight::Mind, message, remedy));
    }
    found.extend(interfaces::warnings(name).into_iter().map(|warning| {
        let (message, remedy) = warning.split_once("; ").unwrap_or((&warning, ""));
        let message = message.strip_prefix(name).unwrap_or(message).trim_start();
        finding(name, Weight::Mind, message, remedy)
    }));
    let on = [("GRO", Offload::Gro), ("GSO", Offload::Gso), ("TSO", Offload::Tso)];
    let on = on.iter().filter(|(_, kind)| offload(name, *kind).unwrap_or(false));
    let on: Vec<&str> = on.map(|(word, _)| *word).collect();
    if found.len() == before {
        let mtu = udp_socket::mtu(name).unwrap_or(0);
        let offloads = match on[..] {
            [] => "no offloads".to_owned(),
            _ => format!("{} on", on.join(", ")),
        };
        found.push(finding(
            name,
            Weight::Good,
            format!("up, packets of {mtu} bytes; {offloads}"),
            "",
        ));
    }
}

/// Whether this process has a capability.
fn has(capability: u32) -> bool {
    has_in(&fs::read_to_string("/proc/self/status").unwrap_or_default(), capability)
}

/// Whether the status of a process lists the capability as effective.
fn has_in(status: &str, capability: u32) -> bool {
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0);
    bits >> capability & 1 == 1
}

fn rights(found: &mut Vec<Finding>) {
    if has(CAP_NET_RAW) {
        found.push(finding("rights", Weight::Good, "packet sockets may be opened", ""));
    } else {
        let remedy = "run it by the systemd unit, which has the right, or as root: `sudo lasthop station FILE`; \
                      check again as root";
        found.push(finding("rights", Weight::Fatal, "this user has no CAP_NET_RAW", remedy));
    }
    let most = number("/proc/sys/net/core/rmem_max").unwrap_or(0);
    if has(CAP_NET_ADMIN) || most >= BUFFER {
        found.push(finding(
            "buffers",
            Weight::Good,
            format!("receive buffers of {}", Bytes(BUFFER)),
            "",
        ));
    } else {
        let message = format!("receive buffers of {} in place of {}", Bytes(most), Bytes(BUFFER));
        let remedy = "bursts may exceed them and be lost: give it CAP_NET_ADMIN, as the unit has, or \
                      `sysctl -w net.core.rmem_max=33554432 net.core.wmem_max=33554432`";
        found.push(finding("buffers", Weight::Mind, message, remedy));
    }
}

/// The available data plane. The programs are loaded and discarded; none is attached.
fn forwards(file: &StationFile) -> Finding {
    let sockets = |why: &str, remedy| {
        let message = format!("packet sockets forward, {why}: {CUTS}");
        finding(PLANE, Weight::Mind, message, remedy)
    };
    if file.settings.plane == PlaneChoice::Sockets {
        return sockets("as set in the file", "`plane = \"auto\"` lets the kernel forward");
    }
    let everything = service::needs(file) == Needs::Everything;
    match plane::probe() {
        Ok(()) => {
            let message = match everything {
                true => "the kernel forwards by itself only while the station does not run",
                false => "the kernel forwards, with the station and without it",
            };
            finding(PLANE, Weight::Good, message, "")
        }
        Err(refusal) if file.settings.plane == PlaneChoice::Kernel => finding(
            PLANE,
            Weight::Fatal,
            format!("the kernel cannot forward: {refusal}"),
            refusal.remedy(),
        ),
        Err(refusal) => sockets(&format!("since the kernel cannot ({refusal})"), refusal.remedy()),
    }
}

fn memory(file: &StationFile, found: &mut Vec<Finding>) {
    let cache = file.settings.limits.cache;
    let meminfo = fs::read_to_string("/proc/meminfo");
    let Some(available) = meminfo.ok().as_deref().and_then(available) else {
        let message = format!("caches take up to {cache}; the free memory is not known");
        return found.push(finding("memory", Weight::Mind, message, "mount /proc"));
    };
    let message = format!("caches take up to {cache}, of {available} that are free");
    let (weight, remedy) = match cache.0 > available.0 / 2 {
        true => (Weight::Mind, "lower `[limits] cache`"),
        false => (Weight::Good, ""),
    };
    found.push(finding("memory", weight, message, remedy));
}

/// Available memory of /proc/meminfo, rounded down to MiB; `None` if it is unknown.
fn available(meminfo: &str) -> Option<Bytes> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib = line.trim().trim_end_matches(" kB").parse::<u64>().ok()?;
    Some(Bytes(kib >> 10 << 20))
}

/// Checks sockets and directories of the station.
fn places(file: &StationFile, socket: Option<&Path>, found: &mut Vec<Finding>) {
    let runs = socket.filter(|socket| UnixStream::connect(socket).is_ok());
    if let Some(socket) = runs {
        let message = format!("a station listens at {} already", socket.display());
        let remedy =
            "if it is this one, its metrics' port is taken for the same reason: `lasthop ctl get`";
        found.push(finding("control", Weight::Mind, message, remedy));
    } else if let Some(socket) = socket {
        let dir = socket.parent().unwrap_or(Path::new("."));
        let open = fs::metadata(dir).is_ok_and(|found| found.mode() & 0o022 != 0);
        let (weight, remedy) = match open {
            true => (
                Weight::Fatal,
                "others may write to its directory: choose one of your own, `--socket PATH`",
            ),
            false => (Weight::Good, ""),
        };
        found.push(finding("control", weight, format!("{}", socket.display()), remedy));
    }
    if let Some(address) = file.settings.metrics {
        found.push(match TcpListener::bind(address) {
            Ok(_) => finding("metrics", Weight::Good, format!("http://{address}/metrics"), ""),
            Err(error) => {
                let weight = if runs.is_some() { Weight::Mind } else { Weight::Fatal };
                let remedy = "choose another port: `[metrics] listen = \"127.0.0.1:9465\"`";
                finding("metrics", weight, format!("{address}: {error}"), remedy)
            }
        });
    }
    if let Some(capture) = &file.settings.capture {
        let dir = Path::new(&capture.dir);
        let exists = dir.ancestors().find(|dir| dir.is_dir()).unwrap_or(Path::new("/"));
        found.push(match access(exists, AccessFlags::W_OK) {
            Ok(()) => finding("capture", Weight::Good, capture.dir.clone(), ""),
            Err(error) => {
                let remedy = "choose a directory that it may write to: `[capture] dir = \"/var/log/lasthop\"`";
                finding("capture", Weight::Fatal, format!("{}: {error}", exists.display()), remedy)
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::net::UnixListener;

    use super::*;

    fn file(more: &str) -> StationFile {
        let text = format!("left = \"a\"\nright = \"b\"\n{more}\n[[path]]\nagent = \"snoop\"\n");
        lasthop_scenario::parse_station(&text).unwrap_or_else(|error| panic!("{error:?}")).0
    }

    fn of(found: &[Finding], about: &str) -> (Weight, String) {
        let found = found.iter().find(|finding| finding.about == about);
        let found = found.unwrap_or_else(|| panic!("nothing about {about}"));
        assert_eq!(found.weight == Weight::Good, found.remedy.is_empty(), "{found:?}");
        (found.weight, found.found.clone())
    }

    /// Numbers from linux/capability.h, and the mask of proc(5).
    #[test]
    fn a_right_is_a_bit_of_the_effective_mask() {
        let of = |mask: &str| format!("Name:\tx\nCapPrm:\tffffffffffffffff\nCapEff:\t{mask}\n");
        for (mask, admin, raw) in [
            ("0000000000000000", false, false),
            ("0000000000001000", true, false),
            ("0000000000002000", false, true),
            ("0000000000003000", true, true),
            ("ffffffffffffcfff", false, false),
        ] {
            let status = of(mask);
            let has = [CAP_NET_ADMIN, CAP_NET_RAW].map(|right| has_in(&status, right));
            assert_eq!(has, [admin, raw], "{mask}");
        }
        assert!(!has_in("", CAP_NET_RAW));
    }

    #[test]
    fn available_memory_is_rounded_down_to_mebibytes() {
        for (text, mib) in [
            ("MemTotal:  9999 kB\nMemAvailable:    2048 kB\n", Some(2)),
            ("MemAvailable: 2047 kB\n", Some(1)),
            ("MemAvailable: some\n", None),
            ("", None),
        ] {
            assert_eq!(available(text), mib.map(|mib| Bytes(mib << 20)), "{text}");
        }
    }

    #[test]
    fn a_cache_larger_than_half_the_free_memory_warns() {
        let mut found = Vec::new();
        memory(&file("[limits]\ncache = \"16MiB\"\n"), &mut found);
        assert_eq!(of(&found, "memory").0, Weight::Good);
        let mut found = Vec::new();
        memory(&file("[limits]\ncache = \"64GiB\"\n"), &mut found);
        let (weight, message) = of(&found, "memory");
        assert_eq!(weight, Weight::Mind);
        assert!(message.starts_with("caches take up to 64"), "{message}");
    }

    #[test]
    fn unsafe_directories_and_occupied_sockets_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("control.sock");
        for (mode, weight) in [
            (0o700, Weight::Good),
            (0o755, Weight::Good),
            (0o720, Weight::Fatal),
            (0o702, Weight::Fatal),
            (0o777, Weight::Fatal),
        ] {
            fs::set_permissions(dir.path(), fs::Permissions::from_mode(mode)).unwrap();
            let mut found = Vec::new();
            places(&file(""), Some(&socket), &mut found);
            assert_eq!(of(&found, "control").0, weight, "{mode:o}");
            assert_eq!(found.len(), 1, "{found:?}");
        }
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        let metrics = file(&format!("[metrics]\nlisten = \"{address}\"\n"));
        let look = |socket: Option<&Path>| {
            let mut found = Vec::new();
            places(&metrics, socket, &mut found);
            found
        };
        let (weight, message) = of(&look(None), "metrics");
        assert_eq!(weight, Weight::Fatal, "another program has the port");
        assert!(message.starts_with(&address.to_string()), "{message}");
        // The socket may be in use by this very station.
        let _station = UnixListener::bind(&socket).unwrap();
        let found = look(Some(&socket));
        assert_eq!(of(&found, "metrics").0, Weight::Mind);
        let (weight, message) = of(&found, "control");
        assert_eq!(weight, Weight::Mind);
        assert!(message.contains("listens at") && message.contains("control.sock"), "{message}");
        drop(taken);
        let (weight, message) = of(&look(None), "metrics");
        assert_eq!((weight, message), (Weight::Good, format!("http://{address}/metrics")));
    }

    /// A missing directory is created, so its nearest existing parent is checked.
    #[test]
    fn captures_go_to_a_directory_that_can_be_made() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("not/yet").display().to_string();
        let mut found = Vec::new();
        places(&file(&format!("[capture]\ndir = \"{deep}\"\n")), None, &mut found);
        assert_eq!(of(&found, "capture"), (Weight::Good, deep));
    }
}
