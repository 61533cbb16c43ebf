//! `lasthop link` between two hosts, over a path on which a station drops packets in both directions.
//!
//! ```text
//!   a (10.9.0.1, inside 10.8.0.1) -- sa | station | sb -- (10.9.0.2, inside 10.8.0.2) b -- (10.7.0.0/24) -- c
//! ```
//!
//! It needs root and /dev/net/tun; otherwise it tests refusals only.
mod roaming;
mod world;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::TcpCongestion;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use world::{LASTHOP, count, inside, link, lose, on, sh, station, status, until, world};

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

/// Host `b` echoes a file that `a` sends, and `a` compares the echo.
fn there_and_back(address: &'static str, control: Option<&'static str>, bytes: usize, seed: u64) {
    with_a_pause("b", address, control, &noise(bytes, seed), || {});
}

/// The same with another host; calls `halfway` after half of the file was written.
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
        let (mut stream, _) = listener.accept().expect("a client connects");
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
fn files_arrive_at_loss_rates_up_to_30_percent() {
    inside("files_arrive_at_loss_rates_up_to_30_percent", || {
        world();
        let _station = station();
        let _b = link("b");
        let a = link("a");
        a.wait_for_line("up");
        for percent in [1, 5, 15, 30] {
            lose(percent);
            for control in ["cubic", "bbr"] {
                let address = if control == "cubic" { "10.8.0.2" } else { "fd08::2" };
                there_and_back(address, Some(control), 200_000, percent.into());
            }
        }
        until("all has been sent", || count(&status("a"), "packets", "bytes-in") > 1_600_000);
        let counters = status("a");
        assert_eq!(count(&counters, "session", "sessions"), 1, "{counters}");
        assert!(count(&counters, "repeated", "link-nack") > 20, "{counters}");
        assert_eq!(counters["keyed"], true);
        assert_eq!(count(&counters, "packets", "session-lost"), 0, "{counters}");
    });
}

