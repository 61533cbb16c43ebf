//! Sockets of the test and programs behind a link: their environment, as root and as any user.
#![cfg(target_os = "linux")]

#[path = "../../checks/shared/can_run.rs"]
mod can_run;

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use lasthop_behind::{Link, Network};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const BYTES: usize = 150_000;

fn can_run() -> bool {
    let there = Command::new("unshare").args(["--user", "--net", "true"]).status();
    can_run::can_run(there.is_ok_and(|status| status.success()), "user namespaces")
}

/// Sends [`BYTES`] from the far host to the near one.
fn download(network: &Network) {
    let listener = network.far().listen(0).expect("a listener");
    let mut client =
        network.near().connect(listener.local_addr().expect("bound")).expect("a connection");
    let (mut server, peer) = listener.accept().expect("a client");
    assert_eq!(peer.ip(), network.near().address());
    let sent = thread::spawn(move || server.write_all(&[7; BYTES]));
    let mut received = Vec::new();
    client.read_to_end(&mut received).expect("received");
    sent.join().expect("no panic").expect("sent");
    assert_eq!(received, [7; BYTES]);
}

#[test]
fn sockets_of_two_threads_meet_the_rate_of_each_direction() {
    if !can_run() {
        return;
    }
    let network =
        Link::new().rate("8mbit").rate_back("1mbit").delay("10ms").start().expect("a link");
    assert_ne!(network.near().address(), network.far().address());
    download(&network);
    let ended = network.finish().expect("its end");
    let (down, up) = (&ended.tallied.down, &ended.tallied.up);
    assert!(down.bytes > BYTES as u64 && up.bytes < BYTES as u64, "{ended:?}");
    assert!(down.rate.is_some_and(|rate| rate < 8.1e6), "{ended:?}");
    assert!(down.lost.is_empty() && up.lost.is_empty(), "{ended:?}");
    // The duration at the rate alone.
    assert!(ended.seconds > 0.15, "{ended:?}");
}

#[test]
fn an_async_service_is_served_through_losses() {
    if !can_run() {
        return;
    }
    let network = Link::new().rate("20mbit").delay("2ms").loss("5%").start().expect("a link");
    let service = network.far().listen(0).expect("a listener");
    let client = network.near().connect(service.local_addr().expect("bound")).expect("connected");
    service.set_nonblocking(true).expect("set");
    client.set_nonblocking(true).expect("set");
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("built");
    let received = runtime.block_on(async {
        let service = tokio::net::TcpListener::from_std(service).expect("a listener");
        let served = tokio::spawn(async move {
            let (mut stream, _) = service.accept().await.expect("a client");
            stream.write_all(&[7; BYTES]).await
        });
        let mut received = Vec::new();
        let mut client = tokio::net::TcpStream::from_std(client).expect("a stream");
        client.read_to_end(&mut received).await.expect("received");
        served.await.expect("no panic").expect("sent");
        received
    });
    assert_eq!(received.len(), BYTES);
    let ended = network.finish().expect("its end");
    let lost: u64 = ended.tallied.down.lost.values().sum();
    assert!(lost > 0 && lost < ended.tallied.down.packets, "{ended:?}");
}

