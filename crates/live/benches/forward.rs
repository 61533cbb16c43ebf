//! Forwarding rate of a station, compared with the kernel of the same machine at the same time.
//!
//!     cargo bench -p lasthop-live --bench forward [-- ROUNDS SECONDS [off|on [kernel]]] [subscribers]
//!     cargo bench -p lasthop-live --bench forward -- gaps TIMES [AGENT]
//!
//! With `subscribers`, each station is also measured with its view of subscribers.
//! Needs `iperf3`, `ethtool` and namespaces; with root it also measures the kernel as data plane. The cases
//! are interleaved, so that other load on the machine affects all of them. The result is the median ratio to
//! the kernel's forwarding in the same round, not an absolute figure.

#[path = "../tests/common/mod.rs"]
mod common;
mod far;

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use common::*;
use far::Far;
use nix::sys::signal::Signal;

/// The forwarder: the kernel as a router or a bridge, or a station with this agent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Who {
    Router,
    Bridge,
    Station(By, &'static str),
}

impl Who {
    fn name(self) -> String {
        match self {
            Who::Router => "kernel, as a router".to_owned(),
            Who::Bridge => "kernel, as a bridge".to_owned(),
            Who::Station(By::Kernel, agent) => format!("{agent}, by the kernel"),
            Who::Station(By::Sockets, agent) => format!("{agent}, by sockets"),
        }
    }
}

/// Agents on both data planes.
const AGENTS: [&str; 3] = ["none", "snoop", "split"];

/// The same with the view of subscribers.
const VIEWED: [&str; 3] =
    ["none with subscribers", "snoop with subscribers", "split with subscribers"];

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    if far::station_or_inside(&args) {
        return;
    }
    let rights = lasthop_live::plane::probe();
    sh("mount -t tmpfs none /run && mkdir -p /run/netns; iperf3 --version >/dev/null");
    let number = |i: usize, default| args.get(i).and_then(|n| n.parse().ok()).unwrap_or(default);
    if args.first().is_some_and(|arg| arg == "gaps") {
        return gaps(number(1, 5) as usize, args.get(2).map(String::as_str));
    }
    let (rounds, seconds): (u32, u32) = (number(0, 6), number(1, 1));
    let mut whos = vec![Who::Router, Who::Bridge];
    let viewed = args.iter().any(|arg| arg == "subscribers");
    let agents = AGENTS.iter().chain(VIEWED.iter().filter(|_| viewed));
    match rights {
        Ok(()) => whos.extend(agents.clone().map(|agent| Who::Station(By::Kernel, agent))),
        Err(refusal) => println!("the kernel is not measured as data plane: {refusal}"),
    }
    if !args.iter().any(|arg| arg == "kernel") {
        whos.extend(agents.map(|agent| Who::Station(By::Sockets, agent)));
    }
    for offload in [false, true] {
        let state = if offload { "on" } else { "off" };
        if args.get(2).is_none_or(|only| only == state || !["on", "off"].contains(&only.as_str())) {
            wire(Wires { offload, ..Wires::default() });
            compare(&whos, rounds, seconds, state);
            unwire();
        }
    }
}

fn unwire() {
    sh("ip netns del fh; ip netns del bs; ip netns del mh");
}

/// Results of one round.
#[derive(Clone, Copy)]
struct Measured {
    /// Rates of 1, 8 and 64 flows, Gb/s.
    gbps: [f64; 3],
    /// Processor seconds of the station per gigabit, over all flows.
    cpu: f64,
    /// Round-trip times of one byte over TCP on the idle path, microseconds: median and 99th percentile.
    echo: [f64; 2],
}

const FLOWS: [u32; 3] = [1, 8, 64];

