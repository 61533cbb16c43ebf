//! Drops all capabilities that a station does not use (capabilities(7)).
#![expect(unsafe_code, reason = "no safe interface sets capabilities")]

use std::io;

/// Capabilities of a running station, by number in linux/capability.h: packet sockets, interface settings,
/// kernel programs, and a low port for metrics.
const USED: [u32; 4] = [NET_BIND_SERVICE, NET_ADMIN, NET_RAW, BPF];
const NET_BIND_SERVICE: u32 = 10;
const NET_ADMIN: u32 = 12;
const NET_RAW: u32 = 13;
const BPF: u32 = 39;

/// `_LINUX_CAPABILITY_VERSION_3`: two words of 32 capabilities each.
const VERSION: u32 = 0x2008_0522;

#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Word {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

fn read() -> io::Result<[Word; 2]> {
    let mut header = Header { version: VERSION, pid: 0 };
    let mut words = [Word::default(); 2];
    // SAFETY: the kernel reads a header and writes two words, which this version has.
    let code = unsafe { libc::syscall(libc::SYS_capget, &raw mut header, words.as_mut_ptr()) };
    if code == 0 { Ok(words) } else { Err(io::Error::last_os_error()) }
}

fn write(words: &[Word; 2]) -> io::Result<()> {
    let mut header = Header { version: VERSION, pid: 0 };
    // SAFETY: the kernel reads a header and two words, which this version has.
    let code = unsafe { libc::syscall(libc::SYS_capset, &raw mut header, words.as_ptr()) };
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Drops unused capabilities, and the right to gain any by executing a program. Affects the calling thread
/// and its future children.
///
/// # Errors
/// Errors of the system.
pub fn drop_unused() -> io::Result<()> {
    let before = read()?;
    let mut words = before;
    for (i, word) in words.iter_mut().enumerate() {
        let used = USED.iter().filter(|cap| *cap / 32 == i as u32);
        let mask = used.fold(0, |mask, cap| mask | 1 << (cap % 32));
        word.effective &= mask;
        word.permitted &= mask;
        word.inheritable &= mask;
    }
    // The systemd unit's filter refuses `capset`, but its bounding set leaves nothing to drop.
    if words != before {
        write(&words)?;
    }
    Ok(nix::sys::prctl::set_no_new_privs()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On a separate thread: capabilities belong to threads.
    #[test]
    fn unused_capabilities_are_dropped_permanently() {
        let check = || {
            let before = read().unwrap();
            drop_unused().unwrap();
            let after = read().unwrap();
            let retained = [1 << NET_BIND_SERVICE | 1 << NET_ADMIN | 1 << NET_RAW, 1 << (BPF - 32)];
            for i in 0..2 {
                assert_eq!(after[i].permitted, before[i].permitted & retained[i]);
                assert_eq!(after[i].effective & !after[i].permitted, 0);
            }
            assert!(nix::sys::prctl::get_no_new_privs().unwrap());
            let more = [Word { permitted: before[0].permitted | 1, ..after[0] }, after[1]];
            assert!(before[0].permitted & 1 == 0 || write(&more).is_err());
            // A second call changes nothing.
            drop_unused().unwrap();
            assert_eq!(read().unwrap(), after);
            let inner = std::thread::spawn(read).join().unwrap().unwrap();
            assert_eq!(inner[0].permitted, after[0].permitted, "threads that start later");
        };
        std::thread::spawn(check).join().unwrap();
    }
}
