//! Connections that end at a station with the kernel as data plane. If the station dies or hangs, new connections pass unsplit,
//! and both ends of the others are reset.
//!
//! No test depends on the speed of the machine. A connection that the kernel passed immediately has not retransmitted its SYN.
//! Times are compared with the longest delay of another thread in the same period.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use crate::common::far::{self, Far};
use crate::common::*;
use lasthop_live::clock::Clock;
use lasthop_live::endpoint::TcpInfo;
use lasthop_live::plane::{LIMIT_OTHERS, base};
use lasthop_live::sys::tcp_info::{ROOM, tcp_info};
use lasthop_proto::units::{Span, Time};
use nix::sys::signal::Signal;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::ReceiveTimeout;
use nix::sys::time::TimeVal;

/// No test: the station that the tests run in a separate process.
#[test]
fn a_station_in_a_process_of_its_own() {
    far::run();
}

/// Measures the load of the machine: the longest sleep of a thread that sleeps for one millisecond at a time.
struct Busy {
    longest: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Busy {
    fn watch() -> Busy {
        let (longest, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (seen, done) = (longest.clone(), stop.clone());
        let thread = thread::spawn(move || {
            while !done.load(Ordering::Relaxed) {
                let clock = Clock::start();
                pause(1);
                seen.fetch_max(clock.now().since(Time::ZERO).0, Ordering::Relaxed);
            }
        });
        Busy { longest, stop, thread }
    }

    fn longest(self) -> Span {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        Span(self.longest.load(Ordering::Relaxed))
    }
}

/// A server that returns all received bytes, with one thread per connection.
fn echo_server() -> std::net::SocketAddr {
    let (sender, addresses) = channel();
    within("mh", move || {
        let listener = TcpListener::bind("10.9.0.2:0").unwrap();
        sender.send(listener.local_addr().unwrap()).unwrap();
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            thread::spawn(move || {
                let mut buffer = [0; 1 << 12];
                while let Ok(count @ 1..) = stream.read(&mut buffer) {
                    if stream.write_all(&buffer[..count]).is_err() {
                        return;
                    }
                }
            });
        }
    });
    addresses.recv().unwrap()
}

/// Opens a connection to an [`echo_server`] and uses it. Returns the number of retransmissions of its handshake, and the duration
/// of the handshake.
fn open(server: std::net::SocketAddr) -> (u32, Span) {
    inside("fh", move || {
        let clock = Clock::start();
        let mut stream = TcpStream::connect(server).unwrap();
        let took = clock.now().since(Time::ZERO);
        let again = TcpInfo::of(&stream).unwrap().total_retrans;
        setsockopt(&stream, ReceiveTimeout, &TimeVal::new(120, 0)).unwrap();
        stream.write_all(b"hello").unwrap();
        let mut answer = [0; 5];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"hello");
        (again, took)
    })
}

/// The window scales of both ends, the peer's first (`tcpi_snd_wscale`, `tcpi_rcv_wscale`).
fn shifts(stream: &TcpStream) -> [u8; 2] {
    let mut info = [0; ROOM];
    assert!(tcp_info(stream.as_fd(), &mut info).unwrap() > 6);
    [info[6] & 15, info[6] >> 4]
}

/// The window scales of two hosts without a split: both kernels have the same settings, and a split has another one.
fn shifts_of_hosts() -> [u8; 2] {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    shifts(&TcpStream::connect(listener.local_addr().unwrap()).unwrap())
}

/// Both ends of a split connection. One sends until an error, the other only reads.
struct Held {
    ends: [JoinHandle<(ErrorKind, Time)>; 2],
    received: Arc<AtomicUsize>,
}

impl Held {
    /// The client in `from` sends, the server in `to` reads. Times are those of `clock`. On a busy machine the station may be too
    /// slow, so that the kernel passes a connection unsplit; then another one is opened.
    fn open(from: &str, to: &str, addr: &'static str, clock: Clock) -> Held {
        let mut held = None;
        until("a connection is split", || {
            held = Held::try_open(from, to, addr, clock);
            held.is_some()
        });
        held.unwrap()
    }

