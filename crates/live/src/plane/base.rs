//! The base filter: forwards between two interfaces, with or without a station.
//!
//! It is a filter of the traffic control at the ingress of both interfaces (clsact, cls_bpf), not a tcx link. The
//! station sets it by netlink (rtnetlink(7)), so it remains when the process of the station ends. The kernel
//! executes the programs of a running station before it.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};

use nix::net::if_::if_indextoname;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto, socket,
};

use crate::sys::flags::promiscuous;

const NEW_QDISC: u16 = 36;
const DEL_QDISC: u16 = 37;
const NEW_FILTER: u16 = 44;
const DEL_FILTER: u16 = 45;
const GET_FILTER: u16 = 46;
const ERROR: u16 = 2;
const DONE: u16 = 3;

const REQUEST: u16 = 1;
const ACK: u16 = 4;
const EXCLUSIVE: u16 = 0x200;
const CREATE: u16 = 0x400;
const DUMP: u16 = 0x300;

/// The queueing discipline clsact and its two parents.
const CLSACT: u32 = 0xffff_0000;
const CLSACT_PARENT: u32 = 0xffff_fff1;
const INGRESS: u32 = 0xffff_fff2;
const EGRESS: u32 = 0xffff_fff3;

/// Priority of the filter: after those of an operator, for frames of all protocols.
const PRIORITY: u32 = 49_000;
const PLACE: u32 = PRIORITY << 16 | (libc::ETH_P_ALL as u16).to_be() as u32;
const HANDLE: u32 = 1;

/// Attributes of traffic control and of cls_bpf.
const KIND: u16 = 1;
const OPTIONS: u16 = 2;
const BPF_FD: u16 = 6;
const BPF_NAME: u16 = 7;
const BPF_FLAGS: u16 = 8;
const BPF_ID: u16 = 11;
/// The program's return value is the action for the packet.
const DIRECT: u32 = 1;

/// Name in `tc filter show`; the second one if the interface was promiscuous before.
const NAME: &[u8] = b"lasthop-base\0";
const NAME_PROMISCUOUS: &[u8] = b"lasthop-base-promisc\0";

fn attribute(to: &mut Vec<u8>, kind: u16, value: &[u8]) {
    to.extend_from_slice(&(value.len() as u16 + 4).to_ne_bytes());
    to.extend_from_slice(&kind.to_ne_bytes());
    to.extend_from_slice(value);
    to.resize(to.len().next_multiple_of(4), 0);
}

/// The value of the attribute `kind` among `attributes`.
fn value(mut attributes: &[u8], kind: u16) -> Option<&[u8]> {
    // The upper two bits of a kind are flags.
    const KIND_MASK: u16 = 0x3fff;
    while let Some(head) = attributes.first_chunk::<4>() {
        let len = usize::from(u16::from_ne_bytes([head[0], head[1]]));
        let value = attributes.get(4..len)?;
        if u16::from_ne_bytes([head[2], head[3]]) & KIND_MASK == kind {
            return Some(value);
        }
        attributes = attributes.get(len.next_multiple_of(4)..)?;
    }
    None
}

/// Position in the traffic control that a request addresses.
#[derive(Clone, Copy)]
struct At {
    ifindex: u32,
    handle: u32,
    parent: u32,
    info: u32,
}

/// A socket to the kernel's routing and traffic control.
struct Netlink(OwnedFd);

impl Netlink {
    fn open() -> io::Result<Netlink> {
        let protocol = SockProtocol::NetlinkRoute;
        let flags = SockFlag::SOCK_CLOEXEC;
        Ok(Netlink(socket(AddressFamily::Netlink, SockType::Raw, flags, protocol)?))
    }

    /// Sends a request and returns the responses: all messages of a dump, otherwise at most one.
    fn ask(&self, kind: u16, flags: u16, at: At, attributes: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        let mut message = vec![0; 16];
        message.extend_from_slice(&[0; 4]);
        for word in [at.ifindex, at.handle, at.parent, at.info] {
            message.extend_from_slice(&word.to_ne_bytes());
        }
        message.extend_from_slice(attributes);
        let len = message.len() as u32;
        message[..4].copy_from_slice(&len.to_ne_bytes());
        message[4..6].copy_from_slice(&kind.to_ne_bytes());
        message[6..8].copy_from_slice(&(flags | REQUEST).to_ne_bytes());
        sendto(self.0.as_raw_fd(), &message, &NetlinkAddr::new(0, 0), MsgFlags::empty())?;
        let mut answers = Vec::new();
        let mut buffer = vec![0; 1 << 16];
        loop {
            let len = recv(self.0.as_raw_fd(), &mut buffer, MsgFlags::empty())?;
            let mut rest = &buffer[..len];
            while let Some(head) = rest.first_chunk::<16>() {
                let len = u32::from_ne_bytes([head[0], head[1], head[2], head[3]]) as usize;
                let (Some(one), true) = (rest.get(..len), len >= 16) else {
                    return Err(io::ErrorKind::InvalidData.into());
                };
                rest = rest.get(len.next_multiple_of(4)..).unwrap_or(&[]);
                match u16::from_ne_bytes([head[4], head[5]]) {
                    ERROR => {
                        let code = one
                            .get(16..20)
                            .map_or(0, |c| i32::from_ne_bytes([c[0], c[1], c[2], c[3]]));
                        if code != 0 {
                            return Err(io::Error::from_raw_os_error(-code));
                        }
                        return Ok(answers);
                    }
                    DONE => return Ok(answers),
                    _ => answers.push(one.to_vec()),
                }
            }
        }
    }

