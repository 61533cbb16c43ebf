//! The keeper: the first process of its namespace. It makes the network, runs the base station and starts the
//! program.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use lasthop_path::{Path, Stage, Witness};
use lasthop_proto::event::Interest;
use lasthop_proto::machine::Side;
use lasthop_proto::units::{Span, Time};
use lasthop_scenario::{Argument, LivePath, Stage as Planned, parse_station};
use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::{Pid, close};

use super::capture::Capture;
use super::outside::{Joined, Outside};
use super::tally::Tally;
use super::{Addresses, End, Ended, FAR, LEVEL, Line, NEAR, Order, RUN, Wish, Word};
use crate::clock::Clock;
use crate::lock;
use crate::service::epoch;
use crate::station::{Handle, Station};
use crate::testbed::error::Tried as _;
use crate::testbed::{self, Error, HostSpec, Net, NetSpec, enter, ip, preset};
use crate::world::ports;

/// Time limit for a server to listen, and the minimum number of checks. A busy machine slows down both the
/// checks and the server.
const LISTENS: Span = Span::secs(3);
const LOOKS: u32 = 100;

/// The program's process once it runs. The lock is held during the start, so that a signal waits for the
/// process.
type Program = Arc<Mutex<Option<Pid>>>;

/// Makes a command that runs this executable with a hidden command.
type Own<'a> = &'a dyn Fn(&[&str]) -> Command;

/// The pipe that carries messages to the front.
#[derive(Clone)]
struct FrontPipe(Arc<Mutex<File>>);

impl FrontPipe {
    fn write(&self, line: &Line) {
        write(&mut lock(&self.0), line);
    }
}

fn write(pipe: &mut File, line: &Line) {
    let mut text = serde_json::to_vec(line).expect("a line is JSON");
    text.push(b'\n');
    // A write error means that the front has exited, which ends this process too.
    let _ = pipe.write_all(&text);
}

/// The keeper's main function. It reads orders from the descriptor `order` and writes lines to `answer`.
///
/// # Errors
///
/// When no front started this process. The front receives all other errors.
pub fn hold(order: i32, answer: i32, own: Own<'_>) -> Result<(), Error> {
    let open = |fd: i32, write: bool| {
        // Opened again with close-on-exec, since later children must not inherit inherited descriptors.
        let file = File::options().read(!write).write(write).open(format!("/proc/self/fd/{fd}"));
        let file = file.tried(|| "read the order; this command is for `lasthop shell`");
        let _ = close(fd);
        file
    };
    let (order, answer) = (open(order, false)?, open(answer, true)?);
    let front = FrontPipe(Arc::new(Mutex::new(answer)));
    let mut words = BufReader::new(order);
    let mut line = String::new();
    words.read_line(&mut line).tried(|| "read the order")?;
    let order = serde_json::from_str(&line).tried(|| "parse the order")?;
    match run(order, words, &front, own) {
        Ok(ended) => front.write(&Line::Ended(Box::new(ended))),
        Err(Error { message, help }) => front.write(&Line::Failed { message, help }),
    }
    Ok(())
}

