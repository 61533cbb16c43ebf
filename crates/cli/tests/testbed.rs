//! Testbeds that stay, as a user meets them: as root and without.
//!
//! Each test has a directory of its own for what is known of its testbeds, so that tests do not see each other's, nor
//! those of whoever runs them.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const NOBODY: u32 = 65_534;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum User {
    Root,
    Nobody,
}

/// A user with a directory for testbeds, and the program where that user may read it.
struct World {
    user: User,
    base: PathBuf,
}

impl World {
    fn new(test: &str, user: User) -> World {
        let name = format!("lasthop-{test}-{user:?}-{}", std::process::id());
        let base = std::env::temp_dir().join(name);
        let world = World { user, base };
        fs::create_dir(&world.base).expect("a temporary directory");
        fs::set_permissions(&world.base, fs::Permissions::from_mode(0o755)).expect("its mode");
        // By another process: a file that one thread has open for writing cannot be started by the next.
        let mut copy = Command::new("cp");
        copy.arg(env!("CARGO_BIN_EXE_lasthop")).arg(world.program());
        assert!(copy.status().expect("cp runs").success());
        fs::create_dir(world.runtime()).expect("a directory");
        fs::set_permissions(world.runtime(), fs::Permissions::from_mode(0o700)).expect("its mode");
        if world.drops() {
            chown(world.runtime(), Some(NOBODY), Some(NOBODY)).expect("it is nobody's");
        }
        world
    }

    fn program(&self) -> PathBuf {
        self.base.join("lasthop")
    }

    fn runtime(&self) -> PathBuf {
        self.base.join("runtime")
    }

    /// Whether the tests run as root and this world does not.
    fn drops(&self) -> bool {
        self.user == User::Nobody && is_root()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.program());
        command.args(arguments).current_dir("/").env("NO_COLOR", "1").stdin(Stdio::null());
        command.env("XDG_RUNTIME_DIR", self.runtime());
        // A directory in it that nobody may search would change what a missing program is called.
        command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        if self.drops() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the program starts")
    }

    /// Runs a command that must succeed, and returns what it prints.
    fn good(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let (out, err) = said(&output);
        assert!(output.status.success(), "{:?} {arguments:?}: {out}{err}", self.user);
        out
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.good(&[arguments, &["--json"]].concat())).expect("JSON")
    }

    /// Runs a command that must be refused as bad input, and returns what it says.
    fn refused(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let (out, err) = said(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {out}{err}");
        err
    }

    /// What is left of testbeds: names of directories.
    fn left(&self) -> Vec<String> {
        let entries = fs::read_dir(self.runtime().join("lasthop")).expect("the directory is there");
        let names =
            entries.map(|entry| entry.expect("read").file_name().into_string().expect("text"));
        names.filter(|name| name != ".lock").collect()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // A test that failed half way leaves nothing either.
        if let Ok(list) =
            serde_json::from_slice::<Value>(&self.run(&["testbed", "list", "--json"]).stdout)
        {
            for entry in list.as_array().into_iter().flatten() {
                let _ = self.run(&["testbed", "down", entry["name"].as_str().unwrap_or_default()]);
            }
        }
        let _ = fs::remove_dir_all(&self.base);
    }
}

fn is_root() -> bool {
    fs::metadata("/proc/self").expect("/proc").uid() == 0
}

