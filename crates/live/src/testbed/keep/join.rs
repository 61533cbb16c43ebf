//! Joins a host of a running testbed.

use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use nix::sched::{CloneFlags, setns};

use super::super::enter::NAMESPACES;
use super::super::error::{Error, Tried as _};
use super::process::Process;
use super::state::Record;

/// Environment variable with the testbed of a program, as `NAME/TOKEN`; `clean` finds programs by it.
pub const VARIABLE: &str = "LASTHOP_TESTBED";

/// Moves the calling process, which must have a single thread, into a host or the base station of a testbed.
/// Without root it is root inside. Its working directory remains the same.
///
/// # Errors
///
/// If the host does not exist, has no kernel TCP, or the testbed has ended meanwhile.
pub fn join(record: &Record, host: &str) -> Result<(), Error> {
    let Some(number) = record.host(host)?.namespace else {
        return Err(Error::new(
            format!("host `{host}` has no kernel of its own: its TCP is lasthop's"),
            "only hosts with the kernel's TCP can run programs",
        ));
    };
    let gone = || {
        Error::new(
            format!("testbed `{}` has ended meanwhile", record.name),
            "`lasthop testbed list` shows those that are up",
        )
    };
    // Opened before the first join, which may change the view of /proc/PID. The numbers confirm the identity
    // of the process.
    let open = |path: &Path, number: u64| -> Result<File, Error> {
        let file = File::open(path).map_err(|error| match error.kind() {
            ErrorKind::PermissionDenied => Error::new(
                format!("testbed `{}` may not be joined from here", record.name),
                "a testbed is joined by the user who started it, outside of other user namespaces",
            ),
            _ => gone(),
        })?;
        let found = file.metadata().map_err(|_| gone())?.ino();
        if found == number { Ok(file) } else { Err(gone()) }
    };
    let holder = record.process;
    let named = holder.file("root").join(NAMESPACES.trim_start_matches('/')).join(host);
    let user = open(&holder.file("ns/user"), record.user)?;
    let mount = open(&holder.file("ns/mnt"), record.mount)?;
    let net = open(&named, number)?;
    let here = std::env::current_dir();

    let own = Process::own().and_then(|own| own.namespace("user"));
    if own != Some(record.user) {
        setns(user.as_fd(), CloneFlags::CLONE_NEWUSER)
            .tried(|| "join the testbed's user namespace")?;
    }
    setns(net.as_fd(), CloneFlags::CLONE_NEWNET).tried(|| format!("join `{host}`"))?;
    setns(mount.as_fd(), CloneFlags::CLONE_NEWNS).tried(|| "join the testbed's mount namespace")?;
    // Joining a mount namespace changes to the root directory.
    if let Ok(here) = here {
        let _ = std::env::set_current_dir(here);
    }
    Ok(())
}