fn run(
    order: Order,
    words: BufReader<File>,
    front: &FrontPipe,
    own: Own<'_>,
) -> Result<Ended, Error> {
    let Order { wish, user } = order;
    let arguments: Vec<_> = wish.set.iter().cloned().map(Argument::Set).collect();
    let (_, scenario) = LivePath::of_scenario(&wish.text, &wish.name, &arguments)
        .map_err(|lasthop_scenario::Error(why)| Error::new(why.message, why.help))?;
    let addresses = Addresses(wish.level);
    let outside = enter::enter_after(|| {
        let start = |helper| Outside::start(helper, own, addresses, user.is_none());
        wish.outside.map(start).transpose()
    })?;
    // The namespace has its own process numbers. Some containers forbid this mount; the old numbers remain
    // visible there.
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    let _ = mount(Some("proc"), "/proc", Some("proc"), flags, None::<&str>);
    let program = Program::default();
    obey(program.clone(), words, front.clone());
    let net = network(addresses)?;
    let joined = outside.map(|outside| outside.join(&net));
    if let Some(Err(error)) = &joined {
        let why = &error.message;
        front.write(&Line::Note(format!(
            "`{FAR}` is the only reachable host, not the outside: {why}"
        )));
    }
    let joined = joined.and_then(Result::ok);
    if let Some(Joined { helper, names, .. }) = joined {
        let names = if names { " and DNS" } else { "" };
        let program = helper.program();
        front.write(&Line::Note(format!("{program} carries IPv4 to the outside{names}")));
    }
    let clock = Clock::start();
    let mut path = scenario.path;
    if joined.is_some() {
        path.insert(0, sender()?);
    }
    let mut station = station(&net, &path, scenario.first_seed, clock)?;
    let mut capture = match &wish.capture {
        Some(file) => {
            let create = Capture::create(file.as_ref(), &path, epoch(clock));
            Some(create.map_err(|error| {
                Error::new(
                    format!("cannot write {}: {error}", file.display()),
                    "is there room, and may you write there?",
                )
            })?)
        }
        None => None,
    };
    for command in &wish.serve {
        serve(&net, command)?;
    }
    let (begun, cpu_before) = (clock.now(), cpu());
    let pid = {
        let mut program = lock(&program);
        let pid = start(&net, &wish, user, joined, own)?;
        *program = Some(pid);
        pid
    };
    front.write(&Line::Runs);
    let waiter = attend(pid, station.handle(), front.clone());
    let mut sinks = (Tally::new(&path, joined.is_some()), capture.as_mut());
    let run = station.run(&mut sinks, &mut |_, _, _| true);
    run.tried(|| "continue: the base station stopped")?;
    let end = waiter.join().ok().flatten();
    let end = end.ok_or_else(|| Error::new("the state of the program is unknown", ""))?;
    let tallied = sinks.0.tallied();
    let capture_error = capture.and_then(|c| c.finish().err()).map(|error| error.to_string());
    let seconds = clock.now().since(begun).as_secs_f64();
    let overrun = station.port_counts().map(|(_, counts)| counts.overrun + counts.refused).sum();
    Ok(Ended { end, seconds, cpu_seconds: cpu() - cpu_before, tallied, overrun, capture_error })
}

/// Processor time of this process so far, seconds.
fn cpu() -> f64 {
    let seconds =
        |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    getrusage(UsageWho::RUSAGE_SELF)
        .map_or(0.0, |usage| seconds(usage.user_time()) + seconds(usage.system_time()))
}

/// Makes the two hosts. The far one has no route to the outside yet.
fn network(addresses: Addresses) -> Result<Net, Error> {
    let ((far, far_v6), (near, near_v6)) = (addresses.far(), addresses.near());
    let host = |name, side, v4, v6| HostSpec::new(name, side, std::net::IpAddr::V4(v4)).v6(v6);
    let hosts = vec![
        host(FAR, testbed::Side::Left, far, far_v6),
        host(NEAR, testbed::Side::Right, near, near_v6),
    ];
    let net = Net::populate(&NetSpec { station: "station".to_owned(), offloads: false, hosts })?;
    let has_v6 = net.has_v6();
    net.in_host(FAR, || {
        preset::write_sysctl("ipv4/ip_forward", "1")?;
        let mut lines = vec![
            format!("route replace {near} dev eth0"),
            "route replace unreachable 0.0.0.0/0 metric 4096".to_owned(),
            "route del 0.0.0.0/0 dev eth0".to_owned(),
        ];
        if has_v6 {
            preset::write_sysctl("ipv6/conf/all/forwarding", "1")?;
            lines.extend([
                format!("route replace {near_v6}/128 dev eth0"),
                "route del ::/0 dev eth0".to_owned(),
            ]);
        }
        ip::batch(&lines)
    })??;
    net.in_host(NEAR, || {
        // All users may ping: the group is the user's.
        preset::write_sysctl("ipv4/ping_group_range", "0 0")?;
        let mut lines = vec![format!("route replace 0.0.0.0/0 via {far} dev eth0 onlink")];
        if has_v6 {
            lines.push(format!("route replace ::/0 via {far_v6} dev eth0 onlink"));
        }
        ip::batch(&lines)
    })??;
    Ok(net)
}

