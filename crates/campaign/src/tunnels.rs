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

use crate::memory::Little;
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

/// Where an end says what it says on stderr.
fn said(host: &str) -> String {
    format!("/run/{host}.said")
}

struct World<'a> {
    program: &'a Path,
    /// How ends come to too little memory, if they do.
    little: Option<Little>,
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

    fn link(&mut self, host: &str) -> io::Result<Child> {
        let (file, socket) = (format!("/run/{host}.toml"), format!("/run/{host}.sock"));
        let mut command = self.command(host, &["link", &file, "--socket", &socket]);
        if let Some(little) = &mut self.little {
            command = little.start(command);
        }
        command.stderr(fs::File::create(said(host))?).spawn()
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
/// With `starved` ends have too little memory, from the start or later.
///
/// # Errors
///
/// No such world can be made here.
#[expect(clippy::disallowed_methods, reason = "real processes are killed at any time")]
pub fn kills(program: &Path, count: u64, starved: bool) -> io::Result<Killed> {
    let mut world = World { program, little: starved.then(|| Little::new(program)) };
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
    // Whether the last one of a host has left its socket.
    let mut earlier = [false; 2];
    while all.kills < count {
        let n = all.kills;
        let mut wrong = |what: String| all.wrong.push(format!("kill {n}: {what}"));
        let which = dice.below(2) as usize;
        if n % 10 == 9 {
            if starved {
                // Both have plenty, for once.
                let little = world.little.take();
                for (end, host) in ends.iter_mut().zip(HOSTS) {
                    signal(&end.0, Signal::KILL);
                    end.0.wait()?;
                    *end = Owned(world.link(host)?);
                }
                world.little = little;
            }
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
        if let Some(little) = &mut world.little {
            little.take_away(end)?;
            std::thread::sleep(Duration::from_micros(dice.below(400_000)));
        } else if let Some(status) = end.try_wait()? {
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
                let said = fs::read_to_string(said(HOSTS[which])).unwrap_or_default();
                let excused = match &world.little {
                    Some(_) => Little::excuses(status, &said),
                    None => status.code().is_none_or(|code| code == 0),
                };
                if !excused {
                    let said = said.trim().replace('\n', " / ");
                    wrong(format!("it ended so: {status}; it said: {said}"));
                }
                let left = world.left(HOSTS[which])?;
                all.orderly += u64::from(status.success());
                // A socket is taken over by the next one; one that cannot begin leaves that of the one before.
                let may_stay = !status.success() && (status.code().is_none() || earlier[which]);
                earlier[which] = left.iter().any(|what| what == "socket");
                for what in left.iter().filter(|what| !may_stay || *what != "socket") {
                    wrong(format!("{} left behind: {what} ({status})", HOSTS[which]));
                }
            }
        }
        ends[which] = Owned(world.link(HOSTS[which])?);
    }
    Ok(all)
}
