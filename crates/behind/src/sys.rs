//! Code that Rust cannot check: a function before `main`, and descriptors from another process.
#![expect(unsafe_code, reason = "each use has its argument")]

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;

use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};

/// Maximum length of a host's answer in bytes.
const LONGEST: usize = 4096;

extern "C" fn before_main() {
    crate::steps::dispatch();
}

/// The loader calls the function in this section before `main`, in a process with one thread: only then can
/// namespaces be entered.
// SAFETY: the section is an array of pointers to functions of this signature; the function does not unwind into the loader, since it
// ends the process or returns, and a panic in an `extern "C"` function aborts.
#[unsafe(link_section = ".init_array")]
#[used]
static BEFORE_MAIN: extern "C" fn() = before_main;

/// Sends an answer with an optional socket.
pub fn send(stream: &UnixStream, answer: &[u8], socket: Option<&OwnedFd>) -> io::Result<()> {
    let sockets: Vec<_> = socket.iter().map(|socket| socket.as_raw_fd()).collect();
    let rights = [ControlMessage::ScmRights(&sockets)];
    let control = if sockets.is_empty() { &rights[..0] } else { &rights };
    let parts = [IoSlice::new(answer)];
    sendmsg::<()>(stream.as_raw_fd(), &parts, control, MsgFlags::MSG_NOSIGNAL, None)?;
    Ok(())
}

/// Receives an answer with an optional socket.
pub fn receive(stream: &UnixStream) -> io::Result<(Vec<u8>, Option<OwnedFd>)> {
    let mut answer = vec![0; LONGEST];
    let mut space = nix::cmsg_space!(i32);
    let mut parts = [IoSliceMut::new(&mut answer)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let message = recvmsg::<()>(stream.as_raw_fd(), &mut parts, Some(&mut space), flags)?;
    let length = message.bytes;
    let mut socket = None;
    for control in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(descriptors) = control {
            for descriptor in descriptors {
                // SAFETY: the kernel has just opened this descriptor for this process; nothing else owns it.
                socket = Some(unsafe { OwnedFd::from_raw_fd(descriptor) });
            }
        }
    }
    answer.truncate(length);
    Ok((answer, socket))
}