    fn try_open(from: &str, to: &str, addr: &'static str, clock: Clock) -> Option<Held> {
        let (sender, addresses) = channel();
        let received = Arc::new(AtomicUsize::new(0));
        let seen = received.clone();
        let server = within(to, move || {
            let listener = TcpListener::bind((addr, 0)).unwrap();
            sender.send(listener.local_addr().unwrap()).unwrap();
            let (mut stream, _) = listener.accept().unwrap();
            setsockopt(&stream, ReceiveTimeout, &TimeVal::new(120, 0)).unwrap();
            let mut buffer = vec![0; 1 << 16];
            loop {
                match stream.read(&mut buffer) {
                    Ok(0) => return (ErrorKind::UnexpectedEof, clock.now()),
                    Ok(count) => seen.fetch_add(count, Ordering::Relaxed),
                    Err(error) => return (error.kind(), clock.now()),
                };
            }
        });
        let address = addresses.recv().unwrap();
        let (opened, is_split) = channel();
        let client = within(from, move || {
            let mut stream = TcpStream::connect(address).unwrap();
            let splits = shifts(&stream) != shifts_of_hosts();
            opened.send(splits).unwrap();
            if !splits {
                return (ErrorKind::Unsupported, clock.now());
            }
            loop {
                if let Err(error) = stream.write_all(&[7; 1 << 14]) {
                    return (error.kind(), clock.now());
                }
            }
        });
        let held = Held { ends: [client, server], received };
        if !is_split.recv().unwrap() {
            for end in held.ends {
                end.join().unwrap();
            }
            return None;
        }
        let before = held.received.clone();
        until("it carries data", move || before.load(Ordering::Relaxed) > 100_000);
        Some(held)
    }

    /// Waits until both ends are reset, and returns the time.
    fn reset(self) -> Time {
        let ends = self.ends.map(|end| end.join().unwrap());
        for (kind, _) in ends {
            assert_eq!(kind, ErrorKind::ConnectionReset);
        }
        ends[0].1.max(ends[1].1)
    }
}

/// Runs `event` on a station with connections that end at it, and checks that new ones pass and these are reset.
fn fails_open(event: impl FnOnce(Far) -> Option<Far>) {
    let server = echo_server();
    let clock = Clock::start();
    let station = Far::start("split");
    open(server);
    let held =
        [Held::open("fh", "mh", "10.9.0.2", clock), Held::open("mh", "fh", "10.9.0.1", clock)];
    let busy = Busy::watch();
    let left = event(station);
    let at = clock.now();
    if left.is_some() {
        until("the kernel has waited", || clock.now() >= at + LIMIT_OTHERS);
    }
    // The first connection, and some more.
    let opened: Vec<(u32, Span)> = (0..10).map(|_| open(server)).collect();
    println!("new connections opened after {:?}", opened.iter().map(|o| o.1).max());
    assert!(opened.iter().all(|(again, _)| *again == 0), "a SYN was lost: {opened:?}");
    let reset = held.map(Held::reset).into_iter().max().unwrap().since(at);
    let longest = busy.longest();
    println!("all ends reset after {reset:?}; a thread waited for up to {longest:?}");
    // The load delays the kernel's timers and this test's threads as much as other threads.
    assert!(reset <= Span::secs(1) + longest * 4, "{reset:?}, others {longest:?}");
    assert_eq!(open(server).0, 0);
    if let Some(station) = left {
        station.signal(Signal::SIGCONT);
        // The station works again: new transfers complete.
        transfer("fh", "mh", "10.9.0.2", 2_000_000);
        transfer("mh", "fh", "10.9.0.1", 2_000_000);
        station.kill();
    }
    for host in ["fh", "mh"] {
        assert_eq!(counter(host, "Tcp", "InCsumErrors"), 0);
    }
    clear();
}

fn clear() {
    let index = |name: &str| nix::net::if_::if_nametoindex(name).unwrap();
    inside("bs", move || ["bl", "br"].map(|name| base::clear(index(name)).unwrap()));
}

fn unwire() {
    sh("ip netns del fh; ip netns del bs; ip netns del mh");
}

#[test]
fn a_station_that_dies_lets_new_connections_pass_and_the_ends_of_others_are_reset() {
    alone_as_root(
        "a_station_that_dies_lets_new_connections_pass_and_the_ends_of_others_are_reset",
        || {
            for offload in [false, true] {
                wire(Wires { offload, ..Wires::default() });
                fails_open(|station| {
                    station.kill();
                    None
                });
                unwire();
            }
        },
    );
}

#[test]
fn a_station_that_hangs_lets_new_connections_pass_and_the_ends_of_others_are_reset() {
    alone_as_root(
        "a_station_that_hangs_lets_new_connections_pass_and_the_ends_of_others_are_reset",
        || {
            for offload in [false, true] {
                wire(Wires { offload, ..Wires::default() });
                fails_open(|station| {
                    station.stop();
                    Some(station)
                });
                unwire();
            }
        },
    );
}

