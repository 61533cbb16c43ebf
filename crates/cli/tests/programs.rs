//! Common programs through the testbed: iperf3, curl and nginx, rsync, with every agent of a base station,
//! with and without errors, in IPv4 and in IPv6, in both directions.
//!
//! There is one test per system; its three kinds of errors are three concurrent testbeds. A failure is
//! reported with its combination and the commands to repeat it, and its files remain.

use std::cell::RefCell;
use std::fs::{self, File};
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::can_run::can_run;
use crate::support::{NOBODY, User, World, is_root, text_of};

/// Bytes per transfer: several errors at a mean of one per 64 KiB.
const BYTES: usize = 300_000;

/// A fast radio, so that the run time depends on losses, not on the rate.
const PATH: [&str; 3] = ["link.rate=100mbit", "radio.rate=20mbit", "radio.overhead=50us"];

const ERRORS: [(&str, &str); 3] = [
    ("none", "errors=none"),
    ("exponential", r#"errors={ model = "exponential", mean = "64KiB", on = ["data", "ack"] }"#),
    (
        "bursts",
        // In one direction, one burst per transfer on average. A burst affects a number of packets, not a
        // time. At the end of a transfer a packet then needs seven transmissions with exponential backoff, so
        // several bursts would take minutes.
        r#"errors={ model = "packet-bursts", packets = 6, mean = "256KiB", on = ["data"] }"#,
    ),
];

/// The wired host with the servers, and the mobile host.
const FIXED: &str = "ravel";
const MOBILE: &str = "chopin";

fn user() -> User {
    if is_root() { User::Root } else { User::Unprivileged }
}

/// Incompressible bytes that differ for all names.
fn noise(name: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(BYTES + 32);
    for n in 0u64.. {
        if bytes.len() >= BYTES {
            break;
        }
        bytes.extend_from_slice(
            &Sha256::new().chain_update(name).chain_update(n.to_le_bytes()).finalize(),
        );
    }
    bytes.truncate(BYTES);
    bytes
}

fn sha256(file: &Path) -> Result<String, String> {
    let bytes = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect())
}

fn same(sent: &Path, received: &Path) -> Result<(), String> {
    let (sent, received) = (sha256(sent)?, sha256(received)?);
    if sent == received { Ok(()) } else { Err(format!("sent {sent}, received {received}")) }
}

/// A testbed with its servers, and the executed commands.
struct Bench<'a> {
    world: &'a World,
    name: String,
    dir: PathBuf,
    history: RefCell<Vec<String>>,
}

/// A server that ends with the case.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = kill(Pid::from_raw(self.0.id() as i32), Signal::SIGTERM);
        let _ = self.0.wait();
    }
}

