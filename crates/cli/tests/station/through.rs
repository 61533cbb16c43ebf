//! Common programs through the station, with the kernel as data plane and with packet sockets, with every
//! agent. Data must arrive unchanged.
//!
//! ```text
//! a 10.9.0.1, the servers -- lx | station | rx -- 10.9.0.2 b, the clients
//! ```
//!
//! It needs root, for the kernel's data plane and for an SSH server.

mod ends;
pub use ends::timed;
mod servers;

use std::fs;
use std::path::Path;
use std::process::Command;

use super::world::{Running, World, inside};
use crate::can_run::can_run;
use servers::Servers;

/// Servers and clients, ready for a station or a bridge between them.
pub struct Bench {
    pub world: World,
    _servers: Servers,
}

/// Result of a program.
type Found = Result<(), String>;

/// A program with its name.
type Program = (&'static str, fn(&Scale) -> Found);

/// Size and options of a test.
pub struct Scale {
    /// Bytes of a large transfer.
    pub bytes: usize,
    /// Whether segments pass unchanged, so that negotiated SYN options are effective.
    pub whole: bool,
    /// Whether tunnels may carry super-packets.
    pub wrapped: bool,
}

/// Bytes of a large transfer in tests of equality.
const BYTES: usize = 2_000_000;

/// Number of small files.
const FILES: usize = 300;

/// Tests for all agents.
const BASIC: [Program; 2] = [("iperf3", ends::iperf3), ("curl", ends::small_files)];

/// Tests for paths that only repair losses.
const MORE: [Program; 13] = [
    ("iperf3, UDP", ends::iperf3_udp),
    ("curl, at once", ends::small_files_at_once),
    ("curl, TLS", ends::tls),
    ("curl, TFO", ends::fast_open),
    ("scp", ends::scp),
    ("rsync", ends::rsync),
    ("QUIC", ends::quic),
    ("DNS", ends::dns),
    ("MPTCP", ends::mptcp),
    ("ECN", ends::ecn),
    ("VXLAN", ends::vxlan),
    ("GRE", ends::gre),
    ("fragments", ends::fragments),
];

/// Runs a program on a host, for five minutes at most. Returns its output.
pub fn on(host: &str, words: &[&str]) -> Result<String, String> {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", host, "timeout", "300"]).args(words);
    let done = command.output().map_err(|error| error.to_string())?;
    let out = String::from_utf8_lossy(&done.stdout).into_owned();
    if done.status.success() {
        return Ok(out);
    }
    let err = String::from_utf8_lossy(&done.stderr);
    Err(format!("{words:?} on {host}: {}: {out}{err}", done.status))
}

/// Whether this machine meets the requirements.
fn has_all() -> bool {
    let places = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"].map(Path::new);
    let there = |program: &&str| places.iter().any(|place| place.join(program).exists());
    let programs = ["iperf3", "nginx", "curl", "rsync", "sshd", "scp", "openssl", "ethtool"];
    let missing: Vec<_> = programs.into_iter().filter(|program| !there(program)).collect();
    can_run(missing.is_empty(), &missing.join(", ")) && has_kernel()
}

fn has_kernel() -> bool {
    can_run(lasthop_live::plane::probe().is_ok(), "root, and Linux 6.6 with eBPF")
}

impl Bench {
    /// Two hosts with servers, and the file of a station with `agent` in its path.
    fn new(plane: &str, agent: &str, bytes: usize) -> Bench {
        let world = World::new(&format!("[[path]]\nagent = \"{agent}\"\n"));
        world.write(&world.text().replace("\"sockets\"", &format!("\"{plane}\"")));
        for host in ["a", "b"] {
            let keys = ["net.ipv4.tcp_fastopen=3", "net.ipv4.tcp_ecn=1"];
            on(host, &[&["sysctl", "-qw"], &keys[..]].concat()).expect("sysctl");
        }
        Bench { world, _servers: Servers::start(bytes) }
    }

    fn all(&self, programs: &[Program], scale: &Scale) -> Vec<String> {
        let failed = programs.iter().map(|(name, program)| (name, program(scale)));
        failed.filter_map(|(name, found)| Some(format!("{name}: {}", found.err()?))).collect()
    }

    fn jumbo(&self, mtu: u32) {
        for (host, dev) in [("a", "la"), ("b", "rb")] {
            self.world.ip(&format!("-n {host} link set dev {dev} mtu {mtu}"));
        }
        for dev in ["lx", "rx"] {
            self.world.ip(&format!("link set dev {dev} mtu {mtu}"));
        }
    }
}

/// Runs everything with one agent on one data plane.
fn everything(test: &str, plane: &str, agent: &str) {
    if !has_all() {
        return;
    }
    inside(test, || {
        let bench = Bench::new(plane, agent, BYTES);
        let station = bench.world.station(&[]);
        let scale = Scale { bytes: BYTES, whole: true, wrapped: plane == "kernel" };
        let failed = bench.all(&[&BASIC[..], &MORE[..]].concat(), &scale);
        assert!(failed.is_empty(), "{}", failed.join("\n"));
        bench.jumbo(9000);
        let failed = bench.all(&[BASIC[1], ("fragments", ends::fragments)], &scale);
        assert!(failed.is_empty(), "jumbo frames: {}", failed.join("\n"));
        assert_eq!(station.end("TERM"), Some(0));
    });
}

#[test]
fn everything_passes_a_wire_of_the_kernel() {
    everything("through::everything_passes_a_wire_of_the_kernel", "kernel", "none");
}

#[test]
fn everything_passes_a_wire_of_packet_sockets() {
    everything("through::everything_passes_a_wire_of_packet_sockets", "sockets", "none");
}

#[test]
fn everything_passes_snoop_in_the_kernel() {
    everything("through::everything_passes_snoop_in_the_kernel", "kernel", "snoop");
}

#[test]
fn everything_passes_snoop_at_packet_sockets() {
    everything("through::everything_passes_snoop_at_packet_sockets", "sockets", "snoop");
}

/// Names of all agents for a path without a radio.
fn agents(station: &Bench) -> Vec<&'static str> {
    let words = lasthop_proto::agent::words().map(|descriptor| descriptor.word);
    let is_accepted = |word: &&str| {
        let set = ["ctl", "set", "--reset", &format!("agent={word}")];
        station.world.command(&set).output().is_ok_and(|done| done.status.success())
    };
    words.filter(is_accepted).collect()
}

