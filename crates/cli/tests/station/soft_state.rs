//! Soft state of base stations, and its absence: the station is killed in the middle of a transfer and
//! restarted, as by a supervisor.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::world::{World, enter, inside, pattern};

/// Five seconds of transmission, since a busy machine kills the station late.
const BYTES: usize = 2_500_000;

/// Enough bytes to fill every buffer.
const MIDST: usize = 400_000;

/// An observed transfer from `a` to `b`.
struct Transfer {
    got: Arc<AtomicUsize>,
    hash: Arc<Mutex<Sha256>>,
    receiver: thread::JoinHandle<()>,
}

impl Transfer {
    fn start() -> Transfer {
        let (got, hash) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Sha256::new())));
        let (ready, listening) = channel();
        let (count, sum) = (got.clone(), hash.clone());
        let receiver = thread::spawn(move || {
            enter("b");
            let listener = TcpListener::bind("10.9.0.2:5001").unwrap();
            ready.send(()).unwrap();
            let (mut stream, _) = listener.accept().unwrap();
            let mut chunk = vec![0; 1 << 16];
            while let Ok(bytes @ 1..) = stream.read(&mut chunk) {
                sum.lock().unwrap().update(&chunk[..bytes]);
                count.fetch_add(bytes, Ordering::Release);
            }
        });
        listening.recv().unwrap();
        // The test may end before the transfer.
        thread::spawn(|| {
            enter("a");
            let mut stream = TcpStream::connect("10.9.0.2:5001").unwrap();
            stream.write_all(&(0..BYTES).map(pattern).collect::<Vec<_>>()).unwrap();
        });
        Transfer { got, hash, receiver }
    }

    fn got(&self) -> usize {
        self.got.load(Ordering::Acquire)
    }

    fn reach(&self, bytes: usize) {
        while self.got() < bytes {
            assert!(!self.receiver.is_finished(), "it ended after {} bytes", self.got());
            thread::yield_now();
        }
    }
}

/// Bytes that the kernel of the sender regards as acknowledged.
fn acknowledged() -> usize {
    let words = ["netns", "exec", "a", "ss", "-Htin", "dport = :5001"];
    let output = Command::new("ip").args(words).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let count = text.split_whitespace().find_map(|word| word.strip_prefix("bytes_acked:"));
    // The SYN counts as one byte.
    count.unwrap_or_else(|| panic!("ss says {text}")).parse::<usize>().unwrap() - 1
}

fn path(agent: &str) -> String {
    format!(
        "[[path]]\nagent = \"{agent}\"\n[[path]]\nradio = {{ rate = \"4mbit\", delay = \"5ms\" }}\n\
         errors-data = {{ model = \"exponential\", mean = \"64KiB\" }}\n"
    )
}

/// Tests a transfer that survives the station.
fn survives(test: &str, path: &str) {
    inside(&format!("soft_state::{test}"), || {
        let world = World::new(path);
        let station = world.station(&[]);
        let transfer = Transfer::start();
        transfer.reach(MIDST);
        assert_eq!(station.end("KILL"), None);
        // The receiver's kernel still delivers its buffered data; without a station nothing else arrives.
        assert!(transfer.got() < BYTES, "it was over before the station was killed");
        let _second = world.station(&[]);
        transfer.receiver.join().unwrap();
        let sent: Vec<u8> = (0..BYTES).map(pattern).collect();
        let received = transfer.hash.lock().unwrap().clone();
        assert_eq!(transfer.got.load(Ordering::Acquire), BYTES);
        assert_eq!(received.finalize(), Sha256::digest(&sent));
    });
}

/// Tests a transfer whose sender received an ACK for bytes that were lost.
fn loses(test: &str, path: &str) {
    inside(&format!("soft_state::{test}"), || {
        let world = World::new(path);
        let station = world.station(&[]);
        let transfer = Transfer::start();
        transfer.reach(MIDST);
        assert_eq!(station.end("KILL"), None);
        let _second = world.station(&[]);
        // The sender continues behind the hole, and the second station forwards its segments unchanged.
        let departed = |status: &Value| status["stages"][1]["packets"]["departed"].as_u64();
        // Each timeout is twice as long as the previous one.
        let more = |than| (0..50).any(|_| world.wait(|status| departed(status) > than));
        assert!(more(Some(1)));
        assert_eq!(world.status()["stages"][1]["right"]["originated"], serde_json::json!({}));
        let (acknowledged, got) = (acknowledged(), transfer.got());
        assert!(acknowledged > got, "{acknowledged} acknowledged, {got} received");
        println!("{test}: {} bytes acknowledged and lost", acknowledged - got);
        // These bytes are lost: all later data is behind the hole.
        assert!(more(departed(&world.status())));
        assert_eq!(transfer.got(), got);
        assert!(!transfer.receiver.is_finished());
    });
}

#[test]
fn none() {
    survives("none", &path("none"));
}

#[test]
fn snoop() {
    survives("snoop", &path("snoop"));
}

#[test]
fn selective_snoop() {
    survives("selective_snoop", &path("snoop-smart"));
}

#[test]
fn snoop_with_negative_acknowledgements() {
    survives("snoop_with_negative_acknowledgements", &path("snoop-nack"));
}

/// It splits connections, but acknowledges only data that the mobile host has received.
#[test]
fn m_tcp() {
    survives("m_tcp", &path("m-tcp"));
}

#[test]
fn snoop_with_partial_acknowledgements() {
    survives("snoop_with_partial_acknowledgements", &path("snoop+ackp"));
}

#[test]
fn seq_cache() {
    survives("seq_cache", &path("seq-cache"));
}

#[test]
fn ack_filter() {
    let path = path("none").replace("\"5ms\" }", "\"5ms\", discipline = \"ack-filter\" }");
    survives("ack_filter", &path);
}

#[test]
fn split() {
    loses("split", &path("split"));
}

#[test]
fn split_sack() {
    loses("split_sack", &path("split-sack"));
}