impl Bench<'_> {
    fn new<'a>(world: &'a World, name: &str, set: &[&str]) -> Result<Bench<'a>, String> {
        let dir = world.base.join(name);
        for path in [dir.clone(), dir.join("out"), dir.join("in"), dir.join("got")] {
            fs::create_dir(&path).map_err(|error| error.to_string())?;
            if world.drops() {
                chown(&path, Some(NOBODY), Some(NOBODY)).map_err(|error| error.to_string())?;
            }
        }
        let bench = Bench { world, name: name.to_owned(), dir, history: RefCell::default() };
        bench.write("out/file", &noise(name))?;
        bench.write("nginx.conf", bench.nginx().as_bytes())?;
        bench.write("rsyncd.conf", bench.rsyncd().as_bytes())?;
        let mut up = vec!["testbed", "up", "--name", name, "--preset", "linux-cubic"];
        for set in PATH.iter().chain(set) {
            up.extend(["--set", *set]);
        }
        bench.succeed(world.command(&up))?;
        Ok(bench)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), String> {
        fs::write(self.file(name), bytes).map_err(|error| format!("{name}: {error}"))
    }

    /// Configuration for one process, with all files in the directory of the case.
    fn nginx(&self) -> String {
        let dir = self.dir.display();
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|kind| format!("{kind}_temp_path {dir}/tmp-{kind};\n"))
            .concat();
        format!(
            "user root root;\ndaemon off;\nmaster_process off;\npid {dir}/nginx.pid;\nerror_log stderr;\nevents {{}}\n\
             http {{\naccess_log off;\n{temporary}\
             server {{\nlisten 80;\nlisten [::]:80;\nroot {dir}/out;\n\
             location /in/ {{\nroot {dir};\ndav_methods PUT;\n}}\n}}\n}}\n"
        )
    }

    fn rsyncd(&self) -> String {
        let dir = self.dir.display();
        let owner = if self.world.user == User::Root { "uid = root\ngid = root\n" } else { "" };
        format!(
            "use chroot = no\n{owner}log file = {dir}/rsyncd.log\n\
             [out]\npath = {dir}/out\n[in]\npath = {dir}/in\nread only = no\n"
        )
    }

    fn command(&self, host: &str, words: &[&str]) -> Command {
        let exec = ["testbed", "exec", "--name", &self.name, host, "--"];
        self.world.command(&[&exec, words].concat())
    }

    fn note(&self, command: &Command, end: &str) {
        let quoted = |word: &std::ffi::OsStr| {
            let word = word.to_string_lossy().into_owned();
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:@+[]".contains(c);
            if word.chars().all(plain) { word } else { format!("'{word}'") }
        };
        let words: Vec<_> = command.get_args().map(quoted).collect();
        self.history.borrow_mut().push(format!("lasthop {}{end}", words.join(" ")));
    }

    fn succeed(&self, mut command: Command) -> Result<Output, String> {
        self.note(&command, "");
        let output = command.output().map_err(|error| error.to_string())?;
        let (out, err) = text_of(&output);
        if output.status.success() {
            Ok(output)
        } else {
            Err(format!("{}: {out}{err}", output.status))
        }
    }

    /// Runs a program to its end.
    fn run(&self, host: &str, words: &[&str]) -> Result<Output, String> {
        self.succeed(self.command(host, &[&["timeout", "300"], words].concat()))
    }

    /// Starts a server and waits until it listens.
    fn serve(&self, host: &str, port: u16, words: &[&str]) -> Result<Server, String> {
        let mut command = self.command(host, words);
        self.note(&command, " &");
        let log = File::options().create(true).append(true).open(self.file("servers.log"));
        let log = log.map_err(|error| error.to_string())?;
        let err = log.try_clone().map_err(|error| error.to_string())?;
        let child = command.stdout(Stdio::from(log)).stderr(Stdio::from(err)).spawn();
        let mut server = Server(child.map_err(|error| error.to_string())?);
        let listens = format!("ss -Hltn sport = :{port}");
        let poll: Vec<&str> = listens.split(' ').collect();
        loop {
            let output = self.command(host, &poll).output().map_err(|error| error.to_string())?;
            if !output.stdout.is_empty() {
                return Ok(server);
            }
            if let Some(status) = server.0.try_wait().map_err(|error| error.to_string())? {
                return Err(format!("{}: {status}; see servers.log", words[0]));
            }
            // Each poll starts a program, which is a sufficient pause.
        }
    }

    /// Transfers bytes from `from` to `to`. With `--reverse` the client is the receiver, and continues until
    /// it has all.
    fn iperf3(&self, from: &str, to: &str, family: &str) -> Result<(), String> {
        let server = self.serve(from, 5201, &["iperf3", "--server", "--one-off"])?;
        let bytes = BYTES.to_string();
        let words = ["iperf3", "--client", from, family, "--reverse", "--bytes", &bytes, "--json"];
        let output = self.run(to, &words)?;
        drop(server);
        let report: Value =
            serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
        let received = report["end"]["sum_received"]["bytes"].as_u64();
        let sent = report["end"]["sum_sent"]["bytes"].as_u64();
        if received >= Some(BYTES as u64) && received <= sent {
            Ok(())
        } else {
            Err(format!("sent {sent:?}, received {received:?} of {BYTES}"))
        }
    }

    fn curl(&self, download: bool, family: &str) -> Result<(), String> {
        let sent = self.file("out/file");
        let got = self.file(if download { "got/curl" } else { "in/curl" });
        let _ = fs::remove_file(&got);
        let (url, way, file) = if download {
            (format!("http://{FIXED}/file"), "--output", &got)
        } else {
            (format!("http://{FIXED}/in/curl"), "--upload-file", &sent)
        };
        let file = file.display().to_string();
        self.run(
            MOBILE,
            &["curl", "--silent", "--show-error", "--fail", family, way, &file, &url],
        )?;
        same(&sent, &got)
    }

    fn rsync(&self, download: bool, address: &str) -> Result<(), String> {
        let sent = self.file("out/file");
        let got = self.file(if download { "got/rsync" } else { "in/rsync" });
        let _ = fs::remove_file(&got);
        let (from, to) = if download {
            (format!("rsync://{address}/out/file"), got.display().to_string())
        } else {
            (sent.display().to_string(), format!("rsync://{address}/in/rsync"))
        };
        self.run(MOBILE, &["rsync", &from, &to])?;
        same(&sent, &got)
    }

    /// Runs all programs in both directions with both protocols. Returns one text per failure.
    fn all(&self, lossy: bool) -> Vec<String> {
        let dir = self.dir.display().to_string();
        let config = self.file("nginx.conf").display().to_string();
        let rsyncd = format!("--config={}", self.file("rsyncd.conf").display());
        let nginx = self.serve(FIXED, 80, &["nginx", "-p", &dir, "-e", "stderr", "-c", &config]);
        // A user who is root only inside a namespace may not change groups, which rsync does as root. So it
        // runs as another user.
        let other: &[&str] = match self.world.user {
            User::Root => &[],
            User::Unprivileged => &["unshare", "--user", "--map-user=1000"],
        };
        let daemon = ["rsync", "--daemon", "--no-detach", "--port=8730", &rsyncd];
        let rsync = self.serve(FIXED, 8730, &[other, &daemon].concat());
        let (_nginx, _rsync) = match (nginx, rsync) {
            (Ok(nginx), Ok(rsync)) => (nginx, rsync),
            (nginx, rsync) => return nginx.err().into_iter().chain(rsync.err()).collect(),
        };
        let mut failed = Vec::new();
        let mut case = |name: String, result: Result<(), String>| {
            failed.extend(result.err().map(|error| format!("{name}: {error}")));
        };
        for (family, address) in [("-4", "10.0.0.1:8730"), ("-6", "[fd00::1]:8730")] {
            case(format!("iperf3 {family} down"), self.iperf3(FIXED, MOBILE, family));
            case(format!("iperf3 {family} up"), self.iperf3(MOBILE, FIXED, family));
            for (way, download) in [("down", true), ("up", false)] {
                case(format!("curl {family} {way}"), self.curl(download, family));
                case(format!("rsync {address} {way}"), self.rsync(download, address));
            }
        }
        case("errors".to_owned(), self.struck(lossy));
        failed
    }

    /// Checks that the radio destroyed packets if and only if it should.
    fn struck(&self, lossy: bool) -> Result<(), String> {
        let socket = self.world.runtime().join("lasthop").join(&self.name).join("control.sock");
        let socket = socket.display().to_string();
        let get = ["ctl", "--socket", &socket, "get", "--json"];
        let counters = self.succeed(self.world.command(&get))?;
        let status: Value =
            serde_json::from_slice(&counters.stdout).map_err(|error| error.to_string())?;
        let damaged = damaged(&status);
        if (damaged > 0) == lossy {
            Ok(())
        } else {
            Err(format!("{damaged} packets damaged: {status}"))
        }
    }

    /// Ends the testbed. After a failure its files remain.
    fn end(self, failed: Vec<String>) -> Option<String> {
        let down = self.succeed(self.world.command(&["testbed", "down", &self.name]));
        let failed: Vec<_> = failed.into_iter().chain(down.err()).collect();
        if failed.is_empty() {
            return None;
        }
        let target =
            std::env::temp_dir().join(format!("lasthop-{}-{}", self.name, std::process::id()));
        let _ = fs::rename(&self.dir, &target);
        let (from, to) = (self.dir.display().to_string(), target.display().to_string());
        let commands = self.history.borrow().join("\n").replace(&from, &to);
        Some(format!("{}\n{}\nfiles: {to}\n{commands}", self.name, failed.join("\n")))
    }
}

