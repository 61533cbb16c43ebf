//! A program behind a link: its environment, its packets, and the exit status of the front.
#![cfg(target_os = "linux")]

mod support;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use lasthop_live::shell::{self, End, Ended, HOLD, OUTSIDE, RUN, Wish};
use lasthop_observe::capture;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, geteuid};

/// Commands of this program: the front, and the two ends of a transfer.
const FRONT: &str = "front";
const GIVE: &str = "give";
const TAKE: &str = "take";

/// Size of the transfer, bytes.
const BYTES: usize = 150_000;
const PORT: u16 = 8099;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match &words[..] {
        [FRONT, wish] => return front(wish),
        [GIVE] => return give(),
        [TAKE] => return take(),
        [HOLD, order, answer] => {
            let held = shell::hold(order.parse().unwrap(), answer.parse().unwrap(), &own);
            return if held.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        }
        [RUN, user, "--", ..] => {
            let user = user.split_once(':').map(|(u, g)| (u.parse().unwrap(), g.parse().unwrap()));
            let program: Vec<_> = arguments[3..].iter().map(Into::into).collect();
            let (why, code) = shell::run(user, &program);
            eprintln!("{why}");
            return ExitCode::from(code);
        }
        [OUTSIDE] => return ExitCode::FAILURE,
        _ => {}
    }
    macro_rules! tests {
        ($($name:ident),* $(,)?) => { support::main(&[$((stringify!($name), $name as fn())),*]) };
    }
    tests![
        a_program_finds_the_other_host_behind_the_link,
        the_front_exits_with_the_status_of_the_program,
        signals_and_stops_pass_between_front_and_program,
        a_failed_start_is_reported_with_a_remedy,
    ]
}

fn own(arguments: &[&str]) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.args(arguments);
    command
}

