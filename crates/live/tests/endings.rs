//! Ways in which connections open and end: both hosts see the same through a station as through a bridge.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::time::Duration;

use lasthop_observe::Nothing;
use lasthop_path::Stage;
use nix::errno::Errno;
use nix::sys::socket::sockopt::{Linger, OobInline, ReuseAddr, TcpMaxSeg};
use nix::sys::socket::{
    AddressFamily, Backlog, MsgFlags, SockFlag, SockType, SockaddrStorage, bind, connect, listen,
    send, setsockopt, socket,
};
use nix::{setsockopt_impl, sockopt_impl};

use crate::common::*;
use crate::vanishing::ends;

sockopt_impl!(
    /// Options of IP packets (ip(7)).
    IpOptions,
    SetOnly,
    libc::IPPROTO_IP,
    libc::IP_OPTIONS,
    u32
);

/// Scripts of a client `c` and a server `s`; the server accepts at its first step. Steps: `wN` write N bytes, `bN` write N
/// times one byte, `g` write until both buffers are full, `rN` read N bytes, `p` wait for a byte without reading it, `e` read
/// to the end, `f` and `d` shut down writing and reading, `x` close, `k` close by a reset, `o` send urgent data, `i` receive
/// it in line, `l` close the listener, `zN` wait for N ms.
const SCRIPTS: &[&str] = &[
    // Orderly ends, by either end first, before and after data, before the server accepts.
    "c:x s:e s:x",
    "s:x c:e c:x",
    "c:w100 c:x s:e s:x",
    "s:w100 s:x c:e c:x",
    "c:w100 s:r100 s:w100 c:r100 c:x s:e s:x",
    "c:w300000 c:x s:e s:x",
    "s:w300000 s:x c:e c:x",
    "c:x s:w1 s:z100 s:w1",
    "s:x c:w1 c:z100 c:w1",
    // Half-closed connections.
    "c:f s:e s:w100 s:x c:e",
    "s:f c:e c:w100 c:x s:e",
    "c:f s:e s:w300000 s:x c:e",
    "c:w100 c:f s:e s:w5 c:r5 s:w5 c:r5 s:f c:e",
    "c:f s:f s:e c:e",
    "s:w1 s:f c:w300000 c:f s:e c:e",
    // Unread data: the end that closes resets.
    "c:w100 s:p s:x c:e",
    "s:w100 c:p c:x s:e",
    "c:w300000 s:p s:x c:e",
    "c:w100 s:p s:f s:x c:e",
    // Resets.
    "c:k s:e",
    "s:z1 s:k c:e",
    "c:w100 s:r100 c:k s:e",
    "s:w100 c:r100 s:k c:e",
    "c:w100 s:r100 s:k c:z50 c:w1 c:e",
    "c:g c:k s:e",
    "s:g s:k c:e",
    "c:f s:e s:k c:e",
    "c:l c:e",
    "c:w100 c:l c:e",
    // Full buffers and closed windows.
    "c:g c:x s:e s:x",
    "s:g s:x c:e c:x",
    "c:g s:g c:f s:f s:e c:e",
    // Shut for reading: data is acknowledged and discarded.
    "c:d s:w100 s:z50 s:f c:f s:e",
    "s:d c:w100 c:z50 c:f s:f c:e",
    // Urgent data, out of line and in line.
    "c:o s:z50 c:w5 c:f s:e",
    "s:z1 s:i c:w5 c:o c:w5 c:f s:e",
    "s:o c:z50 s:w5 s:f c:e",
    // Small writes.
    "c:b200 c:f s:e",
    "s:b200 s:f c:e",
    "c:b50 s:r50 s:b50 c:r50 c:x s:e s:x",
];

/// A property of the client's socket.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Client {
    Plain,
    /// A maximum segment size of 100 bytes.
    SmallSegments,
    /// The option "router alert" in each packet.
    IpOptions,
}

/// A socket in a namespace that is bound to `own`.
fn bound(host: &str, own: SocketAddr) -> OwnedFd {
    inside(host, move || {
        let family = if own.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
        let fd = socket(family, SockType::Stream, SockFlag::empty(), None).unwrap();
        setsockopt(&fd, ReuseAddr, &true).unwrap();
        bind(fd.as_raw_fd(), &SockaddrStorage::from(own)).unwrap();
        fd
    })
}

/// A listener of the fixed host, whose queue has room for `backlog` connections and one more.
fn listener(address: SocketAddr, backlog: i32) -> TcpListener {
    let fd = bound("fh", address);
    listen(&fd, Backlog::new(backlog).unwrap()).unwrap();
    TcpListener::from(fd)
}

fn connects(fd: &OwnedFd, to: SocketAddr) -> nix::Result<()> {
    connect(fd.as_raw_fd(), &SockaddrStorage::from(to))
}

/// One end of a connection, and the number of bytes that it has sent.
struct End {
    stream: Option<TcpStream>,
    sent: usize,
}

impl End {
    fn new(stream: TcpStream) -> End {
        let limit = Some(Duration::from_secs(120));
        stream.set_read_timeout(limit).unwrap();
        stream.set_nodelay(true).unwrap();
        End { stream: Some(stream), sent: 0 }
    }

