//! `lasthop link` between two hosts, over a path where a station loses packets in both directions.
//!
//! ```text
//!   a (10.9.0.1, inside 10.8.0.1) -- sa | station | sb -- (10.9.0.2, inside 10.8.0.2) b -- (10.7.0.0/24) -- c
//! ```
//!
//! It needs root and /dev/net/tun. Where there is none, only refusals are tried.
#![cfg(target_os = "linux")]

#[path = "support/quic.rs"]
mod quic;

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::TcpCongestion;
use nix::unistd::{Pid, Uid};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

const LASTHOP: &str = env!("CARGO_BIN_EXE_lasthop");

/// Which test runs inside of its namespaces.
const INSIDE: &str = "LASTHOP_TEST_INSIDE";

/// Runs `body` in namespaces of its own: the test is started once more by `unshare`, and then is inside.
fn inside(test: &str, body: impl FnOnce()) {
    if std::env::var(INSIDE).is_ok_and(|name| name == test) {
        body();
        return;
    }
    if !Uid::effective().is_root() || !Path::new("/dev/net/tun").exists() {
        // A namespace of an ordinary user cannot open the device: what is left is that it says so.
        let done = Command::new(LASTHOP).args(["link", "--keygen"]).output().expect("it starts");
        assert_eq!(done.stdout.len(), 65, "a key");
        return;
    }
    let done = Command::new("unshare")
        .arg("-nm")
        .arg(std::env::current_exe().expect("a test has a file"))
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(INSIDE, test)
        .output()
        .expect("unshare (util-linux) is there");
    let told = format!(
        "{}{}",
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr)
    );
    assert!(done.status.success() && told.contains("1 passed"), "in its namespaces:\n{told}");
}

fn sh(command: &str) -> String {
    let done = Command::new("sh").args(["-c", command]).output().expect("sh runs");
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{command}: {told}");
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// Does `work` on a host, in a thread of its own.
fn on<T: Send + 'static>(host: &str, work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let namespace = File::open(format!("/run/netns/{host}")).expect("the namespace is there");
    thread::spawn(move || {
        setns(namespace, CloneFlags::CLONE_NEWNET).expect("we are root");
        work()
    })
}

/// A program that is ended with the test.
struct Running {
    child: Child,
    /// What it prints, a line each.
    lines: std::sync::mpsc::Receiver<String>,
}

