//! Joining a host of a testbed that is up.

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

/// The variable that names the testbed for the programs inside, as `NAME/TOKEN`; `clean` knows them by it.
pub const VARIABLE: &str = "LASTHOP_TESTBED";

/// Puts the calling process, which must not have other threads, into a host or the base station of a testbed.
/// Without root it is root inside. It stays where it is in the file system.
///
/// # Errors
///
/// If there is no such host, if its TCP is not the kernel's, or if the testbed has ended meanwhile.
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
    // Opened before the first is joined: afterwards /proc/PID may look different. The numbers say that the
    // process still is who it was.
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
    // Joining leads to the root directory.
    if let Ok(here) = here {
        let _ = std::env::set_current_dir(here);
    }
    Ok(())
}
