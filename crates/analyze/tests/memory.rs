//! Memory does not grow with the length of a capture: the peak of processes that read 4 and 16 times as much.
//!
//! Lists of the result are bounded by the configuration, which is small here, so that the shortest capture fills them.

#[path = "../../checks/shared/can_run.rs"]
mod can_run;

use std::process::Command;

use can_run::can_run;
use lasthop_analyze::{Config, Reader};

/// The environment variable that makes this program a reader: what it reads, and how much.
const TASK: &str = "LASTHOP_MEMORY_TASK";

/// Packets of the shortest capture.
const PACKETS: u32 = 40_000;

/// Allocators and page tables vary by this much, in KiB.
const SLACK: u64 = 1024;

const KINDS: [&str; 7] =
    ["transfers", "short", "twice", "unanswered", "fragments", "overlapping", "acks"];

/// Writes records of raw IPv4 packets.
struct Source {
    at: u64,
    id: u16,
}

impl Source {
    /// A record of `packet`, whose last `hidden` bytes were not captured.
    fn record(&mut self, to: &mut Vec<u8>, packet: &[u8], hidden: u32) {
        self.at += 50_000;
        let (secs, nanos) = (self.at / 1_000_000_000, self.at % 1_000_000_000);
        let len = packet.len() as u32;
        for field in [secs as u32, nanos as u32, len, len + hidden] {
            to.extend(field.to_le_bytes());
        }
        to.extend(packet);
    }

    fn ip(&mut self, place: u16, from: u8, payload: &[u8], hidden: u32) -> Vec<u8> {
        let total = (20 + payload.len() as u32 + hidden) as u16;
        let mut packet = vec![0x45, 0];
        packet.extend(total.to_be_bytes());
        packet.extend(self.id.to_be_bytes());
        packet.extend(place.to_be_bytes());
        packet.extend([64, 6, 0, 0, 10, 0, 0, from, 10, 0, 0, 3 - from]);
        packet.extend(payload);
        packet
    }

    /// Side `from` (1 or 2) of the connection with the client's `port` sends `len` bytes.
    fn tcp(&mut self, from: u8, port: u16, seq: u32, ack: u32, len: u32) -> Vec<u8> {
        self.id = self.id.wrapping_add(1);
        let ports = if from == 1 { [port, 80] } else { [80, port] };
        let mut header: Vec<u8> = ports.into_iter().flat_map(u16::to_be_bytes).collect();
        header.extend(seq.to_be_bytes());
        header.extend(ack.to_be_bytes());
        header.extend([0x80, 0x10, 0xff, 0xff, 0, 0, 0, 0, 1, 1, 8, 10]);
        header.extend(((self.at / 1_000_000) as u32).to_be_bytes());
        header.extend([0, 0, 0, 1]);
        self.ip(0x4000, from, &header, len)
    }
}

/// The packets `first..` of a capture of kind `kind`, at least `count` of them.
fn piece(source: &mut Source, kind: &str, first: u32, count: u32) -> Vec<u8> {
    let mut out = Vec::new();
    for n in first..first + count {
        // Four connections at a time; those of `short` end after 20 packets.
        let port = match kind {
            "short" => 1024 + (n / 80 * 4 + n % 4) as u16 % 50_000,
            _ => 1024 + (n % 4) as u16,
        };
        let turn = n / 4;
        let seq = (turn / 2).wrapping_mul(1000);
        match kind {
            "unanswered" => {
                let packet = source.tcp(1, port, turn.wrapping_mul(3000), 1, 1000);
                source.record(&mut out, &packet, 1000);
            }
            "acks" => {
                let packet = source.tcp(2, port, 1, seq, 0);
                source.record(&mut out, &packet, 0);
            }
            "fragments" | "overlapping" => {
                source.id = source.id.wrapping_add(u16::from(kind == "fragments" || n % 8 == 0));
                // The first half of a packet, and no other; or parts that overlap.
                let place = if kind == "fragments" { 0 } else { (n % 8) as u16 * 10 };
                let packet = source.ip(0x2000 | place, 1, &[7; 1000], 0);
                source.record(&mut out, &packet, 0);
            }
            // Data and its ACK alternate. Each hundredth segment is missing, and retransmitted later.
            _ if turn % 2 == 0 => {
                let lost = turn / 2 % 100 == 50;
                let late = (turn / 2 % 100 == 53).then(|| seq.wrapping_sub(3000));
                for seq in (!lost).then_some(seq).into_iter().chain(late) {
                    let packet = source.tcp(1, port, seq, 1, 1000);
                    source.record(&mut out, &packet, 1000);
                    if kind == "twice" {
                        source.record(&mut out, &packet, 1000);
                    }
                }
            }
            _ => {
                let missing = (50..53).contains(&(turn / 2 % 100));
                let end = seq.wrapping_add(1000);
                let ack =
                    if missing { seq.wrapping_sub((turn / 2 % 100 - 50) * 1000) } else { end };
                let packet = source.tcp(2, port, 1, ack, 0);
                source.record(&mut out, &packet, 0);
            }
        }
    }
    out
}

/// The peak of this process in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("a peak");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("a number")
}

/// Reads a capture that is generated piece by piece, if this process is to do so.
#[test]
fn reader() {
    let Ok(task) = std::env::var(TASK) else { return };
    let (kind, packets) = task.split_once(' ').expect("kind and packets");
    let packets: u32 = packets.parse().expect("a number");
    let config =
        Config { connections: 500, points: 1000, losses: 50, listed: 50_000, ..Config::default() };
    let mut reader = Reader::new(config);
    let words = [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 65_535, 101];
    let mut buffer: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
    let mut source = Source { at: 1_700_000_000_000_000_000, id: 0 };
    for first in (0..packets).step_by(1000) {
        buffer.extend(piece(&mut source, kind, first, 1000));
        let used = reader.read(&buffer, first + 1000 >= packets).unwrap().unwrap();
        buffer.drain(..used);
    }
    let analysis = reader.finish();
    assert!(analysis.packets >= u64::from(packets) * 9 / 10, "{}", analysis.packets);
    println!("peak {}", peak());
}

#[test]
fn memory_does_not_grow_with_the_capture() {
    if !can_run(cfg!(target_os = "linux"), "/proc/self/status") {
        return;
    }
    let run = |kind: &str, packets: u32| -> u64 {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "reader", "--nocapture"]);
        let out = command.env(TASK, format!("{kind} {packets}")).output().unwrap();
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let (_, peak) = text.split_once("peak ").unwrap_or_else(|| panic!("{kind}: {out:?}"));
        peak.split_whitespace().next().and_then(|kib| kib.parse().ok()).expect("a number")
    };
    for kind in KINDS {
        let peaks = [1, 4, 16].map(|times| run(kind, times * PACKETS));
        println!("{kind}: {peaks:?} KiB for 1, 4 and 16 times {PACKETS} packets");
        let [least, .., most] = peaks;
        assert!(most <= least + least / 20 + SLACK, "{kind}: {peaks:?} KiB");
    }
}