    /// Executes a step. Returns its result, if there is one; `expected` is the number of bytes that the other end has sent.
    fn step(&mut self, step: &str, expected: usize) -> Option<String> {
        let (what, count) = step.split_at(1);
        let count = count.parse().unwrap_or(0);
        let mut stream = self.stream.as_ref()?;
        let kind = |result: std::io::Result<()>| result.err().map(|error| error.kind().to_string());
        match what {
            "w" | "b" => {
                self.sent += count;
                let pieces = if what == "w" { (1, count) } else { (count, 1) };
                kind((0..pieces.0).try_for_each(|_| stream.write_all(&vec![7; pieces.1])))
            }
            "g" => {
                stream.set_write_timeout(Some(Duration::from_millis(50))).unwrap();
                let full = loop {
                    match stream.write(&[7; 1 << 16]) {
                        Ok(count) => self.sent += count,
                        Err(error) => break error.kind(),
                    }
                };
                (full != ErrorKind::WouldBlock).then(|| full.to_string())
            }
            "r" => kind(stream.read_exact(&mut vec![0; count])),
            "p" => kind(stream.peek(&mut [0]).map(drop)),
            "e" => {
                let mut received = Vec::new();
                Some(match stream.read_to_end(&mut received) {
                    Ok(count) if count == expected => "all".to_owned(),
                    Ok(count) => format!("{count} of {expected}"),
                    Err(error) => error.kind().to_string(),
                })
            }
            "f" => kind(stream.shutdown(Shutdown::Write)),
            "d" => kind(stream.shutdown(Shutdown::Read)),
            "o" => send(stream.as_raw_fd(), b"!", MsgFlags::MSG_OOB).err().map(|e| e.to_string()),
            "i" => setsockopt(stream, OobInline, &true).err().map(|error| error.to_string()),
            "k" => {
                let at_once = libc::linger { l_onoff: 1, l_linger: 0 };
                setsockopt(stream, Linger, &at_once).unwrap();
                self.stream = None;
                None
            }
            "x" => {
                self.stream = None;
                None
            }
            _ => {
                pause(count as u64);
                None
            }
        }
    }
}

/// The results of the steps of a script, as `STEP RESULT`.
fn play(script: &str, kind: Client, to: SocketAddr) -> String {
    let mut accepts = Some(listener(to, 16));
    let own = SocketAddr::new(if to.is_ipv4() { MOBILE } else { MOBILE6 }.parse().unwrap(), 0);
    let fd = bound("mh", own);
    match kind {
        Client::Plain => {}
        Client::SmallSegments => setsockopt(&fd, TcpMaxSeg, &100).unwrap(),
        Client::IpOptions => {
            setsockopt(&fd, IpOptions, &u32::from_ne_bytes([148, 4, 0, 0])).unwrap();
        }
    }
    connects(&fd, to).unwrap();
    let (mut client, mut server) = (End::new(TcpStream::from(fd)), None);
    let mut results = vec![format!("{kind:?} {script}:")];
    for step in script.split(' ') {
        let (end, what) = step.split_at(2);
        if what == "l" {
            // The connection is established at the server too once it has data, or after a moment.
            pause(20);
            accepts = None;
            continue;
        }
        if let (None, "s:", Some(listener)) = (&server, end, &accepts) {
            server = Some(End::new(listener.accept().unwrap().0));
        }
        let sent = [client.sent, server.as_ref().map_or(0, |end| end.sent)];
        let result = match end {
            "c:" => client.step(what, sent[1]),
            _ => server.as_mut().and_then(|end| end.step(what, sent[0])),
        };
        results.extend(result.map(|result| format!("{step} {result}")));
    }
    results.join(" ")
}

const FIXED: &str = "10.9.0.1";
const MOBILE: &str = "10.9.0.2";
const FIXED6: &str = "fd00:9::1";
const MOBILE6: &str = "fd00:9::2";

fn at(address: &str, port: u16) -> SocketAddr {
    SocketAddr::new(address.parse().unwrap(), port)
}

/// The result of an attempt of the mobile host to connect, which gives up after a while.
fn attempt(to: SocketAddr) -> String {
    inside("mh", move || match TcpStream::connect_timeout(&to, Duration::from_millis(300)) {
        Ok(_) => "opened".to_owned(),
        Err(error) => error.kind().to_string(),
    })
}

/// No listener; a silent host; routers that reject; a full backlog.
fn openings(port: u16) -> Vec<String> {
    let refused = [at(FIXED, port), at(FIXED6, port)].map(attempt);
    let other = ["10.9.0.77", "10.8.0.1", "10.8.1.1"].map(|address| attempt(at(address, port)));
    let full = listener(at(FIXED, port), 0);
    let opened: Vec<TcpStream> =
        vec![inside("mh", move || TcpStream::connect(at(FIXED, port)).unwrap())];
    pause(20);
    let next = attempt(at(FIXED, port));
    drop((full, opened));
    refused.into_iter().chain(other).chain([next]).collect()
}