impl Running {
    fn start(host: Option<&str>, words: &[&str]) -> Running {
        let mut command = match host {
            Some(host) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", host, LASTHOP]);
                command
            }
            None => Command::new(LASTHOP),
        };
        command.args(words).env("NO_COLOR", "1").env_remove("NOTIFY_SOCKET");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().expect("it starts");
        let out = BufReader::new(child.stdout.take().expect("a pipe"));
        let (sender, lines) = std::sync::mpsc::channel();
        thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Running { child, lines }
    }

    /// Waits until it prints a line with `word` in it.
    fn says(&self, word: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(Duration::from_secs(30));
            let line = line.unwrap_or_else(|error| panic!("no word of `{word}`: {error}"));
            if line.contains(word) {
                return line;
            }
        }
    }

    fn end(mut self, signal: Signal) -> Option<i32> {
        let _ = kill(Pid::from_raw(self.child.id() as i32), signal);
        self.child.wait().expect("it ends").code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn world() {
    sh("mount -t tmpfs -o mode=755 none /run && mkdir /run/netns && ip link set lo up");
    for (host, n) in [("a", 1), ("b", 2)] {
        sh(&format!(
            "ip netns add {host}; ip link add s{host} type veth peer name eth0 netns {host}; ip link set s{host} up; \
             ip -n {host} link set lo up; ip -n {host} link set eth0 up; \
             ip -n {host} addr add 10.9.0.{n}/24 dev eth0"
        ));
    }
    sh("ip netns add c; ip link add eth1 netns b type veth peer name eth0 netns c; \
        ip -n b link set eth1 up; ip -n c link set eth0 up; \
        ip -n b addr add 10.7.0.2/24 dev eth1; ip -n c addr add 10.7.0.3/24 dev eth0");
    sh(&format!("{LASTHOP} link --keygen > /run/key && chmod 600 /run/key"));
    let common = "key-file = \"/run/key\"\nrate = \"45mbit\"\nkeep-alive = \"200ms\"\ndead-after = \"1500ms\"\n";
    let b = format!(
        "listen = \"0.0.0.0:4747\"\naddresses = [\"10.8.0.2/24\", \"fd08::2/64\"]\n{common}"
    );
    let a = format!(
        "peer = \"10.9.0.2:4747\"\naddresses = [\"10.8.0.1/24\", \"fd08::1/64\"]\n{common}"
    );
    fs::write("/run/a.toml", a).unwrap();
    fs::write("/run/b.toml", b).unwrap();
    let path = "left = \"sa\"\nright = \"sb\"\n[[path]]\n\
                radio = { rate = \"50mbit\", delay = \"2ms\", overhead = \"0us\", \
                duplex = \"full\", queue = \"200p\" }\n\
                errors = { model = \"packet-loss\", p = \"1%\", on = [\"data\", \"ack\"] }\n";
    fs::write("/run/base.toml", path).unwrap();
}

fn station() -> Running {
    let station =
        Running::start(None, &["station", "/run/base.toml", "--socket", "/run/base.sock"]);
    station.says("running");
    station
}

fn lose(percent: u32) {
    sh(&format!("{LASTHOP} ctl --socket /run/base.sock set errors.p={percent}%"));
}

fn link(host: &str) -> Running {
    let file = format!("/run/{host}.toml");
    let socket = format!("/run/{host}.sock");
    let link = Running::start(Some(host), &["link", &file, "--socket", &socket, "--json"]);
    link.says("ready");
    link
}

fn status(host: &str) -> Value {
    let told = sh(&format!("{LASTHOP} ctl --socket /run/{host}.sock get --json"));
    serde_json::from_str(&told).expect("JSON")
}

fn count(status: &Value, group: &str, key: &str) -> u64 {
    status[group][key].as_u64().unwrap_or(0)
}

/// Asks until it is so; within a minute.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    // Each question starts a program, which is pause enough.
    for _ in 0..3000 {
        if is_so() {
            return;
        }
    }
    panic!("it never came to this: {what}");
}

fn noise(bytes: usize, seed: u64) -> Vec<u8> {
    let mut noise = Vec::with_capacity(bytes + 32);
    for n in 0_u64.. {
        if noise.len() >= bytes {
            break;
        }
        let chunk = Sha256::new().chain_update(seed.to_le_bytes()).chain_update(n.to_le_bytes());
        noise.extend_from_slice(&chunk.finalize());
    }
    noise.truncate(bytes);
    noise
}

fn choose(stream: &TcpStream, control: Option<&str>) {
    if let Some(control) = control {
        setsockopt(stream, TcpCongestion, &control.into()).expect("the kernel has it");
    }
}

/// Host `b` sends back all that comes; `a` sends a file and compares what comes back.
fn there_and_back(address: &'static str, control: Option<&'static str>, bytes: usize, seed: u64) {
    with_a_pause("b", address, control, &noise(bytes, seed), || {});
}

/// The same with another host; `halfway` happens when half of the file has been written.
fn with_a_pause(
    host: &str,
    address: &'static str,
    control: Option<&'static str>,
    file: &[u8],
    halfway: impl FnOnce() + Send + 'static,
) {
    let (ready, is_ready) = std::sync::mpsc::channel();
    let echo = on(host, move || {
        let listener = TcpListener::bind((address, 7000)).expect("it listens");
        ready.send(()).unwrap();
        let (mut stream, _) = listener.accept().expect("somebody comes");
        choose(&stream, control);
        let mut got = Vec::new();
        stream.read_to_end(&mut got).expect("it is read");
        stream.write_all(&got).expect("it is written");
    });
    is_ready.recv().expect("the server is there");
    let sent = file.to_vec();
    let digests = on("a", move || {
        let mut stream = TcpStream::connect((address, 7000)).expect("the peer is there");
        choose(&stream, control);
        let (first, second) = sent.split_at(sent.len() / 2);
        stream.write_all(first).expect("it is written");
        halfway();
        stream.write_all(second).expect("it is written");
        stream.shutdown(Shutdown::Write).expect("the end");
        let mut got = Vec::new();
        stream.read_to_end(&mut got).expect("it is read");
        (Sha256::digest(&sent), Sha256::digest(&got))
    });
    let (sent, got) = digests.join().expect("a file goes there and back");
    echo.join().expect("the echo ends well");
    assert_eq!(sent, got);
}