fn compare(whos: &[Who], rounds: u32, seconds: u32, state: &str) {
    let mut results = vec![Vec::new(); whos.len()];
    for round in 0..rounds {
        let mut order: Vec<usize> = (0..whos.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for i in order {
            results[i].push(measure(whos[i], seconds));
        }
    }
    let load = std::fs::read_to_string("/proc/loadavg").unwrap();
    println!("\noffloads {state}: {rounds} rounds of {seconds} s, load {}", &load[..4]);
    println!("Of the router in the same round, median (least - most), for 1, 8 and 64 flows.\n");
    println!("| who | Gb/s | 1 | 8 | 64 | CPU s per Gbit | echo, us | added, us | p99, us |");
    println!("|---|---|---|---|---|---|---|---|---|");
    for (who, own) in whos.iter().zip(&results) {
        let pairs = || own.iter().zip(&results[0]);
        let ratios = [0, 1, 2].map(|i| {
            let mut ratios: Vec<f64> = pairs().map(|(a, b)| a.gbps[i] / b.gbps[i]).collect();
            ratios.sort_by(f64::total_cmp);
            format!("{:.2} ({:.2} - {:.2})", middle(&ratios), ratios[0], ratios[ratios.len() - 1])
        });
        println!(
            "| {} | {:.2} | {} | {:.4} | {:.1} | {:.1} | {:.0} |",
            who.name(),
            median(own.iter().map(|r| r.gbps[0])),
            ratios.join(" | "),
            median(own.iter().map(|r| r.cpu)),
            median(own.iter().map(|r| r.echo[0])),
            median(pairs().map(|(a, b)| a.echo[0] - b.echo[0])),
            median(own.iter().map(|r| r.echo[1])),
        );
    }
}

fn middle(sorted: &[f64]) -> f64 {
    (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2]) / 2.0
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    middle(&values)
}

