//! Persistent testbeds: their records, programs that join them, and their end.
#![cfg(target_os = "linux")]

mod support;

use std::fs::{self, File};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use lasthop_live::testbed::keep::join::VARIABLE;
use lasthop_live::testbed::keep::{
    Ended, Home, Process, Record, Request, Status, clean, down, hold, join, up,
};
use lasthop_live::testbed::{Error, HostSpec, NetSpec, Side};
use nix::sys::signal::Signal;

/// Roles of this program when it starts itself: it holds a testbed, or joins one.
const HOLD: &str = "LASTHOP_TEST_HOLD";
const JOIN: &str = "LASTHOP_TEST_JOIN";

fn main() -> ExitCode {
    if std::env::var_os(HOLD).is_some() {
        let held = hold(|net, ready, stop, held| match held.payload {
            "serve" => {
                assert_eq!(net.station(), "station");
                fs::write(held.dir.join("served"), held.name).expect("written");
                ready.say()?;
                assert!(!stop.requested());
                stop.wait();
                assert!(stop.requested(), "a requested end stays requested");
                fs::remove_file(held.dir.join("served")).expect("removed");
                Ok(())
            }
            "fail" => Err(Error::new("it cannot be served", "request something else")),
            _ => {
                (1..=7).for_each(|line| eprintln!("line {line}"));
                std::process::exit(3)
            }
        });
        return if held.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    if let Ok(host) = std::env::var(JOIN) {
        return inside(&host);
    }
    macro_rules! tests {
        ($($name:ident),* $(,)?) => { support::main(&[$((stringify!($name), $name as fn())),*]) };
    }
    tests![
        a_testbed_stays_until_it_is_taken_down,
        clean_removes_a_killed_testbed,
        a_failed_start_reports_its_cause,
    ]
}

/// A directory for a test's testbeds; dropping it removes the directory.
struct TestDir(PathBuf);

impl TestDir {
    fn new() -> (TestDir, Home) {
        let name = format!("lasthop-keep-{}", std::process::id());
        let dir = TestDir(std::env::temp_dir().join(name));
        fs::DirBuilder::new().mode(0o700).create(&dir.0).expect("a directory");
        let home = Home::at(dir.0.join("home")).expect("a home");
        (dir, home)
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        // Remains of a failed test.
        if let Ok(home) = Home::at(self.0.join("home")) {
            for entry in home.entries().into_iter().flatten() {
                let _ = down(&home, Some(&entry.name));
            }
        }
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn this(key: &str, value: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.env(key, value);
    command
}

fn request(name: &str, payload: &str) -> Request {
    let host = |name: &str, side, last| HostSpec::new(name, side, [10, 0, 0, last].into());
    let hosts = vec![
        host("near", Side::Left, 1).preset(lasthop_live::testbed::Preset::LinuxReno),
        host("own", Side::Right, 2).without_kernel(),
        host("far", Side::Right, 3),
    ];
    Request {
        name: name.to_owned(),
        net: NetSpec { station: "station".to_owned(), offloads: true, hosts },
        origin: "a test".to_owned(),
        payload: payload.to_owned(),
    }
}

fn start(home: &Home, name: &str) -> Record {
    up(home, this(HOLD, "1"), request(name, "serve"))
        .expect("a testbed; `lasthop doctor` says why not")
}

/// The message and the remedy of a failed `result`.
fn wrong<T: std::fmt::Debug>(result: Result<T, Error>) -> (String, String) {
    let Error { message, help } = result.expect_err("it is wrong");
    (message, help)
}

fn names(home: &Home) -> Vec<(String, Status)> {
    let entries = home.entries().expect("entries");
    entries.into_iter().map(|entry| (entry.name, entry.status)).collect()
}

fn a_testbed_stays_until_it_is_taken_down() {
    let (_place, home) = TestDir::new();
    assert_eq!(names(&home), []);
    let none = ("no testbed is up".to_owned(), "start one: `lasthop testbed up`".to_owned());
    assert_eq!(wrong(home.find(None)), none);
    let record = start(&home, "lab");
    assert_eq!((record.name.as_str(), record.origin.as_str()), ("lab", "a test"));
    assert!(record.is_up() && record.offloads && record.process.runs());
    let hosts = record.hosts.iter().map(|host| (host.name.as_str(), host.side, host.namespace));
    let hosts: Vec<_> = hosts.collect();
    let sides = [
        ("station", None),
        ("near", Some(Side::Left)),
        ("own", Some(Side::Right)),
        ("far", Some(Side::Right)),
    ];
    assert_eq!(hosts.iter().map(|host| (host.0, host.1)).collect::<Vec<_>>(), sides);
    let here = fs::metadata("/proc/self/ns/net").expect("a network").ino();
    let mut networks: Vec<u64> = hosts.iter().filter_map(|host| host.2).chain([here]).collect();
    networks.sort_unstable();
    networks.dedup();
    assert_eq!((networks.len(), hosts[2].2), (4, None), "each kernel has a network of its own");
    assert_eq!(record.hosts[1].preset.as_deref(), Some("linux-reno"));
    assert_eq!(record.hosts[1].v4, Some([10, 0, 0, 1].into()));
    assert!(home.dir().join("lab/served").exists(), "it is served");
    assert_eq!(names(&home), [("lab".to_owned(), Status::Up)]);
    assert_eq!(home.find(None), Ok(record.clone()));

    let (message, help) = wrong(up(&home, this(HOLD, "1"), request("lab", "serve")));
    assert_eq!(message, "there is a testbed `lab` already");
    assert!(help.contains("lasthop testbed down lab"), "{help}");
    let (message, _) = wrong(up(&home, this(HOLD, "1"), request("-x", "serve")));
    assert_eq!(message, "`-x` cannot be the name of a testbed");
    let (message, help) = wrong(home.find(Some("bench")));
    assert_eq!(
        (message.as_str(), help.as_str()),
        ("no testbed `bench` is up", "these are up: lab")
    );

    let second = start(&home, "bench");
    let both = [("bench".to_owned(), Status::Up), ("lab".to_owned(), Status::Up)];
    assert_eq!(names(&home), both);
    let (message, help) = wrong(down(&home, None));
    assert_eq!(message, "more than one testbed is up");
    assert!(help.ends_with("bench, lab"), "{help}");
    assert_eq!(home.find(Some("bench")), Ok(second.clone()));
    let gone =
        |name: &str, ended| Ended { name: name.to_owned(), was_up: true, ended, left: vec![] };
    assert_eq!(down(&home, Some("bench")), Ok(gone("bench", vec![])));
    assert!(!second.process.runs() && !home.dir().join("bench").exists());
    let (message, _) = wrong(down(&home, Some("bench")));
    assert_eq!(message, "no testbed `bench` is up");

    // Programs inside end with the testbed; others do not.
    let other =
        Command::new("sleep").arg("1000").stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut other = Program(other.expect("sleep"));
    let mut sleeper = sleep_inside(&home, "far");
    let pid = sleeper.0.id() as i32;
    assert_eq!(clean(&home), Ok(vec![]), "nothing is left over");
    let program = (pid, "sleep".to_owned());
    assert_eq!(down(&home, None), Ok(gone("lab", vec![program])));
    assert!(sleeper.0.wait().expect("its end").code().is_none(), "it was ended by a signal");
    assert!(!record.process.runs() && names(&home).is_empty());
    assert_eq!(other.0.try_wait().expect("asked"), None, "programs outside are not ended");
}

/// A long-running program that ends with the test, even after a panic.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

/// Starts a program in a host of the testbed `lab`, and waits until it has joined.
fn sleep_inside(home: &Home, host: &str) -> Program {
    let record = home.find(Some("lab")).expect("a testbed");
    let mut command = this(JOIN, host);
    command.arg(home.dir()).stdin(Stdio::null()).stdout(Stdio::null());
    let mut program = Program(command.spawn().expect("it starts"));
    let process = Process::running(program.0.id() as i32).expect("it runs");
    for _ in 0..60_000 {
        assert_eq!(program.0.try_wait().expect("asked"), None, "it has ended");
        if process.name() == "sleep" {
            break;
        }
        pause();
    }
    assert_eq!(process.name(), "sleep");
    let number =
        |kind: &str| fs::metadata(format!("/proc/{}/ns/{kind}", process.pid)).unwrap().ino();
    let namespace = record.host(host).expect("a host").namespace;
    assert_eq!((Some(number("net")), number("mnt")), (namespace, record.mount), "where it runs");
    program
}

fn pause() {
    let _ = nix::poll::poll(&mut [], 2_u8);
}

/// Main function of a program inside: it joins a host and executes another program.
fn inside(host: &str) -> ExitCode {
    let dir = std::env::args_os().nth(1).expect("where testbeds are");
    let home = Home::at(PathBuf::from(&dir)).expect("a home");
    let record = home.find(None).expect("a testbed");
    let (message, _) = wrong(join(&record, "own"));
    assert_eq!(message, "host `own` has no kernel of its own: its TCP is lasthop's");
    let (message, help) = wrong(join(&record, "nobody"));
    assert_eq!(message, "there is no host `nobody` in testbed `lab`");
    assert_eq!(help, "there are station, near, own, far");
    for other in [
        Record { mount: record.mount + 1, ..record.clone() },
        Record { user: record.user + 1, ..record.clone() },
        Record { process: Process { pid: i32::MAX, start: 1 }, ..record.clone() },
    ] {
        assert_eq!(wrong(join(&other, host)).0, "testbed `lab` has ended meanwhile");
    }
    std::env::set_current_dir(Path::new(&dir).parent().expect("a directory")).expect("there");
    let here = std::env::current_dir().expect("here");
    join(&record, host).expect("it is joined");
    assert_eq!(std::env::current_dir().expect("here"), here, "it stays where it is");
    assert!(nix::unistd::geteuid().is_root(), "inside it is root");
    let token = format!("{}/{}", record.name, record.token);
    panic!("{}", Command::new("sleep").arg("1000").env(VARIABLE, token).exec());
}

fn clean_removes_a_killed_testbed() {
    let (_place, home) = TestDir::new();
    let record = start(&home, "lab");
    let mut sleeper = sleep_inside(&home, "near");
    let pid = sleeper.0.id() as i32;
    assert!(record.process.signal(Signal::SIGKILL));
    for _ in 0..60_000 {
        if record.process.runs() {
            pause();
        }
    }
    assert!(!record.is_up());
    assert_eq!(names(&home), [("lab".to_owned(), Status::Dead)]);
    let (message, help) = wrong(home.find(Some("lab")));
    assert_eq!(message, "the process of testbed `lab` has ended");
    assert!(help.contains("lasthop testbed clean"), "{help}");
    assert_eq!(wrong(home.find(None)).0, "no testbed is up");
    let (message, _) = wrong(up(&home, this(HOLD, "1"), request("lab", "serve")));
    assert_eq!(message, "there is a testbed `lab` already, and it is dead");
    let ended = vec![(pid, "sleep".to_owned())];
    let gone = Ended { name: "lab".to_owned(), was_up: false, ended, left: vec![] };
    assert_eq!(clean(&home), Ok(vec![gone]));
    assert!(sleeper.0.wait().expect("its end").code().is_none(), "it was ended by a signal");
    assert_eq!(clean(&home), Ok(vec![]));
    assert_eq!(names(&home), []);

    // A testbed of an earlier boot has no processes, even if its process numbers are in use again.
    let dir = home.dir().join("old");
    fs::create_dir(&dir).expect("a directory");
    let own = Process::own().expect("we run");
    let hosts = record.hosts.clone();
    let old = Record {
        name: "old".to_owned(),
        boot: "another".to_owned(),
        process: own,
        hosts,
        ..record
    };
    let file = File::create(dir.join("testbed.json")).expect("a record");
    serde_json::to_writer(file, &old).expect("written");
    assert_eq!(names(&home), [("old".to_owned(), Status::Dead)]);
    let gone = Ended { name: "old".to_owned(), was_up: false, ended: vec![], left: vec![] };
    assert_eq!(down(&home, Some("old")), Ok(gone), "one that is dead is taken down as well");
    assert!(!dir.exists());
}

fn a_failed_start_reports_its_cause() {
    let (_place, home) = TestDir::new();
    let (message, help) = wrong(up(&home, this(HOLD, "1"), request("lab", "fail")));
    assert_eq!(
        (message.as_str(), help.as_str()),
        ("it cannot be served", "request something else")
    );
    assert_eq!(names(&home), []);
    let (message, help) = wrong(up(&home, this(HOLD, "1"), request("lab", "what")));
    assert_eq!(message, "the testbed's background process did not come up (exit status: 3)");
    let last = ["the end of its log:", "line 3", "line 4", "line 5", "line 6", "line 7"];
    assert_eq!(help.lines().collect::<Vec<_>>(), last);
    let (message, _) = wrong(up(&home, Command::new("/no/such/program"), request("lab", "serve")));
    assert!(message.contains("start a background process"), "{message}");
    assert_eq!(names(&home), []);
}
