//! One station for each interface.
//!
//! Two stations at one interface would forward each frame twice, and the end of one would remove state that
//! the other needs. So a station binds an abstract socket (unix(7)) named after the interface. Such names
//! belong to a network namespace, like interfaces, and the kernel frees them when the process ends for any
//! reason.

use std::fmt;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::sockopt::PeerCredentials;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, connect, getsockopt, listen, socket,
};

/// The ownership of an interface, until it is dropped.
#[derive(Debug)]
pub struct Claim(#[expect(dead_code, reason = "its descriptor holds the name")] OwnedFd);

/// The present owner of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Owner {
    /// Process number; 0 if it is not visible in this namespace.
    pub pid: i32,
    /// User of the process.
    pub uid: u32,
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pid {
            0 => write!(f, "a process of user {}", self.uid),
            pid => write!(f, "process {pid} of user {}", self.uid),
        }
    }
}

fn name(index: u32) -> io::Result<UnixAddr> {
    Ok(UnixAddr::new_abstract(format!("lasthop station of interface {index}").as_bytes())?)
}

fn stream() -> io::Result<OwnedFd> {
    // Non-blocking, since the backlog of a station may be full.
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    Ok(socket(AddressFamily::Unix, SockType::Stream, flags, None)?)
}

/// Claims the interface with this index, unless another station owns it.
///
/// # Errors
/// If the system has no free socket.
pub fn claim(index: u32) -> io::Result<Result<Claim, Owner>> {
    let fd = stream()?;
    match bind(fd.as_raw_fd(), &name(index)?) {
        Ok(()) => {
            listen(&fd, Backlog::new(8)?)?;
            Ok(Ok(Claim(fd)))
        }
        Err(Errno::EADDRINUSE) => Ok(Err(owner(index)?.unwrap_or(Owner { pid: 0, uid: 0 }))),
        Err(error) => Err(error.into()),
    }
}

/// The owner of the interface with this index; `None` if there is no station.
///
/// # Errors
/// If the system has no free socket.
pub fn owner(index: u32) -> io::Result<Option<Owner>> {
    let fd = stream()?;
    match connect(fd.as_raw_fd(), &name(index)?) {
        Ok(()) => {
            let peer = getsockopt(&fd, PeerCredentials)?;
            Ok(Some(Owner { pid: peer.pid(), uid: peer.uid() }))
        }
        Err(Errno::ECONNREFUSED) => Ok(None),
        // The backlog is full of queries.
        Err(Errno::EAGAIN) => Ok(Some(Owner { pid: 0, uid: 0 })),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_has_one_owner_until_its_claim_is_gone() {
        // No interface has this index.
        let [one, other] = [1, 2].map(|n| 0x7fff_0000 + n + std::process::id() % 1000 * 4);
        assert_eq!(owner(one).unwrap(), None);
        let claimed = claim(one).unwrap().expect("it is free");
        let mine = Owner { pid: std::process::id() as i32, uid: nix::unistd::getuid().as_raw() };
        assert_eq!(claim(one).unwrap().unwrap_err(), mine);
        // A query neither consumes the claim nor blocks.
        for n in 0..100 {
            let seen = owner(one).unwrap().expect("it is taken");
            assert!(seen == mine || n >= 8 && seen.pid == 0, "{n}: {seen}");
        }
        let also = claim(other).unwrap().expect("another interface is free");
        drop(claimed);
        assert_eq!(owner(one).unwrap(), None);
        assert!(claim(one).unwrap().is_ok() && owner(other).unwrap().is_some());
        drop(also);
    }
}
