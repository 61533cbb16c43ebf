//! The cables between the two hosts: one per kind of wire, made once and never changed.

use std::fs;
use std::path::Path;

use lasthop_observe::cpu_time::Wire;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::unistd::Pid;

use super::super::error::{Error, Tried as _};
use super::super::net::wait_until_running;
use super::super::{Net, ip, preset};
use super::{FLIGHT, RECEIVER, SENDER, threads};
use crate::sys::ethtool::{self, Offload};

/// Largest IP packet of a cable, bytes.
const MTU: u32 = 9000;

/// Temporary mount point of sysfs in a host's namespace.
const SYS: &str = "/run/lasthop-sys";

/// Last bytes of the MAC addresses of the sender's end and the receiver's end.
const MACS: [u8; 2] = [1, 2];

/// A cable.
#[derive(Debug)]
pub(super) struct Cable {
    /// Properties of the wire.
    pub wire: Wire,
    /// Index among the cables, used in its addresses.
    pub number: u8,
    /// The sender's end and the receiver's end.
    pub ends: [End; 2],
}

/// One end of a cable.
#[derive(Debug)]
pub(super) struct End {
    /// Name of the interface.
    pub interface: String,
    /// The kernel's thread that receives packets here, if there is one.
    pub thread: Option<Pid>,
}

impl Cable {
    /// An address: 1 and 3 are the sender's, 2 is the receiver's, which acknowledges 3 at once.
    pub fn address(&self, last: u8) -> [u8; 4] {
        [10, 9, self.number, last]
    }
}

/// Makes all cables.
pub(super) fn lay(net: &Net) -> Result<Vec<Cable>, Error> {
    Wire::ALL.into_iter().zip(0..).map(|(wire, number)| one(net, wire, number)).collect()
}

fn one(net: &Net, wire: Wire, number: u8) -> Result<Cable, Error> {
    // The kernel names threads after interfaces of any network on the machine, so the name contains the
    // number of this process. Ten letters at most, so that the thread's name is not truncated.
    let name = |end| format!("w{}{end}{number}", std::process::id());
    let names = [name('s'), name('r')];
    let macs = MACS.map(|end| format!("02:00:00:09:{number:02x}:{end:02x}"));
    ip::batch(&[format!(
        "link add name {} address {} mtu {MTU} netns {SENDER} type veth \
         peer name {} address {} mtu {MTU} netns {RECEIVER}",
        names[0], macs[0], names[1], macs[1]
    )])?;
    let hosts = [SENDER, RECEIVER];
    let mut cable =
        Cable { wire, number, ends: names.map(|interface| End { interface, thread: None }) };
    for (host, end) in hosts.into_iter().zip(&cable.ends) {
        let peer = if host == SENDER { &macs[1] } else { &macs[0] };
        net.in_host(host, || end.set(wire, &cable, host == SENDER, peer))??;
    }
    for (host, end) in hosts.into_iter().zip(&cable.ends) {
        net.in_host(host, || {
            wait_until_running(&end.interface)?;
            if wire.apart() { end.detach() } else { Ok(()) }
        })??;
    }
    if wire.apart() {
        for end in &mut cable.ends {
            end.thread = Some(threads::of_interface(&end.interface)?);
        }
    }
    Ok(cable)
}

impl End {
    /// Configures the interface, in the calling thread's namespace. `peer` is the MAC address of the other end.
    fn set(&self, wire: Wire, cable: &Cable, sends: bool, peer: &str) -> Result<(), Error> {
        let End { interface, .. } = self;
        if Path::new("/proc/sys/net/ipv6").exists() {
            // The cable must carry only the transfers.
            preset::write_sysctl(&format!("ipv6/conf/{interface}/disable_ipv6"), "1")?;
        }
        let on: &[Offload] = match wire {
            // GRO makes the kernel receive packets by NAPI; it must not merge any.
            Wire::Plain => &[Offload::Gro],
            Wire::Offloads => {
                &[Offload::RxChecksum, Offload::TxChecksum, Offload::Gso, Offload::Gro]
            }
            Wire::PlainTogether => &[],
            Wire::Whole => &[Offload::RxChecksum, Offload::TxChecksum, Offload::Gso, Offload::Tso],
        };
        ethtool::set_offloads(interface, false)
            .and_then(|()| {
                on.iter().try_for_each(|one| ethtool::set_offload(interface, *one, true))
            })
            .tried(|| format!("set the offloads of {interface}"))?;
        if matches!(wire, Wire::Plain | Wire::PlainTogether) {
            ip::batch(&[format!("link set dev {interface} gso_max_segs 1 gro_max_size 1")])
                .map_err(|error| {
                    Error::new(error.message, "this takes Linux 5.17 and iproute2 5.18 or later")
                })?;
        }
        let to = |last: u8| {
            let [a, b, c, d] = cable.address(last);
            format!("{a}.{b}.{c}.{d}/32 dev {interface}")
        };
        let mut lines = vec![format!("link set dev {interface} up")];
        if sends {
            lines.extend([1, 3].map(|last| format!("addr add {}", to(last))));
            // Locked metrics are not learned from one transfer for the next.
            lines.push(format!(
                "route replace {} cwnd lock {FLIGHT} rtt lock 0 rttvar lock 0 reordering lock 3",
                to(2)
            ));
        } else {
            lines.push(format!("addr add {}", to(2)));
            lines.push(format!("route replace {}", to(1)));
            lines.push(format!("route replace {} quickack 1", to(3)));
        }
        // Permanent neighbours need no ARP, which a busy machine answers too late.
        for last in if sends { &[2][..] } else { &[1, 3] } {
            let [a, b, c, d] = cable.address(*last);
            lines.push(format!(
                "neigh replace {a}.{b}.{c}.{d} lladdr {peer} dev {interface} nud permanent"
            ));
        }
        ip::batch(&lines)
    }

    /// Moves reception to a separate kernel thread, in the calling thread's namespace.
    fn detach(&self) -> Result<(), Error> {
        fs::create_dir_all(SYS).tried(|| format!("create {SYS}"))?;
        let none = None::<&str>;
        // A sysfs mount shows the interfaces of the namespace that mounts it.
        mount(Some("lasthop"), SYS, Some("sysfs"), MsFlags::empty(), none).map_err(|error| {
            Error::new(
                format!("cannot see the interfaces of a namespace: mounting /sys: {error}"),
                "a setting below /sys separates the sender's work from the receiver's, and containers often \
                 hide it: run lasthop outside, or as root",
            )
        })?;
        let path = format!("{SYS}/class/net/{}/threaded", self.interface);
        let written = fs::write(&path, "1").and_then(|()| fs::read_to_string(&path));
        let gone = umount2(SYS, MntFlags::MNT_DETACH);
        match written {
            Ok(text) if text.trim() == "1" => gone.tried(|| format!("unmount {SYS}")),
            Ok(text) => Err(refused(&format!("it reads back as {}", text.trim()))),
            Err(error) => Err(refused(&error)),
        }
    }
}

fn refused(why: &dyn std::fmt::Display) -> Error {
    Error::new(
        format!("cannot let a thread receive packets (threaded NAPI): {why}"),
        "this takes Linux 5.17 or later",
    )
}
