//! A station under load that is killed again and again, at any time of its start, its life and its stop: nothing of it
//! may be left behind that the next one does not clear away, and the next one must work.
//!
//! All of it happens in namespaces of its own, which `unshare` makes and which end with it: two hosts, and the
//! station's interfaces between them.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use lasthop_proto::rng::Stream;
use rustix::process::{Pid, Signal, kill_process};

use crate::clock::Jumps;
use crate::memory::Little;

/// Where the control socket lies.
const SOCKETS: &str = "/run/lasthop";
/// What the station says on stderr.
const SAID: &str = "/run/said";
/// How long a station may take to answer, or to end when it is asked to.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// What makes the life of stations harder than kills do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// Nothing.
    None,
    /// A wall clock that jumps.
    Clock,
    /// Too little memory, from the start or later.
    Memory,
}

/// What many kills came to.
#[derive(Clone, Debug, Default)]
pub struct Killed {
    /// Stations that were killed, or told to end, at any time.
    pub kills: u64,
    /// Of them, those that ended by themselves, in order.
    pub orderly: u64,
    /// Transfers of compared bytes through stations that came afterwards.
    pub transfers: u64,
    /// Kills after which packets went on flowing, and after which they did not.
    pub flowing: u64,
    /// See [`Killed::flowing`].
    pub standing: u64,
    /// What was wrong.
    pub wrong: Vec<String>,
}

pub(crate) fn run(command: &str) -> io::Result<String> {
    let mut words = command.split(' ');
    let program = words.next().unwrap_or_default();
    let output = Command::new(program).args(words).stdin(Stdio::null()).output()?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(io::Error::other(format!("{command}: {said}")))
        }
    }
}

pub(crate) fn signal(child: &Child, signal: Signal) {
    let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    // It may have ended since.
    let _ = id.map(|id| kill_process(id, signal));
}

/// A child that ends with its owner.
pub(crate) struct Owned(pub(crate) Child);

impl Drop for Owned {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Two hosts and the interfaces between them.
struct World<'a> {
    program: &'a Path,
    plane: &'a str,
    /// The wall clock that stations see, if it is not the machine's.
    clock: Option<Jumps>,
    /// How they come to too little memory, if they do.
    little: Option<Little>,
}

impl World<'_> {
    fn make(&self, path: &str) -> io::Result<()> {
        run("mount -t tmpfs none /run")?;
        fs::create_dir("/run/netns")?;
        for (host, outer, inner, address) in
            [("a", "lx", "la", "10.9.0.1/24"), ("b", "rx", "rb", "10.9.0.2/24")]
        {
            run(&format!("ip netns add {host}"))?;
            run(&format!("ip link add name {outer} type veth peer name {inner}"))?;
            run(&format!("ip link set {inner} netns {host}"))?;
            run(&format!("ip link set {outer} up"))?;
            run(&format!("ip -n {host} addr add {address} dev {inner}"))?;
            run(&format!("ip -n {host} link set {inner} up"))?;
            run(&format!("ip -n {host} link set lo up"))?;
        }
        run("ip link set lo up")?;
        let text = format!("left = \"lx\"\nright = \"rx\"\nplane = \"{}\"\n{path}", self.plane);
        fs::write("/run/base.toml", text)
    }

    fn command(&self, host: Option<&str>, words: &[&str]) -> Command {
        let mut command = match host {
            Some(host) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", host]).arg(self.program);
                command
            }
            None => Command::new(self.program),
        };
        command.args(words).env_remove("RUNTIME_DIRECTORY").env_remove("NOTIFY_SOCKET");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn station(&mut self) -> io::Result<Child> {
        let mut command = self.command(None, &["station", "/run/base.toml"]);
        if let Some(little) = &mut self.little {
            command = little.start(command);
        }
        if let Some(clock) = &self.clock {
            clock.on(&mut command);
        }
        command.stderr(fs::File::create(SAID)?).spawn()
    }

    fn answers(&self) -> bool {
        self.command(None, &["ctl", "get"]).status().is_ok_and(|status| status.success())
    }

    /// Whether packets go from one host to the other.
    fn flows(&self) -> bool {
        // One may be lost while the station ends.
        run("ip netns exec a ping -c 3 -i 0.2 -W 1 10.9.0.2").is_ok()
    }

    /// What stations have left: interfaces, filters, files, processes.
    fn left(&self) -> io::Result<BTreeSet<String>> {
        let mut left = BTreeSet::new();
        for line in run("ip -o link")?.lines() {
            let name = line.split(": ").nth(1).unwrap_or_default();
            left.insert(format!("interface {name}"));
            if line.contains("PROMISC") {
                left.insert(format!("promiscuous {name}"));
            }
        }
        for interface in ["lx", "rx"] {
            for way in ["ingress", "egress"] {
                let filters = run(&format!("tc filter show dev {interface} {way}"))?;
                let named = filters.split_whitespace().filter(|word| word.starts_with("lasthop"));
                left.extend(named.map(|word| format!("filter {word} at {interface} {way}")));
            }
        }
        for entry in fs::read_dir(SOCKETS).into_iter().flatten().flatten() {
            left.insert(format!("file {}", entry.path().display()));
        }
        for entry in fs::read_dir("/proc")?.flatten() {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let words: Vec<_> = line.split(|byte| *byte == 0).collect();
            if words.contains(&&b"/run/base.toml"[..]) {
                left.insert(format!("process {}", entry.file_name().display()));
            }
        }
        Ok(left)
    }

    #[expect(clippy::disallowed_methods, reason = "real stations are waited for")]
    fn wait_until(&self, holds: impl Fn() -> bool) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if holds() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }
}

