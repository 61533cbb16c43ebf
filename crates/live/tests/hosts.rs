//! Real hosts on both sides: data, damage and interface changes.

use std::net::UdpSocket;

use crate::common::*;
use lasthop_live::station::Station;
use lasthop_observe::Sink;
use lasthop_path::Stage;
use lasthop_proto::channel::{BitErrors, Channel, ErrorModel};
use lasthop_proto::event::{Event, EventKind, Interest, Op};
use lasthop_proto::link::{Radio, RadioConfig};
use lasthop_proto::queue::{Discipline, Limit};
use lasthop_proto::rng::Stream;
use lasthop_proto::units::{Probability, Rate, Span};
use lasthop_proto::wire::{Damage, Packet, Transport};

const V4: [&str; 2] = ["10.9.0.1", "10.9.0.2"];
const V6: [&str; 2] = ["fd00:9::1", "fd00:9::2"];

#[test]
fn every_byte_of_a_transfer_arrives_with_offloads_on_and_off() {
    alone("every_byte_of_a_transfer_arrives_with_offloads_on_and_off", || {
        for offload in [true, false] {
            wire(Wires { offload, ipv6: true, ..Wires::default() });
            for stage in [none, snoop, link] {
                let station = quiet(stage);
                for addrs in [V4, V6] {
                    transfer("fh", "mh", addrs[1], 3_000_000);
                    transfer("mh", "fh", addrs[0], 3_000_000);
                }
                let (_, ended) = station.stop();
                assert_eq!(ended.unroutable, 0);
                for host in ["fh", "mh"] {
                    assert_eq!(counter(host, "Tcp", "InCsumErrors"), 0);
                }
            }
            sh("ip netns del fh; ip netns del bs; ip netns del mh");
        }
    });
}

#[test]
fn hosts_find_each_other_and_echo() {
    alone("hosts_find_each_other_and_echo", || {
        wire(Wires { offload: true, ipv6: true, ..Wires::default() });
        for stage in [none, snoop, link] {
            sh("ip -n fh neigh flush dev fl; ip -n mh neigh flush dev mr");
            let station = quiet(stage);
            for (host, addr) in [("fh", V4[1]), ("fh", V6[1]), ("mh", V4[0]), ("mh", V6[0])] {
                // Also in eight fragments.
                for size in [56, 10_000] {
                    sh(&format!(
                        "ip netns exec {host} ping -q -i 0.01 -c 3 -W 30 -s {size} {addr}"
                    ));
                }
            }
            station.stop().1.assert_no_fault();
        }
    });
}

/// Counts damaged packets by the checksum that detects the damage.
#[derive(Default)]
struct Damaged {
    ip: u64,
    tcp: u64,
    udp: u64,
}

impl Sink for Damaged {
    fn interest(&self) -> Interest {
        Interest::METRICS
    }

    fn event(&mut self, event: &Event) {
        let EventKind::Packet { op: Op::Damaged, packet, .. } = &event.kind else { return };
        *match (packet.damage, &packet.transport) {
            (Damage::Ip, _) if packet.src.is_v4() => &mut self.ip,
            (_, Transport::Tcp(_)) => &mut self.tcp,
            (_, Transport::Other(17)) => &mut self.udp,
            _ => return,
        } += 1;
    }
}

/// A fast radio that damages packets to the right.
fn radio() -> Vec<Stage> {
    let config = RadioConfig {
        rate: Rate::from_bps(1_000_000_000).unwrap(),
        delay: Span::micros(10),
        overhead: Span::ZERO,
        half_duplex: false,
        queue: Limit::Packets(100_000),
        discipline_right: Discipline::Fifo,
        discipline_left: Discipline::Fifo,
    };
    // One bit error in about 6 kB, so headers are damaged too.
    let errors = ErrorModel::BitErrors(BitErrors { ber: Probability::new(2e-5).unwrap() });
    let channel = Channel::new(&errors, Stream::new(1, "errors"));
    vec![Stage::Radio(Box::new(Radio::new(config, None, Some(channel))))]
}

/// Errors that the kernel of `mh` has found: IPv4 headers, TCP, UDP.
fn noticed() -> [u64; 3] {
    [
        counter("mh", "IpExt", "InCsumErrors"),
        counter("mh", "Tcp", "InCsumErrors"),
        counter("mh", "Udp", "InCsumErrors"),
    ]
}

