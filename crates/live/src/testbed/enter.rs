//! Moves a process from the machine's network to a private one.

use std::fs;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::Mode;
use nix::unistd::{getegid, geteuid};

use super::error::{Error, Tried as _};

/// Directory in which `ip netns` looks for namespaces.
pub(super) const NAMESPACES: &str = "/run/netns";

/// Moves the calling process to new network and mount namespaces. Without root it enters a new user namespace
/// first, where it is root.
///
/// # Errors
///
/// The obstacle, with its remedy.
pub(super) fn enter() -> Result<(), Error> {
    apart(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWNET)?;
    own_mounts()
}

/// Makes the next child the first process of a new process namespace. Without root the calling process enters
/// a new user namespace, where it is root. Returns its former user and group in that case.
///
/// # Errors
///
/// As [`enter`].
pub(crate) fn own_processes() -> Result<Option<(u32, u32)>, Error> {
    apart(CloneFlags::CLONE_NEWPID)
}

/// Like [`enter`], for a process that is root of a user namespace already. Calls `between` with the new
/// mounts but still in the old network.
///
/// # Errors
///
/// As [`enter`], and errors of `between`.
pub(crate) fn enter_after<T>(between: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    unshare(CloneFlags::CLONE_NEWNS).map_err(refused)?;
    own_mounts()?;
    let done = between()?;
    unshare(CloneFlags::CLONE_NEWNET).map_err(refused)?;
    Ok(done)
}

/// Moves the calling process to new namespaces, if needed in a new user namespace. Returns its former user
/// and group in that case.
fn apart(own: CloneFlags) -> Result<Option<(u32, u32)>, Error> {
    let Some(threads) = status("Threads") else {
        return Err(Error::new(
            "/proc is not mounted here, as in a bare chroot".to_owned(),
            "mount it: `mount -t proc proc /proc`",
        ));
    };
    if threads != "1" {
        return Err(Error::new(
            format!("cannot enter a network of its own: this process has {threads} threads"),
            "this is a fault of the program: a testbed is entered before the first thread is started",
        ));
    }
    // Root in a container may lack this right but still be allowed to make a user namespace.
    if geteuid().is_root() && unshare(own).is_ok() {
        return Ok(None);
    }
    // Read first: inside the new namespace no user is mapped yet.
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    unshare(CloneFlags::CLONE_NEWUSER | own).map_err(refused)?;
    map_user((0, uid), (0, gid))
        .map_err(|error| refused(error.raw_os_error().map_or(Errno::EPERM, Errno::from_raw)))?;
    Ok(Some((uid, gid)))
}

/// Maps user and group of the calling process in its new user namespace: first inside, then outside.
pub(crate) fn map_user(user: (u32, u32), group: (u32, u32)) -> std::io::Result<()> {
    let line = |(inside, outside): (u32, u32)| format!("{inside} {outside} 1\n");
    // Without `deny` the kernel refuses `gid_map`, since a group that denies access must not be dropped.
    for (file, text) in
        [("setgroups", "deny".to_owned()), ("uid_map", line(user)), ("gid_map", line(group))]
    {
        fs::write(format!("/proc/self/{file}"), text)?;
    }
    Ok(())
}

/// Makes later mounts private to the calling process, and mounts a private /run.
fn own_mounts() -> Result<(), Error> {
    let none = None::<&str>;
    // Ubuntu lets all users make a user namespace but then removes its rights, which shows at the first use.
    let made = mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none);
    made.map_err(|errno| match errno {
        Errno::EINVAL => Error::new(
            "cannot make mounts of its own: the root directory is no mount, as in a bare chroot"
                .to_owned(),
            "before `chroot DIR`, mount it on itself: `mount --bind DIR DIR`",
        ),
        errno => refused(errno),
    })?;
    own_run()
}

/// Mounts a private /run with /run/netns in it. The old entries are bound into it, since name resolution,
/// agents and desktops have their sockets there.
fn own_run() -> Result<(), Error> {
    let run = Path::new("/run");
    let entries: Vec<_> = fs::read_dir(run)
        .tried(|| "read /run")?
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name() != "netns")
        .collect();
    let old: OwnedFd =
        open(run, OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())
            .tried(|| "open /run")?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("lasthop"), run, Some("tmpfs"), flags, Some("mode=755,size=16m"))
        .tried(|| "mount a tmpfs on /run")?;
    let old = PathBuf::from(format!("/proc/self/fd/{}", old.as_raw_fd()));
    for entry in entries {
        // An entry that cannot be bound, such as another user's directory, is missing in the new /run.
        let _ = carry_over(&old.join(entry.file_name()), &run.join(entry.file_name()));
    }
    fs::create_dir(NAMESPACES).tried(|| format!("create {NAMESPACES}"))
}

