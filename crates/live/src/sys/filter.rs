//! Seccomp filter (seccomp(2)) of system calls that a station never makes, so that an attacker cannot use
//! them through a fault in it.
//!
//! The systemd unit has a list of allowed calls. This filter is for a station without the unit. It lists
//! forbidden calls and returns EPERM, so a library that makes another harmless call does not end the station.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};

/// Calls for execution, process inspection, mounts, namespaces, modules, the clock, keys and users, and
/// interfaces of the kernel with a history of faults.
const REFUSED: &[libc::c_long] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_fsconfig,
    libc::SYS_open_by_handle_at,
    libc::SYS_mknodat,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setgroups,
    libc::SYS_personality,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_vhangup,
];

fn program() -> Result<Option<BpfProgram>, seccompiler::BackendError> {
    // Other processors have no filter.
    let Ok(arch) = TargetArch::try_from(std::env::consts::ARCH) else { return Ok(None) };
    let rules: BTreeMap<i64, Vec<_>> = REFUSED.iter().map(|call| (*call, vec![])).collect();
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    SeccompFilter::new(rules, SeccompAction::Allow, refused, arch)?.try_into().map(Some)
}

/// Makes the kernel refuse the listed calls, for the calling thread and its future children. Needs
/// `no_new_privs`.
///
/// # Errors
/// Errors of the system, for example without seccomp.
pub fn refuse_unused() -> io::Result<()> {
    match program().map_err(io::Error::other)? {
        Some(program) => seccompiler::apply_filter(&program).map_err(io::Error::other),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::sys::privileges;

    /// On a separate thread, since a filter cannot be removed.
    #[test]
    fn unused_system_calls_are_refused_and_others_work() {
        let check = || {
            assert!(Command::new("true").status().is_ok());
            privileges::drop_unused().unwrap();
            refuse_unused().unwrap();
            let refused = Command::new("true").status().unwrap_err();
            assert_eq!(refused.raw_os_error(), Some(libc::EPERM));
            let mounted = nix::mount::umount("/");
            assert_eq!(mounted, Err(nix::errno::Errno::EPERM));
            assert_eq!(
                nix::sched::unshare(nix::sched::CloneFlags::CLONE_FS),
                Err(nix::errno::Errno::EPERM)
            );
            // Files, sockets, threads.
            std::fs::read("/proc/self/status").unwrap();
            std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            let later = std::thread::spawn(|| Command::new("true").status().is_err());
            assert!(later.join().unwrap(), "threads that start later");
        };
        std::thread::spawn(check).join().unwrap();
        assert!(Command::new("true").status().is_ok(), "other threads are free");
    }
}
