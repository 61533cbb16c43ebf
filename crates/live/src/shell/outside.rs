//! Access to the outside by a helper, if the machine has one. A helper is an unprivileged program that
//! carries packets between a TAP device at the far host and sockets of the machine.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread;
use std::time::Duration;

use nix::mount::{MsFlags, mount};
use nix::net::if_::if_nametoindex;
use serde::{Deserialize, Serialize};

use super::{Addresses, FAR, OUTSIDE};
use crate::testbed::error::Tried as _;
use crate::testbed::{Error, Net, ip, preset};

/// The TAP device at the far host.
const TAP: &str = "tap0";
/// Time limit for the helper to make the device.
const PATIENCE: Duration = Duration::from_secs(5);
/// Size limit of a stored error message of the helper, bytes.
const COMPLAINT: usize = 4096;
/// Resolver configuration of the machine.
const RESOLVER: &str = "/etc/resolv.conf";
const OWN_RESOLVER: &str = "/run/lasthop-resolv.conf";

/// A program that carries packets to the outside.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Helper {
    /// `pasta` of passt.
    Pasta,
    /// `slirp4netns`.
    Slirp,
}

impl Helper {
    /// The preferred helper of those installed.
    ///
    /// # Errors
    ///
    /// If no helper can be used, with the reason.
    pub fn find() -> Result<Helper, String> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let is_there = |helper: &Helper| {
            std::env::split_paths(&path).any(|dir| dir.join(helper.program()).is_file())
        };
        let Some(helper) = [Helper::Pasta, Helper::Slirp].into_iter().find(is_there) else {
            return Err("there is neither pasta (package passt) nor slirp4netns".to_owned());
        };
        match fs::File::options().read(true).write(true).open("/dev/net/tun") {
            Ok(_) => Ok(helper),
            Err(error) => Err(format!("/dev/net/tun cannot be opened: {error}")),
        }
    }

    /// The program's name.
    pub fn program(self) -> &'static str {
        match self {
            Helper::Pasta => "pasta",
            Helper::Slirp => "slirp4netns",
        }
    }

    fn arguments(self, at: &Places) -> Vec<String> {
        let netns = format!("/run/netns/{FAR}");
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        match self {
            Helper::Pasta => {
                let Places { near, gateway, resolver, .. } = at;
                // The tested builds of pasta did not carry IPv6. With IPv6 refused at once, programs fall
                // back to IPv4.
                let mut all = words("-4 -f -q -m 1500 -t none -u none -T none -U none --no-dhcp");
                all.extend(words(&format!(
                    "-a {near} -n 255.255.255.0 -g {gateway} --dns-forward {resolver}"
                )));
                // As root, pasta would change to the user `nobody`, which has no access to the namespace.
                if at.is_root {
                    all.extend(words("--runas 0:0"));
                }
                all.extend(words(&format!("-I {TAP} --netns {netns}")));
                all
            }
            Helper::Slirp => {
                words(&format!("--mtu=1500 --cidr={} --netns-type=path {netns} {TAP}", at.network))
            }
        }
    }
}

/// Addresses on the way to the outside.
#[derive(Clone, Debug)]
struct Places {
    near: Ipv4Addr,
    /// The network between the far host and the helper.
    network: String,
    tap: Ipv4Addr,
    gateway: Ipv4Addr,
    resolver: Ipv4Addr,
    has_route: bool,
    is_root: bool,
}

impl Places {
    /// slirp4netns has fixed addresses for its gateway and its resolver; pasta is configured to use the same.
    fn new(addresses: Addresses, is_root: bool) -> Places {
        let [a, _, c, _] = addresses.v4(0).octets();
        let v4 = |n| Ipv4Addr::new(a, 65, c, n);
        Places {
            near: addresses.near().0,
            network: format!("{}/24", v4(0)),
            tap: v4(100),
            gateway: v4(2),
            resolver: v4(3),
            has_route: has_route(),
            is_root,
        }
    }
}

/// Whether the calling process's network has a default route.
fn has_route() -> bool {
    let lines = fs::read_to_string("/proc/thread-self/net/route").unwrap_or_default();
    // Fields: interface, destination, gateway, flags, ..., mask.
    lines.lines().skip(1).any(|line| {
        let words: Vec<_> = line.split_ascii_whitespace().collect();
        words.get(1) == Some(&"00000000") && words.get(7) == Some(&"00000000")
    })
}

/// A helper process that stays in the machine's network and waits for its order to join the new one.
pub(super) struct Outside {
    helper: Helper,
    child: Child,
    places: Places,
}