fn carry_over(from: &Path, to: &Path) -> std::io::Result<()> {
    let kind = fs::symlink_metadata(from)?.file_type();
    if kind.is_symlink() {
        return symlink(fs::read_link(from)?, to);
    }
    if kind.is_dir() {
        fs::create_dir(to)?;
    } else {
        fs::File::create_new(to)?;
    }
    let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
    mount(Some(from), to, None::<&str>, flags, None::<&str>).map_err(|error| {
        let _ = if kind.is_dir() { fs::remove_dir(to) } else { fs::remove_file(to) };
        error.into()
    })
}

/// Value of a key in /proc/self/status.
fn status(key: &str) -> Option<String> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find(|line| line.split(':').next() == Some(key))?;
    Some(line.split(':').nth(1)?.trim().to_owned())
}

/// Identifies the obstacle behind an error of the kernel.
fn refused(errno: Errno) -> Error {
    let setting =
        |path: &str| -> Option<u64> { fs::read_to_string(path).ok()?.trim().parse().ok() };
    let root = "or run lasthop as root";
    let known = obstacle(&Signs {
        errno,
        most_user: setting("/proc/sys/user/max_user_namespaces"),
        most_net: setting("/proc/sys/user/max_net_namespaces"),
        debian: setting("/proc/sys/kernel/unprivileged_userns_clone"),
        ubuntu: setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
        seccomp: status("Seccomp").is_some_and(|mode| mode == "2"),
    });
    let (reason, help) = known.unwrap_or((
        "the kernel refuses, and none of the usual reasons applies (a chroot, or a security module)",
        "see `dmesg`",
    ));
    Error::new(
        format!("cannot make a user and network namespace: {reason} ({})", errno.desc()),
        format!("{help}, {root}"),
    )
}

/// Conditions that explain an error of the kernel.
struct Signs {
    errno: Errno,
    most_user: Option<u64>,
    most_net: Option<u64>,
    debian: Option<u64>,
    ubuntu: Option<u64>,
    seccomp: bool,
}

fn obstacle(signs: &Signs) -> Option<(&'static str, &'static str)> {
    if signs.most_user == Some(0) {
        return Some((
            "sysctl user.max_user_namespaces is 0",
            "`sudo sysctl user.max_user_namespaces=1000`",
        ));
    }
    if signs.most_net == Some(0) {
        return Some((
            "sysctl user.max_net_namespaces is 0",
            "`sudo sysctl user.max_net_namespaces=1000`",
        ));
    }
    match signs.errno {
        Errno::ENOSPC => Some((
            "there are as many namespaces as sysctl user.max_user_namespaces and user.max_net_namespaces allow",
            "raise them, for example `sudo sysctl user.max_net_namespaces=10000`",
        )),
        Errno::EINVAL | Errno::ENOSYS => Some((
            "this kernel is built without them",
            "use one with CONFIG_USER_NS, CONFIG_NET_NS and CONFIG_VETH",
        )),
        _ if signs.debian == Some(0) => Some((
            "sysctl kernel.unprivileged_userns_clone is 0",
            "`sudo sysctl kernel.unprivileged_userns_clone=1`",
        )),
        _ if signs.seccomp => Some((
            "a seccomp filter is in force, as in most containers",
            "start the container with `--cap-add SYS_ADMIN --security-opt seccomp=unconfined --security-opt \
             apparmor=unconfined`, or use a virtual machine",
        )),
        _ if signs.ubuntu == Some(1) => Some((
            "Ubuntu's AppArmor forbids it to users (sysctl kernel.apparmor_restrict_unprivileged_userns is 1)",
            "`sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`",
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Signs = Signs {
        errno: Errno::EPERM,
        most_user: Some(1000),
        most_net: Some(1000),
        debian: None,
        ubuntu: None,
        seccomp: false,
    };

    #[test]
    fn each_namespace_obstacle_is_named() {
        let reason = |signs: Signs| obstacle(&signs).map_or("unknown", |(reason, _)| reason);
        assert_eq!(reason(PLAIN), "unknown");
        assert!(
            reason(Signs { most_user: Some(0), errno: Errno::ENOSPC, ..PLAIN })
                .contains("max_user_namespaces is 0")
        );
        assert!(reason(Signs { most_net: Some(0), ..PLAIN }).contains("max_net_namespaces is 0"));
        assert!(reason(Signs { errno: Errno::ENOSPC, ..PLAIN }).contains("as many namespaces"));
        assert!(reason(Signs { debian: Some(0), ..PLAIN }).contains("unprivileged_userns_clone"));
        assert!(reason(Signs { ubuntu: Some(1), ..PLAIN }).contains("AppArmor"));
        assert!(reason(Signs { seccomp: true, ..PLAIN }).contains("seccomp"));
        assert!(reason(Signs { errno: Errno::EINVAL, ..PLAIN }).contains("built without"));
    }
}
