//! Packet sockets (packet(7)): whole frames of one interface, in batches, with virtio headers.
//!
//! A frame consists of a virtio header of [`VNET`] bytes and the Ethernet frame. The virtio header says
//! whether the checksum is incomplete, and whether the frame is a super-packet. VLAN tags that the kernel
//! removed from the frame are restored.
#![expect(
    unsafe_code,
    reason = "recvmmsg with control data and sockaddr_ll have no safe interface"
)]

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::header::{VNET, VnetHeader};

/// Size limit of a frame, bytes: a super-packet of 64 KiB with its headers.
const FRAME_MAX: usize = VNET + 65_536 + 64;

/// Space before each frame for a restored VLAN tag, bytes.
const HEADROOM: usize = 4;

/// Frames per system call.
pub const BATCH: usize = 64;

/// Offset of the VLAN tag in a frame: after the virtio header and both addresses.
const TAG_AT: usize = VNET + 12;

/// A protocol without any frames (card specific control frames): a socket that had a protocol cannot return
/// to none.
const NOBODY: libc::c_int = 0x0016;

const ON: libc::c_int = 1;

/// A packet socket bound to one interface; it receives arriving frames, not sent ones.
#[derive(Debug)]
pub struct PacketSocket {
    fd: OwnedFd,
    ifindex: i32,
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn option<T>(fd: BorrowedFd<'_>, level: i32, name: i32, value: &T) -> io::Result<()> {
    // SAFETY: `value` is a live plain value and its size is given.
    check(unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            (&raw const *value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    })?;
    Ok(())
}

impl PacketSocket {
    /// Opens the interface with this index, in promiscuous mode.
    ///
    /// # Errors
    /// Without CAP_NET_RAW in the network namespace, or when there is no such interface.
    pub fn open(ifindex: u32) -> io::Result<PacketSocket> {
        let socket = PacketSocket::unbound(ifindex)?;
        let fd = socket.fd.as_fd();
        // Otherwise every sent frame would come back as received.
        option(fd, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &ON)?;
        let membership = libc::packet_mreq {
            mr_ifindex: ifindex as i32,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        option(fd, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership)?;
        socket.listen(true)?;
        Ok(socket)
    }

    /// A socket for the interface that does not receive yet.
    fn unbound(ifindex: u32) -> io::Result<PacketSocket> {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: a plain call; protocol 0 receives nothing until bind.
        let fd = check(unsafe { libc::socket(libc::AF_PACKET, kind, 0) })?;
        // SAFETY: the new descriptor has no other owner.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let socket = fd.as_fd();
        option(socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, &ON)?;
        option(socket, libc::SOL_PACKET, libc::PACKET_AUXDATA, &ON)?;
        let buffer: libc::c_int = 32 << 20;
        if option(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &buffer).is_err() {
            // Without root the kernel limits it to net.core.rmem_max.
            option(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, &buffer)?;
        }
        if option(socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &buffer).is_err() {
            option(socket, libc::SOL_SOCKET, libc::SO_SNDBUF, &buffer)?;
        }
        Ok(PacketSocket { fd, ifindex: ifindex as i32 })
    }

    /// Enables or disables reception. Frames received earlier remain readable.
    ///
    /// # Errors
    /// If the interface does not exist.
    pub fn listen(&self, on: bool) -> io::Result<()> {
        // SAFETY: all zeros is a valid sockaddr_ll.
        let mut address: libc::sockaddr_ll = unsafe { zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (if on { libc::ETH_P_ALL } else { NOBODY } as u16).to_be();
        address.sll_ifindex = self.ifindex;
        // SAFETY: the address is a live sockaddr_ll and its size is given.
        check(unsafe {
            libc::bind(
                self.fd.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        })?;
        Ok(())
    }

    /// Index of its interface.
    pub fn ifindex(&self) -> u32 {
        self.ifindex as u32
    }

    /// Frames dropped at a full receive buffer since the last call.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn take_drops(&self) -> io::Result<u32> {
        let mut stats = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut len = size_of::<libc::tpacket_stats>() as libc::socklen_t;
        // SAFETY: the kernel writes at most `len` bytes into a live value of that size.
        check(unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut stats).cast(),
                &raw mut len,
            )
        })?;
        Ok(stats.tp_drops)
    }

