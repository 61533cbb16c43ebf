//! The last step before the program: from the root of a user namespace back to the user.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getpgrp, getpid};

use super::front::give_terminal;
use crate::testbed::enter;

/// Becomes `program`, as the user and group `user` if given. Returns only on failure: the reason, and the
/// shell's exit code for it.
pub fn run(user: Option<(u32, u32)>, program: &[OsString]) -> (String, u8) {
    if getpgrp() == getpid() {
        // A shell that is not in the foreground at its start stops itself.
        give_terminal(getpid());
    }
    // The network belongs to the outer user namespace, so the program has only a user's rights in it.
    if let Some((uid, gid)) = user
        && let Err(error) = unshare(CloneFlags::CLONE_NEWUSER)
            .map_err(std::io::Error::from)
            .and_then(|()| enter::map_user((uid, 0), (gid, 0)))
    {
        return (format!("cannot become user {uid} again: {error}"), 126);
    }
    let Some((name, arguments)) = program.split_first() else {
        return ("no program is given".to_owned(), 127);
    };
    let error = Command::new(name).args(arguments).exec();
    let code = if error.kind() == ErrorKind::NotFound { 127 } else { 126 };
    (format!("cannot run {}: {error}", name.to_string_lossy()), code)
}