impl Outside {
    /// Starts the process. Must precede the caller's change of network. `own` runs this executable with a
    /// hidden command.
    pub(super) fn start(
        helper: Helper,
        own: &dyn Fn(&[&str]) -> Command,
        addresses: Addresses,
        is_root: bool,
    ) -> Result<Outside, Error> {
        let mut command = own(&[OUTSIDE]);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        // The terminal's signals are meant for the program.
        command.process_group(0);
        let child = command.spawn().tried(|| format!("start {}", helper.program()))?;
        Ok(Outside { helper, child, places: Places::new(addresses, is_root) })
    }

    /// Connects the far host with the outside. After a failure the two hosts have no access to the outside.
    pub(super) fn join(mut self, net: &Net) -> Result<Joined, Error> {
        let at = &self.places;
        if !at.has_route {
            return Err(Error::new("the machine has no default route", ""));
        }
        let arguments = self.helper.arguments(at);
        let mut order =
            serde_json::to_vec(&(self.helper, arguments)).tried(|| "write to the helper")?;
        order.push(b'\n');
        if let Some(mut stdin) = self.child.stdin.take() {
            stdin.write_all(&order).tried(|| "write to the helper")?;
        }
        let complaint = self.child.stderr.take().map(|stderr| thread::spawn(|| drained(stderr)));
        let ready = net.in_host(FAR, || await_tap(&mut self.child))?;
        if !ready {
            let _ = self.child.kill();
            let output = complaint.and_then(|thread| thread.join().ok()).unwrap_or_default();
            let name = self.helper.program();
            return Err(Error::new(format!("{name} did not create its device; {output}"), ""));
        }
        let at = &self.places;
        net.in_host(FAR, || at.route_far())??;
        let helper = self.helper;
        let names = at.cover_resolver().is_ok();
        Ok(Joined { helper, names, gateway: at.gateway })
    }
}

/// A working way to the outside.
#[derive(Clone, Copy, Debug)]
pub(super) struct Joined {
    /// The program that carries packets.
    pub helper: Helper,
    /// Whether the helper has a resolver.
    pub names: bool,
    /// Address that the helper maps to the machine's loopback.
    pub gateway: Ipv4Addr,
}

impl Places {
    /// Routes packets for the outside to the helper, and its packets to the near host.
    fn route_far(&self) -> Result<(), Error> {
        let Places { tap, gateway, .. } = self;
        let lines = [
            format!("addr replace {tap}/24 dev {TAP}"),
            format!("link set dev {TAP} mtu 1500 up"),
            format!("route replace 0.0.0.0/0 via {gateway} dev {TAP}"),
        ];
        // The far host answers ARP requests for the near host.
        preset::write_sysctl(&format!("ipv4/conf/{TAP}/proxy_arp"), "1")?;
        ip::batch(&lines)
    }

    /// Replaces the name servers in a copy of the machine's resolver configuration, and mounts it over the
    /// original.
    fn cover_resolver(&self) -> std::io::Result<()> {
        let text = fs::read_to_string(RESOLVER)?;
        let rest = text.lines().filter(|line| !line.trim_start().starts_with("nameserver"));
        let mut own = format!("nameserver {}\n", self.resolver);
        rest.for_each(|line| own.extend([line, "\n"]));
        fs::write(OWN_RESOLVER, own)?;
        let none = None::<&str>;
        mount(Some(OWN_RESOLVER), RESOLVER, none, MsFlags::MS_BIND, none)?;
        Ok(())
    }
}

/// Reads until the helper ends. Returns the beginning of its error output.
fn drained(mut stderr: ChildStderr) -> String {
    let (mut output, mut piece) = (Vec::new(), [0; 1024]);
    while let Ok(count @ 1..) = stderr.read(&mut piece) {
        output.extend_from_slice(&piece[..count.min(COMPLAINT.saturating_sub(output.len()))]);
    }
    String::from_utf8_lossy(&output).trim().replace('\n', "; ")
}

/// Waits for the TAP device in the calling thread's network. Returns false if the helper has ended or exceeds
/// the limit.
#[expect(clippy::disallowed_methods, reason = "a program is waited for, outside of any experiment")]
fn await_tap(helper: &mut Child) -> bool {
    let step = Duration::from_millis(5);
    for _ in 0..PATIENCE.as_millis() / step.as_millis() {
        if if_nametoindex(TAP).is_ok() {
            return true;
        }
        if !matches!(helper.try_wait(), Ok(None)) {
            return false;
        }
        thread::sleep(step);
    }
    false
}

/// Main function of the hidden command: waits for its order, then becomes the helper. Returns only without an
/// order.
pub fn outside() -> Option<String> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).ok()?;
    let (helper, arguments): (Helper, Vec<String>) = serde_json::from_str(&line).ok()?;
    let error = Command::new(helper.program()).args(arguments).stdin(Stdio::null()).exec();
    Some(format!("cannot run {}: {error}", helper.program()))
}