    fn filter(
        &self,
        kind: u16,
        flags: u16,
        ifindex: u32,
        options: &[u8],
    ) -> io::Result<Vec<Vec<u8>>> {
        let at = At { ifindex, handle: HANDLE, parent: INGRESS, info: PLACE };
        let mut attributes = Vec::new();
        attribute(&mut attributes, KIND, b"bpf\0");
        if !options.is_empty() {
            attribute(&mut attributes, OPTIONS, options);
        }
        self.ask(kind, flags | ACK, at, &attributes)
    }

    fn clsact(&self, kind: u16, flags: u16, ifindex: u32) -> io::Result<()> {
        let at = At { ifindex, handle: CLSACT, parent: CLSACT_PARENT, info: 0 };
        let mut attributes = Vec::new();
        attribute(&mut attributes, KIND, b"clsact\0");
        self.ask(kind, flags | ACK, at, &attributes).map(drop)
    }

    /// Whether the interface was promiscuous before the base filter; `None` without a base filter.
    fn was_promiscuous(&self, ifindex: u32) -> Option<bool> {
        let found = self.filter(GET_FILTER, 0, ifindex, &[]).ok()?;
        let has =
            |name: &[u8]| found.iter().any(|m| m.windows(name.len()).any(|part| part == name));
        match has(NAME_PROMISCUOUS) {
            true => Some(true),
            false => has(NAME).then_some(false),
        }
    }

    /// Whether clsact has no filter.
    fn is_bare(&self, ifindex: u32) -> io::Result<bool> {
        for parent in [INGRESS, EGRESS] {
            let at = At { ifindex, handle: 0, parent, info: 0 };
            if !self.ask(GET_FILTER, DUMP, at, &[])?.is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The current name of an interface, which may have been renamed.
fn name(ifindex: u32) -> io::Result<String> {
    Ok(if_indextoname(ifindex)?.to_string_lossy().into_owned())
}

/// Whether this interface has the base filter.
pub fn is_there(ifindex: u32) -> bool {
    Netlink::open().is_ok_and(|netlink| netlink.was_promiscuous(ifindex).is_some())
}

/// The number of the base filter's program at this interface.
pub(super) fn program(ifindex: u32) -> Option<u32> {
    let netlink = Netlink::open().ok()?;
    netlink.was_promiscuous(ifindex)?;
    let found = netlink.filter(GET_FILTER, 0, ifindex, &[]).ok()?;
    // After the headers of netlink and of the traffic control.
    let attributes = found.first()?.get(36..)?;
    let id = value(value(attributes, OPTIONS)?, BPF_ID)?;
    Some(u32::from_ne_bytes(id.first_chunk().copied()?))
}

/// Installs `program` to forward arriving frames of the interface. It replaces the one of a previous station.
pub(super) fn set(ifindex: u32, program: &impl AsFd) -> io::Result<()> {
    let netlink = Netlink::open()?;
    match netlink.clsact(NEW_QDISC, CREATE | EXCLUSIVE, ifindex) {
        Err(error) if error.raw_os_error() == Some(libc::EEXIST) => {}
        result => result?,
    }
    // By flag, since the membership of a packet socket ends with its process.
    let was = match netlink.was_promiscuous(ifindex) {
        Some(was) => was,
        None => promiscuous(&name(ifindex)?, None)?,
    };
    let mut options = Vec::new();
    attribute(&mut options, BPF_FD, &(program.as_fd().as_raw_fd() as u32).to_ne_bytes());
    attribute(&mut options, BPF_NAME, if was { NAME_PROMISCUOUS } else { NAME });
    attribute(&mut options, BPF_FLAGS, &DIRECT.to_ne_bytes());
    netlink.filter(NEW_FILTER, CREATE, ifindex, &options)?;
    promiscuous(&name(ifindex)?, Some(true)).map(drop)
}

/// Removes the base filter, and clsact if there is no other user. Returns whether there was a filter.
///
/// # Errors
/// Without CAP_NET_ADMIN.
pub fn clear(ifindex: u32) -> io::Result<bool> {
    let netlink = Netlink::open()?;
    let Some(was_promiscuous) = netlink.was_promiscuous(ifindex) else { return Ok(false) };
    // The filter is removed last, since only it has the owner of the flag. A program that is killed before leaves
    // both to the next one.
    if !was_promiscuous {
        promiscuous(&name(ifindex)?, Some(false))?;
    }
    netlink.filter(DEL_FILTER, 0, ifindex, &[])?;
    if netlink.is_bare(ifindex)? {
        netlink.clsact(DEL_QDISC, 0, ifindex)?;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attribute_is_found_among_others() {
        let mut inner = Vec::new();
        attribute(&mut inner, BPF_NAME, NAME);
        attribute(&mut inner, BPF_ID, &7_u32.to_ne_bytes());
        let mut all = Vec::new();
        attribute(&mut all, KIND, b"bpf\0");
        attribute(&mut all, OPTIONS | 0x8000, &inner);
        let options = value(&all, OPTIONS).unwrap();
        assert_eq!(value(options, BPF_ID), Some(&7_u32.to_ne_bytes()[..]));
        assert_eq!(value(options, BPF_NAME), Some(NAME));
        assert_eq!(value(options, BPF_FD), None);
        for len in 0..all.len() {
            // The search ends for any missing bytes.
            let _ = value(&all[..len], BPF_ID);
        }
        assert_eq!(value(&[0; 8], 1), None, "an attribute that is shorter than its header");
    }
}