#[test]
fn files_arrive_whatever_the_path_loses() {
    inside("files_arrive_whatever_the_path_loses", || {
        world();
        let _station = station();
        let _b = link("b");
        let a = link("a");
        a.says("up");
        for percent in [1, 5, 15, 30] {
            lose(percent);
            for control in ["cubic", "bbr"] {
                let address = if control == "cubic" { "10.8.0.2" } else { "fd08::2" };
                there_and_back(address, Some(control), 200_000, percent.into());
            }
        }
        until("all has been sent", || count(&status("a"), "packets", "bytes-in") > 1_600_000);
        let told = status("a");
        assert_eq!(count(&told, "session", "sessions"), 1, "{told}");
        assert!(count(&told, "repeated", "link-nack") > 20, "{told}");
        assert_eq!(told["keyed"], true);
        assert_eq!(count(&told, "packets", "session-lost"), 0, "{told}");
    });
}

/// The same by QUIC, over UDP.
fn there_and_back_by_quic(address: SocketAddr, bytes: usize, seed: u64) {
    let (ready, is_ready) = std::sync::mpsc::channel();
    let echo = on("b", move || {
        quic::runtime().block_on(async {
            let (endpoint, certificate) = quic::serve(address);
            ready.send(certificate).unwrap();
            let connection = endpoint.accept().await.expect("somebody calls");
            let connection = connection.await.expect("a handshake");
            let (mut send, mut receive) = connection.accept_bi().await.expect("a stream");
            let got = receive.read_to_end(bytes).await.expect("it is read");
            send.write_all(&got).await.expect("it is written");
            send.finish().expect("the end");
            connection.closed().await;
        });
    });
    let certificate = is_ready.recv().expect("the server is there");
    let digests = on("a", move || {
        quic::runtime().block_on(async {
            let (endpoint, connection) = quic::call(address, certificate).await;
            let (mut send, mut receive) = connection.open_bi().await.expect("a stream");
            let sent = noise(bytes, seed);
            send.write_all(&sent).await.expect("it is written");
            send.finish().expect("the end");
            let got = receive.read_to_end(bytes).await.expect("it is read");
            connection.close(0_u32.into(), b"done");
            endpoint.wait_idle().await;
            (Sha256::digest(&sent), Sha256::digest(&got))
        })
    });
    let (sent, got) = digests.join().expect("a file goes there and back");
    echo.join().expect("the echo ends well");
    assert_eq!(sent, got);
}

#[test]
fn files_arrive_by_quic_too() {
    inside("files_arrive_by_quic_too", || {
        world();
        let _station = station();
        sh("sed -i '1i reliable = \"all\"' /run/a.toml /run/b.toml");
        let _b = link("b");
        let a = link("a");
        a.says("up");
        for percent in [1, 5, 15, 30] {
            lose(percent);
            let before = count(&status("a"), "repeated", "link-nack");
            there_and_back_by_quic("10.8.0.2:7443".parse().unwrap(), 200_000, percent.into());
            until("UDP is repeated", || count(&status("a"), "repeated", "link-nack") > before);
        }
        until("all has been sent", || count(&status("a"), "packets", "bytes-in") > 800_000);
        let told = status("a");
        assert_eq!(count(&told, "session", "sessions"), 1, "{told}");
        assert_eq!(count(&told, "packets", "session-lost"), 0, "{told}");
    });
}

