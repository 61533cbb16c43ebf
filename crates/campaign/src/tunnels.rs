//! A tunnel (`lasthop link`) under load whose ends are killed in turn. The next end must remove everything that a
//! killed one left, and the other end must continue with it.
//!
//! Everything runs in separate namespaces, as in [`crate::stations`].

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use lasthop_proto::rng::Stream;
use rustix::process::Signal;

use crate::memory::Little;
use crate::stations::{KilledOnDrop, PATIENCE, run, signal};

/// Results of many kills.
#[derive(Clone, Debug, Default)]
pub struct EndKills {
    /// Ends that were killed, or sent SIGTERM.
    pub kills: u64,
    /// Ends that stopped by themselves with success.
    pub orderly: u64,
    /// Verified transfers through a tunnel with a restarted end.
    pub transfers: u64,
    /// Faults found.
    pub wrong: Vec<String>,
}

const HOSTS: [&str; 2] = ["a", "b"];

/// The file with an end's stderr.
fn log_file(host: &str) -> String {
    format!("/run/{host}.log")
}

struct World<'a> {
    program: &'a Path,
    /// Takes memory away from ends.
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
        command.stderr(fs::File::create(log_file(host))?).spawn()
    }

    /// Leftovers of an end on its host: interfaces, processes, its socket.
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

/// Kills `count` ends of a tunnel of `program`. Must run in separate namespaces, a PID namespace among them. With
/// `starved` ends have too little memory, from the start or later.
///
/// # Errors
///
/// No such network can be made here.
#[expect(clippy::disallowed_methods, reason = "real processes are killed at any time")]
pub fn kills(program: &Path, count: u64, starved: bool) -> io::Result<EndKills> {
    let mut world = World { program, little: starved.then(|| Little::new(program)) };
    world.make()?;
    let mut dice = Stream::new(1, "tunnels");
    let mut all = EndKills::default();
    let mut ends = [KilledOnDrop(world.link("a")?), KilledOnDrop(world.link("b")?)];
    // The sink ends when the address disappears with the interface, and is restarted.
    let sink = "while :; do ip netns exec b \"$0\" discard --verify --idle 2s; sleep 0.1; done";
    let load = "while :; do ip netns exec a \"$0\" send 10.8.0.2 -b 300kB --connect-timeout 1s --idle 1s; sleep 0.05; done";
    let shell = |words: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", words]).arg(program).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(Stdio::null()).spawn().map(KilledOnDrop)
    };
    let (_sink, _load) = (shell(sink)?, shell(load)?);
    // Per host: the previous end left its socket.
    let mut earlier = [false; 2];
    while all.kills < count {
        let n = all.kills;
        let mut wrong = |message: String| all.wrong.push(format!("kill {n}: {message}"));
        let which = dice.below(2) as usize;
        if n % 10 == 9 {
            if starved {
                // Both start with plenty of memory.
                let little = world.little.take();
                for (end, host) in ends.iter_mut().zip(HOSTS) {
                    signal(&end.0, Signal::KILL);
                    end.0.wait()?;
                    *end = KilledOnDrop(world.link(host)?);
                }
                world.little = little;
            }
            // Each end accepts the newest peer, and bytes pass.
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
                let stderr = fs::read_to_string(log_file(HOSTS[which])).unwrap_or_default();
                let excused = match &world.little {
                    Some(_) => Little::excuses(status, &stderr),
                    None => status.code().is_none_or(|code| code == 0),
                };
                if !excused {
                    let stderr = stderr.trim().replace('\n', " / ");
                    wrong(format!("it ended with {status}; it printed: {stderr}"));
                }
                let left = world.left(HOSTS[which])?;
                all.orderly += u64::from(status.success());
                // The next end replaces a leftover socket; an end that cannot start leaves the socket of its
                // predecessor.
                let may_stay = !status.success() && (status.code().is_none() || earlier[which]);
                earlier[which] = left.iter().any(|leftover| leftover == "socket");
                for leftover in left.iter().filter(|leftover| !may_stay || *leftover != "socket") {
                    wrong(format!("{} left behind: {leftover} ({status})", HOSTS[which]));
                }
            }
        }
        ends[which] = KilledOnDrop(world.link(HOSTS[which])?);
    }
    Ok(all)
}
