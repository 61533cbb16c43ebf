//! Descriptors that the service manager has stored for this process (sd_listen_fds(3)).
#![expect(unsafe_code, reason = "no safe interface makes an owner of a descriptor by its number")]

use std::os::fd::{FromRawFd as _, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};

/// The first of them.
const FIRST: RawFd = 3;

/// More are not looked at.
const MOST: u32 = 16;

/// Takes the `count` descriptors that this process was started with. Only the first call gets any.
pub fn take(count: u32) -> Vec<OwnedFd> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    if TAKEN.swap(true, Ordering::SeqCst) {
        return Vec::new();
    }
    let numbers = FIRST..FIRST + count.min(MOST) as RawFd;
    // SAFETY: by the protocol these were open when the process started and belong to the first caller, which is this call.
    let all = numbers.map(|number| unsafe { OwnedFd::from_raw_fd(number) });
    all.inspect(|fd| {
        // One that is not open fails here, and its user gets the error.
        let _ = fcntl(fd, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC));
    })
    .collect()
}
