//! A station in a separate process, for benches that change, measure or kill it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};

use lasthop_live::clock::Clock;
use lasthop_live::counters::{Counters, Tap};
use lasthop_live::plane::Plane;
use lasthop_live::station::{Port, Station};
use lasthop_live::subscribers::SubscriberView;
use lasthop_path::Stage;
use lasthop_proto::agent::{Agent, AgentConfig, SplitConfig};
use lasthop_proto::event::Interest;
use lasthop_proto::machine::{Side, StageId};
use lasthop_proto::tcp::TcpConfig;
use lasthop_proto::units::Bytes;
use lasthop_scenario::SubscriberConfig;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::common::{By, link, none, path_of, snoop};

/// The end of an agent's name whose station has the view of subscribers.
pub const VIEW: &str = " with subscribers";

/// Whether this process is done: it was started as a station, or it has started itself again in its own
/// namespaces. The inner process continues.
pub fn station_or_inside(args: &[String]) -> bool {
    if let [role, by, agent] = args
        && role == "station"
    {
        run_station(if by == "kernel" { By::Kernel } else { By::Sockets }, agent);
        return true;
    }
    if std::env::var_os("LASTHOP_BENCH_INSIDE").is_some() {
        return false;
    }
    let rights = lasthop_live::plane::probe();
    let user: &[&str] = if rights.is_ok() { &[] } else { &["--map-root-user"] };
    let status = Command::new("unshare")
        .args(user)
        .args(["--net", "--mount", "--"])
        .arg(std::env::current_exe().unwrap())
        .args(args)
        .env("LASTHOP_BENCH_INSIDE", "1")
        .status()
        .expect("needs `unshare` of util-linux");
    std::process::exit(status.code().unwrap_or(1));
}

/// A station in a separate process.
pub struct Far {
    child: Child,
    out: BufReader<ChildStdout>,
}

#[allow(dead_code, reason = "each bench uses its part")]
impl Far {
    pub fn start(by: By, agent: &str) -> Far {
        let by = if by == By::Kernel { "kernel" } else { "sockets" };
        // Without an outer `ip netns exec`, signals reach the station.
        let mut child = Command::new("nsenter")
            .arg("--net=/run/netns/bs")
            .arg(std::env::current_exe().unwrap())
            .args(["station", by, agent])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let mut far = Far { child, out };
        far.wait_for("ready");
        far
    }

    fn wait_for(&mut self, word: &str) {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        assert_eq!(line.trim(), word, "the station ended");
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    /// Replaces the agent.
    pub fn set(&mut self, agent: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{agent}").unwrap();
        self.wait_for("set");
    }

    /// Its resident memory, bytes.
    pub fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
    }

    /// Waits for the end of a killed station.
    pub fn gone(mut self) {
        self.child.wait().unwrap();
    }

    /// Stops the station. Returns its processor time, seconds.
    pub fn stop(mut self) -> f64 {
        drop(self.child.stdin.take());
        let mut output = String::new();
        self.out.read_to_string(&mut output).unwrap();
        self.child.wait().unwrap();
        output.trim().parse().unwrap()
    }
}

/// The stage of `agent = "split"` in a file.
fn split() -> Stage {
    let own = SplitConfig::new(TcpConfig::linux());
    let config = SplitConfig { largest: Some(Bytes(4 << 20)), ..own };
    Stage::Agent(Box::new(Agent::new(&AgentConfig::Split(config))))
}

fn stage(agent: &str) -> Stage {
    match agent {
        "snoop" => snoop(),
        "split" => split(),
        "link" => link(),
        _ => none(),
    }
}

fn run_station(by: By, agent: &str) {
    let index = |name: &str| nix::net::if_::if_nametoindex(name).unwrap();
    let ports = vec![
        Port::open("bl", index("bl"), StageId(0), Side::Left).unwrap(),
        Port::open("br", index("br"), StageId(2), Side::Right).unwrap(),
    ];
    let (agent, view) = match agent.strip_suffix(VIEW) {
        Some(agent) => (agent, true),
        None => (agent, false),
    };
    let path = path_of(vec![stage(agent)], Interest::METRICS);
    let clock = Clock::start();
    let mut station = Station::new(path, ports, clock).unwrap();
    let view = view.then(|| SubscriberView::of(SubscriberConfig::default(), clock));
    let tap = view.map(|view| view.tap([StageId(0), StageId(2)]));
    if by == By::Kernel {
        station.set_plane(Plane::start(["bl", "br"].map(index)).unwrap()).unwrap();
    }
    // As in the service: only frames are counted if no stage inspects them.
    let counters = Counters::new(3);
    counters.set_idle(agent == "none");
    let idle = counters.clone();
    let handle = station.handle();
    std::thread::spawn(move || {
        println!("ready");
        std::io::stdout().flush().unwrap();
        for agent in std::io::stdin().lines().map_while(Result::ok) {
            idle.set_idle(agent == "none");
            handle.ask(move |station| station.path_mut().replace_stage(1, stage(&agent)));
            println!("set");
            std::io::stdout().flush().unwrap();
        }
        handle.ask(|station| station.stop());
    });
    station.run(&mut (tap, Tap(counters)), &mut |_, _, _| true).unwrap();
    if let Some(plane) = station.plane() {
        plane.clear().unwrap();
        if std::env::var_os("LASTHOP_BENCH_COUNTS").is_some() {
            eprintln!("{agent}: {:?}", plane.counts());
        }
    }
    let usage = getrusage(UsageWho::RUSAGE_SELF).unwrap();
    let seconds =
        |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    println!("{}", seconds(usage.user_time()) + seconds(usage.system_time()));
}
