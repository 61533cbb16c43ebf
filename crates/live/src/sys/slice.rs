//! `sched_setattr(2)`: how long a thread runs at a time, and so how soon it is scheduled when it wakes.
#![expect(unsafe_code, reason = "no safe interface has sched_setattr")]

use std::io;

/// `struct sched_attr` as far as it is used here.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// The policy of all threads for whom nobody has chosen another.
const OTHER: u32 = libc::SCHED_OTHER as u32;

/// Has this thread run for 100 microseconds at a time, the least there is: of two that wait, the one with the shorter
/// slice goes first, and it may interrupt one that runs. Its share of the processor stays what it was. Anybody may ask
/// for that; before Linux 6.12 it does nothing.
///
/// # Errors
/// Those of the system.
pub fn shorten() -> io::Result<()> {
    let size = size_of::<Attributes>() as u32;
    let mut attributes = Attributes { size, ..Attributes::default() };
    // SAFETY: the kernel writes at most `size` bytes to a live value of that size; thread 0 is the calling one.
    let got = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
    if got < 0 {
        return Err(io::Error::last_os_error());
    }
    if attributes.policy != OTHER {
        // Somebody has chosen something better.
        return Ok(());
    }
    attributes.runtime = 100_000;
    // SAFETY: the kernel reads a live value of the size given in it.
    match unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
