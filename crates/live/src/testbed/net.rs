//! The network of a testbed, from the view of the base station's process.

use std::fs;
use std::net::IpAddr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::thread;
use std::time::Duration;

use nix::ifaddrs::getifaddrs;
use nix::mount::{MsFlags, mount};
use nix::net::if_::InterfaceFlags;
use nix::sched::{CloneFlags, setns, unshare};
use serde::{Deserialize, Serialize};

use super::enter::{self, NAMESPACES};
use super::error::{Error, Tried as _};
use super::host::{HostSpec, Mac, TestbedHost, is_host_name};
use super::{ip, preset};
use crate::sys::ethtool;

/// The private /etc/hosts, bound over the machine's.
const HOSTS_FILE: &str = "/run/lasthop-hosts";

/// Limit of hosts; each needs a namespace.
const MOST_HOSTS: usize = 250;

/// Specification of a network.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct NetSpec {
    /// Name of the base station's namespace.
    pub station: String,
    /// Whether cables carry packets larger than the MTU with incomplete checksums, the kernel's default
    /// between interfaces of one machine. This is faster, but the base station sees packets that no real wire
    /// carries.
    pub offloads: bool,
    /// The hosts.
    pub hosts: Vec<HostSpec>,
}

/// The network of a testbed. The process that made it is its base station.
#[derive(Debug)]
pub struct Net {
    station: String,
    offloads: bool,
    hosts: Vec<TestbedHost>,
    /// Content of the machine's /etc/hosts, which follows the hosts of the network; `None` if it cannot be
    /// replaced.
    names: Option<String>,
    has_v6: bool,
}

impl Net {
    /// Makes the calling process the base station of a new private network, and adds its hosts.
    ///
    /// Later threads of the process are in the base station's namespace. They see a private /run (with
    /// /run/netns, so that `ip netns exec` works) and an /etc/hosts with the names of the hosts.
    ///
    /// # Errors
    ///
    /// If the process has several threads, the kernel forbids it, `ip` is missing, or a host's specification
    /// is invalid. After an error the process may be in an intermediate state and should end.
    pub fn enter(spec: &NetSpec) -> Result<Net, Error> {
        let station = &spec.station;
        if !is_host_name(station) {
            return Err(Error::new(
                format!("`{station}` cannot be a base station"),
                "its name is 1 to 15 of a-z, A-Z, 0-9, `-` and `_`, for example `verdi`",
            ));
        }
        enter::enter()?;
        Net::populate(spec)
    }

    /// Makes the network in a process that is in private namespaces already.
    pub(crate) fn populate(spec: &NetSpec) -> Result<Net, Error> {
        let NetSpec { station, offloads, hosts } = spec;
        bind_namespace(station)?;
        let names = fs::read_to_string("/etc/hosts").ok();
        let mut net = Net {
            station: station.clone(),
            offloads: *offloads,
            hosts: Vec::new(),
            names,
            has_v6: Path::new("/proc/sys/net/ipv6/conf/default").exists(),
        };
        // The base station is a bump in the wire: its kernel neither forwards nor sends packets.
        preset::write_sysctl("ipv4/ip_forward", "0")?;
        if net.has_v6 {
            preset::write_sysctl("ipv6/conf/default/disable_ipv6", "1")?;
        }
        ip::batch(&["link set dev lo up".to_owned()])?;
        if net.names.is_some() {
            net.write_names()?;
            let flags = MsFlags::MS_BIND;
            mount(Some(HOSTS_FILE), "/etc/hosts", None::<&str>, flags, None::<&str>)
                .tried(|| "cover /etc/hosts")?;
        }
        net.add_hosts(hosts)?;
        Ok(net)
    }

    /// Adds a host; see [`Net::add_hosts`].
    ///
    /// # Errors
    ///
    /// As [`Net::add_hosts`].
    pub fn add_host(&mut self, spec: &HostSpec) -> Result<(), Error> {
        self.add_hosts(std::slice::from_ref(spec))
    }

