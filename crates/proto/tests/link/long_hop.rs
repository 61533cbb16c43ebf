//! A hop of 1 Gb/s with 10 ms of propagation, whose queue is never empty.

use lasthop_proto::channel::{Channel, ErrorModel, PacketLoss};
use lasthop_proto::event::Interest;
use lasthop_proto::hop::{Hop, HopConfig};
use lasthop_proto::link::tulip::{Pacing, TulipConfig};
use lasthop_proto::link::{LinkLayerConfig, RadioConfig};
use lasthop_proto::machine::{Machine, Out, Side};
use lasthop_proto::queue::{Discipline, Limit};
use lasthop_proto::rng::Stream;
use lasthop_proto::units::{Probability, Rate, Span, Time};
use lasthop_proto::wire::{Addr, Body, Flags, Packet, PacketId, Segment, Seq};

pub const PACKET: u32 = 1500;
pub const GIGABIT: u64 = 1_000_000_000;

/// A TCP packet of `bytes` bytes.
fn packet(id: u64, bytes: u32) -> Packet {
    let segment = Segment::new(1, 2, Seq(0), Seq(0), Flags::ACK);
    let body = Body::Pattern { stream: 1, len: bytes - 40, offset: 0 };
    let tcp = Packet::tcp(Addr::v4(10, 0, 0, 1), Addr::v4(10, 0, 0, 2), segment, body);
    tcp.with(|packet| packet.id = PacketId(id))
}

fn radio() -> RadioConfig {
    RadioConfig {
        rate: Rate::from_bps(GIGABIT).unwrap(),
        delay: Span::millis(10),
        overhead: Span::ZERO,
        half_duplex: false,
        queue: Limit::Packets(5000),
        discipline_right: Discipline::Fifo,
        discipline_left: Discipline::Fifo,
    }
}

/// Output of a hop in bits per second, with a queue that is never empty, after its first 200 ms. A frame is
/// lost with probability `loss`, in either direction.
pub fn throughput(window: u16, loss: f64, seed: u64) -> f64 {
    let pacing = Pacing::FullDuplex;
    let tulip = TulipConfig { window, pacing, ..TulipConfig::default() };
    let config = HopConfig { link: LinkLayerConfig::Tulip(tulip), ..HopConfig::default() };
    let model = ErrorModel::PacketLoss(PacketLoss { p: Probability::new(loss).unwrap() });
    let channel = |part| Some(Channel::new(&model, Stream::new(seed, part)));
    let channels = vec![[channel("left"), channel("right")]];
    let mut hop = Hop::new(&radio(), &config, channels, |part| Stream::new(1, part));
    let mut out = Out::new(Interest::NOTHING);
    let (mut put, mut got, mut counted) = (0, 0, 0);
    let (begin, end) = (Time(200_000_000), Time(1_200_000_000));
    let mut now = Time::ZERO;
    while now < end {
        out.begin(Default::default(), now);
        // Enough for the queue and the window, for any number of released packets.
        while put - got < 50 + u64::from(window) {
            hop.on_packet(now, Side::Left, packet(put, PACKET), &mut out);
            put += 1;
        }
        hop.on_wake(now, &mut out);
        for (side, packet) in out.sends.drain(..) {
            assert_eq!(side, Side::Right);
            assert_eq!(packet.id.0, got, "in order, once each");
            got += 1;
            counted += u64::from(now >= begin);
        }
        let discarded = out.take_tally().discarded;
        assert_eq!(discarded, 0);
        assert_eq!(put, got + hop.holds() as u64, "conservation at {now}");
        now = hop.next_wake().unwrap().max(now);
    }
    counted as f64 * f64::from(PACKET) * 8.0 / (end - begin).as_secs_f64()
}
