//! Private namespaces of a test, their hosts, and the programs that run there.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, Uid};
use serde_json::Value;

use crate::can_run::can_run;
use crate::rerun::only;

pub const LASTHOP: &str = env!("CARGO_BIN_EXE_lasthop");

/// Environment variable with the test that runs inside its namespaces.
const INSIDE: &str = "LASTHOP_TEST_INSIDE";

/// Runs `body` in private namespaces: `unshare` starts the test again, which then runs inside.
pub fn inside(test: &str, body: impl FnOnce()) {
    if std::env::var(INSIDE).is_ok_and(|name| name == test) {
        body();
        return;
    }
    let there = Uid::effective().is_root() && Path::new("/dev/net/tun").exists();
    if !can_run(there, "root and /dev/net/tun") {
        // In an ordinary user's namespace the device cannot be opened; only the error can be tested.
        let done = Command::new(LASTHOP).args(["link", "--keygen"]).output().expect("it starts");
        assert_eq!(done.stdout.len(), 65, "a key");
        return;
    }
    let done = Command::new("unshare")
        .arg("-nm")
        .arg(std::env::current_exe().expect("a test has a file"))
        .args(only(test))
        .args(["--nocapture", "--test-threads=1"])
        .env(INSIDE, test)
        .output()
        .expect("unshare (util-linux) is there");
    let output = format!(
        "{}{}",
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr)
    );
    assert!(done.status.success() && output.contains("1 passed"), "in its namespaces:\n{output}");
}

pub fn sh(command: &str) -> String {
    let done = Command::new("sh").args(["-c", command]).output().expect("sh runs");
    let errors = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{command}: {errors}");
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// Runs `work` on a host, in a separate thread.
pub fn on<T: Send + 'static>(
    host: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    let namespace = File::open(format!("/run/netns/{host}")).expect("the namespace is there");
    thread::spawn(move || {
        setns(namespace, CloneFlags::CLONE_NEWNET).expect("we are root");
        work()
    })
}

/// A program that ends with the test.
pub struct Running {
    child: Child,
    /// Its output by lines.
    lines: std::sync::mpsc::Receiver<String>,
}

impl Running {
    fn start(host: Option<&str>, words: &[&str]) -> Running {
        let mut command = match host {
            Some(host) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", host, LASTHOP]);
                command
            }
            None => Command::new(LASTHOP),
        };
        command.args(words).env("NO_COLOR", "1").env_remove("NOTIFY_SOCKET");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().expect("it starts");
        let out = BufReader::new(child.stdout.take().expect("a pipe"));
        let (sender, lines) = std::sync::mpsc::channel();
        thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Running { child, lines }
    }

    /// Waits until it prints a line that contains `word`.
    pub fn wait_for_line(&self, word: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(Duration::from_secs(180));
            let line = line.unwrap_or_else(|error| panic!("no word of `{word}`: {error}"));
            if line.contains(word) {
                return line;
            }
        }
    }

    pub fn end(mut self, signal: Signal) -> Option<i32> {
        let _ = kill(Pid::from_raw(self.child.id() as i32), signal);
        self.child.wait().expect("it ends").code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn world() {
    sh("mount -t tmpfs -o mode=755 none /run && mkdir /run/netns && ip link set lo up");
    for (host, n) in [("a", 1), ("b", 2)] {
        sh(&format!(
            "ip netns add {host}; ip link add s{host} type veth peer name eth0 netns {host}; ip link set s{host} up; \
             ip -n {host} link set lo up; ip -n {host} link set eth0 up; \
             ip -n {host} addr add 10.9.0.{n}/24 dev eth0"
        ));
    }
    sh("ip netns add c; ip link add eth1 netns b type veth peer name eth0 netns c; \
        ip -n b link set eth1 up; ip -n c link set eth0 up; \
        ip -n b addr add 10.7.0.2/24 dev eth1; ip -n c addr add 10.7.0.3/24 dev eth0");
    sh(&format!("{LASTHOP} link --keygen /run/key"));
    // A busy machine may pause, so the limit for a dead peer is long.
    let common = "key-file = \"/run/key\"\nrate = \"45mbit\"\nkeep-alive = \"200ms\"\ndead-after = \"60s\"\n";
    let b = format!(
        "listen = \"0.0.0.0:4747\"\naddresses = [\"10.8.0.2/24\", \"fd08::2/64\"]\n{common}"
    );
    let a = format!(
        "peer = \"10.9.0.2:4747\"\naddresses = [\"10.8.0.1/24\", \"fd08::1/64\"]\n{common}"
    );
    fs::write("/run/a.toml", a).unwrap();
    fs::write("/run/b.toml", b).unwrap();
    let path = "left = \"sa\"\nright = \"sb\"\n[[path]]\n\
                radio = { rate = \"50mbit\", delay = \"2ms\", overhead = \"0us\", \
                duplex = \"full\", queue = \"200p\" }\n\
                errors = { model = \"packet-loss\", p = \"1%\", on = [\"data\", \"ack\"] }\n";
    fs::write("/run/base.toml", path).unwrap();
}

pub fn station() -> Running {
    let station =
        Running::start(None, &["station", "/run/base.toml", "--socket", "/run/base.sock"]);
    station.wait_for_line("running");
    station
}

pub fn lose(percent: u32) {
    sh(&format!("{LASTHOP} ctl --socket /run/base.sock set errors.p={percent}%"));
}

pub fn link(host: &str) -> Running {
    let file = format!("/run/{host}.toml");
    let socket = format!("/run/{host}.sock");
    let link = Running::start(Some(host), &["link", &file, "--socket", &socket, "--json"]);
    link.wait_for_line("ready");
    link
}

pub fn status(host: &str) -> Value {
    let output = sh(&format!("{LASTHOP} ctl --socket /run/{host}.sock get --json"));
    serde_json::from_str(&output).expect("JSON")
}

pub fn count(status: &Value, group: &str, key: &str) -> u64 {
    status[group][key].as_u64().unwrap_or(0)
}

/// Polls until the condition is true; at most a minute.
pub fn until(condition: &str, mut is_so: impl FnMut() -> bool) {
    // Each poll starts a program, which is a sufficient pause.
    for _ in 0..3000 {
        if is_so() {
            return;
        }
    }
    panic!("it never came to this: {condition}");
}
