//! Two TCP hosts on a link that loses every 50th packet, in virtual time and without a socket.

use std::collections::VecDeque;
use std::sync::Arc;

use lasthop_proto::event::Interest;
use lasthop_proto::machine::{Machine as _, Out, Side};
use lasthop_proto::tcp::sockets::{SocketOptions, Sockets};
use lasthop_proto::tcp::{HostConfig, TcpConfig};
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{Addr, Body, Packet};

fn main() {
    let host = |name: &str, last, side| {
        let (addr, tcp) = (Addr::v4(10, 0, 0, last), Arc::new(TcpConfig::linux()));
        Sockets::new(HostConfig { name: name.to_owned(), addr, side, tcp }, 1)
    };
    let mut hosts = [host("client", 1, Side::Right), host("server", 2, Side::Left)];
    let (mut now, mut out, mut on_way, mut sent) =
        (Time::ZERO, Out::new(Interest::NOTHING), VecDeque::<(Time, usize, Packet)>::new(), 0);
    let (mut written, mut read) = (0u32, 0);
    hosts[1].listen(80, 5, &SocketOptions::default());
    let client = hosts[0].connect(now, (Addr::v4(10, 0, 0, 2), 80), &SocketOptions::default());
    while read < 1_000_000 {
        // The next event: a packet arrives, or a host's timer expires.
        let arrival = on_way.front().map_or(Time::NEVER, |(at, ..)| *at);
        let timer = hosts.iter().filter_map(Sockets::next_wake).min().unwrap_or(Time::NEVER);
        now = now.max(arrival.min(timer));
        while on_way.front().is_some_and(|(at, ..)| *at <= now) {
            let Some((_, to, packet)) = on_way.pop_front() else { break };
            let from: Side = [Side::Right, Side::Left][to];
            hosts[to].on_packet(now, from, packet, &mut out);
        }
        hosts.iter_mut().for_each(|host| host.on_wake(now, &mut out));
        // The applications: one writes whenever there is room, the other reads.
        while let Ok(taken @ 1..) =
            hosts[0].send(now, client, Body::copy_of(&[7; 1000]), false, &mut out)
        {
            written += taken;
        }
        if let Ok(bytes) = hosts[1].recv(now, 0, u64::MAX, &mut Vec::new(), &mut out) {
            read += bytes;
        }
        // The link: 20 ms each way; a host's packets leave on its own side.
        for (side, packet) in out.sends.drain(..) {
            sent += 1;
            if sent % 50 != 0 {
                on_way.push_back((
                    now + Span::millis(20),
                    usize::from(side == Side::Right),
                    packet,
                ));
            }
        }
    }
    println!("{read} of {written} bytes in {} s, {sent} packets", now.as_secs_f64());
}
