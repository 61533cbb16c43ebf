//! How fast a station forwards, beside the kernel of the same machine in the same minute.
//!
//!     cargo bench -p lasthop-live --bench forward [-- ROUNDS SECONDS]
//!
//! Needs `iperf3`, `ping`, `ethtool` and namespaces (with root or without). The cases take turns, so that a machine
//! that is busy with other things is so for all of them; ratios of medians count, absolute figures do not.

#[path = "../tests/common/mod.rs"]
mod common;

use std::io::{Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

use common::*;
use lasthop_live::clock::Clock;
use lasthop_live::station::{Port, Station};
use lasthop_path::Stage;
use lasthop_proto::event::Wants;
use lasthop_proto::machine::{Side, StageId};
use nix::sys::resource::{UsageWho, getrusage};

/// Who forwards.
#[derive(Clone, Copy)]
enum Who {
    Kernel,
    Station(&'static str),
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    if let [role, stage] = &args[..]
        && role == "station"
    {
        run_station(if stage == "snoop" { snoop } else { none });
        return;
    }
    if std::env::var_os("LASTHOP_BENCH_INSIDE").is_none() {
        let status = Command::new("unshare")
            .args(["--map-root-user", "--net", "--mount", "--"])
            .arg(std::env::current_exe().unwrap())
            .args(&args)
            .env("LASTHOP_BENCH_INSIDE", "1")
            .status()
            .expect("needs `unshare` of util-linux");
        std::process::exit(status.code().unwrap_or(1));
    }
    sh("mount -t tmpfs none /run && mkdir -p /run/netns; iperf3 --version >/dev/null");
    let number = |i: usize, default| args.get(i).and_then(|n| n.parse().ok()).unwrap_or(default);
    let (rounds, seconds): (u32, u32) = (number(0, 3), number(1, 3));
    let whos = [Who::Kernel, Who::Station("none"), Who::Station("snoop")];
    for (offload, whos) in [(false, &whos[..]), (true, &whos[..2])] {
        wire(Wires { offload, ..Wires::default() });
        let mut results = vec![Vec::new(); whos.len()];
        for _ in 0..rounds {
            for (who, results) in whos.iter().zip(&mut results) {
                results.push(measure(*who, seconds));
            }
        }
        let state = if offload { "on" } else { "off" };
        println!("\noffloads {state}: medians of {rounds} rounds of {seconds} s");
        println!("| who | Gb/s | of the kernel | CPU s per Gbit | echo, us | added, us |");
        println!("|---|---|---|---|---|---|");
        let base = median(&results[0], |r| r.gbps);
        let echo = median(&results[0], |r| r.echo);
        for (who, results) in whos.iter().zip(&results) {
            let name = match who {
                Who::Kernel => "kernel",
                Who::Station(name) => name,
            };
            let gbps = median(results, |r| r.gbps);
            let own = median(results, |r| r.echo);
            println!(
                "| {name} | {gbps:.2} | {:.2} | {:.2} | {own:.0} | {:.0} |",
                gbps / base,
                median(results, |r| r.cpu),
                own - echo
            );
        }
        sh("ip netns del fh; ip netns del bs; ip netns del mh");
    }
}

/// What one round gave.
#[derive(Clone, Copy)]
struct Measured {
    gbps: f64,
    /// Processor seconds of the station for a gigabyte.
    cpu: f64,
    /// Median round trip in microseconds, while nothing else passes.
    echo: f64,
}

fn median(results: &[Measured], value: impl Fn(&Measured) -> f64) -> f64 {
    let mut values: Vec<f64> = results.iter().map(value).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn measure(who: Who, seconds: u32) -> Measured {
    let on = u8::from(matches!(who, Who::Kernel));
    // As a router it has an address on both sides and answers for those behind it.
    sh(&format!(
        "ip netns exec bs sysctl -qw net.ipv4.ip_forward={on} net.ipv4.conf.bl.proxy_arp={on} \
         net.ipv4.conf.br.proxy_arp={on} net.ipv4.conf.all.send_redirects=0
         ip -n bs addr flush dev bl; ip -n bs addr flush dev br"
    ));
    if on == 1 {
        sh("ip -n bs addr add 10.9.0.253/32 dev bl; ip -n bs addr add 10.9.0.254/32 dev br
            ip -n bs route add 10.9.0.1/32 dev bl; ip -n bs route add 10.9.0.2/32 dev br");
    }
    sh("ip -n fh neigh flush dev fl; ip -n mh neigh flush dev mr");
    let station = match who {
        Who::Kernel => None,
        Who::Station(name) => Some(Far::start(name)),
    };
    sh("ip netns exec fh ping -q -c 20 -i 0.002 -W 2 10.9.0.2");
    let pings = sh("ip netns exec fh ping -c 500 -i 0.002 10.9.0.2");
    let times = pings
        .lines()
        .filter_map(|line| line.split("time=").nth(1)?.split(' ').next()?.parse().ok());
    let mut times: Vec<f64> = times.collect();
    times.sort_by(f64::total_cmp);
    let mut server = Command::new("ip")
        .args(["netns", "exec", "mh", "iperf3", "-s", "-1"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    pause(300);
    let client = sh(&format!("ip netns exec fh iperf3 -J -C cubic -t {seconds} -c 10.9.0.2"));
    server.wait().unwrap();
    let result: serde_json::Value = serde_json::from_str(&client).unwrap();
    let received = &result["end"]["sum_received"];
    let bytes = received["bytes"].as_f64().unwrap();
    Measured {
        gbps: received["bits_per_second"].as_f64().unwrap() / 1e9,
        cpu: station.map_or(0.0, Far::stop) / (bytes * 8.0 / 1e9),
        echo: times[times.len() / 2] * 1000.0,
    }
}

/// A station in a process of its own.
struct Far {
    child: Child,
    out: ChildStdout,
}

impl Far {
    fn start(stage: &str) -> Far {
        let mut child = Command::new("ip")
            .args(["netns", "exec", "bs"])
            .arg(std::env::current_exe().unwrap())
            .args(["station", stage])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = child.stdout.take().unwrap();
        let mut word = [0; 6];
        out.read_exact(&mut word).unwrap();
        Far { child, out }
    }

    /// Ends it; its processor seconds.
    fn stop(mut self) -> f64 {
        drop(self.child.stdin.take());
        let mut said = String::new();
        self.out.read_to_string(&mut said).unwrap();
        self.child.wait().unwrap();
        said.trim().parse().unwrap()
    }
}

fn run_station(stage: fn() -> Stage) {
    let index = |name: &str| nix::net::if_::if_nametoindex(name).unwrap();
    let ports = vec![
        Port::open("bl", index("bl"), StageId(0), Side::Left).unwrap(),
        Port::open("br", index("br"), StageId(2), Side::Right).unwrap(),
    ];
    let path = path_of(vec![stage()], Wants::NOTHING);
    let mut station = Station::new(path, ports, Clock::start()).unwrap();
    let handle = station.handle();
    std::thread::spawn(move || {
        println!("ready");
        std::io::stdout().flush().unwrap();
        let _ = std::io::stdin().read(&mut [0]);
        handle.ask(|station| station.stop());
    });
    station.run(&mut lasthop_trace::Nothing, &mut |_, _, _| true).unwrap();
    let usage = getrusage(UsageWho::RUSAGE_SELF).unwrap();
    let seconds =
        |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    println!("{}", seconds(usage.user_time()) + seconds(usage.system_time()));
}
