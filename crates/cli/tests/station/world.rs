//! A world for one test: namespaces `a` and `b`, with the interfaces `lx` and `rx` of a station between them.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, Uid};
use serde_json::Value;

use crate::rerun::only;

const LASTHOP: &str = env!("CARGO_BIN_EXE_lasthop");

/// Environment variable with the test that runs inside its namespaces.
const INSIDE: &str = "LASTHOP_TEST_INSIDE";

/// Runs `body` in private namespaces: `unshare` starts the test again, which then runs inside.
pub fn inside(test: &str, body: impl FnOnce()) {
    if std::env::var(INSIDE).is_ok_and(|name| name == test) {
        body();
        return;
    }
    let kinds = if Uid::effective().is_root() { "-nm" } else { "-rnm" };
    let done = Command::new("unshare")
        .arg(kinds)
        .arg(std::env::current_exe().expect("a test has a file"))
        .args(only(test))
        .args(["--include-ignored", "--nocapture", "--test-threads=1"])
        .env(INSIDE, test)
        .output()
        .expect("unshare (util-linux) is there");
    let output = format!(
        "{}{}",
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr)
    );
    assert!(done.status.success() && output.contains("1 passed"), "in its namespaces:\n{output}");
    // Measured values, visible with --nocapture.
    print!("{output}");
}

fn run(command: &str) {
    let mut words = command.split(' ');
    let done = Command::new(words.next().unwrap()).args(words).output();
    let done = done.unwrap_or_else(|error| panic!("{command}: {error}"));
    assert!(done.status.success(), "{command}: {}", String::from_utf8_lossy(&done.stderr));
}

pub struct World {
    file: PathBuf,
}

impl World {
    /// Two hosts, and a file for the station between them.
    pub fn new(path: &str) -> World {
        run("mount -t tmpfs none /run");
        fs::create_dir("/run/netns").unwrap();
        for (host, outer, inner, address) in
            [("a", "lx", "la", "10.9.0.1/24"), ("b", "rx", "rb", "10.9.0.2/24")]
        {
            run(&format!("ip netns add {host}"));
            run(&format!("ip link add name {outer} type veth peer name {inner}"));
            run(&format!("ip link set {inner} netns {host}"));
            run(&format!("ip link set {outer} up"));
            run(&format!("ip -n {host} addr add {address} dev {inner}"));
            run(&format!("ip -n {host} link set {inner} up"));
            run(&format!("ip -n {host} link set lo up"));
        }
        run("ip link set lo up");
        let world = World { file: PathBuf::from("/run/base.toml") };
        world.write(&format!("left = \"lx\"\nright = \"rx\"\nplane = \"sockets\"\n{path}"));
        world
    }

    /// Makes interfaces and a file, `/run/second.toml`, for another station.
    pub fn second_interfaces(&self) {
        run("ip link add name l2 type veth peer name r2");
        for name in ["l2", "r2"] {
            run(&format!("ip link set {name} up"));
        }
        let text = self.text().replace("\"lx\"", "\"l2\"").replace("\"rx\"", "\"r2\"");
        fs::write("/run/second.toml", text).unwrap();
    }

    pub fn ip(&self, words: &str) {
        run(&format!("ip {words}"));
    }

    pub fn text(&self) -> String {
        fs::read_to_string(&self.file).unwrap()
    }

    pub fn write(&self, text: &str) {
        fs::write(&self.file, text).unwrap();
    }

    pub fn socket(&self) -> &'static Path {
        Path::new("/run/lasthop/base.sock")
    }

    /// The program with these arguments; `FILE` is the station's file.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(LASTHOP);
        let file = self.file.to_str().unwrap();
        command.args(arguments.iter().map(|word| if *word == "FILE" { file } else { word }));
        command.env("NO_COLOR", "1").env("XDG_RUNTIME_DIR", "/run/user").stdin(Stdio::null());
        // Otherwise a user who is root only in a namespace has no place for sockets.
        command.env_remove("RUNTIME_DIRECTORY").env_remove("NOTIFY_SOCKET");
        command
    }

    pub fn lasthop(&self, arguments: &[&str]) -> String {
        let done = self.command(arguments).output().expect("it starts");
        let errors = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{arguments:?}: {errors}");
        String::from_utf8(done.stdout).unwrap()
    }

    pub fn ctl(&self, arguments: &[&str]) -> String {
        self.lasthop(&[&["ctl"], arguments].concat())
    }

    /// Runs a failing command. Returns its exit code and error output.
    pub fn fails(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let done = self.command(arguments).output().expect("it starts");
        assert!(!done.status.success(), "{arguments:?}");
        (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
    }

    /// Runs a command with a negative answer. Returns its exit code and output.
    pub fn exit_code_and_stdout(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let done = self.command(arguments).output().expect("it starts");
        (done.status.code(), String::from_utf8_lossy(&done.stdout).into_owned())
    }

    /// Output of a command without capabilities.
    pub fn without_rights(&self, arguments: &[&str]) -> String {
        let command = self.command(arguments);
        let done = Command::new("setpriv")
            .args(["--bounding-set", "-all", "--inh-caps", "-all", "--"])
            .arg(LASTHOP)
            .args(command.get_args())
            .env("NO_COLOR", "1")
            .output()
            .expect("setpriv (util-linux) is there");
        assert_eq!(done.status.code(), Some(2));
        String::from_utf8_lossy(&done.stderr).into_owned()
    }

    /// Output of a command as another user.
    pub fn error_as_other_user(&self, arguments: &[&str]) -> String {
        // The user `nobody` may lack access to the program's directory.
        fs::copy(LASTHOP, "/run/program").unwrap();
        let done = Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--", "/run/program"])
            .args(arguments)
            .output()
            .expect("setpriv (util-linux) is there");
        assert_eq!(done.status.code(), Some(2));
        String::from_utf8_lossy(&done.stderr).into_owned()
    }

    /// Starts a station.
    pub fn station(&self, more: &[&str]) -> Running {
        self.station_of("FILE", more)
    }

    /// Starts a station of another file.
    pub fn station_of(&self, file: &str, more: &[&str]) -> Running {
        start(self.command(&[&["station", file], more].concat()))
    }

    /// Starts a station as an ordinary user with these capabilities.
    pub fn unprivileged_station(&self, capabilities: &str) -> Running {
        fs::create_dir_all("/run/user").unwrap();
        std::os::unix::fs::chown("/run/user", Some(65_534), Some(65_534)).unwrap();
        // The user `nobody` may lack access to the program's directory.
        fs::copy(LASTHOP, "/run/program").unwrap();
        let own = self.command(&["station", "FILE", "--socket", "/run/user/base.sock"]);
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command.arg(format!("--inh-caps={capabilities}"));
        command.arg(format!("--ambient-caps={capabilities}"));
        command.args(["--", "/run/program"]).args(own.get_args());
        command.env("NO_COLOR", "1").env("XDG_RUNTIME_DIR", "/run/user").stdin(Stdio::null());
        start(command)
    }
}