/// The same by QUIC, over UDP.
fn there_and_back_by_quic(address: SocketAddr, bytes: usize, seed: u64) {
    let (ready, is_ready) = std::sync::mpsc::channel();
    let echo = on("b", move || {
        crate::quic::runtime().block_on(async {
            let (endpoint, certificate) = crate::quic::serve(address);
            ready.send(certificate).unwrap();
            let connection = endpoint.accept().await.expect("a client connects");
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
        crate::quic::runtime().block_on(async {
            let (endpoint, connection) = crate::quic::call(address, certificate).await;
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
        a.wait_for_line("up");
        for percent in [1, 5, 15, 30] {
            lose(percent);
            let before = count(&status("a"), "repeated", "link-nack");
            // A few packets may all arrive.
            until("UDP is repeated", || {
                let to = "10.8.0.2:7443".parse().unwrap();
                there_and_back_by_quic(to, 200_000, percent.into());
                count(&status("a"), "repeated", "link-nack") > before
            });
        }
        until("all has been sent", || count(&status("a"), "packets", "bytes-in") > 800_000);
        let counters = status("a");
        assert_eq!(count(&counters, "session", "sessions"), 1, "{counters}");
        assert_eq!(count(&counters, "packets", "session-lost"), 0, "{counters}");
    });
}

#[test]
fn a_reduced_path_mtu_is_detected() {
    inside("a_reduced_path_mtu_is_detected", || {
        world();
        let _station = station();
        // `b` is a router between the ends: it reports packets that are too long for its link to `c` by ICMP.
        sh("ip netns exec b sh -c 'echo 1 > /proc/sys/net/ipv4/ip_forward'; \
            ip -n a route add 10.7.0.0/24 via 10.9.0.2; ip -n c route add 10.9.0.0/24 via 10.7.0.2; \
            sed 's/, .fd08[^]]*//' /run/b.toml > /run/c.toml; \
            sed -i 's/, .fd08[^]]*//; s/10.9.0.2/10.7.0.3/' /run/a.toml");
        let c = link("c");
        let a = link("a");
        a.wait_for_line("up");
        c.wait_for_line("up");
        for host in ["a", "c"] {
            until("the path is as wide as Ethernet", || status(host)["mtu"] == 1395);
        }
        with_a_pause("c", "10.8.0.2", None, &noise(2_000_000, 1), || {
            assert_eq!(count(&status("a"), "refused", "sent-in-pieces"), 0);
            sh("ip -n b link set eth1 mtu 1280; ip -n c link set eth0 mtu 1280");
        });
        // The path MTU minus 28 bytes of IPv4 and UDP, 30 of the tunnel, and a little more than 15 bits for
        // each of 256 packets.
        let left = 1280 - 28 - 30 - 15 - 32;
        for host in ["a", "c"] {
            until("the interface is narrower", || status(host)["mtu"] == left);
            assert!(
                sh(&format!("ip -n {host} link show lasthop0")).contains(&format!("mtu {left}"))
            );
            let counters = status(host);
            assert_eq!(count(&counters, "session", "sessions"), 1, "{counters}");
        }
        // Datagrams in flight were too long then, but had to arrive nevertheless.
        let counters = status("a");
        assert!(count(&counters, "refused", "sent-in-pieces") > 0, "{counters}");
        with_a_pause("c", "10.8.0.2", None, &noise(200_000, 2), || {});
    });
}

#[test]
fn a_connection_survives_the_kill_of_a_link_end() {
    inside("a_connection_survives_the_kill_of_a_link_end", || {
        world();
        let _station = station();
        let mut b = link("b");
        let a = link("a");
        a.wait_for_line("up");
        b.wait_for_line("up");
        let listener = on("b", || TcpListener::bind("10.8.0.2:7001").expect("it listens"));
        let listener = listener.join().unwrap();
        let client = on("a", || TcpStream::connect("10.8.0.2:7001").expect("the peer is there"));
        let (mut server, _) = listener.accept().unwrap();
        let mut client = client.join().unwrap();
        for round in 0..2_u8 {
            // The socket of `b` was bound to the interface's address, which returns with the interface.
            b.end(Signal::SIGKILL);
            b = link("b");
            a.wait_for_line("up");
            client.write_all(&[round; 1000]).unwrap();
            let mut got = [9; 1000];
            server.read_exact(&mut got).unwrap();
            assert_eq!(got, [round; 1000]);
            server.write_all(&got).unwrap();
            client.read_exact(&mut got).unwrap();
        }
        until("three sessions", || count(&status("a"), "session", "sessions") == 3);
        assert_eq!(count(&status("a"), "session", "forgotten"), 2);
        // After a kill the caller reconnects immediately; a normal end closes the session.
        let before = count(&status("b"), "session", "sessions");
        a.end(Signal::SIGKILL);
        let a = link("a");
        a.wait_for_line("up");
        until("a new session", || count(&status("b"), "session", "sessions") > before);
        assert_eq!(a.end(Signal::SIGINT), Some(0));
        b.wait_for_line("down");
        until("a goodbye", || count(&status("b"), "session", "goodbyes") == 1);
        assert!(!sh("ip -n a link").contains("lasthop0"), "the interface is gone");
        assert!(!Path::new("/run/a.sock").exists());
    });
}

#[test]
fn datagrams_of_strangers_are_counted_and_ignored() {
    inside("datagrams_of_strangers_are_counted_and_ignored", || {
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
        let mut stderr = BufReader::new(dump.stderr.take().unwrap());
        while !line.contains("listening") {
            line.clear();
            assert!(stderr.read_line(&mut line).unwrap() > 0, "tcpdump does not listen");
        }
        let _b = link("b");
        let a = link("a");
        a.wait_for_line("up");
        there_and_back("10.8.0.2", None, 100_000, 1);
        assert!(dump.wait().unwrap().success());
        let datagrams = datagrams(&fs::read("/run/dump").unwrap());
        assert_eq!(datagrams.len(), 60);
        // The status is slightly older than the present.
        until("b has seen it all", || count(&status("b"), "packets", "packets-out") > 60);
        let before = status("b");
        let sender = on("c", move || {
            let socket = UdpSocket::bind("10.7.0.3:0").unwrap();
            for datagram in &datagrams {
                let mut forged = datagram.clone();
                *forged.last_mut().unwrap() ^= 1;
                // Claims to be the newest version.
                if forged[0] == 4 {
                    forged[6] = 1;
                }
                for bytes in [datagram, &forged, &datagram[..10].to_vec()] {
                    socket.send_to(bytes, "10.7.0.2:4747").unwrap();
                }
            }
            datagrams.len() as u64
        });
        let sent = sender.join().unwrap();
        let more =
            |now: &Value, key: &str| count(now, "session", key) - count(&before, "session", key);
        until("all are counted", || more(&status("b"), "bad-length") == sent);
        there_and_back("10.8.0.2", None, 50_000, 2);
        let now = status("b");
        assert!(more(&now, "replayed") > 10, "{now}");
        assert!(more(&now, "bad-tag") > 10, "{now}");
        assert!(more(&now, "other-session") > 10, "output of b itself: {now}");
        assert_eq!(more(&now, "sessions"), 0, "{now}");
        assert_eq!(now["peer"], before["peer"]);
    });
}

/// The UDP payloads of an Ethernet capture with IPv4 without options.
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
fn missing_or_wrong_files_are_reported_with_a_remedy() {
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
    let remedy = format!("lasthop link --keygen {}", path("key"));
    assert!(refused(&["link", &file], 2).contains(&remedy));
    fs::write(path("key"), "12345\n").unwrap();
    assert!(refused(&["link", &file, "--check"], 2).contains("64 hexadecimal digits"));
    assert!(refused(&["link", "--keygen", &path("key")], 2).contains("--force"));
    assert_eq!(fs::read_to_string(path("key")).unwrap(), "12345\n");
    refused(&["link", "--keygen", "--force", &path("key")], 0);
    assert_eq!(fs::metadata(path("key")).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(refused(&["link", &file, "--check"], 0), "");
    refused(&["link", "--keygen", &path("another")], 0);
    assert_ne!(fs::read(path("key")).unwrap(), fs::read(path("another")).unwrap());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3, "nothing else is left");
    fs::set_permissions(path("key"), fs::Permissions::from_mode(0o644)).unwrap();
    assert!(refused(&["link", &file, "--check"], 2).contains("others may read"));
    fs::set_permissions(path("key"), fs::Permissions::from_mode(0o640)).unwrap();
    assert!(refused(&["link", &file, "--check"], 2).contains("chmod 600"));
    // A unit reads the copy that systemd passes.
    fs::rename(path("another"), path("link.key")).unwrap();
    let unit = Command::new(LASTHOP)
        .args(["link", &file, "--check"])
        .env("CREDENTIALS_DIRECTORY", dir.path())
        .output()
        .unwrap();
    assert!(unit.status.success(), "{unit:?}");
    // The pipe has no writer, so a reader would block forever.
    let made = Command::new("mkfifo").arg(path("pipe")).status().unwrap();
    assert!(made.success());
    for words in [["link", &path("pipe"), "--check"], ["station", &path("pipe"), "--check"]] {
        assert!(refused(&words, 2).contains("not a regular file"));
    }
    fs::write(&file, format!("peer = \"192.0.2.1:4747\"\nkey-file = \"{}\"\n", path("pipe")))
        .unwrap();
    assert!(refused(&["link", &file, "--check"], 2).contains("not a regular file"));
    fs::write(&file, "listen = \"192.0.2.1\"\n").unwrap();
    assert!(refused(&["link", &file], 2).contains("ADDRESS:PORT"));
    fs::write(&file, "peer = \"127.0.0.1:4747\"\ntun = \"lo\"\n").unwrap();
    let message = refused(&["link", &file, "--socket", &path("socket")], 2);
    assert!(message.contains("THE TUNNEL IS OPEN"), "{message}");
    assert!(message.contains("help"), "{message}");
}
