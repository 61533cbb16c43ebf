//! Hosts that fall silent or move to another link-layer address behind a station that ends connections: it is as
//! invisible as a bridge.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use lasthop_live::header::VNET;
use lasthop_live::sys::packet_socket::Inbox;
use lasthop_observe::Nothing;
use lasthop_path::Stage;
use lasthop_proto::agent::{Agent, AgentConfig, MtcpConfig, SplitConfig};
use lasthop_proto::tcp::TcpConfig;
use lasthop_proto::tcp::sender::systems::bbr;
use lasthop_proto::units::{Bytes, Span};
use lasthop_proto::wire::parse::parse;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{Ipv4Tos, KeepAlive, TcpKeepCount, TcpKeepIdle, TcpKeepInterval};

use crate::common::*;

const SERVER: &str = "10.9.0.1:7000";

/// A split connection as `agent = "split"` configures it at a station, or M-TCP.
pub fn ends(mtcp: bool) -> Stage {
    let mut tcp = TcpConfig::linux();
    (bbr::WORD.apply)(&mut tcp);
    let mtcp = mtcp.then_some(MtcpConfig { knock: Span::millis(200), channel_signals: false });
    let config = SplitConfig {
        largest: Some(Bytes(4 << 20)),
        suspects_size: true,
        mtcp,
        ..SplitConfig::new(tcp)
    };
    Stage::Agent(Box::new(Agent::new(&AgentConfig::Split(config))))
}

/// A connection from the mobile to the fixed host, after an exchange of a byte: client and server.
fn connected(listener: &TcpListener) -> (TcpStream, TcpStream) {
    let client = inside("mh", || TcpStream::connect(SERVER).unwrap());
    let (server, _) = listener.accept().unwrap();
    echo(&client, &server);
    (client, server)
}

/// Sends a byte from one end to the other, and back.
fn echo(one: &TcpStream, other: &TcpStream) {
    for (mut from, mut to) in [(one, other), (other, one)] {
        let limit = Some(Duration::from_secs(120));
        to.set_read_timeout(limit).unwrap();
        from.write_all(b"x").unwrap();
        to.read_exact(&mut [0]).expect("a byte arrives");
    }
}

fn listener() -> TcpListener {
    inside("fh", || TcpListener::bind(SERVER).unwrap())
}

/// The host neither sends nor receives: it has lost its address.
fn vanish(host: &str) {
    let (dev, last) = if host == "fh" { ("fl", 1) } else { ("mr", 2) };
    sh(&format!("ip -n {host} addr del 10.9.0.{last}/24 dev {dev}"));
}

fn planes(name: &str, test: fn(By)) {
    match name.ends_with("kernel") {
        true => alone_as_root(name, || test(By::Kernel)),
        false => alone(name, || test(By::Sockets)),
    }
}

fn silent(by: By) {
    wire(Wires::default());
    let station = station_by(by, Nothing, || vec![ends(false)]);
    let listener = listener();
    let (_client, mut server) = connected(&listener);
    vanish("mh");
    let before = station.ended().port("br").sent;
    server.set_nonblocking(true).unwrap();
    let _ = server.write(&vec![7; 300_000]);
    // Two timeouts of full segments, after which their size is reduced.
    pause(4000);
    let sent = station.ended().port("br").sent - before;
    assert!((3..100).contains(&sent), "{sent} frames to a silent host");
    station.stop();
}

#[test]
fn few_frames_are_sent_to_a_silent_host() {
    planes("few_frames_are_sent_to_a_silent_host", silent);
}

#[test]
fn few_frames_are_sent_to_a_silent_host_by_the_kernel() {
    planes("few_frames_are_sent_to_a_silent_host_by_the_kernel", silent);
}

/// A server whose link-layer address changes, and a client that learns it by an announcement, or knows it.
fn moved(by: By) {
    for (mtcp, announces) in [(false, true), (false, false), (true, false)] {
        wire(Wires::default());
        let station = station_by(by, Nothing, move || vec![ends(mtcp)]);
        let listener = listener();
        let (client, server) = connected(&listener);
        let new = "02:00:00:00:00:99";
        sh(&format!("ip -n fh link set dev fl address {new}"));
        if announces {
            sh(
                "ip netns exec fh arping -q -c 1 -A -I fl 10.9.0.1 || ip netns exec fh ping -q -c 1 -W 1 10.9.0.2 >/dev/null || true",
            );
        }
        sh(&format!("ip -n mh neigh replace 10.9.0.1 lladdr {new} dev mr nud reachable"));
        echo(&client, &server);
        connected(&listener);
        station.stop();
        sh("ip netns del fh; ip netns del bs; ip netns del mh");
    }
}

#[test]
fn connections_follow_a_gateway_that_fails_over() {
    planes("connections_follow_a_gateway_that_fails_over", moved);
}

#[test]
fn connections_follow_a_gateway_that_fails_over_by_the_kernel() {
    planes("connections_follow_a_gateway_that_fails_over_by_the_kernel", moved);
}

