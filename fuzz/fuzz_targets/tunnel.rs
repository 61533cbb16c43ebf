//! One end of a tunnel survives whatever arrives: garbage, and messages of a peer that has the key and means harm.
#![no_main]

use std::net::SocketAddr;

use lasthop_proto::link::tulip::{Reliable, Rule};
use lasthop_proto::tunnel::seal::{self, Key, Seal};
use lasthop_proto::tunnel::session::SessionConfig;
use lasthop_proto::tunnel::{Tunnel, TunnelConfig};
use lasthop_proto::units::{Span, Time};
use libfuzzer_sys::fuzz_target;
use toy::Toy;

#[path = "../../crates/checks/shared/toy.rs"]
mod toy;

fn end(peer: Option<SocketAddr>, secret: u8) -> Tunnel<Toy> {
    let config = TunnelConfig {
        session: SessionConfig {
            peer,
            answers: true,
            window: 16,
            mtu: 1400,
            keep_alive: Span::secs(1),
            dead_after: Span::secs(5),
            renew_after: Span::secs(20),
            renew_count: 1 << 20,
            worn_after: 1 << 40,
        },
        rule: Some(Rule { reliable: Reliable::All, ..Rule::default() }),
        rate: None,
        delay: None,
        framing: 28,
        below: 1500,
        follows: true,
        queue: 64,
    };
    Tunnel::new(config, Toy { key: 7 }, [secret; 32])
}

fuzz_target!(|data: &[u8]| {
    let [here, there] = [1, 2].map(|n| SocketAddr::from(([192, 0, 2, n], 4500)));
    let (mut a, mut b) = (end(Some(there), 1), end(None, 2));
    let mut now = Time::ZERO;
    let mut datagrams = Vec::new();
    let mut packets = Vec::new();
    // What somebody on the way has recorded, and may send again.
    let mut recorded: Vec<(bool, Vec<u8>)> = Vec::new();
    let mut loses = false;
    let mut rest = data;
    while let Some(([what, len], tail)) = rest.split_first_chunk() {
        let (bytes, tail) = tail.split_at(usize::from(*len).min(tail.len()));
        rest = tail;
        let mut bytes = bytes.to_vec();
        match what % 8 {
            // As it is, and with a tag as if from somebody with the key.
            0 => a.on_datagram(now, there, &mut bytes),
            1 => {
                let code = Toy { key: 7 }.code(Key::Shared, &bytes);
                bytes.extend_from_slice(&code[..16]);
                b.on_datagram(now, here, &mut bytes);
            }
            2 => a.on_packet(now, &bytes),
            3 => b.on_packet(now, &bytes),
            4 => loses = len & 1 != 0,
            // A datagram once more, late, changed, or from elsewhere.
            5 if !recorded.is_empty() => {
                let (to_b, old) = &recorded[usize::from(*len) % recorded.len()];
                let mut old = old.clone();
                if let Some(byte) = bytes.first().and_then(|at| old.get_mut(usize::from(*at))) {
                    *byte ^= what;
                }
                let from = SocketAddr::from(([192, 0, 2, 1 + (what >> 6)], 4500));
                let to = if *to_b { &mut b } else { &mut a };
                to.on_datagram(now, from, &mut old);
            }
            6 => now += Span::secs(u64::from(*len) * 60),
            _ => now += Span::millis(u64::from(*len) * 8),
        }
        for _ in 0..16 {
            a.on_wake(now);
            b.on_wake(now);
            for to_b in [true, false] {
                if to_b {
                    a.take_datagrams(&mut datagrams)
                } else {
                    b.take_datagrams(&mut datagrams)
                }
                for mut datagram in datagrams.drain(..) {
                    if recorded.len() < 64 {
                        recorded.push((to_b, datagram.bytes.clone()));
                    }
                    match (to_b, loses) {
                        (_, true) => {}
                        (true, _) => b.on_datagram(now, here, &mut datagram.bytes),
                        (false, _) => a.on_datagram(now, there, &mut datagram.bytes),
                    }
                }
            }
        }
        a.take_packets(&mut packets);
        b.take_packets(&mut packets);
        packets.clear();
        assert!(a.waiting() <= 64 && b.waiting() <= 64);
    }
});