/// The same two ports again, after the server has closed first, or both have reset.
fn reopened(port: u16) -> Vec<String> {
    let listener = listener(at(FIXED, port), 16);
    let results = ["s:x c:e c:x", "s:x c:e c:x", "c:k s:e", "s:x c:e c:x"].map(|script| {
        let fd = bound("mh", at(MOBILE, port));
        // The last ACK of the earlier connection may still be under way.
        until("the ports are free", || match connects(&fd, at(FIXED, port)) {
            Err(Errno::EADDRNOTAVAIL) => false,
            result => {
                result.unwrap();
                true
            }
        });
        let mut client = End::new(TcpStream::from(fd));
        let mut server = End::new(listener.accept().unwrap().0);
        let steps = script.split(' ').filter_map(|step| match step.split_at(2) {
            ("c:", what) => client.step(what, 0),
            (_, what) => server.step(what, 0),
        });
        steps.collect::<Vec<_>>().join(" ")
    });
    results.into()
}

/// Both hosts connect to each other. The first SYN is lost, since the other host has not this link-layer address.
fn simultaneous(port: u16) -> Vec<String> {
    let mac = sh("ip netns exec mh cat /sys/class/net/mr/address");
    let neighbour = |mac: &str| {
        sh(&format!("ip -n fh neigh replace {MOBILE} lladdr {mac} dev fl nud permanent"));
    };
    let (one, other) = (bound("fh", at(FIXED, port)), bound("mh", at(MOBILE, port)));
    neighbour("02:00:00:00:00:77");
    let one = TcpStream::from(one);
    one.set_nonblocking(true).unwrap();
    let first = connect(one.as_raw_fd(), &SockaddrStorage::from(at(MOBILE, port)));
    assert_eq!(first, Err(Errno::EINPROGRESS));
    neighbour(mac.trim());
    connects(&other, at(FIXED, port)).unwrap();
    one.set_nonblocking(false).unwrap();
    let (mut one, mut other) = (End::new(one), End::new(TcpStream::from(other)));
    let steps = [
        other.step("w100", 0),
        one.step("r100", 100),
        one.step("w100", 0),
        one.step("x", 0),
        other.step("e", 100),
    ];
    sh(&format!("ip -n fh neigh del {MOBILE} dev fl"));
    steps.into_iter().flatten().collect()
}

/// The results of all connections, to ports after `port`.
fn results(mut port: u16) -> Vec<String> {
    let mut next = || {
        port += 1;
        port
    };
    let mut all = Vec::new();
    for (i, script) in SCRIPTS.iter().enumerate() {
        let address = if i % 3 == 2 { FIXED6 } else { FIXED };
        all.push(play(script, Client::Plain, at(address, next())));
    }
    for kind in [Client::SmallSegments, Client::IpOptions] {
        for script in ["c:w30000 s:r30000 s:w30000 c:r30000 c:x s:e s:x", "c:w100 s:p s:x c:e"] {
            all.push(play(script, kind, at(FIXED, next())));
        }
    }
    for (name, results) in [
        ("openings", openings(next())),
        ("reopened", reopened(next())),
        ("simultaneous", simultaneous(next())),
    ] {
        all.push(format!("{name}: {}", results.join(", ")));
    }
    all
}

fn wires() {
    wire(Wires { ipv6: true, ..Wires::default() });
    sh("ip -n mh neigh add 10.9.0.77 lladdr 02:00:00:00:00:77 dev mr nud permanent
        ip -n mh route add 10.8.0.0/16 via 10.9.0.1
        ip netns exec fh sysctl -qw net.ipv4.ip_forward=1 net.ipv4.icmp_ratelimit=0
        ip -n fh route add unreachable 10.8.0.0/24; ip -n fh route add prohibit 10.8.1.0/24");
}

const AGENTS: [&str; 3] = ["split", "m-tcp", "snoop"];

fn agent(name: &str) -> Stage {
    match name {
        "snoop" => snoop(),
        name => ends(name == "m-tcp"),
    }
}

/// Compares all results through a bridge and through stations with agents.
fn compare(by: By) {
    wires();
    sh("ip -n bs link add br0 type bridge; ip -n bs link set dev br0 up
        ip -n bs link set dev bl master br0; ip -n bs link set dev br master br0");
    let expected = results(7000);
    sh("ip -n bs link del br0");
    // Ports that a closed connection has used are in TIME-WAIT.
    for (first, name) in (8000..).step_by(1000).zip(AGENTS) {
        let station = station_by(by, Nothing, move || vec![agent(name)]);
        let found = results(first);
        let differ: Vec<_> = expected.iter().zip(&found).filter(|(a, b)| a != b).collect();
        station.stop();
        assert!(differ.is_empty(), "{name} by {by:?} differs from a bridge: {differ:#?}");
    }
}

#[test]
fn connections_end_as_on_a_bridge() {
    alone("connections_end_as_on_a_bridge", || compare(By::Sockets));
}

#[test]
fn connections_end_as_on_a_bridge_by_the_kernel() {
    alone_as_root("connections_end_as_on_a_bridge_by_the_kernel", || compare(By::Kernel));
}