/// Kills stations of `program` until `count` were; must run in namespaces of its own, with one of processes. `plane` is
/// `sockets`, `kernel` or `auto`, `path` the stages.
///
/// # Errors
///
/// No such world can be made here.
#[expect(clippy::disallowed_methods, reason = "real processes are killed at any time")]
pub fn kills(
    program: &Path,
    plane: &str,
    path: &str,
    count: u64,
    trouble: Trouble,
) -> io::Result<Killed> {
    let little = (trouble == Trouble::Memory).then(|| Little::new(program));
    let mut world = World { program, plane, clock: None, little };
    world.make(path)?;
    if trouble == Trouble::Clock {
        world.clock = Some(Jumps::new(Path::new("/run"))?);
    }
    let mut dice = Stream::new(1, "stations");
    let mut all = Killed::default();
    let before = world.left()?;
    let _sink = Owned(world.command(Some("b"), &["discard", "--verify", "--idle", "2s"]).spawn()?);
    // Load that goes on, whatever becomes of a transfer.
    let mut load = Command::new("sh");
    let words = "while :; do ip netns exec a \"$0\" send 10.9.0.2 -b 300kB --connect-timeout 1s --idle 1s; done";
    load.args(["-c", words]).arg(program).stdin(Stdio::null()).stdout(Stdio::null());
    let _load = Owned(load.stderr(Stdio::null()).spawn()?);
    let mut earlier = Vec::new();
    while all.kills < count {
        let n = all.kills;
        let mut wrong = |what: String| all.wrong.push(format!("kill {n}: {what}"));
        let mut station = world.station()?;
        // Every tenth one lives until a transfer has passed; the others die whenever they do. With little memory none need.
        if n % 10 == 9 && world.little.is_none() {
            if !world.wait_until(|| world.answers()) {
                wrong("it does not answer".to_owned());
            }
            let words = ["send", "10.9.0.2", "-b", "200kB", "--idle", "20s"];
            match world.command(Some("a"), &words).status()?.success() {
                true => all.transfers += 1,
                false => wrong("no transfer passes".to_owned()),
            }
        } else {
            std::thread::sleep(Duration::from_micros(dice.below(400_000)));
        }
        if let Some(little) = &mut world.little {
            little.take_away(&station)?;
            std::thread::sleep(Duration::from_micros(dice.below(400_000)));
        }
        let kind = dice.below(4);
        match kind {
            0 | 1 => signal(&station, Signal::KILL),
            2 => signal(&station, [Signal::TERM, Signal::INT][dice.below(2) as usize]),
            _ => {
                // In the midst of its stop.
                signal(&station, Signal::TERM);
                std::thread::sleep(Duration::from_micros(dice.below(30_000)));
                signal(&station, Signal::KILL);
            }
        }
        let begun = Instant::now();
        let status = loop {
            match station.try_wait()? {
                Some(status) => break Some(status),
                None if begun.elapsed() > PATIENCE => break None,
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        all.kills += 1;
        let Some(status) = status else {
            wrong("it does not end".to_owned());
            signal(&station, Signal::KILL);
            let _ = station.wait();
            continue;
        };
        let said = fs::read_to_string(SAID).unwrap_or_default();
        let excused = match &world.little {
            Some(_) => Little::excuses(status, &said),
            // Ended by a signal it has no code.
            None => status.code().is_none_or(|code| code == 0),
        };
        if !excused {
            wrong(format!("it ended so: {status}; it said: {}", said.trim().replace('\n', " / ")));
        }
        let left: Vec<String> = world.left()?.difference(&before).cloned().collect();
        let ours = |what: &String| {
            what.contains("/base.sock") || what.contains("lasthop-base") || what.contains("promisc")
        };
        for what in left.iter().filter(|what| !ours(what)) {
            wrong(format!("left behind: {what}"));
        }
        all.orderly += u64::from(status.success());
        if status.code().is_some() {
            // One that cannot begin leaves what others left.
            for what in left.iter().filter(|what| status.success() || !earlier.contains(*what)) {
                let said = said.trim().replace('\n', " / ");
                wrong(format!("left behind in order: {what} ({status}); it said: {said}"));
            }
        }
        // Packets flow past a dead station where its base filter stands, and nowhere else.
        if n % 5 == 0 {
            let stands = left.iter().filter(|what| what.contains("lasthop-base")).count() == 2;
            match (world.flows(), stands) {
                (true, true) => all.flowing += 1,
                (false, false) => all.standing += 1,
                (flows, _) => wrong(format!("packets flow: {flows}; left: {left:?}")),
            }
        }
        earlier = left;
    }
    world.little = None;
    // A last one comes up, ends in order, and takes everything with it.
    let mut last = world.station()?;
    if !world.wait_until(|| world.answers()) {
        all.wrong.push("the last one does not answer".to_owned());
    }
    signal(&last, Signal::TERM);
    let status = last.wait()?;
    if !status.success() {
        all.wrong.push(format!("the last one ended so: {status}"));
    }
    let left: Vec<String> = world.left()?.difference(&before).cloned().collect();
    if !left.is_empty() {
        all.wrong.push(format!("left behind at the end: {left:?}"));
    }
    Ok(all)
}
