//! Stations under load that are killed repeatedly, at any time of start, operation and stop. The next station must
//! remove everything that a killed one left, and must work.
//!
//! Everything runs in namespaces made by `unshare`, which end with it: two hosts, and the station's interfaces between
//! them.

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

/// The directory of the control socket.
const SOCKETS: &str = "/run/lasthop";
/// The file with the station's stderr.
const LOG: &str = "/run/station.log";
/// Time limit of an answer or of an orderly stop.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// An additional fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trouble {
    None,
    /// The wall clock jumps.
    Clock,
    /// Too little memory, from the start or later.
    Memory,
}

/// Results of many kills.
#[derive(Clone, Debug, Default)]
pub struct StationKills {
    /// Stations that were killed, or sent SIGTERM, at any time.
    pub kills: u64,
    /// Stations that ended by themselves with success.
    pub orderly: u64,
    /// Verified transfers through stations that were started afterwards.
    pub transfers: u64,
    /// Kills after which packets were still forwarded.
    pub flowing: u64,
    /// Kills after which packets were not forwarded.
    pub standing: u64,
    /// Faults found.
    pub wrong: Vec<String>,
}

pub(crate) fn run(command: &str) -> io::Result<String> {
    let mut words = command.split(' ');
    let program = words.next().unwrap_or_default();
    let output = Command::new(program).args(words).stdin(Stdio::null()).output()?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => {
            let stderr = String::from_utf8_lossy(&output.stderr);
            Err(io::Error::other(format!("{command}: {stderr}")))
        }
    }
}

pub(crate) fn signal(child: &Child, signal: Signal) {
    let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    // The process may have ended since.
    let _ = id.map(|id| kill_process(id, signal));
}

/// A child process that is killed on drop.
pub(crate) struct KilledOnDrop(pub(crate) Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Two hosts and the interfaces between them.
struct World<'a> {
    program: &'a Path,
    plane: &'a str,
    /// The wall clock of stations, if not the machine's.
    clock: Option<Jumps>,
    /// Takes memory away from stations.
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
        command.stderr(fs::File::create(LOG)?).spawn()
    }

    fn answers(&self) -> bool {
        self.command(None, &["ctl", "get"]).status().is_ok_and(|status| status.success())
    }

    /// Packets pass from one host to the other.
    fn flows(&self) -> bool {
        // A packet may be lost while the station ends.
        run("ip netns exec a ping -c 3 -i 0.2 -W 1 10.9.0.2").is_ok()
    }

    /// Leftovers of stations: interfaces, filters, files, processes.
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

/// Kills `count` stations of `program`. Must run in separate namespaces, a PID namespace among them. `plane` is
/// `sockets`, `kernel` or `auto`; `path` has the stages.
///
/// # Errors
///
/// No such network can be made here.
#[expect(clippy::disallowed_methods, reason = "real processes are killed at any time")]
pub fn kills(
    program: &Path,
    plane: &str,
    path: &str,
    count: u64,
    trouble: Trouble,
) -> io::Result<StationKills> {
    let little = (trouble == Trouble::Memory).then(|| Little::new(program));
    let mut world = World { program, plane, clock: None, little };
    world.make(path)?;
    if trouble == Trouble::Clock {
        world.clock = Some(Jumps::new(Path::new("/run"))?);
    }
    let mut dice = Stream::new(1, "stations");
    let mut all = StationKills::default();
    let before = world.left()?;
    let _sink =
        KilledOnDrop(world.command(Some("b"), &["discard", "--verify", "--idle", "2s"]).spawn()?);
    // Load that continues whatever happens to a transfer.
    let mut load = Command::new("sh");
    let words = "while :; do ip netns exec a \"$0\" send 10.9.0.2 -b 300kB --connect-timeout 1s --idle 1s; done";
    load.args(["-c", words]).arg(program).stdin(Stdio::null()).stdout(Stdio::null());
    let _load = KilledOnDrop(load.stderr(Stdio::null()).spawn()?);
    let mut earlier = Vec::new();
    while all.kills < count {
        let n = all.kills;
        let mut wrong = |message: String| all.wrong.push(format!("kill {n}: {message}"));
        let mut station = world.station()?;
        // Every tenth station lives until a transfer has passed, except with too little memory; the others die at any
        // time.
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
                // During its stop.
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
        let log = fs::read_to_string(LOG).unwrap_or_default();
        let excused = match &world.little {
            Some(_) => Little::excuses(status, &log),
            // A process ended by a signal has no code.
            None => status.code().is_none_or(|code| code == 0),
        };
        if !excused {
            wrong(format!("ended with {status}; it printed: {}", log.trim().replace('\n', " / ")));
        }
        let left: Vec<String> = world.left()?.difference(&before).cloned().collect();
        let ours = |leftover: &String| {
            leftover.contains("/base.sock")
                || leftover.contains("lasthop-base")
                || leftover.contains("promisc")
        };
        for leftover in left.iter().filter(|leftover| !ours(leftover)) {
            wrong(format!("left behind: {leftover}"));
        }
        all.orderly += u64::from(status.success());
        if status.code().is_some() {
            // A station that cannot start leaves the leftovers of earlier ones.
            for leftover in
                left.iter().filter(|leftover| status.success() || !earlier.contains(*leftover))
            {
                let log = log.trim().replace('\n', " / ");
                wrong(format!("left behind at its end: {leftover} ({status}); it printed: {log}"));
            }
        }
        // Packets pass a dead station only where its base filter is attached.
        if n % 5 == 0 {
            let is_attached =
                left.iter().filter(|leftover| leftover.contains("lasthop-base")).count() == 2;
            match (world.flows(), is_attached) {
                (true, true) => all.flowing += 1,
                (false, false) => all.standing += 1,
                (flows, _) => wrong(format!("packets flow: {flows}; left: {left:?}")),
            }
        }
        earlier = left;
    }
    world.little = None;
    // The last station starts, ends in order, and removes everything.
    let mut last = world.station()?;
    if !world.wait_until(|| world.answers()) {
        all.wrong.push("the last one does not answer".to_owned());
    }
    signal(&last, Signal::TERM);
    let status = last.wait()?;
    if !status.success() {
        all.wrong.push(format!("the last one ended with {status}"));
    }
    let left: Vec<String> = world.left()?.difference(&before).cloned().collect();
    if !left.is_empty() {
        all.wrong.push(format!("left behind at the end: {left:?}"));
    }
    Ok(all)
}