/// The keep-alives of the client are answered by a server that lives, and end a connection to one that has vanished.
fn keep_alives_end_to_end(by: By) {
    for mtcp in [false, true] {
        wire(Wires::default());
        let station = station_by(by, Nothing, move || vec![ends(mtcp)]);
        let listener = listener();
        let (client, server) = connected(&listener);
        setsockopt(&client, TcpKeepIdle, &1).unwrap();
        setsockopt(&client, TcpKeepInterval, &1).unwrap();
        setsockopt(&client, TcpKeepCount, &3).unwrap();
        setsockopt(&client, KeepAlive, &true).unwrap();
        pause(3500);
        echo(&client, &server);
        vanish("fh");
        let gone = (&client).read(&mut [0]).expect_err("keep-alives end it");
        assert_eq!(gone.kind(), std::io::ErrorKind::TimedOut, "{gone}");
        until("the station forgets it", || {
            station.handle.ask(|station| station.all_endings()) == Some(0)
        });
        station.stop();
        sh("ip netns del fh; ip netns del bs; ip netns del mh");
    }
}

#[test]
fn keep_alives_find_a_vanished_peer() {
    planes("keep_alives_find_a_vanished_peer", keep_alives_end_to_end);
}

#[test]
fn keep_alives_find_a_vanished_peer_by_the_kernel() {
    planes("keep_alives_find_a_vanished_peer_by_the_kernel", keep_alives_end_to_end);
}

/// Two routers with a virtual address. Hosts send to the virtual link-layer address, and the active router sends from its own one.
fn redundant(by: By) {
    wire(Wires::default());
    let [one, other, shared] = ["02:00:00:00:0a:01", "02:00:00:00:0a:02", "02:00:00:00:0a:ff"];
    let mobile = sh("ip netns exec mh cat /sys/class/net/mr/address").trim().to_owned();
    sh(&format!(
        "ip -n fh addr del 10.9.0.1/24 dev fl; ip -n fh link set dev fl address {one}
         ip -n fh link add mv0 link fl address {shared} type macvlan mode private; ip -n fh link set mv0 up
         ip -n fh addr add 10.9.0.1/32 dev mv0; ip -n fh route add 10.9.0.0/24 dev fl src 10.9.0.1
         ip netns exec fh sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.fl.rp_filter=0 net.ipv4.conf.mv0.rp_filter=0
         ip -n mh neigh replace 10.9.0.1 lladdr {shared} dev mr nud permanent
         ip -n fh neigh replace 10.9.0.2 lladdr {mobile} dev fl nud permanent"
    ));
    let station = station_by(by, Nothing, || vec![ends(false)]);
    let listener = listener();
    let (client, server) = connected(&listener);
    sh(&format!(
        "ip -n fh link set dev fl address {other}; ip -n fh route replace 10.9.0.0/24 dev fl src 10.9.0.1
         ip -n fh neigh replace 10.9.0.2 lladdr {mobile} dev fl nud permanent"
    ));
    echo(&client, &server);
    connected(&listener);
    station.stop();
}

#[test]
fn connections_follow_the_active_router_of_a_pair() {
    planes("connections_follow_the_active_router_of_a_pair", redundant);
}

#[test]
fn connections_follow_the_active_router_of_a_pair_by_the_kernel() {
    planes("connections_follow_the_active_router_of_a_pair_by_the_kernel", redundant);
}

/// All clients vanish. The server's keep-alives end their connections, and the station has room for new ones.
fn emptied(by: By) {
    wire(Wires::default());
    let station = station_by(by, Nothing, || vec![ends(false)]);
    let listener = listener();
    let pairs: Vec<_> = (0..20).map(|_| connected(&listener)).collect();
    let endings = || station.handle.ask(|station| station.all_endings());
    assert_eq!(endings(), Some(20));
    for (_, server) in &pairs {
        setsockopt(server, TcpKeepIdle, &1).unwrap();
        setsockopt(server, TcpKeepInterval, &1).unwrap();
        setsockopt(server, TcpKeepCount, &1).unwrap();
        setsockopt(server, KeepAlive, &true).unwrap();
    }
    vanish("mh");
    for (_, server) in &pairs {
        let mut server: &TcpStream = server;
        let gone = server.read(&mut [0]).expect_err("keep-alives end it");
        assert_eq!(gone.kind(), std::io::ErrorKind::TimedOut, "{gone}");
    }
    until("the station forgets them", || endings() == Some(0));
    drop(pairs);
    sh("ip -n mh addr add 10.9.0.2/24 dev mr");
    let _new = connected(&listener);
    assert_eq!(endings(), Some(1));
    station.stop();
}

#[test]
fn a_server_finds_vanished_clients() {
    planes("a_server_finds_vanished_clients", emptied);
}

#[test]
fn a_server_finds_vanished_clients_by_the_kernel() {
    planes("a_server_finds_vanished_clients_by_the_kernel", emptied);
}

#[test]
fn packets_have_the_dscp_of_their_host() {
    alone("packets_have_the_dscp_of_their_host", || {
        wire(Wires::default());
        let station = station_by(By::Sockets, Nothing, || vec![ends(false)]);
        let listener = listener();
        let (client, mut server) = connected(&listener);
        let tap = socket("mh", "mr");
        setsockopt(&server, Ipv4Tos, &0xb8).unwrap();
        server.write_all(&[7; 5000]).unwrap();
        (&client).read_exact(&mut [0; 5000]).unwrap();
        let mut inbox = Inbox::new();
        let mut classes = Vec::new();
        until("its data has arrived", || {
            inbox.receive(&tap).unwrap();
            let packets =
                inbox.frames().filter_map(|f| parse(&f.get(VNET + 14..)?.into(), 0, false).ok());
            classes.extend(packets.filter(|packet| packet.is_data()).map(|packet| packet.tos));
            classes.len() > 3
        });
        assert!(classes.iter().all(|tos| *tos == 0xb8), "{classes:?}");
        station.stop();
    });
}
