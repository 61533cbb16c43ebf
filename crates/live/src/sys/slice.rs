//! `sched_setattr(2)`: the time slice of a thread, which determines its wakeup latency.
#![expect(unsafe_code, reason = "no safe interface has sched_setattr")]

use std::io;

/// The used fields of `struct sched_attr`.
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

/// The default scheduling policy.
const OTHER: u32 = libc::SCHED_OTHER as u32;

/// Sets the time slice of this thread to 100 microseconds, the minimum. The scheduler prefers the thread with
/// the shorter slice, which may preempt a running one. The share of the processor is unchanged. Needs no
/// privilege; has no effect before Linux 6.12.
///
/// # Errors
/// Errors of the system.
pub fn shorten() -> io::Result<()> {
    let size = size_of::<Attributes>() as u32;
    let mut attributes = Attributes { size, ..Attributes::default() };
    // SAFETY: the kernel writes at most `size` bytes to a live value of that size; thread 0 is the calling one.
    let got = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
    if got < 0 {
        return Err(io::Error::last_os_error());
    }
    if attributes.policy != OTHER {
        // An explicitly chosen policy is kept.
        return Ok(());
    }
    attributes.runtime = 100_000;
    // SAFETY: the kernel reads a live value of the size given in it.
    match unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
