//! The programs on host `b`, and their expected results.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use socket2::{Domain, Protocol, Socket, Type};

use super::super::world::enter;
use super::servers::noise;
use super::{FILES, Found, Scale, on, served};
use crate::quic as quinn_ends;

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);

/// The result of `work`, and its duration in seconds.
#[expect(clippy::disallowed_methods, reason = "a measurement")]
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let begin = Instant::now();
    (work(), begin.elapsed().as_secs_f64())
}

fn demand(holds: bool, message: impl FnOnce() -> String) -> Found {
    if holds { Ok(()) } else { Err(message()) }
}

fn same(subject: &str, sent: &[u8], got: &[u8]) -> Found {
    demand(sent == got, || format!("{subject}: {} bytes were sent, {} came", sent.len(), got.len()))
}

/// A kernel counter of a host.
fn counter(host: &str, group: &str, name: &str) -> Result<u64, String> {
    let text = on(host, &["cat", "/proc/net/netstat", "/proc/net/snmp"])?;
    let head = format!("{group}: ");
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(&head));
    let (names, values) = (lines.next().unwrap_or(""), lines.next().unwrap_or(""));
    let mut both = names.split(' ').zip(values.split(' '));
    let value = both.find(|(known, _)| *known == name).map(|(_, value)| value.parse());
    value.and_then(Result::ok).ok_or_else(|| format!("no counter {name}"))
}

/// Asserts that `work` increments a counter of host `a`, if segments pass unchanged.
fn counted(scale: &Scale, group: &str, name: &str, work: impl FnOnce() -> Found) -> Found {
    let before = counter("a", group, name)?;
    work()?;
    let after = counter("a", group, name)?;
    demand(!scale.whole || after > before, || format!("{name} did not grow"))
}

/// `to` requests bytes from `from`, and continues until it has them.
fn iperf(from: &str, to: &str, words: &[&str], bytes: usize) -> Result<Value, String> {
    let server = if from == "a" { SERVER } else { CLIENT }.to_string();
    let bytes = bytes.to_string();
    let base = ["iperf3", "-c", &server, "--json", "-R", "-n", &bytes];
    let output = on(to, &[&base, words].concat())?;
    serde_json::from_str(&output).map_err(|error| error.to_string())
}

pub fn iperf3(scale: &Scale) -> Found {
    for (from, to, flows) in [("a", "b", "1"), ("b", "a", "1"), ("a", "b", "8")] {
        let report = iperf(from, to, &["-P", flows], scale.bytes)?;
        let [sent, received] =
            ["sum_sent", "sum_received"].map(|key| report["end"][key]["bytes"].as_u64());
        let whole = received >= Some(scale.bytes as u64) && received <= sent;
        demand(whole, || {
            let error = &report["error"];
            format!("{from} to {to}, {flows} flows: {sent:?}, {received:?}, {error}")
        })?;
    }
    Ok(())
}

/// The rate is low enough for an unoptimised program. Only a busy host may lose datagrams in its buffer,
/// which its kernel counts.
pub fn iperf3_udp(_: &Scale) -> Found {
    for (from, to) in [("a", "b"), ("b", "a")] {
        let full = || counter(to, "Udp", "RcvbufErrors");
        let before = full()?;
        let report = iperf(from, to, &["-u", "-b", "20M", "-l", "1200"], 1_000_000)?;
        let full = full()? - before;
        let lost = report["end"]["sum"]["lost_packets"].as_u64();
        demand(lost.is_some_and(|lost| lost <= full), || {
            format!("{from} to {to}: {lost:?} lost, for {full} of them {to} had no room")
        })?;
    }
    Ok(())
}

fn fetch_small(more: &[&str]) -> Found {
    let urls = format!("http://10.9.0.1/small/[0-{}]", FILES - 1);
    let base = ["curl", "-sSf", "-o", "/run/files/got/#1", &urls];
    on("b", &[&base, more].concat())?;
    for i in 0..FILES {
        let got = fs::read(format!("/run/files/got/{i}")).map_err(|error| error.to_string())?;
        same(&format!("small/{i}"), &served(&format!("small/{i}")), &got)?;
        fs::remove_file(format!("/run/files/got/{i}")).map_err(|error| error.to_string())?;
    }
    Ok(())
}