/// The split connection that sends data from the outside over the link. The TCP stacks of the helpers assume
/// a lossless device: pasta has no congestion control, slirp4netns an old one. So their connections end here,
/// and CUBIC sends over the link.
fn sender() -> Result<Planned, Error> {
    let text = "left = 'a'\nright = 'b'\n[[path]]\nname = 'outside'\nagent = 'split'\nsplit-tcp = 'cubic'\n";
    let (file, _) = parse_station(text)
        .map_err(|lasthop_scenario::Error(why)| Error::new(why.message, why.help))?;
    let stage = file.path.stages().first().cloned();
    stage.ok_or_else(|| {
        Error::new("there is no sender for the outside", "this is a fault of the program")
    })
}

/// The base station between the hosts. Packets to all destination addresses take the link.
fn station(net: &Net, path: &[Planned], seed: u64, clock: Clock) -> Result<Station, Error> {
    let host = |inward| Stage::Witness(Box::new(Witness::of_all(inward)));
    let mut stages = vec![host(Side::Right)];
    stages.extend(path.iter().map(|stage| Stage::of_path(stage, seed)));
    let last = stages.len();
    stages.push(host(Side::Left));
    let ports = ports(net, &[0, last])?;
    let path = Path::new(stages, 1..last, vec![0, last], Interest::METRICS);
    Station::new(path, ports, clock).tried(|| "start the base station")
}

/// Starts a command on the far host, and waits until it listens.
fn serve(net: &Net, command: &str) -> Result<(), Error> {
    net.in_host(FAR, || {
        let before = listeners();
        let out =
            io::stderr().as_fd().try_clone_to_owned().tried(|| "duplicate the standard error")?;
        // Ctrl-C is meant for the program only.
        let mut child = Command::new("sh")
            .args(["-c", command])
            .stdin(Stdio::null())
            .stdout(out)
            .process_group(0)
            .spawn()
            .tried(|| format!("run `{command}`"))?;
        let clock = Clock::start();
        let mut looks = 0;
        while (looks < LOOKS || clock.now() < Time::ZERO + LISTENS) && listeners() <= before {
            looks += 1;
            if let Ok(Some(status)) = child.try_wait() {
                let message = format!("`{command}` ended before it listened: {status}");
                return Err(Error::new(
                    message,
                    "`--serve` is for a program that serves on the far side",
                ));
            }
            pause(Duration::from_millis(5));
        }
        Ok(())
    })?
}

#[expect(clippy::disallowed_methods, reason = "a program is waited for, outside of any experiment")]
fn pause(step: Duration) {
    thread::sleep(step);
}

/// Number of listening sockets in the calling thread's network.
fn listeners() -> usize {
    listening(|name| {
        fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap_or_default()
    })
}

/// Like `listeners`, with `table` as the source of each protocol's socket table.
fn listening(table: impl Fn(&str) -> String) -> usize {
    let count = |name: &str, state: &str| {
        let text = table(name);
        let states = text.lines().skip(1).filter_map(|line| line.split_ascii_whitespace().nth(3));
        states.filter(|found| *found == state).count()
    };
    // TCP sockets in LISTEN, and UDP sockets without a peer.
    count("tcp", "0A") + count("tcp6", "0A") + count("udp", "07") + count("udp6", "07")
}

/// Starts the program on the near host.
fn start(
    net: &Net,
    wish: &Wish,
    user: Option<(u32, u32)>,
    joined: Option<Joined>,
    own: Own<'_>,
) -> Result<Pid, Error> {
    let user = user.filter(|_| !wish.root).map(|(uid, gid)| format!("{uid}:{gid}"));
    let mut run = vec![RUN];
    run.extend(wish.json.then_some("--json"));
    run.extend([user.as_deref().unwrap_or("-"), "--"]);
    let mut command = own(&run);
    command.args(&wish.program);
    command.envs(wish.environment.iter().map(|(name, value)| (name, value)));
    let far = Addresses(wish.level).far().0.to_string();
    command.env("LASTHOP_FAR", far).env(LEVEL, (wish.level + 1).to_string());
    if let Some(joined) = joined {
        command.env("LASTHOP_GATEWAY", joined.gateway.to_string());
    }
    if wish.interactive {
        command.process_group(0);
    }
    let child = net.in_host(NEAR, || command.spawn())?.tried(|| "start the program")?;
    Ok(Pid::from_raw(child.id() as i32))
}

