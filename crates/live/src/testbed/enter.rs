//! How a process leaves the machine's network for one of its own.

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

/// Where `ip netns` looks for namespaces.
pub(super) const NAMESPACES: &str = "/run/netns";

/// Puts the calling process into new network and mount namespaces; without root into a new user namespace first,
/// where it is root.
///
/// # Errors
///
/// What forbids it, and how to mend that.
pub(super) fn enter() -> Result<(), Error> {
    apart(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWNET)?;
    own_mounts()
}

/// Has the next process that is started be the first of a process namespace; without root that is in a new user
/// namespace, where the calling process becomes root. The user and the group that it was then.
///
/// # Errors
///
/// As [`enter`].
pub(crate) fn own_processes() -> Result<Option<(u32, u32)>, Error> {
    apart(CloneFlags::CLONE_NEWPID)
}

/// The same as [`enter`] where the calling process is root of a user namespace already: `between` is done when it has
/// mounts of its own, and still the network that it came from.
///
/// # Errors
///
/// As [`enter`], and those of `between`.
pub(crate) fn enter_after<T>(between: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    unshare(CloneFlags::CLONE_NEWNS).map_err(refused)?;
    own_mounts()?;
    let done = between()?;
    unshare(CloneFlags::CLONE_NEWNET).map_err(refused)?;
    Ok(done)
}

/// Puts the calling process into new namespaces, if need be in a new user namespace; who it was then.
fn apart(own: CloneFlags) -> Result<Option<(u32, u32)>, Error> {
    let threads = status("Threads").unwrap_or_default();
    if threads != "1" {
        return Err(Error::new(
            format!("cannot enter a network of its own: this process has {threads} threads"),
            "this is a fault of the program: a testbed is entered before the first thread is started",
        ));
    }
    // Root in a container may lack the right, and still be allowed a user namespace.
    if geteuid().is_root() && unshare(own).is_ok() {
        return Ok(None);
    }
    // They must be read first: inside, nobody is mapped yet.
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    unshare(CloneFlags::CLONE_NEWUSER | own).map_err(refused)?;
    map_user((0, uid), (0, gid))
        .map_err(|error| refused(error.raw_os_error().map_or(Errno::EPERM, Errno::from_raw)))?;
    Ok(Some((uid, gid)))
}

/// Says who the calling process is in its new user namespace: what user and group it has there, and outside.
pub(crate) fn map_user(user: (u32, u32), group: (u32, u32)) -> std::io::Result<()> {
    let line = |(inside, outside): (u32, u32)| format!("{inside} {outside} 1\n");
    // Without the first the kernel refuses the third: a group that denies access must not be shed.
    for (file, text) in
        [("setgroups", "deny".to_owned()), ("uid_map", line(user)), ("gid_map", line(group))]
    {
        fs::write(format!("/proc/self/{file}"), text)?;
    }
    Ok(())
}

/// Keeps what is mounted from now on to the calling process, and gives it a /run of its own.
fn own_mounts() -> Result<(), Error> {
    let none = None::<&str>;
    // Ubuntu lets anybody make a user namespace and then takes its rights away: the first use shows it.
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).map_err(refused)?;
    own_run()
}

/// Mounts a /run of our own with /run/netns in it. What was in /run is carried over, since name resolution,
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
        // What cannot be carried over, a directory of another user's for example, is not there.
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

/// A line of /proc/self/status.
fn status(key: &str) -> Option<String> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find(|line| line.split(':').next() == Some(key))?;
    Some(line.split(':').nth(1)?.trim().to_owned())
}

/// Which of the known obstacles the kernel's answer is.
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
    let (what, help) = known.unwrap_or((
        "the kernel refuses, and none of the usual reasons applies (a chroot, or a security module)",
        "see `dmesg`",
    ));
    Error::new(
        format!("cannot make a user and network namespace: {what} ({})", errno.desc()),
        format!("{help}, {root}"),
    )
}

/// What bears on the kernel's answer.
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
    fn each_obstacle_is_told_by_its_name() {
        let what = |signs: Signs| obstacle(&signs).map_or("unknown", |(what, _)| what);
        assert_eq!(what(PLAIN), "unknown");
        assert!(
            what(Signs { most_user: Some(0), errno: Errno::ENOSPC, ..PLAIN })
                .contains("max_user_namespaces is 0")
        );
        assert!(what(Signs { most_net: Some(0), ..PLAIN }).contains("max_net_namespaces is 0"));
        assert!(what(Signs { errno: Errno::ENOSPC, ..PLAIN }).contains("as many namespaces"));
        assert!(what(Signs { debian: Some(0), ..PLAIN }).contains("unprivileged_userns_clone"));
        assert!(what(Signs { ubuntu: Some(1), ..PLAIN }).contains("AppArmor"));
        assert!(what(Signs { seccomp: true, ..PLAIN }).contains("seccomp"));
        assert!(what(Signs { errno: Errno::EINVAL, ..PLAIN }).contains("built without"));
    }
}