pub fn small_files(_: &Scale) -> Found {
    fetch_small(&[])
}

pub fn small_files_at_once(_: &Scale) -> Found {
    fetch_small(&["--parallel", "--parallel-max", "30"])
}

fn fetch_large(words: &[&str]) -> Found {
    on("b", words)?;
    let got = fs::read("/run/files/got/large").map_err(|error| error.to_string())?;
    fs::remove_file("/run/files/got/large").map_err(|error| error.to_string())?;
    same("large", &served("large"), &got)
}

pub fn tls(_: &Scale) -> Found {
    let to = "/run/files/got/large";
    let url = "https://10.9.0.1/large";
    fetch_large(&["curl", "-sSf", "--cacert", "/run/cert.pem", "-o", to, url])
}

/// The first connection receives a cookie, and the second one uses it.
pub fn fast_open(scale: &Scale) -> Found {
    let fetch = || {
        fetch_large(&[
            "curl",
            "-sSf",
            "--tcp-fastopen",
            "-o",
            "/run/files/got/large",
            "http://10.9.0.1/large",
        ])
    };
    counted(scale, "TcpExt", "TCPFastOpenPassive", || {
        fetch()?;
        fetch()
    })
}

pub fn scp(_: &Scale) -> Found {
    let options = [
        "-o",
        "StrictHostKeyChecking=no",
        "-o",
        "UserKnownHostsFile=/dev/null",
        "-o",
        "LogLevel=ERROR",
    ];
    let words = ["scp", "-q", "-F", "none", "-i", "/run/ssh/user"];
    let (from, to) = ("root@10.9.0.1:/run/files/out/large", "/run/files/got/large");
    fetch_large(&[&words[..], &options, &[from, to]].concat())
}

pub fn rsync(_: &Scale) -> Found {
    on("b", &["rsync", "-r", "rsync://10.9.0.1/out/", "/run/files/got/all"])?;
    let output = on("b", &["diff", "-r", "/run/files/out", "/run/files/got/all"]);
    fs::remove_dir_all("/run/files/got/all").map_err(|error| error.to_string())?;
    output.map(drop)
}

/// A stream from `a` to `b` with quinn.
pub fn quic(scale: &Scale) -> Found {
    let (ready, is_ready) = channel();
    let len = scale.bytes;
    let server = thread::spawn(move || {
        enter("a");
        quinn_ends::runtime().block_on(async {
            let (endpoint, certificate) = quinn_ends::serve((SERVER, 4433).into());
            ready.send(certificate).expect("the test waits for it");
            let connection = endpoint.accept().await.expect("a client connects");
            let connection = connection.await.expect("a handshake");
            let mut stream = connection.open_uni().await.expect("a stream");
            stream.write_all(&noise(len, 0)).await.expect("it is written");
            stream.finish().expect("the end");
            connection.closed().await;
        });
    });
    let certificate = is_ready.recv().map_err(|_| "no server")?;
    let client = thread::spawn(move || {
        enter("b");
        quinn_ends::runtime().block_on(async {
            let (endpoint, connection) = quinn_ends::call((SERVER, 4433).into(), certificate).await;
            let mut stream = connection.accept_uni().await.expect("a stream");
            let got = stream.read_to_end(len).await.expect("it is read");
            connection.close(0_u32.into(), b"done");
            endpoint.wait_idle().await;
            got
        })
    });
    let got = client.join().map_err(|_| "the client failed")?;
    server.join().map_err(|_| "the server failed")?;
    same("a stream", &noise(len, 0), &got)
}

/// A name over UDP, and one whose answer needs TCP.
pub fn dns(_: &Scale) -> Found {
    for name in ["file.test", "a-name-of-more-than-twenty.test"] {
        let output = on("b", &["getent", "ahostsv4", name])?;
        demand(output.starts_with("10.9.0.77"), || format!("{name}: {output}"))?;
    }
    Ok(())
}