    /// Adds hosts. Each gets a namespace of its name with one interface, `eth0`. The other end is in the base
    /// station's namespace and has the host's name. Every host has static neighbour entries of all hosts on
    /// the other side, so ARP is not needed.
    ///
    /// # Errors
    ///
    /// If a name or an address is taken or invalid, or the kernel refuses.
    pub fn add_hosts(&mut self, specs: &[HostSpec]) -> Result<(), Error> {
        for (index, spec) in specs.iter().enumerate() {
            spec.check()?;
            let mut earlier = self.hosts.iter().map(TestbedHost::spec).chain(specs[..index].iter());
            if earlier.clone().any(|other| other.name == spec.name) || spec.name == self.station {
                return Err(Error::new(
                    format!("there are two hosts `{}`", spec.name),
                    format!(
                        "every host needs a name of its own, other than the base station's, `{}`",
                        self.station
                    ),
                ));
            }
            let clash = |other: &&HostSpec| {
                other.addresses().any(|address| spec.addresses().any(|own| own == address))
            };
            if let Some(other) = earlier.find(clash) {
                return Err(Error::new(
                    format!("hosts `{}` and `{}` have the same address", other.name, spec.name),
                    "every host needs addresses of its own, for example 10.0.0.1 and 10.1.0.1",
                ));
            }
        }
        let before = self.hosts.len();
        if before + specs.len() > MOST_HOSTS {
            return Err(Error::new(
                format!("{} hosts are too many for a testbed", before + specs.len()),
                format!("at most {MOST_HOSTS} are possible; the simulator takes more"),
            ));
        }
        for (position, spec) in (before..).zip(specs) {
            let position = position as u16;
            self.hosts.push(TestbedHost {
                spec: spec.clone(),
                mac: Mac::host(position),
                station_mac: Mac::station(position),
                namespace: None,
            });
            if spec.kernel {
                self.make(usize::from(position))?;
            }
        }
        // Neighbour entries follow when all hosts exist: new hosts get all, old hosts only the new ones.
        for (position, host) in self.hosts.iter().enumerate().filter(|(_, host)| host.spec.kernel) {
            let first = if position < before { before } else { 0 };
            let across =
                self.hosts[first..].iter().filter(|other| other.spec.side != host.spec.side);
            let lines: Vec<String> = across
                .flat_map(|other| other.spec.addresses().map(|address| (address, other.mac)))
                .filter(|(address, _)| self.has_v6 || address.is_ipv4())
                .map(|(address, mac)| {
                    format!("neigh replace {address} lladdr {mac} dev eth0 nud permanent")
                })
                .collect();
            if !lines.is_empty() {
                self.in_host(host.name(), || ip::batch(&lines))??;
            }
        }
        if self.names.is_some() {
            self.write_names()?;
        }
        for host in self.hosts[before..].iter().filter(|host| host.spec.kernel) {
            // A cable is up when both ends are, and each end notices it a moment later. Until then the kernel
            // drops packets.
            wait_until_running(host.name())?;
            self.in_host(host.name(), || wait_until_running("eth0"))??;
        }
        Ok(())
    }