fn said(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// Numbers of the network namespaces of a testbed.
fn namespaces(record: &Value) -> Vec<u64> {
    let hosts = record["hosts"].as_array().expect("hosts");
    hosts.iter().map(|host| host["namespace"].as_u64().expect("a number")).collect()
}

/// Processes in these namespaces: where they stand in /proc.
fn inside(namespaces: &[u64]) -> Vec<String> {
    let entries = fs::read_dir("/proc").expect("read").filter_map(Result::ok);
    let within = entries.map(|entry| entry.path()).filter(|process| {
        let number = fs::metadata(process.join("ns/net")).map(|meta| meta.ino());
        number.is_ok_and(|number| namespaces.contains(&number))
    });
    within.map(|process| process.display().to_string()).collect()
}

/// Starts `sleep` on a host, and returns when it runs.
fn sleeper(world: &World, name: &str, host: &str) -> std::process::Child {
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

fn each(test: &str, f: fn(&World)) {
    // An ordinary user can only be that: who is root in a user namespace of each command is somebody else each time.
    // The tests of lasthop-live have a root there too.
    let users = if is_root() { &[User::Root, User::Nobody][..] } else { &[User::Nobody] };
    for user in users {
        f(&World::new(test, *user));
    }
}

#[test]
fn up_exec_and_down() {
    each("up", |world| {
        assert_eq!(world.run(&["testbed", "status", "testbed"]).status.code(), Some(1));
        let record = world.json(&["testbed", "up", "--preset", "chopin=linux-1997"]);
        let names: Vec<_> = record["hosts"]
            .as_array()
            .expect("hosts")
            .iter()
            .map(|host| host["name"].as_str().unwrap_or_default())
            .collect();
        assert_eq!(names, ["verdi", "ravel", "chopin"]);
        assert_eq!(world.json(&["testbed", "list"])[0]["status"], "up");
        assert!(world.good(&["testbed", "status", "testbed"]).contains("10.1.0.1"));

        assert!(world.good(&["testbed", "exec", "ravel", "ip", "address"]).contains("10.0.0.1/32"));
        let read = ["testbed", "exec", "chopin", "--", "cat", "/proc/sys/net/ipv4/tcp_sack"];
        assert_eq!(world.good(&read), "0\n");

        // Until a bridge stands in for the base station, nothing crosses.
        for line in [
            "link add name bridge type bridge stp_state 0 forward_delay 0",
            "link set dev ravel master bridge",
            "link set dev chopin master bridge",
            "link set dev bridge up",
        ] {
            let words: Vec<_> = line.split(' ').collect();
            world.good(&[&["testbed", "exec", "verdi", "--", "ip"], words.as_slice()].concat());
        }
        // Nobody listens there, and the other kernel says so: there and back again, by name.
        let connect = ["testbed", "exec", "ravel", "--", "bash", "-c", "exec 3<>/dev/tcp/chopin/9"];
        let (_, err) = said(&world.run(&connect));
        assert!(err.contains("Connection refused"), "{err}");

        let code = |words: &[&str]| {
            world.run(&[&["testbed", "exec", "ravel", "--"], words].concat()).status
        };
        assert_eq!(code(&["sh", "-c", "exit 7"]).code(), Some(7));
        assert_eq!(code(&["no-such-program"]).code(), Some(127));
        assert_eq!(code(&["/etc/hosts"]).code(), Some(126));
        assert_eq!(code(&["sh", "-c", "kill -USR1 $$"]).signal(), Some(10));
        assert!(
            world
                .refused(&["testbed", "exec", "liszt", "true"])
                .contains("there are verdi, ravel, chopin")
        );
        let shell = world
            .command(&["testbed", "shell", "chopin"])
            .env("SHELL", "/bin/sh")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut shell = shell.expect("started");
        let mut input = shell.stdin.take().expect("a pipe");
        std::io::Write::write_all(&mut input, b"echo $LASTHOP_HOST; exit 4\n").expect("written");
        drop(input);
        let output = shell.wait_with_output().expect("ended");
        assert_eq!((output.status.code(), said(&output).0.as_str()), (Some(4), "chopin\n"));

        let mut sleeper = sleeper(world, "testbed", "chopin");
        let told = world.json(&["testbed", "down"]);
        assert_eq!(told["testbeds"][0]["was_up"], true);
        assert_eq!(told["testbeds"][0]["ended"][0][1], "sleep");
        assert!(sleeper.wait().expect("ended").signal().is_some());
        assert_eq!(world.left(), [""; 0]);
        assert_eq!(inside(&namespaces(&record)), [""; 0]);
        assert!(world.refused(&["testbed", "down"]).contains("no testbed is up"));
        assert_eq!(world.good(&["testbed", "clean"]), "nothing is left of earlier testbeds\n");
    });
}

#[test]
fn several_at_once() {
    each("several", |world| {
        let up = |name: &str| {
            let mut command = world.command(&["testbed", "up", "--name", name]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started")
        };
        let started: Vec<_> = ["a", "b", "c", "c"].into_iter().map(up).collect();
        let outputs: Vec<_> =
            started.into_iter().map(|child| child.wait_with_output().expect("ended")).collect();
        let good: Vec<_> = outputs.iter().map(|output| output.status.success()).collect();
        assert!(good[0] && good[1] && (good[2] ^ good[3]), "{outputs:?}");
        let loser = said(&outputs[if good[2] { 3 } else { 2 }]).1;
        assert!(loser.contains("there is a testbed `c` already"), "{loser}");

        assert!(world.refused(&["testbed", "exec", "ravel", "true"]).contains("a, b, c"));
        // The same names and addresses, and yet another host.
        let mut numbers: Vec<u64> = Vec::new();
        for entry in world.json(&["testbed", "list"]).as_array().expect("a list") {
            assert_eq!(entry["status"], "up");
            numbers.extend(namespaces(&entry["record"]));
        }
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 9);
        world.good(&[
            "testbed", "exec", "--name", "a", "ravel", "--", "ip", "link", "set", "dev", "eth0",
            "down",
        ]);
        let link =
            ["testbed", "exec", "--name", "b", "ravel", "--", "ip", "link", "show", "dev", "eth0"];
        assert!(world.good(&link).contains("state UP"));

        world.good(&["testbed", "down", "b"]);
        assert_eq!(inside(&numbers).len(), 2);
        for name in ["a", "c"] {
            world.good(&["testbed", "down", name]);
        }
        assert_eq!(world.left(), [""; 0]);
        assert_eq!(inside(&numbers), [""; 0]);
    });
}

#[test]
fn what_a_killed_one_leaves_is_found() {
    each("killed", |world| {
        let record = world.json(&["testbed", "up"]);
        world.good(&["testbed", "up", "--name", "other"]);
        let mut inner = sleeper(world, "testbed", "ravel");
        let mut other = sleeper(world, "other", "ravel");
        let pid = record["process"]["pid"].as_i64().expect("a number");
        assert!(
            Command::new("sh")
                .args(["-c", &format!("kill -9 {pid}")])
                .status()
                .expect("run")
                .success()
        );
        while world.run(&["testbed", "status", "testbed"]).status.success() {}

        let list = world.good(&["testbed", "list"]);
        assert!(list.contains("testbed  dead; `lasthop testbed clean`"), "{list}");
        let enter = ["testbed", "exec", "--name", "testbed", "ravel", "true"];
        assert!(world.refused(&enter).contains("lasthop testbed clean"));
        assert!(world.refused(&["testbed", "up"]).contains("lasthop testbed clean"));
        assert_eq!(inside(&namespaces(&record)).len(), 1);

        let told = world.good(&["testbed", "clean"]);
        assert!(told.contains(&format!("ended sleep (process {})", inner.id())), "{told}");
        assert!(inner.wait().expect("ended").signal().is_some());
        assert_eq!(inside(&namespaces(&record)), [""; 0]);
        // The one that is alive has lost nothing.
        assert_eq!(world.left(), ["other"]);
        assert!(other.try_wait().expect("asked").is_none());
        world.good(&["testbed", "down", "other"]);
        other.wait().expect("ended");
        assert_eq!(world.left(), [""; 0]);
    });
}

#[test]
fn one_that_is_asked_to_end_cleans_up_itself() {
    each("term", |world| {
        let record = world.json(&["testbed", "up"]);
        let program = world.program();
        // Inside, a testbed is seen as from outside.
        let list =
            ["testbed", "exec", "ravel", "--", program.to_str().expect("text"), "testbed", "list"];
        assert!(world.good(&list).contains("chopin"));
        let pid = &record["process"]["pid"];
        let kill = Command::new("sh").args(["-c", &format!("kill {pid}")]).status();
        assert!(kill.expect("run").success());
        while !inside(&namespaces(&record)).is_empty() {}
        assert_eq!(world.left(), [""; 0]);
    });
}

#[test]
fn what_cannot_be_is_refused_and_leaves_nothing() {
    each("refused", |world| {
        for (arguments, words) in [
            (&["--name", "../x"][..], "`../x` cannot be the name of a testbed"),
            (&["--name", ""], "cannot be the name"),
            (&["--preset", "linux"], "there are linux-1997"),
            (&["--preset", "liszt=linux-bbr"], "there is no host `liszt`"),
            (&["no-such-scenario"], "neither a file nor a built-in scenario"),
        ] {
            let said = world.refused(&[&["testbed", "up"], arguments].concat());
            assert!(said.contains(words), "{said}");
        }
        // A name that a scenario may have and an interface may not.
        let text = include_str!("../../../scenarios/quickstart.toml")
            .replace("laptop", "my-very-long-laptop");
        assert!(text.contains("my-very-long-laptop"));
        let file = world.base.join("long.toml");
        fs::write(&file, text).expect("written");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("its mode");
        let said = world.refused(&["testbed", "up", file.to_str().expect("text")]);
        assert!(said.contains("`my-very-long-laptop` cannot be a host"), "{said}");
        assert!(world.refused(&["testbed", "hold"]).contains("not for people"));
        assert_eq!(world.left(), [""; 0]);
    });
}

#[test]
fn a_kernel_that_forbids_it_is_quoted() {
    let world = World::new("forbidden", User::Nobody);
    let program = world.program();
    let script = format!(
        "echo 0 > /proc/sys/user/max_user_namespaces && echo 0 > /proc/sys/user/max_net_namespaces \
         && exec {} testbed up",
        program.display()
    );
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--user", "sh", "-c", &script]).current_dir("/");
    command.env("XDG_RUNTIME_DIR", world.runtime()).env("NO_COLOR", "1");
    if world.drops() {
        command.uid(NOBODY).gid(NOBODY);
    }
    let output = command.output().expect("started");
    let (out, err) = said(&output);
    assert_eq!(output.status.code(), Some(2), "{out}{err}");
    assert!(err.contains("sysctl user.max_user_namespaces is 0"), "{err}");
    assert!(err.contains("sudo sysctl user.max_user_namespaces=1000"), "{err}");
    assert_eq!(world.left(), [""; 0]);
}

#[test]
fn doctor_tries_a_testbed() {
    each("doctor", |world| {
        let checks = world.json(&["doctor", "-o", "/tmp"]);
        for name in ["namespaces", "veth", "packet sockets", "linux-1997", "linux-cubic"] {
            let mut checks = checks.as_array().expect("a list").iter();
            let check = checks.find(|check| check["name"] == name).expect("it is looked at");
            assert_eq!(check["ok"], true, "{check}");
        }
    });
}