/// The first packet after a long silence of all hosts passes as soon as other packets.
#[test]
fn a_station_that_hangs_while_nothing_passes_holds_no_connection_up() {
    alone_as_root("a_station_that_hangs_while_nothing_passes_holds_no_connection_up", || {
        wire(Wires::default());
        let server = echo_server();
        let station = Far::start("split");
        open(server);
        pause(500);
        station.stop();
        pause(300);
        assert_eq!(open(server).0, 0, "its SYN was left to a station that does not run");
        station.kill();
        clear();
    });
}

/// Control of a stepwise connection: `next` makes the client send, `end` returns the number of received bytes.
struct Steps {
    next: Sender<()>,
    end: JoinHandle<usize>,
}

/// Opens a connection whose client sends 100 kB at each step.
fn stepwise(addr: &'static str) -> Steps {
    let (sender, addresses) = channel();
    let end = within("mh", move || {
        let listener = TcpListener::bind((addr, 0)).unwrap();
        sender.send(listener.local_addr().unwrap()).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        setsockopt(&stream, ReceiveTimeout, &TimeVal::new(120, 0)).unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        assert!(all.iter().all(|byte| *byte == 5));
        all.len()
    });
    let address = addresses.recv().unwrap();
    let (next, step) = channel::<()>();
    let (opened, is_open) = channel();
    within("fh", move || {
        let mut stream = TcpStream::connect(address).unwrap();
        opened.send(()).unwrap();
        while step.recv().is_ok() {
            stream.write_all(&[5; 100_000]).unwrap();
        }
    });
    is_open.recv().unwrap();
    Steps { next, end }
}

/// After the station continues, a connection that the kernel has passed in the meantime remains unsplit, and a split connection
/// that was silent continues.
#[test]
fn bypassed_and_silent_connections_survive_a_station_pause() {
    alone_as_root("bypassed_and_silent_connections_survive_a_station_pause", || {
        wire(Wires::default());
        let server = echo_server();
        let station = Far::start("split");
        let silent = stepwise("10.9.0.2");
        silent.next.send(()).unwrap();
        pause(300);
        station.stop();
        pause(1000);
        let passed = stepwise("10.9.0.2");
        passed.next.send(()).unwrap();
        pause(100);
        station.signal(Signal::SIGCONT);
        // A segment that arrives before the station runs again would be answered by a reset.
        until("the station splits again", || {
            inside("fh", move || shifts(&TcpStream::connect(server).unwrap()) != shifts_of_hosts())
        });
        for steps in [silent, passed] {
            for _ in 0..3 {
                steps.next.send(()).unwrap();
                pause(20);
            }
            drop(steps.next);
            assert_eq!(steps.end.join().unwrap(), 400_000);
        }
        station.kill();
        clear();
    });
}

/// Stops the station for `ms` milliseconds during a transfer of 40 MB. Returns whether the transfer was complete, and the actual
/// duration of the stop. A transfer that begins afterwards must be complete.
fn arrives_past_a_pause_of(ms: u64) -> (bool, Span) {
    const BYTES: usize = 40_000_000;
    loop {
        let station = Far::start("split");
        let received = Arc::new(AtomicUsize::new(0));
        let seen = received.clone();
        let other = thread::spawn(move || watched_transfer("fh", "mh", "10.9.0.2", BYTES, &seen));
        while received.load(Ordering::Relaxed) == 0 {
            thread::yield_now();
        }
        let clock = Clock::start();
        station.signal(Signal::SIGSTOP);
        let is_under_way = received.load(Ordering::Relaxed) < BYTES / 2;
        pause(ms);
        station.signal(Signal::SIGCONT);
        let paused = clock.now().since(Time::ZERO);
        let whole = other.join().is_ok();
        transfer("fh", "mh", "10.9.0.2", 1_000_000);
        station.kill();
        if is_under_way {
            return (whole, paused);
        }
    }
}

#[test]
fn connections_that_end_at_a_station_outlast_a_pause() {
    alone_as_root("connections_that_end_at_a_station_outlast_a_pause", || {
        wire(Wires::default());
        // The kernel waits for 0.5 s. On a busy machine a stop of 0.2 s may become as long.
        let brief = (0..10).map(|_| arrives_past_a_pause_of(200));
        let brief = brief.into_iter().find(|(_, paused)| *paused < Span::millis(350));
        assert!(brief.unwrap().0, "split connections did not outlast a pause");
        clear();
        unwire();
    });
}