    /// Makes namespace and cable of the host at this index.
    fn make(&mut self, index: usize) -> Result<(), Error> {
        let TestbedHost { spec, mac, station_mac, .. } = &self.hosts[index];
        let name = spec.name.clone();
        on_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET).map_err(|error| {
                Error::new(
                    format!("cannot make a network namespace for `{name}`: {error}"),
                    "is sysctl user.max_net_namespaces large enough?",
                )
            })?;
            bind_namespace(&name)
        })??;
        let HostSpec { mtu, .. } = spec;
        // Without `name` and `dev`, `ip` would take a host called `a` for an abbreviation.
        ip::batch(&[format!(
            "link add name {name} address {station_mac} mtu {mtu} type veth \
             peer name eth0 address {mac} mtu {mtu} netns {name}"
        )])?;
        let namespace = fs::File::open(Path::new(NAMESPACES).join(&name))
            .tried(|| format!("open the namespace of `{name}`"))?;
        self.hosts[index].namespace = Some(OwnedFd::from(namespace));

        let spec = &self.hosts[index].spec;
        let (offloads, has_v6) = (self.offloads, self.has_v6);
        self.in_host(&name, || {
            if let Some(preset) = spec.preset {
                preset.set_sysctls()?;
            }
            for (key, value) in &spec.sysctls {
                preset::write_sysctl(&format!("ipv4/{key}"), value)?;
            }
            if has_v6 {
                // There is no router, and only the given address is allowed.
                for (key, value) in
                    [("accept_ra", "0"), ("router_solicitations", "0"), ("addr_gen_mode", "1")]
                {
                    preset::write_sysctl(&format!("ipv6/conf/eth0/{key}"), value)?;
                }
            }
            ethtool::set_offloads("eth0", offloads)
                .tried(|| format!("set the offloads of `{name}`'s eth0"))?;
            let mut lines =
                vec!["link set dev lo up".to_owned(), "link set dev eth0 up".to_owned()];
            let metrics = preset::route_metrics(spec)?;
            for address in spec.addresses().filter(|address| has_v6 || address.is_ipv4()) {
                // Duplicate address detection would wait a second without effect.
                let (rest, everything) = match address {
                    IpAddr::V4(_) => ("/32", "0.0.0.0/0"),
                    IpAddr::V6(_) => ("/128 nodad", "::/0"),
                };
                lines.push(format!("addr add dev eth0 {address}{rest}"));
                lines.push(format!("route replace {everything} dev eth0 {metrics}"));
            }
            ip::batch(&lines)
        })??;
        // IPv6 is off at the base station's end by its namespace's default, so it sends nothing when it comes
        // up.
        ethtool::set_offloads(&name, offloads)
            .tried(|| format!("set the offloads of the base station's end, `{name}`"))?;
        ip::batch(&[format!("link set dev {name} up")])
    }

    /// Name of the base station.
    pub fn station(&self) -> &str {
        &self.station
    }

    /// The hosts in the order of addition: a host's index is its position.
    pub fn hosts(&self) -> &[TestbedHost] {
        &self.hosts
    }

    /// Whether the kernel has IPv6.
    pub(crate) fn has_v6(&self) -> bool {
        self.has_v6
    }

    /// Whether cables carry packets larger than the MTU.
    pub fn offloads(&self) -> bool {
        self.offloads
    }

    /// The host of this name.
    ///
    /// # Errors
    ///
    /// If it does not exist; the error lists the existing ones.
    pub fn host(&self, name: &str) -> Result<&TestbedHost, Error> {
        self.hosts.iter().find(|host| host.name() == name).ok_or_else(|| {
            let names: Vec<_> = self.hosts.iter().map(TestbedHost::name).collect();
            Error::new(
                format!("there is no host `{name}` in this testbed"),
                format!("there are {}", names.join(", ")),
            )
        })
    }

    /// Runs a closure on a thread inside a host, and waits for it. Its sockets and child processes are in
    /// that host and remain there.
    ///
    /// # Errors
    ///
    /// If the host does not exist, or has no kernel TCP.
    ///
    /// # Panics
    ///
    /// If the closure panics.
    pub fn in_host<T: Send>(&self, name: &str, f: impl FnOnce() -> T + Send) -> Result<T, Error> {
        let Some(namespace) = &self.host(name)?.namespace else {
            return Err(Error::new(
                format!("host `{name}` has no kernel of its own: its TCP is lasthop's"),
                "only hosts with the kernel's TCP can run programs",
            ));
        };
        on_thread(|| {
            setns(namespace.as_fd(), CloneFlags::CLONE_NEWNET)
                .tried(|| format!("enter the namespace of `{name}`"))?;
            Ok(f())
        })?
    }

    /// Like [`Net::in_host`] without waiting: the closure continues on a separate thread.
    ///
    /// # Errors
    ///
    /// As [`Net::in_host`]; also if no thread can be started.
    pub fn spawn_in<T: Send + 'static>(
        &self,
        name: &str,
        f: impl FnOnce() -> T + Send + 'static,
    ) -> Result<thread::JoinHandle<T>, Error> {
        // A new thread inherits the namespaces of its creator.
        self.in_host(name, || thread::Builder::new().name(name.to_owned()).spawn(f))?
            .tried(|| "start a thread")
    }

    /// Reads back the settings of a host's preset.
    ///
    /// # Errors
    ///
    /// If the host does not exist.
    pub fn read_preset(&self, host: &str) -> Result<Vec<preset::Found>, Error> {
        let Some(preset) = self.host(host)?.spec().preset else {
            return Ok(Vec::new());
        };
        self.in_host(host, || {
            let routes = ip::json(&["-json", "route", "show", "default"])?;
            let metrics = &routes[0]["metrics"][0];
            let found = preset.settings().map(|setting| {
                let metric = |key: &str| match &metrics[key] {
                    serde_json::Value::String(text) => Some(text.clone()),
                    serde_json::Value::Number(number) => Some(number.to_string()),
                    _ => None,
                };
                let sysctl = || {
                    fs::read_to_string(preset::path(setting))
                        .ok()
                        .map(|text| text.trim().to_owned())
                };
                let value = match setting.knob {
                    preset::Knob::Sysctl => sysctl(),
                    preset::Knob::Route => metric(setting.key),
                    preset::Knob::CongestionControl => metric("congestion").or_else(sysctl),
                };
                preset::Found { setting, value }
            });
            Ok(found.collect())
        })?
    }

    /// The hosts precede the machine's entries, which could hide them otherwise.
    fn write_names(&self) -> Result<(), Error> {
        let mut text = String::new();
        for host in &self.hosts {
            for address in host.spec.addresses() {
                text += &format!("{address}\t{}\n", host.name());
            }
        }
        text += self.names.as_deref().unwrap_or_default();
        // Written in place, since the mount refers to this file.
        fs::write(HOSTS_FILE, text).tried(|| format!("write {HOSTS_FILE}"))
    }
}