#[test]
fn datagrams_arrive_and_refusals_have_their_kind() {
    if !can_run() {
        return;
    }
    let network = Link::new().delay("1ms").start().expect("a link");
    let server = network.far().udp(5353).expect("a socket");
    let client = network.near().udp(0).expect("a socket");
    client.send_to(b"question", server.local_addr().expect("bound")).expect("sent");
    let mut buffer = [0; 100];
    let (length, from) = server.recv_from(&mut buffer).expect("received");
    assert_eq!((&buffer[..length], from), (&b"question"[..], client.local_addr().expect("bound")));
    let taken = network.far().udp(5353).expect_err("it is taken");
    assert_eq!(taken.kind(), ErrorKind::AddrInUse);
    let closed_port = SocketAddr::from((network.far().address(), 1));
    let refused = network.near().connect(closed_port).expect_err("no program listens");
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    // The network of the test is another.
    let outside = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let outside = outside.local_addr().expect("bound");
    let refused = network.near().connect(outside).expect_err("it is not there");
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn a_program_is_in_the_network_of_its_host_as_the_same_user() {
    if !can_run() {
        return;
    }
    let network = Link::new().delay("1ms").start().expect("a link");
    for host in [network.near(), network.far()] {
        let output = host
            .command("sh")
            .args([
                "-c",
                "id -u; ip -4 -o address show dev eth0; echo \"$LASTHOP_ADDRESS\" ''; exit 7",
            ])
            .stdin(Stdio::null())
            .output()
            .expect("it runs");
        assert_eq!(output.status.code(), Some(7), "{output:?}");
        let text = String::from_utf8_lossy(&output.stdout);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], nix::unistd::geteuid().to_string(), "{text}");
        assert!(lines[1].contains(&format!("inet {}", host.address())), "{text}");
        assert_eq!(lines[2].trim(), host.address().to_string());
    }
    let missing = network.near().command("/no/such/program").output().expect("a process");
    assert_eq!(missing.status.code(), Some(127));
}

#[test]
fn the_same_seed_gives_the_same_losses() {
    if !can_run() {
        return;
    }
    let lost = |seed: u64| {
        let network = Link::new().loss("30%").seed(seed).start().expect("a link");
        let (far, near) =
            (network.far().udp(0).expect("a socket"), network.near().udp(7000).expect("a socket"));
        let to = near.local_addr().expect("bound");
        for number in 0..60u8 {
            far.send_to(&[number], to).expect("sent");
        }
        // The last arriving datagram is determined only when the link is down.
        let ended = network.finish().expect("its end");
        near.set_nonblocking(true).expect("set");
        let mut arrived = Vec::new();
        let mut buffer = [0; 1];
        while near.recv(&mut buffer).is_ok() {
            arrived.push(buffer[0]);
        }
        (arrived, ended.tallied.down.lost.values().sum::<u64>())
    };
    let (first, again, other) = (lost(1), lost(1), lost(2));
    assert!(first.1 > 0 && !first.0.is_empty(), "{first:?}");
    // The keeper may have ended before it forwarded the last ones.
    let common = first.0.len().min(again.0.len());
    assert_eq!(first.0[..common], again.0[..common]);
    assert_ne!(first.0, other.0);
}

#[test]
fn invalid_links_are_refused_with_a_remedy() {
    let bare = Link::new().loss("1").start().expect_err("everything is lost");
    assert!(bare.to_string().contains("write `1%`"), "{bare}");
    if !can_run() {
        return;
    }
    for (link, part) in [
        (Link::new().rate("fast"), "fast"),
        (Link::new().set("link.jitterr=5ms"), "jitterr"),
        (Link::new().scenario("path = 7"), "hosts"),
        (Link::new().rate("\"\n"), "rate"),
    ] {
        let error = link.start().expect_err(part);
        assert!(error.message.contains(part) && !error.help.is_empty(), "{error:?}");
    }
}

#[test]
fn dropping_a_network_stops_forwarding_but_not_its_programs() {
    if !can_run() {
        return;
    }
    let network = Link::new().start().expect("a link");
    let mut sleeper = network
        .near()
        .command("sh")
        .args(["-c", "echo; exec sleep 1000"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut ready = sleeper.stdout.take().expect("a pipe");
    ready.read_exact(&mut [0]).expect("it runs");
    let listener = network.far().listen(0).expect("a listener");
    let to = listener.local_addr().expect("bound");
    let mut client = network.near().connect(to).expect("a connection");
    let (mut server, _) = listener.accept().expect("a client");
    server.write_all(b"before").expect("sent");
    client.read_exact(&mut [0; 6]).expect("received");
    drop(network);
    assert!(sleeper.try_wait().expect("asked").is_none());
    sleeper.kill().and_then(|()| sleeper.wait()).expect("ended");
    // Forwarding has stopped.
    server.write_all(b"after").expect("taken by the kernel");
    client.set_read_timeout(Some(Duration::from_millis(200))).expect("set");
    assert!(client.read(&mut [0; 5]).is_err());
}
