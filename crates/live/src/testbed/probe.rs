//! Checks the requirements of a testbed, for this machine and user.

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use serde::{Deserialize, Serialize};

use super::error::Error;
use super::host::{HostSpec, Side};
use super::net::{Net, NetSpec};
use super::preset::Preset;
use super::{enter, ip};

/// A requirement of a testbed and its check.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Probe {
    /// Name of the requirement.
    pub name: String,
    /// Whether it is met.
    pub ok: bool,
    /// The finding, or the error.
    pub found: String,
    /// Its purpose.
    pub purpose: String,
    /// The remedy.
    pub remedy: String,
}

/// Makes a small testbed and checks each step. The calling process must have a single thread, and should end
/// afterwards, since it is in a private network then.
pub fn probe() -> Vec<Probe> {
    let mut probes = Vec::new();
    let mut note = |name: &str, purpose: &str, result: Result<String, Error>| {
        let ok = result.is_ok();
        let (found, remedy) = match result {
            Ok(found) => (found, String::new()),
            Err(Error { message, help }) => (message, help),
        };
        let (name, purpose) = (name.to_owned(), purpose.to_owned());
        probes.push(Probe { name, ok, found, purpose, remedy });
        ok
    };
    let was_root = nix::unistd::geteuid().is_root();
    let program = ip::program().map(|path| path.display().to_string()).ok_or_else(ip::missing);
    let has_ip = note("ip program", "links, addresses and routes of a testbed", program);
    let entered = enter::enter();
    let how = if was_root { "for root" } else { "without root, in a user namespace" };
    let entered = entered.map(|()| format!("network namespaces, {how}"));
    if !note("namespaces", "the testbed: real hosts on one machine", entered) {
        return probes;
    }
    let flags = SockFlag::SOCK_CLOEXEC;
    let packets = socket(AddressFamily::Packet, SockType::Raw, flags, None)
        .map(|_| "can be had in a namespace".to_owned())
        .map_err(|error| {
            Error::new(
                format!("cannot be had in a namespace: {error}"),
                "use a kernel with CONFIG_PACKET (`sudo modprobe af_packet`)",
            )
        });
    note("packet sockets", "the base station takes frames from the kernel by them", packets);
    if !has_ip {
        return probes;
    }
    let spec = NetSpec { station: "station".to_owned(), offloads: false, hosts: Vec::new() };
    let mut net = match Net::populate(&spec) {
        Ok(net) => net,
        Err(error) => {
            note("private network", "the testbed", Err(error));
            return probes;
        }
    };
    let host = |index: usize| {
        let address = [10, 0, 0, index as u8 + 1];
        HostSpec::new(&format!("host{index}"), Side::Left, address.into())
    };
    let veth = net.add_host(&host(0)).map(|()| "can be made".to_owned());
    if !note("veth", "the cables of a testbed", veth) {
        return probes;
    }
    for (index, preset) in Preset::ALL.into_iter().enumerate() {
        let host = host(index + 1).preset(preset);
        let result =
            net.add_host(&host).and_then(|()| net.read_preset(&host.name)).and_then(|found| {
                match found.iter().find(|found| !found.holds()) {
                    None => Ok(format!("{} settings hold", found.len())),
                    Some(wrong) => Err(Error::new(
                        format!(
                            "{} reads back as {} instead of `{}`",
                            wrong.setting.key,
                            wrong.value.as_deref().unwrap_or("nothing"),
                            wrong.setting.value
                        ),
                        "use another preset, or a newer kernel",
                    )),
                }
            });
        note(preset.name(), "a preset of the kernel's TCP", result);
    }
    probes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A test has several threads, so no namespace can be entered. The probe reports that with its remedy,
    /// and skips dependent checks.
    #[test]
    fn a_failed_probe_is_reported_with_its_remedy() {
        let probes = probe();
        let names: Vec<&str> = probes.iter().map(|probe| probe.name.as_str()).collect();
        assert_eq!(names, ["ip program", "namespaces"]);
        let [ip, namespaces] = &probes[..] else { panic!("{probes:?}") };
        let program = ip::program().map(|path| path.display().to_string());
        assert_eq!(ip.ok, program.is_some());
        assert_eq!(ip.ok, ip.remedy.is_empty());
        assert_eq!(Some(&ip.found), program.as_ref().or(Some(&ip::missing().message)));
        assert!(!namespaces.ok);
        assert!(
            namespaces.found.starts_with("cannot enter a network of its own"),
            "{namespaces:?}"
        );
        assert!(namespaces.remedy.contains("before the first thread"), "{namespaces:?}");
        assert!(probes.iter().all(|probe| !probe.purpose.is_empty()));
    }
}
