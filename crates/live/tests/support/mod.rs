//! Runs tests that need a separate process: each once as root and once as an ordinary user.
//!
//! The usual harness runs tests on threads, and a process with threads cannot make namespaces. So this
//! harness starts itself for every test. Started by root, the second run is that of the user `nobody`; started
//! by an ordinary user, the first run is root in a user namespace.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};

/// A test: its name, and its function for the main thread of its process.
pub type Test = (&'static str, fn());

const CHILD: &str = "LASTHOP_TEST_CHILD";
const BECOME_ROOT: &str = "LASTHOP_TEST_BECOME_ROOT";
const NOBODY: u32 = 65_534;

/// The user of a test run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum User {
    Root,
    Nobody,
}

/// Runs the tests whose names contain the first argument. A child process runs a single one.
pub fn main(tests: &[Test]) -> ExitCode {
    if std::env::var_os(BECOME_ROOT).is_some() {
        become_root();
    }
    if let Ok(name) = std::env::var(CHILD) {
        let (_, test) = tests.iter().find(|(known, _)| *known == name).expect("a known test");
        test();
        return ExitCode::SUCCESS;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|word| word == "--list") {
        tests.iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    let filter = arguments.iter().find(|word| !word.starts_with('-'));
    let program = Program::copy();
    let mut failed = 0;
    for (name, _) in
        tests.iter().filter(|(name, _)| filter.is_none_or(|word| name.contains(word.as_str())))
    {
        for user in [User::Root, User::Nobody] {
            let output = program.command(user, name).output().expect("the test starts");
            let ok = output.status.success();
            println!("test {name} as {user:?} ... {}", if ok { "ok" } else { "FAILED" });
            if !ok {
                failed += 1;
                println!("{}", output.status);
                println!("{}", String::from_utf8_lossy(&output.stdout));
                println!("{}", String::from_utf8_lossy(&output.stderr));
            }
        }
    }
    println!("\n{failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A copy of this program that all users may read, since the build directory may be in a private home.
pub struct Program {
    dir: PathBuf,
}

impl Program {
    pub fn copy() -> Program {
        let dir = std::env::temp_dir().join(format!("lasthop-test-{}", std::process::id()));
        std::fs::create_dir(&dir).expect("a temporary directory");
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&dir, open).expect("its mode is set");
        let program = Program { dir };
        std::fs::copy(std::env::current_exe().expect("a path"), program.path()).expect("copied");
        program
    }

    pub fn path(&self) -> PathBuf {
        self.dir.join("test")
    }

    pub fn command(&self, user: User, test: &str) -> Command {
        command(&self.path(), user, test)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn command(program: &Path, user: User, test: &str) -> Command {
    let mut command = Command::new(program);
    command.env(CHILD, test).current_dir("/").stdin(Stdio::null());
    match (user, geteuid().is_root()) {
        (User::Nobody, true) => {
            command.uid(NOBODY).gid(NOBODY);
        }
        (User::Root, false) => {
            command.env(BECOME_ROOT, "1");
        }
        _ => {}
    }
    command
}

fn become_root() {
    let (uid, gid) = (geteuid(), getegid());
    unshare(CloneFlags::CLONE_NEWUSER).expect("user namespaces; `lasthop doctor` says why not");
    std::fs::write("/proc/self/setgroups", "deny").expect("written");
    std::fs::write("/proc/self/uid_map", format!("0 {uid} 1\n")).expect("written");
    std::fs::write("/proc/self/gid_map", format!("0 {gid} 1\n")).expect("written");
    let program = std::env::current_exe().expect("a path");
    panic!("{}", Command::new(program).env_remove(BECOME_ROOT).exec());
}