/// Runs all agents in sequence in a running station.
/// Attempts for an agent: the kernel resets split connections if a busy machine does not run the station for half a second.
const ATTEMPTS: u32 = 5;

fn with_every_agent(test: &str, plane: &str) {
    if !has_all() {
        return;
    }
    inside(test, || {
        let bench = Bench::new(plane, "none", BYTES);
        let station: Running = bench.world.station(&[]);
        let agents = agents(&bench);
        assert!(agents.len() > 10, "{agents:?}");
        let mut failed = Vec::new();
        let resets = || {
            let all: serde_json::Value =
                serde_json::from_str(&bench.world.ctl(&["get", "--json"])).expect("JSON");
            all["plane"]["resets"].as_u64().unwrap_or(0)
        };
        for agent in agents {
            bench.world.ctl(&["set", "--reset", &format!("agent={agent}")]);
            for attempt in 1.. {
                let before = resets();
                let found =
                    bench.all(&BASIC, &Scale { bytes: BYTES, whole: false, wrapped: false });
                if resets() > before && attempt < ATTEMPTS && !found.is_empty() {
                    println!("{agent}: the station did not run for half a second: {found:?}");
                    continue;
                }
                failed.extend(found.into_iter().map(|failure| format!("{agent}, {failure}")));
                break;
            }
        }
        assert!(failed.is_empty(), "{}", failed.join("\n"));
        assert_eq!(station.end("TERM"), Some(0));
    });
}

#[test]
fn the_kernel_carries_files_for_every_agent() {
    with_every_agent("through::the_kernel_carries_files_for_every_agent", "kernel");
}

#[test]
fn packet_sockets_carry_files_for_every_agent() {
    with_every_agent("through::packet_sockets_carry_files_for_every_agent", "sockets");
}

/// Run times of programs with a kernel bridge and with stations, interleaved.
#[test]
#[ignore = "takes minutes: cargo test --release -p lasthop --test cli station:: -- --ignored --nocapture programs_take"]
fn how_long_programs_take() {
    inside("through::how_long_programs_take", || {
        let bytes = 40_000_000;
        let bench = Bench::new("kernel", "none", bytes);
        let whos = ["bridge", "none", "snoop", "none, sockets", "snoop, sockets"];
        let programs = [&BASIC[..], &MORE[..]].concat();
        let mut took = vec![vec![Vec::new(); whos.len()]; programs.len()];
        for round in 0..3 {
            for i in 0..whos.len() {
                let i = if round % 2 == 0 { i } else { whos.len() - 1 - i };
                let (agent, plane) = whos[i].split_once(", ").unwrap_or((whos[i], "kernel"));
                let text = bench.world.text();
                let head = text.lines().take(2).collect::<Vec<_>>().join("\n");
                bench.world.write(&format!(
                    "{head}\nplane = \"{plane}\"\n[[path]]\nagent = \"{}\"\n",
                    if i == 0 { "none" } else { agent }
                ));
                let station = (i != 0).then(|| bench.world.station(&[]));
                if i == 0 {
                    bench.world.ip("link add name over type bridge");
                    bench.world.ip("link set dev over up");
                    bench.world.ip("link set dev lx master over");
                    bench.world.ip("link set dev rx master over");
                    on("b", &["ping", "-q", "-c", "3", "-i", "0.2", "10.9.0.1"]).expect("a bridge");
                }
                for (n, (name, program)) in programs.iter().enumerate() {
                    let (found, seconds) = timed(|| {
                        program(&Scale { bytes, whole: true, wrapped: plane == "kernel" })
                    });
                    found.unwrap_or_else(|error| panic!("{}, {name}: {error}", whos[i]));
                    took[n][i].push(seconds);
                }
                match station {
                    Some(station) => assert_eq!(station.end("TERM"), Some(0)),
                    None => bench.world.ip("link del dev over"),
                }
            }
        }
        println!("| program | {} |", whos.join(" | "));
        for ((name, _), took) in programs.iter().zip(&mut took) {
            let medians = took.iter_mut().map(|seconds| {
                seconds.sort_by(f64::total_cmp);
                seconds[seconds.len() / 2]
            });
            let medians: Vec<f64> = medians.collect();
            let others = medians[1..].iter().map(|median| format!("{:.2}", medians[0] / median));
            println!(
                "| {name} | {:.2} s | {} |",
                medians[0],
                others.collect::<Vec<_>>().join(" | ")
            );
        }
    });
}

/// A file of the servers.
pub fn served(name: &str) -> Vec<u8> {
    fs::read(Path::new("/run/files/out").join(name)).expect("a file that is served")
}
