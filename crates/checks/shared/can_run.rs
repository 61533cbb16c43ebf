//! Tests with requirements that a machine may lack: tshark, root, /dev/net/tun. Tests of every crate include
//! this file by its path.

use std::io::Write as _;
use std::{env, fs, thread};

/// Whether the calling test can run: `there` is whether this machine has `needs`. A test that cannot run is
/// added to the list that `make test` shows at the end, and fails if `CI` is set.
///
/// # Panics
/// If `CI` is set and it cannot run.
pub fn can_run(there: bool, needs: &str) -> bool {
    if there {
        return true;
    }
    let file = env::current_exe().unwrap_or_default();
    let file = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let program = file.rsplit_once('-').map_or(&*file, |(name, _)| name);
    let test = thread::current().name().unwrap_or("?").to_owned();
    let line = format!("{} {program}: {test} needs {needs}\n", env!("CARGO_PKG_NAME"));
    assert!(env::var_os("CI").is_none(), "CI is set, and this cannot run: {line}");
    eprint!("not run: {line}");
    if let Some(list) = env::var_os("LASTHOP_NOT_RUN") {
        let list = fs::File::options().create(true).append(true).open(list);
        list.and_then(|mut list| list.write_all(line.as_bytes())).expect("the list is written");
    }
    false
}
