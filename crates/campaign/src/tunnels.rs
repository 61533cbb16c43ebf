//! A tunnel (`lasthop link`) of which one end after the other is killed under load: it leaves nothing behind that the next
//! one does not clear away, and the other end goes on with the next one.
//!
//! All of it happens in namespaces of its own, as with [`crate::stations`].

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use lasthop_proto::rng::Stream;
use rustix::process::Signal;

use crate::stations::{Owned, PATIENCE, run, signal};

/// What many kills came to.
#[derive(Clone, Debug, Default)]
pub struct Killed {
    /// Ends that were killed, or told to end.
    pub kills: u64,
    /// Of them, those that ended by themselves, in order.
    pub orderly: u64,
    /// Transfers of compared bytes through a tunnel one of whose ends had come anew.
    pub transfers: u64,
    /// What was wrong.
    pub wrong: Vec<String>,
}

const HOSTS: [&str; 2] = ["a", "b"];

struct World<'a> {
    program: &'a Path,
}

impl World<'_> {
    fn make(&self) -> io::Result<()> {
        run("mount -t tmpfs -o mode=755 none /run")?;
        fs::create_dir("/run/netns")?;
        HOSTS.iter().try_for_each(|host| run(&format!("ip netns add {host}")).map(drop))?;
        run("ip -n a link add eth0 type veth peer name eth0 netns b")?;
        for (host, n) in [("a", 1), ("b", 2)] {
            run(&format!("ip -n {host} addr add 10.9.0.{n}/24 dev eth0"))?;
            run(&format!("ip -n {host} link set eth0 up"))?;
            run(&format!("ip -n {host} link set lo up"))?;
        }
        let made = Command::new(self.program).args(["link", "--keygen", "/run/key"]).status()?;
        if !made.success() {
            return Err(io::Error::other(format!("no key: {made}")));
        }
        let common = "key-file = \"/run/key\"\nrate = \"45mbit\"\nkeep-alive = \"200ms\"\ndead-after = \"1500ms\"\n";
        fs::write(
            "/run/b.toml",
            format!("listen = \"0.0.0.0:4747\"\naddresses = [\"10.8.0.2/24\"]\n{common}"),
        )?;
        fs::write(
            "/run/a.toml",
            format!("peer = \"10.9.0.2:4747\"\naddresses = [\"10.8.0.1/24\"]\n{common}"),
        )
    }

    fn command(&self, host: &str, words: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", host]).arg(self.program).args(words);
        command.env_remove("RUNTIME_DIRECTORY").env_remove("NOTIFY_SOCKET");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn link(&self, host: &str) -> io::Result<Child> {
        let (file, socket) = (format!("/run/{host}.toml"), format!("/run/{host}.sock"));
        self.command(host, &["link", &file, "--socket", &socket]).spawn()
    }

    /// What an end has left on its host: interfaces, processes, its socket.
    fn left(&self, host: &str) -> io::Result<Vec<String>> {
        let mut left = Vec::new();
        for line in run(&format!("ip -n {host} -o link"))?.lines() {
            let name = line.split(": ").nth(1).unwrap_or_default();
            if name != "lo" && !name.starts_with("eth0") {
                left.push(format!("interface {name}"));
            }
        }
        let file = format!("/run/{host}.toml");
        for entry in fs::read_dir("/proc")?.flatten() {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            if line.split(|byte| *byte == 0).any(|word| word == file.as_bytes()) {
                left.push(format!("process {}", entry.file_name().display()));
            }
        }
        if Path::new(&format!("/run/{host}.sock")).exists() {
            left.push("socket".to_owned());
        }
        Ok(left)
    }
}

/// Kills ends of a tunnel of `program` until `count` were; must run in namespaces of its own, with one of processes.
///
/// # Errors
///
/// No such world can be made here.
#[expect(clippy::disallowed_methods, reason = "real processes are killed at any time")]
pub fn kills(program: &Path, count: u64) -> io::Result<Killed> {
    let world = World { program };
    world.make()?;
    let mut dice = Stream::new(1, "tunnels");
    let mut all = Killed::default();
    let mut ends = [Owned(world.link("a")?), Owned(world.link("b")?)];
    // It ends when the address goes with the interface, and begins anew.
    let sink = "while :; do ip netns exec b \"$0\" discard --verify --idle 2s; sleep 0.1; done";
    let load = "while :; do ip netns exec a \"$0\" send 10.8.0.2 -b 300kB --connect-timeout 1s --idle 1s; sleep 0.05; done";
    let shell = |words: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", words]).arg(program).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(Stdio::null()).spawn().map(Owned)
    };
    let (_sink, _load) = (shell(sink)?, shell(load)?);
    while all.kills < count {
        let n = all.kills;
        let mut wrong = |what: String| all.wrong.push(format!("kill {n}: {what}"));
        let which = dice.below(2) as usize;
        if n % 10 == 9 {
            // Whoever came last is believed by the other, and bytes pass.
            let begun = Instant::now();
            let passes = loop {
                let words =
                    ["send", "10.8.0.2", "-b", "100kB", "--connect-timeout", "2s", "--idle", "5s"];
                if world.command("a", &words).status()?.success() {
                    break true;
                }
                if begun.elapsed() > PATIENCE {
                    break false;
                }
                std::thread::sleep(Duration::from_millis(100));
            };
            match passes {
                true => all.transfers += 1,
                false => wrong("no transfer passes".to_owned()),
            }
        } else {
            std::thread::sleep(Duration::from_micros(dice.below(600_000)));
        }
        let end = &mut ends[which].0;
        if let Some(status) = end.try_wait()? {
            wrong(format!("{} had ended by itself: {status}", HOSTS[which]));
        }
        match dice.below(4) {
            0 | 1 => signal(end, Signal::KILL),
            2 => signal(end, [Signal::TERM, Signal::INT][dice.below(2) as usize]),
            _ => {
                signal(end, Signal::TERM);
                std::thread::sleep(Duration::from_micros(dice.below(20_000)));
                signal(end, Signal::KILL);
            }
        }
        let begun = Instant::now();
        let status = loop {
            match end.try_wait()? {
                Some(status) => break Some(status),
                None if begun.elapsed() > PATIENCE => break None,
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        all.kills += 1;
        match status {
            None => wrong("it does not end".to_owned()),
            Some(status) => {
                if status.code().is_some_and(|code| code != 0) {
                    wrong(format!("it ended so: {status}"));
                }
                let left = world.left(HOSTS[which])?;
                all.orderly += u64::from(status.success());
                // A socket is taken over by the next one.
                for what in left.iter().filter(|what| status.success() || *what != "socket") {
                    wrong(format!("{} left behind: {what} ({status})", HOSTS[which]));
                }
            }
        }
        ends[which] = Owned(world.link(HOSTS[which])?);
    }
    Ok(all)
}