#[test]
fn a_path_that_becomes_narrower_is_noticed() {
    inside("a_path_that_becomes_narrower_is_noticed", || {
        world();
        let _station = station();
        // `b` is a router between the ends: it tells by ICMP what does not fit its way to `c`.
        sh("ip netns exec b sh -c 'echo 1 > /proc/sys/net/ipv4/ip_forward'; \
            ip -n a route add 10.7.0.0/24 via 10.9.0.2; ip -n c route add 10.9.0.0/24 via 10.7.0.2; \
            sed 's/, .fd08[^]]*//' /run/b.toml > /run/c.toml; \
            sed -i 's/, .fd08[^]]*//; s/10.9.0.2/10.7.0.3/' /run/a.toml");
        let c = link("c");
        let a = link("a");
        a.says("up");
        c.says("up");
        for host in ["a", "c"] {
            until("the path is as wide as Ethernet", || status(host)["mtu"] == 1395);
        }
        with_a_pause("c", "10.8.0.2", None, &noise(2_000_000, 1), || {
            assert_eq!(count(&status("a"), "refused", "sent-in-pieces"), 0);
            sh("ip -n b link set eth1 mtu 1280; ip -n c link set eth0 mtu 1280");
        });
        // What the path carries less 28 of IPv4 and UDP, 30 of the tunnel, 15 and a bit for each of 256 packets.
        let left = 1280 - 28 - 30 - 15 - 32;
        for host in ["a", "c"] {
            until("the interface is narrower", || status(host)["mtu"] == left);
            assert!(
                sh(&format!("ip -n {host} link show lasthop0")).contains(&format!("mtu {left}"))
            );
            let told = status(host);
            assert_eq!(count(&told, "session", "sessions"), 1, "{told}");
        }
        // What was on its way was too long by then, and had to get through all the same.
        let told = status("a");
        assert!(count(&told, "refused", "sent-in-pieces") > 0, "{told}");
        with_a_pause("c", "10.8.0.2", None, &noise(200_000, 2), || {});
    });
}

#[test]
fn a_connection_outlives_an_end_that_is_killed() {
    inside("a_connection_outlives_an_end_that_is_killed", || {
        world();
        let _station = station();
        let mut b = link("b");
        let a = link("a");
        a.says("up");
        b.says("up");
        let listener = on("b", || TcpListener::bind("10.8.0.2:7001").expect("it listens"));
        let listener = listener.join().unwrap();
        let client = on("a", || TcpStream::connect("10.8.0.2:7001").expect("the peer is there"));
        let (mut server, _) = listener.accept().unwrap();
        let mut client = client.join().unwrap();
        for round in 0..2_u8 {
            // The socket of `b` was bound to the interface's address, which comes back with it.
            b.end(Signal::SIGKILL);
            b = link("b");
            a.says("up");
            client.write_all(&[round; 1000]).unwrap();
            let mut got = [9; 1000];
            server.read_exact(&mut got).unwrap();
            assert_eq!(got, [round; 1000]);
            server.write_all(&got).unwrap();
            client.read_exact(&mut got).unwrap();
        }
        until("three sessions", || count(&status("a"), "session", "sessions") == 3);
        assert_eq!(count(&status("a"), "session", "vanished"), 2);
        // Killed, the caller is met anew at once; ended, it takes its leave.
        let before = count(&status("b"), "session", "sessions");
        a.end(Signal::SIGKILL);
        let a = link("a");
        a.says("up");
        until("a new session", || count(&status("b"), "session", "sessions") > before);
        assert_eq!(a.end(Signal::SIGINT), Some(0));
        b.says("down");
        until("a goodbye", || count(&status("b"), "session", "goodbyes") == 1);
        assert!(!sh("ip -n a link").contains("lasthop0"), "the interface is gone");
        assert!(!Path::new("/run/a.sock").exists());
    });
}