    /// Sends at most [`BATCH`] frames. Returns the number of frames sent before the first failure.
    ///
    /// # Errors
    /// The error of the first frame.
    pub fn send<T: AsRef<[u8]>>(&self, frames: &[T]) -> io::Result<usize> {
        let count = frames.len().min(BATCH);
        // SAFETY: all zeros are valid headers: no address, no buffers, no control data.
        let mut headers: [libc::mmsghdr; BATCH] = unsafe { zeroed() };
        let mut vectors = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; BATCH];
        for ((frame, vector), header) in frames.iter().zip(&mut vectors).zip(&mut headers) {
            let frame = frame.as_ref();
            *vector =
                libc::iovec { iov_base: frame.as_ptr().cast_mut().cast(), iov_len: frame.len() };
            header.msg_hdr.msg_iov = vector;
            header.msg_hdr.msg_iovlen = 1;
        }
        // SAFETY: the first `count` headers point to live vectors, those to live frames that are only read.
        let sent = check(unsafe {
            libc::sendmmsg(self.fd.as_raw_fd(), headers.as_mut_ptr(), count as libc::c_uint, 0)
        })?;
        Ok(sent as usize)
    }

    /// Sets the priority of frames that are sent from now on (SO_PRIORITY). Queueing disciplines with bands, such
    /// as `prio` and `pfifo_fast`, send frames with priority first.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn prioritize(&self, first: bool) -> io::Result<()> {
        // TC_PRIO_INTERACTIVE, the highest priority that needs no privilege, and TC_PRIO_BESTEFFORT.
        let priority: libc::c_int = if first { 6 } else { 0 };
        option(self.fd.as_fd(), libc::SOL_SOCKET, libc::SO_PRIORITY, &priority)
    }

    /// Whether the interface no longer exists. One that is only down may come up again.
    pub fn is_gone(&self) -> bool {
        // SAFETY: all zeros is a valid sockaddr_ll.
        let mut address: libc::sockaddr_ll = unsafe { zeroed() };
        let mut len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the kernel writes at most `len` bytes into a live value of that size.
        let result = unsafe {
            libc::getsockname(self.fd.as_raw_fd(), (&raw mut address).cast(), &raw mut len)
        };
        // The kernel unbinds the socket when the interface is removed.
        result < 0 || address.sll_ifindex != self.ifindex
    }

    /// The MTU of the interface, bytes.
    ///
    /// # Errors
    /// If the interface no longer exists.
    pub fn mtu(&self) -> io::Result<usize> {
        // SAFETY: all zeros is a valid ifreq.
        let mut request: libc::ifreq = unsafe { zeroed() };
        request.ifr_ifru.ifru_ifindex = self.ifindex;
        // SAFETY: both calls read and write the live request only.
        unsafe {
            check(libc::ioctl(self.fd.as_raw_fd(), libc::SIOCGIFNAME as _, &raw mut request))?;
            check(libc::ioctl(self.fd.as_raw_fd(), libc::SIOCGIFMTU as _, &raw mut request))?;
        }
        // SAFETY: the call has filled in the MTU.
        Ok(usize::try_from(unsafe { request.ifr_ifru.ifru_mtu }).unwrap_or(0))
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Space for the control data of one frame.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; 64]);

/// Buffers for received frames.
pub struct Inbox {
    bytes: Vec<u8>,
    controls: Vec<Control>,
    /// Start and end of each frame of the last batch in `bytes`.
    spans: Vec<(usize, usize)>,
    malformed: u64,
}

impl Inbox {
    /// Buffers for one batch.
    pub fn new() -> Inbox {
        Inbox {
            bytes: vec![0; BATCH * (HEADROOM + FRAME_MAX)],
            controls: vec![Control([0; 64]); BATCH],
            spans: Vec::with_capacity(BATCH),
            malformed: 0,
        }
    }