/// Changes of a child's state.
const CHANGES: WaitPidFlag =
    WaitPidFlag::WEXITED.union(WaitPidFlag::WUNTRACED).union(WaitPidFlag::WCONTINUED);

/// Reaps all children of this process namespace and reports each change of `program`. Stops the station at
/// its end.
fn attend(program: Pid, station: Handle, front: FrontPipe) -> thread::JoinHandle<Option<End>> {
    thread::spawn(move || {
        let end = loop {
            if waitid(Id::All, CHANGES | WaitPidFlag::WNOWAIT) == Err(Errno::ECHILD) {
                break None;
            }
            // A change is taken and reported under one lock, so that `obey` never reports an older state.
            let mut pipe = lock(&front.0);
            let flags = WaitPidFlag::WUNTRACED | WaitPidFlag::WCONTINUED | WaitPidFlag::WNOHANG;
            match waitpid(None, Some(flags)) {
                Ok(WaitStatus::Exited(pid, code)) if pid == program => break Some(End::Exit(code)),
                Ok(WaitStatus::Signaled(pid, signal, _)) if pid == program => {
                    break Some(End::Signal(signal as i32));
                }
                Ok(WaitStatus::Stopped(pid, _)) if pid == program => {
                    write(&mut pipe, &Line::Stopped);
                }
                Ok(WaitStatus::Continued(pid)) if pid == program => {
                    write(&mut pipe, &Line::Continued);
                }
                Ok(_) | Err(Errno::EINTR) => {}
                Err(_) => break None,
            }
        };
        // The station's loop may not have started yet.
        while station.ask(Station::stop).is_none() {}
        end
    })
}

/// Forwards signals to `program`, and answers whether it is still stopped. A signal before its start ends this
/// process. So does the end of the front, and then the kernel ends the namespace.
fn obey(program: Program, words: BufReader<File>, front: FrontPipe) {
    thread::spawn(move || {
        for line in words.lines().map_while(Result::ok) {
            let Ok(word) = serde_json::from_str(&line) else { continue };
            let pid = *lock(&program);
            match (pid, word) {
                (Some(pid), Word::Signal(number)) => {
                    let _ = Signal::try_from(number).map(|signal| kill(pid, signal));
                }
                (Some(pid), Word::IsStopped) => {
                    let mut pipe = lock(&front.0);
                    let flags = CHANGES | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
                    // After a change `attend` reports the new state.
                    if waitid(Id::Pid(pid), flags) == Ok(WaitStatus::StillAlive) {
                        write(&mut pipe, &Line::StillStopped);
                    }
                }
                (None, Word::Signal(number)) if number != Signal::SIGCONT as i32 => break,
                (None, _) => {}
            }
        }
        std::process::exit(1);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Listening and connected sockets are distinguished by the state of each protocol.
    #[test]
    fn sockets_that_wait_are_counted_by_protocol() {
        let states = |name: &str| match name {
            "tcp" => vec!["0A", "01", "0A", "07", "0A"],
            "tcp6" => vec!["0A", "0A", "06", "0A", "0A", "0A"],
            "udp" => vec!["07", "01", "0A", "07"],
            "udp6" => vec!["07"; 11],
            _ => panic!("{name}"),
        };
        let table = |only: &str, name: &str| {
            let states = if only == name || only.is_empty() { states(name) } else { Vec::new() };
            let line =
                |state| format!("   1: 0100007F:1F90 00000000:0000 {state} 00000000:0 00:0 0\n");
            // The fourth word of the head is `st`.
            let lines: String = states.into_iter().map(line).collect();
            format!("  sl  local_address rem_address   0A 07 tx_queue\n{lines}")
        };
        for (only, expected) in [("tcp", 3), ("tcp6", 5), ("udp", 2), ("udp6", 11), ("", 21)] {
            assert_eq!(listening(|name| table(only, name)), expected, "{only}");
        }
        assert_eq!(listening(|_| String::new()), 0);
    }
}