/// Sends bytes from `b` to `a` between sockets of this protocol.
fn stream(protocol: Option<Protocol>, len: usize) -> Found {
    let (ready, is_ready) = channel();
    let socket = move || Socket::new(Domain::IPV4, Type::STREAM, protocol).expect("a socket");
    let server = thread::spawn(move || {
        enter("a");
        let listener = socket();
        listener.set_reuse_address(true).expect("an option");
        let address: SocketAddr = (SERVER, 6000).into();
        listener.bind(&address.into()).expect("an address");
        listener.listen(1).expect("it listens");
        ready.send(()).expect("the test waits for it");
        let (mut stream, _) = listener.accept().expect("a client connects");
        stream.set_read_timeout(Some(Duration::from_secs(300))).expect("an option");
        let mut got = Vec::new();
        stream.read_to_end(&mut got).expect("it is read");
        got
    });
    is_ready.recv().map_err(|_| "no server")?;
    let client = thread::spawn(move || {
        enter("b");
        let mut stream = socket();
        let address: SocketAddr = (SERVER, 6000).into();
        stream.connect(&address.into()).expect("a connection");
        stream.write_all(&noise(len, 3)).expect("it is written");
    });
    client.join().map_err(|_| "the client failed")?;
    let got = server.join().map_err(|_| "the server failed")?;
    same("a stream", &noise(len, 3), &got)
}

pub fn mptcp(scale: &Scale) -> Found {
    counted(scale, "MPTcpExt", "MPCapableACKRX", || stream(Some(Protocol::MPTCP), scale.bytes))
}

/// Both hosts request ECN (`tcp_ecn` = 1), so data packets are marked as ECN-capable.
pub fn ecn(scale: &Scale) -> Found {
    counted(scale, "IpExt", "InECT0Pkts", || stream(None, scale.bytes))
}

/// Super-packets only with the kernel's data plane, since packet sockets cannot receive them.
pub fn vxlan(scale: &Scale) -> Found {
    for (host, own, other, dev) in [("a", 1, 2, "la"), ("b", 2, 1, "rb")] {
        let remote = format!("10.9.0.{other}");
        let words = ["type", "vxlan", "id", "5", "remote", &remote, "dstport", "4789", "dev", dev];
        on(host, &[&["ip", "link", "add", "name", "vx"], &words[..]].concat())?;
        on(host, &["ip", "addr", "add", &format!("10.7.0.{own}/24"), "dev", "vx"])?;
        on(host, &["ip", "link", "set", "dev", "vx", "up"])?;
        if !scale.wrapped {
            on(host, &["ethtool", "-K", "vx", "tso", "off", "gso", "off"])?;
        }
    }
    let got = fetch_large(&["curl", "-sSf", "-o", "/run/files/got/large", "http://10.7.0.1/large"]);
    for host in ["a", "b"] {
        on(host, &["ip", "link", "del", "dev", "vx"])?;
    }
    got
}

/// GRE and IPIP tunnels: packets of protocols that the station does not parse.
pub fn gre(_: &Scale) -> Found {
    for protocol in [47, 4] {
        let raw = move |host: &'static str, own: Ipv4Addr| {
            let made = thread::spawn(move || {
                enter(host);
                let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(protocol)));
                let socket = socket.expect("a socket");
                socket.bind(&SocketAddrV4::new(own, 0).into()).expect("an address");
                socket.set_read_timeout(Some(Duration::from_secs(60))).expect("an option");
                socket
            });
            made.join().map_err(|_| "no socket")
        };
        let (from, to) = (raw("a", SERVER)?, raw("b", CLIENT)?);
        for i in 0..50 {
            let sent = noise(20 + i * 29, i as u64);
            let address = SocketAddrV4::new(CLIENT, 0).into();
            from.send_to(&sent, &address).map_err(|error| error.to_string())?;
            let mut got = [0; 2000];
            let len = (&to).read(&mut got);
            let len = len.map_err(|error| format!("protocol {protocol}: {error}"))?;
            // A raw socket returns the IP header too.
            same("a packet", &sent, got.get(20..len).unwrap_or(&[]))?;
        }
    }
    Ok(())
}

/// Fragmented datagrams in both directions.
pub fn fragments(_: &Scale) -> Found {
    for (host, to) in [("a", "10.9.0.2"), ("b", "10.9.0.1")] {
        on(host, &["ping", "-q", "-c", "5", "-i", "0.05", "-W", "30", "-s", "30000", to])?;
    }
    Ok(())
}