fn noticed_v6_udp() -> u64 {
    let text = sh("ip netns exec mh cat /proc/net/snmp6");
    let line = text.lines().find(|line| line.starts_with("Udp6InCsumErrors")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn the_receiving_kernel_counts_the_damage_that_the_station_reports() {
    alone("the_receiving_kernel_counts_the_damage_that_the_station_reports", || {
        for offload in [true, false] {
            wire(Wires { offload, ipv6: true, ..Wires::default() });
            for [_, addr] in [V4, V6] {
                let before = (noticed(), noticed_v6_udp());
                let station = station(Damaged::default(), radio);
                transfer("fh", "mh", addr, 3_000_000);
                let sink = datagrams(addr, 3000);
                let (damaged, ended) = finish(station);
                // UDP counts damage when the datagram is read.
                drain(&sink);
                assert_eq!(ended.port("br").refused, 0);
                let after = (noticed(), noticed_v6_udp());
                let udp = after.1 - before.1 + after.0[2] - before.0[2];
                let got = [after.0[0] - before.0[0], after.0[1] - before.0[1], udp];
                assert_eq!(got, [damaged.ip, damaged.tcp, damaged.udp]);
                let v4 = addr == V4[1];
                assert!(damaged.tcp > 5 && damaged.udp > 5 && (damaged.ip > 0) == v4, "{got:?}");
            }
            sh("ip netns del fh; ip netns del bs; ip netns del mh");
        }
    });
}

/// Stops the station when no packet is left inside.
fn finish(station: Running<Damaged>) -> (Damaged, Ended) {
    let empty = |station: &mut Station| {
        let empty = station.path().counts().iter().all(|(_, count)| count.held == 0);
        if empty {
            station.stop();
        }
        empty
    };
    until("the radio is idle", || station.handle.ask(empty) != Some(false));
    station.finished()
}

/// Empties the socket. Returns the last datagram of one byte.
fn drain(socket: &UdpSocket) -> Option<u8> {
    let (mut last, mut buffer) = (None, [0; 2000]);
    while let Ok((len, _)) = socket.recv_from(&mut buffer) {
        if len == 1 {
            last = Some(buffer[0]);
        }
    }
    last
}

/// Sends datagrams from `fh` to a socket of `mh`, in batches that fit its buffer. A full buffer would drop
/// them before the checksum is verified.
fn datagrams(addr: &'static str, count: u32) -> UdpSocket {
    let sink = inside("mh", move || UdpSocket::bind((addr, 0)).unwrap());
    let to = sink.local_addr().unwrap();
    sink.set_nonblocking(true).unwrap();
    inside("fh", move || {
        let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = UdpSocket::bind(any).unwrap();
        for lot in 0..(count / 50) as u8 {
            for _ in 0..50 {
                socket.send_to(&[lot; 500], to).unwrap();
            }
            // The path preserves the order: after the number of a batch, all of the batch has arrived. The
            // number itself may be damaged.
            let has_come = |_| {
                pause(1);
                drain(&sink) == Some(lot)
            };
            until("a lot has come", || {
                socket.send_to(&[lot], to).unwrap();
                (0..20).any(has_come)
            });
        }
        pause(200);
        drain(&sink);
        sink
    })
}

#[test]
fn a_damaged_packet_is_sent_with_a_wrong_checksum() {
    // Snoop sends cached copies; the radio damages some of them. The kernel receives both.
    alone("a_damaged_packet_is_sent_with_a_wrong_checksum", || {
        wire(Wires { offload: true, ..Wires::default() });
        let station = station(Damaged::default(), || {
            let mut stages = vec![snoop()];
            stages.extend(radio());
            stages
        });
        transfer("fh", "mh", V4[1], 2_000_000);
        let (damaged, ended) = finish(station);
        assert_eq!(ended.unroutable, 0);
        assert_eq!(noticed()[..2], [damaged.ip, damaged.tcp]);
        assert!(damaged.tcp > 5);
    });
}

#[test]
fn an_interface_may_go_down_and_come_up_again() {
    alone("an_interface_may_go_down_and_come_up_again", || {
        wire(Wires::default());
        for stage in [none, snoop, link] {
            let station = quiet(stage);
            transfer("fh", "mh", V4[1], 100_000);
            sh("ip -n bs link set dev br down");
            until("the station sees it", || station.ended().port("br").downs == 1);
            until("a packet finds the interface down", || {
                sh("ip netns exec fh ping -q -c 1 -W 1 10.9.0.2 >/dev/null || true");
                station.ended().port("br").refused_down > 0
            });
            sh("ip -n bs link set dev br up");
            wait_up(&[("bs", "br"), ("mh", "mr")]);
            sh("ip -n fh neigh flush dev fl; ip -n mh neigh flush dev mr");
            transfer("fh", "mh", V4[1], 100_000);
            station.stop();
        }
    });
}

#[test]
fn a_station_whose_interface_disappears_ends_and_names_it() {
    alone("a_station_whose_interface_disappears_ends_and_names_it", || {
        for stage in [none, snoop] {
            wire(Wires::default());
            let station = quiet(stage);
            transfer("fh", "mh", V4[1], 100_000);
            sh("ip -n bs link del dev br");
            let (result, _) = station.join();
            let error = result.unwrap_err().to_string();
            assert!(error.contains("br"), "{error}");
            sh("ip netns del fh; ip netns del bs; ip netns del mh");
        }
    });
}

#[test]
fn receive_buffer_overruns_are_counted() {
    alone("receive_buffer_overruns_are_counted", || {
        wire(Wires::default());
        let station = quiet(none);
        let left = socket("fh", "fl");
        let mut frame = vec![2; 1400];
        frame[12..14].copy_from_slice(&0x88b5u16.to_be_bytes());
        let flood = vec![frame; 60_000];
        // The station is blocked until its receive buffer is full. The block ends after some seconds, which a
        // busy machine may need.
        let (begun, is_busy) = std::sync::mpsc::channel::<()>();
        let (finish, finished) = std::sync::mpsc::channel::<()>();
        let handle = station.handle.clone();
        let busy = std::thread::spawn(move || {
            handle.ask(move |_| {
                begun.send(()).unwrap();
                finished.recv().unwrap();
            })
        });
        is_busy.recv().unwrap();
        send_plain(&left, &flood);
        finish.send(()).unwrap();
        busy.join().unwrap();
        until("all frames are counted", || {
            pause(100);
            let ended = station.ended();
            let (port, out) = (ended.port("bl"), ended.port("br"));
            port.received + port.overrun >= 60_000 && out.sent + out.refused >= port.received
        });
        let port = station.stop().1.port("bl");
        assert!(port.overrun > 0, "{port:?}");
    });
}

/// An idle station sleeps: after a timer and a request it uses no processor time.
#[test]
fn an_idle_station_does_not_spin() {
    alone("an_idle_station_does_not_spin", || {
        wire(Wires::default());
        let station = quiet(link);
        transfer("fh", "mh", V4[1], 10_000);
        for _ in 0..100 {
            assert!(station.handle.ask(|_| ()).is_some());
        }
        let spent = || {
            let time =
                nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_SELF).unwrap();
            time.user_time().tv_usec()
                + time.user_time().tv_sec() * 1_000_000
                + time.system_time().tv_usec()
                + time.system_time().tv_sec() * 1_000_000
        };
        pause(100);
        let before = spent();
        pause(1000);
        let spent = spent() - before;
        assert!(spent < 250_000, "{spent} microseconds of a second");
        station.stop();
    });
}

/// A packet without a known neighbour is dropped with a cause.
#[test]
fn an_unroutable_packet_is_counted() {
    alone("an_unroutable_packet_is_counted", || {
        wire(Wires::default());
        let station = station(Damaged::default(), || vec![none()]);
        let lost = station.handle.ask(|station| {
            use lasthop_proto::wire::{Addr, Body, Flags, Segment, Seq};
            let segment = Segment::new(1, 2, Seq(3), Seq(4), Flags::ACK);
            let packet =
                Packet::tcp(Addr::v4(10, 9, 0, 7), Addr::v4(10, 9, 0, 8), segment, Body::EMPTY);
            let send = |_: &mut Stage, out: &mut lasthop_proto::machine::Out| {
                out.send(lasthop_proto::machine::Side::Right, packet);
            };
            station.call(1, &mut lasthop_observe::Nothing, send);
            station.unroutable()
        });
        assert_eq!(lost, Some(1));
        station.stop();
    });
}
