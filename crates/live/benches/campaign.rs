//! Stress campaign of a station: each part with the kernel as data plane and with packet sockets, with its
//! memory use.
//!
//!     cargo bench -p lasthop-live --bench campaign [-- PART ...]
//!
//! The parts are `connections` (100,000 at once), `spoofed` (10 million packets of forged connections),
//! `garbage` (a million), `changes` (60 other agents under load), `interfaces` (down, up, renamed under load)
//! and `mixed` or `mixed=MINUTES` (all of them, ten minutes by default). A verified transfer runs during
//! each; a failed one ends the campaign. The kernel's data plane needs root.

#[path = "../tests/common/mod.rs"]
mod common;
mod far;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::flood::{flood, garbage, mac, spoofed_connections, spoofed_data};
use common::*;
use far::Far;

const PARTS: [&str; 6] = ["connections", "spoofed", "garbage", "changes", "interfaces", "mixed"];

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    if let [role, port, count] = &args[..]
        && (role == "serve" || role == "call")
    {
        let (port, count) = (port.parse().unwrap(), count.parse().unwrap());
        return if role == "serve" { serve(port, count) } else { call(port, count) };
    }
    if far::station_or_inside(&args) {
        return;
    }
    sh("mount -t tmpfs none /run && mkdir -p /run/netns");
    let minutes = |part: &str| part.strip_prefix("mixed=").and_then(|n| n.parse().ok());
    for part in &args {
        assert!(PARTS.contains(&&**part) || minutes(part).is_some(), "no part `{part}`: {PARTS:?}");
    }
    let chosen = if args.is_empty() { PARTS.map(str::to_owned).to_vec() } else { args };
    let planes: &[By] = match lasthop_live::plane::probe() {
        Ok(()) => &[By::Kernel, By::Sockets],
        Err(refusal) => {
            println!("without the kernel as data plane: {refusal}");
            &[By::Sockets]
        }
    };
    println!("| part | plane | what | s | memory before, at most, MiB |\n|---|---|---|---|---|");
    for part in &chosen {
        for by in planes {
            wire(Wires { offload: true, ..Wires::default() });
            let mut watch = Watch::new(Far::start(*by, "snoop"));
            transfer("fh", "mh", "10.9.0.2", 1_000_000);
            let begin = now();
            let summary = match &**part {
                "connections" => connections(&mut watch),
                "spoofed" => spoofed(&mut watch, 10_000_000),
                "garbage" => garbled(&mut watch, 1_000_000),
                "changes" => changes(&mut watch, 60),
                "interfaces" => interfaces(&mut watch),
                mixed => self::mixed(&mut watch, minutes(mixed).unwrap_or(10)),
            };
            let seconds = (now() - begin).as_secs_f64();
            transfer("fh", "mh", "10.9.0.2", 1_000_000);
            let (before, most) = (watch.before >> 20, watch.most >> 20);
            println!("| {part} | {by:?} | {summary} | {seconds:.0} | {before}, {most} |");
            // Snoop's cache of 16 MiB and as much again for its metadata, buffers and flow tables.
            assert!(watch.most < watch.before + (64 << 20), "memory grows");
            watch.station.stop();
            sh("ip netns del fh; ip netns del bs; ip netns del mh");
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a measurement")]
fn now() -> Instant {
    Instant::now()
}

/// A station and its memory use.
struct Watch {
    station: Far,
    before: u64,
    most: u64,
}

impl Watch {
    fn new(station: Far) -> Watch {
        let before = station.resident();
        Watch { station, before, most: before }
    }

    fn look(&mut self) {
        self.most = self.most.max(self.station.resident());
    }
}

/// Connections per process, since the limit of descriptors excludes a single process.
const EACH: usize = 12_500;
const PROCESSES: usize = 8;

/// Accepts connections, and sends four bytes back over each.
fn serve(port: u16, count: usize) {
    raise(count);
    let listener = TcpListener::bind(("10.9.0.2", port)).unwrap();
    say("ready");
    let mut streams: Vec<TcpStream> = listener.incoming().take(count).map(|s| s.unwrap()).collect();
    let mut word = [0; 4];
    for stream in &mut streams {
        stream.read_exact(&mut word).unwrap();
        stream.write_all(&word).unwrap();
    }
    let _ = std::io::stdin().read(&mut word);
}

/// Opens connections, reports that, and uses each on request.
fn call(port: u16, count: usize) {
    raise(count);
    let connect = |_| TcpStream::connect(("10.9.0.2", port)).unwrap();
    let mut streams: Vec<TcpStream> = (0..count).map(connect).collect();
    say("ready");
    let _ = std::io::stdin().read(&mut [0]);
    for (i, stream) in streams.iter_mut().enumerate() {
        stream.write_all(&(i as u32).to_be_bytes()).unwrap();
    }
    for (i, stream) in streams.iter_mut().enumerate() {
        let mut word = [0; 4];
        stream.read_exact(&mut word).unwrap();
        assert_eq!(word, (i as u32).to_be_bytes());
    }
    say("done");
}

fn say(word: &str) {
    println!("{word}");
    std::io::stdout().flush().unwrap();
}

fn raise(count: usize) {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    assert!(hard >= count as u64 + 100, "the limit of open files is {hard}: ulimit -Hn");
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).unwrap();
}

struct Peer(Child, BufReader<std::process::ChildStdout>);

impl Peer {
    fn start(namespace: &str, role: &str, port: usize, count: usize) -> Peer {
        let mut child = Command::new("ip")
            .args(["netns", "exec", namespace])
            .arg(std::env::current_exe().unwrap())
            .args([role, &port.to_string(), &count.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Peer(child, out)
    }

    fn wait_for(&mut self, word: &str) {
        let mut line = String::new();
        self.1.read_line(&mut line).unwrap();
        assert_eq!(line.trim(), word, "a process of the campaign ended");
    }

    fn end(mut self) {
        drop(self.0.stdin.take());
        assert!(self.0.wait().unwrap().success());
    }
}

fn many(watch: &mut Watch, processes: usize, each: usize) {
    let ports = || (0..processes).map(|i| 7000 + i);
    let mut servers: Vec<Peer> =
        ports().map(|port| Peer::start("mh", "serve", port, each)).collect();
    servers.iter_mut().for_each(|server| server.wait_for("ready"));
    let mut callers: Vec<Peer> =
        ports().map(|port| Peer::start("fh", "call", port, each)).collect();
    for caller in &mut callers {
        caller.wait_for("ready");
        watch.look();
    }
    // All connections are open now.
    for caller in &mut callers {
        caller.0.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    }
    for caller in &mut callers {
        caller.wait_for("done");
        watch.look();
    }
    callers.into_iter().chain(servers).for_each(Peer::end);
}

fn connections(watch: &mut Watch) -> String {
    for host in ["fh", "mh"] {
        sh(&format!(
            "ip netns exec {host} sysctl -qw net.ipv4.ip_local_port_range='10000 65000' \
             net.ipv4.tcp_max_syn_backlog=65536 net.core.somaxconn=65536"
        ));
    }
    many(watch, PROCESSES, EACH);
    format!("{} connections at once, each answered", PROCESSES * EACH)
}

/// Runs `work` during a verified transfer of `len` bytes.
fn during_transfer<T>(len: usize, work: impl FnOnce() -> T) -> T {
    let legit = std::thread::spawn(move || transfer("fh", "mh", "10.9.0.2", len));
    let done = work();
    legit.join().unwrap();
    done
}

fn spoofed(watch: &mut Watch, count: u32) -> String {
    let ends = [mac("mh", "mr"), mac("fh", "fl")];
    let left = socket("fh", "fl");
    for part in 0..10 {
        during_transfer(2_000_000, || {
            flood(&left, count / 20, spoofed_connections(ends, part));
            flood(&left, count / 40, spoofed_data(ends, 1400, 4, 0));
            flood(&left, count / 40, spoofed_data(ends, 1, 128, 64));
        });
        watch.look();
    }
    format!("{count} spoofed packets")
}

fn garbled(watch: &mut Watch, count: u32) -> String {
    let ends = [mac("mh", "mr"), mac("fh", "fl")];
    let sockets = [socket("fh", "fl"), socket("mh", "mr")];
    for agent in ["snoop", "none", "link", "split", "snoop"] {
        watch.station.set(agent);
        during_transfer(2_000_000, || {
            for socket in &sockets {
                flood(socket, count / 10, garbage(ends));
            }
        });
        watch.look();
    }
    format!("{count} cut and changed packets, five agents")
}

fn changes(watch: &mut Watch, count: usize) -> String {
    let agents = ["none", "snoop", "link", "snoop", "none", "link"];
    during_transfer(400_000_000, || {
        for agent in agents.into_iter().cycle().take(count) {
            watch.station.set(agent);
            pause(20);
            watch.look();
        }
    });
    format!("{count} changes of the agent")
}

fn interfaces(watch: &mut Watch) -> String {
    let rounds = 5;
    for agent in ["snoop", "none", "link"] {
        watch.station.set(agent);
        during_transfer(50_000_000, || {
            for _ in 0..rounds {
                for (dev, name) in [("bl", "one"), ("br", "two"), ("one", "bl"), ("two", "br")] {
                    sh(&format!(
                        "ip -n bs link set dev {dev} down; ip -n bs link set dev {dev} name {name}"
                    ));
                    pause(20);
                    sh(&format!("ip -n bs link set dev {name} up"));
                    pause(100);
                }
            }
        });
        watch.look();
    }
    format!("{} times down, renamed and up", 3 * 4 * rounds)
}

fn mixed(watch: &mut Watch, minutes: u64) -> String {
    let ends = [mac("mh", "mr"), mac("fh", "fl")];
    let left = socket("fh", "fl");
    let end = now() + Duration::from_secs(minutes * 60);
    let (mut rounds, mut early) = (0, 0);
    let begin = now();
    while now() < end {
        for agent in ["snoop", "none", "snoop", "link", "snoop"] {
            watch.station.set(agent);
            during_transfer(20_000_000, || {
                flood(&left, 20_000, spoofed_connections(ends, rounds));
                flood(&left, 5000, spoofed_data(ends, 1400, 4, 0));
                flood(&left, 5000, garbage(ends));
                transfer("mh", "fh", "10.9.0.1", 5_000_000);
            });
            many(watch, 2, 200);
        }
        rounds += 1;
        if (now() - begin).as_secs() < minutes * 60 / 4 {
            early = watch.most;
        }
    }
    let late = (watch.most - early) >> 10;
    format!(
        "{minutes} minutes of mixed load, {rounds} rounds; grown after the first quarter: {late} KiB"
    )
}