#[test]
fn strangers_are_counted_and_heard_no_further() {
    inside("strangers_are_counted_and_heard_no_further", || {
        world();
        let _station = station();
        let mut dump = Command::new("tcpdump")
            .args([
                "-Z",
                "root",
                "-i",
                "sb",
                "-U",
                "-c",
                "60",
                "-w",
                "/run/dump",
                "udp",
                "port",
                "4747",
            ])
            .stderr(Stdio::piped())
            .spawn()
            .expect("tcpdump is there");
        let mut line = String::new();
        let mut told = BufReader::new(dump.stderr.take().unwrap());
        while !line.contains("listening") {
            line.clear();
            assert!(told.read_line(&mut line).unwrap() > 0, "tcpdump does not listen");
        }
        let _b = link("b");
        let a = link("a");
        a.says("up");
        there_and_back("10.8.0.2", None, 100_000, 1);
        assert!(dump.wait().unwrap().success());
        let datagrams = datagrams(&fs::read("/run/dump").unwrap());
        assert_eq!(datagrams.len(), 60);
        // What is shown is a picture of a moment ago.
        until("b has seen it all", || count(&status("b"), "packets", "packets-out") > 60);
        let before = status("b");
        let told = on("c", move || {
            let socket = UdpSocket::bind("10.7.0.3:0").unwrap();
            for datagram in &datagrams {
                let mut forged = datagram.clone();
                *forged.last_mut().unwrap() ^= 1;
                // As if it were the newest.
                if forged[0] == 4 {
                    forged[6] = 1;
                }
                for bytes in [datagram, &forged, &datagram[..10].to_vec()] {
                    socket.send_to(bytes, "10.7.0.2:4747").unwrap();
                }
            }
            datagrams.len() as u64
        });
        let sent = told.join().unwrap();
        let more =
            |now: &Value, key: &str| count(now, "session", key) - count(&before, "session", key);
        until("all are counted", || more(&status("b"), "bad-length") == sent);
        there_and_back("10.8.0.2", None, 50_000, 2);
        let now = status("b");
        assert!(more(&now, "replayed") > 10, "{now}");
        assert!(more(&now, "bad-tag") > 10, "{now}");
        assert!(more(&now, "other-session") > 10, "what b has said itself: {now}");
        assert_eq!(more(&now, "sessions"), 0, "{now}");
        assert_eq!(now["peer"], before["peer"]);
    });
}

/// The UDP payloads of a capture of Ethernet with IPv4 without options.
fn datagrams(pcap: &[u8]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut rest = &pcap[24..];
    while let Some((head, tail)) = rest.split_at_checked(16) {
        let len = u32::from_ne_bytes(head[8..12].try_into().unwrap()) as usize;
        found.push(tail[42..len].to_vec());
        rest = &tail[len..];
    }
    found
}

#[test]
fn what_is_missing_is_told_with_its_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let refused = |words: &[&str], code: i32| {
        let done = Command::new(LASTHOP).args(words).env("NO_COLOR", "1").output().unwrap();
        assert_eq!(done.status.code(), Some(code), "{words:?}");
        String::from_utf8_lossy(&done.stderr).into_owned()
    };
    let file = path("link.toml");
    fs::write(&file, format!("peer = \"192.0.2.1:4747\"\nkey-file = \"{}\"\n", path("key")))
        .unwrap();
    assert!(refused(&["link", &file], 2).contains("lasthop link --keygen"));
    fs::write(path("key"), "12345\n").unwrap();
    assert!(refused(&["link", &file, "--check"], 2).contains("64 hexadecimal digits"));
    fs::write(path("key"), sh(&format!("{LASTHOP} link --keygen"))).unwrap();
    assert!(refused(&["link", &file, "--check"], 0).contains("others may read"));
    fs::write(&file, "listen = \"192.0.2.1\"\n").unwrap();
    assert!(refused(&["link", &file], 2).contains("ADDRESS:PORT"));
    fs::write(&file, "peer = \"127.0.0.1:4747\"\ntun = \"lo\"\n").unwrap();
    let told = refused(&["link", &file, "--socket", &path("socket")], 2);
    assert!(told.contains("THE TUNNEL IS OPEN"), "{told}");
    assert!(told.contains("help"), "{told}");
}
