//! Users with their own testbeds: as root and without.
//!
//! Each has a separate directory for records of testbeds, so that tests do not see each other's testbeds, nor
//! those of the user who runs them.
#![allow(dead_code, reason = "no test uses all of it")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

pub const NOBODY: u32 = 65_534;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum User {
    Root,
    Unprivileged,
}

/// A user with a directory for testbeds, and a copy of the program that this user may read.
pub struct World {
    pub user: User,
    pub base: PathBuf,
}

impl World {
    pub fn new(test: &str, user: User) -> World {
        let name = format!("lasthop-{test}-{user:?}-{}", std::process::id());
        let base = std::env::temp_dir().join(name);
        let world = World { user, base };
        fs::create_dir(&world.base).expect("a temporary directory");
        fs::set_permissions(&world.base, fs::Permissions::from_mode(0o755)).expect("its mode");
        // Copied by another process: a file that one thread has open for writing cannot be executed by the
        // next.
        let mut copy = Command::new("cp");
        copy.arg(env!("CARGO_BIN_EXE_lasthop")).arg(world.program());
        assert!(copy.status().expect("cp runs").success());
        fs::create_dir(world.runtime()).expect("a directory");
        fs::set_permissions(world.runtime(), fs::Permissions::from_mode(0o700)).expect("its mode");
        if world.drops() {
            chown(world.runtime(), Some(NOBODY), Some(NOBODY)).expect("chown to nobody");
        }
        world
    }

    pub fn program(&self) -> PathBuf {
        self.base.join("lasthop")
    }

    pub fn runtime(&self) -> PathBuf {
        self.base.join("runtime")
    }

    /// Whether the tests run as root and this world does not.
    pub fn drops(&self) -> bool {
        self.user == User::Unprivileged && is_root()
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.runs(self.program());
        command.args(arguments);
        command
    }

    /// A command that runs a program as the user.
    pub fn runs(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir("/").env("NO_COLOR", "1").stdin(Stdio::null());
        command.env("XDG_RUNTIME_DIR", self.runtime());
        // A directory in PATH without search permission would change the error for a missing program.
        command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        if self.drops() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the program starts")
    }

    /// Runs a command that must succeed. Returns its output.
    pub fn good(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let (out, err) = text_of(&output);
        assert!(output.status.success(), "{:?} {arguments:?}: {out}{err}", self.user);
        out
    }

    pub fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.good(&[arguments, &["--json"]].concat())).expect("JSON")
    }

    /// Runs a command that must be rejected as bad input. Returns its error.
    pub fn refused(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let (out, err) = text_of(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {out}{err}");
        err
    }

    /// Remains of testbeds: names of directories.
    pub fn left(&self) -> Vec<String> {
        let entries = fs::read_dir(self.runtime().join("lasthop")).expect("the directory is there");
        let names =
            entries.map(|entry| entry.expect("read").file_name().into_string().expect("text"));
        names.filter(|name| name != ".lock").collect()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // A failed test must not leave anything either.
        if let Ok(list) =
            serde_json::from_slice::<Value>(&self.run(&["testbed", "list", "--json"]).stdout)
        {
            for entry in list["testbeds"].as_array().into_iter().flatten() {
                let _ = self.run(&["testbed", "down", entry["name"].as_str().unwrap_or_default()]);
            }
        }
        let _ = fs::remove_dir_all(&self.base);
    }
}

pub fn is_root() -> bool {
    fs::metadata("/proc/self").expect("/proc").uid() == 0
}

pub fn text_of(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// Numbers of a testbed's network namespaces.
pub fn namespaces(record: &Value) -> Vec<u64> {
    let hosts = record["hosts"].as_array().expect("hosts");
    hosts.iter().map(|host| host["namespace"].as_u64().expect("a number")).collect()
}

/// Processes of this world in these namespaces, by their paths in /proc. Numbers of namespaces are reused,
/// also by other worlds.
pub fn inside(world: &World, namespaces: &[u64]) -> Vec<String> {
    let own = world.runtime().display().to_string();
    let is_own = |process: &Path| {
        let environment = fs::read(process.join("environ")).unwrap_or_default();
        String::from_utf8_lossy(&environment).contains(&own)
    };
    let entries = fs::read_dir("/proc").expect("read").filter_map(Result::ok);
    let within = entries.map(|entry| entry.path()).filter(|process| {
        let number = fs::metadata(process.join("ns/net")).map(|meta| meta.ino());
        number.is_ok_and(|number| namespaces.contains(&number)) && is_own(process)
    });
    within.map(|process| process.display().to_string()).collect()
}

/// Starts `sleep` on a host. Returns when it runs.
pub fn sleeper(world: &World, name: &str, host: &str) -> std::process::Child {
    let script = "echo runs; exec sleep 1000";
    let mut child = world
        .command(&["testbed", "exec", "--name", name, host, "--", "sh", "-c", script])
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
    out.read_line(&mut line).expect("read");
    assert_eq!(line, "runs\n");
    child
}

pub fn each(test: &str, f: fn(&World)) {
    // An ordinary user runs only as that user, since each command has its own user namespace. The tests of
    // lasthop-live include root there too.
    let users =
        if is_root() { &[User::Root, User::Unprivileged][..] } else { &[User::Unprivileged] };
    for user in users {
        f(&World::new(test, *user));
    }
}