    /// Receives at most one batch, which replaces the last one. Returns the number of frames, including
    /// malformed ones.
    ///
    /// # Errors
    /// Errors of the system. An empty queue is no error.
    pub fn receive(&mut self, socket: &PacketSocket) -> io::Result<usize> {
        self.spans.clear();
        // SAFETY: all zeros are valid headers.
        let mut headers: [libc::mmsghdr; BATCH] = unsafe { zeroed() };
        let mut vectors = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; BATCH];
        let slots = self.bytes.chunks_exact_mut(HEADROOM + FRAME_MAX).zip(&mut self.controls);
        for ((slot, control), (vector, header)) in slots.zip(vectors.iter_mut().zip(&mut headers)) {
            let slot = &mut slot[HEADROOM..];
            *vector = libc::iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: slot.len() };
            header.msg_hdr.msg_iov = vector;
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_control = (&raw mut control.0).cast();
            header.msg_hdr.msg_controllen = control.0.len() as _;
        }
        // SAFETY: every header points to a live vector and control buffer, with their true lengths.
        let count = unsafe {
            libc::recvmmsg(
                socket.fd.as_raw_fd(),
                headers.as_mut_ptr(),
                BATCH as libc::c_uint,
                0,
                std::ptr::null_mut(),
            )
        };
        if count < 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(0),
                _ => Err(error),
            };
        }
        for (i, header) in headers.iter().take(count as usize).enumerate() {
            let from = i * (HEADROOM + FRAME_MAX) + HEADROOM;
            let len = header.msg_len as usize;
            if header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0 || len < VNET + 14 {
                self.malformed += 1;
                continue;
            }
            let tag = vlan(&header.msg_hdr);
            let from = match tag {
                Some(tag) => restore(&mut self.bytes[from - HEADROOM..from + len], tag)
                    .map_or(from, |()| from - HEADROOM),
                None => from,
            };
            let end = i * (HEADROOM + FRAME_MAX) + HEADROOM + len;
            self.spans.push((from, end));
        }
        Ok(count as usize)
    }

    /// The frames of the last batch.
    pub fn frames(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.spans.iter().map(|(from, to)| &self.bytes[*from..*to])
    }

    /// Total number of frames with an impossible length.
    pub fn malformed(&self) -> u64 {
        self.malformed
    }
}

impl Default for Inbox {
    fn default() -> Inbox {
        Inbox::new()
    }
}

/// The VLAN tag that the kernel removed from a frame: protocol and control information.
fn vlan(header: &libc::msghdr) -> Option<[u8; 4]> {
    const VALID: u32 = libc::TP_STATUS_VLAN_VALID;
    const TPID_VALID: u32 = libc::TP_STATUS_VLAN_TPID_VALID;
    // SAFETY: the header was filled in by recvmmsg and its control buffer is still alive.
    let control = unsafe { libc::CMSG_FIRSTHDR(header) };
    if control.is_null() {
        return None;
    }
    // SAFETY: it is not null, so it is a whole header within the buffer.
    let head = unsafe { &*control };
    let whole =
        head.cmsg_len as usize >= size_of::<libc::cmsghdr>() + size_of::<libc::tpacket_auxdata>();
    if head.cmsg_level != libc::SOL_PACKET || head.cmsg_type != libc::PACKET_AUXDATA || !whole {
        return None;
    }
    // SAFETY: the kernel put a tpacket_auxdata there; it is read unaligned.
    let data = unsafe { libc::CMSG_DATA(control).cast::<libc::tpacket_auxdata>().read_unaligned() };
    if data.tp_status & VALID == 0 {
        return None;
    }
    let protocol = if data.tp_status & TPID_VALID != 0 { data.tp_vlan_tpid } else { 0x8100 };
    let [a, b] = protocol.to_be_bytes();
    let [c, d] = data.tp_vlan_tci.to_be_bytes();
    Some([a, b, c, d])
}

/// Restores a VLAN tag. `room` is the headroom with the frame behind it; afterwards the frame begins at its
/// start.
fn restore(room: &mut [u8], tag: [u8; 4]) -> Option<()> {
    room.get(TAG_AT + HEADROOM..)?;
    room.copy_within(HEADROOM..HEADROOM + TAG_AT, 0);
    room[TAG_AT..TAG_AT + 4].copy_from_slice(&tag);
    // Offsets in the virtio header count from the start of the Ethernet frame.
    let head = VnetHeader::read(room)?;
    head.shifted(4).write(room);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vlan_tag_goes_back_where_it_was() {
        let mut room = vec![0; HEADROOM + VNET];
        room[HEADROOM] = 1; // checksum to be completed ...
        room[HEADROOM + 6..HEADROOM + 8].copy_from_slice(&34u16.to_ne_bytes()); // ... from here
        room.extend([1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 0x08, 0x00, 0x45]);
        restore(&mut room, [0x81, 0x00, 0x00, 0x2a]).unwrap();
        assert_eq!(
            &room[VNET..],
            [1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 0x81, 0, 0, 0x2a, 0x08, 0x00, 0x45]
        );
        assert_eq!(room[6..8], 38u16.to_ne_bytes());
    }
}