/// Names the calling thread's network namespace.
fn bind_namespace(name: &str) -> Result<(), Error> {
    let path = Path::new(NAMESPACES).join(name);
    fs::File::create_new(&path).tried(|| format!("create {}", path.display()))?;
    let (none, own) = (None::<&str>, Some("/proc/thread-self/ns/net"));
    mount(own, &path, none, MsFlags::MS_BIND, none).tried(|| format!("mount {}", path.display()))
}

/// Waits until an interface of the calling thread's namespace carries packets.
#[expect(
    clippy::disallowed_methods,
    reason = "the kernel is waited for, outside of any experiment"
)]
pub(super) fn wait_until_running(interface: &str) -> Result<(), Error> {
    for _ in 0..15_000 {
        // This query makes the kernel update the link's state at once.
        ethtool::link_is_up(interface).tried(|| format!("query the link of {interface}"))?;
        let mut all = getifaddrs().tried(|| "list the interfaces")?;
        if all.any(|one| {
            one.interface_name == interface && one.flags.contains(InterfaceFlags::IFF_RUNNING)
        }) {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(2));
    }
    Err(Error::new(
        format!("the interface `{interface}` has not come up within 30 s"),
        "is this machine very busy? then try again",
    ))
}

/// Runs a closure on a separate thread, whose namespace it may change.
fn on_thread<T: Send>(f: impl FnOnce() -> T + Send) -> Result<T, Error> {
    thread::scope(|scope| {
        let handle = thread::Builder::new().spawn_scoped(scope, f).tried(|| "start a thread")?;
        Ok(handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}