/// Number of packets that links and radios damaged or destroyed.
fn damaged(counters: &Value) -> u64 {
    let stages = counters["stages"].as_array().into_iter().flatten();
    let ways = stages.flat_map(|stage| [&stage["right"]["damaged"], &stage["left"]["damaged"]]);
    ways.filter_map(Value::as_u64).sum()
}

/// Runs the programs through one testbed.
fn case(world: &World, system: &str, set: &[&str], errors: (&str, &str)) -> Option<String> {
    let name = format!("{system}-{}", errors.0);
    match Bench::new(world, &name, &[&[errors.1], set].concat()) {
        Ok(bench) => {
            let failed = bench.all(errors.0 != "none");
            bench.end(failed)
        }
        Err(error) => Some(format!("{name}: {error}")),
    }
}

/// Whether the programs are installed.
fn have_programs() -> bool {
    let paths = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"].map(Path::new);
    let missing: Vec<_> = ["iperf3", "nginx", "curl", "rsync"]
        .into_iter()
        .filter(|program| !paths.iter().any(|path| path.join(program).exists()))
        .collect();
    can_run(missing.is_empty(), &missing.join(", "))
}

/// Runs the programs with each kind of errors, concurrently.
fn programs(system: &str, set: &[&str]) {
    if !have_programs() {
        return;
    }
    let world = World::new(&format!("programs-{system}"), user());
    let failed: Vec<_> = thread::scope(|scope| {
        let world = &world;
        let cases = ERRORS.map(|errors| {
            // A burst at the last packet takes as many retransmissions with exponential backoff, since the
            // base station's TCP has no loss probe. With the BSD clock that takes 46 s each time; with the
            // other still 13 s.
            let slow = system == "split" && errors.0 == "bursts";
            let more: &[&str] = if slow { &["split-preset=linux"] } else { &[] };
            scope.spawn(move || case(world, system, &[set, more].concat(), errors))
        });
        cases.into_iter().filter_map(|case| case.join().expect("no panic")).collect()
    });
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

#[test]
fn without_an_agent() {
    programs("none", &["agent=none"]);
}

#[test]
fn with_snoop() {
    programs("snoop", &["agent=snoop"]);
}

#[test]
fn with_snoop_and_partial_acknowledgements() {
    programs("snoop-ackp", &["agent=snoop+ackp"]);
}

#[test]
fn with_split_connections() {
    programs("split", &["agent=split"]);
}

#[test]
fn with_ack_filtering() {
    programs("ack-filter", &["agent=none", "radio.discipline=ack-filter"]);
}

#[test]
fn without_root() {
    if !have_programs() {
        return;
    }
    // An ordinary user needs no root for any of this.
    let world = World::new("programs-rootless", User::Unprivileged);
    let failed = case(&world, "rootless", &["agent=snoop"], ERRORS[1]);
    assert!(failed.is_none(), "{}", failed.unwrap_or_default());
}