/// Makes the kernel forward as a router, as a bridge or not at all.
fn arrange(who: Who) {
    let on = u8::from(who == Who::Router);
    // A router has an address on both sides, and answers ARP for the hosts behind it.
    sh(&format!(
        "ip netns exec bs sysctl -qw net.ipv4.ip_forward={on} net.ipv4.conf.bl.proxy_arp={on} \
         net.ipv4.conf.br.proxy_arp={on} net.ipv4.conf.all.send_redirects=0
         ip -n bs addr flush dev bl; ip -n bs addr flush dev br
         ip -n bs link del dev bridge 2>/dev/null || true"
    ));
    if who == Who::Router {
        sh("ip -n bs addr add 10.9.0.253/32 dev bl; ip -n bs addr add 10.9.0.254/32 dev br
            ip -n bs route add 10.9.0.1/32 dev bl; ip -n bs route add 10.9.0.2/32 dev br");
    }
    if who == Who::Bridge {
        sh("ip -n bs link add name bridge type bridge; ip -n bs link set dev bridge up
            ip -n bs link set dev bl master bridge; ip -n bs link set dev br master bridge");
    }
    sh("ip -n fh neigh flush dev fl; ip -n mh neigh flush dev mr");
}

fn measure(who: Who, seconds: u32) -> Measured {
    arrange(who);
    let station = match who {
        Who::Station(by, agent) => Some(Far::start(by, agent)),
        _ => None,
    };
    sh("ip netns exec fh ping -q -c 20 -i 0.002 -W 2 10.9.0.2");
    let echo = echo(3000);
    let mut gigabits = 0.0;
    let gbps = FLOWS.map(|flows| {
        let [gbps, carried] = transfer_by_iperf(flows, seconds);
        gigabits += carried;
        gbps
    });
    Measured { gbps, cpu: station.map_or(0.0, Far::stop) / gigabits, echo }
}

/// Received rate in Gb/s, and received gigabits.
fn transfer_by_iperf(flows: u32, seconds: u32) -> [f64; 2] {
    let mut server = Command::new("ip")
        .args(["netns", "exec", "mh", "iperf3", "-s", "-1"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    pause(250);
    let client =
        sh(&format!("ip netns exec fh iperf3 -J -C cubic -P {flows} -t {seconds} -c 10.9.0.2"));
    server.wait().unwrap();
    let result: serde_json::Value = serde_json::from_str(&client).unwrap();
    let received = &result["end"]["sum_received"];
    ["bits_per_second", "bytes"].map(|key| {
        let value = received[key].as_f64().unwrap();
        if key == "bytes" { value * 8.0 / 1e9 } else { value / 1e9 }
    })
}

#[expect(clippy::disallowed_methods, reason = "a measurement")]
fn now() -> Instant {
    Instant::now()
}

/// Median and 99th percentile of the round-trip time of one byte over TCP, microseconds.
fn echo(times: usize) -> [f64; 2] {
    let (sender, addresses) = channel();
    let server = within("mh", move || {
        let listener = std::net::TcpListener::bind("10.9.0.2:0").unwrap();
        sender.send(listener.local_addr().unwrap()).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_nodelay(true).unwrap();
        let mut byte = [0];
        while stream.read(&mut byte).unwrap() == 1 {
            stream.write_all(&byte).unwrap();
        }
    });
    let addr = addresses.recv().unwrap();
    let took = inside("fh", move || {
        let mut stream = std::net::TcpStream::connect(addr).unwrap();
        stream.set_nodelay(true).unwrap();
        let trips = (0..times).map(|_| {
            let begin = now();
            stream.write_all(&[1]).unwrap();
            stream.read_exact(&mut [0]).unwrap();
            (now() - begin).as_secs_f64() * 1e6
        });
        let mut trips: Vec<f64> = trips.collect();
        trips.sort_by(f64::total_cmp);
        [middle(&trips), trips[times * 99 / 100]]
    });
    server.join().unwrap();
    took
}

/// Longest gaps in the arrivals of a paced sender, with one agent or with each: without an event, when the
/// station is killed, and when it is stopped for ten seconds.
fn gaps(times: usize, only: Option<&str>) {
    for offload in [false, true] {
        wire(Wires { offload, ..Wires::default() });
        let state = if offload { "on" } else { "off" };
        println!(
            "\noffloads {state}: the longest gap at the receiver, in ms, {times} times each\n"
        );
        println!("| agent | no event, 2 s | kill -9 | no event, 12 s | stopped for 10 s |");
        println!("|---|---|---|---|---|");
        let agents = ["none", "snoop", "link"];
        for agent in agents.into_iter().filter(|agent| only.is_none_or(|only| only == *agent)) {
            let events =
                [(None, 2), (Some(Signal::SIGKILL), 2), (None, 12), (Some(Signal::SIGSTOP), 12)];
            let row = events.map(|(event, seconds)| {
                let mut gaps: Vec<f64> =
                    (0..times).map(|_| gap(agent, event, Duration::from_secs(seconds))).collect();
                gaps.sort_by(f64::total_cmp);
                format!("{:.1} (at most {:.1})", middle(&gaps), gaps[gaps.len() - 1])
            });
            println!("| {agent} | {} |", row.join(" | "));
        }
        unwire();
    }
}

/// Longest gap in the arrivals of a sender that writes every half millisecond, ms. The event follows after a
/// second.
fn gap(agent: &str, event: Option<Signal>, length: Duration) -> f64 {
    let station = Far::start(By::Kernel, agent);
    let stopped = event == Some(Signal::SIGSTOP);
    let (sender, addresses) = channel();
    let server = within("mh", move || {
        let listener = std::net::TcpListener::bind("10.9.0.2:0").unwrap();
        sender.send(listener.local_addr().unwrap()).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        let mut buffer = [0; 1 << 16];
        let begin = now();
        let (mut last, mut longest) = (begin, (Duration::ZERO, begin));
        while stream.read(&mut buffer).unwrap() > 0 {
            longest = longest.max((now() - last, last));
            last = now();
        }
        (longest.0, longest.1 - begin)
    });
    let addr = addresses.recv().unwrap();
    let client = within("fh", move || {
        let mut stream = std::net::TcpStream::connect(addr).unwrap();
        stream.set_nodelay(true).unwrap();
        let begin = now();
        let mut due = Duration::ZERO;
        while due < length {
            stream.write_all(&[7; 100]).unwrap();
            due += Duration::from_micros(500);
            pause_until(begin, due);
        }
    });
    pause(1000);
    if let Some(event) = event {
        station.signal(event);
        if stopped {
            pause(10_000);
            station.signal(Signal::SIGCONT);
        }
    }
    client.join().unwrap();
    let (longest, at) = server.join().unwrap();
    if std::env::var_os("LASTHOP_BENCH_COUNTS").is_some() {
        eprintln!("{agent}, {event:?}: {longest:.1?} after {at:.3?}");
    }
    if event == Some(Signal::SIGKILL) {
        station.gone();
    } else {
        station.stop();
    }
    longest.as_secs_f64() * 1e3
}

#[expect(clippy::disallowed_methods, reason = "a paced sender")]
fn pause_until(begin: Instant, due: Duration) {
    std::thread::sleep(due.saturating_sub(begin.elapsed()));
}