/// The process that the user starts: it prints the result of the program, or the error.
fn front(wish: &str) -> ExitCode {
    let wish: Wish = serde_json::from_str(wish).expect("a wish");
    // A keeper that exits without any message.
    let own = |arguments: &[&str]| match wish.name.as_str() {
        "mute" => Command::new("true"),
        _ => own(arguments),
    };
    let ended = shell::front(wish.clone(), own, &mut |text| eprintln!("note: {text}"));
    match ended {
        Ok(ended) => println!("{}", serde_json::to_string(&ended).expect("text")),
        Err(error) => {
            println!("{}\n{}", error.message, error.help);
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// The server at the far host: it sends to its first client.
fn give() -> ExitCode {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT)).expect("a listener");
    let (mut stream, _) = listener.accept().expect("a client connects");
    stream.write_all(&[7; BYTES]).expect("sent");
    ExitCode::SUCCESS
}

/// The program: it prints its environment and the number of received bytes.
fn take() -> ExitCode {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let far: Ipv4Addr = variable("LASTHOP_FAR").parse().expect("the far host");
    let mut stream = TcpStream::connect((far, PORT)).expect("the far host listens");
    let near = stream.local_addr().expect("our address").ip();
    let mut got = Vec::new();
    stream.read_to_end(&mut got).expect("received");
    assert_eq!(got, [7; BYTES]);
    // The far host is the only one that can answer an echo request.
    assert!(
        TcpStream::connect((Ipv4Addr::new(192, 0, 2, 1), PORT)).is_err(),
        "there is an outside"
    );
    let user = geteuid();
    let text = format!("{near} {far} {} {} {user}", variable(shell::LEVEL), variable("COLOUR"));
    fs::write(variable("SAID"), text).expect("written");
    ExitCode::from(7)
}

/// A directory of a test; dropping it removes the directory.
struct TestDir(PathBuf);

impl TestDir {
    fn new() -> TestDir {
        let dir = std::env::temp_dir().join(format!("lasthop-shell-{}", std::process::id()));
        fs::create_dir(&dir).expect("a directory");
        TestDir(dir)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The scenario with the path `stage`; only the names of its hosts are used.
fn between(stage: &str) -> String {
    format!(
        "transfer = {{ from = \"far\", to = \"near\", bytes = \"1B\" }}\n\
         [host.far]\npreset = \"rfc\"\nside = \"left\"\n[host.near]\npreset = \"rfc\"\nside = \"right\"\n[[path]]\n{stage}\n"
    )
}

/// A program behind a link of 8 Mb/s and 10 ms.
fn wish(program: &[&str]) -> Wish {
    Wish {
        text: between("link = { rate = \"8mbit\", delay = \"10ms\", queue = \"200p\" }"),
        name: "a link".to_owned(),
        set: vec![],
        program: program.iter().map(Into::into).collect(),
        environment: vec![],
        interactive: false,
        serve: vec![],
        outside: None,
        root: false,
        json: false,
        capture: None,
        level: 0,
    }
}

/// A running front that ends with the test, even after a panic.
struct Front(Option<Child>);

impl Front {
    fn pid(&self) -> u32 {
        self.0.as_ref().expect("it runs").id()
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill().and_then(|()| child.wait());
        }
    }
}

fn start(wish: &Wish) -> Front {
    let text = serde_json::to_string(wish).expect("text");
    // Under `nohup` this program ignores SIGHUP, and a shell cannot trap a signal that it ignores from the start.
    let mut command = Command::new("env");
    command.args(["--default-signal=HUP", &this(), FRONT, &text]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Front(Some(command.spawn().expect("it starts")))
}

/// Both outputs of the front at its end.
fn outputs(mut front: Front) -> (String, String) {
    let ends = becomes_true(|| {
        let child = front.0.as_mut().expect("it runs");
        child.try_wait().expect("asked").is_some()
    });
    assert!(ends, "the front does not end: {}", states(front.pid()));
    let child = front.0.take().expect("it runs");
    let output = child.wait_with_output().expect("its end");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (text(output.stdout), text(output.stderr))
}

fn ended(front: Front) -> Ended {
    let (answer, errors) = outputs(front);
    serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{answer}\n{errors}"))
}

fn this() -> String {
    std::env::current_exe().expect("a path").display().to_string()
}

fn a_program_finds_the_other_host_behind_the_link() {
    let dir = TestDir::new();
    let file = dir.file("said");
    for (level, root) in [(0, false), (3, true)] {
        let capture = dir.file("capture.pcapng");
        let wish = Wish {
            serve: vec![format!("exec {} {GIVE}", this())],
            environment: [("COLOUR", "blue"), ("SAID", &file.display().to_string())]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .to_vec(),
            root,
            capture: Some(capture.clone().into()),
            level,
            ..wish(&[&this(), TAKE])
        };
        let ended = ended(start(&wish));
        assert_eq!(ended.end, End::Exit(7));
        let user = if root { 0 } else { geteuid().as_raw() };
        let expected = format!("100.64.{level}.2 100.64.{level}.1 {} blue {user}", level + 1);
        assert_eq!(fs::read_to_string(&file).expect("it was written"), expected);
        let (down, up) = (&ended.tallied.down, &ended.tallied.up);
        assert!(down.packets >= BYTES as u64 / 1460 && down.bytes > BYTES as u64, "{down:?}");
        assert!((4..=down.packets).contains(&up.packets), "{up:?}");
        let rate = down.rate.expect("it took more than a tenth of a second");
        // On a busy machine the link may be idle, at most for the whole run time.
        assert!(rate < 8.1e6, "{rate} bit/s through 8 Mb/s");
        assert!(rate * ended.seconds >= 8.0 * down.bytes as f64, "{rate} bit/s, {ended:?}");
        assert!(down.lost.is_empty() && up.lost.is_empty(), "{ended:?}");
        let waited = down.queue_delay.expect("packets passed the link");
        assert!((1.0..ended.seconds * 1e3).contains(&waited.max_ms), "{waited:?}");
        // The transmission alone takes this long.
        assert!(ended.seconds > 0.15, "{} s", ended.seconds);
        let processors = std::thread::available_parallelism().expect("a number").get() as f64;
        let most = ended.seconds * processors;
        assert!((1e-4..most).contains(&ended.cpu_seconds), "{} s of {most}", ended.cpu_seconds);
        assert_eq!(ended.overrun, 0);
        frames(&capture, down.packets + up.packets);
        fs::remove_file(&capture).expect("removed");
    }
}

/// Asserts that the capture has one frame per carried packet.
fn frames(path: &Path, carried: u64) {
    let bytes = fs::read(path).expect("a capture");
    let mut read = capture::open(&bytes).expect("a capture");
    let frames = read.by_ref().filter(Result::is_ok).count() as u64;
    assert_eq!(read.interfaces()[0], "far");
    assert_eq!(*read.interfaces().last().expect("interfaces"), "near");
    assert!((carried..carried + 20).contains(&frames), "{frames} frames of {carried} packets");
}

fn the_front_exits_with_the_status_of_the_program() {
    for (program, end) in [
        (&["true"][..], End::Exit(0)),
        (&["sh", "-c", "exit 42"], End::Exit(42)),
        (&["sh", "-c", "kill -USR1 $$"], End::Signal(Signal::SIGUSR1 as i32)),
        // Exit codes of shells: 127 for not found, 126 for not executable.
        (&["/no/such/program"], End::Exit(127)),
        (&["/etc/passwd"], End::Exit(126)),
        (&[], End::Exit(127)),
        // Its background processes end with it.
        (&["sh", "-c", "sleep 1000 & exit 3"], End::Exit(3)),
    ] {
        let ended = ended(start(&wish(program)));
        assert_eq!(ended.end, end, "{program:?}");
    }
}

fn signals_and_stops_pass_between_front_and_program() {
    let dir = TestDir::new();
    let ready = dir.file("ready");
    let text = format!(
        "trap 'exit 9' TERM; trap 'exit 8' HUP; echo > {}; while :; do sleep 0.01; done",
        ready.display()
    );
    for (signal, code) in [(Signal::SIGTERM, 9), (Signal::SIGHUP, 8)] {
        let front = start(&wish(&["sh", "-c", &text]));
        until("the program runs", || ready.exists());
        kill(Pid::from_raw(front.pid() as i32), signal).expect("signalled");
        assert_eq!(ended(front).end, End::Exit(code), "{signal}");
        fs::remove_file(&ready).expect("removed");
    }

    let front = start(&wish(&["sh", "-c", "kill -STOP $$; exit 5"]));
    let pid = Pid::from_raw(front.pid() as i32);
    let stopped = waitpid(pid, Some(WaitPidFlag::WUNTRACED)).expect("it stops");
    assert_eq!(stopped, WaitStatus::Stopped(pid, Signal::SIGSTOP));
    kill(pid, Signal::SIGCONT).expect("it continues");
    assert_eq!(ended(front).end, End::Exit(5));

    // Killing the front kills the program.
    let mut front = start(&wish(&["sleep", "1000"]));
    until("the program runs", || sleepers(front.pid()) == 1);
    let keepers = children(front.pid());
    let mut child = front.0.take().expect("it runs");
    child.kill().expect("killed");
    let status = child.wait().expect("its end");
    assert_eq!(status.signal(), Some(Signal::SIGKILL as i32));
    let is_there = |pid: &u32| Path::new(&format!("/proc/{pid}/ns/net")).exists();
    until("nothing is left", || !keepers.iter().any(is_there));
}

/// Waits for a condition that becomes true soon.
fn until(condition: &str, done: impl FnMut() -> bool) {
    assert!(becomes_true(done), "waited in vain: {condition}");
}

/// Waits up to two minutes.
fn becomes_true(mut done: impl FnMut() -> bool) -> bool {
    for _ in 0..60_000 {
        if done() {
            return true;
        }
        let _ = nix::poll::poll(&mut [], 2_u8);
    }
    false
}

/// States of a process and of its descendants, a line each: for the message of a test that waited in vain.
fn states(pid: u32) -> String {
    let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let (stat, waits, command) = (read("stat"), read("wchan"), read("cmdline").replace('\0', " "));
    let state =
        stat.rsplit_once(") ").map_or("gone", |(_, rest)| rest.split(' ').next().unwrap_or(""));
    let own = format!("\n{pid} {state} {waits} {command}");
    children(pid).into_iter().fold(own, |all, child| all + &states(child))
}

/// Child processes of `pid`.
fn children(pid: u32) -> Vec<u32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Number of sleeping descendants of `pid`, by their command.
fn sleepers(pid: u32) -> usize {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let below = threads.flat_map(|thread| {
        let text = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        text.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>()
    });
    usize::from(name.trim() == "sleep") + below.map(sleepers).sum::<usize>()
}

fn a_failed_start_is_reported_with_a_remedy() {
    let dir = TestDir::new();
    let nowhere = dir.file("no/such/dir").display().to_string();
    let plain = || wish(&["true"]);
    for (wish, part) in [
        (Wish { text: between("link = 7"), ..plain() }, "link"),
        (Wish { set: vec!["rate=fast".to_owned()], ..plain() }, "rate"),
        (Wish { capture: Some(nowhere.clone().into()), ..plain() }, nowhere.as_str()),
        (
            Wish { serve: vec!["exit 3".to_owned()], ..plain() },
            "`exit 3` ended before it listened: exit status: 3",
        ),
        (
            Wish { name: "mute".to_owned(), ..plain() },
            "the process that held the link ended early (exit status: 0)",
        ),
    ] {
        let (answer, errors) = outputs(start(&wish));
        let (first, help) = answer.split_once('\n').unwrap_or_default();
        assert!(first.contains(part), "{part}: {answer}{errors}");
        assert!(!help.trim().is_empty(), "{part}: {answer}");
    }
}