/// Starts a station and waits until it runs.
pub fn start(mut command: Command) -> Running {
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let (to, lines) = channel();
    let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    for from in [Box::new(out) as Box<dyn std::io::Read + Send>, Box::new(err)] {
        let to = to.clone();
        thread::spawn(move || {
            for line in BufReader::new(from).lines().map_while(Result::ok) {
                let _ = to.send(line);
            }
        });
    }
    let running = Running { child, lines, pending: Arc::default() };
    assert!(running.printed("running; control socket"), "{:?}", running.pending.lock());
    running
}

impl World {
    pub fn status(&self) -> Value {
        serde_json::from_str(&self.ctl(&["get", "--json"])).expect("JSON")
    }

    /// Whether the status fulfils the condition within some time.
    pub fn wait(&self, so: impl Fn(&Value) -> bool) -> bool {
        (0..8000).any(|_| so(&self.status()))
    }

    /// A status without a packet in any stage. At the next poll another packet may have arrived.
    pub fn at_rest(&self) -> Value {
        let empty = |status: &Value| {
            let mut stages = status["stages"].as_array().unwrap().iter();
            stages.all(|stage| stage["packets"]["held"] == 0)
        };
        let mut looks = (0..8000).map(|_| self.status());
        looks.find(empty).expect("the packets leave the station")
    }

    /// Sends bytes from `a` to `b` over one connection. Returns how many arrived unchanged.
    pub fn transfer(&self, bytes: usize) -> JoinHandle<usize> {
        self.transfer_until(bytes, || {})
    }

    /// Like `transfer`, over a connection that stays open after the last byte until `close` returns.
    pub fn transfer_until(
        &self,
        bytes: usize,
        close: impl FnOnce() + Send + 'static,
    ) -> JoinHandle<usize> {
        let (ready, listening) = channel();
        let receiver = thread::spawn(move || {
            enter("b");
            let listener = TcpListener::bind("10.9.0.2:5001").unwrap();
            ready.send(()).unwrap();
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(300))).unwrap();
            let mut got = Vec::new();
            stream.read_to_end(&mut got).unwrap();
            got.iter().enumerate().take_while(|(i, byte)| **byte == pattern(*i)).count()
        });
        listening.recv().unwrap();
        thread::spawn(move || {
            enter("a");
            let mut stream = TcpStream::connect("10.9.0.2:5001").unwrap();
            stream.set_write_timeout(Some(Duration::from_secs(300))).unwrap();
            let data: Vec<u8> = (0..bytes).map(pattern).collect();
            stream.write_all(&data).unwrap();
            close();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            receiver.join().unwrap()
        })
    }

    pub fn scrape(&self) -> String {
        let mut stream = TcpStream::connect("127.0.0.1:9464").unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).unwrap();
        page
    }
}

pub fn pattern(i: usize) -> u8 {
    (i % 251) as u8
}

/// Moves the calling thread into the namespace.
pub fn enter(name: &str) {
    let namespace = File::open(format!("/run/netns/{name}")).unwrap();
    setns(namespace, CloneFlags::CLONE_NEWNET).unwrap();
}

pub struct Running {
    child: Child,
    lines: Receiver<String>,
    pending: Arc<Mutex<Vec<String>>>,
}

impl Running {
    pub fn signal(&self, name: &str) {
        let signal: Signal = format!("SIG{name}").parse().unwrap();
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    /// Whether the output contains `words`, now or within some time.
    pub fn printed(&self, words: &str) -> bool {
        let mut pending = self.pending.lock().unwrap();
        loop {
            if let Some(at) = pending.iter().position(|line| line.contains(words)) {
                pending.remove(at);
                return true;
            }
            match self.lines.recv_timeout(Duration::from_secs(180)) {
                Ok(line) => pending.push(line),
                Err(_) => return false,
            }
        }
    }

    /// Ends the station. Returns its exit code.
    pub fn end(mut self, signal: &str) -> Option<i32> {
        self.signal(signal);
        self.child.wait().unwrap().code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Only after a failed test is it still running.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
